"""Figures that can be added up: durations as a histogram, stretches of time, and what is remembered in between."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.histories import AGENTS, HOUR, histories, history
from core.make import NOW, SECOND, journal
from remit.codec import decode, encode
from remit.core.events import Event
from remit.core.kinds.upkeep import runs_pruned
from remit.core.tally import (
    DAY_WIDE,
    HOUR_WIDE,
    Counting,
    Figures,
    Period,
    Times,
    Window,
    bucket_of,
    figures_from,
    longest_in,
    start_of,
    times_from,
    under_way_from,
)

durations = st.integers(0, 2**50) | st.integers(0, 200)
moments = st.none() | st.integers(-5 * DAY_WIDE, 5 * DAY_WIDE) | st.integers(-50, 50).map(lambda hour: hour * HOUR_WIDE)


def times(*all_: int) -> Times:
    found = Times()
    for duration in all_:
        found.add(duration)
    return found


# -- durations ------------------------------------------------------------------------------------------------


@pytest.mark.rule("stats.percentiles")
@given(st.lists(durations, min_size=1), st.integers(1, 100))
def test_a_percentile_is_never_too_short_and_at_most_five_in_a_hundred_too_long(all_: list[int], share: int):
    exact = sorted(all_)[-(-len(all_) * share // 100) - 1]
    found = times(*all_)

    assert exact <= found.percentile(share) <= exact * 1.05
    assert found.percentile(100) == max(all_)
    assert (found.count, found.total, found.mean) == (len(all_), sum(all_), sum(all_) // len(all_))


@given(durations)
def test_a_duration_is_in_the_bucket_that_ends_next_after_it(duration: int):
    bucket = bucket_of(duration)

    assert bucket == 0 or longest_in(bucket - 1) < duration
    assert duration <= longest_in(bucket)
    assert bucket_of(longest_in(bucket)) == bucket


@given(st.lists(st.lists(st.integers(-9, 2**40)), min_size=3, max_size=3))
def test_durations_are_the_same_however_they_are_added_up(parts: list[list[int]]):
    whole = times(*(duration for part in parts for duration in part))
    left, right = times(*parts[0]), times(*parts[1])
    left.merge(times(*parts[1]))
    left.merge(times(*parts[2]))
    right.merge(times(*parts[2]))
    other = times(*parts[0])
    other.merge(right)

    assert left == other == whole
    assert times_from(decode(encode(whole.data()))) == whole


def test_of_no_durations_nothing_is_told():
    assert (Times().mean, Times().percentile(95), times_from(None)) == (0, 0, Times())


def test_durations_by_a_clock_that_was_set_back_are_counted():
    found = times(-7, -5)

    assert (found.count, found.mean, found.shortest, found.longest, found.percentile(95)) == (2, -6, -7, -5, -5)


# -- stretches of time ----------------------------------------------------------------------------------------


@given(moments, moments, st.integers(-6 * DAY_WIDE, 6 * DAY_WIDE))
def test_every_moment_of_a_window_is_in_exactly_one_of_its_parts(since: int | None, until: int | None, at: int):
    window = Window(since, until)
    whole = [period for period in window.whole() if period.start <= at < period.stop]
    edges = [edge for edge in window.edges() if edge.holds(at)]

    assert len(whole) + len(edges) == (1 if window.holds(at) else 0)
    assert all(period.start % period.width == period.stop % period.width == 0 for period in window.whole())
    assert all(start_of(edge.start, HOUR_WIDE) + HOUR_WIDE >= edge.stop for edge in window.edges())
    assert len(window.whole()) <= 3
    assert len(window.edges()) <= 2


def test_days_are_taken_whole():
    window = Window(DAY_WIDE - 90 * 60 * SECOND, 3 * DAY_WIDE + 10)

    assert window.whole() == [
        Period(HOUR_WIDE, DAY_WIDE - HOUR_WIDE, DAY_WIDE),
        Period(DAY_WIDE, DAY_WIDE, 3 * DAY_WIDE),
    ]
    assert window.edges() == [Window(window.since, DAY_WIDE - HOUR_WIDE), Window(3 * DAY_WIDE, window.until)]
    assert [period.width for period in Window().whole()] == [DAY_WIDE]


# -- counting -------------------------------------------------------------------------------------------------


def counted(events: list[Event]) -> dict[str, Figures]:
    found: defaultdict[str, Figures] = defaultdict(Figures)
    counting = Counting(lambda _at, who: found[who])
    for event in events:
        counting.add(event)
    return found


@given(histories, st.integers(1, 20))
def test_figures_are_the_same_wherever_counting_is_interrupted(told, size: int):
    """Each slice is counted on its own, with what the one before remembered, through JSON."""
    events = journal(*told)
    found: defaultdict[str, Figures] = defaultdict(Figures)
    kept: dict[str, object] = {}
    for start in range(0, len(events), size):
        part: defaultdict[str, Figures] = defaultdict(Figures)
        counting = Counting(lambda _at, who, part=part: part[who], lambda first: kept.get(first.task))  # pyright: ignore[reportArgumentType]
        for event in events[start : start + size]:
            counting.add(event)
        for task, known in counting.under_way.items():
            kept[task] = None if known is None else under_way_from(decode(encode(known.data())), known.root)
        for who, figures in part.items():
            found[who].merge(figures_from(decode(encode(figures.data()))))

    assert found == counted(events)


@given(st.lists(histories, min_size=3, max_size=3))
def test_figures_are_the_same_however_they_are_added_up(parts):
    one, two, three = (counted(journal(*part)).get("lead", Figures()) for part in parts)
    left, right = Figures(), Figures()
    for figures in (one, two, three):
        left.merge(figures)
    for figures in (three, one, two):
        right.merge(figures)

    assert {**left.data(), "breakers": 0} == {**right.data(), "breakers": 0}  # their numbers meet in three journals


@given(histories)
def test_what_is_remembered_is_what_is_open(told):
    counting = Counting(lambda _at, _who: Figures())
    for event in journal(*told):
        counting.add(event)
    ended = {
        event.task for event in told if event.kind in ("task.completed", "task.failed", "task.cancelled", "task.died")
    }

    assert {task for task, known in counting.under_way.items() if known is None} == ended


def test_of_a_run_that_was_pruned_before_it_was_counted_nothing_is_remembered():
    began = journal(*history(7, 60))[0]
    [pruned] = journal(runs_pruned([{"id": began.run, "tasks": [began.task]}], [], NOW))
    known = Counting(lambda _at, _who: Figures())
    known.add(began)
    later = Counting(lambda _at, _who: Figures(), lambda first: known.under_way[first.task])

    later.add(pruned)

    assert later.under_way == {began.task: None}
    assert later.recalled == {began.task}


def test_a_history_at_random_has_a_bit_of_everything():
    """What the tests above go through."""
    events = journal(*history(1, 3_000))
    found = counted(events)

    assert set(AGENTS) <= set(found)
    names = ("tasks", "attempts", "turns", "handed", "retries", "dead", "tokens")
    for figures in (found[agent] for agent in AGENTS):
        assert all(figures.counts[name] for name in names)
        assert all((figures.runs, figures.refusals, figures.breakers, figures.most_passed > figures.most_handed))
        assert all((figures.times.count, figures.queue.count, figures.latency.count, figures.times.shortest < 0))
    kinds = {event.kind for event in events}
    assert kinds >= {"task.released", "task.lost", "task.waiting", "task.fenced", "hop.refused"}
    assert len({start_of(event.at, HOUR) for event in events}) > 100


def test_a_window_within_a_day_has_its_hours_and_one_within_an_hour_has_only_edges():
    hours = Window(HOUR_WIDE, 3 * HOUR_WIDE)
    assert hours.whole() == [Period(HOUR_WIDE, HOUR_WIDE, 3 * HOUR_WIDE)]
    assert hours.edges() == []
    short = Window(HOUR_WIDE + 5, HOUR_WIDE + 9)
    assert (short.whole(), short.edges()) == ([], [short])

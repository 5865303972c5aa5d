"""Figures over a stretch of the journal, folded from its events."""

import pytest

from core.make import NOW, SECOND, UNTIL, claimed, first_remit, journal, moved, requeued, submitted
from remit.core.breaker import CLOSED, Breaker
from remit.core.events import Event, Place, Unsealed
from remit.core.kinds.tasks import Begun, Queued, started, tokens_used
from remit.core.kinds.tasks import ended as ended_event
from remit.core.kinds.tasks import handed as handed_event
from remit.core.kinds.tasks import refused as refused_event
from remit.core.kinds.workspace import breaker_set
from remit.core.remit import NO_RIGHTS, Pass, Remit, derive, handed_to
from remit.core.tally import bucket_of, longest_in
from remit.core.values import checked
from remit.report import wire
from remit.report.stats import Stats, StatsPoint, Times, stats

LEAD = first_remit("lead")
CODER = derive(LEAD, Pass("coder", "part"), "t2", NO_RIGHTS, UNTIL)
BILLING = handed_to(LEAD, "billing")


def at(seconds: float) -> int:
    return NOW + round(seconds * SECOND)


def handed(remit: Remit, to: str | list[str], seconds: float, tokens: int = 0) -> Unsealed:
    return handed_event(remit, to, at(seconds), {"update": {}, "tokens": tokens} if tokens else {"update": {}})


def ended(remit: Remit, word: str, seconds: float, tokens: int = 0) -> Unsealed:
    return ended_event(remit, f"task.{word}", at(seconds), {"tokens": tokens} if tokens else {})


def refused(remit: Remit, rule: str, seconds: float) -> Unsealed:
    return refused_event(remit, Pass("x", "y"), at(seconds), rule=rule, sentence="no", handoff=rule == "deadlock")


def times(*durations: int) -> Times:
    found = Times()
    for duration in durations:
        found.add(duration)
    return found


def a_day() -> list[Event]:
    return journal(
        started(LEAD, at(0)),
        started(CODER, at(1)),
        refused(CODER, "loop", 1.5),
        tokens_used(CODER, 5, at(2)),
        ended(CODER, "failed", 2, tokens=5),
        breaker_set("coder", Breaker("open", 3, at(60), "", "it broke"), Place("t1", "s1", "t2"), at(2)),
        tokens_used(LEAD, 4, at(4)),
        tokens_used(LEAD, 6, at(4)),
        handed(LEAD, "billing", 4, tokens=10),
        breaker_set("billing", CLOSED, Place("t1", "s1", "t1"), at(4)),
        refused(BILLING, "deadlock", 5),
        handed(BILLING, "lead", 6),
        refused(LEAD, "deadlock", 9),
        tokens_used(LEAD, 20, at(10)),
        ended(LEAD, "completed", 10, tokens=20),
    )


def test_nothing_has_figures_of_nothing():
    found = stats([])

    assert found == Stats()
    assert wire.stats(found) == {
        "events": 0,
        "runs": {},
        "tasks": 0,
        "handoffs": {"total": 0, "mean": 0.0, "max": 0, "latency_mean": 0, "latency_p95": 0},
        "queue": {"attempts": 0, "retries": 0, "dead": 0, "mean": 0, "p95": 0},
        "deadlocks": 0,
        "tokens": 0,
        "credits": 0,
        "refusals": {},
        "refused_credits": 0,
        "agents": {},
        "breakers": {},
    }


@pytest.mark.rule("stats.refused-credits")
def test_the_money_that_refused_tasks_were_to_get_is_counted():
    wish = Pass("x", "y", credits="$2")
    twice = [refused_event(LEAD, wish, at(0), rule=rule, sentence="no") for rule in ("credits", "loop")]

    found = stats(journal(*twice, refused(LEAD, "loop", 1)))

    assert wire.stats(found)["refused_credits"] == found.refused_credits == 2 * (wish.credits or 0)


def test_the_figures_of_a_day():
    data = wire.stats(stats(a_day()))

    assert data == {
        "events": 15,
        "runs": {"completed": 1},
        "tasks": 2,
        "handoffs": {"total": 2, "mean": 1.0, "max": 2, "latency_mean": 2 * SECOND, "latency_p95": 3 * SECOND},
        "queue": {"attempts": 2, "retries": 0, "dead": 0, "mean": 0, "p95": 0},
        "deadlocks": 2,
        "tokens": 35,
        "credits": 0,
        "refusals": {"deadlock": 2, "loop": 1},
        "refused_credits": 0,
        "agents": {
            "billing": agent(turns=1, handed=1, **took(2 * SECOND)),
            "coder": agent(turns=1, failed=1, tokens=5, attempts=1, **took(SECOND)),
            "lead": agent(turns=2, completed=1, handed=1, tokens=30, attempts=1, **took(4 * SECOND, 4 * SECOND)),
        },
        "breakers": {
            "billing": {"state": "closed", "failures": 0, "until": 0, "why": "", "at": at(4)},
            "coder": {"state": "open", "failures": 3, "until": at(60), "why": "it broke", "at": at(2)},
        },
    }
    assert checked(data, "figures") == data
    assert wire.stats_point(StatsPoint(NOW, stats(a_day()))) == {"start": NOW, **data}


def took(*durations: int) -> dict[str, int]:
    total = sum(durations)
    middle = sorted(durations)[(len(durations) - 1) // 2]
    return {
        "time_total": total,
        "time_mean": total // len(durations),
        "time_p50": min(longest_in(bucket_of(middle)), max(durations)),
        "time_p95": max(durations),
    }


def agent(**figures: int) -> dict[str, float | None]:
    names = ["turns", "completed", "failed", "cancelled", "handed", "tokens", "time_total", "time_mean", "time_p95"]
    names += ["attempts", "retries", "dead", "queue_mean", "queue_p95", "credits", "credits_mean", "time_p50"]
    ended = sum(figures.get(name, 0) for name in ("completed", "failed", "dead"))
    success = figures.get("completed", 0) / ended if ended else None
    return {**{name: figures.get(name, 0) for name in names}, "success": success}


def a_queue() -> list[Event]:
    """Lead is begun at once; coder after two seconds, tried again, lost, and dead in the third attempt."""
    return journal(
        submitted(LEAD, at(0)),
        claimed(LEAD, at(0)),
        submitted(CODER, at(1)),
        claimed(CODER, at(3)),
        tokens_used(CODER, 5, at(4)),
        requeued(CODER, "retrying", at(4), error="it broke", tokens=5),
        claimed(CODER, at(6), 2),
        requeued(CODER, "lost", at(7), 2, lost_by="w1"),
        claimed(CODER, at(8), 3),
        tokens_used(CODER, 7, at(10)),
        moved(CODER, "died", at(10), error="it broke", tokens=7),
        moved(LEAD, "waiting", at(11)),
    )


def test_the_figures_of_a_queue():
    found = stats(a_queue())

    data = wire.stats(found)
    assert data["queue"] == {"attempts": 4, "retries": 1, "dead": 1, "mean": SECOND, "p95": 2 * SECOND}
    assert data["agents"]["lead"] == agent(attempts=1)  # pyright: ignore[reportCallIssue]
    coder = {"attempts": 3, "retries": 1, "dead": 1, "queue_mean": 2 * SECOND, "queue_p95": 2 * SECOND}
    assert data["agents"]["coder"] == agent(  # pyright: ignore[reportCallIssue]
        turns=2, tokens=12, **took(SECOND, 2 * SECOND), **coder
    )  # for how long the attempt that was lost had run is not told
    assert data["runs"] == {"waiting": 1}
    assert data["tasks"] == 2
    assert checked(data, "figures") == data


@pytest.mark.parametrize(("upto", "state"), [(1, "pending"), (2, "running"), (12, "waiting")])
def test_a_run_is_where_its_first_task_is(upto, state):
    assert stats(a_queue()[:upto]).runs == {state: 1}


def test_the_queue_of_one_agent_is_what_waited_for_it():
    assert stats(a_queue(), "coder").queue == times(2 * SECOND)
    assert (stats(a_queue(), "lead").attempts, stats(a_queue(), "lead").retries) == (1, 0)


def test_what_is_begun_at_once_did_not_wait():
    at_once = started(LEAD, at(0), Begun("w1"), Queued("submit", SECOND, 4, at(0)))

    assert stats(journal(at_once)).queue == times(0)
    assert stats(journal(started(LEAD, at(0)))).queue == Times()


def test_a_retry_of_a_run_that_began_earlier_is_no_run():
    again = [requeued(LEAD, "retrying", at(1), error="x")]

    assert stats(journal(*again)).runs == {}
    assert stats(journal(*again, moved(LEAD, "died", at(2)))).runs == {"dead": 1}


def test_the_figures_of_one_agent_are_what_it_did_itself():
    found = stats(a_day(), "billing")

    assert (found.events, found.total_handoffs, found.most_handoffs, found.deadlocks) == (3, 1, 1, 1)
    assert list(found.agents) == ["billing"]
    assert list(found.breakers) == ["billing"]
    assert found.runs == {}
    assert found.latency == times(SECOND)


def test_a_run_that_another_ended_counts_for_who_began_it():
    events = journal(started(LEAD, at(0)), handed(LEAD, "billing", 1), ended(BILLING, "cancelled", 2))

    assert stats(events, "lead").runs == {"cancelled": 1}
    assert stats(events).agents["billing"].cancelled == 1
    assert stats(events[:1]).runs == {"running": 1}


def test_parts_that_are_handed_out_count_as_a_handoff_of_the_task():
    events = journal(started(LEAD, at(0)), handed(LEAD, ["coder", "tester"], 1), started(CODER, at(1)))

    found = stats(events)

    assert (found.total_handoffs, found.mean_handoffs) == (1, 0.5)
    assert found.latency == Times()  # nothing was heard of the task itself


def test_of_turns_that_began_earlier_only_the_time_is_unknown():
    used = tokens_used(LEAD, 4, at(1))
    found = stats(journal(used, handed(LEAD, "billing", 1, tokens=4), ended(BILLING, "completed", 3)))

    assert (found.agents["lead"].turns, found.agents["lead"].tokens, found.agents["lead"].times) == (1, 4, Times())
    assert found.agents["billing"].times == times(2 * SECOND)
    assert found.runs == {"completed": 1}


def test_other_events_of_a_task_show_that_it_was_taken_up():
    wrote = Unsealed("entry.set", at(3), {}, "t1", "s1", "t1", "billing")
    events = journal(started(LEAD, at(0)), handed(LEAD, "billing", 1), wrote, ended(BILLING, "completed", 9))

    assert stats(events).latency == times(2 * SECOND)

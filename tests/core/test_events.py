"""Events: each sealed with the hash of the one before, so that nothing is changed unnoticed."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import journal
from remit.core.events import GENESIS, Event, Head, Unsealed, genuine, seal
from remit.core.values import decode, encode

words = st.sampled_from(["", "a", "b", "a-b", "None"])
contents = st.sampled_from([{}, {"a": 1}, {"a": "1"}, {"text": "two\nlines", "\u00e9": [None, {"x": 0.5}]}])
facts = st.builds(
    Unsealed,
    kind=st.sampled_from(["task.started", "task.completed", "entry.set"]),
    at=st.integers(0, 9),
    data=contents,
    run=words,
    session=words,
    task=words,
    agent=words,
)
stamps = st.tuples(st.none() | words, st.sampled_from([None, "null", "1", '"1"']))


def journals(least: int = 1) -> st.SearchStrategy[list[Event]]:
    pairs = st.lists(st.tuples(facts, stamps), min_size=least, max_size=5)
    return pairs.map(lambda found: journal(*(f for f, _ in found), stamps=tuple(s for _, s in found)))


SEALED = [name for name in Event._fields if name != "data"]  # the data are the text, read


def first_forged(events: list[Event]) -> int | None:
    """The index of the first event that is not what was sealed there."""
    head = Head()
    for index, event in enumerate(events):
        if not genuine(event, head):
            return index
        head = Head(event.seq, event.hash)
    return None


def another(value: object, data: st.DataObject) -> object:
    """A value of the same kind that is not this one."""
    return data.draw((st.integers(-1, 20) if isinstance(value, int) else words).filter(lambda one: one != value))


# --- sealing -----------------------------------------------------------------------------------


@given(facts, stamps)
def test_sealing_gives_a_fact_its_place_and_keeps_all_of_it(fact, stamp):
    event = seal(fact, encode(fact.data), "home", Head(41, "f" * 64), stamp)

    assert (event.workspace, event.seq) == ("home", 42)
    assert (event.kind, event.at, event.run, event.session) == (fact.kind, fact.at, fact.run, fact.session)
    assert (event.task, event.agent, event.data) == (fact.task, fact.agent, fact.data)
    assert (event.op, event.answer) == stamp
    assert decode(event.text) == fact.data
    assert genuine(event, Head(41, "f" * 64))


def test_a_journal_begins_with_one_after_the_genesis():
    first, second = journal(Unsealed("entry.set", 7, {"a": 1}), Unsealed("entry.set", 7, {"a": 1}))

    assert Head() == Head(0, GENESIS)
    assert (first.seq, second.seq) == (1, 2)
    assert len({GENESIS, first.hash, second.hash}) == 3
    assert all(len(one) == 64 and int(one, 16) >= 0 for one in (GENESIS, first.hash, second.hash))


@pytest.mark.rule("journal.chain")
@given(journals())
def test_a_journal_nobody_touched_is_genuine(events):
    assert first_forged(events) is None
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


# --- tampering ---------------------------------------------------------------------------------


@pytest.mark.rule("journal.chain")
@given(journals(), st.data())
def test_any_single_changed_field_is_found_at_its_event(events, data):
    index = data.draw(st.integers(0, len(events) - 1))
    field = data.draw(st.sampled_from(SEALED))
    value = another(getattr(events[index], field), data)

    forged = [*events[:index], events[index]._replace(**{field: value}), *events[index + 1 :]]

    assert first_forged(forged) == index


@pytest.mark.rule("journal.chain")
@pytest.mark.parametrize("field", ["op", "answer"])
def test_no_operation_is_told_from_one_that_is_called_none(field):
    (event,) = journal(Unsealed("entry.set", 7, {}))

    assert not genuine(event._replace(**{field: "None"}), Head())


@pytest.mark.rule("journal.chain")
@given(journals(2), st.data())
def test_an_event_that_is_hashed_again_breaks_the_one_after_it(events, data):
    index = data.draw(st.integers(0, len(events) - 2))
    old = events[index]
    head = Head(old.seq - 1, events[index - 1].hash if index else GENESIS)
    fact = Unsealed(old.kind, old.at + 1, old.data, old.run, old.session, old.task, old.agent)

    forged = [
        *events[:index],
        seal(fact, old.text, "home", head, (old.op, old.answer)),
        *events[index + 1 :],
    ]

    assert first_forged(forged) == index + 1


@pytest.mark.rule("journal.chain")
@given(journals(2), st.data())
def test_a_removed_event_is_found_where_it_is_missing(events, data):
    index = data.draw(st.integers(0, len(events) - 2))

    assert first_forged(events[:index] + events[index + 1 :]) == index


@pytest.mark.rule("journal.chain")
@given(journals(2), st.data())
def test_a_removed_event_is_found_even_if_the_rest_is_renumbered(events, data):
    index = data.draw(st.integers(0, len(events) - 2))

    rest = events[:index] + [event._replace(seq=event.seq - 1) for event in events[index + 1 :]]

    assert first_forged(rest) == index


@pytest.mark.rule("journal.chain")
@given(journals(2), st.data())
def test_two_swapped_events_are_found_at_the_first_of_them(events, data):
    one, other = sorted(data.draw(st.lists(st.integers(0, len(events) - 1), min_size=2, max_size=2, unique=True)))
    swapped = list(events)
    swapped[one], swapped[other] = swapped[other], swapped[one]

    assert first_forged(swapped) == one


@pytest.mark.rule("journal.chain")
@given(journals(), st.data())
def test_an_event_that_was_added_is_found(events, data):
    index = data.draw(st.integers(0, len(events)))
    copy = data.draw(st.sampled_from(events))

    forged = [*events[:index], copy, *events[index:]]

    found = first_forged(forged)
    assert found == (index + 1 if index < len(events) and events[index] == copy else index)


@pytest.mark.rule("journal.chain")
def test_the_event_of_one_workspace_is_not_genuine_in_another():
    fact = Unsealed("entry.set", 7, {})

    elsewhere = seal(fact, "{}", "away", Head())

    assert not genuine(elsewhere._replace(workspace="home"), Head())


def test_when_an_event_happened_is_a_datetime_too():
    event = seal(Unsealed("task.waiting", 1_700_000_000_000_001, {}), "{}", "home", Head())

    assert event.happened == datetime(2023, 11, 14, 22, 13, 20, 1, tzinfo=UTC)


def test_an_event_says_what_it_is():
    inside = seal(Unsealed("task.waiting", 1, {}, "t1", "s1", "t2", "coder"), "{}", "home", Head())
    outside = seal(Unsealed("entries.removed", 1, {}), "{}", "home", Head(6))

    assert repr(inside) == "<Event 1 task.waiting by coder, task t2>"
    assert repr(outside) == "<Event 7 entries.removed by person>"

"""Chapters of the journal: what some events in a row have in common."""

import pytest

from remit.core.events import Chapter, Event, chapter_of

FACTS = [("task.started", "lead", 5, 9), ("task.started", "helper", 3, 7), ("entry.set", "", 4, 4)]


def event(kind: str = "task.started", agent: str = "lead", at: int = 5) -> Event:
    return Event("w", 1, kind, at, "", "", "", agent, "{}", None, None, "hash", {})


@pytest.mark.rule("journal.chapters")
def test_a_chapter_has_the_times_the_agents_and_the_kinds_of_its_events():
    assert chapter_of(1, 9, FACTS) == Chapter(1, 9, 3, 9, "  helper lead ", " entry.set task.started ", "\n")


@pytest.mark.rule("journal.chapters")
def test_a_chapter_has_the_labels_of_the_tasks_that_began_in_it():
    chapter = chapter_of(1, 9, FACTS, ["by ann", "asker lead", "by ann"])
    assert chapter.labels == "\nasker lead\nby ann\n"
    assert chapter.has(event()._replace(data={"by": "ann", "asker": "lead"}))
    assert not chapter.has(event()._replace(data={"by": "an"}))
    assert chapter.has(event("entry.set", "")._replace(data={"by": "bob"}))  # the person of another act
    assert chapter_of(1, 9, FACTS, None).labels == "*"
    assert chapter_of(1, 9, FACTS, [f"tag {number:060}" for number in range(300)]).labels == "*"
    assert chapter_of(1, 9, FACTS, None).has(event()._replace(data={"by": "bob"}))


@pytest.mark.parametrize(
    ("other", "is_told"),
    [
        (event(), True),
        (event(agent=""), True),
        (event(agent="hel"), False),
        (event("task.start"), False),
        (event(at=2), False),
        (event(at=10), False),
    ],
)
def test_a_chapter_tells_of_an_event_if_it_has_its_time_its_agent_and_its_kind(other: Event, *, is_told: bool):
    assert chapter_of(1, 9, FACTS).has(other) is is_told


def test_a_chapter_with_a_name_that_has_a_space_may_have_any_agent():
    chapter = chapter_of(1, 1, [("entry.set", "two words", 5, 5)])
    assert chapter.agents == "*"
    assert chapter.has(event("entry.set", "anyone"))


def test_a_chapter_may_have_one_of_several_kinds():
    chapter = chapter_of(1, 9, FACTS)
    assert chapter.may_have({"task.died", "entry.set"})
    assert not chapter.may_have({"task.died", "entry"})
    assert not chapter.may_have(())

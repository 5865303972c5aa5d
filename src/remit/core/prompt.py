"""Prompts: what a step is told, to the byte. One without dependencies is told its task and nothing else."""

from collections.abc import Sequence
from typing import NamedTuple

from remit.core.plan import Step
from remit.core.quoting import message, one_line, told
from remit.core.text import summary
from remit.core.trust import INSIDE, Trust


class Done(NamedTuple):
    """A finished step, as those who depend on it see it."""

    title: str
    agent: str
    text: str
    trust: Trust = INSIDE


class Note(NamedTuple):
    """A message from another member."""

    sender: str
    text: str
    trust: Trust = INSIDE


class Reveal(NamedTuple):
    """What members may be told of the whole: the goal and who takes part."""

    goal: str
    roster: tuple[tuple[str, str], ...]


def prompt(step: Step, done: Sequence[Done] = (), notes: Sequence[Note] = (), reveal: Reveal | None = None) -> str:
    """Write the task, then the results it depends on in their order, then messages; no part is empty."""
    parts = [] if reveal is None else _whole(reveal)
    parts.append(f"# Task: {one_line(step.title)}")
    if step.description:
        parts += ["", step.description]
    results = [result for result in done if result.text]
    if results:
        parts += ["", "## Context from prerequisite tasks", ""]
        for result in results:
            parts += [f"### {one_line(result.title)} (by {result.agent})", told(result.text, result.trust)]
    return "\n".join([*parts, *_messages(notes)])


def prompt_with_summary(
    step: Step, done: Sequence[Done], notes: Sequence[Note] = (), reveal: Reveal | None = None
) -> str:
    """Write the same for a step that may see everything: a summary of every result so far, not only of some."""
    parts = [prompt(step, (), (), reveal)]
    results = [result for result in done if result.text]
    if results:
        parts += [
            "",
            "## Shared memory",
            "",
            *(_summed_up(result) for result in results),
        ]
    return "\n".join([*parts, *_messages(notes)])


class Passed(NamedTuple):
    """An entry that was passed along with a task."""

    where: str
    agent: str
    text: str
    trust: Trust = INSIDE


class HandedOn(NamedTuple):
    """How a task came to its holder: from whom, what was handed over, and what came of parts that were sent out."""

    sender: str
    state: str
    trust: Trust = INSIDE
    results: tuple[Done, ...] = ()
    refused: str = ""
    failed: str = ""


def brief(task: str, passed: Sequence[Passed] = (), handed: HandedOn | None = None, notes: Sequence[Note] = ()) -> str:
    """Write what a holder is told: its task, what was passed along, how it came to it, then messages; no part is
    empty. A task with nothing beside it is told as it is."""
    parts = [task]
    if passed:
        parts += ["", "## Context passed along"]
        for one in passed:
            parts += ["", f"### {one_line(one.where)} (by {one.agent or 'a person'})", told(one.text, one.trust)]
    if handed is not None:
        parts += _handed(handed)
    return "\n".join([*parts, *_messages(notes)])


def _handed(handed: HandedOn) -> list[str]:
    parts: list[str] = []
    if handed.sender:
        parts += ["", f"## Handed over by {handed.sender}", "", told(handed.state, handed.trust)]
    if handed.results:
        parts += ["", "## What came of the parts"]
        for result in handed.results:
            parts += ["", f"### {one_line(result.title)} (by {result.agent})", told(result.text, result.trust)]
    if handed.failed:
        parts += ["", f"## {handed.sender} failed, and the task is yours again", "", told(handed.failed, handed.trust)]
    if handed.refused:
        parts += ["", "## It could not be handed on", "", told(handed.refused, INSIDE)]
    return parts


def messages_told(notes: Sequence[Note]) -> str:
    """Write messages that arrive while a holder is at work."""
    return "\n".join(_messages(notes)).strip()


def _messages(notes: Sequence[Note]) -> list[str]:
    if not notes:
        return []
    return ["", "## Messages from team members", *(message(*note) for note in notes)]


def _summed_up(result: Done) -> str:
    mark = "" if result.trust == INSIDE else "[from outside, quoted as data] > "
    return f"- **{one_line(result.title)}** (by {result.agent}): {mark}{summary(result.text)}"


def _whole(reveal: Reveal) -> list[str]:
    roster = [f"- **{name}**: {one_line(role)}" if role else f"- **{name}**" for name, role in reveal.roster]
    return [f"# Goal: {one_line(reveal.goal)}", "", "## Team", "", *roster, ""]

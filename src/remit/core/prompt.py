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
        parts += ["", "## Context from prerequisite tasks"]
        for result in results:
            parts += ["", f"### {one_line(result.title)} (by {result.agent})", told(result.text, result.trust)]
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

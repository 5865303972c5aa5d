"""Prompts: what a step is told, to the byte. One without dependencies is told its task and nothing else."""

from collections.abc import Sequence
from typing import NamedTuple

from remit.core.plan import Step
from remit.core.text import summary


class Done(NamedTuple):
    """A finished step, as those who depend on it see it."""

    title: str
    agent: str
    text: str


class Note(NamedTuple):
    """A message from another member."""

    sender: str
    text: str


class Reveal(NamedTuple):
    """What members may be told of the whole: the goal and who takes part."""

    goal: str
    roster: tuple[tuple[str, str], ...]


def prompt(step: Step, done: Sequence[Done] = (), notes: Sequence[Note] = (), reveal: Reveal | None = None) -> str:
    """Write the task, then the results it depends on in their order, then messages; no part is empty."""
    parts = [] if reveal is None else _whole(reveal)
    parts.append(f"# Task: {step.title}")
    if step.description:
        parts += ["", step.description]
    results = [result for result in done if result.text]
    if results:
        parts += ["", "## Context from prerequisite tasks"]
        for result in results:
            parts += ["", f"### {result.title} (by {result.agent})", result.text]
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
            *(f"- **{result.title}** (by {result.agent}): {summary(result.text)}" for result in results),
        ]
    return "\n".join([*parts, *_messages(notes)])


def _messages(notes: Sequence[Note]) -> list[str]:
    if not notes:
        return []
    return ["", "## Messages from team members", *(f"- **{note.sender}**: {note.text}" for note in notes)]


def _whole(reveal: Reveal) -> list[str]:
    roster = [f"- **{name}**: {role}" if role else f"- **{name}**" for name, role in reveal.roster]
    return [f"# Goal: {reveal.goal}", "", "## Team", "", *roster, ""]

"""Prompts: what a step is told, to the byte. One without dependencies is told its task and nothing else."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from remit.core.plan import Step
from remit.core.quoting import message, one_line, place_told, quoted_lines, set_off, task_told, told
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


def prompt(
    step: Step,
    done: Sequence[Done] = (),
    notes: Sequence[Note] = (),
    reveal: Reveal | None = None,
    trust: Trust = INSIDE,
) -> str:
    """Write the task, then the results it depends on in their order, then messages; no part is empty. `trust` is the
    label of the plan's own words."""
    parts = [] if reveal is None else _whole(reveal, trust)
    parts += _step(step, trust)
    results = [result for result in done if result.text]
    if results:
        parts += ["", "## Context from prerequisite tasks", ""]
        for result in results:
            parts += [f"### {one_line(result.title)} (by {result.agent})", told(result.text, result.trust)]
    return "\n".join([*parts, *_messages(notes)])


def prompt_with_summary(
    step: Step,
    done: Sequence[Done],
    notes: Sequence[Note] = (),
    reveal: Reveal | None = None,
    trust: Trust = INSIDE,
) -> str:
    """Write the same for a step that sees a summary of results, also of steps that it does not depend on."""
    parts = [prompt(step, (), (), reveal, trust)]
    if told_in_short := summed_up(done):
        parts += ["", "## Shared memory", "", told_in_short]
    return "\n".join([*parts, *_messages(notes)])


def summed_up(done: Sequence[Done]) -> str:
    """Write each result in one line; empty if there are none."""
    return "\n".join(_summed_up(result) for result in done if result.text)


class Passed(NamedTuple):
    """An entry that was passed along with a task."""

    where: str
    agent: str
    text: str
    trust: Trust = INSIDE


class HandedOn(NamedTuple):
    """How a task came to its holder: from whom, what was handed over, what was used so far, and what came of parts that
    were sent out."""

    sender: str
    state: str
    trust: Trust = INSIDE
    results: tuple[Done, ...] = ()
    refused: str = ""
    failed: str = ""
    used: str = ""


class Colleague(NamedTuple):
    """An agent whom a holder may ask: its name, its role and what it can do."""

    name: str
    role: str = ""
    can: tuple[str, ...] = ()


class Around(NamedTuple):
    """What a model is told besides its task: its memory, the newest notes of its session's board, and whom it may ask.

    `more_memory`, `more_board` and `more_team` say that there is more than is told. `reads` and `writes` name the
    shared context that its verbs reach. `hands_only` says that the task can only be handed over: no delegation can
    succeed now.
    """

    memory: tuple[Passed, ...] = ()
    more_memory: bool = False
    board: tuple[Passed, ...] = ()
    more_board: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    team: tuple[Colleague, ...] = ()
    more_team: int = 0
    hands_only: bool = False


ALONE: Final = Around()


class Assigned(NamedTuple):
    """A task as it is told: its words, their label, and whether an agent wrote them. A task that remit put together
    itself is told as it is: what is untrusted in it is quoted already."""

    text: str
    trust: Trust = INSIDE
    by_agent: bool = False
    composed: bool = False

    @property
    def told(self) -> str:
        return self.text if self.composed else task_told(self.text, self.trust, by_agent=self.by_agent)


def goal_told(goal: str, trust: Trust = INSIDE) -> str:
    """Write the goal of a team."""
    if trust == INSIDE:
        return f"# Goal: {set_off(goal)}"
    return f"# Goal in words from outside, quoted as data\n\n{quoted_lines(goal)}"


def brief(
    task: Assigned,
    passed: Sequence[Passed] = (),
    handed: HandedOn | None = None,
    notes: Sequence[Note] = (),
    around: Around = ALONE,
    *,
    before: str = "",
) -> str:
    """Write what a holder is told: its task, what was said `before` in its session, what was passed along, how it came
    to it, its memory and the board, whom it may ask, then messages; no part is empty. A task with nothing beside it is
    told by itself."""
    parts = [task.told, *(("", before) if before else ()), *_entries("## Context passed along", passed)]
    if handed is not None:
        parts += _handed(handed)
    if around is not ALONE:
        parts += _entries("## Your memory", around.memory)
        if around.more_memory:
            parts += ["", "[there is more in your memory: use recall]"]
        parts += _entries("## Newest notes on the board of this session", around.board)
        if around.more_board:
            parts += ["", "[there is more on the board: use blackboard]"]
        parts += [*_reach(around), *_team(around)]
    return "\n".join([*parts, *_messages(notes)])


def cut(text: str, limit: int) -> str:
    """Shorten a text for a prompt, and say how much is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit:,} more characters left out]"


def _entries(heading: str, entries: Sequence[Passed]) -> list[str]:
    if not entries:
        return []
    parts = ["", heading]
    for one in entries:
        where, text = place_told(one.where, one.trust), one.text
        if not where:
            where, text = "an entry from outside", f"key: {one.where}\n{text}"
        parts += ["", f"### {where} (by {one.agent or 'a person'})", told(text, one.trust)]
    return parts


def entries_told(entries: Sequence[Passed], more: str = "") -> str:
    """Write entries that a holder asked for, some of them untrusted."""
    return "\n".join([*_entries("## Shared context", entries)[1:], *(["", f"[{more}]"] if more else [])])


def _reach(around: Around) -> list[str]:
    """Name the shared context that a holder may read and write."""
    lines = [f"You may read: {', '.join(map(one_line, around.reads))} (with recall)"] if around.reads else []
    if around.writes:
        lines.append(f"You may write: {', '.join(map(one_line, around.writes))} (with remember)")
    return ["", "## Shared context", "", *lines] if lines else []


def _team(around: Around) -> list[str]:
    if not around.team:
        return []
    heading = "## Agents you may hand this task to" if around.hands_only else "## Agents you may ask"
    parts = ["", heading, "", *map(_introduced, around.team)]
    return [*parts, f"[{around.more_team:,} more: use list_agents]"] if around.more_team else parts


def _introduced(one: Colleague) -> str:
    said = [summary(one_line(one.role))] if one.role else []
    if one.can:
        said.append(f"can: {summary(one_line(', '.join(one.can)))}")
    return f"- **{one.name}**: {'; '.join(said)}" if said else f"- **{one.name}**"


def _handed(handed: HandedOn) -> list[str]:
    parts: list[str] = []
    if handed.sender:
        parts += ["", f"## Handed over by {handed.sender}", "", told(handed.state, handed.trust)]
        if handed.used:
            parts += ["", f"[used for this task so far: {handed.used}]"]
    if handed.results:
        parts += ["", "## What came of the parts"]
        for result in handed.results:
            parts += ["", f"### {one_line(result.title)} (by {result.agent})", told(result.text, result.trust)]
    if handed.failed:
        parts += ["", f"## {handed.sender} failed, and the task is yours again", "", told(handed.failed, handed.trust)]
    if handed.refused:
        parts += ["", "## It could not be handed on", "", told(handed.refused, INSIDE)]
    return parts


class UsedBefore(NamedTuple):
    """A tool that an earlier conversation about the same task used: what it was given, what it returned, both
    shortened, and whether it has failed, or was begun and may have been done."""

    tool: str
    given: str
    result: str = ""
    outcome: str = "done"
    trust: Trust = INSIDE


def begun_anew(used: Sequence[UsedBefore], more: int, notes: Sequence[Note]) -> str:
    """Write what a model is told when its conversation begins again: the tools that were used before, of which `more`
    are left out, and the messages that had arrived."""
    parts = [
        "## This task was begun before",
        "",
        "An earlier conversation about this task cannot be continued, so it begins again here.",
    ]
    if used:
        parts += ["These tools were used in it. What they did stands: do not do the same again.", ""]
        parts += [f"[{more:,} earlier calls left out]"] if more else []
        parts += [message(*_used_before(one)) for one in used]
    else:
        parts.append("No tools were used in it.")
    return "\n".join([*parts, *_messages(notes)])


_OUTCOMES: Final = {"failed": "failed: ", "begun": "it was begun and may have been done; find out before you repeat it"}


def _used_before(one: UsedBefore) -> tuple[str, str, Trust]:
    """Arguments are a model's words: if it had read something from outside, they are quoted like a result."""
    said = _OUTCOMES.get(one.outcome, "") + one.result
    if one.trust == INSIDE:
        return f"{one.tool}({one_line(one.given)})", said, INSIDE
    return one.tool, f"{one_line(one.given)}\n{said}", one.trust


def messages_told(notes: Sequence[Note]) -> str:
    """Write messages that arrive while a holder is at work."""
    return "\n".join(_messages(notes)).strip()


def _messages(notes: Sequence[Note]) -> list[str]:
    if not notes:
        return []
    return ["", "## Messages from team members", *(message(*note) for note in notes)]


def _summed_up(result: Done) -> str:
    said = f"**{one_line(result.title)}** (by {result.agent}): {summary(result.text)}"
    return f"- {said}" if result.trust == INSIDE else f"> - {said} [from outside, quoted as data]"


def _step(step: Step, trust: Trust) -> list[str]:
    if trust != INSIDE:
        said = f"{one_line(step.title)}\n\n{step.description}" if step.description else one_line(step.title)
        return [task_told(said, trust)]
    title = f"# Task: {one_line(step.title)}"
    return [title, "", set_off(step.description)] if step.description else [title]


def _whole(reveal: Reveal, trust: Trust) -> list[str]:
    roster = [f"- **{name}**: {one_line(role)}" if role else f"- **{name}**" for name, role in reveal.roster]
    return [goal_told(one_line(reveal.goal), trust), "", "## Team", "", *roster, ""]

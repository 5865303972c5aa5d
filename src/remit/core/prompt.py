"""Prompts: the exact text that an agent receives for its task. A step without dependencies receives its own text
only."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from remit.core.plan import Step
from remit.core.trust import (
    TRUSTED,
    Trust,
    message,
    one_line,
    place_told,
    prompt_text,
    quoted,
    quoted_lines,
    set_off,
    task_told,
)
from remit.core.values import summary, without_data


class Done(NamedTuple):
    """A finished step, as the steps that depend on it see it."""

    title: str
    agent: str
    text: str
    trust: Trust = TRUSTED


class Note(NamedTuple):
    """A message from an agent's inbox, as its prompt shows it."""

    sender: str
    text: str
    trust: Trust = TRUSTED


class Reveal(NamedTuple):
    """The facts about a plan that its members may see: the goal and the roster."""

    goal: str
    roster: tuple[tuple[str, str], ...]


def prompt(
    step: Step,
    done: Sequence[Done] = (),
    notes: Sequence[Note] = (),
    reveal: Reveal | None = None,
    trust: Trust = TRUSTED,
) -> str:
    """Return the prompt of a step: its text, the results it depends on in their order, then messages. Empty parts are
    left out. `trust` is the label of the plan's own text."""
    parts = [] if reveal is None else _whole(reveal, trust)
    parts += _step(step, trust)
    results = [result for result in done if result.text]
    if results:
        parts += ["", "## Context from prerequisite tasks", ""]
        for result in results:
            parts += [f"### {one_line(result.title)} (by {result.agent})", prompt_text(result.text, result.trust)]
    return "\n".join([*parts, *_messages(notes)])


def prompt_with_summary(
    step: Step,
    done: Sequence[Done],
    notes: Sequence[Note] = (),
    reveal: Reveal | None = None,
    trust: Trust = TRUSTED,
) -> str:
    """Return the prompt of a step that sees a summary of results, including steps that it does not depend on."""
    parts = [prompt(step, (), (), reveal, trust)]
    if told_in_short := summed_up(done):
        parts += ["", "## Shared memory", "", told_in_short]
    return "\n".join([*parts, *_messages(notes)])


def summed_up(done: Sequence[Done]) -> str:
    """Return each result in one line; "" if there are none."""
    return "\n".join(_summed_up(result) for result in done if result.text)


class Passed(NamedTuple):
    """An entry that is passed along with a task."""

    where: str
    agent: str
    text: str
    trust: Trust = TRUSTED


class ReviewNote(NamedTuple):
    """A result of the holder that a person sent back, the reason, and the person."""

    result: str
    why: str
    by: str


class HandedOn(NamedTuple):
    """How a task came to its holder: the sender ("" if it was not handed over), the data handed over, the usage so far,
    and the results of parts that were sent out. `refused` is why the holder could not hand the task on, `failed` the
    error of the agent that gave the task back, and `review` a result that a person sent back."""

    sender: str
    state: str
    trust: Trust = TRUSTED
    results: tuple[Done, ...] = ()
    refused: str = ""
    failed: str = ""
    used: str = ""
    review: ReviewNote | None = None


class Colleague(NamedTuple):
    """An agent that the holder may ask: its name, role and capabilities."""

    name: str
    role: str = ""
    can: tuple[str, ...] = ()


class Around(NamedTuple):
    """The parts of a model's prompt next to its task: its memory, the newest notes on its session's board, and the
    agents it may ask.

    `more_memory`, `more_board` and `more_team` say that the list is shortened. `reads` and `writes` name the shared
    context that its verbs can reach. `hands_only` says that the task can only be handed over: no delegation can succeed
    now.
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
    """The task in a prompt: its text, its trust label, and whether an agent wrote it. A task that remit composed is
    used as it is: its untrusted parts are quoted already. `data` is the value with which the text ends, as JSON; it is
    fenced, or quoted if it is untrusted."""

    text: str
    trust: Trust = TRUSTED
    by_agent: bool = False
    composed: bool = False
    data: str | None = None

    @property
    def told(self) -> str:
        if self.data is None or (self.trust != TRUSTED and not self.composed):
            return self._task_text(self.text)
        value = f"```json\n{self.data}\n```" if self.trust == TRUSTED else quoted(self.data)
        if self.text == self.data:
            return value
        return f"{self._task_text(without_data(self.text, self.data))}\n\n{value}"

    def _task_text(self, text: str) -> str:
        return text if self.composed else task_told(text, self.trust, by_agent=self.by_agent)


def goal_told(goal: str, trust: Trust = TRUSTED) -> str:
    """Return the goal of a team for a prompt."""
    if trust == TRUSTED:
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
    """Return the prompt of a holder: its task, the earlier conversation (`before`), the entries passed along, how the
    task came to it, its memory and the board, the agents it may ask, then messages. Empty parts are left out. A task
    with nothing else is the prompt itself."""
    parts = [task.told, *(("", before) if before else ()), *_entries("## Context passed along", passed)]
    if handed is not None:
        parts += _handoff_lines(handed)
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
    """Return the text, shortened to `limit` characters, with a note of how many are left out."""
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
        parts += ["", f"### {where} (by {one.agent or 'a person'})", prompt_text(text, one.trust)]
    return parts


def entries_told(entries: Sequence[Passed], more: str = "") -> str:
    """Return entries that a holder asked for, as text for a prompt; `more` is a note at its end."""
    return "\n".join([*_entries("## Shared context", entries)[1:], *(["", f"[{more}]"] if more else [])])


def _reach(around: Around) -> list[str]:
    """Return the lines that name the shared context that the holder may read and write."""
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


def _handoff_lines(handed: HandedOn) -> list[str]:
    parts: list[str] = []
    if handed.sender:
        parts += ["", f"## Handed over by {handed.sender}", "", prompt_text(handed.state, handed.trust)]
        if handed.used:
            parts += ["", f"[used for this task so far: {handed.used}]"]
    if handed.results:
        parts += ["", "## Results of the parts"]
        for result in handed.results:
            parts += ["", f"### {one_line(result.title)} (by {result.agent})", prompt_text(result.text, result.trust)]
    if handed.failed:
        parts += [
            "",
            f"## {handed.sender} failed, and the task is yours again",
            "",
            prompt_text(handed.failed, handed.trust),
        ]
    if handed.refused:
        parts += ["", "## It could not be handed on", "", prompt_text(handed.refused, TRUSTED)]
    if handed.review is not None:
        parts += sent_back(handed.review, handed.trust)
    return parts


def sent_back(review: ReviewNote, trust: Trust = TRUSTED) -> list[str]:
    """Return the part of a prompt about a result that a person sent back."""
    whom = one_line(review.by) if review.by else "A person"
    why = f": {review.why}" if review.why else ", without a reason"
    head = f"{whom} has read your result and sent it back{why}"
    return ["", "## Your result was sent back", "", head, "", "### The result", "", prompt_text(review.result, trust)]


class UsedBefore(NamedTuple):
    """A tool call of an earlier conversation about the same task: its arguments and its result, both shortened, and
    whether it failed, or was started and may have been done."""

    tool: str
    given: str
    result: str = ""
    outcome: str = "done"
    trust: Trust = TRUSTED


def restart_note(used: Sequence[UsedBefore], more: int, notes: Sequence[Note]) -> str:
    """Return the prompt for a restarted conversation: the tools that were used before, of which `more` are left
    out, and the messages that had arrived."""
    parts = [
        "## This task was begun before",
        "",
        "An earlier conversation about this task cannot be continued, so it restarts here.",
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
    """Return a tool call for the prompt. Its arguments are a model's text: if that model had read untrusted input, they
    are quoted like a result."""
    said = _OUTCOMES.get(one.outcome, "") + one.result
    if one.trust == TRUSTED:
        return f"{one.tool}({one_line(one.given)})", said, TRUSTED
    return one.tool, f"{one_line(one.given)}\n{said}", one.trust


def messages_told(notes: Sequence[Note]) -> str:
    """Return messages that arrive while a holder works, as text for a prompt."""
    return "\n".join(_messages(notes)).strip()


def _messages(notes: Sequence[Note]) -> list[str]:
    if not notes:
        return []
    return ["", "## Messages from team members", *(message(*note) for note in notes)]


def _summed_up(result: Done) -> str:
    said = f"**{one_line(result.title)}** (by {result.agent}): {summary(result.text)}"
    return f"- {said}" if result.trust == TRUSTED else f"> - {said} [from outside, quoted as data]"


def _step(step: Step, trust: Trust) -> list[str]:
    if trust != TRUSTED:
        said = f"{one_line(step.title)}\n\n{step.description}" if step.description else one_line(step.title)
        return [task_told(said, trust)]
    title = f"# Task: {one_line(step.title)}"
    return [title, "", set_off(step.description)] if step.description else [title]


def _whole(reveal: Reveal, trust: Trust) -> list[str]:
    roster = [f"- **{name}**: {one_line(role)}" if role else f"- **{name}**" for name, role in reveal.roster]
    return [goal_told(one_line(reveal.goal), trust), "", "## Team", "", *roster, ""]

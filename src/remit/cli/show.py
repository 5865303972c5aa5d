"""`remit show`: a run, the tracebacks of a task, or its conversations with models."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from remit.cli.completing import TaskId
from remit.cli.drawing import answer, decision_lines, receipts, receipts_in_short, refusals, summed_up, tree_view
from remit.cli.options import HERE, AsJson, Where, emit, opened_workspace, out, write_beside
from remit.cli.terminal import colour, moment
from remit.core.events import Event, read
from remit.core.kinds.sharing import ArtifactSaved
from remit.core.kinds.tasks import FirstData, fork_text
from remit.core.times import is_schedule
from remit.engine.system import SystemClock
from remit.errors import BadInput
from remit.report import wire
from remit.report.detail import failures
from remit.report.figures import count, duration, money
from remit.report.looks import MODEL, TOOL, mark
from remit.report.printable import block, escaped
from remit.report.talk import TalkLine, TaskTalk
from remit.report.tree import Node, part_of

_LONG: Final = 4_000  # characters of one text; `--all` prints the rest
_NAME: Final = 64
_FORK: Final = 240
_WRONG: Final = ("failed", "dead", "refused")

Form: TypeAlias = Literal["text", "mermaid", "svg"]


def show(
    run: TaskId = "last",
    *,
    follow: Annotated[bool, Parameter(negative="")] = False,
    trace: Annotated[bool, Parameter(negative="")] = False,
    talk: Annotated[bool, Parameter(negative="")] = False,
    as_: Annotated[Literal["tree", "mermaid", "svg"], Parameter(name="--as")] = "tree",
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    place: Where = HERE,
    all: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> None:
    """Show a run: task tree, times, refusals, receipts. Or show why one task failed, or a conversation of its models.

    Parameters
    ----------
    run
        Id of a run or of one of its tasks, a unique prefix or suffix of it, or `last`. Of a task, only its part of the
        run is shown.
    follow
        Show the run while it grows, until it ends.
    trace
        Print only the failed attempts, each with its chain of agents and its traceback.
    talk
        Print only the messages of the models and the results of their tools.
    as_
        Tree for a terminal, Mermaid for Markdown, SVG for a browser.
    output
        Write the Mermaid or SVG diagram to this file.
    all
        Show all tasks, whole messages and whole receipts. By default, long lists are shortened, with failed and running
        tasks first.
    json
        Print JSON.
    """
    if trace:
        _show_trace(run, place, json=json)
        return
    if talk:
        _show_talk(run, place, json=json, whole=all)
        return
    if as_ != "tree":
        draw(run, place, as_, output)
        return
    if output is not None:
        raise BadInput("--output is for a diagram: add --as svg or --as mermaid")
    if follow:
        from remit.cli.watch import follow_run  # only here: it takes the modules of the engine

        follow_run(run, place, quiet=json)
        if not json:
            return
    root, events = _part(run, place)
    if json:
        emit(wire.tree(root))
        return
    _print_run(root, _starter(events), _files(events, root), whole=all)


def _starter(events: list[Event]) -> str:
    """Return text such as "  by schedule nightly" or "  a fork of 01J... at event 7", or "" for a run that a person
    started."""
    first = next((read(event, FirstData) for event in events if event.task == event.run), None)
    if first is None:
        return ""
    by = first.get("by", "")
    return f"{f'  by {escaped(by, _NAME)}' if is_schedule(by) else ''}{_forked(first)}"


def _forked(first: FirstData) -> str:
    return f"  {escaped(fork_text(first['forked']), _FORK)}" if "forked" in first else ""


def _files(events: list[Event], root: Node) -> list[Text]:
    """Return a line for each file that was saved in the shown tasks; none if there is none."""
    tasks = {node.id for node in root.walk()}
    saved = [event for event in events if event.kind == "artifact.saved" and event.task in tasks]
    found = [(event.agent, one) for event in saved for one in read(event, ArtifactSaved)["artifacts"]]
    return [
        Text.assemble(
            f"{escaped(one['name'], _NAME)}  ", (f"{one['size']:,} bytes by {agent}, {one['digest'][:19]}", "dim")
        )
        for agent, one in found
    ]


def _print_run(root: Node, starter: str, files: list[Text], *, whole: bool) -> None:
    now = SystemClock().now()
    console = out()
    if not console.is_terminal:
        console.width = _IN_A_PIPE
    console.print(Text.assemble((root.id, "bold"), (f"  {moment(root.started_at)}{starter}", "dim")))
    console.print(summed_up(root, now))
    console.print()
    console.print(tree_view(root, now, whole=whole))
    console.print()
    if said := [*refusals(root), *decision_lines(root)]:
        for text in said:
            console.print(text)
        console.print()
    console.print(Text("What each turn saw", "bold"))
    for text in receipts(root) if whole else receipts_in_short(root):
        console.print(text, no_wrap=not whole, overflow="ellipsis")
    console.print()
    for text in (Text("Files", "bold"), *files, Text()) if files else ():
        console.print(text)
    console.print(Text("Result", "bold"))
    console.print(answer(root))


def _show_trace(typed: str, place: Where, *, json: bool) -> None:
    top, events = _part(typed, place)
    found = failures(events, top)
    if json:
        emit(wire.failures(top.id, found))
        return
    if not found:
        out().print(Text(f"no attempt of {top.id} failed"))
    for failure in found:
        chain = " > ".join(escaped(agent, _NAME) for agent in failure.chain)
        out().print(Text.assemble((moment(failure.at), "dim"), "  ", (chain, "bold"), (f"  {failure.task}", "dim")))
        out().print(_indented(out(), Text(block(failure.error), "red"), 2))
        for text in failure.trace.splitlines():
            out().print(Text(f"   {block(text)}", "dim"))


def draw(run: str, place: Where, form: Form, output: Path | None) -> None:
    """Print a run as a diagram, or write it to a file."""
    from remit.report import flow as flows

    picture = {"text": flows.text, "mermaid": flows.mermaid, "svg": flows.svg}[form](
        root_of(run, place), SystemClock().now()
    )
    if output is None:
        out().print(coloured(picture) if form == "text" else picture, markup=False, soft_wrap=True)
    else:
        write_beside(output, picture)
        out().print(Text(f"written to {output}"))


def coloured(picture: str) -> Text:
    """Return the picture with failed lines in colour, from their mark on."""
    text = Text(picture)
    for state in _WRONG:
        text.highlight_regex(rf"(?m)(?<=[─╌┄] ){mark(state)} .*$|^{mark(state)} .*$", colour(state))
    return text


def _show_talk(typed: str, place: Where, *, json: bool, whole: bool) -> None:
    with opened_workspace(place) as workspace:
        task, found = asyncio.run(workspace.looks.talk(typed))
    if json:
        emit([wire.conversation(one) for one in found])
        return
    if not found:
        out().print(Text(f"no model conversation for {task}, or it was pruned"))
    for number, one in enumerate(found):
        if number:
            out().print()
        print_talk(out(), one, whole=whole)


def root_of(typed: str, place: Where) -> Node:
    """Return the tree of a run, or of one of its tasks; `typed` is as much of the id as a person types."""
    return _part(typed, place)[0]


def _part(typed: str, place: Where) -> tuple[Node, list[Event]]:
    """Return the tree of a run or a task, and the events of the run."""
    with opened_workspace(place) as workspace:
        record, events = asyncio.run(workspace.looks.part(typed))
    return part_of(events, record.id), events


def print_talk(console: Console, talk: TaskTalk, *, whole: bool) -> None:
    """Print a conversation: messages, tool calls and their results."""
    about = f"  {escaped(talk.about, 60)}"
    console.print(Text.assemble((escaped(talk.agent, _NAME), "bold"), about, (f"  {talk.task}", "dim")))
    for said in talk.lines:
        console.print(_indented(console, _head(said), 2))
        for text in _words(said, whole=whole):
            console.print(_indented(console, text, 4))


def _indented(console: Console, text: Text, columns: int) -> RenderableType:
    """Return an indented text. In a terminal long lines are wrapped within the margin; in a pipe they stay whole."""
    if console.is_terminal:
        return Padding(text, (0, 0, 0, columns), expand=False)
    margin = " " * columns
    return Text(margin + text.plain.replace("\n", f"\n{margin}"), text.style)


def _head(line: TalkLine) -> Text:
    """Return a head such as: ◆ openai:gpt-5 86 tokens."""
    if line.who == "restart":
        return Text("-- restarted: the earlier conversation cannot be continued", "bold")
    if line.who == "prompt":
        return Text("> told (lost)" if line.lost else "> told", "dim")
    bad = line.outcome != "done"
    sign, look = (mark(line.outcome), colour(line.outcome)) if bad else (MODEL if line.who == "model" else TOOL, "blue")
    head = Text.assemble((f"{sign} ", look), (escaped(line.name, _NAME) or line.who, look if bad else "bold"))
    figures = [count(line.tokens, "token") if line.tokens else "", money(line.credits) if line.credits else ""]
    figures += [duration(line.elapsed) if line.elapsed else "", line.outcome if bad and line.who == "tool" else ""]
    figures += ["lost"] if line.lost else []
    return head.append("".join(f"  {figure}" for figure in figures if figure), "dim")


def _words(line: TalkLine, *, whole: bool) -> Iterator[Text]:
    look = "dim" if line.who == "prompt" else "" if line.outcome == "done" else colour(line.outcome)
    if line.words:
        yield Text(_cut(line.words, whole=whole), look)
    if line.place:
        yield Text(f"at {escaped(line.place, _NAME)}", look)
    for call in line.calls:
        yield Text(f"→ {escaped(call.tool, _NAME)}({_cut(call.given, whole=whole)})", "cyan")


def _cut(text: str, *, whole: bool) -> str:
    if whole or len(text) <= _LONG:
        return block(text)
    return f"{block(text[:_LONG])}\n… {len(text) - _LONG:,} more characters; --all prints them"


_IN_A_PIPE: Final = 500  # columns of a tree in a pipe, so that reasons and results are not cut

"""`remit show`: one run in full."""

import asyncio
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from remit.cli.drawing import answer, decision_lines, receipts, refusals, summed_up, tree_view
from remit.cli.history import long_answers
from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.cli.talk import print_talk
from remit.cli.terminal import moment
from remit.core.events import Event
from remit.core.values import NAME_LIMIT, line, shown
from remit.engine.system import SystemClock
from remit.errors import NotFound
from remit.ports import Span, View
from remit.report import wire
from remit.report.detail import traces
from remit.report.printable import block
from remit.report.talk import TaskTalk, conversations
from remit.report.tree import Node, tree
from remit.runtime.finding import run_of, task_of

_IN_A_PIPE: Final = 500  # columns of a tree in a pipe, so that reasons and results are not cut


def show(
    run: str = "last",
    *,
    trace: str = "",
    talk: Annotated[bool, Parameter(negative="")] = False,
    place: Where = HERE,
    all: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> None:
    """Show a run: task tree, times, refusals, receipts. Or show why one task failed, or a conversation of its models.

    Parameters
    ----------
    run
        Run id, a unique prefix or suffix of it, or `last`. With `--talk`, also a task id.
    trace
        Print only the traceback of each failed attempt of this task.
    talk
        Print only the messages of the models and the results of their tools.
    all
        Show all tasks and whole messages. By default, long lists are shortened, with failed and running tasks first.
    json
        Print JSON.
    """
    if trace:
        _show_trace(trace, place, json=json)
        return
    if talk:
        _show_talk(run, place, json=json, whole=all)
        return
    root = root_of(run, place)
    if json:
        emit(wire.tree(root))
        return
    now = SystemClock().now()
    console = out()
    if not console.is_terminal:
        console.width = _IN_A_PIPE
    console.print(Text.assemble((root.id, "bold"), (f"  {moment(root.started_at)}", "dim")))
    console.print(summed_up(root, now))
    console.print()
    console.print(tree_view(root, now, whole=all))
    console.print()
    for text in (*refusals(root), *decision_lines(root)):
        console.print(text)
    console.print()
    console.print(Text("What each turn saw", "bold"))
    for text in receipts(root):
        console.print(text)
    console.print()
    console.print(Text("Result", "bold"))
    console.print(answer(root))


def _show_trace(task: str, place: Where, *, json: bool) -> None:
    with opened(place) as workspace:
        events = asyncio.run(workspace.journal.history(task=line(task, "a task's id", NAME_LIMIT)))
    if not events:
        raise NotFound(f"there is no task {shown(task)} in this workspace; `remit ps` lists them")
    failures = traces(events)
    if json:
        emit(wire.traces(task, failures))
        return
    if not failures:
        out().print(Text(f"task {task} has no failure in its agent's code"))
    for failure in failures:
        out().print(Text.assemble((moment(failure.at), "dim"), f"  {block(failure.error)}"))
        for text in failure.trace.splitlines():
            out().print(Text(f"   {block(text)}", "dim"))


def _show_talk(typed: str, place: Where, *, json: bool, whole: bool) -> None:
    def look(view: View) -> tuple[str, list[TaskTalk]]:
        record = task_of(view, typed)
        events = view.events(Span(run=record.run))
        found = conversations(events, long_answers(events, view))
        return record.id, [one for one in found if not record.parent or one.task == record.id]

    with opened(place) as workspace:
        task, found = asyncio.run(workspace.journal.read(look))
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
    """Return the tree of a run; `typed` is as much of its id as a person types."""

    def look(view: View) -> tuple[str, list[Event]]:
        run = run_of(view, typed)
        return run, view.events(Span(run=run))

    with opened(place) as workspace:
        run, events = asyncio.run(workspace.journal.read(look))
    root = tree(events)
    if root is None:
        raise NotFound(f"the journal has nothing of run {run}; `remit doctor` says what is wrong with the store")
    return root

"""`remit show`: one run, with all that is known of it."""

import asyncio
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.cli.terminal import answer, drawn, moment, receipts, refusals, summary
from remit.core.events import Event
from remit.engine.system import SystemClock
from remit.errors import NotFound
from remit.ports import Span, View
from remit.report import wire
from remit.report.tree import Node, tree
from remit.runtime.finding import run_of


def show(
    run: str = "last",
    *,
    place: Where = HERE,
    all: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> None:
    """Show one run: its tree, times, refusals and receipts.

    Parameters
    ----------
    run
        The run's id, its beginning or its end as long as only one fits, or `last`.
    all
        Draw every task and step; else of many beside each other some, those that failed or run first.
    json
        Print JSON instead.
    """
    root = root_of(run, place)
    if json:
        emit(wire.tree(root))
        return
    now = SystemClock().now()
    console = out()
    console.print(Text.assemble((root.id, "bold"), (f"  {moment(root.started_at)}", "dim")))
    console.print(summary(root, now))
    console.print()
    console.print(drawn(root, now, whole=all))
    console.print()
    for text in refusals(root):
        console.print(text)
    console.print()
    console.print(Text("What each turn saw", "bold"))
    for text in receipts(root):
        console.print(text)
    console.print()
    console.print(Text("Result", "bold"))
    console.print(answer(root))


def root_of(typed: str, place: Where) -> Node:
    """Read the tree of a run; `typed` is as much of its id as a person types."""

    def look(view: View) -> tuple[str, list[Event]]:
        run = run_of(view, typed)
        return run, view.events(Span(run=run))

    with opened(place) as workspace:
        run, events = asyncio.run(workspace.read(look))
    root = tree(events)
    if root is None:
        raise NotFound(f"the journal has nothing of run {run}; `remit doctor` says what is wrong with the store")
    return root

"""`remit demo`: the main job in a few seconds, on the embedded store, without a key or a server."""

import asyncio
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from remit.cli.demo_team import team
from remit.cli.options import STORE_NAMES, AsJson, emit, out
from remit.cli.screen import watching
from remit.cli.terminal import answer, colour, receipts, refusals, summed_up
from remit.engine.system import SystemClock
from remit.report import wire
from remit.report.looks import mark
from remit.report.printable import escaped
from remit.report.tree import Node
from remit.runtime.runtime import Runtime

TASK = "build the login of the shop"


def demo(
    *,
    store: Annotated[str, Parameter(name=STORE_NAMES)] = "remit-demo.db",
    pace: float = 1.0,
    json: AsJson = False,
) -> int:
    """Watch scripted agents at work: no key, no server, a few seconds.

    Parameters
    ----------
    store
        Where to keep the run, a file or postgresql://...; looking at it afterwards is half of the demo.
    pace
        How long the agents pretend to work; 0 for not at all.
    json
        Print the run as JSON instead.
    """
    with team(store, max(pace, 0)) as runtime:
        root = asyncio.run(_run(runtime, None if json else out()))
    if json:
        emit(wire.tree(root))
    else:
        _tell(root, store)
    return 0 if root.state == "completed" else 1


async def _run(runtime: Runtime, console: Console | None) -> Node:
    if console is None:
        outcome = await runtime.outcome("lead", TASK)
    else:
        console.print(Text.assemble(("remit", "bold"), f"  lead is asked to {TASK}\n"))
        with watching(runtime, console):
            outcome = await runtime.outcome("lead", TASK)
    root = await runtime.workspace.root(outcome.id)
    assert root is not None
    return root


def _tell(root: Node, store: str) -> None:
    console = out()
    console.print()
    console.print(summed_up(root, SystemClock().now()))
    _heading(console, "Planned, each step apart from the others")
    for text in _steps(root):
        console.print(text)
    _heading(console, "Handed over")
    for text in _handoffs(root):
        console.print(text)
    _heading(console, "Refused, and the run went on")
    for text in refusals(root):
        console.print(text)
    _heading(console, "What each turn saw, and why")
    for text in receipts(root):
        console.print(text)
    _heading(console, "Result")
    console.print(answer(root))
    _heading(console, "Where to look next")
    where = f"--store {store}"
    console.print(Text(f"  remit runs {where}", "cyan"))
    console.print(Text(f"  remit flow last {where} --format svg --output flow.svg", "cyan"))
    console.print(Text(f"  remit context ls codebase {where}", "cyan"))
    console.print(Text(f"  remit doctor {where}", "cyan"))


def _steps(root: Node) -> Iterator[Text]:
    """Say of each step of every plan who did it, what it had to wait for, and what became of it."""
    for step in (step for node in root.walk() for plan in node.plans for step in plan):
        after = f", after {' and '.join(step.after)}" if step.after else ""
        what = f"  {step.agent}: {escaped(step.title, 60)}"
        yield Text.assemble(
            (f"{mark(step.state)} ", colour(step.state)), (step.id, "bold"), what, (f"  {step.state}{after}", "dim")
        )


def _handoffs(root: Node) -> Iterator[Text]:
    """Say who gave which task to whom."""
    for node in root.walk():
        for handoff in node.trail:
            whom = f"{handoff.sender} > {', '.join(handoff.to)}"
            arrow = (f"{mark('handed')} ", colour("handed"))
            yield Text.assemble(arrow, (whom, "bold"), f"  {escaped(node.task, 60)}", (f"  {handoff.phase}", "dim"))


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, "bold"))

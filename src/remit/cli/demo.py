"""`remit demo`: the main job in a few seconds, on the embedded store, without a key or a server."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, cast

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from remit.cli.drawing import answer, receipts, refusals, summary
from remit.cli.live import watching
from remit.cli.options import AsJson, emit, out
from remit.cli.team import team
from remit.core.events import Event
from remit.core.printable import escaped
from remit.core.report import Node, node_data, tree
from remit.engine.system import SystemClock
from remit.runtime import Runtime

TASK = "build the login of the shop"


def demo(
    *,
    store: Annotated[Path, Parameter(alias="-s")] = Path("remit-demo.db"),
    pace: float = 1.0,
    json: AsJson = False,
) -> int:
    """Scripted agents at work: no key, no server, a few seconds.

    Parameters
    ----------
    store
        The file to keep the run in; looking at it afterwards is half of the demo.
    pace
        How long the agents pretend to work; 0 for not at all.
    json
        Print the run as JSON instead.
    """
    with team(str(store), max(pace, 0)) as runtime:
        root, events = asyncio.run(_run(runtime, None if json else out()))
    if json:
        emit(node_data(root))
    else:
        _tell(root, events, store)
    return 0 if root.status == "completed" else 1


async def _run(runtime: Runtime, console: Console | None) -> tuple[Node, list[Event]]:
    if console is None:
        outcome = await runtime.outcome("lead", TASK)
    else:
        console.print(Text.assemble(("remit", "bold"), f"  lead is asked to {TASK}\n"))
        with watching(runtime, console):
            outcome = await runtime.outcome("lead", TASK)
    events = await runtime.history(run=outcome.task)
    root = tree(events)
    assert root is not None
    return root, events


def _tell(root: Node, events: Sequence[Event], store: Path) -> None:
    console = out()
    console.print()
    console.print(summary(root, SystemClock().now()))
    _heading(console, "Planned, each step apart from the others")
    for text in _steps(events):
        console.print(text)
    _heading(console, "Handed over")
    for text in _handoffs(events):
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


def _steps(events: Sequence[Event]) -> Iterator[Text]:
    """The steps of every plan, and what each had to wait for."""
    plans = [cast("list[dict[str, str]]", event.data["steps"]) for event in events if event.kind == "plan.started"]
    for step in (step for plan in plans for step in plan):
        after = f"  after {', '.join(step['after'])}" if step["after"] else ""
        what = f"  {step['agent']}: {escaped(step['title'], 60)}"
        yield Text.assemble(("▸ ", "cyan"), (step["id"], "bold"), what, (after, "dim"))


def _handoffs(events: Sequence[Event]) -> Iterator[Text]:
    """Who gave the task to whom, and what went along."""
    for event in events:
        if event.kind == "task.handed":
            along = ", ".join(cast("dict[str, object]", event.data["update"]))
            yield Text.assemble(
                ("→ ", "cyan"), (f"{event.agent} > {event.data['to']}", "bold"), (f"  with {along}", "dim")
            )


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, "bold"))

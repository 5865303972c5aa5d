"""`remit demo`: the main features in a few seconds, on the embedded store, without a key or a server."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from remit.cli.demo_team import FAILING, team
from remit.cli.drawing import answer, receipts_in_short, refusals, summed_up
from remit.cli.interrupts import INTERRUPTED, interrupts
from remit.cli.options import STORE_NAMES, AsJson, aside, emit, out, stay_at, typed
from remit.cli.prompting import PromptDesk, Typist, answering
from remit.cli.screen import Drawing, watching
from remit.cli.terminal import colour
from remit.cli.web import NO_WEB, WebOptions, dashboard
from remit.core.prices import dollars
from remit.engine.system import SystemClock
from remit.report import wire
from remit.report.looks import mark
from remit.report.printable import escaped
from remit.report.tree import Node
from remit.runtime.runtime import Runtime
from remit.runtime.workspace import Workspace, subscribe

TASK = "build the login of the shop"
CREDITS = "$0.50"
SLOWLY = 10.0  # the pace at which a person can follow the dashboard
_NEXT = (
    "remit runs",
    "remit money spend",
    "remit approvals --decided",
    "remit show last --as svg --output run.svg",
    "remit context ls codebase",
    "remit doctor",
)


def demo(
    *,
    store: Annotated[str, Parameter(name=STORE_NAMES)] = "remit-demo.db",
    pace: float | None = None,
    ask: Annotated[bool, Parameter(negative="")] = False,
    web: WebOptions = NO_WEB,
    json: AsJson = False,
) -> int:
    """Run a scripted demo (no API key, no server, a few seconds). With --web, watch it in the dashboard and answer its
    question there.

    Parameters
    ----------
    store
        Store of the run, a SQLite file or a postgresql:// URL. Inspect the run there afterwards.
    pace
        Factor for the time that the agents pretend to work; 0 for none. [default: 1, with --web 10]
    ask
        Answer the demo's question yourself instead of the script.
    web
        The dashboard beside the run.
    json
        Print the run as JSON.
    """
    pace = max(pace if pace is not None else SLOWLY if web.web else 1.0, 0)
    with team(store, pace) as runtime:
        stay_at(runtime.workspace, store)
        who = Answering(ask, pace, store, web.web)
        if not web.web:
            root = asyncio.run(_run(runtime, None if json else out(), who))
            _show(root, as_json=json)
        else:
            try:
                root = asyncio.run(_run_in_browser(runtime, None if json else out(), who, web))
            except asyncio.CancelledError:  # the second Ctrl-C
                return INTERRUPTED
    return 0 if root is not None and root.state == "completed" else 1


class Answering(NamedTuple):
    """How the demo's question is answered: by the person, here or in the dashboard, or by the script after a delay."""

    ask: bool
    pace: float
    store: str
    web: bool = False


def _show(root: Node, *, as_json: bool) -> None:
    if as_json:
        emit(wire.tree(root))
    else:
        _tell(root)


async def _run_in_browser(
    runtime: Runtime, console: Console | None, who: Answering, options: WebOptions
) -> Node | None:
    """Run the demo with the dashboard, and keep the dashboard open until a signal. Return the root of the run, or None
    if a signal cancelled the run."""
    with interrupts() as heard:
        async with dashboard(runtime.workspace, options) as web:
            running = asyncio.create_task(_run(runtime, console, who))
            told = asyncio.create_task(heard.first.wait())
            await asyncio.wait((running, told), return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
            if not running.done():
                running.cancel()
                await asyncio.wait((running,))
                return None
            root = await running
            _show(root, as_json=console is None)
            await web.stay(runtime, heard)
    return root


async def _forget_failures(workspace: Workspace) -> None:
    """Close the breaker of the agent that always fails. Otherwise it would open at the third demo in one store, and
    that demo would differ."""
    await workspace.agents.reset(FAILING, by="the demo")


async def _run(runtime: Runtime, console: Console | None, who: Answering) -> Node:
    await _forget_failures(runtime.workspace)
    if console is not None:
        console.print(Text.assemble(("remit", "bold"), f"  lead is asked to {TASK}, for {CREDITS}\n"))
    with watching(runtime, console) as drawing:
        async with _answered(runtime, drawing, console, who):
            outcome = await runtime.outcome("lead", TASK, credits=CREDITS)
    root = await runtime.workspace.tree(outcome.id)
    assert root is not None
    return root


@asynccontextmanager
async def _answered(
    runtime: Runtime, drawing: Drawing, console: Console | None, who: Answering
) -> AsyncGenerator[None]:
    """Answer the run's question while the body runs."""
    workspace, runs = runtime.workspace, list[str]()
    stop = subscribe(workspace, lambda events: runs.extend(event.run for event in events if event.task == event.run))
    typist = Typist(sys.stdin.fileno(), out()) if who.ask and console is not None and sys.stdin.isatty() else None
    try:
        if typist is not None or who.ask or who.web:
            desk = PromptDesk(aside(), drawing.paused, f" --store {who.store}", typist)
            async with answering(workspace, runs, desk):
                yield
            return
        script = asyncio.create_task(approving(workspace, who.pace))
        try:
            yield
        finally:
            script.cancel()
    finally:
        stop()


async def approving(workspace: Workspace, pace: float) -> None:
    """Approve every question, 1.2 seconds times `pace` after it was asked, until cancelled."""
    async with workspace.journal.follow(kinds=frozenset(("question.asked",))) as follow:
        while True:
            for event in await follow.next():
                await asyncio.sleep(1.2 * pace)
                await workspace.questions.approve(str(event.data["question"]), by="the script", channel="demo")


def _tell(root: Node) -> None:
    console = out()
    console.print()
    console.print(summed_up(root, SystemClock().now()))
    _heading(console, "Plan steps, isolated from each other")
    for text in _steps(root):
        console.print(text)
    _heading(console, "Handoffs")
    for text in _handoffs(root):
        console.print(text)
    _heading(console, "Questions to a person")
    for text in _questions(root):
        console.print(text)
    _heading(console, "Payments")
    for text in _paid(root):
        console.print(text)
    _heading(console, "Refused calls; the run continued")
    for text in refusals(root):
        console.print(text)
    _heading(console, "What each turn saw")
    for text in receipts_in_short(root):
        console.print(text)
    _heading(console, "Result")
    console.print(answer(root))
    _heading(console, "Next")
    for command in _NEXT:
        console.print(Text(f"  {typed(command)}", "cyan"))


def _steps(root: Node) -> Iterator[Text]:
    """Yield for each plan step its agent, its dependencies and its outcome."""
    for step in (step for node in root.walk() for plan in node.plans for step in plan):
        after = f", after {' and '.join(step.after)}" if step.after else ""
        what = f"  {step.agent}: {escaped(step.title, 60)}"
        yield Text.assemble(
            (f"{mark(step.state)} ", colour(step.state)), (step.id, "bold"), what, (f"  {step.state}{after}", "dim")
        )


def _handoffs(root: Node) -> Iterator[Text]:
    """Yield each handoff: the task, the sender and the recipient."""
    for node in root.walk():
        for handoff in node.trail:
            whom = f"{handoff.sender} > {', '.join(handoff.to)}"
            arrow = (f"{mark('handed')} ", colour("handed"))
            yield Text.assemble(arrow, (whom, "bold"), f"  {escaped(node.task, 60)}", (f"  {handoff.phase}", "dim"))


def _questions(root: Node) -> Iterator[Text]:
    """Yield each question to a person, and the answer."""
    for question in (question for node in root.walk() for question in node.questions):
        said = f"{question.state} by {question.by}" if question.by else question.state
        yield Text.assemble((f"{mark('completed')} ", "green"), escaped(question.text, 100), (f"  {said}", "dim"))


def _paid(root: Node) -> Iterator[Text]:
    """Yield the spending of each task, and the total of the run."""
    spent = [(node.agent, node.credits) for node in root.walk() if node.credits]
    for agent, amount in spent:
        yield Text.assemble((f"  {dollars(amount):>8}  ", "cyan"), (agent, "bold"))
    yield Text.assemble((f"  {dollars(sum(amount for _, amount in spent)):>8}  ", "cyan"), f"of {CREDITS}")


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, "bold"))

"""`remit run`: ask an agent of a runtime that lives in a Python module."""

import asyncio
import importlib
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.text import Text

from remit.cli.drawing import answer, summary
from remit.cli.live import watching
from remit.cli.options import AsJson, emit, out
from remit.core.bounds import TOP, Bounds
from remit.core.credits import credits as money
from remit.core.outcome import Outcome
from remit.core.report import node_data, tree
from remit.core.text import shown
from remit.engine.system import SystemClock
from remit.errors import BadInput
from remit.runtime import RunHow, Runtime
from remit.stores.sqlite import MEMORY


@Parameter(name="*")
@dataclass(frozen=True)
class Limits:
    """How far the run may go."""

    credits: str = ""
    """What it may spend, for example $0.50."""

    depth: int | None = None
    """How many delegations deep it may go; 3 unless told otherwise."""

    seconds: float = 300
    """How long it may take."""

    tier: Literal["simple", "medium", "complex"] | None = None
    """How much it may take: handoffs, tokens and agents, under one name."""

    no_handoffs: Annotated[bool, Parameter(name="--no-handoffs", negative="")] = False
    """Every task stays where it was put."""


_OPEN = Limits()


def run(
    runtime: str,
    agent: str,
    task: str,
    *,
    limits: Limits = _OPEN,
    store: Annotated[Path | None, Parameter(alias="-s", env_var="REMIT_STORE")] = None,
    session: str = "",
    json: AsJson = False,
) -> int:
    """Ask an agent of a runtime to do a task, and watch it happen.

    Parameters
    ----------
    runtime
        Where the Runtime is, as `module:name`, for example `team:rt`.
    agent
        Whom to ask.
    task
        What to do.
    limits
        How far it may go.
    store
        Keep the run in this file, whatever store the runtime has.
    session
        Continue a session: its board and its inboxes.
    json
        Print the run as JSON instead.
    """
    with _load(runtime) as found:
        if store is not None:
            found.reopen(store)
        return asyncio.run(_run(found, (agent, task, session), limits, as_json=json))


async def _run(runtime: Runtime, ask: tuple[str, str, str], limits: Limits, *, as_json: bool) -> int:
    agent, task, session = ask
    within = Bounds(depth=limits.depth, credits=money(limits.credits or None)) if limits != _OPEN else TOP
    how: RunHow = {
        "session": session,
        "within": within,
        "seconds": limits.seconds,
        "tier": limits.tier or "",
        "handoffs": not limits.no_handoffs,
    }
    if as_json:
        outcome = await runtime.outcome(agent, task, **how)
    else:
        with watching(runtime, out()):
            outcome = await runtime.outcome(agent, task, **how)
    if outcome.status == "refused":
        outcome.unwrap()
    await _report(runtime, outcome, as_json=as_json)
    return 0 if outcome.ok else 1


async def _report(runtime: Runtime, outcome: Outcome, *, as_json: bool) -> None:
    root = tree(await runtime.history(run=outcome.task))
    assert root is not None
    if as_json:
        emit(node_data(root))
        return
    console = out()
    console.print(summary(root, SystemClock().now()))
    console.print(answer(root))
    where = getattr(runtime.database, "where", MEMORY)
    if where == MEMORY:
        console.print(Text("kept in memory only; add --store FILE to keep the run", "dim"))
    else:
        console.print(Text(f"remit show {outcome.task} --store {where}", "dim"))


def _load(where: str) -> Runtime:
    module_name, separator, name = where.partition(":")
    if not separator or not module_name or not name:
        raise BadInput(f"say where the runtime is as module:name, for example team:rt, not {shown(where)}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise BadInput(f"module {shown(module_name)} cannot be imported: {error}") from error
    except Exception as error:  # the user's own code: where it broke is what they need to know
        raise BadInput(f"module {shown(module_name)} broke while it was imported: {_where(error)}") from error
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Runtime):
        have = [key for key, value in vars(module).items() if isinstance(value, Runtime)]
        hint = f"; it has {', '.join(have)}" if have else ""
        raise BadInput(f"{shown(name)} in {module_name} is not a remit.Runtime{hint}")
    return found


def _where(error: Exception) -> str:
    """ValueError: no such key (team.py, line 7)"""
    what = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:
        return what
    return f"{what} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"

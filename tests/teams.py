"""Runtimes for tests, with the settings that tests change most by their plain names; and the simplest agent."""

from pathlib import Path
from typing import Any

from remit import Runtime, Turn
from remit.ports import Clock, Database, Ids
from remit.settings import Policy, Serving, System

POLICY = ("breaker", "classify", "concurrency", "handoffs", "loops", "sends", "spawns")
SERVING = ("hands", "silence", "keep_days", "keep_events", "pace", "channels")


def team(
    store: str | Path | Database = ":memory:", *, clock: Clock | None = None, ids: Ids | None = None, **given: Any
) -> Runtime:
    """A runtime with these settings; whatever is not a setting goes to the runtime itself."""
    policy = {name: given.pop(name) for name in POLICY if name in given}
    serving = {name: given.pop(name) for name in SERVING if name in given}
    system = {name: value for name, value in (("clock", clock), ("ids", ids)) if value is not None}
    return Runtime(store, policy=Policy(**policy), serving=Serving(**serving), system=System(**system), **given)


async def echo(turn: Turn) -> str:
    return turn.task

"""`remit breakers` and `remit breaker`: who is left alone because it fails, and an operator's hand on it."""

import asyncio

from rich.table import Table
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.cli.terminal import tabled
from remit.core.breaker import UNTIL_RESET, Breaker, admits
from remit.core.text import canonical
from remit.engine.system import SystemClock, TimedIds
from remit.engine.upkeep.breakers import Breakers
from remit.ports import Store
from remit.report.printable import escaped
from remit.report.words import duration

COLOURS = {"closed": "green", "half-open": "yellow", "open": "red"}


def breakers(*, place: Where = HERE, json: AsJson = False) -> None:
    """The breakers of the agents that have failed of late, or were taken out.

    Parameters
    ----------
    json
        Print JSON instead of a table.
    """
    with opened(place) as (_, store):
        found = asyncio.run(_switchboard(store).all())
    if json:
        emit([{"agent": name, **breaker._asdict()} for name, breaker in found.items()])
    elif not found:
        out().print(Text("no agent has failed of late, and none was taken out", "dim"))
    else:
        out().print(table(found, SystemClock().now()))


def trip(agent: str, *, why: str, place: Where = HERE, json: AsJson = False) -> None:
    """Take an agent out: nobody can ask it until it is reset.

    Parameters
    ----------
    agent
        Whom to take out.
    why
        What those are told who want to ask it.
    json
        Print what came of it as JSON.
    """
    with opened(place) as (_, store):
        changed = asyncio.run(_switchboard(store).trip(agent, why))
    name = canonical(agent)
    _tell(name, "open", f"'{name}' is out; let it in again with: remit breaker reset {name}", changed, as_json=json)


def reset(agent: str, *, why: str = "", place: Where = HERE, json: AsJson = False) -> None:
    """Let an agent be asked again at once.

    Parameters
    ----------
    agent
        Whom to let in.
    why
        A note for the journal.
    json
        Print what came of it as JSON.
    """
    with opened(place) as (_, store):
        changed = asyncio.run(_switchboard(store).reset(agent, why))
    name = canonical(agent)
    _tell(name, "closed", f"'{name}' can be asked again", changed, as_json=json)


def table(found: dict[str, Breaker], now: int) -> Table:
    rows = [
        [
            Text(escaped(name, 64), "bold"),
            Text(breaker.state, COLOURS[breaker.state]),
            next_for(breaker, now),
            str(breaker.failures),
            Text(escaped(breaker.why, 200), "dim"),
        ]
        for name, breaker in found.items()
    ]
    return tabled(("agent", "breaker", "next", "failures", "why"), rows, left=3, gives_way="why")


def next_for(breaker: Breaker, now: int) -> str:
    """What it takes until the agent can be asked."""
    if breaker.state == "closed":
        return "can be asked"
    if breaker.until == UNTIL_RESET:
        return "out until it is reset"
    if admits(breaker, now) == "probe":
        return "the next to ask tries it"
    left = duration(breaker.until - now)
    return f"being tried, {left} left" if breaker.state == "half-open" else f"rests {left} more"


def _switchboard(store: Store) -> Breakers:
    return Breakers(store, SystemClock(), TimedIds())


def _tell(name: str, state: str, sentence: str, changed: bool, *, as_json: bool) -> None:
    if as_json:
        emit({"agent": name, "state": state, "changed": changed})
    else:
        out().print(Text(sentence if changed else f"{sentence}; nothing had to be changed"))

"""`remit breakers` and `remit breaker`: circuit breakers of agents that fail, and how to set them."""

import asyncio

from rich.text import Text

from remit.cli.completing import AgentName
from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, emit, now, opened_workspace, out, typed
from remit.cli.terminal import COLOURS, Rows
from remit.core.breaker import UNTIL_RESET, Breaker, admits
from remit.core.values import canonical
from remit.report import wire
from remit.report.figures import duration
from remit.report.looks import BREAKER_ROLES
from remit.report.printable import escaped


def breakers(*, place: Where = HERE, json: AsJson = False) -> None:
    """List the circuit breakers of agents that failed recently or were taken out of service.

    Parameters
    ----------
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        named = asyncio.run(workspace.agents.breakers())
    if json:
        emit([wire.breaker(name, breaker) for name, breaker in named.items()])
    elif not named:
        out().print(Text("no agent has failed recently or been taken out of service", "dim"))
    else:
        out().print(table(named, now()))


def trip(agent: AgentName, *, why: str, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Open an agent's circuit breaker: remit refuses calls to the agent until you reset it.

    Parameters
    ----------
    agent
        The agent.
    why
        Reason; remit shows it to every caller of the agent.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        changed = asyncio.run(workspace.agents.trip(agent, why, **act.said))
    name = canonical(agent)
    _tell(
        name,
        "open",
        f"'{name}' is out of service; to undo: {typed(f'remit breaker reset {name}')}",
        changed,
        as_json=json,
    )


def reset(agent: AgentName, *, why: str = "", place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Close an agent's circuit breaker, so that the agent can be called at once.

    Parameters
    ----------
    agent
        The agent.
    why
        A note for the journal.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        changed = asyncio.run(workspace.agents.reset(agent, why, **act.said))
    name = canonical(agent)
    _tell(name, "closed", f"'{name}' is {'back ' if changed else ''}in service", changed, as_json=json)


def table(named: dict[str, Breaker], now: int) -> Rows:
    rows = [
        [
            Text(escaped(name, 64), "bold"),
            breaker_state(breaker.state),
            next_for(breaker, now),
            str(breaker.failures),
            Text(escaped(breaker.why, 200), "dim"),
        ]
        for name, breaker in named.items()
    ]
    return Rows(("agent", "breaker", "next", "failures", "why"), rows, left=3, gives_way="why")


def breaker_state(state: str) -> Text:
    return Text(state, COLOURS[BREAKER_ROLES.get(state, "idle")])


def next_for(breaker: Breaker, now: int) -> str:
    """Return when the agent can be called again."""
    if breaker.state == "closed":
        return "available"
    if breaker.until == UNTIL_RESET:
        return "out of service until reset"
    if admits(breaker, now) == "probe":
        return "ready for a test call"
    left = duration(breaker.until - now)
    return f"test call running, {left} left" if breaker.state == "half-open" else f"paused for {left}"


def _tell(name: str, state: str, sentence: str, changed: bool, *, as_json: bool) -> None:
    if as_json:
        emit({"agent": name, "state": state, "changed": changed})
    else:
        out().print(Text(sentence if changed else f"{sentence}; nothing changed"))

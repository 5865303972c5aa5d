"""`remit agents`: published agents, without importing a team; or the agents of a team, as they are configured.

`remit withdraw`: remove the card of an agent that no worker has."""

import asyncio
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.completing import AgentName, TeamName
from remit.cli.options import (
    HERE,
    MYSELF,
    Acting,
    AsJson,
    Where,
    emit,
    now,
    opened_workspace,
    out,
    typed,
    typed_with_team,
)
from remit.cli.terminal import Rows
from remit.core import scope
from remit.core.allow import ANY, Names, names_text
from remit.core.backoff import USUAL
from remit.core.card import Card
from remit.core.times import SECOND
from remit.core.toolgroups import GROUPS
from remit.core.values import canonical
from remit.report import wire
from remit.report.figures import age, count, duration
from remit.report.printable import escaped
from remit.runtime.looks import PublishedCard
from remit.runtime.stacks import AgentStack


def agents(
    runtime: TeamName = "",
    *,
    verbose: Annotated[bool, Parameter(name=("--verbose", "-v"), negative="")] = False,
    place: Where = HERE,
    json: AsJson = False,
) -> None:
    """List the agents that workers of this store have published, the agents that each may ask, and its workers.

    With `-v` or with a runtime, show how the agents of a team are configured: models in order of use, tools, denied
    tools, approvals, guards, functions around turns, hooks and limits.

    Parameters
    ----------
    runtime
        Team, as `team:rt`, `./team.py:rt` or a file. With `-v`, the default is REMIT_TEAM, else remit.toml.
    verbose
        Show the configuration of each agent of a team.
    json
        Print JSON. For published agents, whole cards.
    """
    if runtime or verbose:
        _team(runtime, as_json=json)
        return
    with opened_workspace(place) as workspace:
        cards = asyncio.run(workspace.looks.cards())
    if json:
        emit([wire.card(*one) for one in cards])
    elif not cards:
        out().print(Text(f"no worker has published agents here yet; start one: {typed_with_team('worker')}", "dim"))
    else:
        names = ("agent", "can", "asks", "workers", "published")
        out().print(Rows(names, [_row(one, now()) for one in cards], left=3, gives_way="can"))
        _tell_unserved([one.card.name for one in cards if not one.workers])


def withdraw(agent: AgentName, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Remove the card of an agent that no worker has any more, so that it is no longer listed, found or given tasks.

    remit refuses while a worker has the agent, or while an open task, a schedule or an access key needs it. A worker
    that starts with the agent publishes the card again.

    Parameters
    ----------
    agent
        The agent.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        asyncio.run(workspace.agents.withdraw(agent, **act.said))
    name = canonical(agent)
    if json:
        emit({"withdrawn": name})
    else:
        out().print(Text(f"the card of '{name}' is withdrawn"))


def _row(one: PublishedCard, at: int) -> list[Text | str]:
    card = one.card
    workers = str(one.workers) if one.workers else Text("none", "yellow")
    asks = escaped(names_text(card.asks), 60)
    return [Text(escaped(card.name, 64), "bold"), escaped(_can(card), 200), asks, workers, age(at - one.published_at)]


def _tell_unserved(names: list[str]) -> None:
    """Print which agents have no worker, and what to do about it."""
    if not names:
        return
    shown = ", ".join(f"'{escaped(name, 64)}'" for name in names[:8]) + (" and more" if len(names) > 8 else "")
    starts, ends = typed_with_team("worker"), typed(f"remit withdraw {names[0]}")
    line = f"no worker has {shown}; to start one: {starts}; to remove a card that is no longer used: {ends}"
    out().print(Text(line, "yellow"))


def _can(card: Card) -> str:
    return "; ".join(card.can) or card.role or card.instructions


# -- configuration of a team ---------------------------------------------------------------------------------------


def _team(where: str, *, as_json: bool) -> None:
    from remit.cli.loading import load_team

    team = load_team(where, looks=True).runtime
    stacks = [team.stack(card.name) for card in team.cards()]
    if as_json:
        emit([{**one._asdict(), "card": wire.card(one.card)} for one in stacks])
        return
    for one in stacks:
        out().print(Text.assemble((escaped(one.card.name, 64), "bold"), (f"  {escaped(_can(one.card), 200)}", "dim")))
        for word, what in _parts(one):
            out().print(Text.assemble((f"  {word:<10}", "dim"), escaped(what, 1_000)))


def _parts(one: AgentStack) -> Iterator[tuple[str, str]]:
    """Yield each setting of an agent as a label and a text, in the order in which a tool call passes them. Settings
    that the agent does not have are left out."""
    card = one.card
    told = {
        "models": ", then ".join(_model(one, model) for model in one.models),
        "asks": _names_text(card.asks, "anyone"),
        "tools": _names_text(_own(card.tools), "any"),
        "denied": _names_text(card.deny, "all"),
        "approval": _approval(one),
        "guards": ", then ".join(one.guards),
        "around": ", then ".join(one.around),
        "before": ", ".join(one.before),
        "after": ", ".join(one.after),
        "reads": _scopes(card.reads),
        "writes": _scopes(card.writes),
        "limits": "; ".join(_limits(one)),
    }
    yield from ((word, what) for word, what in told.items() if what)


def _model(one: AgentStack, model: str) -> str:
    keys = one.keys.get(model, ())
    return f"{model} ({', then '.join(keys)})" if keys else model


def _own(tools: Names) -> Names:
    """Return the tools without the verbs, which every agent that may ask others has."""
    return tools if tools is ANY else tools - GROUPS["agents"] - GROUPS["context"] - GROUPS["people"]


def _names_text(names: Names, all_: str) -> str:
    return all_ if names is ANY else ", ".join(sorted(names))


def _approval(one: AgentStack) -> str:
    said = [f"a person, each time: {', '.join(one.approve_tools)}"] if one.approve_tools else []
    if one.card.needs_approval:
        said.append("a person, before it works for another agent")
    if one.card.review:
        said.append("a person, each of its results")
    return "; ".join(said)


def _scopes(sees: scope.Sees) -> str:
    return "everything" if sees is ANY else ", ".join(scope.scope_texts(sees))


def _limits(one: AgentStack) -> Iterator[str]:
    if one.max_tokens is not None:  # only model agents have it
        yield f"{one.iterations} requests a task"
        yield f"{one.max_tokens:,} tokens an answer"
    if one.card.concurrency is not None:
        yield f"{one.card.concurrency} at a time"
    if one.timeout is not None:
        yield f"{duration(round(one.timeout * SECOND))} an attempt"
    if one.attempts != USUAL.attempts:
        yield count(one.attempts, "attempt")

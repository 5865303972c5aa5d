"""`remit access`: access keys, with which other programs call a workspace. A key is printed once, at its creation."""

import asyncio
import sys
from datetime import timedelta
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from rich.text import Text

from remit.cli.completing import AccessId, AgentName
from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, aside, emit, opened_workspace, out, typed, typed_data
from remit.cli.terminal import Rows, moment
from remit.core.access import AccessInfo, limits
from remit.core.bounds import TOP
from remit.core.times import span_of_days
from remit.report import wire
from remit.report.printable import escaped

_STYLES: Final = {"active": "green", "expired": "yellow", "revoked": "dim"}


def listing(*, all: Annotated[bool, Parameter(negative="")] = False, place: Where = HERE, json: AsJson = False) -> None:
    """List the active access keys: scopes, agent, expiry and last use. The keys themselves are not stored.

    Parameters
    ----------
    all
        Also list revoked and expired keys.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        found = asyncio.run(workspace.access.list())
    found = [one for one in found if all or one.state == "active"]
    if json:
        emit([wire.access(one) for one in found])
    elif not found:
        out().print(Text(f"no access keys; create one: {typed('remit access make NAME')}", "dim"))
    else:
        names = ("id", "name", "state", "scopes", "agent", "made", "expires", "used")
        out().print(Rows(names, [_row(one) for one in found], left=8))


def make(
    name: str,
    *,
    scope: Annotated[
        tuple[Literal["read", "run", "approve", "admin"], ...], Parameter(negative="", consume_multiple=False)
    ] = ("run",),
    days: float | None = None,
    agent: AgentName = "",
    bounds: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Create an access key and print it. It is printed only now: the store keeps a digest of it.

    The instructions go to standard error, so `$(remit access make ci)` is the key alone.

    Parameters
    ----------
    name
        Name of the key: who uses it, and for what.
    scope
        What the caller may do: read, run (includes read), approve (includes read) or admin (includes all); repeat the
        option for more.
    days
        Days until it expires. [default: it does not expire]
    agent
        Agent in whose name the caller asks: the caller may do what this agent's card allows. [default: the owner]
    bounds
        Limits of everything that the caller requests, as JSON, such as `{"depth": 2}`, or `@bounds.json`.
    json
        Print JSON, with the key.
    """
    expires = None if days is None else timedelta(microseconds=span_of_days(days, "--days"))
    limited = TOP if bounds is None else limits(typed_data(bounds, "--bounds", '{"depth": 2}'))
    with opened_workspace(place, create=True) as workspace:
        made = asyncio.run(
            workspace.access.make(name, scopes=scope, expires=expires, agent=agent, bounds=limited, **act.said)
        )
    if json:
        emit({**wire.access(made.access), "key": made.key.reveal()})
        return
    sys.stdout.write(f"{made.key.reveal()}\n")
    sys.stdout.flush()
    until = f"until {moment(made.access.expires_at)}" if made.access.expires_at is not None else "without expiry"
    aside().print(
        Text(
            f"access {made.id} for {escaped(made.access.name, 64)}: {', '.join(made.access.scopes)}, {until}.\n"
            f"Keep the key: it is not shown again. To end it: {typed(f'remit access revoke {made.id}')}",
            "dim",
        )
    )


def revoke(id: AccessId, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Revoke an access key. Every server of this store refuses it within a second.

    Parameters
    ----------
    id
        Id of the access key, as `remit access ls` lists it.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        changed = asyncio.run(workspace.access.revoke(id, **act.said))
    if json:
        emit({"id": id, "revoked": True, "changed": changed})
    else:
        out().print(Text(f"access {id} {'is' if changed else 'was'} revoked"))


def _row(one: AccessInfo) -> list[Text | str]:
    expires = "never" if one.expires_at is None else moment(one.expires_at)
    used = "" if one.used_at is None else moment(one.used_at)
    name, state = Text(escaped(one.name, 64), "bold"), Text(one.state, _STYLES[one.state])
    return [one.id, name, state, ", ".join(one.scopes), escaped(one.agent, 64), moment(one.made_at), expires, used]

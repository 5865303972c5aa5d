"""`remit credits`: the account of a workspace."""

import asyncio
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, emit, opened, out, with_unit
from remit.cli.terminal import tabled
from remit.core.money import Lease, spelled
from remit.errors import BadInput
from remit.report import wire
from remit.report.printable import escaped
from remit.runtime.money import Account

app = App(name="credits", help="Show the account balance; grant money; unfreeze.")

_NONE = "no grants yet: money is counted but not limited; `remit credits grant 10USD` sets a limit"


@app.default
def account(
    *,
    place: Where = HERE,
    verbose: Annotated[bool, Parameter(alias="-v", negative="")] = False,
    json: AsJson = False,
) -> None:
    """Show the account: granted, available, reserved, spent, overrun, and whether it is frozen.

    Parameters
    ----------
    verbose
        Also list current reservations and caps.
    json
        Print JSON. Credits are in millionths of a US dollar.
    """
    with opened(place) as workspace:
        found, leases = asyncio.run(workspace.money.account()), asyncio.run(workspace.money.leases())
    parts = [lease for lease in leases if lease.kind != "account"]
    if json:
        emit({"account": _data(found), **({"leases": [wire.lease(lease) for lease in parts]} if verbose else {})})
        return
    _print(out(), found)
    if verbose:
        out().print()
        out().print(_parts(parts) if parts else Text("no reservations or caps at the moment", "dim"))


@app.command
def grant(
    amount: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    *,
    tokens: int = 0,
    why: str = "",
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Add money or tokens to the account.

    From the first grant on, remit refuses payments that the account cannot cover.

    Parameters
    ----------
    amount
        Amount with its unit: 10USD, 0.50USD.
    tokens
        Number of tokens.
    why
        A note for the journal.
    json
        Print the account as JSON.
    """
    if amount is None and not tokens:
        raise BadInput("give an amount: remit credits grant 10USD, or --tokens 100000")
    with opened(place, create=True) as workspace:
        given = with_unit(amount, "a grant")
        found = asyncio.run(workspace.money.grant(given, tokens=tokens, why=why, **act.said))
    if json:
        emit({"account": _data(found)})
    else:
        _print(out(), found)


@app.command
def unfreeze(*, why: str = "", place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Unfreeze the account after more was spent than it had.

    Parameters
    ----------
    why
        A note for the journal.
    json
        Print JSON.
    """
    with opened(place) as workspace:
        changed = asyncio.run(workspace.money.unfreeze(why, **act.said))
    if json:
        emit({"changed": changed})
    else:
        out().print(Text("the account is no longer frozen" if changed else "the account was not frozen"))


def _data(account: Account) -> dict[str, object]:
    return {unit: wire.lease(lease) if lease is not None else None for unit, lease in account._asdict().items()}


def _print(console: Console, account: Account) -> None:
    leases = [lease for lease in account if lease is not None]
    if not leases:
        console.print(Text(_NONE, "dim"))
        return
    console.print(_table(leases))
    for lease in leases:
        if lease.state == "frozen":
            over = f"{spelled(lease.unit, lease.overrun)} more was spent than it had"
            console.print(Text(f"frozen, because {over}; grant more, then run `remit credits unfreeze`", "red"))


def _table(leases: list[Lease]) -> Table:
    names = ("", "granted", "available", "set aside", "spent", "overrun", "state")
    rows = [
        [
            Text(lease.unit, "bold"),
            *(spelled(lease.unit, x) for x in (lease.granted, lease.available, lease.reserved + lease.lent)),
            spelled(lease.unit, lease.spent),
            spelled(lease.unit, lease.overrun) if lease.overrun else "-",
            Text(lease.state, "red" if lease.state == "frozen" else "green"),
        ]
        for lease in leases
    ]
    return tabled(names, rows)


def _parts(leases: list[Lease]) -> Table:
    names = ("lease", "kind", "granted", "available", "held", "lent", "spent", "users", "out of")
    rows = [
        [
            Text(escaped(lease.id, 64)),
            Text({"carve": "set aside", "cap": "cap"}.get(lease.kind, lease.kind), "dim"),
            *(spelled(lease.unit, x) for x in (lease.granted, lease.available, lease.reserved, lease.lent)),
            spelled(lease.unit, lease.spent),
            str(lease.users) if lease.users else "-",
            Text(escaped(", ".join(lease.above), 80), "dim"),
        ]
        for lease in leases
    ]
    return tabled(names, rows, left=2, gives_way="out of")

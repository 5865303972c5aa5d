"""`remit ledger`: calls of uncertain cost, and the audit of the ledger."""

import asyncio
from typing import Annotated

from cyclopts import App, Parameter
from rich.table import Table
from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, emit, opened, options_for, out, with_unit
from remit.cli.terminal import tabled
from remit.core.money import Hold, spelled
from remit.report import wire
from remit.report.figures import count
from remit.report.printable import block, escaped
from remit.report.spend import LedgerAudit
from remit.runtime.finding import hold_of
from remit.runtime.spending import audit_of
from remit.runtime.workspace import opening_of

app = App(name="ledger", help="List and reconcile calls of uncertain cost; verify the ledger.")


@app.default
def ledger(*, place: Where = HERE, json: AsJson = False) -> None:
    """List calls of uncertain cost: remit charged the full hold because no cost was reported.

    Parameters
    ----------
    json
        Print JSON. Credits are in millionths of a US dollar.
    """
    with opened(place) as workspace:
        holds = asyncio.run(workspace.money.uncertain())
        where = options_for(opening_of(workspace).database, workspace.name, place.store)
    if json:
        emit([wire.hold(hold) for hold in holds])
    elif not holds:
        out().print(Text("no calls of uncertain cost", "dim"))
    else:
        out().print(_table(holds))
        out().print(Text(f"enter the real cost: remit ledger reconcile CALL 0.01USD{where}", "dim"))


@app.command
def verify(*, place: Where = HERE, json: AsJson = False) -> int:
    """Check that all budgets balance, and that no call outlived its task.

    Exits with 1 if a check fails.

    Parameters
    ----------
    json
        Print JSON.
    """
    with opened(place) as workspace:
        audit = asyncio.run(workspace.journal.read(audit_of, long=True))
    if json:
        emit({"sound": audit.sound, **wire.object_of(audit)})
    else:
        _print(audit)
    return 0 if audit.sound else 1


@app.command
def reconcile(
    call: str,
    amount: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    *,
    tokens: int | None = None,
    why: str = "",
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Enter the real cost of an uncertain call, once. remit refunds the difference.

    Parameters
    ----------
    call
        Call id from `remit ledger`, or a unique prefix or suffix of it.
    amount
        Real cost with its unit: 0.01USD.
    tokens
        Number of tokens that the call used.
    why
        A note for the journal.
    json
        Print JSON.
    """
    with opened(place) as workspace:
        hold = asyncio.run(workspace.journal.read(lambda view: hold_of(view, call)))
        cost = with_unit(amount, "a cost")
        back = asyncio.run(workspace.money.reconcile(hold, cost, tokens=tokens, why=why, **act.said))
    if json:
        emit({"call": hold, "back": back})
        return
    given = [f"{spelled(unit, amount)} refunded" for unit, amount in back.items() if amount > 0]
    given += [f"{spelled(unit, -amount)} more charged" for unit, amount in back.items() if amount < 0]
    out().print(Text(f"call {hold} reconciled: {', '.join(given) or 'the charge was correct'}"))


def _table(holds: list[Hold]) -> Table:
    names = ("call", "agent", "run", "charged", "tokens", "billed", "hour", "for")
    rows = [
        [
            Text(hold.id),
            Text(escaped(hold.agent, 20), "bold"),
            Text(hold.run),
            spelled("credits", hold.credits) if hold.credits else "-",
            f"{hold.tokens:,}" if hold.tokens else "-",
            Text(", ".join(spelled(unit, amount) for unit, amount in hold.claimed.items()) or "-", "red"),
            Text(f"{hold.hour}Z", "dim"),
            Text(escaped(" ".join(dict.fromkeys((hold.why, hold.model))).strip(), 200)),
        ]
        for hold in holds
    ]
    return tabled(names, rows, left=3, gives_way="for")


def _print(audit: LedgerAudit) -> None:
    console = out()
    for sentence in audit.broken:
        console.print(Text.assemble(("broken: ", "red"), block(sentence)))
    figures = ", ".join(
        (count(audit.leases, "lease"), f"{count(audit.holds, 'open call')}, {audit.uncertain:,} of them uncertain")
    )
    word, colour = ("balances", "green") if audit.sound else ("does not balance", "red")
    console.print(Text.assemble((f"the ledger {word}", colour), (f"  {figures}", "dim")))
    for unit, spent in audit.spent.items():
        told = audit.told.get(unit, 0)
        rest = f", {spelled(unit, spent - told)} of that by runs that are pruned" if spent > told else ""
        console.print(Text(f"{unit}: {spelled(unit, spent)} spent of the account{rest}", "dim"))

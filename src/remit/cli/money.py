"""`remit money`: the account of a workspace, its spending, its limits, and calls of uncertain cost."""

import asyncio
import csv
import sys
from typing import Annotated, cast

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from remit.cli.options import (
    HERE,
    MYSELF,
    Acting,
    AsJson,
    OwnStore,
    Where,
    emit,
    now,
    opened_workspace,
    out,
    typed,
    with_unit,
)
from remit.cli.terminal import Rows
from remit.cli.times import typed_times
from remit.core.limits import LimitUse
from remit.core.money import Hold, Lease, amount_text
from remit.core.tally import SpendSeries
from remit.core.times import aware, iso
from remit.errors import BadInput
from remit.report import wire
from remit.report.figures import count, money
from remit.report.printable import block, escaped, harmless
from remit.report.spend import (
    SPEND_SERIES,
    LedgerAudit,
    SpendBy,
    Spending,
    SpendLine,
    SpendPoint,
    csv_points,
    csv_rows,
)
from remit.runtime.filters import StatsFilter
from remit.runtime.money import Account

app = App(name="money", help="Show the account; grant money; show spending and limits; reconcile uncertain calls.")

_NO_GRANTS = "no grants yet: money is counted but not limited; `remit money grant 10USD` sets a limit"
_NAMELESS = {"model": "no model", "agent": "no agent", "session": "no session", "person": "no person", "run": "no run"}


# -- the account -----------------------------------------------------------------------------------------------------


@app.default
def account(
    *,
    place: Where = HERE,
    verbose: Annotated[bool, Parameter(alias="-v", negative="")] = False,
    json: AsJson = False,
) -> None:
    """Show the account: granted, available, reserved, spent, overrun, and whether it is frozen. The commands below show
    spending and limits, grant money, and enter the cost of uncertain calls.

    Parameters
    ----------
    verbose
        Also list current reservations and caps.
    json
        Print JSON. Credits are in millionths of a US dollar.
    """
    with opened_workspace(place) as workspace:
        found, leases = asyncio.run(workspace.money.account()), asyncio.run(workspace.money.leases())
    parts = [lease for lease in leases if lease.kind != "account"]
    if json:
        emit(
            {"account": _account_data(found), **({"leases": [wire.lease(lease) for lease in parts]} if verbose else {})}
        )
        return
    _print_account(out(), found)
    if verbose:
        out().print()
        out().print(_lease_table(parts) if parts else Text("no reservations or caps at the moment", "dim"))


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
        raise BadInput("give an amount: remit money grant 10USD, or --tokens 100000")
    with opened_workspace(place, create=True) as workspace:
        given = with_unit(amount, "a grant")
        found = asyncio.run(workspace.money.grant(given, tokens=tokens, why=why, **act.said))
    if json:
        emit({"account": _account_data(found)})
    else:
        _print_account(out(), found)


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
    with opened_workspace(place) as workspace:
        changed = asyncio.run(workspace.money.unfreeze(why, **act.said))
    if json:
        emit({"changed": changed})
    else:
        out().print(Text("the account is no longer frozen" if changed else "the account was not frozen"))


def _account_data(account: Account) -> dict[str, object]:
    return {unit: wire.lease(lease) if lease is not None else None for unit, lease in account._asdict().items()}


def _print_account(console: Console, account: Account) -> None:
    leases = [lease for lease in account if lease is not None]
    if not leases:
        console.print(Text(_NO_GRANTS, "dim"))
        return
    console.print(_account_table(leases))
    for lease in leases:
        if lease.state == "frozen":
            over = f"{amount_text(lease.unit, lease.overrun)} more was spent than it had"
            console.print(
                Text(f"frozen, because {over}; grant more, then run `{typed('remit money unfreeze')}`", "red")
            )


def _account_table(leases: list[Lease]) -> Rows:
    names = ("", "granted", "available", "set aside", "spent", "overrun", "state")
    rows = [
        [
            Text(lease.unit, "bold"),
            *(amount_text(lease.unit, x) for x in (lease.granted, lease.available, lease.reserved + lease.lent)),
            amount_text(lease.unit, lease.spent),
            amount_text(lease.unit, lease.overrun) if lease.overrun else "-",
            Text(lease.state, "red" if lease.state == "frozen" else "green"),
        ]
        for lease in leases
    ]
    return Rows(names, rows)


def _lease_table(leases: list[Lease]) -> Rows:
    names = ("lease", "kind", "granted", "available", "held", "lent", "spent", "users", "out of")
    rows = [
        [
            Text(escaped(lease.id, 64)),
            Text({"carve": "set aside", "cap": "cap"}.get(lease.kind, lease.kind), "dim"),
            *(amount_text(lease.unit, x) for x in (lease.granted, lease.available, lease.reserved, lease.lent)),
            amount_text(lease.unit, lease.spent),
            str(lease.users) if lease.users else "-",
            Text(escaped(", ".join(lease.above), 80), "dim"),
        ]
        for lease in leases
    ]
    return Rows(names, rows, left=2, gives_way="out of")


# -- spending and limits ---------------------------------------------------------------------------------------------


@app.command
def spend(
    *,
    by: SpendBy | SpendSeries = "agent",
    since: str = "",
    until: str = "",
    place: Where = HERE,
    as_csv: Annotated[bool, Parameter(name="--csv", negative="")] = False,
    json: AsJson = False,
) -> None:
    """Show spending: credits, tokens and calls, uncertain amounts, and amounts paid with the workspace's own keys.

    The rows add up to the total. Over all time, the total equals the spending of the account. Pruned runs share one
    row. With several names, such as `--by day,agent,model`, the rows come from the statistics, which pruning keeps.

    Parameters
    ----------
    by
        One row per day, agent, model, session, person or run; or for each combination of day, agent and model.
    since
        Only spending after this time: 30m, 1h or 2d ago, or a date and time such as 2026-11-15 or 2026-11-15T02:36Z.
    until
        Only spending before this time, in the same format.
    as_csv
        Print CSV. Money is in US dollars.
    json
        Print JSON. Credits are in millionths of a US dollar.
    """
    if as_csv and json:
        raise BadInput("pass --csv or --json, not both")
    with opened_workspace(place) as workspace:
        start, end = typed_times(since, until, now())
        when = {name: aware(at) for name, at in (("since", start), ("until", end)) if at is not None}
        if by in SPEND_SERIES:
            points = asyncio.run(workspace.looks.spend(cast("SpendSeries", by), **cast("StatsFilter", when)))
            _show_series(by, points, (start, end), as_csv=as_csv, as_json=json)
            return
        found = asyncio.run(workspace.money.spend(cast("SpendBy", by), **when))
    if json:
        emit({"since": start, "until": end, **wire.spending(found)})
    elif as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([*map(harmless, row)] for row in csv_rows(found))
    elif found.lines or found.pruned is not None:
        out().print(_spend_table(found))
    else:
        out().print(_nothing_spent(start, end))


def _nothing_spent(start: int | None, end: int | None) -> Text:
    return Text("no spending yet" if start is None and end is None else "no spending in that time", "dim")


def _show_series(
    by: str, points: list[SpendPoint], part: tuple[int | None, int | None], *, as_csv: bool, as_json: bool
) -> None:
    if as_json:
        emit({"since": part[0], "until": part[1], **wire.spend_series(by, points)})
    elif as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([*map(harmless, row)] for row in csv_points(points))
    elif not points:
        out().print(_nothing_spent(*part))
    else:
        names = by.split(",")
        rows = [_series_row(names, point) for point in points]
        out().print(Rows([*names, "credits", "tokens", "calls"], rows, left=len(names)))


def _series_row(names: list[str], point: SpendPoint) -> list[Text | str]:
    cells = [(getattr(point, name), _NAMELESS.get(name, "")) for name in names]
    row: list[Text | str] = [Text(escaped(name or other, 64), "bold" if name else "dim") for name, other in cells]
    return [*row, money(point.credits) if point.credits else "-", *(f"{x:,}" if x else "-" for x in point.counts)]


def _spend_table(found: Spending) -> Rows:
    total = found.total
    names = [found.by, "credits", "tokens", "calls"]
    names += ["uncertain"] if total.uncertain else []
    names += ["own keys"] if total.own_key else []
    rows = [_spend_row(found, line) for line in found.rows]
    return Rows(names, rows)


def _spend_row(found: Spending, line: SpendLine) -> list[Text | str]:
    ours = line is found.total or line is found.pruned
    name = line.name or _NAMELESS.get(found.by, "")
    row: list[Text | str] = [Text(escaped(name, 64), "dim" if ours or not line.name else "bold")]
    row += [money(line.credits) if line.credits else "-", *(f"{x:,}" if x else "-" for x in (line.tokens, line.calls))]
    row += [money(line.uncertain) if line.uncertain else "-"] if found.total.uncertain else []
    row += [money(line.own_key) if line.own_key else "-"] if found.total.own_key else []
    return row


@app.command
def limits(runtime: str = "", *, store: OwnStore = None, json: AsJson = False) -> None:
    """Show the usage of a team's limits: money, tokens and tasks per hour, day, week or month.

    Parameters
    ----------
    runtime
        Team, as `team:rt`, `./team.py:rt` or a file. [default: REMIT_TEAM, else remit.toml]
    store
        Read this SQLite file or postgresql:// URL instead of the team's own store.
    json
        Print JSON. Credits are in millionths of a US dollar.
    """
    # The other commands need no team, and to load one takes many modules.
    from remit.cli.loading import load_team
    from remit.settings import Serving

    with load_team(runtime, runs=False).runtime.at(store, serving=Serving(concurrency=0)) as team:
        found = asyncio.run(team.workspace.money.limits())
    if json:
        emit([wire.limit_use(use) for use in found])
    elif not found:
        out().print(Text("this team has no limits; Policy(limits=[...]) or [[limits]] in its file sets them", "dim"))
    else:
        out().print(
            Rows(("of", "limit", "used", "held", "left", "room again"), [_limit_row(use) for use in found], left=2)
        )


def _limit_row(use: LimitUse) -> list[Text | str]:
    unit = use.unit
    amounts = [_limit_amount(unit, amount) for amount in (use.used, use.held, use.left)]
    if not use.held:
        amounts[1] = "-"
    room = f"{iso(use.room_at)[:16]}Z" if use.room_at is not None else "-"
    allowed = f"{_limit_amount(unit, use.most)} {use.limit.each}"
    return [Text(escaped(str(use.metered), 80), "bold"), allowed, *amounts, Text(room, "red" if room != "-" else "dim")]


def _limit_amount(unit: str, amount: int) -> str:
    if unit == "credits":
        return amount_text("credits", amount)
    return f"{amount:,} {unit}" if amount != 1 else f"1 {unit[:-1]}"


# -- calls of uncertain cost -----------------------------------------------------------------------------------------


@app.command
def uncertain(*, place: Where = HERE, json: AsJson = False) -> None:
    """List calls of uncertain cost: remit charged the full hold because no cost was reported.

    Parameters
    ----------
    json
        Print JSON. Credits are in millionths of a US dollar.
    """
    with opened_workspace(place) as workspace:
        holds = asyncio.run(workspace.money.uncertain())
    if json:
        emit([wire.hold(hold) for hold in holds])
    elif not holds:
        out().print(Text("no calls of uncertain cost", "dim"))
    else:
        out().print(_hold_table(holds))
        out().print(Text(f"enter the real cost: {typed('remit money reconcile CALL 0.01USD')}", "dim"))


@app.command
def verify(*, place: Where = HERE, json: AsJson = False) -> int:
    """Check that all budgets balance, and that no call outlived its task.

    Exits with 1 if a check fails.

    Parameters
    ----------
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        audit = asyncio.run(workspace.looks.ledger())
    if json:
        emit({"sound": audit.sound, **wire.object_of(audit)})
    else:
        _print_audit(audit)
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
        Call id from `remit money uncertain`, or a unique prefix or suffix of it.
    amount
        Real cost with its unit: 0.01USD.
    tokens
        Number of tokens that the call used.
    why
        A note for the journal.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        hold = asyncio.run(workspace.looks.uncertain(call))
        cost = with_unit(amount, "a cost")
        back = asyncio.run(workspace.money.reconcile(hold, cost, tokens=tokens, why=why, **act.said))
    if json:
        emit({"call": hold, "back": back})
        return
    given = [f"{amount_text(unit, amount)} refunded" for unit, amount in back.items() if amount > 0]
    given += [f"{amount_text(unit, -amount)} more charged" for unit, amount in back.items() if amount < 0]
    out().print(Text(f"call {hold} reconciled: {', '.join(given) or 'the charge was correct'}"))


def _hold_table(holds: list[Hold]) -> Rows:
    names = ("call", "agent", "run", "charged", "tokens", "billed", "hour", "for")
    rows = [
        [
            Text(hold.id),
            Text(escaped(hold.agent, 64), "bold"),
            Text(hold.run),
            amount_text("credits", hold.credits) if hold.credits else "-",
            f"{hold.tokens:,}" if hold.tokens else "-",
            Text(", ".join(amount_text(unit, amount) for unit, amount in hold.claimed.items()) or "-", "red"),
            Text(f"{hold.hour}Z", "dim"),
            Text(escaped(" ".join(dict.fromkeys((hold.why, hold.model))).strip(), 200)),
        ]
        for hold in holds
    ]
    return Rows(names, rows, left=3, gives_way="for")


def _print_audit(audit: LedgerAudit) -> None:
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
        rest = f", {amount_text(unit, spent - told)} of that by runs that are pruned" if spent > told else ""
        console.print(Text(f"{unit}: {amount_text(unit, spent)} spent of the account{rest}", "dim"))

"""`remit limits`: the use of a team's limits."""

import asyncio

from rich.text import Text

from remit.cli.loading import load_team
from remit.cli.options import AsJson, OwnStore, emit, out
from remit.cli.terminal import tabled
from remit.core.limits import LimitUse
from remit.core.money import spelled
from remit.core.times import iso
from remit.report import wire
from remit.report.printable import escaped
from remit.settings import Serving


def limits(runtime: str = "", *, store: OwnStore = None, json: AsJson = False) -> None:
    """Show the usage of a team's limits: money, tokens and tasks per hour, day, week or month.

    Parameters
    ----------
    runtime
        Team, as `module:name` or a file. [default: remit.toml]
    store
        Read this SQLite file or postgresql:// URL instead of the team's own store.
    json
        Print JSON. Credits are in millionths of a US dollar.
    """
    with load_team(runtime, runs=False).runtime.at(store, serving=Serving(concurrency=0)) as team:
        found = asyncio.run(team.workspace.money.limits())
    if json:
        emit([wire.limit_use(use) for use in found])
    elif not found:
        out().print(Text("this team has no limits; Policy(limits=[...]) or [[limits]] in its file sets them", "dim"))
    else:
        out().print(tabled(("of", "limit", "used", "held", "left", "room again"), [_row(use) for use in found], left=2))


def _row(use: LimitUse) -> list[Text | str]:
    unit = use.unit
    amounts = [_spelled(unit, amount) for amount in (use.used, use.held, use.left)]
    if not use.held:
        amounts[1] = "-"
    room = f"{iso(use.room_at)[:16]}Z" if use.room_at is not None else "-"
    allowed = f"{_spelled(unit, use.most)} {use.limit.each}"
    return [Text(escaped(str(use.metered), 80), "bold"), allowed, *amounts, Text(room, "red" if room != "-" else "dim")]


def _spelled(unit: str, amount: int) -> str:
    if unit == "credits":
        return spelled("credits", amount)
    return f"{amount:,} {unit}" if amount != 1 else f"1 {unit[:-1]}"

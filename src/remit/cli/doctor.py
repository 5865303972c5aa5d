"""`remit doctor`: verify that a store keeps what it promises."""

import asyncio

from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out, where_is
from remit.engine.upkeep.doctor import Health, examine
from remit.report import wire
from remit.report.figures import count


def doctor(*, place: Where = HERE, json: AsJson = False) -> int:
    """Verify the invariants of a store and say what is wrong.

    Checks the database itself, the hash chain of the journal, that the journal folds to the tables, and that every
    task began once and ended at most once. Exits with 1 if something is broken.

    Parameters
    ----------
    json
        Print JSON instead.
    """
    with opened(place) as workspace:
        where = where_is(workspace.database)
        health = asyncio.run(examine(workspace.database, workspace.clock.now()))
    if json:
        emit({"sound": health.sound, **wire.named(health)})
    else:
        _print(health, where)
    return 0 if health.sound else 1


def _print(health: Health, where: str) -> None:
    console = out()
    for finding in health.findings:
        colour = "red" if finding.level == "broken" else "yellow"
        scope = f"[{finding.workspace}] " if finding.workspace else ""
        console.print(Text.assemble((f"{finding.level}: ", colour), f"{scope}{finding.sentence}"))
    entries = "1 entry" if health.entries == 1 else f"{health.entries:,} entries"
    figures = ", ".join(
        (count(health.events, "event"), count(health.tasks, "task"), entries, count(health.messages, "message"))
    )
    word, colour = ("sound", "green") if health.sound else ("broken", "red")
    console.print(Text.assemble((f"{where} is {word}", colour), (f"  {figures}", "dim")))

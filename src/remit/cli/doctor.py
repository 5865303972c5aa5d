"""`remit doctor`: verify the integrity of a store."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, nullcontext

from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, aside, emit, must_be_local, opened_workspace, out
from remit.core.events import KEYED
from remit.core.values import shown
from remit.engine.upkeep.doctor import Health, Tell, examine
from remit.errors import BadInput
from remit.report import wire
from remit.report.figures import count
from remit.report.printable import block, escaped
from remit.runtime.workspace import opening_of


def doctor(*, place: Where = HERE, head: str = "", json: AsJson = False) -> int:
    """Verify the integrity of a store and report every problem.

    Checks the database file, the schema, the hash chain of the journal, the states of all tasks, and the tables against
    the journal. Exits with 1 if something is broken.

    Parameters
    ----------
    head
        Check that this event hash, from an earlier `remit doctor`, is still in the journal. If it is, no earlier event
        has changed.
    json
        Print JSON.
    """
    kept = _hash(head)
    must_be_local(place, "doctor")
    with opened_workspace(place) as workspace:
        where = workspace.where
        with _telling() as tell:
            health = asyncio.run(
                examine(opening_of(workspace).database, opening_of(workspace).clock.now(), kept=kept, tell=tell)
            )
    if json:
        emit({"sound": health.sound, **wire.object_of(health)})
    else:
        show_health(health, where)
    return 0 if health.sound else 1


@contextmanager
def _telling() -> Generator[Tell]:
    """Yield a function that shows the progress of `examine`. Without a terminal, the function does nothing."""
    console = aside()
    with console.status("the database itself", spinner="line") if console.is_terminal else nullcontext() as status:

        def tell(workspace: str, event: int, of: int) -> None:
            if status is not None:
                status.update(Text(f"{escaped(workspace, 64)}: event {event:,} of {of:,}", "dim"))

        yield tell


def _hash(given: str) -> str:
    """Return the hash in a line that `remit doctor` printed, without the number before the hash; "" for an empty line.
    Raise `BadInput` if the line has no hash."""
    found = given.strip().lower().rpartition(" ")[2]
    mark, _, plain = found.rpartition("-")
    hexadecimal = len(plain) == 64 and not set(plain) - set("0123456789abcdef")
    if given and not (hexadecimal and (not mark or mark.startswith(KEYED.rstrip("-")))):
        raise BadInput(f"--head takes the hash that `remit doctor` prints, not {shown(given)}")
    return found


def show_health(health: Health, where: str) -> None:
    """Print the findings about the store."""
    console = out()
    for finding in health.findings:
        colour = "red" if finding.level == "broken" else "yellow"
        scope = f"[{escaped(finding.workspace, 64)}] " if finding.workspace else ""
        console.print(Text.assemble((f"{finding.level}: ", colour), f"{scope}{block(finding.sentence)}"))
    entries = "1 entry" if health.entries == 1 else f"{health.entries:,} entries"
    figures = ", ".join(
        (count(health.events, "event"), count(health.tasks, "task"), entries, count(health.messages, "message"))
    )
    word, colour = ("OK", "green") if health.sound else ("broken", "red")
    console.print(Text.assemble((f"{where}: {word}", colour), (f"  {figures}", "dim")))
    for workspace, head in health.heads.items():
        console.print(Text(f"head of {escaped(workspace, 64)}: {head.seq} {escaped(head.hash, 100)}", "dim"))
    for sentence in health.advice:
        aside().print(Text.assemble(("advice: ", "yellow"), block(sentence)))

"""What a piece of code did to its turn beside its result: what it took in, saw and wrote.

A later attempt that finds the result on record skips the code. It then applies the marks, so that the turn is labelled
as if the code had run: otherwise a crash would make untrusted text trusted.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from remit.core.receipt import Slice
from remit.core.trust import TRUSTED
from remit.core.values import Json
from remit.engine.attempt.live import LiveTask

_NOTHING: Final = frozenset[tuple[str, str, int]]()


class Before(NamedTuple):
    """What the turn had seen and written when the code began."""

    saw: frozenset[tuple[str, int, str]]
    wrote: frozenset[tuple[str, str, int]]


def before(live: LiveTask) -> Before:
    """Note where the turn stands."""
    return Before(frozenset(live.receipt.saw), _written(live))


def marks(live: LiveTask, then: Before) -> dict[str, Json]:
    """Return what has come since, as it is recorded; empty if nothing has."""
    found: dict[str, Json] = {}
    if live.took != TRUSTED:
        found["took"] = live.took
    if saw := [[*part] for at, part in live.receipt.saw.items() if at not in then.saw]:
        found["saw"] = cast("Json", saw)
    if wrote := sorted(_written(live) - then.wrote):
        found["wrote"] = cast("Json", [[*one] for one in wrote])
    return found


def apply(live: LiveTask, marks: dict[str, Any]) -> None:
    """Do to the turn what the code did that is skipped now."""
    if not marks:
        return
    live.take(marks.get("took", TRUSTED))
    live.receipt.beside(Slice(*part) for part in marks.get("saw", ()))
    for namespace, key, version in marks.get("wrote", ()):
        live.has_written(namespace, key, version)


def _written(live: LiveTask) -> frozenset[tuple[str, str, int]]:
    return frozenset((*where, version) for where, version in live.wrote.items()) if live.wrote else _NOTHING

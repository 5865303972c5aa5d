"""What each event adds to the figures of its run."""

from collections.abc import Callable
from typing import Final, NamedTuple, cast

from remit.core import lifecycle
from remit.core.events import Event
from remit.core.kinds import SPENDS, FirstData, read, spent_in


class Count(NamedTuple):
    """What an event adds to the row of its run. `members` is text that is appended: the name of who joins it.

    The root itself is not counted: a run has no row until something else happens in it.
    """

    members: str = ""
    tasks: int = 0
    handoffs: int = 0
    tokens: int = 0
    refusals: int = 0
    credits: int = 0
    requests: int = 0


ONE_TASK: Final = Count(tasks=1)
_ONE_REFUSAL: Final = Count(refusals=1)
_ONE_REQUEST: Final = Count(requests=1)


def _counts_task(event: Event) -> Count | None:
    data = read(event, FirstData)
    if not data["parent"]:
        return None
    return Count(f" {event.agent}", 1) if data.get("joins") else ONE_TASK


def _counts_handoff(event: Event) -> Count:
    """Going out in parts and joining them is one handoff, which is counted when it goes out."""
    to, more = event.data["to"], cast("int", event.data.get("more_refused", 0))
    joins = isinstance(to, str) and event.data.get("joins")
    return Count(f" {to}" if joins else "", 0, 0 if event.data.get("of_parts") else 1, 0, more)


def _counts_cost(event: Event) -> Count | None:
    spent = spent_in(event)
    return Count(tokens=spent.tokens, credits=spent.credits) if any(spent) and event.run else None


def _counts_unrecorded(event: Event) -> Count | None:
    """Refusals beyond those that are recorded one by one count when the turn ends."""
    more = event.data.get("more_refused")
    return Count(refusals=cast("int", more)) if more else None


def _counts_refusal(event: Event) -> Count | None:
    return _ONE_REFUSAL if event.run else None  # a stranger is refused before there is a run


def _counts_request(_event: Event) -> Count:
    """Whoever asks a model asks once, whether it answers or not."""
    return _ONE_REQUEST


COUNTS: Final[dict[str, Callable[[Event], Count | None]]] = {
    "task.submitted": _counts_task,
    "task.started": _counts_task,
    "task.handed": _counts_handoff,
    "hop.refused": _counts_refusal,
    "model.answered": _counts_request,
    "model.failed": _counts_request,
    **dict.fromkeys(sorted(SPENDS), _counts_cost),
    **dict.fromkeys(("task.retrying", *sorted(lifecycle.ENDS)), _counts_unrecorded),
}


def counted(event: Event) -> Count | None:
    """Tell what an event adds to the figures of its run."""
    counts = COUNTS.get(event.kind)
    return counts(event) if counts is not None else None

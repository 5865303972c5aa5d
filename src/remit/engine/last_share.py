"""The last share of a run's money and tokens: only the run's first task can spend it, so that a limit ends in an answer
with what was found. Imported when half of a run's money is used."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.core.bounds import Bounds
from remit.core.events import read
from remit.core.kinds.money import HoldPlaced
from remit.core.money import Lease, Short, amount_text, figures
from remit.ports import Span, View

LAST_WORD: Final = (
    "The money of this run is sure to pay for one more answer only. Answer now with what was found, "
    "and say what is missing."
)


class KeptBack(NamedTuple):
    """The reason against a payment that would use the last share. `for_good` says that waiting for other holds would
    not help."""

    sentence: str
    for_good: bool


def kept_back(view: View, told: Bounds | None, lease: Lease, wanted: int, own: int = 0) -> KeptBack | None:
    """Return why a subtask may not pay this amount from the run's lease: it would use the last share, which is reserved
    for the run's first task. Return None if the share is not touched. `told` is the share that the policy sets."""
    share = last_share(view, told, lease)
    if lease.available - wanted >= share:
        return None
    never = wanted > lease.granted - lease.spent - own - share
    what = figures(Short(lease, wanted, never), lease.id)
    return KeptBack(f"{what}, of which {amount_text(lease.unit, share)} are kept for its last answer", never)


def last_share(view: View, told: Bounds | None, lease: Lease) -> int:
    """Return the last share of a run's lease: the result of `share_of`, but at most half of the lease."""
    return min(share_of(view, told, lease), lease.granted // 2)


def share_of(view: View, told: Bounds | None, lease: Lease) -> int:
    """Return the last share of a run that has enough money: as the policy says, or the highest amount that was held for
    an answer of its first holder's model."""
    if told is not None:
        return (told.credits if lease.unit == "credits" else told.tokens) or 0
    return max(_answers(view, lease), default=0)


def _answers(view: View, lease: Lease) -> list[int]:
    events = view.events(Span(run=lease.id, task=lease.id))
    placed = [read(event, HoldPlaced) for event in events if event.kind == "hold.placed"]
    return [data["amounts"].get(lease.unit, 0) for data in placed if data.get("model")]

"""Keys and models that rest after a failure: for how long, and longer each time."""

from typing import Final, NamedTuple

from remit.core.recovery.failures import LASTING, FailureKind, ModelFailure
from remit.core.times import DAY, HOUR, SECOND

MINUTE: Final = 60 * SECOND
FORGET: Final = DAY  # after the end of a rest; then the next failure is the first again
LONGEST_REST: Final = HOUR  # whatever a server says: one absurd header must not stop a team for days

# A minute at first for every kind: the owner of an account may pay the bill, or grant the right, at any moment.
_STEPS: Final = (MINUTE, 5 * MINUTE, 25 * MINUTE, 60 * MINUTE)
RESTS: Final[dict[FailureKind, tuple[int, ...]]] = dict.fromkeys(("rate-limit", "billing", "auth", "forbidden"), _STEPS)
# They say something about the request, or about the model's name, and nothing about whether to ask again.
_NO_REST: Final[frozenset[FailureKind]] = frozenset(("overflow", "rejected", "not-found", "no-key"))


class Cooling(NamedTuple):
    """Whether a key or a model may be asked: it rests until `until`, after so many failures of one kind in a row.
    `used` is when it was last asked; of several keys the one that was used longest ago is asked first."""

    failures: int = 0
    until: int = 0
    kind: FailureKind | None = None
    used: int = 0


FRESH: Final = Cooling()


def after(cooling: Cooling, failure: ModelFailure, now: int) -> Cooling:
    """Count a failure, and rest if it calls for that. One that is told while it rests already, of a request that was
    under way, is not counted; it can only make the rest longer."""
    used = cooling._replace(used=now)
    if failure.kind in _NO_REST:
        return used
    failures = _count(cooling, failure.kind, now)
    until = now + _rest(failure, failures)
    return used if until <= max(now, cooling.until) else Cooling(failures, until, failure.kind, now)


def cleared(now: int) -> Cooling:
    """Forget all failures: it has answered."""
    return Cooling(used=now)


def _count(cooling: Cooling, kind: FailureKind, now: int) -> int:
    if cooling.kind != kind or now >= cooling.until + FORGET:
        return 1
    return cooling.failures if now < cooling.until else cooling.failures + 1


def _rest(failure: ModelFailure, failures: int) -> int:
    steps = RESTS.get(failure.kind)
    usual = steps[min(failures, len(steps)) - 1] if steps else 0
    if failure.retry_after is None:
        return usual
    wanted = min(max(failure.retry_after, 0), LONGEST_REST)
    # A provider that says how long knows better than a table; but when to call again does not pay a bill.
    return max(usual, wanted) if failure.kind in LASTING else wanted

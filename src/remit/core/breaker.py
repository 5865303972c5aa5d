"""The circuit breaker, as a value: whether an agent that keeps failing may be called again.

A closed breaker admits every task. After several failures in a row it opens and admits none for a while. Then it is
half-open: it admits exactly one task, the probe, whose outcome closes or reopens it. A probe that never reports
expires. So every state ends by itself, except the one that an operator set.
"""

from datetime import datetime
from typing import Final, Literal

from remit.core.records import NamedTuple
from remit.core.times import SECOND, aware

BreakerState = Literal["closed", "open", "half-open"]
Admits = Literal["yes", "probe", "no"]

UNTIL_RESET: Final = 2**62

# state -> what may happen -> state after it; the diagram in the docs is drawn from it
TRANSITIONS: Final[dict[BreakerState, dict[str, BreakerState]]] = {
    "closed": {"too many failures": "open", "tripped": "open"},
    "open": {"cooled off": "half-open", "tripped": "open", "reset": "closed"},
    "half-open": {
        "probe succeeded": "closed",
        "probe failed": "open",
        "probe expired": "half-open",
        "probe given back": "open",
        "tripped": "open",
        "reset": "closed",
    },
}


class BreakerPolicy(NamedTuple):
    """When a breaker opens and closes: the number of failures in a row that open it, the seconds until a probe is
    admitted, and the seconds after which a silent probe expires."""

    failures: int = 3
    cool_off: float = 60
    probe: float = 300


class Breaker(NamedTuple):
    """The breaker of one agent. `until` is the end of the cooldown, or the time when the probe expires, in microseconds
    since 1970; `UNTIL_RESET` if an operator opened it. `probe` is the id of the probing task. `why` is the error of the
    latest failure, or the reason of the operator."""

    state: BreakerState = "closed"
    failures: int = 0
    until: int = 0
    probe: str = ""
    why: str = ""

    @property
    def rests_until(self) -> datetime | None:
        """When the state changes by itself; None for a closed breaker and for one that only an operator can reset."""
        return None if self.state == "closed" or self.until == UNTIL_RESET else aware(self.until)

    def __repr__(self) -> str:
        return f"<Breaker {self.state}, failures {self.failures}{f': {self.why}' if self.why else ''}>"


CLOSED: Final = Breaker()


def admits(breaker: Breaker, now: int) -> Admits:
    if breaker.state == "closed":
        return "yes"
    return "probe" if now >= breaker.until else "no"


def probing(breaker: Breaker, policy: BreakerPolicy, task: str, now: int) -> Breaker:
    """Return the breaker with this task as its probe. Until the probe reports or expires, no other task is admitted."""
    return breaker._replace(state="half-open", until=now + _span(policy.probe), probe=task)


def succeeded(breaker: Breaker, task: str) -> Breaker:
    """Return the breaker after a success, which ends the row of failures. In the half-open state only the probe's
    success counts: other tasks started before the breaker opened."""
    if breaker.state == "closed" or (breaker.state == "half-open" and breaker.probe == task):
        return CLOSED
    return breaker


def failed(breaker: Breaker, policy: BreakerPolicy, task: str, why: str, now: int) -> Breaker:
    failures = breaker.failures + 1
    match breaker.state:
        case "closed" if failures < policy.failures:
            return breaker._replace(failures=failures, why=why)
        case "half-open" if breaker.probe != task:
            return breaker
        case "open":
            return breaker  # it started before the breaker opened, so its outcome is no news
        case _:
            return Breaker("open", failures, now + _span(policy.cool_off), "", why)


def given_back(breaker: Breaker, task: str, now: int) -> Breaker:
    """Return the breaker ready for another probe, if `task` was the probe and ended or was requeued without an outcome.
    Otherwise return it unchanged."""
    if breaker.state == "half-open" and breaker.probe == task:
        return breaker._replace(state="open", until=now, probe="")
    return breaker


def tripped(breaker: Breaker, why: str) -> Breaker:
    """Return a breaker that an operator opened. It stays open until an operator resets it."""
    return Breaker("open", breaker.failures, UNTIL_RESET, "", why)


def sentence(name: str, breaker: Breaker, now: int, *, person: bool = False) -> str:
    """Return the refusal: why the agent cannot be called and what to do instead. A person can reset the breaker; an
    agent can only ask another agent."""
    reset = f"reset it with `remit breaker reset {name}`"
    if breaker.state == "half-open":
        tried = f"'{name}' failed {breaker.failures} times in a row and is being tried again"
        return f"{tried}; wait for that, or {reset}" if person else f"{tried}; ask someone else meanwhile"
    if breaker.until == UNTIL_RESET:
        return f"'{name}' was taken out by an operator: {breaker.why}; {reset if person else 'ask someone else'}"
    left = -((now - breaker.until) // SECOND)  # rounded up: a caller that waits this long is not refused again
    resting = f"'{name}' failed {breaker.failures} times in a row and is paused for {left} s"
    if not person:
        return f"{resting}; ask someone else"
    return f"{resting}; try again then, or {reset}"


def mermaid() -> str:
    """Return the transition table as a state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> closed"]
    for state, moves in TRANSITIONS.items():
        lines += [f"    {_word(state)} --> {_word(to)}: {what}" for what, to in moves.items()]
    return "\n".join(lines) + "\n"


def _span(seconds: float) -> int:
    return round(seconds * SECOND)


def _word(state: BreakerState) -> str:
    return state.replace("-", "_")

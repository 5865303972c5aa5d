"""The circuit breaker, as a value: whether something that keeps failing may be tried again.

Closed lets everything through. Some failures in a row open it: nothing goes through for a while. Then it is
half-open: exactly one probe goes through, and what becomes of it decides. A probe that never reports expires, so no
state is for ever, except the one an operator chose.
"""

from datetime import datetime
from typing import Final, Literal, NamedTuple

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
    """How many failures in a row open a breaker, for how many seconds it then rests, and how many a probe has to
    report."""

    failures: int = 3
    cool_off: float = 60
    probe: float = 300


class Breaker(NamedTuple):
    """Whether one agent may be asked. `until` is when the cool-off ends, or when the probe expires; `probe` is the
    task that is trying."""

    state: BreakerState = "closed"
    failures: int = 0
    until: int = 0
    probe: str = ""
    why: str = ""

    @property
    def rests_until(self) -> datetime | None:
        """Until when it stays as it is; None for one that is closed, or that an operator must reset."""
        return None if self.state == "closed" or self.until == UNTIL_RESET else aware(self.until)

    def __repr__(self) -> str:
        return f"<Breaker {self.state}, failures {self.failures}{f': {self.why}' if self.why else ''}>"


CLOSED: Final = Breaker()


def admits(breaker: Breaker, now: int) -> Admits:
    if breaker.state == "closed":
        return "yes"
    return "probe" if now >= breaker.until else "no"


def probing(breaker: Breaker, policy: BreakerPolicy, task: str, now: int) -> Breaker:
    """Let one task through to try; until it reports or expires, no other is let through."""
    return breaker._replace(state="half-open", until=now + _span(policy.probe), probe=task)


def succeeded(breaker: Breaker, task: str) -> Breaker:
    """Count a success, which ends the row of failures. While half-open only the probe's counts: others began before."""
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
            return breaker  # it began before the breaker opened and says nothing new
        case _:
            return Breaker("open", failures, now + _span(policy.cool_off), "", why)


def given_back(breaker: Breaker, task: str, now: int) -> Breaker:
    """Let another one probe: this one ended, or was put back, without telling anything about the agent."""
    if breaker.state == "half-open" and breaker.probe == task:
        return breaker._replace(state="open", until=now, probe="")
    return breaker


def tripped(breaker: Breaker, why: str) -> Breaker:
    """Open a breaker on an operator's word, until an operator resets it."""
    return Breaker("open", breaker.failures, UNTIL_RESET, "", why)


def sentence(name: str, breaker: Breaker, now: int, *, person: bool = False) -> str:
    """Say why the agent is not asked, and what to do instead: a person can reset its breaker, an agent can ask someone
    else."""
    reset = f"reset it with `remit breaker reset {name}`"
    if breaker.state == "half-open":
        tried = f"'{name}' failed {breaker.failures} times in a row and is being tried again"
        return f"{tried}; wait for that, or {reset}" if person else f"{tried}; ask someone else meanwhile"
    if breaker.until == UNTIL_RESET:
        return f"'{name}' was taken out by an operator: {breaker.why}; {reset if person else 'ask someone else'}"
    left = -((now - breaker.until) // SECOND)  # rounded up: who waits that long is not refused again
    resting = f"'{name}' failed {breaker.failures} times in a row and rests for {left} s more"
    if not person:
        return f"{resting}; ask someone else"
    return f"{resting}; try again then, or {reset}"


def mermaid() -> str:
    """Draw the table as a state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> closed"]
    for state, moves in TRANSITIONS.items():
        lines += [f"    {_word(state)} --> {_word(to)}: {what}" for what, to in moves.items()]
    return "\n".join(lines) + "\n"


def _span(seconds: float) -> int:
    return round(seconds * SECOND)


def _word(state: BreakerState) -> str:
    return state.replace("-", "_")

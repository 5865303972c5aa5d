"""Tasks: their state machine as one table, their rows as immutable records, and their outcomes."""

from dataclasses import replace
from typing import Any, Final, Literal

from remit.core.records import NamedTuple, dataclass
from remit.core.remit import STAND_IN
from remit.core.trust import TRUSTED, Trust
from remit.core.values import Json, copied, line, shown
from remit.errors import BadInput, Conflict, Refused, RemitError

START: Final = ""

# state -> what may happen -> state after it
TRANSITIONS: Final[dict[str, dict[str, str]]] = {
    START: {
        "task.submitted": "pending",
        "task.started": "running",
    },
    "pending": {
        "task.claimed": "running",
        "task.resumed": "running",
        "task.retrying": "pending",  # it waited, another task took its slot, and the attempt timed out
        "task.released": "pending",
        "task.lost": "pending",
        "task.parked": "waiting",
        "task.fenced": "running",
        "task.cancelling": "cancelling",
        "task.cancelled": "cancelled",
        "task.failed": "failed",
        "task.died": "dead",
    },
    "running": {
        "task.claimed": "running",
        "task.handed": "running",
        "task.waiting": "waiting",
        "task.retrying": "pending",
        "task.released": "pending",
        "task.lost": "pending",
        "task.parked": "waiting",  # its process is gone, and it waits for a person's answer
        "task.fenced": "running",
        "task.cancelling": "cancelling",
        "task.cancelled": "cancelled",
        "task.completed": "completed",
        "task.failed": "failed",
        "task.died": "dead",
    },
    "waiting": {
        "task.claimed": "running",  # its process died while it waited, and its asker resumes it
        "task.resumed": "running",
        "task.queued": "pending",
        "task.released": "pending",
        "task.lost": "pending",
        "task.parked": "waiting",
        "task.fenced": "running",
        "task.cancelling": "cancelling",
        "task.cancelled": "cancelled",
        "task.failed": "failed",
        "task.died": "dead",
    },
    "cancelling": {
        "task.cancelled": "cancelled",
    },
    "completed": {},
    "failed": {},
    "cancelled": {},
    "dead": {},
}

BEGINNINGS: Final = frozenset(TRANSITIONS[START])
TERMINAL: Final = frozenset(state for state, moves in TRANSITIONS.items() if not moves)
GONE: Final = TERMINAL - {"completed"}  # may be requested again
OPEN: Final = frozenset(TRANSITIONS) - TERMINAL - {START}
MOVES: Final = frozenset(kind for moves in TRANSITIONS.values() for kind in moves)
_LANDS: Final = {kind: after for moves in TRANSITIONS.values() for kind, after in moves.items()}
QUEUES: Final = frozenset(kind for kind, after in _LANDS.items() if after == "pending")
ENDS: Final = frozenset(kind for moves in TRANSITIONS.values() for kind, after in moves.items() if after in TERMINAL)


def lands(kind: str) -> str:
    """Return the state that a move leads to. Each kind of move leads to one state, whatever the state before."""
    return _LANDS[kind]


def after(state: str, kind: str) -> str:
    """Return the state after a move. Raise `Conflict` if the table does not have the move."""
    try:
        return TRANSITIONS[state][kind]
    except KeyError:
        word = kind.removeprefix("task.")
        raise Conflict(f"a task that is {state or 'not there'} cannot be {word}") from None


_BOX: Final = ("pending", "running", "waiting")  # drawn as one box: a move of all three is one edge


def mermaid() -> str:
    """Return the table as a state diagram; several moves between the same two states are one edge."""
    shared = {
        kind: to
        for kind, to in TRANSITIONS[_BOX[0]].items()
        if to not in _BOX and all(kind in TRANSITIONS[state] for state in _BOX)
    }
    inside: list[str] = []
    outside: list[str] = []
    for state, moves in TRANSITIONS.items():
        boxed = state in _BOX
        for to, words in _merged({kind: to for kind, to in moves.items() if not boxed or kind not in shared}):
            (inside if boxed and to in _BOX else outside).append(f"    {state or '[*]'} --> {to}: {words}")
    outside += [f"    open --> {to}: {words}" for to, words in _merged(shared)]
    outside += [f"    {state} --> [*]" for state in TRANSITIONS if state in TERMINAL]
    box = ["    state open {", *(f"    {line}" for line in inside), "    }"]
    return "\n".join(["stateDiagram-v2", *box, *outside]) + "\n"


def _merged(moves: dict[str, str]) -> list[tuple[str, str]]:
    words: dict[str, list[str]] = {}
    for kind, to in moves.items():
        words.setdefault(to, []).append(kind.removeprefix("task."))
    return [(to, ", ".join(kinds)) for to, kinds in words.items()]


class Record(NamedTuple):
    """A row of the task table. The task's text and bounds are in event number `began`, its result in event number
    `ended`.

    `asked_how` is delegate, submit, spawn, or async (submitted, and the asker gets a result message). `led_as` says
    that the engine runs a plan or leads a team in its holder's place. `worker` runs it, under the fencing token
    `fence`. `attempt` counts how often it was claimed, `failures` how often it failed and was requeued, `losses` how
    many processes died with it. `dedup_key` is equal for equal requests. `origin` is the first task of its retry
    lineage; work that any of them finished is reused. `purse` is the path along which it pays, as JSON; empty if no
    budget applies.
    """

    id: str
    run: str
    parent: str
    session: str
    holder: str
    state: str
    asked_how: str
    led_as: str
    worker: str
    fence: int
    attempt: int
    failures: int
    asked_at: int
    ready_at: int
    claimed_at: int | None
    until: int
    ended_at: int | None
    began: int
    ended: int | None
    dedup_key: str
    origin: str
    losses: int = 0
    purse: str = ""
    priority: int = 0

    @property
    def led_by_program(self) -> bool:
        """Whether a program leads the plan itself, so that no other process can continue it."""
        return self.led_as != "" and self.asked_how == "delegate" and not self.parent


class Standing(NamedTuple):
    """The fields of a task that every write in its name is checked against, and that its end depends on."""

    state: str
    fence: int
    failures: int
    asked_how: str
    purse: str = ""
    ties: int = 0  # open holds and open questions

    @property
    def is_rerun(self) -> bool:
        """Whether there was an earlier attempt. The fence tells: a release lowers `attempt` again but never the
        fence."""
        return self.fence > 1 or self.failures > 0


class RunFacts(NamedTuple):
    """The totals of a run, its root included. `members` are the names of all agents that held one of its tasks. The
    task that leads a plan for a person is no member."""

    id: str
    members: frozenset[str]
    tasks: int
    handoffs: int
    tokens: int
    refusals: int
    credits: int = 0
    requests: int = 0  # to models


NO_RUN = RunFacts("", frozenset(), 0, 0, 0, 0)


def first_members(agent: str, led_as: str) -> frozenset[str]:
    """Return the members of a run that has just started: its first agent, or none if `led_as` says that the engine
    leads a plan for a person."""
    return frozenset() if led_as == STAND_IN else frozenset((agent,))


PROGRESS_LIMIT: Final = 200  # characters


class Progress(NamedTuple):
    """How far a running task is, as its agent says: a text, and the done part from 0 to 1, or None. `at` is the time of
    the report."""

    task: str
    agent: str
    text: str
    fraction: float | None
    at: int

    @property
    def data(self) -> dict[str, Json]:
        """Its content as JSON, for the end of a task that did not complete."""
        return {"text": self.text, "fraction": self.fraction}

    def __str__(self) -> str:
        return progress_text(self.text, self.fraction)


def progress_of(task: str, agent: str, text: object, fraction: object, at: int) -> Progress:
    """Return a report of progress. Raise `BadInput` for a text of several lines, or a fraction that is not from 0 to
    1."""
    said = line(text, "the text of progress", PROGRESS_LIMIT)
    if fraction is None:
        return Progress(task, agent, said, None, at)
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        raise BadInput(f"fraction is a number from 0 to 1, the part that is done, not {shown(fraction)}")
    return Progress(task, agent, said, float(fraction), at)


def progress_line(text: str) -> str:
    """Return any text as one line that a report of progress can have: the beginning, if it is too long."""
    said = " ".join(text.replace("\0", "").split())
    return said if len(said) <= PROGRESS_LIMIT else f"{said[: PROGRESS_LIMIT - 1]}…"


def progress_text(text: str, fraction: float | None) -> str:
    """Return text such as "3 of 10 (30 %)". A part that is not all is never shown as 100 %."""
    return text if fraction is None else f"{text} ({int(fraction * 100 + 1e-9)} %)"


OutcomeState = Literal["completed", "failed", "timed-out", "cancelled", "dead", "refused"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a task: a value or an error.

    `agent` is the agent that was called; `by` is the agent that returned the result, if the task was handed over. `id`
    is the task id; empty for a refused call. `trust` is the label of the result: untrusted if the agent had read
    untrusted input.
    """

    agent: str
    id: str
    state: OutcomeState
    value: Json = None
    error: RemitError | None = None
    by: str = ""
    trust: Trust = TRUSTED

    @property
    def ok(self) -> bool:
        """Whether the task completed."""
        return self.state == "completed"

    @property
    def rule(self) -> str:
        """The rule that refused the call; empty if none did."""
        return self.error.rule if isinstance(self.error, Refused) else ""

    def as_asked(self, agent: str) -> "Outcome":
        """Return the outcome with `agent` as the called agent, and the agent of this outcome as `by`."""
        return Outcome(agent, self.id, self.state, self.value, self.error, self.agent, self.trust)

    def copied(self) -> "Outcome":
        """Return the outcome with a copy of its value, which can be changed freely."""
        return replace(self, value=copied(self.value)) if isinstance(self.value, list | dict) else self

    def unwrap(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error.with_traceback(None)  # without the frames of an earlier raise
        return self.value

    def __str__(self) -> str:
        return f"{self.agent}: {self.value if self.ok else self.error}"

    def __repr__(self) -> str:
        what = shown(self.value) if self.ok else str(self.error)
        return f"<Outcome of '{self.agent}', task {self.id}, {self.state}: {what}>"

"""Commands: an agent hands its task over instead of returning a result. The data of a handoff is checked here."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from remit.core import scope
from remit.core.allow import NONE, Names, NamesGiven
from remit.core.bounds import TOP, Bounds
from remit.core.checks import of_type
from remit.core.records import NamedTuple, dataclass
from remit.core.scope import NOTHING, Sees, SeesGiven
from remit.core.toolgroups import tools
from remit.core.values import (
    TASK_LIMIT,
    Json,
    canonical,
    checked,
    copied,
    digest,
    encode,
    must_fit,
    plain,
    shown,
    with_data,
)
from remit.errors import BadInput

STATE_LIMIT = 262_144


class End(Enum):
    END = "END"

    def __repr__(self) -> str:
        return "END"


END: Final = End.END

Update: TypeAlias = Mapping[str, Any]
_LISTS: Final = ("completed", "remaining")
_WORDS: Final = ("phase", "next_phase")
_MAPS: Final = ("context", "artifacts")
_FIGURES: Final = ("tokens", "seconds", "credits", "retries")
_KNOWN: Final = frozenset((*_MAPS, *_WORDS, *_LISTS, "metrics"))


@dataclass(frozen=True, slots=True)
class Send:
    """One part of a parallel handoff: an agent and its payload, as text or JSON. `data` is a JSON value next to a text.
    The agent reads either value as `turn.data`."""

    agent: str
    payload: Json
    data: Json = None

    if TYPE_CHECKING:  # what callers may pass: any object that has a form in JSON

        def __init__(self, agent: str, payload: object, data: object = None) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "agent", canonical(self.agent))
        object.__setattr__(self, "payload", checked(self.payload, "a payload", TASK_LIMIT))
        if self.data is not None:
            object.__setattr__(self, "data", checked(self.data, "data", TASK_LIMIT))
            plain(self.payload, "a payload with data next to it", TASK_LIMIT)
        plain(self.task, "a payload", TASK_LIMIT)  # it becomes a task, and a task must not be empty

    @property
    def task(self) -> str:
        return self._parts[0]

    @property
    def value(self) -> str | None:
        """The value as JSON text, with which `task` ends; None if the payload is only text."""
        return self._parts[1] or None

    @property
    def _parts(self) -> tuple[str, str]:
        if isinstance(self.payload, str):
            return (self.payload, "") if self.data is None else with_data(self.payload, self.data)
        return ("null", "") if self.payload is None else with_data("", self.payload)


@dataclass(frozen=True, slots=True)
class Command:
    """A handoff: the agent that takes the task over, and the data that goes with it. An agent returns it instead of a
    result.

    `goto` is an agent, `END`, or a list of `Send`. `update` may have `context` and `artifacts` (merged), `phase` and
    `next_phase`, `completed` and `remaining` steps, and `metrics` (`tokens`, `seconds`, `credits` in millionths of a
    dollar, `retries`; added up). remit counts the first three itself: set them only for work that remit cannot see.
    Every other key goes into `context`. After a parallel handoff the results go to `join`, or back to the sender.
    `result` is the task's result at `END`.

    The new holder gets the rights that were passed to the task by name, and `sees`, `writes` and `tools` as far as the
    sender has them. `within` narrows the bounds from here on.
    """

    goto: "str | End | Sequence[Send]"
    update: Update = field(default_factory=dict[str, Json])
    join: str = ""
    result: Json = None
    sees: Sees = NOTHING
    writes: Sees = NOTHING
    tools: Names = NONE
    within: Bounds = TOP

    if TYPE_CHECKING:  # what callers may pass; stored in one normal form

        def __init__(
            self,
            goto: "str | End | Sequence[Send]",
            update: Update | None = None,
            join: str = "",
            result: object = None,
            *,
            sees: SeesGiven = NOTHING,
            writes: SeesGiven = NOTHING,
            tools: NamesGiven = NONE,
            within: Bounds = TOP,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "goto", _goto(self.goto))
        put(self, "update", checked_update(self.update))
        put(self, "join", canonical(self.join) if self.join else "")
        put(self, "result", checked(self.result, "a result"))
        if self.sees is not NOTHING:
            put(self, "sees", scope.passed(self.sees))
        if self.writes is not NOTHING:
            put(self, "writes", scope.passed(self.writes, "writes"))
        if self.tools is not NONE:
            put(self, "tools", tools(self.tools))
        of_type(self.within, Bounds, "within takes Bounds(...)")
        if self.join and not isinstance(self.goto, tuple):
            raise BadInput("join goes with a list of Send; a single handoff has nothing to join")
        if self.result is not None and self.goto is not END:
            raise BadInput("a result goes with goto=END; the next holder gives the result otherwise")

    @property
    def passes(self) -> bool:
        """Whether the command passes on context or tools, which the sender must have itself."""
        return bool(self.sees or self.writes or self.tools)


@dataclass(frozen=True, slots=True)
class HandoffState:
    """The merged updates of all handoffs of a task. Each turn gets a copy.

    `tokens`, `seconds` and `credits` are the usage of all holders so far, as remit counted it, or as the holder
    reported it in its metrics if that is more. `credits` are millionths of a dollar.
    """

    context: dict[str, Json] = field(default_factory=dict[str, Json])
    artifacts: dict[str, Json] = field(default_factory=dict[str, Json])
    phase: str = ""
    next_phase: str = ""
    completed: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    tokens: int = 0
    seconds: float = 0
    credits: int = 0
    retries: int = 0
    _text: str = field(default="", init=False, repr=False, compare=False)

    def copied(self) -> "HandoffState":
        """Return a copy that can be changed in place."""
        return replace(self, context=_object(self.context), artifacts=_object(self.artifacts))

    def data(self) -> dict[str, Json]:
        return {
            "context": {**self.context},
            "artifacts": {**self.artifacts},
            "phase": self.phase,
            "next_phase": self.next_phase,
            "completed": [*self.completed],
            "remaining": [*self.remaining],
            "tokens": self.tokens,
            "seconds": self.seconds,
            "credits": self.credits,
            "retries": self.retries,
        }

    @property
    def text(self) -> str:
        """The state as JSON. Cached: every handoff reads it."""
        if not self._text:
            object.__setattr__(self, "_text", encode(self.data()))
        return self._text


class Move(NamedTuple):
    """One handoff in a task's handoff history. `content` is a digest of the update, so two moves are equal if sender,
    recipient and update are."""

    sender: str
    to: str
    content: str


def merged(state: HandoffState, update: Update) -> HandoffState:
    """Return the state after an update. Raise `BadInput` if the result is too large; the old state is unchanged."""
    completed, remaining = state.completed, state.remaining
    if "completed" in update or "remaining" in update:
        completed = tuple(dict.fromkeys((*completed, *_strings(update, "completed"))))
        remaining = _without(_strings(update, "remaining") if "remaining" in update else remaining, completed)
    after = HandoffState(
        {**state.context, **_object(update["context"])} if "context" in update else state.context,
        {**state.artifacts, **_object(update["artifacts"])} if "artifacts" in update else state.artifacts,
        cast("str", update.get("phase", state.phase)),
        cast("str", update.get("next_phase", state.next_phase)),
        completed,
        remaining,
        *(_figures_after(state, update) if "metrics" in update else _FIGURES_OF(state)),
    )
    must_fit(after.text, "what is handed over", STATE_LIMIT)
    return after


_FIGURES_OF: Final[Callable[[HandoffState], tuple[int, float, int, int]]] = attrgetter(*_FIGURES)


def _figures_after(state: HandoffState, update: Update) -> tuple[int, float, int, int]:
    """Return the usage after an update. Raise `BadInput` for a number that is too large."""
    metrics = cast("dict[str, int]", update["metrics"])
    tokens, seconds, credits_, retries = _FIGURES_OF(state)
    after = (
        tokens + metrics.get("tokens", 0),
        round(seconds + metrics["seconds"], 6) if "seconds" in metrics else seconds,
        credits_ + metrics.get("credits", 0),
        retries + metrics.get("retries", 0),
    )
    checked(dict(zip(_FIGURES, after, strict=True)), "what is handed over")
    return after


class Measured(NamedTuple):
    """The usage of one turn, as remit counted it."""

    tokens: int = 0
    seconds: float = 0
    credits: int = 0


def with_figures(update: Update, measured: Measured) -> Update:
    """Return the update with the counted usage in its metrics. A higher figure that the holder reported wins: the
    holder may use something that remit cannot see."""
    stated = cast("dict[str, Any]", update.get("metrics", {}))
    more = {name: figure for name, figure in measured._asdict().items() if figure > stated.get(name, 0)}
    return {**update, "metrics": {**stated, **more}} if more else update


def move(sender: str, to: str, update: Update) -> Move:
    """Return the move of a handoff. Metrics are left out of its content, because they grow even when nothing else
    changes."""
    content = {key: value for key, value in update.items() if key != "metrics"} if "metrics" in update else update
    return Move(sender, to, digest(encode(content)))


def checked_update(given: object) -> Update:
    """Return the update as plain JSON, with each unknown key moved into its `context`. Raise `BadInput` that names the
    part that is wrong."""
    if not isinstance(given, Mapping):
        raise BadInput(f"an update is a mapping, not {shown(given)}")
    update = cast("Update", checked(dict(cast("Mapping[object, object]", given)), "update", STATE_LIMIT))
    for key, value in update.items():
        if key in _MAPS:
            if not isinstance(value, dict):
                raise BadInput(f"update.{key} is an object, not {shown(value)}")
        elif key in _WORDS:
            plain(value, f"update.{key}", 200, empty=True)
        elif key in _LISTS:
            _check_list(value, f"update.{key}")
        elif key == "metrics":
            _check_metrics(value)
    return _with_context(update) if update.keys() - _KNOWN else update


def _with_context(update: Update) -> Update:
    """Return the update with every unknown key moved into its context. Raise `BadInput` if the context has another
    value under such a key."""
    context = cast("dict[str, Json]", update.get("context", {}))
    own = {key: value for key, value in update.items() if key not in _KNOWN}
    if twice := sorted(key for key in own.keys() & context.keys() if encode(own[key]) != encode(context[key])):
        raise BadInput(
            f"update.{twice[0]} goes into update.context, which has another {shown(twice[0])}; give only one of them"
        )
    known = {key: value for key, value in update.items() if key in _KNOWN}
    return {**known, "context": {**context, **own}}


def _check_list(value: Json, where: str) -> None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadInput(f"{where} is a list of text, not {shown(value)}")


def _check_metrics(value: Json) -> None:
    if not isinstance(value, dict) or value.keys() - set(_FIGURES):
        raise BadInput(f"update.metrics has {', '.join(_FIGURES)}, not {shown(value)}")
    for name, figure in value.items():
        whole = name != "seconds"
        kinds = int if whole else (int, float)
        if isinstance(figure, bool) or not isinstance(figure, kinds) or figure < 0 or not math.isfinite(figure):
            raise BadInput(
                f"update.metrics.{name} is a {'whole ' if whole else ''}number of at least 0, not {shown(figure)}"
            )


def _goto(given: object) -> "str | End | tuple[Send, ...]":
    if given is END:
        return END
    if isinstance(given, str):
        return canonical(given)
    if isinstance(given, Send):
        return (given,)
    if isinstance(given, list | tuple):
        sends = cast("Sequence[object]", given)
        if not sends or not all(isinstance(send, Send) for send in sends):
            raise BadInput(f"goto is an agent, END, or a list of at least one Send, not {shown(sends)}")
        return tuple(cast("Sequence[Send]", sends))
    raise BadInput(f"goto is an agent, END, or a list of Send, not {shown(given)}")


def _object(value: Json) -> dict[str, Json]:
    """Return a copy of the object, because the caller may still change the original."""
    return cast("dict[str, Json]", copied(value))


def _strings(update: Update, key: str) -> tuple[str, ...]:
    return tuple(cast("list[str]", update.get(key, [])))


def _without(remaining: tuple[str, ...], completed: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(step for step in remaining if step not in completed)


def narrowed(command: Command, goto: str) -> Command:
    """Return the command with one agent as its `goto`, without `join` and result: the handoff that passes the results
    of the parts to a named agent."""
    return replace(command, goto=goto, join="", result=None)

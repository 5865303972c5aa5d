"""Events of models and tools: answers, failures, tool calls and cooldowns.

The text of an answer and the result of a tool call are not in the data: they are the recorded results of these
operations.
"""

from typing import Final, Literal, NotRequired, cast

from remit.core.events import Unsealed
from remit.core.records import TypedDict
from remit.core.recovery import Cooling, FailureKind, ModelFailure, ModelTry
from remit.core.remit import Remit
from remit.core.values import Json

ToolOutcome = Literal["done", "failed", "refused"]


class ModelAnswered(TypedDict):
    """The data of `model.answered`: the model that was asked, the name that its provider uses for it, the name of the
    key, how far the context was shortened, and the tools that the answer calls. `usage` is missing if the provider
    reported none, `cost` if the price is unknown. The cached parts of `usage` are parts of its `input`. `elapsed` is
    the time from sending the request to recording its answer, in microseconds. The first answer of a turn has
    `receipt`: what the turn has seen so far, and what was withheld from it. The operation's result has `text`, the
    answer as its framework writes it, `model` and `calls`."""

    model: str
    named: str
    calls: list[str]
    key: NotRequired[str]
    trim: NotRequired[int]
    usage: NotRequired[dict[str, int]]
    cost: NotRequired[int]
    elapsed: NotRequired[int]
    receipt: NotRequired[dict[str, Json]]


class ModelFailed(TypedDict):
    """The data of `model.failed`: the model that was asked and did not answer, the name of the key, and the kind of
    failure. `said` is the provider's message, or the address that did not answer. `elapsed` is the time of the request
    in microseconds; missing if none was sent."""

    model: str
    why: FailureKind
    key: NotRequired[str]
    trim: NotRequired[int]
    status: NotRequired[int]
    said: NotRequired[str]
    elapsed: NotRequired[int]


class ToolDone(TypedDict):
    """The data of `tool.done`: a tool, the id of its call and its arguments, shortened; whether the call succeeded,
    failed or was refused; the result that the model was given, shortened; the duration in microseconds; and, if the
    tool raised, the line of code where it did. `asks` is there if the call delegated to an agent: how often the run has
    made this request by now, how often in a row it had no new result, and digests of the latest answers. The
    operation's result begins with the whole text that the model was given, and the outcome."""

    tool: str
    call: str
    given: str
    outcome: ToolOutcome
    result: NotRequired[str]
    elapsed: NotRequired[int]
    place: NotRequired[str]
    asks: NotRequired[dict[str, list[Json]]]


class ModelWaiting(TypedDict):
    """The data of `model.waiting`: no model is available now, so the task waits for this one; for how many
    microseconds, and the number of this try of the request."""

    model: str
    wait: int
    number: int
    key: NotRequired[str]
    trim: NotRequired[int]


class ModelTold(TypedDict):
    """The data of `model.told`: the number of tool results that a program is about to send to its model, from tools
    that the program runs itself. They are recorded before the model is asked, so that a later attempt knows them even
    if there is no answer."""

    results: int


class ToolBegun(TypedDict):
    """The data of `tool.begun`: a tool that is about to run, the id of its call and its arguments, shortened. It is
    recorded for tools that must not run twice, so that a later attempt knows which of them may have run."""

    tool: str
    call: str
    given: str


class ToolUsed(TypedDict):
    """A tool call of a conversation: its arguments, shortened, and whether it was done, failed, or was started and may
    have been done."""

    tool: str
    given: str
    outcome: str


class TalkRestarted(TypedDict):
    """The data of `talk.restarted`: the turn whose conversation with its model restarts, why the recorded
    conversation cannot be continued, the number of its answers, and the tools that it used."""

    turn: str
    why: str
    positions: int
    tools: list[ToolUsed]


class SessionRecalled(TypedDict):
    """The data of `session.recalled`: a run whose model is given earlier runs of its session. `after` lists these runs,
    the oldest first: the id of each, and whether it is given as question and answer ("session") or with its tool calls
    ("whole")."""

    after: list[list[str]]


class CoolingSet(TypedDict):
    """The data of `cooling.set`: the cooldown of a model or a key: after how many failures of which kind, and until
    when. `used` is the time of the last request to it, and `by` the owner who cleared the cooldown, if one did."""

    name: str
    failures: int
    until: int
    kind: FailureKind | None
    used: int
    by: NotRequired[str]


def model_answered(remit: Remit, asked: ModelTry, data: dict[str, Json], now: int) -> Unsealed:
    return _of_task("model.answered", remit, now, {**_try_data(asked), **data})


def model_failed(remit: Remit, asked: ModelTry, failure: ModelFailure, now: int, elapsed: int = 0) -> Unsealed:
    data: dict[str, Json] = {**_try_data(asked), "why": failure.kind}
    if failure.status is not None:
        data["status"] = failure.status
    if failure.said:
        data["said"] = failure.said
    if elapsed:
        data["elapsed"] = elapsed
    return _of_task("model.failed", remit, now, data)


def model_waiting(remit: Remit, asked: ModelTry, number: int, now: int) -> Unsealed:
    return _of_task("model.waiting", remit, now, {**_try_data(asked), "wait": asked.wait, "number": number})


def model_told(remit: Remit, results: int, now: int) -> Unsealed:
    return _of_task("model.told", remit, now, {"results": results})


def tool_done(remit: Remit, data: ToolDone, now: int) -> Unsealed:
    return _of_task("tool.done", remit, now, cast("dict[str, Json]", data))


def tool_begun(remit: Remit, data: ToolBegun, now: int) -> Unsealed:
    return _of_task("tool.begun", remit, now, cast("dict[str, Json]", data))


def talk_restarted(remit: Remit, data: TalkRestarted, now: int) -> Unsealed:
    return _of_task("talk.restarted", remit, now, cast("dict[str, Json]", data))


def session_recalled(remit: Remit, after: list[list[str]], now: int) -> Unsealed:
    return _of_task("session.recalled", remit, now, {"after": cast("Json", after)})


def cooling_set(name: str, cooling: Cooling, now: int, by: str = "") -> Unsealed:
    """Return the event that sets a cooldown. It belongs to no run, because the next run needs the same cooldown. `by`
    is the owner who cleared it."""
    data: dict[str, Json] = {"name": name, **cooling._asdict()}
    if by:
        data["by"] = by
    return Unsealed("cooling.set", now, data)


def _try_data(asked: ModelTry) -> dict[str, Json]:
    data: dict[str, Json] = {"model": asked.model}
    if asked.key:
        data["key"] = asked.key
    if asked.trim:
        data["trim"] = asked.trim
    return data


def _of_task(kind: str, remit: Remit, now: int, data: dict[str, Json]) -> Unsealed:
    return Unsealed(kind, now, data, remit.root, remit.session, remit.id, remit.holder)


SHAPES: Final[dict[str, type]] = {
    "model.answered": ModelAnswered,
    "model.failed": ModelFailed,
    "model.waiting": ModelWaiting,
    "model.told": ModelTold,
    "tool.begun": ToolBegun,
    "talk.restarted": TalkRestarted,
    "tool.done": ToolDone,
    "session.recalled": SessionRecalled,
    "cooling.set": CoolingSet,
}

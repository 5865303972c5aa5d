"""Events of models and tools: what was answered and by whom, what failed and of what, and who rests after it.

What a model answered and what it was told of a tool are not in the data: they are the answers of these operations.
"""

from typing import Literal, NotRequired, TypedDict, cast

from remit.core.events import Unsealed
from remit.core.recovery import Cooling, FailureKind, ModelFailure, ModelTry
from remit.core.remit import Remit
from remit.core.values import Json

ToolOutcome = Literal["done", "failed", "refused"]


class ModelAnswered(TypedDict):
    """The data of `model.answered`: the model that was asked, what the provider calls it, the name of the key, how far
    the context was shortened, and the tools that the answer calls. `usage` is missing if nobody counted, `cost` if the
    price is not known. The answer has `text`, what the model said as its framework writes it, `model` and `calls`."""

    model: str
    named: str
    calls: list[str]
    key: NotRequired[str]
    trim: NotRequired[int]
    usage: NotRequired[dict[str, int]]
    cost: NotRequired[int]


class ModelFailed(TypedDict):
    """The data of `model.failed`: the model that was asked and did not answer, the name of the key, and why. `said` is
    what its provider wrote, or the address that did not answer."""

    model: str
    why: FailureKind
    key: NotRequired[str]
    trim: NotRequired[int]
    status: NotRequired[int]
    said: NotRequired[str]


class ToolDone(TypedDict):
    """The data of `tool.done`: a tool, the id of its call and what it was given, shortened; whether it was used, has
    failed or was refused; what its model was told, shortened; how long the tool took, in microseconds; and, if it
    raised, the line of code where it did. `asks` is there if it asked an agent for something: how often this was asked
    for in the run by now, how often in a row in vain, and what was answered of late. The answer begins with what the
    model was told, whole, and the outcome."""

    tool: str
    call: str
    given: str
    outcome: ToolOutcome
    result: NotRequired[str]
    elapsed: NotRequired[int]
    place: NotRequired[str]
    asks: NotRequired[dict[str, list[Json]]]


class ModelWaiting(TypedDict):
    """The data of `model.waiting`: no model can be asked now, so the task waits until this one can; for how many
    microseconds, and which try of this request it will be."""

    model: str
    wait: int
    number: int
    key: NotRequired[str]
    trim: NotRequired[int]


class ToolBegun(TypedDict):
    """The data of `tool.begun`: a tool that is about to be used, the id of its call and what it is given, shortened. It
    is recorded for tools that must not be used twice, so that a later attempt knows which may have been."""

    tool: str
    call: str
    given: str


class ToolUsed(TypedDict):
    """A tool that a conversation used, what it was given, shortened, and whether it was done, has failed, or was begun
    and may have been done."""

    tool: str
    given: str
    outcome: str


class TalkBegunAnew(TypedDict):
    """The data of `talk.begun_anew`: the turn whose conversation with its model begins again, why the record of the
    earlier one cannot be continued, how many answers it has, and the tools that it used."""

    turn: str
    why: str
    positions: int
    tools: list[ToolUsed]


class SessionRecalled(TypedDict):
    """The data of `session.recalled`: a run that is told what was said before in its session. `after` lists the earlier
    runs, the oldest first: the id of each, and whether it is told as it was said ("session") or "whole"."""

    after: list[list[str]]


class CoolingSet(TypedDict):
    """The data of `cooling.set`: a model or a key, after how many failures of which kind it rests, and until when."""

    name: str
    failures: int
    until: int
    kind: FailureKind | None
    used: int
    by: NotRequired[str]


def model_answered(remit: Remit, asked: ModelTry, data: dict[str, Json], now: int) -> Unsealed:
    return _of_task("model.answered", remit, now, {**_asked(asked), **data})


def model_failed(remit: Remit, asked: ModelTry, failure: ModelFailure, now: int) -> Unsealed:
    data: dict[str, Json] = {**_asked(asked), "why": failure.kind}
    if failure.status is not None:
        data["status"] = failure.status
    if failure.said:
        data["said"] = failure.said
    return _of_task("model.failed", remit, now, data)


def model_waiting(remit: Remit, asked: ModelTry, number: int, now: int) -> Unsealed:
    return _of_task("model.waiting", remit, now, {**_asked(asked), "wait": asked.wait, "number": number})


def tool_done(remit: Remit, data: ToolDone, now: int) -> Unsealed:
    return _of_task("tool.done", remit, now, cast("dict[str, Json]", data))


def tool_begun(remit: Remit, data: ToolBegun, now: int) -> Unsealed:
    return _of_task("tool.begun", remit, now, cast("dict[str, Json]", data))


def talk_begun_anew(remit: Remit, data: TalkBegunAnew, now: int) -> Unsealed:
    return _of_task("talk.begun_anew", remit, now, cast("dict[str, Json]", data))


def session_recalled(remit: Remit, after: list[list[str]], now: int) -> Unsealed:
    return _of_task("session.recalled", remit, now, {"after": cast("Json", after)})


def cooling_set(name: str, cooling: Cooling, now: int, by: str = "") -> Unsealed:
    """It belongs to no run: the next one finds the same key at rest. `by` is the owner who cleared it."""
    data: dict[str, Json] = {"name": name, **cooling._asdict()}
    if by:
        data["by"] = by
    return Unsealed("cooling.set", now, data)


def _asked(asked: ModelTry) -> dict[str, Json]:
    data: dict[str, Json] = {"model": asked.model}
    if asked.key:
        data["key"] = asked.key
    if asked.trim:
        data["trim"] = asked.trim
    return data


def _of_task(kind: str, remit: Remit, now: int, data: dict[str, Json]) -> Unsealed:
    return Unsealed(kind, now, data, remit.root, remit.session, remit.id, remit.holder)

"""The calls that travel between a client and a server: the methods of a workspace, the scope that each needs, and their
values as JSON and back.

A server performs exactly the calls of this table, and a client makes no others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from remit.core import bounds, card
from remit.core.access import AccessInfo, MadeAccess
from remit.core.bounds import Bounds
from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.entry import Entry, Message
from remit.core.events import Event, Gap
from remit.core.lifecycle import Outcome, Progress, Record
from remit.core.match import Match
from remit.core.money import Hold, Lease
from remit.core.plan import Plan, plan_from_json, whole
from remit.core.question import Inquiry
from remit.core.recovery import Resting
from remit.core.scope import Scope, scope_texts
from remit.core.secret import Secret
from remit.core.times import SECOND, Schedule, aware, moment
from remit.core.values import Json, decode, shown
from remit.engine.plans import PlanOutcome
from remit.engine.queue.task import Status
from remit.engine.upkeep.doctor import Health
from remit.errors import BadInput, Failed, Refused, RemitError, TooMany
from remit.ports import KeyInfo, RunLine
from remit.report import wire
from remit.report.detail import Detail
from remit.report.edges import AskEdge
from remit.report.entries import EntryReader, EntryVersion
from remit.report.spend import LedgerAudit, Spending, SpendPoint
from remit.report.stats import Stats, StatsPoint
from remit.report.talk import TaskTalk
from remit.runtime.artifacts import ArtifactLook, StoredArtifact
from remit.runtime.hooks import Delivery, HookInfo, NewHook
from remit.runtime.looks import (
    DetailLook,
    PartLook,
    PublishedCard,
    ReaderLook,
    RecordLook,
    RunLook,
    TalkLook,
    TaskLook,
    VersionLook,
)
from remit.runtime.money import Account
from remit.runtime.workers import Crew

CallScope: TypeAlias = Literal["read", "run", "approve", "admin"]


class TaskMade(NamedTuple):
    """The task that a call submitted, retried or forked. `existing` says that an equal request had created it
    before."""

    id: str
    existing: bool = False


class EventPage(NamedTuple):
    """Events that a client follows, the gaps between them, and the number of the last event that was looked at."""

    events: list[Event]
    gaps: list[Gap]
    position: int

    @property
    def items(self) -> list[Event | Gap]:
        """The events and gaps in the order of the journal."""
        return sorted([*self.events, *self.gaps], key=lambda one: one.first if isinstance(one, Gap) else one.seq)


class RemoteCall(NamedTuple):
    """A call: the scope it needs, the type of its answer, and whether it acts, so that it has an operation id and an
    actor. `times` are the arguments that are points in time. A call for `agents` is also for callers that act as an
    agent; all others are for owners."""

    scope: CallScope
    returns: object = Json
    acts: bool = False
    times: tuple[str, ...] = ("since", "until")
    agents: bool = False


_RUN: Final = RemoteCall("run", acts=True)
_ADMIN: Final = RemoteCall("admin", acts=True)
_ENTRY: Final = RemoteCall("run", acts=True, agents=True)
_SUBMIT: Final = RemoteCall("run", TaskMade, times=("at",))
_SCHEDULE: Final = RemoteCall("admin", Schedule, acts=True)

CALLS: Final[dict[str, RemoteCall]] = {
    "submit": _SUBMIT._replace(agents=True),
    "submit_plan": _SUBMIT,
    "submit_team": _SUBMIT,
    "fork": RemoteCall("run", TaskMade, acts=True),
    "stats": RemoteCall("read", Stats),
    "edges": RemoteCall("read", list[AskEdge]),
    "prune": _ADMIN,
    "check": RemoteCall("read", Health),
    "tasks.list": RemoteCall("read", list[Status]),
    "tasks.runs": RemoteCall("read", list[RunLine]),
    "tasks.progress": RemoteCall("read", dict[str, Progress]),
    "tasks.orphans": RemoteCall("read", list[Message]),
    "tasks.cancel": RemoteCall("run", acts=True, agents=True),
    "tasks.retry": RemoteCall("run", TaskMade, acts=True, agents=True),
    "tasks.status": RemoteCall("read", Status, agents=True),
    "tasks.outcome": RemoteCall("read", Outcome | None, agents=True),
    "tasks.plan_outcome": RemoteCall("read", PlanOutcome),
    "journal.history": RemoteCall("read", list[Event]),
    "journal.gaps": RemoteCall("read", list[Gap]),
    "journal.next": RemoteCall("read", EventPage),
    "looks.task": RemoteCall("read", Record),
    "looks.run": RemoteCall("read", Record),
    "looks.tasks": RemoteCall("read", TaskLook),
    "looks.runs": RemoteCall("read", RunLook),
    "looks.stats": RemoteCall("read", list[StatsPoint]),
    "looks.spend": RemoteCall("read", list[SpendPoint]),
    "looks.detail": RemoteCall("read", DetailLook),
    "looks.records": RemoteCall("read", RecordLook),
    "looks.below": RemoteCall("read", list[Record]),
    "looks.has_ended": RemoteCall("read"),
    "looks.part": RemoteCall("read", PartLook),
    "looks.tree": RemoteCall("read"),
    "looks.talk": RemoteCall("read", TalkLook),
    "looks.answers": RemoteCall("read", dict[int, str]),
    "looks.open_events": RemoteCall("read", list[Event]),
    "looks.head": RemoteCall("read"),
    "looks.question": RemoteCall("read", Inquiry),
    "looks.cards": RemoteCall("read", list[PublishedCard]),
    "looks.uncertain": RemoteCall("read"),
    "looks.ledger": RemoteCall("read", LedgerAudit),
    "looks.entries": RemoteCall("read", list[Entry], agents=True),
    "looks.entry": RemoteCall("read", Entry | None, agents=True),
    "looks.versions": RemoteCall("read", VersionLook),
    "looks.readers": RemoteCall("read", ReaderLook),
    "looks.prunable": RemoteCall("read"),
    "questions.get": RemoteCall("read", Inquiry),
    "questions.list": RemoteCall("read", list[Inquiry]),
    "questions.approve": RemoteCall("approve", acts=True),
    "questions.reject": RemoteCall("approve", acts=True),
    "questions.answer": RemoteCall("approve", acts=True),
    "agents.list": RemoteCall("read", list[Card]),
    "agents.find": RemoteCall("read", list[Match]),
    "agents.workers": RemoteCall("read", Crew),
    "agents.breakers": RemoteCall("read", dict[str, Breaker]),
    "agents.trip": _ADMIN,
    "agents.reset": _ADMIN,
    "agents.withdraw": _ADMIN,
    "money.account": RemoteCall("read", Account),
    "money.leases": RemoteCall("read", list[Lease]),
    "money.uncertain": RemoteCall("read", list[Hold]),
    "money.spend": RemoteCall("read", Spending),
    "money.grant": RemoteCall("admin", Account, acts=True),
    "money.reconcile": _ADMIN,
    "money.unfreeze": _ADMIN,
    "context.namespaces": RemoteCall("read"),
    "context.cleanup": _RUN,
    "context.get": RemoteCall("read", Entry | None, agents=True),
    "context.recent": RemoteCall("read", list[Entry], agents=True),
    "context.by_key": RemoteCall("read", list[Entry], agents=True),
    "context.put": _ENTRY,
    "context.touch": _ENTRY,
    "context.remove": _ENTRY,
    "access.list": RemoteCall("admin", list[AccessInfo]),
    "access.make": RemoteCall("admin", MadeAccess, acts=True),
    "access.revoke": _ADMIN,
    "hooks.list": RemoteCall("admin", list[HookInfo]),
    "hooks.add": RemoteCall("admin", NewHook, acts=True),
    "hooks.rotate": RemoteCall("admin", NewHook, acts=True),
    "hooks.deliveries": RemoteCall("admin", list[Delivery]),
    "hooks.remove": _ADMIN,
    "hooks.replay": _ADMIN,
    "artifacts.list": RemoteCall("read", list[StoredArtifact]),
    "artifacts.open": RemoteCall("read", ArtifactLook),
    "schedules.list": RemoteCall("read", list[Schedule]),
    "schedules.add": _SCHEDULE,
    "schedules.add_plan": _SCHEDULE,
    "schedules.add_team": _SCHEDULE,
    "schedules.remove": _ADMIN,
    "schedules.pause": _ADMIN,
    "schedules.resume": _ADMIN,
    "keys.names": RemoteCall("admin", list[KeyInfo]),
    "keys.set": RemoteCall("admin", KeyInfo, acts=True),
    "keys.remove": _ADMIN,
    "keys.rotate": _ADMIN,
    "keys.cooling.list": RemoteCall("read", list[Resting]),
    "keys.cooling.clear": _ADMIN,
}

# Names in annotations that are imported for type checkers only.
_NAMES: Final = {kind.__name__: kind for kind in (Crew, Detail, EntryReader, EntryVersion, TaskTalk)}


# -- arguments -------------------------------------------------------------------------------------------------------


def argument_json(value: object) -> Json:  # noqa: PLR0911 - one line for each kind of value
    """Return an argument as JSON, as the server reads it."""
    match value:
        case datetime():
            return moment(value, "a time")
        case timedelta():
            return value.total_seconds()
        case Plan():
            return cast("Json", whole(value))
        case Bounds():
            return value.data
        case Scope():
            return scope_texts(frozenset((value,)))[0]
        case Mapping():
            return {str(key): argument_json(item) for key, item in cast("Mapping[object, object]", value).items()}
        case str() | bytes():
            return wire.value(value)
        case Sequence() | frozenset() | set():
            return [argument_json(item) for item in cast("Sequence[object]", value)]
        case _:
            return wire.value(value)


def arguments_from_json(call: RemoteCall, given: Mapping[str, Json]) -> dict[str, Any]:
    """Return the arguments of a call from the JSON of a client. Raise `BadInput` for an invalid time, plan or bounds.
    The method that gets the other arguments checks them."""
    arguments: dict[str, Any] = dict(given)
    for name in call.times:
        if arguments.get(name) is not None:
            arguments[name] = _time(arguments[name], name)
    if arguments.get("plan") is not None:
        arguments["plan"] = plan_from_json(arguments["plan"])
    for name in ("within", "bounds"):
        if arguments.get(name) is not None:
            arguments[name] = _bounds(arguments[name], name)
    return arguments


def _time(given: object, name: str) -> datetime:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= _LATEST:
        raise BadInput(f"{name} is a time in whole microseconds since 1970")
    return aware(given)


_LATEST: Final = 253_402_300_799 * SECOND  # the last second of the year 9999


def _bounds(given: object, name: str) -> Bounds:
    try:
        return bounds.restored(cast("dict[str, Json]", given))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{name} has the fields of Bounds(...), and these are not valid") from error


# -- answers ---------------------------------------------------------------------------------------------------------


def answered(value: object) -> Json:  # noqa: PLR0911 - one line for each kind of value
    """Return the answer of a call as JSON. It has the fields of the value; `restored` makes the same value of it."""
    match value:
        case Event():  # its data is in its text
            return {name: getattr(value, name) for name in Event._fields if name != "data"}
        case Card() | Bounds():
            return value.data
        case RemitError():
            return error_data(value)
        case Mapping():
            return {str(key): answered(item) for key, item in cast("Mapping[object, object]", value).items()}
        case _ if is_dataclass(value) or hasattr(value, "_fields"):
            names = getattr(value, "_fields", None) or tuple(cast("Any", value).__dataclass_fields__)
            return {name: answered(getattr(value, name)) for name in names}
        case list() | tuple():
            return [answered(item) for item in cast("Sequence[object]", value)]
        case frozenset() | set():
            return [answered(item) for item in sorted(cast("set[Any]", value), key=str)]
        case _:
            return wire.value(value)


def restored(hint: Any, data: Any) -> Any:  # noqa: PLR0911 - one line for each kind of type
    """Return the value of the type `hint` from the JSON that `answered` made of it."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return None if data is None else restored(_chosen(parts, data), data)
    if origin in (list, Sequence):
        return [restored(parts[0], item) for item in data]
    if origin is tuple:
        kinds = [parts[0]] * len(data) if parts[-1] is Ellipsis else parts
        return tuple(restored(kind, item) for kind, item in zip(kinds, data, strict=True))
    if origin is frozenset:
        return frozenset(restored(parts[0], item) for item in data)
    if origin is Counter:
        return Counter(cast("dict[str, int]", data))
    if origin in (dict, Mapping):
        return {parts[0](key) if parts[0] is int else key: restored(parts[1], item) for key, item in data.items()}
    if isinstance(hint, type) and origin is None:
        return _from_json(hint, data)
    return data


def _chosen(parts: Sequence[Any], data: object) -> Any:
    """Return the type of a union that JSON data has the form of, or `Json` if no type of objects or lists fits."""
    kinds = [part for part in parts if part is not NoneType]
    if isinstance(data, dict):
        return next((kind for kind in kinds if _is_made_of_fields(kind) or get_origin(kind) is dict), Json)
    if isinstance(data, list):
        return next((kind for kind in kinds if get_origin(kind) in (list, tuple, frozenset)), Json)
    return Json


def _is_made_of_fields(kind: Any) -> bool:
    return isinstance(kind, type) and (
        kind is RemitError or is_dataclass(kind) or "_fields" in vars(cast("type", kind))
    )


def _from_json(kind: type[Any], data: Any) -> Any:  # noqa: PLR0911 - one line for each kind of value
    if kind is Event:
        return Event(**data, data=cast("dict[str, Json]", decode(data["text"])))
    if kind is Card:
        return card.restored(data)
    if kind is Bounds:
        return bounds.restored(data)
    if kind is RemitError:
        return error_restored(data)
    if kind is Secret:
        return Secret(data)
    if not _is_made_of_fields(kind):
        return data
    hints = get_type_hints(kind, localns=_NAMES)
    return kind(**{name: restored(hints[name], item) for name, item in data.items()})


# -- errors ----------------------------------------------------------------------------------------------------------


def error_data(error: RemitError) -> dict[str, Json]:
    """Return an error as JSON: its class as a `code` such as `not-found`, its sentence, whether it is retryable, and
    the fields of a `Refused`, a `Failed` or a `TooMany`."""
    data: dict[str, Json] = {"code": code_of(type(error)), "detail": str(error), "retryable": error.retryable}
    if isinstance(error, Refused):
        data["rule"] = error.rule
    if isinstance(error, Failed):
        data |= {"agent": error.agent, "task": error.task}
    if isinstance(error, TooMany):
        data["seconds"] = error.seconds
    return data


def error_restored(data: Mapping[str, Any], given: Mapping[str, Json] | None = None) -> RemitError:
    """Return the error from the JSON of `error_data`, for an unknown class as a plain `RemitError`. `given` are the
    arguments of the call, which `with_echo` puts into the sentence."""
    kind = _kinds(RemitError).get(str(data.get("code")), RemitError)
    error = _error(kind, with_echo(str(data.get("detail", "")), given or {}), data)
    if isinstance(again := data.get("retryable"), bool) and again is not error.retryable:
        error.retryable = again
    return error


def _error(kind: type[RemitError], sentence: str, data: Mapping[str, Any]) -> RemitError:
    if issubclass(kind, Refused):
        return kind(sentence, rule=str(data.get("rule", "")))
    if issubclass(kind, Failed):
        agent, task = (str(data.get(name, "")) for name in ("agent", "task"))
        return kind(sentence, agent=agent, task=task)
    if issubclass(kind, TooMany):
        return kind(sentence, seconds=seconds if isinstance(seconds := data.get("seconds"), int) else 1)
    return kind(sentence)


def without_echo(sentence: str, given: Mapping[str, Json]) -> str:
    """Return the sentence of an error with a mark, such as `⟦agent⟧`, in place of each argument of the call that it
    quotes: the answer of a server repeats no argument."""
    for name, text in _texts(given):
        sentence = sentence.replace(shown(text), f"⟦{name}⟧")
        if len(text) >= _LONG and not name.startswith("#"):
            sentence = sentence.replace(text, f"⟦={name}⟧")
    return sentence


def with_echo(sentence: str, given: Mapping[str, Json]) -> str:
    """Return a sentence of `without_echo` with the arguments in place of their marks: the client knows them."""
    for name, text in _texts(given):
        sentence = sentence.replace(f"⟦{name}⟧", shown(text)).replace(f"⟦={name}⟧", text)
    return sentence


_LONG: Final = 8  # characters; a shorter text may be a part of a word


def _texts(given: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Return the texts in the arguments as (name, text), the longest text first. Item 0 of a list is called `name.0`,
    and the name of the first argument is itself a text, called `#0`."""
    texts = [(name, value) for name, value in given.items() if isinstance(value, str) and value]
    texts += [(f"#{place}", name) for place, name in enumerate(given)]
    for name, value in given.items():
        if isinstance(value, list):
            texts += [(f"{name}.{place}", item) for place, item in enumerate(value) if isinstance(item, str) and item]
    return sorted(texts, key=lambda pair: -len(pair[1]))


def code_of(kind: type[RemitError]) -> str:
    """Return the code of a class of errors: `not-found` for `NotFound`."""
    return "".join(f"-{char.lower()}" if char.isupper() else char for char in kind.__name__).lstrip("-")


def _kinds(above: type[RemitError]) -> dict[str, type[RemitError]]:
    found = {code_of(above): above}
    for kind in above.__subclasses__():
        found |= _kinds(kind)
    return found

"""Performing the calls of a client on a workspace, in the name of the caller that the server knows."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple, cast

from remit.core import checks
from remit.core.access import expiry
from remit.core.bounds import TOP, Bounds
from remit.core.entry import Draft
from remit.core.events import Event, Gap
from remit.core.lifecycle import Outcome
from remit.core.scope import Scope
from remit.core.secret import Secret
from remit.core.times import aware
from remit.core.values import Json, shown
from remit.engine.context import Access
from remit.engine.queue.task import Status, Task
from remit.errors import BadInput, Forbidden, NotFound, Refused
from remit.runtime.artifacts import ArtifactLook
from remit.runtime.calls import CALLS, EventPage, TaskMade, answered, arguments_from_json
from remit.runtime.hooks import NewHook
from remit.runtime.journal import Follow
from remit.runtime.workspace import Workspace, opening_of

LONGEST_WAIT: Final = 25.0  # seconds that one call waits for an event or an end
_ACCESS: Final = attrgetter("_access")
_OWN: Final = frozenset(("asker", "under", "ceiling", "told", "trace"))  # never taken from a request
_FOR_OWNERS: Final = "this access acts for an agent, and only an owner may do this; `submit` a task instead"


class ActsFor(NamedTuple):
    """In whose name calls are performed. `access` is the id of the caller's access; without one, the caller is the
    owner and says who acts. `by` is the actor for the journal. An `agent` is the card that the caller acts as, within
    `bounds`. `own` makes an operation id or an idempotency key one of this caller's, so that two callers never share
    one."""

    access: str = ""
    by: str = ""
    agent: str = ""
    bounds: Bounds = TOP
    own: Callable[[str], str] = str

    def actor(self, said: object) -> object:
        """Return the name for the journal: the person that the owner names, or the caller."""
        return said if said and not self.access else self.by


OWNER: Final = ActsFor()
_SCHEDULED: Final = frozenset(("schedules.add", "schedules.add_plan", "schedules.add_team"))
_GO_ON: Final = frozenset(("fork", "tasks.retry"))
_WITHIN: Final = "within takes Bounds(...)"


async def perform(workspace: Workspace, name: str, given: Mapping[str, Json], who: ActsFor = OWNER) -> Json:
    """Perform a call, and return its answer as JSON. Raise `NotFound` for a call that does not exist, `BadInput` for
    arguments that it does not take."""
    call = CALLS.get(name)
    if call is None:
        raise NotFound("there is no such call")
    if strange := sorted(_OWN & given.keys()):
        raise BadInput(f"{strange[0]} cannot be set in a request")
    arguments = arguments_from_json(call, given)
    if call.acts:
        arguments |= {"op": who.own(_text(arguments.get("op", ""), "op")), "by": who.actor(arguments.get("by", ""))}
    if who.agent and not call.agents:
        raise Refused(_FOR_OWNERS, rule="access.agent")
    if who.agent and name.startswith("tasks."):
        await _must_be_own(workspace, arguments.get("task"), who)
    if who.bounds != TOP:
        await _stay_within(workspace, name, arguments, who)
    special = _SPECIAL.get(name)
    if special is not None:
        return answered(await special(workspace, arguments, who))
    method = cast("Callable[..., Awaitable[object]]", attrgetter(name)(workspace))
    return answered(_as_made(await call_method(method, name, arguments)))


async def _must_be_own(workspace: Workspace, task: Any, who: ActsFor) -> None:
    """Raise `NotFound` unless the run of a task was started with this access."""
    if (await workspace.tasks.get(task).status()).by != who.by:
        raise NotFound("there is no such task")


async def _stay_within(workspace: Workspace, name: str, arguments: dict[str, Any], who: ActsFor) -> None:
    """Apply the caller's bounds to the runs of a schedule. Raise `Forbidden` if the call would continue a run that
    another caller has started: the new run would have the bounds of that run."""
    if name in _SCHEDULED:
        arguments["within"] = checks.of_type(arguments.get("within", TOP), Bounds, _WITHIN) & who.bounds
    run = arguments.get("run" if name == "fork" else "task")
    if name in _GO_ON and (await workspace.tasks.get(cast("str", run)).status()).by != who.by:
        raise Forbidden("this key has bounds, so it can continue only what it has started itself")


async def call_method(method: Callable[..., Awaitable[object]], name: str, arguments: Mapping[str, Any]) -> Any:
    """Call a method with these arguments. Raise `BadInput` if it does not take them, or needs more."""
    signature = inspect.signature(method)
    try:
        signature.bind(**arguments)
    except TypeError:
        takes = ", ".join(key for key in signature.parameters if key not in _OWN) or "no arguments"
        raise BadInput(f"{name} does not take these arguments; it takes {takes}") from None
    return await method(**arguments)


def _as_made(answer: object) -> object:
    return TaskMade(answer.id, existing=answer.existing) if isinstance(answer, Task) else answer


def _text(given: object, what: str) -> str:
    return checks.of_type(given, str, f"{what} is a text")


# -- calls that are not simply a method ------------------------------------------------------------------------------


async def _submit(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> TaskMade:
    how = _submitted(given, who)
    if who.agent:
        how["asker"] = who.agent
    return cast("TaskMade", _as_made(await call_method(workspace.submit, "submit", how)))


async def _submit_plan(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> TaskMade:
    return await _led(workspace.submit_plan, "submit_plan", given, who)


async def _submit_team(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> TaskMade:
    return await _led(workspace.submit_team, "submit_team", given, who)


async def _led(verb: Callable[..., Awaitable[Task]], name: str, given: dict[str, Any], who: ActsFor) -> TaskMade:
    return cast("TaskMade", _as_made(await call_method(verb, name, _submitted(given, who))))


def _submitted(given: dict[str, Any], who: ActsFor) -> dict[str, Any]:
    how = {**given, "by": who.actor(given.get("by", ""))}
    if who.bounds != TOP:
        how["ceiling"] = who.bounds
    if "key" in how:
        how["key"] = who.own(_text(how["key"], "key"))
    return how


async def _status(workspace: Workspace, given: dict[str, Any], _: ActsFor) -> Status:
    return await workspace.tasks.get(*_only(given, "task")).status()


async def _outcome(workspace: Workspace, given: dict[str, Any], _: ActsFor) -> Outcome | None:
    """Wait for the end of a task up to `timeout` seconds, and return its outcome; None if it has not ended."""
    wait = _wait(given.pop("timeout", LONGEST_WAIT))
    try:
        return await workspace.tasks.get(*_only(given, "task")).wait(wait)
    except TimeoutError:
        return None


async def _plan_outcome(workspace: Workspace, given: dict[str, Any], _: ActsFor) -> object:
    return await workspace.tasks.get(*_only(given, "task")).plan_outcome(0)


async def _next(workspace: Workspace, given: dict[str, Any], _: ActsFor) -> EventPage:
    """Wait for events up to `timeout` seconds, and return those that have arrived."""
    wait = _wait(given.pop("timeout", LONGEST_WAIT))
    if "after" not in given:
        raise BadInput("journal.next takes after: the number of the last event that was seen")
    which: dict[str, Any] = {"limit": _PAGE, **given}
    follow = cast("Callable[..., Follow[Event | Gap]]", workspace.journal.follow)(**which)
    async with follow:
        found = await follow.next(wait)
        events = [one for one in found if isinstance(one, Event)]
        return EventPage(events, [one for one in found if isinstance(one, Gap)], follow.position)


_PAGE: Final = 200


def _wait(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= LONGEST_WAIT:
        raise BadInput(f"timeout is a number of seconds from 0 to {LONGEST_WAIT:g}")
    return float(given)


def _only(given: dict[str, Any], *names: str) -> list[Any]:
    if given.keys() != {*names}:
        raise BadInput(f"this call takes {', '.join(names)}")
    return [given[name] for name in names]


# -- entries ---------------------------------------------------------------------------------------------------------


def _access(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> Access:
    how: dict[str, Any] = {name: given.pop(name) for name in ("op", "by") if name in given}
    how |= {"asker": who.agent} if who.agent else {}
    how |= {"ceiling": who.bounds} if who.bounds != TOP else {}
    session = _text(given.pop("session", ""), "session")
    return cast("Access", _ACCESS(workspace.context(session, **how)))


async def _get(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> object:
    access = _access(workspace, given, who)
    return await access.get(*_only(given, "namespace", "key"))


async def _recent(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> object:
    access = _access(workspace, given, who)
    namespaces, limit = _only(given, "namespaces", "limit")
    given_ = checks.items(namespaces, "namespaces is a list of namespaces")
    return await access.recent([Scope(cast("str", one)) for one in given_], limit)


async def _by_key(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> object:
    access = _access(workspace, given, who)
    namespace, prefix, limit = _only(given, "namespace", "prefix", "limit")
    return await access.by_key(Scope(namespace, prefix=prefix), limit)


async def _put(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> object:
    access = _access(workspace, given, who)
    if strange := sorted(given.keys() - _DRAFT):
        raise BadInput(f"an entry has no {shown(strange[0])}")
    _whole(given, "lifetime", 1)
    _whole(given, "expect", 0)
    checks.yes_or_no(given.get("extend", False), "extend")
    checks.one_of(given.get("trust", "trusted"), ("trusted", "untrusted"), "trust")
    return await access.put(Draft(given.pop("namespace", ""), given.pop("key", ""), given.pop("value", None), **given))


_DRAFT: Final = {field.name for field in fields(Draft)}


async def _touch(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> object:
    access = _access(workspace, given, who)
    namespace, key, lifetime = _only(given, "namespace", "key", "lifetime")
    _whole({"lifetime": lifetime}, "lifetime", 1)
    return await access.touch(namespace, key, lifetime)


async def _remove(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> object:
    access = _access(workspace, given, who)
    return await access.remove(*_only(given, "namespace", "key"))


async def _entries(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> object:
    """Return the entries of a namespace as the caller may read them."""
    if not who.agent and who.bounds == TOP:
        return await call_method(workspace.looks.entries, "looks.entries", given)
    return await _by_key(workspace, {"prefix": "", "limit": 100, **given}, who)


async def _entry(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> object:
    """Return an entry if the caller may read it, None if there is none. Raise `Refused` if the caller may not."""
    if not who.agent and who.bounds == TOP:
        return await call_method(workspace.looks.entry, "looks.entry", given)
    return await _get(workspace, given, who)


def _whole(given: Mapping[str, Any], name: str, least: int) -> None:
    if given.get(name) is not None:
        checks.whole(given[name], name, least=least)


# -- files -----------------------------------------------------------------------------------------------------------


async def _open_artifact(workspace: Workspace, given: dict[str, Any], _: ActsFor) -> object:
    """Return the metadata of a file. Its content is fetched separately, by its digest."""
    opened = await workspace.artifacts.open(*_only(given, "artifact"))
    return ArtifactLook(opened.artifact, opened.trust)


# -- secrets ---------------------------------------------------------------------------------------------------------


async def _make_access(workspace: Workspace, given: dict[str, Any], who: ActsFor) -> object:
    """Create an access key, with the bounds and the expiry of the caller where the request asks for more."""
    wanted = given.pop("expires", None)
    if isinstance(wanted, int) and wanted >= _MOMENT:
        wanted = aware(wanted)
    expires = await expiry_within(workspace, who.access, wanted)
    limits = checks.of_type(given.pop("bounds", TOP), Bounds, "bounds is a Bounds(...)") & who.bounds
    made = await call_method(workspace.access.make, "access.make", {**given, "expires": expires, "bounds": limits})
    return {"access": made.access, "key": made.key.reveal()}


_MOMENT: Final = 10**14  # a number from here on is a time in microseconds: as seconds, it is three million years


async def expiry_within(workspace: Workspace, access: str, wanted: float | datetime | None) -> float | datetime | None:
    """Return the expiry of a new access key: not after that of the key that creates it."""
    found = await workspace.journal.read(lambda view: view.access(access)) if access else None
    until = None if found is None else found[0].expires_at
    if until is None:
        return wanted
    latest = expiry(wanted, opening_of(workspace).clock.now())
    return wanted if latest is not None and latest <= until else aware(until)


async def _add_hook(workspace: Workspace, given: dict[str, Any], _: ActsFor) -> object:
    return _hook_json(await call_method(workspace.hooks.add, "hooks.add", given))


async def _rotate_hook(workspace: Workspace, given: dict[str, Any], _: ActsFor) -> object:
    return _hook_json(await call_method(workspace.hooks.rotate, "hooks.rotate", given))


def _hook_json(made: NewHook) -> object:
    return {"id": made.id, "secret": made.secret.reveal()}


async def _set_key(workspace: Workspace, given: dict[str, Any], _: ActsFor) -> object:
    secret = Secret(_text(given.pop("secret", ""), "secret"))
    return await call_method(workspace.keys.set, "keys.set", {**given, "secret": secret})


_Special = Callable[[Workspace, dict[str, Any], ActsFor], Awaitable[object]]
_SPECIAL: Final[dict[str, _Special]] = {
    "submit": _submit,
    "submit_plan": _submit_plan,
    "submit_team": _submit_team,
    "tasks.status": _status,
    "tasks.outcome": _outcome,
    "tasks.plan_outcome": _plan_outcome,
    "artifacts.open": _open_artifact,
    "access.make": _make_access,
    "hooks.add": _add_hook,
    "hooks.rotate": _rotate_hook,
    "keys.set": _set_key,
    "journal.next": _next,
    "context.get": _get,
    "context.recent": _recent,
    "context.by_key": _by_key,
    "context.put": _put,
    "context.touch": _touch,
    "context.remove": _remove,
    "looks.entries": _entries,
    "looks.entry": _entry,
}

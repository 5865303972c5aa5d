"""`ws.hooks`: addresses outside that are sent events of a workspace, and what was sent to them."""

from __future__ import annotations

import logging
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

from remit.core.backoff import RetryPolicy
from remit.core.bounds import TOP, ceiling
from remit.core.breaker import BreakerPolicy
from remit.core.card import Card
from remit.core.events import Hook
from remit.core.hook import derived_secret, secret_text, wanted_kinds
from remit.core.kinds import SHAPES
from remit.core.lifecycle import TERMINAL
from remit.core.secret import Secret
from remit.core.values import NAME_LIMIT, RESERVED, digest, line, shown
from remit.engine import asking
from remit.engine.acts import ActContent, act_of
from remit.engine.directory import Agent
from remit.engine.hooks import Hooks, no_hook
from remit.engine.queue.task import Status
from remit.engine.settings import Policy
from remit.engine.upkeep.keys import Keys
from remit.errors import BadInput, Conflict, NotFound
from remit.ports import Decision, Span, View
from remit.runtime.filters import TaskFilter
from remit.runtime.opening import Opening, settings
from remit.runtime.tasks import WorkspaceTasks, id_of

HOOKS: Final = f"{RESERVED}hooks"  # the workspace of all deliveries of a database
NETWORKS_VARIABLE: Final = "REMIT_HOOK_NETWORKS"
# Growing waits of 5 s up to 85 minutes: a delivery is given up after about a day.
RETRY: Final = RetryPolicy(attempts=26, first=5.0, cap=5_120.0)
AT_ONCE: Final = 4  # deliveries to one hook; those to others do not wait for them
TIMEOUT: Final = 30.0  # of one try, its request and its records
KEEP_DAYS: Final = 30.0  # of the log of deliveries
SLOTS: Final = 256  # deliveries of one process at once
PUSH_SENDERS: Final = 16  # agents of a workspace that send tasks of A2A
_SIGNING: Final = "signing"  # the name of the key that all secrets are derived from
_KEY_BYTES: Final = 32
_NOT_DELIVERED: Final = "NotDelivered: "
_RECENT: Final = 20
_COUNTED: Final = 1_000  # deliveries that wait
_CEILING: Final = ceiling(TOP)

_log = logging.getLogger("remit")


class NewHook(NamedTuple):
    """A hook that was added or rotated, with its secret. remit shows the secret this once."""

    id: str
    secret: Secret


class HookInfo(NamedTuple):
    """A hook, and how its deliveries go. Times are microseconds since 1970.

    `waiting` is the number of deliveries that are still tried, at most 1,000. If the last delivery that ended was given
    up, `failing` is the reason and `failing_since` the time; if it arrived, they are "" and None.
    """

    id: str
    url: str
    kinds: tuple[str, ...]
    run: str
    added_by: str
    added_at: int
    rotated_at: int | None
    waiting: int
    failing: str
    failing_since: int | None


class Delivery(NamedTuple):
    """One event for one hook, as the log has it. `event` is the number of the event, 0 for a gap in the journal.
    `state` is that of a task: "completed" if the hook accepted the event. `error` is why the last try failed. Times are
    microseconds since 1970; `next_at` is the time of the next try, None if the delivery has ended."""

    id: str
    hook: str
    event: int
    kind: str
    state: str
    attempt: int
    asked_at: int
    ended_at: int | None
    next_at: int | None
    error: str


class WorkspaceHooks:
    """The hooks of a workspace. Its workers, and `remit serve`, send each event at least once (`remit[channels]`).

    The secrets are derived from a key of the store, which is encrypted with the master key of `ws.keys`.
    """

    __slots__ = ("_deliveries", "_opening")

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._deliveries = DeliveryLog(opening)

    async def add(self, url: str, kinds: Iterable[str], *, run: str = "", op: str = "", by: str = "") -> NewHook:
        """Send the events of these kinds to an address from now on: `await ws.hooks.add("https://example.com/hook",
        ["task.completed", "question.*"])`. With `run`, only events of that run. Return its id and its secret, which
        signs everything that is sent (standardwebhooks.com)."""
        if self._opening.workspace.startswith(RESERVED):
            raise BadInput("events of remit's own workspaces are not sent to hooks")
        address = client().check(url)
        wanted = wanted_kinds(kinds, SHAPES)
        root = await self._deliveries.signing_key()
        given = id_of(run, "a run's id") if run else ""
        host = f"{address.scheme}://{url.partition('://')[2]}"
        hook = await Hooks(self._opening.ground).add(host, wanted, given, act_of(op, by))
        return self._with_secret(root, hook)

    async def remove(self, hook: str, *, op: str = "", by: str = "") -> bool:
        """Remove a hook; deliveries that were not made yet are dropped. Return whether there was one."""
        return await Hooks(self._opening.ground).remove(_id(hook), act_of(op, by))

    async def rotate(self, hook: str, *, op: str = "", by: str = "") -> NewHook:
        """Give a hook a new secret, and return it. For 24 hours, deliveries are signed with the old secret too."""
        await self._hook(hook)
        root = await self._deliveries.signing_key()
        return self._with_secret(root, await Hooks(self._opening.ground).rotate(_id(hook), act_of(op, by)))

    def _with_secret(self, root: bytes, hook: Hook) -> NewHook:
        secret = derived_secret(root, self._opening.workspace, hook.id, hook.generation)
        return NewHook(hook.id, Secret(secret_text(secret)))

    async def list(self) -> list[HookInfo]:
        """Return all hooks, the oldest first, with how their deliveries go."""
        hooks = await self._opening.records.read(lambda view: view.hooks())
        return [await self._deliveries.info(hook) for hook in hooks]

    async def deliveries(
        self, hook: str, *, state: str | None = None, limit: int = 100, before: str = ""
    ) -> list[Delivery]:
        """Return the deliveries of a hook, sent and waiting, newest first. `state` is that of a task, or "open" for all
        that have not ended; `before` is the id of the last delivery on the previous page. The log keeps 30 days."""
        found = await self._hook(hook)
        start = (await self._delivery(before)).began if before else None
        given = {"session": found.id, "state": state, "limit": limit, "before": start}
        return await self._deliveries.deliveries(cast("TaskFilter", given))

    async def replay(self, delivery: str, *, hook: str = "", op: str = "", by: str = "") -> str:
        """Send a delivery again that has ended, whether it arrived or not, with the same `webhook-id`. With `hook`, it
        must be a delivery of that hook. Return the id of the new delivery."""
        one = await self._delivery(delivery)
        if hook and one.session != _id(hook):
            raise no_hook(hook)
        if one.state not in TERMINAL:
            raise Conflict(f"the delivery {shown(delivery)} is still being tried; it can be replayed after that")
        ground = self._opening.ground
        fresh = ground.ids.new()
        content = ActContent("hooks.replay", one.id)
        key = (await act_of(op, by).perform(ground, content, lambda _: Decision(fresh))).answer
        return await self._deliveries.replay(one, f"replay/{key}", by)

    async def _hook(self, hook: str) -> Hook:
        named = _id(hook)
        found = await self._opening.records.read(lambda view: view.hook(named))
        if found is None:
            raise no_hook(named)
        return found

    async def _delivery(self, delivery: str) -> Status:
        """Return the task of a delivery. Raise `NotFound` if it belongs to no hook of this workspace."""
        named = line(delivery, "a delivery's id", NAME_LIMIT)
        unknown = NotFound(f"there is no delivery {shown(named)} of a hook of this workspace")
        try:
            status = await self._deliveries.tasks.get(named).status()
        except NotFound:
            raise unknown from None
        if await self._opening.records.read(lambda view: view.hook(status.session)) is None:
            raise unknown
        return status


class DeliveryLog:
    """The deliveries of all hooks of a database: durable tasks of the workspace `remit.hooks`, in which each hook is an
    agent."""

    def __init__(self, opening: Opening, slots: int = 0) -> None:
        self._opening = opening
        self._slots = slots

    @cached_property
    def opening(self) -> Opening:
        """The workspace `remit.hooks` on the same database, which has the deliveries."""
        own = self._opening.settings
        policy = Policy(breaker=BreakerPolicy(failures=1_000_000))  # the waits between tries are enough
        serving = replace(own.serving, concurrency=self._slots, keep_days=KEEP_DAYS, channels=())
        parts = settings(policy, serving, own.system)
        return Opening(self._opening.database, HOOKS, parts, is_own=True)

    @cached_property
    def tasks(self) -> WorkspaceTasks:
        """The deliveries as tasks."""
        return WorkspaceTasks(self.opening)

    async def signing_key(self) -> bytes:
        """Return the key that all secrets of hooks are derived from. The first caller makes it; it is encrypted with
        the newest master key."""
        ground, own = self.opening.ground, self.opening.settings
        keys = Keys(ground, own.vault, own.redaction)
        found = await keys.open(_SIGNING)
        if found is None:
            made = Secret(b64encode(os.urandom(_KEY_BYTES)).decode())
            try:
                await keys.set(_SIGNING, made, act_of("hooks.signing", ""))
            except Conflict:  # another process was faster
                _log.debug("another process has made the signing key of hooks")
            found = await keys.open(_SIGNING)
            assert found is not None
        elif own.vault().newest not in {one.key_id for one in await keys.names()}:
            await keys.rotate()
        return b64decode(found.reveal())

    async def submit(self, hook: Hook, body: str, meta: Mapping[str, Any], key: str, workspace: str) -> str:
        """Queue a delivery once for a key, and return its id."""
        return await self._submit(sender_of(hook, workspace), hook.id, body, {"meta": meta, "key": key})

    async def _submit(self, sender: str, hook: str, body: str, how: dict[str, Any]) -> str:
        submission, session = asking.submitted(sender, body, cast("Any", {"session": hook, **how}))
        return (await self.opening.engine.queue.begin(submission, _CEILING, session)).id

    async def replay(self, one: Status, key: str, by: str) -> str:
        """Queue a delivery again that has ended, once for a key, and return the id of the new one."""
        if self.opening.directory.get(one.agent) is None:  # the process that sends may be another one
            self.opening.directory.add(Agent(hook_card(one.agent), _sent_elsewhere, RETRY))
        if one.state != "completed":
            return (await self.tasks.retry(one.id, op=key, by=by)).id
        return await self._submit(one.agent, one.session, one.task, {"meta": dict(one.meta), "key": key})

    async def deliveries(self, which: TaskFilter) -> list[Delivery]:
        """Return deliveries, newest first; for those that are still tried, why the last try failed."""
        found = await self.tasks.list(**which)
        tried = [one.id for one in found if one.state not in TERMINAL and one.attempt]

        def look(view: View) -> dict[str, str]:
            retrying = frozenset(("task.retrying",))
            last = {task: view.events(Span(run=task, kinds=retrying, limit=1, latest=True)) for task in tried}
            return {task: str(events[0].data.get("error", "")) for task, events in last.items() if events}

        errors = await self.opening.records.browse(look) if tried else {}
        return [_delivery(one, errors.get(one.id, one.error)) for one in found]

    async def info(self, hook: Hook) -> HookInfo:
        """Return a hook with the state of its deliveries."""
        tasks = self.tasks
        waiting = await tasks.list(session=hook.id, state="open", limit=_COUNTED)
        lost = [one for state in ("failed", "dead") for one in await tasks.list(session=hook.id, state=state, limit=1)]
        arrived = await tasks.list(session=hook.id, state="completed", limit=_RECENT)
        last = max(lost, key=lambda one: one.ended_at or 0, default=None)
        if last is not None and any((one.ended_at or 0) > (last.ended_at or 0) for one in arrived):
            last = None
        why, since = (_why(last.error), last.ended_at) if last is not None else ("", None)
        facts = (hook.id, hook.url, tuple(hook.kinds.split()), hook.run, hook.added_by, hook.added_at, hook.rotated_at)
        return HookInfo(*facts, len(waiting), why, since)


def sender_of(hook: Hook, workspace: str) -> str:
    """Return the name of the agent that makes the deliveries of a hook. Each hook for events has its own agent. Push
    notifications of a workspace share `PUSH_SENDERS` agents; all for one host have the same agent."""
    if not hook.task:
        return hook.id
    host = hook.url.partition("://")[2].partition("/")[0]
    return f"push-{digest(workspace)[:12]}-{int(digest(host)[:8], 16) % PUSH_SENDERS}"


def hook_key(hook: str) -> str:
    """Return the name under which the address and the credentials of a push notification are stored, encrypted."""
    return f"push-{hook}"


def hook_card(hook: str) -> Card:
    """Return the card of the agent under whose name the deliveries of a hook run."""
    return Card(hook, role="sends events to a hook", concurrency=AT_ONCE)


async def _sent_elsewhere(_turn: object) -> object:
    raise AssertionError("a process that only queues deliveries has no worker")


def _delivery(one: Status, error: str) -> Delivery:
    event, kind = one.meta.get("event", 0), one.meta.get("kind", "")
    next_at = None if one.state in TERMINAL else max(one.asked_at, one.ready_at)
    facts = (one.state, one.attempt, one.asked_at, one.ended_at, next_at, _why(error))
    return Delivery(one.id, one.session, int(event or 0), str(kind), *facts)


def _why(error: str) -> str:
    """Return the error of a delivery without the name of the hook's agent."""
    return error.partition(_NOT_DELIVERED)[2] or error


def _id(hook: object) -> str:
    return line(hook, "a hook's id", NAME_LIMIT)


def client() -> Any:
    """Return the HTTP client for addresses that users supply. It connects only to public addresses and to the networks
    that the operator permits."""
    return import_module("remit.adapters.vetted").of_operator(os.environ.get(NETWORKS_VARIABLE, ""))

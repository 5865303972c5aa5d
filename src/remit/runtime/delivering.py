"""Sending the events of workspaces to their hooks, at least once each.

A follower reads the journal of a workspace and submits one durable task for each event and hook, under a key that is
the same in every process; then it writes down how far it has come. So any number of processes may follow, and one that
is killed in between loses nothing. The tasks are those of the workspace `remit.hooks`, where each hook is an agent:
its retries, its limit of tasks at once and its log are those of an agent.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import anyio

from remit.core.backoff import RetryPolicy
from remit.core.card import Card
from remit.core.events import Event, Gap, Hook
from remit.core.hook import delivery_id, derived_secret, signed_headers
from remit.core.times import HOUR, SECOND, iso
from remit.core.values import digest, encode
from remit.engine.timing import move_on_after
from remit.errors import Conflict, Failed, RemitError
from remit.ports import Span, View
from remit.ports.services import Down, Undeliverable
from remit.ports.turn import TurnLike
from remit.report import wire
from remit.runtime.hooks import RETRY, SLOTS, TIMEOUT, DeliveryLog, client, hook_card, sender_of
from remit.runtime.opening import Opening
from remit.runtime.pushes import Pushes
from remit.runtime.workspace import Workspace

PAGE: Final = 200
LONGEST: Final = 65_536  # characters of a message; of a longer event only what it is about is sent
_TOGETHER: Final = 4  # deliveries that are queued at once: those of a burst must not hold the loop
_GAP: Final = "gap"
_CURSORS: Final = "cursors"
_GONE: Final = 410  # the receiver wants no more
_FAR: Final = 1_000  # events without a delivery after which the cursor is written all the same
_LOOK_SECONDS: Final = 1.0  # between two looks, in case a notification is missed
_AGAIN_SECONDS: Final = 10.0  # after a failure

_log = logging.getLogger("remit")
_carriers: WeakKeyDictionary[Any, "HookCarrier"] = WeakKeyDictionary()


class NotDelivered(Failed):
    """A hook did not accept a message. `retry_after` is how many seconds it asked to wait, or None."""

    retry_after: float | None = None


class _Found(NamedTuple):
    hooks: list[Hook]
    events: list[Event]
    gaps: list[Gap]
    end: int


class Taken(Protocol):
    """The answer of a hook's address to a delivery."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class Sender(Protocol):
    """Sends a message to an address."""

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> Taken: ...


class Carries(Protocol):
    """The part of a `Runtime` that makes deliveries. Callers pass the class: `Runtime` itself imports this module."""

    @property
    def workspace(self) -> Workspace: ...
    def cards(self) -> Sequence[Card]: ...
    def add(self, card: Card, answer: Any, *, retry: RetryPolicy, timeout: float) -> Any: ...
    def serving(self) -> AbstractAsyncContextManager[Any]: ...
    def close(self) -> None: ...


RuntimeOf: TypeAlias = Callable[[Opening], Carries]
_Wanted: TypeAlias = tuple[Hook, str, dict[str, Any], str]  # its message, what that is about, and its name


async def carry(opening: Opening, runtime_of: RuntimeOf) -> None:
    """Send the events of a workspace to its hooks, until it has no hook or the caller is cancelled. The followers of
    one database share the slots for deliveries."""
    database = opening.database
    carrier = _carriers.get(database)
    if carrier is None:
        carrier = _carriers[database] = HookCarrier(opening, client(), runtime_of)
    await carrier.carry(opening)


async def carry_hooks(opening: Opening, runtime_of: RuntimeOf) -> None:
    """Send the events of a workspace to its hooks, until cancelled. While there is no hook, this looks for one every
    second, and opens nothing else."""
    said = ""
    while True:
        pause = _LOOK_SECONDS
        try:
            if await opening.records.read(lambda view: view.hooks()):
                await carry(opening, runtime_of)
        except Exception as error:  # noqa: BLE001 - tasks go on, and this loop must too
            pause = _AGAIN_SECONDS
            if repr(error) != said:  # once, not every ten seconds
                said = repr(error)
                trace = None if isinstance(error, RemitError) else error
                _log.warning("events are not sent to hooks; trying again every %g s: %s", pause, error, exc_info=trace)
        with move_on_after(opening.clock, pause):
            await anyio.sleep_forever()


class HookCarrier:
    """Makes the deliveries of a database, for the workspaces that it is given."""

    def __init__(self, opening: Opening, sends: Sender, runtime_of: RuntimeOf) -> None:
        self.log = DeliveryLog(opening, SLOTS)
        self.runtime = runtime_of(self.log.opening)
        self._sends = sends
        self._clock = opening.clock
        self._carried = 0

    async def carry(self, opening: Opening) -> None:
        """Follow a workspace and make deliveries, until it has no hook."""
        root = await self.log.signing_key()
        self._carried += 1
        try:
            follower = Follower(self, opening, root)
            await follower.register()
            async with self.runtime.serving():
                await follower.follow()
        finally:
            self._carried -= 1
            if not self._carried:
                self.runtime.close()

    async def send(self, hook: Hook, secrets: Sequence[bytes], message_id: str, body: bytes) -> Taken:
        """Send a message to a hook, signed with each secret."""
        headers = signed_headers(secrets, message_id, self._clock.now() // SECOND, body)
        return await self.post(hook, body, headers)

    async def post(self, hook: Hook, body: bytes, headers: Mapping[str, str]) -> Taken:
        return await self._sends.post(hook.url, body, headers)


class Follower:
    """Follows the journal of one workspace, and submits its deliveries."""

    def __init__(self, carrier: HookCarrier, opening: Opening, root: bytes) -> None:
        self._carrier = carrier
        self._log = carrier.log
        self._name = opening.workspace
        self._opening = opening
        self._root = root
        self._known: set[str] = set()
        self._moved = opening.clock.now()
        self._seen = 0  # the last event that this process has looked at

    async def follow(self) -> None:
        """Submit a delivery for each event and hook that wants it, until there is no hook."""
        store, changed = self._opening.records, asyncio.Event()
        stops = store.listen(changed.set), store.subscribe(lambda _: changed.set())
        try:
            while True:
                changed.clear()
                if not await self.pass_on():
                    return
                timer = self._opening.clock.call_later(_LOOK_SECONDS, changed.set)
                try:
                    await changed.wait()
                finally:
                    timer.cancel()
        finally:
            for stop in stops:
                stop()

    async def register(self) -> None:
        """Register an agent for each hook, so that this process makes the deliveries that are queued for the hook."""
        for hook in await self._opening.records.read(lambda view: view.hooks()):
            self._be_agent(hook)

    async def pass_on(self) -> bool:
        """Submit deliveries for everything that happened since the last time, in any process. Return whether there is a
        hook."""
        while True:
            cursor = await self._carrier.runtime.workspace.context().entry(_CURSORS, digest(self._name))
            kept = int(str(cursor.value)) if cursor is not None else 0
            after = max(self._seen, kept)
            found = await self._opening.records.browse(lambda view, after=after: _look(view, after))
            if not found.hooks:
                return False
            for hook in found.hooks:
                self._be_agent(hook)
            if found.end <= after:
                return True
            is_late = self._opening.clock.now() - self._moved >= HOUR  # pruned events that were seen are no gap
            if await self._submit(found) or found.end - kept >= _FAR or is_late:
                await self._move(found.end, 0 if cursor is None else cursor.version)
            self._seen = found.end
            if len(found.events) < PAGE:
                return True

    async def _submit(self, found: _Found) -> int:
        """Submit the deliveries of a page in small groups, so that other tasks of this process do not wait for all of
        them. Return the number of deliveries."""
        count, wanted = 0, self._deliveries(found)
        while some := [*islice(wanted, _TOGETHER)]:
            count += len(some)
            async with anyio.create_task_group() as group:
                for one in some:
                    group.start_soon(self._queue, *one)
        return count

    def _deliveries(self, found: _Found) -> Iterator[_Wanted]:
        """Yield the deliveries of a page."""
        for event in found.events:
            wanting = [one for one in found.hooks if _wants(one, event)]
            if wanting:
                body, meta = message(self._name, event), {"event": event.seq, "kind": event.kind}
                for hook in wanting:
                    yield hook, body, meta, str(event.seq)
        for gap in found.gaps:
            body = encode({"type": _GAP, "data": {"first": gap.first, "last": gap.last}})
            for hook in found.hooks:
                if gap.last > hook.began and not hook.task:
                    yield hook, body, {"kind": _GAP}, f"gap-{gap.first}-{gap.last}"

    async def _queue(self, hook: Hook, body: str, meta: dict[str, Any], name: str) -> None:
        """Submit a delivery, unless it was submitted before, perhaps by another version of remit with another text."""
        try:
            await self._log.submit(hook, body, meta, f"{hook.id}/{name}", self._name)
        except Conflict:
            _log.debug("the delivery %s to hook %s was queued before, with other words", name, hook.id)

    async def _move(self, end: int, version: int) -> None:
        """Store event number `end` as the cursor of this workspace, unless another process has changed it since
        `version`."""
        try:
            await self._carrier.runtime.workspace.context().set(_CURSORS, digest(self._name), end, expect=version)
            self._moved = self._opening.clock.now()
        except Conflict:
            _log.debug("another process follows workspace %s, too", self._name)

    def _be_agent(self, hook: Hook) -> None:
        name = sender_of(hook, self._name)
        if name in self._known:
            return
        self._known.add(name)
        runtime = self._carrier.runtime
        if name not in {card.name for card in runtime.cards()}:
            runtime.add(hook_card(name), self._deliver, retry=RETRY, timeout=TIMEOUT)

    async def _deliver(self, turn: TurnLike) -> str:
        """Send one message, which is the task of a hook, and return the answer of its address."""
        hook = await self._opening.records.read(lambda view: view.hook(turn.remit.session))
        if hook is None:
            raise self._failed(turn, "the hook was removed")
        if hook.task:
            return await self._push(turn, hook)
        said = json.loads(turn.task)
        if said["type"] == _GAP:
            first, last = said["data"]["first"], said["data"]["last"]
            raise self._failed(turn, f"events {first} to {last} were removed from the journal before they were sent")
        secrets = [
            derived_secret(self._root, self._name, hook.id, one) for one in hook.generations(self._opening.clock.now())
        ]
        number = delivery_id(self._name, said["data"]["seq"])
        return await self._accepted_answer(turn, self._carrier.send(hook, secrets, number, turn.task.encode()))

    async def _push(self, turn: TurnLike, hook: Hook) -> str:
        """Send the present state of an A2A task to an address. Delete the address afterwards if the task has ended, its
        access key is no longer valid, requests to it are forbidden, or it answers 410 (Gone). Other failures are
        retried."""
        pushes = Pushes(self._opening)
        target = await pushes.target(hook)
        try:
            if target is None or not await pushes.is_active(target):
                raise self._failed(turn, "the key does not count any more with which the address was given")
            made = await import_module("remit.adapters.a2a.push").pushed(self._opening, hook.task, target)
            headers = {**made.headers, "webhook-id": f"{hook.id}-{json.loads(turn.task)['data']['seq']}"}
            said = await self._accepted_answer(turn, self._carrier.post(hook, made.body, headers))
        except NotDelivered as error:
            if not error.retryable:
                await pushes.drop(hook.id)
            raise
        if made.is_last:
            await pushes.drop(hook.id)
        return said

    async def _accepted_answer(self, turn: TurnLike, sending: Awaitable[Taken]) -> str:
        """Return the answer of an address that accepted a message. Raise `NotDelivered` if it did not."""
        try:
            answer = await sending
        except Undeliverable as error:
            raise self._failed(turn, str(error)) from None
        except Down as error:
            raise self._failed(turn, str(error), again=True) from None
        if 200 <= answer.status < 300:
            return f"it answered {answer.status}"
        no = self._failed(turn, f"it answered {answer.status}", again=answer.status != _GONE)
        wait = answer.headers.get("retry-after", "")
        no.retry_after = float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 7 else None
        raise no

    def _failed(self, turn: TurnLike, why: str, *, again: bool = False) -> NotDelivered:
        return NotDelivered(why, agent=turn.agent, task=turn.remit.id, retryable=again)


def _wants(hook: Hook, event: Event) -> bool:
    return event.seq > hook.began and hook.wants(event.kind, event.run, event.task)


def _look(view: View, after: int) -> _Found:
    """Return the hooks, and a page of the events and gaps after event number `after` that are newer than the oldest
    hook. The `end` of the page is the number of the last event that was read."""
    hooks = view.hooks()
    start = max(after, min((hook.began for hook in hooks), default=0))
    events = view.events(Span(after=start, limit=PAGE)) if hooks else []
    end = events[-1].seq if len(events) == PAGE else max(view.head().seq, start)
    missed = view.gaps_after(start, PAGE) if hooks else []
    gaps = [gap._replace(first=max(gap.first, start + 1)) for gap in missed if gap.last <= end]
    return _Found(hooks, events, gaps, end)


def message(workspace: str, event: Event) -> str:
    """Return the message of an event, the same text in every process. If it is longer than `LONGEST`, it has no data
    and no answer."""
    said: dict[str, Any] = {
        "type": event.kind,
        "timestamp": iso(event.at),
        "data": {"workspace": workspace, **wire.event(event)},
    }
    text = encode(said)
    if len(text) > LONGEST:
        said["data"] |= {"data": None, "answer": None, "is_cut": True}
        text = encode(said)
    return text

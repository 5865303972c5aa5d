"""Delivering questions to people, and receiving their answers.

The journal is the outbox: an open question without a `notice.sent` for a channel is delivered to that channel, with
retries, at least once, and always under the same id.

To have one of several processes deliver it, that process claims it first: `notice.claimed` names its worker, and is
valid while that worker has a heartbeat, and serves or runs the task that asks. So no claim has to be renewed, and a
killed process loses its claims with its heartbeat. In memory, without other processes, nothing is claimed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import Any, Final, Literal, NamedTuple, cast

import anyio

from remit.core.backoff import RetryPolicy, delay, wanted_wait
from remit.core.events import Place, Unsealed, read
from remit.core.kinds.people import NoticeClaimed, question_event
from remit.core.question import Inquiry, Question, Reply
from remit.core.times import SECOND
from remit.core.values import NAME_LIMIT, line, shown
from remit.engine.ground import Ground
from remit.engine.people import Answers, asked_since, inquiry, notice_op, open_questions
from remit.engine.presence.bell import Bell, Listener
from remit.engine.presence.heartbeat import Heartbeat
from remit.engine.timing import move_on_after, paused
from remit.errors import BadInput, NewerStore, NotFound, StoreError
from remit.ports import Channel, Decision, Down, Hearer, Teller, Undeliverable, View

PATIENCE: Final = 60.0  # timeout of one try of a channel, in seconds
AT_ONCE: Final = 4  # concurrent deliveries to one channel

_AGAIN: Final = RetryPolicy(first=1.0, cap=60.0)
_TAKEN: Final = 5.0  # seconds between two checks of a delivery that another process has claimed
_STEADY: Final = 60 * SECOND  # after listening for this long, the retry pauses start again
_ASKED: Final = frozenset(("question.asked",))
_REF, _WHY = 200, 500

_log = logging.getLogger("remit")

Due = Literal["mine", "free", "taken", "over"]


class AnswerDesk(NamedTuple):
    """Receives answers from the channels of a process."""

    ground: Ground
    answers: Answers

    @property
    def workspace(self) -> str:
        return self.ground.store.workspace

    async def look(self, question: str) -> Inquiry:
        line(question, "a question's id", NAME_LIMIT)

        def look(view: View) -> Inquiry | None:
            found = view.question(question)
            return None if found is None else inquiry(view, found)

        found = await self.ground.store.read(look)
        if found is None:
            raise NotFound(f"there is no question {shown(question)} in this workspace")
        return found

    async def answer(self, question: str, reply: Reply) -> None:
        if reply.state not in ("approved", "rejected", "answered"):
            raise BadInput(f"a person approves, rejects or answers; a channel said {shown(reply.state)}")
        await self.answers.answer(question, reply)


class Route:
    """One delivering channel, and its state."""

    def __init__(self, channel: Teller) -> None:
        self.channel = channel
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.not_before = 0  # in ticks: the channel asked for a pause until then
        self._is_down = False

    def went_down(self, error: Exception) -> None:
        if self._is_down:
            return
        self._is_down = True
        if isinstance(error, Down):
            _log.warning("channel '%s' is down, which is tried again: %s", self.channel.name, error)
        else:
            _log.error("channel '%s' failed, which is tried again: %r", self.channel.name, error, exc_info=error)

    def works(self) -> None:
        if self._is_down:
            _log.info("channel '%s' works again", self.channel.name)
        self._is_down = False


class Told(NamedTuple):
    """The result of a delivery to be recorded."""

    ref: str = ""
    error: str = ""


class Errand:
    """The delivery of one question to one channel."""

    def __init__(self, desk: AnswerDesk, heartbeat: Heartbeat, question: str, route: Route) -> None:
        self._ground = desk.ground
        self._heartbeat = heartbeat
        self._question = question
        self._route = route
        self._op = notice_op(question, route.channel.name)
        self._failures = 0
        self._told: Told | None = None  # delivered, but not yet recorded

    async def run(self) -> None:
        """Deliver the question, and retry after failures. Stop when the channel has accepted the question or refused it
        for good, or when the question is closed."""
        while (pause := await self._bear()) is not None:
            await paused(self._ground.clock, pause)

    async def _bear(self) -> float | None:
        """Try to deliver the question once. Return the seconds until the next try, or None if no other try is
        needed."""
        try:
            return await self._try()
        except NewerStore:  # reported by the worker
            return None
        except StoreError as error:
            _log.warning("channel '%s' waits for the store, which is tried again: %s", self._route.channel.name, error)
            return self._backoff(error)
        except Exception as error:  # noqa: BLE001 - a foreign channel may raise anything; the others continue
            self._route.went_down(error)
            return self._backoff(error)

    def _backoff(self, error: Exception) -> float:
        self._failures += 1
        clock = self._ground.clock
        wanted = wanted_wait(error, clock.now())
        if wanted:  # a pause that the channel asks for applies to all questions
            self._route.not_before = max(self._route.not_before, clock.ticks() + wanted)
        return max(delay(self._failures, self._ground.ids.chance(), _AGAIN), wanted) / SECOND

    async def _try(self) -> float | None:
        if self._told is None:
            left = self._route.not_before - self._ground.clock.ticks()
            if left > 0:
                return left / SECOND
            due = await self._claim()
            if due != "mine":
                return _TAKEN if due == "taken" else None
            self._told = await self._tell()
        if self._told is not None:
            await self._record(self._told)
        return None

    async def _tell(self) -> Told | None:
        channel = self._route.channel
        async with self._route.slots:
            found = await self._ground.store.read(lambda view: _if_open(view, self._question))
            if found is None:
                return None
            try:
                ref = await self._within_time(channel.tell(self._ground.store.workspace, found))
            except Undeliverable as error:
                _log.error("channel '%s' cannot tell of question %s: %s", channel.name, found.id, error)
                return Told(error=_short(error.why, _WHY) or "it was refused")
        self._route.works()
        return Told(ref=_short(ref, _REF))

    async def _within_time(self, telling: Awaitable[str]) -> str:
        with move_on_after(self._ground.clock, PATIENCE):
            return await telling
        raise Down(why=f"it did not answer within {PATIENCE:g} s")

    async def _claim(self) -> Due:
        """Claim this delivery. Return "mine" if this process delivers it, "taken" if another one does, and "over" if it
        is done or no longer needed."""
        worker = self._heartbeat.worker
        due, claims = await self._ground.store.read(self._due)
        if due != "free":
            return due
        data: NoticeClaimed = {"question": self._question, "channel": self._route.channel.name, "worker": worker}

        def decide(view: View) -> Decision[str]:
            event = self._event(view, "notice.claimed", {**data}) if self._due(view) == ("free", claims) else None
            return Decision(worker, (event,)) if event is not None else Decision("")

        # Numbered, so that if two processes find it unclaimed, one wins and the other learns who did.
        claimed_by = (await self._ground.store.tx(f"{self._op}/{claims}", decide)).answer
        return "mine" if claimed_by == worker else "taken"

    def _due(self, view: View) -> tuple[Due, int]:
        """Return the state of this delivery and the number of claims so far. The state is "mine", "taken" by another
        process, "free" to claim, or "over"."""
        found = view.question(self._question)
        if found is None or not found.is_open or found.until <= self._ground.clock.now():
            return "over", 0
        if view.done(self._op) is not None:
            return "over", 0
        if not self._heartbeat.lasting:
            return "mine", 0
        claims = view.done_under(f"{self._op}/")
        holder = read(claims[-1], NoticeClaimed)["worker"] if claims else ""
        if holder == self._heartbeat.worker:
            return "mine", len(claims)
        delivers = any(
            beat.worker == holder and (beat.hands or _is_asked_by(view, found, holder)) for beat in view.workers()
        )
        return ("taken" if delivers else "free"), len(claims)

    async def _record(self, told: Told) -> None:
        data: dict[str, Any] = {"question": self._question, "channel": self._route.channel.name}
        data |= {"error": told.error} if told.error else {"ref": told.ref}

        def decide(view: View) -> Decision[None]:
            event = self._event(view, "notice.sent", data)
            return Decision(None, (event,) if event is not None else ())

        await self._ground.store.tx(self._op, decide)

    def _event(self, view: View, kind: str, data: dict[str, Any]) -> Unsealed | None:
        question = view.question(self._question)
        if question is None:  # pruned meanwhile
            return None
        place = Place(question.run, question.session, question.task)
        return question_event(kind, place, question.agent, self._ground.clock.now(), data)


class Messenger:
    """Delivers questions and receives answers, in a process that has channels. A slow channel blocks neither tasks nor
    other channels.

    While a worker serves in this process, every question of the workspace is delivered. Otherwise only the questions of
    this process's runs are delivered, and the channels listen for answers only after the first question."""

    def __init__(
        self, desk: AnswerDesk, bell: Bell, heartbeat: Heartbeat, channels: Sequence[Channel], look: float
    ) -> None:
        self._desk = desk
        self._bell = bell
        self._heartbeat = heartbeat
        self._look = look
        self._routes = [Route(cast("Teller", one)) for one in channels if callable(getattr(one, "tell", None))]
        self._hearers = [cast("Hearer", one) for one in channels if callable(getattr(one, "listen", None))]
        self._seen = 0  # number of the last event that was read for questions
        self._users = 0
        self._workers = 0  # workers among the users
        self._sees_all = True  # whether all open questions were looked up since a worker serves
        self._under_way: set[tuple[str, str]] = set()  # deliveries in progress: question and channel
        self._listener: Listener | None = None
        self._task: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Deliver all open and new questions to the channels and receive answers, until cancelled."""
        self._workers += 1
        self._sees_all = False
        if self._listener is not None:
            self._listener.wake()
        try:
            async with self.attend():
                await anyio.sleep_forever()
        finally:
            self._workers -= 1

    @asynccontextmanager
    async def attend(self) -> AsyncGenerator[None]:
        """Deliver what this process asks while the body runs."""
        task = self._task
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            self._users = 0
        if not self._users and not self._workers:
            # What is open now was asked elsewhere: only a worker delivers that.
            latest = await self._desk.ground.store.read(lambda view: view.questions(1))
            self._seen = max(self._seen, latest[0].asked if latest else 0)
        self._users += 1
        if self._users == 1:
            self._task = asyncio.create_task(self._run(task), context=copy_context())
        try:
            yield
        finally:
            self._users -= 1
            if not self._users and self._task is not None:
                self._task.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait((self._task,))

    async def _run(self, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None and earlier.get_loop() is asyncio.get_running_loop():
            await asyncio.wait((earlier,))  # it may still hold the port of an answer page
        self._under_way.clear()
        async with self._bell.listen(_ASKED) as listener, anyio.create_task_group() as group:
            listener.heeds_all = False
            self._listener, hears = listener, False
            while True:
                try:
                    questions = await self._new_questions()
                except NewerStore:  # reported by the worker
                    group.cancel_scope.cancel()
                    return
                except Exception as error:  # noqa: BLE001 - an error here must not stop the work
                    trace = None if isinstance(error, StoreError) else error
                    _log.warning("what is asked could not be looked up, tried again: %s", error, exc_info=trace)
                    questions = []
                if not hears and (questions or self._workers):
                    hears = True
                    for hearer in self._hearers:
                        group.start_soon(self._listen, hearer)
                for question in questions:
                    for route in self._routes:
                        group.start_soon(self._deliver, question, route)
                await listener.wait(self._look)

    async def _deliver(self, question: str, route: Route) -> None:
        delivery = question, route.channel.name
        if delivery not in self._under_way:
            self._under_way.add(delivery)
            await Errand(self._desk, self._heartbeat, question, route).run()
            self._under_way.discard(delivery)

    async def _new_questions(self) -> list[str]:
        """Return the open questions that were asked since the last call and are to be delivered here. After a worker
        has started to serve, the first call returns all open questions."""
        store, seen, worker = self._desk.ground.store, self._seen, self._heartbeat.worker
        if self._workers and not self._sees_all:
            await self._heartbeat.beat_now()  # a claim is valid only with a heartbeat
            latest, questions = await store.browse(open_questions)
            self._sees_all = True
        else:
            serves = self._workers > 0

            def look(view: View) -> tuple[int, list[Question]]:
                latest, found = asked_since(view, seen)
                return latest, [one for one in found if serves or _is_asked_by(view, one, worker)]

            latest, questions = await store.read(look)
        self._seen = max(latest, seen)
        return [question.id for question in questions]

    async def _listen(self, hearer: Hearer) -> None:
        clock, ids = self._desk.ground.clock, self._desk.ground.ids
        failures = 0
        while True:
            began = clock.ticks()
            try:
                await hearer.listen(self._desk)
            except (Undeliverable, NewerStore) as error:
                _log.error("channel '%s' brings no answers any more: %s", hearer.name, error)
                return
            except Exception as error:  # noqa: BLE001 - a foreign channel may raise anything; the others continue
                failures = 1 if clock.ticks() - began >= _STEADY else failures + 1
                _log_deaf(hearer.name, error, failures)
                pause = max(delay(failures, ids.chance(), _AGAIN), wanted_wait(error, clock.now()))
                await paused(clock, pause / SECOND)
            else:
                return


def _log_deaf(name: str, error: Exception, failures: int) -> None:
    if failures > 1:  # it was logged already
        return
    if isinstance(error, Down | StoreError):
        _log.warning("channel '%s' cannot bring answers, which is tried again: %s", name, error)
    else:
        _log.error("channel '%s' failed while it listened, which is tried again: %r", name, error, exc_info=error)


def _is_asked_by(view: View, question: Question, worker: str) -> bool:
    """Whether the asking task is at work in the process of this worker."""
    record = view.record(question.task)
    return record is not None and record.worker == worker


def _if_open(view: View, question: str) -> Inquiry | None:
    found = view.question(question)
    return inquiry(view, found) if found is not None and found.is_open else None


def _short(text: object, most: int) -> str:
    """Return a channel's text on one line, with characters that every store can hold."""
    said = "".join(letter if letter.isprintable() else " " for letter in str(text))
    return said.encode(errors="replace").decode()[:most].strip()

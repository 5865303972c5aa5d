"""Calls of agents: the tasks of one call from their start to their outcomes, over any number of rounds.

A call may take longer than a client waits. With the newer revision of the protocol a server answers after 25 seconds
and the client comes back; with the older one the call stays open. In both, the tasks are durable: the call can go on in
another process.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import anyio

from remit.adapters.mcp.questions import QuestionForm, form_of, reply_of
from remit.adapters.mcp.state import REFUSED, CallState
from remit.core.events import Event
from remit.core.lifecycle import ENDS, Outcome
from remit.core.question import Inquiry
from remit.core.times import SECOND
from remit.errors import BadInput, Conflict, NotFound, Refused
from remit.runtime.journal import LOOK_SECONDS, Follow
from remit.runtime.outsiders import Outsider

HOLD: Final = 25 * SECOND  # how long one round waits
ROUNDS: Final = 8  # clients end a call after ten
CHECK_SECONDS: Final = 0.3  # between two looks whether the key still counts: with its cache, less than a second
HEARTBEAT: Final = 15 * SECOND  # between two progress messages without news: some clients give up in silence
_MOST_BEATS: Final = 1_000_000  # between two events; half a year
_REASON: Final = 300  # characters of a refusal
_CANCEL_SECONDS: Final = 10
_WHY: Final = "cancelled by its caller"
_NOTEWORTHY: Final = ENDS | {"question.asked"}


class Response(NamedTuple):
    """What the person did with a form: accept, decline or cancel."""

    action: str
    content: Mapping[str, Any] | None = None


class CallWire(Protocol):
    """The connection of one call to its client: sends progress, and shows forms."""

    @property
    def comes_back(self) -> bool:
        """Whether the client continues the call with another request, which carries the state that the server
        returned."""
        ...

    @property
    def shows_forms(self) -> bool:
        """Whether the client can show a form to a person."""
        ...

    async def progress(self, done: float, text: str) -> None: ...
    async def ask(self, form: QuestionForm) -> Response:
        """Show a form now, and wait for the response. Only a call that does not come back can."""
        ...

    def check(self) -> Awaitable[object]:
        """Raise an error of remit if the caller may not call any more."""
        ...

    def was_left(self) -> bool:
        """Whether the client ended the call, rather than this server."""
        ...


class Ended(NamedTuple):
    """Every task of the call has ended. `outcomes` has the outcome of each; for a task that was refused, `REFUSED` and
    the reason. `tasks` are the ids of the tasks that were started."""

    outcomes: tuple[Outcome | str, ...]
    tasks: tuple[str, ...]


class ComeBack(NamedTuple):
    """The client calls again with this state; with a form, after the person has filled it in."""

    state: CallState
    form: QuestionForm | None = None


class StillOpen(NamedTuple):
    """The call has ended, and its tasks continue without it. `questions` are those that a person must answer
    elsewhere."""

    tasks: tuple[str, ...]
    questions: tuple[Inquiry, ...]


CallEnd = Ended | ComeBack | StillOpen
Start = Callable[[], Awaitable[str]]  # starts a task and returns its id


async def started(starts: Sequence[Start], outsider: Outsider, wire: CallWire) -> CallState:
    """Start the tasks of a call. If the client leaves meanwhile, cancel them. If the only task is refused, raise the
    refusal; of several tasks, return each refusal in place of its task."""
    done: list[str] = []
    async with _cancelled_with_call(outsider, wire, lambda: CallState(tuple(done), 0)):
        for start in starts:
            try:
                with anyio.CancelScope(shield=True):  # otherwise a task could start that no caller waits for or cancels
                    done.append(await start())
            except (Refused, NotFound, BadInput) as refusal:
                if len(starts) == 1:
                    raise
                done.append(f"{REFUSED}{str(refusal)[:_REASON]}")
            await anyio.lowlevel.checkpoint()
        state = CallState(tuple(done), 0)
        began = [(await outsider.status(task)).began for task in state.tasks]
        return state._replace(seq=min(began, default=1) - 1)


async def followed(state: CallState, outsider: Outsider, wire: CallWire, response: Response | None) -> CallEnd:
    """Follow the tasks of a call to their end, or to the end of this round. If the client leaves, cancel them."""
    async with _cancelled_with_call(outsider, wire, lambda: state):
        return await OpenCall(state, outsider, wire).follow(response)


class _cancelled_with_call:  # noqa: N801 - a context manager
    """Cancel the tasks of a call whose client leaves."""

    def __init__(self, outsider: Outsider, wire: CallWire, state: Callable[[], CallState]) -> None:
        self._outsider = outsider
        self._wire = wire
        self._state = state

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, anyio.get_cancelled_exc_class()) or not self._wire.was_left():
            return
        with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
            for task in self._state().tasks:
                await self._outsider.workspace.tasks.cancel(task, _WHY, by=self._outsider.by)


class OpenCall:
    """One round of a call."""

    def __init__(self, state: CallState, outsider: Outsider, wire: CallWire) -> None:
        self._state = state
        self._outsider = outsider
        self._wire = wire
        self._clock = outsider.clock
        self._told_at = self._clock.now()  # when the client last heard anything
        self._beats = 0  # progress messages since the last event
        self._outcomes: dict[str, Outcome] = {}
        self._left_open: set[str] = set()  # questions that the person did not decide
        self._wrong: dict[str, str] = {}  # what was wrong with an answer

    async def follow(self, response: Response | None) -> CallEnd:
        """Handle the person's response to the last form, and wait for the next result, question or timeout."""
        if response is not None and self._state.question:
            await self._take(self._state.question, response)
        over = self._clock.now() + HOLD
        async with self._following() as events:
            end: CallEnd | None = None
            if self._state.tasks and not self._state.rounds:  # they have just begun, so there is something to tell
                end = await self._until_noteworthy(events.next, over)
            while end is None and (end := await self._end()) is None:
                end = await self._until_noteworthy(events.next, over)
            return end

    def _following(self) -> Follow[Event]:
        tasks, after, journal = self._state.tasks, self._state.seq, self._outsider.workspace.journal
        if len(tasks) == 1:
            return journal.follow(after=after, run=tasks[0])
        return journal.follow(after=after, session=self._outsider.session)

    async def _until_noteworthy(
        self, following: Callable[[float], Awaitable[list[Event]]], over: int
    ) -> CallEnd | None:
        """Report progress until a task ends or asks a question, and return None. If the client
        comes back, return the end of the round at the time `over`, in microseconds since 1970."""
        while True:
            left = (over - self._clock.now()) / SECOND if self._wire.comes_back else LOOK_SECONDS
            if left <= 0:
                return self._come_back()
            await self._wire.check()
            events = [one for one in await following(min(left, CHECK_SECONDS)) if one.run in self._state.tasks]
            for event in events:
                self._state, self._beats = self._state._replace(seq=event.seq), 0
                await self._tell(event.seq, f"{event.kind} {event.agent}".strip())
            if self._clock.now() - self._told_at >= HEARTBEAT:
                self._beats += 1
                await self._tell(self._state.seq + self._beats / _MOST_BEATS, "no news yet")
            if any(event.kind in _NOTEWORTHY for event in events):
                return None

    async def _tell(self, done: float, text: str) -> None:
        """Report progress. `done` grows with every report, as the protocol wants."""
        self._told_at = self._clock.now()
        await self._wire.progress(done, text)

    async def _end(self) -> CallEnd | None:
        """Return the end of the call: the outcomes of all its tasks, or a question that the client must show. Return
        None if the call is not at its end."""
        tasks, outsider = self._state.tasks, self._outsider
        for task in tasks:
            if task not in self._outcomes and (await outsider.status(task)).ended_at is not None:
                self._outcomes[task] = await outsider.workspace.tasks.get(task).wait()
        if len(self._outcomes) == len(tasks):
            return Ended(tuple(self._outcomes.get(one, one) for one in self._state.started), tasks)
        for inquiry in await outsider.questions_in(tasks):
            if (end := await self._show_question(inquiry)) is not None:
                return end
        return None

    async def _show_question(self, inquiry: Inquiry) -> CallEnd | None:
        """Show a question to the person at the client. Return None once it is decided, or the end of the call if the
        client cannot show it or comes back with the answer."""
        form = form_of(inquiry, self._wrong.pop(inquiry.id, ""))
        may = self._outsider.answers and self._wire.shows_forms and inquiry.id not in self._left_open
        if form is None or not may:
            return StillOpen(self._state.tasks, tuple(await self._outsider.questions_in(self._state.tasks)))
        if self._wire.comes_back:
            return self._come_back(inquiry.id, form)
        response = await self._answered_here(inquiry, form)
        if response is not None:
            await self._take(inquiry.id, response)
        undecided = inquiry.id in self._left_open or inquiry.id in self._wrong
        return await self._show_question(inquiry) if undecided else None

    async def _answered_here(self, inquiry: Inquiry, form: QuestionForm) -> Response | None:
        """Return the person's response, or None if somebody else decided the question first."""
        response: Response | None = None
        async with anyio.create_task_group() as group:

            async def decided_elsewhere() -> None:
                async with self._outsider.workspace.journal.follow(run=inquiry.run, after=inquiry.seq) as follow:
                    while (await self._outsider.workspace.questions.get(inquiry.id)).state == "open":
                        await follow.next()
                group.cancel_scope.cancel()

            group.start_soon(decided_elsewhere)
            response = await self._wire.ask(form)
            group.cancel_scope.cancel()
        return response

    async def _take(self, question: str, response: Response) -> None:
        """Record the person's response to a question of this call, if it is still open."""
        inquiry = await self._outsider.workspace.questions.get(question)
        if inquiry.run not in self._state.tasks or inquiry.state != "open" or not self._outsider.answers:
            return
        try:
            reply = reply_of(inquiry, response.action, response.content, self._outsider.by)
            if reply is None:
                self._left_open.add(question)
            else:
                await self._outsider.decide(question, reply)
        except BadInput as error:
            self._wrong[question] = str(error)
        except Conflict:
            return  # another person was first: that answer counts

    def _come_back(self, question: str = "", form: QuestionForm | None = None) -> CallEnd:
        state = self._state._replace(rounds=self._state.rounds + 1, question=question)
        if state.rounds > ROUNDS:
            return StillOpen(state.tasks, ())
        return ComeBack(state, form)

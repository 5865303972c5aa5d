"""Running a task: turn after turn until it ends."""

import asyncio
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from anyio import CancelScope
from anyio.lowlevel import checkpoint

from remit.core.command import Command
from remit.core.lifecycle import Outcome
from remit.core.values import VALUE_LIMIT, Json, checked, plain
from remit.engine.attempt import endings
from remit.engine.attempt.calls import Call, Leaving, LeftBehind, is_interrupt
from remit.engine.attempt.endings import Ending, Endings
from remit.engine.attempt.handoffs import Handoffs, Sends
from remit.engine.attempt.live import LiveTask, LiveTasks
from remit.engine.attempt.replay import tell_left_over, unaccounted
from remit.engine.directory import Agent
from remit.engine.ground import Ground
from remit.errors import BadInput, Failed, Refused, StoreBusy, StoreError
from remit.ports import NOTHING, Decide, Decided, Wants
from remit.ports.models import HandedOver
from remit.ports.turn import CURRENT_TURN, TurnLike

LEFT_RUNNING: Final = "its asker ended without it"
ASKER_IS_OVER: Final = "its asker was stopped, or its time is up"


class Stray(Exception):
    """A CancelledError that the agent raised itself, without being cancelled."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Superseded(Refused):
    """Another process has taken over the task, so the results of this attempt are discarded."""


class HandlesLostTalks(Protocol):
    """Decides what happens to a turn whose conversation cannot be continued."""

    async def find(self, live: LiveTask) -> Failed | None:
        """Find the conversation of a rerun turn. Return an error if the agent cannot continue it."""
        ...

    async def lost_talk_error(self, live: LiveTask, *, ended: bool) -> Failed | None:
        """Return the error of a conversation that this run could not continue or, if its turn has `ended` without an
        error, has left unfinished."""
        ...

    async def restart(self, live: LiveTask) -> bool:
        """Restart the conversation of this turn, if that is allowed. Return whether it is."""
        ...


class ReviewsResults(Protocol):
    """Puts results before a person."""

    async def go_on(self, live: LiveTask) -> Ending | LiveTask | None:
        """Continue the review of a result that an earlier attempt put before a person. Return the end of the task, or
        the next turn of the agent if the result was sent back. Return None if there is no such result."""
        ...

    async def review(self, live: LiveTask, ending: Ending) -> Ending | LiveTask:
        """Return the end of the task, or the next turn of the agent if its result was sent back."""
        ...


class Conductor:
    """Admits tasks and runs them to their end. `take_turn` creates the agent's turn; `led` returns the function that
    leads a plan or a team in the holder's place; `closing` says whether this process is requeueing its work.
    assembly.py sets these, to avoid import cycles."""

    lost_talks: Callable[[], HandlesLostTalks]
    reviews: Callable[[], ReviewsResults]

    def __init__(self, ground: Ground, handoffs: Handoffs, endings: Endings, alive: LiveTasks, *, grace: float) -> None:
        self.alive = alive
        self._leaving = Leaving(ground.clock, grace, alive.calls_inside)
        self.take_turn: Callable[[LiveTask], TurnLike]
        self.led: Callable[[LiveTask], Agent]
        self.closing: Callable[[], bool]
        self._ground = ground
        self._handoffs = handoffs
        self._endings = endings

    async def admit(self, live: LiveTask, op: str, decide: Decide[Json], wants: Wants = NOTHING) -> Decided[Json]:
        """Request admission for a task. Return the answer: the task's id, or a refusal. If the task is admitted, the
        caller must run it with `carry`.

        The task can be cancelled from the moment it is recorded, so it is added to the live tasks before that."""
        self.alive.enter(live)
        try:
            decided = await self._ground.store.tx(op, decide, wants)
        except BaseException as error:
            await self._torn_down(live, error)
            raise
        if not isinstance(decided.answer, str):
            self.alive.leave(live)
        return decided

    async def hold_back(self, live: LiveTask, until: Awaitable[None]) -> None:
        """Wait for `until` between the admission of a task and its start. If the wait fails or is cancelled, record the
        end of the task."""
        try:
            await until
        except BaseException as error:
            await self._torn_down(live, error)
            raise

    async def carry(self, live: LiveTask, sends: Sends | None = None) -> Outcome:
        """Run an admitted or claimed task to its end, record that end as exactly one event, and return the outcome.
        Raise `Superseded` if another process has taken the task over.

        A claimed task continues where its record ends."""
        ending: Ending | None = None
        try:
            ending = await self._ran(live, sends)
            last = self.alive.latest(live)
            recorded = await self._endings.finish(last, ending)
        except BaseException as error:
            await self._torn_down(live, error, ending)
            raise
        self.alive.leave(live)
        if recorded is None:
            raise Superseded(f"another process has taken over the task of '{last.remit.holder}'", rule="over")
        outcome = recorded.outcome
        asked = live.remit.holder  # the asker must see the agent it asked, whichever agent returned
        return outcome if outcome.agent == asked else outcome.as_asked(asked)

    async def put_back(self, live: LiveTask) -> None:
        """Requeue a claimed task without running it."""
        try:
            await self._endings.finish(live, endings.released(live.remit))
        finally:
            self.alive.leave(live)

    async def _ran(self, live: LiveTask, sends: Sends | None) -> Ending:
        ending: Ending | None = None
        control, life = live.control, live.life
        try:
            with control.run():
                if live.agent.card.review:
                    ending = await self._reviewed(live, await self._go_on(live, sends))
                else:
                    # Only a reviewed result may count if the task is stopped meanwhile.
                    came = await self._turns(live, sends)
                    ending = came if not live.over else await self._reviewed(live, came)
        except Exception as error:  # noqa: BLE001 - a handoff could not be recorded or decided: an ordinary failure
            return endings.failed(self.alive.latest(live).remit, error)
        finally:
            control.end()
        # Judge by the clock, not by the cancel scope: code that blocks the loop may return after its time without being
        # cancelled.
        now = control.clock.ticks()
        if ending is not None and not life.why_stopped(now):
            return ending
        if life.has_stopped(now) or ending is None:
            return self._stopped(live, ending)
        return self._counts(live, ending)

    def _stopped(self, live: LiveTask, ending: Ending | None) -> Ending:
        """Return the ending of a task that was cancelled, stopped as failed (for example, because a function of the
        owner raised), released to the queue, or timed out. `ending` is that of its agent; it is used only if the task
        was released and the agent has completed."""
        life, last = live.life, self.alive.latest(live).remit
        if life.stop == "cancelled":
            return endings.stopped(last, life.why, unheard=life.why == LEFT_RUNNING)
        if life.error is not None:
            return endings.failed(last, life.error)
        if life.stop == "released":  # a completed result counts
            return ending if ending is not None and ending.kind == "task.completed" else endings.released(last)
        return endings.timed_out(last, final=life.final, short=life.short)  # a late answer does not count

    def _counts(self, live: LiveTask, ending: Ending) -> Ending:
        """Return the ending of a task whose asker has ended. If the asker is only requeued, keep a completed result and
        leave everything else to the asker's next attempt."""
        if not self._is_requeued(live):
            return endings.stopped(self.alive.latest(live).remit, ASKER_IS_OVER, unheard=True)
        if ending.kind != "task.completed":
            raise CancelledError
        return ending

    async def _turns(self, live: LiveTask, sends: Sends | None) -> Ending:
        if sends is not None:
            followed = await self._handoffs.go_on(live, sends)
            if isinstance(followed, Ending):
                return await self._accounted(live, followed)
            live = followed
        while True:
            answer = await (self.turn(live) if live.operations.visited is None else self._turn_again(live))
            if isinstance(answer, Ending):
                back = await self._handoffs.give_back(live, answer) if self._handoffs.gives_back else None
                if back is None:
                    if live.operations.visited is None and "conversation" not in live.__dict__:
                        return answer  # a first run without a model: there is no record to account for
                    return await self._accounted(live, answer)
                live = back
                continue
            if why := live.control.why_stopped():
                return endings.stopped(live.remit, why)
            followed = await self._handoffs.follow(live, answer)
            if isinstance(followed, Ending):
                return await self._accounted(live, followed)
            live = followed

    async def _go_on(self, live: LiveTask, sends: Sends | None) -> Ending:
        """Run the turns of an agent whose results are reviewed. If an earlier attempt put a result before a person,
        continue that review instead of calling the agent again."""
        kept = await self.reviews().go_on(live) if live.attempt.is_rerun and sends is None else None
        if isinstance(kept, Ending):
            return await self._handoffs.with_artifacts(live, kept)
        return await self._turns(live if kept is None else kept, sends)

    async def _reviewed(self, live: LiveTask, ending: Ending) -> Ending:
        """Let a person review a result, and each later one if the person sends it back."""
        while ending.kind == "task.completed" and (last := self.alive.latest(live)).card.review:
            decided = await self.reviews().review(last, ending)
            if isinstance(decided, Ending):
                return await self._handoffs.with_artifacts(last, decided)
            ending = await self._turns(decided, None)
        return ending

    async def _accounted(self, live: LiveTask, ending: Ending) -> Ending:
        """Return the ending, or a failure if a rerun would complete without requesting every recorded effect."""
        left: Exception | None = None
        if ending.kind == "task.completed" and live.attempt.is_rerun:
            left = await unaccounted(self._ground, live)
            if left is None:
                await tell_left_over(self._ground, live)
        if "conversation" in live.__dict__:
            live.conversation.talks.clear()  # break the reference cycle with the task, so that both are freed at once
        return ending if left is None else endings.failed(live.remit, left)

    async def _turn_again(self, live: LiveTask) -> Ending | Command:
        """Call an agent whose task was run before. If it cannot continue the recorded conversation, the turn fails, or
        the conversation restarts where that is allowed; never silently."""
        talks = self.lost_talks()
        lost = await talks.find(live)
        if lost is None:
            answer = await self.turn(live)
            ended = not isinstance(answer, Ending) or answer.kind == "task.completed"
            lost = await talks.lost_talk_error(live, ended=ended)
            if lost is None:
                return answer
        return await self.turn(live) if await talks.restart(live) else endings.failed(live.remit, lost)

    async def turn(self, live: LiveTask) -> Ending | Command:  # noqa: PLR0911 - one for each way to end
        """Call the agent. Return how its turn ended, whatever it does."""
        remit = live.remit
        live.receipt.task(remit.task)
        try:
            answer = await self.call(live, live.agent if live.lead is None else self.led(live))
        except HandedOver as handed:  # raised in a model's tool call; a BaseException, so no framework catches it
            answer = handed.command
        except CancelledError:
            raise  # an outside cancellation; one of the agent's own making is `Stray`
        except LeftBehind:
            live.left = True
            return endings.stopped(remit, "it was cancelled and did not stop")
        except Stray as stray:
            return endings.failed(remit, stray.error)
        except BaseException as error:
            if is_interrupt(error):
                raise
            return endings.failed(remit, error)
        try:
            if answer.__class__ is str:  # nearly always, and a text refers to no artifact
                return endings.completed(
                    remit, plain(answer, f"the result of '{remit.holder}'", VALUE_LIMIT, empty=True)
                )
            if isinstance(answer, Command):
                return answer
            ending = endings.completed(remit, checked(answer, f"the result of '{remit.holder}'"))
        except BadInput as no:
            return endings.unusable(remit, no)
        return await self._handoffs.with_artifacts(live, ending)

    async def call(self, live: LiveTask, agent: Agent) -> object:
        """Create a turn for an agent, run the agent with it as the current turn, and return the answer. If the call was
        cancelled from outside, raise that cancellation even if the agent answered. If the agent raised CancelledError
        without being cancelled, raise `Stray`."""
        turn = self.take_turn(live)
        control = live.control
        outer = CURRENT_TURN.set(turn)
        call: Call | None = None
        try:
            call = Call(agent.card.name, agent.call(turn), control.scope, self._leaving)
            control.calls.append(call)
            try:
                answer = await call
            except LeftBehind:
                if not control.has_stopped:  # not this task but something around it was cancelled
                    await _stopped_from_outside(call)
                raise
            except CancelledError as error:
                if call.is_cancelled or control.scope.cancel_called:
                    raise
                raise Stray(error) from error
            if call.is_cancelled:
                await _stopped_from_outside(call)
            return answer
        finally:
            CURRENT_TURN.reset(outer)
            live.returned = True
            if call is not None:
                control.calls.remove(call)
                if call.own:
                    await call.forgive_own()
            if live.elsewhere:
                await self._stop_what_it_left(live)

    async def _stop_what_it_left(self, live: LiveTask) -> None:
        """Stop the delegations and asyncio tasks that an agent left running when it returned. Wait for the asyncio
        tasks, so that all of this happens before the end of the agent's task is recorded."""
        for child in self.alive.under(live.life):
            child.life.cancel(LEFT_RUNNING)
            for call in child.control.calls:
                call.stop_soon()
        with CancelScope(shield=True):
            while live.elsewhere:
                live.alone = asyncio.Event()
                for task in list(live.elsewhere):
                    task.cancel(LEFT_RUNNING)
                await live.alone.wait()

    # -- teardown -------------------------------------------------------------------------------------------

    async def _torn_down(self, live: LiveTask, error: BaseException, ending: Ending | None = None) -> None:
        """Record the end of a task whose run or recording was interrupted by `error`. `ending` is the end that the task
        had already reached, if any; it is kept."""
        last = self.alive.latest(live)
        try:
            if not isinstance(error, Exception):
                with CancelScope(shield=True):
                    await self._end_torn_down(last, ending)
            elif isinstance(error, StoreError) and not isinstance(error, StoreBusy):  # it may have been recorded anyway
                self._endings.insisting.unkept.add(live.remit.id)
        finally:
            self.alive.leave(live)

    async def _end_torn_down(self, live: LiveTask, ending: Ending | None) -> None:
        if ending is None and not self._is_requeued(live):
            why = live.life.why
            unheard = why in ("", LEFT_RUNNING)
            ending = endings.stopped(live.remit, why or "its asker stopped waiting", unheard=unheard)
        elif ending is None and live.attempt.queued:
            ending = endings.released(live.remit)
        if ending is not None:
            await self._endings.finish_torn_down(live, ending)
        # Delegated tasks are left as they are: the next attempt of their asker resumes them.

    def _is_requeued(self, live: LiveTask) -> bool:
        line = self.alive.nested_in(live)
        if any(task.life.stop == "released" for task in line):
            return True
        if any(task.life.stop == "cancelled" for task in line):
            return False
        return self.closing() and any(task.attempt.queued for task in line)


async def _stopped_from_outside(call: Call) -> None:
    """Raise the cancellation of this task, if there is one that the agent has swallowed."""
    await checkpoint()  # an enclosing scope delivers its cancellation again here
    if call.is_cancelled:
        raise CancelledError

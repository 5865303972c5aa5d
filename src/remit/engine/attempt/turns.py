"""Carrying a task out: turn after turn until it ends. An agent that hands off passes the next turn to another."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import anyio
from anyio import CancelScope

from remit.core import command as commands
from remit.core import remit as remits
from remit.core.breaker import CLOSED
from remit.core.command import END, Command, HandoffState, Move, Send, Update
from remit.core.guards import HANDOFF, PARALLEL, Answer, Guard
from remit.core.kinds import handed, refused
from remit.core.outcome import Outcome
from remit.core.receipt import Receipt, Slice
from remit.core.remit import Pass
from remit.core.values import Json, checked, encode
from remit.engine.admission import Admission, Proposal
from remit.engine.attempt import outcomes as ends
from remit.engine.attempt.endings import Endings, turn_data
from remit.engine.attempt.live import LiveTask, LiveTasks
from remit.engine.attempt.outcomes import Ending
from remit.engine.directory import Agent, Directory
from remit.errors import BadInput, Refused
from remit.ports import Clock, Decide, Decision, Store, View


class Sends(NamedTuple):
    """The parts of a parallel handoff, where their results go, and what travels along."""

    parts: tuple[Send, ...]
    join: str = ""
    update: Update = {}  # noqa: RUF012 - never changed


class Admit(NamedTuple):
    """How a task is admitted: the operation, and what it decides."""

    op: str
    decide: Decide[Json]


class Superseded(Refused):
    """Another process has the task now; what happened here after that does not count."""


class Handoff(NamedTuple):
    """What a holder reads of how the task came to it: from whom, what was handed over, and what came of it."""

    sender: str
    state: HandoffState
    trail: tuple[Move, ...]
    refused: str = ""
    results: tuple[Outcome, ...] = ()


class Conductor:
    """`take_turn` makes the handle an agent gets and `send` is delegation itself; the runtime ties both knots.

    `closing` says whether this process is putting its work back into the queue.
    """

    def __init__(
        self, store: Store, directory: Directory, admission: Admission, clock: Clock, endings: Endings
    ) -> None:
        self.alive = LiveTasks()
        self.take_turn: Callable[[LiveTask], object]
        self.send: Callable[[LiveTask, Pass], Awaitable[Outcome]]
        self.closing: Callable[[], bool] = _never
        self._store = store
        self._directory = directory
        self._admission = admission
        self._clock = clock
        self._endings = endings

    async def carry(
        self, live: LiveTask, agent: Agent | None, admit: Admit | None = None, sends: Sends | None = None
    ) -> Outcome:
        """A task from its admission to its end, which is exactly one event; one that was claimed needs no admission and
        goes on from where its record says it is."""
        self.alive.enter(live)
        try:
            answer = await self._store.tx(admit.op, admit.decide) if admit is not None else live.remit.id
            if not isinstance(answer, str) or agent is None:
                return ends.refused(live.remit, answer)
            return await self._to_the_end(live, agent, sends)
        except BaseException as error:
            if not isinstance(error, Exception):
                await self._interrupted(self.alive.latest(live))
            raise
        finally:
            self.alive.leave(live)

    async def _to_the_end(self, live: LiveTask, agent: Agent, sends: Sends | None) -> Outcome:
        end = await self._conduct(live, agent, sends)
        last = self.alive.latest(live)
        recorded = await self._endings.finish(last, end)
        if recorded is None:
            raise Superseded(f"another process has taken over the task of '{last.remit.holder}'", rule="over")
        outcome = recorded.outcome
        asked = live.remit.holder  # whoever answered in the end, this is whom the asker asked
        return outcome if outcome.agent == asked else outcome._replace(agent=asked, by=outcome.agent)

    async def _conduct(self, live: LiveTask, agent: Agent, sends: Sends | None) -> Ending:
        end: Ending | None = None
        with live.scope:
            end = await self._turns(live, agent, sends)
        last = self.alive.latest(live)
        if last.stopped:
            return ends.stopped(last.remit, last.stopped)
        if last.released:
            return ends.released(last.remit)
        if end is None:  # the scope was left early, and nobody asked for it: its time was up
            return ends.timed_out(last.remit, final=last.final)
        return end

    async def _turns(self, live: LiveTask, agent: Agent, sends: Sends | None) -> Ending:
        if sends is not None:
            live, agent = await self._join(live, agent, sends)
        while True:
            answer = await self._turn(live, agent)
            if isinstance(answer, Ending):
                return answer
            live, agent, end = await self._follow(live, agent, answer)
            if end is not None:
                return end

    async def _turn(self, live: LiveTask, agent: Agent) -> Ending | Command:
        """Calls the agent. Whatever it does, this says truthfully how it ended."""
        remit = live.remit
        live.receipt.task(remit.task)
        try:
            answer = await agent.answer(self.take_turn(live))
            if isinstance(answer, Command):
                return answer
            return ends.completed(remit, checked(answer, f"the result of '{remit.holder}'"))
        except Exception as error:  # noqa: BLE001 - an agent may fail in any way; it is a failed task
            return ends.failed(remit, error)

    # -- handing over -------------------------------------------------------------------------------------

    async def allowed(self, live: LiveTask, command: Command) -> None:
        """Raises what handing over would be refused with; the refusal is recorded like any other."""
        live.must_be_at_work()
        if isinstance(command.goto, str):
            await self._decide(live, command, command.goto, HANDOFF, dry=True)
        elif command.goto is not END:
            await self._may_join(live, command)
            await self._decide(live, command, label(command.goto), PARALLEL, dry=True)

    async def _follow(self, live: LiveTask, agent: Agent, command: Command) -> tuple[LiveTask, Agent, Ending | None]:
        """Where the command leads: the next holder, the same one again, or the end."""
        try:
            state = commands.merged(live.state, command.update)
            if command.goto is END:
                result = command.result if command.result is not None else state.data()
                return live, agent, ends.completed(live.remit, result)
            if isinstance(command.goto, str):
                return *await self._hand(live, command, command.goto, state), None
            return *await self._fan_out(live, agent, command, state), None
        except (Refused, BadInput) as no:
            if live.refusal:  # told once already; a holder that insists is not getting anywhere
                return live, agent, ends.failed(live.remit, no)
            again = self.alive.enter(live.succeeded_by(live.remit, live.card))
            again.sender, again.refusal, again.results = live.sender, str(no), live.results
            return again, agent, None

    async def _hand(self, live: LiveTask, command: Command, to: str, state: HandoffState) -> tuple[LiveTask, Agent]:
        """Gives the task to another holder. If a rule says no, the present one stays in charge, with the reason."""
        move = await self._decide(live, command, to, HANDOFF)
        agent = self._directory.get(to)
        assert agent is not None  # the guards have seen to it
        heir = self.alive.enter(live.succeeded_by(remits.handed_to(live.remit, to), agent.card))
        heir.state, heir.trail, heir.sender, heir.results = state, (*live.trail, move), live.remit.holder, live.results
        heir.breaker_was_open = live.heir_breaker_was_open
        heir.receipt.beside([Slice.of(f"handed over by {live.remit.holder}", "passed", encode(state.data()))])
        heir.receipt.beside(_results_seen(live.results))
        return heir, agent

    async def _fan_out(
        self, live: LiveTask, agent: Agent, command: Command, state: HandoffState
    ) -> tuple[LiveTask, Agent]:
        """Parts of the task to several at once, apart from each other; then back to the sender, or on to `join`."""
        assert isinstance(command.goto, tuple)
        await self._may_join(live, command)
        move = await self._decide(live, command, label(command.goto), PARALLEL)
        live.state, live.trail = state, (*live.trail, move)
        return await self._join(live, agent, Sends(command.goto, command.join, command.update))

    async def _join(self, live: LiveTask, agent: Agent, sends: Sends) -> tuple[LiveTask, Agent]:
        """Waits for the parts, and gives them to whoever goes on."""
        results = await self._send_all(live, sends.parts)
        live.results = results
        if sends.join and sends.join != live.remit.holder:  # together with the fan-out this is one handoff
            live.trail = live.trail[:-1]
            command = Command(sends.join, sends.update)
            return await self._hand(live, command, sends.join, live.state)
        again = self.alive.enter(live.succeeded_by(live.remit, live.card))
        again.sender, again.results = live.remit.holder, results
        again.receipt.beside(_results_seen(results))
        return again, agent

    async def _may_join(self, live: LiveTask, command: Command) -> None:
        """Before anyone works for it: whether there is someone to bring the results to."""
        if _joins_elsewhere(live, command):
            await self._decide(live, commands.narrowed(command, command.join), command.join, HANDOFF, dry=True)

    async def _send_all(self, live: LiveTask, sends: tuple[Send, ...]) -> tuple[Outcome, ...]:
        results: list[Outcome | None] = [None] * len(sends)

        async def one(index: int) -> None:
            results[index] = await self.send(live, Pass(sends[index].agent, sends[index].task))

        async with anyio.create_task_group() as group:
            for index in range(len(sends)):
                group.start_soon(one, index)
        return tuple(result for result in results if result is not None)

    async def _decide(
        self, live: LiveTask, command: Command, to: str, guards: tuple[Guard, ...], *, dry: bool = False
    ) -> Move:
        """Records the handoff, or its refusal; a dry decision records only the latter."""
        remit, now = live.remit, self._clock.now()
        move = commands.move(remit.holder, to, command.update)
        parallel = guards is PARALLEL
        wish = Pass(_first(command) if parallel else to, remit.task)
        repeats = commands.repeated(live.trail, move)
        hop = Proposal(remit, wish, self._directory.get(wish.to), live.card, now, len(live.trail), repeats)

        def decide(view: View) -> Decision[Json]:
            verdict, facts = self._admission.judge(view, guards, hop)
            if verdict.answer is Answer.DENY:
                no = refused(remit, wish, now, rule=verdict.rule, sentence=verdict.sentence, handoff=True)
                return Decision([verdict.rule, verdict.sentence], (no,))
            live.heir_breaker_was_open = facts.breaker is not CLOSED
            if dry:
                return Decision(None)
            data = turn_data(live, {"update": {**command.update}, "content": move.content})
            whom: str | list[str] = to
            if isinstance(command.goto, tuple):
                whom = [send.agent for send in command.goto]
                data |= {"payloads": [send.payload for send in command.goto], "join": command.join}
            probe = () if parallel else self._admission.probe(facts, hop, remit.id)
            praise = () if parallel else self._endings.praise(view, live, now)
            return Decision(None, (handed(remit, whom, now, data), *praise, *probe))

        no = await self._store.tx(live.op("handoff"), live.guarded(decide))
        if isinstance(no, list):
            raise Refused(str(no[1]), rule=str(no[0]))
        if not dry:  # said once: a join after a fan-out is another event of the same turn
            live.receipt, live.tokens = Receipt(), 0
            live.moved_on()
        return move

    # -- ending -------------------------------------------------------------------------------------------

    async def _interrupted(self, live: LiveTask) -> None:
        """The work was torn down from outside; what is left to do is to say so."""
        with CancelScope(shield=True):
            if not self._is_put_back(live):
                end = ends.stopped(live.remit, live.stopped or "its asker stopped waiting")
                await self._endings.finish(live, end)
            elif live.attempt.queued:
                await self._endings.finish(live, ends.released(live.remit))
            # What a task delegated is left as it is: whoever carries the task on takes it up again.

    def _is_put_back(self, live: LiveTask) -> bool:
        line = self.alive.line(live)
        if any(one.released for one in line):
            return True
        return self.closing() and any(one.attempt.queued for one in line) and not any(one.stopped for one in line)


def _never() -> bool:
    return False


def label(sends: Sequence[Send]) -> str:
    """A parallel handoff as one move: to whom, with what."""
    return "; ".join(f"{send.agent}: {send.task}" for send in sends)


def _joins_elsewhere(live: LiveTask, command: Command) -> bool:
    return bool(command.join) and command.join != live.remit.holder


def _results_seen(results: Sequence[Outcome]) -> list[Slice]:
    return [Slice.of(f"result of {one.agent}", "dependency", str(one)) for one in results]


def _first(command: Command) -> str:
    return command.goto[0].agent if isinstance(command.goto, tuple) else str(command.goto)

"""Playing a scenario on remit itself: scripted agents, through the front door only, noting what comes back."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from oracle.model import ELSEWHERE, STALE, UNTRUSTED, Log
from oracle.scenario import (
    BOARD_NAME,
    NAMESPACES,
    SESSIONS,
    TOOLS,
    Act,
    Along,
    Answer,
    Areas,
    Breaker,
    Brief,
    Delegate,
    DelegateAll,
    Ending,
    Fail,
    FanOut,
    Get,
    HandOff,
    Inbox,
    Look,
    OwnerPuts,
    OwnerRemoves,
    Point,
    Put,
    Query,
    Queue,
    Remove,
    Restart,
    Run,
    RunPlan,
    Scenario,
    Serve,
    Submit,
    Tell,
    Use,
    Wait,
    Within,
)
from remit import (
    BOARD,
    Bounds,
    Card,
    Command,
    Entry,
    Failed,
    Outcome,
    Plan,
    Refused,
    Runtime,
    Scope,
    Send,
    Step,
    Task,
    Turn,
)
from remit.errors import BadInput, Conflict, TimedOut
from remit.ports import Database
from remit.ports.models import ToolCall
from remit.settings import BreakerPolicy, Loops, Policy, Serving, System
from remit.testing import FakeClock
from teams import Closing

PATIENCE = 30
MOMENT = 1  # of real time, in seconds
TRIES = 3
ROUNDS = 10  # of the loop
SECOND = 1_000_000
NO_LOOPS = Loops(
    refusals=None, stale=None, stale_asks=None
)  # what is told of a tool does not depend on what was before

# An open database, which several scenarios share; or where to find one, and how to open it after each restart.
Store: TypeAlias = str | Path | Database | Callable[[], Database]


class OwnFault(Exception):
    """What an agent raises that is to fail."""


def scopes(areas: Areas) -> list[Scope]:
    return [_scope(area.namespace, area.key, area.prefix) for area in areas]


def _scope(namespace: str, key: str, prefix: str) -> Scope:
    if namespace == BOARD_NAME:
        return BOARD
    return Scope(namespace, key=key) if key else Scope(namespace, prefix=prefix)


def bounds(within: Within, now: int) -> Bounds:
    said = {name: value for name, value in vars(within).items() if value is not None}
    for name in ("sees", "writes"):
        if name in said:
            said[name] = scopes(said[name])
    if "seconds" in said:
        said["deadline"] = now + said.pop("seconds") * SECOND
    return Bounds(**said)


def outcome_of(outcome: Outcome) -> tuple[str, str]:
    return (outcome.state, str(outcome.value) if outcome.ok else outcome.rule)


def outcome_and_trust(outcome: Outcome) -> tuple[str, str, str]:
    return (*outcome_of(outcome), outcome.trust)


class Player:
    """One scenario on one workspace of a store."""

    def __init__(self, scenario: Scenario, store: Store, workspace: str) -> None:
        self._scenario = scenario
        self._store = store
        self._workspace = workspace
        self._clock = FakeClock()
        self._log: Log = {}
        self._turns: dict[str, int] = defaultdict(int)
        self._texts: dict[str, str] = {}
        self._pending: list[str] = []
        self._stopped: set[tuple[str, int]] = set()
        self._stopping = anyio.Event()
        self._kept: Turn | None = None
        self._trouble: BaseException | None = None
        self._written: dict[Point, list[int]] = defaultdict(list)
        self._ops: set[str] = set()
        self._rt = self._runtime(0)

    async def played(self) -> Log:
        with anyio.fail_after(PATIENCE):
            for number, act in enumerate(self._scenario.acts):
                await self._said("", number, act, lambda act=act: self._person(act))
            self._log["entries"] = await self._everything()
        self.close()
        if self._trouble is not None:
            raise self._trouble
        return self._log

    def close(self) -> None:
        self._let_go(self._rt)

    def _let_go(self, rt: Runtime) -> None:
        """Close the store, unless others use it."""
        if isinstance(self._store, str | Path) or callable(self._store):
            rt.close()

    def _runtime(self, hands: int) -> Runtime:
        """Open the store; with hands, to have the queue served."""
        kind = Closing if callable(self._store) else Runtime
        rt = kind(
            self._store() if callable(self._store) else self._store,
            workspace=self._workspace,
            bounds=bounds(self._scenario.ceiling, self._clock.now()),
            system=System(clock=self._clock),
            serving=Serving(concurrency=hands),
            policy=Policy(breaker=BreakerPolicy(failures=1_000), loops=NO_LOOPS),
        )
        for member in self._scenario.team:
            asks = "*" if member.asks is None else member.asks
            tools: dict[str, Any] = {"tools": member.tools, "deny": member.denies}
            context: dict[str, Any] = {"reads": scopes(member.reads), "writes": scopes(member.writes)}
            rt.add(Card(member.name, asks=asks, **tools, **context, trusted_output=member.vouches), self._answer)
        return rt

    async def _said(
        self, text: str, number: int, act: Act, do: Callable[[], Awaitable[object]], turn: Turn | None = None
    ) -> None:
        if act.skipped:
            return
        try:
            answer = await do()
        except Refused as refusal:
            answer = ("refused", refusal.rule)
        except Conflict:
            answer = ("conflict", "")
        except TimedOut:
            answer = ("timed-out", "")
        except Failed:
            answer = ("failed", "")
        except BadInput:
            answer = ("bad-input", "")
        if turn is not None:
            answer = (answer, turn.trust)
        self._log.setdefault(text, []).append((number, type(act).__name__, answer))

    # -- the person -------------------------------------------------------------

    async def _person(self, act: Act) -> object:
        match act:
            case OwnerPuts():
                return await self._owner_puts(act)
            case OwnerRemoves():
                context = self._rt.workspace.context(act.session, op=act.op)
                board = act.namespace == BOARD_NAME
                return await (context.board.remove(act.key) if board else context.remove(act.namespace, act.key))
            case Run():
                self._kept = None
                how = self._along(act.along)
                trust = "untrusted" if act.outside else "trusted"
                words = self._scenario.words(act.task)
                outcome = await self._rt.outcome(act.to, words, session=act.session, trust=trust, **how)
                return (outcome_and_trust(outcome), await self._used_again())
            case Queue():
                return await self._put_into_queue(act)
            case Serve():
                return await self._serve()
            case Wait():
                self._clock.advance(act.seconds)
            case Breaker():
                workspace = self._rt.workspace
                trips = act.how == "trip"
                await (
                    workspace.agents.trip(act.agent, "a test", op=act.op)
                    if trips
                    else workspace.agents.reset(act.agent)
                )
            case Restart():
                self.close()
                self._rt = self._runtime(0)
            case _:
                raise AssertionError(act)
        return None

    async def _put_into_queue(self, act: Queue) -> object:
        how: dict[str, Any] = {**self._along(act.along), "session": act.session, "by": act.by}
        if act.key:
            how["key"] = act.key
        if act.window:
            how["same_within"] = act.window
        return self._queued(act.task, await self._rt.submit(act.to, self._scenario.words(act.task), **how))

    async def _owner_puts(self, act: OwnerPuts) -> int:
        context = self._rt.workspace.context(act.session, op=act.op)
        if act.namespace == BOARD_NAME:
            at = (f"board:{act.session}", act.key)
            version = await context.board.set(act.key, "person's")
        else:
            at, trust = (act.namespace, act.key), "untrusted" if act.outside else "trusted"
            version = await context.set(*at, "person's", trust=trust)
        if act.op in self._ops:
            return self._written[at].index(version) + 1
        self._ops |= {act.op} if act.op else set()
        return self._new(at, version)

    async def _used_again(self) -> object:
        """Try to use a turn that is over."""
        if self._kept is None:
            return STALE
        try:
            await self._kept.context.set("code", "a", "too late")
        except Refused as refusal:
            return ("refused", refusal.rule)
        return "written"

    def _queued(self, text: str, task: Task) -> tuple[str, str]:
        if task.existing:
            return ("existing", self._texts[task.id])
        self._texts[task.id] = text
        self._pending.append(task.id)
        return ("submitted", text)

    async def _serve(self) -> list[object]:
        """Have the queue served by one pair of hands; whenever a process is to stop, another goes on."""
        served: list[object] = []
        idle = 0
        while self._pending:
            assert idle < TRIES, f"nobody carries out {self._texts[self._pending[0]]}"
            self._stopping = anyio.Event()
            server = self._runtime(1)
            async with server.serving(), anyio.create_task_group() as group:
                group.start_soon(self._until_stopping, group.cancel_scope)
                while self._pending:
                    outcome = None
                    with anyio.move_on_after(MOMENT):
                        outcome = await server.workspace.tasks.get(self._pending[0]).wait()
                    if outcome is not None:
                        served.append((self._texts[self._pending.pop(0)], *outcome_and_trust(outcome)))
                        idle = 0
                    elif not server.running():
                        idle += 1  # it does not look again by itself while the clock stands still: another may
                        await server.drain(0)
                        break
                group.cancel_scope.cancel()
            await server.drain(0)
            self._let_go(server)
        return served

    async def _until_stopping(self, scope: anyio.CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()

    async def _everything(self) -> list[Any]:
        workspace = self._rt.workspace
        found = await workspace.context().query_many([one for one in NAMESPACES if one != BOARD_NAME])
        for session in SESSIONS:
            found += await workspace.context(session).board.query()
        return sorted(((one.namespace, one.key), one.value, one.agent, self._which(one), one.trust) for one in found)

    # -- versions: any number will do that was not used before; which write it stands for is what counts ------------

    def _new(self, at: Point, version: int) -> int:
        assert version not in self._written[at], f"version {version} of {at} was used before"
        self._written[at].append(version)
        return len(self._written[at])

    def _which(self, entry: Entry) -> int:
        written = self._written[entry.namespace, entry.key]
        return written.index(entry.version) + 1 if entry.version in written else -1

    def _expected(self, at: Point, number: int | None) -> int | None:
        if not number:
            return number
        known = self._written[at]
        return known[number - 1] if number <= len(known) else 1_000_000 + number

    def _along(self, along: Along) -> dict[str, Any]:
        how: dict[str, Any] = {}
        if along.sees is not None:
            how["sees"] = [*scopes(along.sees), *(Scope("far", key=str(number)) for number in range(along.far))]
        if along.writes is not None:
            how["writes"] = scopes(along.writes)
        if along.tools is not None:
            how["tools"] = along.tools
        if along.seconds is not None:
            how["timeout"] = along.seconds
        if along.within != Within():
            how["within"] = bounds(along.within, self._clock.now())
        return how

    # -- the agents -------------------------------------------------------------

    async def _answer(self, turn: Turn) -> object:
        """Every agent's answer. An error that is in no script is not the agent's but ours, or the test's time is up;
        remit takes it for a failure of the agent, so it is kept and raised at the end."""
        try:
            return await self._scripted(turn)
        except (OwnFault, asyncio.CancelledError):
            raise
        except BaseException as error:
            self._trouble = self._trouble or error
            raise

    async def _scripted(self, turn: Turn) -> object:
        """Do what the script of the task says for this turn."""
        text = turn.task.removeprefix(f"{UNTRUSTED}\n\n> ").removeprefix("# Task: ").partition("\n")[0]
        number = self._turns[turn.remit.id]
        script = self._scenario.turn(text, number)
        if script.stops and (turn.remit.id, number) not in self._stopped:
            self._stopped.add((turn.remit.id, number))
            self._stopping.set()
            await anyio.sleep_forever()
        self._turns[turn.remit.id] += 1
        self._kept = self._kept or turn
        handoff = turn.handoff
        results = tuple(value or state for state, value in map(outcome_of, handoff.results))
        how = (turn.task, turn.agent, handoff.sender, handoff.state.phase, bool(handoff.refused), results, turn.trust)
        self._log.setdefault(text, []).append((number, "turn", how))
        for index, act in enumerate(script.acts):
            value = f"{text}/{number}/{index}"
            await self._said(text, index, act, lambda act=act, value=value: self._act(turn, act, value), turn)
        return self._ended(script.ending, f"{text}/{number}")

    def _ended(self, ending: Ending, result: str) -> object:
        update = {"phase": ending.phase} if isinstance(ending, HandOff | FanOut) and ending.phase else {}
        match ending:
            case Answer():
                return result
            case Fail():
                raise OwnFault
            case HandOff():
                return Command(ending.to, update, **self._along(ending.along))
            case FanOut():
                parts = [Send(agent, self._scenario.words(text)) for agent, text in ending.parts]
                return Command(parts, update, ending.join, **self._along(ending.along))

    async def _act(self, turn: Turn, act: Act, value: str) -> object:
        match act:
            case Get() | Query() | Put() | Remove():
                return await (self._on_board if act.namespace == BOARD_NAME else self._on_entries)(turn, act, value)
            case Delegate() | DelegateAll() | Submit() | RunPlan():
                return await self._ask(turn, act)
            case Brief() | Use():
                return await (turn.prompt() if isinstance(act, Brief) else self._use(turn, act, value))
            case Tell():
                await turn.send(act.to, value)
            case Wait():
                self._clock.advance(act.seconds)
                for _ in range(ROUNDS):  # whose time is up may be stopped by whoever waits for it, level by level
                    await anyio.lowlevel.checkpoint()
            case Inbox():
                return [(one.sender, one.text, one.trust) for one in await turn.inbox()]
            case _:
                assert isinstance(act, Look), act
                tools, askable = [one for one in TOOLS if one in turn.tools], [card.name for card in turn.agents()]
                return (tools, askable, turn.remit.names, await self._elsewhere(turn))
        return None

    @staticmethod
    async def _use(turn: Turn, act: Use, value: str) -> object:
        async def look_up(_given: dict[str, Any]) -> str:
            found = await turn.context.entry(act.namespace, act.key)
            return "nothing" if found is None else str(found.value)

        return await turn.tool(ToolCall(act.tool, {"for": value}, value), look_up)

    async def _ask(self, turn: Turn, act: Delegate | DelegateAll | Submit | RunPlan) -> object:
        match act:
            case Delegate():
                words = self._scenario.words(act.task)
                return ("completed", await turn.delegate(act.to, words, **self._along(act.along)))
            case DelegateAll():
                wishes = [(to, self._scenario.words(task)) for to, task in act.wishes]
                outcomes = await turn.delegate_all(wishes, concurrency=1, **self._along(act.along))
                return [outcome_of(outcome) for outcome in outcomes]
            case Submit():
                how = {**self._along(act.along), **({"key": act.key} if act.key else {})}
                return self._queued(act.task, await turn.submit(act.to, self._scenario.words(act.task), **how))
            case RunPlan():
                steps = [
                    Step(title, title, f"do {title}", agent=agent, after=[act.steps[index][0] for index in after])
                    for title, agent, after in act.steps
                ]
                ended = await turn.run_plan(Plan(steps), concurrency=1)
                return [step.state for step in ended.steps.values()]

    @staticmethod
    async def _elsewhere(turn: Turn) -> object:
        """Try to reach the board of another session as if it were a namespace."""
        try:
            return await turn.context.query(f"board:{SESSIONS[0]}")
        except BadInput:
            return ELSEWHERE

    async def _on_entries(self, turn: Turn, act: Get | Query | Put | Remove, value: str) -> object:
        context = turn.context
        match act:
            case Get():
                found = await context.entry(act.namespace, act.key)
                return None if found is None else (found.value, found.agent, self._which(found))
            case Query():
                wanted = context.query(act.namespace, prefix=act.prefix) if act.prefix else context.query(act.namespace)
                return sorted((one.key, one.value) for one in await wanted)
            case Put():
                at = (act.namespace, act.key)
                return self._new(at, await context.set(*at, value, expect=self._expected(at, act.expect)))
            case _:
                return await context.remove(act.namespace, act.key)

    async def _on_board(self, turn: Turn, act: Get | Query | Put | Remove, value: str) -> object:
        board = turn.context.board
        match act:
            case Get():
                return await board.get(act.key)
            case Query():
                return sorted((one.key, one.value) for one in await board.query())
            case Put():
                return self._new((f"board:{turn.remit.session}", act.key), await board.set(act.key, value))
            case _:
                return await board.remove(act.key)

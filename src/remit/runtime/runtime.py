"""The composition root: a store, a directory and the engine, tied together once."""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar, Unpack, cast, overload

import anyio

from remit.core.allow import ANY
from remit.core.backoff import ATTEMPTS
from remit.core.bounds import DEFAULT_DEPTH, DEFAULT_HANDOFFS, TOP, Bounds
from remit.core.breaker import Breaker, BreakerPolicy
from remit.core.card import Card
from remit.core.checks import limit as checked_limit
from remit.core.checks import whole
from remit.core.events import Event
from remit.core.lifecycle import TRANSITIONS
from remit.core.message import Message
from remit.core.outcome import Outcome
from remit.core.plan import Plan
from remit.core.remit import Pass
from remit.core.text import NAME_LIMIT, SESSION_LIMIT, canonical, line, shown
from remit.core.tiers import tier
from remit.core.times import SECOND, moment, span
from remit.engine.assembly import EngineSettings, assembled
from remit.engine.directory import Agent, AgentFunction, Directory
from remit.engine.plans.running import PlanOutcome, Schemas
from remit.engine.presence.bell import ANYTHING
from remit.engine.presence.heartbeat import SILENCE_SECONDS
from remit.engine.queue.serving import ResidentWorker
from remit.engine.queue.submitting import TIMEOUT_SECONDS
from remit.engine.queue.task import Status, Task
from remit.engine.queue.worker import HANDS
from remit.engine.sharing.access import OwnerAccess
from remit.engine.sharing.context import Context
from remit.engine.system import SystemClock, TimedIds
from remit.engine.turn import How, Planning, submission, wish
from remit.engine.upkeep.prune import KEPT_DAYS, prune
from remit.errors import BadInput
from remit.ports import Clock, Database, Ids, Sink, Span, Which
from remit.runtime.leading import Leader
from remit.stores.opening import database_at
from remit.stores.sqlite.database import MEMORY

BREAKER_POLICY = BreakerPolicy()
AnyAgent = TypeVar("AnyAgent", bound=AgentFunction)


class About(TypedDict, total=False):
    """What a card says besides the name."""

    role: str
    can: object
    asks: object
    reads: object
    writes: object
    tools: object
    concurrency: int | None


class RunHow(How, total=False):
    """What a person may say about a run besides: session, money, tier, and whether tasks may change hands."""

    session: str
    credits: object
    tier: str
    handoffs: bool


class PlanHow(RunHow, Planning, total=False):
    """The same for a plan, and how it is carried out."""


class Runtime:
    """Agents, their store and the engine between them.

    `Runtime()` keeps everything in memory; `Runtime("team.db")` in that file. `bounds` is the ceiling on every run,
    `classify` chooses the tier of a task that is not given one, `breaker` says how soon failing agents are left alone.
    `concurrency` is how many submitted tasks the workspace works on at a time, in all processes together; `hands` how
    many of them this process carries out (0: none). `silence` is for how many seconds nothing may be heard of it before
    others take over, `keep_days` how long a worker keeps what has ended (None: for ever).
    """

    def __init__(  # noqa: PLR0913 - all but the first by name, and each has a default
        self,
        store: str | Path | Database = MEMORY,
        *,
        workspace: str = "default",
        bounds: Bounds = TOP,
        classify: Callable[[str], str] | None = None,
        breaker: BreakerPolicy = BREAKER_POLICY,
        concurrency: int | None = None,
        hands: int = HANDS,
        keep_days: float | None = KEPT_DAYS,
        silence: float = SILENCE_SECONDS,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._workspace = line(workspace, "a workspace", NAME_LIMIT)
        if not isinstance(bounds, Bounds):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"bounds takes Bounds(...), not {shown(bounds)}")
        # What the owner left open has a default; what the owner said, however wide, is the ceiling.
        depth = DEFAULT_DEPTH if bounds.depth is None else bounds.depth
        handoffs = DEFAULT_HANDOFFS if bounds.handoffs is None else bounds.handoffs
        self._ceiling = bounds & Bounds(depth=depth, handoffs=handoffs)
        self._classify = classify
        self._temper = breaker
        self._concurrency = whole(concurrency, "concurrency", least=1)
        self._hands = whole(hands, "hands") or 0
        self._keep = None if keep_days is None else span(keep_days, "keep_days") * 86_400
        self._silence = span(silence, "silence") / SECOND
        self._clock = clock or SystemClock()
        self._ids = ids or TimedIds()
        self._directory = Directory()
        self._open(store)

    def _open(self, where: str | Path | Database) -> None:
        if not isinstance(where, str | Path) and not hasattr(where, "store"):
            raise BadInput(f"a store is a path, a postgresql:// address, or a database, not {shown(where)}")
        self.database: Database = database_at(where) if isinstance(where, str | Path) else where
        self.store = self.database.store(self._workspace)
        means = EngineSettings(
            self._clock, self._ids, self._temper, self._concurrency, self._silence, self.database.lasting, _schemas
        )
        self._engine = assembled(self.store, self._directory, means)
        self._services, self._tasks = self._engine.services, self._engine.tasks
        self._lent = ResidentWorker(
            self._services, self._hands, lambda: self.database.dispatcher(self._workspace), self._keep
        )
        self._tasks.hands = self._lent.lend

    # -- agents -----------------------------------------------------------------------------------------

    @overload
    def agent(self, function: AnyAgent, /) -> AnyAgent: ...
    @overload
    def agent(self, name: str = "", /, **about: Unpack[About]) -> Callable[[AnyAgent], AnyAgent]: ...
    def agent(self, what: Any = "", /, **about: Unpack[About]) -> Any:
        """Registers an async function as an agent: `@rt.agent`, or `@rt.agent("name", can="...", asks=[...])`."""
        if callable(what):
            return self._register(what, "", about)
        return lambda function: self._register(function, what, about)  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]

    def add(self, card: Card, answer: AgentFunction) -> None:
        """Registers anything that can be awaited with a turn: a function, or an object with `async __call__`."""
        if not isinstance(card, Card):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"add takes a Card and what answers for it, not {shown(card)}")
        if not _is_async(answer):
            raise BadInput(f"agent '{card.name}' must be async: write `async def`, got {shown(answer)}")
        self._directory.add(Agent(card, answer))

    def cards(self) -> list[Card]:
        """Everyone who is registered, by name."""
        return self._directory.cards()

    def _register(self, function: Any, name: str, about: About) -> Any:
        self.add(Card(name or getattr(function, "__name__", ""), **about), function)  # pyright: ignore[reportArgumentType]
        return function

    # -- runs -------------------------------------------------------------------------------------------

    async def run(self, agent: str, task: str, **how: Unpack[RunHow]) -> Any:
        """Asks an agent to do a task and returns its result; raises `Refused` or `Failed` if there is none."""
        outcome = await self.outcome(agent, task, **how)
        return outcome.unwrap()

    async def outcome(self, agent: str, task: str, **how: Unpack[RunHow]) -> Outcome:
        """The same as a value: what came of it, with the id of the run."""
        given, session = self._wish(agent, task, how)
        return await self._engine.delegations.begin(given, self._ceiling, session)

    async def run_plan(self, plan: Plan, **how: Unpack[PlanHow]) -> PlanOutcome:
        """Runs a plan on behalf of a person and tells what became of every step."""
        goal = plan.goal if isinstance(plan, Plan) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
        given, session, options = self._plan_wish("plan", goal or "carry out a plan", how)
        return await Leader(self._engine, self._ceiling, session).plan(plan, given, options)

    async def run_team(self, goal: str, coordinator: str, **how: Unpack[PlanHow]) -> Any:
        """Gives a goal to a coordinator, who plans, and puts together what the members bring."""
        given, session, options = self._plan_wish(coordinator, goal, how)
        return (await Leader(self._engine, self._ceiling, session).team(given, options)).unwrap()

    def _plan_wish(self, agent: str, task: str, how: PlanHow) -> tuple[Pass, str, Planning]:
        """What is said about the run apart from what is said about the plan."""
        names = Planning.__annotations__
        options = cast("Planning", {name: value for name, value in how.items() if name in names})
        rest = cast("RunHow", {name: value for name, value in how.items() if name not in names})
        return *self._wish(agent, task, rest), options

    def _wish(self, agent: str, task: str, how: RunHow) -> tuple[Pass, str]:
        """What a person asks for. They see and may use everything, and pass it on unless told otherwise."""
        rest: dict[str, Any] = {"sees": ANY, "tools": ANY, **how}
        session = rest.pop("session", "")
        if session:
            line(session, "a session", SESSION_LIMIT)
        amount, name, handoffs = rest.pop("credits", None), rest.pop("tier", ""), rest.pop("handoffs", True)
        given = wish(agent, task, cast("How", rest))
        within = given.within
        if amount is not None:
            within &= Bounds(credits=amount)
        name = name or (self._classify(task) if self._classify else "")
        if name:
            within &= tier(name)
        if not handoffs:
            within &= Bounds(handoffs=0)
        return (given if within is given.within else replace(given, within=within)), session

    # -- tasks ------------------------------------------------------------------------------------------

    async def submit(
        self, agent: str, task: str, *, key: str = "", attempts: int = ATTEMPTS, **how: Unpack[RunHow]
    ) -> Task:
        """Puts a task into the queue and comes back at once; it outlives this process if the store does.

        The same task asked for again within five minutes, or under the same `key`, is the same task. `seconds` is the
        time of one attempt, 260 unless told otherwise; `within=Bounds(deadline=...)` ends all of it, a day from now at
        the latest.
        """
        seconds = how.pop("seconds", TIMEOUT_SECONDS)
        given, session = self._wish(agent, task, how)
        queued = submission(given, {"seconds": seconds, "key": key, "attempts": attempts})
        return Task(self._tasks, await self._tasks.begin(queued, self._ceiling, session))

    def task(self, task: str) -> Task:
        """The handle of a task by its id."""
        return Task(self._tasks, line(task, "a task's id", NAME_LIMIT))

    async def tasks(
        self,
        *,
        session: str | None = None,
        agent: str | None = None,
        state: str | None = None,
        parent: str | None = None,
        limit: int = 100,
    ) -> list[Status]:
        """The tasks that meet every condition, newest first; `state="open"` is all that have not ended."""
        if state is not None and state != "open" and state not in TRANSITIONS:
            raise BadInput(f"state is open or one of {', '.join(filter(None, TRANSITIONS))}, not {shown(state)}")
        name = None if agent is None else canonical(agent)
        return await self._tasks.listed(Which(session, name, state, parent, limit=checked_limit(limit, most=100_000)))

    async def cancel(self, task: str, why: str = "cancelled by its owner") -> int:
        """Stops a task or a whole run, and everything below it, wherever it runs; says how many tasks that is."""
        return await self._tasks.cancel(task, why)

    async def orphans(self, limit: int = 100) -> list[Message]:
        """Announcements of spawned tasks whose asker had ended before it could read them."""
        return await self.store.read(lambda view: view.orphans(limit))

    # -- hands ------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Carries out what is in the queue, and takes over from processes that are gone, until it is cancelled."""
        await self._lent.serve()

    async def drain(self, seconds: float = 30.0) -> int:
        """Takes no more tasks, gives those that run here so long to end, and puts the rest back; says how many."""
        return await self._lent.drain(seconds)

    async def settled(self, run: str) -> None:
        """Waits until nothing is open any more of what a run submitted or spawned, in whichever process."""
        await self._services.bell.until(ANYTHING, lambda view: not view.below(run) or None)

    def running(self) -> int:
        """How many tasks are alive in this process."""
        return len(self._services.conductor.alive)

    # -- breakers ---------------------------------------------------------------------------------------

    async def breakers(self) -> dict[str, Breaker]:
        """The breakers of the agents that have failed of late, or were taken out."""
        return await self._engine.breakers.all()

    async def trip(self, agent: str, why: str) -> None:
        """Takes an agent out: nobody can ask it until it is reset."""
        await self._engine.breakers.trip(agent, why)

    async def reset(self, agent: str) -> None:
        """Lets an agent be asked again at once."""
        await self._engine.breakers.reset(agent)

    # -- what happened ------------------------------------------------------------------------------------

    async def history(
        self,
        *,
        run: str | None = None,
        session: str | None = None,
        agent: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Event]:
        """The journal, or the part of it that meets every condition, in order."""
        span = Span(
            run=run,
            session=session,
            agent=agent,
            since=None if since is None else moment(since, "since"),
            until=None if until is None else moment(until, "until"),
        )
        return await self.store.read(lambda view: view.events(span))

    def watch(self, sink: Sink) -> Callable[[], None]:
        """Feeds every committed event to `sink`; call what it returns to stop."""
        return self.store.subscribe(sink)

    # -- shared context, as its owner sees it ---------------------------------------------------------------

    def context(self, session: str = "") -> Context:
        """The whole workspace's entries; with a session, its board too."""
        return Context(OwnerAccess(self._engine.entries, session))

    async def cleanup(self) -> int:
        """Removes the entries that have expired and says how many."""
        return await self._engine.entries.cleanup()

    async def prune(self, days: float = KEPT_DAYS) -> int:
        """Takes away the runs that ended longer ago than that, and says how many; the journal keeps a line of each."""
        return await prune(self.store, self._clock, self._ids, span(days, "days") * 86_400)

    # -- closing --------------------------------------------------------------------------------------------

    @property
    def hands(self) -> int:
        """How many tasks from the queue this process carries out at a time; 0 if it only hands out."""
        return self._hands

    def reopen(
        self, where: str | Path | None = None, *, hands: int | None = None, silence: float | None = None
    ) -> None:
        """Moves a runtime that has not run anything yet to another store, or gives it other hands."""
        if hands is not None:
            self._hands = whole(hands, "hands") or 0
        if silence is not None:
            self._silence = span(silence, "silence") / SECOND
        if where is not None:
            self.database.close()
        self._open(self.database if where is None else where)

    def close(self) -> None:
        """Lets go of the store. What this process is still working on is taken up by another, or by the next start;
        `async with` puts it back before."""
        self._lent.let_go()
        self.database.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Puts back what still runs here, and closes."""
        with anyio.CancelScope(shield=True):
            await self.drain(0)
            await self._services.presence.leave()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run(runtime: Runtime, agent: str, task: str, **how: Any) -> Any:
    """`Runtime.run` for scripts: starts an event loop, waits, and returns the result."""
    if not isinstance(runtime, Runtime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"remit.run takes a Runtime first, not {shown(runtime)}")
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_run(runtime, agent, task, cast("RunHow", how)))
    raise BadInput("an event loop is already running here; say `await runtime.run(...)`")


async def _run(runtime: Runtime, agent: str, task: str, how: RunHow) -> Any:
    """The result, once what the run left running has ended too: there is no one to carry it on after this."""
    outcome = await runtime.outcome(agent, task, **how)
    if outcome.task:
        await runtime.settled(outcome.task)
    await runtime.drain()
    return outcome.unwrap()


@cache
def _schemas() -> Schemas:
    """The adapter for JSON Schema, when a plan first needs it."""
    try:
        return cast("Schemas", import_module("remit.adapters.schema"))
    except ImportError as error:
        raise BadInput("a step with a schema needs the jsonschema package; install remit[schema]") from error


def _is_async(answer: object) -> bool:
    call = getattr(answer, "__call__", None)  # noqa: B004 - asking what kind of call it is, not whether it can be called
    return inspect.iscoroutinefunction(answer) or inspect.iscoroutinefunction(call)

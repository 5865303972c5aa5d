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

from remit.core.allow import ANY
from remit.core.bounds import DEFAULT_DEPTH, DEFAULT_HANDOFFS, TOP, Bounds
from remit.core.breaker import Breaker, Temper
from remit.core.card import Card
from remit.core.entry import Writer
from remit.core.events import Event
from remit.core.facts import Place
from remit.core.outcome import Outcome
from remit.core.plan import Plan
from remit.core.remit import Pass
from remit.core.text import NAME_LIMIT, SESSION_LIMIT, line, shown
from remit.core.tiers import tier
from remit.core.times import moment
from remit.core.values import Json
from remit.engine.access import OwnerAccess
from remit.engine.admission import Admission
from remit.engine.breakers import Switchboard
from remit.engine.conduct import Conductor
from remit.engine.context import Context
from remit.engine.delegate import Delegations
from remit.engine.directory import Agent, AgentFunction, Directory
from remit.engine.inbox import Inbox
from remit.engine.live import Live
from remit.engine.plans import PlanOptions, PlanOutcome, Schemas, Workshop
from remit.engine.shelf import Shelf
from remit.engine.system import SystemClock, TimedIds
from remit.engine.team import TeamRun
from remit.engine.turn import Desk, How, Planning, Turn, wish
from remit.errors import BadInput, NotFound
from remit.ports import Clock, Database, Ids, Sink, Span
from remit.stores.sqlite import MEMORY, SqliteDatabase

TEMPER = Temper()
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
    """

    def __init__(  # noqa: PLR0913 - all but the first by name, and each has a default
        self,
        store: str | Path | Database = MEMORY,
        *,
        workspace: str = "default",
        bounds: Bounds = TOP,
        classify: Callable[[str], str] | None = None,
        breaker: Temper = TEMPER,
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
        self._clock = clock or SystemClock()
        self._ids = ids or TimedIds()
        self._directory = Directory()
        self._open(store)

    def _open(self, store: str | Path | Database) -> None:
        if not isinstance(store, str | Path) and not hasattr(store, "store"):
            raise BadInput(f"a store is a file's path, or a database that remit can use, not {shown(store)}")
        self.database: Database = SqliteDatabase(store) if isinstance(store, str | Path) else store
        self.store = self.database.store(self._workspace)
        directory, clock, ids = self._directory, self._clock, self._ids
        admission = Admission(directory, self._temper)
        self._shelf = Shelf(self.store, clock, ids)
        self._switchboard = Switchboard(self.store, clock, ids)
        self._conductor = Conductor(self.store, directory, admission, clock)
        self._delegations = Delegations(self.store, directory, clock, ids, admission, self._conductor)
        inbox = Inbox(self.store, directory, clock, ids)
        self._shop = Workshop(self.store, directory, self._delegations, inbox, clock, ids, _schemas)
        desk = Desk(self._delegations, self._conductor, directory, inbox, self._shelf, self._shop)

        # Delegation is recursive: delegate -> carry -> turn -> delegate. The knot is tied here and nowhere else.
        def take_turn(live: Live) -> Turn:
            return Turn(desk, live)

        self._conductor.take_turn = take_turn
        self._conductor.send = self._delegations.delegate

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
        return await self._delegations.begin(given, self._ceiling, session)

    async def run_plan(self, plan: Plan, **how: Unpack[PlanHow]) -> PlanOutcome:
        """Runs a plan on behalf of a person and tells what became of every step."""
        goal = plan.goal if isinstance(plan, Plan) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
        given, session, options = self._plan_wish("plan", goal or "carry out a plan", how)
        outcomes: list[PlanOutcome] = []

        async def carry_out(turn: Turn) -> Json:
            outcomes.append(await turn.run_plan(plan, **options))
            if not outcomes[0].ok:
                bad = sum(step.state != "completed" for step in outcomes[0].steps.values())
                raise RuntimeError(f"{bad} of {len(outcomes[0].steps)} steps did not complete")
            return outcomes[0].states()

        planner = Agent(Card("plan", role="carries out a plan", asks=ANY), carry_out, stand_in=True)
        outcome = await self._delegations.begin(given, self._ceiling, session, planner)
        if outcomes:
            return outcomes[0]
        if outcome.error is not None and isinstance(outcome.error.__cause__, BadInput):
            raise outcome.error.__cause__
        outcome.unwrap()
        raise AssertionError("a plan that completed has outcomes")

    async def run_team(self, goal: str, coordinator: str, **how: Unpack[PlanHow]) -> Any:
        """Gives a goal to a coordinator, who plans, and puts together what the members bring."""
        given, session, options = self._plan_wish(coordinator, goal, how)
        agent = self._directory.get(given.to)
        leading: Agent | None = None
        if agent is not None:
            team = TeamRun(self._shop, self._conductor, agent, PlanOptions(**options))

            async def lead(turn: Turn) -> Json:
                return await team.answer(turn.remit.id, goal)

            leading = Agent(agent.card, lead)
        outcome = await self._delegations.begin(given, self._ceiling, session, leading)
        return outcome.unwrap()

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

    async def cancel(self, task: str, why: str = "cancelled by its owner") -> int:
        """Stops a task or a whole run, and everything below it; says how many tasks that is."""
        live = self._conductor.runs.get(task)
        if live is None:
            raise NotFound(f"no task {shown(task)} is running here")
        below = self._conductor.runs.below(task)
        for one in below:
            one.stop(why)
        return len(below)

    def running(self) -> int:
        """How many tasks are alive in this process."""
        return len(self._conductor.runs)

    # -- breakers ---------------------------------------------------------------------------------------

    async def breakers(self) -> dict[str, Breaker]:
        """The breakers of the agents that have failed of late, or were taken out."""
        return await self._switchboard.all()

    async def trip(self, agent: str, why: str) -> None:
        """Takes an agent out: nobody can ask it until it is reset."""
        await self._switchboard.trip(agent, why)

    async def reset(self, agent: str) -> None:
        """Lets an agent be asked again at once."""
        await self._switchboard.reset(agent)

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
        return Context(OwnerAccess(self._shelf, session))

    async def cleanup(self) -> int:
        """Removes the entries that have expired and says how many."""
        return await self._shelf.cleanup(Writer(""), Place())

    # -- closing --------------------------------------------------------------------------------------------

    def reopen(self, store: str | Path) -> None:
        """Moves a runtime that has not run anything yet to another store."""
        self.database.close()
        self._open(store)

    def close(self) -> None:
        self.database.close()

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
        return asyncio.run(runtime.run(agent, task, **how))
    raise BadInput("an event loop is already running here; say `await runtime.run(...)`")


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

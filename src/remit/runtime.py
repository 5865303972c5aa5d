"""The composition root: a store, a directory and the engine, tied together once."""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar, Unpack, cast, overload

from remit.core.allow import ANY
from remit.core.bounds import DEFAULT_DEPTH, TOP, Bounds
from remit.core.card import Card
from remit.core.entry import Writer
from remit.core.events import Event
from remit.core.facts import Place
from remit.core.outcome import Outcome
from remit.core.text import NAME_LIMIT, SESSION_LIMIT, line, shown
from remit.core.times import moment
from remit.engine.access import OwnerAccess
from remit.engine.context import Context
from remit.engine.delegate import Delegations
from remit.engine.directory import Agent, AgentFunction, Directory
from remit.engine.inbox import Inbox
from remit.engine.live import Live
from remit.engine.shelf import Shelf
from remit.engine.system import SystemClock, TimedIds
from remit.engine.turn import Desk, How, Turn, wish
from remit.errors import BadInput, NotFound
from remit.ports import Clock, Database, Ids, Sink, Span
from remit.stores.sqlite import MEMORY, SqliteDatabase

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


class Runtime:
    """Agents, their store and the engine between them.

    `Runtime()` keeps everything in memory; `Runtime("team.db")` in that file. `bounds` is the ceiling on every run.
    """

    def __init__(
        self,
        store: str | Path | Database = MEMORY,
        *,
        workspace: str = "default",
        bounds: Bounds = TOP,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._workspace = line(workspace, "a workspace", NAME_LIMIT)
        if not isinstance(bounds, Bounds):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"bounds takes Bounds(...), not {shown(bounds)}")
        self._ceiling = bounds & Bounds(depth=DEFAULT_DEPTH) if bounds.depth is None else bounds
        self._clock = clock or SystemClock()
        self._ids = ids or TimedIds()
        self._directory = Directory()
        self._open(store)

    def _open(self, store: str | Path | Database) -> None:
        self.database: Database = SqliteDatabase(store) if isinstance(store, str | Path) else store
        self.store = self.database.store(self._workspace)
        self._shelf = Shelf(self.store, self._clock, self._ids)
        self._delegations = Delegations(self.store, self._directory, self._clock, self._ids)
        inbox = Inbox(self.store, self._directory, self._clock, self._ids)
        desk = Desk(self._delegations, self._directory, inbox, self._shelf)

        # Delegation is recursive: delegate -> run -> turn -> delegate. The knot is tied here and nowhere else.
        def take_turn(live: Live) -> Turn:
            return Turn(desk, live)

        self._delegations.take_turn = take_turn

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

    async def run(self, agent: str, task: str, *, session: str = "", credits: object = None, **how: Unpack[How]) -> Any:
        """Asks an agent to do a task and returns its result; raises `Refused` or `Failed` if there is none."""
        outcome = await self.outcome(agent, task, session=session, credits=credits, **how)
        return outcome.unwrap()

    async def outcome(
        self, agent: str, task: str, *, session: str = "", credits: object = None, **how: Unpack[How]
    ) -> Outcome:
        """The same as a value: what came of it, with the id of the run."""
        if session:
            line(session, "a session", SESSION_LIMIT)
        # The person who starts a run sees and may use everything, and passes it on unless told otherwise.
        given = wish(agent, task, cast("How", {"sees": ANY, "tools": ANY, **how}))
        if credits is not None:
            given = replace(given, within=given.within & Bounds(credits=cast("int", credits)))
        return await self._delegations.begin(given, self._ceiling, session)

    async def cancel(self, task: str, why: str = "cancelled by its owner") -> int:
        """Stops a task or a whole run, and everything below it; says how many tasks that is."""
        live = self._delegations.runs.get(task)
        if live is None:
            raise NotFound(f"no task {shown(task)} is running here")
        below = self._delegations.runs.below(task)
        for one in below:
            one.stop(why)
        return len(below)

    def running(self) -> int:
        """How many tasks are alive in this process."""
        return len(self._delegations.runs)

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


def _is_async(answer: object) -> bool:
    call = getattr(answer, "__call__", None)  # noqa: B004 - asking what kind of call it is, not whether it can be called
    return inspect.iscoroutinefunction(answer) or inspect.iscoroutinefunction(call)

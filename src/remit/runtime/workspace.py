"""A workspace as its owner sees it: everything that needs no agents."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from operator import methodcaller
from typing import Never, Self, TypeVar, Unpack

from remit.core import checks
from remit.core.bounds import TOP, Bounds, ceiling
from remit.core.checks import of_type
from remit.core.entry import Message
from remit.core.events import Event, apart
from remit.core.lifecycle import TERMINAL
from remit.core.plan import Plan
from remit.core.times import DAY, SECOND, span
from remit.core.values import NAME_LIMIT, SESSION_LIMIT, canonical, line
from remit.engine import asking
from remit.engine.acts import ActContent, act_of
from remit.engine.asking import NO_GOAL, Submitting, SubmittingPlan
from remit.engine.context import Context, OwnerAccess
from remit.engine.directory import Directory
from remit.engine.queue.submitting import Submission
from remit.engine.queue.task import Status, Task
from remit.engine.settings import Policy, Serving, System
from remit.engine.upkeep.doctor import Health, examine
from remit.engine.upkeep.prune import Pruning, prune
from remit.engine.upkeep.tallying import figures
from remit.errors import BadInput
from remit.ports import Clock, Database, Decision, RunLine, Sink, Store, View
from remit.report.stats import Stats, summed
from remit.report.tree import Node, tree
from remit.runtime.agents import HasAgents
from remit.runtime.filters import (
    MOST,
    EventFilter,
    HistoryFilter,
    StatsFilter,
    TaskFilter,
    page,
    which_events,
    which_figures,
    which_tasks,
)
from remit.runtime.following import Follow, followed, following, pages
from remit.runtime.keys import HasKeys
from remit.runtime.leading import Leader
from remit.runtime.money import HasLedger
from remit.runtime.opening import DEFAULT_WORKSPACE, Opening, StoreGiven, refuse_unknown, settings
from remit.runtime.people import HasQuestions
from remit.runtime.workers import Crew
from remit.stores.sqlite.database import MEMORY

T = TypeVar("T")

PAGE = 200
_NO_HANDS = Serving(concurrency=0)


class Workspace(HasAgents, HasLedger, HasQuestions, HasKeys):
    """Tasks, journal, context, breakers, money, questions, keys and upkeep of one workspace. It is opened on first use.

    `Workspace("team.db")` looks at a store without having its agents: it lists those that workers have published, and
    can submit tasks to them. Every change takes `op`: the same operation asked for again is one act, and asked for with
    another content a `Conflict`. It takes `by`, too: who does it, for the journal.
    """

    def __init__(
        self,
        store: StoreGiven | Opening = MEMORY,
        name: str = DEFAULT_WORKSPACE,
        *,
        bounds: Bounds = TOP,
        policy: Policy | None = None,
        system: System | None = None,
        create: bool = True,
        **unknown: Never,
    ) -> None:
        if unknown:
            refuse_unknown("Workspace", unknown, ("name", "bounds", "policy", "system", "create"))
        of_type(bounds, Bounds, "bounds takes Bounds(...)")
        checks.yes_or_no(create, "create")
        self._ceiling = ceiling(bounds)
        if isinstance(store, Opening):  # the workspace of a runtime, on the same engine
            self._opening = store
        else:
            parts = settings(policy, _NO_HANDS, system)
            self._opening = Opening(store, name, Directory(), parts, create=create)

    def __repr__(self) -> str:
        return f"<Workspace {self.name}>"

    @property
    def name(self) -> str:
        """The name of the workspace."""
        return self._opening.workspace

    @property
    def database(self) -> Database:
        """The database of the workspace; reading this opens it."""
        return self._opening.database

    @property
    def store(self) -> Store:
        """Its part of the database, for callers that write their own transactions."""
        return self._opening.engine.services.ground.store

    @property
    def clock(self) -> Clock:
        """The clock of the workspace."""
        return self._opening.settings.system.clock

    async def read(self, look: Callable[[View], T]) -> T:
        """Run `look` on a snapshot of the store and return its result."""
        checks.callable_(look, "read takes a function that is given a view")
        return await self.store.read(look)

    async def browse(self, look: Callable[[View], T]) -> T:
        """Run a long `look` on a snapshot of the store, while other work continues, and return its result."""
        checks.callable_(look, "browse takes a function that is given a view")
        return await self.store.browse(look)

    # -- tasks ------------------------------------------------------------------------------------------

    async def submit(
        self, agent: str, task: str, *, asker: str = "", under: str = "", **how: Unpack[Submitting]
    ) -> Task:
        """Queue a task, and return its handle; a worker that has the agent runs it.

        With `asker` the request is made in the name of that agent's card, which must allow it; with `under` as a part
        of the task of that id, which the agent holds. `task.existing` says whether the task existed already.
        """
        self._opening.must_be_outside("submit", "turn.submit")
        engine = self._opening.engine
        if self._opening.settings.policy.classify is not None:
            how = await asking.classified(task, how, self._opening.settings.policy.classifier)
        submission, session = asking.submitted(agent, task, how)
        if asker != "":
            accepted = await engine.queue.begin_for(canonical(asker), submission, self._ceiling, session, under)
        elif under != "":
            raise BadInput("say in whose name: asker= is the agent that holds the task given as under=")
        else:
            accepted = await engine.queue.begin(submission, self._ceiling, session)
        return Task(engine.control, accepted.id, existing=accepted.existing)

    async def submit_plan(self, plan: Plan, *strange: Never, **how: Unpack[SubmittingPlan]) -> Task:
        """Queue a plan, and return its handle. A worker that has all the agents of its steps carries it out, and
        another continues if that one dies. `await task.plan_outcome()` returns the outcome of every step."""
        self._opening.must_be_outside("submit_plan", "turn.run_plan")
        asking.nothing_more("submit_plan", "a plan", strange)
        of_type(plan, Plan, "submit_plan takes a Plan(...)")
        how = await asking.classified(plan.goal or NO_GOAL, how, self._opening.settings.policy.classifier)
        return await self._led(*asking.submitted_plan(plan, how))

    async def submit_team(
        self, goal: str, coordinator: str, *strange: Never, plan: Plan | None = None, **how: Unpack[SubmittingPlan]
    ) -> Task:
        """Queue a goal for a team, and return its handle; a worker that has the coordinator leads it. The coordinator's
        plan and its finished steps outlive that worker."""
        self._opening.must_be_outside("submit_team", "turn.run_team")
        asking.nothing_more("submit_team", "goal and coordinator", strange)
        how = await asking.classified(goal, how, self._opening.settings.policy.classifier)
        return await self._led(*asking.submitted_team(goal, coordinator, how, plan))

    async def _led(self, submission: Submission, session: str) -> Task:
        engine = self._opening.engine
        accepted = await Leader(engine, self._ceiling).submit(submission, session, await self.agents())
        return Task(engine.control, accepted.id, existing=accepted.existing)

    def task(self, task: str) -> Task:
        """Return the handle of a task by its id."""
        return Task(self._opening.engine.control, _id(task))

    async def tasks(self, **which: Unpack[TaskFilter]) -> list[Status]:
        """Return the tasks that match all conditions, newest first."""
        return await self._opening.engine.control.listed(which_tasks(which))

    async def runs(self, limit: int = 100, *, before: int | None = None) -> list[RunLine]:
        """Return runs, newest first; `before` is the `began` of the last run on the previous page."""
        most, start = checks.limit(limit, most=MOST), page(before)
        return await self.browse(lambda view: view.runs(most, start))

    async def root(self, run: str) -> Node | None:
        """Return a run as a tree of its tasks, or None if there is no such run."""
        return tree(await self.history(run=run))

    async def cancel(self, task: str, why: str = "cancelled by its owner", *, op: str = "", by: str = "") -> int:
        """Cancel a task or a whole run, with all its subtasks, wherever they run. Return the number of tasks."""
        return await self._opening.engine.control.cancel(_id(task), why, act=act_of(op, by))

    async def retry(self, task: str, *, anew: bool = False, op: str = "", by: str = "") -> Task:
        """Retry a task that did not complete, as a new task; its finished work is not repeated.

        With `anew`, a conversation with a model that cannot be continued restarts, in this task and its subtasks; the
        model is told which tools were used before.
        """
        of_type(anew, bool, "anew is True or False")
        control = self._opening.engine.control
        return Task(control, await control.retry(_id(task), act=act_of(op, by), anew=anew))

    async def orphans(self, limit: int = 100) -> list[Message]:
        """Return the result messages of spawned tasks whose asker had ended before it could read them."""
        most = checks.limit(limit)
        return await self.read(lambda view: view.orphans(most))

    async def settled(self, run: str) -> None:
        """Wait until all tasks that a run submitted or spawned have ended, in any process."""
        await self._opening.engine.control.settled(_id(run, "a run's id"))

    async def has_ended(self, run: str) -> bool:
        """Whether all tasks of a run have ended; submitted tasks may outlive their asker."""
        tasks = await self.read(methodcaller("of_run", _id(run, "a run's id")))
        return all(state in TERMINAL for _, state, _ in tasks)

    # -- what happened ------------------------------------------------------------------------------------

    async def head(self) -> int:
        """Return the number of the newest event; 0 if there is none."""
        return (await self.read(lambda view: view.head())).seq

    async def history(self, **which: Unpack[HistoryFilter]) -> list[Event]:
        """Return the events of the journal that match all conditions, in order: all of them, or the first `limit`; with
        `latest=True`, the last."""
        span = which_events("history", which, HistoryFilter)
        return await self.browse(lambda view: view.events(span))

    def pages(self, **which: Unpack[EventFilter]) -> AsyncGenerator[list[Event]]:
        """Yield the existing events that match all conditions, `limit` at a time, so that only one page is in
        memory."""
        return pages(self.store, which_events("pages", {"limit": PAGE, **which}))

    async def stats(self, **which: Unpack[StatsFilter]) -> Stats:
        """Return statistics of agents, durations, handoffs and refusals: of all, of a period, or of one agent. The cost
        hardly depends on the length of the journal."""
        window, agent = which_figures(which)
        found = await figures(self.store, window, agent)
        return summed(found.figures, found.open_runs, agent or "")

    def follow(self, **which: Unpack[EventFilter]) -> AsyncGenerator[list[Event]]:
        """Yield events as any process writes them, in lists: those from now on, or those after event number `after`,
        until the caller leaves the loop."""
        wanted = which_events("follow", {"limit": PAGE, **which})
        return followed(self.store, self.clock, wanted, from_now="after" not in which)

    def following(self, **which: Unpack[EventFilter]) -> AbstractAsyncContextManager[Follow]:
        """Follow with a poll at least every half second, for callers that also wait for something else."""
        return following(self.store, self.clock, which_events("following", which))

    def watch(self, sink: Sink) -> Callable[[], None]:
        """Pass every event that this process commits to `sink`; call the returned function to stop. Each sink gets its
        own copies: changing them affects neither the record nor other sinks."""
        checks.callable_(sink, "watch takes a function that is given a list of events")
        return self.store.subscribe(lambda events: sink(tuple(apart(event) for event in events)))

    async def workers(self) -> Crew:
        """Return the processes with a heartbeat."""
        return Crew(await self.read(lambda view: view.workers()))

    # -- shared context -----------------------------------------------------------------------------------

    def context(self, session: str = "", *, op: str = "", by: str = "") -> Context:
        """Return access to all entries of the workspace; with a session, also to its board. With `op`, the change made
        through it is one action, however often it is repeated; another change needs another `op`."""
        if session != "":
            line(session, "a session", SESSION_LIMIT)
        return Context(OwnerAccess(self._opening.engine.entries, session, act_of(op, by)))

    async def namespaces(self) -> dict[str, int]:
        """Return the namespaces, and the number of live entries in each."""
        now = self.clock.now()
        return dict(await self.browse(lambda view: view.namespaces(now)))

    async def cleanup(self, *, op: str = "", by: str = "") -> int:
        """Remove expired entries. Return their number."""
        return await self._opening.engine.entries.cleanup(act_of(op, by))

    # -- upkeep -------------------------------------------------------------------------------------------

    async def prune(self, days: float, *, op: str = "", by: str = "", told: Callable[[int], None] | None = None) -> int:
        """Delete the runs that ended more than `days` ago, and the journal events that nothing needs. Return the number
        of runs. One line for each run stays until it is as old, and idempotency keys stay forever. It works in small
        steps, between which others can work and it can be cancelled; after each step, `told` is called with the number
        of deleted runs."""
        older = span(days, "days") * (DAY // SECOND)
        if told is not None:
            checks.callable_(told, "told takes a function that is given the number of runs deleted so far")
        act, ground, now = act_of(op, by), self._opening.engine.services.ground, self.clock.now()
        if act.op:  # a repetition concerns the runs that were old at the first request
            now = (await act.perform(ground, ActContent("prune", "", older), lambda _: Decision(now))).answer
        return await prune(ground, Pruning(now - older, act.op, told=told, by=act.by))

    async def examine(self) -> Health:
        """Check that the store keeps its promises, in this workspace. Return the findings."""
        return await examine(self.database, self.clock.now(), [self.name])

    def close(self) -> None:
        """Close the store."""
        self._opening.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _id(given: object, what: str = "a task's id") -> str:
    return line(given, what, NAME_LIMIT)

"""A workspace as its owner sees it: everything that needs no agents."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Never, Self, Unpack, cast

from remit.core import checks
from remit.core.bounds import TOP, Bounds, ceiling
from remit.core.checks import keywords, of_type
from remit.core.plan import Plan
from remit.core.times import span_of_days
from remit.core.values import NAME_LIMIT, TASK_LIMIT, Json, canonical, checked, line, plain
from remit.engine.settings import Policy, Serving, System
from remit.errors import BadInput
from remit.ports import Decision, Sink
from remit.runtime.opening import DEFAULT_WORKSPACE, Opening, StoreGiven, refuse_unknown, settings
from remit.stores.sqlite.database import MEMORY

if TYPE_CHECKING:
    from remit.core.lifecycle import Progress
    from remit.engine.asking import Submission, Submitting, SubmittingPlan
    from remit.engine.queue.task import Task
    from remit.engine.upkeep.doctor import Health
    from remit.report.edges import AskEdge
    from remit.report.stats import Stats
    from remit.report.tree import Node
    from remit.runtime.access import WorkspaceAccess
    from remit.runtime.agents import WorkspaceAgents
    from remit.runtime.artifacts import WorkspaceArtifacts
    from remit.runtime.contexts import WorkspaceContext
    from remit.runtime.filters import StatsFilter
    from remit.runtime.hooks import WorkspaceHooks
    from remit.runtime.journal import WorkspaceJournal
    from remit.runtime.keys import KeyRing
    from remit.runtime.looks import WorkspaceLooks
    from remit.runtime.money import WorkspaceMoney
    from remit.runtime.questions import WorkspaceQuestions
    from remit.runtime.schedules import WorkspaceSchedules
    from remit.runtime.tasks import WorkspaceTasks

_OPENING = attrgetter("_opening")
_NO_HANDS = Serving(concurrency=0)


class Workspace:
    """One workspace of a store, as its owner sees it. The store is opened on first use.

    `Workspace("team.db")` looks at a store without loading its agents. It lists the agents that workers have published,
    and can submit tasks to them. The groups `tasks`, `schedules`, `journal`, `money`, `questions`, `agents`,
    `context`, `artifacts`, `keys`, `access` and `hooks` have the other methods; `looks` has those for dashboards.

    Every change takes `op`: the same operation requested again is done once, and with other content it raises
    `Conflict`. It also takes `by`, the name of the person who makes the change, for the journal.
    """

    @keywords()
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
            self._opening = Opening(store, name, parts, create=create)

    def __repr__(self) -> str:
        return f"<Workspace {self.name}>"

    @property
    def name(self) -> str:
        """The name of the workspace."""
        return self._opening.workspace

    @property
    def where(self) -> str:
        """The place of its store, without a password: a file, or the address of a server."""
        return str(getattr(self._opening.database, "where", "the store"))

    @property
    def lasting(self) -> bool:
        """Whether other processes can open its store: False for one in memory."""
        return self._opening.database.lasting

    @cached_property
    def tasks(self) -> WorkspaceTasks:
        """Its tasks and runs: list, cancel, retry."""
        from remit.runtime.tasks import WorkspaceTasks

        return WorkspaceTasks(self._opening)

    @cached_property
    def journal(self) -> WorkspaceJournal:
        """Its events: read and follow them."""
        from remit.runtime.journal import WorkspaceJournal

        return WorkspaceJournal(self._opening)

    @cached_property
    def money(self) -> WorkspaceMoney:
        """Its account: grant money, see the spending, reconcile calls."""
        from remit.runtime.money import WorkspaceMoney

        return WorkspaceMoney(self._opening)

    @cached_property
    def questions(self) -> WorkspaceQuestions:
        """The questions of agents to people: list, approve, reject, answer."""
        from remit.runtime.questions import WorkspaceQuestions

        return WorkspaceQuestions(self._opening)

    @cached_property
    def agents(self) -> WorkspaceAgents:
        """Its agents and workers: list, find, trip, reset."""
        from remit.runtime.agents import WorkspaceAgents

        return WorkspaceAgents(self._opening)

    @cached_property
    def context(self) -> WorkspaceContext:
        """Its shared context: `ws.context()` for the entries, `ws.context.cleanup()`."""
        from remit.runtime.contexts import WorkspaceContext

        return WorkspaceContext(self._opening, self._ceiling)

    @cached_property
    def artifacts(self) -> WorkspaceArtifacts:
        """Its files: save, open, list."""
        from remit.runtime.artifacts import WorkspaceArtifacts

        return WorkspaceArtifacts(self._opening)

    @cached_property
    def keys(self) -> KeyRing:
        """Its own provider keys, and cooldowns of keys and models."""
        from remit.runtime.keys import KeyRing

        return KeyRing(self._opening)

    @cached_property
    def access(self) -> WorkspaceAccess:
        """The keys with which programs outside call it: make, list, revoke."""
        from remit.runtime.access import WorkspaceAccess

        return WorkspaceAccess(self._opening)

    @cached_property
    def schedules(self) -> WorkspaceSchedules:
        """Its schedules: tasks that are submitted again and again."""
        from remit.runtime.schedules import WorkspaceSchedules

        return WorkspaceSchedules(self._opening, self._ceiling)

    @cached_property
    def looks(self) -> WorkspaceLooks:
        """Lists, details and conversations of the workspace, as commands and dashboards show them."""
        from remit.runtime.looks import WorkspaceLooks

        return WorkspaceLooks(self._opening)

    @cached_property
    def hooks(self) -> WorkspaceHooks:
        """Its hooks: addresses outside that are sent its events."""
        from remit.runtime.hooks import WorkspaceHooks

        return WorkspaceHooks(self._opening)

    # -- tasks ------------------------------------------------------------------------------------------

    @keywords(lambda: _keywords().Submitting)
    async def submit(
        self,
        agent: str,
        task: str = "",
        *,
        asker: str = "",
        under: str = "",
        ceiling: Bounds = TOP,
        **how: Unpack[Submitting],
    ) -> Task:
        """Queue a task, and return its handle; a worker that has the agent runs it.

        With `asker` the request is made in the name of that agent's card, which must allow it; with `under` as a part
        of the task of that id, which the agent holds. `ceiling` limits the task and its subtasks, in addition to the
        bounds of the workspace and to `within`. `task.existing` says whether the task existed already.
        """
        from remit.engine import asking
        from remit.engine.queue.task import Task

        self._opening.must_be_outside("submit", "turn.submit")
        most = self._ceiling if ceiling is TOP else self._within(ceiling)
        engine = self._opening.engine
        if self._opening.settings.policy.classify is not None:
            how = await asking.classified(task, how, self._opening.settings.policy.classifier)
        submission, session = asking.submitted(agent, task, how)
        if asker != "":
            who = canonical(asker)
            accepted = await engine.queue.begin_for(who, submission, most, session, under, narrower=ceiling)
        elif under != "":
            raise BadInput("pass asker=, the agent that holds the task given as under=")
        else:
            accepted = await engine.queue.begin(submission, most, session)
        return Task(engine.control, accepted.id, existing=accepted.existing)

    @keywords(lambda: _keywords().SubmittingPlan)
    async def submit_plan(
        self, plan: Plan, *strange: Never, ceiling: Bounds = TOP, **how: Unpack[SubmittingPlan]
    ) -> Task:
        """Queue a plan, and return its handle. A worker that has all the agents of its steps carries it out, and
        another continues if that one dies. `await task.plan_outcome()` returns the outcome of every step. `ceiling`
        limits it like that of `submit`."""
        from remit.engine import asking

        self._opening.must_be_outside("submit_plan", "turn.run_plan")
        asking.nothing_more("submit_plan", "a plan", strange)
        of_type(plan, Plan, "submit_plan takes a Plan(...)")
        how = await asking.classified(plan.goal or asking.NO_GOAL, how, self._opening.settings.policy.classifier)
        return await self._led(*asking.submitted_plan(plan, how), self._within(ceiling))

    @keywords(lambda: _keywords().SubmittingPlan)
    async def submit_team(
        self,
        goal: str,
        coordinator: str,
        *strange: Never,
        plan: Plan | None = None,
        ceiling: Bounds = TOP,
        **how: Unpack[SubmittingPlan],
    ) -> Task:
        """Queue a goal for a team, and return its handle; a worker that has the coordinator leads it. The coordinator's
        plan and its finished steps outlive that worker. `ceiling` limits it like that of `submit`."""
        from remit.engine import asking

        self._opening.must_be_outside("submit_team", "turn.run_team")
        asking.nothing_more("submit_team", "goal and coordinator", strange)
        how = await asking.classified(goal, how, self._opening.settings.policy.classifier)
        return await self._led(*asking.submitted_team(goal, coordinator, how, plan), self._within(ceiling))

    def _within(self, ceiling: Bounds) -> Bounds:
        """Return the bounds of one caller: never wider than those of the workspace."""
        return self._ceiling & of_type(ceiling, Bounds, "ceiling takes Bounds(...)")

    async def _led(self, submission: Submission, session: str, ceiling: Bounds) -> Task:
        from remit.engine.queue.task import Task
        from remit.runtime.leading import Leader

        engine = self._opening.engine
        accepted = await Leader(engine, ceiling).submit(submission, session, await self.agents.list())
        return Task(engine.control, accepted.id, existing=accepted.existing)

    async def tree(self, run: str) -> Node | None:
        """Return a run as a tree of its tasks, or None if there is no such run."""
        from remit.ports import Span
        from remit.report.tree import tree

        wanted = Span(run=line(run, "a run's id", NAME_LIMIT))
        return await self._opening.records.browse(lambda view: tree(view.events(wanted)))

    async def fork(
        self,
        run: str,
        at: int | None = None,
        *,
        task: str | None = None,
        data: object = ...,
        answer: object = ...,
        op: str = "",
        by: str = "",
    ) -> Task:
        """Start a new run that continues another one from one of its events. Return its first task. The other run stays
        as it is.

        The new run has everything that was recorded up to event number `at` [default: all]: remit repeats no finished
        task, model request, tool call or payment of that part. `task` and `data` replace the text and the value of the
        task; `data=None` removes the value. `answer` replaces the result of the effect or tool that event `at`
        recorded. Agents and their models are those of the worker that runs the fork.
        """
        from remit.engine.acts import act_of
        from remit.engine.queue.forking import Given
        from remit.engine.queue.task import Task

        checks.whole(at, "at", least=1)
        changes: dict[str, Json] = {} if task is None else {"task": plain(task, "a task", TASK_LIMIT)}
        if data is not ...:
            changes["data"] = checked(data, "data")
        given = None if answer is ... else Given(checked(answer, "answer"))
        control = self._opening.engine.control
        own = line(run, "a run's id", NAME_LIMIT)
        forked = await control.fork(own, at, act_of(op, by), changes=changes, given=given)
        return Task(control, forked)

    async def wait_all(self, run: str) -> None:
        """Wait until all tasks that a run submitted or spawned have ended, in any process."""
        await self._opening.engine.control.settled(line(run, "a run's id", NAME_LIMIT))

    # -- journal ------------------------------------------------------------------------------------------

    @keywords(lambda: _filters().StatsFilter)
    async def stats(self, **which: Unpack[StatsFilter]) -> Stats:
        """Return statistics of agents, durations, handoffs and refusals: of all, of a period, or of one agent. The cost
        hardly depends on the length of the journal."""
        from remit.engine.upkeep.tallying import figures
        from remit.report.stats import sum_of_agents
        from remit.runtime.filters import which_figures

        window, agent = which_figures(which)
        found = await figures(self._opening.records, window, agent)
        return sum_of_agents(found.figures, found.open_runs, agent or "")

    @keywords(lambda: _filters().StatsFilter)
    async def edges(self, **which: Unpack[StatsFilter]) -> list[AskEdge]:
        """Return who asks whom: for each asker and agent how many tasks were requested, how many ended and how, how
        many requests were refused, and what was spent: of all, of a period, or of the edges of one agent. The events
        of the period are read one by one."""
        from remit.runtime.filters import which_figures
        from remit.runtime.spending import edges_of

        window, agent = which_figures(which)
        edges = await self._opening.records.browse(lambda view: edges_of(view, window))
        return [edge for edge in edges if agent in (None, edge.asker, edge.agent)]

    # -- upkeep -------------------------------------------------------------------------------------------

    async def prune(self, days: float, *, op: str = "", by: str = "", told: Callable[[int], None] | None = None) -> int:
        """Delete the runs that ended more than `days` ago, and the journal events that nothing needs. Return the number
        of deleted runs.

        The journal keeps one line for each deleted run, until that line is more than `days` old, and idempotency keys
        forever. Pruning works in small transactions, so other processes can write meanwhile, and you can cancel it.
        After each transaction it calls `told` with the number of runs deleted so far.
        """
        from remit.engine.acts import ActContent, act_of
        from remit.engine.upkeep.prune import Pruning, prune

        older = span_of_days(days)
        if told is not None:
            checks.callable_(told, "told takes a function that is given the number of runs deleted so far")
        act, ground, now = act_of(op, by), self._opening.ground, self._opening.ground.clock.now()
        if act.op:  # a repetition concerns the runs that were old at the first request
            now = (await act.perform(ground, ActContent("prune", "", older), lambda _: Decision(now))).answer
        return await prune(ground, Pruning(now - older, act.op, told=told, by=act.by))

    async def check(self) -> Health:
        """Check the database, and the journal, tables and files of this workspace. Return the findings."""
        from remit.engine.upkeep.doctor import examine

        return await examine(self._opening.database, self._opening.clock.now(), [self.name])

    def close(self) -> None:
        """Close the store."""
        self._opening.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def opening_of(workspace: Workspace) -> Opening:
    """Return the opening of a workspace, for parts of remit that need its database, store or clock."""
    return cast("Opening", _OPENING(workspace))


def subscribe(workspace: Workspace, sink: Sink) -> Callable[[], None]:
    """Pass every event that this process commits to `sink`. Return a function that stops it."""
    from remit.runtime.journal import subscribe_sink

    return subscribe_sink(opening_of(workspace).ground.store, sink)


async def announce(workspace: Workspace) -> None:
    """Publish the cards of this process's agents before its worker starts: other processes can submit to them then."""
    await opening_of(workspace).engine.resident.announce()


def expect_words(workspace: Workspace) -> None:
    """Stream the answers of models in this process for five minutes: a caller is about to show its runs."""
    opening_of(workspace).ground.ears.expect()


def progress_here(workspace: Workspace) -> dict[str, Progress]:
    """Return the latest progress of the tasks that run in this process, by id."""
    from remit.runtime.tasks import live_progress

    return live_progress(opening_of(workspace))


def _keywords() -> ModuleType:
    from remit.engine import asking

    return asking


def _filters() -> ModuleType:
    from remit.runtime import filters

    return filters

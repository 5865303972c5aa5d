"""The team: agents, and the engine that runs them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Never, Self, TypeVar, Unpack, cast, overload

import anyio

from remit.core import checks
from remit.core.bounds import TOP, Bounds, ceiling
from remit.core.checks import keywords, of_type
from remit.core.lifecycle import Outcome
from remit.core.plan import Plan
from remit.core.records import TypedDict
from remit.core.secret import Redaction
from remit.core.values import Known
from remit.engine import asking
from remit.engine.asking import NO_GOAL, Running, StartingPlan, Submitting, SubmittingPlan
from remit.engine.settings import Policy, Serving, System
from remit.engine.traces import place, shortened
from remit.engine.turn import Turn
from remit.errors import BadInput
from remit.ports.turn import current_turn
from remit.runtime.models import ToolShelf
from remit.runtime.opening import DEFAULT_WORKSPACE, Opening, StoreGiven, is_running, refuse_unknown, settings
from remit.runtime.registering import HasTeam, forms
from remit.runtime.workspace import Workspace
from remit.stores.sqlite.database import MEMORY

T = TypeVar("T")
_log: Final = logging.getLogger("remit")
Result = TypeVar("Result")
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from remit.engine.plans import PlanOutcome
    from remit.engine.queue.task import Task
    from remit.runtime.leading import Leader
    from remit.runtime.streaming import Streamed

    Declared = TypeVarWithDefault("Declared", default=Any)  # the caller's annotation, or Any: see `Known`
else:
    Declared = TypeVar("Declared")


class Private(TypedDict, total=False):
    """The keyword `secrets`: texts that remit never writes to the store or to logs."""

    secrets: Iterable[str]


class Runtime(HasTeam):
    """Agents, and the engine that runs them.

    `Runtime()` keeps everything in memory; `Runtime("team.db")` in that file, which is opened on first use. `bounds`
    limits every run. `policy`, `serving` and `system` are values of `remit.settings`. `deps` is for your agents, as
    `turn.deps`: clients, settings, anything of this process. `secrets` are texts that are
    never written: in the store and in logs, `[secret]` replaces them. Actions of an owner that need no agents are in
    `rt.workspace`.
    """

    @keywords(Private)
    def __init__(
        self,
        store: StoreGiven | Opening = MEMORY,
        *,
        workspace: str = DEFAULT_WORKSPACE,
        bounds: Bounds = TOP,
        policy: Policy | None = None,
        serving: Serving | None = None,
        system: System | None = None,
        deps: object = None,
        **private: Unpack[Private],
    ) -> None:
        if unknown := private.keys() - Private.__annotations__.keys():
            takes = ("workspace", "bounds", "policy", "serving", "system", "deps", "secrets")
            refuse_unknown("Runtime", dict.fromkeys(unknown), takes)
        of_type(bounds, Bounds, "bounds takes Bounds(...)")
        self._ceiling = ceiling(bounds)
        if isinstance(store, Opening):  # created by `at`
            self._opening = store
        else:
            parts = settings(policy, serving, system, Redaction(private.get("secrets", ())))
            self._opening = Opening(store, workspace, parts._replace(deps=deps))
        self.workspace = Workspace(self._opening, bounds=self._ceiling)
        self._shelf = ToolShelf(self._opening.settings.policy.tool_groups.values())
        self._starting: set[anyio.CancelScope] = set()  # `serve` calls that wait for the store

    def __repr__(self) -> str:
        return f"<Runtime of {len(self.cards())} agents in workspace {self._opening.workspace}>"

    # -- runs -------------------------------------------------------------------------------------------

    @overload
    async def run(
        self, agent: str, task: str = "", *strange: Never, returns: type[Result], **how: Unpack[Running]
    ) -> Result: ...
    @overload
    async def run(
        self, agent: str, task: str = "", *strange: Never, returns: object = None, **how: Unpack[Running]
    ) -> Known: ...
    @keywords(Running)
    async def run(
        self, agent: str, task: str = "", *strange: Never, returns: object = None, **how: Unpack[Running]
    ) -> Any:
        """Run a task with an agent and return its result. Raise `Refused` or `Failed` if there is none.

        The task is a text, a JSON value, or both: `rt.run("desk", "check this order", data={"order": 7})`.
        If the agent is busy, wait up to `busy_timeout` seconds [default: 30]. With `returns=Review` the result is a
        `Review`; raise `BadOutput` if it does not fit. `on_question` is called with each question that the run asks a
        person: it returns the answer, True or False for an approval, or None to leave the question open.
        """
        asking.nothing_more("run", "an agent and a task", strange)
        form = None if returns is None else forms().form_of(returns, "returns")
        try:
            outcome = await self._begin(agent, task, how)
            return outcome.unwrap() if form is None else forms().unwrapped(outcome, form)
        except Exception as error:
            shortened(error)
            raise

    @keywords(Running)
    async def outcome(self, agent: str, task: str = "", *strange: Never, **how: Unpack[Running]) -> Outcome:
        """Run a task with an agent and return its outcome, with the id of the run."""
        asking.nothing_more("outcome", "an agent and a task", strange)
        return await self._begin(agent, task, how)

    @keywords(Running)
    def stream(self, agent: str, task: str = "", *strange: Never, **how: Unpack[Running]) -> AsyncGenerator[Streamed]:
        """Run a task with an agent, and yield what happens as it happens: `async for one in rt.stream("coder", "x")`.

        An `Event` is a recorded event. A `TextChunk` is a piece of a model's answer; one that `begins` starts the
        answer again. A `Progress` is what an agent said with `turn.progress`. The `Outcome` is last. Leaving the loop
        earlier cancels the run. To follow a run of another process, use its id:
        `rt.workspace.journal.follow(run=...)`.
        """
        asking.nothing_more("stream", "an agent and a task", strange)
        asking.run_request("stream", agent, task, how)  # check the arguments now, not when the loop starts
        return self._streamed(lambda: self._begin(agent, task, how))

    def _begin(self, agent: str, task: str, how: Running) -> Coroutine[Any, Any, Outcome]:
        self._opening.must_be_outside("run", "turn.delegate")
        asked = asking.run_request("run", agent, task, how)
        if self._opening.settings.policy.classify is not None:
            return self._classified(agent, task, how)
        return self._opening.engine.begin(asked, self._ceiling)

    async def _classified(self, agent: str, task: str, how: Running) -> Outcome:
        how = await asking.classified(task, how, self._opening.settings.policy.classifier)
        return await self._opening.engine.begin(asking.run_request("run", agent, task, how), self._ceiling)

    @keywords(StartingPlan)
    async def run_plan(self, plan: Plan, *strange: Never, **how: Unpack[StartingPlan]) -> PlanOutcome:
        """Run a plan for a person and return the outcome of every step."""
        asking.nothing_more("run_plan", "a plan", strange)
        self._opening.must_be_outside("run_plan", "turn.run_plan")
        of_type(plan, Plan, "run_plan takes a Plan(...)")
        asked, options = await self._planned("run_plan", "plan", plan.goal or NO_GOAL, how)
        return await self._leader().plan(plan, asked, options)

    @keywords(StartingPlan)
    async def run_team(
        self, goal: str, coordinator: str, *strange: Never, plan: Plan | None = None, **how: Unpack[StartingPlan]
    ) -> Known:
        """Give a goal to a coordinator, which plans and combines the members' results, and return its result. With
        `plan`, the coordinator only combines the results of that plan."""
        asking.nothing_more("run_team", "goal and coordinator", strange)
        return (await self._team(goal, coordinator, plan, how)).unwrap()

    @keywords(StartingPlan)
    def stream_plan(self, plan: Plan, *strange: Never, **how: Unpack[StartingPlan]) -> AsyncGenerator[Streamed]:
        """Run a plan, and yield what happens as it happens, like `stream`. The outcome has the state of each step."""
        asking.nothing_more("stream_plan", "a plan", strange)
        of_type(plan, Plan, "stream_plan takes a Plan(...)")
        asking.planned("stream_plan", "plan", plan.goal or NO_GOAL, how)

        async def begun() -> Outcome:
            self._opening.must_be_outside("stream_plan", "turn.run_plan")
            asked, options = await self._planned("stream_plan", "plan", plan.goal or NO_GOAL, how)
            return await self._leader().plan_run(plan, asked, options)

        return self._streamed(begun)

    @keywords(StartingPlan)
    def stream_team(
        self, goal: str, coordinator: str, *strange: Never, plan: Plan | None = None, **how: Unpack[StartingPlan]
    ) -> AsyncGenerator[Streamed]:
        """Give a goal to a coordinator, as `run_team` does, and yield what happens as it happens, like `stream`."""
        asking.nothing_more("stream_team", "goal and coordinator", strange)
        asking.planned("stream_team", coordinator, goal, how)
        return self._streamed(lambda: self._team(goal, coordinator, plan, how))

    def _streamed(self, begun: Callable[[], Coroutine[Any, Any, Outcome]]) -> AsyncGenerator[Streamed]:
        from remit.runtime.streaming import stream_of

        return stream_of(self._opening.ground.store, begun)

    async def _team(self, goal: str, coordinator: str, plan: Plan | None, how: StartingPlan) -> Outcome:
        self._opening.must_be_outside("run_team", "turn.run_team")
        given = asking.team_plan("run_team", plan, goal)
        asked, options = await self._planned("run_team", coordinator, goal, how)
        return await self._leader().team(asked, options, given)

    def _leader(self) -> Leader:
        from remit.runtime.leading import Leader

        return Leader(self._opening.engine, self._ceiling)

    async def _planned(self, verb: str, agent: str, task: str, how: StartingPlan) -> Any:
        how = await asking.classified(task, how, self._opening.settings.policy.classifier)
        return asking.planned(verb, agent, task, how)

    @keywords(Submitting)
    async def submit(self, agent: str, task: str = "", *strange: Never, **how: Unpack[Submitting]) -> Task:
        """Queue a task and return its handle at once; it outlives this process if the store does.

        With the same `key`, an equal request returns the same task; without one, each call creates a task. `timeout` is
        the time of one attempt [default: 260]; `within=Bounds(deadline=...)` ends all attempts [default: 30 days from
        now]. With `after=90` (seconds or a timedelta) or `at=` (an aware datetime) no worker starts it before that.
        `priority` is its place in the queue, from -100 to 100, higher first [default: 0].
        """
        asking.nothing_more("submit", "an agent and a task", strange)
        return await self.workspace.submit(agent, task, **how)

    @keywords(SubmittingPlan)
    async def submit_plan(self, plan: Plan, *strange: Never, **how: Unpack[SubmittingPlan]) -> Task:
        """Queue a plan and return its handle at once; the plan and its finished steps outlive this process if the store
        does. `await task.plan_outcome()` returns the outcome of every step."""
        return await self.workspace.submit_plan(plan, *strange, **how)

    @keywords(SubmittingPlan)
    async def submit_team(
        self, goal: str, coordinator: str, *strange: Never, plan: Plan | None = None, **how: Unpack[SubmittingPlan]
    ) -> Task:
        """Queue a goal for a team and return its handle at once; the coordinator's plan and its finished steps outlive
        this process if the store does."""
        return await self.workspace.submit_team(goal, coordinator, *strange, plan=plan, **how)

    @property
    def turn(self) -> Turn:
        """The turn that the calling code runs in: a model's tool uses it to delegate or to pay. Raise `BadInput`
        outside of one."""
        turn = current_turn()
        if turn is None:
            raise BadInput("there is no turn here: rt.turn is for what an agent runs, such as its tools; call rt.run")
        return cast("Turn", turn)

    # -- serving ------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Run queued tasks, take over from dead processes, and send events to hooks, until cancelled or drained.

        If the store cannot be opened yet, because its server is starting, wait for it.
        """
        engine = None
        with anyio.CancelScope() as starting:
            self._starting.add(starting)
            try:
                engine = await self._opening.wait()
            finally:
                self._starting.discard(starting)
        if engine is not None and not starting.cancel_called:  # otherwise it was drained before it started
            from remit.runtime.delivering import carry_hooks

            carrying = asyncio.create_task(carry_hooks(self._opening, Runtime))
            try:
                await engine.resident.serve()
            finally:
                carrying.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([carrying])

    async def available(self) -> None:
        """Wait until the store can be opened, as `serve` does, for example while its server is starting."""
        await self._opening.wait()

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[Self]:
        """Serve while the body runs: `async with rt.serving(): ...`. Nested calls share one worker."""
        async with self._opening.engine.resident.serving():
            yield self

    async def drain(self, timeout: float = 30.0) -> int:  # noqa: ASYNC109 - the rest is requeued
        """Stop claiming tasks, wait up to `timeout` seconds for running ones, and requeue the rest. Tasks that only
        wait for a person are requeued at once. Return the number of requeued tasks."""
        checks.patience(timeout, "timeout")
        for starting in self._starting:
            starting.cancel()
        left = await self._opening.engine.resident.drain(timeout) if self._opening.is_open else 0
        await self._opening.directory.hang_up()
        return left

    def lend(self) -> None:
        """Start this process's worker in the background, if `concurrency` is not 0; a submission does so by itself."""
        self._opening.engine.resident.lend()

    @property
    def worker(self) -> str:
        """This process's id, as `workspace.agents.workers()` lists it."""
        return self._opening.engine.services.heartbeat.worker

    def running(self) -> int:
        """Return the number of tasks that run in this process."""
        return len(self._opening.engine.services.conductor.alive)

    @property
    def policy(self) -> Policy:
        """The policy of this runtime."""
        return self._opening.settings.policy

    @property
    def serving_settings(self) -> Serving:
        """The serving settings of this process."""
        return self._opening.settings.serving

    @property
    def concurrency(self) -> int:
        """How many queued tasks this process runs at once; 0 if it only submits."""
        return self._opening.settings.serving.concurrency

    # -- store --------------------------------------------------------------------------------------------

    def at(self, store: StoreGiven | None = None, *, serving: Serving | None = None) -> Runtime:
        """Return the same team on another store, or with other serving settings; this runtime stays as it is."""
        return Runtime(self._opening.elsewhere(store, serving), bounds=self._ceiling)

    def close(self) -> None:
        """Close the store. Another process, or the next start, resumes the tasks that still run here; `async with`
        requeues them first."""
        self._opening.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Requeue the tasks that still run here, and close."""
        if self._opening.is_open:
            with anyio.CancelScope(shield=True):
                await self.drain(0)
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@overload
def run(runtime: Runtime, agent: str, task: str = "", *, returns: type[Result], **how: Unpack[Running]) -> Result: ...
@overload
def run(
    runtime: Runtime, agent: str, task: str = "", *, returns: object = None, **how: Unpack[Running]
) -> Declared | Any: ...
@keywords(Running)
def run(runtime: Runtime, agent: str, task: str = "", *, returns: object = None, **how: Unpack[Running]) -> Any:
    """Run a task from a script: start an event loop, wait, and return the result, with `returns=Review` as a
    `Review`. Raise `BadInput` if an event loop is already running here."""
    of_type(runtime, Runtime, "remit.run takes a Runtime first")
    form = None if returns is None else forms().form_of(returns, "returns")
    if is_running():
        raise BadInput("an event loop is already running here; call `await runtime.run(...)`")
    try:
        outcome = run_main(_run(runtime, agent, task, how))
        return outcome.unwrap() if form is None else forms().unwrapped(outcome, form)
    except Exception as error:
        shortened(error)
        raise


def run_main(main: Coroutine[Any, Any, T], loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> T:
    """Run a coroutine in an event loop of its own, made by `loop`, and return its result, like `asyncio.run`. But a
    SystemExit in an asyncio task that an agent or its framework has started does not end the loop: it is logged, and
    reaches the code that awaits that task, so the agent fails and the process goes on."""
    with asyncio.Runner(loop_factory=loop) as runner:
        task = runner.get_loop().create_task(main)
        while not task.done():
            try:
                runner.run(_ended(task))
            except SystemExit as left:
                if not task.done():
                    _log.warning("SystemExit in an asyncio task or a callback (%s); this process goes on", place(left))
        return task.result()


async def _ended(task: asyncio.Task[Any]) -> None:
    """Wait until the task has ended. If this is cancelled, cancel the task."""
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait((task,))
        if task.cancelled():
            raise


async def _run(runtime: Runtime, agent: str, task: str, how: Running) -> Outcome:
    """Return the outcome, after all tasks that the run left have ended too: no other process would run them."""
    outcome = await runtime.outcome(agent, task, **how)
    if outcome.id:
        await runtime.workspace.wait_all(outcome.id)
    await runtime.drain()
    return outcome

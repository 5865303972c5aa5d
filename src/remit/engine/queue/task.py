"""The handle of a submitted task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from remit.core.checks import patience
from remit.core.events import MetaValue
from remit.core.lifecycle import Outcome
from remit.core.times import aware
from remit.core.trust import TRUSTED, Trust
from remit.core.values import Json, Known
from remit.engine.acts import Act, act_of
from remit.engine.attempt.live import LiveTask
from remit.errors import BadInput
from remit.ports import TaskLine

if TYPE_CHECKING:
    from remit.engine.plans import PlanOutcome

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Status:
    """A task at one moment. `attempt` is how often it was started; times are microseconds.

    `asker` is the agent that requested it, empty for a person. `by` is the person who started its run; `tags` and
    `meta` are those of its run. `result` is its result, or `error` the reason why it has none; `trust` is "untrusted"
    if its agent had read untrusted input. `seen_at` is when this was read; it does not count for equality.
    """

    id: str
    state: str
    agent: str
    task: str
    session: str
    run: str
    parent: str
    asked_how: str
    attempt: int
    worker: str
    asked_at: int
    ready_at: int
    claimed_at: int | None
    ended_at: int | None
    until: int
    began: int
    asker: str = ""
    result: Json = None
    error: str = ""
    trust: Trust = TRUSTED
    priority: int = 0
    by: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, MetaValue] = field(default_factory=dict[str, MetaValue])
    seen_at: int = field(default=0, compare=False)

    @property
    def asked(self) -> datetime:
        """When it was requested."""
        return aware(self.asked_at)

    @property
    def due(self) -> datetime:
        """The time from which a worker may start the task or its next attempt."""
        return aware(max(self.asked_at, self.ready_at))

    @property
    def ended(self) -> datetime | None:
        """When it ended; None if it has not."""
        return None if self.ended_at is None else aware(self.ended_at)

    @property
    def deadline(self) -> datetime:
        """The time at which the task expires."""
        return aware(self.until)

    @property
    def running_for(self) -> int | None:
        """The microseconds since the present attempt started; None if the task is neither running nor waiting."""
        if self.state not in ("running", "waiting"):
            return None
        return max(0, self.seen_at - (self.asked_at if self.claimed_at is None else self.claimed_at))

    @classmethod
    def of(cls, line: TaskLine, outcome: Outcome | None, now: int) -> "Status":
        record = line.record
        ended = Outcome("", "", "completed") if outcome is None else outcome
        return cls(
            id=record.id,
            state=record.state,
            agent=record.holder,
            task=line.task,
            session=record.session,
            run=record.run,
            parent=record.parent,
            asked_how=record.asked_how,
            attempt=record.attempt,
            worker=record.worker,
            asked_at=record.asked_at,
            ready_at=record.ready_at,
            claimed_at=record.claimed_at,
            ended_at=record.ended_at,
            until=record.until,
            began=record.began,
            asker=line.asker,
            result=ended.value,
            error="" if ended.error is None else str(ended.error),
            trust=ended.trust,
            priority=record.priority,
            by=line.by,
            tags=line.labels.tags,
            meta=dict(line.labels.meta),
            seen_at=now,
        )


class KnowsTasks(Protocol):
    """Access to the tasks of a workspace."""

    async def status(self, task: str, asker: LiveTask | None = None) -> Status: ...
    async def outcome(self, task: str, seconds: float | None) -> Outcome: ...
    async def awaited(self, asker: LiveTask, task: str, seconds: float | None) -> Outcome: ...
    async def cancel(self, task: str, why: str, asker: LiveTask | None, act: Act) -> int: ...
    async def retry(self, task: str, asker: LiveTask | None, act: Act, *, restart: bool = False) -> str: ...
    async def plan_outcome(self, outcome: Outcome, asker: LiveTask | None) -> "PlanOutcome": ...


class Task:
    """A submitted task. You can create the handle again from its id at any time: `workspace.tasks.get(id)`.

    `existing` says that the request found a task that existed already.
    """

    def __init__(self, tasks: KnowsTasks, task: str, asker: LiveTask | None = None, *, existing: bool = False) -> None:
        self.id = task
        self.existing = existing
        self._tasks = tasks
        self._asker = asker

    async def status(self) -> Status:
        """Return its state, with its result or its error if it has ended."""
        status = await self._tasks.status(self.id, self._asker)
        if self._asker is not None:
            self._asker.take(status.trust)
        return status

    async def wait(self, timeout: float | None = None) -> Outcome:  # noqa: ASYNC109 - the task outlives it
        """Wait until the task has ended, and return its outcome. Raise `TimeoutError` after `timeout` seconds.

        An agent that waits holds no slot meanwhile.
        """
        patience(timeout, "timeout")
        if self._asker is not None:
            outcome = await self._tasks.awaited(self._asker, self.id, timeout)
            self._asker.take(outcome.trust)
            return outcome
        return await self._tasks.outcome(self.id, timeout)

    async def plan_outcome(self, timeout: float | None = None) -> "PlanOutcome":  # noqa: ASYNC109 - the task outlives it
        """Wait until a plan or a team has ended, and return the outcome of every step, like `run_plan`. Raise the error
        of a task that ended before its steps were done, for example by a cancellation."""
        outcome = await self.wait(timeout)
        return await self._tasks.plan_outcome(outcome, self._asker)

    @overload
    async def result(self, timeout: float | None = None, *, returns: type[Result]) -> Result: ...  # noqa: ASYNC109
    @overload
    async def result(self, timeout: float | None = None, *, returns: object = None) -> Known: ...  # noqa: ASYNC109
    async def result(self, timeout: float | None = None, *, returns: object = None) -> Any:  # noqa: ASYNC109
        """Wait for its result and return it. Raise `Failed` if there is none. With `returns=Review` it is a `Review`;
        raise `BadOutput` if it does not fit."""
        if returns is not None:
            from remit.engine.forms import form_of, unwrapped  # noqa: PLC0415 - few results have a form

            form = form_of(returns, "returns")
            return unwrapped(await self.wait(timeout), form)
        return (await self.wait(timeout)).unwrap()

    async def cancel(self, why: str = "cancelled by its asker", *, op: str = "", by: str = "") -> int:
        """Cancel the task and all its subtasks. Return the number of tasks. An owner may pass an operation id, so that
        a repeated request is one action, and a name, as for `workspace.tasks.cancel`."""
        return await self._tasks.cancel(self.id, why, self._asker, self._act("cancel", op, by))

    async def retry(self, *, restart: bool = False, op: str = "", by: str = "") -> "Task":
        """Run the task again as a new task, if it did not complete, like `workspace.tasks.retry`. Return the handle of
        the new task. If an agent calls this, the new task gets no more time than the agent has, and the handle works
        only during the agent's turn."""
        act = self._act("retry", op, by)
        return Task(self._tasks, await self._tasks.retry(self.id, self._asker, act, restart=restart), self._asker)

    def _act(self, verb: str, op: str, by: str) -> Act:
        """Return the action of an owner. Raise `BadInput` if an agent passes `op` or `by`: its actions are identified
        by its task."""
        if self._asker is not None and (op or by):
            raise BadInput(f"{verb} takes op and by of an owner only; '{self._asker.remit.holder}' is an agent")
        return act_of(op, by)

    def __repr__(self) -> str:
        return f"<Task {self.id}>"

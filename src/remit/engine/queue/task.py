"""The handle of a task that someone submitted."""

from typing import Any, NamedTuple, Protocol

import anyio

from remit.core.outcome import Outcome
from remit.engine.attempt.live import LiveTask


class Status(NamedTuple):
    """A task at this moment. `attempt` counts how often it was begun."""

    id: str
    state: str
    agent: str
    task: str
    session: str
    run: str
    parent: str
    asked_how: str
    attempt: int
    asked_at: int
    ended_at: int | None
    until: int


class KnowsTasks(Protocol):
    """Who knows the tasks of a workspace."""

    async def status(self, task: str) -> Status: ...
    async def outcome(self, task: str) -> Outcome: ...
    async def awaited(self, asker: LiveTask, task: str, seconds: float | None) -> Outcome: ...
    async def cancel(self, task: str, why: str, asker: LiveTask | None) -> int: ...
    async def retry(self, task: str, asker: LiveTask | None) -> "Task": ...


class Task:
    """A task that someone submitted. The handle can be made again from its id at any time: `rt.task(id)`."""

    def __init__(self, tasks: KnowsTasks, task: str, asker: LiveTask | None = None) -> None:
        self.id = task
        self._tasks = tasks
        self._asker = asker

    async def status(self) -> Status:
        """Where it stands."""
        return await self._tasks.status(self.id)

    async def wait(self, seconds: float | None = None) -> Outcome:
        """What came of it, once it has ended; raises TimeoutError if that takes longer than `seconds`.

        An agent that waits holds no slot meanwhile.
        """
        if self._asker is not None:
            return await self._tasks.awaited(self._asker, self.id, seconds)
        with anyio.fail_after(seconds):
            return await self._tasks.outcome(self.id)

    async def result(self, seconds: float | None = None) -> Any:
        """Its result; raises `Failed` if there is none."""
        return (await self.wait(seconds)).unwrap()

    async def cancel(self, why: str = "cancelled by its asker") -> int:
        """Stops it and everything below it; says how many tasks that is."""
        return await self._tasks.cancel(self.id, why, self._asker)

    async def retry(self) -> "Task":
        """Has it carried out once more, as a new task, if it did not complete."""
        return await self._tasks.retry(self.id, self._asker)

    def __repr__(self) -> str:
        return f"<Task {self.id}>"

"""Waking workers on PostgreSQL, through procrastinate.

Triggers on our own tables write the jobs (migrations/010.sql), so there is a job exactly if a task is pending. A job
has no data: it only says that there may be something to claim; the journal decides who claims what.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final, LiteralString, cast

import anyio
import procrastinate
import psycopg
from procrastinate.connector import BaseAsyncConnector, Notify
from procrastinate.exceptions import ConnectorException, NoResult, UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.sync_psycopg_connector import wrap_exceptions
from psycopg.rows import dict_row

from remit.core.times import PAUSES
from remit.errors import StoreError
from remit.stores.postgres.address import Connection, digest
from remit.stores.postgres.listening import Ear, Notices

_Row = dict[str, Any]


class Connector(BaseAsyncConnector):
    """Runs procrastinate's statements on an ear's thread; procrastinate alone would open five connections."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear

    def get_sync_connector(self) -> "Connector":
        return self

    async def open_async(self, pool: object = None) -> None:
        """Check whether the server can be reached."""
        await self.execute_query_async("SELECT 1")

    async def close_async(self) -> None:
        """Do nothing: the connection is not ours."""

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        await self._ask(lambda connection: connection.execute(query, arguments) and None)

    async def execute_query_one_async(self, query: LiteralString, **arguments: Any) -> _Row:
        rows = await self.execute_query_all_async(query, **arguments)
        if not rows:
            raise NoResult
        return rows[0]

    async def execute_query_all_async(self, query: LiteralString, **arguments: Any) -> list[_Row]:
        def rows(connection: Connection) -> list[_Row]:
            with connection.cursor(row_factory=dict_row) as cursor:
                return cursor.execute(query, arguments).fetchall()

        return await self._ask(rows)

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Pass notifications on, until cancelled."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

        def hear(channel: str, text: str) -> bool:
            with suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(heard.put_nowait, (channel, text))
            return False

        names = tuple(channels)
        for name in names:
            self._ear.hear(name, lambda text, _, name=name: hear(name, text))
        try:
            while True:
                channel, payload = await heard.get()
                await on_notification(channel=channel, payload=payload)
        finally:
            for name in names:
                self._ear.hear_no_more(name)

    async def _ask(self, use: Callable[[Connection], Any]) -> Any:
        with wrap_exceptions():
            return await asyncio.wrap_future(self._ear.ask(use))


Due = Callable[[], Awaitable[None]]

_log = logging.getLogger("remit")
_TASK: Final = "remit.due"
_POLL: Final = 0.3  # seconds; a few per cent of the wake-ups are missed
_LOST: Final = (ConnectorException, psycopg.Error, OSError)


class Procrastinate:
    """Wakes the workers of one workspace. It writes a heartbeat every `heartbeat` seconds; a process without one for
    `stalled` seconds is dead."""

    def __init__(self, notices: Notices, workspace: str, *, heartbeat: float = 2.0, stalled: float = 10.0) -> None:
        self._notices = notices
        self._queue = digest(workspace)
        self._heartbeat = heartbeat
        self._stalled = stalled

    async def serve(self, due: Due) -> None:
        """Call `due` whenever there may be a task to claim, until cancelled; wait for a lost server."""
        # Outside the caller's cancel scope: procrastinate stops in several steps, and each would be cancelled.
        serving = asyncio.ensure_future(self._serve(due))
        try:
            await asyncio.wait([serving])
        finally:
            while not serving.done():  # repeat if it was busy with a lost connection and missed it
                serving.cancel()
                # Even if we are cancelled repeatedly.
                with suppress(asyncio.CancelledError), anyio.CancelScope(shield=True):
                    await asyncio.wait([serving], timeout=1.0)
        serving.result()

    async def _serve(self, due: Due) -> None:
        _hush()
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._while_connected(due)
                why = "its worker stopped"
            except* _LOST as errors:
                error = _first(errors)
                why = str(error.__cause__ or error).strip() or type(error).__name__
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError  # a task group that fails at this moment loses the cancellation
            if asyncio.get_running_loop().time() - began > PAUSES[-1]:
                failures = 0
            pause = PAUSES[min(failures, len(PAUSES) - 1)]
            failures += 1
            text = "notices that wake this worker need PostgreSQL, trying again in %g s: %s"
            _log.warning(text, pause, self._notices.address.masked(why.splitlines()[0]))
            await asyncio.sleep(pause)

    async def _while_connected(self, due: Due) -> None:
        """Run procrastinate's worker until the connection is lost or we are cancelled."""
        with self._notices.ear() as ear:
            app = procrastinate.App(connector=Connector(ear))
            app.job_manager = manager = _Jobs(app.connector)
            app.task(name=_TASK, queue=self._queue, retry=procrastinate.RetryStrategy(wait=0))(_waking(due))
            await app.open_async()
            async with asyncio.TaskGroup() as group:
                ended = asyncio.Event()
                rescue = group.create_task(self._rescue(manager, ended))
                try:
                    await app.run_worker_async(
                        queues=[self._queue],
                        concurrency=1,  # a woken worker claims everything, which completes the other jobs too
                        fetch_job_polling_interval=_POLL,
                        listen_notify=True,
                        delete_jobs="always",
                        install_signal_handlers=False,
                        shutdown_graceful_timeout=0.1,
                        update_heartbeat_interval=self._heartbeat,
                        stalled_worker_timeout=self._stalled,
                    )
                finally:
                    ended.set()
                    rescue.cancel()

    async def _rescue(self, manager: "_Jobs", ended: asyncio.Event) -> None:
        """Requeue the jobs of dead workers; procrastinate would leave them in `doing` forever.

        It also checks `ended`: a cancellation that arrives together with an answer can get lost, and a task group
        cancels only once.
        """
        while not ended.is_set():
            await manager.prune_stalled_workers(self._stalled)
            for job in await manager.get_stalled_jobs(queue=self._queue, seconds_since_heartbeat=self._stalled):
                await manager.retry_job(job)
            if manager.broken is not None:
                raise manager.broken
            with suppress(TimeoutError):
                async with asyncio.timeout(self._heartbeat):
                    await ended.wait()


class _Jobs(JobManager):
    """Records the ends of procrastinate's jobs, and keeps a failure to do so in `broken`: procrastinate ignores it.

    `Procrastinate._rescue` raises that error, so procrastinate's worker is started again. The job then belongs to a
    worker that is gone, and is requeued.
    """

    broken: ConnectorException | None = None

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        try:
            await super().finish_job(job, status, delete_job)
        except ConnectorException as error:
            if not isinstance(error.__cause__, psycopg.errors.RaiseException):  # another worker was first
                self.broken = error

    async def retry_job(self, job: Job, *args: Any, **kwargs: Any) -> None:
        try:
            await super().retry_job(job, *args, **kwargs)
        except UniqueViolation:  # its task already has a new job in the queue, so this one cannot be requeued
            await self.finish_job(job, Status.FAILED, delete_job=True)
        except ConnectorException as error:
            if not isinstance(error.__cause__, psycopg.errors.RaiseException):
                self.broken = error


def _waking(due: Due) -> Callable[[], Awaitable[None]]:
    async def wake() -> None:
        """Wake the worker. The job is done once the worker has scanned; if we die before, the job is requeued."""
        for pause in (*PAUSES, None):
            try:
                return await due()
            except StoreError as error:
                _log.warning("a worker could not look for what is due: %s", error)
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        return None

    return wake


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(cast("BaseExceptionGroup[BaseException]", first)) if isinstance(first, BaseExceptionGroup) else first


def _hush() -> None:
    """Silence procrastinate's log: it has a line for every job and several for a lost connection. We log what
    matters."""
    logger = logging.getLogger("procrastinate")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)

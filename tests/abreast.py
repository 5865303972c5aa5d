"""Run tests side by side in forks of the process that collected them: `pytest --abreast 4`.

Importing and collecting the tests takes as long as some hundred of them. A fork has both for nothing, and the frozen
memory too. The process that collected forks the workers, prints what they report, and runs no test itself.

A worker takes two tests at a time. It takes all tests of a file that are marked `together`: what they share takes
longer to set up than they take.
"""

import io
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import pytest

TAKEN_AT_ONCE = 2
OF_ALL = ("terminalreporter", "cacheprovider", "lfplugin", "nfplugin", "stepwise")  # the parent ends these


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--abreast", type=int, default=0, metavar="N", help="run tests in N forks of this process")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("abreast"):
        config.pluginmanager.register(Abreast(config.getoption("abreast")))


def portions(items: Sequence[pytest.Item]) -> list[list[int]]:
    """Return the numbers of the tests in the portions in which they are taken."""
    alone = [number for number, item in enumerate(items) if not item.get_closest_marker("together")]
    files: dict[Path, list[int]] = {}
    for number, item in enumerate(items):
        if item.get_closest_marker("together"):
            files.setdefault(item.path, []).append(number)
    return [*files.values(), *(alone[at : at + TAKEN_AT_ONCE] for at in range(0, len(alone), TAKEN_AT_ONCE))]


class Queue:
    """The portions that no worker has taken. A file has one position for all forks, so a read takes."""

    WIDTH = 4

    def __init__(self, portions: list[list[int]]) -> None:
        self._portions = portions
        self._file: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it is open as long as there are workers
        self._file.write(b"".join(number.to_bytes(self.WIDTH) for number in range(len(portions))))
        self._file.seek(0)

    def take(self) -> list[int]:
        """Return the numbers of some tests, or nothing if none are left."""
        taken = self._file.read(self.WIDTH)
        return self._portions[int.from_bytes(taken)] if taken else []

    def clear(self) -> None:
        self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        self._file.close()


@dataclass(eq=False)
class Worker:
    """A fork, as its parent sees it."""

    pid: int
    connection: Connection
    left: deque[int] = field(default_factory=deque[int])  # the tests that it has taken and not reported


class Abreast:
    """The parent."""

    def __init__(self, workers: int) -> None:
        self._number = workers

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly or not session.items:
            return None  # pytest itself says what follows
        queue = Queue(portions(session.items))
        workers: set[Worker] = set()
        try:
            for _ in range(min(self._number, len(session.items))):
                fork(session, queue, workers, ())
            while workers:
                self._listen(session, queue, workers)
                if session.shouldfail or session.shouldstop:
                    queue.clear()
        finally:
            queue.clear()
            for worker in workers:
                os.waitpid(worker.pid, 0)
            queue.close()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _listen(self, session: pytest.Session, queue: Queue, workers: set[Worker]) -> None:
        speaking = multiprocessing.connection.wait([worker.connection for worker in workers])
        for worker in [worker for worker in workers if worker.connection in speaking]:
            try:
                word, *said = worker.connection.recv()
            except EOFError:
                workers.remove(worker)
                _, status = os.waitpid(worker.pid, 0)
                if worker.left:  # it had not ended
                    report_death(session, worker.left.popleft(), os.waitstatus_to_exitcode(status))
                    fork(session, queue, workers, () if session.shouldfail else worker.left)
                continue
            if word == "took":
                worker.left.extend(*said)
            elif word == "ran":
                worker.left.remove(said[0])
                for data in said[1]:
                    report = session.config.hook.pytest_report_from_serializable(config=session.config, data=data)
                    session.config.hook.pytest_runtest_logreport(report=report)
            else:
                worker.left.clear()
                session.shouldstop = session.shouldstop or said[0]


def fork(session: pytest.Session, queue: Queue, workers: set[Worker], first: Sequence[int]) -> None:
    """Add a worker that runs these tests first."""
    ours, theirs = multiprocessing.Pipe()
    pid = os.fork()
    if not pid:
        for end in (ours, *(worker.connection for worker in workers)):
            end.close()  # else nobody notices when the parent is killed
        work(session, queue, theirs, first)
    theirs.close()
    workers.add(Worker(pid, ours, deque(first)))


def report_death(session: pytest.Session, number: int, status: int) -> None:
    """Report a test whose process ended under it as failed."""
    item = session.items[number]
    died = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    longrepr = f"the process that ran {item.nodeid} ended {died}"
    report = pytest.TestReport(item.nodeid, item.location, {}, "failed", longrepr, "call")
    session.config.hook.pytest_runtest_logreport(report=report)


# -- in a fork ----------------------------------------------------------------------------------------------------


class Reports:
    """What a test gave, as long as it runs."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.kept: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.kept.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def work(session: pytest.Session, queue: Queue, connection: Connection, first: Sequence[int]) -> None:
    """Run tests until none is left, and end the process."""
    status = 1
    try:
        plugins = session.config.pluginmanager
        plugins.unregister(name="terminalreporter")
        own_captures(plugins.getplugin("capturemanager"))
        move_base(session.config)
        try:
            run(session, queue, connection, deque(first))
        finally:
            ours = [plugin for name in OF_ALL if (plugin := plugins.getplugin(name))]
            plugins.subset_hook_caller("pytest_sessionfinish", ours)(
                session=session, exitstatus=int(session.testsfailed > 0)
            )
        connection.send(("ended", False))
        status = 0
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # the parent is told by itself, or is not there any more
    except BaseException:
        connection.send(("ended", traceback.format_exc()))
    finally:
        os._exit(status)


def own_captures(capturing: Any) -> None:
    """Capture into files of this process and not into the parent's. The streams stay the same: modules that were
    imported while tests were collected may have kept them, as defaults of functions."""
    capturing.resume_global_capture()
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(io.UnsupportedOperation), tempfile.TemporaryFile() as own:
            if stream.fileno() != number:  # else nothing is captured
                os.dup2(own.fileno(), stream.fileno(), inheritable=False)
                os.dup2(own.fileno(), number)


def move_base(config: pytest.Config) -> None:
    """If folders of tests are to be in a given one, have this process use a folder in it: it empties what it uses."""
    if config.option.basetemp:
        given = Path(config.option.basetemp)
        given.mkdir(parents=True, exist_ok=True)
        config.option.basetemp = str(given / str(os.getpid()))
        folders: Any = config.pluginmanager.getplugin("tmpdir")
        folders.pytest_configure(config)


def run(session: pytest.Session, queue: Queue, connection: Connection, left: deque[int]) -> None:
    reports = Reports(session.config)
    session.config.pluginmanager.register(reports)

    def take() -> None:
        if taken := queue.take():
            connection.send(("took", taken))
            left.extend(taken)

    if not left:
        take()
    while left and not (session.shouldfail or session.shouldstop):
        number = left.popleft()
        if not left:
            take()  # what the next test shares with this one stays
        following = session.items[left[0]] if left else None
        session.items[number].ihook.pytest_runtest_protocol(item=session.items[number], nextitem=following)
        connection.send(("ran", number, reports.kept))
        reports.kept = []

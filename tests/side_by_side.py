"""Tests side by side: `--workers N` collects once, then forks N processes that share the tests.

Collection imports every framework that remit works with. A process that has to collect by itself takes longer for that
than for a hundred tests; a fork has it all. So there are more processes than cores, and while one waits another works.
"""

import os
import shutil
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NoReturn

import pytest
from coverage import Coverage

CHUNK = 4  # neighbours often share fixtures
FEW = 2  # workers for tests marked `few`


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, metavar="N", help="run the tests in N forked processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = session.config.getoption("workers")
    if not isinstance(count, int) or count < 1 or session.config.option.collectonly:
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    root = Path(tempfile.mkdtemp(prefix="remit-tests-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    Workers(session, root).run(count)
    if not session.testsfailed:  # else somebody may want to look at the files
        shutil.rmtree(root, ignore_errors=True)
    return True


class Workers:
    """The forked processes, the tests that nobody has yet, and those that each worker has."""

    def __init__(self, session: pytest.Session, root: Path) -> None:
        self._session = session
        self._root = root
        self._few = deque(number for number, item in enumerate(session.items) if item.get_closest_marker("few"))
        self._left = deque(sorted(set(range(len(session.items))).difference(self._few)))
        self._given: dict[Connection, deque[int]] = {}
        self._pids: dict[Connection, int] = {}
        self._places: dict[Connection, int] = {}

    def run(self, count: int) -> None:
        try:
            for place in range(count):
                self._fork(place)
            while self._pids:
                for worker in wait(list(self._pids)):
                    assert isinstance(worker, Connection)
                    self._hear(worker)
        finally:
            for worker in self._pids:  # only if we are interrupted: workers end what they have begun, and their servers
                worker.close()
            for pid in self._pids.values():
                os.waitpid(pid, 0)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _fork(self, place: int) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            for other in (ours, *self._pids):
                other.close()
            _work(self._session, theirs, self._root)
        theirs.close()
        self._pids[ours] = pid
        self._given[ours] = deque()
        self._places[ours] = place

    def _hear(self, worker: Connection) -> None:
        try:
            what, *said = worker.recv()
        except (EOFError, ConnectionResetError):
            self._lost(worker)
            return
        hook = self._session.config.hook
        if what == "more":
            chunk = self._chunk(self._few if self._few and self._places[worker] < FEW else self._left)
            self._given[worker].extend(chunk)
            with suppress(BrokenPipeError):  # it has died since it asked: then it is lost, with these
                worker.send(chunk)
        elif what == "begins":
            hook.pytest_runtest_logstart(nodeid=said[0], location=said[1])
        elif what == "reports":
            report = hook.pytest_report_from_serializable(config=self._session.config, data=said[0])
            hook.pytest_runtest_logreport(report=report)
        else:
            self._given[worker].popleft()
            hook.pytest_runtest_logfinish(nodeid=said[0], location=said[1])

    def _chunk(self, tests: deque[int]) -> list[int]:
        """The next tests; fewer at a time towards the end, so that all workers end together."""
        if self._session.shouldfail or self._session.shouldstop:
            return []
        size = min(CHUNK, 1 + len(tests) // (4 * len(self._pids)), len(tests))
        return [tests.popleft() for _ in range(size)]

    def _lost(self, worker: Connection) -> None:
        """A worker has ended. If it was at a test, that fails, and another worker goes on with the rest."""
        worker.close()
        _, status = os.waitpid(self._pids.pop(worker), 0)
        given, place = self._given.pop(worker), self._places.pop(worker)
        code = os.waitstatus_to_exitcode(status)
        if not given:
            assert code == 0, f"a worker ended after its last test, with code {code}"
            return
        item = self._session.items[given.popleft()]
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"the worker ended at this test, with code {code}",
            when="call",
        )
        self._session.config.hook.pytest_runtest_logreport(report=report)
        self._left.extendleft(reversed(given))
        self._fork(place)


class Parent:
    """The parent, seen from a worker: says which tests to run, and is told what happens to them. If it has ended there
    are no more tests, so that the fixtures of the worker end, and no server is left behind."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection
        self._is_there = True

    def numbers(self) -> Iterator[int]:
        while chunk := self._more():
            for number in chunk:
                if self._is_there:
                    yield number

    def _more(self) -> list[int]:
        self._tell("more")
        try:
            return self._connection.recv() if self._is_there else []
        except (EOFError, ConnectionResetError):
            self._is_there = False
            return []

    def _tell(self, *what: object) -> None:
        try:
            self._connection.send(what)
        except BrokenPipeError:
            self._is_there = False

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        self._tell("begins", nodeid, location)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._tell("reports", data)

    def pytest_runtest_logfinish(self, nodeid: str, location: object) -> None:
        self._tell("ends", nodeid, location)


def _work(session: pytest.Session, connection: Connection, root: Path) -> NoReturn:
    """Run tests until there are no more, in a fork."""
    code = 1
    try:
        _settle(session.config, root)
        parent = Parent(session.config, connection)
        session.config.pluginmanager.register(parent)
        items = (session.items[number] for number in parent.numbers())
        item = next(items, None)
        while item is not None:
            following = next(items, None)  # asked for before the test: fixtures end that the following does not use
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        if (coverage := Coverage.current()) is not None:
            coverage.stop()
            coverage.save()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the parent ends pytest


def _settle(config: pytest.Config, root: Path) -> None:
    """Have what a process cannot share with its parent: folders, captured output. Only the parent prints, and only the
    parent is interrupted from the keyboard."""
    os.setpgid(0, 0)
    own = root / str(os.getpid())
    own.mkdir()
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(own)
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    capture: Any = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()

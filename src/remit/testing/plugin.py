"""A pytest plugin: a failed test shows what its agents did, and a bug in a test's own script fails the test.

Pytest loads it wherever remit is installed, so it imports next to nothing. Further modules are imported when a test
opens a workspace. `--remit-runs 0` turns it off, and so does `-p no:remit`.
"""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final

import pytest

from remit import watching

if TYPE_CHECKING:
    from remit.testing.witness import Witness

TITLE: Final = "remit: what the agents did"
RUNS: Final = 5
_NAME: Final = "remit-witness"
_BUGS: Final = "remit-bugs"
_HELP: Final = f"how many runs of each store a test that fails shows; by default {RUNS}, 0 for none"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("remit")
    group.addoption("--remit-runs", type=int, default=None, metavar="N", help=_HELP)
    parser.addini("remit_runs", _HELP, default=str(RUNS))


def pytest_configure(config: pytest.Config) -> None:
    runs = _runs(config)
    config.pluginmanager.register(_Bugs(), _BUGS)
    if runs > 0:
        config.pluginmanager.register(_Showing(runs), _NAME)


def pytest_unconfigure(config: pytest.Config) -> None:
    for name in (_NAME, _BUGS):
        part: _Showing | _Bugs | None = config.pluginmanager.get_plugin(name)
        if part is not None:
            config.pluginmanager.unregister(part)
            part.stop()


def _runs(config: pytest.Config) -> int:
    said = config.getoption("remit_runs")
    given: object = config.getini("remit_runs") if said is None else said
    try:
        return int(str(given))
    except ValueError:
        raise pytest.UsageError(f"remit_runs is a number of runs, such as {RUNS}, or 0 for none, not {given}") from None


class _Showing:
    """Records the workspaces that a test opens, from the start of its setup until its report."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._witness: Witness | None = None
        self._shown = False
        self.stop: Callable[[], None] = watching.watch(self._on_opened)

    def _on_opened(self, opened: watching.Opened, subscribe: watching.Subscribe) -> None:
        if self._witness is None:
            from remit.testing.witness import Witness  # noqa: PLC0415 - only when a test uses remit

            self._witness = Witness(self._runs)
        self._witness.record_workspace(opened, subscribe)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        self._shown = False
        if self._witness is not None:
            self._witness.begin()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report: pytest.TestReport = yield
        again = call.when == "teardown" and self._shown
        if report.failed and self._witness is not None and not again and (told := _trees(self._witness)):
            self._shown = True
            report.sections.append((TITLE, told))
        return report


class _Bugs:
    """Fails a test with the bug in its own script: a function of a scripted agent or model that raised. A function that
    code under test may have too, such as a hook or `on_question`, may raise on purpose: its error takes the place of
    the test's failure only if the test fails."""

    def __init__(self) -> None:
        self._bugs: list[watching.Bug] = []
        self.stop: Callable[[], None] = watching.watch_bugs(self._bugs.append)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        self._bugs.clear()
        failure: BaseException | None = None
        result: Any = None
        try:
            result = yield
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below, or behind its cause
            failure = error
        told = [bug for bug in self._bugs if bug.in_script or failure is not None]
        if told:
            bug = min(told, key=lambda one: not one.in_script)
            bug.error.add_note(f"raised by {bug.role}, which this test gave to remit")
            raise bug.error
        if failure is not None:
            raise failure
        return result


def _trees(witness: "Witness") -> str:
    try:
        return witness.trees()
    except Exception as error:  # noqa: BLE001 - an error of this plugin must not hide the test's own failure
        return f"this cannot be told: {type(error).__name__}: {error}"

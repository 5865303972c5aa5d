"""Tests that run side by side: each once, each told, and none is lost with the process that ran it."""

import os

import pytest

PLUGINS = ("-p", "side_by_side", "-p", "no:cacheprovider", "--workers", "3")


def ran(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess(*PLUGINS, *options)


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setenv("PYTHONPATH", str(request.config.rootpath / "tests"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer to import than these tests to run


def test_every_test_runs_once_and_shows_how_it_ended(pytester: pytest.Pytester):
    result = ran(
        pytester,
        """
        import os, pathlib, pytest

        @pytest.mark.parametrize("number", range(20))
        def test_passes(number, tmp_path):
            with open("ran", "a") as file:
                file.write(f"{number} {os.getpid()} {tmp_path}\\n")

        def test_fails():
            print("what it printed")
            assert 1 + 1 == 3

        def test_is_skipped():
            pytest.skip("not today")

        @pytest.fixture
        def broken():
            raise ValueError("not made")

        def test_has_no_fixture(broken):
            pass
        """,
    )
    result.assert_outcomes(passed=20, failed=1, skipped=1, errors=1)
    result.stdout.fnmatch_lines(["*assert (1 + 1) == 3*", "what it printed"])
    lines = [line.split() for line in (pytester.path / "ran").read_text().splitlines()]
    assert sorted(int(number) for number, _, _ in lines) == list(range(20))
    assert len({folder for _, _, folder in lines}) == 20


def test_fixtures_of_a_worker_end_with_its_last_test(pytester: pytest.Pytester):
    result = ran(
        pytester,
        """
        import os, pytest

        def note(what):
            with open("notes", "a") as file:
                file.write(f"{what} {os.getpid()}\\n")

        @pytest.fixture(scope="session")
        def shared():
            note("made")
            yield
            note("ended")

        @pytest.mark.parametrize("number", range(12))
        def test_uses_it(number, shared):
            pass
        """,
    )
    result.assert_outcomes(passed=12)
    notes = [line.split() for line in (pytester.path / "notes").read_text().splitlines()]
    made, ended = (sorted(pid for what, pid in notes if what == wanted) for wanted in ("made", "ended"))
    assert made == ended
    assert len(set(made)) == len(made)


def test_what_takes_long_to_start_is_started_by_two_workers_at_most(pytester: pytest.Pytester):
    pytester.makeini("[pytest]\nmarkers = few: for two workers")
    result = ran(
        pytester,
        """
        import os, pytest

        @pytest.mark.parametrize("number", range(24))
        def test_others(number):
            pass

        @pytest.mark.few
        @pytest.mark.parametrize("number", range(24))
        def test_starts_something(number):
            with open("notes", "a") as file:
                file.write(f"{os.getpid()}\\n")
        """,
    )
    result.assert_outcomes(passed=48)
    notes = (pytester.path / "notes").read_text().split()
    assert len(notes) == 24
    assert len(set(notes)) <= 2


def test_a_worker_that_dies_fails_its_test_and_another_goes_on(pytester: pytest.Pytester):
    result = ran(
        pytester,
        """
        import os, signal, pytest

        @pytest.mark.parametrize("number", range(20))
        def test_mostly_passes(number):
            if number == 7:
                os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    result.assert_outcomes(passed=19, failed=1)
    result.stdout.fnmatch_lines(["*test_mostly_passes?7?*", "the worker ended at this test, with code -9"])


def test_fixtures_of_a_worker_end_when_the_parent_is_killed(pytester: pytest.Pytester):
    os.mkfifo(pytester.path / "told")
    pytester.makepyfile(
        """
        import os, signal, pytest

        @pytest.fixture(scope="session", autouse=True)
        def killed():
            parents = []
            yield parents
            for _ in parents:
                with open("told", "w") as file:
                    file.write("ended")

        @pytest.mark.parametrize("number", range(200))
        def test_is_left_alone(number, killed):
            if number == 20:
                killed.append(os.getppid())
                os.kill(os.getppid(), signal.SIGKILL)
        """
    )
    pytester.runpytest_subprocess(*PLUGINS, "-q")
    assert (pytester.path / "told").read_text() == "ended"


def test_the_first_failures_stop_it_if_asked_to(pytester: pytest.Pytester):
    result = ran(
        pytester,
        """
        import pytest

        @pytest.mark.parametrize("number", range(500))
        def test_fails(number):
            assert number < 0
        """,
        "-x",
    )
    assert 0 < result.parseoutcomes()["failed"] < 100
    assert result.ret != 0


def test_lines_that_workers_reach_are_covered(pytester: pytest.Pytester):
    pytester.makepyfile(
        reached="""
        def half(number):
            if number % 2:
                return "odd"
            return "even"
        """
    )
    result = ran(
        pytester,
        """
        import pytest
        from reached import half

        @pytest.mark.parametrize("number", range(8))
        def test_of_half(number):
            assert half(number)
        """,
        *("-p", "pytest_cov"),
        "--cov=reached",
        "--cov-branch",
        "--cov-report=term",
    )
    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["*reached.py*100%*"])

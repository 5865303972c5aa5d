"""Tests in forks: each is run once and reported, whatever becomes of the process that runs it."""

from pathlib import Path

import pytest

TESTS = """
import os
import sys
import pytest

errors = sys.stderr

@pytest.fixture(scope="module")
def kept():
    yield
    with open("ended", "a") as ended:
        ended.write("x")

@pytest.mark.parametrize("number", range(20))
def test_this(number, kept, tmp_path, capfd):
    os.write(1, b"heard")
    assert capfd.readouterr().out == "heard"
    assert errors.fileno() > 2
    with open("ran", "a") as ran:
        ran.write(f"{number} ")
    if number == 7:
        os._exit(3)
    if number == 9:
        os.abort()
    if number == 11:
        print("what it said")
    assert number != 11
    if number == 13:
        pytest.skip()
"""


@pytest.fixture
def given(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(TESTS)
    return pytester


def test_every_test_is_run_once_and_reported_even_if_its_process_dies(given: pytest.Pytester):
    result = given.runpytest_subprocess("-p", "abreast", "--abreast", "3", "-p", "no:faulthandler")
    result.assert_outcomes(passed=16, failed=3, skipped=1)
    result.stdout.fnmatch_lines_random(
        ["*test_this?7? ended with status 3", "*test_this?9? ended by signal SIGABRT", "what it said", "*[[]100%]*"]
    )
    assert sorted(map(int, (given.path / "ran").read_text().split())) == list(range(20))
    assert (given.path / "ended").read_text() in ("x", "xx", "xxx")  # the fixture ends in each process that lives


def test_no_more_is_begun_after_the_failures_that_are_one_too_many(given: pytest.Pytester):
    result = given.runpytest_subprocess("-p", "abreast", "--abreast", "1", "-x")
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])
    assert (given.path / "ran").read_text().split() == [str(number) for number in range(8)]


def test_a_mistake_of_a_worker_stops_the_others_and_is_told(given: pytest.Pytester):
    given.makeconftest("def pytest_runtest_logfinish():\n    raise LookupError('a hook')")
    result = given.runpytest_subprocess("-p", "abreast", "--abreast", "2")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*LookupError: a hook*"])


def test_one_worker_takes_all_tests_of_a_file_that_share_what_takes_long(given: pytest.Pytester):
    tests = TESTS.partition("    if number")[0]
    given.makepyfile(test_sharing=f"{tests}\npytestmark = pytest.mark.together\n")
    given.runpytest_subprocess("-p", "abreast", "--abreast", "3", "test_sharing.py").assert_outcomes(passed=20)
    assert (given.path / "ended").read_text() == "x"

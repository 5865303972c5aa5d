"""What a test that failed shows of its agents: through pytest itself, and bounded whatever they did."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from remit import Event, Runtime, Turn, Workspace, watching
from remit.testing import witness
from remit.testing.models import Calls, Says, model_server
from remit.testing.plugin import TITLE
from remit.testing.witness import Witness

TEAM = """
import asyncio
import pytest
import remit

def team(store=":memory:"):
    rt = remit.Runtime(store)

    @rt.agent(asks=["coder"])
    async def lead(turn):
        return await turn.delegate("coder", turn.task)

    @rt.agent(asks=["lead"])
    async def coder(turn):
        try:
            await turn.delegate("lead", "you do it")
        except remit.Refused:
            raise OSError("no disk")

    return rt

shared = team()

def test_closed():
    async def main():
        async with team() as rt:
            await rt.run("lead", "closed")
    asyncio.run(main())

@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_several(tmp_path, monkeypatch, anyio_backend):
    monkeypatch.chdir(tmp_path)
    async with team("team.db") as rt:
        assert not (await rt.outcome("lead", "on a file")).ok
    assert (await shared.outcome("lead", "in memory")).ok, "a reason"

def test_shared():
    assert asyncio.run(shared.outcome("coder", "later")).ok, "another reason"

def test_without():
    assert 1 == 2

def test_good():
    assert not asyncio.run(shared.outcome("lead", "unseen")).ok
"""
SHOWN = f"*- {TITLE} -*"
LEAD = "?failed? lead: {} | * | failed: Failed: 'coder' failed: OSError: no disk (*"


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder whose tests are run with this plugin, installed or not, and with few others."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p remit.testing.plugin -p anyio.pytest_plugin -p no:cacheprovider")
    pytester.makepyfile(TEAM)
    return pytester


BUGS = """
import asyncio
import pytest
import remit
from remit.testing import Scripted

def run(agent, task="go", **how):
    async def main():
        rt = remit.Runtime()
        rt.add(remit.Card("part"), Scripted(lambda turn: {}["nothing"]))
        rt.add(remit.Card("net"), Scripted(lambda turn: ConnectionError("on purpose"), "again"))
        rt.add(remit.Card("refused", asks="*"), Scripted(lambda turn: turn.delegate("refused", "x")))

        @rt.agent(asks="*")
        async def lead(turn):
            return (await turn.outcome("part", "x")).state

        @rt.agent
        async def curious(turn):
            return await turn.ask_human("Which?")

        return await rt.run(agent, task, **how)
    return asyncio.run(main())

def test_expected_wrongly():
    with pytest.raises(remit.Failed):
        run("part")

def test_misread():
    assert run("lead") == "failed"

def test_misread_and_failed():
    assert run("lead") == "completed"

def answer(question):
    return question.nothing

def test_question():
    assert run("curious", on_question=answer) == "blue"

def test_question_that_fails_on_purpose():
    with pytest.raises(remit.Failed, match="on_question"):
        run("curious", on_question=answer)

def test_exception_on_purpose():
    with pytest.raises(remit.Failed, match="on purpose"):
        run("net")

def test_refusal():
    with pytest.raises(remit.Failed, match="cannot delegate to itself"):
        run("refused")

def test_later():
    assert 1 == 2
"""


@pytest.mark.rule("testing.bug")
@pytest.mark.parametrize("shows", [(), ("--remit-runs", "0")])
def test_a_bug_in_a_tests_own_script_fails_the_test_with_that_bug(inner: pytest.Pytester, shows: tuple[str, ...]):
    inner.makepyfile(test_bugs=BUGS)
    done = inner.runpytest_inprocess("--tb=short", *shows, "test_bugs.py")
    done.assert_outcomes(failed=5, passed=3)
    text = done.stdout.str()
    assert text.count("E   raised by a function of Scripted(...), which this test gave to remit") == 3
    assert text.count("E   KeyError: 'nothing'") == 3
    assert text.count("E   AttributeError: 'AskedQuestion' object has no attribute 'nothing'") == 1
    assert text.count("E   raised by on_question, which this test gave to remit") == 1
    assert text.count("E   assert 1 == 2") == 1
    assert "remit/engine" not in text


@pytest.mark.rule("testing.shows")
def test_a_test_that_fails_shows_the_trees_of_its_own_runs_below_its_own_failure(inner: pytest.Pytester):
    done = inner.runpytest_inprocess("--tb=short")
    done.assert_outcomes(failed=4, passed=1)
    done.stdout.fnmatch_lines(
        [
            *("E   remit.errors.Failed: 'lead' failed*", SHOWN, LEAD.format("closed")),
            "`- ?failed? coder: closed | * | failed: OSError: no disk (*",
            "   `~ ?refused? lead: you do it | loop: 'lead' is already in this delegation*",
            *("E   AssertionError: a reason", SHOWN),
            *("*team.db, workspace default:", LEAD.format("on a file")),
            *("in memory, workspace default:", LEAD.format("in memory")),
            *("E   AssertionError: another reason", SHOWN, "?failed? coder: later | *"),
            "E   assert 1 == 2",
        ]
    )
    printed = done.stdout.str()
    assert printed.count(TITLE) == 3
    assert "unseen" not in printed
    assert printed.count("lead: in memory") == 1, "a run of the test before is not this one's"


@pytest.mark.rule("testing.shows")
@pytest.mark.parametrize("off", ["--remit-runs=0", "--override-ini=remit_runs=0"])
def test_it_can_be_turned_off(inner: pytest.Pytester, off: str):
    done = inner.runpytest_inprocess(off, "-k", "test_closed")
    done.assert_outcomes(failed=1, deselected=4)
    assert TITLE not in done.stdout.str()


def test_a_number_of_runs_that_is_none_is_told(inner: pytest.Pytester):
    done = inner.runpytest_inprocess("--override-ini=remit_runs=some")
    done.stderr.fnmatch_lines(["ERROR: remit_runs is a number of runs, such as 5, or 0 for none, not some"])


# -- what is shown ------------------------------------------------------------------------------------------------


@pytest.fixture
def seen() -> Iterator[Witness]:
    """A witness of what the test opens."""
    found = Witness(most=2)
    stop = watching.watch(found.record_workspace)
    yield found
    stop()


def team(store: Path | str = ":memory:") -> Runtime:
    """A lead that has as many of its tasks done as its own says; the last one fails."""
    rt = Runtime(store)

    @rt.agent(asks=["coder"])
    async def lead(turn: Turn) -> int:
        outcomes = [await turn.delegate_all([("coder", f"part {number}")]) for number in range(int(turn.task))]
        return len(outcomes)

    @rt.agent
    async def coder(turn: Turn) -> str:
        if turn.task == "part 49":
            raise OSError("no disk")
        return "done"

    return rt


@pytest.mark.rule("testing.bounded")
def test_of_many_runs_those_that_went_wrong_are_shown_before_the_newest(seen: Witness):
    with team() as rt:
        for task in ("no number", "1", "2"):
            asyncio.run(rt.outcome("lead", task))
    wrong, newest, more = seen.trees().split("\n\n")
    assert wrong.startswith("[failed] lead: no number |")
    assert newest.startswith("[completed] lead: 2 |")
    assert more == "and 1 more"


@pytest.mark.rule("show.models")
def test_models_and_tools_are_shown_and_where_a_tool_raised(seen: Witness, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_KEY", "k")

    def lookup(what: str) -> str:
        """Look something up."""
        return {"shelf": "three"}[what]

    async def work() -> None:
        calls = [Calls("lookup", {"what": what}) for what in ("shelf", "lamp")]
        async with model_server([*calls, Says("found")]) as server, Runtime() as rt:
            rt.model_agent("clerk", "openai-chat:m", tools=[lookup], keys=["SOME_KEY"], base_url=f"{server.url}/v1")
            await rt.run("clerk", "find it")

    asyncio.run(work())
    _, model, done, failed = seen.trees().splitlines()
    line = lookup.__code__.co_firstlineno + 2
    assert model.startswith("|- [model] openai-chat:m | 3 calls | ")
    assert re.fullmatch(r"""\|- \[tool\] lookup\(\{"what":"shelf"\}\) \| .* \| three""", done)
    assert failed.startswith("""`- [failed] lookup({"what":"lamp"}) | """)
    assert failed.endswith(f"| KeyError: 'lamp' (test_plugin.py:{line} in lookup)")


@pytest.mark.rule("testing.bounded")
def test_a_large_tree_is_cut_and_what_failed_below_the_cut_is_shown(seen: Witness):
    with team() as rt:
        asyncio.run(rt.outcome("lead", "50"))
    lines = seen.trees().splitlines()
    assert len(lines) == witness.LINES + 2
    assert lines[-2] == "... 11 lines more; what went wrong there:"
    assert lines[-1].startswith("`- [failed] coder: part 49 |")
    assert "OSError: no disk" in lines[-1]


@pytest.mark.rule("testing.bounded")
def test_a_run_whose_beginning_is_not_kept_says_so_in_a_line(seen: Witness):
    with team() as rt:
        asyncio.run(rt.outcome("lead", str(witness.OPERATIONS // 2)))
    first, *latest = seen.trees().splitlines()
    assert first.endswith("cannot be drawn: its first events are not kept; its last events:")
    assert len(latest) == witness.LATEST
    assert "task.completed lead" in latest[-1]


@pytest.mark.rule("testing.shows")
def test_runs_of_other_processes_are_shown_from_the_store(seen: Witness, tmp_path: Path):
    with team(tmp_path / "team.db") as rt:
        asyncio.run(rt.outcome("lead", "1"))
    seen.begin()
    assert seen.trees() == ""
    with Workspace(tmp_path / "team.db") as workspace:
        assert len(asyncio.run(workspace.tasks.runs())) == 1
    assert seen.trees().startswith("[completed] lead: 1 |")


@pytest.mark.rule("testing.shows")
def test_a_store_that_is_gone_is_told_of_in_a_line_with_what_this_process_wrote(seen: Witness):
    with TemporaryDirectory() as folder, team(f"{folder}/team.db") as rt:
        asyncio.run(rt.outcome("lead", "1"))
    remark, tree = seen.trees().split("\n\n")
    assert remark.startswith("the store cannot be read any more: NotFound: ")
    assert remark.endswith("; this is what this process wrote")
    assert tree.startswith("[completed] lead: 1 |")


@pytest.mark.rule("testing.shows")
def test_what_is_still_open_when_a_test_begins_is_shown_from_there_on(seen: Witness):
    with team() as rt, team() as closed:
        asyncio.run(closed.outcome("lead", "1"))
        closed.close()
        asyncio.run(rt.outcome("lead", "1"))
        seen.begin()
        asyncio.run(rt.outcome("lead", "2"))
        assert seen.trees().startswith("[completed] lead: 2 |")


class Damaged:
    """A workspace whose events say nothing."""

    workspace, store, is_open = "default", object(), True


@pytest.mark.rule("testing.shows")
def test_a_run_that_cannot_be_drawn_is_told_of_in_a_line(seen: Witness):
    with team() as rt:
        run = asyncio.run(rt.outcome("lead", "0")).id
        events = asyncio.run(rt.workspace.journal.history())
    seen.begin()

    def subscribe(sink: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        sink([event._replace(data={}) for event in events])
        return seen.begin

    seen.record_workspace(Damaged(), subscribe)
    assert seen.trees() == f"run {run} cannot be drawn: KeyError: 'task'"


def test_a_watcher_that_fails_is_logged_and_the_work_goes_on(caplog: pytest.LogCaptureFixture):
    stop = watching.watch(lambda opened, subscribe: 1 // 0)  # pyright: ignore[reportArgumentType]
    try:
        with team() as rt:
            assert asyncio.run(rt.run("lead", "0")) == 0
    finally:
        stop()
    assert "a watcher failed on workspace default" in caplog.text

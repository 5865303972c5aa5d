"""One runtime in several threads, and in a process that was forked: it works, or a sentence says why not."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import remit
from forking import in_a_fork
from remit.errors import StoreError
from remit.ports import View
from remit.runtime.workspace import opening_of
from remit.stores.sqlite.database import SqliteDatabase
from teams import echo, team

PATIENCE = 30
# The loops of these tests are in other threads, and the interpreter warns of forks beside threads: that is the point.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(params=["memory", "file"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "team.db")


@pytest.fixture
def open_team() -> Iterator[Callable[[Any], remit.Runtime]]:
    opened: list[remit.Runtime] = []

    def new(store: Any) -> remit.Runtime:
        rt = team(store)
        rt.add(remit.Card("echo"), echo)
        opened.append(rt)
        return rt

    yield new
    for rt in opened:
        rt.close()


def head(view: View) -> Any:
    return view.head()


def told(work: Callable[[], object]) -> object:
    try:
        return work()
    except StoreError as error:
        return str(error)


# -- threads ------------------------------------------------------------------------------------------------


@pytest.mark.rule("runtime.threads")
@pytest.mark.case("threads")
def test_threads_that_ask_at_once_get_a_result_or_a_sentence(where: str, open_team):
    rt = open_team(where)
    begun, told_off = threading.Event(), threading.Semaphore(0)

    @rt.agent
    async def slow(turn):
        begun.set()
        for _ in range(3):
            assert await asyncio.to_thread(told_off.acquire, timeout=PATIENCE)
        return turn.task

    def ask(number: int) -> object:
        if number:
            assert begun.wait(PATIENCE)
        answer = told(lambda: remit.run(rt, "slow" if not number else "echo", f"task {number}"))
        told_off.release()
        return answer

    with ThreadPoolExecutor(4) as threads:
        first, *others = threads.map(ask, range(4))

    assert first == "task 0"
    for sentence in others:
        assert "one loop at a time" in str(sentence)
    assert remit.run(rt, "echo", "later") == "later"


@pytest.mark.rule("runtime.threads")
def test_a_storm_of_threads_ends_in_results_and_sentences_only(where: str, open_team):
    rt = open_team(where)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: told(lambda: remit.run(rt, "echo", f"task {n}")), range(64)))
    done = [answer for number, answer in enumerate(answers) if answer == f"task {number}"]
    assert done
    assert all("one loop at a time" in str(answer) for answer in answers if answer not in done)
    assert asyncio.run(rt.workspace.check()).sound


@pytest.mark.rule("runtime.threads")
def test_threads_take_turns(where: str, open_team):
    rt = open_team(where)
    for number in range(4):
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(remit.run, rt, "echo", f"{number}").result(PATIENCE) == f"{number}"


@pytest.mark.rule("runtime.threads")
@pytest.mark.anyio
async def test_a_loop_that_runs_keeps_others_out_and_the_same_team_elsewhere_is_free(tmp_path: Path, open_team):
    rt = open_team(tmp_path / "team.db")
    assert await rt.run("echo", "here") == "here"

    with pytest.raises(StoreError, match="one loop at a time"):
        await asyncio.to_thread(remit.run, rt, "echo", "there")
    with pytest.raises(StoreError, match="one loop at a time"):
        await asyncio.to_thread(lambda: asyncio.run(rt.workspace.journal.history()))

    with rt.at(tmp_path / "team.db") as again:
        assert await asyncio.to_thread(remit.run, again, "echo", "there") == "there"
    assert await rt.run("echo", "here again") == "here again"


@pytest.mark.rule("runtime.threads")
@pytest.mark.anyio
async def test_a_turn_cannot_be_used_from_the_loop_of_another_thread(where: str, open_team):
    rt = open_team(where)

    @rt.agent(asks="*")
    async def lead(turn):
        with pytest.raises(StoreError, match="one loop at a time"):
            await asyncio.to_thread(lambda: asyncio.run(turn.delegate("echo", "from elsewhere")))
        return await turn.delegate("echo", "from here")

    assert await rt.run("lead", "try") == "from here"


# -- forks --------------------------------------------------------------------------------------------------


@pytest.mark.rule("runtime.fork")
@pytest.mark.case("fork")
def test_a_forked_process_goes_on_with_a_connection_of_its_own(tmp_path: Path, open_team):
    rt = open_team(tmp_path / "team.db")
    assert remit.run(rt, "echo", "parent") == "parent"

    assert in_a_fork(lambda: remit.run(rt, "echo", "child")) == "child"
    assert in_a_fork(lambda: (rt.close(), remit.run(rt, "echo", "another"))[1]) == "another"

    assert remit.run(rt, "echo", "parent again") == "parent again"
    assert len(asyncio.run(rt.workspace.tasks.runs())) == 4
    assert asyncio.run(rt.workspace.check()).sound


@pytest.mark.rule("store.folder")
def test_a_forked_process_that_changes_its_folder_keeps_its_store(
    tmp_path: Path, open_team, monkeypatch: pytest.MonkeyPatch
):
    """As daemons do, which fork and change to /."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    rt = open_team("team.db")
    assert remit.run(rt, "echo", "parent") == "parent"
    assert in_a_fork(lambda: (os.chdir("elsewhere"), remit.run(rt, "echo", "child"))[1]) == "child"
    assert len(asyncio.run(rt.workspace.tasks.runs())) == 2
    assert asyncio.run(rt.workspace.check()).sound


@pytest.mark.rule("runtime.fork")
def test_a_forked_process_has_none_of_its_parents_files_open(tmp_path: Path, open_team):
    """Of a file that is open twice by one opening, SQLite's locks would be lies; and closing it would drop them."""
    rt = open_team(tmp_path / "team.db")
    remit.run(rt, "echo", "parent")

    def open_files() -> str:
        return " ".join(path for link in Path("/proc/self/fd").iterdir() if str(tmp_path) in (path := _target(link)))

    assert "team.db" in open_files()
    assert in_a_fork(lambda: f"[{open_files()}]") == "[]"
    assert "team.db" in open_files()


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


@pytest.mark.rule("runtime.fork")
def test_a_parent_may_fork_while_another_thread_of_it_writes(tmp_path: Path, open_team):
    rt = open_team(tmp_path / "team.db")
    over = threading.Event()

    async def keep_writing() -> int:
        count = 0
        while not over.is_set():
            await asyncio.gather(*(rt.run("echo", "write") for _ in range(3)))
            count += 3
        return count

    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(lambda: asyncio.run(keep_writing()))
        answers = [in_a_fork(lambda: remit.run(rt, "echo", "child")) for _ in range(10)]
        over.set()
        written = writing.result(PATIENCE)

    assert answers == ["child"] * 10
    assert len(asyncio.run(rt.workspace.tasks.runs(100_000))) == written + 10
    assert asyncio.run(rt.workspace.check()).sound


@pytest.mark.rule("runtime.fork")
def test_what_is_in_the_memory_of_the_parent_is_not_shared_with_a_child(open_team):
    rt = open_team(":memory:")
    remit.run(rt, "echo", "parent")
    assert "keeps everything in the memory of the process" in in_a_fork(lambda: remit.run(rt, "echo", "child"))
    assert in_a_fork(rt.close) == "None"
    assert remit.run(rt, "echo", "parent again") == "parent again"


@pytest.mark.rule("runtime.fork")
def test_a_runtime_that_was_never_used_belongs_to_the_first_thread_that_uses_it(where: str, open_team):
    rt = open_team(where)
    assert in_a_fork(lambda: remit.run(rt, "echo", "child")) == "child"


@pytest.mark.rule("runtime.fork")
def test_a_database_that_was_given_is_the_parents(where: str, open_team):
    database = SqliteDatabase(where)
    rt = open_team(database)
    remit.run(rt, "echo", "parent")
    assert "cannot be used from here" in in_a_fork(lambda: remit.run(rt, "echo", "child"))
    assert "cannot be used from here" in in_a_fork(lambda: asyncio.run(database.store("default").read(head)))
    assert in_a_fork(database.close) == "None"
    assert remit.run(rt, "echo", "parent again") == "parent again"


@pytest.mark.rule("runtime.fork")
def test_a_fork_in_the_middle_of_an_endless_commit_is_told_so(tmp_path: Path):
    committing, go_on = threading.Event(), threading.Event()

    def fault(name: str) -> None:
        if name == "store.before-commit":
            committing.set()
            assert go_on.wait(PATIENCE)

    path = tmp_path / "team.db"
    rt = team(SqliteDatabase(path, fault=fault, busy_seconds=0.05))
    rt.add(remit.Card("echo"), echo)
    with ThreadPoolExecutor(1) as thread, rt:
        running = thread.submit(remit.run, rt, "echo", "parent")
        assert committing.wait(PATIENCE)
        answer = in_a_fork(lambda: SqliteDatabase(path))
        go_on.set()
        assert running.result(PATIENCE) == "parent"
    assert "close the runtime before forking" in answer


@pytest.mark.rule("runtime.fork")
def test_a_file_that_is_gone_after_a_fork_is_told_and_the_fork_goes_well(tmp_path: Path, open_team):
    folder = tmp_path / "folder"
    folder.mkdir()
    rt = open_team(folder / "team.db")
    remit.run(rt, "echo", "parent")
    folder.rename(tmp_path / "moved")
    assert in_a_fork(lambda: "child") == "child"
    with pytest.raises(StoreError, match="could not be opened again after a fork"):
        asyncio.run(rt.workspace.journal.read(head))


@pytest.mark.rule("runtime.fork")
def test_a_fork_on_postgresql_has_its_own_connections(address: str, open_team):
    rt = open_team(address)
    assert remit.run(rt, "echo", "parent") == "parent"
    assert in_a_fork(lambda: remit.run(rt, "echo", "child")) == "child"
    database = opening_of(rt.workspace).database
    store = database.store("default")
    assert "cannot be used from here" in in_a_fork(lambda: asyncio.run(store.read(head)))
    assert "cannot be used from here" in in_a_fork(lambda: asyncio.run(store.tx("op", head)))
    assert in_a_fork(database.close) == "None"
    assert remit.run(rt, "echo", "parent again") == "parent again"
    assert len(asyncio.run(rt.workspace.tasks.runs())) == 3

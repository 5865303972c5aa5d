"""Several databases: each workspace lives in one of them, is found there, and may move while it is used."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import psycopg
import pytest

from commands import command
from remit import Runtime, Turn, Workspace
from remit.core.events import Event
from remit.core.placement import MoveMark
from remit.engine.system import SystemClock
from remit.errors import BadInput, Conflict, Moved, Unauthorised
from remit.ports import Beat, Span
from remit.runtime.opening import open_database
from remit.runtime.workspace import opening_of
from remit.server.auth import StoreDoorkeeper
from remit.settings import Serving
from remit.stores.moving import WorkspaceMove
from remit.stores.opening import members_at
from remit.stores.several import SeveralDatabases, WorkspaceRoute
from teams import echo, new_file

pytestmark = pytest.mark.anyio
NAMES = [f"team-{number}" for number in range(12)]


@pytest.fixture(params=["files", "server"])
def addresses(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The addresses of three databases."""
    if request.param == "files":
        return [str(new_file(tmp_path / f"{name}.db")) for name in "abc"]
    new: Callable[[], str] = request.getfixturevalue("new_address")
    return [new() for _ in range(3)]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [str(new_file(tmp_path / f"{name}.db")) for name in "abc"]


@pytest.fixture
def several(files: list[str]) -> Iterator[SeveralDatabases]:
    with closing(SeveralDatabases(members_at(files[:2], create=False), known_for=0)) as opened:
        yield opened


async def run_one(database: object, name: str) -> None:
    with Runtime(database, workspace=name) as rt:  # pyright: ignore[reportArgumentType]
        rt.agent(echo)
        assert await rt.run("echo", "hello") == "hello"


def places(database: SeveralDatabases) -> dict[str, str]:
    return {name: where.where for where in database.members.values() for name in where.workspaces()}


@pytest.mark.rule("place.hash", "place.noted")
async def test_workspaces_are_spread_found_again_and_stay_when_a_database_is_added(addresses: list[str]):
    with open_database(addresses[:2]) as database:
        assert isinstance(database, SeveralDatabases)
        for name in NAMES:
            await run_one(database, name)
        before = places(database)
        assert sorted(before) == sorted(NAMES)
        assert set(before.values()) <= {one.where for one in database.members.values()}
        assert database.workspaces() == sorted(NAMES)
    with open_database(addresses) as database:
        assert isinstance(database, SeveralDatabases)
        for name in NAMES:
            assert len(await Workspace(database, name).tasks.runs()) == 1
            await run_one(database, name)
        assert places(database) == before
        more = [f"more-{number}" for number in range(12)]
        for name in more:
            await run_one(database, name)
        # All of them in one database is a chance of one in half a million: the rule itself is tested with the core.
        assert len({places(database)[name] for name in more}) > 1


ENDS = "FROM pg_stat_activity WHERE application_name = 'remit-move' AND datname = current_database()"


@pytest.mark.rule("place.noted")
async def test_new_workspaces_are_noted_over_one_connection_that_is_opened_again_when_it_is_lost(
    new_address: Callable[[], str],
):
    addresses = [new_address() for _ in range(2)]
    with open_database(addresses) as database, psycopg.connect(addresses[0], autocommit=True) as home:
        for name in NAMES[:6]:
            await run_one(database, name)
        ((number, only),) = home.execute(f"SELECT count(*), min(pid) {ENDS}").fetchall()
        assert number == 1
        home.execute(f"SELECT pg_terminate_backend(pid) {ENDS}")
        await run_one(database, NAMES[6])
        ((number, other),) = home.execute(f"SELECT count(*), min(pid) {ENDS}").fetchall()
        assert (number, other != only) == (1, True)
        assert database.workspaces() == sorted(NAMES[:7])


@pytest.mark.rule("place.found")
async def test_a_workspace_that_was_there_before_the_others_is_found(files: list[str]):
    await run_one(files[1], "old")
    with open_database(files) as database:
        await run_one(database, "old")
        assert isinstance(database, SeveralDatabases)
        assert places(database) == {"old": files[1]}
        assert len(await Workspace(database, "old").tasks.runs()) == 2


@pytest.mark.rule("place.found")
async def test_a_name_that_two_databases_use_is_refused(files: list[str]):
    await run_one(files[0], "both")
    await run_one(files[1], "both")
    with open_database(files) as database, pytest.raises(Conflict, match=r"both .*a\.db and .*b\.db have a workspace"):
        database.store("both")


@pytest.mark.rule("place.home")
def test_databases_that_do_not_belong_together_are_refused(files: list[str], tmp_path: Path):
    open_database(files[:2]).close()
    with pytest.raises(BadInput, match="one of other databases, and their home has the name"):
        open_database([files[1], files[0]])
    with pytest.raises(BadInput, match="one of other databases"):
        open_database([files[2], files[1]])
    with pytest.raises(BadInput, match="is given twice"):
        open_database([files[0], files[0]])
    with pytest.raises(BadInput, match="a store in memory cannot be one of several"):
        open_database([files[0], ":memory:"])
    with pytest.raises(BadInput, match="or a list, not a value of type int"):
        open_database([files[0], 7])  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="or a list, not a value of type list"):
        open_database([])


@pytest.mark.rule("place.keys")
async def test_a_key_opens_its_workspace_in_whichever_database_it_lives(files: list[str]):
    with open_database(files) as database:
        keys = {name: await Workspace(database, name).access.make(name) for name in NAMES}
        doorkeeper = StoreDoorkeeper(database, SystemClock())
        for name, made in keys.items():
            assert (await doorkeeper.caller(made.key.reveal())).workspace == name
        await Workspace(database, NAMES[0]).access.revoke(keys[NAMES[0]].id)
        with pytest.raises(Unauthorised):
            await doorkeeper.caller(keys[NAMES[0]].key.reveal())
        await doorkeeper.close()


# -- moving ----------------------------------------------------------------------------------------------------


class MoveBeside:
    """A move in another thread, that stops at a step until it is told to go on."""

    def __init__(self, several: SeveralDatabases, workspace: str, stops_at: str = "") -> None:
        self._stops_at = stops_at
        self.stopped = asyncio.Event()
        self._go_on = threading.Event()
        self._loop = asyncio.get_running_loop()
        self.target = next(name for name in several.members if name != several.route(workspace).place)
        self._members = [member.where for member in several.members.values()]
        self._workspace, self._index = workspace, [*several.members].index(self.target)
        self._thread = asyncio.create_task(asyncio.to_thread(self._move))

    def _move(self) -> None:
        with closing(SeveralDatabases(members_at(self._members, create=False))) as own:
            move = WorkspaceMove(own, self._workspace, SystemClock().now, reached=self._reached, sleep=bool)
            move.move([*own.members][self._index])

    def _reached(self, step: str) -> None:
        if step == self._stops_at:
            self._loop.call_soon_threadsafe(self.stopped.set)
            self._go_on.wait()

    async def end(self) -> None:
        self._go_on.set()
        await self._thread


@asynccontextmanager
async def moving(several: SeveralDatabases, workspace: str, stops_at: str) -> AsyncIterator[MoveBeside]:
    move = MoveBeside(several, workspace, stops_at)
    try:
        await move.stopped.wait()
        yield move
    finally:
        await move.end()


@pytest.mark.rule("move.live")
async def test_writes_wait_for_a_move_and_go_on_at_the_new_place(several: SeveralDatabases):
    await run_one(several, "team")
    workspace, other = Workspace(several, "team"), Workspace(several, "neighbour")
    heard: list[Event] = []
    stop = opening_of(workspace).records.subscribe(heard.extend)
    async with moving(several, "team", "compared") as move:
        write = asyncio.create_task(workspace.context().set("notes", "key", 1))
        await other.context().set("notes", "key", 1)  # is not delayed
        assert len(await workspace.tasks.runs()) == 1  # can be read
        assert not write.done()
        await move.end()
        assert await write == 1
    assert several.route("team").place == move.target
    assert [event.kind for event in heard] == ["entry.set"]
    stop()
    source = Workspace(next(one for name, one in several.members.items() if name != move.target), "team")
    with pytest.raises(Moved, match=r"workspace 'team' was moved to .*\.db; open it there"):
        await source.context().set("notes", "key", 2)


class EndsBetween(SeveralDatabases):
    """Wait for the end of a move, once, between the look at where a workspace lives and the look at its mark there."""

    def __init__(self, *files: str) -> None:
        super().__init__(members_at(files, create=False), known_for=0)
        self.has_looked, self.has_ended = threading.Event(), threading.Event()

    def mark(self, route: WorkspaceRoute, within: float | None = None) -> MoveMark | None:
        if self.has_looked.is_set():
            return super().mark(route, within)
        self.has_looked.set()
        assert self.has_ended.wait(30)
        return super().mark(route, 0)


@pytest.mark.rule("move.live")
async def test_a_write_follows_a_move_that_ends_while_it_looks(files: list[str]):
    with closing(EndsBetween(*files[:2])) as several:
        await run_one(several, "team")
        workspace = Workspace(several, "team")
        async with moving(several, "team", "compared") as move:
            write = asyncio.create_task(workspace.context().set("notes", "key", 1))
            assert await asyncio.to_thread(several.has_looked.wait, 30)
            await move.end()
            several.has_ended.set()
            assert await write == 1
        assert several.route("team").place == move.target


@pytest.mark.rule("move.live")
async def test_a_write_that_waits_too_long_is_refused_and_a_move_can_be_given_up(files: list[str]):
    with closing(SeveralDatabases(members_at(files[:2], create=False), patience=0)) as several:
        await run_one(several, "team")
        workspace, source = Workspace(several, "team"), several.route("team").place
        async with moving(several, "team", "leaving"):
            with pytest.raises(Moved, match=r"is being moved to .*\.db; try again in a moment") as refused:
                await workspace.context().set("notes", "key", 1)
            assert refused.value.retryable
            with pytest.raises(Conflict, match="saves an artifact in workspace 'team', or moves it"):
                WorkspaceMove(several, "team", SystemClock().now, sleep=bool).move(source)
        await workspace.context().set("notes", "key", 1)


@pytest.mark.rule("move.killed")
async def test_a_move_is_given_up_by_moving_to_where_the_workspace_is(several: SeveralDatabases):
    await run_one(several, "team")
    source = several.route("team").place

    class Killed(BaseException): ...

    def reached(step: str) -> None:
        if step == "table":
            raise Killed

    target = next(name for name in several.members if name != source)
    with pytest.raises(Killed):
        WorkspaceMove(several, "team", SystemClock().now, reached=reached, sleep=bool).move(target)
    done = WorkspaceMove(several, "team", SystemClock().now, sleep=bool).move(source)
    assert (done.source, done.rows) == (done.target, 0)
    assert [member.marks() for member in several.members.values()] == [{}, {}]
    assert places(several) == {"team": several.members[source].where}


@pytest.mark.rule("move.reads")
async def test_a_read_after_the_old_copy_is_deleted_finds_the_new_one(several: SeveralDatabases):
    await run_one(several, "team")
    workspace = Workspace(several, "team")
    assert len(await workspace.tasks.runs()) == 1
    move = MoveBeside(several, "team")
    await move.end()  # without the pause that a move makes, so only the check after the read helps
    assert len(await workspace.tasks.runs()) == 1
    assert len(await opening_of(workspace).records.browse(lambda view: view.events(Span()))) > 0
    assert several.route("team").place == move.target


@pytest.mark.rule("move.artifacts")
async def test_an_artifact_that_is_saved_during_a_move_is_not_lost(several: SeveralDatabases):
    await run_one(several, "team")
    workspace = Workspace(several, "team")
    before = await workspace.artifacts.save(b"before", "before.txt")
    saving = several.contents("team").begin()
    saving.write(b"during")
    move = MoveBeside(several, "team", "arriving")
    saving.keep()
    assert not move.stopped.is_set()  # it waits until nobody saves
    saving.close()
    await move.end()
    late = several.contents("team").begin()  # this process has not noticed yet
    late.write(b"late")
    with pytest.raises(Moved, match="was moved to"):
        late.keep()
    late.close()
    assert await (await workspace.artifacts.open(before)).read() == b"before"
    after = await workspace.artifacts.save(b"after", "after.txt")
    assert await (await workspace.artifacts.open(after)).read() == b"after"


@pytest.mark.rule("move.workers")
async def test_a_worker_follows_with_its_running_task_and_its_heartbeat(several: SeveralDatabases):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(turn: Turn) -> str:
        begun.set()
        await go_on.wait()
        return turn.task

    with Runtime(several, workspace="team", serving=Serving(concurrency=2)) as rt:
        rt.agent(slow)
        serving = asyncio.create_task(rt.serve())
        task = await rt.workspace.submit("slow", "one")
        await begun.wait()
        move = MoveBeside(several, "team")
        await move.end()
        several.pulse("team").write(Beat("another", "elsewhere", 1, 1, "", 0))
        go_on.set()
        assert (await task.result(), (await task.status()).attempt) == ("one", 1)
        assert await (await rt.workspace.submit("slow", "two")).result() == "two"
        found = await several.members[move.target].store("team").read(lambda view: view.workers())
        assert {"another", rt.worker} <= {one.worker for one in found}
        await rt.drain(5)
        await serving
    assert places(several) == {"team": several.members[move.target].where}


@pytest.mark.rule("move.refused")
async def test_what_cannot_be_moved_is_refused_with_a_sentence(several: SeveralDatabases, files: list[str]):
    def mover(name: str) -> WorkspaceMove:
        return WorkspaceMove(several, name, SystemClock().now, sleep=bool)

    first, second = several.members
    with pytest.raises(BadInput, match="there is no workspace 'nobody' to move"):
        mover("nobody").move(second if several.route("nobody").place == first else first)
    await run_one(several, "team")
    target = next(name for name in several.members if name != several.route("team").place)
    await run_one(several.members[target], "team")
    with pytest.raises(BadInput, match=r"already has a workspace 'team' of its own"):
        mover("team").move(target)
    await run_one(several, "team")  # it goes on where it is


@pytest.mark.rule("move.command", "place.command")
def test_commands_find_a_workspace_that_a_command_has_moved(tmp_path: Path):
    both = ("--store", "a.db", "--store", "b.db")
    at = ("--workspace", "team")
    assert command(tmp_path, "context", "set", "notes", "key", "1", "--store", "a.db", *at).returncode == 0
    for wrong in (("nobody", "--store", "a.db"), ("team", "--store", "c.db")):
        assert command(tmp_path, "move", *wrong, "--to", "b.db").returncode in (4, 5)
        assert [path.name for path in tmp_path.glob("[bc].db*")] == []  # no empty file is left
    moved = command(tmp_path, "move", "team", "--store", "a.db", "--to", "b.db")
    assert "workspace team moved from a.db to b.db" in moved.stdout
    assert command(tmp_path, "context", "get", "notes", "key", *both, *at).stdout.strip() == "1"
    refused = command(tmp_path, "context", "set", "notes", "key", "2", "--store", "a.db", *at)
    assert (refused.returncode, "was moved to b.db; open it there" in refused.stderr) == (5, True)
    again = command(tmp_path, "move", "team", *both, "--to", "b.db")
    assert "workspace team is in b.db; nothing was moved" in again.stdout
    (tmp_path / "remit.toml").write_text('[store]\npath = ["a.db", "b.db"]\nworkspace = "team"\n')
    assert command(tmp_path, "context", "get", "notes", "key").stdout.strip() == "1"
    alone = command(tmp_path, "move", "team", "--store", "b.db", "--to", "b.db")
    assert "--to is the store itself" in alone.stderr

"""A workspace's own keys: sealed in its store, opened for the engine alone, and gone when they are removed."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adapters.test_vault import NEW, NEW_ID, OLD, OLD_ID, forms, vault
from core.test_secret import CANARY, shown
from engine.helping import sound
from inside import opened_key
from remit import Failed, Runtime, Secret, Turn, Workspace
from remit.core.events import Unsealed
from remit.core.kinds.workspace import key_set
from remit.core.secret import LONGEST
from remit.engine.upkeep.keys import MOST
from remit.errors import BadInput, Conflict, RemitError, StoreError
from remit.ports import Decision, KeyChange, KeyInfo, KeyRow, Sealed
from remit.runtime.workspace import opening_of
from remit.settings import System
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

KINDS = frozenset({"key.set", "key.removed"})


@pytest.fixture(autouse=True)
def master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMIT_MASTER_KEY", OLD)


async def told(rt: Runtime) -> list[tuple[str, dict[str, object]]]:
    events = await rt.workspace.journal.history(kinds=KINDS)
    return [(event.kind, {name: said for name, said in event.data.items() if name != "mark"}) for event in events]


async def sealed(rt: Runtime, name: str) -> str:
    row = await rt.workspace.journal.read(lambda view: view.secret(name))
    return row.sealed.text


# -- what people do ----------------------------------------------------------------------------------------------


@pytest.mark.rule("keys.sealed", "keys.write-only", "keys.told")
async def test_a_key_goes_in_is_listed_opened_by_the_engine_and_removed(anywhere: Runtime, clock: FakeClock):
    keys = anywhere.workspace.keys
    assert await keys.names() == []
    assert await opened_key(anywhere, "openai") is None

    info = await keys.set("OpenAI", Secret(CANARY), by="ann")
    await keys.set("anthropic", Secret("another-key"))

    assert info == KeyInfo("openai", OLD_ID, clock.now())
    assert [key.name for key in await keys.names()] == ["anthropic", "openai"]
    assert await opened_key(anywhere, "OPENAI") == Secret(CANARY)
    assert await keys.remove("openai", by="bob")
    assert not await keys.remove("openai")
    assert await opened_key(anywhere, "openai") is None
    assert await told(anywhere) == [
        ("key.set", {"name": "openai", "key_id": OLD_ID, "by": "ann"}),
        ("key.set", {"name": "anthropic", "key_id": OLD_ID, "by": ""}),
        ("key.removed", {"name": "openai", "by": "bob"}),
    ]
    await sound(anywhere)


@pytest.mark.rule("keys.write-only")
async def test_what_people_get_gives_no_key_out(rt: Runtime):
    await rt.workspace.keys.set("openai", Secret(CANARY))
    keys = rt.workspace.keys

    assert [name for name in dir(keys) if not name.startswith("_")] == ["cooling", "names", "remove", "rotate", "set"]
    assert CANARY not in repr([keys, await keys.names(), vars(rt.workspace)])


@pytest.mark.rule("keys.told")
async def test_the_same_operation_is_one_act(rt: Runtime, clock: FakeClock):
    keys = rt.workspace.keys
    first = await keys.set("openai", Secret(CANARY), op="a")
    before = await sealed(rt, "openai")
    clock.advance(5)

    assert await keys.set("openai", Secret(CANARY), op="a") == first
    with pytest.raises(Conflict, match="was used for another act"):
        await keys.set("openai", Secret("another-key"), op="a")
    assert await sealed(rt, "openai") == before
    assert await keys.remove("openai", op="b")
    await keys.set("openai", Secret(CANARY))
    assert await keys.remove("openai", op="b")
    assert await opened_key(rt, "openai") == Secret(CANARY)


@pytest.mark.rule("keys.write-only", "secret.value")
async def test_what_is_no_secret_is_refused_without_showing_it(rt: Runtime):
    with pytest.raises(BadInput, match=r"a key is given as Secret\(\.\.\.\), not as str") as no:
        await rt.workspace.keys.set("openai", CANARY)
    assert CANARY not in shown(no.value, but_for=__file__)


@pytest.mark.rule("keys.write-only")
@pytest.mark.parametrize("name", ["", "?!", 7, f"sk-proj-{CANARY}-{CANARY}-{CANARY}", "x" * 41])
async def test_what_is_no_name_is_refused_without_showing_it(rt: Runtime, name):
    """It may be the key, given in the wrong place."""
    for ask in (rt.workspace.keys.set(name, Secret(CANARY)), rt.workspace.keys.remove(name), opened_key(rt, name)):
        with pytest.raises(BadInput, match="named after its provider, such as openai, in at most 40") as no:
            await ask
        assert CANARY not in str(no.value)


async def test_a_workspace_keeps_so_many_keys(rt: Runtime):
    rows = [KeyRow(f"k{number}", Sealed("x", "y"), 1) for number in range(MOST)]
    told = (key_set("k0", "x", "", 1),)
    await opening_of(rt.workspace).ground.store.tx("many", lambda _: Decision(None, told, besides=KeyChange(puts=rows)))

    with pytest.raises(BadInput, match="keeps at most 1,000 keys"):
        await rt.workspace.keys.set("openai", Secret(CANARY))
    assert (await rt.workspace.keys.set("k7", Secret(CANARY))).key_id == OLD_ID


@pytest.mark.rule("keys.master")
async def test_a_vault_is_looked_for_only_when_keys_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("REMIT_MASTER_KEY")
    with team(tmp_path / "team.db") as rt:
        rt.agent(echo)
        assert await rt.run("echo", "x") == "x"
        assert await rt.workspace.keys.names() == []
        assert await opened_key(rt, "openai") is None
        for ask in (rt.workspace.keys.set("openai", Secret(CANARY)), rt.workspace.keys.rotate()):
            with pytest.raises(BadInput, match="`remit keys master`"):
                await ask
    with Workspace(tmp_path / "team.db", system=System(vault=vault(NEW))) as workspace:
        assert (await workspace.keys.set("openai", Secret(CANARY))).key_id == NEW_ID
        assert CANARY not in repr(System(vault=vault(NEW)))


@pytest.mark.rule("keys.master")
@pytest.mark.parametrize("wrong", [NEW, 7, object()])
def test_what_is_no_vault_is_refused_without_showing_it(wrong):
    with pytest.raises(BadInput, match="vault takes a vault with seal, open and newest") as no:
        System(vault=wrong)
    assert NEW not in str(no.value)


# -- what does not open ------------------------------------------------------------------------------------------


@pytest.mark.rule("keys.bound")
async def test_a_row_that_is_moved_or_changed_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "team.db"
    with team(path) as rt:
        await rt.workspace.keys.set("openai", Secret(CANARY))
        await rt.workspace.keys.set("anthropic", Secret("another-key"))
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO secret SELECT 'other', name, key_id, sealed, set_at FROM secret WHERE name = 'openai'"
        )
        database.execute(
            "UPDATE secret SET sealed = (SELECT sealed FROM secret WHERE name = 'openai' AND workspace = 'default') "
            "WHERE name = 'anthropic'"
        )
    database.close()
    with team(path) as rt, team(path, workspace="other") as other:
        for ask, sentence in (
            (opened_key(other, "openai"), "was encrypted for another workspace"),
            (opened_key(rt, "anthropic"), "was encrypted as the key 'openai'"),
            (rt.workspace.keys.rotate(), ""),
        ):
            if not sentence:  # nothing is stale, so nothing is opened
                assert await ask == 0
                continue
            with pytest.raises(StoreError, match=sentence):
                await ask
        monkeypatch.setenv("REMIT_MASTER_KEY", f"{NEW},{OLD}")
        with pytest.raises(StoreError, match="was encrypted as the key 'openai'"):
            await rt.workspace.keys.rotate()
        assert [key.key_id for key in await rt.workspace.keys.names()] == [OLD_ID, OLD_ID], "all of them, or none"
        monkeypatch.setenv("REMIT_MASTER_KEY", NEW)
        with pytest.raises(StoreError, match=f"is encrypted with master key '{OLD_ID}'"):
            await opened_key(rt, "openai")


# -- rotation ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("keys.rotate", "keys.told")
async def test_after_rotation_the_old_master_key_can_go(
    anywhere: Runtime, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    keys = anywhere.workspace.keys
    values = {f"p{number}": Secret(f"{CANARY}-{number}") for number in range(5)}
    for name, secret in values.items():
        await keys.set(name, secret)
    monkeypatch.setenv("REMIT_MASTER_KEY", f"{NEW},{OLD}")
    await keys.set("p4", values["p4"])
    clock.advance(5)

    assert await keys.rotate(op="r", by="ann") == 4
    assert await keys.rotate(op="r") == 4
    assert await keys.rotate() == 0

    monkeypatch.setenv("REMIT_MASTER_KEY", NEW)
    assert {key.name: await opened_key(anywhere, key.name) for key in await keys.names()} == values
    assert {key.key_id for key in await keys.names()} == {NEW_ID}
    assert [data for _, data in (await told(anywhere))[-4:]] == [
        {"name": f"p{number}", "key_id": NEW_ID, "by": "ann"} for number in range(4)
    ]
    await sound(anywhere)


class Meddled:
    """A vault of both master keys; while it seals, someone else writes to the file."""

    def __init__(self, path: Path, statement: str) -> None:
        self._both = vault(NEW, OLD)
        self._path = path
        self._statement = statement
        self.newest = self._both.newest
        self.open = self._both.open

    def seal(self, workspace: str, name: str, secret: Secret) -> Sealed:
        with sqlite3.connect(self._path) as database:
            database.execute(self._statement)
        database.close()
        return self._both.seal(workspace, name, secret)


@pytest.mark.rule("keys.rotate")
async def test_a_key_that_others_change_meanwhile_is_not_put_back(tmp_path: Path):
    path = tmp_path / "team.db"
    with team(path) as rt:
        for name in ("mine", "theirs"):
            await rt.workspace.keys.set(name, Secret(f"{CANARY}-{name}"))
    renewed = vault(NEW).seal("default", "theirs", Secret("their-new-key"))
    older = vault(OLD).seal("default", "theirs", Secret("their-new-key"))
    put = "UPDATE secret SET key_id = '{}', sealed = '{}' WHERE name = 'theirs'"

    with Workspace(path, system=System(vault=Meddled(path, put.format(*older)))) as workspace:
        with pytest.raises(Conflict, match="rotate again"):
            await workspace.keys.rotate()
        assert {key.key_id for key in await workspace.keys.names()} == {OLD_ID}
    with Workspace(path, system=System(vault=Meddled(path, put.format(*renewed)))) as workspace:
        assert await workspace.keys.rotate() == 1
        assert (await workspace.journal.read(lambda view: view.secret("theirs"))).sealed == renewed
        assert {key.key_id for key in await workspace.keys.names()} == {NEW_ID}
    with team(path) as rt:
        await rt.workspace.keys.set("mine", Secret(CANARY))
    removed = "DELETE FROM secret WHERE name = 'mine'"
    with Workspace(path, system=System(vault=Meddled(path, removed))) as workspace:
        assert await workspace.keys.rotate() == 0
        assert [key.name for key in await workspace.keys.names()] == ["theirs"]


# -- really gone -------------------------------------------------------------------------------------------------


def files(path: Path) -> bytes:
    """All that is on the disk: the file, its log and the log's index."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


@pytest.mark.rule("keys.gone")
@pytest.mark.parametrize("size", [40, 900, LONGEST - 10])
@pytest.mark.parametrize("way", ["set", "remove", "rotate"])
async def test_the_old_sealed_text_is_gone_from_the_file_and_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, size: int
):
    """While the store is open, and whether it fits on a page of the file or not."""
    path = tmp_path / "team.db"
    with team(path) as rt:
        keys = rt.workspace.keys
        names = [f"p{number}" for number in range(12)]
        for name in names:
            await keys.set(name, Secret(f"{name}-".ljust(size, "x")))
        old = [(await sealed(rt, name)).split(".")[1].encode() for name in names]
        assert all(text[-40:] in files(path) for text in old), "or there is nothing to see here"

        if way == "rotate":
            monkeypatch.setenv("REMIT_MASTER_KEY", f"{NEW},{OLD}")
            assert await keys.rotate() == len(names)
        for name in names:
            if way == "set":
                await keys.set(name, Secret("short"))
            elif way == "remove":
                await keys.remove(name)
        left = files(path)
        # No part of it either: a page may have been filled again except for its end.
        parts = [text[start : start + 24] for text in old for start in range(0, len(text) - 24, 24)]
        assert [part for part in parts if part in left] == []
        await sound(rt)


@pytest.mark.rule("keys.gone")
async def test_while_another_reads_the_log_is_emptied_later(tmp_path: Path):
    path = tmp_path / "team.db"
    with team(path) as rt:
        await rt.workspace.keys.set("openai", Secret(CANARY))
        old = (await sealed(rt, "openai")).split(".")[1].encode()
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM secret").fetchall()

        await rt.workspace.keys.remove("openai")
        assert old in files(path)
        reader.close()
        await rt.workspace.context().set("notes", "k", "anything that is written")
        assert old not in files(path)


@pytest.mark.rule("keys.gone")
async def test_keys_in_memory_are_not_lost_when_something_else_is_undone():
    with team() as rt:
        await rt.workspace.context().set("notes", "k", "before")
        await rt.workspace.keys.set("openai", Secret(CANARY))
        with pytest.raises(StoreError):
            await opening_of(rt.workspace).ground.store.tx(
                "bad", lambda _: Decision(None, (Unsealed("task.started", 1, {}),))
            )
        assert await opened_key(rt, "openai") == Secret(CANARY)
        await sound(rt)


@pytest.mark.rule("keys.told")
async def test_who_put_in_a_key_that_is_kept_is_told_also_after_pruning(tmp_path: Path, clock: FakeClock):
    with team(tmp_path / "team.db", clock=clock) as rt:
        await rt.workspace.keys.set("openai", Secret(CANARY), by="ann")
        clock.advance(60)
        await rt.workspace.keys.set("openai", Secret(CANARY), by="bob")
        await rt.workspace.keys.set("other", Secret(CANARY), by="bob")
        await rt.workspace.keys.remove("other")
        clock.advance(10 * 86_400)
        await rt.workspace.prune(days=1)

        assert await told(rt) == [("key.set", {"name": "openai", "key_id": OLD_ID, "by": "bob"})]
        assert await opened_key(rt, "openai") == Secret(CANARY)
        await sound(rt)


@pytest.mark.rule("doctor.keys")
@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE secret SET sealed = (SELECT sealed FROM secret WHERE name = 'other') WHERE name = 'openai'", "is not"),
        ("UPDATE secret SET key_id = 'x' WHERE name = 'openai'", "is not the one that the journal tells of"),
        ("DELETE FROM secret WHERE name = 'openai'", "is in the journal but not in the table"),
        (
            "UPDATE secret SET name = 'planted' WHERE name = 'openai'",
            "'planted' is in the table but not in the journal",
        ),
    ],
)
async def test_the_doctor_names_a_key_that_was_changed_beside_the_journal(
    tmp_path: Path, clock: FakeClock, statement: str, sentence: str
):
    with team(tmp_path / "team.db", clock=clock) as rt:
        for name in ("openai", "other", "gone"):
            await rt.workspace.keys.set(name, Secret(f"{CANARY} {name}"))
        await rt.workspace.keys.remove("gone")
        await sound(rt)
        with closing(sqlite3.connect(tmp_path / "team.db", isolation_level=None)) as connection:
            connection.execute(statement)
        health = await rt.workspace.check()
        assert sentence in "; ".join(finding.sentence for finding in health.findings)
        assert not health.sound


# -- the canary --------------------------------------------------------------------------------------------------


@pytest.mark.rule("keys.sealed", "secret.nowhere")
async def test_a_canary_is_found_nowhere_whatever_is_done_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "team.db"
    errors: list[BaseException] = []

    async def fails(ask) -> None:
        with pytest.raises(RemitError) as no:
            await ask
        errors.append(no.value)

    with team(path) as rt:
        keys = rt.workspace.keys
        await keys.set("openai", Secret(CANARY), by="ann")

        @rt.agent
        async def careless(turn: Turn) -> str:
            key = await opened_key(rt, "openai")
            await turn.context.set("memory:careless", "key", f"it is {key.reveal()}")
            logging.getLogger("remit").warning("with %s", key.reveal())
            raise ValueError(f"401 for {key.reveal()}")

        @rt.agent
        async def careful(turn: Turn) -> str:
            key = await opened_key(rt, "openai")
            return f"used {key}, of {len(key.reveal())} letters"

        assert await rt.run("careful", "x") == f"used [secret], of {len(CANARY)} letters"
        with pytest.raises(Failed):
            await rt.run("careless", "x")
        await fails(keys.set("?", Secret(CANARY)))
        await fails(keys.set("openai", Secret(CANARY), op="x" * 300))
        monkeypatch.setenv("REMIT_MASTER_KEY", NEW)
        await fails(opened_key(rt, "openai"))
        await fails(keys.rotate())
        monkeypatch.setenv("REMIT_MASTER_KEY", f"{NEW},{OLD}")
        assert await keys.rotate() == 1
        assert await opened_key(rt, "openai") == Secret(CANARY)
        await nowhere_in(rt, path)
        with sqlite3.connect(path) as database:
            database.execute("UPDATE secret SET sealed = substr(sealed, 1, length(sealed) - 8) || 'AAAAAAA='")
        database.close()
        await fails(opened_key(rt, "openai"))
        await keys.remove("openai")
        await nowhere_in(rt, path)
    await nowhere_in(None, path)
    said = "".join([caplog.text, *map(repr, caplog.records), *(shown(error, but_for=__file__) for error in errors)])
    said += "".join(f"{error!r}{error}{vars(error)}" for error in errors)
    assert len(errors) == 5
    assert "with [secret]" in said
    assert [form for form in forms(CANARY) if form in said.encode()] == []


async def nowhere_in(rt: Runtime | None, path: Path) -> None:
    """Look for the canary in all that is written, in each of its forms."""
    found = [files(path)]
    if rt is not None:
        events = await rt.workspace.journal.history()
        found.append("\n".join(f"{event}{event.text}" for event in events).encode())
        assert "401 for [secret]" in found[-1].decode()
        assert {event.kind for event in events} >= {"key.set", "task.failed"}
    with sqlite3.connect(path) as database:
        found.append("\n".join(database.iterdump()).encode())
    database.close()
    assert [form for form in forms(CANARY) for text in found if form in text] == []

"""The files of artifacts beside a SQLite file: whole or not there, for their owner only, and never outside of their
folder."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from remit.errors import BadInput, StoreError
from remit.ports.contents import Kept
from remit.stores.sqlite.contents import FileContents, beside
from remit.stores.sqlite.database import SqliteDatabase, back_up

WRITES = """
import sys
from pathlib import Path
from remit.stores.sqlite.contents import FileContents
saving = FileContents(Path(sys.argv[1]), "w").begin()
print("ready", flush=True)
while True:
    saving.write(b"x" * 100_000)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "team.db-artifacts"


def saved(contents: FileContents, data: bytes) -> Kept:
    with closing(contents.begin()) as saving:
        saving.write(data)
        return saving.keep()


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and path.name != "lock"]


@pytest.mark.rule("artifact.whole")
def test_a_process_that_is_killed_while_it_writes_leaves_only_a_draft_that_is_swept(root: Path):
    contents = FileContents(root, "w")
    with subprocess.Popen([sys.executable, "-c", WRITES, str(root)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert contents.clearing() is None, "nothing is removed while a process saves"
        process.send_signal(signal.SIGKILL)
        process.wait()

    assert ([*contents.stored()], contents.unfinished()) == ([], 1)
    clearing = contents.clearing()
    assert clearing is not None
    with closing(clearing):
        assert clearing.sweep() == 1
    assert (files(root), contents.unfinished()) == ([], 0)


@pytest.mark.rule("artifact.private")
@pytest.mark.skipif(os.name != "posix", reason="the modes of files are those of POSIX")
def test_only_the_owner_can_read_the_files_and_folders(root: Path):
    before = os.umask(0)
    try:
        saved(FileContents(root, "w"), b"secret")
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def linked(root: Path, outside: Path) -> None:
    root.symlink_to(outside)


def shared(root: Path, outside: Path) -> None:
    root.mkdir()
    root.chmod(0o777)


def is_a_file(root: Path, outside: Path) -> None:
    root.write_text("x")


@pytest.mark.rule("artifact.private")
@pytest.mark.parametrize("spoil", [linked, shared, is_a_file])
def test_a_folder_that_others_control_is_refused(root: Path, tmp_path: Path, spoil: Callable[[Path, Path], None]):
    outside = tmp_path / "outside"
    outside.mkdir()
    spoil(root, outside)
    with pytest.raises(StoreError, match="is not a folder|can be written by others"):
        FileContents(root, "w").begin()
    assert [*outside.iterdir()] == []


@pytest.mark.rule("artifact.private")
def test_a_link_in_place_of_a_file_is_not_followed(root: Path, tmp_path: Path):
    contents = FileContents(root, "w")
    kept = saved(contents, b"content")
    [file] = files(root)
    other = tmp_path / "other"
    other.write_bytes(b"not this")
    file.unlink()
    file.symlink_to(other)
    with pytest.raises(StoreError):
        contents.open(kept.digest)
    saved(contents, b"content")
    assert other.read_bytes() == b"not this"
    reader = contents.open(kept.digest)
    assert reader is not None
    with closing(reader):
        assert reader.read() == b"content"


@pytest.mark.rule("artifact.name")
@pytest.mark.parametrize("digest", ["../../team.db", "sha256:../../../x", "", "sha256:" + "A" * 64])
def test_only_a_digest_becomes_a_path(root: Path, digest: str):
    with pytest.raises(StoreError, match="is not the digest of an artifact"):
        FileContents(root, "w").open(digest)


def test_a_workspace_of_any_name_has_a_folder_of_its_own(root: Path):
    for name in ("../x", "a/b", "a", "A", "ü" * 60):
        saved(FileContents(root, name), name.encode())
    assert len([*root.iterdir()]) == 5
    assert all([*FileContents(root, name).stored()] for name in ("../x", "a/b", "a", "A"))


def test_the_folder_of_a_store_in_memory_goes_with_it():
    database = SqliteDatabase()
    contents = database.contents("w")
    kept = saved(contents, b"content")
    [folder] = {Path(str(path)) for path in [database.contents("w").folder.parent]}
    assert folder.is_dir()
    assert [*contents.stored()] == [kept]
    database.close()
    assert not folder.exists()


@pytest.mark.rule("store.backup")
def test_a_backup_has_the_contents_too_and_overwrites_none(tmp_path: Path):
    source, copy = tmp_path / "team.db", tmp_path / "copy.db"
    with closing(SqliteDatabase(source)) as database:
        kept = saved(database.contents("w"), b"content")
        back_up(source, copy)
    assert [*FileContents(beside(str(copy)), "w").stored()] == [kept]
    copy.unlink()
    with pytest.raises(BadInput, match="overwrites nothing"):
        back_up(source, copy)

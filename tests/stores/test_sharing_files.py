"""A file that others can reach: links, rights, and another owner."""

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from remit.engine.upkeep.doctor import examine
from remit.errors import NotAStore, StoreError
from remit.stores.sqlite.database import SqliteDatabase

pytestmark = pytest.mark.skipif(os.name != "posix", reason="rights are kept in the mode of a file")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "team.db"
    SqliteDatabase(path).close()
    return path


@pytest.mark.rule("store.links")
def test_a_link_to_a_store_is_not_followed(path: Path, tmp_path: Path):
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with pytest.raises(NotAStore, match="is a symbolic link"):
        SqliteDatabase(link)


@pytest.mark.rule("store.links")
def test_a_link_to_nothing_makes_no_file(tmp_path: Path):
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(NotAStore, match="is a symbolic link"):
        SqliteDatabase(link)
    assert not (tmp_path / "elsewhere.db").exists()


@pytest.mark.rule("store.links")
@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_link_beside_a_store_is_not_followed(path: Path, tmp_path: Path, end: str):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.with_name(path.name + end).symlink_to(victim)
    with pytest.raises(NotAStore, match=f"team.db{end} is a symbolic link"):
        SqliteDatabase(path)
    assert victim.read_text() == "precious"


@pytest.mark.rule("store.links")
def test_a_folder_may_be_a_link(path: Path, tmp_path: Path):
    (tmp_path / "folder").symlink_to(path.parent, target_is_directory=True)
    SqliteDatabase(tmp_path / "folder" / "team.db").close()


@pytest.mark.rule("store.private")
def test_a_file_that_everyone_may_write_is_refused(path: Path):
    path.chmod(0o602)
    with pytest.raises(StoreError, match=r"written by everyone.*chmod o-w"):
        SqliteDatabase(path)


@pytest.mark.rule("store.private")
@pytest.mark.parametrize(
    ("mode", "sentence"),
    [(0o604, "can be read by others"), (0o640, "can be read by others"), (0o660, "can be read and written by others")],
)
def test_a_file_that_others_may_read_is_told_of(path: Path, mode: int, sentence: str, caplog):
    path.chmod(mode)
    with caplog.at_level(logging.WARNING, "remit"), closing(SqliteDatabase(path)) as database:
        health = asyncio.run(examine(database, 0))
    assert sentence in caplog.text
    assert health.sound
    assert [finding.level for finding in health.findings] == ["notice"]
    assert sentence in health.findings[0].sentence


@pytest.mark.rule("store.private")
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a file to another")
def test_a_file_of_another_user_is_told_of(path: Path):
    os.chown(path, 12_345, -1)
    with closing(SqliteDatabase(path)) as database:
        assert "belongs to another user (number 12345)" in database.remarks()[0]


@pytest.mark.rule("store.private")
def test_a_private_file_is_not_spoken_of(path: Path, caplog):
    with closing(SqliteDatabase(path)) as database:
        assert database.remarks() == []
    assert caplog.text == ""


def test_opening_a_file_twice_does_not_drop_the_locks_of_the_first(path: Path):
    """POSIX drops all locks of a process on a file when it closes any opening of it; so nobody may open it besides
    SQLite. Another process that takes itself for the last one would delete the log that the first writes to."""
    with closing(SqliteDatabase(path)), closing(SqliteDatabase(path)):
        program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA user_version').fetchone()"
        subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=30)
        assert path.with_name("team.db-wal").exists()
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)

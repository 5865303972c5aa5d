"""The power goes at any moment: what was acknowledged is there when it is back."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random  # noqa: TID251 - from a seed

import pytest

from deep import some
from torture import powercut
from torture.powercut import carried_on, kept, looked_through, recorded, room
from torture.powercut_check import Broken, looked_at
from torture.powercut_images import SECTOR, WAYS, Content, Cut, Disk, Record, Recording, cuts, images
from torture.powercut_record import OWN
from torture.powercut_shim import (
    CREATE,
    DELETE,
    ENDS,
    LAID,
    SYNC,
    SYNC_FOLDER,
    TRUNCATE,
    WRITE,
    Log,
    reachable,
)

pytestmark = pytest.mark.together
IMAGES = 30  # of each recording; `make powercut` takes a thousand in all
SEED = 7

needs_recording = pytest.mark.skipif(bool(reachable()), reason=reachable() or "it can be recorded")


@pytest.fixture
def folder() -> Iterator[Path]:
    with room() as name:
        yield Path(name)


@pytest.fixture(scope="module")
def two() -> Iterator[Recording]:
    """Two processes, as remit has SQLite sync; the files are as they were at the end."""
    with room() as name:
        yield recorded(Path(name) / "two", 2, OWN)


@pytest.fixture(scope="module")
def careless() -> Iterator[Recording]:
    """Two processes that are told that something is kept before it is on the disk."""
    with room() as name:
        yield recorded(Path(name) / "careless", 2, "NORMAL")


# -- what is promised ---------------------------------------------------------------------------------------


@pytest.mark.deep
@needs_recording
@pytest.mark.rule("crash.power")
def test_a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged(two: Recording, folder: Path):
    for recording in (two, recorded(folder / "three", 3, OWN)):
        figures = looked_through(recording, folder, SEED, range(IMAGES), every=9)
        assert figures.failures == []
        assert (figures.images, figures.reopened) == (IMAGES, 4)
        assert sum(figures.unsynced.values()) >= IMAGES / 3, "in a good part something was not on the disk yet"


@needs_recording
@pytest.mark.rule("crash.power")
def test_the_power_may_go_again_while_what_it_left_is_carried_on(two: Recording, folder: Path):
    recording = carried_on(two, folder / "after", cuts(two, SEED, range(3))[0], 2)
    assert recording.begins, "it has begun with what was left"
    assert looked_through(recording, folder, SEED, range(IMAGES), every=9).failures == []


@needs_recording
@pytest.mark.rule("crash.power")
def test_with_less_syncing_the_loss_is_seen(careless: Recording, folder: Path):
    figures = looked_through(careless, folder, SEED, range(IMAGES), every=0)
    assert figures.lost >= IMAGES / 4
    assert figures.damaged == 0, "SQLite excludes that, so our disk would be wrong"


@needs_recording
@pytest.mark.rule("crash.power")
def test_without_syncing_the_damage_is_seen(folder: Path):
    figures = looked_through(recorded(folder / "off", 2, "OFF"), folder, SEED, range(IMAGES), every=0)
    assert figures.damaged >= IMAGES / 10


# -- the recording -----------------------------------------------------------------------------------------


@needs_recording
def test_a_recording_that_is_played_to_its_end_gives_the_files_as_they_are(two: Recording):
    disk = Disk()
    for record in two.records:
        disk.play(record)
    files = two.path.parent
    assert {path.name for path in files.iterdir()} == {"log", "store.db"}, "the last to close has tidied up"
    assert [disk.seen(file) for file in range(3)] == [(files / "store.db").read_bytes(), None, None]


@needs_recording
def test_the_recordings_have_everything_that_may_go_wrong(two: Recording):
    done = {(record.kind, record.file) for record in two.records}
    store, wal, journal = range(len(ENDS))
    assert {(WRITE, store), (SYNC, store), (WRITE, wal), (SYNC, wal), (WRITE, journal), (SYNC, journal)} <= done
    assert {(CREATE, wal), (DELETE, wal), (DELETE, journal), (SYNC_FOLDER, 0)} <= done
    told = {said[0] for said in two.said(len(two.records))}
    assert told == {"journal", "submitted", "cancelled", "ended", "effect", "entry"}


@needs_recording
def test_an_image_that_failed_is_kept_with_the_command_that_looks_at_it_again(
    careless: Recording, folder: Path, capsys: pytest.CaptureFixture[str]
):
    failure = looked_through(careless, folder, SEED, range(IMAGES), every=0).failures[-1]
    _, _, arguments = kept(careless, failure.cut, folder).partition("-m torture powercut ")
    assert powercut.main(arguments.split()) == 1
    assert failure.sentences[0] in capsys.readouterr().out
    assert (folder / f"powercut-{SEED}-{failure.cut.number}" / "image" / "store.db").exists()


TAMPERED = {
    "DELETE FROM event WHERE seq = 7": "event 7 is missing",
    "UPDATE event SET at = at + 1 WHERE seq = 7": "is not what was sealed there",
    "UPDATE task SET state = 'dead' WHERE state = 'completed'": "is 'dead', and the journal says 'completed'",
    "UPDATE entry SET value = 'else' WHERE key = '0.0.0'": "and the journal says ('begun', 1)",
    "DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)": "was told and is not there",
}


@needs_recording
@pytest.mark.parametrize("statement", some(TAMPERED, 2))
def test_the_outside_checker_sees_what_is_wrong(two: Recording, folder: Path, statement: str):
    store = Path(shutil.copy(two.path.with_name("store.db"), folder))
    said = two.said(len(two.records))
    assert looked_at(store, said) == Broken([], [])
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute(statement)
    assert TAMPERED[statement] in " ".join(looked_at(store, said).all)


def test_a_recording_that_is_cut_short_is_not_believed(tmp_path: Path):
    log = Log(tmp_path / "log")
    log.add(WRITE, 0, 0, b"something")
    (tmp_path / "log").write_bytes((tmp_path / "log").read_bytes()[:-1])
    with pytest.raises(ValueError, match="the recording is damaged at 0"):
        Recording(tmp_path / "log")


# -- the disk ----------------------------------------------------------------------------------------------


def write(at: int, place: int, what: bytes, file: int = 0) -> Record:
    return Record(at, WRITE, file, place, what)


def left(disk: Disk, tries: int = 200) -> set[tuple[tuple[int, bytes], ...]]:
    """Everything that a cut may leave, as far as chance finds it."""
    found = (disk.left(Random(number)).contents for number in range(tries))
    return {tuple((file, bytes(content)) for file, content in sorted(contents.items())) for contents in found}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_sync_vouches_for_is_there(way: str):
    content = Content()
    content.since = [write(0, 0, b"old"), write(1, 0, b"new"), write(2, 3, b"er")]
    content.sync(before=2)
    assert {bytes(content.left(way, Random(number))[:3]) for number in range(50)} == {b"new"}


def test_of_what_is_not_synced_anything_may_be_there():
    content = Content(b"....")
    content.since = [write(0, 0, b"a"), write(1, 1, b"b"), write(2, 2, b"c")]

    def found(way: str) -> set[bytes]:
        return {bytes(content.left(way, Random(number))) for number in range(300)}

    assert found("dropped") == {b"...."}
    assert found("kept") == {b"abc."}
    assert found("first") == {b"....", b"a...", b"ab..", b"abc."}
    assert found("some") == {bytes(one) for one in _any_of(b"abc.")}


def _any_of(all_of_it: bytes) -> Iterator[bytes]:
    for chosen in range(8):
        yield bytes(
            byte if chosen >> place & 1 or byte == ord(".") else ord(".") for place, byte in enumerate(all_of_it)
        )


def test_a_write_is_torn_between_sectors_and_never_inside_of_one():
    content = Content(b"." * 3 * SECTOR)
    content.since = [write(0, 100, b"x" * 2 * SECTOR)]
    found = {bytes(content.left("torn", Random(number))) for number in range(300)}
    assert len(found) == 8, "each of three sectors is there or not"
    assert {len({one[100:SECTOR], one[100:101] * (SECTOR - 100)}) for one in found} == {1}
    assert {one[:100] for one in found} == {b"." * 100}, "what was not written to is as it was"


def test_a_file_may_have_grown_without_what_was_written():
    content = Content()
    content.since = [write(0, 0, b"x" * SECTOR)]
    found = {bytes(content.left("torn", Random(number))) for number in range(300)}
    assert found == {b"", bytes(SECTOR), b"x" * SECTOR}


def test_a_file_that_was_shortened_may_be_as_long_as_before():
    content = Content(b"long")
    content.since = [Record(0, TRUNCATE, 0, 2, b"")]
    assert {bytes(content.left(way, Random(1))) for way in ("dropped", "kept")} == {b"long", b"lo"}


def test_a_new_file_has_no_name_for_certain_until_its_folder_is_synced():
    disk = Disk()
    for record in (Record(0, CREATE, 0, 0, b""), write(1, 0, b"x"), Record(2, SYNC, 0, 2, b"")):
        disk.play(record)
    assert left(disk) == {(), ((0, b"x"),)}
    disk.play(Record(3, SYNC_FOLDER, 0, 3, b""))
    assert left(disk) == {((0, b"x"),)}


def test_a_deleted_file_may_come_back_until_its_folder_is_synced():
    disk = Disk()
    for record in (Record(0, LAID, 0, 0, b"x"), Record(1, DELETE, 0, 0, b"")):
        disk.play(record)
    assert left(disk) == {(), ((0, b"x"),)}
    disk.play(Record(2, SYNC_FOLDER, 0, 2, b""))
    assert left(disk) == {()}


def test_a_sync_says_nothing_about_what_was_written_while_it_was_under_way():
    disk = Disk()
    for record in (Record(0, LAID, 0, 0, b"."), write(1, 0, b"x"), Record(2, SYNC, 0, 1, b"")):
        disk.play(record)
    assert left(disk) == {((0, b"."),), ((0, b"x"),)}


def test_the_same_seed_gives_the_same_image(tmp_path: Path):
    log = Log(tmp_path / "log")
    for number in range(50):
        log.add(WRITE, 0, number * 100, bytes([number]) * 700)
        log.told("submitted", f"{number}", "")
    recording = Recording(tmp_path / "log")
    together = {cut: image.contents for cut, image in images(recording, cuts(recording, SEED, range(20)))}
    alone: dict[Cut, dict[int, bytearray]] = {}
    for number in range(20):
        alone |= {cut: image.contents for cut, image in images(recording, cuts(recording, SEED, [number]))}
    assert alone == together

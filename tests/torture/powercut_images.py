"""What a disk may hold after the power went: a recording played up to some moment, and what was not yet synced then.

What a sync vouches for is there. Of all else each piece may be there or not, file by file: nothing, everything, what
came first, any of the writes, or any of the sectors of 512 bytes, each as it was after some of the writes to it. SQLite
relies on a sector being written whole or not at all, and so do we. A file that was made or deleted is known to be so
when its folder was synced; before that the folder may say either.
"""

import json
from collections.abc import Iterable, Iterator
from math import sqrt
from pathlib import Path
from random import Random  # noqa: TID251 - from a seed
from typing import Any, NamedTuple

from torture.powercut_shim import CREATE, DELETE, ENDS, HEADER, LAID, SYNC, SYNC_FOLDER, TOLD, TRUNCATE, WRITE, Log

SECTOR = 512
STORE, LOG = "store.db", "log"
WAYS = ("dropped", "kept", "first", "some", "torn")


class Record(NamedTuple):
    at: int  # where it begins in the log
    kind: int
    file: int
    place: int  # in the file, the new length, or in the log
    what: bytes


class Recording:
    """A log that was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = list(_read(path.read_bytes()))
        self.begins = sum(record.kind == LAID for record in self.records)  # after what lay there already
        self.told = [number for number, record in enumerate(self.records) if record.kind == TOLD]

    def said(self, cut: int) -> list[list[Any]]:
        """What had been told to someone when the power went."""
        return [json.loads(self.records[number].what) for number in self.told if number < cut]

    def unsynced(self) -> list[list[int]]:
        """The moments at which something was not on the disk yet: of each file, and of the folder."""
        disk = Disk()
        moments: dict[int, list[int]] = {}
        for number, record in enumerate(self.records, 1):
            disk.play(record)
            for file in disk.unsynced():
                moments.setdefault(file, []).append(number)
        return [moments[file] for file in sorted(moments)]


def _read(log: bytes) -> Iterator[Record]:
    at = 0
    while at < len(log):
        kind, file, place, length = HEADER.unpack_from(log, at)
        end = at + HEADER.size + length
        if not LAID <= kind <= TOLD or end > len(log):
            raise ValueError(f"the recording is damaged at {at}")
        yield Record(at, kind, file, place, log[end - length : end])
        at = end


class Cut(NamedTuple):
    """Where the power goes, and what decides what is left: the same each time."""

    number: int
    seed: int
    record: int  # of the records, the first that is not played

    @property
    def chance(self) -> Random:
        return Random(f"{self.seed}/{self.number}/left")


def cuts(recording: Recording, seed: int, numbers: Iterable[int]) -> list[Cut]:
    """A moment for each number, in the order of time: half of them when something was not on the disk yet, a quarter
    when someone had just been told something, and a quarter anywhere."""
    unsynced = recording.unsynced()
    weights = [sqrt(len(moments)) for moments in unsynced]  # a file that is rarely written to has its share as well
    told, anywhere = [number + 1 for number in recording.told], range(recording.begins, len(recording.records) + 1)
    made: list[Cut] = []
    for number in numbers:
        chance = Random(f"{seed}/{number}")
        open_ = chance.choices(unsynced, weights)[0]
        made.append(Cut(number, seed, chance.choice((open_, told, open_, anywhere)[number % 4])))
    return sorted(made, key=lambda cut: cut.record)


class Content:
    """A file without its name: what is on the disk for certain, and what has been done to it since."""

    def __init__(self, lasting: bytes = b"") -> None:
        self.lasting = bytearray(lasting)
        self.since: list[Record] = []

    def sync(self, before: int) -> None:
        """Everything is on the disk that was recorded before that place in the log."""
        done = [record for record in self.since if record.at < before]
        for record in done:
            _change(self.lasting, record)
        del self.since[: len(done)]

    def left(self, way: str, chance: Random) -> bytearray:
        """What a power cut may leave of it."""
        if way == "torn":
            return self._torn(chance)
        kept = bytearray(self.lasting)
        for record in self._chosen(way, chance):
            _change(kept, record)
        return kept

    def _chosen(self, way: str, chance: Random) -> list[Record]:
        if way == "first":
            return self.since[: chance.randint(0, len(self.since))]
        share = {"dropped": 0.0, "kept": 1.0}.get(way, chance.random())
        return [record for record in self.since if chance.random() < share]

    def _torn(self, chance: Random) -> bytearray:
        """Each sector as it was after some of the writes to it; and how long the file is follows none of them."""
        now, lengths = bytearray(self.lasting), [len(self.lasting)]
        sectors: dict[int, list[bytes]] = {}  # where it begins -> what it held, one after the other
        for record in self.since:
            _change(now, record)
            lengths.append(len(now))
            for start in range(record.place // SECTOR * SECTOR, record.place + len(record.what), SECTOR):
                held = sectors.setdefault(start, [bytes(self.lasting[start : start + SECTOR])])
                held.append(bytes(now[start : start + SECTOR]))
        kept, share = bytearray(self.lasting), chance.random()
        _resize(kept, max(lengths))
        for start, held in sectors.items():
            sector = held[-1] if chance.random() < share else chance.choice(held)
            kept[start : start + len(sector)] = sector
        _resize(kept, chance.choice((lengths[-1], chance.choice(lengths))))
        return kept


def _change(content: bytearray, record: Record) -> None:
    if record.kind == TRUNCATE:
        _resize(content, record.place)
        return
    end = record.place + len(record.what)
    if end > len(content):
        _resize(content, end)
    content[record.place : end] = record.what


def _resize(content: bytearray, length: int) -> None:
    del content[length:]
    content.extend(bytes(length - len(content)))


class Named(NamedTuple):
    """From that place of the log on, this file has this content, or there is none."""

    at: int
    file: int
    content: Content | None


class Disk:
    """The files of a store and their folder, while a recording is played."""

    def __init__(self) -> None:
        self._now: dict[int, Content] = {}  # as the processes see it
        self._lasting: dict[int, Content] = {}  # what the folder says for certain
        self._since: list[Named] = []

    def play(self, record: Record) -> None:
        if record.kind in (WRITE, TRUNCATE):
            self._made(record).since.append(record)
        elif record.kind == CREATE:
            self._made(record)
        elif record.kind == SYNC:
            self._made(record).sync(record.place)
        elif record.kind == DELETE:
            if self._now.pop(record.file, None):
                self._since.append(Named(record.at, record.file, None))
        elif record.kind == SYNC_FOLDER:
            self._sync(record.place)
        elif record.kind == LAID:
            self._now[record.file] = self._lasting[record.file] = Content(record.what)

    def _made(self, record: Record) -> Content:
        """The file; whoever is first to write to a new one may come before the one who made it."""
        if record.file not in self._now:
            self._now[record.file] = Content()
            self._since.append(Named(record.at, record.file, self._now[record.file]))
        return self._now[record.file]

    def _sync(self, before: int) -> None:
        done = [named for named in self._since if named.at < before]
        for named in done:
            _name(self._lasting, named)
        del self._since[: len(done)]

    def unsynced(self) -> list[int]:
        """The files of which something is not on the disk yet; the folder comes after them."""
        files = [file for file, content in self._now.items() if content.since]
        return [*files, len(ENDS)] if self._since else files

    def seen(self, file: int) -> bytes | None:
        """A file as the processes see it, synced or not; None if there is none."""
        content = self._now.get(file)
        return None if content is None else bytes(content.left("kept", Random(0)))

    def left(self, chance: Random) -> "Image":
        """What a power cut may leave: each file in a way of its own, and its name as of a moment of its own."""
        ways = {file: chance.choice(WAYS) for file in range(len(ENDS))}
        names = dict(self._lasting)
        for file, way in ways.items():
            since = [named for named in self._since if named.file == file]
            count = {"dropped": 0, "kept": len(since)}.get(way, chance.randint(0, len(since)))
            for named in since[:count]:
                _name(names, named)
        contents = {file: content.left(ways[file], chance) for file, content in sorted(names.items())}
        return Image(contents, {ENDS[file] or "file": ways[file] for file in self.unsynced() if file in ways})


def _name(names: dict[int, Content], named: Named) -> None:
    if named.content is None:
        names.pop(named.file, None)
    else:
        names[named.file] = named.content


class Image(NamedTuple):
    contents: dict[int, bytearray]
    ways: dict[str, str]  # of the files that had something not synced, what became of it

    def lay(self, folder: Path, said: list[list[Any]]) -> None:
        """Lay the files into a folder for a recording that begins with them, and with what was told before."""
        self.write(folder)
        log = Log(folder / LOG)
        for file, content in self.contents.items():
            log.laid(file, bytes(content))
        for told in said:
            log.told(*told)

    def write(self, folder: Path) -> Path:
        """Lay the files into a folder; gives the store's own, which may be missing."""
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for file, content in self.contents.items():
            path = folder / f"{STORE}{ENDS[file]}"
            path.touch(0o600)
            path.write_bytes(content)
        return folder / STORE


def images(recording: Recording, wanted: list[Cut]) -> Iterator[tuple[Cut, Image]]:
    """An image for each cut; they are in the order of time, so the recording is played once."""
    disk, played = Disk(), 0
    for cut in wanted:
        for record in recording.records[played : cut.record]:
            disk.play(record)
        played = max(played, cut.record)
        yield cut, disk.left(cut.chance)

"""Clauses about artifacts: their contents, and the events that refer to them."""

import hashlib
from contextlib import closing
from typing import Final, cast

from anyio import to_thread

from remit.core.entry import Draft, Writer
from remit.core.events import Gap, Place, Unsealed
from remit.core.kinds.sharing import ArtifactData, artifact_saved
from remit.core.kinds.upkeep import journal_cut
from remit.core.trust import Trust
from remit.core.values import Json
from remit.ports import Database, Decision, View
from remit.ports.contents import PART, Contents, Kept
from remit.testing.clauses.making import NOW, entry_event, equal, journal, look, must, sound

_PLACES: Final = (Place(), Place("root", "s", "root"), Place("root", "s", "child"), Place("other", "s", "other"))


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


async def _saved(contents: Contents, *parts: bytes) -> Kept:
    """Store a content, in a thread, as the engine does."""

    def save() -> Kept:
        with closing(contents.begin()) as saving:
            for part in parts:
                saving.write(part)
            return saving.keep()

    return await to_thread.run_sync(save)


async def _read(contents: Contents, digest: str) -> list[bytes] | None:
    def read() -> list[bytes] | None:
        reader = contents.open(digest)
        if reader is None:
            return None
        with closing(reader):
            return [*iter(reader.read, b"")]

    return await to_thread.run_sync(read)


async def _stored(contents: Contents) -> list[Kept]:
    return await to_thread.run_sync(lambda: sorted(contents.stored()))


def _artifact(data: bytes, size: int, name: str, trust: Trust = "trusted") -> ArtifactData:
    return {"digest": _digest(data), "size": size, "name": name, "media_type": "a/b", "trust": trust}


def _saving(data: ArtifactData, at: Place = _PLACES[1], agent: str = "writer") -> Unsealed:
    return artifact_saved(data, Writer(agent), at, NOW)


async def a_content_is_stored_under_its_digest(database: Database) -> None:
    """A content is written in parts of any size, and may be empty. The same content is stored once."""
    contents = database.contents("one")
    equal(await _stored(contents), [], "what is stored at first")
    long = bytes(range(256)) * (PART // 128) + b"end"
    for parts in ((b"",), (b"a", b"", b"b"), (long[:5], long[5:])):
        whole = b"".join(parts)
        kept = await _saved(contents, *parts)
        equal(kept, Kept(_digest(whole), len(whole)), "what was kept")
        equal(await _saved(contents, whole), kept, "the same content again")
        found = await _read(contents, kept.digest)
        must(found is not None and b"".join(found) == whole, "it is read as it was written")
        must(all(len(part) <= PART for part in found or ()), "no part is longer than PART")
    equal(sorted(size for _, size in await _stored(contents)), [0, 2, len(long)], "the sizes that are stored")
    equal(await _read(contents, _digest(b"never")), None, "a content that was never stored")


async def contents_of_workspaces_are_apart(database: Database) -> None:
    kept = await _saved(database.contents("one"), b"of one")
    other = database.contents("two")
    equal(await _read(other, kept.digest), None, "a content of another workspace")
    equal(await _stored(other), [], "what the other has")


async def what_is_not_kept_is_not_there(database: Database) -> None:
    contents = database.contents("one")

    def give_up() -> None:
        with closing(contents.begin()) as saving:
            saving.write(b"half of it")

    await to_thread.run_sync(give_up)
    equal(await _read(contents, _digest(b"half of it")), None, "a content that was given up")
    equal(await _stored(contents), [], "what is stored")
    equal(contents.unfinished(), 0, "what is left of it")


async def no_content_is_removed_while_one_is_saved(database: Database) -> None:
    contents = database.contents("one")
    old = await _saved(contents, b"old")

    def together() -> None:
        saving = contents.begin()
        try:
            saving.write(b"new")
            new = saving.keep()
            must(contents.clearing() is None, "nothing is removed until the event is committed")
        finally:
            saving.close()
        clearing = contents.clearing()
        assert clearing is not None
        with closing(clearing):
            clearing.remove(old.digest)
            clearing.remove(old.digest)
            equal(clearing.sweep(), 0, "the number of drafts")
        equal([*contents.stored()], [new], "what is left")
        again = contents.clearing()
        assert again is not None
        again.close()

    await to_thread.run_sync(together)


async def rows_name_the_events_that_refer(database: Database) -> None:
    """Each event that refers to an artifact has a row, and the row goes with its event."""
    store, trusted = database.store("one"), _artifact(b"a", 1, "a.txt")
    other = _artifact(b"b", 700, "ü.bin", "untrusted")
    for number, (data, place) in enumerate(((trusted, _PLACES[1]), (trusted, _PLACES[3]), (other, _PLACES[2]))):
        await store.tx(f"save {number}", lambda _view, d=data, p=place: Decision(None, (_saving(d, p),)))

    def entry(view: View) -> Decision[None]:
        event = entry_event(view, Draft("notes", "k", [1]), place=_PLACES[1])
        return Decision(None, (event._replace(data={**event.data, "artifacts": cast("Json", [trusted, other])}),))

    await store.tx("entry", entry)
    rows = await look(store, lambda view: view.artifact_rows(trusted["digest"]))
    equal(
        [(row.seq, row.kind, row.run, row.task, row.namespace, row.key) for row in rows],
        [
            (1, "artifact.saved", "root", "root", "", ""),
            (2, "artifact.saved", "other", "other", "", ""),
            (4, "entry.set", "root", "root", "notes", "k"),
        ],
        "the rows of a digest",
    )
    of_run = await look(store, lambda view: view.artifacts_of_run("root"))
    equal([row.seq for row in of_run], [1, 3, 4, 4], "the rows of a run")
    equal({row.name for row in of_run[2:]}, {"a.txt", "ü.bin"}, "the artifacts of one event")
    newest = await look(store, lambda view: view.artifacts(2))
    equal([row.seq for row in newest], [4, 4], "the newest rows")
    equal([row.seq for row in await look(store, lambda view: view.artifacts(9, 4))], [3, 2, 1], "the rows before")
    sizes = await look(store, lambda view: [view.artifact_bytes(), view.artifact_bytes("root"), view.artifact_count()])
    equal(sizes, [701, 701, 5], "sizes and numbers")
    equal(len(await look(store, lambda view: view.artifacts_at(4))), 2, "the rows of one event")
    await sound(store)
    events = await journal(store)
    gaps = [Gap(1, 2, events[1].hash), Gap(4, 4, events[3].hash)]
    await store.tx("cut", lambda _view: Decision(None, (journal_cut(gaps, [], 0, NOW),)))
    equal(await look(store, lambda view: view.artifact_rows(trusted["digest"])), [], "the rows of events that are gone")
    equal(await look(store, _sums), (1, 700), "what is left")


def _sums(view: View) -> tuple[int, int]:
    return view.artifact_count(), view.artifact_bytes()


CLAUSES: Final = (
    a_content_is_stored_under_its_digest,
    contents_of_workspaces_are_apart,
    what_is_not_kept_is_not_there,
    no_content_is_removed_while_one_is_saved,
    rows_name_the_events_that_refer,
)

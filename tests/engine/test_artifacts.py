"""Files that agents save, pass on and open: who sees them, how long they stay, and what happens to them on the way."""

import asyncio
import hashlib
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from engine.helping import sound
from remit import END, Artifact, Card, Command, Event, Failed, Refused, Runtime, Scope, Turn
from remit.errors import BadInput, NotFound, StoreError
from remit.runtime.workspace import opening_of
from remit.settings import Policy
from remit.testing import FakeClock
from remit.testing.clauses.making import Dice
from teams import echo, team

pytestmark = pytest.mark.anyio

DAY = 86_400
HELLO = b"hello, world"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


async def opens(turn: Turn, what: Any) -> str:
    """What an agent reads in a file, or the rule that forbids it."""
    try:
        return await (await turn.artifacts.open(what)).text()
    except Refused as no:
        return no.rule


def stored(rt: Runtime) -> list[str]:
    return [kept.digest for kept in opening_of(rt.workspace).database.contents("default").stored()]


# -- saving and reading ---------------------------------------------------------------------------------------------


async def parts() -> AsyncIterator[bytes]:
    for part in (b"hello", b", ", b"world"):
        yield part


@pytest.mark.rule("artifact.save")
async def test_a_file_is_saved_from_bytes_a_path_or_an_iterator_and_read_in_each_way(anywhere: Runtime, tmp_path: Path):
    file = tmp_path / "hello.txt"
    file.write_bytes(HELLO)

    @anywhere.agent
    async def writer(turn: Turn) -> list[Artifact]:
        sources = (bytearray(HELLO), file, parts(), iter([b"hello", b", world"]))
        return [await turn.artifacts.save(source, name="hello.txt") for source in sources]

    @anywhere.agent
    async def lines(turn: Turn) -> Any:
        saved = await turn.artifacts.save(HELLO, "x.dat", "text/csv")
        opened = await turn.artifacts.open(saved)
        assert [part async for part in opened] == [HELLO]
        await opened.save_to(tmp_path / "copy")
        return [(await opened.read()).decode(), await opened.text(), repr(opened), saved]

    found = await anywhere.run("writer", "x", returns=list[Artifact])
    assert found == [Artifact(digest(HELLO), len(HELLO), "hello.txt", "text/plain")] * 4
    *read, saved = await anywhere.run("lines", "x")
    assert read == ["hello, world", "hello, world", "<OpenedArtifact x.dat: 12 bytes>"]
    assert saved == {"digest": digest(HELLO), "size": 12, "name": "x.dat", "media_type": "text/csv"}
    assert (tmp_path / "copy").read_bytes() == HELLO
    assert stored(anywhere) == [digest(HELLO)]
    await sound(anywhere)


@pytest.mark.rule("artifact.save")
async def test_a_plain_function_saves_and_opens_files_from_its_thread(rt: Runtime):
    @rt.agent
    def plain(turn: Turn) -> Any:
        saved = anyio.from_thread.run(turn.artifacts.save, HELLO, "a.txt")
        opened = anyio.from_thread.run(turn.artifacts.open, saved)
        return [saved, anyio.from_thread.run(opened.text)]

    saved, text = await rt.run("plain", "x")
    assert (saved["digest"], text) == (digest(HELLO), "hello, world")


@pytest.mark.rule("artifact.memory")
@pytest.mark.long
async def test_a_large_file_goes_through_with_flat_memory(tmp_path: Path):
    size, part = 256 * 1024 * 1024, bytes(range(256)) * 4096

    async def much() -> AsyncIterator[bytes]:
        for _ in range(size // len(part)):
            yield part

    with team(tmp_path / "team.db") as rt:

        @rt.agent
        async def heavy(turn: Turn) -> Any:
            saved = await turn.artifacts.save(much(), "big.bin")
            await (await turn.artifacts.open(saved)).save_to(tmp_path / "big.bin")
            return saved

        tracemalloc.start()
        try:
            saved = await rt.run("heavy", "x")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert saved["size"] == (tmp_path / "big.bin").stat().st_size == size
    assert peak < 24 * 1024 * 1024


def parts_in(folder: Path) -> list[Path]:
    return [*folder.glob(".*.part")]


@pytest.mark.rule("artifact.save")
async def test_a_bad_source_name_or_target_says_what_to_do(rt: Runtime, tmp_path: Path):
    there = tmp_path / "there"
    there.write_text("mine")

    async def texts() -> AsyncIterator[Any]:
        yield "text"

    async def bad(save: Callable[[], Awaitable[object]], words: str) -> None:
        with pytest.raises(BadInput, match=words):
            await save()

    @rt.agent
    async def clumsy(turn: Turn) -> str:
        save, text = turn.artifacts.save, Any
        await bad(lambda: save("a text", "x"), "text.encode")  # pyright: ignore[reportArgumentType]
        await bad(lambda: save(5, "x"), "save takes bytes")  # pyright: ignore[reportArgumentType]
        await bad(lambda: save(texts(), "x"), "yielded 'text'")
        await bad(lambda: save([1], "x"), "yielded 1")  # pyright: ignore[reportArgumentType]
        await bad(lambda: save(HELLO), "name= is needed")
        await bad(lambda: save(HELLO, "../x"), "without a folder")
        await bad(lambda: save(HELLO, "x", "text"), "a media type")
        await bad(lambda: save(HELLO, "x", trust="so so"), "trust is")  # pyright: ignore[reportArgumentType]
        await bad(lambda: save(tmp_path / "none"), "cannot be read: No such file")
        await bad(lambda: save(tmp_path, "x"), "cannot be read|not a regular file")
        saved = await save(b"\xff", "x")
        opened = await turn.artifacts.open(saved)
        await bad(opened.text, "is not text")
        await bad(lambda: opened.save_to(there), "exists already")
        await bad(lambda: opened.save_to(tmp_path / "no" / "x"), "cannot be written")
        await bad(lambda: turn.artifacts.open("sha256:12"), "an artifact is what save")
        return str(text)

    await rt.run("clumsy", "x")
    assert there.read_text() == "mine"
    assert parts_in(tmp_path) == []
    await sound(rt)


# -- who sees what --------------------------------------------------------------------------------------------------


def crew(rt: Runtime) -> None:
    @rt.agent
    async def spy(turn: Turn) -> str:
        return await opens(turn, turn.task.split()[-1])

    @rt.agent
    async def maker(turn: Turn) -> Any:
        return {"file": await turn.artifacts.save(turn.task.encode(), "made.txt")}


def hidden(given: str) -> str:
    """The digest in a form that is no reference, as one agent could tell it to another."""
    return given.removeprefix("sha256:")


@pytest.mark.rule("artifact.seen")
async def test_an_agent_that_knows_a_digest_and_was_not_given_the_file_cannot_open_it(anywhere: Runtime):
    crew(anywhere)

    @anywhere.agent
    async def knows(turn: Turn) -> list[str]:
        there, absent = f"sha256:{turn.task}", digest(b"never saved")
        said: list[str] = []
        for one in (there, absent):
            with pytest.raises(Refused) as no:
                await turn.artifacts.open(one)
            said.append(str(no.value).replace(one, "DIGEST"))
        return said

    @anywhere.agent(asks="*")
    async def lead(turn: Turn) -> Any:
        saved = await turn.artifacts.save(HELLO, "a.txt")
        return await turn.delegate("knows", hidden(saved.digest))

    first, second = await anywhere.run("lead", "x")
    assert first == second


@pytest.mark.rule("artifact.seen", "artifact.passed")
@pytest.mark.parametrize("way", ["entry", "board", "result", "handoff", "task"])
async def test_a_digest_that_one_does_not_see_cannot_be_passed_on_to_make_it_seen(rt: Runtime, way: str):
    crew(rt)

    @rt.agent(asks="*", writes=["notes"], reads=["notes"])
    async def forger(turn: Turn) -> Any:
        forged = {"digest": f"sha256:{turn.task}", "size": 12, "name": "x", "media_type": "a/b"}
        if way == "entry":
            await turn.context.set("notes", "k", [forged])
        elif way == "board":
            await turn.context.set("notes", "k", str(forged))  # a text is no reference
            return await opens(turn, forged)
        elif way == "handoff":
            return Command("forged", {"artifacts": {"x": forged}})
        elif way == "task":
            return await turn.delegate("spy", f"open {forged['digest']}")
        return forged

    @rt.agent
    async def forged(turn: Turn) -> str:
        return await opens(turn, turn.handoff.state.artifacts["x"])

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> Any:
        saved = await turn.artifacts.save(HELLO, "a.txt")
        try:
            return await turn.delegate("forger", hidden(saved.digest), sees=["notes"], writes=["notes"])
        except Failed as no:
            return "not-visible" if "does not see the artifact" in str(no) else str(no)

    assert await rt.run("lead", "x") == "not-visible"
    await sound(rt)


@pytest.mark.rule("artifact.seen", "artifact.passed")
async def test_a_caller_that_acts_as_a_card_cannot_make_an_agent_see_a_file_by_its_digest(rt: Runtime):
    crew(rt)
    rt.add(Card("caller", asks=("spy",)), echo)
    saved = await rt.workspace.artifacts.save(HELLO, "a.txt")
    async with rt:
        said = [
            await (await rt.workspace.submit("spy", f"open {saved.digest}", asker=asker)).result()
            for asker in ("", "caller")
        ]
    assert said == ["hello, world", "not-visible"]


@pytest.mark.rule("artifact.seen")
async def test_a_file_is_seen_by_those_who_were_given_an_entry_a_result_a_handoff_or_a_task_with_it(anywhere: Runtime):
    crew(anywhere)

    @anywhere.agent
    async def reader(turn: Turn) -> str:
        return await opens(turn, await turn.context.get("notes", "file"))

    @anywhere.agent
    async def taker(turn: Turn) -> str:
        return await opens(turn, turn.handoff.state.artifacts["file"])

    @anywhere.agent(asks="*")
    async def giver(turn: Turn) -> Command:
        return Command("taker", {"artifacts": {"file": await turn.artifacts.save(b"handed", "h")}})

    @anywhere.agent(asks="*", writes=["notes"])
    async def lead(turn: Turn) -> list[Any]:
        saved = await turn.artifacts.save(HELLO, "a.txt")
        await turn.context.set("notes", "file", saved)
        made = await turn.delegate("maker", "made")
        return [
            await turn.delegate("reader", "x", sees=[Scope("notes")]),
            await opens(turn, made["file"]),
            await turn.delegate("spy", f"open {made['file']['digest']}"),
            await turn.delegate("giver", "x"),
            await opens(turn, digest(b"handed")),  # it was handed on, and not given back
        ]

    seen = await anywhere.run("lead", "x")
    assert seen == ["hello, world", "made", "made", "handed", "not-visible"]
    await sound(anywhere)


@pytest.mark.rule("artifact.seen")
async def test_the_next_holder_of_a_task_does_not_see_what_the_one_before_kept(rt: Runtime):
    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        kept = await turn.artifacts.save(HELLO, "mine.txt")
        return Command("second", {"phase": hidden(kept.digest)})

    @rt.agent
    async def second(turn: Turn) -> str:
        return await opens(turn, f"sha256:{turn.handoff.state.phase}")

    assert await rt.run("first", "x") == "not-visible"


@pytest.mark.rule("artifact.seen")
async def test_an_entry_that_was_written_again_or_removed_shows_its_file_no_more(rt: Runtime):
    saved = await rt.workspace.artifacts.save(HELLO, "a.txt")
    notes = rt.workspace.context()

    @rt.agent
    async def reader(turn: Turn) -> str:
        return await opens(turn, saved)

    await notes.set("notes", "k", {"file": saved})
    assert await rt.run("reader", "x", sees=["notes"]) == "hello, world"
    assert await rt.run("reader", "x", sees=["other"]) == "not-visible"
    await notes.set("notes", "k", "nothing")
    assert await rt.run("reader", "x", sees=["notes"]) == "not-visible"


@pytest.mark.rule("artifact.passed")
async def test_an_owner_can_only_refer_to_files_that_exist(rt: Runtime):
    with pytest.raises(NotFound, match="there is no artifact"):
        await rt.workspace.context().set("notes", "k", Artifact(digest(b"never"), 5, "x"))
    with pytest.raises(NotFound, match="there is no artifact"):
        await rt.workspace.artifacts.open(digest(b"never"))


@pytest.mark.rule("artifact.trust")
async def test_the_label_of_a_file_follows_it_to_those_who_open_it(rt: Runtime):
    @rt.agent
    async def fetcher(turn: Turn) -> Any:
        return [await turn.artifacts.save(b"from outside", "page", trust="untrusted"), turn.trust]

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        page, label = await turn.delegate("fetcher", "x")
        said = [label, turn.trust]
        opened = await turn.artifacts.open(page)
        return [*said, opened.trust, turn.trust]

    assert await rt.run("lead", "x") == ["trusted", "trusted", "untrusted", "untrusted"]


async def test_the_end_of_a_handoff_can_be_a_file(rt: Runtime):
    @rt.agent
    async def ends(turn: Turn) -> Command:
        return Command(END, result=[(await turn.artifacts.save(HELLO, "a")).data()])

    [saved] = await rt.run("ends", "x")
    [row] = [one for one in await rt.workspace.artifacts.list() if one.artifact.digest == saved["digest"]]
    assert (row.agent, row.artifact.name) == ("ends", "a")


# -- crashes, quotas, upkeep -----------------------------------------------------------------------------------------


@pytest.mark.rule("artifact.save")
async def test_a_file_that_is_saved_before_a_failure_is_saved_again_by_the_retry(rt: Runtime):
    tries: list[int] = []

    @rt.agent
    async def twice(turn: Turn) -> Any:
        saved = await turn.artifacts.save(HELLO, "a.txt")
        tries.append(turn.attempt)
        if len(tries) == 1:
            raise ConnectionError("not yet")
        return [saved, await opens(turn, saved)]

    with pytest.raises(Failed):
        await rt.run("twice", "x")
    [failed] = await rt.workspace.tasks.list()
    again = await rt.workspace.tasks.retry(failed.id)
    saved, text = (await again.wait()).unwrap()
    assert (saved["digest"], text) == (digest(HELLO), "hello, world")
    assert stored(rt) == [digest(HELLO)]
    await sound(rt)


@pytest.mark.rule("artifact.quota")
async def test_a_run_and_a_workspace_save_no_more_than_they_may(clock: FakeClock):
    with Runtime(policy=Policy(run_artifact_bytes=20, artifact_bytes=30)) as rt:

        @rt.agent
        async def greedy(turn: Turn) -> list[str]:
            said: list[str] = []
            for data in (b"x" * 21, b"a" * 12, b"b" * 12):
                try:
                    await turn.artifacts.save(data, "x")
                    said.append("saved")
                except Refused as no:
                    said.append(f"{no.rule}: {no}")
            return said

        first, second, third = await rt.run("greedy", "x")
        assert (second, first[:15], third[:15]) == ("saved", "artifact-bytes:", "artifact-bytes:")
        assert "would have 24 bytes, and 20 are allowed (Policy(run_artifact_bytes=...))" in third
        await rt.workspace.artifacts.save(b"c" * 18, "y")
        await rt.workspace.artifacts.save(b"c" * 18, "again")  # the same content takes no more room
        with pytest.raises(Refused, match=r"would have 31 bytes, and 30 are allowed \(Policy\(artifact_bytes"):
            await rt.workspace.artifacts.save(b"d", "z")


@pytest.mark.rule("artifact.kept")
async def test_a_file_goes_when_nothing_refers_to_it_any_more(anywhere: Runtime, clock: FakeClock):
    rt = anywhere

    @rt.agent(writes=["notes"])
    async def saver(turn: Turn) -> Any:
        kept = await turn.artifacts.save(b"kept", "k")
        await turn.context.set("notes", "k", [kept])
        return await turn.artifacts.save(b"goes", "g")

    await rt.run("saver", "x")
    lone = await rt.workspace.artifacts.save(b"lone", "l", by="ann")
    assert len(stored(rt)) == 3
    clock.advance(5 * DAY)
    young = await rt.workspace.artifacts.save(b"young", "y")
    await rt.workspace.prune(4)
    assert sorted(stored(rt)) == sorted([digest(b"kept"), young.digest])
    assert lone.digest not in stored(rt)
    assert await (await rt.workspace.artifacts.open(digest(b"kept"))).read() == b"kept"
    await sound(rt)
    await rt.workspace.context().remove("notes", "k")
    clock.advance(5 * DAY)
    await rt.workspace.prune(4)
    assert stored(rt) == []
    await sound(rt)


def digests(events: list[Event]) -> set[str]:
    """What events refer to."""
    return {one["digest"] for event in events for one in cast("list[Any]", event.data.get("artifacts", []))}


@pytest.mark.rule("artifact.kept")
@pytest.mark.parametrize("seed", range(8))
async def test_whatever_is_done_a_file_is_there_exactly_as_long_as_something_refers_to_it(seed: int, clock: FakeClock):
    dice = Dice(f"artifacts {seed}")
    with team(clock=clock, keep_days=None) as rt:

        @rt.agent(writes=["notes"])
        async def saver(turn: Turn) -> Any:
            saved = await turn.artifacts.save(turn.task[:1].encode(), "x")
            if turn.task.endswith("entry"):
                await turn.context.set("notes", str(dice.below(3)), {"file": saved})
            return [saved] if turn.task.endswith("result") else "nothing"

        for _ in range(25):
            content, what = dice.one("abcd"), dice.one(["entry", "result", "none", "remove", "prune", "later"])
            if what == "remove":
                await rt.workspace.context().remove("notes", str(dice.below(3)))
            elif what == "prune":
                await rt.workspace.prune(1 + 2 * dice.below(2))
            elif what == "later":
                clock.advance((1 + 3 * dice.below(2)) * DAY / 2)
            else:
                await rt.run("saver", f"{content} {what}")
            referred = digests(await rt.workspace.journal.history())
            assert referred <= {*stored(rt)}
            if what == "prune":
                assert referred == {*stored(rt)}
        await sound(rt)


@pytest.mark.rule("artifact.damage")
@pytest.mark.parametrize("harm", ["changed", "missing"])
async def test_a_damaged_file_is_never_read_as_if_it_were_whole_and_the_doctor_names_it(tmp_path: Path, harm: str):
    with team(tmp_path / "team.db") as rt:
        saved = await rt.workspace.artifacts.save(HELLO, "a.txt")
        [file] = [path for path in (tmp_path / "team.db-artifacts").rglob("*") if len(path.name) == 64]
        if harm == "changed":
            file.write_bytes(b"hello, World")
        else:
            file.unlink()
        opened = await rt.workspace.artifacts.open(saved)
        with pytest.raises(StoreError, match="damaged|missing"):
            await opened.read()
        with pytest.raises(StoreError, match="damaged|missing"):
            await opened.save_to(tmp_path / "copy")
        assert not (tmp_path / "copy").exists()
        [finding] = (await rt.workspace.check()).findings
        what = "was changed after it was saved" if harm == "changed" else "is missing"
        assert (finding.level, finding.sentence) == (
            "broken",
            f"the content of artifact 'a.txt' ({saved.digest}) {what}",
        )
        await rt.workspace.artifacts.save(HELLO, "a.txt")  # which restores it
        assert await opened.read() == HELLO


@pytest.mark.rule("artifact.damage")
async def test_the_doctor_mentions_contents_that_nothing_refers_to(tmp_path: Path):
    with team(tmp_path / "team.db") as rt:
        await rt.workspace.artifacts.save(HELLO, "a.txt")
        with closing(opening_of(rt.workspace).database.contents("default").begin()) as saving:
            saving.write(b"stray")
            saving.keep()
        [finding] = (await rt.workspace.check()).findings
        assert (finding.level, finding.sentence[:60]) == (
            "notice",
            "1 contents of artifacts to which no event refers (5 bytes) a",
        )
        await rt.workspace.prune(1)
        assert (await rt.workspace.check()).findings == []


async def test_a_save_that_is_cancelled_leaves_nothing(tmp_path: Path):
    begun = asyncio.Event()

    async def never() -> AsyncIterator[bytes]:
        yield HELLO
        begun.set()
        await anyio.sleep_forever()

    with team(tmp_path / "team.db") as rt:

        @rt.agent
        async def slow(turn: Turn) -> Any:
            return await turn.artifacts.save(never(), "x")

        task = await rt.submit("slow", "x")
        await begun.wait()
        await task.cancel("enough")
        assert (await task.wait()).state == "cancelled"
        assert opening_of(rt.workspace).database.contents("default").unfinished() == 0
        assert stored(rt) == []


async def test_the_owner_lists_files_each_once_and_by_run(rt: Runtime):
    crew(rt)
    one = await rt.outcome("maker", "one")
    two = await rt.outcome("maker", "two")
    await rt.workspace.artifacts.save(b"one", "again.txt", op="first", by="ann")
    await rt.workspace.artifacts.save(b"one", "again.txt", op="first", by="ann")

    listed = await rt.workspace.artifacts.list()
    assert [(each.artifact.name, each.agent) for each in listed] == [("again.txt", ""), ("made.txt", "maker")]
    assert [each.artifact.digest for each in await rt.workspace.artifacts.list(run=two.id)] == [digest(b"two")]
    assert [each.run for each in await rt.workspace.artifacts.list(run=one.id, limit=1)] == [one.id]
    assert len(await rt.workspace.artifacts.list(limit=1)) == 1
    assert listed[0].saved.year > 2000

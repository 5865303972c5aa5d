"""The messenger: every open question reaches every channel, whoever fails or dies meanwhile."""

import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, doomed, found, happened, quiet, sound, take_over, until
from remit import Runtime, Turn
from remit.core.question import Inquiry, Reply
from remit.engine.system import TimedIds
from remit.errors import BadInput, Conflict, NotFound, StoreBusy
from remit.ports import Desk, Down, Undeliverable, View
from remit.settings import Serving
from remit.testing import CountedIds, FakeClock
from teams import team
from wrapped import Wrapped

pytestmark = pytest.mark.anyio


class Post:
    """A channel that does what the test says: `does` has what comes of each try, the last for all that follow."""

    def __init__(self, *does: Any, name: str = "post") -> None:
        self.name = name
        self.told: list[tuple[str, str]] = []
        self._does = [*does] or ["ok"]
        self.clock: FakeClock | None = None
        self.times: list[float] = []

    async def tell(self, workspace: str, inquiry: Inquiry) -> str:
        self.told.append((workspace, inquiry.id))
        if self.clock is not None:
            self.times.append(self.clock.ticks() / 1e6)
        does = self._does.pop(0) if len(self._does) > 1 else self._does[0]
        if isinstance(does, Exception):
            raise does
        if isinstance(does, anyio.Event):
            await does.wait()
            return "late"
        return does


def asking(where: Any, clock: Any, *channels: Any, **how: Any) -> Runtime:
    rt = team(where, clock=clock, ids=how.pop("ids", CountedIds()), channels=[*channels], **how)
    rt.agent("lead")(ask)
    return rt


async def ask(turn: Turn) -> str:
    return await turn.ask_human("Which?", ["red", "blue"])


async def notice(rt: Runtime, channel: str = "post") -> Any:
    """Wait until it is on record what came of telling a channel, and give that."""

    def look(view: View) -> Any:
        for question in view.questions(10):
            for event in view.done_under(f"{question.id}/notice/"):
                if event.kind == "notice.sent" and event.data["channel"] == channel:
                    return event.data
        return None

    return await found(rt, look)


async def tries(clock: FakeClock, post: Post, count: int, step: float = 0.25) -> None:
    """Let time pass until a channel was tried so often."""
    with anyio.fail_after(PATIENCE * 6):
        while len(post.told) < count:
            await quiet()
            clock.advance(step)


@pytest.mark.rule("channel.told")
async def test_a_question_is_told_to_every_channel_at_once_and_once(tmp_path, clock):
    one, other = Post("m1", name="one"), Post("m2", name="other")
    with asking(tmp_path / "team.db", clock, one, other) as rt:
        async with rt.serving():
            task = await rt.submit("lead", "go")
            assert (await notice(rt, "one"))["ref"] == "m1"
            assert (await notice(rt, "other"))["ref"] == "m2"
            [question] = await rt.workspace.questions.list()
            assert [(one.channel, one.ref) for one in question.notices] in (
                [("one", "m1"), ("other", "m2")],
                [("other", "m2"), ("one", "m1")],
            )
            await rt.workspace.questions.answer(question.id, "red", by="ann")
            assert await task.result(PATIENCE) == "red"
        await quiet()
        assert one.told == other.told == [("default", question.id)]
        await sound(rt)


@pytest.mark.rule("channel.told")
async def test_in_memory_it_is_told_too_and_nothing_has_to_be_claimed(clock):
    post = Post("m1")
    with asking(":memory:", clock, post) as rt:
        async with rt.serving():
            await rt.submit("lead", "go")
            await notice(rt)
            kinds = [event.kind for event in await rt.workspace.journal.history()]
    assert kinds.count("notice.sent") == 1
    assert "notice.claimed" not in kinds


@pytest.mark.rule("channel.told")
async def test_what_another_process_asks_is_told_by_the_one_that_has_channels(tmp_path):
    post = Post("m1")
    with (
        asking(tmp_path / "team.db", None, ids=TimedIds()) as asker,
        asking(tmp_path / "team.db", None, post, ids=TimedIds()) as teller,
    ):
        async with teller.serving(), anyio.create_task_group() as group:
            group.start_soon(asker.run, "lead", "go")
            await notice(teller)
            [question] = await teller.workspace.questions.list()
            await teller.workspace.questions.answer(question.id, "blue")


@pytest.mark.rule("channel.told")
async def test_what_was_asked_while_nobody_had_a_channel_is_told_when_someone_has(tmp_path, clock):
    post = Post("m1")
    with asking(tmp_path / "team.db", clock) as rt:
        await rt.submit("lead", "go")
        await found(rt, lambda view: view.questions_open(1) or None)
        await rt.drain(0)
    with asking(tmp_path / "team.db", clock, post, ids=CountedIds(1_000_000)) as rt:
        async with rt.serving():
            await notice(rt)
    assert len(post.told) == 1


@pytest.mark.rule("channel.down")
async def test_a_channel_that_is_down_is_tried_again_ever_more_slowly(clock, caplog):
    post = Post(*[Down()] * 9, "m1")
    post.clock = clock
    caplog.set_level(logging.INFO, "remit")
    with asking(":memory:", clock, post) as rt:
        async with rt.serving():
            await rt.submit("lead", "go")
            await until(lambda: post.told)
            await tries(clock, post, 10)
            await notice(rt)
            assert len({question for _, question in post.told}) == 1
    pauses = [later - earlier for earlier, later in zip(post.times, post.times[1:], strict=False)]
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60], rel=0.25, abs=0.5)
    said = [record.getMessage() for record in caplog.records if "channel 'post'" in record.getMessage()]
    assert said == [
        "channel 'post' is down, which is tried again: it cannot be reached",
        "channel 'post' works again",
    ]


@pytest.mark.rule("channel.down")
async def test_a_channel_that_asks_for_a_pause_is_paused_for_all_questions(clock):
    post = Post(Down(retry_after=40.0), "m1")
    post.clock = clock
    with asking(":memory:", clock, post) as rt:
        async with rt.serving():
            await rt.submit("lead", "one")
            await until(lambda: post.told)
            clock.advance(5)
            await rt.submit("lead", "another")
            await found(rt, lambda view: view.questions_open(2)[1:] or None)
            await tries(clock, post, 3, 1.0)
    assert post.times[0] == 0
    assert [round(when) for when in post.times[1:]] == [40, 40]


@pytest.mark.rule("channel.down")
async def test_a_channel_that_hangs_or_fails_holds_up_neither_the_others_nor_the_work(clock, caplog):
    hangs, fails, works = (
        Post(anyio.Event(), name="hangs"),
        Post(ValueError("odd"), name="fails"),
        Post("m", name="works"),
    )
    with asking(":memory:", clock, hangs, fails, works) as rt:
        async with rt.serving():
            task = await rt.submit("lead", "go")
            await notice(rt, "works")
            await until(lambda: hangs.told and fails.told)
            [question] = await rt.workspace.questions.list()
            await rt.workspace.questions.answer(question.id, "red")
            assert await task.result(PATIENCE) == "red"
    assert "channel 'fails' failed, which is tried again: ValueError('odd')" in caplog.text


@pytest.mark.rule("channel.down")
async def test_a_channel_that_hangs_is_given_up_and_tried_again(clock):
    post = Post(anyio.Event(), "m1")
    with asking(":memory:", clock, post) as rt:
        async with rt.serving():
            await rt.submit("lead", "go")
            await until(lambda: post.told)
            await tries(clock, post, 2, 5.0)
            assert (await notice(rt))["ref"] == "m1"


@pytest.mark.rule("channel.refused")
async def test_what_a_channel_will_never_take_is_on_record_and_not_tried_again(clock):
    post = Post(Undeliverable("it answered 401:\nwrong key\x00"))
    with asking(":memory:", clock, post) as rt:
        async with rt.serving():
            task = await rt.submit("lead", "go")
            assert (await notice(rt))["error"] == "it answered 401: wrong key"
            [question] = await rt.workspace.questions.list()
            assert [one.error for one in question.notices] == ["it answered 401: wrong key"]
            clock.advance(600)
            await quiet()
            assert len(post.told) == 1
            await rt.workspace.questions.answer(question.id, "blue", by="ann")
            assert await task.result(PATIENCE) == "blue"


@pytest.mark.rule("channel.told")
async def test_what_is_decided_while_a_channel_is_down_is_not_told_any_more(clock):
    post = Post(Down(), "m1")
    with asking(":memory:", clock, post) as rt:
        async with rt.serving():
            task = await rt.submit("lead", "go")
            await until(lambda: post.told)
            [question] = await rt.workspace.questions.list()
            await rt.workspace.questions.answer(question.id, "blue")
            await task.result(PATIENCE)
            clock.advance(120)
            await quiet()
    assert len(post.told) == 1


class Shaky(Wrapped):
    """A database that is away twice when a notice is to be recorded, and twice when questions are looked for."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.left = {"notice.sent": 2, "look": 2}

    def around(self, decide: Any) -> Any:
        def decided(view: View) -> Any:
            decision = decide(view)
            self._fail("notice.sent", any(event.kind == "notice.sent" for event in decision.events))
            return decision

        return decided

    def looking(self, view: View) -> View:
        fails = self._fail

        class Looking:
            def __getattr__(self, name: str) -> Any:
                fails("look", name == "questions")
                return getattr(view, name)

        return Looking()  # pyright: ignore[reportReturnType] - it has all that the other has

    def _fail(self, what: str, now: bool) -> None:
        if now and self.left[what]:
            self.left[what] -= 1
            raise StoreBusy("away")


@pytest.mark.rule("channel.down")
async def test_while_the_store_is_away_what_was_told_is_not_told_again_but_recorded_later(clock, caplog):
    post, shaky = Post("m1"), Shaky()
    with asking(shaky, clock, post) as rt:
        async with rt.serving():
            await rt.submit("lead", "go")
            with anyio.fail_after(PATIENCE):
                while any(shaky.left.values()) or not (await rt.workspace.questions.list())[0].notices:
                    await quiet()
                    clock.advance(0.5)
    assert len(post.told) == 1
    assert "what is asked could not be looked up, tried again: away" in caplog.text
    assert "channel 'post' waits for the store, which is tried again: away" in caplog.text


# -- several processes ----------------------------------------------------------------------------------------------


@pytest.mark.rule("channel.one")
async def test_of_two_processes_one_tells(tmp_path, clock):
    go = anyio.Event()
    posts = Post(go), Post(go)
    with (
        asking(tmp_path / "team.db", clock, posts[0], ids=CountedIds()) as one,
        asking(tmp_path / "team.db", clock, posts[1], ids=CountedIds(1_000_000)) as other,
    ):
        async with one.serving(), other.serving():
            await quiet()
            for number in range(6):
                await one.submit("lead", f"go {number}")
            await found(one, lambda view: view.questions_open(6)[5:] or None)
            with anyio.fail_after(PATIENCE):
                while len(posts[0].told) + len(posts[1].told) < 4:
                    clock.advance(0.1)
                    await quiet()
            for _ in range(12):  # a minute in which the other looks again and again
                clock.advance(1)
                await quiet()
            go.set()
            with anyio.fail_after(PATIENCE):
                while len(posts[0].told) + len(posts[1].told) < 6:
                    clock.advance(1)
                    await quiet()
            clock.advance(6)
            await quiet()
            told = sorted(question for post in posts for _, question in post.told)
            assert told == sorted({one.id for one in await one.workspace.questions.list()})
        await sound(one)


@pytest.mark.rule("channel.one")
async def test_of_two_processes_on_a_server_one_tells(address):
    posts = Post(), Post()
    with (
        asking(address, None, posts[0], ids=TimedIds()) as one,
        asking(address, None, posts[1], ids=TimedIds()) as other,
    ):
        async with one.serving(), other.serving():
            for number in range(4):
                await one.submit("lead", f"go {number}")

            def all_told(view: View) -> bool | None:
                return all(view.done(f"{one.id}/notice/post") for one in view.questions_open(9)) or None

            await found(one, lambda view: view.questions_open(9)[3:] or None)
            await found(one, all_told)
            for question in await one.workspace.questions.list():
                await one.workspace.questions.answer(question.id, "red")
        await sound(one)
    told = [question for post in posts for _, question in post.told]
    assert len(told) == len(set(told)) == 4


@pytest.mark.rule("channel.one", "channel.down")
async def test_a_process_that_is_killed_while_it_tells_is_followed_by_another_with_the_same_id(tmp_path, clock):
    lost, post = Post(anyio.Event()), Post("m2")
    dead = doomed(tmp_path / "team.db", clock, channels=[lost], ids=CountedIds())
    heir = asking(tmp_path / "team.db", clock, post, ids=CountedIds(1_000_000))
    dead.agent("lead")(ask)
    with dead, heir:
        await dead.submit("lead", "go")
        await until(lambda: lost.told)
        async with heir.serving():
            for _ in range(8):  # while it may be alive, nobody else tells it
                clock.advance(1)
                await quiet()
            assert post.told == []
            await take_over(heir, clock, dead)
            await tries(clock, post, 1, 1.0)
            assert (await notice(heir))["ref"] == "m2"
            assert post.told == lost.told
            [question] = await heir.workspace.questions.list()
            await heir.workspace.questions.answer(question.id, "red")
        await sound(heir)


@pytest.mark.rule("channel.down")
async def test_a_messenger_that_is_stopped_and_started_again_tells_with_the_same_id(tmp_path, clock):
    post = Post(anyio.Event(), "m2")
    with asking(tmp_path / "team.db", clock, post) as rt:
        async with rt.serving():
            await rt.submit("lead", "go")
            await until(lambda: post.told)
        async with rt.serving():
            assert (await notice(rt))["ref"] == "m2"
        async with rt.serving():
            await quiet()
    assert len(post.told) == 2
    assert len(set(post.told)) == 1


# -- answers --------------------------------------------------------------------------------------------------------


class Ear:
    """A channel that only listens."""

    name = "ear"

    def __init__(self, *fails: Exception) -> None:
        self.fails = [*fails]
        self.heard = 0
        self.desk: Desk | None = None
        self.there = anyio.Event()

    async def listen(self, desk: Desk) -> None:
        self.heard += 1
        if self.fails:
            raise self.fails.pop(0)
        self.desk = desk
        self.there.set()
        await anyio.sleep_forever()


async def answers(rt: Runtime, ear: Ear) -> tuple[Desk, Inquiry]:
    await happened(ear.there)
    assert ear.desk is not None
    await found(rt, lambda view: view.questions_open(1) or None)
    [question] = await rt.workspace.questions.list()
    return ear.desk, await ear.desk.look(question.id)


@pytest.mark.rule("channel.answer")
async def test_an_answer_over_a_channel_counts_once_and_the_second_is_told_who_was_first(clock):
    ear = Ear()
    with asking(":memory:", clock, ear) as rt:
        async with rt.serving():
            task = await rt.submit("lead", "go")
            desk, question = await answers(rt, ear)
            assert (desk.workspace, question.chain, question.choices) == ("default", "lead", ("red", "blue"))
            with pytest.raises(BadInput):
                await desk.answer(question.id, Reply("answered", "ear:1", "ear", value="green"))
            with pytest.raises(BadInput, match="approves, rejects or answers"):
                await desk.answer(question.id, Reply("expired", "ear:1", "ear"))
            with pytest.raises(NotFound):
                await desk.look("qnone")
            await desk.answer(question.id, Reply("answered", "ear:1", "ear", value="red"))
            assert await task.result(PATIENCE) == "red"
            with pytest.raises(Conflict, match="was answered by ear:1 over ear at "):
                await desk.answer(question.id, Reply("answered", "ear:2", "ear", value="blue"))


@pytest.mark.rule("channel.answer")
async def test_an_answer_that_comes_too_late_is_refused_also_before_anyone_has_noticed(clock):
    ear = Ear()
    with asking(":memory:", clock, ear) as rt:
        async with rt.serving():
            await rt.submit("lead", "go")
            desk, question = await answers(rt, ear)
            clock.jump(8 * 86_400)
            with pytest.raises(Conflict, match="has expired at "):
                await desk.answer(question.id, Reply("answered", "ear:1", "ear", value="red"))


@pytest.mark.rule("channel.down")
async def test_a_channel_that_cannot_listen_is_tried_again_unless_it_says_that_this_is_useless(clock, caplog):
    again, never = Ear(Down(), ValueError("odd")), Ear(Undeliverable("wrong token"))
    never.name = "never"
    with asking(":memory:", clock, again, never) as rt:
        async with rt.serving():
            with anyio.fail_after(PATIENCE):
                while not again.there.is_set():
                    await quiet()
                    clock.advance(1)
            clock.advance(300)
            await quiet()
    assert (again.heard, never.heard) == (3, 1)
    assert "channel 'ear' cannot bring answers, which is tried again: it cannot be reached" in caplog.text
    assert "channel 'never' brings no answers any more: wrong token" in caplog.text


# -- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("channel.settings")
@pytest.mark.parametrize(
    ("channels", "says"),
    [
        (Post, "channels is a list of channels, such as Webhook"),
        (lambda: [object()], "each with `tell` or `listen`, not a value of type object"),
        (lambda: [Post(name="a/b")], "a channel's name is up to 32 of a-z"),
        (lambda: [Post(name="")], "a channel's name is"),
        (lambda: [Post(), Post()], "two channels are named 'post'"),
    ],
)
def test_what_is_no_channel_is_refused_where_it_is_said(channels: Callable[[], Any], says: str):
    with pytest.raises(BadInput, match=says):
        Serving(channels=channels())

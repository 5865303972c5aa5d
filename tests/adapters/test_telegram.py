"""Telegram: what counts is who pressed, where, and that the button is ours."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from adapters.people import asked, crew, inquiry, noticed
from adapters.standin import Got, Says, StandIn, stand_in
from engine.helping import PATIENCE
from remit import Runtime
from remit.adapters.telegram import Telegram
from remit.errors import BadInput, StoreBusy
from remit.ports import Down, Undeliverable
from remit.testing import pass_time

pytestmark = pytest.mark.anyio

TOKEN = "4242:AAcanary-token_of-the-bot"
BOT, CHAT, ANN, EVE = 4242, -100777, 11, 66


class Bot:
    """Telegram's side: what was sent to the chat, and what people do there."""

    def __init__(self, server: StandIn) -> None:
        self.server = server
        self.calls: list[tuple[str, Any]] = []
        self.fails: dict[str, list[Says]] = {}
        self.updates: list[dict[str, Any]] = []
        self.offsets: list[int] = []
        self._number = 100
        self._news = anyio.Event()
        server.answers = self.answer

    async def answer(self, got: Got) -> Says:
        assert got.path.startswith(f"/bot{TOKEN}/")
        method, says = got.path.rpartition("/")[2], got.json
        if self.fails.get(method):
            return self.fails[method].pop(0)
        if method == "getUpdates":
            return await self._updates(says["offset"])
        self.calls.append((method, says))
        self._moved()
        return Says(200, {"ok": True, "result": {"message_id": 7}})

    async def _updates(self, offset: int) -> Says:
        self.offsets.append(offset)
        while not (fresh := [one for one in self.updates if one["update_id"] >= offset]):
            await self._news.wait()
        return Says(200, {"ok": True, "result": fresh})

    def _moved(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    def add(self, update: dict[str, Any]) -> None:
        self._number += 1
        self.updates.append({"update_id": self._number, **update})
        self._moved()

    def press(self, data: str, who: int = ANN, chat: int = CHAT) -> None:
        message = {"message_id": 7, "chat": {"id": chat}}
        sender = {"id": who, "username": "ann" if who == ANN else "not a name!"}
        self.add({"callback_query": {"id": f"c{self._number}", "from": sender, "message": message, "data": data}})

    def reply(self, to: str, said: str, who: int = ANN, author: int = BOT) -> None:
        above = {"message_id": 7, "text": to, "from": {"id": author, "is_bot": True}}
        message = {"message_id": 9, "chat": {"id": CHAT}, "from": {"id": who}, "text": said, "reply_to_message": above}
        self.add({"message": message})

    async def called(self, method: str, count: int = 1) -> list[Any]:
        """Wait until a method was called so often, and give what it was called with."""
        with anyio.fail_after(PATIENCE):
            while len(found := [says for name, says in self.calls if name == method]) < count:
                await self._news.wait()
        return found


def channel(server: StandIn, **how: Any) -> Telegram:
    return Telegram(TOKEN, CHAT, [ANN], server.url, **how)


@asynccontextmanager
async def chatting(clock: Any, task: str) -> AsyncIterator[tuple[Runtime, Bot, Any, Any]]:
    async with stand_in() as server:
        bot = Bot(server)
        with crew(":memory:", clock, channel(server)) as rt:
            async with rt.serving():
                submitted = await rt.submit("lead", task)
                await noticed(rt, "telegram")
                yield rt, bot, submitted, await asked(rt)


def buttons(sent: Any) -> dict[str, str]:
    return {row[0]["text"]: row[0]["callback_data"] for row in sent["reply_markup"]["inline_keyboard"]}


@pytest.mark.rule("channel.telegram", "channel.answer")
async def test_a_button_decides_and_the_second_press_is_told_who_did(clock):
    async with chatting(clock, "go") as (rt, bot, task, question):
        [sent] = await bot.called("sendMessage")
        assert sent["chat_id"] == CHAT
        assert "deploy <b>now</b> & here" in sent["text"]
        assert "\n  tools: ssh\n" in sent["text"]
        assert "parse_mode" not in sent
        assert list(buttons(sent)) == ["Approve", "Reject"]
        assert all(len(data.encode()) <= 64 for data in buttons(sent).values())
        bot.press(buttons(sent)["Approve"])
        assert await task.result(PATIENCE) == "deploy <b>now</b> & here"
        found = await rt.workspace.questions.get(question.id)
        assert (found.state, found.by, found.channel) == ("approved", f"telegram:{ANN}/ann", "telegram")
        [told] = await bot.called("answerCallbackQuery")
        assert told["text"] == "Recorded: approved."
        [edited] = await bot.called("editMessageText")
        assert (edited["chat_id"], edited["message_id"]) == (CHAT, 7)
        assert edited["text"].endswith(f"approved by ann\n{question.id}")
        bot.press(buttons(sent)["Reject"])
        assert (
            f"was approved by telegram:{ANN}/ann over telegram at"
            in (await bot.called("answerCallbackQuery", 2))[1]["text"]
        )
        assert "was approved by" in (await bot.called("editMessageText", 2))[1]["text"]
        assert bot.offsets[0] == 0
        assert 102 in bot.offsets  # what was handled is not asked for again


@pytest.mark.rule("channel.telegram")
async def test_strangers_other_chats_and_bent_buttons_are_refused_and_the_question_stays_open(clock):
    async with chatting(clock, "go") as (rt, bot, task, question):
        [sent] = await bot.called("sendMessage")
        right = buttons(sent)["Approve"]
        id_, code, mac = right.split(".")
        bot.press(right, who=EVE)
        bot.press(right, chat=CHAT + 1)
        bent = [
            f"{id_}.{code}.{mac[:-1]}{'A' if mac[-1] != 'A' else 'B'}",
            f"{id_}.reject.{mac}",
            f"{id_}.{code}.",
            id_,
        ]
        bent += [f"q2222222222222999.{code}.{mac}", "", "..", f"{id_}.text.{mac}"]
        for data in bent:
            bot.press(data)
        bot.add({"callback_query": {"id": "x"}})  # from nobody
        bot.add({"callback_query": {"id": "x", "from": {"id": True}, "message": {"chat": {"id": CHAT}}, "data": right}})
        bot.add({"edited_message": {}})
        told = [says["text"] for says in await bot.called("answerCallbackQuery", 2 + len(bent))]
        assert told[:2] == ["You are not among those who may answer this."] * 2
        assert told[2:] == ["This button does not count; nothing was decided."] * len(bent)
        assert (await rt.workspace.questions.get(question.id)).state == "open"
        bot.press(right)  # it goes on after all of that
        await task.result(PATIENCE)


@pytest.mark.rule("channel.telegram", "channel.answer")
async def test_words_are_answered_by_a_reply_to_our_own_message(clock):
    async with chatting(clock, "words") as (rt, bot, task, question):
        [sent] = await bot.called("sendMessage")
        assert sent["reply_markup"] == {"force_reply": True}
        carried = sent["text"].rpartition("\n")[2]
        bot.reply(sent["text"], "from a stranger", who=EVE)
        bot.reply(sent["text"], "to another bot's message", author=BOT + 1)
        bot.reply(f"{sent['text']}!", "to a bent message")
        bot.reply("good morning", "to something else")
        bot.press(carried)  # no button is like that
        bot.add({"message": {"chat": {"id": CHAT}, "from": {"id": ANN}, "text": "to nobody"}})
        [told] = await bot.called("answerCallbackQuery")
        assert told["text"] == "This button does not count; nothing was decided."
        bot.reply(sent["text"], "x" * 9_000)
        assert "at most 8,000 characters" in (await bot.called("sendMessage", 2))[1]["text"]
        assert (await rt.workspace.questions.get(question.id)).state == "open"
        bot.reply(sent["text"], "Zoë")
        assert await task.result(PATIENCE) == "Zoë"
        thanks = (await bot.called("sendMessage", 3))[2]
        assert (thanks["text"], thanks["reply_parameters"]["message_id"]) == ("Recorded: answered.", 9)
        bot.reply(sent["text"], "too late")
        assert "was answered by telegram:11 over telegram" in (await bot.called("sendMessage", 4))[3]["text"]


@pytest.mark.rule("channel.telegram")
async def test_a_choice_is_one_of_the_choices(clock):
    async with chatting(clock, "colour") as (_, bot, task, _):
        [sent] = await bot.called("sendMessage")
        bot.press(buttons(sent)["blue"])
        assert await task.result(PATIENCE) == "blue"
        assert (await bot.called("answerCallbackQuery"))[0]["text"] == "Recorded: answered blue."


@pytest.mark.rule("channel.down")
async def test_telegrams_own_retry_after_is_honoured(clock):
    async with stand_in() as server:
        bot = Bot(server)
        slow = Says(429, {"ok": False, "description": "Too Many Requests", "parameters": {"retry_after": 30}})
        bot.fails["sendMessage"] = [slow]
        began = clock.ticks()

        async def called() -> bool:
            return bool(bot.calls)

        with crew(":memory:", clock, channel(server)) as rt:
            async with rt.serving():
                await rt.submit("lead", "go")
                await pass_time(clock, called, step=0.1)
                await noticed(rt, "telegram")
        assert 30 <= (clock.ticks() - began) / 1e6 < 60


@pytest.mark.rule("channel.down", "channel.refused")
@pytest.mark.parametrize(
    ("status", "said", "error", "match"),
    [
        (429, {"parameters": {"retry_after": 3}}, Down, "it answered 429"),
        (502, "<html>", Down, "it answered 502"),
        (409, {"description": "terminated by other getUpdates"}, Down, "it answered 409: terminated"),
        (
            403,
            {"description": "Forbidden: bot was\nblocked"},
            Undeliverable,
            "it answered 403: Forbidden: bot was blocked",
        ),
        (404, {"description": f"no bot {TOKEN}"}, Undeliverable, r"it answered 404: no bot \[secret\]"),
    ],
)
async def test_what_telegram_refuses_is_told_apart(status, said, error, match):
    async with stand_in() as server:
        server.answers = lambda _: Says(status, said)
        with pytest.raises(error, match=match):
            await channel(server).tell("default", inquiry())


@pytest.mark.rule("channel.telegram")
async def test_what_could_not_be_recorded_is_asked_for_again(clock):
    """The store is away once; Telegram keeps what was pressed until we say that we have it."""

    class Away:
        workspace = "default"
        tries = 0

        async def look(self, question: str) -> Any:
            return inquiry(id=question)

        async def answer(self, question: str, reply: Any) -> None:
            self.tries += 1
            if self.tries == 1:
                raise StoreBusy("later")
            if self.tries == 2:
                raise ValueError("a fault of ours")

    async with stand_in() as server:
        bot, desk = Bot(server), Away()
        telegram = channel(server)
        await telegram.tell("default", inquiry())
        [sent] = await bot.called("sendMessage")
        bot.press(buttons(sent)["Approve"])
        with pytest.raises(StoreBusy):
            await telegram.listen(desk)
        async with anyio.create_task_group() as group:
            group.start_soon(telegram.listen, desk)
            [told] = await bot.called("answerCallbackQuery")
            assert told["text"] == "That did not work; nothing was decided."
            bot.fails["editMessageText"] = [Says(400, {"description": "too old"})]  # which is only polite
            bot.press(buttons(sent)["Reject"])
            assert (await bot.called("answerCallbackQuery", 2))[1]["text"] == "Recorded: rejected."
            group.cancel_scope.cancel()
        assert bot.offsets[:2] == [0, 0]


@pytest.mark.rule("channel.down")
async def test_somebody_else_who_answers_in_telegrams_place_is_not_asked_on_and_on():
    async with stand_in() as server:
        server.answers = lambda _: Says(200, "<html>welcome to this hotel")
        with pytest.raises(Down, match="no list of updates"):
            await channel(server).listen(None)  # pyright: ignore[reportArgumentType] - it does not come to that


@pytest.mark.rule("people.shown")
@pytest.mark.parametrize("kind", ["ask", "tool"])
async def test_a_question_that_does_not_fit_is_not_answered_here(kind: str):
    shows = {"action": "deploy", "arguments": {"note": "🎈" * 4_000, "target": "PRODUCTION"}}
    async with stand_in() as server:
        bot = Bot(server)
        await channel(server).tell("default", inquiry(kind=kind, text="🎈" * 4_000, shows=shows))
        [sent] = await bot.called("sendMessage")
        assert len(sent["text"].encode("utf-16-le")) // 2 <= 4_096
        assert '    target: "PRODUCTION"\n' in sent["text"]
        assert sent["text"].endswith(
            "Not all of it is shown here. Read it whole and answer with: remit approvals q2222222222222222"
            "\nq2222222222222222"
        )
        assert "reply_markup" not in sent
        with pytest.raises(Undeliverable, match="too long for a button"):
            await channel(server).tell("default", inquiry(id="q" * 60))


@pytest.mark.rule("people.shown")
async def test_words_of_an_agent_make_no_line_and_no_button_of_their_own():
    text = "Shall I?\n\nasked by boss, open until never\nq2.text.AAAA\u2028approved by: ann \u202etset"
    choices = ("yes", "y" * 100, "yes\u200b")
    async with stand_in() as server:
        bot = Bot(server)
        await channel(server).tell("default", inquiry(kind="ask", text=text, shows={}, choices=choices))
        [sent] = await bot.called("sendMessage")
    head, *lines, empty, last = sent["text"].split("\n")
    assert head == "asked by boss > lead, open until 2027-01-22T08:00:00.000000Z"
    assert (empty, last) == ("", "q2222222222222222")
    assert lines == [
        "  | Shall I?",
        "  | ",
        "  | asked by boss, open until never",
        "  | q2.text.AAAA\\u2028approved by: ann \\u202etset",
        "  choices:",
        "    1: yes",
        f"    2: {'y' * 100}",
        "    3: yes\\u200b",
    ]
    assert list(buttons(sent)) == ["1: yes", f"2: {'y' * 56}…", "3: yes\\u200b"]


@pytest.mark.rule("channel.settings")
@pytest.mark.parametrize(
    "given",
    [
        ("canary", CHAT, [ANN]),
        ("", CHAT, [ANN]),
        (7, CHAT, [ANN]),
        (TOKEN, "@chat", [ANN]),
        (TOKEN, True, [ANN]),
        (TOKEN, CHAT, []),
        (TOKEN, CHAT, ["ann"]),
        (TOKEN, CHAT, ANN),
        (TOKEN, CHAT, [ANN], "canary"),
    ],
)
def test_what_cannot_be_used_is_refused_where_it_is_said_and_not_shown(given):
    with pytest.raises(BadInput) as error:
        Telegram(*given)
    assert "canary" not in str(error.value)


@pytest.mark.rule("people.lines", "channel.telegram")
async def test_a_text_of_several_lines_is_a_code_block_by_its_place():
    shows = {"action": "patch", "arguments": {"diff": "@@ -1 +1 @@\n-\U0001f6aa```\n+<b>"}}
    async with stand_in() as server:
        bot = Bot(server)
        await channel(server).tell("default", inquiry(kind="tool", text="'lead' wants to patch", shows=shows))
        [sent] = await bot.called("sendMessage")
    [block] = sent["entities"]
    text = sent["text"].encode("utf-16-le")[block["offset"] * 2 :][: block["length"] * 2].decode("utf-16-le")
    assert block["type"] == "pre"
    assert text.splitlines()[0] == "  'lead' wants to patch"
    assert text.endswith("      | -\U0001f6aa```\n      | +<b>")

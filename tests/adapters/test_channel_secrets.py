"""Canaries: no token, secret or private address in logs at DEBUG, in the journal, in errors or in tracebacks."""

import io
import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from adapters.people import SECRET, asked, crew, inquiry, noticed
from adapters.standin import Says, stand_in
from remit.adapters.asking.secrecy import secret_reader
from remit.adapters.slack import Slack
from remit.adapters.telegram import Telegram
from remit.adapters.webhook import AnswerServer, Webhook
from remit.errors import BadInput
from remit.ports import Down, Undeliverable

pytestmark = [pytest.mark.anyio, pytest.mark.rule("channel.secret")]

TOKEN = "4242:AAcanary-token_of-the-bot"
CANARY = "canary"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All that is logged by anyone, at DEBUG, as it would be written."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield text
    root.removeHandler(handler)
    root.setLevel(before)


def channels(url: str) -> list[Any]:
    return [
        Telegram(TOKEN, 1, [2], url, poll=0),
        Webhook(f"{url}/canary-hook?key=canary%20two", SECRET, "https://ops.example"),
        Slack(f"{url}/services/canary/slack", "https://ops.example", SECRET),
    ]


def leaks(text: str) -> list[str]:
    return [line for line in text.splitlines() if CANARY in line or SECRET[6:] in line]


@pytest.mark.parametrize("status", [200, 400, 503])
async def test_logs_journal_and_errors_have_no_secret(tmp_path, clock, logged, status):
    async with stand_in() as server:
        server.answers = lambda got: Says(status, {"ok": True, "result": []}) if got else Says()
        with crew(tmp_path / "team.db", clock, *channels(server.url), AnswerServer(SECRET, port=0)) as rt:
            async with rt.serving():
                await rt.submit("lead", "go")
                question = await asked(rt)
                await server.until(lambda: len({got.path.partition("?")[0] for got in server.got}) >= 4)
                if status != 503:
                    for name in ("telegram", "webhook", "slack"):
                        await noticed(rt, name)
                told = await rt.workspace.questions.get(question.id)
                journal = repr([event.data for event in await rt.workspace.journal.history()])
    assert leaks(journal) == []
    assert leaks(repr(told)) == []
    assert "HTTP Request: POST" in logged.getvalue()  # they were logged, and their addresses were not
    assert leaks(logged.getvalue()) == []
    if status != 503:
        stored = (tmp_path / "team.db").read_bytes()
        assert TOKEN.encode() not in stored
        assert b"canary" not in stored


@pytest.mark.parametrize("which", [0, 1, 2])
async def test_errors_and_tracebacks_have_no_secret_even_with_locals(which, logged):
    for url, answers in (("http://127.0.0.1:9", None), ("", Says(400)), ("", Says(503))):
        async with stand_in() as server:
            if answers is not None:
                server.answers = lambda _, answers=answers: answers
            channel = channels(url or server.url)[which]
            with pytest.raises((Down, Undeliverable)) as caught:
                await channel.tell("default", inquiry())
        error = caught.value
        assert (error.__cause__, error.__context__) == (None, None)
        seen = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        assert leaks(seen.replace(__file__, "")) == []
        logging.getLogger("remit").error("%r", error, exc_info=error)
    assert leaks(logged.getvalue()) == []


async def test_channels_show_nothing_of_themselves():
    for channel in [*channels("http://127.0.0.1:9"), AnswerServer(SECRET)]:
        assert leaks(f"{channel!r} {channel}") == []
        assert leaks(repr(list(vars(channel).values()))) == []
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
            pickle.dumps(channel)


async def test_an_error_that_the_client_logs_has_no_secret_either(logged):
    channel = channels("http://127.0.0.1:9")[0]
    for name in ("httpx", "httpcore.http11"):
        error = ValueError(f"https://api.telegram.org/bot{TOKEN}/sendMessage")
        logging.getLogger(name).error("request of %s", f"bot{TOKEN}", exc_info=error)
    del channel
    assert "ValueError: https://api.telegram.org/bot[secret]/sendMessage" in logged.getvalue()
    assert leaks(logged.getvalue()) == []
    logging.getLogger("httpx").info("of others nothing is hidden: %s", "http://example.com/hook")
    assert "http://example.com/hook" in logged.getvalue()


def test_a_secret_is_text_or_reveals_itself():
    class Kept:
        def reveal(self) -> str:
            return CANARY

    assert secret_reader(Kept(), "it")() == secret_reader(CANARY, "it")() == CANARY
    for wrong in ("", 7, None, object()):
        with pytest.raises(BadInput, match="it "):
            secret_reader(wrong, "it")


async def test_nothing_is_told_before_anyone_serves(clock):
    async with stand_in() as server:
        with crew(":memory:", clock, *channels(server.url)):
            await anyio.lowlevel.checkpoint()
        assert server.got == []

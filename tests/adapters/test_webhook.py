"""Webhooks: signed as the standard has it, told until taken, and answered by links that count once."""

import base64
import os
import re
import sys
from contextlib import AsyncExitStack
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import pytest
import standardwebhooks

from adapters.people import SECRET, asked, crew, inquiry, noticed
from adapters.standin import Says, StandIn, raw, request, stand_in
from engine.helping import PATIENCE, sound
from remit import Runtime
from remit.adapters.asking.links import Links, options
from remit.adapters.asking.server import MOST, page
from remit.adapters.webhook import AnswerServer, Webhook
from remit.engine.system import TimedIds
from remit.errors import BadInput, StoreBusy
from remit.ports import Down, Undeliverable
from remit.testing import FakeClock, pass_time

pytestmark = pytest.mark.anyio

FORM = b"application/x-www-form-urlencoded"


async def requests(clock: FakeClock, server: StandIn, count: int) -> None:
    """Let time pass until so many requests have come."""

    async def have_come() -> bool:
        return len(server.got) >= count

    await pass_time(clock, have_come, step=0.05)


# -- telling --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("channel.signed", "channel.down")
async def test_a_question_is_delivered_after_three_times_503_signed_and_with_the_same_id(tmp_path, clock):
    async with stand_in() as server:
        server.answers = lambda _: Says(503 if len(server.got) <= 3 else 200)
        with crew(tmp_path / "team.db", clock, Webhook(f"{server.url}/hook", SECRET, "https://ops.example")) as rt:
            async with rt.serving():
                task = await rt.submit("lead", "go")
                question = await asked(rt)
                await requests(clock, server, 4)
                assert (await noticed(rt, "webhook"))["ref"] == question.id
                assert len(server.got) == 4
                assert {got.headers["webhook-id"] for got in server.got} == {question.id}
                for got in server.got:
                    standardwebhooks.Webhook(SECRET).verify(got.body, got.headers)
                await rt.workspace.questions.approve(question.id, by="ann")
                assert await task.result(PATIENCE) == "deploy <b>now</b> & here"
            await sound(rt)
        got = server.got[-1]
        assert (got.method, got.path) == ("POST", "/hook")
        said = got.json
        assert said["type"] == "question.asked"
        data = said["data"]
        assert data["question"] == question.id
        assert (data["kind"], data["agent"], data["chain"]) == ("hop", "lead", "lead")
        assert data["text"] == "'lead' wants to ask 'deployer': deploy <b>now</b> & here"
        assert data["shows"]["tools"] == ["ssh"]
        assert data["until"].endswith("Z")
        assert [(one["choice"], one["label"]) for one in data["links"]] == [
            ("approve", "Approve"),
            ("reject", "Reject"),
        ]
        assert data["links"][0]["url"].startswith("https://ops.example/answer?w=default&q=")


LIFE = """
import sys, anyio
from adapters.people import SECRET, crew
from remit.adapters.webhook import Webhook
from remit.engine.system import SystemClock, TimedIds

async def main():
    with crew(sys.argv[1], SystemClock(), Webhook(sys.argv[2], SECRET), ids=TimedIds()) as rt:
        async with rt.serving():
            await rt.submit("lead", "go")
            await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.rule("channel.one", "channel.down")
async def test_a_process_that_is_killed_while_it_tells_is_followed_by_another_with_the_same_id(tmp_path):
    """kill -9, with the request under way: another process notices, claims it, and tells it under the same id."""
    never = anyio.Event()

    async def answers(_: Any) -> Says:
        if len(server.got) == 1:
            await never.wait()
        return Says()

    tests = str(Path(__file__).parent.parent)
    async with stand_in() as server:
        server.answers = answers
        command = [sys.executable, "-c", LIFE, str(tmp_path / "team.db"), f"{server.url}/hook"]
        life = await anyio.open_process(command, env={**os.environ, "PYTHONPATH": tests}, stderr=None, stdout=None)
        async with life:
            await server.until(lambda: server.got)
            life.kill()
            await life.wait()
        heir = crew(tmp_path / "team.db", None, Webhook(f"{server.url}/hook", SECRET), ids=TimedIds())
        with heir:
            async with heir.serving():
                await server.until(lambda: len(server.got) == 2)
                assert (await noticed(heir, "webhook"))["ref"] == server.got[0].headers["webhook-id"]
                kinds = [event.kind for event in await heir.workspace.journal.history()]
            await sound(heir)
        assert kinds.count("notice.claimed") == 2
        assert len(server.got) == 2
        assert len({got.headers["webhook-id"] for got in server.got}) == 1


@pytest.mark.rule("channel.signed")
@pytest.mark.parametrize("secret", [SECRET, SECRET.removeprefix("whsec_"), SECRET.rstrip("=")])
async def test_the_secret_may_be_written_with_and_without_its_prefix(secret):
    class Kept:
        def reveal(self) -> str:
            return secret

    async with stand_in() as server:
        for given in (secret, Kept()):
            assert await Webhook(server.url, given).tell("default", inquiry()) == "q2222222222222222"
        for got in server.got:
            assert standardwebhooks.Webhook(secret).verify(got.body, got.headers)["data"]["links"] == []
            with pytest.raises(standardwebhooks.webhooks.WebhookVerificationError):
                standardwebhooks.Webhook(base64.b64encode(b"x" * 32).decode()).verify(got.body, got.headers)


@pytest.mark.rule("channel.refused")
@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 410, 422])
async def test_what_trying_again_does_not_help_is_refused_for_good(status):
    async with stand_in() as server:
        server.answers = lambda _: Says(status)
        with pytest.raises(Undeliverable, match=f"it answered {status}"):
            await Webhook(server.url, SECRET).tell("default", inquiry())


@pytest.mark.rule("channel.down")
@pytest.mark.parametrize(
    ("status", "said", "wait"), [(503, "", None), (500, "soon", None), (429, "7", 7.0), (408, "0", 0.0)]
)
async def test_what_may_pass_is_down_and_says_how_long(status, said, wait):
    async with stand_in() as server:
        server.answers = lambda _: Says(status, headers=(("Retry-After", said),) if said else ())
        with pytest.raises(Down) as down:
            await Webhook(server.url, SECRET).tell("default", inquiry())
        assert down.value.retry_after == wait


@pytest.mark.rule("channel.down")
async def test_nobody_there_and_nonsense_are_down(unused_port: int):
    with pytest.raises(Down, match=r"it cannot be reached \(ConnectError\)"):
        await Webhook(f"http://127.0.0.1:{unused_port}/hook", SECRET).tell("default", inquiry())
    async with stand_in() as server:
        server.answers = lambda _: Says(200, "x" * 2_000_000)  # more than anyone reads, and taken all the same
        await Webhook(server.url, SECRET).tell("default", inquiry())


@pytest.mark.rule("channel.down")
async def test_with_every_channel_unreachable_the_question_is_kept_and_answered_by_hand(clock, unused_port):
    webhook = Webhook(f"http://127.0.0.1:{unused_port}/hook", SECRET)
    other = Webhook(f"http://127.0.0.1:{unused_port}/other", SECRET, name="other")
    with crew(":memory:", clock, webhook, other) as rt:
        async with rt.serving():
            task = await rt.submit("lead", "go")
            question = await asked(rt)
            assert question.notices == ()
            await rt.workspace.questions.approve(question.id, by="ann", channel="terminal")
            assert await task.result(PATIENCE) == "deploy <b>now</b> & here"


@pytest.mark.rule("channel.settings")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Webhook("", SECRET),
        lambda: Webhook("ftp://canary.example/x", SECRET),
        lambda: Webhook("https://user:canary@example.com/x", SECRET),
        lambda: Webhook("https://example.com/canary x", SECRET),
        lambda: Webhook("https://[canary/x", SECRET),
        lambda: Webhook("https://example.com:canary/x", SECRET),
        lambda: Webhook("https://example.com/x", "canary"),
        lambda: Webhook("https://example.com/x", "canary! is no base64 at all, it is only text"),
        lambda: Webhook("https://example.com/x", 7),  # pyright: ignore[reportArgumentType]
        lambda: Webhook("https://example.com/x", SECRET, "example.com/canary"),
        lambda: Webhook("https://example.com/x", SECRET, "https://example.com/?canary"),
        lambda: AnswerServer("canary"),
        lambda: AnswerServer(SECRET, port=70_000),
    ],
)
def test_what_cannot_be_used_is_refused_where_it_is_said_and_not_shown(make):
    with pytest.raises(BadInput) as error:
        make()
    assert "canary" not in str(error.value)


def test_without_the_client_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(BadInput, match=r"install remit\[channels\]"):
        Webhook("https://example.com/x", SECRET)


# -- links ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def unused_port() -> int:
    import socket  # noqa: PLC0415 - for this one

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.rule("channel.token")
def test_a_token_counts_for_one_choice_of_one_question_as_it_was_asked():
    links, one = Links(SECRET), inquiry()
    token = links.token("default", one, "approve")
    assert len(base64.urlsafe_b64decode(token + "=")) == 20
    assert links.verified("default", one, "approve", token) == options(one)[:1]
    for workspace, question, code, given in (
        ("other", one, "approve", token),
        ("default", one, "reject", token),
        ("default", one, "approve", token[:-1]),
        ("default", one, "approve", ""),
        ("default", one, "approve", "é\ud800"),
        ("default", inquiry(id="q3"), "approve", token),
        ("default", inquiry(digest="other"), "approve", token),
        ("default", inquiry(until=one.until + 1), "approve", token),
        ("default", one, "else", links.token("default", one, "else")),
    ):
        assert links.verified(workspace, question, code, given) == ()
    assert Links(base64.b64encode(b"y" * 32).decode()).verified("default", one, "approve", token) == ()


@pytest.mark.rule("channel.token")
def test_parts_of_a_token_cannot_be_shifted_from_one_to_the_next():
    links = Links(SECRET)
    assert links.token("ab", inquiry(id="c"), "x") != links.token("a", inquiry(id="bc"), "x")


class Office:
    """A team that asks, and the links to answer it by."""

    def __init__(self, rt: Runtime, server: AnswerServer, task: Any, question: Any) -> None:
        self.rt, self.task, self.question = rt, task, question
        self.port = server.port
        self.links = Links(SECRET, f"http://127.0.0.1:{server.port}")

    def url(self, code: str, **other: str) -> str:
        url = self.links.url("default", self.question, code)
        fields = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        return f"{url.partition('?')[0]}?{urlencode(fields | other)}"

    async def post(self, code: str, **other: str) -> tuple[int, str]:
        url, _, query = self.url(code, **other).partition("?")
        status, _, text = await request(url, "POST", query.encode())
        return status, unescape(text)

    async def is_open(self) -> bool:
        return (await self.rt.workspace.questions.get(self.question.id)).state == "open"


@pytest.fixture
async def office(clock, request: pytest.FixtureRequest):
    server = AnswerServer(SECRET, port=0)
    with crew(":memory:", clock, server, short="ask") as rt:
        async with rt.serving():
            task = await rt.submit("lead", getattr(request, "param", "go"), credits="$0.03")
            question = await asked(rt)
            await server.ready.wait()
            yield Office(rt, server, task, question)


@pytest.mark.rule("channel.get")
async def test_fetching_a_link_decides_nothing_and_its_page_is_harmless(office: Office):
    await request(office.url("approve"))
    status, headers, text = await request(office.url("approve"))
    assert status == 200
    assert "deploy &lt;b&gt;now&lt;/b&gt; &amp; here" in text
    assert "<b>" not in text
    assert '<form method="post">' in text
    assert "script" not in text
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert (headers["referrer-policy"], headers["x-frame-options"]) == ("no-referrer", "DENY")
    assert headers["cache-control"] == "no-store"
    status, headers, text = await request(office.url("approve"), "HEAD")
    assert (status, text) == (200, "")
    assert int(headers["content-length"]) > 100
    assert await office.is_open()


@pytest.mark.rule("channel.get", "channel.answer")
async def test_the_form_of_the_page_decides_and_the_second_press_is_told_who_did(office: Office):
    _, _, text = await request(office.url("approve"))
    fields = dict(re.findall(r'name="(\w)" value="([^"]*)"', text))
    filled = urlencode({name: unescape(value) for name, value in fields.items()} | {"name": "ann", "said": "fine"})
    url = f"http://127.0.0.1:{office.port}/answer"
    status, _, text = await request(url, "POST", filled.encode())
    assert (status, "Recorded" in text) == (200, True)
    assert await office.task.result(PATIENCE) == "deploy <b>now</b> & here"
    found = await office.rt.workspace.questions.get(office.question.id)
    assert (found.state, found.by, found.channel, found.why) == ("approved", "link:ann", "answers", "fine")
    status, told = await office.post("reject")
    assert status == 409
    assert f"question {office.question.id} was approved by link:ann over answers at" in told
    status, _, text = await request(office.url("approve"))
    assert (status, "approved by link:ann over answers" in text, "<form" in text) == (200, True, False)


@pytest.mark.rule("channel.token")
async def test_a_token_that_is_not_for_this_is_refused_and_the_question_stays_open(office: Office):
    links = office.links
    forged = Links(base64.b64encode(b"z" * 32).decode()).token("default", office.question, "approve")
    for code, other in (
        ("approve", {"t": forged}),
        ("approve", {"t": links.token("default", office.question, "reject")}),
        ("reject", {"c": "approve"}),
        ("approve", {"t": ""}),
        ("approve", {"q": "q2222222222222999"}),
        ("approve", {"q": ""}),
        ("approve", {"w": "other"}),
        ("approve", {"w": "other", "t": links.token("other", office.question, "approve")}),
    ):
        for ask in (office.post(code, **other), request(office.url(code, **other))):
            status, *_, text = await ask
            assert (status, "does not count" in text) == (403, True)
    assert await office.is_open()


@pytest.mark.rule("channel.token")
async def test_a_link_that_has_expired_is_refused(office: Office, clock):
    clock.jump(8 * 86_400)
    status, told = await office.post("approve")
    assert (status, "has expired at" in told) == (409, True)
    assert (await office.rt.workspace.questions.get(office.question.id)).state in ("open", "expired")


@pytest.mark.rule("channel.answer")
@pytest.mark.parametrize("office", ["words"], indirect=True)
async def test_words_are_answered_by_the_form(office: Office):
    status, _, text = await request(office.url("text"))
    assert (status, "<textarea" in text) == (200, True)
    status, told = await office.post("text", said="")
    assert (status, "an answer must not be empty" in told) == (422, True)
    assert await office.is_open()
    status, _ = await office.post("text", said="Zoë\r\nand Ann")
    assert status == 200
    assert await office.task.result(PATIENCE) == "Zoë\nand Ann"
    assert (await office.rt.workspace.questions.get(office.question.id)).by == "link"


@pytest.mark.rule("channel.answer", "money.short")
@pytest.mark.parametrize("office", ["money"], indirect=True)
async def test_another_amount_of_money_is_given_by_the_form(office: Office):
    _, _, text = await request(office.url("approve"))
    assert "Another amount" in text
    status, told = await office.post("approve", said="0.01USD")
    assert (status, "needs at least $0.02, not $0.01" in told) == (422, True)
    assert (await office.post("approve", said="0.20USD"))[0] == 200
    assert await office.task.result(PATIENCE) == "bought"
    assert (await office.rt.workspace.questions.get(office.question.id)).value == "$0.20"


@pytest.mark.rule("channel.answer")
@pytest.mark.parametrize("office", ["colour"], indirect=True)
async def test_a_choice_is_answered_by_its_own_link(office: Office):
    assert (await office.post("2", t=office.links.token("default", office.question, "2")))[0] == 403
    assert (await office.post("1"))[0] == 200
    assert await office.task.result(PATIENCE) == "blue"


@pytest.mark.rule("channel.server")
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"GET /answer HTTP/2\r\n\r\n", 400),
        (b"GET http://x/answer HTTP/1.1\r\n\r\n", 400),
        (b"GET /else HTTP/1.1\r\n\r\n", 404),
        (b"GET /answer HTTP/1.1\r\n\r\n", 403),
        (b"GET /answer?w=default&w=other HTTP/1.1\r\n\r\n", 400),
        (b"GET /answer?" + b"a=1&" * 20 + b" HTTP/1.1\r\n\r\n", 400),
        (b"GET /answer?w=default&q=%ff HTTP/1.1\r\n\r\n", 400),
        (b"DELETE /answer HTTP/1.1\r\n\r\n", 405),
        (b"GET /answer HTTP/1.1\r\nx: " + b"y" * 40_000 + b"\r\n\r\n", 431),
        (b"POST /answer HTTP/1.1\r\n\r\n", 411),
        (b"POST /answer HTTP/1.1\r\nbent\r\n\r\n", 400),
        (b"POST /answer HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 411),
        (b"POST /answer HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (b"POST /answer HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n", 411),
        (b"POST /answer HTTP/1.1\r\ncontent-length: 9999999\r\n\r\n", 413),
        (b"POST /answer HTTP/1.1\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}", 415),
        (b"POST /answer HTTP/1.1\r\ncontent-length: 1\r\ncontent-type: " + FORM + b"\r\n\r\n\xff", 400),
    ],
)
async def test_what_is_no_request_that_means_one_thing_is_refused(office: Office, sent, status):
    assert (await raw("127.0.0.1", office.port, sent))[0] == status
    assert await office.is_open()


@pytest.mark.rule("channel.server")
async def test_a_silent_client_is_not_waited_for(clock):
    server = AnswerServer(SECRET, port=0, timeout=0.05)
    with crew(":memory:", clock, server) as rt:
        async with rt.serving():
            await server.ready.wait()
            assert await raw("127.0.0.1", server.port, b"GET /answer HTTP/1.1\r\n") == (0, {}, "")
            assert (await raw("127.0.0.1", server.port, b"GET /answer HTTP/1.1\r\n\r\n"))[0] == 403


@pytest.mark.rule("channel.server")
@pytest.mark.parametrize("sent", [b"", b"GET /ans", b"GET /answer HTTP/1.1\r\n", b"POST /answer HTTP/1.1\r\n"])
async def test_peers_that_keep_us_waiting_are_bounded_and_keep_nobody_out(clock, sent: bytes):
    server = AnswerServer(SECRET, port=0, timeout=3_600)
    with crew(":memory:", clock, server) as rt:
        async with rt.serving(), AsyncExitStack() as peers:
            await server.ready.wait()
            silent = [
                await peers.enter_async_context(await anyio.connect_tcp("127.0.0.1", server.port))
                for _ in range(2 * MOST)
            ]
            for peer in silent[MOST:]:
                await peer.send(sent or b" ")
            assert (await raw("127.0.0.1", server.port, b"GET /answer HTTP/1.1\r\n\r\n"))[0] == 403
            with anyio.fail_after(PATIENCE), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await silent[0].receive()  # it has made room


@pytest.mark.rule("channel.server")
async def test_peers_that_do_not_read_their_page_keep_nobody_out(clock):
    class LongPage:
        workspace = "default"

        async def look(self, question: str) -> Any:
            return inquiry(id=question, text="x" * 8_000_000)

    server = AnswerServer(SECRET, port=0, timeout=3_600)
    async with anyio.create_task_group() as group, AsyncExitStack() as peers:
        group.start_soon(server.listen, LongPage())
        await server.ready.wait()
        url = Links(SECRET, "http://a").url("default", inquiry(text="x" * 8_000_000), "approve")
        for _ in range(MOST):
            peer = await peers.enter_async_context(await anyio.connect_tcp("127.0.0.1", server.port))
            await peer.send(f"GET {url.removeprefix('http://a')} HTTP/1.1\r\n\r\n".encode())
            await peer.receive(1)  # its page has begun
        assert (await raw("127.0.0.1", server.port, b"GET / HTTP/1.1\r\n\r\n"))[0] == 404
        group.cancel_scope.cancel()


@pytest.mark.rule("channel.server")
async def test_what_could_not_be_recorded_is_said_and_nothing_of_why():
    class Away:
        workspace = "default"
        error: Exception = StoreBusy("canary")

        async def look(self, question: str) -> Any:
            return inquiry(id=question)

        async def answer(self, question: str, reply: Any) -> None:
            raise self.error

    server, desk = AnswerServer(SECRET, port=0), Away()
    async with anyio.create_task_group() as group:
        group.start_soon(server.listen, desk)
        await server.ready.wait()
        url, _, query = (
            Links(SECRET, f"http://127.0.0.1:{server.port}").url("default", inquiry(), "approve").partition("?")
        )
        status, _, text = await request(url, "POST", query.encode())
        assert (status, "try again in a moment" in text, "canary" in text) == (503, True, False)
        desk.error = ValueError("canary")
        status, _, text = await request(url, "POST", query.encode())
        assert (status, "Nothing was decided" in text, "canary" in text) == (500, True, False)
        group.cancel_scope.cancel()


@pytest.mark.rule("channel.server")
async def test_a_port_that_is_taken_is_waited_for(clock):
    first = AnswerServer(SECRET, port=0)
    with crew(":memory:", clock, first) as rt:
        async with rt.serving():
            await first.ready.wait()
            second = AnswerServer(SECRET, port=first.port)
            with pytest.raises(Down, match=f"port {first.port} of 127.0.0.1 cannot be had"):
                await second.listen(None)  # pyright: ignore[reportArgumentType] - it does not come to that
    assert repr(first) == f"<AnswerServer at 127.0.0.1:{first.port}>"


def test_all_that_is_on_the_page_is_escaped():
    bad = "\"><script>alert('x')</script>"
    one = inquiry(kind="ask", text=bad, agent=bad, chain=bad, choices=(bad,), shows={bad: bad, "list": [bad]}, id=bad)
    html = page(bad, one, [(one_, bad) for one_ in options(one)])
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 8
    assert "\u202e" not in page("w", inquiry(text="\u202e"), [])


@pytest.mark.rule("people.shown", "channel.token")
async def test_the_page_that_shows_a_question_whole_has_all_its_answers_and_is_none_itself(office: Office):
    status, _, text = await request(office.url("look"))
    assert status == 200
    assert re.findall("<button>(.*?)</button>", text) == ["Approve", "Reject"]
    for code in ("approve", "reject"):
        assert f'value="{office.links.token("default", office.question, code)}"' in text
    assert (await office.post("look"))[0] == 422
    assert (await office.post("approve", t=office.links.token("default", office.question, "look")))[0] == 403
    assert await office.is_open()
    assert (await office.post("approve"))[0] == 200


@pytest.mark.rule("people.lines", "channel.get")
def test_a_diff_is_coloured_on_the_page_and_stays_text():
    shows = {"action": "patch", "arguments": {"diff": "@@ -1 +1 @@\n-<b>\n+<i>"}}
    html = page("w", inquiry(kind="tool", shows=shows), [])
    assert 'class="quoted place" style="margin-left:3.0em">| @@ -1 +1 @@</div>' in html
    assert 'class="quoted removed" style="margin-left:3.0em">| -&lt;b&gt;</div>' in html
    assert 'class="quoted added" style="margin-left:3.0em">| +&lt;i&gt;</div>' in html

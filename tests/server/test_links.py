"""Links of questions, answered by the server at /answer: with their token and without a key."""

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from adapters.people import SECRET, asked, crew
from remit import Runtime
from remit.adapters.asking.links import Links
from remit.adapters.webhook import AnswerServer
from remit.runtime.workspace import opening_of
from remit.server.app import Server, ServerSettings, create_app
from remit.server.tenants import Tenants
from remit.testing import FakeClock
from server.serving import ADDRESS, Keys

pytestmark = pytest.mark.anyio
OTHER_SECRET = "b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXI="


def app_with(rt: Runtime, *answers: AnswerServer) -> Server:
    tenants = Tenants(opening_of(rt.workspace).database, (rt.workspace,))
    return create_app(tenants, Keys(), ServerSettings(hosts=frozenset(("remit.test",))), answers=answers)


def client(app: Server) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url=ADDRESS)


def fields(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


@pytest.mark.rule("channel.route")
async def test_a_link_is_answered_at_the_server_by_its_form_only(clock: FakeClock):
    other, answers = AnswerServer(OTHER_SECRET, port=None, name="other"), AnswerServer(SECRET, port=None)
    links = Links(SECRET, ADDRESS)
    with crew(":memory:", clock, other, answers) as rt:
        async with client(app_with(rt, other, answers)) as http, rt.serving():
            task = await rt.submit("lead", "go")
            question = await asked(rt)
            await answers.ready.wait()
            url = links.url("default", question, "approve")
            assert urlsplit(url).path == "/answer"
            got = await http.get(url)
            assert got.status_code == 200
            assert "deploy &lt;b&gt;now" in got.text
            assert got.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
            assert (got.headers["x-frame-options"], got.headers["cache-control"]) == ("DENY", "no-store")
            assert (await rt.workspace.questions.get(question.id)).state == "open"
            wrong = fields(url) | {"t": "0" * 43}
            assert (await http.post("/answer", data=wrong)).status_code == 403
            # A page without referrer sends `Origin: null` with its form.
            done = await http.post("/answer", data=fields(url) | {"name": "ann"}, headers={"origin": "null"})
            assert (done.status_code, "Recorded" in done.text) == (200, True)
            assert (await http.post("/answer", data=fields(url))).status_code == 409
            assert (await task.wait()).ok
            assert (await rt.workspace.questions.get(question.id)).by == "link:ann"


@pytest.mark.rule("channel.route")
async def test_what_is_no_link_is_refused_and_says_nothing(clock: FakeClock):
    answers = AnswerServer(SECRET, port=None)
    assert repr(answers) == "<AnswerServer>"
    with crew(":memory:", clock, answers) as rt:
        async with client(app_with(rt, answers)) as http:
            assert (await http.get("/answer")).status_code == 403  # also before the team serves
            async with rt.serving():
                await answers.ready.wait()
                assert (await http.get("/answer?w=default&q=q1&c=approve&t=x")).status_code == 403
                assert (await http.get("/answer?q=a&q=b")).status_code == 400
                assert (await http.put("/answer")).status_code == 405
                assert (await http.post("/answer", json={})).status_code == 415
                assert (await http.get("/answer", headers={"host": "evil.test"})).status_code == 403
                big = await http.post("/answer", data={"said": "x" * 200_000})
                assert (big.status_code, big.json()["code"]) == (413, "too-large")
        async with client(app_with(rt)) as http:
            assert (await http.get("/answer")).status_code == 404

"""Programs that ask models through the gateway: under their task's remit, paid, recorded, and without a key."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from adapters.gateway.asking import KEY, SYSTEM, asking, words
from engine.helping import sound
from remit import Bounds, Card, Runtime, Turn
from remit.adapters.gateway.verbs import MemberVerbs
from remit.adapters.process import program
from remit.core.prices import Usage
from remit.errors import BadInput, Failed
from remit.testing.models import Calls, Cut, Fails, ModelServer, Says, Slow, model_server
from remit.testing.models.server import Script

pytestmark = pytest.mark.anyio

assert MemberVerbs  # loaded here: pytest rewrites the asserts of what a test loads, which takes long
ASK = "print(json.dumps(ask(task)))"


@pytest.fixture(autouse=True)
def real_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REAL_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", "sk-other-key-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")


@asynccontextmanager
async def team(script: Script, code: str = ASK, **how: Any) -> AsyncGenerator[tuple[Runtime, ModelServer]]:
    """A team of one program, `porter`, whose models are scripted."""
    async with model_server(script) as server, Runtime(system=SYSTEM) as rt:
        given: dict[str, Any] = {
            "gateway": ["anthropic:claude-x", "anthropic:claude-y", "openai:gpt-x"],
            "keys": {"anthropic": ["REAL_KEY"], "openai": ["REAL_KEY"]},
            "base_url": {"anthropic": server.url, "openai": f"{server.url}/v1"},
        }
        card = {"asks": "*", **how.pop("card", {})}
        rt.add(Card("porter", **card), program(asking(code), **{**given, **how}))
        yield rt, server
        await sound(rt)


@pytest.mark.rule("gateway.money", "gateway.key")
async def test_a_program_asks_a_model_and_its_task_pays():
    code = "print(json.dumps([ask(task), dict(os.environ)]))"
    async with team([Says("hello", usage=(100, 50))], code) as (rt, server):
        answer, environment = json.loads(await rt.run("porter", "say hello", credits="$0.50"))
        assert words(answer) == "hello"
        assert (await rt.workspace.money.spend()).total.credits == 200  # 100 tokens at $1 and 50 at $2 a million
        assert not await rt.workspace.money.uncertain()
        assert server.requests[0].key == KEY
    assert KEY not in json.dumps(environment)
    assert "sk-of-the-environment" not in json.dumps(environment)


@pytest.mark.rule("gateway.money", "gateway.usage")
@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_kept_in_a_cache_for_an_hour_is_paid_as_that(stream: bool):
    usage = Usage(1_000, 50, cached_input=100, cache_written=700, cache_written_1h=400)
    async with team([Says("hello", usage=usage)], f"print(json.dumps(ask(task, stream={stream})))") as (rt, _):
        await rt.run("porter", "say hello", credits="$0.50")
        assert (await rt.workspace.money.spend()).total.credits == 200 + 10 + 375 + 800 + 100
        (answered,) = [one for one in await rt.workspace.journal.history() if one.kind == "model.answered"]
        assert answered.data["usage"] == {
            "input": 1_000,
            "output": 50,
            "cached_input": 100,
            "cache_written": 700,
            "cache_written_1h": 400,
        }


@pytest.mark.rule("gateway.money")
async def test_a_request_that_cannot_be_paid_stops_the_program_with_the_sentence():
    code = "status, body = ask(task)\nprint(body, file=sys.stderr)\nsys.exit(1)"
    async with team([], code) as (rt, server):
        with pytest.raises(Failed, match=r"'porter' may not pay for this"):
            await rt.run("porter", "say hello", credits="$0.001")
        assert not server.requests


async def test_a_program_that_fails_silently_fails_with_the_sentence_of_the_refusal():
    async with team([], "ask(task)\nsys.exit(3)") as (rt, _):
        with pytest.raises(
            Failed,
            match="exit code 3 and said nothing; its last model request had no answer: 'porter' may not pay",
        ):
            await rt.run("porter", "say hello", credits="$0.001")


@pytest.mark.rule("gateway.limit")
async def test_less_money_lowers_the_limit_of_an_answer_but_not_below_what_makes_sense():
    async with team([Says("a"), Says("b")]) as (rt, server):
        await rt.run("porter", "x", credits="$0.5")
        await rt.run("porter", "x", credits="$0.01")
        assert server.requests[0].body["max_tokens"] == 8_000
        assert 4_096 <= server.requests[1].body["max_tokens"] < 5_000
        refused = json.loads(await rt.run("porter", "x", credits="$0.008"))
        assert refused[0] == 400


@pytest.mark.rule("gateway.money")
async def test_the_next_request_finds_the_last_one_paid():
    code = "print(json.dumps([ask(f'{task} {number}', stream=True)[0] for number in range(40)]))"
    async with team(lambda asked: Says(str(asked.body["messages"]), usage=(10, 10)), code, max_tokens=4_096) as (
        rt,
        server,
    ):
        statuses = json.loads(await rt.run("porter", "x", credits="$0.012"))  # 1.4 times what one request holds
        assert statuses == [200] * 40
        assert len(server.requests) == 40


@pytest.mark.rule("gateway.models")
async def test_a_model_that_the_member_may_not_ask_is_refused():
    async with team([], "print(json.dumps(ask(task, model='opus')))") as (rt, _):
        status, body = json.loads(await rt.run("porter", "x"))
        assert status == 400
        assert json.loads(body)["error"]["message"] == (
            "the model 'opus' is not one that may be asked: claude-x, claude-y"
        )


async def test_any_model_may_be_asked_with_true():
    async with team([Says("hi")], "print(json.dumps(ask(task, model='opus')))", gateway=True) as (rt, server):
        assert words(json.loads(await rt.run("porter", "x"))) == "hi"
        assert server.requests[0].model == "opus"


@pytest.mark.rule("gateway.models")
async def test_the_models_are_listed():
    async with team([], "print(json.dumps(send('/v1/models', None, method='GET')))") as (rt, _):
        _, body = json.loads(await rt.run("porter", "x"))
        assert [one["id"] for one in json.loads(body)["data"]] == ["claude-x", "claude-y", "gpt-x"]


COUNT = """
hi = {"model": "claude-x", "messages": [{"role": "user", "content": "x" * 3000}]}
before = send("/v1/messages/count_tokens", hi)
ask("x" * 3000)
print(json.dumps([before, send("/v1/messages/count_tokens", hi), send("/v1beta/models/gemini-x:countTokens", hi)]))
"""


@pytest.mark.rule("gateway.count")
async def test_tokens_are_estimated_without_a_provider():
    async with team([Says("hi", usage=(700, 1))], COUNT) as (rt, server):
        before, after, google = json.loads(await rt.run("porter", "x"))
        assert len(server.requests) == 1
    assert 1_000 < json.loads(before[1])["input_tokens"] < 1_100
    assert 690 < json.loads(after[1])["input_tokens"] < 1_100, "the last real count helps"
    assert json.loads(google[1]).keys() == {"totalTokens"}


@pytest.mark.rule("gateway.providers")
async def test_a_provider_that_has_enough_is_worked_off_inside():
    script = [Fails(429, retry_after=3600), Fails(401), Says("from the other model")]
    async with team(script, keys={"anthropic": ["REAL_KEY", "OTHER_KEY"]}) as (rt, server):
        assert words(json.loads(await rt.run("porter", "x"))) == "from the other model"
        assert [(one.model, one.key) for one in server.requests] == [
            ("claude-x", KEY),
            ("claude-x", "sk-other-key-0123456789"),
            ("claude-y", KEY),
        ]


@pytest.mark.rule("gateway.providers", "gateway.refusal")
async def test_if_no_model_answers_the_program_is_told_once():
    script = [Fails(429, retry_after=7200), Fails(500), Fails(500), Fails(500), Fails(500), Fails(500)]
    code = "import time\nprint(json.dumps(ask(task)))"
    async with team(script, code, gateway=["anthropic:claude-x"]) as (rt, server):
        status, body = json.loads(await rt.run("porter", "x"))
        assert status == 400
        assert "no model answered" in json.loads(body)["error"]["message"]
        assert len(server.requests) == 1


@pytest.mark.rule("gateway.providers")
async def test_a_request_that_is_wrong_itself_gets_the_words_of_its_provider():
    async with team([Fails(400, message="prompt is too long: 9 tokens > 8 maximum")]) as (rt, server):
        status, body = json.loads(await rt.run("porter", "x", credits="$0.5"))
        assert status == 400
        assert json.loads(body)["error"]["message"] == "prompt is too long: 9 tokens > 8 maximum"
        assert len(server.requests) == 1
        assert (await rt.workspace.money.spend()).total.credits == 0


@pytest.mark.rule("gateway.cut")
async def test_an_answer_that_breaks_off_is_uncertain_by_no_more_than_was_passed_on():
    half = Cut(Says("z" * 4_000, usage=Usage(1_000, 900, 600)))
    async with team([half], "print(json.dumps(ask(task, stream=True)))") as (rt, _):
        status, body = json.loads(await rt.run("porter", "x", credits="$0.5"))
        assert status == 200
        assert "event: error" in body
        assert '"type":"api_error"' in body, "at which programs ask again"
        assert "message_stop" not in body
        (hold,) = await rt.workspace.money.uncertain()
        assert hold.amounts["credits"] == 400 + 600 // 10 + 2 * body.count("z")


@pytest.mark.rule("gateway.recorded-first")
async def test_an_answer_is_on_record_before_the_program_has_all_of_it():
    async with team([Calls("Bash", {"command": "ls"})], "print(json.dumps(ask(task, stream=True)))") as (rt, _):
        await rt.run("porter", "x")
        (answered,) = [one for one in await rt.workspace.journal.history() if one.kind == "model.answered"]
        assert answered.data["calls"] == ["Bash"]
        assert '"arguments\\":\\"{\\\\\\"command' in (answered.answer or ""), "with the arguments of its calls"


@pytest.mark.rule("gateway.cut")
async def test_a_cancelled_task_cuts_its_requests():
    async with team([Slow(Says("never"), 3600)]) as (rt, server):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: rt.run("porter", "x", credits="$0.5"))
            await server.asked(1)
            group.cancel_scope.cancel()
        (run,) = await rt.workspace.tasks.list()
        assert run.state == "cancelled"
        assert len(await rt.workspace.money.uncertain()) == 1, "nobody knows what it cost"


@pytest.mark.rule("gateway.token")
async def test_a_token_is_worth_nothing_once_its_task_has_ended():
    code = "print(json.dumps([token, base.geturl()]))"
    async with team([], code) as (rt, _):

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[int]:
            token, url = json.loads(await turn.delegate("porter", "x"))
            async with httpx.AsyncClient() as client:
                with pytest.raises(httpx.ConnectError):
                    await client.post(f"{url}/v1/messages", headers={"x-api-key": token}, json={})
            return []

        await rt.run("lead", "go")


@pytest.mark.rule("gateway.token")
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ask(task, more=1) if False else send('/v1/messages', {}, token='rmg_wrong')", 401),
        ("send('/v1/messages', {}, token='')", 401),
        ("send('/v1/messages?key=' + token, {}, token='')", 401),
        ("send('/v1/messages', {}, host='evil.example')", 421),
        ("send('/v1/secrets', {})", 404),
        ("send('/mcp', {})", 404),
        ("send('/v1/messages', [1])", 400),
        ("send('/v1/messages', None)", 400),
    ],
)
async def test_what_is_not_a_request_of_a_member_is_refused(code: str, status: int):
    async with team([], f"print(json.dumps({code}))") as (rt, _):
        assert json.loads(await rt.run("porter", "x"))[0] == status


async def test_a_gateway_is_described_or_refused():
    for wrong in ("anthropic:claude-x", ["claude-x"], ["nowhere:model"]):
        with pytest.raises(BadInput):
            program(asking(ASK), gateway=wrong)
    with pytest.raises(BadInput, match="base_url is for the models that a program asks"):
        program(asking(ASK), base_url="http://127.0.0.1:1")


async def test_a_program_is_added_under_a_name_with_or_without_a_gateway():
    rt = Runtime()
    rt.add(program(["cat"]), name="plain")
    rt.add(program(["cat"], gateway=["anthropic:claude-x"]), name="porter", deny=["Bash"])
    for how in ({}, {"gateway": ["anthropic:claude-x"]}):
        with pytest.raises(BadInput, match="name the program"):
            rt.add(program(["cat"], **how))
    with pytest.raises(BadInput, match="remit does not see which tools a program uses"):
        rt.add(program(["cat"]), name="other", deny=["Bash"])


GEMINI = """
def gemini(way, token=token, **more):
    body = {"contents": [{"role": "user", "parts": [{"text": task}]}], **more}
    return send("/v1beta/models/" + way, body, token="", **{"x-goog-api-key": token})
"""
ASK_GEMINI = """
print(json.dumps([gemini("gemini-x:generateContent"), gemini("gemini-x:streamGenerateContent?alt=sse"),
                  gemini("gemini-x:streamGenerateContent"), gemini("gemini-x:generateContent?key=" + token, token=""),
                  gemini("other:generateContent"), send("/v1beta/models", None, method="GET"),
                  os.environ["GOOGLE_GEMINI_BASE_URL"] == base.geturl(), os.environ["GEMINI_API_KEY"] == token]))
"""


@pytest.mark.rule("gateway.gemini", "gateway.money")
async def test_a_program_asks_in_the_format_of_google():
    how = {"gateway": ["google:gemini-x"], "keys": {"google": ["REAL_KEY"]}}
    async with model_server([Says("hi", usage=(100, 50)), Says("hi", usage=(100, 50))]) as models:
        async with team([], GEMINI + ASK_GEMINI, **how, base_url={"google": models.url}) as (rt, _):
            told = json.loads(await rt.run("porter", "x", credits="$0.50"))
            assert (await rt.workspace.money.spend()).total.credits == 400
        assert [(one.key, one.model, one.max_tokens) for one in models.requests] == [(KEY, "gemini-x", 8_000)] * 2
    whole, streamed, unframed, in_url, other, listed, *same = told
    assert json.loads(whole[1])["candidates"][0]["content"]["parts"] == [{"text": "hi"}]
    assert (streamed[0], "STOP" in streamed[1]) == (200, True)
    assert (unframed[0], "alt=sse" in unframed[1], in_url[0]) == (400, True, 401)
    assert json.loads(other[1])["error"] == {
        "code": 400,
        "message": "the model 'other' is not one that may be asked: gemini-x",
        "status": "INVALID_ARGUMENT",
    }
    assert json.loads(listed[1]) == {"models": [{"name": "models/gemini-x", "displayName": "gemini-x"}]}
    assert same == [True, True]


@pytest.mark.rule("gateway.gemini", "gateway.providers")
async def test_a_key_that_google_calls_a_bad_request_is_replaced():
    wrong = Fails(400, message="API key not valid. API_KEY_INVALID")
    how = {"gateway": ["google:gemini-x"], "keys": {"google": ["REAL_KEY", "OTHER_KEY"]}}
    code = f"{GEMINI}\nprint(json.dumps(gemini('gemini-x:generateContent')))"
    async with (
        model_server([wrong, Says("hi")]) as models,
        team([], code, **how, base_url={"google": models.url}) as (rt, _),
    ):
        assert json.loads(await rt.run("porter", "x"))[0] == 200
    assert [one.key for one in models.requests] == [KEY, "sk-other-key-0123456789"]


REPEATS = """
told = [{"role": "user", "content": task}]
for number in range(200):
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "nothing new"}
    told += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    status, body = ask(messages=told, tools=[{"name": "Bash", "input_schema": {}}])
    if status != 200:
        print(json.dumps([number, body]))
        sys.exit()
print("it went on for ever")
"""


@pytest.mark.rule("gateway.loop")
async def test_a_program_whose_model_repeats_itself_is_stopped():
    async with team(lambda _: Calls("Bash", {"command": "ls"}), REPEATS) as (rt, _):
        outcome = await rt.outcome("porter", "x")
        told = str(outcome.value or outcome.error)
        assert "nothing new" in told


# -- tools -----------------------------------------------------------------------------------------------------------

TOOLS = """
tools = [{"name": "Bash", "input_schema": {}}, {"name": "Read", "input_schema": {}},
         {"type": "web_search_20250305", "name": "web_search"}]
print(json.dumps(ask(task, tools=tools)))
"""


@pytest.mark.rule("gateway.tools", "gateway.hosted")
@pytest.mark.parametrize(
    ("card", "within", "offered"),
    [
        ({}, Bounds(), ("Bash", "Read")),
        ({"deny": ["Bash"]}, Bounds(), ("Read",)),
        ({}, Bounds(tools=["Bash"]), ("Bash",)),
        ({"tools": ["web_search"]}, Bounds(), ("Bash", "Read", "web_search")),
        ({"tools": ["web_search"]}, Bounds(tools=["Read"]), ("Read",)),
        ({"deny": ["Bash", "Read"]}, Bounds(), ()),
    ],
)
async def test_a_model_is_offered_the_tools_that_its_program_may_use(
    card: dict[str, Any], within: Bounds, offered: tuple[str, ...]
):
    async with team([Says("done")], TOOLS, card=card) as (rt, server):
        assert words(json.loads(await rt.run("porter", "x", within=within))) == "done"
        assert server.requests[0].tools == offered


@pytest.mark.rule("gateway.tools")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_of_a_tool_that_is_denied_does_not_reach_the_program(stream: bool):
    code = f"status, body = ask(task, stream={stream})\nprint(body, file=sys.stderr)\nsys.exit(1)"
    async with team([Calls("Bash", {"command": "ls"})], code, card={"deny": ["Bash"]}) as (rt, _):
        told = str((await rt.outcome("porter", "x", credits="$0.5")).error)
        assert "may not use 'Bash' for this task" in told
        assert "content_block_stop" not in told
        assert "ls" not in told or stream
        assert not await rt.workspace.money.uncertain(), "it is paid all the same"


# -- verbs -----------------------------------------------------------------------------------------------------------

_MCP = """
import asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
import httpx2 as httpx

async def main():
    async with httpx.AsyncClient(headers={{"Authorization": f"Bearer {{token}}"}}, timeout=60) as http_client:
        async with Client(streamable_http_client(os.environ["REMIT_MCP"], http_client=http_client)) as client:
            {body}

asyncio.run(main())
"""


def calling(body: str) -> str:
    return _MCP.format(body=body)


CALL = """
            listed = [tool.name for tool in (await client.list_tools()).tools]
            done = await client.call_tool("call_agent", {"agent": "helper", "task": task})
            again = await client.call_tool("call_agent", {"agent": "lead", "task": task})
            try:
                strange = (await client.call_tool("shell", {})).content[0].text
            except Exception as error:
                strange = str(error)
            print(json.dumps([listed, done.content[0].text, done.is_error, again.content[0].text, strange]))
"""


@pytest.mark.rule("gateway.verbs")
async def test_a_program_asks_its_colleagues_and_a_loop_is_refused_as_a_result():
    async with team([], calling(CALL), verbs=True) as (rt, _):

        @rt.agent
        async def helper(turn: Turn) -> str:
            return f"helped with {turn.task}, asked by {turn.remit.chain}"

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            return await turn.delegate("porter", turn.task)

        listed, done, is_error, again, strange = json.loads(await rt.run("lead", "the work"))
        assert "there is no such tool" in strange, "which is no reason for the task to fail"
        assert "call_agent" in listed
        assert "helped with the work" in done
        assert not is_error
        assert "'lead' is already in this delegation (lead > porter)" in again


@pytest.mark.rule("gateway.handoff")
async def test_a_program_that_hands_its_task_over_is_ended():
    body = 'await client.call_tool("handoff", {"agent": "helper"}); await asyncio.sleep(3600)'
    async with team([], calling(body), verbs=True) as (rt, _):

        @rt.agent
        async def helper(turn: Turn) -> str:
            return f"{turn.agent} goes on with {turn.task}"

        assert await rt.run("porter", "the work") == "helper goes on with the work"


async def test_verbs_need_no_models():
    body = 'print((await client.call_tool("blackboard", {"action": "write", "key": "k", "value": 1})).content[0].text)'
    async with team([], calling(body), gateway=False, verbs=True, keys=(), base_url=None) as (rt, _):
        assert '"version"' in await rt.run("porter", "x")

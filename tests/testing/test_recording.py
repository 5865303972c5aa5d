"""A conversation with a real model, kept as a script."""

from typing import Any

import httpx
import pytest

from remit.testing.models import Calls, Empty, Exchange, Fails, ModelReply, Says, Usage, model_server, recorded, source

pytestmark = pytest.mark.anyio

REPLIES: list[ModelReply] = [
    Calls("add", '{"a": 1}', also=(Calls("look", "{}", id="b"),), id="a", text="let me see", usage=(9, 4)),
    Calls("add", "{}", id="c", usage=(9, 4)),
    Says("it's three", usage="missing"),
    Empty(usage=(3, 0)),
    Says("cut", usage=Usage(9, 4, 5), limited=True),
    Fails(429, code="insufficient_quota", message="no money"),
]


async def conversation(replies: list[ModelReply]) -> list[Exchange]:
    """What a recorder sees of a conversation."""
    found: list[Exchange] = []
    async with model_server(replies) as server, httpx.AsyncClient(base_url=server.url) as client:
        for _ in replies:
            sent: dict[str, Any] = {"model": "big", "messages": [{"role": "user", "content": "hello"}]}
            got = await client.post("/v1/chat/completions", json=sent, headers={"authorization": "Bearer sk-canary"})
            found.append(Exchange(sent, got.json(), got.status_code))
    return found


@pytest.mark.rule("script.recorded")
async def test_a_script_that_was_recorded_replies_as_the_model_did():
    script = recorded(await conversation(REPLIES))

    assert script == REPLIES
    assert recorded([(one.request, one.response) for one in await conversation(REPLIES[:5])]) == REPLIES[:5]


@pytest.mark.rule("script.recorded")
async def test_a_script_is_kept_as_python_and_has_no_key():
    text = source(recorded(await conversation(REPLIES)))

    assert text == (
        "from remit.testing.models import Calls, Empty, Fails, Says, Usage\n\nSCRIPT = [\n"
        "    Calls('add', '{\"a\": 1}', also=[Calls('look', '{}', id='b')], id='a', text='let me see', usage=(9, 4)),\n"
        "    Calls('add', '{}', id='c', usage=(9, 4)),\n"
        "    Says(\"it's three\", usage='missing'),\n"
        "    Empty(usage=(3, 0)),\n"
        "    Says('cut', usage=Usage(input=9, output=4, cached_input=5, cache_written=0, "
        "requests=1, cache_written_1h=0), limited=True),\n"
        "    Fails(429, code='insufficient_quota', message='no money'),\n"
        "]\n"
    )
    kept: dict[str, Any] = {}
    exec(text, kept)
    assert source(kept["SCRIPT"]) == text
    assert kept["SCRIPT"][1:] == REPLIES[1:]
    assert "canary" not in text


@pytest.mark.rule("script.recorded")
def test_a_failure_without_its_status_is_told():
    with pytest.raises(ValueError, match="needs its status"):
        recorded([({}, {"error": {"message": "no"}})])

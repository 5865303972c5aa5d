"""Slack: a message with link buttons, in which nothing of a question can do anything."""

import json

import pytest

from adapters.people import SECRET, inquiry
from adapters.standin import Says, stand_in
from remit.adapters.asking.links import Links
from remit.adapters.slack import Slack
from remit.errors import BadInput
from remit.ports import Down, Undeliverable

pytestmark = pytest.mark.anyio

BASE = "https://ops.example/remit/"


@pytest.mark.rule("channel.slack")
async def test_a_question_is_posted_with_the_same_links_as_a_webhooks():
    one = inquiry(text="<!channel> deploy & run", chain="<boss>")
    async with stand_in() as server:
        server.answers = lambda _: Says(200, "ok")
        assert await Slack(f"{server.url}/services/T/B/x", BASE, SECRET).tell("default", one) == one.id
        [got] = server.got
    section, actions, context = got.json["blocks"]
    assert section["text"]["type"] == "plain_text"
    assert section["text"]["text"].split("\n")[:2] == [
        "asked by <boss>, open until 2027-01-22T08:00:00.000000Z",
        "  <!channel> deploy & run",
    ]
    assert got.json["text"].startswith(f"Question {one.id}: &lt;!channel&gt; deploy &amp; run")
    links = Links(SECRET, BASE)
    assert [(one["text"]["text"], one["url"]) for one in actions["elements"]] == [
        ("Approve", links.url("default", one, "approve")),
        ("Reject", links.url("default", one, "reject")),
    ]
    assert links.url("default", one, "approve").startswith("https://ops.example/remit/answer?")
    assert one.id in json.dumps(context)


@pytest.mark.rule("people.shown")
async def test_of_a_question_that_does_not_fit_there_is_a_link_to_all_of_it_and_no_button_to_approve():
    shows = {"action": "deploy", "arguments": {"note": "routine maintenance " * 400, "target": "PRODUCTION"}}
    one = inquiry(kind="tool", text="'lead' wants to deploy\n\nasked by boss <!here>", shows=shows)
    async with stand_in() as server:
        server.answers = lambda _: Says(200, "ok")
        await Slack(f"{server.url}/services/T/B/x", BASE, SECRET).tell("default", one)
        [got] = server.got
    section, actions, context = got.json["blocks"]
    assert len(section["text"]["text"]) <= 3_000
    assert '\n    target: "PRODUCTION"' in section["text"]["text"]
    assert "characters left out] …" in section["text"]["text"]
    assert "\nasked by boss" not in json.dumps(got.json)
    assert got.json["text"] == f"Question {one.id}: 'lead' wants to deploy␊␊asked by boss &lt;!here&gt;"
    look = Links(SECRET, BASE).url("default", one, "look")
    assert [(one["text"]["text"], one["url"]) for one in actions["elements"]] == [("Read it whole", look)]
    assert "read it whole to answer" in json.dumps(context)


@pytest.mark.rule("people.lines", "channel.slack")
async def test_a_text_of_several_lines_is_a_code_block_that_nothing_in_it_can_end():
    shows = {"action": "patch", "arguments": {"diff": "@@ -1 +1 @@\n-```<!here>\n+&amp;"}}
    one = inquiry(kind="tool", text="'lead' wants to patch(diff=[3 lines])", shows=shows)
    async with stand_in() as server:
        server.answers = lambda _: Says(200, "ok")
        await Slack(f"{server.url}/services/T/B/x", BASE, SECRET).tell("default", one)
        [got] = server.got
    head, body, *_ = got.json["blocks"]
    assert head["text"] == {"type": "plain_text", "emoji": False, "text": head["text"]["text"]}
    [code] = body["elements"]
    assert (body["type"], code["type"]) == ("rich_text", "rich_text_preformatted")
    [said] = code["elements"]
    assert said["type"] == "text"
    assert said["text"].endswith("      | @@ -1 +1 @@\n      | -```<!here>\n      | +&amp;")


@pytest.mark.rule("channel.slack", "channel.refused", "channel.down")
async def test_what_slack_says_is_told_apart():
    async with stand_in() as server:
        slack = Slack(f"{server.url}/services/x", BASE, SECRET)
        server.answers = lambda _: Says(403, "invalid_token")
        with pytest.raises(Undeliverable, match="it answered 403: invalid_token"):
            await slack.tell("default", inquiry())
        server.answers = lambda _: Says(429, "slow down, please!", (("retry-after", "30"),))
        with pytest.raises(Down, match="it answered 429$") as down:
            await slack.tell("default", inquiry())
        assert down.value.retry_after == 30


@pytest.mark.rule("channel.settings")
def test_slack_needs_somewhere_to_answer():
    with pytest.raises(BadInput, match="nothing comes back over Slack"):
        Slack("https://hooks.slack.com/services/x", "", SECRET)

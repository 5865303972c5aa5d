"""Examples in the shape that other frameworks publish: with five lines of remit they are bounded, charged to the last
request, and go on after kill -9."""

import os
import re
import signal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit import Workspace
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server
from test_examples import EXAMPLES, Lives, starting

PUBLISHED = EXAMPLES / "peers" / "published"
ADDED = 5

Said = list[tuple[str, str, ModelReply]]  # who is asked, what was last said, and the answer


class Example(NamedTuple):
    """What stands in for the models; how often they are asked; at which request the process is killed; what is printed;
    and at most how often models are asked that always call this tool again."""

    said: Said
    requests: int
    killed: int
    printed: str
    insists: str
    most: int


EXAMPLE = {
    "openai_handoffs.py": Example(
        [
            ("who can help", "has just handed the same thing", Calls("transfer_to_refunds", {})),
            ("who can help", "", Calls("transfer_to_orders", {})),
            ("about parcels", "", Calls("transfer_to_triage", {})),
            ("about money", "is refunded", Says("Order 5003 is refunded.")),
            ("about money", "", Calls("refund", {"order": 5003})),
        ],
        6,
        5,
        "tool: refund 5003\nOrder 5003 is refunded.\n",
        "transfer_to",
        60,
    ),
    "openai_agents_as_tools.py": Example(
        [
            ("translated by your tools", "Bonjour", Says("Buenos dias, bonjour.")),
            ("translated by your tools", "Buenos", Calls("translate_to_french", {"input": "Good morning"})),
            ("translated by your tools", "", Calls("translate_to_spanish", {"input": "Good morning"})),
            ("into Spanish", "", Says("Buenos dias")),
            ("into French", "", Says("Bonjour")),
        ],
        5,
        4,
        "Buenos dias, bonjour.\n",
        "translate_to_spanish",
        60,
    ),
    "pydantic_ai_delegation.py": Example(
        [
            ("write about", "1937", Says("The Golden Gate, opened in 1937, is 2,737 metres long.")),
            ("write about", "", Calls("ask_librarian", {"question": "What is known of the Golden Gate?"})),
            ("look things up", "1937", Says("It was opened in 1937.")),
            ("look things up", "already at work", Calls("look_up", {"bridge": "Golden Gate"})),
            ("look things up", "", Calls("ask_writer", {"question": "Which Golden Gate?"})),
        ],
        5,
        4,
        "tool: look up Golden Gate\nThe Golden Gate, opened in 1937, is 2,737 metres long.\n",
        "ask_",
        60,
    ),
    "langgraph_supervisor.py": Example(
        [
            ("work to others", "litres", Says("Buy 4.5 litres of paint.")),
            ("work to others", "metres", Calls("ask_painter", {"question": "How much for 36 square metres?"})),
            ("work to others", "", Calls("ask_surveyor", {"question": "How large is the north wall?"})),
            ("measure walls", "metres", Says("It has 36 square metres.")),
            ("measure walls", "", Calls("measure", {"wall": "north"})),
            ("know paint", "", Says("It takes 4.5 litres.")),
        ],
        6,
        3,
        "tool: measure the north wall\nBuy 4.5 litres of paint.\n",
        "ask_",
        60,
    ),
    "langgraph_swarm.py": Example(
        [
            ("know hotels", "", Calls("transfer_to_flights", {})),
            ("know flights", "is booked", Says("Your flight is booked.")),
            ("know flights", "", Calls("book", {"flight": "TP501"})),
        ],
        3,
        3,
        "tool: book TP501\nYour flight is booked.\n",
        "transfer_to",
        60,
    ),
}


def instructions(asked: ModelRequest) -> str:
    return asked.body.get("instructions") or str(asked.messages[0]["content"])


def scripted(example: Example) -> Any:
    def script(asked: ModelRequest) -> ModelReply:
        return next(reply for who, last, reply in example.said if who in instructions(asked) and last in asked.text)

    return script


def insisting(example: Example) -> Any:
    def script(asked: ModelRequest) -> ModelReply:
        tool = next((name for name in asked.tools if name.startswith(example.insists)), "")
        given = {"input": "again"} if "translate" in tool else {"question": "again"} if tool.startswith("ask") else {}
        return Calls(tool, given) if tool else Says("again?")

    return script


def test_what_remit_adds_is_marked_and_little():
    assert sorted(EXAMPLE) == sorted(path.name for path in PUBLISHED.glob("*.py"))
    for name in EXAMPLE:
        text = (PUBLISHED / name).read_text()
        assert len(re.findall(r"# remit\b", text)) <= ADDED
        assert "remit" not in "\n".join(line for line in text.splitlines() if "# remit" not in line), name


@pytest.mark.deep
@pytest.mark.anyio
@pytest.mark.rule("guest.published")
async def test_published_examples_are_charged_to_the_last_request_and_go_on_after_kill_9(tmp_path: Path):
    async with starting() as lives:
        for name, example in EXAMPLE.items():
            folder = tmp_path / name
            folder.mkdir()
            await is_killed(lives, name, example, folder)


async def is_killed(lives: Lives, name: str, example: Example, folder: Path) -> None:
    script = scripted(example)

    async def killing(asked: ModelRequest) -> Any:
        await lives.begun.wait()
        if len(server.requests) == example.killed:
            os.kill(lives.child, signal.SIGKILL)
        return script(asked)

    async with model_server(killing) as server:
        environment = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
        path = f"peers/published/{name}"
        assert await lives.live(path, folder, **environment) == -signal.SIGKILL
        assert await lives.live(path, folder, **environment) == 0, (folder / "stderr").read_text()
        assert len(server.requests) == example.requests + 1, name
    assert (folder / "stdout").read_text() == example.printed
    with Workspace(str(folder / "team.db")) as workspace:
        answered = [event for event in await workspace.journal.history() if event.kind == "model.answered"]
        assert len(answered) == example.requests
        total = (await workspace.money.spend("agent")).rows[-1]
        assert total.calls == example.requests + 1, "one was cut off, and is charged too"
        assert total.credits > 0


@pytest.mark.deep
@pytest.mark.anyio
@pytest.mark.rule("guest.published")
async def test_published_examples_whose_models_insist_are_stopped(tmp_path: Path):
    async with starting() as lives:
        for name, example in EXAMPLE.items():
            folder = tmp_path / name
            folder.mkdir()
            async with model_server(insisting(example)) as server:
                environment = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
                await lives.live(f"peers/published/{name}", folder, **environment)
                assert len(server.requests) <= example.most, (name, len(server.requests))

"""What people see of a model, over HTTP, for every kind of agent: its calls, its tools, and the conversation."""

import json
import logging
from typing import Any

import pytest

from adapters.places import KINDS, join, served, told
from remit import Runtime
from remit.report.flow import text
from remit.report.talk import TalkLine, conversations
from remit.report.tree import tree
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio


def lookup(what: str) -> str:
    """Look something up."""
    return {"shelf": "SHELF-THREE"}[what]


def script(asked: ModelRequest) -> Any:
    return [Calls("lookup", {"what": "shelf"}), Calls("lookup", {"what": "lamp"}), Says("it is there")][
        len(told(asked))
    ]


def brief(line: TalkLine) -> tuple[Any, ...]:
    return (
        line.who,
        line.name.rpartition(":")[2],
        line.words,
        [(call.tool, json.loads(call.given)) for call in line.calls],
    )


@pytest.mark.rule("tool.seen", "show.models", "show.talk")
@pytest.mark.case("tool_fails", "talk")
@pytest.mark.parametrize("kind", KINDS)
async def test_models_and_tools_are_in_the_tree_and_in_the_conversation(kind: str, caplog: pytest.LogCaptureFixture):
    async with served(script) as place, Runtime() as rt:
        join(rt, kind, place, tools=[lookup])
        await rt.run("it", "find the lamp")
        events = await rt.workspace.journal.history()
    line = lookup.__code__.co_firstlineno + 2
    where = f"test_seen.py:{line} in lookup"

    root = tree(events)
    assert root is not None
    (model,) = root.models
    assert (model.agent, model.calls, model.failed, model.tokens > 0) == ("it", 3, 0, True)
    assert [(use.tool, use.outcome, use.error, use.place) for use in root.tools] == [
        ("lookup", "done", "", ""),
        ("lookup", "failed", "KeyError: 'lamp'", where),
    ]
    assert f"KeyError: 'lamp' ({where})\n" in text(root, events[-1].at)
    (warning,) = [one for one in caplog.records if one.levelno >= logging.WARNING and one.name == "remit"]
    assert warning.getMessage().endswith(f"of 'it', at {where}: KeyError: 'lamp'")

    (talk,) = conversations(events, {})
    prompt, *rest = talk.lines
    assert (prompt.who, "find the lamp" in prompt.words) == ("prompt", True)
    assert [brief(one) for one in rest] == [
        ("model", "m", "", [("lookup", {"what": "shelf"})]),
        ("tool", "lookup", "SHELF-THREE", []),
        ("model", "m", "", [("lookup", {"what": "lamp"})]),
        ("tool", "lookup", "'lookup' failed: KeyError: 'lamp'", []),
        ("model", "m", "it is there", []),
    ]

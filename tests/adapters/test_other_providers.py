"""A conversation goes on with a model of another provider, in a later life: what leaves is what that provider takes."""

from pathlib import Path
from typing import Any

import pytest

from adapters.lives import Life, two_lives
from adapters.places import KEY, KEY_NAME, told
from remit import Runtime
from remit.testing.models import Calls, Fails, ModelRequest, Says, model_server

pytestmark = pytest.mark.anyio
MODELS = ("openai:big", "openai-chat:big", "anthropic:big")
PAIRS = [(first, other.replace("big", "other")) for first in MODELS for other in MODELS if first != other]
PLAIN, STRANGE = "step-{}", "functions.step:{}"  # as some servers call their calls, and others take none
CASES = [(*pair, ids) for pair in PAIRS for ids in (PLAIN, STRANGE) if ids == PLAIN or pair[0] != "anthropic:big"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


def results(asked: ModelRequest) -> list[str]:
    """What came of the tools so far, in any dialect."""
    blocks = [one for message in asked.messages for one in message.get("content") or () if isinstance(one, dict)]
    return told(asked) + [one["content"][0]["text"] for one in blocks if one.get("type") == "tool_result"]


@pytest.mark.rule("talk.foreign", "script.strict")
@pytest.mark.parametrize(("first", "other", "ids"), CASES)
async def test_a_conversation_goes_on_with_another_provider_which_takes_all_of_it(
    tmp_path: Path, first: str, other: str, ids: str
):
    life, used = Life(), []

    async def step(number: int) -> str:
        """Go a step."""
        used.append(number)
        if number == 3:
            await life.hold()
        return f"step {number}"

    def script(asked: ModelRequest) -> Any:
        """Go steps 1 and 2 side by side, 3, and 4; in the second life only the other model is there."""
        if asked.model == "big" and not life.is_first:
            return Fails(404)
        given = [Calls("step", {"number": number}, id=ids.format(number)) for number in range(1, 5)]
        match len(results(asked)):
            case 0:
                return Calls(given[0].name, given[0].arguments, also=[given[1]], id=given[0].id, text="I go.")
            case 2 | 3 as number:
                return given[number] if asked.model == "big" else Calls("step", {"number": number + 1}, id=f"o{number}")
            case _:
                return Says(" | ".join(results(asked)))

    async with model_server(script) as server:
        urls = {"openai": f"{server.url}/v1", "openai-chat": f"{server.url}/v1", "anthropic": server.url}

        def team(rt: Runtime) -> None:
            about: dict[str, Any] = {"tools": [step], "repeat": {"step": "again"}, "keys": [KEY_NAME]}
            rt.model_agent("it", first, fallback=[other], base_url=urls, **about)

        async with two_lives(tmp_path / "team.db", team, life) as (_, outcome):
            assert outcome.value == "step 1 | step 2 | step 3 | step 4"
        assert used == [1, 2, 3, 3, 4]
        assert [one.model for one in server.requests].count("other") == 2

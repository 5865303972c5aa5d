"""A key that the workspace brought goes out with requests to its provider: before all others, and at nobody's cost."""

from pathlib import Path
from typing import Any

import pytest

from adapters.places import KEY, KEY_NAME, data_of, join, priced, served
from engine.helping import sound
from remit import Runtime, Secret
from remit.testing.models import Fails, Says

pytestmark = pytest.mark.anyio

THEIRS = "sk-of-the-workspace-itself"


@pytest.fixture(autouse=True)
def master_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMIT_MASTER_KEY", "m" * 43 + "=")
    monkeypatch.setenv(KEY_NAME, KEY)


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def keys_on_the_bill(rt: Runtime) -> list[str]:
    """For each answer the provider whose key the workspace brought."""
    return [data.get("own_key", "") for data in await data_of(rt, "hold.settled", "credits.spent")]


@pytest.mark.rule("model.own-key")
async def test_the_key_of_the_workspace_goes_before_all_others_and_costs_the_account_nothing(tmp_path: Path):
    async with served([Says("one"), Says("two"), Says("three")]) as place, priced(store=tmp_path / "team.db") as rt:
        join(rt, "native", place, keys=[KEY_NAME])
        await rt.workspace.keys.set("openai", Secret(THEIRS))
        await rt.workspace.grant("$1")
        assert await rt.run("it", "go") == "one"
        assert (await rt.workspace.account()).credits.available == 1_000_000  # type: ignore[union-attr]
        await rt.workspace.keys.set("openai", Secret(THEIRS + "-again"))
        assert await rt.run("it", "go") == "two"
        await rt.workspace.keys.remove("openai")
        assert await rt.run("it", "go") == "three"
        assert await keys_on_the_bill(rt) == ["openai", "openai", ""]
        await sound(rt)
    assert [request.key for request in place.server.requests] == [THEIRS, THEIRS + "-again", KEY]
    assert THEIRS.encode() not in files(tmp_path)


@pytest.mark.rule("model.own-key")
async def test_without_a_limit_it_is_on_the_bill_whose_key_it_was():
    async with served([Says("one")]) as place, priced() as rt:
        join(rt, "native", place)
        await rt.workspace.keys.set("openai", Secret(THEIRS))
        await rt.run("it", "go")
        assert await keys_on_the_bill(rt) == ["openai"]


@pytest.mark.rule("model.own-key")
async def test_a_model_that_brings_its_own_client_keeps_its_own_key():
    async with served([Says("one")]) as place, priced() as rt:
        rt.model_agent("it", place.of_pydantic("m"))
        await rt.workspace.keys.set("openai", Secret(THEIRS))
        await rt.run("it", "go", credits="$1")
        assert await keys_on_the_bill(rt) == [""]
    assert [request.key for request in place.server.requests] == [KEY]


@pytest.mark.rule("model.own-key")
async def test_when_the_key_of_the_workspace_is_refused_no_other_is_tried_until_it_is_replaced(clock: Any):
    async with served([Fails(401), Says("here")]) as place, priced(system={"clock": clock}) as rt:
        join(rt, "native", place, keys=[KEY_NAME])
        await rt.workspace.keys.set("openai", Secret(THEIRS))
        outcome = await rt.outcome("it", "go", seconds=1)
        assert "openai-chat:m with key 'workspace/openai': resting after auth" in str(outcome.error)
        await rt.workspace.keys.set("openai", Secret(THEIRS + "-again"))
        assert await rt.run("it", "go") == "here"
        await sound(rt)
    assert [request.key for request in place.server.requests] == [THEIRS, THEIRS + "-again"]

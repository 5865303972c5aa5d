"""Keys go to the endpoint that they were given for and nowhere else; a workspace pays nothing for its own."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from adapters.places import KEY, KEY_NAME, KINDS, Place, closed_port, data_of, join, priced, served
from engine.helping import sound
from remit import Runtime, Secret
from remit.runtime.workspace import opening_of
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
    """For each answer the endpoint whose key the workspace brought."""
    return [data.get("own_key", "") for data in await data_of(rt, "hold.settled", "credits.spent")]


def endpoint(place: Place) -> str:
    return f"openai@{urlsplit(place.url).netloc}"


@pytest.mark.rule("model.own-key")
async def test_the_key_of_the_workspace_is_used_and_costs_the_account_nothing(tmp_path: Path):
    async with served([Says("one"), Says("two"), Says("three")]) as place, priced(store=tmp_path / "team.db") as rt:
        join(rt, "native", place, keys=[])
        name = endpoint(place)
        await rt.workspace.keys.set(name, Secret(THEIRS))
        await rt.workspace.money.grant("$1")
        assert await rt.run("it", "go") == "one"
        assert (await rt.workspace.money.account()).credits.available == 1_000_000  # type: ignore[union-attr]
        await rt.workspace.keys.set(name, Secret(THEIRS + "-again"))
        assert await rt.run("it", "go") == "two"
        await rt.workspace.keys.remove(name)
        assert await rt.run("it", "go") == "three"
        assert await keys_on_the_bill(rt) == [name, name, ""]
        await sound(rt)
    assert [request.key for request in place.server.requests] == [THEIRS, THEIRS + "-again", "no-key"]
    assert THEIRS.encode() not in files(tmp_path)


@pytest.mark.rule("key.endpoint")
async def test_a_key_goes_to_no_other_endpoint_than_the_one_it_was_kept_for():
    async with served([Says("one"), Says("two")]) as place, served([]) as other, priced() as rt:
        join(rt, "native", place, keys=[KEY_NAME])
        join(rt, "native", place, "bare", keys=[])
        for name in ("openai", endpoint(other), "openai@127.0.0.1", "openai-chat:m"):
            await rt.workspace.keys.set(name, Secret(THEIRS))
        assert [await rt.run(name, "go") for name in ("it", "bare")] == ["one", "two"]
        assert await keys_on_the_bill(rt) == ["", ""]
    assert [request.key for request in place.server.requests] == [KEY, "no-key"]


@pytest.mark.rule("key.endpoint")
async def test_an_address_without_keys_is_not_sent_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    async with served([Says("one"), Says("two")]) as place, served([Says("three")]) as other, Runtime() as rt:
        rt.model_agent("it", "openai-chat:m", base_url=place.url)
        assert await rt.run("it", "go") == "one"
        urls = {"openai-chat:m": place.url, "openai-chat:n": other.url}
        rt.model_agent("both", "openai-chat:m", fallback=["openai-chat:n"], keys=[KEY_NAME], base_url=urls)
        assert await rt.run("both", "go") == "two"
        rt.model_agent("last", "openai-chat:n", keys={"openai": [KEY_NAME]}, base_url=urls)
        assert await rt.run("last", "go") == "three"
    assert [request.key for request in place.server.requests] == ["no-key", KEY]
    assert [request.key for request in other.server.requests] == ["no-key"]


@pytest.mark.rule("key.endpoint")
async def test_an_address_in_the_environment_is_an_endpoint_of_its_own_with_the_key_beside_it(
    monkeypatch: pytest.MonkeyPatch,
):
    async with served([Says("one"), Says("two")]) as place, priced() as rt:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-proxy")
        monkeypatch.setenv("OPENAI_BASE_URL", place.url)
        rt.model_agent("it", "openai-chat:m")
        await rt.workspace.keys.set("openai", Secret(THEIRS))
        assert await rt.run("it", "go") == "one"
        rt.model_agent("late", "openai-chat:m")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        outcome = await rt.outcome("late", "go")
        assert "so that no key goes to another address" in str(outcome.error)
    assert [request.key for request in place.server.requests] == ["sk-of-the-proxy"]


@pytest.mark.rule("model.own-key")
async def test_the_keys_that_an_agent_names_go_first_and_the_one_of_the_workspace_after_them():
    async with served([Says("one"), Fails(401), Says("two")]) as place, priced() as rt:
        join(rt, "native", place, keys=[KEY_NAME])
        await rt.workspace.keys.set(endpoint(place), Secret(THEIRS))
        assert [await rt.run("it", "go"), await rt.run("it", "go")] == ["one", "two"]
    assert [request.key for request in place.server.requests] == [KEY, KEY, THEIRS]


@pytest.mark.rule("model.own-key")
async def test_without_a_limit_it_is_on_the_bill_whose_key_it_was():
    async with served([Says("one")]) as place, priced() as rt:
        join(rt, "native", place, keys=[])
        await rt.workspace.keys.set(endpoint(place), Secret(THEIRS))
        await rt.run("it", "go")
        assert await keys_on_the_bill(rt) == [endpoint(place)]


@pytest.mark.rule("model.own-key")
async def test_a_model_that_brings_its_own_client_keeps_its_own_key():
    async with served([Says("one")]) as place, priced() as rt:
        rt.model_agent("it", place.of_pydantic("m"))
        for name in ("openai", endpoint(place)):
            await rt.workspace.keys.set(name, Secret(THEIRS))
        await rt.run("it", "go", credits="$1")
        assert await keys_on_the_bill(rt) == [""]
    assert [request.key for request in place.server.requests] == [KEY]


@pytest.mark.rule("model.own-key")
async def test_when_the_key_of_the_workspace_is_refused_it_is_asked_again_as_soon_as_it_is_replaced(clock: Any):
    async with served([Fails(401), Says("here")]) as place, priced(system={"clock": clock}) as rt:
        join(rt, "native", place, keys=[])
        name = endpoint(place)
        await rt.workspace.keys.set(name, Secret(THEIRS))
        outcome = await rt.outcome("it", "go", timeout=1)
        assert f"openai-chat:m with key 'workspace/{name}': paused for 60 s after auth" in str(outcome.error)
        await rt.workspace.keys.set(name, Secret(THEIRS + "-again"))
        assert await rt.workspace.journal.read(lambda view: view.coolings()) == {}
        assert await rt.run("it", "go") == "here"
        await sound(rt)
    assert [request.key for request in place.server.requests] == [THEIRS, THEIRS + "-again"]


@pytest.mark.rule("model.what-rests")
async def test_a_corrected_key_is_asked_at_once_in_the_same_process_and_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with served(lambda asked: Says("hello") if asked.key == "right-key" else Fails(401)) as place:
        for keys in (["A_KEY"], ["B_KEY"]):
            async with Runtime(tmp_path / "team.db") as rt:
                join(rt, "native", place, keys=keys)
                monkeypatch.setenv(keys[0], "wrong-key")
                assert "paused for 60 s after auth" in str((await rt.outcome("it", "go")).error)
                monkeypatch.setenv(keys[0], "right-key")
                assert await rt.run("it", "go") == "hello"
                monkeypatch.setenv(keys[0], "wrong-key")
                async with Runtime(tmp_path / "team.db") as other:
                    join(other, "native", place, keys=keys)
                    assert not (await other.outcome("it", "go")).ok
                    monkeypatch.setenv(keys[0], "right-key")
                    assert await other.run("it", "go") == "hello"
                await rt.workspace.keys.cooling.clear()


@pytest.mark.rule("model.what-rests")
@pytest.mark.parametrize(
    "failure", [Fails(429), Fails(429, retry_after=3600), Fails(429, retry_after=10**9), Fails(403)]
)
async def test_a_fallback_of_the_same_provider_is_asked_with_the_same_key(failure: Fails):
    async with served(lambda asked: failure if asked.model == "m" else Says("fine")) as place, Runtime() as rt:
        join(rt, "native", place, fallback=["openai-chat:small"])
        assert [await rt.run("it", "go"), await rt.run("it", "go")] == ["fine", "fine"]
        resting = await rt.workspace.keys.cooling.list()
        assert [(one.model, one.endpoint) for one in resting] == [("openai-chat:m", endpoint(place))]
        assert resting[0].until - opening_of(rt.workspace).clock.now() <= 3600 * 1_000_000
    assert [request.model for request in place.server.requests] == ["m", "small", "small"]


@pytest.mark.rule("model.not-sent", "model.no-key")
async def test_a_request_without_a_key_is_neither_held_nor_charged_and_a_sentence_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    async with priced() as rt:
        rt.model_agent("usual", "openai-chat:m")
        rt.model_agent("named", "openai-chat:m", keys=["NOT_SET"])
        for name, variable in (("usual", "OPENAI_API_KEY"), ("named", "NOT_SET")):
            outcome = await rt.outcome(name, "go", credits="$1")
            assert f"there is no key: set the environment variable {variable}" in str(outcome.error)
        assert await data_of(rt, "hold.placed", "hold.settled", "cooling.set") == []
        assert [data["why"] for data in await data_of(rt, "model.failed")] == ["no-key", "no-key"]
        await sound(rt)


@pytest.mark.rule("model.no-key")
async def test_where_one_key_or_model_is_missing_the_next_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with served([Says("one"), Says("two")]) as place, Runtime() as rt:
        join(rt, "native", place, keys=["NOT_SET", KEY_NAME])
        assert await rt.run("it", "go") == "one"
        assert await data_of(rt, "model.failed") == []
        keys, urls = {"openai": [KEY_NAME]}, {"openai": place.url}
        rt.model_agent("two", "anthropic:claude", fallback=["openai-chat:m"], keys=keys, base_url=urls)
        assert await rt.run("two", "go") == "two"


@pytest.mark.rule("model.said", "model.charged")
async def test_the_address_that_did_not_answer_is_told_and_costs_nothing():
    async with priced() as rt:
        url = f"http://127.0.0.1:{closed_port()}"
        rt.model_agent("it", "openai-chat:m", keys=[KEY_NAME], base_url=f"{url}/v1")
        outcome = await rt.outcome("it", "go", credits="$1", timeout=1)
        assert f'openai-chat:m: connection, "{url} did not answer"' in str(outcome.error)
        assert await data_of(rt, "hold.settled") == []


@pytest.mark.rule("model.said")
@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_provider_said_is_told_without_the_key(kind: str):
    said = f"Incorrect API key provided: {KEY}. Look at your account"
    async with served([Fails(400, message=said)]) as place, Runtime() as rt:
        join(rt, kind, place)
        outcome = await rt.outcome("it", "go", timeout=2)
        assert "Incorrect API key provided: [secret]" in str(outcome.error)
        (failed,) = await data_of(rt, "model.failed")
        assert failed["said"].startswith("Incorrect API key provided: [secret]")
        assert KEY not in str(await rt.workspace.journal.history())

"""A first hour with a real model and a team's file: each mishap is answered by one sentence that leads on."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Said, plain_environment
from programs import ran
from remit.testing.models import Calls, Fails, ModelReply, ModelRequest, Says, model_server

pytestmark = pytest.mark.rule("first.hour")

TOOLS = '''
def find_order(number: str) -> str:
    """Find an order."""
    raise ValueError(f"there is no order {number}")
'''


def answered(request: ModelRequest) -> ModelReply:
    """A provider with one key and one model; its model calls a tool if it has one, and then answers."""
    if request.key != "sk-the-right-one":
        return Fails(401, message=f"Incorrect API key provided: {request.key}.")
    if request.model != "gpt-5":
        return Fails(404, message=f"The model `{request.model}` does not exist")
    asks = request.tools and not any(one.get("role") == "tool" for one in request.messages)
    return Calls("find_order", {"number": "7"}) if asks else Says("done", usage=(10, 10))


def file(model: str = "openai-chat:gpt-5", more: str = "", url: str = "{url}", keys: str = 'keys = ["MY_KEY"]') -> str:
    base = f'base_url = "{url}"\n' if url else ""
    return f'[agents.coder]\nmodel = "{model}"\n{base}{keys}\n{more}\n[store]\npath = "team.db"\n'


def run(folder: Path, *files: str, env: dict[str, str] | None = None, words: tuple[str, ...] = ()) -> list[Said]:
    """Run a team with each of the files, one after the other, in one store, beside a provider that answers."""
    (folder / "tools.py").write_text(TOOLS)
    given = {name: one for name, one in plain_environment().items() if not name.startswith("OPENAI_")}
    given |= {"MY_KEY": "sk-the-right-one", **(env or {})}

    async def main() -> list[Said]:
        found: list[Said] = []
        async with model_server(answered) as server:
            for one in files:
                (folder / "remit.toml").write_text(one.replace("{url}", f"{server.url}/v1"))
                ask = ("-m", "remit.cli", "run", "hello", *words)
                found.append(await asyncio.to_thread(ran, *ask, cwd=folder, env=given))
        return found

    done = asyncio.run(main())
    assert not any("Traceback" in one.stderr for one in done)
    return done


def test_a_wrong_key_is_told_in_the_providers_words_without_it(tmp_path: Path):
    (said,) = run(tmp_path, file(), env={"MY_KEY": "sk-the-wrong-one"})
    assert said.returncode == 1
    assert "openai-chat:gpt-5 with key 'MY_KEY': paused for 60 s after auth" in said.stderr
    assert "Incorrect API key provided: [secret]" in said.stderr
    assert "check the keys" in said.stderr
    assert "`remit cooling` lists the pauses" in said.stderr
    assert "sk-the-wrong-one" not in said.stderr + said.stdout


def test_the_corrected_key_is_asked_at_once(tmp_path: Path):
    run(tmp_path, file(), env={"MY_KEY": "sk-the-wrong-one"})
    (said,) = run(tmp_path, file())
    assert (said.returncode, "done" in said.stdout) == (0, True)


def test_without_a_key_the_variable_is_named(tmp_path: Path):
    (said,) = run(tmp_path, file(url="", keys=""))
    assert said.returncode == 1
    assert "there is no key: set the environment variable OPENAI_API_KEY" in said.stderr
    assert 'keys = ["NAME"]' in said.stderr


def test_a_local_server_needs_no_key_and_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def any_key(request: ModelRequest) -> ModelReply:
        assert request.key != "sk-of-openai"
        return Says("here", usage=(10, 10))

    (said,) = _with(any_key, tmp_path, file("openai-chat:llama3", '[run]\ncredits = "$0.01"', keys=""))
    assert (said.returncode, "here" in said.stdout) == (0, True), said.stderr


def test_a_server_that_does_not_answer_is_named(tmp_path: Path):
    (said,) = run(tmp_path, file(url="http://127.0.0.1:9/v1", more="[run]\ntimeout = 10"))
    assert said.returncode == 1
    assert 'connection, "http://127.0.0.1:9 did not answer"' in said.stderr


def test_an_unknown_model_is_told_in_the_providers_words(tmp_path: Path):
    (said,) = run(tmp_path, file("openai-chat:gpt-55"))
    assert said.returncode == 1
    assert 'not-found (404), "The model `gpt-55` does not exist"; check the names of the models' in said.stderr


def test_a_tool_that_fails_is_told_with_its_line(tmp_path: Path):
    (said,) = run(tmp_path, file(more='tools = ["find_order"]\n[tools]\nfind_order = "tools:find_order"'))
    assert (said.returncode, "done" in said.stdout) == (0, True)
    assert "there is no order 7" in said.stderr + said.stdout


def test_a_limit_of_money_is_told_with_its_figures_in_the_words_of_the_file(tmp_path: Path):
    priced = '[prices."openai-chat:gpt-5"]\ninput = "$10"\noutput = "$100"\n'
    poor, unknown = run(
        tmp_path,
        file(more=f'[run]\ncredits = "$0.0001"\n{priced}'),
        file("azure:gpt-unheard-of", '[run]\ncredits = "$1"', url="", keys=""),
        env={"AZURE_OPENAI_API_KEY": "x", "AZURE_OPENAI_ENDPOINT": "https://a.example", "OPENAI_API_VERSION": "v1"},
    )
    assert poor.returncode != 0
    assert "$0.0001" in poor.stderr
    assert "wanted" in poor.stderr
    assert unknown.returncode != 0
    assert 'name it with [prices."azure:gpt-unheard-of"] with input = "$1"' in unknown.stderr
    assert "KnownPrices" not in unknown.stderr


def _with(script: Callable[[ModelRequest], ModelReply], folder: Path, text: str) -> list[Said]:
    async def main() -> list[Said]:
        async with model_server(script) as server:
            (folder / "remit.toml").write_text(text.replace("{url}", f"{server.url}/v1"))
            env = plain_environment() | {"OPENAI_API_KEY": "sk-of-openai"}
            return [await asyncio.to_thread(ran, "-m", "remit.cli", "run", "hello", cwd=folder, env=env)]

    return asyncio.run(main())

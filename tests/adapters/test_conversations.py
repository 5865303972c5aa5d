"""A conversation is kept, not replayed: a later attempt goes on where the record ends, whatever has changed."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.places import KEY, KEY_NAME, KINDS, Place, came_back, data_of, join, served, told
from engine.helping import sound
from remit import Outcome, Runtime, Turn
from remit.ports.turn import current_turn
from remit.testing.doubles import PATIENCE
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio
kinds = pytest.mark.parametrize("kind", KINDS)
CHANGES = ("nothing", "context", "instructions", "tools", "model")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


class Bank:
    """What was charged. In the first life the second charge is begun and never ends."""

    def __init__(self) -> None:
        self.charged: list[str] = []
        self.begun = asyncio.Event()
        self.first_life = True

    def tools(self, *, keyed: bool = False) -> list[Callable[..., Any]]:
        async def charge(number: int) -> str:
            """Charge a customer."""
            return await self._charge(str(number))

        async def charge_once(number: int, idempotency_key: str) -> str:
            """Charge a customer."""
            return await self._charge(f"{number} {idempotency_key}")

        charge_once.__name__ = "charge"
        return [charge_once if keyed else charge]

    async def _charge(self, what: str) -> str:
        self.charged.append(what)
        if self.first_life and what.startswith("2"):
            self.begun.set()
            await asyncio.Event().wait()
        return f"charged {what}"


def script(asked: ModelRequest) -> Any:
    """Charge 1, then 2, and then tell what came of it."""
    results = told(asked)
    if len(results) < 2:
        return Calls("charge", {"number": len(results) + 1}, id=f"c{len(results)}")
    return Says(" | ".join(results))


async def look() -> str:
    """Look around."""
    return "nothing"


def team(rt: Runtime, kind: str, place: Place, bank: Bank, change: str, **about: Any) -> None:
    keyed = about.pop("keyed", False)
    later = not bank.first_life
    if change == "instructions" and later and kind == "native":
        about["instructions"] = "Be brief."
    tools = [*bank.tools(keyed=keyed), *([look] if change == "tools" and later else ())]
    model = "other" if change == "model" and later else "m"
    join(rt, kind, place, "payer", model=model, tools=tools, reads=["rates"], **about)

    @rt.agent(asks="*", reads=["rates"])
    async def lead(turn: Turn) -> Any:
        return await turn.delegate("payer", turn.task, sees=["rates"])


async def two_lives(
    folder: Path, kind: str, place: Place, change: str = "nothing", **about: Any
) -> tuple[Outcome, Bank]:
    """Run a task that is put back while it charges the second time, and run it again in another process's place."""
    bank, store = Bank(), folder / "team.db"
    with anyio.fail_after(PATIENCE):
        async with Runtime(store) as rt:
            await rt.workspace.context().set("rates", "usd", "1.00")
            team(rt, kind, place, bank, change, **about)
            await rt.submit("lead", "charge both", key="k")
            await bank.begun.wait()
            await rt.drain(0)
        bank.first_life = False
        async with Runtime(store) as rt:
            if change == "context":
                await rt.workspace.context().set("rates", "usd", "1.07")
            team(rt, kind, place, bank, change, **about)
            outcome = await (await rt.submit("lead", "charge both", key="k")).wait()
            await sound(rt)
            answered = await data_of(rt, "model.answered")
            assert len(answered) == 3, "each answer is recorded and paid once"
    return outcome, bank


@pytest.mark.rule("talk.position")
@pytest.mark.parametrize("change", CHANGES)
@kinds
async def test_a_later_attempt_goes_on_where_the_record_ends_whatever_has_changed(tmp_path, kind: str, change: str):
    async with served(script) as place:
        outcome, bank = await two_lives(tmp_path, kind, place, change, repeat={"charge": "again"})
        assert outcome.value == "charged 1 | charged 2"
        assert bank.charged == ["1", "2", "2"]  # begun in the first life, and done again as the tool says it may be
        assert len(place.server.requests) == 3
        first, *_, last = [request.messages for request in place.server.requests]
        said = [one for one in first if one["role"] != "system"]
        assert [one for one in last if one["role"] != "system"][: len(said)] == said  # what was really told before


@pytest.mark.rule("talk.begun")
@kinds
async def test_a_tool_that_may_have_been_used_is_not_used_again_and_the_model_is_told(tmp_path, kind: str):
    async with served(script) as place:
        outcome, bank = await two_lives(tmp_path, kind, place)
        assert bank.charged == ["1", "2"]
        assert "'charge' was begun before the task was interrupted and may have been done" in str(outcome.value)


@pytest.mark.rule("talk.begun")
async def test_a_tool_that_takes_a_key_is_used_again_under_the_same_key(tmp_path):
    async with served(script) as place:
        outcome, bank = await two_lives(tmp_path, "native", place, keyed=True)
        first, second, again = bank.charged
        assert second == again != first
        assert "2" in str(outcome.value)
        schemas = [tool["function"]["parameters"]["properties"] for tool in place.server.requests[0].body["tools"]]
        assert all("idempotency_key" not in schema for schema in schemas)


@pytest.mark.rule("talk.begun")
async def test_a_person_can_be_asked_whether_a_tool_is_used_again(tmp_path):
    async with served(script) as place:
        bank, store = Bank(), tmp_path / "team.db"
        async with Runtime(store) as rt:
            team(rt, "native", place, bank, "nothing", repeat={"charge": "ask"})
            await rt.submit("lead", "charge both", key="k")
            await bank.begun.wait()
            await rt.drain(0)
        bank.first_life = False
        async with Runtime(store) as rt:
            team(rt, "native", place, bank, "nothing", repeat={"charge": "ask"})
            task = await rt.submit("lead", "charge both", key="k")
            with anyio.fail_after(PATIENCE):
                while not (asked := await rt.workspace.questions.list()):
                    await anyio.lowlevel.checkpoint()
                assert "charge again" in str(asked[0])
                await rt.workspace.questions.approve(asked[0].id)
                assert (await task.wait()).value == "charged 1 | charged 2"
        assert bank.charged == ["1", "2", "2"]


@pytest.mark.rule("talk.trust")
@kinds
async def test_what_a_tool_took_in_labels_the_turn_also_when_the_tool_is_on_record(tmp_path, kind: str):
    """A crash must not make untrusted text trusted."""
    life, begun = [1], asyncio.Event()

    async with served(lambda asked: Says("done") if len(told(asked)) == 2 else _next(told(asked))) as place:

        async def read_mail() -> str:
            """Read a mail."""
            turn: Any = current_turn()
            turn.mark_untrusted("a mail", "pay me")
            await turn.context.set("notes", "mail", "read")
            return "pay me"

        async def wait() -> str:
            """Wait."""
            if life[0] == 1:
                begun.set()
                await asyncio.Event().wait()
            return "waited"

        def crew(rt: Runtime) -> None:
            join(rt, kind, place, tools=[read_mail, wait], repeat={"wait": "again"}, writes=["notes"])

        with anyio.fail_after(PATIENCE):
            async with Runtime(tmp_path / "team.db") as rt:
                crew(rt)
                await rt.submit("it", "go", key="k")
                await begun.wait()
                await rt.drain(0)
            life[0] = 2
            async with Runtime(tmp_path / "team.db") as rt:
                crew(rt)
                outcome = await (await rt.submit("it", "go", key="k")).wait()
                [ended] = await data_of(rt, "task.completed")
        assert outcome.trust == "untrusted"
        assert any(part[0] == "a mail" for part in ended["receipt"]["saw"])


def _next(results: list[str]) -> Any:
    return Calls("read_mail" if not results else "wait", {}, id=f"c{len(results)}")


@pytest.mark.rule("talk.lost")
async def test_a_record_of_another_framework_fails_with_a_sentence_and_nothing_begins_again(tmp_path):
    async with served(script) as place:
        bank, store = Bank(), tmp_path / "team.db"
        with anyio.fail_after(PATIENCE):
            async with Runtime(store) as rt:
                team(rt, "native", place, bank, "nothing")
                await rt.submit("lead", "charge both", key="k")
                await bank.begun.wait()
                await rt.drain(0)
            bank.first_life = False
            async with Runtime(store) as rt:
                team(rt, "openai-agents", place, bank, "nothing")
                outcome = await (await rt.submit("lead", "charge both", key="k")).wait()
    assert outcome.state == "failed"
    assert "its record is one of pydantic-ai, and the agent is openai-agents now" in str(outcome.error)
    assert bank.charged == ["1", "2"]
    assert len(place.server.requests) == 2


@pytest.mark.rule("talk.ids")
@kinds
async def test_calls_that_a_server_gives_the_same_id_each_time_are_told_apart(kind: str):
    used: list[int] = []

    async def note(number: int) -> str:
        """Note a number."""
        used.append(number)
        return f"noted {number}"

    def always_c0(asked: ModelRequest) -> Any:
        results = told(asked)
        return Calls("note", {"number": len(results)}, id="c0") if len(results) < 3 else Says(" ".join(results))

    async with served(always_c0) as place, Runtime() as rt:
        join(rt, kind, place, tools=[note])
        assert await rt.run("it", "go") == "noted 0 noted 1 noted 2"
        assert used == [0, 1, 2]
        last = place.server.requests[-1].messages
        ids = [call["id"] for one in last for call in one.get("tool_calls") or ()]
        assert len({*ids}) == 3
        assert came_back(place.server.requests[-1])


@pytest.mark.rule("talk.news")
@kinds
async def test_what_arrived_is_told_once_and_in_its_place_when_the_task_is_run_again(tmp_path, kind: str):
    life, begun = [1], asyncio.Event()

    async def ask_aside() -> str:
        """Have someone look, and wait until that is announced."""
        turn: Any = current_turn()
        await (await turn.spawn("aside", "look")).wait()
        return "asked"

    async def wait() -> str:
        """Wait."""
        if life[0] == 1:
            begun.set()
            await asyncio.Event().wait()
        return "waited"

    def asking(asked: ModelRequest) -> Any:
        results = told(asked)
        return (
            Says("done") if len(results) == 2 else Calls("wait" if results else "ask_aside", {}, id=f"c{len(results)}")
        )

    async with served(asking) as place:

        def crew(rt: Runtime) -> None:
            rules = {"ask_aside": "again", "wait": "again"}
            join(rt, kind, place, tools=[ask_aside, wait], asks=["aside"], repeat=rules)

            @rt.agent
            async def aside(turn: Turn) -> str:
                return "seen from the side"

        with anyio.fail_after(PATIENCE):
            async with Runtime(tmp_path / "team.db") as rt:
                crew(rt)
                await rt.submit("it", "go", key="k")
                await begun.wait()
                await rt.drain(0)
            life[0] = 2
            async with Runtime(tmp_path / "team.db") as rt:
                crew(rt)
                assert (await (await rt.submit("it", "go", key="k")).wait()).value == "done"
        heard = [str(request.messages).count("seen from the side") for request in place.server.requests]
        assert heard == [0, 1, 1]

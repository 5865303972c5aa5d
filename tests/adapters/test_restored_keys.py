"""The idempotency keys of a model's tool calls survive a restore, whatever ids the model gives its calls."""

import itertools
from typing import Any

import anyio
import pytest

from adapters.places import KEY, KEY_NAME, KINDS, join, served, told
from remit import Runtime
from remit.ports.turn import current_turn
from remit.testing.doubles import PATIENCE
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


async def keys_of(kind: str, life: str) -> list[str]:
    """Run a team of models with ids of this life, and return the keys its tools got."""
    keys: list[str] = []
    number = itertools.count()

    async def note(what: str, *, idempotency_key: str) -> None:
        keys.append(f"{what} {idempotency_key}")

    async def charge(amount: int) -> str:
        """Charge a customer."""
        turn: Any = current_turn()
        await turn.once("charge", note, f"charge {amount}")
        return f"charged {amount}"

    async def refund(amount: int, idempotency_key: str) -> str:
        """Give a customer something back."""
        await note(f"refund {amount}", idempotency_key=idempotency_key)
        return f"gave back {amount}"

    def script(asked: ModelRequest) -> Any:
        results, id_ = told(asked), f"{life}-{next(number)}"
        wanted = [("charge", {"amount": 1}), ("charge", {"amount": 1})]
        if kind == "native":
            wanted += [("refund", {"amount": 1}), ("refund", {"amount": 1})]
        if "lead" in str(asked.messages[-1 - 2 * len(results)]["content"]):
            wanted = [("call_agent", {"agent": "payer", "task": "pay"})] * 2
        if len(results) < len(wanted):
            name, arguments = wanted[len(results)]
            return Calls(name, arguments, id=id_)
        return Says("done")

    async with served(script) as place, Runtime() as rt:
        tools = [charge, refund] if kind == "native" else [charge]
        join(rt, kind, place, "payer", tools=tools)
        join(rt, kind, place, "boss", asks="*")
        with anyio.fail_after(PATIENCE):
            task = await rt.submit("boss", "lead them", key="order 7")
            assert await task.result() == "done"
    return keys


@pytest.mark.rule("effect.key-restored")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_models_calls_have_the_same_keys_under_other_ids(kind: str):
    first, again = await keys_of(kind, "first"), await keys_of(kind, "again")
    assert first
    assert again == first
    assert len({*first}) == len(first) == (8 if kind == "native" else 4)

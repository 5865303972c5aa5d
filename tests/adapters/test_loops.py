"""Models that insist on getting nowhere, over HTTP: after how many requests each kind of loop has ended."""

import itertools

import pytest

from adapters.insisting import LONG, NUMBERS, TEXTS, asks, hands, played, star
from remit import Runtime, Turn
from remit.settings import Loops
from remit.testing.models import Calls, ModelReply, ModelRequest, Says

pytestmark = pytest.mark.anyio
TWO = {"a": ["b"], "b": ["a"]}
ASKS_B: dict[str, list[str]] = {"a": ["b"], "b": []}
OTHER = {"a": "b", "b": "a"}
OVERLAP = 6  # requests more, where tasks run side by side


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_A", "a")


def ring(length: int) -> tuple[dict[str, list[str]], dict[str, str]]:
    names = "abcd"[:length]
    next_ = dict(zip(names, names[1:] + names[0], strict=True))
    return {name: [other] for name, other in next_.items()}, next_


# -- asking each other ----------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.refusals", "loops.strikes")
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("length", "most"), [(2, 11), (3, 19), (4, 27)])
async def test_models_that_ask_each_other_in_a_ring_end_soon(length: int, most: int, text: str):
    team, whom = ring(length)
    found = await played(asks("call_agent", whom, TEXTS[text]), team)
    assert found.requests <= most
    assert str(found.outcome.error).startswith("'a' was stopped: it was refused again and again: 'b' is not asked in")


@pytest.mark.rule("loops.same-ask", "loops.strikes")
@pytest.mark.parametrize(
    ("verb", "text", "most"),
    [
        ("call_agent_async", "same", 9),
        ("call_agent_async", "changing", 28 + OVERLAP),
        ("spawn_agent", "same", 25 + OVERLAP),
        ("spawn_agent", "changing", 25 + OVERLAP),
    ],
)
async def test_models_that_ask_each_other_without_waiting_end_soon(verb: str, text: str, most: int):
    found = await played(asks(verb, OTHER, TEXTS[text]), TWO)
    assert found.requests <= most


@pytest.mark.rule("loops.refusals")
@pytest.mark.parametrize(("text", "most"), [(None, 5), ("changing", 8)])
async def test_models_that_hand_a_task_to_and_fro_end_soon(text: str | None, most: int):
    found = await played(hands(OTHER, TEXTS[text] if text else None), TWO)
    assert found.requests <= most


@pytest.mark.rule("loops.strikes")
async def test_handing_over_and_asking_in_turn_ends_soon():
    def plays(me: str, _request: ModelRequest) -> ModelReply:
        if me == "b":
            return Calls("handoff", {"agent": "c", "update": {"context": {"n": next(NUMBERS)}}})
        return Calls("call_agent", {"agent": "b" if me == "a" else "a", "task": f"go {next(NUMBERS)}"})

    found = await played(plays, {"a": ["b"], "b": ["c"], "c": ["a"]})
    assert found.requests <= 27


@pytest.mark.rule("loops.refusals")
async def test_a_tool_and_a_refused_hop_in_turn_end_soon():
    def look() -> str:
        """Look."""
        return "nothing"

    verbs = itertools.cycle((Calls("look", {}), Calls("call_agent", {"agent": "nobody", "task": "go"})))
    found = await played(lambda _me, _request: next(verbs), {"a": ["b"], "b": []}, tools=[look])
    assert found.requests <= 17


# -- asking on and on -----------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.same-ask", "loops.stale")
@pytest.mark.parametrize(("text", "workers", "most"), [
    ("same", "b", 9), ("changing", "b", 20), ("same", "bcd", 22), ("changing", "bcd", 24),
])  # fmt: skip
async def test_asking_on_for_the_same_answer_ends_soon(text: str, workers: str, most: int):
    team = {"a": list(workers), **{name: [] for name in workers}}
    found = await played(star(TEXTS[text], lambda: LONG, workers), team)
    assert found.requests <= most


@pytest.mark.rule("loops.same-ask")
@pytest.mark.parametrize(("text", "most"), [("same", 12), ("changing", 29)])
async def test_an_agent_that_uses_a_tool_in_vain_and_puts_it_in_other_words_brings_nothing_new(text: str, most: int):
    def look() -> str:
        """Look."""
        return "nothing"

    def plays(me: str, request: ModelRequest) -> ModelReply:
        if me == "a":
            return Calls("call_agent", {"agent": "b", "task": TEXTS[text]()})
        looked = any(message.get("role") == "tool" for message in request.messages)
        return Says(f"I looked, in other words {next(NUMBERS)}, and found nothing") if looked else Calls("look", {})

    found = await played(plays, {"a": ["b"], "b": []}, tools=[look])
    assert found.requests <= most


@pytest.mark.rule("loops.any-ask")
async def test_the_same_question_with_ever_new_answers_ends_in_the_end():
    found = await played(star(TEXTS["same"], lambda: f"another long answer with the number {next(NUMBERS)}"), ASKS_B)
    assert found.requests <= 29


@pytest.mark.rule("loops.stale")
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
async def test_cycles_of_tool_calls_end_soon(length: int):
    def look(number: int) -> str:
        """Look."""
        return f"page {number}"

    numbers = itertools.cycle(range(length))
    found = await played(lambda _me, _request: Calls("look", {"number": next(numbers)}), {"a": []}, tools=[look])
    assert found.requests <= 12 + length


@pytest.mark.rule("loops.refusals", "model.unknown-tools")
async def test_a_tool_that_is_not_offered_is_a_refusal():
    found = await played(lambda _me, _request: Calls("teleport", {}), {"a": []})
    assert found.requests <= 3
    assert "it called 'teleport' again and again, which it does not have" in str(found.outcome.error)


@pytest.mark.rule("loops.refusals")
async def test_a_tool_that_is_denied_is_a_refusal_with_an_end():
    def plays(_me: str, _request: ModelRequest) -> ModelReply:
        return Calls("call_agent", {"agent": "a", "task": f"go {next(NUMBERS)}"})  # nobody asks itself

    found = await played(plays, {"a": ["b"], "b": []})
    assert found.requests <= 3


# -- talking in circles ---------------------------------------------------------------------------------------------

BRIEF = "Talk about the name of the product until you agree on one. " * 5


@pytest.mark.rule("loops.echo")
async def test_a_chat_that_a_program_leads_ends_when_nobody_says_anything_new():
    def chat(rt: Runtime) -> str:
        @rt.agent(asks="*")
        async def chair(turn: Turn) -> str:
            text = BRIEF
            for name in itertools.cycle("ab"):
                text += f"\n{name}: {await turn.delegate(name, text)}"
            return text

        return "chair"

    found = await played(lambda me, _request: Says(f"{me} says: well, let us see"), {"a": [], "b": []}, program=chat)
    assert found.requests <= 14
    assert "'a' was not asked: 6 times in a row it said again what it had said before" in str(found.outcome.error)


@pytest.mark.rule("loops.echo")
async def test_a_program_that_goes_on_all_the_same_is_stopped():
    asked: list[str] = []

    def chat(rt: Runtime) -> str:
        @rt.agent(asks="*")
        async def chair(turn: Turn) -> None:
            text = BRIEF
            while True:
                text += "\nmore"
                (outcome,) = await turn.delegate_all([("a", text)])
                asked.append(outcome.state)

        return "chair"

    found = await played(lambda _me, _request: Says("no"), {"a": []}, program=chat)
    assert asked.count("completed") == 7
    assert asked.count("refused") <= 11
    assert not found.outcome.ok


@pytest.mark.rule("loops.echo", "loops.stale")
async def test_a_chat_that_a_model_leads_ends_as_well():
    said = [BRIEF]
    turns = itertools.cycle("bc")

    def plays(me: str, _request: ModelRequest) -> ModelReply:
        if me != "a":
            said.append(f"{me}: well, let us see what the others say about it")
            return Says(said[-1])
        return Calls("call_agent", {"agent": next(turns), "task": "\n".join(said)})

    found = await played(plays, {"a": ["b", "c"], "b": [], "c": []})
    assert found.requests <= 22


# -- the whole run --------------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.requests")
async def test_the_models_of_a_run_are_asked_so_often_and_no_more():
    answers = (f"another long answer with the number {number}" for number in itertools.count())
    found = await played(star(TEXTS["changing"], lambda: next(answers)), ASKS_B, loops=Loops(requests=15))
    assert found.requests == 15
    assert "the models of this run have been asked 15 times, which is all they may be; 'b' stops here" in str(
        [event.data for event in found.events]
    )
    assert not found.outcome.ok


@pytest.mark.rule("loops.settings")
async def test_with_all_rules_off_a_cycle_goes_on_until_its_requests_are_used_up():
    def look() -> str:
        """Look."""
        return "nothing"

    def plays(_me: str, _request: ModelRequest) -> ModelReply:
        return Calls("look", {})

    found = await played(plays, {"a": []}, tools=[look], loops=Loops.off(), iterations=25)
    assert found.requests == 25
    assert (found.told(), found.refused(), found.stopped()) == (0, 0, 0)

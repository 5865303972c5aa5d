"""Models that insist on getting nowhere, over HTTP: after how many requests each kind of loop has ended."""

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from adapters.insisting import LONG, NUMBERS, Played, Plays, asks, hands, played, results, star
from remit import Runtime, Turn
from remit.settings import Loops
from remit.testing.models import Calls, ModelReply, ModelRequest, Says

pytestmark = pytest.mark.anyio

Text = Callable[[], str]


def chance() -> int:
    """Give a number as if by chance, another one each time."""
    return int(hashlib.sha256(str(next(NUMBERS)).encode()).hexdigest()[:16], 16)


TEXTS: dict[str, Text] = {
    "same": lambda: "go",
    "changing": lambda: f"go {next(NUMBERS)}",
    "random suffix": lambda: f"go {chance():016x}",
    "pool of 20": lambda: f"go and see to part {chance() % 20}",
}
BRIEF = "Talk about the name of the product until you agree on one. " * 5


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_A", "a")
    NUMBERS.begin_again()


class Loop(NamedTuple):
    """Who may ask whom, what they say, and after how many requests at most it has ended: for each kind of text, or for
    all of them. `program` adds an agent that is one, and begins."""

    team: Mapping[str, Sequence[str]]
    plays: Callable[[Text], Plays]
    most: Sequence[int]
    tools: Sequence[Any] = ()
    program: Callable[[Runtime], str] | None = None


def team(*pairs: str) -> dict[str, list[str]]:
    """`team("a bc", "b", "c")`: a may ask b and c."""
    return {name: [*others] for name, _, others in (pair.partition(" ") for pair in pairs)}


def ring(names: str) -> dict[str, str]:
    return dict(zip(names, names[1:] + names[0], strict=True))


def in_ring(names: str) -> dict[str, list[str]]:
    return {name: [other] for name, other in ring(names).items()}


def look(at: str = "") -> str:
    """Look."""
    return f"nothing at {at}" if at else "nothing"


def breaks() -> str:
    """Break."""
    raise TimeoutError("the service did not answer")


def calls(*given: Calls) -> Callable[[Text], Plays]:
    """Make these calls one after the other, and begin again."""

    def make(_text: Text) -> Plays:
        turns = itertools.cycle(given)
        return lambda _me, _request: next(turns)

    return make


def cycle(length: int) -> Loop:
    return Loop(team("a"), calls(*(Calls("look", {"at": f"{at}"}) for at in range(length))), [12 + length], [look])


def mixed(text: Text) -> Plays:
    """a asks b, which hands over to c, which asks a."""

    def plays(me: str, _request: ModelRequest) -> ModelReply:
        if me == "b":
            return Calls("handoff", {"agent": "c", "update": {"context": {"n": next(NUMBERS)}}})
        return Calls("call_agent", {"agent": "b" if me == "a" else "a", "task": text()})

    return plays


def in_vain(text: Text) -> Plays:
    """b looks, finds nothing, and puts it in other words each time."""

    def plays(me: str, request: ModelRequest) -> ModelReply:
        if me == "a":
            return Calls("call_agent", {"agent": "b", "task": text()})
        looked = bool(results(request))
        return Says(f"I looked, in other words {next(NUMBERS)}, and found nothing") if looked else Calls("look", {})

    return plays


def new_answers(text: Text) -> Plays:
    return star(text, lambda: f"another long answer with the number {next(NUMBERS)}")


def chat_led_by_a_program(rt: Runtime) -> str:
    @rt.agent(asks="*")
    async def chair(turn: Turn) -> str:
        text = BRIEF
        for name in itertools.cycle("ab"):
            text += f"\n{name}: {await turn.delegate(name, text)}"
        return text

    return "chair"


def chat_led_by_a_model(_text: Text) -> Plays:
    said, turns = [BRIEF], itertools.cycle("bc")

    def plays(me: str, _request: ModelRequest) -> ModelReply:
        if me != "a":
            said.append(f"{me}: well, let us see what the others say about it")
            return Says(said[-1])
        return Calls("call_agent", {"agent": next(turns), "task": "\n".join(said)})

    return plays


LOOPS: dict[str, Loop] = {
    "two ask each other": Loop(in_ring("ab"), lambda text: asks("call_agent", ring("ab"), text), [11, 11, 11, 11]),
    "a ring of three": Loop(in_ring("abc"), lambda text: asks("call_agent", ring("abc"), text), [19, 19, 19, 19]),
    "a ring of four": Loop(in_ring("abcd"), lambda text: asks("call_agent", ring("abcd"), text), [27, 27, 27, 27]),
    "two ask each other without waiting": Loop(
        in_ring("ab"), lambda text: asks("call_agent_async", ring("ab"), text), [9, 29, 29, 29]
    ),
    "two spawn each other": Loop(in_ring("ab"), lambda text: asks("spawn_agent", ring("ab"), text), [25, 25, 25, 25]),
    "two hand over to each other": Loop(in_ring("ab"), lambda _text: hands(ring("ab")), [5]),
    "two hand over with other words": Loop(in_ring("ab"), lambda text: hands(ring("ab"), text), [5, 8, 8]),
    "handing over and asking": Loop(in_ring("abc"), mixed, [27, 27, 27, 27]),
    "a tool and a refused hop in turn": Loop(
        team("a b", "b"), calls(Calls("look", {}), Calls("call_agent", {"agent": "nobody", "task": "go"})), [17], [look]
    ),
    "one worker, the same answer": Loop(team("a b", "b"), lambda text: star(text, lambda: LONG), [9, 20, 20, 20]),
    "three workers, the same answer": Loop(
        team("a bcd", "b", "c", "d"), lambda text: star(text, lambda: LONG, "bcd"), [22, 24, 24, 24]
    ),
    "a worker that looks in vain": Loop(team("a b", "b"), in_vain, [12, 29, 29, 29], [look]),
    "the same question, ever new answers": Loop(team("a b", "b"), new_answers, [29]),
    **{f"a cycle of {length} calls": cycle(length) for length in range(1, 6)},
    "a chat that a program leads": Loop(
        team("a", "b"),
        lambda _text: lambda me, _request: Says(f"{me}: let us see"),
        [14],
        program=chat_led_by_a_program,
    ),
    "a chat that a model leads": Loop(team("a bc", "b", "c"), chat_led_by_a_model, [22]),
}


# -- loops of our own -----------------------------------------------------------------------------------------------


def picks(text: Text) -> Plays:
    """Everybody asks somebody else, by chance."""

    def plays(me: str, _request: ModelRequest) -> ModelReply:
        whom = [name for name in "abcd" if name != me]
        return Calls("call_agent", {"agent": whom[chance() % 3], "task": text()})

    return plays


def by_chance(_text: Text) -> Plays:
    return lambda _me, _request: Calls("look", {"at": f"{chance() % 5}"})


def by_turns(*verbs: str, whom: Mapping[str, str]) -> Callable[[Text], Plays]:
    """Ask by one verb after the other; whoever is asked nobody answers."""

    def make(text: Text) -> Plays:
        turns = itertools.cycle(verbs)

        def plays(me: str, _request: ModelRequest) -> ModelReply:
            if me not in whom:
                return Says(LONG)
            return Calls(next(turns), {"agent": whom[me], "task": text()})

        return plays

    return make


def politely(_text: Text) -> Plays:
    numbers = itertools.count(1)
    return star(lambda: f"Please look again! (attempt {next(numbers)})", lambda: LONG)


def in_batches(text: Text) -> Plays:
    def plays(me: str, _request: ModelRequest) -> ModelReply:
        if me != "a":
            return Says(LONG)
        one, *others = [Calls("call_agent", {"agent": "b", "task": text()}) for _ in range(5)]
        return Calls(one.name, one.arguments, also=others)

    return plays


def numbered(name: str, **given: str) -> Callable[[Text], Plays]:
    """Call a tool with a number in its name or in what it is given, each time another."""

    def make(_text: Text) -> Plays:
        def plays(_me: str, _request: ModelRequest) -> ModelReply:
            number = next(NUMBERS)
            return Calls(name.format(number), {key: value.format(number) for key, value in given.items()})

        return plays

    return make


def asks_how_far(_text: Text) -> Plays:
    """Ask for something without waiting, and then on and on what became of it."""

    def plays(me: str, request: ModelRequest) -> ModelReply:
        if me != "a":
            return Says("it is done, and here is what came of it")
        came = results(request)
        if not came:
            return Calls("call_agent_async", {"agent": "b", "task": "go"})
        return Calls("check_delegation_status", {"task": came[0].split('"task":"')[1].split('"')[0]})

    return plays


OWN_LOOPS: dict[str, Loop] = {
    "four ask each other by chance": Loop(
        {name: [other for other in "abcd" if other != name] for name in "abcd"}, picks, [45, 45]
    ),
    "asking and not waiting in turn": Loop(
        in_ring("ab"), by_turns("call_agent", "call_agent_async", whom=ring("ab")), [11, 11]
    ),
    "the same by three verbs": Loop(
        team("a b", "b"), by_turns("call_agent", "call_agent_async", "spawn_agent", whom={"a": "b"}), [14]
    ),
    "a ring of three that hands over": Loop(in_ring("abc"), lambda text: hands(ring("abc"), text), [6, 8]),
    "asking politely, with the number of the attempt": Loop(team("a b", "b"), politely, [9]),
    "five at once, the same answer": Loop(team("a b", "b"), in_batches, [12, 60]),
    "a tool that always fails": Loop(team("a"), calls(Calls("breaks", {})), [13], [breaks]),
    "a tool that fails, and one that finds nothing": Loop(
        team("a"), calls(Calls("breaks", {}), Calls("look", {})), [14], [breaks, look]
    ),
    "five pages by chance": Loop(team("a"), by_chance, [40], [look]),
    "tools that it does not have, another each time": Loop(team("a"), numbered("teleport_{}"), [12]),
    "a tool that it does not have, with other words": Loop(team("a"), numbered("teleport", where="to {}"), [3]),
    "agents that it may not ask, in turn": Loop(
        team("a b", "b"), calls(*(Calls("call_agent", {"agent": name, "task": "go"}) for name in ("x", "y"))), [5]
    ),
    "listing who is there": Loop(team("a b", "b"), calls(Calls("list_agents", {})), [13]),
    "noting the same again and again": Loop(
        team("a b", "b"), calls(Calls("remember", {"key": "plan", "value": "go"})), [13]
    ),
    "asking on what became of something that has ended": Loop(team("a b", "b"), asks_how_far, [16]),
}


def rows(loops: Mapping[str, Loop]) -> list[Any]:
    return [
        pytest.param(loop, text, most, id=name if len(loop.most) == 1 else f"{name}, {text}")
        for name, loop in loops.items()
        for text, most in zip(TEXTS, loop.most, strict=False)
    ]


async def play(loop: Loop, text: str) -> Played:
    return await played(loop.plays(TEXTS[text]), loop.team, tools=loop.tools, program=loop.program)


@pytest.mark.rule(
    "loops.measured",
    "loops.same-ask",
    "loops.any-ask",
    "loops.refusals",
    "loops.strikes",
    "loops.stale",
    "loops.beside",
)
@pytest.mark.parametrize(("loop", "text", "most"), rows(LOOPS))
async def test_a_loop_has_ended_after_so_many_requests(loop: Loop, text: str, most: int):
    assert (await play(loop, text)).requests <= most


@pytest.mark.rule("loops.measured", "loops.ended")
@pytest.mark.parametrize(("loop", "text", "most"), rows(OWN_LOOPS))
async def test_other_loops_have_ended_as_soon(loop: Loop, text: str, most: int):
    assert (await play(loop, text)).requests <= most


# -- how they end ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.refusals", "loops.strikes")
async def test_a_model_that_goes_on_asking_is_told_why_it_was_stopped():
    found = await play(LOOPS["two ask each other"], "changing")
    assert str(found.outcome.error).startswith("'a' was stopped: it was refused again and again: 'b' is not asked in")


@pytest.mark.rule("loops.echo")
async def test_who_says_the_same_to_a_growing_text_is_named():
    found = await play(LOOPS["a chat that a program leads"], "same")
    assert "'a' was not asked: 6 times in a row it said again what it had said before" in str(found.outcome.error)


@pytest.mark.rule("loops.refusals", "model.unknown-tools")
async def test_a_tool_that_is_not_offered_is_a_refusal():
    found = await played(lambda _me, _request: Calls("teleport", {}), {"a": []})
    assert found.requests <= 3
    assert "it called 'teleport' again and again, which it does not have" in str(found.outcome.error)


@pytest.mark.rule("loops.refusals")
async def test_asking_oneself_is_a_refusal_with_an_end():
    def plays(_me: str, _request: ModelRequest) -> ModelReply:
        return Calls("call_agent", {"agent": "a", "task": f"go {next(NUMBERS)}"})  # nobody asks itself

    found = await played(plays, {"a": ["b"], "b": []})
    assert found.requests <= 3


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


@pytest.mark.rule("loops.requests")
async def test_the_models_of_a_run_are_asked_so_often_and_no_more():
    answers = (f"another long answer with the number {number}" for number in itertools.count())
    found = await played(star(TEXTS["changing"], lambda: next(answers)), team("a b", "b"), loops=Loops(requests=15))
    assert found.requests == 15
    assert "the models of this run have been asked 15 times, which is all they may be; 'b' stops here" in str(
        [event.data for event in found.events]
    )
    assert not found.outcome.ok


@pytest.mark.rule("loops.settings")
async def test_with_all_rules_off_a_cycle_goes_on_until_its_requests_are_used_up():
    def plays(_me: str, _request: ModelRequest) -> ModelReply:
        return Calls("look", {})

    found = await played(plays, {"a": []}, tools=[look], loops=Loops.off(), iterations=25)
    assert found.requests == 25
    assert (found.told(), found.refused(), found.stopped()) == (0, 0, 0)


@pytest.mark.rule("loops.refusals")
@pytest.mark.parametrize("deny", [["look"], ["group:fs"]])
async def test_a_tool_that_is_denied_is_a_refusal_with_an_end(deny: list[str]):
    def read_file(path: str) -> str:
        """Read a file."""
        raise AssertionError(path)

    def plays(_me: str, _request: ModelRequest) -> ModelReply:
        return Calls("look" if deny == ["look"] else "read_file", {"path": f"{next(NUMBERS)}"})

    found = await played(plays, team("a"), tools=[look, read_file], deny=deny)
    assert found.requests <= 3
    assert "again and again" in str(found.outcome.error)

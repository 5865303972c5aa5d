"""Guards of the owner: facts in, verdict out, named in the refusal, and never a yes by mistake."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.places import KEY, KEY_NAME, KINDS, join, served, told
from engine.helping import PATIENCE, sound
from engine.test_owners_functions import PASSAGES, broken, catching, fan_out, in_a_group, nothing_is_left
from remit import Card, Command, Plan, Runtime, Step, Turn
from remit.errors import BadInput, Failed, Refused
from remit.report.lines import plain_line
from remit.settings import Policy, Serving
from remit.testing.models import Calls, Says
from remit.types import WantedHop
from teams import echo

pytestmark = pytest.mark.anyio


def crew(rt: Runtime, lead: Any) -> None:
    rt.add(Card("a", asks="*", tools="call_agent"), lead)
    for name in ("b", "c"):
        rt.add(Card(name, tools="exec"), echo)


def not_b(hop: WantedHop) -> str | None:
    return "it is closed today" if hop.agent in ("b", "c") else None


NO = "'b' was not asked: it is closed today; ask another agent, or finish without it"


@pytest.mark.rule("guard.own")
@pytest.mark.parametrize("passage", PASSAGES, ids=lambda one: one.__name__)
async def test_a_guard_of_the_owner_refuses_at_every_passage_with_its_name_and_reason(passage: Any):
    with Runtime() as rt:
        crew(rt, passage)
        rt.guard(not_b)
        with anyio.fail_after(PATIENCE):
            ended = await rt.outcome("a", "x")
        refused = [event for event in await rt.workspace.journal.history() if event.kind.endswith("refused")]
        assert (refused[0].data["rule"], refused[0].data["sentence"]) == ("guard.not_b", NO)
        joins = passage is fan_out  # and then does the same again
        assert "it is closed today" in str(ended.value or ended.error) or joins
        assert {task.agent for task in await rt.workspace.tasks.list()} == {"a"}
        await nothing_is_left(rt)


@pytest.mark.rule("guard.own")
async def test_a_guard_judges_what_a_person_starts_too(rt: Runtime):
    crew(rt, echo)
    rt.guard(not_b)
    assert await rt.run("a", "x") == "x"
    with pytest.raises(Refused) as refused:
        await rt.run("b", "x")
    assert (refused.value.rule, str(refused.value)) == ("guard.not_b", NO)
    with pytest.raises(Refused, match="closed today"):
        await rt.submit("b", "x")


@pytest.mark.rule("guard.facts")
async def test_a_guard_gets_the_facts_of_a_hop(rt: Runtime):
    seen: list[WantedHop] = []

    @rt.guard
    def look(hop: WantedHop) -> None:
        seen.append(hop)

    async def ask(turn: Turn) -> Any:
        return await turn.delegate({"a": "b", "b": "c"}[turn.agent], "part", credits="$1")

    async def hand(turn: Turn) -> Command:
        return Command("d", {"phase": "x"})

    await rt.workspace.money.grant("$10")
    rt.add(Card("a", asks="*"), ask)
    rt.add(Card("b", asks="*"), ask)
    rt.add(Card("c", asks="*"), hand)
    rt.add(Card("d", role="last"), echo)
    outcome = await rt.outcome("a", "go", by="ann", session="s", credits="$3")
    told = [(one.kind, one.asker, one.agent, one.chain, one.depth) for one in seen]
    assert told == [
        ("begin", "", "a", (), 0),
        ("delegate", "a", "b", ("a",), 1),
        ("delegate", "b", "c", ("a", "b"), 2),
        ("handoff", "c", "d", ("a", "b", "c"), 2),
    ]
    assert {(one.by, one.session, one.run, one.trust) for one in seen} == {("ann", "s", outcome.id, "trusted")}
    assert [(one.task, one.credits, one.card.role) for one in seen[:2]] == [
        ("go", 3_000_000, ""),
        ("part", 1_000_000, ""),
    ]
    assert seen[-1].card.role == "last"


@pytest.mark.rule("guard.own")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_model_of_every_kind_is_told_why(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(KEY_NAME, KEY)
    replies = [Calls("call_agent", {"agent": "b", "task": "look"}), Says("done")]
    async with served(replies) as place, Runtime() as rt:
        rt.add(Card("b"), echo)
        join(rt, kind, place, asks=["b"])
        rt.guard(not_b)
        assert await rt.run("it", "go") == "done"
        assert "it is closed today" in told(place.server.requests[-1])[0]
        await sound(rt)


@pytest.mark.rule("guard.own")
async def test_the_steps_of_a_persons_plan_are_judged_one_by_one():
    with Runtime() as rt:
        crew(rt, echo)
        rt.guard(not_b)
        outcome = await rt.run_plan(Plan([Step("one", "x", agent="a"), Step("two", "y", agent="b")]))
        assert [step.state for step in outcome.steps.values()] == ["completed", "failed"]


@pytest.mark.rule("guard.own")
async def test_a_guard_comes_before_a_persons_approval():
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused, match="closed today"):
            await turn.delegate("b", "x")
        return "went on"

    with Runtime(policy=Policy(needs_approval=lambda _hop: True)) as rt:
        crew(rt, lead)
        rt.guard(not_b)
        assert await rt.run("a", "x") == "went on"
        assert await rt.workspace.questions.list() == []


@pytest.mark.rule("guard.verdict")
@pytest.mark.parametrize("said", [None, True])
async def test_none_and_true_are_a_yes(rt: Runtime, said: Any):
    rt.add(Card("a"), echo)

    @rt.guard
    def yes(_hop: WantedHop) -> Any:
        return said

    assert await rt.run("a", "x") == "x"
    assert rt.stack("a").guards == ("yes",)


@pytest.mark.rule("guard.verdict")
async def test_false_is_a_no_that_names_the_guard(rt: Runtime):
    rt.add(Card("a"), echo)

    @rt.guard
    def never(_hop: WantedHop) -> bool:
        return False

    with pytest.raises(Refused, match="'a' was not asked: the guard never says no; ask another agent"):
        await rt.run("a", "x")


async def a_coroutine() -> None: ...


@pytest.mark.rule("guard.verdict", "owner.function")
@pytest.mark.parametrize(
    "said", [0, 1, "", " ", [], a_coroutine], ids=["0", "1", "nothing", "space", "list", "coroutine"]
)
async def test_whatever_else_it_returns_is_an_error_and_never_a_yes(rt: Runtime, said: Any):
    async def ask(turn: Turn) -> Any:
        return await turn.delegate("b", "x")

    crew(rt, ask)

    @rt.guard
    def odd(hop: WantedHop) -> Any:
        return None if hop.kind == "begin" else said() if callable(said) else said

    with pytest.raises(
        Failed, match="a guard returns None or True for yes, a text or False for no, not .* in the guard odd"
    ):
        await rt.run("a", "x")
    await nothing_is_left(rt)


def fails(hop: WantedHop) -> Any:
    return None if hop.kind == "begin" else broken(hop)


@pytest.mark.rule("owner.function")
@pytest.mark.parametrize("catches", [False, True])
@pytest.mark.parametrize("passage", [one for one in PASSAGES if one is not in_a_group], ids=lambda one: one.__name__)
async def test_a_guard_that_raises_fails_the_task_at_every_passage(passage: Any, catches: bool):
    with Runtime() as rt:
        crew(rt, catching(passage) if catches else passage)
        rt.guard(fails)
        with anyio.fail_after(PATIENCE):
            ended = await rt.outcome("a", "x")
        assert ended.state == "failed", ended
        assert "KeyError: 'my bug' in the guard fails (test_owners_functions.py:" in str(ended.error)
        await nothing_is_left(rt)


@pytest.mark.rule("owner.function")
async def test_a_person_gets_the_error_of_a_guard_that_raises(rt: Runtime):
    rt.add(Card("a"), echo)

    @rt.guard
    def fails(_hop: WantedHop) -> Any:
        raise KeyError("my bug")

    with pytest.raises(KeyError, match="my bug"):
        await rt.run("a", "x")
    with pytest.raises(KeyError, match="my bug"):
        await rt.submit("a", "x")
    await nothing_is_left(rt)


@pytest.mark.rule("guard.claim")
@pytest.mark.parametrize("raises", [False, True])
async def test_a_worker_judges_what_a_process_without_its_guards_has_submitted(tmp_path: Path, raises: bool):
    where = tmp_path / "team.db"
    with Runtime(where) as rt, Runtime(where, serving=Serving(concurrency=0)) as outside:
        for one in (rt, outside):
            one.add(Card("b"), echo)
        task = await outside.submit("b", "x", by="mallory")
        fine = await outside.submit("b", "y", by="ann")

        @rt.guard
        def only_ann(hop: WantedHop) -> Any:
            return True if hop.by == "ann" else broken() if raises else "ask Ann to start it"

        async with rt.serving():
            with anyio.fail_after(PATIENCE):
                assert await fine.result() == "y"
                with pytest.raises(Failed, match="my bug" if raises else "ask Ann to start it"):
                    await task.result()


@pytest.mark.rule("by.run", "by.lists")
async def test_every_task_of_a_run_knows_who_started_it(anywhere: Runtime):
    rt = anywhere
    seen: dict[str, str] = {}

    async def lead(turn: Turn) -> Any:
        seen[turn.agent] = turn.remit.by
        await turn.delegate("b", "x")
        await (await turn.submit("c", "x")).result()
        return Command("d")

    async def look(turn: Turn) -> str:
        seen[turn.agent] = turn.remit.by
        return "seen"

    rt.add(Card("a", asks="*"), lead)
    for name in ("b", "c", "d"):
        rt.add(Card(name), look)
    with anyio.fail_after(PATIENCE):
        assert await (await rt.submit("a", "x", by="ann")).result() == "seen"
        assert seen == dict.fromkeys("abcd", "ann")
        await rt.run("b", "x")
    assert seen["b"] == ""
    listed = await rt.workspace.tasks.list(by="ann")
    assert sorted(task.agent for task in listed) == ["b", "c", "d"]
    assert [task.agent for task in await rt.workspace.tasks.list(by="ann", asker="a", agent="b")] == ["b"]
    assert [task.agent for task in await rt.workspace.tasks.list(by="")] == ["b"]
    assert await rt.workspace.tasks.list(by="bob") == []
    lines = [plain_line(event) for event in await rt.workspace.journal.history()]
    assert sum("(by ann)" in line for line in lines) == 1


@pytest.mark.rule("input.told")
def test_what_is_no_guard_is_refused_with_the_form():
    rt = Runtime()

    async def later(_hop: WantedHop) -> None: ...

    def two(_one: object, _other: object) -> None: ...

    with pytest.raises(BadInput, match="a guard is a plain function, not"):
        rt.guard(later)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="guard takes a function of a WantedHop"):
        rt.guard("no")  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="write it with def"):
        rt.guard(lambda _hop: None)
    with pytest.raises(BadInput, match="takes one argument"):
        rt.guard(two)  # pyright: ignore[reportArgumentType]
    rt.guard(not_b)
    with pytest.raises(BadInput, match="there is already a guard 'not_b'"):
        rt.guard(not_b)

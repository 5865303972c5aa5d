"""Carried out again after a crash: what was finished is found and not repeated, what was open is taken up."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from engine.helping import PATIENCE, doomed, life, named, reached, sound, take_over
from engine.lives import Crew, Stage, played, result
from remit import Card, Command, Plan, Runtime, Send, Step, Turn
from remit.report.tree import tree
from teams import team

pytestmark = pytest.mark.anyio


@pytest.mark.rule("crash.replay", "effect.once")
async def test_finished_delegations_and_steps_are_not_repeated(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def charge(amount: int) -> dict:
            stage.did.append(f"charge {amount}")
            return {"charged": amount}

        async def lead(turn: Turn) -> list:
            one = await turn.once("charge", charge, 5)
            two = await turn.once("charge", charge, 6)
            three = await turn.delegate("coder", "x")
            four = await turn.delegate("coder", "x")
            with pytest.raises(Exception, match="no such thing"):
                await turn.delegate("bad", "x")
            await stage.crash()
            five = await turn.once("after", lambda: stage.did.append("after"))
            return [one, two, three, four, five]

        async def coder(turn: Turn) -> str:
            stage.did.append("coder")
            return f"{len(stage.did)}"

        async def bad(turn: Turn) -> None:
            stage.did.append("bad")
            raise ValueError("no such thing")

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("coder"), coder)
        rt.add(Card("bad"), bad)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as rt:
        assert await result(rt) == [{"charged": 5}, {"charged": 6}, "3", "4", None]
        assert stage.did == ["charge 5", "charge 6", "coder", "coder", "bad", "after"]
        assert sum(event.kind == "effect.done" for event in await rt.workspace.journal.history()) == 3


@pytest.mark.rule("crash.replay")
async def test_context_writes_and_sends_are_not_repeated(tmp_path, clock):
    written = anyio.Event()

    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> list:
            if not stage.first:
                await written.wait()
            first = await turn.context.set("notes", "a", "x", expect=0)
            second = await turn.context.set("notes", "a", "x")
            third = await turn.context.set("notes", "a", "y", expect=2)
            board = await turn.context.board.set("b", 1)
            await turn.send("coder", "hello")
            gone = await turn.context.remove("notes", "gone")
            await stage.crash()
            return [first, second, third, board, gone]

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("coder"), lead)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as rt:
        await rt.workspace.context().set("notes", "gone", "not yet there before the crash")
        written.set()
        assert await result(rt) == [1, 2, 3, 1, True]
        entry = await rt.workspace.context().entry("notes", "a")
        assert (entry.version, entry.value) == (3, "y")
        kinds = [event.kind for event in await rt.workspace.journal.history()]
        assert (kinds.count("message.sent"), kinds.count("entry.set")) == (1, 5)


@pytest.mark.rule("crash.replay")
async def test_what_was_taken_from_the_inbox_is_found_again(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> list[list[str]]:
            await turn.delegate("coder", "one")
            first = [one.text for one in await turn.inbox()]
            await turn.delegate("coder", "two")
            second = [one.text for one in await turn.inbox()]
            await stage.crash()
            await turn.delegate("coder", "three")
            return [first, second, [one.text for one in await turn.inbox()]]

        async def coder(turn: Turn) -> None:
            await turn.send("lead", turn.task)

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("coder", asks="*"), coder)

    async with played(tmp_path, clock, crew, Stage()) as rt:
        assert await result(rt) == [["one"], ["two"], ["three"]]


@pytest.mark.rule("crash.replay")
async def test_open_children_are_taken_up_and_not_started_twice(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> list:
            return [str(one.value) for one in await turn.delegate_all([("quick", "x"), ("middle", "x")])]

        async def quick(turn: Turn) -> str:
            stage.did.append("quick")
            return "quick"

        async def middle(turn: Turn) -> str:
            await turn.once("middle", lambda: stage.did.append("middle"))
            return await turn.delegate("deep", "x")

        async def deep(turn: Turn) -> str:
            await turn.once("deep", lambda: stage.did.append("deep"))
            await stage.crash()
            return "deep"

        for name, answer in (("lead", lead), ("quick", quick), ("middle", middle), ("deep", deep)):
            rt.add(Card(name, asks="*"), answer)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as rt:
        assert await result(rt) == ["quick", "deep"]
        assert sorted(stage.did) == ["deep", "middle", "quick"]
        assert len(await rt.workspace.tasks.list()) == 4
        assert await life(rt, await named(rt, "deep")) == ["started", "fenced", "claimed", "completed"]


@pytest.mark.rule("crash.replay")
async def test_submitted_and_spawned_children_are_asked_for_once(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> list:
            tasks = [await turn.submit("coder", "a"), await turn.spawn("coder", "b"), await turn.spawn("coder", "b")]
            for task in tasks:
                await task.wait(PATIENCE)
            await stage.crash()
            found = [str(await task.result(PATIENCE)) for task in tasks]
            texts = [one.about for one in await turn.inbox()]
            return [found, sorted(texts) == sorted(task.id for task in tasks[1:])]

        async def coder(turn: Turn) -> str:
            stage.did.append(turn.task)
            return turn.task

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("coder"), coder)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as rt:
        assert await result(rt) == [["a", "b", "b"], True]
        assert sorted(stage.did) == ["a", "b", "b"]


@pytest.mark.rule("crash.replay", "concurrency.queue")
async def test_a_task_that_was_waiting_waits_again_without_a_slot(tmp_path, clock):
    """One slot in the workspace, and the child has not begun: the heir must not sit on the slot while it waits."""
    with (
        doomed(tmp_path / "team.db", clock, concurrency=1) as dead,
        team(tmp_path / "team.db", clock=clock, concurrency=1) as heir,
    ):

        async def lead(turn: Turn) -> str:
            return await (await turn.submit("coder", "x")).result()

        async def coder(turn: Turn) -> str:
            return "done"

        dead.add(Card("lead", asks="*"), lead)
        dead.add(Card("coder"), _stay)
        task = await dead.submit("lead", "go")
        await reached(dead, task.id, "waiting")
        await reached(dead, await named(dead, "coder"), "running")
        heir.add(Card("lead", asks="*"), lead)
        heir.add(Card("coder"), coder)
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "done"
        await sound(heir)


async def _stay(turn: Turn) -> None:
    await anyio.sleep_forever()


@pytest.mark.rule("crash.replay")
async def test_steps_of_a_plan_are_not_repeated(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> list:
            outcome = await turn.run_plan(
                Plan(
                    [
                        Step("a", "first", "do a", agent="member"),
                        Step("b", "second", "do b", agent="member", after=["a"]),
                        Step("c", "third", "do c", agent="slow", after=["b"]),
                        Step("d", "fourth", "do d", agent="member", after=["c"]),
                    ]
                )
            )
            return [step.state for step in outcome.steps.values()]

        async def member(turn: Turn) -> str:
            stage.did.append(turn.task.partition("\n")[0][-8:])
            return "ok"

        async def slow(turn: Turn) -> str:
            stage.did.append("slow")
            await stage.crash()
            return "ok"

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("member"), member)
        rt.add(Card("slow"), slow)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as rt:
        assert await result(rt) == ["completed"] * 4
        assert len(stage.did) == 5  # the slow one was taken up again, the others were not
        assert len(await rt.workspace.tasks.list()) == 5
        assert sum(event.kind == "plan.started" for event in await rt.workspace.journal.history()) == 1


@pytest.mark.rule("crash.replay")
async def test_a_task_that_was_handed_over_goes_on_with_its_present_holder(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> Command:
            stage.did.append("lead")
            await turn.once("pay", lambda: stage.did.append("pay"))
            return Command("second", {"context": {"a": 1}, "completed": ["x"], "remaining": ["y"]})

        async def second(turn: Turn) -> Command:
            stage.did.append("second")
            await turn.once("pay", lambda: stage.did.append("pay again"))
            return Command("third", {"context": {"b": 2}, "completed": ["y"]})

        async def third(turn: Turn) -> dict:
            stage.did.append("third")
            await turn.once("pay", lambda: stage.did.append("pay a third time"))
            await stage.crash()
            state = turn.handoff.state
            return {
                "sender": turn.handoff.sender,
                "context": state.context,
                "done": list(state.completed),
                "trail": [f"{move.sender}>{move.to}" for move in turn.handoff.trail],
                "names": list(turn.remit.names),
            }

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("second", asks="*"), second)
        rt.add(Card("third", asks="*"), third)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as rt:
        task = (await rt.workspace.tasks.list())[0].id
        assert await rt.workspace.tasks.get(task).result(PATIENCE) == {
            "sender": "second",
            "context": {"a": 1, "b": 2},
            "done": ["x", "y"],
            "trail": ["lead>second", "second>third"],
            "names": ["third"],
        }
        assert stage.did == ["lead", "pay", "second", "pay again", "third", "pay a third time", "third"]


def fan_out(join: str, before: Callable[[Stage, str], Awaitable[None]]) -> Crew:
    """A lead that hands parts to two at once; `before` says where the first process ends."""

    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> object:
            if turn.handoff.results:
                await before(stage, "join")
                return sorted(str(one.value) for one in turn.handoff.results)
            stage.did.append("lead")
            return Command([Send("part", "a"), Send("part", "b")], {"context": {"k": 1}}, join=join)

        async def part(turn: Turn) -> str:
            stage.did.append(turn.task)
            if turn.task == "b":
                await before(stage, "part")
            return turn.task

        async def other(turn: Turn) -> list:
            await before(stage, "join")
            results = sorted(str(one.value) for one in turn.handoff.results)
            return [*results, turn.handoff.sender, turn.handoff.state.context, len(turn.handoff.trail)]

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("part"), part)
        rt.add(Card("other", asks="*"), other)

    return crew


@pytest.mark.rule("crash.replay")
@pytest.mark.parametrize(
    ("join", "at"),
    [("", "part"), ("", "join"), ("other", "part"), ("other", "join")],
)
async def test_a_parallel_handoff_resumes(tmp_path, clock, join: str, at: str):
    async def before(stage: Stage, where: str) -> None:
        if where == at:
            await stage.crash()

    stage = Stage()
    async with played(tmp_path, clock, fan_out(join, before), stage) as rt:
        root = (await rt.workspace.tasks.list())[-1].id
        expected = ["a", "b"] if not join else ["a", "b", "lead", {"k": 1}, 1]
        assert await rt.workspace.tasks.get(root).result(PATIENCE) == expected
        assert stage.did.count("lead") == 1
        assert len(await rt.workspace.tasks.list()) == 3


@pytest.mark.rule("crash.replay")
async def test_children_not_asked_for_again_are_closed_as_cancelled(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> str:
            if stage.first:
                await turn.delegate("middle", "x")
            return "another way"

        async def middle(turn: Turn) -> None:
            await turn.delegate("deep", "x")

        async def deep(turn: Turn) -> None:
            await stage.crash()

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("middle", asks="*"), middle)
        rt.add(Card("deep"), deep)

    async with played(tmp_path, clock, crew, Stage()) as rt:
        assert await result(rt) == "another way"
        for name in ("middle", "deep"):
            status = await rt.workspace.tasks.get(await named(rt, name)).status()
            assert status.state == "cancelled"
        assert await rt.workspace.tasks.list(state="open") == []


@pytest.mark.rule("crash.replay")
async def test_a_refusal_is_the_same_refusal_again(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> list[str]:
            said = []
            for verb in (turn.delegate, turn.submit):
                try:
                    await verb("nobody", "x")
                except Exception as no:
                    said.append(getattr(no, "rule", str(no)))
            await stage.crash()
            return said

        rt.add(Card("lead", asks="*"), lead)

    async with played(tmp_path, clock, crew, Stage()) as rt:
        assert await result(rt) == ["unknown", "unknown"]
        assert sum(event.kind == "hop.refused" for event in await rt.workspace.journal.history()) == 2


@pytest.mark.rule("crash.replay", "tier.at-once")
async def test_tokens_that_were_said_before_the_crash_count_once(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> str:
            await turn.report_tokens(100)
            await turn.report_tokens(100)
            await stage.crash()
            await turn.report_tokens(7)
            return "done"

        rt.add(Card("lead"), lead)

    async with played(tmp_path, clock, crew, Stage()) as rt:
        assert await result(rt) == "done"
        (run,) = await rt.workspace.tasks.runs()
        assert run.facts.tokens == 207
        root = tree(await rt.workspace.journal.history())
        assert root is not None
        assert root.tokens == 207

"""Progress: the latest report of a running task, seen at once here and with the heartbeat elsewhere, and no event."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, a_few_rounds, sound
from engine.test_retry import next_try
from remit import Card, Command, Outcome, Runtime, Turn, Workspace
from remit.errors import BadInput, Cancelled, Refused
from remit.report.lines import plain_line
from remit.report.words import notes
from remit.testing import FakeClock
from remit.types import Progress
from teams import team

pytestmark = pytest.mark.anyio


class Working:
    """An agent that reports, says so, and goes on when it is let."""

    def __init__(self) -> None:
        self.reported, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, turn: Turn) -> str:
        turn.progress("1 of 10", 0.1)
        turn.progress("3 of 10", fraction=0.3)
        self.reported.set()
        await self.go.wait()
        return "done"


@pytest.mark.rule("progress.live")
async def test_the_latest_report_of_a_running_task_can_be_read_and_is_gone_when_it_has_ended(rt: Runtime):
    working = Working()
    rt.add(Card("a"), working)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(rt.run, "a", "x")
            await working.reported.wait()
            [found] = (await rt.workspace.tasks.progress()).values()
            assert (found.agent, found.text, found.fraction, str(found)) == ("a", "3 of 10", 0.3, "3 of 10 (30 %)")
            working.go.set()
    assert await rt.workspace.tasks.progress() == {}


@pytest.mark.rule("progress.every")
async def test_a_report_that_comes_too_soon_is_skipped_if_told(rt: Runtime, clock: FakeClock):
    @rt.agent
    async def a(turn: Turn) -> list[bool]:
        made = [turn.progress("1 of 3", every=10), turn.progress("2 of 3", 0.5, every=10)]
        clock.jump(10)
        return [*made, turn.progress("2 of 3", 0.5, every=10), turn.progress("3 of 3", 1, every=10)]

    assert await rt.run("a", "x") == [True, False, True, True]


@pytest.mark.rule("progress.no-event")
async def test_a_report_is_no_event_and_a_completed_task_has_its_result_alone(rt: Runtime):
    @rt.agent
    async def a(turn: Turn) -> str:
        for number in range(100):
            turn.progress(f"{number} of 100", number / 100)
        return "done"

    await rt.run("a", "x")
    events = await rt.workspace.journal.history()
    assert [event.kind for event in events] == ["task.started", "task.completed"]
    assert "progress" not in events[-1].data
    await sound(rt)


@pytest.mark.rule("progress.end")
async def test_the_end_of_a_task_that_did_not_complete_says_how_far_it_was(rt: Runtime):
    @rt.agent
    async def a(turn: Turn) -> str:
        turn.progress("7 of 10", 0.7)
        raise KeyError("mine")

    outcome = await rt.outcome("a", "x")
    [end] = [event for event in await rt.workspace.journal.history() if event.kind == "task.failed"]
    assert end.data["progress"] == {"text": "7 of 10", "fraction": 0.7}
    root = await rt.workspace.tree(outcome.id)
    assert root.progress == "7 of 10 (70 %)"
    assert root.progress in notes(root)
    assert "failed" in plain_line(end)
    await sound(rt)


@pytest.mark.rule("progress.end")
async def test_a_cancelled_task_says_how_far_it_was(rt: Runtime):
    working = Working()
    rt.add(Card("a"), working)
    task = await rt.submit("a", "x")
    with anyio.fail_after(PATIENCE):
        await working.reported.wait()
        await task.cancel("enough")
        with pytest.raises(Cancelled):
            await task.result()
    [*_, end] = await rt.workspace.journal.history()
    assert end.data["progress"] == {"text": "3 of 10", "fraction": 0.3}


@pytest.mark.rule("progress.live")
async def test_the_next_holder_starts_without_the_report_of_the_last(rt: Runtime):
    @rt.agent(asks="*")
    async def a(turn: Turn) -> Command:
        turn.progress("mine")
        return Command("b")

    @rt.agent
    async def b(turn: Turn) -> str:
        assert await rt.workspace.tasks.progress() == {}
        raise KeyError("mine")

    await rt.outcome("a", "x")
    [end] = [event for event in await rt.workspace.journal.history() if event.kind == "task.failed"]
    assert "progress" not in end.data


@pytest.mark.rule("progress.stream")
@pytest.mark.parametrize("thread", [False, True])
async def test_a_stream_has_every_report_in_order(rt: Runtime, thread: bool):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        turn.progress("asking")
        return await turn.delegate("part", "y")

    @rt.agent
    async def part(turn: Turn) -> str:
        if thread:
            await anyio.to_thread.run_sync(turn.progress, "half", 0.5)
        else:
            turn.progress("half", 0.5)
        return "done"

    seen = [one async for one in rt.stream("lead", "x")]
    assert [(one.agent, str(one)) for one in seen if isinstance(one, Progress)] == [
        ("lead", "asking"),
        ("part", "half (50 %)"),
    ]
    assert isinstance(seen[-1], Outcome)


@pytest.mark.rule("progress.heartbeat")
@pytest.mark.parametrize("store", ["file", "postgres"])
async def test_another_process_sees_it_with_the_heartbeat(
    tmp_path: Path, clock: FakeClock, store: str, request: pytest.FixtureRequest
):
    where: Any = tmp_path / "team.db" if store == "file" else request.getfixturevalue("address")
    working = Working()
    with team(where, clock=clock) as rt, Workspace(where) as other:
        rt.add(Card("a"), working)
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(rt.run, "a", "x")
                await working.reported.wait()
                assert await other.tasks.progress() == {}
                clock.advance(6)
                while not (found := await other.tasks.progress()):
                    await a_few_rounds()
                assert [str(one) for one in found.values()] == ["3 of 10 (30 %)"]
                working.go.set()
        assert await other.tasks.progress() == {}


@pytest.mark.rule("progress.heartbeat", "secret.nowhere")
async def test_no_secret_goes_with_the_heartbeat(tmp_path: Path, clock: FakeClock):
    working = asyncio.Event()
    with (
        team(tmp_path / "team.db", clock=clock, secrets=["hunter2hunter2"]) as rt,
        Workspace(tmp_path / "team.db") as ws,
    ):

        @rt.agent
        async def a(turn: Turn) -> None:
            turn.progress("tried hunter2hunter2")
            await working.wait()

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(rt.run, "a", "x")
                while not (found := await ws.tasks.progress()):
                    clock.advance(6)
                    await a_few_rounds()
                assert [one.text for one in found.values()] == ["tried [secret]"]
                working.set()


@pytest.mark.rule("progress.live")
async def test_a_turn_that_is_over_reports_nothing(rt: Runtime):
    kept: list[Turn] = []

    @rt.agent
    async def a(turn: Turn) -> None:
        kept.append(turn)

    await rt.run("a", "x")
    with pytest.raises(Refused, match="has ended"):
        kept[0].progress("late")


@pytest.mark.rule("input.told")
@pytest.mark.parametrize(
    ("text", "fraction", "says"),
    [
        ("", None, "the text of progress"),
        ("two\nlines", None, "one line of printable characters"),
        ("x" * 201, None, "200"),
        (3, None, "the text of progress"),
        ("x", 1.5, "fraction is a number from 0 to 1, the part that is done, not 1.5"),
        ("x", -0.1, "fraction is a number"),
        ("x", True, "fraction is a number"),
        ("x", "half", "fraction is a number"),
        ("x", float("nan"), "fraction is a number"),
    ],
)
async def test_what_is_no_progress_is_refused(rt: Runtime, text: Any, fraction: Any, says: str):
    @rt.agent
    async def a(turn: Turn) -> str:
        with pytest.raises(BadInput, match=says):
            turn.progress(text, fraction)
        return "fine"

    assert await rt.run("a", "x") == "fine"


@pytest.mark.rule("progress.end")
async def test_a_retried_task_starts_its_report_again(rt: Runtime, clock: FakeClock):
    tries: list[int] = []

    @rt.agent
    async def a(turn: Turn) -> str:
        tries.append(1)
        if len(tries) == 1:
            turn.progress("1 of 2", 0.5)
            raise Shaky
        assert await rt.workspace.tasks.progress() == {}
        return "done"

    task = await rt.submit("a", "x")
    with anyio.fail_after(PATIENCE):
        await next_try(rt, clock, task.id)
        assert await task.result() == "done"
    assert (await rt.workspace.tree(task.id)).progress == ""

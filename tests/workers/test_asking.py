"""Real processes that ask people: they are killed, stopped or not there at all, and the answer comes from elsewhere."""

import signal
import time

import anyio
import pytest

from remit import Runtime, Task
from remit.engine.people import Inquiry
from remit.ports import View
from workers.crew import PATIENCE, Crew, gone, sound

pytestmark = pytest.mark.anyio

PROMPT = 1  # seconds until whoever waits has heard of an answer


@pytest.fixture(params=["file", "postgres"])
def team(request: pytest.FixtureRequest) -> Crew:
    return request.getfixturevalue("crew" if request.param == "postgres" else "crew_on_file")


async def question(rt: Runtime, kind: str) -> Inquiry:
    """Wait for the open question of a kind, until someone waits for its answer."""
    with anyio.fail_after(PATIENCE):
        async with rt.workspace.journal.follow(after=0) as follow:
            while True:
                for one in await rt.workspace.questions.list():
                    if one.kind == kind and (await rt.workspace.tasks.get(one.task).status()).state == "waiting":
                        return one
                await follow.next()


async def parked(rt: Runtime, task: Task) -> None:
    """Wait until nobody has it, and nobody has anything."""

    def nobody(view: View) -> bool:
        records = [view.record(record.id) for record in view.below(task.id)]
        return all(record is not None and (record.state, record.worker) == ("waiting", "") for record in records)

    with anyio.fail_after(PATIENCE):
        async with rt.workspace.journal.follow(after=0) as follow:
            while not await rt.workspace.journal.read(nobody):
                await follow.next()


async def accounted(crew: Crew, rt: Runtime) -> None:
    """Everything was asked, answered, used, done and paid once."""
    kinds = [event.kind for event in await rt.workspace.journal.history()]
    assert [kinds.count(f"question.{kind}") for kind in ("asked", "answered", "used")] == [2, 2, 1]
    assert kinds.count("credits.spent") == 1
    for kind in ("planned", "ordered", "deployed"):
        assert len(crew.lines(kind)) == 1
    await sound(rt)


@pytest.mark.rule("ask.parked", "ask.once", "approval.used")
@pytest.mark.parametrize(
    ("end", "stage"),
    [(signal.SIGKILL, "ask"), (signal.SIGKILL, "hop"), (signal.SIGTERM, "hop"), (signal.SIGINT, "ask")],
    ids=["killed while it asks", "killed while it wants an approval", "drained", "ctrl-c"],
)
async def test_another_process_goes_on_after_the_answer_if_the_asking_one_is_gone(
    team: Crew, end: signal.Signals, stage: str
):
    """Nobody goes on before the answer is there."""
    first = team.start(silence=1)
    await team.ready(first)
    with team.runtime() as rt:
        task = await rt.submit("chief", "release")
        open_ = await question(rt, "ask")
        if stage == "hop":
            await rt.workspace.questions.answer(open_.id, "prod", by="ann")
            open_ = await question(rt, "hop")
        first.send_signal(end)
        if first.stdin is not None:  # a thread of it reads there, and keeps it from ending by ctrl-c
            first.stdin.close()
            first.stdin = None
        await gone(first)
        await team.ready(team.start(silence=1))
        await parked(rt, task)
        assert team.lines("deployed") == []
        if stage == "ask":
            await rt.workspace.questions.answer(open_.id, "prod", by="ann")
            open_ = await question(rt, "hop")
        await rt.workspace.questions.approve(open_.id, by="ann")
        assert await task.result(PATIENCE) == "to prod"
        await accounted(team, rt)


@pytest.mark.rule("ask.parked")
async def test_where_there_is_no_process_the_answer_is_kept_for_the_next_one(team: Crew):
    first = team.start()
    await team.ready(first)
    with team.runtime() as rt:
        task = await rt.submit("chief", "release")
        asked = await question(rt, "ask")
        first.send_signal(signal.SIGTERM)
        await gone(first)
        await rt.workspace.questions.answer(asked.id, "prod", by="ann")
        assert (await task.status()).state == "pending"
        await team.ready(team.start())
        await rt.workspace.questions.approve((await question(rt, "hop")).id)
        assert await task.result(PATIENCE) == "to prod"
        await accounted(team, rt)


@pytest.mark.rule("ask.answered", "waking.processes")
async def test_a_waiting_task_is_woken_at_once_by_an_answer_from_another_process(team: Crew):
    await team.ready(team.start())
    with team.runtime() as rt:
        task = await rt.submit("chief", "release")
        asked = await question(rt, "ask")
        said = time.monotonic_ns()
        await rt.workspace.questions.answer(asked.id, "test", by="ann")
        [heard] = await team.until("answered")
        assert heard.at - said < PROMPT * 1e9
        await rt.workspace.questions.approve((await question(rt, "hop")).id, value="to nowhere")
        assert await task.result(PATIENCE) == "to nowhere"
        await accounted(team, rt)

"""How runs stand, in a list of them: depth, states, agents, money, questions, signs of life."""

import anyio
import pytest

from engine.helping import PATIENCE, happened, sound
from engine.people import the_question
from remit import Bounds, Card, Refused, Runtime, Turn
from remit.core.lifecycle import Record
from remit.core.times import SECOND
from remit.ports import RunVitals
from remit.runtime.looks import RunLook
from remit.runtime.workers import Crew, Peer
from teams import echo

pytestmark = pytest.mark.anyio

CENT = 10_000


async def looked(rt: Runtime) -> RunLook:
    return await rt.workspace.looks.runs()


@pytest.mark.rule("looks.vitals")
async def test_a_run_in_a_list_says_how_it_stands(anywhere: Runtime):
    rt, inside, go = anywhere, anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate("echo", "x")
        await turn.delegate("coder", "build")

    @rt.agent(asks="*")
    async def coder(turn: Turn) -> None:
        with pytest.raises(Refused):
            await turn.delegate("nobody", "x")
        async with turn.paid_call("$0.08", why="a photo") as call:
            inside.set()
            await happened(go)
            call.cost("$0.03")
        await turn.ask_human("Which?")

    rt.add(Card("echo"), echo)
    await rt.workspace.money.grant("$1")
    task = await rt.submit("lead", "go", credits="$0.20", by="ann")
    await happened(inside)
    [line], crew, vitals = await looked(rt)
    stands = vitals[task.id]
    assert (stands.depth, stands.states) == (2, {"completed": 1, "running": 2})
    assert (stands.held, stands.granted, stands.questions) == (8 * CENT, 20 * CENT, 0)
    assert line.facts.members == {"lead", "echo", "coder"}
    assert (line.facts.refusals, line.by, stands.workers) == (1, "ann", (crew.workers[0].id,))
    assert crew.signs(line.record, stands)[1] is False
    go.set()
    question = await the_question(rt)
    [line], crew, vitals = await looked(rt)
    assert (vitals[task.id].questions, vitals[task.id].held, line.facts.credits) == (1, 0, 3 * CENT)
    await rt.workspace.questions.answer(question.id, "red")
    await task.wait(PATIENCE)
    [line], crew, vitals = await looked(rt)
    assert vitals[task.id] == RunVitals(2, {"completed": 3}, (), 0, 20 * CENT, 0, None)
    assert crew.signs(line.record, vitals[task.id]) == (line.record.ended_at, False)
    await sound(rt)


@pytest.mark.rule("looks.vitals")
async def test_a_run_without_money_of_its_own_has_no_grant(rt: Runtime):
    rt.add(Card("echo"), echo)
    await rt.run("echo", "x")
    await rt.run("echo", "y", within=Bounds(credits="$0.10"))
    [second, first], _, vitals = await looked(rt)
    assert vitals[first.record.id].granted is None
    assert vitals[second.record.id].granted == 10 * CENT
    assert await rt.workspace.journal.read(lambda view: view.vitals(["nothing"])) == {}


@pytest.mark.rule("looks.vitals")
async def test_a_run_has_stalled_when_a_process_of_it_is_silent(rt: Runtime):
    rt.add(Card("echo"), echo)
    await rt.run("echo", "x")
    [line], _, _ = await looked(rt)
    record: Record = line.record
    now = 1_000 * SECOND

    def signs(workers: tuple[str, ...], **seen_at: int) -> tuple[int, bool]:
        crew = Crew(now, [Peer(name, "", 1, at) for name, at in seen_at.items()], {})
        return crew.signs(record, RunVitals(1, {"running": 1}, workers, 0, None, 0, now - 60 * SECOND))

    assert signs(("w1",), w1=now - 2 * SECOND) == (now - 2 * SECOND, False)
    assert signs(("w1", "w2"), w1=now - 2 * SECOND, w2=now - 31 * SECOND) == (now - 2 * SECOND, True)
    assert signs(("gone",), w1=now) == (now - 60 * SECOND, True)
    assert signs((), w1=now) == (now - 60 * SECOND, False), "it waits for a worker"

"""Tags, metadata and the person of a run; lists that are narrowed by them and by everything else."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit import Card, Plan, Runtime, Step, Turn
from remit.errors import BadInput, Conflict
from remit.settings import System
from remit.testing import FakeClock
from teams import echo

pytestmark = pytest.mark.anyio

TRACE = f"00-{'4b' * 16}-{'f0' * 8}-01"


@pytest.mark.rule("run.labels")
async def test_every_task_of_a_run_knows_its_labels(rt: Runtime):
    seen: list[Any] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        seen.append((turn.by, turn.tags, turn.meta))
        turn.meta["ticket"] = "changed"  # a copy
        await turn.delegate("part", "a")
        await (await turn.submit("part", "b")).result()
        return "done"

    @rt.agent
    async def part(turn: Turn) -> str:
        seen.append((turn.by, turn.tags, turn.meta))
        return "x"

    outcome = await rt.outcome("lead", "go", by="ann", tags=["nightly", "eu"], meta={"ticket": "T-7", "try": 2})
    assert seen == [("ann", ("eu", "nightly"), {"ticket": "T-7", "try": 2})] * 3
    tasks = await rt.workspace.tasks.list(run=outcome.id)
    assert {(one.by, one.tags, tuple(one.meta.items())) for one in tasks} == {
        ("ann", ("eu", "nightly"), (("ticket", "T-7"), ("try", 2)))
    }
    assert [await rt.workspace.tasks.get(one.id).status() for one in tasks] == tasks
    [line] = await rt.workspace.tasks.runs(tag="eu")
    assert (line.record.id, line.labels.meta) == (outcome.id, (("ticket", "T-7"), ("try", 2)))
    assert not (await rt.workspace.check()).findings


@pytest.mark.rule("run.labels")
async def test_every_way_to_start_a_run_takes_labels(rt: Runtime):
    rt.add(Card("worker"), echo)
    how: dict[str, Any] = {"by": "ann", "tags": ["t"], "meta": {"n": 1}}
    plan = Plan([Step("one", "x", agent="worker")], goal="g")
    await rt.run("worker", "x", **how)
    await (await rt.submit("worker", "x", **how)).result()
    await rt.run_plan(plan, **how)
    await (await rt.submit_plan(plan, **how)).wait()
    async for _ in rt.stream("worker", "x", **how):
        pass
    lines = await rt.workspace.tasks.runs(tag="t", by="ann")
    assert len(lines) == len(await rt.workspace.tasks.runs()) == 5
    for verb in (rt.run, rt.submit):
        with pytest.raises(BadInput, match="tags is a list"):
            await verb("worker", "x", tags="t")


@pytest.mark.rule("run.labels")
async def test_labels_are_part_of_what_is_the_same(rt: Runtime):
    rt.add(Card("worker"), echo)
    first = await rt.submit("worker", "x", key="k", tags=["a", "b"], meta={"n": 1})
    assert (await rt.submit("worker", "x", key="k", tags=["b", "a"], meta={"n": 1})).id == first.id
    for other in ({"tags": ["a"], "meta": {"n": 1}}, {"tags": ["a", "b"], "meta": {"n": 2}}):
        with pytest.raises(Conflict):
            await rt.submit("worker", "x", key="k", **other)


@pytest.mark.rule("run.trace")
async def test_the_trace_of_a_request_is_in_the_first_event_of_each_task(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        await turn.delegate("worker", "a")
        return await (await turn.submit("worker", "b")).result()

    rt.add(Card("worker"), echo)
    plan = Plan([Step("one", "x", agent="worker")], goal="g")
    await rt.run("lead", "x", trace=TRACE)
    await rt.run_plan(plan, trace=TRACE)
    await rt.workspace.wait_all((await rt.submit_plan(plan, trace=TRACE)).id)
    task = await rt.submit("lead", "x", trace=TRACE)
    await task.result()
    [begin, *_] = await rt.workspace.journal.history(run=task.id)
    fork = await rt.workspace.fork(task.id, begin.seq)
    await fork.result()
    events = await rt.workspace.journal.history(kinds=frozenset(("task.started", "task.submitted")))
    assert len(events) > 10
    assert [event.data.get("trace") for event in events] == [TRACE] * len(events)
    with pytest.raises(BadInput, match="trace is a W3C traceparent"):
        await rt.submit("worker", "x", trace="mine")
    await rt.run("worker", "without")
    assert "trace" not in (await rt.workspace.journal.history(latest=True, limit=2))[0].data
    assert not (await rt.workspace.check()).findings


@pytest.mark.rule("run.trace")
async def test_a_request_that_is_repeated_in_another_trace_is_the_same(rt: Runtime):
    rt.add(Card("worker"), echo)
    first = await rt.submit("worker", "x", key="k", trace=TRACE)
    for how in ({"trace": TRACE.replace("4b", "4c")}, {}):
        again = await rt.submit("worker", "x", key="k", **how)
        assert (again.id, again.existing) == (first.id, True)


@pytest.mark.rule("list.filters")
@given(st.data())
async def test_a_narrowed_list_has_what_matches_and_nothing_else(data: st.DataObject):
    """Against all tasks, each looked at."""
    clock = FakeClock()
    with Runtime(system=System(clock=clock)) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            await turn.delegate("part", f"a {turn.task}")
            return "done"

        @rt.agent(asks="*")
        async def part(turn: Turn) -> str:
            if "bad" in turn.task:
                raise ValueError("no")
            return "x"

        begin = datetime.fromtimestamp(clock.now() / 1e6, UTC)
        for number in range(12):
            clock.jump(10)
            who = {"by": name} if (name := data.draw(st.sampled_from(["", "ann", "bob"]))) else {}
            tags = data.draw(st.lists(st.sampled_from(["one", "two"]), max_size=2))
            agent, task = data.draw(st.sampled_from([("lead", "Good"), ("part", "bad"), ("part", "fine")]))
            await rt.outcome(agent, f"{task} {number}", session=f"s{number % 3}", tags=tags, **who)
        every = await rt.workspace.tasks.list(limit=1_000)
        moments = st.integers(0, 130).map(lambda second: begin + timedelta(seconds=second))
        conditions = {
            "state": st.sampled_from(["completed", "failed", "open"]),
            "agent": st.sampled_from(["lead", "part"]),
            "asker": st.sampled_from(["", "lead", "part"]),
            "by": st.sampled_from(["", "ann", "bob"]),
            "session": st.sampled_from(["s0", "s2"]),
            "tag": st.sampled_from(["one", "two", "three"]),
            "since": moments,
            "until": moments,
            "text": st.sampled_from(["good", "BAD", "1"]),
        }
        for _ in range(20):
            names = data.draw(st.lists(st.sampled_from(sorted(conditions)), unique=True, max_size=3))
            which: dict[str, Any] = {name: data.draw(conditions[name]) for name in names}
            expected = [one for one in every if _fits(one, which)]
            assert await rt.workspace.tasks.list(**which) == expected, which
            assert await rt.workspace.tasks.list(**which, limit=2) == expected[:2], which
            if len(expected) > 1:
                assert await rt.workspace.tasks.list(**which, before=expected[0].began) == expected[1:], which
            runs = [one.id for one in expected if not one.parent]
            lines = await rt.workspace.tasks.runs(**which)
            assert [line.record.id for line in lines] == runs, which
            known = {line.record.id: line for line in await rt.workspace.tasks.runs()}
            assert lines == [known[run] for run in runs]


def _fits(one: Any, which: dict[str, Any]) -> bool:
    checks: dict[str, Any] = {
        "state": lambda value: one.state == value or (value == "open" and one.ended is None),
        "tag": lambda value: value in one.tags,
        "since": lambda value: one.asked >= value,
        "until": lambda value: one.asked < value,
        "text": lambda value: value.lower() in one.task.lower(),
    }
    return all(checks[name](value) if name in checks else getattr(one, name) == value for name, value in which.items())


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ({"tag": ""}, "a tag"),
        ({"tag": "x" * 65}, "a tag"),
        ({"since": "yesterday"}, "since"),
        ({"until": "soon"}, "until"),
        ({"text": ""}, "text"),
        ({"text": 7}, "text"),
        ({"state": "lost"}, "state"),
        ({"label": "x"}, "label"),
    ],
)
async def test_a_bad_condition_is_refused_by_both_lists(rt: Runtime, which: dict[str, Any], sentence: str):
    for listed in (rt.workspace.tasks.list, rt.workspace.tasks.runs):
        with pytest.raises(BadInput, match=sentence):
            await listed(**which)

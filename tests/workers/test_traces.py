"""One trace over a submitter, the queue and workers on PostgreSQL, also when one of them is killed."""

import json
import signal
from typing import Any

import pytest

from adapters.spanning import attributes, parent, seeing
from workers.crew import PATIENCE, Crew, gone, until
from workers.test_takeover import DONE

pytestmark = pytest.mark.anyio


def exported(crew: Crew, *files: str) -> dict[str, dict[str, Any]]:
    """The spans of tasks that these workers exported, by task; each has one."""
    there = [crew.folder / file for file in files if (crew.folder / file).exists()]
    lines = [line for file in there for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    found = [json.loads(line) for line in lines]
    named = {one["attributes"]["remit.task"]: one for one in found}
    assert len(named) == len(found)
    return named


@pytest.mark.rule("otel.spans", "otel.takeover")
async def test_a_killed_worker_leaves_one_trace_in_which_every_task_is_one_span(crew: Crew):
    first = crew.start(silence=1, spans="first")
    await crew.ready(first)
    with crew.runtime() as rt, seeing(rt) as seen:
        task = await rt.submit("lead", "gate")
        await crew.until("middle")
        second = crew.start(silence=1, spans="second")
        await crew.ready(second)
        first.kill()
        assert await gone(first) == -signal.SIGKILL
        await crew.until("middle", 2)
        crew.open("gate")
        assert await task.result(PATIENCE) == DONE
        history = await rt.workspace.journal.history(run=task.id)
        begun = {event.task: event for event in history if event.kind in ("task.started", "task.submitted")}
        spans = await until(lambda: found if len(found := exported(crew, "first", "second")) >= len(begun) else None)
        assert spans.keys() == begun.keys()
        assert await seen.tasks() == {}  # nothing ended in the submitter
        assert len({span["context"]["trace_id"] for span in spans.values()}) == 1
        for name, span in spans.items():
            above = str(begun[name].data["parent"])
            assert span["parent_id"] == (spans[above]["context"]["span_id"] if above else None)
        root = spans[task.id]
        assert [event["name"] for event in root["events"] if event["name"] in ("task.claimed", "task.lost")] == [
            *("task.claimed", "task.lost", "task.claimed"),
        ]
        assert root["attributes"]["remit.attempts"] == 2
        assert task.id in exported(crew, "second")


@pytest.mark.rule("otel.spans")
async def test_tasks_of_two_workers_and_the_submitter_are_told_once_with_their_parents(crew: Crew):
    workers = [crew.start(spans=name, hands=2) for name in ("first", "second")]
    await crew.ready(*workers)
    with crew.runtime() as rt, seeing(rt) as seen:
        tasks = [await rt.submit("parent", f"job {number}") for number in range(6)]
        idle = await rt.submit("echo", "never", after=3_600)
        await idle.cancel()
        for one in tasks:
            await one.result(PATIENCE)
        spans = await until(lambda: found if len(found := exported(crew, "first", "second")) >= 24 else None)
        assert len(spans) == 24
        for span in spans.values():
            run = spans[span["attributes"]["remit.run"]]
            assert span["context"]["trace_id"] == run["context"]["trace_id"]
            assert span["parent_id"] == (None if span is run else run["context"]["span_id"])
        ((name, own),) = (await seen.tasks()).items()  # cancelled here, so told here
        assert (name, attributes(own)["remit.state"], parent(own)) == (idle.id, "cancelled", None)

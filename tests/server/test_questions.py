"""The questions to people over HTTP: those of a run or a task, and page by page."""

from typing import Any

import httpx
import pytest

from remit import Runtime, Task, Turn
from server.serving import app_of, client
from teams import team

pytestmark = pytest.mark.anyio


async def asking(rt: Runtime, number: int) -> list[Task]:
    """Submit tasks that each ask a question, and wait until all have asked."""

    @rt.agent
    async def asker(turn: Turn) -> str:
        return await turn.ask_human(f"{turn.task}?", timeout=3_600)

    tasks: list[Task] = []
    for one in range(number):
        tasks.append(await rt.submit("asker", f"question {one}"))
        async for question in rt.workspace.questions.asked():
            if question.task == tasks[-1].id:
                break
    return tasks


async def listed(http: httpx.AsyncClient, words: str) -> tuple[list[str], Any]:
    """The tasks of the listed questions, and the cursor of the next page."""
    found = (await http.get(f"/v1/approvals?{words}")).json()
    return [one["task"] for one in found["approvals"]], found["next"]


@pytest.mark.rule("ask.list")
async def test_the_questions_of_a_run_are_found_whatever_else_is_open():
    with team() as rt:
        async with rt.serving(), client(app_of(rt)) as http:
            tasks = await asking(rt, 3)
            for task in tasks:
                assert await listed(http, f"run={task.id}&limit=1") == ([task.id], None)
                assert await listed(http, f"task={task.id}&limit=1") == ([task.id], None)
            assert await listed(http, f"run={tasks[0].id}&task={tasks[1].id}") == ([], None)


@pytest.mark.rule("ask.list")
async def test_decided_questions_are_listed_page_by_page():
    with team() as rt:
        async with rt.serving(), client(app_of(rt)) as http:
            tasks = await asking(rt, 3)
            for question in await rt.workspace.questions.list():
                await rt.workspace.questions.answer(question.id, "yes")
            found, cursor = list[str](), ""
            while cursor is not None:
                page, cursor = await listed(http, f"decided=true&limit=2{cursor and f'&cursor={cursor}'}")
                found += page
            assert found == [task.id for task in reversed(tasks)]
            of_one, following = await listed(http, f"decided=true&run={tasks[0].id}&limit=1")
            assert of_one == [tasks[0].id]
            assert await listed(http, f"decided=true&run={tasks[0].id}&limit=1&cursor={following}") == ([], None)


@pytest.mark.rule("ask.list")
async def test_a_decided_question_is_found_before_many_open_ones():
    with team() as rt:
        async with rt.serving(), client(app_of(rt)) as http:
            tasks = await asking(rt, 4)
            (question,) = await rt.workspace.questions.list(task=tasks[0].id)
            await rt.workspace.questions.answer(question.id, "yes")
            assert await listed(http, "decided=true&limit=1") == ([tasks[0].id], str(question.seq))
            assert await listed(http, f"decided=true&limit=1&cursor={question.seq}") == ([], None)

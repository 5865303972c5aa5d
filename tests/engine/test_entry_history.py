"""The history of an entry: its versions with their writers, and who read which version."""

import pytest

from remit import Card, Runtime, Turn
from remit.errors import BadInput

pytestmark = pytest.mark.anyio


def reader(rt: Runtime, name: str) -> None:
    async def read(turn: Turn) -> object:
        return await turn.context.get("notes", "plan")

    rt.add(Card(name, reads=["notes"]), read)


@pytest.mark.rule("context.history")
async def test_each_version_says_who_wrote_it_and_who_read_it(anywhere: Runtime):
    rt = anywhere
    reader(rt, "coder")
    reader(rt, "tester")

    @rt.agent(writes=["notes"])
    async def writer(turn: Turn) -> None:
        await turn.context.set("notes", "plan", "second")

    context, looks = rt.workspace.context(), rt.workspace.looks
    await context.set("notes", "plan", "first")
    first = await rt.outcome("coder", "x")
    wrote = await rt.outcome("writer", "x")
    await context.set("notes", "other", "x")
    second = [await rt.outcome(name, "x") for name in ("tester", "coder")]
    await context.remove("notes", "plan")

    versions, following = await looks.versions("notes", "plan")
    assert [(one.version, one.value, one.agent, one.task, bool(one.removed)) for one in versions] == [
        (2, None, "", "", True),
        (2, "second", "writer", wrote.id, False),
        (1, "first", "", "", False),
    ]
    assert following is None
    assert versions[0].at >= versions[1].at >= versions[2].at > 0
    readers, following = await looks.readers("notes", "plan")
    assert [(one.version, one.agent, one.task, one.why) for one in readers] == [
        (2, "coder", second[1].id, "passed"),
        (2, "tester", second[0].id, "passed"),
        (1, "coder", first.id, "passed"),
    ]
    assert following is None
    assert [one.task for one in (await looks.readers("notes", "plan", version=1)).readers] == [first.id]
    assert (await looks.readers("notes", "nothing")).readers == []


@pytest.mark.rule("context.history")
async def test_a_history_comes_in_pages(rt: Runtime):
    reader(rt, "coder")
    context, looks = rt.workspace.context(), rt.workspace.looks
    for number in range(5):
        await context.set("notes", "plan", number)
        await rt.run("coder", "x")
    seen: list[int] = []
    before: int | None = None
    for _ in range(3):
        readers, before = await looks.readers("notes", "plan", limit=2, before=before)
        seen += [one.version for one in readers]
    assert (seen, before) == ([5, 4, 3, 2, 1], None)
    page = await looks.versions("notes", "plan", limit=2)
    assert [one.value for one in page.versions] == [4, 3]
    assert [one.value for one in (await looks.versions("notes", "plan", before=page.next)).versions] == [2, 1, 0]
    with pytest.raises(BadInput, match="limit"):
        await looks.versions("notes", "plan", limit=0)

"""The bounds of one caller, and the context of a card that holds no task."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from engine.helping import PATIENCE, doomed, happened, serving, sound, take_over
from engine.test_takeover import Puppet
from remit import BOARD, Bounds, Card, Plan, Refused, Runtime, Scope, Step, Task, Turn, Workspace
from remit.core.bounds import ceiling
from remit.errors import BadInput, Conflict, NotFound
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

CALLER = Bounds(agents=["lead", "helper"], depth=1, tokens=500, sees=["notes"])
PLAN = Plan([Step("one", "do", "do it", agent="lead")], goal="all of it")


@pytest.fixture
def house(clock: FakeClock):
    with team(clock=clock, hands=0, bounds=Bounds(tokens=1_000, depth=2)) as rt:
        settle(rt)
        yield rt


def settle(rt: Runtime) -> None:
    async def lead(turn: Turn) -> list[str]:
        said: list[str] = []
        for agent in ("helper", "other"):
            try:
                said.append(str(await turn.delegate(agent, "x")))
            except Refused as no:
                said.append(no.rule)
        return said

    rt.add(Card("stranger", asks=["lead"]), echo)
    rt.add(Card("lead", asks="*"), lead)
    rt.add(Card("helper"), echo)
    rt.add(Card("other"), echo)


async def bounds_of(workspace: Workspace, run: str, task: str = "") -> Any:
    """The bounds in the first event of a task."""
    firsts = await workspace.journal.history(run=run, kinds=frozenset(FIRST))
    [bounds] = [event.data["bounds"] for event in firsts if event.task == (task or run)]
    return bounds


FIRST = ("task.submitted", "task.started")
FIGURES = {"depth": 1, "tokens": 500, "sees": ["notes/*"], "tasks": 1_000}
EXPECTED = {**FIGURES, "agents": ["helper", "lead"]}

ASKED: dict[str, Callable[[Workspace, Bounds], Awaitable[Task]]] = {
    "person": lambda ws, most: ws.submit("lead", "x", ceiling=most),
    "card": lambda ws, most: ws.submit("lead", "x", asker="stranger", ceiling=most),
    "plan": lambda ws, most: ws.submit_plan(PLAN, ceiling=most),
    "team": lambda ws, most: ws.submit_team("all of it", "lead", plan=PLAN, ceiling=most),
}


@pytest.mark.rule("workspace.ceiling")
@pytest.mark.parametrize("who", ASKED)
async def test_the_ceiling_of_a_caller_narrows_and_never_widens(house: Runtime, who: str):
    names: Any = {} if who == "plan" else {"agents": ["helper", "lead"]}
    task = await ASKED[who](house.workspace, Bounds(depth=1, tokens=500, sees=["notes"], **names))
    assert await bounds_of(house.workspace, task.id) == {**FIGURES, **names}
    wide = await ASKED[who](house.workspace, Bounds(tokens=9_000, depth=9, tasks=9_000))
    assert await bounds_of(house.workspace, wide.id) == {"depth": 2, "tokens": 1_000, "tasks": 1_000}
    with pytest.raises(BadInput, match=r"ceiling takes Bounds\(\.\.\.\)"):
        await ASKED[who](house.workspace, "everything")  # pyright: ignore[reportArgumentType]
    with pytest.raises(Refused, match="'lead'") as no:
        await house.workspace.submit("lead", "x", ceiling=Bounds(agents=["helper"]))
    assert no.value.rule == "not-allowed"


@pytest.mark.rule("workspace.ceiling")
async def test_the_ceiling_holds_for_the_whole_tree_and_for_its_retry_and_its_fork(house: Runtime):
    workspace = house.workspace
    async with serving(house):
        task = await workspace.submit("lead", "x", ceiling=CALLER, within=Bounds(tokens=400))
        assert await task.result(PATIENCE) == ["x", "not-allowed"]
        fork = await workspace.fork(task.id, 1, task="again")
        assert await fork.result(PATIENCE) == ["x", "not-allowed"]
    late = await workspace.submit("lead", "never", ceiling=CALLER, after=3_600)
    await workspace.tasks.cancel(late.id)
    retried = await workspace.tasks.retry(late.id)
    for one in (fork, retried):
        assert {**await bounds_of(workspace, one.id), "tokens": 0} == {**EXPECTED, "tokens": 0}
    assert (await bounds_of(workspace, fork.id))["tokens"] == 400
    await sound(house)


@pytest.mark.rule("workspace.ceiling")
async def test_the_ceiling_holds_after_a_takeover(tmp_path: Path, clock: FakeClock):
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        puppet = Puppet()
        dead.add(Card("lead", asks="*"), puppet)
        settle(heir)
        task = await dead.workspace.submit("lead", "x", ceiling=CALLER)
        await happened(puppet.inside)
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == ["x", "not-allowed"]
        puppet.go.set()


@pytest.mark.rule("workspace.ceiling")
async def test_the_ceiling_narrows_what_is_asked_as_a_part_of_a_task(house: Runtime):
    whole = await house.submit("lead", "the whole", session="s")
    most = Bounds(tokens=30, sees=[BOARD])
    part = await house.workspace.submit("helper", "x", asker="lead", under=whole.id, ceiling=most, key="k")
    bounds = await bounds_of(house.workspace, whole.id, part.id)
    assert (bounds["tokens"], bounds["sees"]) == (30, ["board:s/*"])
    with pytest.raises(Conflict, match="was used for another request"):
        await house.workspace.submit("helper", "x", asker="lead", under=whole.id, ceiling=CALLER, key="k")
    again = await house.workspace.submit("helper", "x", asker="lead", under=whole.id, ceiling=most, key="k")
    assert again.existing


# -- context without a task ---------------------------------------------------------------------------------------


READS = ["notes", Scope("code", prefix="web/")]


@pytest.fixture
async def shelf(clock: FakeClock):
    """A workspace with entries, and a card that sees and writes some of them."""
    with team(clock=clock) as rt:
        rt.add(Card("visitor", reads=[*READS, BOARD], writes=["drafts", "notes"]), looks)
        owner = rt.workspace.context("s")
        for namespace, key in (("notes", "a"), ("code", "web/index"), ("code", "server"), ("secret", "key")):
            await owner.set(namespace, key, f"{namespace} {key}")
        await owner.board.set("state", "on the board")
        yield rt


SAID: dict[str, str] = {}


async def looks(turn: Turn) -> None:
    """Try all that the card may not do, to hear what an agent is told."""
    await tried(turn.context)


async def tried(context: Any) -> None:
    for name, verb in (
        ("get", lambda: context.get("secret", "key")),
        ("query", lambda: context.query("secret")),
        ("none", lambda: context.get("secret", "no such key")),
        ("set", lambda: context.set("secret", "key", "x")),
        ("remove", lambda: context.remove("code", "server")),
        ("touch", lambda: context.touch("secret", "key")),
    ):
        with pytest.raises(Refused) as no:
            await verb()
        SAID[name] = f"{no.value.rule}: {no.value}"


@pytest.mark.rule("context.asker")
async def test_a_card_without_a_task_reads_what_it_may_read(shelf: Runtime):
    context = shelf.workspace.context("s", asker="Visitor")
    assert await context.get("notes", "a") == "notes a"
    assert [entry.key for entry in await context.query("code")] == ["web/index"]
    assert [entry.key for entry in await context.query("code", prefix="")] == ["web/index"]
    assert await context.board.get("state") == "on the board"
    assert await context.get("memory:visitor", "nothing yet") is None
    with pytest.raises(NotFound, match="there is no card 'nobody'"):
        await shelf.workspace.context(asker="nobody").get("notes", "a")
    elsewhere = shelf.workspace.context("another session", asker="visitor")
    assert await elsewhere.board.query() == []


@pytest.mark.rule("context.asker")
async def test_a_card_without_a_task_is_refused_with_the_sentences_that_an_agent_gets(shelf: Runtime):
    before = len(await shelf.workspace.journal.history())
    await tried(shelf.workspace.context("s", asker="visitor"))
    said = dict(SAID)
    assert said["get"].startswith("not-visible: 'visitor' does not see secret/key; its asker can pass it")
    assert said["none"] == said["get"].replace("secret/key", "secret/no such key")
    assert said["set"].startswith("not-writable: 'visitor' may not write secret/key")
    assert len(await shelf.workspace.journal.history()) == before
    SAID.clear()
    await shelf.run("visitor", "try", sees=[], writes=[])
    assert said == SAID


@pytest.mark.rule("context.asker")
async def test_what_a_card_writes_without_a_task_is_untrusted_and_says_who_wrote_it(shelf: Runtime):
    context = shelf.workspace.context("s", asker="visitor", by="access:1")
    assert await context.set("notes", "a", "changed", trust="trusted") == 2
    assert await context.set("drafts", "unseen", "blind") > 0
    entry = await shelf.workspace.context().entry("notes", "a")
    assert entry is not None
    assert (entry.trust, entry.agent, entry.chain, entry.task) == ("untrusted", "visitor", ("visitor",), "")
    last = (await shelf.workspace.journal.history(kinds=frozenset(("entry.set",))))[-1]
    assert (last.data["by"], last.run) == ("access:1", "")
    with pytest.raises(Refused, match="'visitor' does not see drafts/unseen"):
        await context.get("drafts", "unseen")
    with pytest.raises(Conflict):
        await context.set("notes", "a", "stale", expect=1)
    assert await context.touch("notes", "a", 60)
    assert await context.remove("notes", "a")
    await sound(shelf)


@pytest.mark.rule("context.asker")
async def test_an_action_through_a_card_happens_once(shelf: Runtime):
    for _ in range(2):
        assert await shelf.workspace.context(asker="visitor", op="o").set("notes", "a", "once") == 2
    with pytest.raises(Conflict):
        await shelf.workspace.context(asker="visitor", op="o").set("notes", "a", "another")


@pytest.mark.rule("context.asker")
async def test_a_ceiling_narrows_what_a_card_or_the_owner_reads_and_writes(shelf: Runtime):
    most = Bounds(sees=[Scope("notes", key="a", version=1), "secret"], writes=["secret"])
    for asker in ("visitor", ""):
        context = shelf.workspace.context("s", asker=asker, ceiling=most)
        assert [entry.value for entry in await context.query("notes")] == ["notes a"]
        with pytest.raises(Refused) as no:
            await context.set("notes", "a", "x")
        assert no.value.rule == "not-writable"
        with pytest.raises(Refused) as no:
            await context.query("code")
        assert no.value.rule == "not-visible"
    owner = shelf.workspace.context(ceiling=most)
    await owner.set("secret", "key", {"new": 1})
    entry = await owner.entry("secret", "key")
    assert entry is not None
    assert (entry.trust, entry.agent) == ("trusted", "")
    await shelf.workspace.context().set("notes", "a", "a newer version")
    assert await shelf.workspace.context(asker="visitor", ceiling=most).query("notes") == []
    with pytest.raises(BadInput, match="ceiling takes Bounds"):
        shelf.workspace.context(ceiling=7)  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("context.asker")
async def test_the_bounds_of_a_workspace_hold_for_a_card_without_a_task(tmp_path: Path, clock: FakeClock):
    with team(tmp_path / "team.db", clock=clock) as rt:
        rt.add(Card("visitor", reads="*"), echo)
        await rt.workspace.context().set("notes", "a", "seen")
        await rt.workspace.context().set("secret", "a", "unseen")
        async with serving(rt):
            assert await rt.run("visitor", "x") == "x"
    with Workspace(tmp_path / "team.db", bounds=ceiling(Bounds(sees=["notes"]))) as outside:  # its card is published
        assert await outside.context(asker="visitor").get("notes", "a") == "seen"
        with pytest.raises(Refused, match="'visitor' does not see secret/a"):
            await outside.context(asker="visitor").get("secret", "a")


@pytest.mark.rule("context.asker")
async def test_a_card_without_a_task_passes_on_only_artifacts_that_it_sees(shelf: Runtime):
    hidden = await shelf.workspace.artifacts.save(b"hidden", name="hidden.txt")
    given = await shelf.workspace.artifacts.save(b"given", name="given.txt")
    await shelf.workspace.context().set("notes", "file", {"file": given})
    context = shelf.workspace.context(asker="visitor")
    assert await context.set("drafts", "mine", {"file": given, "and": [given]}) > 0
    with pytest.raises(Refused, match="'visitor' does not see the artifact"):
        await context.set("drafts", "mine", {"file": hidden})
    await shelf.workspace.context().remove("notes", "file")
    with pytest.raises(Refused, match="'visitor' does not see the artifact"):
        await context.set("drafts", "again", {"file": given})
    bounded = shelf.workspace.context(ceiling=Bounds(writes=["drafts"]))
    assert await bounded.set("drafts", "owner", {"file": hidden}) > 0
    await sound(shelf)

"""Processes that are gone: what they left is taken over, and what is left of them changes nothing."""

from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, doomed, ends, happened, life, named, quiet, reached, sound, take_over, until
from remit import Card, Event, Plan, Refused, Runtime, Step, Turn
from remit.engine.directory import AgentRules
from remit.ports.models import ToolCall
from remit.runtime.workspace import opening_of
from teams import echo, team

pytestmark = pytest.mark.anyio


class Puppet:
    """An agent that stays inside until it is let go, and then does what it is told."""

    def __init__(self) -> None:
        self.inside = anyio.Event()
        self.go = anyio.Event()
        self.left = anyio.Event()
        self.act = None

    async def __call__(self, turn: Turn) -> object:
        self.inside.set()
        try:
            await self.go.wait()
            return await self.act(turn) if self.act else "from the dead"  # pyright: ignore[reportGeneralTypeIssues]
        finally:
            self.left.set()


async def done(rt: Runtime) -> list[Event]:
    """What has happened, but for the cards that each process publishes when it begins to look after others."""
    return [event for event in await rt.workspace.journal.history() if event.kind != "cards.published"]


@pytest.mark.rule("crash.fence")
@pytest.mark.parametrize("asked_how", ["run", "submit"])
async def test_a_zombie_changes_nothing(tmp_path, clock, asked_how: str):
    rules: list[str] = []
    kept: list = []

    async def try_all(turn: Turn) -> str:
        for verb in (
            lambda: turn.context.set("a", "k", "v"),
            lambda: turn.context.board.set("k", "v"),
            lambda: turn.send("coder", "hello"),
            turn.inbox,
            lambda: turn.delegate("coder", "x"),
            lambda: turn.delegate("nobody", "x"),
            lambda: turn.submit("coder", "x"),
            lambda: turn.spawn("coder", "x"),
            lambda: turn.once("charge", lambda: 1),
            lambda: turn.hand_off("coder"),
            lambda: turn.run_plan(Plan([Step("a", "t", "d", agent="coder")])),
        ):
            try:
                kept.append(await verb())
            except Refused as no:
                rules.append(no.rule)
        return "from the dead"

    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        puppet = Puppet()
        puppet.act = try_all  # pyright: ignore[reportAttributeAccessIssue]
        dead.add(Card("lead", asks="*"), puppet)
        dead.add(Card("coder"), echo)
        heir.add(Card("lead", asks="*"), echo)
        outcomes: list = []

        async def start() -> None:
            if asked_how == "run":
                outcomes.append(await dead.outcome("lead", "go"))
            else:
                outcomes.append(await (await dead.submit("lead", "go")).wait())

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await happened(puppet.inside)
            task = await named(dead, "lead")
            await take_over(heir, clock, dead)
            assert await heir.workspace.tasks.get(task).result(PATIENCE) == "go"
            before = await done(heir)
            puppet.go.set()
            await happened(puppet.left)
            opening_of(dead.workspace).database.wake()  # pyright: ignore[reportAttributeAccessIssue]
        assert (rules, kept) == (["over"] * 11, [])
        assert await done(heir) == before  # pyright: ignore[reportPossiblyUnboundVariable]
        assert outcomes[0].value == "go"  # whoever waits there learns what really came of it
        assert await life(heir, task) == [*(await life(heir, task))[:-3], "lost", "claimed", "completed"]  # pyright: ignore[reportPossiblyUnboundVariable]
        await sound(heir)


@pytest.mark.rule("crash.fence")
async def test_a_zombies_result_does_not_replace_the_work_that_goes_on(tmp_path, clock):
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        old, new = Puppet(), Puppet()
        dead.add(Card("lead"), old)
        heir.add(Card("lead"), new)
        task = await dead.submit("lead", "go")
        await happened(old.inside)
        await take_over(heir, clock, dead)
        await happened(new.inside)
        old.go.set()
        await happened(old.left)
        await quiet()
        assert (await heir.workspace.tasks.get(task.id).status()).state == "running"
        new.act = echo  # pyright: ignore[reportAttributeAccessIssue]
        new.go.set()
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "go"
        await sound(heir)


@pytest.mark.rule("crash.fence")
async def test_what_a_zombie_has_delegated_changes_nothing_either(tmp_path, clock):
    """Before the heir has asked for it again, and when it never does."""
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        rules: list[str] = []
        child, new = Puppet(), Puppet()

        async def writes(turn: Turn) -> str:
            try:
                await turn.context.set("a", "k", "from the dead")
            except Refused as no:
                rules.append(no.rule)
            return "from the dead"

        async def lead(turn: Turn) -> str:
            return await turn.delegate("coder", "x")

        child.act, new.act = writes, echo  # pyright: ignore[reportAttributeAccessIssue]
        dead.add(Card("lead", asks="*"), lead)
        dead.add(Card("coder", writes=["a"]), child)
        heir.add(Card("lead", asks="*"), new)
        heir.add(Card("coder", writes=["a"]), echo)
        task = await dead.submit("lead", "go")
        await happened(child.inside)
        below = await named(dead, "coder")
        await take_over(heir, clock, dead)
        await happened(new.inside)
        child.go.set()
        await happened(child.left)
        await quiet()
        assert rules == ["over"]
        assert (await heir.workspace.tasks.get(below).status()).state == "running"
        new.go.set()
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "go"
        assert await life(heir, below) == ["started", "fenced", "cancelled"]
        assert await heir.workspace.context().get("a", "k") is None
        await sound(heir)


@pytest.mark.rule("crash.fence")
async def test_a_zombie_that_waits_is_stopped(tmp_path, clock):
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        said: list[str] = []
        asked, left = anyio.Event(), anyio.Event()

        async def waits(turn: Turn) -> None:
            task = await turn.submit("stuck", "x")
            asked.set()
            try:
                await task.wait()
                said.append("went on")
            finally:
                left.set()

        async def heirs(turn: Turn) -> str:
            return await (await turn.submit("stuck", "x")).result(PATIENCE)

        dead.add(Card("lead", asks="*"), waits)
        dead.add(Card("stuck"), Puppet())
        heir.add(Card("lead", asks="*"), heirs)
        heir.add(Card("stuck"), echo)
        task = await dead.submit("lead", "go")
        await happened(asked)
        await reached(dead, task.id, "waiting")
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "x"
        opening_of(dead.workspace).database.wake()  # pyright: ignore[reportAttributeAccessIssue]
        await happened(left)
        assert said == []
        await until(lambda: dead.running() == 1)  # only the one that is stuck
        await sound(heir)


@pytest.mark.rule("crash.poison")
async def test_a_task_whose_process_dies_each_time_is_dead_in_the_end(tmp_path, clock):
    path = tmp_path / "team.db"
    with team(path, clock=clock, hands=0) as asking, team(path, clock=clock) as heir:
        asking.add(Card("poison"), echo)
        task = await asking.submit("poison", "x")
        for attempt in (1, 1, 2, 3, 4):  # the first time it may have been the machine
            dead = doomed(path, clock)
            puppet = Puppet()
            dead.add(Card("poison"), puppet)
            dead.lend()
            await happened(puppet.inside)
            assert (await task.status()).attempt == attempt
            await take_over(heir, clock, dead)
            assert (await task.status()).state == "pending"
        heir.add(Card("poison"), echo)
        outcome = await ends(clock, task)
        assert outcome.state == "dead"
        assert "the process that carried it out died 5 times" in str(outcome.error)
        await sound(heir)


@pytest.mark.rule("crash.lead")
@pytest.mark.parametrize("what", ["plan", "team"])
async def test_a_plan_or_team_run_by_a_program_that_is_gone_has_failed(tmp_path, clock, what: str):
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        puppet = Puppet()
        dead.add(Card("member"), puppet)

        async def boss(turn: Turn) -> dict:
            return {"steps": [{"id": "a", "title": "t", "description": "d", "agent": "member", "after": []}]}

        dead.add(Card("boss", asks="*"), boss)
        heir.add(Card("member"), echo)
        heir.add(Card("boss", asks="*"), echo)

        async def start() -> None:
            plan = Plan([Step("a", "t", "d", agent="member")])
            with pytest.raises(Exception, match="is gone"):
                await (dead.run_plan(plan) if what == "plan" else dead.run_team("goal", "boss"))

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await happened(puppet.inside)
            root = (await dead.workspace.tasks.list(parent=""))[0].id
            await take_over(heir, clock, dead)
            outcome = await heir.workspace.tasks.get(root).wait(PATIENCE)
            assert outcome.state == "failed"
            assert f"the process that ran this {what} is gone" in str(outcome.error)
            assert await heir.workspace.tasks.list(state="open") == []  # nothing of it is left open
            puppet.go.set()
            await happened(puppet.left)
        await sound(heir)


@pytest.mark.rule("cancel.tree", "crash.replay")
@pytest.mark.parametrize("when", ["before anyone takes it over", "while no one has it", "when the heir has it"])
async def test_what_a_dead_process_left_can_be_cancelled(tmp_path, clock, when: str):
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        puppet, inside = Puppet(), anyio.Event()

        async def lead(turn: Turn) -> None:
            await turn.delegate("middle", "x")

        async def middle(turn: Turn) -> None:
            await turn.delegate("stuck", "x")

        async def heirs(turn: Turn) -> None:
            inside.set()
            await anyio.sleep_forever()

        dead.add(Card("lead", asks="*"), lead)
        dead.add(Card("middle", asks="*"), middle)
        dead.add(Card("stuck"), puppet)
        task = await dead.submit("lead", "go")
        await happened(puppet.inside)
        if when == "when the heir has it":
            heir.add(Card("lead"), heirs)
        if when != "before anyone takes it over":
            await take_over(heir, clock, dead)
        if when == "when the heir has it":
            await happened(inside)
        assert await heir.workspace.tasks.cancel(task.id) == 3
        await take_over(heir, clock, dead)
        assert (await heir.workspace.tasks.get(task.id).wait(PATIENCE)).state == "cancelled"
        assert {one.state for one in await heir.workspace.tasks.list()} == {"cancelled"}
        await sound(heir)


@pytest.mark.rule("crash.fence")
async def test_a_zombie_cannot_cancel_what_its_heir_waits_for(tmp_path, clock):
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        rules: list[str] = []
        asked, go, left = anyio.Event(), anyio.Event(), anyio.Event()

        async def zombie(turn: Turn) -> None:
            task = await turn.submit("coder", "x")
            asked.set()
            await go.wait()
            for verb in (task.cancel, task.retry, task.wait):
                with pytest.raises(Refused) as no:
                    await verb()
                rules.append(no.value.rule)
            left.set()

        async def lead(turn: Turn) -> str:
            return await (await turn.submit("coder", "x")).result()

        puppet = Puppet()
        puppet.act = echo  # pyright: ignore[reportAttributeAccessIssue]
        dead.add(Card("lead", asks="*"), zombie)
        dead.add(Card("coder"), Puppet())
        heir.add(Card("lead", asks="*"), lead)
        heir.add(Card("coder"), puppet)
        task = await dead.submit("lead", "go")
        await happened(asked)
        await take_over(heir, clock, dead)
        await reached(heir, task.id, "waiting")
        go.set()
        await happened(left)
        puppet.go.set()
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "x"
        assert rules == ["over"] * 3
        await sound(heir)


@pytest.mark.rule("tool.fence")
@pytest.mark.parametrize("repeat", ["again", "tell"])
async def test_a_zombie_uses_no_tool(tmp_path, clock, repeat: Any):
    """A process that lost its task looks before it uses a tool, whatever the tool says of being used twice."""
    asked, go, left = anyio.Event(), anyio.Event(), anyio.Event()
    used: list[str] = []
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:

        async def zombie(turn: Turn) -> None:
            async def charge(given: dict[str, Any]) -> str:
                used.append("zombie")
                return "charged"

            asked.set()
            await go.wait()
            with pytest.raises(Refused):
                await turn.tool(ToolCall("charge", {}, "c1"), charge)
            left.set()

        rules = AgentRules(repeat={"charge": repeat})
        dead.add(Card("till", tools=["charge"]), zombie, rules=rules)
        heir.add(Card("till", tools=["charge"]), echo)
        task = await dead.submit("till", "go")
        await happened(asked)
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "go"
        go.set()
        await happened(left)
        assert used == []
        await sound(heir)

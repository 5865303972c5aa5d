"""Plans and teams from the queue: any process that has their members leads them, and what was done of them stays
done."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

import remit
from engine.helping import (
    PATIENCE,
    Shaky,
    doomed,
    ends,
    found,
    happened,
    life,
    listening,
    quiet,
    reached,
    sound,
    take_over,
)
from remit import Card, Command, Plan, Refused, Runtime, Step, Task, Turn, Workspace
from remit.errors import BadInput, Cancelled, Conflict, Failed
from remit.settings import System
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

THREE = Plan(
    [
        Step("a", "A", agent="ann"),
        Step("b", "B", agent="bob", after=["a"]),
        Step("c", "C", agent="ann", after=["b"]),
    ],
    "a book",
)
DRAFT = {"steps": [{"id": s.id, "title": s.title, "agent": s.agent, "after": [*s.after]} for s in THREE.steps]}


class Stage:
    """What is done in two processes, one after the other: the first stops for ever where `crash` is awaited."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.crashed = anyio.Event()
        self.first = True

    async def crash(self) -> None:
        if self.first:
            self.crashed.set()
            await anyio.sleep_forever()

    def add(self, rt: Runtime, *, boss: Callable[[Turn], object] | None = None) -> None:
        """Register members, of whom bob crashes, and a coordinator."""

        async def member(turn: Turn) -> str:
            self.did.append(turn.task.partition("\n")[0])
            if turn.agent == "bob":
                await self.crash()
            return f"{turn.agent} is done"

        async def lead(turn: Turn) -> object:
            self.did.append(f"boss: {turn.phase}")
            if boss is not None:
                return await boss(turn)  # pyright: ignore[reportGeneralTypeIssues]
            return DRAFT if turn.phase == "plan" else turn.task

        rt.add(Card("ann"), member)
        rt.add(Card("bob"), member)
        rt.add(Card("boss", asks="*"), lead)

    async def play(self, tmp_path: Path, clock: FakeClock, submit: Callable[[Runtime], object], **how) -> remit.Outcome:
        """Submit in the first process, and wait for what comes of it in the second."""
        dead, heir = doomed(tmp_path / "team.db", clock), team(tmp_path / "team.db", clock=clock)
        with dead, heir:
            self.add(dead, **how)
            task: Task = await submit(dead)  # pyright: ignore[reportGeneralTypeIssues]
            await happened(self.crashed)
            self.first = False
            self.add(heir, **how)
            await take_over(heir, clock, dead)
            outcome = await heir.workspace.tasks.get(task.id).wait(PATIENCE)
            self.plan = await heir.workspace.tasks.get(task.id).plan_outcome()
            self.tasks = len(await heir.workspace.tasks.list())
            self.kinds = [event.kind for event in await heir.workspace.journal.history()]
            await sound(heir)
            return outcome


# -- plans --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("plan.submit")
async def test_a_submitted_plan_is_carried_out_and_tells_what_became_of_every_step(rt: Runtime):
    told = listening(rt, "ann", "bob")
    task = await rt.submit_plan(THREE, session="s", by="eve", concurrency=2)
    assert await task.result(PATIENCE) == {"a": "completed", "b": "completed", "c": "completed"}
    outcome = await task.plan_outcome()
    assert outcome.ok
    assert [(one.id, one.title, one.agent, one.value) for one in outcome.steps.values()] == [
        ("a", "A", "ann", "result of ann"),
        ("b", "B", "bob", "result of bob"),
        ("c", "C", "ann", "result of ann"),
    ]
    assert told["bob"] == ["# Task: B\n\n## Context from prerequisite tasks\n\n### A (by ann)\nresult of ann"]
    status = await task.status()
    assert (status.agent, status.task, status.session, status.asked_how) == ("plan", "a book", "s", "submit")
    (first, *_) = await rt.workspace.journal.history(task=task.id)
    assert first.data["by"] == "eve"
    await sound(rt)


@pytest.mark.rule("plan.resumed")
async def test_a_plan_whose_process_is_gone_goes_on_in_another_with_what_was_done(tmp_path, clock):
    stage = Stage()
    outcome = await stage.play(tmp_path, clock, lambda rt: rt.submit_plan(THREE))
    assert outcome.state == "completed"
    assert stage.did == ["# Task: A", "# Task: B", "# Task: B", "# Task: C"]
    assert stage.tasks == 4
    assert [one.value for one in stage.plan.steps.values()] == ["ann is done", "bob is done", "ann is done"]


@pytest.mark.rule("plan.retried")
async def test_a_plan_is_retried_by_hand_and_does_again_only_what_did_not_complete(rt: Runtime):
    did: list[str] = []
    broken = [True]

    async def member(turn: Turn) -> str:
        did.append(turn.agent)
        if turn.agent == "bob" and broken[0]:
            raise ValueError("no ink")
        return f"{turn.agent} is done"

    rt.add(Card("ann"), member)
    rt.add(Card("bob"), member)
    task = await rt.submit_plan(THREE)
    outcome = await task.wait(PATIENCE)
    assert outcome.state == "failed"
    assert "2 of 3 steps did not complete: step 'b' failed: 'bob' failed: ValueError: no ink" in str(outcome.error)
    assert (await task.plan_outcome()).states() == {"a": "completed", "b": "failed", "c": "failed"}
    assert (await task.plan_outcome()).steps["c"].reason == 'dependency "b" failed'
    broken[0] = False
    again = await task.retry()
    assert (await again.plan_outcome(PATIENCE)).ok
    assert did == ["ann", "bob", "bob", "ann"]
    assert (await again.plan_outcome()).steps["a"].value == "ann is done"
    await sound(rt)


@pytest.mark.rule("plan.attempts")
async def test_a_plan_that_may_go_better_is_tried_again_by_itself(rt: Runtime, clock):
    did: list[str] = []

    async def member(turn: Turn) -> str:
        did.append(turn.agent)
        if turn.agent == "bob" and did.count("bob") < 3:
            raise Shaky
        return "done"

    rt.add(Card("ann"), member)
    rt.add(Card("bob"), member)
    task = await rt.submit_plan(THREE)
    assert (await ends(clock, task)).state == "completed"
    assert did == ["ann", "bob", "bob", "bob", "ann"]
    assert (await life(rt, task.id)).count("retrying") == 2


@pytest.mark.rule("plan.attempts")
async def test_a_plan_with_a_step_that_cannot_go_better_is_not_tried_again(rt: Runtime, clock):
    async def member(turn: Turn) -> str:
        raise Shaky if turn.agent == "bob" else ValueError("never")

    rt.add(Card("ann"), member)
    rt.add(Card("bob"), member)
    plan = [Step("x", "X", agent="bob"), Step("y", "Y", agent="ann")]
    assert (await (await rt.submit_plan(Plan(plan))).wait(PATIENCE)).state == "failed"
    dead = await rt.submit_plan(Plan(plan[:1]), attempts=2)
    assert (await ends(clock, dead)).state == "dead"
    assert (await dead.plan_outcome()).steps["x"].retryable
    assert (await rt.workspace.agents.breakers()).keys() == {"ann", "bob"}  # whoever leads a plan has none


async def test_many_steps_that_failed_are_counted_and_the_first_are_named(rt: Runtime):
    async def member(turn: Turn) -> str:
        raise ValueError("no")

    rt.add(Card("ann"), member)
    outcome = await (await rt.submit_plan(Plan([Step(f"s{n}", "S", agent="ann") for n in range(7)]))).wait(PATIENCE)
    assert "7 of 7 steps did not complete: step 's0' failed" in str(outcome.error)
    assert "; and 2 more" in str(outcome.error)


@pytest.mark.rule("plan.cancel")
async def test_cancelling_a_plan_stops_all_of_it(rt: Runtime):
    inside = anyio.Event()

    async def member(turn: Turn) -> None:
        inside.set()
        await anyio.sleep_forever()

    rt.add(Card("ann"), member)
    rt.add(Card("bob"), echo)
    task = await rt.submit_plan(THREE)
    await happened(inside)
    assert await task.cancel("enough") == 2
    assert (await task.wait(PATIENCE)).state == "cancelled"
    assert {one.state for one in await rt.workspace.tasks.list()} == {"cancelled"}
    with pytest.raises(Cancelled, match="enough"):
        await task.plan_outcome()


@pytest.mark.rule("plan.submit-checked")
@pytest.mark.parametrize(
    ("plan", "how", "why"),
    [
        (Plan([]), {}, "the plan has no steps"),
        (
            Plan([Step("a", "A", agent="nobody")]),
            {},
            "is for 'nobody', who cannot be asked; there is ann, bob",
        ),
        (Plan([Step("a", "A", agent="ann")]), {"within": remit.Bounds(agents=["bob"])}, "who cannot be asked"),
        (Plan([Step("a", "A", agent="ann", after=["a"])]), {}, "waits for itself"),
        (
            Plan([Step("a", "A", agent="ann", payload="structured", schema={"type": "circle"})]),
            {},
            "schema",
        ),
        (THREE, {"concurrency": 0}, "concurrency"),
        (THREE, {"reveal": "yes"}, "reveal"),
        (THREE, {"seconds": 3}, "submit_plan takes no 'seconds'; did you mean timeout"),
        (THREE, {"approve_steps": echo}, "submit_plan takes no approve_steps: it would be lost with this process"),
        (THREE, {"abort": anyio.Event()}, "cancel the task to stop it"),
        ("a plan", {}, r"submit_plan takes a Plan"),
    ],
)
async def test_a_plan_that_cannot_be_carried_out_is_not_accepted(rt: Runtime, plan, how, why):
    listening(rt, "ann", "bob")
    with pytest.raises(BadInput, match=why):
        await rt.submit_plan(plan, **how)
    assert await rt.workspace.tasks.list() == []


@pytest.mark.rule("plan.submit-key")
async def test_the_same_plan_is_the_same_task_and_another_is_not(rt: Runtime):
    listening(rt, "ann", "bob")
    first = await rt.submit_plan(THREE, same_within=300)
    assert (await rt.submit_plan(Plan([*THREE.steps], THREE.goal), same_within=300)).id == first.id
    other = Plan([*THREE.steps[:2]], THREE.goal)
    assert (await rt.submit_plan(other, same_within=300)).id != first.id
    assert (await rt.submit_plan(THREE, reveal=True, same_within=300)).id != first.id
    keyed = await rt.submit_plan(THREE, key="k")
    assert (await rt.submit_plan(THREE, key="k")).existing
    with pytest.raises(Conflict, match="the key 'k' was used for another request"):
        await rt.submit_plan(other, key="k")
    await keyed.wait(PATIENCE)


@pytest.mark.rule("plan.assigned")
async def test_a_step_for_a_capability_is_done_by_the_agent_chosen_when_the_plan_was_submitted(tmp_path, clock):
    plan = Plan([Step("a", "A", capability="job ann")])
    with team(tmp_path / "team.db", clock=clock, hands=0) as asker, team(tmp_path / "team.db", clock=clock) as worker:
        listening(asker, "ann")
        told = listening(worker, "ann", "job-ann")
        task = await asker.submit_plan(plan)
        assert (await asker.submit_plan(plan, key="k")).id != task.id
        listening(asker, "bob")
        assert (await asker.submit_plan(plan, key="k")).existing
        async with worker.serving():
            assert await task.result(PATIENCE) == {"a": "completed"}
        assert told == {"ann": ["# Task: A"] * 2, "job-ann": []}


@pytest.mark.rule("plan.members")
async def test_only_a_process_that_has_all_members_takes_a_plan(tmp_path, clock):
    path = tmp_path / "team.db"
    with team(path, clock=clock) as half, team(path, clock=clock) as whole:
        owner = Workspace(path, system=System(clock=clock))
        told = listening(half, "ann")
        listening(whole, "ann", "bob")
        async with half.serving():
            with pytest.raises(BadInput, match="who cannot be asked; there is ann"):
                await half.submit_plan(THREE)
            async with whole.serving():
                await found(whole, lambda view: view.card("bob"))
            task = await owner.submit_plan(THREE)  # the cards are published now
            mine = await half.submit_plan(Plan([Step("z", "Z", agent="ann")]))
            assert await mine.result(PATIENCE) == {"z": "completed"}
            other = await half.submit_plan(Plan([Step("z", "Z", agent="bob")]))
            await quiet()
            assert {(await one.status()).state for one in (task, other)} == {"pending"}
            async with whole.serving():
                assert (await task.plan_outcome(PATIENCE)).ok
                assert (await other.plan_outcome(PATIENCE)).ok
        assert told["ann"] == ["# Task: Z"]
        owner.close()


@pytest.mark.rule("tier.stand-in")
async def test_the_leader_of_a_submitted_plan_counts_neither_as_an_agent_nor_as_a_hop(rt: Runtime):
    listening(rt, "ann", "bob")
    alone = Plan([Step("a", "A", agent="ann"), Step("b", "B", agent="ann", after=["a"])])
    task = await rt.submit_plan(alone, tier="simple", within=remit.Bounds(tasks=2))
    assert (await task.plan_outcome(PATIENCE)).ok
    many = await (await rt.submit_plan(THREE, tier="simple")).plan_outcome(PATIENCE)
    assert many.states() == {"a": "completed", "b": "failed", "c": "failed"}


@pytest.mark.rule("plan.stand-in")
async def test_no_agent_can_ask_the_leader_of_a_plan(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        with pytest.raises(Refused, match="there is no agent 'plan'"):
            await turn.delegate("plan", "go")
        with pytest.raises(Refused, match="there is no agent 'plan'"):
            await turn.submit("plan", "go")
        with pytest.raises(Refused, match="there is no agent 'plan'"):
            await turn.hand_off("plan")
        with pytest.raises(Refused, match="inside a turn say turn.run_plan"):
            await rt.submit_plan(THREE)
        with pytest.raises(Refused, match="inside a turn say turn.run_team"):
            await rt.submit_team("a book", "lead")
        return [card.name for card in turn.agents()]

    assert await rt.run("lead", "go") == []
    with pytest.raises(Refused, match="there is no agent 'plan'"):
        await rt.submit("plan", "go")


async def test_a_structured_result_is_told_as_json_afterwards_too(rt: Runtime):
    @rt.agent
    async def judge(turn: Turn) -> str:
        return '{"score": 10}'

    schema = {"type": "object", "required": ["score"]}
    plan = Plan([Step("a", "A", agent="judge", payload="structured", schema=schema), Step("b", "B", agent="judge")])
    outcome = await (await rt.submit_plan(plan)).plan_outcome(PATIENCE)
    assert [one.value for one in outcome.steps.values()] == [{"score": 10}, '{"score": 10}']


async def test_what_is_no_plan_has_no_steps(rt: Runtime):
    rt.add(Card("ann"), echo)
    task = await rt.submit("ann", "go")
    with pytest.raises(Conflict, match="is no plan and no team"):
        await task.plan_outcome(PATIENCE)


@pytest.mark.rule("plan.retried")
async def test_what_a_program_led_is_told_afterwards_too_and_is_retried_unless_it_has_functions(rt: Runtime):
    tried: list[str] = []

    async def fail_once(turn: Turn) -> str:
        tried.append(turn.agent)
        if tried.count(turn.agent) == 1:
            raise ValueError("no")
        return "done"

    rt.add(Card("ann"), fail_once)
    rt.add(Card("lead", asks="*"), fail_once)
    plan = Plan([Step("a", "A", agent="ann")])
    await rt.run_plan(plan)
    (led,) = await rt.workspace.tasks.list(agent="plan")
    task = rt.workspace.tasks.get(led.id)
    assert (await task.plan_outcome()).steps["a"].reason.startswith("'ann' failed: ValueError: no")
    again = await task.retry()
    assert (await again.plan_outcome(PATIENCE)).steps["a"].value == "done"
    with pytest.raises(Failed, match="no"):
        await rt.run_team("go", "lead", plan=plan)
    (led,) = await rt.workspace.tasks.list(agent="lead")
    assert await (await rt.workspace.tasks.retry(led.id)).result(PATIENCE) == "done"
    tried.clear()
    await rt.run_plan(plan, approve_steps=lambda _: True)
    (led, *_) = await rt.workspace.tasks.list(agent="plan")
    with pytest.raises(Conflict, match="was a plan run by a program, with approve_steps="):
        await rt.workspace.tasks.get(led.id).retry()
    tried.clear()
    long = Plan([Step(f"s{number}", "A", "x" * 150_000, agent="ann") for number in range(8)])
    await rt.run_plan(long)  # longer than one record, and runs nevertheless
    (led, *_) = await rt.workspace.tasks.list(agent="plan")
    with pytest.raises(Conflict, match="or too large to record"):
        await rt.workspace.tasks.get(led.id).retry()


# -- teams --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("team.submit")
async def test_a_submitted_team_gives_the_coordinators_answer_and_tells_of_its_steps(rt: Runtime):
    stage = Stage()
    stage.first = False
    stage.add(rt)
    task = await rt.submit_team("a book", "boss", reveal=True, same_within=300)
    assert "### C (by ann): completed\nann is done" in await task.result(PATIENCE)
    assert (await task.plan_outcome()).states() == {"a": "completed", "b": "completed", "c": "completed"}
    assert stage.did[0] == "boss: plan"
    assert stage.did[1:4] == ["# Goal: a book"] * 3
    assert (await rt.submit_team("a book", "boss", reveal=True, same_within=300)).existing
    await sound(rt)


@pytest.mark.rule("team.resumed")
async def test_a_team_whose_process_is_gone_goes_on_with_the_plan_it_had(tmp_path, clock):
    stage = Stage()
    outcome = await stage.play(tmp_path, clock, lambda rt: rt.submit_team("a book", "boss"))
    assert "### C (by ann): completed" in outcome.unwrap()
    assert stage.did == ["boss: plan", "# Task: A", "# Task: B", "# Task: B", "# Task: C", "boss: synthesis"]
    assert stage.kinds.count("team.planned") == stage.kinds.count("plan.started") == 1
    assert stage.plan.ok


@pytest.mark.rule("team.resumed")
async def test_what_a_coordinator_did_while_planning_is_not_taken_for_what_it_does_at_the_end(tmp_path, clock):
    paid: list[str] = []

    async def boss(turn: Turn) -> object:
        receipt = await turn.once("pay", lambda: paid.append(turn.phase) or f"paid for the {turn.phase}")
        asked = await turn.delegate("ann", "how is it?")
        return DRAFT if turn.phase == "plan" else [receipt, asked]

    stage = Stage()
    outcome = await stage.play(tmp_path, clock, lambda rt: rt.submit_team("a book", "boss"), boss=boss)
    assert outcome.unwrap() == ["paid for the synthesis", "ann is done"]
    assert paid == ["plan", "synthesis"]
    assert stage.did.count("how is it?") == 2


@pytest.mark.rule("team.resumed")
async def test_a_plan_made_of_what_came_from_outside_stays_so_in_another_process(tmp_path, clock):
    async def boss(turn: Turn) -> object:
        if turn.phase == "plan":
            turn.mark_untrusted("a page", "write a book")
            return {"steps": [{**step, "after": []} for step in DRAFT["steps"]]}
        return "done"

    stage = Stage()
    outcome = await stage.play(tmp_path, clock, lambda rt: rt.submit_team("a book", "boss", concurrency=1), boss=boss)
    told = ["# Task in words from outside: do what they ask for, as far as your instructions allow it"] * 4
    assert stage.did == ["boss: plan", *told, "boss: synthesis"]
    assert outcome.trust == "untrusted"
    assert {one.trust for one in stage.plan.steps.values()} == {"untrusted"}


@pytest.mark.rule("team.retried")
async def test_a_team_is_retried_with_the_plan_it_had_and_another_is_made_if_none_was_accepted(rt: Runtime):
    did: list[str] = []
    broken = [True, True]

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> object:
        did.append(turn.phase)
        if turn.phase == "plan":
            return "let us talk" if broken[0] else DRAFT
        if broken[1]:
            raise ValueError("no words")
        return "done"

    listening(rt, "ann", "bob")
    first = await rt.submit_team("a book", "boss")
    assert "nothing was started" in str((await first.wait(PATIENCE)).error)
    with pytest.raises(remit.Failed, match="nothing was started"):
        await first.plan_outcome()
    broken[0] = False
    second = await first.retry()
    assert "no words" in str((await second.wait(PATIENCE)).error)
    assert (await second.plan_outcome()).ok
    broken[1] = False
    third = await second.retry()
    assert await third.result(PATIENCE) == "done"
    assert did == ["plan", "plan", "plan", "synthesis", "synthesis"]
    assert len(await rt.workspace.tasks.list()) == 6
    await sound(rt)


@pytest.mark.parametrize(
    ("args", "how", "error", "why"),
    [
        (("a book", "nobody"), {}, Refused, "there is no agent 'nobody'"),
        (("a book", "boss"), {"approve_steps": echo}, BadInput, "submit_team takes no approve_steps"),
        (("a book", "boss"), {"busy_timeout": 3}, BadInput, "submit_team takes no 'busy_timeout'"),
        (("a book", "boss", "now"), {}, BadInput, "submit_team takes no more than goal and coordinator"),
    ],
)
async def test_a_team_that_cannot_be_led_is_not_accepted(rt: Runtime, args, how, error, why):
    Stage().add(rt)
    with pytest.raises(error, match=why):
        await rt.submit_team(*args, **how)
    assert await rt.workspace.tasks.list() == []


async def test_a_submitted_coordinator_that_hands_its_goal_on_has_failed(rt: Runtime):
    @rt.agent(asks="*")
    async def boss(turn: Turn) -> object:
        return Command("ann")

    listening(rt, "ann")
    outcome = await (await rt.submit_team("a book", "boss")).wait(PATIENCE)
    assert "leads a team and cannot hand that over" in str(outcome.error)


# -- teams inside of a task ---------------------------------------------------------------------------------------


@pytest.mark.rule("team.inside")
async def test_an_agent_gives_a_goal_to_a_team_and_gets_its_answer(rt: Runtime):
    stage = Stage()
    stage.first = False
    stage.add(rt)

    @rt.agent(asks=["boss"])
    async def chief(turn: Turn) -> object:
        with pytest.raises(Refused, match="'ann'"):
            await turn.run_team("a book", "ann")
        with pytest.raises(Refused, match="may not ask 'nobody'"):
            await turn.run_team("a book", "nobody")
        with pytest.raises(BadInput, match="run_team takes no approve_steps"):
            await turn.run_team("a book", "boss", approve_steps=echo)  # pyright: ignore[reportCallIssue]
        with pytest.raises(BadInput, match="run_team takes no 'key'"):
            await turn.run_team("a book", "boss", key="k")  # pyright: ignore[reportCallIssue]
        plain = await turn.delegate("boss", "a book")
        return [await turn.run_team("a book", "boss", timeout=60), plain]

    answer, plain = await rt.run("chief", "go")
    assert "### C (by ann): completed" in answer
    assert plain == "a book"
    _, child = sorted(await rt.workspace.tasks.list(agent="boss"), key=lambda status: status.began)
    assert (await rt.workspace.tasks.get(child.id).plan_outcome()).ok
    await sound(rt)


@pytest.mark.rule("team.inside")
async def test_a_team_that_an_agent_asked_for_is_taken_up_with_the_plan_it_had(tmp_path, clock):
    stage = Stage()

    def add(rt: Runtime) -> None:
        async def chief(turn: Turn) -> object:
            return await turn.run_team("a book", "boss")

        rt.add(Card("chief", asks="*"), chief)

    dead, heir = doomed(tmp_path / "team.db", clock), team(tmp_path / "team.db", clock=clock)
    with dead, heir:
        for one in (dead, heir):
            stage.add(one)
            add(one)
        task = await dead.submit("chief", "go")
        await happened(stage.crashed)
        stage.first = False
        await take_over(heir, clock, dead)
        assert "### C (by ann): completed" in await heir.workspace.tasks.get(task.id).result(PATIENCE)
        assert stage.did == ["boss: plan", "# Task: A", "# Task: B", "# Task: B", "# Task: C", "boss: synthesis"]
        await sound(heir)


@pytest.mark.rule("team.inside")
async def test_a_team_that_failed_inside_of_a_task_can_be_retried_by_hand(rt: Runtime):
    broken = [True]

    async def boss(turn: Turn) -> object:
        if turn.phase == "synthesis" and broken[0]:
            raise ValueError("no words")
        return DRAFT if turn.phase == "plan" else "done"

    stage = Stage()
    stage.first = False
    stage.add(rt, boss=boss)

    @rt.agent(asks="*")
    async def chief(turn: Turn) -> str:
        with pytest.raises(remit.Failed, match="no words"):
            await turn.run_team("a book", "boss")
        return "gave up"

    assert await rt.run("chief", "go") == "gave up"
    (led,) = await rt.workspace.tasks.list(agent="boss")
    broken[0] = False
    again = await rt.workspace.tasks.retry(led.id)
    assert await again.result(PATIENCE) == "done"
    assert stage.did.count("boss: plan") == 1
    await reached(rt, again.id, "completed")


@pytest.mark.rule("team.inside")
async def test_the_receipt_of_a_team_says_what_its_asker_kept_back(rt: Runtime):
    stage = Stage()
    stage.first = False
    stage.add(rt)

    @rt.agent(asks="*", reads=["secrets"])
    async def chief(turn: Turn) -> object:
        return await turn.run_team("a book", "boss")

    await rt.run("chief", "go")
    (led,) = await rt.workspace.tasks.list(agent="boss")
    end = (await rt.workspace.journal.history(task=led.id))[-1]
    assert ["everything else", "not passed"] in end.data["receipt"]["withheld"]  # pyright: ignore[reportIndexIssue, reportOptionalSubscript, reportCallIssue, reportArgumentType, reportOperatorIssue]

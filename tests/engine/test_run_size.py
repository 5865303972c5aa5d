"""How large a run may get: tasks, parts of a command, handoffs, agents and what is recorded of refusals."""

import time

import pytest

from engine.helping import sound
from remit import Bounds, Card, Command, Plan, Refused, Runtime, Send, Step, Turn, errors
from remit.report.tree import tree
from remit.stores.queries import queries
from teams import echo, team

pytestmark = pytest.mark.anyio


async def ask_on(turn: Turn, way: str) -> list[str]:
    """Ask for one after the other until a rule says no; what was said then, and how often it went well."""
    asked = 0
    try:
        while True:
            await getattr(turn, way)("worker", f"part {asked}")
            asked += 1
    except Refused as no:
        return [str(asked), no.rule, str(no)]


@pytest.mark.untraced
@pytest.mark.rule("run.size")
@pytest.mark.parametrize("way", ["delegate", "submit"])
@pytest.mark.case("amplify")
async def test_a_run_has_a_thousand_tasks_whichever_way_they_are_asked_for(way: str):
    with team(hands=0) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[str]:
            return await ask_on(turn, way)

        rt.add(Card("worker"), echo)
        asked, rule, sentence = await rt.run("lead", "go")
        assert (asked, rule) == ("999", "tasks")
        assert sentence == "this run has 1,000 of 1,000 tasks, so 'worker' was not asked; finish with what you have"
        (line,) = await rt.workspace.tasks.runs()
        assert line.facts.tasks == 1_000
        await sound(rt)


@pytest.mark.rule("run.size")
async def test_spawned_tasks_parts_and_steps_count_too(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        if turn.handoff.results:
            return [outcome.rule for outcome in turn.handoff.results]
        await turn.spawn("worker", "beside")
        await turn.submit("worker", "later")
        await turn.delegate_all([("worker", "one"), ("worker", "two")])
        return Command([Send("worker", "three"), Send("worker", "four"), Send("worker", "five")])

    rt.add(Card("worker"), echo)
    assert await rt.run("lead", "go", within=Bounds(tasks=7)) == ["", "", "tasks"]


@pytest.mark.rule("run.size", "plan.drain")
async def test_a_plan_stops_when_its_run_is_full_and_one_that_cannot_fit_starts_nothing(rt: Runtime):
    @rt.agent(asks=["worker"])
    async def lead(turn: Turn) -> str:
        return await turn.delegate("worker", "a part")

    rt.add(Card("worker"), echo)
    steps = [Step("a", "A", agent="lead"), Step("b", "B", agent="lead"), Step("c", "C", agent="lead")]
    outcome = await rt.run_plan(Plan(steps), within=Bounds(tasks=3), concurrency=1)
    assert [step.state for step in outcome.steps.values()] == ["completed", "failed", "failed"]
    assert "4 of 3 tasks" in outcome.steps["c"].reason
    with pytest.raises(errors.BadInput, match="the plan has 3 steps and at most 2 are allowed"):
        await rt.run_plan(Plan(steps), within=Bounds(tasks=2))


@pytest.mark.rule("run.size")
async def test_an_owner_may_allow_more_and_a_caller_only_less():
    with team(bounds=Bounds(tasks=3)) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[str]:
            return (await ask_on(turn, "delegate"))[:2]

        rt.add(Card("worker"), echo)
        assert await rt.run("lead", "go") == ["2", "tasks"]
        assert await rt.run("lead", "go", within=Bounds(tasks=5_000)) == ["2", "tasks"]
        assert await rt.run("lead", "go", within=Bounds(tasks=1)) == ["0", "tasks"]


@pytest.mark.rule("run.sends")
@pytest.mark.parametrize(
    ("most", "parts", "told"), [(100, 100, ""), (100, 101, "this one has 101"), (3, 4, "this one has 4")]
)
async def test_a_command_that_goes_to_too_many_at_once_leaves_the_holder_in_charge(most: int, parts: int, told: str):
    with team(max_parallel_parts=most) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> object:
            if turn.handoff.refused or turn.handoff.results:
                return [turn.handoff.refused, len(turn.handoff.results)]
            return Command([Send("worker", str(number)) for number in range(parts)])

        rt.add(Card("worker"), echo)
        refused, results = await rt.run("lead", "go", tier="complex")
        assert results == (0 if told else parts)
        assert told in refused
        assert (await rt.workspace.tasks.runs())[0].facts.tasks == 1 + results


@pytest.mark.rule("run.sends")
async def test_asking_first_whether_so_many_may_be_sent_raises(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused, match="at most 100 parts") as no:
            await turn.hand_off([Send("worker", "x")] * 101)
        return no.value.rule

    rt.add(Card("worker"), echo)
    assert await rt.run("lead", "go") == "sends"


@pytest.mark.rule("handoff.deadlock", "handoff.parallel")
@pytest.mark.parametrize("first", ["ghost", "chief", "worker", "stranger"])
@pytest.mark.case("ghost_fan_out")
async def test_going_out_in_the_same_parts_again_is_refused_whichever_part_is_first(rt: Runtime, first: str):
    turns: list[str] = []

    @rt.agent(asks=["worker"])
    async def chief(turn: Turn) -> object:
        turns.append(turn.handoff.refused)
        assert len(turns) < 10
        return Command([Send(first, "same"), Send("worker", "same")])

    rt.add(Card("worker"), echo)
    rt.add(Card("stranger"), echo)
    outcome = await rt.outcome("chief", "go")
    assert (outcome.state, len(turns)) == ("failed", 3)
    assert "has just handed the same thing" in turns[-1]


@pytest.mark.rule("handoff.parallel", "tier.run")
async def test_every_part_counts_against_the_agents_of_a_run_and_all_of_them_are_one_handoff(rt: Runtime):
    @rt.agent(asks="*")
    async def chief(turn: Turn) -> object:
        if turn.handoff.results:  # the editor could not join, so they are back
            return [outcome.rule for outcome in turn.handoff.results] + [turn.handoff.refused]
        return Command([Send(name, "x") for name in ("ghost", "ann", "bob", "eve")], join="editor")

    @rt.agent
    async def editor(turn: Turn) -> list[str]:
        return [outcome.rule for outcome in turn.handoff.results]

    for name in ("ann", "bob", "eve"):
        rt.add(Card(name), echo)
    assert await rt.run("chief", "go", within=Bounds(handoffs=1, members=5)) == ["unknown", "", "", ""]
    assert (await rt.workspace.tasks.runs())[0].facts.handoffs == 1
    *rules, refused = await rt.run("chief", "go", within=Bounds(handoffs=1, members=3))
    assert rules == ["unknown", "", "", "tier"]
    assert refused == "this run has 3 of 3 agents, so 'editor' cannot join; work with them"


# --- tiers hold for the whole run --------------------------------------------------------------


@pytest.mark.rule("tier.run", "handoff.run-limit")
@pytest.mark.case("tiers")
async def test_the_handoffs_of_a_tier_are_those_of_all_tasks_together(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        return [await turn.delegate("a", str(number)) for number in range(4)]

    async def pass_on(turn: Turn) -> object:
        if turn.handoff.refused:
            return turn.handoff.refused.split(",")[0]
        if turn.handoff.sender:
            return "took over"
        return Command("b", {"context": {"of": turn.task}})

    rt.add(Card("a", asks="*"), pass_on)
    rt.add(Card("b"), pass_on)
    spent = "tasks of this run have changed hands 2 of 2 times"
    assert await rt.run("lead", "go", tier="medium") == ["took over", "took over", spent, spent]
    assert await rt.run("lead", "go") == ["took over"] * 4  # without a tier each task has its own limit


@pytest.mark.rule("handoff.limit")
async def test_how_often_one_task_changes_hands_is_the_owners_to_say():
    with team(handoffs=2) as rt:

        @rt.agent(asks="*")
        async def a(turn: Turn) -> object:
            if turn.handoff.refused:
                return [len(turn.handoff.trail), turn.handoff.refused.split(",")[0]]
            return Command("b" if turn.agent == "a" else "a", {"phase": str(len(turn.handoff.trail))})

        rt.add(Card("b", asks="*"), a)
        assert await rt.run("a", "go") == [2, "this task has changed hands 2 of 2 times"]
        assert (await rt.run("a", "go", within=Bounds(handoffs=50)))[0] == 2


@pytest.mark.rule("tier.stand-in")
@pytest.mark.case("stand_in")
async def test_the_leader_of_a_plan_for_a_person_is_neither_an_agent_nor_a_hop(rt: Runtime):
    @rt.agent(asks=["helper"])
    async def worker(turn: Turn) -> int:
        return turn.remit.chain.depth

    @rt.agent
    async def helper(turn: Turn) -> None: ...

    plan = Plan([Step("1", "A", agent="worker"), Step("2", "B", agent="worker", after=["1"])])
    outcome = await rt.run_plan(plan, tier="simple")
    assert [step.value for step in outcome.steps.values()] == [0, 0]
    (line,) = await rt.workspace.tasks.runs()
    assert line.facts.members == {"worker"}
    other = await rt.run_plan(Plan([Step("1", "A", agent="worker"), Step("2", "B", agent="helper")]), tier="simple")
    assert "this run has 1 of 1 agents, so 'helper' cannot join" in other.steps["2"].reason


@pytest.mark.rule("tier.stand-in", "chain.depth")
async def test_a_step_may_go_as_deep_as_what_a_person_asks_for(rt: Runtime):
    async def deeper(turn: Turn) -> int:
        below = turn.agents()
        try:
            return 1 + await turn.delegate(below[0].name, "deeper") if below else 1
        except Refused:
            return 1

    for name, asks in (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", ())):
        rt.add(Card(name, asks=asks), deeper)
    alone = await rt.run("a", "go")
    outcome = await rt.run_plan(Plan([Step("1", "A", agent="a")]))
    assert alone == outcome.steps["1"].value == 4


@pytest.mark.rule("tier.stand-in")
async def test_who_coordinates_a_team_takes_part(rt: Runtime):
    @rt.agent(asks="*")
    async def chief(turn: Turn) -> object:
        return {"steps": [{"id": "a", "title": "A", "agent": "worker"}]} if turn.phase == "plan" else "done"

    rt.add(Card("worker"), echo)
    await rt.run_team("go", "chief")
    assert (await rt.workspace.tasks.runs())[0].facts.members == {"chief", "worker"}


# --- admission costs the same ------------------------------------------------------------------


@pytest.mark.rule("door.flat")
def test_what_a_run_began_with_is_not_read_at_a_hop():
    """Its text may be long, and is decoded while others wait to write."""
    assert "data" not in queries()["run"].sql
    assert "data" in queries()["runs"].sql  # a list shows it


@pytest.mark.untraced
@pytest.mark.rule("door.flat")
@pytest.mark.case("amplify")
async def test_the_last_hop_of_a_large_run_costs_what_an_early_one_does():
    """With a thousand members and every bound of a run; ten times would be a scan."""
    with Runtime() as rt:
        took: list[float] = []

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            for number in range(990):
                began = time.perf_counter()
                await turn.delegate(f"worker-{number}", "x")
                took.append(time.perf_counter() - began)

        for number in range(990):
            rt.add(Card(f"worker-{number}"), echo)
        await rt.run("lead", "go", within=Bounds(members=1_000, tokens=10**9, tasks=1_000))
        early, late = sorted(took[100:200])[10], sorted(took[-100:])[10]  # others may be busy meanwhile
        assert late < 5 * early


# --- what is recorded of refusals --------------------------------------------------------------


@pytest.mark.rule("refuse.recorded")
@pytest.mark.case("amplify")
async def test_of_a_refused_hop_the_beginning_of_its_text_is_kept(rt: Runtime):
    @rt.agent
    async def lead(turn: Turn) -> None:
        with pytest.raises(Refused):
            await turn.delegate("nobody", "x" * 1_000_000)
        with pytest.raises(Refused):
            await turn.submit("nobody", "y" * 300)

    await rt.run("lead", "go")
    first, second = (event for event in await rt.workspace.journal.history() if event.kind == "hop.refused")
    assert first.data["task"] == "x" * 299 + "…"
    assert second.data["task"] == "y" * 300


@pytest.mark.rule("refuse.recorded")
async def test_the_first_hundred_refusals_of_a_task_are_recorded_and_the_others_are_counted(rt: Runtime):
    @rt.agent
    async def lead(turn: Turn) -> list[int]:
        said = await turn.delegate_all([("nobody", str(number)) for number in range(90)])
        for number in range(50):
            with pytest.raises(Refused, match="may not ask 'nobody'"):
                await turn.submit("nobody", str(number))
        with pytest.raises(Refused, match="may not ask 'nobody'"):
            await turn.hand_off("nobody")
        return [sum(outcome.state == "refused" for outcome in said)]

    assert await rt.run("lead", "go") == [90]
    history = await rt.workspace.journal.history()
    assert sum(event.kind == "hop.refused" for event in history) == 100
    assert history[-1].data["more_refused"] == 41
    (line,) = await rt.workspace.tasks.runs()
    assert line.facts.refusals == 141
    root = tree(history)
    assert root is not None
    assert (len(root.refusals), root.more_refused) == (100, 41)
    await sound(rt)


@pytest.mark.rule("refuse.recorded")
async def test_each_turn_tells_of_its_own_refusals_and_the_limit_is_the_tasks(rt: Runtime):
    async def in_vain(turn: Turn) -> object:
        for number in range(80):
            with pytest.raises(Refused):
                await turn.submit("nobody", str(number))
        return "done" if turn.handoff.sender else Command("second")

    rt.add(Card("first", asks="*"), in_vain)
    rt.add(Card("second"), in_vain)
    await rt.run("first", "go")
    history = await rt.workspace.journal.history()
    assert sum(event.kind == "hop.refused" for event in history) == 100
    told = [event.data.get("more_refused", 0) for event in history if event.kind in ("task.handed", "task.completed")]
    assert told == [0, 60]


@pytest.mark.rule("sight.receipt")
@pytest.mark.case("amplify")
async def test_what_an_asker_keeps_back_is_listed_up_to_a_limit(rt: Runtime):
    @rt.agent(asks="*", writes=["notes"])
    async def lead(turn: Turn) -> None:
        for number in range(300):
            await turn.context.set("notes", f"k{number:03}", number)
        await turn.delegate("worker", "x")

    rt.add(Card("worker"), echo)
    await rt.run("lead", "go", sees=())
    end = next(event for event in await rt.workspace.journal.history() if event.kind == "task.completed")
    withheld = end.data["receipt"]["withheld"]  # pyright: ignore[reportCallIssue, reportArgumentType, reportIndexIssue, reportOptionalSubscript]
    assert len(withheld) == 201
    assert withheld[-1] == ["and 101 more", "not listed"]  # the 300 entries, and the memory of its asker

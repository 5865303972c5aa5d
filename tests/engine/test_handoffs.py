"""Handing a task over: control moves, the chain stays true, and nobody goes in circles."""

from contextlib import suppress

import anyio
import pytest

import remit
from engine.helping import kinds, signed
from remit import END, Bounds, Card, Command, Plan, Refused, Runtime, Step, Turn, errors
from remit.report.tree import tree
from teams import team

pytestmark = pytest.mark.anyio


@pytest.mark.rule("handoff.state", "handoff.chain")
async def test_the_new_holder_reads_what_was_handed_over_and_stands_in_the_chain(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> dict:
        return await turn.delegate("triage", "my bill is wrong")

    @rt.agent(asks="*")
    async def triage(turn: Turn) -> Command:
        update = {
            "context": {"customer": 7},
            "artifacts": {"log": "x"},
            "phase": "triaged",
            "next_phase": "refund",
            "completed": ["triage"],
            "remaining": ["refund", "mail"],
            "metrics": {"tokens": 10, "seconds": 0.5},
        }
        return Command("billing", update)

    @rt.agent(asks="*")
    async def billing(turn: Turn) -> Command:
        assert turn.handoff.sender == "triage"
        assert turn.handoff.state.remaining == ("refund", "mail")
        return Command("mailer", {"context": {"refund": 3}, "completed": ["refund"], "metrics": {"tokens": 5}})

    @rt.agent
    async def mailer(turn: Turn) -> dict:
        state = turn.handoff.state
        return {
            "chain": list(turn.remit.names),
            "task": turn.task,
            "context": state.context,
            "left": list(state.remaining),
            "done": list(state.completed),
            "tokens": state.tokens,
            "trail": [f"{move.sender}>{move.to}" for move in turn.handoff.trail],
        }

    assert await rt.run("lead", "help") == {
        "chain": ["lead", "mailer"],
        "task": "my bill is wrong",
        "context": {"customer": 7, "refund": 3},
        "left": ["mail"],
        "done": ["triage", "refund"],
        "tokens": 15,
        "trail": ["triage>billing", "billing>mailer"],
    }
    [line] = await rt.workspace.tasks.runs(1)
    assert line.facts.tasks == 2  # the handed task is one task


@pytest.mark.rule("handoff.deadlock", "handoff.refused")
async def test_ping_pong_stops_at_the_third_identical_handoff_and_ends_with_a_result(rt: Runtime):
    turns: list[str] = []

    async def pass_on(turn: Turn) -> object:
        turns.append(turn.agent)
        if turn.handoff and turn.handoff.refused:
            return f"{turn.agent} finished it, because {turn.handoff.refused}"
        return Command("pong" if turn.agent == "ping" else "ping", {"phase": "yours"})

    rt.add(Card("ping", asks="*"), pass_on)
    rt.add(Card("pong", asks="*"), pass_on)
    result = await rt.run("ping", "go")
    assert result.startswith("ping finished it, because 'ping' has just handed the same thing to 'pong'")
    assert turns == ["ping", "pong", "ping", "ping"]
    assert await kinds(rt) == ["task.started", "task.handed", "task.handed", "hop.refused", "task.completed"]


@pytest.mark.rule("chain.loop")
async def test_ping_pong_by_delegation_stops_after_two_calls(rt: Runtime):
    calls: list[str] = []

    async def ask_back(turn: Turn) -> str:
        calls.append(turn.agent)
        try:
            return await turn.delegate("pong" if turn.agent == "ping" else "ping", "yours")
        except Refused:
            return "did it myself"

    rt.add(Card("ping", asks="*"), ask_back)
    rt.add(Card("pong", asks="*"), ask_back)
    assert await rt.run("ping", "go") == "did it myself"
    assert calls == ["ping", "pong"]


@pytest.mark.rule("handoff.refused", "breaker.own-failures")
async def test_a_holder_that_insists_on_a_refused_handoff_has_failed(rt: Runtime):
    @rt.agent(asks="*")
    async def stubborn(turn: Turn) -> Command:
        return Command("nobody")

    with pytest.raises(remit.Failed, match="there is no agent 'nobody'"):
        await rt.run("stubborn", "go")
    assert await kinds(rt) == ["task.started", "hop.refused", "hop.refused", "task.failed"]


@pytest.mark.rule("handoff.back")
async def test_the_quality_gate_may_send_work_back_as_long_as_something_changes(rt: Runtime):
    scores = iter([60, 75, 90])

    @rt.agent(asks="*")
    async def researcher(turn: Turn) -> Command:
        round_ = len(turn.handoff.trail) if turn.handoff else 0
        return Command("gate", {"artifacts": {"draft": f"draft {round_}"}})

    @rt.agent(asks="*")
    async def gate(turn: Turn) -> object:
        score = next(scores)
        if score < 80:
            return Command("researcher", {"context": {"score": score}})
        return f"{turn.handoff.state.artifacts['draft']} passed with {score}"

    assert await rt.run("researcher", "write") == "draft 4 passed with 90"


@pytest.mark.rule("handoff.back")
async def test_a_task_is_not_handed_up_to_someone_who_waits_for_it(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("coder", "x")

    @rt.agent(asks="*")
    async def coder(turn: Turn) -> str:
        with pytest.raises(Refused, match="'lead' waits for this task") as no:
            await turn.hand_off("lead")
        return no.value.rule

    assert await rt.run("lead", "go") == "loop"


@pytest.mark.rule("handoff.limit")
async def test_a_task_changes_hands_at_most_five_times(rt: Runtime):
    async def on(turn: Turn) -> object:
        here = int(turn.agent[1:])
        if turn.handoff and turn.handoff.refused:
            return [turn.agent, turn.handoff.refused]
        return Command(f"a{here + 1}")

    for number in range(8):
        rt.add(Card(f"a{number}", asks="*"), on)
    agent, sentence = await rt.run("a0", "go")
    assert agent == "a5"
    assert "changed hands 5 of 5 times" in sentence


@pytest.mark.rule("handoff.off")
async def test_handoffs_can_be_switched_off(rt: Runtime):
    @rt.agent(asks="*")
    async def triage(turn: Turn) -> object:
        try:
            return await turn.hand_off("billing")
        except Refused as no:
            return f"{no.rule}: {no}"

    rt.add(Card("billing"), signed)
    assert await rt.run("triage", "x", handoffs=False) == (
        "handoffs: handoffs are off in this run, so 'billing' cannot take over; finish the task yourself"
    )
    assert await rt.run("triage", "x") == "billing: x"


@pytest.mark.rule("sight.receipt")
async def test_what_was_handed_over_is_on_the_new_holders_receipt(rt: Runtime):
    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        return Command("second", {"context": {"k": "x" * 400}})

    rt.add(Card("second"), signed)
    await rt.run("first", "go")
    receipt = (await rt.workspace.journal.history())[-1].data["receipt"]
    assert [part[:2] for part in receipt["saw"]] == [["handed over by first", "passed"], ["task", "task"]]  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues]
    assert receipt["tokens"] > 100  # pyright: ignore[reportCallIssue, reportOperatorIssue]


async def test_end_gives_the_result_or_what_was_handed_over(rt: Runtime):
    @rt.agent
    async def done(turn: Turn) -> Command:
        return Command(END, {"artifacts": {"a": 1}}, result="finished" if turn.task == "say" else None)

    assert await rt.run("done", "say") == "finished"
    assert (await rt.run("done", "show"))["artifacts"] == {"a": 1}


@pytest.mark.rule("handoff.over")
async def test_who_has_handed_a_task_over_can_do_nothing_more_in_its_name(rt: Runtime):
    kept: list[Turn] = []

    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        kept.append(turn)
        return Command("second")

    @rt.agent
    async def second(turn: Turn) -> str:
        with pytest.raises(Refused, match="has ended"):
            await kept[0].delegate("third", "x")
        with pytest.raises(Refused, match="has ended"):
            await kept[0].context.get("a", "b")
        return "alone"

    rt.add(Card("third"), signed)
    assert await rt.run("first", "go") == "alone"


@pytest.mark.rule("asks.identity")
async def test_the_new_holder_has_its_own_memory_and_rights(rt: Runtime):
    @rt.agent(asks="*", writes=["notes"])
    async def first(turn: Turn) -> Command:
        await turn.context.set("notes", "k", "mine")
        return Command("second")

    @rt.agent(writes=[])
    async def second(turn: Turn) -> list[str]:
        rules = []
        for attempt in (turn.context.get("notes", "k"), turn.context.set("notes", "k", "v")):
            with pytest.raises(Refused) as no:
                await attempt
            rules.append(no.value.rule)
        return rules

    assert await rt.run("first", "go", sees=()) == ["not-visible", "not-writable"]


@pytest.mark.rule("handoff.state")
@pytest.mark.parametrize(
    "update",
    [
        {"strange": 1, "context": {"strange": 2}},
        {"context": []},
        {"metrics": {"tokens": -1}},
        {"completed": "x"},
        {"context": {"x": "y" * 300_000}},
        7,
    ],
)
async def test_what_cannot_be_handed_over_is_a_clear_error(rt: Runtime, update):
    @rt.agent(asks="*")
    async def first(turn: Turn) -> object:
        with pytest.raises(errors.BadInput):
            await turn.hand_off("second", update)
        return "still here"

    rt.add(Card("second"), signed)
    assert await rt.run("first", "go") == "still here"


async def test_state_that_grows_too_large_leaves_the_holder_in_charge(rt: Runtime):
    @rt.agent(asks="*")
    async def a(turn: Turn) -> object:
        if turn.handoff and turn.handoff.refused:
            return turn.handoff.refused
        key = str(len(turn.handoff.trail)) if turn.handoff else "0"
        return Command("b" if turn.agent == "a" else "a", {"artifacts": {key: "x" * 100_000}})

    rt.add(Card("b", asks="*"), a)
    assert "at most 262,144 characters" in await rt.run("a", "go")


@pytest.mark.rule("tier.bounds")
async def test_tiers_bound_handoffs_agents_and_tokens(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        await turn.report_tokens(tokens=4_000)
        said = []
        for name in ("a", "b", "c"):
            try:
                await turn.delegate(name, "x")
                said.append("ok")
            except Refused as no:
                said.append(no.rule)
        return said

    async def spend(turn: Turn) -> None:
        with suppress(Refused):  # what was used was used
            await turn.report_tokens(tokens=20_000)

    rt.add(Card("a"), spend)
    rt.add(Card("b"), spend)
    rt.add(Card("c"), spend)
    assert await rt.run("lead", "go", tier="simple") == ["tier", "tier", "tier"]
    assert await rt.run("lead", "go", tier="medium") == ["ok", "ok", "tier"]  # 40,000 of 25,000 tokens, and 3 agents
    assert await rt.run("lead", "go", tier="complex") == ["ok", "ok", "ok"]
    with pytest.raises(errors.BadInput, match="no tier 'huge'"):
        await rt.run("lead", "go", tier="huge")


@pytest.mark.rule("tier.bounds")
async def test_a_classifier_chooses_the_tier_of_a_task_that_has_none():
    with team(classify=lambda task: "simple" if len(task) < 10 else "complex") as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> int | None:
            return turn.remit.bounds.handoffs

        assert await rt.run("lead", "short") == 0
        assert await rt.run("lead", "a much longer task") == 5
        assert await rt.run("lead", "short", tier="medium") == 2


@pytest.mark.rule("tier.rules")
async def test_the_classifier_by_rules_is_asked_for_every_way_to_begin():
    with team(classify="rules") as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> int | None:
            return turn.remit.bounds.handoffs

        small, large = "fix a typo", "design the architecture of a billing platform"
        assert [await rt.run("lead", task) for task in (small, large)] == [0, 5]
        assert (await rt.outcome("lead", large)).value == 5
        async with rt.serving():
            assert [await (await rt.submit("lead", task)).result() for task in (small, large)] == [0, 5]
            for goal, handoffs in ((small, 0), (large, 5)):
                plan = Plan([Step("a", "A", agent="lead")], goal=goal)
                assert (await rt.run_plan(plan)).steps["a"].value == handoffs
                assert (await (await rt.submit_plan(plan)).plan_outcome()).steps["a"].value == handoffs


@pytest.mark.rule("tier.rules")
async def test_an_async_function_may_ask_a_model_for_the_tier():
    asked: list[str] = []

    async def by_model(task: str) -> str:
        await anyio.lowlevel.checkpoint()
        asked.append(task)
        return "huge" if task == "strange" else "medium"

    with team(classify=by_model) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> int | None:
            return turn.remit.bounds.handoffs

        assert await rt.run("lead", "short") == 2
        assert await rt.run("lead", "short", tier="complex") == 5
        with pytest.raises(errors.BadInput, match="there is no tier 'huge'; the tiers are simple, medium, complex"):
            await rt.run("lead", "strange")
        with pytest.raises(errors.BadInput, match="a task must not be empty"):
            await rt.run("lead", "")
    assert asked == ["short", "strange"]


async def test_a_deadline_covers_every_holder(rt: Runtime, clock):
    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        clock.advance(20)
        return Command("second")

    @rt.agent
    async def second(turn: Turn) -> None:
        clock.advance(10)
        await anyio.sleep_forever()

    with pytest.raises(remit.Failed, match="'second' ran out of time"):
        await rt.run("first", "go", timeout=30)
    root = tree(await rt.workspace.journal.history())
    assert root is not None
    assert root.state == "failed"


async def test_cancelling_reaches_the_agent_that_holds_the_task_now(rt: Runtime):
    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        return Command("second")

    @rt.agent
    async def second(turn: Turn) -> str:
        await rt.workspace.tasks.cancel(turn.remit.id, "enough")
        return "too late"

    with pytest.raises(remit.Failed, match="'second' was cancelled: enough"):
        await rt.run("first", "go")
    assert rt.running() == 0


async def test_a_concurrency_limit_holds_for_handoffs_too(rt: Runtime):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def first(turn: Turn) -> object:
        return Command("narrow")

    @rt.agent(concurrency=1, asks="*")
    async def narrow(turn: Turn) -> str:
        inside.set()
        await go.wait()
        return "done"

    async with anyio.create_task_group() as group:
        group.start_soon(rt.run, "first", "hold")
        await inside.wait()
        assert (await rt.outcome("narrow", "second", busy_timeout=0)).rule == "concurrency"
        go.set()


async def test_bounds_hold_for_whom_a_task_is_handed_to(rt: Runtime):
    @rt.agent(asks="*")
    async def first(turn: Turn) -> str:
        with pytest.raises(Refused, match="outside the bounds"):
            await turn.hand_off("second")
        return "stayed"

    rt.add(Card("second"), signed)
    assert await rt.run("first", "go", within=Bounds(agents=["first"])) == "stayed"

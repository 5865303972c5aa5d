"""What a step of a plan is told: to the byte what it needs, and nothing else."""

import anyio
import pytest

from engine.helping import listening
from remit import Plan, Refused, Runtime, Step, Turn
from remit.errors import BadInput
from remit.report.tree import tree

pytestmark = pytest.mark.anyio


@pytest.mark.rule("plan.prompt")
async def test_a_step_without_dependencies_is_told_its_task_and_nothing_else(rt: Runtime):
    await rt.workspace.context().set("secret", "k", "v")
    told = listening(rt, "ann", "bob")
    await rt.run_plan(Plan([Step("a", "First", "Do this.", agent="ann"), Step("b", "Second", agent="bob")], "the goal"))
    assert told == {"ann": ["# Task: First\n\nDo this."], "bob": ["# Task: Second"]}


@pytest.mark.rule("plan.prompt", "plan.transitive")
async def test_a_step_is_told_its_dependencies_results_in_their_order(rt: Runtime):
    told = listening(rt, "ann", "bob", "cat", "dan", "eve")
    outcome = await rt.run_plan(
        Plan(
            [
                Step("a", "A", "do a", agent="ann"),
                Step("b", "B", "do b", agent="bob", after=["a"]),
                Step("c", "C", "do c", agent="cat", after=["b", "a"]),
                Step("d", "D", "do d", agent="dan", after=["b"]),
                Step("e", "E", "do e", agent="eve", after=["d"], context="transitive"),
            ]
        )
    )
    assert outcome.ok
    assert told["cat"] == [
        (
            "# Task: C\n\ndo c\n\n## Context from prerequisite tasks\n\n"
            "### B (by bob)\nresult of bob\n### A (by ann)\nresult of ann"
        )
    ]
    assert told["dan"] == ["# Task: D\n\ndo d\n\n## Context from prerequisite tasks\n\n### B (by bob)\nresult of bob"]
    assert told["eve"] == [
        (
            "# Task: E\n\ndo e\n\n## Context from prerequisite tasks\n\n"
            "### A (by ann)\nresult of ann\n### B (by bob)\nresult of bob\n### D (by dan)\nresult of dan"
        )
    ]


@pytest.mark.rule("plan.transitive")
async def test_memory_scope_all_is_a_summary_of_everything_so_far(rt: Runtime):
    told = listening(rt, "ann", "zed")

    @rt.agent
    async def long(turn: Turn) -> str:
        return "x" * 300

    await rt.run_plan(
        Plan(
            [
                Step("a", "A", agent="ann"),
                Step("l", "L", agent="long", after=["a"]),
                Step("z", "Z", agent="zed", after=["l"], memory_scope="all"),
            ]
        )
    )
    assert told["zed"] == [
        "# Task: Z\n\n## Shared memory\n\n- **A** (by ann): result of ann\n- **L** (by long): " + "x" * 197 + "…"
    ]


@pytest.mark.rule("plan.transitive")
async def test_a_summary_is_in_the_order_of_the_plan_whichever_step_was_quicker(rt: Runtime):
    told = listening(rt, "zed")
    quick = anyio.Event()

    @rt.agent
    async def first(turn: Turn) -> str:
        await quick.wait()
        return "slow"

    @rt.agent
    async def second(turn: Turn) -> str:
        quick.set()
        return "quick"

    steps = [Step("a", "A", agent="first"), Step("b", "B", agent="second")]
    await rt.run_plan(Plan([*steps, Step("z", "Z", agent="zed", after=["a", "b"], memory_scope="all")]))
    assert told["zed"] == ["# Task: Z\n\n## Shared memory\n\n- **A** (by first): slow\n- **B** (by second): quick"]


@pytest.mark.rule("plan.transitive")
@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        (["b", "a"], "\n\n## Shared memory\n\n- **A** (by ann): result of ann\n- **B** (by bob): result of bob"),
        (["b"], "\n\n## Shared memory\n\n- **B** (by bob): result of bob"),
        (["z"], ""),
        ([], ""),
    ],
)
async def test_a_summary_of_some_steps_is_of_those_and_of_no_step_if_there_are_none(
    rt: Runtime, scope: list[str], seen: str
):
    told = listening(rt, "ann", "bob", "zed")
    steps = [Step("a", "A", agent="ann"), Step("b", "B", agent="bob")]
    plan = Plan([*steps, Step("z", "Z", agent="zed", after=["b", "a"], memory_scope=scope)])
    outcome = await rt.run_plan(plan)
    assert told["zed"] == [f"# Task: Z{seen}"]
    async with rt.serving():
        await (await rt.submit_plan(plan)).plan_outcome()
    assert told["zed"][1] == told["zed"][0]
    assert outcome.summary([one for one in scope if one != "z"]) == seen.rpartition("\n\n")[2]


@pytest.mark.rule("plan.transitive")
async def test_a_plan_can_be_summed_up_whole_or_in_part(rt: Runtime):
    listening(rt, "ann")

    @rt.agent
    async def web(turn: Turn) -> str:
        turn.mark_untrusted("page")
        return "x" * 300

    @rt.agent
    async def bad(turn: Turn) -> str:
        raise KeyError("no")

    steps = [Step("w", "W", agent="web"), Step("a", "A", agent="ann", after=["w"]), Step("b", "B", agent="bad")]
    outcome = await rt.run_plan(Plan(steps))
    web_line = f"> - **W** (by web): {'x' * 197}… [from outside, quoted as data]"
    ann_line = outcome.summary(["a"])
    assert "**A** (by ann): result of ann" in ann_line
    assert outcome.summary() == f"{web_line}\n{ann_line}"
    assert outcome.summary(steps=["a", "w", "b"]) == outcome.summary()
    assert outcome.summary(steps=[]) == outcome.summary(["b"]) == ""
    with pytest.raises(BadInput, match="there is no step 'x' in this plan"):
        outcome.summary(["x"])
    for wrong in ("a", 5, [5], [["a"]]):
        with pytest.raises(BadInput):
            outcome.summary(wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("plan.transitive")
async def test_a_summary_of_a_step_that_is_not_in_the_plan_is_refused(rt: Runtime):
    listening(rt, "zed")
    with pytest.raises(BadInput, match="step 'z' is to see a summary of 'x', which is not in the plan"):
        await rt.run_plan(Plan([Step("z", "Z", agent="zed", memory_scope=["x"])]))


@pytest.mark.rule("plan.isolation")
async def test_what_a_step_may_not_see_changes_no_byte_of_its_prompt():
    prompts = []
    for noise in ("quiet", "loud"):
        with Runtime() as rt:
            told = listening(rt, "ann", "cat")

            @rt.agent
            async def bob(turn: Turn, noise: str = noise) -> str:
                await turn.context.set("shared", "k", noise)
                return noise * 10

            await rt.workspace.context().set("workspace", "k", noise)
            await rt.run_plan(
                Plan(
                    [
                        Step("a", "A", "a", agent="ann"),
                        Step("b", "B", noise, agent="bob"),
                        Step("c", "C", "c", agent="cat", after=["a"]),
                    ],
                    noise,
                )
            )
            prompts.append((told["ann"], told["cat"]))
    assert prompts[0] == prompts[1]


@pytest.mark.rule("team.messages", "plan.prompt")
async def test_messages_between_members_are_told_once_and_reach_no_one_outside(rt: Runtime):
    told = listening(rt, "bob", "outsider")

    @rt.agent(asks="*")
    async def ann(turn: Turn) -> str:
        await turn.send("bob", "mind the gap")
        with pytest.raises(Refused, match="members of its team"):
            await turn.send("outsider", "psst")
        return "sent"

    steps = [
        Step("a", "A", agent="ann"),
        Step("b", "B", "x", agent="bob", after=["a"]),
        Step("c", "C", "y", agent="bob", after=["b"]),
    ]
    await rt.run_plan(Plan(steps))
    assert told["bob"][0].endswith("\n\n## Messages from team members\n- **ann**: mind the gap")
    assert "Messages" not in told["bob"][1]
    assert told["outsider"] == []


async def test_reveal_tells_members_goal_and_roster(rt: Runtime):
    told = listening(rt, "ann", "bob")
    await rt.run_plan(Plan([Step("a", "A", "x", agent="ann"), Step("b", "B", agent="bob")], "ship it"), reveal=True)
    assert told["ann"] == [
        "# Goal: ship it\n\n## Team\n\n- **ann**: role of ann\n- **bob**: role of bob\n\n# Task: A\n\nx"
    ]


@pytest.mark.rule("sight.receipt")
async def test_a_steps_receipt_names_the_results_it_was_told(rt: Runtime):
    listening(rt, "ann", "bob")
    await rt.run_plan(Plan([Step("a", "A", agent="ann"), Step("b", "B", agent="bob", after=["a"])]))
    root = tree(await rt.workspace.journal.history())
    assert root is not None
    assert [(what, why) for what, why, *_ in root.children[1].saw] == [("step a", "dependency"), ("task", "task")]


@pytest.mark.rule("team.messages")
async def test_messages_wait_for_a_step_that_was_refused(rt: Runtime):
    told = listening(rt, "bob")

    @rt.agent(asks="*")
    async def ann(turn: Turn) -> str:
        await turn.send("bob", "important")
        return "sent"

    @rt.agent
    async def mender(turn: Turn) -> None:
        await rt.workspace.agents.reset("bob")

    await rt.workspace.agents.trip("bob", "away")
    steps = [Step("a", "A", agent="ann"), Step("b", "B", agent="bob", after=["a"])]
    later = [Step("c", "C", agent="mender", after=["a"]), Step("d", "D", agent="bob", after=["c"])]
    outcome = await rt.run_plan(Plan([*steps, *later]), concurrency=1)
    assert [step.state for step in outcome.steps.values()] == ["completed", "failed", "completed", "completed"]
    assert told["bob"] == ["# Task: D\n\n## Messages from team members\n- **ann**: important"]

"""The answer belongs to the question, whichever life of a task asks it, and in whichever order."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, ends, sound
from engine.lives import Stage, played, result
from remit import Card, Command, Plan, Runtime, Scope, Step, Turn
from remit.errors import Conflict

pytestmark = pytest.mark.anyio


def paying(stage: Stage) -> Callable[[str], Awaitable[str]]:
    async def charge(what: str) -> str:
        stage.did.append(what)
        return f"paid for {what}"

    return charge


# -- effects ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("effect.order")
@pytest.mark.case("resume/pairing")
async def test_flows_that_come_back_in_another_order_get_their_own_receipts(tmp_path, clock):
    """Bread is paid for before the crash. The next life comes to apples first, and knows of one payment only."""

    def crew(rt: Runtime, stage: Stage) -> None:
        charge, priced = paying(stage), anyio.Event()

        async def shop(turn: Turn) -> dict[str, str]:
            receipts: dict[str, str] = {}

            async def buy(what: str) -> None:
                await turn.delegate("pricer", what)
                if what == "bread" and not stage.first:
                    await priced.wait()
                if what == "apples":
                    priced.set()
                    if stage.first:
                        await anyio.sleep_forever()
                receipts[what] = await turn.once("charge", charge, what)
                await stage.crash()

            async with anyio.create_task_group() as group:
                group.start_soon(buy, "apples")
                group.start_soon(buy, "bread")
            return receipts

        async def pricer(turn: Turn) -> str:
            return f"price of {turn.task}"

        rt.add(Card("lead", asks="*"), shop)
        rt.add(Card("pricer"), pricer)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as heir:
        assert await result(heir) == {"apples": "paid for apples", "bread": "paid for bread"}
    assert stage.did == ["bread", "apples"]


FIRST_LIST = ["ann", "bob"]


@pytest.mark.rule("effect.order", "effect.leftover")
@pytest.mark.case("resume/pairing")
@pytest.mark.parametrize(
    ("later", "paid", "said"),
    [
        (["bob", "ann"], [], ""),
        (["ann", "bob", "zoe"], ["zoe"], ""),
        (["zoe", "ann", "bob"], [], "already ran in an earlier attempt with other arguments"),
        (["ann"], [], "this time it never came to it"),
        ([], [], "this time it never came to it"),
    ],
    ids=["another order", "one more", "one more in front", "one less", "none"],
)
async def test_a_loop_over_a_list_that_changed_is_right_or_told(tmp_path, clock, later, paid, said):
    def crew(rt: Runtime, stage: Stage) -> None:
        charge = paying(stage)

        async def payroll(turn: Turn) -> list:
            people = FIRST_LIST if stage.first else later
            receipts = [[one, await turn.once("pay", charge, one)] for one in people]
            await stage.crash()
            return receipts

        rt.add(Card("lead"), payroll)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as heir:
        [task] = await heir.workspace.tasks.list(agent="lead")
        outcome = await heir.workspace.tasks.get(task.id).wait(PATIENCE)
        if said:
            assert outcome.state == "failed"
            assert said in str(outcome.error)
            assert not outcome.error.retryable
        else:
            assert outcome.value == [[one, f"paid for {one}"] for one in later]
    assert stage.did == [*FIRST_LIST, *paid]


@pytest.mark.rule("effect.leftover")
async def test_an_agent_that_waits_in_vain_for_others_to_reach_a_stored_result_gets_an_error(rt: Runtime, clock):
    """Both flows pay another amount than before: neither is done, whichever comes first."""
    paid: list[int] = []

    @rt.agent
    async def shop(turn: Turn) -> str:
        first = not paid

        async def pay(amount: int) -> None:
            await turn.once("pay", paid.append, amount if first else amount + 100)

        async with anyio.create_task_group() as group:
            group.start_soon(pay, 1)
            group.start_soon(pay, 2)
        if first:
            raise Shaky
        return "done"

    outcome = await ends(clock, await rt.submit("shop", "x"))
    assert outcome.state == "failed"
    assert "already ran in an earlier attempt with other arguments" in str(outcome.error)
    assert sorted(paid) == [1, 2]


@pytest.mark.rule("effect.apart")
async def test_two_effects_that_could_not_be_told_apart_are_refused(rt: Runtime):
    go, inside = anyio.Event(), anyio.Event()
    said: list[Conflict] = []

    async def slow() -> str:
        inside.set()
        await go.wait()
        return "done"

    @rt.agent
    async def shop(turn: Turn) -> str:
        async def first() -> None:
            await turn.once("pay", slow)

        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await inside.wait()
            with pytest.raises(Conflict) as no:
                await turn.once("pay", slow)
            said.append(no.value)
            go.set()
        return await turn.once("pay", slow)  # one after the other they are the first and the second

    assert await rt.run("shop", "x") == "done"
    assert "could not be told apart: give each a name of its own" in str(said[0])
    assert not said[0].retryable


@pytest.mark.rule("effect.key")
async def test_an_effect_that_is_done_again_has_the_same_idempotency_key(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def charge(what: str, *, idempotency_key: str) -> str:
            stage.did.append(f"{what} {idempotency_key}")
            if what == "bread":
                await stage.crash()  # done, and not kept
            return what

        async def shop(turn: Turn) -> list[str]:
            return [
                await turn.once("charge", charge, "apples"),
                await turn.once("charge", charge, "bread"),
                await turn.once("another", charge, "bread"),
            ]

        rt.add(Card("lead"), shop)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as heir:
        assert await result(heir) == ["apples", "bread", "bread"]
    apples, bread, again, other = (one.split() for one in stage.did)
    assert bread == again
    assert len({apples[1], bread[1], other[1]}) == 3
    assert all(len(one[1]) == 32 for one in (apples, bread, other))


@pytest.mark.rule("effect.key")
async def test_a_function_gets_a_key_only_if_it_takes_one(rt: Runtime):
    def by_place(amount: int, idempotency_key: str) -> list:
        return [amount, len(idempotency_key)]

    def anything(*args: object, **named: object) -> list:
        return [list(args), named]

    def only_by_place(idempotency_key: str, /) -> str:
        return idempotency_key

    @rt.agent
    async def shop(turn: Turn) -> list:
        return [
            await turn.once("a", by_place, 5),
            await turn.once("b", by_place, 5, "own"),
            await turn.once("c", anything, 1),
            await turn.once("d", only_by_place, "own"),
            await turn.once("e", dict),
            await turn.once("f", lambda idempotency_key="none": len(idempotency_key)),
        ]

    assert await rt.run("shop", "x") == [[5, 32], [5, 3], [[1], {}], "own", {}, 32]


@pytest.mark.rule("effect.holder")
async def test_another_holder_does_not_get_what_the_first_ones_effect_came_to(rt: Runtime):
    """Tried again, the task goes to someone else, who does what it does by the same name."""
    heirs = ["billing", "sales"]
    did: list[str] = []

    @rt.agent(asks="*")
    async def triage(turn: Turn) -> Command:
        return Command(heirs.pop(0))

    async def note(turn: Turn) -> str:
        noted = await turn.once("note", lambda: did.append(turn.agent) or f"noted by {turn.agent}")
        if turn.agent == "billing":
            raise ValueError("not mine")
        return noted

    rt.add(Card("billing"), note)
    rt.add(Card("sales"), note)
    first = await rt.submit("triage", "x")
    assert (await first.wait(PATIENCE)).state == "failed"
    assert await (await first.retry()).result(PATIENCE) == "noted by sales"
    assert did == ["billing", "sales"]
    await sound(rt)


# -- delegations and submissions ----------------------------------------------------------------------------------


@pytest.mark.rule("crash.question")
@pytest.mark.case("resume/pairing_more")
@pytest.mark.parametrize("asked_how", ["delegate", "submit", "spawn"])
async def test_the_same_words_with_other_context_are_another_question(tmp_path, clock, asked_how):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> dict[str, object]:
            modules = ["auth", "cart"] if stage.first else ["cart", "auth"]
            found: dict[str, object] = {}
            for module in modules:
                sees = [Scope("code", prefix=f"module:{module}")]
                if asked_how == "delegate":
                    found[module] = await turn.delegate("reviewer", "review", sees=sees)
                else:
                    task = await getattr(turn, asked_how)("reviewer", "review", sees=sees)
                    found[module] = await task.result(PATIENCE)
            await stage.crash()
            return found

        async def reviewer(turn: Turn) -> list:
            stage.did.append("reviewed")
            return [entry.value for entry in await turn.context.query("code")]

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("reviewer"), reviewer)

    async def wrote(rt: Runtime) -> None:
        for module in ("auth", "cart"):
            await rt.workspace.context().set("code", f"module:{module}", module.upper())

    stage = Stage()
    async with played(tmp_path, clock, crew, stage, before=wrote) as heir:
        assert await result(heir) == {"auth": ["AUTH"], "cart": ["CART"]}
    assert len(stage.did) == 2


@pytest.mark.rule("crash.question")
async def test_submitting_the_same_words_with_other_context_makes_another_task(rt: Runtime):
    for module in ("auth", "cart"):
        await rt.workspace.context().set("code", f"module:{module}", module.upper())

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        one, other = [
            await turn.submit("reviewer", "review", sees=[Scope("code", prefix=f"module:{module}")])
            for module in ("auth", "cart")
        ]
        return [one.id == other.id, await one.result(PATIENCE), await other.result(PATIENCE)]

    @rt.agent
    async def reviewer(turn: Turn) -> list:
        return [entry.value for entry in await turn.context.query("code")]

    assert await rt.run("lead", "go") == [False, ["AUTH"], ["CART"]]


@pytest.mark.rule("crash.question")
async def test_how_much_time_a_question_has_makes_it_no_other(rt: Runtime, clock):
    """It is computed again in every process."""
    asked: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        answer = await turn.delegate("helper", "x", timeout=100 - len(asked))
        if len(asked) == 1:
            asked.append("failed")
            raise Shaky
        return answer

    @rt.agent
    async def helper(turn: Turn) -> str:
        asked.append(turn.task)
        return "helped"

    outcome = await ends(clock, await rt.submit("lead", "go"))
    assert (outcome.value, asked) == ("helped", ["x", "failed"])


# -- plans --------------------------------------------------------------------------------------------------------


async def answering(turn: Turn) -> str:
    return f"answer to <{title(turn)}>"


def title(turn: Turn) -> str:
    return turn.task.splitlines()[0].removeprefix("# Task: ")


@pytest.mark.rule("plan.identity")
@pytest.mark.case("resume/pairing")
async def test_a_rewritten_plan_gets_the_answers_to_its_own_questions(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> list:
            one, other = ("France", "Spain") if stage.first else ("Spain", "France")
            steps = [Step("s1", f"capital of {one}", agent="geographer")]
            steps += [Step("s2", f"capital of {other}", agent="geographer", after=["s1"])]
            steps += [Step("s3", "largest river", agent="geographer")]
            found = await turn.run_plan(Plan(steps))
            await stage.crash()
            return [[step.title, step.value] for step in found.steps.values()]

        async def geographer(turn: Turn) -> str:
            stage.did.append(title(turn))
            return await answering(turn)

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("geographer"), geographer)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as heir:
        assert await result(heir) == [
            ["capital of Spain", "answer to <capital of Spain>"],
            ["capital of France", "answer to <capital of France>"],
            ["largest river", "answer to <largest river>"],
        ]
    assert stage.did.count("largest river") == 1  # the one question that is still the same


@pytest.mark.rule("plan.identity")
@pytest.mark.case("resume/pairing_more")
async def test_two_plans_at_once_with_the_same_ids_are_told_apart(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> dict[str, object]:
            found: dict[str, object] = {}

            async def run(name: str) -> None:
                steps = [
                    Step("a", f"a of {name}", agent="worker"),
                    Step("b", f"b of {name}", agent="worker", after=["a"]),
                ]
                outcome = await turn.run_plan(Plan(steps))
                found[name] = [[step.title, step.value] for step in outcome.steps.values()]
                if len(found) == 2:
                    await stage.crash()

            async with anyio.create_task_group() as group:
                for name in ["red", "blue"] if stage.first else ["blue", "red"]:
                    group.start_soon(run, name)
            return found

        async def worker(turn: Turn) -> str:
            stage.did.append(title(turn))
            return await answering(turn)

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("worker"), worker)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as heir:
        assert await result(heir) == {
            name: [[f"{step} of {name}", f"answer to <{step} of {name}>"] for step in ("a", "b")]
            for name in ("red", "blue")
        }
    assert len(stage.did) == 4


@pytest.mark.rule("plan.identity")
async def test_a_step_of_a_second_plan_does_not_get_the_first_ones_answer(rt: Runtime, clock):
    """Nothing crashes and nothing is concurrent: a step failed once, and the task is tried again."""
    tries = {"lead": 0, "flaky": 0}

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        one = await turn.run_plan(Plan([Step("a", "first question", agent="flaky", retries=1)]))
        other = await turn.run_plan(Plan([Step("a", "second question", agent="flaky")]))
        tries["lead"] += 1
        if tries["lead"] == 1:
            raise Shaky
        return [step.value for found in (one, other) for step in found.steps.values()]

    @rt.agent
    async def flaky(turn: Turn) -> str:
        tries["flaky"] += 1
        if tries["flaky"] == 1:
            raise RuntimeError("once")
        return await answering(turn)

    outcome = await ends(clock, await rt.submit("lead", "go"))
    assert outcome.value == ["answer to <first question>", "answer to <second question>"]
    assert tries == {"lead": 2, "flaky": 3}


@pytest.mark.rule("plan.approved")
async def test_nobody_is_asked_again_about_a_step_because_a_process_died(tmp_path, clock):
    def crew(rt: Runtime, stage: Stage) -> None:
        async def approve(step: Step) -> bool:
            stage.did.append(f"asked about {step.id}")
            return stage.first and step.id != "c"

        async def lead(turn: Turn) -> list:
            steps = [Step("a", "a", agent="worker"), Step("b", "b", agent="worker", after=["a"])]
            steps += [Step("c", "c", agent="worker", after=["b"])]
            found = await turn.run_plan(Plan(steps), approve_steps=approve)
            await stage.crash()
            return [[step.id, step.state] for step in found.steps.values()]

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("worker"), answering)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as heir:
        assert await result(heir) == [["a", "completed"], ["b", "completed"], ["c", "skipped"]]
    assert stage.did == ["asked about a", "asked about b", "asked about c"]


@pytest.mark.rule("plan.approved")
async def test_a_no_is_asked_about_again_when_the_task_is_tried_again(rt: Runtime, clock):
    asked: list[str] = []

    async def approve(step: Step) -> bool:
        asked.append(step.id)
        return len(asked) != 2

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        steps = [Step("a", "a", agent="worker"), Step("b", "b", agent="worker", after=["a"])]
        found = await turn.run_plan(Plan(steps), approve_steps=approve)
        if not found.ok:
            raise Shaky
        return [step.state for step in found.steps.values()]

    rt.add(Card("worker"), answering)
    outcome = await ends(clock, await rt.submit("lead", "go"))
    assert (outcome.value, asked) == (["completed", "completed"], ["a", "b", "b"])

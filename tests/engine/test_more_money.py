"""More money: a task that lacks money asks a person, whose yes raises its lease, within what the account has."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest

from adapters.places import KEY, KEY_NAME, join, priced, served
from bookkeeping import account, correct, figures
from engine.helping import PATIENCE, found, sound
from engine.people import the_question
from remit import Bounds, Card, Failed, Refused, Runtime, Turn
from remit.errors import BadInput
from remit.ports import View
from remit.settings import Limit, Policy
from remit.testing import FakeClock, pass_time
from remit.testing.models import Calls, Says
from remit.types import AskedQuestion
from teams import team

pytestmark = pytest.mark.anyio

ASKS = Policy(short="ask")


def asking(store: str = ":memory:", **how: Any) -> Runtime:
    return Runtime(store, policy=Policy(short="ask", **how))


async def buyer(turn: Turn) -> str:
    await turn.spend(turn.task, why="a photo")
    return "bought"


async def caller(turn: Turn) -> str:
    async with turn.paid_call(turn.task, why="a photo") as call:
        call.cost(turn.task)
    return "bought"


async def doer(turn: Turn) -> str:
    return await turn.once("a photo", lambda: "bought", estimate=turn.task)


async def raises(rt: Runtime) -> list[dict[str, Any]]:
    events = await rt.workspace.journal.history(kinds=frozenset(("lease.raised",)))
    return [dict(event.data) for event in events]


PAYERS = {"spend": buyer, "paid_call": caller, "once": doer}


@pytest.mark.rule("money.short")
@pytest.mark.parametrize("payer", PAYERS.values(), ids=PAYERS)
@pytest.mark.parametrize("how", [{"credits": "$0.03"}, {"within": Bounds(credits="$0.03")}], ids=["set aside", "cap"])
async def test_a_yes_adds_what_a_payment_lacks_and_the_payment_goes_on(payer: Any, how: Any):
    with asking() as rt:
        rt.add(Card("buyer"), payer)
        await rt.workspace.money.grant("$1", why="for all")
        asked: list[AskedQuestion] = []

        def answer(question: AskedQuestion) -> bool:
            asked.append(question)
            return True

        assert await rt.run("buyer", "$0.05", on_question=answer, by="ann", **how) == "bought"
        [question] = asked
        assert question.kind == "money"
        assert question.text == (
            "'buyer' wants $0.05 for 'a photo', and this run has $0.03 of $0.03 left. Give it $0.02 more?"
        )
        assert question.shows == {
            "for": "a photo",
            "wants": "$0.05",
            "has": "$0.03 of $0.03",
            "spent": "$0.00",
            "set aside": "$0.00",
            "needs": "$0.02",
            "proposed": "$0.02",
            "account": "$0.97" if "credits" in how else "$1.00",
            "task": "$0.05",
            "chain": "buyer",
        }
        [decided] = await rt.workspace.questions.list(decided=True)
        assert (decided.state, decided.value, decided.used) == ("approved", "$0.02", True)
        [raised] = await raises(rt)
        assert (raised["amount"], raised["by"], raised["question"]) == (20_000, "ann", question.id)
        assert await figures(rt) == (950_000, 0, 50_000)
        await correct(rt)


@pytest.mark.rule("money.short")
@pytest.mark.parametrize("payer", PAYERS.values(), ids=PAYERS)
async def test_after_a_no_the_payment_is_refused_as_without_the_question(payer: Any):
    said: list[str] = []
    for policy in (Policy(), ASKS):
        with Runtime(policy=policy) as rt:
            rt.add(Card("buyer"), payer)
            with pytest.raises(Failed) as no:
                await rt.run("buyer", "$0.05", credits="$0.03", on_question=lambda _: False)
            said.append(str(no.value))
            assert await raises(rt) == []
            await sound(rt)
    assert said[0] == said[1]


ANSWERS: dict[str, tuple[Callable[[AskedQuestion], Any], int]] = {
    "an amount": (lambda _: "$0.20", 200_000),
    "as a value": (lambda one: one.approve("0.20 USD"), 200_000),
    "as an answer": (lambda one: one.answer("$0.20"), 200_000),
    "all that is left": (lambda _: "$0.97", 970_000),
}


@pytest.mark.rule("money.short")
@pytest.mark.parametrize(("answer", "given"), ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_may_give_another_amount(answer: Callable[[AskedQuestion], Any], given: int):
    with asking() as rt:
        rt.agent(buyer)
        await rt.workspace.money.grant("$1", why="for all")
        assert await rt.run("buyer", "$0.05", credits="$0.03", on_question=answer) == "bought"
        [raised] = await raises(rt)
        assert raised["amount"] == given
        assert await figures(rt) == (950_000, 0, 50_000)
        await correct(rt)


WRONG = {
    "too little": ("$0.01", "needs at least $0.02, not $0.01"),
    "more than there is": ("$0.98", "the account has $0.97 left, so at most $0.97 can be given: grant more"),
    "nothing": ("$0", "more than nothing"),
    "no amount": ("a lot", "a lot"),
    "no amount at all": ({"tokens": 3}, "an amount is written"),
}


@pytest.mark.rule("money.short")
@pytest.mark.parametrize(("value", "why"), WRONG.values(), ids=WRONG)
async def test_an_amount_that_does_not_fit_leaves_the_question_open(value: Any, why: str):
    with asking() as rt:
        rt.agent(buyer)
        await rt.workspace.money.grant("$1", why="for all")

        async def answer(question: AskedQuestion) -> bool:
            with pytest.raises(BadInput, match=why.replace("$", r"\$")):
                await question.approve(value)
            return True

        assert await rt.run("buyer", "$0.05", credits="$0.03", on_question=answer) == "bought"
        await correct(rt)


@pytest.mark.rule("money.short")
async def test_tokens_are_asked_for_in_the_same_way():
    with asking() as rt:

        @rt.agent
        async def reader(turn: Turn) -> str:
            async with turn.paid_call(tokens=1_500, why="a page") as call:
                call.cost(tokens=1_200)
            return "read"

        answers: list[Any] = ["many", "100", "2,000 tokens"]

        async def answer(question: AskedQuestion) -> None:
            for wrong in answers[:2]:
                with pytest.raises(BadInput, match=r"number of tokens|at least 500 tokens"):
                    await question.approve(wrong)
            await question.approve(answers[2])

        assert await rt.run("reader", "x", within=Bounds(tokens=1_000), on_question=answer) == "read"
        [decided] = await rt.workspace.questions.list(decided=True)
        assert decided.value == "2,000 tokens"
        await correct(rt)


@pytest.mark.rule("money.short")
@pytest.mark.parametrize("yes", [True, False], ids=["yes", "no"])
async def test_reported_tokens_that_exceed_the_budget_are_asked_for_again(yes: bool):
    with asking() as rt:

        @rt.agent
        async def reader(turn: Turn) -> str:
            try:
                for _ in range(3):
                    await turn.report_tokens(60)
            except Refused as no:
                return str(no)
            return "read"

        asked: list[Any] = []

        def answer(question: AskedQuestion) -> bool:
            asked.append(question.shows["proposed"])
            return yes

        said = await rt.run("reader", "x", within=Bounds(tokens=100), on_question=answer)
        assert said == (
            "read" if yes else "this run has used 120 of 100 tokens; 'reader' has to finish with what it has"
        )
        assert asked == ["60 tokens"]
        await correct(rt)


# -- the chain -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.short")
async def test_all_leases_up_to_the_account_are_raised_in_one_step():
    with asking() as rt:
        rt.agent(buyer)
        rt.add(Card("lead", asks=["middle"]), lambda turn: turn.delegate("middle", turn.task, credits="$0.06"))
        inner = {"within": Bounds(credits="$0.04")}
        rt.add(Card("middle", asks=["buyer"]), lambda turn: turn.delegate("buyer", turn.task, **inner))
        await rt.workspace.money.grant("$1", why="for all")
        assert await rt.run("lead", "$0.20", credits="$0.07", on_question=lambda _: True) == "bought"
        [raised] = await raises(rt)
        cap, carve, run = raised["adds"]
        assert [cap[1], carve[1], run[1]] == [160_000, 140_000, 130_000]
        assert raised["takes"] == [[run[0], 140_000], ["account", 130_000]]
        assert await figures(rt) == (800_000, 0, 200_000)
        await correct(rt)


@pytest.mark.rule("money.short")
@pytest.mark.parametrize(
    ("grant", "how"),
    [
        ("$0.04", {"credits": "$0.03"}),
        ("$0.04", {"within": Bounds(credits="$0.03")}),
        ("$0.04", {}),
    ],
    ids=["set aside", "cap", "the account itself"],
)
async def test_nobody_is_asked_for_more_than_the_account_has(grant: str, how: Any):
    with asking() as rt:
        rt.agent(buyer)
        await rt.workspace.money.grant(grant, why="for all")
        with pytest.raises(Failed, match=r"\$0.05 wanted"):
            await rt.run("buyer", "$0.05", on_question=lambda _: True, **how)
        assert await rt.workspace.questions.list(decided=True) == []
        await correct(rt)


@pytest.mark.rule("money.short")
async def test_a_limit_over_time_is_not_raised():
    with asking(limits=[Limit("day", credits="$0.04")]) as rt:
        rt.agent(buyer)
        with pytest.raises(Failed, match="a day"):
            await rt.run("buyer", "$0.05", credits="$0.03", on_question=lambda _: True)
        assert await rt.workspace.questions.list(decided=True) == []


@pytest.mark.rule("money.short")
async def test_siblings_do_not_both_get_the_last_money(tmp_path: Path):
    with asking(str(tmp_path / "team.db")) as rt:
        rt.agent(buyer)

        @rt.agent(asks=["buyer"])
        async def lead(turn: Turn) -> list[str]:
            both = [turn.outcome("buyer", f"$0.0{cents}", credits="$0.01") for cents in (5, 6)]
            return [str(one.error or one.value) for one in await asyncio.gather(*both)]

        await rt.workspace.money.grant("$0.09", why="for all")

        async def answer(_question: AskedQuestion) -> bool:
            await asked_in(rt, 2)
            return True

        said = await rt.run("lead", "go", on_question=answer)
        assert sorted(one[:6] for one in said) == ["'buyer", "bought"]
        assert len(await raises(rt)) == 1
        [no] = [one for one in await rt.workspace.questions.list(decided=True) if one.state == "rejected"]
        assert "grant more money first" in no.why
        await correct(rt)


async def asked_in(rt: Runtime, number: int) -> AskedQuestion:
    """Wait until so many questions have been asked, and return the last of them."""
    decided = await rt.workspace.questions.list(decided=True)
    seen = {one.id for one in decided}
    async with aclosing(rt.workspace.questions.asked()) as questions:
        async for question in questions:
            seen.add(question.id)
            if len(seen) >= number:
                return question
    raise AssertionError


# -- delegations ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.short")
@pytest.mark.parametrize("yes", [True, False])
async def test_money_to_set_aside_for_a_task_is_asked_for_too(yes: bool):
    with asking() as rt:
        rt.agent(buyer)

        @rt.agent(asks=["buyer"])
        async def lead(turn: Turn) -> str:
            outcome = await turn.outcome("buyer", "$0.05", credits="$0.30")
            return str(outcome.error or outcome.value)

        await rt.workspace.money.grant("$1", why="for all")
        asked: list[AskedQuestion] = []

        def answer(question: AskedQuestion) -> bool:
            asked.append(question)
            return yes

        said = await rt.run("lead", "go", credits="$0.10", on_question=answer)
        [question] = asked
        assert (question.agent, question.shows["for"], question.shows["proposed"]) == (
            "lead",
            "buyer: $0.05",
            "$0.20",
        )
        refusal = (
            "'buyer' was not asked: $0.30 wanted, this run has $0.10 left of $0.10 ($0.00 spent, $0.00 set aside); "
            "give it less, or finish with what you have"
        )
        assert said == ("bought" if yes else refusal)
        assert len(await raises(rt)) == yes
        await correct(rt)


@pytest.mark.rule("money.short")
async def test_a_task_may_be_asked_when_all_is_spent_and_asks_for_money_itself():
    with asking() as rt:
        rt.agent(buyer)

        @rt.agent(asks=["buyer"])
        async def lead(turn: Turn) -> str:
            await turn.spend("$0.10", why="all of it")
            return await turn.delegate("buyer", "$0.05")

        await rt.workspace.money.grant("$0.15", why="for all")
        assert await rt.run("lead", "go", credits="$0.10", on_question=lambda _: True) == "bought"
        assert (await account(rt)).available == 0
        with pytest.raises(Refused, match=r"the account has used \$0.15 of \$0.15"):
            await rt.run("lead", "go")
        await correct(rt)


@pytest.mark.rule("money.short", "money.last-word")
async def test_the_last_share_of_a_run_stays_when_tasks_below_get_more():
    with asking(last_word=Bounds(credits="$0.04")) as rt:
        rt.agent(buyer)

        @rt.agent(asks=["buyer"])
        async def lead(turn: Turn) -> str:
            await turn.delegate("buyer", "$0.08")
            await turn.spend("$0.04", why="the last answer")
            return "answered"

        await rt.workspace.money.grant("$1", why="for all")
        asked: list[AskedQuestion] = []

        def answer(question: AskedQuestion) -> bool:
            asked.append(question)
            return True

        assert await rt.run("lead", "go", credits="$0.10", on_question=answer) == "answered"
        [question] = asked
        assert (question.shows["kept for the last answer"], question.shows["proposed"]) == ("$0.04", "$0.02")
        await correct(rt)


# -- models ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.short")
@pytest.mark.parametrize("kind", ["native", "pydantic-ai", "openai-agents", "langgraph"])
async def test_a_model_request_asks_for_the_cost_of_a_whole_answer(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(KEY_NAME, KEY)
    async with served([Says("found")]) as place, priced(policy=ASKS) as rt:
        join(rt, kind, place, **({"max_tokens": 1_000} if kind == "native" else {}))
        await rt.workspace.money.grant("$1", why="for all")
        asked: list[AskedQuestion] = []

        def answer(question: AskedQuestion) -> bool:
            asked.append(question)
            return True

        assert await rt.run("it", "go", credits="$0.0001", on_question=answer) == "found"
        [question] = asked
        assert question.shows["proposed"] != question.shows["needs"]
        assert len(place.server.requests) == 1
        await correct(rt)


@pytest.mark.rule("money.short", "money.last-word")
@pytest.mark.parametrize("yes", [True, False], ids=["yes", "no"])
async def test_a_run_is_asked_about_before_its_model_is_told_to_end(yes: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(KEY_NAME, KEY)
    scripted = [Calls("call_agent", {"agent": "worker", "task": "x"}), Says("found a")]
    async with served(scripted) as place, priced(policy=ASKS) as rt:

        @rt.agent
        async def worker(turn: Turn) -> str:
            await turn.spend("$0.016", why="work")
            return "a"

        join(rt, "native", place, asks=["worker"], max_tokens=1_000)
        await rt.workspace.money.grant("$1", why="for all")
        asked: list[tuple[Any, ...]] = []

        def answer(question: AskedQuestion) -> bool:
            asked.append((question.agent, question.shows["for"], question.shows["proposed"] != question.shows["needs"]))
            return yes

        assert await rt.run("it", "go", credits="$0.02", on_question=answer) == "found a"
        assert asked == [("it", "answers after its next one", True)]
        _, last = place.server.requests
        assert ("say what is missing" in str(last.messages)) == (not yes)
        await correct(rt)


# -- waiting --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.short")
async def test_a_cancelled_task_withdraws_its_question_and_gets_nothing():
    with asking() as rt:
        rt.agent(buyer)
        await rt.workspace.money.grant("$1", why="for all")
        run = asyncio.ensure_future(rt.run("buyer", "$0.05", credits="$0.03"))
        question = await asked_in(rt, 1)
        [task] = await rt.workspace.tasks.list()
        assert task.state == "waiting"
        await rt.workspace.tasks.cancel(task.id, why="enough")
        with suppress(Failed):
            await run
        assert (await rt.workspace.questions.get(question.id)).state == "withdrawn"
        assert await figures(rt) == (1_000_000, 0, 0)
        await correct(rt)


@pytest.mark.rule("money.short")
@pytest.mark.parametrize("yes", [True, False], ids=["yes", "no"])
async def test_a_question_for_money_outlives_its_process_and_raises_once(tmp_path: Path, clock: FakeClock, yes: bool):
    def join(rt: Runtime) -> None:
        rt.agent(buyer)

        @rt.agent(asks=["buyer"])
        async def lead(turn: Turn) -> str:
            outcome = await turn.outcome("buyer", "$0.05", credits="$0.04")
            return str(outcome.error or outcome.value)

    with team(tmp_path / "team.db", clock=clock, short="ask") as first:
        join(first)
        await first.workspace.money.grant("$1", why="for all")
        task = (await first.submit("lead", "x", credits="$0.03")).id
        for_lead = await the_question(first)
        assert for_lead.agent == "lead"
        await first.workspace.questions.approve(for_lead.id)
        await until_asked(first, "buyer")
        await first.drain(0)
    with team(tmp_path / "team.db", clock=clock, hands=0) as nobody:  # only its workspace is used, with another policy
        [question] = await nobody.workspace.questions.list()
        answer = nobody.workspace.questions.approve if yes else nobody.workspace.questions.reject
        await answer(question.id, by="ann")
    with team(tmp_path / "team.db", clock=clock, short="ask") as heir:
        join(heir)
        heir.lend()
        said = str(await heir.workspace.tasks.get(task).result(PATIENCE))
        assert (said == "bought") == yes
        assert [one["amount"] for one in await raises(heir)] == ([10_000, 10_000] if yes else [10_000])
        await correct(heir)


async def until_asked(rt: Runtime, agent: str) -> None:
    def waits(view: View) -> bool | None:
        asked = [one for one in view.questions_open(9) if one.agent == agent]
        standings = [view.standing(one.task) for one in asked]
        return True if any(one is not None and one.state == "waiting" for one in standings) else None

    await found(rt, waits)


@pytest.mark.rule("money.short")
async def test_a_question_for_money_that_expires_is_a_no(clock: FakeClock):
    with team(clock=clock, short="ask") as rt:

        @rt.agent
        async def lead(turn: Turn) -> str:
            try:
                return await buyer(turn)
            except Refused as no:
                return no.rule

        await rt.workspace.money.grant("$1", why="for all")
        task = await rt.submit("lead", "$0.05", credits="$0.03")
        question = await the_question(rt)
        clock.advance(8 * 86_400)

        async def over() -> bool:
            return (await task.status()).ended is not None

        await pass_time(clock, over)
        assert await task.result() == "credits"
        assert (await rt.workspace.questions.get(question.id)).state == "expired"
        await correct(rt)


@pytest.mark.rule("money.short")
async def test_after_a_no_only_less_is_asked_for():
    with asking() as rt:

        @rt.agent
        async def lead(turn: Turn) -> list[str]:
            said: list[str] = []
            for cents in (5, 5, 6, 4):
                try:
                    await turn.spend(f"$0.0{cents}", why="a photo")
                    said.append(f"{cents} paid")
                except Refused:
                    said.append(f"{cents} refused")
            return said

        await rt.workspace.money.grant("$1", why="for all")
        asked: list[Any] = []

        def answer(question: AskedQuestion) -> bool:
            asked.append(question.shows["wants"])
            return question.shows["wants"] == "$0.04"

        said = await rt.run("lead", "go", credits="$0.03", on_question=answer)
        assert said == ["5 refused", "5 refused", "6 refused", "4 paid"]
        assert asked == ["$0.05", "$0.04"]


@pytest.mark.rule("money.short")
async def test_what_is_set_aside_for_submitted_spawned_and_parallel_tasks_is_asked_for():
    with asking() as rt:
        rt.agent(buyer)

        @rt.agent(asks=["buyer"])
        async def lead(turn: Turn) -> list[Any]:
            submitted = await turn.submit("buyer", "$0.02", credits="$0.20")
            spawned = await turn.spawn("buyer", "$0.03", credits="$0.30")
            together = await turn.delegate_all([("buyer", "$0.05"), ("buyer", "$0.06")], credits="$0.40")
            return [await submitted.result(), await spawned.result(), *(one.value for one in together)]

        await rt.workspace.money.grant("$2", why="for all")
        asked: list[Any] = []

        def answer(question: AskedQuestion) -> bool:
            asked.append(question.shows["for"])
            return True

        assert await rt.run("lead", "go", credits="$0.10", on_question=answer) == ["bought"] * 4
        assert asked[:2] == ["buyer: $0.02", "buyer: $0.03"]  # the others may find what these have left
        assert await figures(rt) == (1_840_000, 0, 160_000)
        await correct(rt)


@pytest.mark.rule("money.short")
async def test_a_task_with_an_approval_and_too_little_money_is_asked_about_twice():
    with asking() as rt:
        rt.add(Card("buyer", needs_approval=True), buyer)

        @rt.agent(asks=["buyer"])
        async def lead(turn: Turn) -> str:
            return await turn.delegate("buyer", "$0.09", credits="$0.30")

        await rt.workspace.money.grant("$1", why="for all")
        asked: list[str] = []

        async def answer(question: AskedQuestion) -> bool | None:
            asked.append(question.kind)
            return await question.approve("$0.05") if question.kind == "hop" else True

        assert await rt.run("lead", "go", credits="$0.10", on_question=answer) == "bought"
        assert asked == ["hop", "money"]
        assert (await account(rt)).spent == 50_000  # the text as it was approved
        await correct(rt)


@pytest.mark.rule("money.short")
async def test_credits_and_tokens_are_asked_for_one_after_the_other():
    with asking() as rt:

        @rt.agent
        async def reader(turn: Turn) -> str:
            async with turn.paid_call("$0.05", tokens=1_500, why="a page") as call:
                call.cost("$0.04", tokens=1_200)
            return "read"

        within = Bounds(credits="$0.01", tokens=1_000)
        asked: list[Any] = []

        def answer(question: AskedQuestion) -> bool:
            asked.append(question.shows["proposed"])
            return True

        assert await rt.run("reader", "x", within=within, on_question=answer) == "read"
        assert asked == ["$0.04", "500 tokens"]
        await correct(rt)
        await rt.workspace.money.grant(tokens=1_100)
        with pytest.raises(Failed, match="1,500 tokens wanted"):  # more credits alone would not help
            await rt.run("reader", "x", within=within, on_question=answer)
        assert asked == ["$0.04", "500 tokens"]


@pytest.mark.rule("money.short")
async def test_a_frozen_agent_is_not_asked_about(clock: FakeClock):
    with asking() as rt:

        @rt.agent
        async def caller(turn: Turn) -> str:
            async with turn.paid_call("$0.02", why="a model") as call:
                call.cost("$9")
            return await buyer(turn)

        with pytest.raises(Failed, match="its money is frozen"):
            await rt.run("caller", "$0.05", credits="$0.03", on_question=lambda one: one.kind == "money" or None)
        kinds = [one.kind for one in await rt.workspace.questions.list()]
        assert kinds == ["ask"]

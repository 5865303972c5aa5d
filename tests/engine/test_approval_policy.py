"""What the owner says about hops: which are to be approved and why, and whom nobody has to be asked about."""

from collections.abc import Callable

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, ends, signed, sound
from engine.people import counted, running, the_question
from engine.test_approvals import Door, command, delegate, every_door, lead_by
from remit import Card, Command, Runtime, Send, Turn
from remit.engine.approvals import WantedHop
from remit.settings import Policy, System
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio


def everything(wanted: WantedHop) -> bool:
    return True


def policed(clock: FakeClock, needs_approval: Callable[[WantedHop], bool | str], **how: object) -> Runtime:
    policy = Policy(needs_approval=needs_approval, **how)
    return Runtime(":memory:", policy=policy, system=System(clock=clock))


@pytest.mark.rule("approval.automatic")
@every_door
async def test_who_can_only_look_and_say_is_approved_by_itself_and_on_record(clock: FakeClock, door: Door):
    with policed(clock, everything) as rt:
        rt.add(Card("deployer"), signed)
        lead_by(rt, door)
        with anyio.fail_after(PATIENCE):
            assert str(await rt.run("lead", "go")).startswith("deployer: ")
        [question] = await rt.workspace.questions.list(decided=True)
        assert (question.state, question.by, question.channel, question.used) == ("approved", "policy", "auto", True)
        assert question.why == "it can only look and say: it has no tools and asks nobody"
        assert question.shows["because"] == "'deployer' is asked by 'lead'"
        assert await counted(rt) == {"asked": 1, "answered": 1, "used": 1}
        await sound(rt)


@pytest.mark.rule("approval.automatic")
@pytest.mark.parametrize(
    "card",
    [{"tools": ["rm"]}, {"tools": "*"}, {"asks": ["lead"]}, {"asks": "*"}, {"needs_approval": True}],
    ids=["a tool", "any tool", "asks someone", "asks anyone", "its card says so"],
)
async def test_who_can_do_more_or_whose_card_says_so_is_asked_about(clock: FakeClock, card: dict[str, object]):
    with policed(clock, everything) as rt:
        rt.add(Card("deployer", **card), signed)
        lead_by(rt, delegate)
        async with running(rt, "lead") as outcome:
            await rt.workspace.questions.approve((await the_question(rt)).id)
        assert outcome.result().value == "deployer: to prod"


@pytest.mark.rule("approval.automatic")
async def test_each_of_several_handoffs_is_approved_by_itself(clock: FakeClock):
    with policed(clock, everything) as rt:
        rt.add(Card("second"), signed)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> object:
            if not turn.handoff.results:
                return Command([Send("second", "a"), Send("second", "b")])
            return Command("second")

        with anyio.fail_after(PATIENCE):
            assert str(await rt.run("lead", "go")) == "second: go"
        assert await counted(rt) == {"asked": 3, "answered": 3, "used": 3}
        assert len({one.id for one in await rt.workspace.questions.list(decided=True)}) == 3
        await sound(rt)


@pytest.mark.rule("approval.automatic")
async def test_a_handoff_that_is_made_again_in_the_next_try_is_on_record_again(clock: FakeClock):
    with policed(clock, everything) as rt:
        tries: list[str] = []

        async def look(turn: Turn) -> str:
            tries.append(turn.task)
            if len(tries) == 1:
                raise Shaky
            return "seen"

        rt.add(Card("deployer"), look)
        lead_by(rt, command)
        assert (await ends(clock, await rt.submit("lead", "go"))).value == "seen"
        assert len(tries) == 2
        questions = await rt.workspace.questions.list(decided=True)
        assert len({one.id for one in questions}) == (await counted(rt))["asked"]
        await sound(rt)


@pytest.mark.rule("approval.policy")
async def test_the_owner_says_which_hops_are_asked_about_and_why(clock: FakeClock):
    seen: list[WantedHop] = []

    def needs_approval(wanted: WantedHop) -> bool | str:
        seen.append(wanted)
        return "it is Friday" if wanted.task == "to prod" else False

    with policed(clock, needs_approval) as rt:
        rt.add(Card("deployer", tools=["helm"]), signed)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[object]:
            return [await turn.delegate("deployer", "to test"), await turn.delegate("deployer", "to prod")]

        async with running(rt, "lead") as outcome:
            question = await the_question(rt)
            assert question.shows["because"] == "it is Friday"
            await rt.workspace.questions.approve(question.id)
        assert outcome.result().value == ["deployer: to test", "deployer: to prod"]
    first = seen[0]
    assert (first.kind, first.asker, first.agent, first.task, first.credits) == (
        "delegate",
        "lead",
        "deployer",
        "to test",
        None,
    )
    assert first.card.name == "deployer"


@pytest.mark.rule("approval.policy")
@pytest.mark.parametrize(("said", "word"), [(None, "None"), ("", "''"), (1, "1"), (0, "0")])
async def test_what_is_neither_yes_nor_no_is_asked_about(clock: FakeClock, said: object, word: str):
    with policed(clock, lambda wanted: said) as rt:  # pyright: ignore[reportArgumentType, reportReturnType]
        rt.add(Card("deployer", tools=["helm"]), signed)
        lead_by(rt, delegate)
        async with running(rt, "lead") as outcome:
            question = await the_question(rt)
            assert question.shows["because"] == f"about 'deployer' the policy says {word}, which is neither yes nor no"
            await rt.workspace.questions.approve(question.id)
        assert outcome.result().ok


@pytest.mark.rule("approval.policy")
async def test_an_owner_who_fails_has_not_said_yes(clock: FakeClock):
    def fails(wanted: WantedHop) -> bool:
        raise ValueError("no idea")

    with policed(clock, fails) as rt:
        told: list[str] = []

        async def note(turn: Turn) -> None:
            told.append(turn.task)

        rt.add(Card("deployer"), note)
        lead_by(rt, delegate)
        assert (await rt.outcome("lead", "go")).state == "failed"
        assert told == []
        await sound(rt)

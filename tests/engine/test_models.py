"""Asking models: once for every request, with others to ask, and paid for."""

import asyncio

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, doomed, ends, happened, sound, take_over
from engine.talking import FEW, Down, Rates, Talk
from remit import Bounds, Card, Runtime, Turn
from remit.core.recovery import Choice
from remit.errors import Failed, NoAnswer, Refused
from remit.ports.models import ModelAnswer
from remit.report.lines import detail
from remit.settings import Limit, Loops, Policy, System
from remit.testing import FakeClock, pass_time
from teams import team

pytestmark = pytest.mark.anyio


def asking(rt: Runtime, talk: Talk, *models: str | Choice, times: int = 1, most: int = 1_000) -> None:
    """Add an agent that asks its model so many times, and answers with the last answer."""

    @rt.agent
    async def coder(turn: Turn) -> str:
        said = ""
        for number in range(times):
            said = (await turn.model(talk.call(f"d{number}", *models, most=most))).text
        return said


async def events(rt: Runtime, *kinds: str) -> list[dict]:
    return [event.data for event in await rt.workspace.journal.history() if event.kind in kinds]


def priced(clock: FakeClock, *unknown: str, **policy: object) -> Runtime:
    return Runtime(system=System(clock=clock, prices=Rates(*unknown)), policy=Policy(**policy))


# -- once -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("model.once")
async def test_what_was_answered_is_not_asked_again_when_the_task_is_tried_again(rt: Runtime, clock):
    talk = Talk("first", Shaky(), "second")

    @rt.agent
    async def coder(turn: Turn) -> list[str]:
        return [(await turn.model(talk.call(digest))).text for digest in ("a", "b")]

    outcome = await ends(clock, await rt.submit("coder", "x"))
    assert outcome.value == ["first", "second"]
    assert len(talk.asked) == 3
    assert [one["named"] for one in await events(rt, "model.answered")] == ["big", "big"]
    await sound(rt)


@pytest.mark.rule("model.once")
async def test_the_same_request_twice_in_one_turn_is_two_requests(rt: Runtime, clock):
    talk = Talk("first", "second", Shaky(), "third")

    @rt.agent
    async def coder(turn: Turn) -> list[str]:
        return [(await turn.model(talk.call(digest))).text for digest in ("a", "a", "b")]

    assert (await ends(clock, await rt.submit("coder", "x"))).value == ["first", "second", "third"]
    assert len(talk.asked) == 4


@pytest.mark.rule("model.once", "secret.nowhere")
async def test_a_secret_in_an_answer_is_kept_from_the_agent_too_so_that_a_second_run_asks_the_same(clock):
    talk, seen = (
        Talk(ModelAnswer("the key is hunter2-hunter2", "big", FEW, (), object()), Shaky(), "second"),
        set[str](),
    )
    with Runtime(system=System(clock=clock), secrets=["hunter2-hunter2"]) as rt:

        @rt.agent
        async def coder(turn: Turn) -> str:
            said = await turn.model(talk.call("a"))
            assert said.response is None
            seen.add(said.text)
            return (await turn.model(talk.call("b"))).text

        assert (await ends(clock, await rt.submit("coder", "x"))).value == "second"
    assert seen == {"the key is [secret]"}
    assert len(talk.asked) == 3


@pytest.mark.rule("model.once")
async def test_another_process_goes_on_with_what_was_answered(tmp_path, clock):
    talk, stuck = Talk("first", "second"), anyio.Event()

    async def dies(turn: Turn) -> str:
        await turn.model(talk.call("a"))
        stuck.set()
        await anyio.sleep_forever()
        return ""

    async def goes_on(turn: Turn) -> list[str]:
        return [(await turn.model(talk.call(digest))).text for digest in ("a", "b")]

    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        dead.add(Card("coder"), dies)
        heir.add(Card("coder"), goes_on)
        task = await dead.submit("coder", "x")
        await happened(stuck)
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == ["first", "second"]
        assert len(talk.asked) == 2
        await sound(heir)


@pytest.mark.rule("model.once")
async def test_the_object_of_the_first_time_is_given_back_and_the_text_later(rt: Runtime, clock):
    talk = Talk(ModelAnswer("text", "big", FEW, ("look",), response={"own": "object"}), Shaky(), "end")
    found: list[ModelAnswer] = []

    @rt.agent
    async def coder(turn: Turn) -> str:
        found.append(await turn.model(talk.call("a", tools=["look"])))
        return (await turn.model(talk.call("b"))).text

    await ends(clock, await rt.submit("coder", "x"))
    assert [one.response for one in found] == [{"own": "object"}, None]
    assert [(one.text, one.model, one.calls) for one in found] == [("text", "big", ("look",))] * 2


@pytest.mark.rule("model.iterations")
async def test_a_model_that_is_asked_too_often_fails_its_task_and_what_was_said_is_kept(rt: Runtime):
    talk = Talk(*["again"] * 60)
    asking(rt, talk, times=60)
    with pytest.raises(Failed, match="asked its model 50 times") as failed:
        await rt.run("coder", "x")
    assert not failed.value.retryable
    assert len(talk.asked) == len(await events(rt, "model.answered")) == 50


@pytest.mark.rule("model.unknown-tools")
async def test_a_model_that_insists_on_a_tool_that_does_not_exist_is_stopped(rt: Runtime):
    talk = Talk(*[ModelAnswer("x", "big", FEW, ("lok",))] * 20)
    asking(rt, talk, times=20)
    with pytest.raises(Failed, match="^'coder' was stopped: it called 'lok' again and again, which it does not have"):
        await rt.run("coder", "x")
    assert len(talk.asked) == 3


@pytest.mark.rule("model.unknown-tools")
async def test_a_model_that_calls_ever_other_tools_that_do_not_exist_is_stopped_as_well(rt: Runtime):
    talk = Talk(*[ModelAnswer("x", "big", FEW, (f"tool{number}",)) for number in range(20)])
    asking(rt, talk, times=20)
    with pytest.raises(Failed, match="^'coder' was stopped: it called 'tool11' and others, which it does not have"):
        await rt.run("coder", "x")
    assert len(talk.asked) == 12


# -- others to ask --------------------------------------------------------------------------------------------------


@pytest.mark.rule("model.keys-first", "model.gave-up")
async def test_keys_then_models_are_asked_and_who_failed_is_on_record(rt: Runtime):
    talk = Talk(Down("rate-limit", status=429), Down("auth", status=401), Down("unavailable", status=503), "here")
    asking(rt, talk, Choice("big", ("k1", "k2")), "middle", "small")
    assert await rt.run("coder", "x") == "here"
    assert [(one.model, one.key) for one in talk.asked] == [("big", "k1"), ("big", "k2"), ("middle", ""), ("small", "")]
    failed = await events(rt, "model.failed")
    assert [(one["why"], one["status"]) for one in failed] == [("rate-limit", 429), ("auth", 401), ("unavailable", 503)]
    await sound(rt)


@pytest.mark.rule("model.cooling")
async def test_a_key_that_rests_rests_in_every_process_and_an_answer_clears_it(tmp_path, clock):
    talk = Talk(Down("rate-limit", status=429), "a", "b", "c")
    with team(tmp_path / "team.db", clock=clock) as one, team(tmp_path / "team.db", clock=clock) as other:
        for rt in (one, other):
            asking(rt, talk, Choice("big", ("k1", "k2")))
        assert [await one.run("coder", "x"), await other.run("coder", "x")] == ["a", "b"]
        assert [attempt.key for attempt in talk.asked] == ["k1", "k2", "k2"]
        clock.advance(61)
        assert await other.run("coder", "y") == "c"
        assert talk.asked[-1].key == "k1"
        assert await one.workspace.journal.read(lambda view: view.coolings()) == {}
        await sound(one)


@pytest.mark.rule("model.keys-first")
async def test_of_several_keys_the_one_used_longest_ago_is_next(rt: Runtime, clock):
    talk = Talk(*"abcde")

    @rt.agent
    async def coder(turn: Turn) -> None:
        for number in range(5):
            await turn.model(talk.call(f"d{number}", Choice("big", ("k1", "k2"))))
            clock.advance(1)

    await rt.run("coder", "x")
    assert [one.key for one in talk.asked] == ["k1", "k2", "k1", "k2", "k1"]


@pytest.mark.rule("model.overflow")
async def test_a_context_that_was_shortened_stays_so_for_the_turn_and_when_it_is_run_again(rt: Runtime, clock):
    talk = Talk(Down("overflow"), Down("overflow"), "a", "b", Shaky(), "c")
    asking(rt, talk, times=3)
    assert (await ends(clock, await rt.submit("coder", "x"))).value == "c"
    assert [one.trim for one in talk.asked] == [0, 1, 2, 2, 2, 2]


@pytest.mark.rule("model.pauses", "model.retry-after")
async def test_a_pause_holds_no_slot_and_ends_when_the_provider_says(clock):
    talk = Talk(Down("rate-limit", status=429, retry_after=7_000_000), "here")
    with team(clock=clock, hands=1) as rt:
        asking(rt, talk)

        @rt.agent
        async def other(turn: Turn) -> str:
            return "meanwhile"

        async with rt.serving():
            task = await rt.submit("coder", "x")
            await until_asked(talk, 1)
            assert await (await rt.submit("other", "y")).result(PATIENCE) == "meanwhile"
            began = clock.ticks()

            async def ended() -> bool:
                return (await task.status()).state == "completed"

            await pass_time(clock, ended, step=0.5)
            assert 7 <= (clock.ticks() - began) / 1e6 < 9


@pytest.mark.rule("model.waiting")
async def test_people_see_what_a_task_waits_for(rt: Runtime, clock):
    talk = Talk(Down("unavailable", status=503), Down("unavailable", status=503), "here")
    asking(rt, talk)
    assert (await ends(clock, await rt.submit("coder", "x"))).value == "here"
    waits = [event for event in await rt.workspace.journal.history() if event.kind == "model.waiting"]
    assert [(one.data["model"], one.data["wait"], one.data["number"]) for one in waits] == [
        ("big", 5_000_000, 2),
        ("big", 10_000_000, 3),
    ]
    assert detail(waits[0]) == " waits 5.0 s for big, second try"


@pytest.mark.rule("receipt.first-answer")
async def test_the_first_answer_of_a_turn_comes_with_what_the_turn_has_seen(rt: Runtime):
    talk = Talk("one", "two")

    async def coder(turn: Turn) -> str:
        await turn.context.get("notes", "plan")
        for digest in ("a", "b"):
            await turn.model(talk.call(digest))
        return "done"

    @rt.agent(asks="*", reads=["notes", "secrets"])
    async def lead(turn: Turn) -> object:
        return await turn.delegate("coder", "build", sees=["notes"])

    rt.add(Card("coder"), coder)
    await rt.workspace.context().set("notes", "plan", "first things first")
    await rt.run("lead", "go")
    first, second = await events(rt, "model.answered")
    assert [part[0] for part in first["receipt"]["saw"]] == ["task", "notes/plan"]
    assert first["receipt"]["withheld"]
    assert "receipt" not in second
    [end, _] = await events(rt, "task.completed")
    assert end["receipt"] == first["receipt"], "it has seen nothing since"


async def until_asked(talk: Talk, times: int) -> None:
    with anyio.fail_after(PATIENCE):
        while len(talk.asked) < times:
            await anyio.lowlevel.checkpoint()


@pytest.mark.rule("model.gave-up")
async def test_when_no_model_answers_the_error_tells_what_became_of_each(rt: Runtime):
    talk = Talk(Down("not-found", status=404), Down("rejected", status=400))

    @rt.agent
    async def coder(turn: Turn) -> None:
        with pytest.raises(NoAnswer) as failed:
            await turn.model(talk.call("d", "big", "small"))
        assert "big: not-found (404); small: rejected (400); it is not retried" in str(failed.value)
        assert not failed.value.retryable

    await rt.run("coder", "x")


@pytest.mark.rule("model.gave-up")
async def test_no_model_in_time_may_be_tried_again(rt: Runtime, clock):
    asking(rt, Talk(Down("auth", status=401), "late"), Choice("big", ("k1",)))
    task = await rt.submit("coder", "x", attempts=1)
    outcome = await ends(clock, task)
    assert outcome.state in ("failed", "dead")
    assert "with key 'k1': paused for " in str(outcome.error)


async def test_an_error_that_is_not_the_models_comes_through(rt: Runtime):
    asking(rt, Talk(KeyError("mine")))
    with pytest.raises(Failed, match="KeyError"):
        await rt.run("coder", "x")
    assert await events(rt, "model.failed") == []


# -- money ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("model.paid")
async def test_a_request_is_held_before_it_leaves_and_settled_with_its_answer(clock):
    with priced(clock) as rt:
        asking(rt, Talk("here"))
        await rt.run("coder", "x", credits="$1")
        kinds = [event.kind for event in await rt.workspace.journal.history()]
        assert kinds[1:4] == ["hold.placed", "model.answered", "hold.settled"]
        (settled,) = await events(rt, "hold.settled")
        assert (settled["amounts"]["credits"], settled["costs"]) == (2_010, {"credits": 20, "tokens": 15})
        await sound(rt)


@pytest.mark.rule("model.paid")
async def test_without_limits_nothing_is_held_and_what_it_cost_is_counted(clock):
    with priced(clock) as rt:
        asking(rt, Talk("here"))
        await rt.run("coder", "x")
        assert await events(rt, "hold.placed") == []
        assert [one["costs"] for one in await events(rt, "credits.spent")] == [{"credits": 20, "tokens": 15}]
        await sound(rt)


@pytest.mark.rule("model.uncounted")
async def test_an_answer_nobody_counted_costs_all_that_was_held(clock):
    with priced(clock) as rt:
        asking(rt, Talk(ModelAnswer("here", "big", None)))
        await rt.run("coder", "x", credits="$1")
        (settled,) = await events(rt, "hold.settled")
        assert settled["uncertain"]
        assert settled["costs"]["credits"] == 2_010
        await sound(rt)


@pytest.mark.rule("model.charged")
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Down("connection", sent=False), "hold.released"),
        (Down("unavailable", status=503), "hold.released"),
        (Down("connection"), "hold.settled"),
        (Down("timeout"), "hold.settled"),
        (Down("broken"), "hold.settled"),
    ],
)
async def test_what_a_failed_request_costs_depends_on_whether_it_left(clock, failure: Down, kind: str):
    with priced(clock) as rt:
        asking(rt, Talk(failure, "here"), "big", "small")
        assert await rt.run("coder", "x", credits="$1") == "here"
        resolved = [
            event for event in await rt.workspace.journal.history() if event.kind in ("hold.released", "hold.settled")
        ]
        assert [event.kind for event in resolved] == [kind, "hold.settled"]
        await sound(rt)


@pytest.mark.rule("model.charged")
async def test_a_request_that_is_cancelled_under_way_costs_all_that_was_held(clock):
    inside = anyio.Event()

    async def hangs(_attempt: object) -> str:
        inside.set()
        await anyio.sleep_forever()
        return ""

    with priced(clock) as rt:
        asking(rt, Talk(hangs))
        run = asyncio.ensure_future(rt.outcome("coder", "x", credits="$1"))
        await happened(inside)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        (settled,) = await events(rt, "hold.settled")
        assert settled["uncertain"]
        await sound(rt)


@pytest.mark.rule("model.fits")
async def test_with_less_left_fewer_tokens_may_be_written(clock):
    with priced(clock) as rt:
        talk = Talk("a")
        asking(rt, talk)
        await rt.run("coder", "x", credits="$0.001")
        assert talk.most == [495]


@pytest.mark.rule("model.fits")
async def test_with_too_little_left_for_any_answer_nothing_is_sent(clock):
    with priced(clock) as rt:
        talk = Talk("a")
        asking(rt, talk)
        with pytest.raises(Failed, match=r"\$0.000522 wanted"):
            await rt.run("coder", "x", credits="$0.0005")
        assert talk.asked == []
        await sound(rt)


@pytest.mark.rule("model.fits")
async def test_a_limit_of_the_workspace_shortens_answers_too(clock):
    with priced(clock, limits=[Limit("day", tokens=600)]) as rt:
        talk = Talk("a", "b")
        asking(rt, talk)
        await rt.run("coder", "x")
        assert talk.most == [590]
        await rt.run("coder", "y")
        assert talk.most == [590, 575]


@pytest.mark.rule("prices.unknown")
async def test_a_model_without_a_price_is_refused_where_money_is_limited(clock):
    with priced(clock, "big") as rt:
        talk = Talk("a", "b")
        asking(rt, talk)
        with pytest.raises((Failed, Refused), match="the price of 'big' is not known"):
            await rt.run("coder", "x", credits="$1")
        assert talk.asked == []
        assert await rt.run("coder", "x") == "a"
        assert [one["costs"] for one in await events(rt, "credits.spent")] == [{"tokens": 15}]


@pytest.mark.rule("model.paid", "model.fits")
@pytest.mark.parametrize("credits", ["$0.0025", "$0.00202"])
async def test_of_eight_that_ask_at_once_all_are_paid_and_nothing_is_overspent(clock, credits: str):
    """Also if the first leaves less than the second would have held, which then may write a little less."""
    with priced(clock) as rt:
        talk = Talk(*["x"] * 8)

        @rt.agent
        async def coder(turn: Turn) -> str:
            async with asyncio.TaskGroup() as group:
                for number in range(8):
                    group.create_task(turn.model(talk.call(f"d{number}")))
            return "all"

        outcome = await rt.outcome("coder", "x", credits=credits, within=Bounds(depth=1))
        assert outcome.value == "all"
        assert sum(one["costs"]["credits"] for one in await events(rt, "hold.settled")) == 160
        await sound(rt)


@pytest.mark.rule("loops.bounds")
@pytest.mark.parametrize(
    ("rule", "run", "child", "asked"),
    [
        *((3, None, None, 3), (3, 5, None, 5), (3, 2, None, 2), (None, 2, None, 2)),
        *((3, None, 5, 3), (3, None, 2, 2), (3, 5, 4, 4), (5, 2, 4, 2), (None, None, 4, 4)),
    ],
)
async def test_the_bounds_of_a_run_say_how_often_it_asks_models_and_those_below_only_narrow_it(
    rule: int | None, run: int | None, child: int | None, asked: int
):
    talk = Talk(*["yes"] * 9)
    with team(loops=Loops(requests=rule)) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            await turn.outcome("coder", "x", within=Bounds(requests=child))

        asking(rt, talk, times=9)
        await rt.run("lead", "x", within=Bounds(requests=run))
        assert len(talk.asked) == asked
        talk.asked.clear()
        talk.script[:] = ["yes"] * 9
        await rt.outcome("coder", "x", within=Bounds(requests=7))
        assert len(talk.asked) == 7

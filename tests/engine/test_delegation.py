"""Delegating: who may ask whom, and what a refusal does."""

import anyio
import pytest

import remit
from remit import Bounds, Card, Pass, Refused, Runtime, Turn, errors
from teams import echo

pytestmark = pytest.mark.anyio


async def refusal(rt: Runtime, to: str, **how) -> Refused:
    """What an agent that may ask anyone gets when it asks `to`."""
    caught: list[Refused] = []

    @rt.agent("prober", asks="*")
    async def prober(turn: Turn) -> None:
        with pytest.raises(Refused) as info:
            await turn.delegate(to, "a task", **how)
        caught.append(info.value)

    await rt.run("prober", "probe")
    return caught[0]


async def test_the_sample_of_the_design_runs_as_printed(rt: Runtime):
    @rt.agent(can="write code", asks=["reviewer"])
    async def coder(turn: remit.Turn) -> str:
        await turn.context.set("codebase", "auth", "MVC in modules/auth", ttl=86_400)
        review = await turn.delegate("reviewer", "review the auth module", sees=["codebase"])
        return f"written; {review}"

    @rt.agent(can="review code")
    async def reviewer(turn: remit.Turn) -> str:
        return f"saw: {await turn.context.get('codebase', 'auth')}"

    assert await rt.run("coder", "write it", credits="$0.50") == "written; saw: MVC in modules/auth"


@pytest.mark.rule("chain.self")
async def test_no_agent_delegates_to_itself_not_even_first(rt: Runtime):
    assert (await refusal(rt, "Prober!")).rule == "self"


@pytest.mark.rule("names.one-agent", "chain.loop", "chain.sentence")
@pytest.mark.parametrize("alias", ["lead", "Lead", " LEAD ", "lead!", "«lead»"])
async def test_a_loop_is_refused_however_the_name_is_written(rt: Runtime, alias: str):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("coder", "write it")

    @rt.agent(asks="*")
    async def coder(turn: Turn) -> str:
        try:
            await turn.delegate(alias, "do it for me")
        except Refused as no:
            return f"{no.rule}: {no}"
        return "not refused"

    assert await rt.run("lead", "go") == (
        "loop: 'lead' is already in this delegation (lead > coder); ask someone else or finish the task yourself"
    )


@pytest.mark.rule("names.one-agent")
async def test_two_agents_cannot_have_names_that_are_one(rt: Runtime):
    rt.add(Card("Code Reviewer"), echo)
    with pytest.raises(errors.BadInput, match="already an agent 'code-reviewer'"):
        rt.add(Card("code_reviewer"), echo)


@pytest.mark.rule("asks.default-deny")
async def test_an_agent_asks_only_those_its_card_names(rt: Runtime):
    @rt.agent(asks=["coder"])
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused) as no:
            await turn.delegate("writer", "write it")
        return f"{no.value.rule}: {no.value}"

    @rt.agent
    async def writer(turn: Turn) -> str:
        return "never asked"

    rt.add(Card("coder"), echo)
    assert await rt.run("lead", "go") == "not-allowed: 'lead' may not ask 'writer'; its card lets it ask coder"


@pytest.mark.rule("bounds.empty")
async def test_bounds_without_agents_admit_no_one(rt: Runtime):
    with pytest.raises(Refused, match="outside the bounds"):
        await rt.run("anyone", "go", within=Bounds(agents=[])) if rt.add(Card("anyone"), echo) is None else None


@pytest.mark.rule("chain.sentence")
async def test_an_unknown_agent_is_refused_with_those_one_may_ask(rt: Runtime):
    rt.add(Card("coder"), echo)
    no = await refusal(rt, "codr")
    assert (no.rule, str(no)) == ("unknown", "there is no agent 'codr'; you may ask coder")


@pytest.mark.rule("chain.depth")
@pytest.mark.parametrize(("depth", "reached"), [(None, "a > b > c > d"), (1, "a > b"), (0, "a")])
async def test_depth_counts_hops(rt: Runtime, depth: int | None, reached: str):
    order = ["a", "b", "c", "d", "e"]

    async def go_on(turn: Turn) -> str:
        here = order.index(turn.agent)
        try:
            return await turn.delegate(order[here + 1], "deeper")
        except Refused as no:
            return f"{no.rule} {' > '.join(turn.remit.names)}"

    for name in order:
        rt.add(Card(name, asks="*"), go_on)
    within = Bounds() if depth is None else Bounds(depth=depth)
    assert await rt.run("a", "go", within=within) == f"depth {reached}"


@pytest.mark.rule("chain.depth")
async def test_a_deeper_ceiling_is_the_owners_to_give():
    with Runtime(bounds=Bounds(depth=5)) as rt:
        names = ["a", "b", "c", "d", "e"]

        async def go_on(turn: Turn) -> str:
            here = names.index(turn.agent)
            return await turn.delegate(names[here + 1], "deeper") if here < 4 else "bottom"

        for name in names:
            rt.add(Card(name, asks="*"), go_on)
        assert await rt.run("a", "go") == "bottom"


@pytest.mark.rule("refuse.hop")
async def test_a_refused_hop_leaves_the_run_going_and_stays_visible(rt: Runtime):
    no = await refusal(rt, "nobody")
    events = await rt.workspace.journal.history()
    assert [event.kind for event in events] == ["task.started", "hop.refused", "task.completed"]
    assert events[1].data["sentence"] == str(no)


@pytest.mark.rule("asks.capability", "asks.discovery")
async def test_delegating_by_capability_takes_the_best_match_then_the_name(rt: Runtime):
    @rt.agent(asks=["zoe", "adam", "mailer"])
    async def lead(turn: Turn) -> list[str]:
        chosen = await turn.delegate(capability="review code", task="look at this")
        return [chosen, *[match.card.name for match in await turn.find("review code")]]

    async def name(turn: Turn) -> str:
        return turn.agent

    rt.add(Card("zoe", can="review code"), name)
    rt.add(Card("adam", can="review code"), name)
    rt.add(Card("mailer", can="send mail"), name)
    rt.add(Card("best", can="review code"), name)  # may not be asked, so it is not even listed
    assert await rt.run("lead", "go") == ["adam", "adam", "zoe"]


async def test_a_capability_nobody_has_is_refused(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused, match="no one you may ask can fly"):
            await turn.delegate(capability="fly", task="up")
        return "walked"

    assert await rt.run("lead", "go") == "walked"


@pytest.mark.rule("asks.margin", "asks.discovery")
@pytest.mark.parametrize("verb", ["delegate", "submit", "spawn"])
async def test_nobody_is_asked_on_one_word_of_many_and_the_asker_is_told_whom_it_may_ask(rt: Runtime, verb: str):
    asked: list[str] = []

    @rt.agent(asks=["dishwasher", "keeper"])
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused) as info:
            await getattr(turn, verb)(capability="delete the production database", task="go")
        assert info.value.rule == "unknown"
        return str(info.value)

    async def noted(turn: Turn) -> None:
        asked.append(turn.agent)

    rt.add(Card("dishwasher", can="wash the dishes"), noted)
    rt.add(Card("keeper", can="keep the production going"), noted)
    rt.add(Card("hidden", can="delete the staging database"), noted)
    said = await rt.run("lead", "go")
    assert said.startswith(
        "it is not clear who can delete the production database; the nearest are: keeper (can keep the"
    )
    assert "hidden" not in said
    assert asked == []


@pytest.mark.rule("chain.no-shared-state")
async def test_concurrent_delegations_through_one_agent_see_only_their_own_chain(rt: Runtime):
    both_inside = anyio.Event()
    inside: list[str] = []

    async def shared(turn: Turn) -> str:
        inside.append(turn.asker)
        if len(inside) == 2:
            both_inside.set()
        await both_inside.wait()
        return " > ".join(turn.remit.names)

    async def through(turn: Turn) -> str:
        return await turn.delegate("shared", "work")

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        return [str(one.value) for one in await turn.delegate_all([("left", "x"), ("right", "x")])]

    rt.add(Card("left", asks="*"), through)
    rt.add(Card("right", asks="*"), through)
    rt.add(Card("shared"), shared)
    assert await rt.run("lead", "go") == ["lead > left > shared", "lead > right > shared"]


@pytest.mark.rule("chain.no-shared-state")
async def test_a_second_turn_of_the_user_starts_a_fresh_chain(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("coder", "x")

    rt.add(Card("coder"), echo)
    for _ in range(5):
        assert await rt.run("lead", "again", session="one") == "x"


@pytest.mark.rule("concurrency.limit")
async def test_an_agent_with_a_limit_refuses_what_exceeds_it_if_nobody_waits(rt: Runtime):
    full = anyio.Event()
    running: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        return [one.state for one in await turn.delegate_all([("narrow", str(n)) for n in range(5)], busy_timeout=0)]

    @rt.agent(concurrency=2)
    async def narrow(turn: Turn) -> str:
        running.append(turn.task)
        if len(running) == 2:
            full.set()
        await full.wait()
        return "done"

    assert sorted(await rt.run("lead", "go")) == ["completed", "completed", "refused", "refused", "refused"]


@pytest.mark.rule("input.remit")
async def test_a_remit_built_by_hand_is_accepted_nowhere(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        forged = turn.remit._replace(bounds=Bounds(depth=99))
        for attempt in (
            turn.delegate("coder", "x", within=forged),
            turn.delegate(forged, "x"),
            turn.delegate("coder", forged),
        ):
            with pytest.raises(errors.BadInput):
                await attempt
        with pytest.raises(errors.BadInput):
            await turn.delegate_all([forged])
        return "none taken"

    rt.add(Card("coder"), echo)
    assert await rt.run("lead", "go") == "none taken"


@pytest.mark.rule("bounds.narrow")
async def test_within_cannot_widen_what_the_run_was_given(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("coder", "x", within=Bounds(depth=99, credits="$100", tools="*"))

    @rt.agent
    async def coder(turn: Turn) -> list:
        bounds = turn.remit.bounds
        return [bounds.depth, bounds.credits, sorted(bounds.tools)]

    given = Bounds(depth=2, credits="$1", tools=["exec"])
    assert await rt.run("lead", "go", within=given) == [2, 1_000_000, ["exec"]]


@pytest.mark.rule("asks.identity")
async def test_the_holder_works_with_its_own_card_and_what_was_passed(rt: Runtime):
    @rt.agent(asks="*", tools=["deploy"])
    async def lead(turn: Turn) -> list:
        plain = await turn.delegate("coder", "x")
        passed = await turn.delegate("coder", "x", tools=["deploy", "launch"])
        return [plain, passed]

    @rt.agent(tools=["group:fs"])
    async def coder(turn: Turn) -> list[str]:
        return sorted(set(turn.tools) - {"append_file", "edit_file", "list_dir", "read_file"})

    # deploy is the lead's own to pass; launch is not, because this run was given only these tools
    result = await rt.run("lead", "go", tools=(), within=Bounds(tools=["group:fs", "deploy", "launch"]))
    assert result == [["write_file"], ["deploy", "write_file"]]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"to": "coder"}, "a task must not be empty"),
        ({"task": "x"}, "pass either an agent or a capability"),
        ({"to": "coder", "capability": "code", "task": "x"}, "pass either an agent or a capability"),
        ({"to": 7, "task": "x"}, "named by text"),
        ({"to": "…", "task": "x"}, "at least one letter"),
        ({"to": "coder", "task": b"x"}, "must be text"),
        ({"to": "coder", "task": "x", "timeout": 0}, "positive"),
        ({"to": "coder", "task": "x", "timeout": float("nan")}, "positive"),
        ({"to": "coder", "task": "x", "sees": None}, "is None"),
        ({"to": "coder", "task": "x", "sees": [7]}, "must be text"),
        ({"to": "coder", "task": "x", "tools": ["group:fss"]}, "no tool group"),
    ],
)
async def test_bad_input_is_told_apart_and_leaves_nothing_behind(rt: Runtime, bad: dict, sentence: str):
    rt.add(Card("coder"), echo)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(errors.BadInput, match=sentence):
            await turn.delegate(**bad)
        return "ok"

    assert await rt.run("lead", "go") == "ok"
    assert [event.kind for event in await rt.workspace.journal.history()] == ["task.started", "task.completed"]


def test_an_agent_needs_a_card_and_a_function(rt: Runtime):
    with pytest.raises(errors.BadInput, match="needs a function of a turn"):
        rt.add(Card("coder"), "x")
    with pytest.raises(errors.BadInput, match="a Card"):
        rt.add("coder", echo)


async def test_an_object_with_an_async_call_is_an_agent(rt: Runtime):
    class Greeter:
        async def __call__(self, turn: Turn) -> str:
            return f"hello {turn.task}"

    rt.add(Card("greeter"), Greeter())
    assert await rt.run("greeter", "world") == "hello world"


async def test_passes_can_differ_from_each_other_in_a_fan_out(rt: Runtime):
    await rt.workspace.context().set("a", "k", "A")

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        wishes = [Pass("reader", "x", sees=["a"]), ("reader", "x")]
        return [one.value for one in await turn.delegate_all(wishes, concurrency=1)]

    @rt.agent
    async def reader(turn: Turn) -> str:
        try:
            return await turn.context.get("a", "k")
        except Refused as no:
            return no.rule

    assert await rt.run("lead", "go") == ["A", "not-visible"]


def test_remit_run_is_for_scripts(rt: Runtime):
    rt.add(Card("echo"), echo)
    assert remit.run(rt, "echo", "hello") == "hello"
    assert remit.run(rt, "echo", "again") == "again"  # a second event loop on the same store
    with pytest.raises(errors.BadInput, match="Runtime first"):
        remit.run("echo", "hello", "x")


async def test_remit_run_inside_a_loop_says_what_to_do(rt: Runtime):
    with pytest.raises(errors.BadInput, match="await runtime.run"):
        remit.run(rt, "echo", "hello")

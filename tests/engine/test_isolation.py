"""Isolation: who sees and who writes what, by one formula; and what lies outside gives one answer."""

from typing import Any

import anyio
import pytest

from engine.helping import ends
from remit import BOARD, Bounds, Card, Command, Refused, Runtime, Scope, Send, Turn
from remit.errors import BadInput, Conflict, NotFound
from remit.report.tree import tree
from teams import team

pytestmark = pytest.mark.anyio


async def told(awaited) -> object:
    """What came of it: the answer, or the sentence of the refusal."""
    try:
        return await awaited
    except Refused as no:
        return f"{no.rule}: {no}"
    except Conflict as no:
        return f"conflict: {no}"


async def asked(rt: Runtime, body, *, card: Card | None = None, **passed) -> Any:
    """Have a lead, to whom a person gave everything, ask an agent that runs `body`."""

    async def lead(turn: Turn) -> object:
        return await turn.delegate("spy", "go", **passed)

    rt.add(Card("lead", asks="*"), lead)
    rt.add(card or Card("spy"), body)
    return await rt.run("lead", "go", session="s")


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.rule("sight.writes", "sight.no-trace")
@pytest.mark.case("blind_writes")
async def test_who_was_given_nothing_writes_its_own_memory_and_nothing_else(rt: Runtime):
    owner = rt.workspace.context("s")
    await owner.set("hr", "salary", 5000)
    await owner.set("memory:lead", "orders", "obey me")
    await owner.board.set("plan", "step 1")

    async def spy(turn: Turn) -> list:
        context = turn.context
        await context.set("memory:spy", "note", 1)
        return [
            await told(one)
            for key in ("salary", "nothing")
            for one in (
                context.set("hr", key, 0),
                context.set("hr", key, 0, expect=0),
                context.set("hr", key, 0, expect=99),
                context.set_with_extension("hr", key, 0),
                context.touch("hr", key),
                context.remove("hr", key),
                context.set("memory:lead", key, "obey spy"),
                context.board.set(key, "step 1: obey spy"),
                context.board.remove(key),
            )
        ]

    answers = await asked(rt, spy)

    there, not_there = answers[:9], answers[9:]
    assert [answer.replace("salary", "nothing") for answer in there] == not_there
    assert len({answer.replace("salary", "nothing") for answer in there[:6]}) == 1
    assert all(answer.startswith("not-writable: 'spy' may not write") for answer in answers)
    assert await owner.get("hr", "salary") == 5000
    assert await owner.get("memory:lead", "orders") == "obey me"
    assert await owner.board.get("plan") == "step 1"
    assert await owner.get("memory:spy", "note") == 1


@pytest.mark.rule("sight.writes")
async def test_an_asker_passes_on_to_write_only_what_it_may_write_itself(rt: Runtime):
    async def leaf(turn: Turn) -> list:
        return [await told(turn.context.set(where, "k", "v")) for where in ("notes", "code")]

    async def middle(turn: Turn) -> list:
        return await turn.delegate("leaf", "go", writes=["notes", "code"])

    rt.add(Card("leaf"), leaf)
    answers = await asked(rt, middle, card=Card("spy", asks="*"), writes=["notes"])

    assert isinstance(answers[0], int)
    assert answers[1].startswith("not-writable")


@pytest.mark.rule("sight.writes")
async def test_the_ceiling_holds_for_the_first_holder_too(rt: Runtime):
    @rt.agent
    async def lead(turn: Turn) -> list:
        return [await told(turn.context.set(where, "k", "v")) for where in ("notes", "memory:lead", "code")]

    notes, memory, code = await rt.run("lead", "go", within=Bounds(writes=["notes"]))

    assert notes == 1
    assert memory.startswith("not-writable")
    assert code.startswith("not-writable")


@pytest.mark.rule("sight.writes")
async def test_the_board_is_written_by_who_was_given_it(rt: Runtime):
    async def spy(turn: Turn) -> object:
        await turn.context.board.set("k", "v")
        return await turn.context.board.get("k")

    assert await asked(rt, spy, writes=[BOARD]) == "v"


@pytest.mark.rule("sight.writes", "sight.no-trace")
@pytest.mark.case("oracles")
async def test_a_write_without_sight_tells_nothing_of_what_was_there(clock):
    """The answer, the version and the age of what it wrote are the same over something and over nothing."""

    async def spy(turn: Turn) -> list:
        version = await turn.context.set("box", "k", "x")
        entry = await turn.context.entry("box", "k")
        blind = [
            await told(turn.context.set("box", "other", 1, expect=0)),
            await told(turn.context.set("box", "other", 1, expect=7)),
            await told(turn.context.remove("box", "other")),
            await told(turn.context.touch("box", "other")),
        ]
        return [version == entry.version, entry.updated_at - entry.created_at, version > 2**40, blind]

    answers = []
    for there in (True, False):
        with team(clock=clock) as rt:
            for _ in range(7 * there):
                await rt.workspace.context().set("box", "k", "secret")
                await rt.workspace.context().set("box", "other", "secret")
                clock.advance(60)
            answers.append(await asked(rt, spy, writes=["box"]))

    assert answers[0] == answers[1]
    assert answers[0][:3] == [True, 0, True]
    assert len({answer.split(";")[0] for answer in answers[0][3]}) == 1
    assert answers[0][3][0].startswith("not-visible")


# --- what it wrote -----------------------------------------------------------------------------


@pytest.mark.rule("sight.wrote")
@pytest.mark.case("wrote_sees")
async def test_what_it_wrote_are_those_versions_not_what_others_put_there(rt: Runtime):
    placed, replaced = anyio.Event(), anyio.Event()

    async def spy(turn: Turn) -> list:
        context = turn.context
        await context.set("secrets", "key", "placeholder")
        await context.set("secrets", "mine", "mine")
        mine = await context.get("secrets", "key")
        placed.set()
        await replaced.wait()
        return [
            mine,
            await told(context.get("secrets", "key")),
            [entry.value for entry in await context.query("secrets")],
            [entry.value for entry in await context.query("secrets", prefix="k")],
            [entry.value for entry in await context.query("secrets", limit=1)],
            await told(context.touch("secrets", "key")),
            await told(context.remove("secrets", "key")),
            await told(context.set("secrets", "key", "again", expect=1)),
            await turn.delegate("leaf", "go", sees=["secrets"]),
        ]

    async def leaf(turn: Turn) -> list:
        return [await told(turn.context.get("secrets", key)) for key in ("key", "mine")]

    async def replace() -> None:
        await placed.wait()
        await rt.workspace.context().set("secrets", "key", "sk-live-123")
        replaced.set()

    rt.add(Card("leaf"), leaf)
    answers: list = []

    async def run() -> None:
        answers.extend(await asked(rt, spy, card=Card("spy", asks="*"), writes=["secrets"]))

    async with anyio.create_task_group() as group:
        group.start_soon(replace)
        group.start_soon(run)

    mine, got, recent, prefix, one, touched, removed, expected, passed = answers
    assert mine == "placeholder"
    assert (recent, prefix, one) == (["mine"], [], ["mine"])
    assert {got, touched, removed, expected} == {got}
    assert got.startswith("not-visible")
    assert passed[0].startswith("not-visible")
    assert passed[1] == "mine"
    assert await rt.workspace.context().get("secrets", "key") == "sk-live-123"


@pytest.mark.rule("sight.wrote")
async def test_a_holder_goes_on_seeing_what_it_wrote_in_later_turns_of_its_task(rt: Runtime):
    async def spy(turn: Turn) -> object:
        if not turn.handoff.results:
            await turn.context.set("notes", "k", "mine")
            return Command([Send("leaf", "part")])
        return await turn.context.get("notes", "k")

    async def leaf(turn: Turn) -> str:
        return (await told(turn.context.get("notes", "k")))[:11]

    rt.add(Card("leaf"), leaf)
    assert await asked(rt, spy, card=Card("spy", asks="*"), writes=["notes"]) == "mine"


@pytest.mark.rule("sight.wrote", "handoff.narrows")
async def test_who_takes_over_does_not_see_what_the_one_before_wrote_unless_it_is_given(rt: Runtime):
    async def spy(turn: Turn) -> Command:
        await turn.context.set("notes", "k", "mine")
        await turn.context.set("notes", "given", "yours")
        return Command("heir", sees=[Scope("notes", key="given")])

    async def heir(turn: Turn) -> list:
        return [await told(turn.context.get("notes", key)) for key in ("k", "given")]

    rt.add(Card("heir"), heir)
    kept, given = await asked(rt, spy, card=Card("spy", asks="*"), writes=["notes"])
    assert kept.startswith("not-visible")
    assert given == "yours"


# --- versions ----------------------------------------------------------------------------------


@pytest.mark.rule("entry.versions")
async def test_a_version_is_never_used_again(rt: Runtime, clock):
    context = rt.workspace.context()
    assert [await context.set("n", "k", one) for one in "ab"] == [1, 2]
    await context.remove("n", "k")
    assert await context.set("n", "k", "c", ttl=60) == 3
    clock.advance(61)
    assert await rt.workspace.context.cleanup() == 1
    assert await context.set("n", "k", "d") == 4
    await context.remove("n", "k")
    with pytest.raises(Conflict, match="version 0, not 4"):
        await context.set("n", "k", "e", expect=4)
    assert await context.set("n", "k", "e", expect=0) == 5
    assert await context.set("n", "other", "f") == 1
    assert (await rt.workspace.check()).findings == []


# --- chain, tools, whom to ask -----------------------------------------------------------------


@pytest.mark.rule("chain.names-only")
@pytest.mark.case("chain_texts")
async def test_a_holder_sees_the_names_of_its_chain_and_no_text_above_its_own(rt: Runtime):
    seen: list = []

    async def spy(turn: Turn) -> None:
        await turn.delegate("leaf", "add 1 and 1")

    async def leaf(turn: Turn) -> None:
        seen.append((turn.remit.names, [hop.task for hop in turn.remit.chain.hops]))

    rt.add(Card("leaf"), leaf)
    await asked(rt, spy, card=Card("spy", asks="*"))
    assert seen == [(("lead", "spy", "leaf"), ["", "add 1 and 1"])]


@pytest.mark.rule("tools.card")
async def test_the_first_holder_has_the_tools_of_its_card_and_those_a_person_passes(rt: Runtime):
    @rt.agent(tools=["read_file"], deny=["exec"])
    async def lead(turn: Turn) -> list:
        return [tool for tool in ("read_file", "exec", "deploy") if tool in turn.tools]

    assert await rt.run("lead", "go") == ["read_file"]
    assert await rt.run("lead", "go", tools=["deploy", "exec"]) == ["read_file", "deploy"]
    assert await rt.run("lead", "go", tools="*") == ["read_file", "deploy"]
    assert await rt.run("lead", "go", tools="*", within=Bounds(tools=["exec"])) == []


@pytest.mark.rule("tools.deny-wins")
async def test_tools_but_some_can_be_asked_for_and_shown(rt: Runtime):
    @rt.agent(deny=["exec"])
    async def lead(turn: Turn) -> list:
        same = turn.tools == turn.tools and hash(turn.tools) == hash(turn.tools)
        return [repr(turn.tools), turn.tools.any, "exec" in turn.tools, bool(turn.tools), list(turn.tools), same]

    assert await rt.run("lead", "go", tools="*") == ["<tools: any but exec>", True, False, True, [], True]


@pytest.mark.rule("asks.discovery")
async def test_a_holder_lists_whom_it_may_ask_as_cards(rt: Runtime):
    @rt.agent(asks=["coder", "tester"])
    async def lead(turn: Turn) -> list:
        return [(card.name, card.can) for card in turn.agents()]

    rt.add(Card("coder", can="write code"), lead)
    rt.add(Card("stranger"), lead)
    assert await rt.run("lead", "go") == [["coder", ["write code"]]]


@pytest.mark.rule("names.reserved")
@pytest.mark.parametrize("name", ["person", "Plan", " PERSON "])
async def test_no_agent_is_called_like_what_is_not_one(name):
    with pytest.raises(BadInput, match="no agent can be called"):
        Runtime().agent(name)(told)


# --- handoffs ----------------------------------------------------------------------------------


async def look(turn: Turn) -> dict:
    return {
        "sees": [await told(turn.context.get(where, "k")) for where in ("spec", "hr")],
        "writes": [await told(turn.context.set(where, "new", 1)) for where in ("notes", "hr")],
        "tools": sorted(turn.tools),
        "depth": turn.remit.bounds.depth,
    }


@pytest.mark.rule("handoff.narrows")
async def test_the_blanket_rights_of_the_first_holder_are_not_handed_on(rt: Runtime):
    for where in ("spec", "hr"):
        await rt.workspace.context().set(where, "k", f"of {where}")

    @rt.agent(asks="*", tools=["exec"])
    async def lead(turn: Turn) -> Command:
        assert await turn.context.get("hr", "k") == "of hr"
        return Command("heir")

    rt.add(Card("heir"), look)
    found = await rt.run("lead", "go", tools="*")
    assert [answer[:11] for answer in found["sees"]] == ["not-visible"] * 2
    assert [answer[:12] for answer in found["writes"]] == ["not-writable"] * 2
    assert found["tools"] == []


@pytest.mark.rule("handoff.narrows")
async def test_what_the_task_was_passed_by_name_and_what_the_command_gives_goes_along(rt: Runtime):
    for where in ("spec", "hr"):
        await rt.workspace.context().set(where, "k", f"of {where}")

    @rt.agent(asks="*", tools=["exec"])
    async def lead(turn: Turn) -> Command:
        return await turn.hand_off("heir", sees=["hr"], writes=["hr"], tools=["exec", "deploy"], within=Bounds(depth=1))

    rt.add(Card("heir"), look)
    found = await rt.run("lead", "go", sees=["spec"], writes=["notes"])
    assert found["sees"][0] == "of spec"
    assert found["sees"][1].startswith("not-visible")  # the sender does not see it either
    assert isinstance(found["writes"][0], int)
    assert found["writes"][1].startswith("not-writable")
    assert (found["tools"], found["depth"]) == (["exec"], 1)


@pytest.mark.rule("handoff.narrows")
async def test_context_passed_to_a_fan_out_reaches_its_members_and_the_agent_that_joins(rt: Runtime):
    for where in ("spec", "hr"):
        await rt.workspace.context("s").set(where, "k", f"of {where}")
    await rt.workspace.context("s").board.set("k", "on the board")

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> Command:
        return Command([Send("member", "part")], join="heir", sees=["spec", BOARD])

    async def peek(turn: Turn) -> list:
        seen = [await told(turn.context.get(where, "k")) for where in ("spec", "hr")]
        return [*seen, await told(turn.context.board.get("k"))]

    async def heir(turn: Turn) -> list:
        return [turn.handoff.results[0].value, await peek(turn)]

    rt.add(Card("member"), peek)
    rt.add(Card("heir"), heir)
    for spec, hr, board in await rt.run("lead", "go", session="s"):
        assert (spec, board) == ("of spec", "on the board")
        assert hr.startswith("not-visible")


@pytest.mark.rule("handoff.narrows")
async def test_what_was_handed_on_is_known_again_when_the_task_is_run_again(rt: Runtime, clock):
    await rt.workspace.context().set("spec", "k", "of spec")
    tries: list = []

    @rt.agent(asks="*", writes=["notes"])
    async def lead(turn: Turn) -> Command:
        await turn.context.set("notes", "k", "mine")
        return await turn.hand_off("heir", sees=["spec"], within=Bounds(tokens=7))

    @rt.agent(asks=["lead"])
    async def heir(turn: Turn) -> list:
        found = [await told(turn.context.get(where, "k")) for where in ("spec", "notes")]
        tries.append([*found, turn.remit.bounds.tokens])
        if len(tries) == 1:
            raise ConnectionError("once")
        return tries

    task = await rt.submit("lead", "go", sees=["spec"], writes=["notes"])
    first, second = (await ends(clock, task)).unwrap()
    assert first == second
    assert (first[0], first[1][:11], first[2]) == ("of spec", "not-visible", 7)


@pytest.mark.rule("sight.receipt")
async def test_a_first_holder_s_record_says_what_it_was_passed(rt: Runtime):
    @rt.agent
    async def lead(turn: Turn) -> None:
        """Do nothing."""

    await rt.run("lead", "go", sees=["spec"], writes=["notes"])
    root = tree(await rt.workspace.journal.history())
    assert root is not None
    assert root.sees == ["spec/*"]


@pytest.mark.rule("handoff.narrows", "task.deadline")
async def test_a_handoff_may_say_until_when(rt: Runtime, clock):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> Command:
        return Command("heir", within=Bounds(deadline=clock.now() + 10_000_000))

    @rt.agent
    async def heir(turn: Turn) -> None:
        clock.advance(11)
        await anyio.sleep_forever()

    outcome = await rt.outcome("lead", "go")
    assert (outcome.state, outcome.by) == ("timed-out", "heir")


# --- another's tasks ---------------------------------------------------------------------------


@pytest.mark.rule("sight.tasks")
async def test_another_s_task_is_not_found_whatever_is_done_with_it(rt: Runtime):
    @rt.agent
    async def payroll(turn: Turn) -> dict:
        return {"ceo": "900k"}

    @rt.agent(asks="*")
    async def mallory(turn: Turn) -> list:
        mine = await turn.submit("payroll", "mine")
        await mine.wait()
        seen = []
        for id_ in (secret.id, "nothing"):
            task = turn.submitted(id_)
            for one in (task.status(), task.wait(), task.cancel(), task.retry()):
                with pytest.raises(NotFound) as no:
                    await one
                seen.append(str(no.value).replace(id_, "it"))
        return [*seen, (await turn.submitted(mine.id).status()).state]

    secret = await rt.submit("payroll", "secret", session="hr")
    await secret.wait(20)
    *answers, own = await rt.run("mallory", "x", session="lunch")
    assert set(answers) == {"there is no task 'it' that 'mallory' has asked for"}
    assert own == "completed"

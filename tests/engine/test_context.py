"""Shared context as agents use it: what they see, what they may write, how long it lives."""

import pytest

import remit
from remit import BOARD, Bounds, Card, Command, Refused, Runtime, Scope, Turn
from remit.report.tree import tree

pytestmark = pytest.mark.anyio

DAY = 86_400


async def reading(rt: Runtime, body, *, name: str = "reader", **about):
    """Runs `body(turn)` as an agent that sees nothing but what is given."""
    rt.add(Card(name, **about), body)
    return await rt.run(name, "go", sees=())


@pytest.mark.rule("sight.default-deny", "sight.no-trace")
async def test_what_was_not_passed_answers_the_same_whether_it_exists_or_not(rt: Runtime):
    await rt.workspace.context().set("secret", "there", "42")

    async def look(turn: Turn) -> list[str]:
        said = []
        for key in ("there", "absent"):
            with pytest.raises(Refused) as no:
                await turn.context.get("secret", key)
            said.append(str(no.value).replace(key, "KEY"))
        for ask in (turn.context.query("secret"), turn.context.query("secret", prefix="t")):
            with pytest.raises(Refused):
                await ask
        return said

    first, second = await reading(rt, look)
    assert first == second


@pytest.mark.rule("sight.default-deny")
async def test_the_first_holder_has_the_whole_view_and_those_below_only_what_they_were_given(rt: Runtime):
    await rt.workspace.context().set("a", "k", "A")
    await rt.workspace.context().set("b", "k", "B")

    async def look(turn: Turn) -> list[str]:
        seen = []
        for namespace in ("a", "b"):
            try:
                seen.append(await turn.context.get(namespace, "k"))
            except Refused:
                seen.append("-")
        return seen

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        return [
            await look(turn),
            await turn.delegate("low", "x"),
            await turn.delegate("low", "x", sees=["a"]),
        ]

    rt.add(Card("low"), look)
    assert await rt.run("lead", "go") == [["A", "B"], ["-", "-"], ["A", "-"]]


@pytest.mark.rule("sight.pass-own")
async def test_an_asker_passes_on_only_what_it_sees_itself(rt: Runtime):
    await rt.workspace.context().set("codebase", "old", "from someone else")

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        return await turn.delegate("coder", "x")

    @rt.agent(asks="*", writes=["codebase"])
    async def coder(turn: Turn) -> list:
        await turn.context.set("codebase", "auth", "mine")
        return await turn.delegate("reviewer", "x", sees=["codebase", "secrets"])

    @rt.agent
    async def reviewer(turn: Turn) -> list:
        return [entry.key for entry in await turn.context.query("codebase")]

    assert await rt.run("lead", "go") == ["auth"]
    root = tree(await rt.workspace.journal.history())
    reviewer_node = root.children[0].children[0]
    entry = await rt.workspace.context().entry("codebase", "auth")
    assert reviewer_node.sees == [f"codebase/auth*v{entry.version}"]
    assert ("secrets/*", "the asker does not see all of it") in reviewer_node.withheld


@pytest.mark.rule("bounds.empty")
async def test_seeing_nothing_is_nothing_not_everything(rt: Runtime):
    await rt.workspace.context().set("a", "k", "A")

    async def look(turn: Turn) -> str:
        try:
            return await turn.context.get("a", "k")
        except Refused:
            return "nothing"

    rt.add(Card("low"), look)
    assert await rt.run("low", "x", sees=[]) == "nothing"
    assert await rt.run("low", "x", within=Bounds(sees=[])) == "nothing"
    assert await rt.run("low", "x", sees="*") == "A"


async def test_a_scope_can_be_one_key_or_a_prefix(rt: Runtime):
    for key in ("module:auth", "module:cart", "notes"):
        await rt.workspace.context().set("code", key, key)

    async def keys(turn: Turn) -> list[str]:
        return sorted(entry.key for entry in await turn.context.query("code"))

    rt.add(Card("low"), keys)
    assert await rt.run("low", "x", sees=[Scope("code", prefix="module:")]) == ["module:auth", "module:cart"]
    assert await rt.run("low", "x", sees=[Scope("code", key="notes")]) == ["notes"]


async def test_a_card_reads_what_it_is_made_for_within_the_ceiling(rt: Runtime):
    await rt.workspace.context().set("style", "guide", "tabs")

    async def look(turn: Turn) -> str:
        try:
            return await turn.context.get("style", "guide")
        except Refused:
            return "-"

    rt.add(Card("linter", reads=["style"]), look)
    assert await rt.run("linter", "x", sees=()) == "tabs"
    assert await rt.run("linter", "x", sees=(), within=Bounds(sees=["other"])) == "-"


async def test_memory_is_the_agents_own(rt: Runtime):
    @rt.agent
    async def elephant(turn: Turn) -> str:
        await turn.context.set_with_extension("memory:elephant", "module:auth", "seen it")
        return "noted"

    @rt.agent("elephant-2")
    async def other(turn: Turn) -> str:
        with pytest.raises(Refused):
            await turn.context.get("memory:elephant", "module:auth")
        return "denied"

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        return [await turn.delegate("elephant", "x"), await turn.delegate("elephant-2", "x")]

    assert await rt.run("lead", "x") == ["noted", "denied"]


@pytest.mark.rule("sight.writes")
async def test_a_holder_writes_what_its_card_and_its_asker_let_it_within_the_ceiling(rt: Runtime):
    async def write(turn: Turn) -> list:
        done = []
        for namespace in ("notes", "code"):
            try:
                done.append(await turn.context.set(namespace, "k", "v"))
            except Refused as no:
                done.append(no.rule)
        return done

    rt.add(Card("scribe", writes=["notes"]), write)
    assert await rt.run("scribe", "x") == [1, 1]
    assert await rt.run("scribe", "x", writes=()) == [2, "not-writable"]
    assert await rt.run("scribe", "x", writes=["code"]) == [3, 2]
    assert await rt.run("scribe", "x", within=Bounds(writes=["code"])) == ["not-writable", 3]


@pytest.mark.rule("sight.receipt")
async def test_every_turn_leaves_a_receipt(rt: Runtime):
    await rt.workspace.context().set("spec", "auth", "x" * 40)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("coder", "write", sees=["spec"])

    @rt.agent
    async def coder(turn: Turn) -> str:
        await turn.context.get("spec", "auth")
        await turn.context.get("spec", "auth")
        with pytest.raises(Refused):
            await turn.context.get("salaries", "ceo")
        return "ok"

    await rt.run("lead", "go")
    node = tree(await rt.workspace.journal.history()).children[0]
    assert [(what, why, tokens, version) for what, why, tokens, version, *_ in node.saw] == [
        ("task", "task", 2, 1),
        ("spec/auth", "passed", 10, 1),
    ]
    assert node.withheld == [("everything else", "not passed"), ("salaries/ceo", "asked for, not passed")]


@pytest.mark.rule("board.session", "board.snapshot")
async def test_boards_belong_to_a_session(rt: Runtime):
    async def note(turn: Turn) -> str:
        board = turn.context.board
        assert await board.get("missing") is None
        assert await board.remove("missing") is False
        await board.set(turn.task, f"from {turn.agent}")
        return await board.snapshot()

    rt.add(Card("zed", reads=[BOARD]), note)
    rt.add(Card("amy"), note)
    assert await rt.run("zed", "plan", session="one", sees=()) == "plan (zed): from zed"
    assert await rt.run("amy", "aim", session="one", sees=[BOARD]) == "aim (amy): from amy\nplan (zed): from zed"
    assert await rt.run("amy", "aim", session="two") == "aim (amy): from amy"
    with pytest.raises(remit.Failed, match="does not see"):
        await rt.run("amy", "aim", session="one", sees=())
    assert await rt.workspace.context("one").board.remove("plan") is True
    assert [entry.key for entry in await rt.workspace.context("one").board.query()] == ["aim"]


@pytest.mark.rule("message.once")
async def test_a_message_reaches_one_agent_in_one_session_once(rt: Runtime):
    @rt.agent(asks=["low"])
    async def lead(turn: Turn) -> list:
        await turn.send("Low", "be quick")
        first = await turn.delegate("low", "x")
        second = await turn.delegate("low", "x")
        back = [[message.sender, message.text] for message in await turn.inbox()]
        return [first, second, back]

    @rt.agent
    async def low(turn: Turn) -> list[str]:
        found = [f"{message.sender}: {message.text}" for message in await turn.inbox()]
        if found:
            await turn.send("lead", "I am")
        return found

    assert await rt.run("lead", "go", session="one") == [["lead: be quick"], [], [["low", "I am"]]]
    assert await rt.run("low", "x", session="two") == []


async def test_messages_go_to_askers_and_to_those_one_may_ask_only(rt: Runtime):
    @rt.agent(asks=["low"])
    async def lead(turn: Turn) -> list[str]:
        said = []
        for to in ("stranger", "nobody", "lead"):
            with pytest.raises(Refused) as no:
                await turn.send(to, "psst")
            said.append(no.value.rule)
        return said

    @rt.agent
    async def stranger(turn: Turn) -> None:
        return None

    assert await rt.run("lead", "go") == ["not-allowed", "unknown", "not-allowed"]


@pytest.mark.rule("asks.alike")
async def test_nobody_learns_by_a_message_whether_there_is_somebody_it_may_not_write_to(rt: Runtime):
    said: list[str] = []

    @rt.agent(asks=["low", "ghost"])
    async def lead(turn: Turn) -> None:
        for to in ("stranger", "nobody", "ghost"):
            with pytest.raises(Refused) as no:
                await turn.send(to, "psst")
            said.append(str(no.value))

    @rt.agent
    async def stranger(turn: Turn) -> None:
        return None

    await rt.run("lead", "go")
    there, not_there, misspelled = said
    assert there.replace("stranger", "nobody") == not_there
    assert misspelled == "there is no agent 'ghost' to send a message to"


@pytest.mark.rule("sight.wrote")
async def test_an_entry_of_which_two_versions_are_seen_is_listed_once(rt: Runtime):
    @rt.agent(asks=["other"], writes=["notes"])
    async def lead(turn: Turn) -> object:
        await turn.context.set("notes", "a", f"turn {len(turn.handoff.trail)}")
        if not turn.handoff.sender:
            return Command("other", sees=["notes"])
        many = await turn.context.query_many(["notes", "notes"])
        listed = [await turn.context.query("notes"), await turn.context.query("notes", prefix="a"), many]
        return [[one.value for one in entries] for entries in listed]

    @rt.agent(asks=["lead"])
    async def other(turn: Turn) -> Command:
        return Command("lead", sees=["notes"])

    assert await rt.run("lead", "go", sees=[], writes=[]) == [["turn 2"]] * 3

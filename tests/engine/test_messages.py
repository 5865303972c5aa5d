"""Messages: within one run, so many of one sender, of a size, and never in the way of a step."""

import anyio
import pytest

from engine.helping import sound
from remit import Card, Plan, Refused, Runtime, Step, Turn
from remit.core.values import TASK_LIMIT
from wrapped import Counted

pytestmark = pytest.mark.anyio

KIB_16 = 16_384


async def read(turn: Turn) -> list[str]:
    return [f"{one.sender}: {one.text}" for one in await turn.inbox()]


@pytest.mark.rule("message.run")
@pytest.mark.case("two_plans")
async def test_two_plans_in_one_session_do_not_see_each_others_messages(rt: Runtime):
    told: list[str] = []
    both = anyio.Event()
    sent: list[str] = []

    @rt.agent
    async def scout(turn: Turn) -> None:
        await turn.send("guide", f"secret of {turn.task[-1]}")
        sent.append(turn.task)
        if len(sent) == 2:
            both.set()
        await both.wait()

    @rt.agent
    async def guide(turn: Turn) -> None:
        told.append(turn.task)

    def plan(number: int) -> Plan:
        return Plan(
            [Step("1", f"Scout {number}", agent="scout"), Step("2", f"Guide {number}", agent="guide", after=["1"])]
        )

    async with anyio.create_task_group() as group:
        for number in (1, 2):
            group.start_soon(lambda number=number: rt.run_plan(plan(number), session="one"))
    messages = "\n\n## Messages from team members\n- **scout**: secret of "
    assert sorted(told) == [f"# Task: Guide {number}{messages}{number}" for number in (1, 2)]


@pytest.mark.rule("message.run")
async def test_what_was_left_unread_is_not_read_in_a_later_run_of_the_session(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.send("bob", "too late")

    rt.add(Card("bob"), read)
    await rt.run("lead", "go", session="one")
    assert await rt.run("bob", "read", session="one") == []
    outcome = await rt.run_plan(Plan([Step("1", "A", agent="bob")]), session="one")
    assert outcome.steps["1"].value == []


@pytest.mark.rule("message.quota")
@pytest.mark.case("inbox")
async def test_a_sender_has_a_quota_of_its_own_and_nobody_else_is_held_up(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[object]:
        sent = await turn.delegate("mallory", "go")
        await turn.send("bob", "urgent: stop")
        first = await turn.delegate("bob", "read")
        rest = await turn.delegate("bob", "read again")
        return [sent, len(first), rest]

    @rt.agent(asks=["bob", "eve"])
    async def mallory(turn: Turn) -> list[object]:
        sent = 0
        try:
            while True:
                await turn.send("bob", str(sent))
                sent += 1
        except Refused as no:
            await turn.send("eve", "another reader is another quota")
            return [sent, no.rule, str(no)]

    rt.add(Card("bob"), read)
    rt.add(Card("eve"), read)
    sent, first, rest = await rt.run("lead", "go")
    sentence = "32 of 32 messages of 'mallory' wait for 'bob' already; try again when it has read some"
    assert sent == [32, "inbox-full", sentence]
    assert (first, rest) == (32, ["lead: urgent: stop"])
    await sound(rt)


@pytest.mark.rule("message.quota")
async def test_what_was_read_makes_room_and_other_runs_do_not_count(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[int]:
        found = []
        for _ in range(2):
            for number in range(32):
                await turn.send("bob", str(number))
            found.append(len(await turn.delegate("bob", "read")))
        await turn.send("bob", "left")
        return found

    rt.add(Card("bob"), read)
    assert await rt.run("lead", "go", session="one") == [32, 32]
    assert await rt.run("lead", "go", session="one") == [32, 32]


@pytest.mark.rule("message.quota")
@pytest.mark.parametrize("letter", ["x", "é", "😀"])
async def test_a_message_has_at_most_sixteen_kib(rt: Runtime, letter: str):
    most = KIB_16 // len(letter.encode())

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        await turn.send("bob", letter * most)
        with pytest.raises(Refused, match="at most 16,384 are allowed; say less, or write an entry") as no:
            await turn.send("bob", letter * most + "x")
        return [no.value.rule, *await turn.delegate("bob", "read")]

    rt.add(Card("bob"), read)
    assert await rt.run("lead", "go") == ["message-size", f"lead: {letter * most}"]


@pytest.mark.rule("message.quota")
async def test_sending_reads_nothing_that_waits():
    with Counted(":memory:") as database, Runtime(database) as rt:
        asked: list[dict[str, int]] = []

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            for number in range(32):
                before = database.asked.copy()
                await turn.send("bob", str(number))
                asked.append(database.asked - before)

        rt.add(Card("bob"), read)
        await rt.run("lead", "go")
        assert asked[31] == asked[1]
        assert "waiting" not in asked[31]


@pytest.mark.rule("message.fits")
@pytest.mark.case("inbox")
async def test_what_does_not_fit_a_prompt_stays_for_the_next_and_fails_no_step(rt: Runtime):
    told: list[str] = []
    long = "r" * (TASK_LIMIT - 3 * KIB_16)

    @rt.agent
    async def source(turn: Turn) -> str:
        return long

    @rt.agent
    async def mallory(turn: Turn) -> None:
        for number in range(32):
            await turn.send("bob", f"{number:02}" + "m" * (KIB_16 - 2))

    @rt.agent
    async def bob(turn: Turn) -> None:
        told.append(turn.task)

    steps = [
        Step("source", "S", agent="source"),
        Step("mallory", "M", agent="mallory"),
        Step("first", "B", agent="bob", after=["source", "mallory"]),
        Step("second", "C", agent="bob", after=["first"]),
        Step("third", "D", agent="bob", after=["second"]),
    ]
    outcome = await rt.run_plan(Plan(steps))
    assert outcome.ok
    assert all(len(text) <= TASK_LIMIT for text in told)
    found = [[int(part[:2]) for part in text.split("- **mallory**: ")[1:]] for text in told]
    assert found == [[0, 1], list(range(2, 32)), []]


@pytest.mark.rule("message.fits")
async def test_a_prompt_that_is_full_without_messages_takes_none_and_loses_none(rt: Runtime):
    told: list[str] = []

    @rt.agent
    async def mallory(turn: Turn) -> str:
        await turn.send("bob", "important")
        return "r" * (TASK_LIMIT - 80)

    @rt.agent
    async def bob(turn: Turn) -> None:
        told.append(turn.task[-40:])

    steps = [
        Step("a", "A", agent="mallory"),
        Step("b", "B", agent="bob", after=["a"]),
        Step("c", "C", agent="bob", after=["b"]),
    ]
    outcome = await rt.run_plan(Plan(steps))
    assert outcome.ok
    assert told == ["r" * 40, "essages from team members\n- **mallory**: important"[-40:]]


@pytest.mark.rule("message.fits")
async def test_a_message_from_outside_that_fits_only_unquoted_stays_for_the_next_step(rt: Runtime):
    told: list[str] = []
    lines = "m\n" * 8_000

    @rt.agent
    async def source(turn: Turn) -> str:
        return "r" * (TASK_LIMIT - 40_000)

    @rt.agent
    async def mallory(turn: Turn) -> None:
        turn.mark_untrusted("a page")
        await turn.send("bob", lines)

    @rt.agent
    async def bob(turn: Turn) -> None:
        told.append(turn.task)

    steps = [
        Step("source", "S", agent="source"),
        Step("mallory", "M", agent="mallory"),
        Step("first", "B", agent="bob", after=["source", "mallory"]),
        Step("second", "C", agent="bob", after=["first"]),
    ]
    outcome = await rt.run_plan(Plan(steps))
    assert outcome.ok
    assert [text.count("> m") for text in told] == [0, 8_000]

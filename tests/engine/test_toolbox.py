"""Tools in a model's name: policy, loops, journal, approval, hooks, and then the tool."""

import asyncio
import json
import logging
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, doomed, ends, happened, sound, take_over
from engine.people import the_question
from remit import Card, Pass, Runtime, Turn
from remit.engine.directory import AgentRules
from remit.errors import Failed, Refused
from remit.ports.models import HandedOver, ToolCall
from remit.verbs import VERBS
from teams import echo, team

pytestmark = pytest.mark.anyio


class Tool:
    """Notes what it was given, and gives back what a function says."""

    def __init__(self, says: Any = "done") -> None:
        self.given: list[dict[str, Any]] = []
        self._says = says

    async def __call__(self, given: dict[str, Any]) -> Any:
        self.given.append(given)
        said = self._says(len(self.given)) if callable(self._says) else self._says
        if isinstance(said, Exception):
            raise said
        return said


def using(rt: Runtime, tool: Tool, *calls: ToolCall, card: Card | None = None, **rules: Any) -> list[Any]:
    """Add an agent that makes these calls; what its model would be told is noted."""
    told: list[Any] = []

    async def coder(turn: Turn) -> list[Any]:
        told.clear()
        for call in calls:
            said = await turn.tool(call, tool)
            told.append(said)  # at once: the next may end the task
        return list(told)

    add(rt, card or Card("coder", tools=["look", "deploy"]), coder, **rules)
    return told


def add(rt: Runtime, card: Card, answer: Any, **rules: Any) -> None:
    rt.add(card, answer, rules=AgentRules(**rules))


def look(number: int = 1, **given: Any) -> ToolCall:
    return ToolCall("look", given, f"c{number}")


async def outcomes(rt: Runtime) -> list[tuple[Any, Any]]:
    history = await rt.workspace.journal.history()
    return [(event.data["tool"], event.data["outcome"]) for event in history if event.kind == "tool.done"]


# -- policy ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tool.policy")
async def test_a_tool_that_may_not_be_used_is_a_sentence_each_time(rt: Runtime):
    tool = Tool()
    told = using(rt, tool, *[ToolCall("rm", {}, f"c{number}") for number in range(2)], look())
    await rt.run("coder", "x")
    assert told[:2] == ["'coder' may not use 'rm' for this task; you may use deploy, look, or finish without it"] * 2
    assert told[2] == "done"
    assert await outcomes(rt) == [("rm", "refused")] * 2 + [("look", "done")]


@pytest.mark.rule("tools.deny-wins")
async def test_a_tool_that_a_card_denies_is_not_used_even_if_an_asker_passes_it(rt: Runtime):
    tool = Tool()
    told = using(rt, tool, look(), card=Card("coder", deny=["look"]))

    @rt.agent(asks="*", tools=["look"])
    async def lead(turn: Turn) -> Any:
        return [str(one.value) for one in await turn.delegate_all([Pass("coder", "x", tools=["look"])])]

    await rt.run("lead", "x")
    assert "may not use 'look'" in told[0]
    assert tool.given == []


# -- what came of it --------------------------------------------------------------------------------------------------


@pytest.mark.rule("tool.told")
async def test_whatever_a_tool_does_its_model_is_told(rt: Runtime):
    said = [{"a": 1}, ValueError("no such file"), Refused("not today", rule="day"), object(), None]
    told = using(rt, Tool(lambda number: said[number - 1]), *[look(number) for number in range(5)])
    await rt.run("coder", "x")
    assert told[:3] == [{"a": 1}, "'look' failed: ValueError: no such file", "not today"]
    assert told[3].startswith("'look' failed: BadInput: what 'look' gives back")
    assert told[4] is None
    assert [outcome for _, outcome in await outcomes(rt)] == ["done", "failed", "refused", "failed", "done"]


@pytest.mark.rule("tool.seen")
@pytest.mark.case("tool_fails", "talk")
async def test_a_call_is_on_record_with_its_result_its_time_and_the_line_where_it_raised(rt: Runtime, clock, caplog):
    def lookup(what: str) -> str:
        return {"a": "SHELF-THREE"}[what]

    async def tool(given: dict[str, Any]) -> str:
        clock.advance(0.002)
        return lookup(given["what"])

    told: list[Any] = []

    async def coder(turn: Turn) -> None:
        told.extend([await turn.tool(look(number, what=what), tool) for number, what in enumerate("ab")])

    add(rt, Card("coder", tools="look"), coder)
    await rt.run("coder", "x")
    events = [event for event in await rt.workspace.journal.history() if event.kind == "tool.done"]
    line = lookup.__code__.co_firstlineno + 1
    where = f"test_toolbox.py:{line} in lookup"
    told_why = "'look' failed: KeyError: 'b'"
    assert told == ["SHELF-THREE", told_why]
    first = {"given": '{"what":"a"}', "outcome": "done", "result": "SHELF-THREE"}
    second = {"given": '{"what":"b"}', "outcome": "failed", "result": told_why, "place": where}
    assert [event.data for event in events] == [
        {"tool": "look", "call": f"c{number}", "elapsed": 2_000, **one} for number, one in enumerate((first, second))
    ]
    (warning,) = [record for record in caplog.records if record.name == "remit"]
    assert warning.levelno == logging.WARNING
    assert warning.getMessage() == f"tool 'look' failed in task {events[0].task} of 'coder', at {where}: KeyError: 'b'"


@pytest.mark.rule("tool.seen")
async def test_a_failure_that_a_verb_tells_names_no_line_and_a_refusal_is_no_warning(rt: Runtime, caplog):
    said = [Failed("the asked agent failed", agent="a", task="t", retryable=False), Refused("not today", rule="day")]
    using(rt, Tool(lambda number: said[number - 1]), look(1), look(2))
    await rt.run("coder", "x")
    done = [event.data for event in await rt.workspace.journal.history() if event.kind == "tool.done"]
    assert [one["result"] for one in done] == ["the asked agent failed", "not today"]
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == ["the asked agent failed"]


@pytest.mark.rule("tool.seen")
async def test_the_line_is_that_of_the_users_code_and_of_no_library(rt: Runtime):
    async def reads(given: dict[str, Any]) -> Any:
        return json.loads("no json")  # here, not in the library

    async def waits(given: dict[str, Any]) -> None:
        with anyio.fail_after(0):
            await anyio.sleep_forever()

    def stumbles(turn: Turn, call: ToolCall, value: Any) -> None:
        raise LookupError

    async def coder(turn: Turn) -> None:
        await turn.tool(look(1), reads)
        await turn.tool(look(2), waits)

    async def tester(turn: Turn) -> None:
        await turn.tool(look(1), Tool("done"))

    add(rt, Card("coder", tools="look"), coder)
    add(rt, Card("tester", tools="look"), tester, after=(stumbles,))
    for name in ("coder", "tester"):
        await rt.outcome(name, "x")
    places = [event.data.get("place") for event in await rt.workspace.journal.history() if event.kind == "tool.done"]
    lines = [function.__code__.co_firstlineno + 1 for function in (reads, waits, stumbles)]
    assert places[0] == f"test_toolbox.py:{lines[0]} in reads"
    assert str(places[1]).endswith(" in waits")
    assert places[2] == f"test_toolbox.py:{lines[2]} in stumbles"


@pytest.mark.rule("tool.seen")
async def test_the_time_of_a_tool_is_without_that_of_the_person_who_approves_it(rt: Runtime, clock):
    async def slow(given: dict[str, Any]) -> str:
        clock.advance(3)
        return "done"

    def hook(turn: Turn, call: ToolCall) -> None:
        clock.advance(50)

    async def coder(turn: Turn) -> Any:
        return await turn.tool(look(), slow)

    add(rt, Card("coder", tools="look"), coder, before=(hook,))
    await rt.run("coder", "x")
    (done,) = [event.data for event in await rt.workspace.journal.history() if event.kind == "tool.done"]
    assert done["elapsed"] == 3_000_000


@pytest.mark.rule("tool.seen", "secret.nowhere")
async def test_a_secret_that_would_be_cut_in_the_middle_is_redacted_first(clock, caplog):
    key = "sk-" + "canary" * 20
    with team(clock=clock, secrets=[key]) as rt:
        using(rt, Tool(ValueError("x" * 150 + key)), look(text="y" * 150 + key))
        await rt.run("coder", "x")
        (done,) = [event.data for event in await rt.workspace.journal.history() if event.kind == "tool.done"]
    assert "canary" not in f"{done}{caplog.text}"
    assert str(done["result"]).endswith("x[secret]")


@pytest.mark.rule("tool.seen")
async def test_what_a_tool_raises_does_not_act_in_a_log(rt: Runtime, caplog):
    using(rt, Tool(ValueError("\x1b[31m\u202e no\nway")), look())
    await rt.run("coder", "x")
    assert caplog.records[-1].getMessage().endswith(": ValueError: \\x1b[31m\\u202e no way")


@pytest.mark.rule("tool.seen")
async def test_of_a_long_result_a_line_is_on_record(rt: Runtime):
    using(rt, Tool("word " * 10_000), look())
    await rt.run("coder", "x")
    (done,) = [event.data for event in await rt.workspace.journal.history() if event.kind == "tool.done"]
    assert len(str(done["result"])) < 200
    assert str(done["result"]).endswith("…")


@pytest.mark.rule("tool.handed")
async def test_a_verb_that_hands_the_task_over_ends_the_turn(rt: Runtime):
    rt.add(Card("heir"), echo)
    handoff = next(verb for verb in VERBS if verb.name == "handoff")

    async def coder(turn: Turn) -> Any:
        try:
            await turn.tool(ToolCall("handoff", {"agent": "heir"}, "c"), lambda given: handoff.call(turn, given))
        except HandedOver as over:
            return over.command
        raise AssertionError("it was told something")

    add(rt, Card("coder", asks="*", tools=["group:agents"]), coder)
    assert await rt.run("coder", "x") == "x"


# -- once -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tool.once")
async def test_a_tool_is_used_once_and_its_model_is_told_the_same_when_the_task_is_tried_again(rt: Runtime, clock):
    tool, tries = Tool(lambda number: f"time {number}"), []

    async def coder(turn: Turn) -> list[Any]:
        tries.append(1)
        found = [await turn.tool(look(number), tool) for number in (1, 2)]
        if len(tries) == 1:
            raise Shaky
        return found

    add(rt, Card("coder", tools="look"), coder)
    assert (await ends(clock, await rt.submit("coder", "x"))).value == ["time 1", "time 2"]
    assert len(tool.given) == 2
    await sound(rt)


@pytest.mark.rule("tool.once", "secret.nowhere")
async def test_a_model_is_told_no_secret_and_the_same_when_the_task_is_tried_again(clock):
    found: list[Any] = []
    said = ["the key is sk-canary-123", ValueError("401 for sk-canary-123")]
    tool = Tool(lambda number: said[number - 1])

    async def coder(turn: Turn) -> str:
        found.append([await turn.tool(look(number), tool) for number in (1, 2)])
        if len(found) == 1:
            raise Shaky
        return "end"

    with team(clock=clock, secrets=["sk-canary-123"]) as rt:
        add(rt, Card("coder", tools="look"), coder)
        await ends(clock, await rt.submit("coder", "x"))
    assert found == [["the key is [secret]", "'look' failed: ValueError: 401 for [secret]"]] * 2


@pytest.mark.rule("tool.told")
async def test_arguments_that_cannot_be_kept_are_told_and_not_used(rt: Runtime):
    tool = Tool()
    told = using(rt, tool, look(1, text="x" * 2_000_000), look(2, text="x"))
    await rt.run("coder", "x")
    assert "'look' was not used: the arguments of 'look'.text has at most" in told[0]
    assert tool.given == [{"text": "x"}]
    assert await outcomes(rt) == [("look", "refused"), ("look", "done")]


@pytest.mark.rule("tool.once")
async def test_the_same_id_with_other_arguments_is_another_call(rt: Runtime):
    told = using(rt, Tool(lambda number: number), look(1, a=1), look(1, a=2), look(1, a=1))
    await rt.run("coder", "x")
    assert told == [1, 2, 3]


@pytest.mark.rule("tool.once", "effect.once")
@pytest.mark.parametrize(("repeat", "found"), [("again", "2"), ("tell", "'look' was begun before the task")])
async def test_what_tools_do_is_told_apart_when_some_of_them_are_skipped(tmp_path, clock, repeat, found):
    """Two calls with the same effect in each: run again, the first call is kept and skipped, and the effect of the
    second is neither taken for that of the first nor missed at the end, whether that call is made again or not."""
    did: list[str] = []
    inside = anyio.Event()

    async def coder(turn: Turn) -> list[Any]:
        async def pay(given: dict[str, Any]) -> Any:
            paid = await turn.once("pay", lambda: did.append("paid") or len(did))
            if given["last"] and not inside.is_set():
                inside.set()
                await anyio.sleep_forever()
            return paid

        return [await turn.tool(ToolCall("look", {"last": last}, f"c{last}"), pay) for last in (False, True)]

    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        for rt in (dead, heir):
            add(rt, Card("coder", tools="look"), coder, repeat={"look": repeat})
        task = await dead.submit("coder", "go")
        await happened(inside)
        await take_over(heir, clock, dead)
        kept, again = await heir.workspace.tasks.get(task.id).result(PATIENCE)
        assert kept == 1
        assert str(again).startswith(found)
        assert did == ["paid", "paid"]
        await sound(heir)


@pytest.mark.rule("tool.once")
async def test_a_delegation_that_was_under_way_in_a_tool_is_taken_up_by_the_next_process(tmp_path, clock):
    """The same agent is asked the same in two calls; the process dies in the second."""
    asked: list[str] = []
    inside = anyio.Event()
    verb = next(verb for verb in VERBS if verb.name == "call_agent")

    async def lead(turn: Turn) -> list[Any]:
        given = {"agent": "coder", "task": "x"}
        return [
            await turn.tool(ToolCall("call_agent", given, f"c{number}"), lambda args: verb.call(turn, args))
            for number in (1, 2)
        ]

    async def coder(turn: Turn) -> str:
        asked.append(turn.remit.id)
        if len(asked) == 2:
            inside.set()
            await anyio.sleep_forever()
        return f"answer {len(asked)}"

    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        for rt in (dead, heir):
            add(rt, Card("lead", asks="*", tools=["group:agents"]), lead)
            rt.add(Card("coder"), coder)
        task = await dead.submit("lead", "go")
        await happened(inside)
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == ["answer 1", "answer 3"]
        assert len(asked) == 3
        await sound(heir)


# -- loops ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tool.repeats")
async def test_the_same_call_with_the_same_outcome_is_told_of_refused_and_ends_the_task(rt: Runtime):
    tool = Tool()
    told = using(rt, tool, *[look(number) for number in range(40)])
    with pytest.raises(Failed, match="^'coder' was stopped: it goes on with what brings nothing new: 'look' was not"):
        await rt.run("coder", "x")
    assert told[:5] == ["done"] * 5
    assert told[5] == "done\n\n[5 times in a row nothing new came of what you did; at 10 it is not done any more]"
    assert len(tool.given) == 11
    assert told[11].startswith("'look' was not used: 10 times in a row nothing new came of what you did; do something")
    assert len(told) == 12


@pytest.mark.rule("tool.repeats")
@pytest.mark.parametrize("length", [2, 3, 4, 5])
async def test_calls_in_turn_that_change_nothing_end_the_task_as_well(rt: Runtime, length: int):
    tool = Tool()
    told = using(rt, tool, *[look(number, of=number % length) for number in range(60)])
    with pytest.raises(Failed, match="it goes on with what brings nothing new"):
        await rt.run("coder", "x")
    assert len(tool.given) == 10 + length
    assert len(told) == 11 + length


@pytest.mark.rule("tool.repeats")
async def test_changing_outcomes_are_progress(rt: Runtime):
    told = using(rt, Tool(lambda number: number), *[look(number) for number in range(40)])
    await rt.run("coder", "x")
    assert told == list(range(1, 41))


@pytest.mark.rule("tool.repeats")
async def test_a_warning_is_the_same_when_the_task_is_run_again(rt: Runtime, clock):
    tool, found = Tool(), []

    async def coder(turn: Turn) -> str:
        found.append([await turn.tool(look(number), tool) for number in range(12)])
        if len(found) == 1:
            raise Shaky
        return "end"

    add(rt, Card("coder", tools="look"), coder)
    await ends(clock, await rt.submit("coder", "x"))
    assert found[0] == found[1]
    assert found[0][11] != "done"
    assert len(tool.given) == 11


# -- approval and hooks -----------------------------------------------------------------------------------------------


@pytest.mark.rule("tool.approval")
async def test_a_person_approves_a_tool_and_what_was_changed_is_what_is_used(rt: Runtime):
    tool = Tool()
    told = using(rt, tool, ToolCall("deploy", {"env": "prod"}, "c"), look(), approve_tools=frozenset(("deploy",)))
    run = asyncio.ensure_future(rt.run("coder", "x"))
    question = await the_question(rt)
    assert question.shows["arguments"] == {"env": "prod"}
    await rt.workspace.questions.approve(question.id, by="ann", value={"env": "test"})
    await run
    assert tool.given == [{"env": "test"}, {}]
    assert told == ["done", "done"]


@pytest.mark.rule("tool.approval")
async def test_a_no_is_a_sentence_to_the_model(rt: Runtime):
    tool = Tool()
    told = using(rt, tool, ToolCall("deploy", {}, "c"), approve_tools=frozenset(("deploy",)))
    run = asyncio.ensure_future(rt.run("coder", "x"))
    await rt.workspace.questions.reject((await the_question(rt)).id, why="not on a Friday", by="ann")
    await run
    assert told == ["'deploy' was not approved by ann: not on a Friday; go on without it"]
    assert tool.given == []


@pytest.mark.rule("tool.approval", "approval.exact")
async def test_hooks_come_before_the_approval_and_what_was_approved_is_what_is_used(rt: Runtime):
    def elsewhere(_turn: Any, call: ToolCall) -> dict[str, Any]:
        return {**call.arguments, "env": "prod"}

    tool = Tool()
    deploys = (ToolCall("deploy", {"env": "test", "n": number}, f"c{number}") for number in (1, 2))
    using(rt, tool, *deploys, approve_tools=frozenset(("deploy",)), before=(elsewhere,))
    run = asyncio.ensure_future(rt.run("coder", "x"))
    first = await the_question(rt)
    assert first.shows["arguments"] == {"env": "prod", "n": 1}
    await rt.workspace.questions.approve(first.id, by="ann")
    second = await the_question(rt)
    await rt.workspace.questions.approve(second.id, by="ann", value={"env": "stage", "n": True})
    await run
    assert json.dumps(tool.given) == '[{"env": "prod", "n": 1}, {"env": "stage", "n": true}]'


@pytest.mark.rule("approval.exact", "approval.used")
@pytest.mark.parametrize("changes", [False, True], ids=["the same", "other arguments"])
async def test_a_call_that_a_hook_changes_after_a_restart_needs_a_new_approval(tmp_path, clock, changes: bool):
    """The first process dies between the approval and the tool. An approval that it had counts for those arguments."""
    begun = anyio.Event()
    lives: list[int] = []
    tool = Tool()

    async def hook(_turn: Any, call: ToolCall) -> dict[str, Any]:
        lives.append(1)
        return {**call.arguments, "env": "prod" if changes and len(lives) > 1 else "test"}

    async def dies(_given: dict[str, Any]) -> Any:
        begun.set()
        await anyio.sleep_forever()

    def coder(do: Any) -> Any:
        async def answer(turn: Turn) -> Any:
            return await turn.tool(ToolCall("deploy", {}, "c"), do)

        return answer

    rules: dict[str, Any] = {"approve_tools": frozenset(("deploy",)), "before": (hook,), "repeat": {"deploy": "again"}}
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        add(dead, Card("coder", tools="deploy"), coder(dies), **rules)
        add(heir, Card("coder", tools="deploy"), coder(tool), **rules)
        task = await dead.submit("coder", "go")
        await dead.workspace.questions.approve((await the_question(dead)).id, by="ann")
        await happened(begun)
        await take_over(heir, clock, dead)
        if changes:
            question = await the_question(heir)
            assert question.shows["arguments"] == {"env": "prod"}
            assert tool.given == []
            await heir.workspace.questions.approve(question.id, by="ann")
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "done"
        assert tool.given == [{"env": "prod" if changes else "test"}]
        assert len(await heir.workspace.questions.list(decided=True)) == 1 + changes
        await sound(heir)


@pytest.mark.rule("approval.edited", "tool.approval")
async def test_a_tool_in_doubt_is_approved_as_hooks_leave_it_and_used_as_it_was_approved(tmp_path, clock):
    inside = anyio.Event()
    tool = Tool()

    async def dies(_given: dict[str, Any]) -> Any:
        inside.set()
        await anyio.sleep_forever()

    def hook(_turn: Any, call: ToolCall) -> dict[str, Any]:
        return {**call.arguments, "env": "test"}

    def coder(do: Any) -> Any:
        async def answer(turn: Turn) -> Any:
            return await turn.tool(ToolCall("deploy", {}, "c"), do)

        return answer

    rules: dict[str, Any] = {"before": (hook,), "repeat": {"deploy": "ask"}}
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        add(dead, Card("coder", tools="deploy"), coder(dies), **rules)
        add(heir, Card("coder", tools="deploy"), coder(tool), **rules)
        task = await dead.submit("coder", "go")
        await happened(inside)
        await take_over(heir, clock, dead)
        question = await the_question(heir)
        assert question.shows == {"action": "deploy again", "arguments": {"env": "test"}, "chain": "coder"}
        await heir.workspace.questions.approve(question.id, by="ann", value={"env": "stage"})
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "done"
        assert tool.given == [{"env": "stage"}]


@pytest.mark.rule("tool.hooks")
async def test_hooks_before_change_or_refuse_and_hooks_after_always_run(rt: Runtime):
    seen: list[Any] = []

    def shout(_turn: Any, call: ToolCall) -> dict[str, Any] | None:
        if call.arguments.get("secret"):
            raise Refused("keep that to yourself", rule="secret")
        return {"text": str(call.arguments["text"]).upper()}

    async def note(_turn: Any, call: ToolCall, told: Any) -> Any:
        seen.append((call.id, told))
        return f"<{told}>" if told == "done" else None

    tool = Tool()
    calls = (look(1, text="a"), look(2, secret="b"), ToolCall("rm", {}, "c3"))
    told = using(rt, tool, *calls, before=(shout,), after=(note,))
    await rt.run("coder", "x")
    assert tool.given == [{"text": "A"}]
    assert told[:2] == ["<done>", "keep that to yourself"]
    assert [call for call, _ in seen] == ["c1", "c2", "c3"]


@pytest.mark.rule("tool.hooks")
async def test_a_hook_that_says_no_or_nothing_sensible_lets_nothing_through(rt: Runtime):
    def keeps_back(*_: Any) -> Any:
        raise Refused("keep that to yourself", rule="mine")

    def strange(*_: Any) -> Any:
        return 7

    tool = Tool("private")
    for number, (rules, sentence) in enumerate(
        (
            ({"before": (strange,)}, "gives back None or its arguments as a dict"),
            ({"after": (keeps_back,)}, "a hook said Refused: keep that to yourself"),
        )
    ):
        told: list[Any] = []

        async def other(turn: Turn, told: list[Any] = told) -> None:
            told.append(await turn.tool(look(), tool))

        add(rt, Card(f"other{number}", tools="look"), other, **rules)
        await rt.run(f"other{number}", "x")
        assert sentence in told[0]
        assert "private" not in told[0]
    assert len(tool.given) == 1

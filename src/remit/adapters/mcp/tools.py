"""The tools that a caller from outside has: verbs of a turn, calls of several agents, and the open questions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from remit.adapters.mcp.calls import Start
from remit.adapters.mcp.questions import question_data
from remit.adapters.mcp.state import TASKS
from remit.core.command import Command
from remit.core.lifecycle import Outcome
from remit.core.trust import TRUSTED, quoted
from remit.core.values import Json, encode
from remit.errors import BadInput
from remit.ports.turn import TurnLike
from remit.runtime.outsiders import OutsideTurn
from remit.verbs import VERBS, Given, Verb, target_of

CALL, CALL_MANY, QUESTIONS = "call_agent", "call_agents", "list_questions"

_BY_NAME: Final = {verb.name: verb for verb in VERBS}
# What a verb does for a caller that has no task of its own.
_SENTENCES: Final = {
    "call_agent": "Give an agent a task, wait for it, and get its result.",
    "call_agent_async": "Give an agent a task without waiting. check_delegation_status returns its result or error.",
    "cancel_delegation": "Stop a task that you started, and everything below it.",
    "remember": "Write an entry of shared context. Agents get it quoted, as words from outside.",
}


class OutsideTool(NamedTuple):
    """A tool: its verb, and what a client may know about it."""

    verb: Verb
    reads_only: bool = False
    destroys: bool = False


async def _call_is_followed(_turn: TurnLike, _given: Given) -> Json:
    raise AssertionError("a call is started and followed, because it may take several rounds")


async def _list_questions(turn: TurnLike, given: Given) -> Json:
    outsider = cast("OutsideTurn", turn).outsider
    return [question_data(one) for one in await outsider.questions(given.get("task", ""))]


def _own(name: str) -> Verb:
    return replace(_BY_NAME[name], sentence=_SENTENCES.get(name, _BY_NAME[name].sentence))


TOOLS: Final = (
    OutsideTool(_own("list_agents"), reads_only=True),
    OutsideTool(_own(CALL)),
    OutsideTool(
        Verb(
            CALL_MANY,
            f"Give up to {TASKS} agents a task each, wait for all of them, and get their results in the same order.",
            {
                "type": "object",
                "properties": {
                    "calls": {"type": "array", "items": _BY_NAME[CALL].schema, "minItems": 1, "maxItems": TASKS}
                },
                "required": ["calls"],
                "additionalProperties": False,
            },
            _call_is_followed,
        )
    ),
    OutsideTool(_own("call_agent_async")),
    OutsideTool(_own("check_delegation_status"), reads_only=True),
    OutsideTool(_own("cancel_delegation"), destroys=True),
    OutsideTool(_own("recall"), reads_only=True),
    OutsideTool(_own("remember"), destroys=True),
    OutsideTool(
        Verb(
            QUESTIONS,
            "List the open questions of your tasks to people. Only a person can answer them.",
            {
                "type": "object",
                "properties": {"task": {"type": "string", "description": "Only those of this task."}},
                "required": [],
                "additionalProperties": False,
            },
            _list_questions,
        ),
        reads_only=True,
    ),
)
BY_NAME: Final = {tool.verb.name: tool for tool in TOOLS}


async def use_tool(tool: OutsideTool, turn: OutsideTurn, given: Given) -> Json:
    """Use a tool that ends in one round, and return its result for a model."""
    takes = cast("Mapping[str, Any]", tool.verb.schema["properties"])
    if "namespace" in takes and not (turn.agent or given.get("namespace")):
        raise BadInput(f"{tool.verb.name} needs a namespace: you act as the owner, which has no memory of its own")
    done = await tool.verb.call(cast("TurnLike", turn), given)
    assert not isinstance(done, Command)  # no tool hands a task over
    return done


def starts_of(tool: OutsideTool, turn: OutsideTurn, given: Given) -> list[Start]:
    """Return a function for each task of a call, which starts the task. Raise `BadInput` if the arguments are not
    valid."""
    tool.verb.check(given)
    if tool.verb.name == CALL:
        return [_start(turn, given)]
    calls: list[Any] = given["calls"]
    if not 1 <= len(calls) <= TASKS:
        raise BadInput(f"{CALL_MANY} takes 1 to {TASKS} calls, not {len(calls)}")
    for one in calls:
        if not isinstance(one, Mapping):
            raise BadInput(f"each of the calls of {CALL_MANY} is an object with an agent and a task")
        BY_NAME[CALL].verb.check(cast("Given", one))
    return [_start(turn, one) for one in calls]


def _start(turn: OutsideTurn, given: Given) -> Start:
    whom = target_of(CALL, given)

    async def start() -> str:
        return (await turn.submit(task=given["task"], sees=given.get("sees", ()), **whom)).id

    return start


def outcome_data(outcome: Outcome | str) -> Json:
    """Return one of several outcomes for a model. For a refused task, `outcome` is `REFUSED` and the reason."""
    if isinstance(outcome, str):
        return {"state": "refused", "error": outcome[1:]}
    found: dict[str, Json] = {"task": outcome.id, "agent": outcome.agent, "state": outcome.state}
    name, said = ("result", outcome.value) if outcome.error is None else ("error", str(outcome.error))
    if outcome.trust != TRUSTED:
        said = quoted(said if isinstance(said, str) else encode(said))
    return {**found, name: said}

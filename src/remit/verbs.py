"""The verbs of a turn as data: what a model, or anyone on another protocol, is offered as tools.

Each verb has a name, a sentence, a JSON Schema of what it takes, and a call on a turn. A refusal is raised as
`Refused`, whose sentence tells a model what to do instead.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from remit.core.card import Card
from remit.core.command import Command
from remit.core.entry import rendered
from remit.core.quoting import quoted
from remit.core.text import shown
from remit.core.trust import INSIDE
from remit.core.values import Json, encode
from remit.errors import BadInput
from remit.ports.turn import TurnLike

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing a holder can do. `schema` describes an object; `call` does it on a turn and gives back JSON, or a
    `Command` that the turn must return."""

    name: str
    sentence: str
    schema: dict[str, Json]
    do: Callable[[TurnLike, Given], Awaitable["Json | Command"]]

    async def call(self, turn: TurnLike, arguments: Given) -> "Json | Command":
        """Do it, once the arguments are what the schema says: known names, text where text is due, none missing."""
        _check(self, arguments)
        return await self.do(turn, arguments)


def _schema(required: tuple[str, ...], **properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*required],
        "additionalProperties": False,
    }


def _text(sentence: str) -> dict[str, Json]:
    return {"type": "string", "description": sentence}


_AGENT: Final = _text("The agent's name, as list_agents gives it.")
_TASK: Final = _text("What it is to do, in full: it sees nothing else of yours unless you pass it.")
_SEES: Final[dict[str, Json]] = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Namespaces of shared context to pass on; you can pass on only what you see yourself.",
}
_ID: Final = _text("The task's id, as call_agent_async or spawn_agent gave it.")


def card_data(card: Card) -> dict[str, Json]:
    """What a model is told of another agent: its name, role and capabilities, nothing of its rights."""
    return {"name": card.name, "role": card.role, "can": [*card.can]}


async def _list_agents(turn: TurnLike, given: Given) -> Json:
    wanted = given.get("capability", "")
    if not wanted:
        return [card_data(card) for card in turn.agents()]
    return [card_data(match.card) | {"score": match.score, "why": match.why} for match in await turn.find(wanted)]


async def _call_agent(turn: TurnLike, given: Given) -> Json:
    outcome = (await turn.delegate_all([(given["agent"], given["task"])], sees=given.get("sees", ())))[0]
    value = outcome.unwrap()
    if outcome.trust == INSIDE:
        return value
    return quoted(value if isinstance(value, str) else encode(value))


async def _call_agent_async(turn: TurnLike, given: Given) -> Json:
    task = await turn.submit(given["agent"], given["task"], sees=given.get("sees", ()))
    return {"task": task.id, "existing": task.existing}


async def _spawn_agent(turn: TurnLike, given: Given) -> Json:
    task = await turn.spawn(given["agent"], given["task"], sees=given.get("sees", ()))
    return {"task": task.id, "existing": task.existing}


async def _check_delegation_status(turn: TurnLike, given: Given) -> Json:
    status = await turn.submitted(given["task"]).status()
    return {"task": status.id, "state": status.state, "agent": status.agent, "attempt": status.attempt}


async def _cancel_delegation(turn: TurnLike, given: Given) -> Json:
    return {"cancelled": await turn.submitted(given["task"]).cancel(given.get("why", "cancelled by its asker"))}


async def _handoff(turn: TurnLike, given: Given) -> Command:
    return await turn.hand_off(given["agent"], given.get("update"))


async def _blackboard(turn: TurnLike, given: Given) -> Json:
    board, action, key = turn.context.board, given["action"], given.get("key", "")
    if action == "list":
        return await board.snapshot()
    if not key:
        raise BadInput(f"blackboard {action} needs a key; list shows those there are")
    if action == "read":
        entry = await board.entry(key)
        return None if entry is None else entry.value if entry.trust == INSIDE else rendered(entry)
    if action == "write":
        return {"version": await board.write(key, given.get("value"))}
    return {"deleted": await board.delete(key)}


VERBS: Final[tuple[Verb, ...]] = (
    Verb(
        "list_agents",
        "List the agents you may ask; with a capability, the best three for it, and why.",
        _schema((), capability=_text("What it must be able to do, in a few words.")),
        _list_agents,
    ),
    Verb(
        "call_agent",
        "Give an agent a part of your task, wait for it, and get its result.",
        _schema(("agent", "task"), agent=_AGENT, task=_TASK, sees=_SEES),
        _call_agent,
    ),
    Verb(
        "call_agent_async",
        "Give an agent a part of your task without waiting; ask for its status by the id you get.",
        _schema(("agent", "task"), agent=_AGENT, task=_TASK, sees=_SEES),
        _call_agent_async,
    ),
    Verb(
        "check_delegation_status",
        "Tell where a task stands that you gave away without waiting.",
        _schema(("task",), task=_ID),
        _check_delegation_status,
    ),
    Verb(
        "cancel_delegation",
        "Stop a task that you gave away, and everything below it.",
        _schema(("task",), task=_ID, why=_text("The reason, shown to everyone who waits for it.")),
        _cancel_delegation,
    ),
    Verb(
        "handoff",
        "Hand your whole task over to another agent; you do not get it back.",
        _schema(
            ("agent",),
            agent=_AGENT,
            update={
                "type": "object",
                "description": "What the next holder should know: context, artifacts, phase, completed, remaining.",
            },
        ),
        _handoff,
    ),
    Verb(
        "spawn_agent",
        "Have an agent work beside you; its result is announced in your inbox.",
        _schema(("agent", "task"), agent=_AGENT, task=_TASK, sees=_SEES),
        _spawn_agent,
    ),
    Verb(
        "blackboard",
        "Read, write, list or delete notes on the board of this session.",
        _schema(
            ("action",),
            action={"type": "string", "enum": ["read", "write", "list", "delete"]},
            key=_text("Which note; not needed to list."),
            value={"description": "What to write: text or JSON."},
        ),
        _blackboard,
    ),
)


def offered(turn: TurnLike) -> tuple[Verb, ...]:
    """Give the verbs that make sense for this holder: one that may ask nobody is offered none."""
    return VERBS if turn.agents() else ()


_KINDS: Final[dict[str, type]] = {"string": str, "array": list, "object": dict}


def _check(verb: Verb, arguments: Given) -> None:
    properties: Any = verb.schema["properties"]
    required: Any = verb.schema["required"]
    if strange := sorted(arguments.keys() - properties.keys()):
        raise BadInput(f"{verb.name} takes no {shown(strange[0])}; it takes {', '.join(properties)}")
    if missing := [name for name in required if name not in arguments]:
        raise BadInput(f"{verb.name} needs {', '.join(missing)}")
    for name, value in arguments.items():
        kind = properties[name].get("type")
        if kind is not None and not isinstance(value, _KINDS[kind]):
            raise BadInput(f"{verb.name}: {name} is {kind}, not {shown(value)}")
        allowed = properties[name].get("enum")
        if allowed is not None and value not in allowed:
            raise BadInput(f"{verb.name}: {name} is one of {', '.join(allowed)}, not {shown(value)}")

"""The verbs of a turn as data: tools for a model, or for a client of another protocol.

Each verb has a name, a description, a JSON Schema of its arguments, and a call on a turn. A refusal raises `Refused`;
its text tells a model what to do instead.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from remit.core.card import Card
from remit.core.command import Command
from remit.core.entry import Entry, rendered
from remit.core.lifecycle import Outcome
from remit.core.prompt import Passed, cut, entries_told
from remit.core.scope import memory_of
from remit.core.times import SECOND
from remit.core.toolgroups import GROUPS
from remit.core.trust import TRUSTED, prompt_text, quoted
from remit.core.values import Json, encode, shown
from remit.errors import BadInput, Refused
from remit.ports.models import Rendered
from remit.ports.turn import TurnLike

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of a turn. `schema` is the JSON Schema of its arguments, an object. `call` runs it on a turn and returns
    JSON, or a `Command` that the agent must return."""

    name: str
    sentence: str
    schema: dict[str, Json]
    do: Callable[[TurnLike, Given], Awaitable["Json | Command"]]

    async def call(self, turn: TurnLike, arguments: Given) -> "Json | Command":
        """Check the arguments against the schema and run the verb. Untrusted parts of the result are quoted. Raise
        `BadInput` for an unknown, missing or mistyped argument."""
        self.check(arguments)
        return await self.do(turn, arguments)

    def check(self, arguments: Given) -> None:
        """Raise `BadInput` for an unknown, missing or mistyped argument."""
        _check(self, arguments)

    async def use(self, turn: TurnLike, arguments: Given) -> "Rendered | Command":
        """Run the verb as a model's tool: the model gets the result as it is."""
        done = await self.call(turn, arguments)
        return done if isinstance(done, Command) else Rendered(done)


def _schema(required: tuple[str, ...], **properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*required],
        "additionalProperties": False,
    }


def _text(sentence: str) -> dict[str, Json]:
    return {"type": "string", "description": sentence}


_AGENT: Final = _text("The agent's name, as list_agents gives it. Say this or capability.")
_CAPABILITY: Final = _text("What the agent must be able to do, in a few words, instead of its name.")
_TASK: Final = _text("What it is to do, in full: it sees nothing else of yours unless you pass it.")
_SEES: Final[dict[str, Json]] = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Namespaces of shared context to pass on; you can pass on only what you see yourself.",
}
_ID: Final = _text("The task's id, as call_agent_async or spawn_agent gave it.")
_NAMESPACE: Final = _text("The namespace; your own memory if you leave it out.")
_SAME: Final = 300  # seconds in which the same asynchronous request of a model is the same task
_USUAL_WAIT: Final = 30  # default wait of a status, in seconds
_WAIT: Final = 60  # longest wait of a status, in seconds
_LISTED: Final = 20  # entries that are recalled at once
_LONG: Final = 2_000  # characters of each; an entry recalled by its key is returned whole


def card_data(card: Card) -> dict[str, Json]:
    """Return the part of a card that another agent's model may see: name, role and capabilities, without any rights."""
    return {"name": card.name, "role": card.role, "can": [*card.can]}


async def _list_agents(turn: TurnLike, given: Given) -> Json:
    wanted = given.get("capability", "")
    if not wanted:
        return [card_data(card) for card in turn.agents()]
    return [card_data(match.card) | {"score": match.score, "why": match.why} for match in await turn.find(wanted)]


def target_of(verb: str, given: Given) -> dict[str, Any]:
    """Return the keyword that names the agent: `to` or `capability`, exactly one of the two."""
    agent, capability = given.get("agent", ""), given.get("capability", "")
    if bool(agent) == bool(capability):
        wrong = "both" if agent else "neither"
        raise BadInput(f"{verb} takes an agent or a capability, exactly one of the two, and was given {wrong}")
    return {"to": agent} if agent else {"capability": capability}


async def _call_agent(turn: TurnLike, given: Given) -> Json:
    whom = target_of("call_agent", given)
    return value_of(await turn.outcome(task=given["task"], sees=given.get("sees", ()), **whom))


def value_of(outcome: Outcome) -> Json:
    """Return the result of a task for a model: quoted if it is untrusted. Raise the error that the task failed with."""
    value = outcome.unwrap()
    if outcome.trust == TRUSTED:
        return prompt_text(value, TRUSTED) if isinstance(value, str) else value
    return quoted(value if isinstance(value, str) else encode(value))


async def _call_agent_async(turn: TurnLike, given: Given) -> Json:
    whom, sees = target_of("call_agent_async", given), given.get("sees", ())
    task = await turn.submit(task=given["task"], sees=sees, announce=True, same_within=_SAME, **whom)
    if task.existing:  # its result may have been delivered already
        return await _standing(turn, task.id, existing=True)
    return {"task": task.id, "existing": False}


async def _spawn_agent(turn: TurnLike, given: Given) -> Json:
    task = await turn.spawn(task=given["task"], sees=given.get("sees", ()), **target_of("spawn_agent", given))
    return {"task": task.id, "existing": task.existing}


async def _check_delegation_status(turn: TurnLike, given: Given) -> Json:
    if (seconds := given.get("wait", _USUAL_WAIT)) > 0:
        with suppress(TimeoutError):  # then the state of the task is returned
            await turn.submitted(given["task"]).wait(min(seconds, _WAIT))
    return await _standing(turn, given["task"])


async def _standing(turn: TurnLike, id_: str, **beside: Json) -> Json:
    """Return the state of a task and, once it has ended, its result or its error. Untrusted text is put below, with
    every line quoted."""
    task = turn.submitted(id_)
    status = await task.status()
    found: dict[str, Json] = {
        "task": status.id,
        "state": status.state,
        "agent": status.agent,
        "attempt": status.attempt,
        **beside,
    }
    if status.ended_at is None:
        found["asked_seconds_ago"] = (status.seen_at - status.asked_at) // SECOND
        if status.running_for is not None:
            found["running_seconds"] = status.running_for // SECOND
        return found
    # The same at every look: a figure that grows would be taken for a new result, and a model that asks on not stopped.
    found["took_seconds"] = (status.ended_at - status.asked_at) // SECOND
    outcome = await task.wait()
    name, said = ("result", outcome.value) if outcome.error is None else ("error", str(outcome.error))
    if outcome.trust == TRUSTED:
        return {**found, name: prompt_text(said, TRUSTED) if isinstance(said, str) else said}
    return f"{encode(found)}\n{name}: {quoted(said if isinstance(said, str) else encode(said))}"


async def _cancel_delegation(turn: TurnLike, given: Given) -> Json:
    return {"cancelled": await turn.submitted(given["task"]).cancel(given.get("why", "cancelled by its asker"))}


async def _handoff(turn: TurnLike, given: Given) -> Command:
    return await turn.hand_off(update=given.get("update"), **target_of("handoff", given))


async def _recall(turn: TurnLike, given: Given) -> Json:
    namespace, key, prefix = given.get("namespace") or _memory(turn), given.get("key", ""), given.get("prefix", "")
    if key and prefix:
        raise BadInput("recall takes a key or a prefix, not both")
    if key:
        entry = await turn.context.entry(namespace, key)
        return None if entry is None else _entry_value(entry)
    if prefix:
        found = await turn.context.query(namespace, _LISTED + 1, prefix=prefix)
    else:
        found = await turn.context.query(namespace, _LISTED + 1)
    more = f"only {_LISTED} are listed; narrow it with a prefix, or name the key" if len(found) > _LISTED else ""
    if any(entry.trust != TRUSTED for entry in found[:_LISTED]):
        passed = [Passed(one.key, one.agent, cut(one.text, _LONG), one.trust) for one in found[:_LISTED]]
        return entries_told(passed, more)
    listed: list[Json] = [_entry_data(entry) for entry in found[:_LISTED]]
    return [*listed, {"more": more}] if more else listed


def _entry_value(entry: Entry) -> Json:
    return entry.value if entry.trust == TRUSTED else rendered(entry)


def _entry_data(entry: Entry) -> Json:
    value = entry.value if len(entry.text) <= _LONG else cut(entry.text, _LONG)
    return {"key": entry.key, "by": entry.agent or "person", "value": value}


async def _remember(turn: TurnLike, given: Given) -> Json:
    memory = _memory(turn)
    namespace, key, value = given.get("namespace") or memory, given["key"], given["value"]
    if namespace == memory:  # expires after 90 days; each read extends it by as much
        return {"version": await turn.context.set_with_extension(namespace, key, value)}
    return {"version": await turn.context.set(namespace, key, value)}


def _memory(turn: TurnLike) -> str:
    return memory_of(turn.agent).namespace


async def _blackboard(turn: TurnLike, given: Given) -> Json:
    board, action, key = turn.context.board, given["action"], given.get("key", "")
    if action == "list":
        return await board.snapshot()
    if not key:
        raise BadInput(f"blackboard {action} needs a key; list shows those there are")
    if action == "read":
        entry = await board.entry(key)
        return None if entry is None else _entry_value(entry)
    if action == "write":
        return {"version": await board.set(key, given.get("value"))}
    return {"deleted": await board.remove(key)}


async def _ask_person(turn: TurnLike, given: Given) -> Json:
    if "ask_person" in (await turn.offers()).hidden:
        sentence = f"the card of '{turn.agent}' does not let its model ask a person; go on with what you have"
        raise Refused(sentence, rule="not-allowed")
    return await turn.ask_human(given["question"], given.get("choices") or None)


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
        _schema(("task",), agent=_AGENT, capability=_CAPABILITY, task=_TASK, sees=_SEES),
        _call_agent,
    ),
    Verb(
        "call_agent_async",
        "Give an agent a part of your task without waiting. When it ends, you get a message with its result or error; "
        "check_delegation_status tells it too.",
        _schema(("task",), agent=_AGENT, capability=_CAPABILITY, task=_TASK, sees=_SEES),
        _call_agent_async,
    ),
    Verb(
        "check_delegation_status",
        "Tell where a task stands that you gave away without waiting, and how long it has been running, or its result "
        "or error once it has ended.",
        _schema(
            ("task",),
            task=_ID,
            wait={
                "type": "number",
                "description": f"Seconds to wait for its end first: {_USUAL_WAIT}, at most {_WAIT}.",
            },
        ),
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
            (),
            agent=_AGENT,
            capability=_CAPABILITY,
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
        _schema(("task",), agent=_AGENT, capability=_CAPABILITY, task=_TASK, sees=_SEES),
        _spawn_agent,
    ),
    Verb(
        "recall",
        "Read shared context: one entry by its key, entries by the prefix of their key, or the newest of a namespace.",
        _schema((), namespace=_NAMESPACE, key=_text("One entry's key."), prefix=_text("How keys begin.")),
        _recall,
    ),
    Verb(
        "remember",
        "Keep something for later tasks, in your own memory or in a namespace that you may write.",
        _schema(
            ("key", "value"),
            key=_text("Under which key; what stands there is replaced."),
            value={"description": "What to keep: text or JSON."},
            namespace=_NAMESPACE,
        ),
        _remember,
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
    Verb(
        "ask_person",
        "Ask a person, and wait for the answer. Ask only what you cannot find out yourself.",
        _schema(
            ("question",),
            question=_text("The question, with all that a person needs to answer it."),
            choices={
                "type": "array",
                "items": {"type": "string"},
                "description": "Answers to choose from; leave it out for an answer in words.",
            },
        ),
        _ask_person,
    ),
)
ASKING: Final = GROUPS["agents"] - GROUPS["context"]  # the verbs of an agent that may ask others


async def offered(turn: TurnLike) -> tuple[Verb, ...]:
    """Return the verbs that can succeed for this holder now. A holder that may ask no agent, or is at the depth limit,
    gets no verb that delegates; a holder without a handoff left gets none that hands over."""
    hidden = (await turn.offers()).hidden
    return tuple(verb for verb in VERBS if verb.name not in hidden)


def verbs_for(*, asks: bool, person: bool) -> tuple[Verb, ...]:
    """Return the verbs of an agent: those of context always, the others if it may ask agents, or a person."""
    return tuple(
        verb for verb in VERBS if (asks if verb.name in ASKING else person or verb.name not in GROUPS["people"])
    )


def selected_verbs(verbs: bool | Iterable[Verb]) -> tuple[Verb, ...]:
    """Return the selected verbs: these, all of them (True) or none (False)."""
    return (VERBS if verbs else ()) if isinstance(verbs, bool) else tuple(verbs)


def unlike(verbs: Iterable[Verb], taken: Iterable[str]) -> tuple[Verb, ...]:
    """Return the verbs without those whose name a tool of the agent has: the agent keeps its tool. Raise `BadInput` if
    the tool has the name of a verb of delegation, since the call would be ambiguous."""
    names = frozenset(taken)
    if clash := sorted(names & ASKING & {verb.name for verb in verbs}):
        raise BadInput(f"'{clash[0]}' is a verb of every agent that may ask others; give your tool another name")
    return tuple(verb for verb in verbs if verb.name not in names)


_KINDS: Final[dict[str, Any]] = {"string": str, "array": list, "object": dict, "number": (int, float)}


def _check(verb: Verb, arguments: Given) -> None:
    properties: Any = verb.schema["properties"]
    required: Any = verb.schema["required"]
    if strange := sorted(arguments.keys() - properties.keys()):
        raise BadInput(f"{verb.name} takes no {shown(strange[0])}; it takes {', '.join(properties)}")
    if missing := [name for name in required if name not in arguments]:
        raise BadInput(f"{verb.name} needs {', '.join(missing)}")
    for name, value in arguments.items():
        kind = properties[name].get("type")
        if kind is not None and (not isinstance(value, _KINDS[kind]) or isinstance(value, bool)):
            raise BadInput(f"{verb.name}: {name} is {kind}, not {shown(value)}")
        allowed = properties[name].get("enum")
        if allowed is not None and value not in allowed:
            raise BadInput(f"{verb.name}: {name} is one of {', '.join(allowed)}, not {shown(value)}")

"""The description of a team's file. The checks, the JSON Schema for editors and a page of the guide are all generated
from it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from remit.config.variables import variables_in
from remit.core.backoff import RetryPolicy
from remit.core.bounds import Bounds
from remit.core.breaker import BreakerPolicy
from remit.core.card import Card
from remit.core.checks import counted
from remit.core.credits import credits as money
from remit.core.limits import HOURS, Limit
from remit.core.loops import Loops
from remit.core.match import Certainty
from remit.core.plan import Step
from remit.core.prices import Price
from remit.core.text import NAME_LIMIT, line
from remit.core.tiers import TIERS
from remit.core.times import span
from remit.core.toolgroups import REPEATS, repeat_word
from remit.core.values import Json
from remit.engine.settings import Policy, Serving
from remit.errors import BadInput
from remit.stores.addresses import is_server


class ValueKind(NamedTuple):
    """A kind of value: its name, its JSON Schema, a check, and its words if it has only a few."""

    called: str
    schema: dict[str, Json]
    fits: Callable[[object], bool]
    words: tuple[str, ...] = ()


class Setting(NamedTuple):
    """One key. `judge` raises `BadInput` for a value of the right kind that cannot be used. `ways` are the keys of
    `one_of` that it goes with; empty means all."""

    about: str
    kind: ValueKind
    judge: Callable[[Any], object] | None = None
    ways: tuple[str, ...] = ()


class TableKind(NamedTuple):
    """A table of settings and tables.

    With `many` there is one table for each name that the owner chooses, with `listed` a list of tables. Exactly one of
    the keys in `one_of` must be there, and all keys in `needs`. `short` is a value that may replace the table. `judge`
    raises `BadInput` for settings that do not go together. `ways` are as in `Setting`, and `noun` is the name of one
    such table.
    """

    about: str
    settings: "Mapping[str, Setting | TableKind]"
    many: bool = False
    listed: bool = False
    one_of: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    short: Setting | None = None
    judge: Callable[[Any], object] | None = None
    ways: tuple[str, ...] = ()
    noun: str = "table"


def called(setting: Setting | TableKind) -> str:
    """Return the name of a key's kind of value."""
    if isinstance(setting, Setting):
        return setting.kind.called
    return "a list of tables" if setting.listed else "a table"


RULES: Final = "rules"  # the built-in classifier

# -- kinds of values ---------------------------------------------------------------------------------------------


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in cast("list[object]", value))


def _is_ids(value: object) -> bool:
    return isinstance(value, list) and all(map(_is(int), cast("list[object]", value)))


def _is_text_or_texts_by_name(value: object) -> bool:
    return isinstance(value, str) or _is_text_table(value)


def _is_whole_or_no(value: object) -> bool:
    return value is False or (isinstance(value, int) and value is not True)


def _is_text_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in cast("dict[str, object]", value).values())


def _is(*kinds: type) -> Callable[[object], bool]:
    """Return a check for values of these types. Unlike in Python, true and false are no numbers."""

    def fits(value: object) -> bool:
        return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))

    return fits


def _is_or_texts(kind: type) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        return isinstance(value, kind) or _is_texts(value)

    return fits


def _is_moment(value: object) -> bool:
    return isinstance(value, datetime) and value.utcoffset() is not None


_LISTED: Final[dict[str, Json]] = {"type": "array", "items": {"type": "string"}}
TEXT: Final = ValueKind("text in quotes", {"type": "string"}, _is(str))
TEXTS: Final = ValueKind('a list of texts, such as ["a", "b"]', _LISTED, _is_texts)
NAMES: Final = ValueKind(
    'a list of texts, such as ["a", "b"], or one text', {"anyOf": [{"type": "string"}, _LISTED]}, _is_or_texts(str)
)
TEXT_TABLE: Final = ValueKind(
    'a table of texts, such as { NAME = "value" }',
    {"type": "object", "additionalProperties": {"type": "string"}},
    _is_text_table,
)
IDS: Final = ValueKind(
    "a list of whole numbers, such as [4711, 4712]", {"type": "array", "items": {"type": "integer"}}, _is_ids
)
WHOLE: Final = ValueKind("a whole number", {"type": "integer"}, _is(int))
NUMBER: Final = ValueKind("a number", {"type": "number"}, _is(int, float))
YES: Final = ValueKind("true or false", {"type": "boolean"}, _is(bool))
WHOLE_OR_NO: Final = ValueKind(
    "a whole number, or false", {"anyOf": [{"type": "integer"}, {"const": False}]}, _is_whole_or_no
)
YES_OR_TEXTS: Final = ValueKind(
    'true, false, or a list of tools, such as ["deploy"]',
    {"anyOf": [{"type": "boolean"}, _LISTED]},
    _is_or_texts(bool),
)
AMOUNT: Final = ValueKind(
    'an amount with its unit, such as "$0.50"',
    {"type": "string", "pattern": r"^\s*(\$[0-9.]+|[0-9.]+ *[Uu][Ss][Dd])\s*$"},
    _is(str),
)
MOMENT: Final = ValueKind(
    "a date with its time and zone, such as 2030-01-31T18:00:00Z",
    {"type": "string", "format": "date-time"},
    _is_moment,
)
REPEAT: Final = ValueKind(
    'one of "again", "key", "ask" and "tell", or a table of them, such as { search = "again" }',
    {"anyOf": [{"enum": [*REPEATS]}, {"type": "object", "additionalProperties": {"enum": [*REPEATS]}}]},
    _is_text_or_texts_by_name,
    REPEATS,
)
SCOPE: Final = ValueKind(
    '"own", "all" or a list of ids', {"anyOf": [{"enum": ["own", "all"]}, _LISTED]}, _is_or_texts(str), ("own", "all")
)
FORM: Final = ValueKind(
    "text in quotes, or a table that is a JSON Schema",
    {"anyOf": [{"type": "string"}, {"type": "object"}]},
    _is(str, dict),
)
ARGUMENTS: Final = ValueKind('a table, such as { name = "value" }', {"type": "object"}, _is(dict))


def word_of(*words: str) -> ValueKind:
    """Return the kind of a value that is one of a few words."""

    def fits(value: object) -> bool:
        return isinstance(value, str) and value in words

    return ValueKind(" or ".join(f'"{word}"' for word in words), {"enum": [*words]}, fits, words)


# -- checks by the resulting value ---------------------------------------------------------------------------------


def _on_card(key: str) -> Callable[[Any], object]:
    return lambda value: Card("agent", **{key: value})


def _in(kind: Callable[..., object], key: str) -> Callable[[Any], object]:
    return lambda value: kind(**{key: value})


def _at_least_one(key: str) -> Callable[[Any], object]:
    def judge(value: object) -> None:
        counted(value, key, least=1)

    return judge


def _rate_of(key: str) -> Callable[[Any], object]:
    def judge(value: str) -> None:
        rates: dict[str, Any] = {"input": "$0", "output": "$0", key: value}
        Price(**rates)

    return judge


def _amount(value: object) -> None:
    money(value, "credits")


def _seconds(value: object) -> None:
    span(value, "seconds")


def _place(value: str) -> None:
    module, _, name = value.partition(":")
    if not module or not name:
        raise BadInput("say where it is as module:name, such as tools:read_file")


def _script_or_model(value: str) -> None:
    provider, _, name = value.partition(":")
    if value != "test" and not (provider and name):
        raise BadInput("a model is named as provider:model, such as openai:gpt-5, or as script:FILE")


def _models(value: list[str]) -> None:
    for one in value:
        _script_or_model(one)


def _file(value: str) -> None:
    if is_server(value):
        raise BadInput("this is the address of a server; say address = ... instead")


def _server(value: str) -> None:
    if not is_server(value):
        raise BadInput("an address begins with postgresql://; for a file say path = ...")


def _workspace(value: str) -> None:
    line(value, "a workspace", NAME_LIMIT)


def _classify(value: str) -> None:
    if value != RULES:
        _place(value)


def _places(value: str | list[str]) -> None:
    for one in [value] if isinstance(value, str) else value:
        _place(one)


def _secret(value: str) -> None:
    if not variables_in(value):
        raise BadInput('a secret does not belong in a file: keep it in an environment variable, and write "${NAME}"')


def _repeat(value: str | dict[str, str]) -> None:
    for tool, word in value.items() if isinstance(value, dict) else [("every tool", value)]:
        repeat_word(word, tool)


def _form(value: object) -> None:
    """Check the form of an answer, as far as possible without imports."""
    if isinstance(value, str) and not value.endswith(".json"):
        _place(value)


def _argv(value: list[str]) -> None:
    if not value or not value[0]:
        raise BadInput("a program is a list, its name first and then its arguments")


def _with(kind: Callable[..., object]) -> Callable[[Any], object]:
    """Return a check that builds the value of a whole table."""
    return lambda table: kind(**table)


_CHANNEL_NEEDS: Final = {
    "telegram": ("chat", "allow"),
    "slack": ("secret", "base_url"),
    "webhook": ("secret",),
    "answers": ("secret",),
}


def _channel(table: dict[str, Any]) -> None:
    way = next(way for way in _CHANNEL_NEEDS if way in table)
    for name in _CHANNEL_NEEDS[way]:
        if name not in table:
            raise BadInput(f"say {name}, which is missing: {called(CHANNEL.settings[name])}")


def _step(table: dict[str, Any]) -> None:
    Step(**table)


def _certainty(table: dict[str, Any]) -> None:
    Policy(certainty=Certainty(**table))


def _breaker(table: dict[str, Any]) -> None:
    Policy(breaker=BreakerPolicy(**table))


# -- the file ------------------------------------------------------------------------------------------------------

WAYS: Final = ("model", "function", "guest", "program")
CHANNELS: Final = ("telegram", "slack", "webhook", "answers")
_MODEL, _ASKING = ("model",), ("model", "guest")

_RETRY: Final = {
    "attempts": Setting("How many attempts there are in all; 4 unless told otherwise.", WHOLE),
    "first": Setting("How many seconds to wait after the first; each wait is twice the one before.", NUMBER),
    "cap": Setting("How many seconds to wait at most.", NUMBER),
}

AGENT: Final = TableKind(
    "Agents, each under its name: a model with tools, a function, an agent of another framework, or a program.",
    {
        "model": Setting("The model that answers: provider:model, or script:FILE.", TEXT, _script_or_model),
        "function": Setting("The async function that answers, as module:name.", TEXT, _place),
        "guest": Setting("An agent of pydantic-ai, openai-agents or LangGraph, as module:name.", TEXT, _place),
        "program": Setting("A program that is given the task and prints the answer.", TEXTS, _argv),
        "instructions": Setting("How it goes about its work, as its model is told.", TEXT, _on_card("instructions")),
        "role": Setting("What it is, in a few words.", TEXT, _on_card("role")),
        "can": Setting("What it can do, in a few words each; it is found by them.", NAMES, _on_card("can")),
        "asks": Setting('Whom it may ask: names, or "*" for anyone.', NAMES, _on_card("asks")),
        "tools": Setting("What it works with: names of [tools], and groups.", TEXTS, _on_card("tools")),
        "deny": Setting("Tools that it never uses, whoever passes them.", NAMES, _on_card("deny")),
        "approve": Setting(
            "Tools that a person approves each time; true: a person is asked before it works for another agent.",
            YES_OR_TEXTS,
        ),
        "reads": Setting("Which shared context it sees besides its own memory.", NAMES, _on_card("reads")),
        "writes": Setting("Which shared context it may write.", NAMES, _on_card("writes")),
        "concurrency": Setting("How many tasks it takes at once.", WHOLE, _on_card("concurrency")),
        "ask_person": Setting("Its model may ask a person, and waits for the answer.", YES),
        "trusted_output": Setting("It checks what it passes on: its answers count as trusted.", YES),
        "fallback": Setting("Models to ask when the first does not answer.", TEXTS, _models, _MODEL),
        "keys": Setting("Names of environment variables that hold keys.", TEXTS, None, _MODEL),
        "base_url": Setting("Where the provider is reached, if not where it usually is.", TEXT, None, _MODEL),
        "max_tokens": Setting("How long one answer may be.", WHOLE, _at_least_one("max_tokens"), _MODEL),
        "temperature": Setting("How freely it answers: 0 for the likeliest words.", NUMBER, None, _MODEL),
        "settings": Setting(
            "What else goes to the provider with every request, such as { top_p = 0.9, seed = 7 }.",
            ARGUMENTS,
            None,
            _MODEL,
        ),
        "iterations": Setting(
            "How often its model is asked for one task.", WHOLE, _at_least_one("iterations"), _ASKING
        ),
        "polls": Setting("Tools that ask how far something is: they may say the same again.", TEXTS, None, _ASKING),
        "memory": Setting(
            "What a run begins with: what was said before in its session, or whole conversations; nothing otherwise.",
            word_of("session", "whole"),
        ),
        "output": Setting(
            "The form of its answer: a type as module:name, a JSON Schema as a table, or a FILE.json that has one.",
            FORM,
            _form,
            _MODEL,
        ),
        "deps": Setting(
            "The dependencies of a guest, or a function of the turn that makes them, as module:name.",
            *(TEXT, _place, ("guest",)),
        ),
        "ungoverned": Setting(
            "What becomes of requests and tools of a guest that remit cannot govern.",
            word_of("refuse", "allow"),
            None,
            ("guest",),
        ),
        "repeat": Setting(
            "What happens with a tool call that was begun before a crash, by tool: again, key, ask or tell.",
            REPEAT,
            _repeat,
            _ASKING,
        ),
        "on_lost": Setting(
            "What becomes of a task whose conversation with its model cannot be continued after a crash: it fails, or "
            "the conversation begins again and the model is told which tools were used.",
            word_of("fail", "anew"),
            None,
            _ASKING,
        ),
        "before": Setting("Functions called before each tool call, as module:name.", NAMES, _places, _ASKING),
        "after": Setting("Functions called after each tool call, as module:name.", NAMES, _places, _ASKING),
        "retry": TableKind("How its tasks from the queue are tried again.", _RETRY, judge=_with(RetryPolicy)),
    },
    many=True,
    one_of=WAYS,
    noun="an agent",
)

TOOL: Final = TableKind(
    "Tools that agents may name: a function as module:name, or a program.",
    {
        "program": Setting("The program, its name first and then its arguments.", TEXTS, _argv),
        "about": Setting("What it does, as models are told.", TEXT),
        "polls": Setting("It asks how far something is: its answers need not be new.", YES),
        "input": Setting("How it is given its text; on its input unless told otherwise.", word_of("stdin", "argument")),
    },
    many=True,
    one_of=("program",),
    short=Setting("A function, as module:name.", TEXT, _place),
)


_LINKS: Final = ("slack", "webhook", "answers")

CHANNEL: Final = TableKind(
    "How people are told of questions and answer them, each channel under its name.",
    {
        "telegram": Setting('A bot of Telegram: its token, as "${NAME}" of an environment variable.', TEXT, _secret),
        "slack": Setting('The address of an incoming webhook of Slack, as "${NAME}".', TEXT, _secret),
        "webhook": Setting('The address that questions are posted to; "${NAME}" if it is a secret.', TEXT),
        "answers": Setting("The port on which links of Slack and webhooks are answered.", WHOLE),
        "chat": Setting("The id of the chat.", WHOLE, None, ("telegram",)),
        "allow": Setting("The ids of the people whose answers count.", IDS, None, ("telegram",)),
        "api": Setting("Where Telegram is reached, if not where it usually is.", TEXT, None, ("telegram",)),
        "secret": Setting('What signs the links, as "${NAME}"; the same for all.', TEXT, _secret, _LINKS),
        "base_url": Setting("Where people reach the links.", TEXT, None, ("slack", "webhook")),
        "host": Setting("The address to listen at; 127.0.0.1 unless told otherwise.", TEXT, None, ("answers",)),
    },
    many=True,
    one_of=CHANNELS,
    short=Setting("A channel of your own, as module:name.", TEXT, _place),
    judge=_channel,
    noun="a channel",
)

MCP_SERVER: Final = TableKind(
    "MCP servers, each under its name; agents name the tools that are allowed here.",
    {
        "command": Setting("What starts it: a program, its name first and then its arguments.", TEXTS, _argv),
        "url": Setting("Where it is, if it runs already.", TEXT),
        "allow": Setting("The tools that may be used, by name.", TEXTS),
        "pins": Setting("Digests of tools that must not change, by name.", TEXT_TABLE),
        "env": Setting(
            'Variables that its command gets; "${NAME}" stands for one of ours.', TEXT_TABLE, None, ("command",)
        ),
        "cwd": Setting("The folder that its command runs in; that of this file if unsaid.", TEXT, None, ("command",)),
        "headers": Setting(
            'What goes with every request; "${NAME}" stands for a variable of ours.', TEXT_TABLE, None, ("url",)
        ),
        "seconds": Setting("How long one call may take; 60 unless told otherwise.", NUMBER, _seconds),
        "limit": Setting("How many bytes of a result are kept.", WHOLE),
        "opening": Setting("How long it may take to start; 60 unless told otherwise.", NUMBER, _seconds),
    },
    many=True,
    one_of=("command", "url"),
    needs=("allow",),
    noun="a server",
)


def _loop(about: str, key: str) -> Setting:
    def judge(value: object) -> None:
        Loops(**cast("dict[str, Any]", {key: None if value is False else value}))

    return Setting(about, WHOLE_OR_NO, judge)


LOOPS: Final = TableKind(
    "When a model that gets nowhere is told so, refused and stopped; false switches a rule off.",
    {
        "off": Setting("Switch off every rule that is not set here.", YES),
        "same_ask": _loop("How often in a row the same is asked of the same agent in vain; 4.", "same_ask"),
        "any_ask": _loop("How often the same is asked of the same agent, whatever came of it; 14.", "any_ask"),
        "refusals": _loop("How often the same is refused to a task before it is stopped; 3.", "refusals"),
        "strikes": _loop("How many tasks of an agent are stopped before the run asks it no more; 2.", "strikes"),
        "stale": _loop("After how many answers without anything new tools are refused; 10.", "stale"),
        "stale_asks": _loop("After how many answers without anything new agents are not asked; 8.", "stale_asks"),
        "echo": _loop("How often an agent repeats an answer to a text that only grows; 6.", "echo"),
        "requests": _loop("How often a run asks models, in all its tasks together; 1,000.", "requests"),
        "hide": Setting("Verbs that cannot succeed are not offered to models; true unless told otherwise.", YES),
        "repeat_told": _loop("How often a task asks for the same before it is warned; 10.", "repeat_told"),
        "repeat_refused": _loop("How often a task asks for the same before it is refused; 20.", "repeat_refused"),
        "repeat_stopped": _loop("How often a task asks for the same before it is stopped; 30.", "repeat_stopped"),
        "same_handoff": _loop("Among how many latest handoffs the same one is refused; 3.", "same_handoff"),
        "polls": Setting("Tools that ask how far something is: their answers need not be new.", TEXTS),
    },
)

STEP: Final = TableKind(
    "Its steps, each with an agent or a capability.",
    {
        "id": Setting("By which other steps name it.", TEXT),
        "title": Setting("What is to be done, in a few words.", TEXT),
        "description": Setting("The same in full.", TEXT),
        "agent": Setting("Who does it.", TEXT),
        "capability": Setting("What is wanted of whoever does it, in the place of an agent.", TEXT),
        "after": Setting("The ids of the steps that must be done before.", TEXTS),
        "payload": Setting("Whether its result is text or JSON.", word_of("text", "structured")),
        "schema": Setting("The JSON Schema that a structured result fits.", ARGUMENTS),
        "context": Setting(
            "Whose results it sees: those of the steps in `after`, or of all before them too.",
            word_of("direct", "transitive"),
        ),
        "memory_scope": Setting('"all" gives it a summary of every result so far, a list of ids one of those.', SCOPE),
        "retries": Setting("How often it is tried again if it fails.", WHOLE),
    },
    listed=True,
    needs=("id", "title"),
    judge=_step,
)


def _bound(kind: ValueKind, key: str, about: str) -> Setting:
    return Setting(about, kind, _in(Bounds, key))


def _policy(kind: ValueKind, key: str, about: str) -> Setting:
    return Setting(about, kind, _in(Policy, key))


def _serving(kind: ValueKind, key: str, about: str) -> Setting:
    return Setting(about, kind, _in(Serving, key))


def _rate(key: str, about: str) -> Setting:
    return Setting(about, AMOUNT, _rate_of(key))


TABLES: Final[Mapping[str, TableKind]] = {
    "run": TableKind(
        "What `remit run` does when nothing else is said.",
        {
            "agent": Setting("Whom to ask.", TEXT),
            "coordinator": Setting(
                "In the place of an agent: who leads the team, plans, and puts together what comes of it.", TEXT
            ),
            "credits": Setting("What a run may spend at most.", AMOUNT, _amount),
            "seconds": Setting("How long it may take.", NUMBER, _seconds),
            "tier": Setting("How much it may take, under one name.", word_of(*TIERS)),
        },
    ),
    "plan": TableKind(
        "What `remit run` carries out when it is given no task; with a coordinator, the plan that it follows.",
        {
            "goal": Setting("What it is for.", TEXT),
            "concurrency": Setting(
                "How many steps run at a time; 5 unless told otherwise.", WHOLE, _at_least_one("concurrency")
            ),
            "reveal": Setting("Tell the agents of the steps the goal, and who else is in the team.", YES),
            "steps": STEP,
        },
    ),
    "agents": AGENT,
    "tools": TOOL,
    "groups": TableKind(
        'Names for sets of tools: with db = ["query", "dump"] agents may be given, denied or approved "group:db".',
        {},
        many=True,
        short=Setting("The tools, by their names.", TEXTS),
    ),
    "bounds": TableKind(
        "The ceiling on every run.",
        {
            "agents": _bound(NAMES, "agents", "Who may take part."),
            "tools": _bound(NAMES, "tools", "What may be used."),
            "sees": _bound(NAMES, "sees", "Which shared context may be read."),
            "writes": _bound(NAMES, "writes", "Which shared context may be written."),
            "depth": _bound(WHOLE, "depth", "How many delegations deep; 3 unless told otherwise."),
            "deadline": _bound(MOMENT, "deadline", "Until when."),
            "credits": _bound(AMOUNT, "credits", "What a run may spend at most."),
            "tokens": _bound(WHOLE, "tokens", "How many tokens a run may use."),
            "handoffs": _bound(WHOLE, "handoffs", "How often tasks of a run may change hands."),
            "members": _bound(WHOLE, "members", "How many different agents a run may have."),
            "tasks": _bound(WHOLE, "tasks", "How many tasks a run may have; 1,000 unless told otherwise."),
            "requests": _bound(WHOLE, "requests", "How often a run may ask models, instead of the 1,000 of loops."),
        },
    ),
    "policy": TableKind(
        "Rules that are not bounds.",
        {
            "concurrency": _policy(WHOLE, "concurrency", "How many submitted tasks run at a time, in all processes."),
            "handoffs": _policy(WHOLE, "handoffs", "How often one task may change hands."),
            "max_parallel_parts": _policy(
                WHOLE, "max_parallel_parts", "Into how many parts a task may go out at once."
            ),
            "inbox": _policy(WHOLE, "inbox", "How many messages of one sender may wait for one reader; 32."),
            "spawns": _policy(WHOLE, "spawns", "How many spawned tasks a task may have at a time; 5 by default."),
            "unknown_price": _policy(
                word_of("refuse", "tokens"), "unknown_price", "A model whose price is not known: not asked, or counted."
            ),
            "on_no_answer": _policy(
                word_of("reject", "approve"), "on_no_answer", "What it means that nobody answers a question."
            ),
            "on_failed_handoff": _policy(
                word_of("fail", "back"),
                "on_failed_handoff",
                "Whether a task goes back to the agent that handed it over when the new holder fails.",
            ),
            "answer_days": _policy(NUMBER, "answer_days", "How many days people have to answer."),
            "approve": Setting(
                "The function that says which hops a person has to approve, as module:name.", TEXT, _place
            ),
            "classify": Setting(
                'Who chooses the tier of a run that is not given one: "rules", or a function as module:name.',
                TEXT,
                _classify,
            ),
            "secrets": Setting("Environment variables whose values are never written down.", TEXTS),
        },
    ),
    "limits": TableKind(
        "What may be spent, and how many tasks may begin, in an hour, a day, a week or a month.",
        {
            "per": Setting("In which time.", word_of(*HOURS)),
            "credits": Setting("How much money.", AMOUNT, _amount),
            "tokens": Setting("How many tokens.", WHOLE),
            "tasks": Setting("How many tasks may begin.", WHOLE),
            "agent": Setting('By which agent; "*" for each.', TEXT),
            "session": Setting('In which session; "*" for each.', TEXT),
        },
        listed=True,
        needs=("per",),
        judge=_with(Limit),
        noun="a limit",
    ),
    "breaker": TableKind(
        "How soon agents that fail are not asked for a while.",
        {
            "failures": Setting("How many failures in a row; 3 unless told otherwise.", WHOLE),
            "cool_off": Setting("For how many seconds it is not asked then; 60 unless told otherwise.", NUMBER),
            "probe": Setting("How many seconds the task that tries it again has to report.", NUMBER),
        },
        judge=_breaker,
    ),
    "certainty": TableKind(
        "How sure it must be who can do something, to be asked by a capability.",
        {
            "score": Setting("The least score, from 0 to 1; 0.22 by default.", NUMBER),
            "margin": Setting("By how much it is ahead of the next; 0.08 by default.", NUMBER),
        },
        judge=_certainty,
    ),
    "loops": LOOPS,
    "retry": TableKind(
        "How tasks from the queue are tried again, for agents that do not say it themselves.",
        _RETRY,
        judge=_with(RetryPolicy),
    ),
    "channels": CHANNEL,
    "mcp": MCP_SERVER,
    "prices": TableKind(
        "What models cost, where you know it better: for a million tokens, under the model's name in quotes.",
        {
            "input": _rate("input", "What is read."),
            "output": _rate("output", "What is written."),
            "cached_input": _rate("cached_input", "What is read from a cache."),
            "cache_written": _rate("cache_written", "What is put into a cache."),
            "request": _rate("request", "What every request costs besides."),
        },
        many=True,
        needs=("input", "output"),
    ),
    "store": TableKind(
        "Where everything is kept; in memory only if nothing is said.",
        {
            "path": Setting("A file, from the folder of this one.", TEXT, _file),
            "address": Setting("A server: postgresql://user@host/database.", TEXT, _server),
            "workspace": Setting("The workspace within it.", TEXT, _workspace),
        },
    ),
    "serving": TableKind(
        "What a process does for the queue.",
        {
            "concurrency": _serving(WHOLE, "concurrency", "How many submitted tasks it runs at a time."),
            "heartbeat_timeout": _serving(
                NUMBER, "heartbeat_timeout", "After how many seconds without a heartbeat others take over."
            ),
            "keep_days": _serving(NUMBER, "keep_days", "How many days what has ended is kept; for ever if unsaid."),
            "keep_events": _serving(WHOLE, "keep_events", "How many events are kept in memory."),
        },
    ),
}

SCRIPT_LINE: Final = TableKind(
    "What a scripted model says: for each agent a list of lines, of which the first that fits is taken, and the next "
    "one when the same tool answers again.",
    {
        "when": Setting("Words of the task that this line is for; for every task if unsaid.", TEXT),
        "after": Setting("The tool that has just answered; without it the line is for the beginning.", TEXT),
        "say": Setting("The answer. {task}, {result} and {NAME OF A TOOL} stand for what was asked and found.", TEXT),
        "call": Setting("The tool to call.", TEXT),
        "with": Setting("Its arguments.", ARGUMENTS),
    },
    many=True,
    one_of=("say", "call"),
)

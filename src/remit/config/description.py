"""What may stand in a team's file. The checks, the JSON Schema for editors and the page of the guide are all made of
this one description."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.checks import counted
from remit.core.credits import credits as money
from remit.core.money.prices import Price
from remit.core.text import NAME_LIMIT, line
from remit.core.tiers import TIERS
from remit.core.times import span
from remit.core.values import Json
from remit.engine.settings import Policy, Serving
from remit.errors import BadInput
from remit.stores.addresses import is_server


class ValueKind(NamedTuple):
    """A kind of value: what it is called, how a JSON Schema says it, and whether a value is one."""

    called: str
    schema: dict[str, Json]
    fits: Callable[[object], bool]


class Setting(NamedTuple):
    """One key. `judge` raises BadInput for a value of the right kind that will not do all the same; `ways` are the
    kinds of agent that it is for, all of them if it is empty."""

    about: str
    kind: ValueKind
    judge: Callable[[Any], object] | None = None
    ways: tuple[str, ...] = ()


class TableKind(NamedTuple):
    """A table of settings; with `many` there is one for each name that its owner chooses. `one_of` are keys of which
    there is exactly one, `needs` such as are always there. `short` is what may stand in the place of the table."""

    about: str
    settings: Mapping[str, Setting]
    many: bool = False
    one_of: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    short: Setting | None = None


# -- kinds of values ---------------------------------------------------------------------------------------------


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in cast("list[object]", value))


def _is(*kinds: type) -> Callable[[object], bool]:
    """Tell a value of one of these kinds; true and false are no numbers, though Python has them so."""

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
WHOLE: Final = ValueKind("a whole number", {"type": "integer"}, _is(int))
NUMBER: Final = ValueKind("a number", {"type": "number"}, _is(int, float))
YES: Final = ValueKind("true or false", {"type": "boolean"}, _is(bool))
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
ARGUMENTS: Final = ValueKind('a table, such as { name = "value" }', {"type": "object"}, _is(dict))


def word_of(*words: str) -> ValueKind:
    """One of a few words."""

    def fits(value: object) -> bool:
        return isinstance(value, str) and value in words

    return ValueKind(" or ".join(f'"{word}"' for word in words), {"enum": [*words]}, fits)


# -- what is judged by the value it becomes -----------------------------------------------------------------------


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


def _argv(value: list[str]) -> None:
    if not value or not value[0]:
        raise BadInput("a program is a list, its name first and then its arguments")


# -- the file ------------------------------------------------------------------------------------------------------

WAYS: Final = ("model", "function", "guest", "program")
_MODEL, _ASKING = ("model",), ("model", "guest")

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
        "deny": Setting("Tools that it never uses, whoever passes them.", NAMES, _on_card("denies")),
        "approve": Setting(
            "Tools that a person approves each time; true: a person is asked before it works for another agent.",
            YES_OR_TEXTS,
        ),
        "reads": Setting("Which shared context it sees besides its own memory.", NAMES, _on_card("reads")),
        "writes": Setting("Which shared context it may write.", NAMES, _on_card("writes")),
        "concurrency": Setting("How many tasks it takes at once.", WHOLE, _on_card("concurrency")),
        "vouches": Setting("It checks what it passes on: its answers count as from inside.", YES),
        "fallback": Setting("Models to ask when the first does not answer.", TEXTS, _models, _MODEL),
        "keys": Setting("Names of environment variables that hold keys.", TEXTS, None, _MODEL),
        "base_url": Setting("Where the provider is reached, if not where it usually is.", TEXT, None, _MODEL),
        "max_tokens": Setting("How long one answer may be.", WHOLE, _at_least_one("max_tokens"), _MODEL),
        "iterations": Setting(
            "How often its model is asked for one task.",
            WHOLE,
            _at_least_one("iterations"),
            _ASKING,
        ),
    },
    many=True,
    one_of=WAYS,
)

TOOL: Final = TableKind(
    "Tools that agents may name: a function as module:name, or a program.",
    {
        "program": Setting("The program, its name first and then its arguments.", TEXTS, _argv),
        "about": Setting("What it does, as models are told.", TEXT),
        "input": Setting("How it is given its text; on its input unless told otherwise.", word_of("stdin", "argument")),
    },
    many=True,
    one_of=("program",),
    short=Setting("A function, as module:name.", TEXT, _place),
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
            "credits": Setting("What a run may spend at most.", AMOUNT, _amount),
            "seconds": Setting("How long it may take.", NUMBER, _seconds),
            "tier": Setting("How much it may take, under one name.", word_of(*TIERS)),
        },
    ),
    "agents": AGENT,
    "tools": TOOL,
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
        },
    ),
    "policy": TableKind(
        "Rules that are not bounds.",
        {
            "classify": _policy(word_of("rules"), "classify", "Who chooses the tier of a run that is not given one."),
            "concurrency": _policy(WHOLE, "concurrency", "How many submitted tasks run at a time, in all processes."),
            "handoffs": _policy(WHOLE, "handoffs", "How often one task may change hands."),
            "sends": _policy(WHOLE, "sends", "Into how many parts a task may go out at once."),
            "unknown_price": _policy(
                word_of("refuse", "tokens"), "unknown_price", "A model whose price is not known: not asked, or counted."
            ),
            "unanswered": _policy(
                word_of("reject", "approve"), "unanswered", "What it means that nobody answers a question."
            ),
            "answer_days": _policy(NUMBER, "answer_days", "How many days people have to answer."),
        },
    ),
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
            "hands": _serving(WHOLE, "hands", "How many submitted tasks it runs at a time."),
            "silence": _serving(NUMBER, "silence", "After how many seconds without a heartbeat others take over."),
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

"""The description of a team's file. The checks, the JSON Schema for editors and a page of the guide are all generated
from it."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from remit.config.kinds import (
    AMOUNT,
    ARGUMENTS,
    FORM,
    IDS,
    MOMENT,
    NAMES,
    NUMBER,
    REPEAT,
    SCOPE,
    TEXT,
    TEXT_TABLE,
    TEXTS,
    WHOLE,
    WHOLE_OR_NO,
    YES,
    Setting,
    TableKind,
    ValueKind,
    kind_name,
    word_of,
)
from remit.config.variables import variables_in
from remit.core.backoff import RetryPolicy
from remit.core.bounds import TIERS, Bounds
from remit.core.breaker import BreakerPolicy
from remit.core.card import Card
from remit.core.checks import counted
from remit.core.limits import HOURS, Limit
from remit.core.loops import Loops
from remit.core.match import Certainty
from remit.core.plan import Step
from remit.core.prices import Price
from remit.core.prices import credits as money
from remit.core.schedule import CATCH_UP
from remit.core.times import span
from remit.core.toolgroups import repeat_word
from remit.core.values import workspace_name
from remit.engine.settings import Policy, Serving
from remit.errors import BadInput
from remit.stores.addresses import is_server

RULES: Final = "rules"  # the built-in classifier

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
    span(value, "timeout")


def _place(value: str) -> None:
    module, _, name = value.partition(":")
    if not module or not name:
        raise BadInput("write it as module:name, such as tools:read_file")


def _script_or_model(value: str) -> None:
    provider, _, name = value.partition(":")
    if value != "test" and not (provider and name):
        raise BadInput("a model is named as provider:model, such as openai:gpt-5, or as script:FILE")


def _models(value: list[str]) -> None:
    for one in value:
        _script_or_model(one)


def _file(value: str | list[str]) -> None:
    for one in [value] if isinstance(value, str) else value:
        if is_server(one):
            raise BadInput("this is the address of a server; write address = ... instead")


def _server(value: str | list[str]) -> None:
    for one in [value] if isinstance(value, str) else value:
        if not is_server(one):
            raise BadInput("an address begins with postgresql://; for a file write path = ...")


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
    """Return a check for a table of the configuration. It calls `kind` with the settings of the table as keyword
    arguments, and `kind` raises `BadInput` for values that cannot be used."""
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
            raise BadInput(f"{name} is missing: {kind_name(CHANNEL.settings[name])}")


def _step(table: dict[str, Any]) -> None:
    Step(**table)


def _certainty(table: dict[str, Any]) -> None:
    Policy(certainty=Certainty(**table))


def _breaker(table: dict[str, Any]) -> None:
    Policy(breaker=BreakerPolicy(**table))


# -- the file ------------------------------------------------------------------------------------------------------

WAYS: Final = ("model", "function", "guest", "program", "claude_code", "codex", "gemini_cli", "a2a")
CODING: Final = ("claude_code", "codex", "gemini_cli")
CHANNELS: Final = ("telegram", "slack", "webhook", "answers")
_MODEL, _ASKING = ("model",), ("model", "guest")
_FALLING_BACK, _SENDING = ("model", *CODING), ("model", "program", *CODING)

_RETRY: Final = {
    "attempts": Setting("The number of attempts in all [default: 4].", WHOLE),
    "first": Setting("The pause after the first failure, in seconds; each further pause is twice as long.", NUMBER),
    "cap": Setting("The longest pause, in seconds.", NUMBER),
}

AGENT: Final = TableKind(
    "Agents, each under its name: a model with tools, a function, an agent of another framework or "
    "another server, or a program.",
    {
        "model": Setting("The model: provider:model, or script:FILE.", TEXT, _script_or_model),
        "function": Setting("The async function, as module:name.", TEXT, _place),
        "guest": Setting("An agent of pydantic-ai, openai-agents or LangGraph, as module:name.", TEXT, _place),
        "program": Setting("A program that reads the task and prints the result.", TEXTS, _argv),
        "claude_code": Setting("Claude Code, with this model: anthropic:MODEL.", TEXT, _script_or_model),
        "codex": Setting("Codex, with this model: openai:MODEL.", TEXT, _script_or_model),
        "gemini_cli": Setting("Gemini CLI, with this model: google:MODEL.", TEXT, _script_or_model),
        "a2a": Setting("The address of an agent of another server, by the protocol A2A.", TEXT),
        "token": Setting('The token for that server, as "${NAME}" of a variable.', TEXT, _secret, ("a2a",)),
        "key": Setting("The public key that must have signed the agent's card, as PEM.", TEXT, None, ("a2a",)),
        "files": Setting("It gets and saves files in a private folder.", YES, None, ("program",)),
        "gateway": Setting(
            "The models that it asks through remit, under its task's budget and without a key.",
            *(TEXTS, _models, ("program",)),
        ),
        "verbs": Setting("It reaches the verbs of its turn over MCP: it can ask agents.", YES, None, ("program",)),
        "cwd": Setting("The folder it works in [default: that of this file].", TEXT, None, CODING),
        "worktree": Setting("Each task has a git worktree; what it changed is an artifact.", YES, None, CODING),
        "allow": Setting(
            "Its own tools that it uses without asking a person.", TEXTS, None, ("claude_code", "gemini_cli")
        ),
        "approve": Setting("A person is asked about its other tools; false denies them.", YES, None, ("claude_code",)),
        "sandbox": Setting(
            "What its shell commands may do.",
            word_of("read-only", "workspace-write", "danger-full-access"),
            None,
            ("codex",),
        ),
        "command": Setting("The program and first arguments, if not on the PATH.", TEXTS, _argv, CODING),
        "instructions": Setting("The system prompt of its model.", TEXT, _on_card("instructions")),
        "role": Setting("What it is, in a few words.", TEXT, _on_card("role")),
        "can": Setting("Its capabilities, in a few words each; other agents find it by them.", NAMES, _on_card("can")),
        "asks": Setting('The agents it may delegate to: names, or "*" for all.', NAMES, _on_card("asks")),
        "tools": Setting("Its tools: names of [tools], and groups.", TEXTS, _on_card("tools")),
        "deny": Setting("Tools that it never uses, even if an asker passes them.", NAMES, _on_card("deny")),
        "needs_approval": Setting("A person must approve every delegation to it.", YES),
        "review": Setting("A person approves, edits or sends back each of its results.", YES),
        "approve_tools": Setting("Tools that a person approves each time.", TEXTS, None, _ASKING),
        "reads": Setting("The shared context it may read, next to its own memory.", NAMES, _on_card("reads")),
        "writes": Setting("The shared context it may write.", NAMES, _on_card("writes")),
        "concurrency": Setting("The number of tasks it runs at once.", WHOLE, _on_card("concurrency")),
        "timeout": Setting("The time of one attempt of its tasks, in seconds.", NUMBER, _seconds),
        "ask_person": Setting("Its model may ask a person, and waits for the answer.", YES),
        "trusted_output": Setting("It checks its input: its results count as trusted.", YES),
        "fallback": Setting("Models to try if the first does not answer.", TEXTS, _models, _FALLING_BACK),
        "keys": Setting("Names of environment variables that hold keys.", TEXTS, None, _SENDING),
        "base_url": Setting("The provider's address, if not the usual one.", TEXT, None, _SENDING),
        "max_tokens": Setting("The longest answer, in tokens.", WHOLE, _at_least_one("max_tokens"), _SENDING),
        "temperature": Setting("How freely it answers: 0 for the likeliest words.", NUMBER, None, _MODEL),
        "settings": Setting(
            "Further settings for every request to the provider, such as { top_p = 0.9, seed = 7 }.",
            ARGUMENTS,
            None,
            _MODEL,
        ),
        "iterations": Setting(
            "The number of model requests for one task.", WHOLE, _at_least_one("iterations"), _ASKING
        ),
        "polls": Setting("Tools that ask for the state of something: equal results are fine.", TEXTS, None, _ASKING),
        "memory": Setting(
            "What a run starts with: the session's earlier conversation, or that with tool calls [default: nothing].",
            word_of("session", "whole"),
        ),
        "output": Setting(
            "The form of its answer: a type as module:name, a JSON Schema as a table, or a FILE.json that has one.",
            FORM,
            _form,
        ),
        "deps": Setting(
            "The dependencies of a guest, or a function of the turn that returns them, as module:name.",
            *(TEXT, _place, ("guest",)),
        ),
        "ungoverned": Setting(
            "What happens to requests and tools of a guest that remit cannot govern.",
            word_of("refuse", "allow"),
            None,
            ("guest",),
        ),
        "repeat": Setting(
            "What happens to a tool call that was started before a crash, by tool: again, key, ask or tell.",
            REPEAT,
            _repeat,
            _ASKING,
        ),
        "on_lost": Setting(
            "What happens to a task whose conversation with its model cannot be continued after a crash: it fails, or "
            "the conversation restarts and the model is told which tools were used.",
            word_of("fail", "restart"),
            None,
            _ASKING,
        ),
        "before": Setting("Functions called before each tool call, as module:name.", NAMES, _places, _ASKING),
        "after": Setting("Functions called after each tool call, as module:name.", NAMES, _places, _ASKING),
        "retry": TableKind("How its queued tasks are retried.", _RETRY, judge=_with(RetryPolicy)),
    },
    many=True,
    one_of=WAYS,
    noun="an agent",
)

TOOL: Final = TableKind(
    "Tools that agents may use by name: a function as module:name, or a program.",
    {
        "program": Setting("The program, its name first and then its arguments.", TEXTS, _argv),
        "about": Setting("Its description for models.", TEXT),
        "polls": Setting("It asks for the state of something: equal results are fine.", YES),
        "input": Setting("How it gets its text [default: stdin].", word_of("stdin", "argument")),
    },
    many=True,
    one_of=("program",),
    short=Setting("A function, as module:name.", TEXT, _place),
)


_LINKS: Final = ("slack", "webhook", "answers")

CHANNEL: Final = TableKind(
    "Channels that deliver questions to people and receive answers, each under its name.",
    {
        "telegram": Setting('A bot of Telegram: its token, as "${NAME}" of an environment variable.', TEXT, _secret),
        "slack": Setting('The address of an incoming webhook of Slack, as "${NAME}".', TEXT, _secret),
        "webhook": Setting('The address that questions are posted to; "${NAME}" if it is a secret.', TEXT),
        "answers": Setting("The port that serves the links of Slack and webhooks.", WHOLE),
        "chat": Setting("The id of the chat.", WHOLE, None, ("telegram",)),
        "allow": Setting("The ids of the people whose answers count.", IDS, None, ("telegram",)),
        "api": Setting("Telegram's address, if not the usual one.", TEXT, None, ("telegram",)),
        "secret": Setting('The secret that signs the links, as "${NAME}"; the same for all.', TEXT, _secret, _LINKS),
        "base_url": Setting("The address at which people reach the links.", TEXT, None, ("slack", "webhook")),
        "host": Setting("The address to listen on [default: 127.0.0.1].", TEXT, None, ("answers",)),
    },
    many=True,
    one_of=CHANNELS,
    short=Setting("A channel of your own, as module:name.", TEXT, _place),
    judge=_channel,
    noun="a channel",
)

MCP_SERVER: Final = TableKind(
    "MCP servers, each under its name; agents may use the tools that are allowed here.",
    {
        "command": Setting("The command that starts it: a program, then its arguments.", TEXTS, _argv),
        "url": Setting("Its address, if it is running already.", TEXT),
        "allow": Setting("The tools that may be used, by name.", TEXTS),
        "pins": Setting("Digests of tools that must not change, by name.", TEXT_TABLE),
        "env": Setting(
            'Environment variables of its command; "${NAME}" stands for one of ours.', TEXT_TABLE, None, ("command",)
        ),
        "cwd": Setting("The folder that its command runs in [default: that of this file].", TEXT, None, ("command",)),
        "headers": Setting(
            'Headers of every request; "${NAME}" stands for a variable of ours.', TEXT_TABLE, None, ("url",)
        ),
        "timeout": Setting("The timeout of one call, in seconds [default: 60].", NUMBER, _seconds),
        "limit": Setting("The number of bytes of a result that are kept.", WHOLE),
        "opening": Setting("The timeout of its start, in seconds [default: 60].", NUMBER, _seconds),
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
    "When a model without progress is warned, refused and stopped; false switches a rule off.",
    {
        "off": Setting("Switch off every rule that is not set here.", YES),
        "same_ask": _loop("Equal requests to one agent in a row without a new result [default: 4].", "same_ask"),
        "any_ask": _loop("Equal requests to one agent, even with new results [default: 14].", "any_ask"),
        "refusals": _loop("Equal refusals after which a task is stopped [default: 3].", "refusals"),
        "strikes": _loop("Stopped tasks of an agent after which the run avoids it [default: 2].", "strikes"),
        "stale": _loop("Answers without a new result before tool calls are refused [default: 10].", "stale"),
        "stale_asks": _loop("Answers without a new result before delegations are refused [default: 8].", "stale_asks"),
        "echo": _loop("Repeated answers of an agent to a text that only grows [default: 6].", "echo"),
        "requests": _loop("Model requests of a run, over all its tasks [default: 1,000].", "requests"),
        "hide": Setting("Whether verbs that cannot succeed are hidden from models [default: true].", YES),
        "repeat_told": _loop("Equal requests after which a task is warned [default: 10].", "repeat_told"),
        "repeat_refused": _loop("Equal requests after which a task is refused [default: 20].", "repeat_refused"),
        "repeat_stopped": _loop("Equal requests after which a task is stopped [default: 30].", "repeat_stopped"),
        "same_handoff": _loop("Latest handoffs among which the same one is refused [default: 3].", "same_handoff"),
        "polls": Setting("Tools that ask for the state of something: equal results are fine.", TEXTS),
    },
)

STEP: Final = TableKind(
    "Its steps, each with an agent or a capability.",
    {
        "id": Setting("The id by which other steps name it.", TEXT),
        "title": Setting("The step in a few words.", TEXT),
        "description": Setting("The step in full.", TEXT),
        "agent": Setting("The agent that does it.", TEXT),
        "capability": Setting("The capability that is needed, in place of an agent.", TEXT),
        "after": Setting("The ids of the steps it depends on.", TEXTS),
        "payload": Setting("Whether its result is text or JSON.", word_of("text", "structured")),
        "schema": Setting("The JSON Schema of a structured result.", ARGUMENTS),
        "context": Setting(
            "The results it sees: those of the steps in `after`, or also of all steps before them.",
            word_of("direct", "transitive"),
        ),
        "memory_scope": Setting('"all": a summary of all results so far; a list of ids: one of those.', SCOPE),
        "retries": Setting("How often it is retried if it fails.", WHOLE),
        "data": Setting("Values for the agent, next to the text.", ARGUMENTS),
    },
    listed=True,
    needs=("id", "title"),
    judge=_step,
)


SCHEDULE: Final = TableKind(
    "Schedules, each under its name; a worker of the team sets them when it starts.",
    {
        "cron": Setting("The cron expression: minute, hour, day of month, month and day of week.", TEXT),
        "zone": Setting("The time zone, such as Europe/Berlin [default: UTC].", TEXT),
        "catch_up": Setting(
            "The runs to start if no worker ran at planned times [default: latest].", word_of(*CATCH_UP)
        ),
        "agent": Setting("The agent that gets the task [default: that of [run]].", TEXT),
        "coordinator": Setting("In place of an agent: the coordinator of a team; the task is the goal.", TEXT),
        "task": Setting("The task; without it, the plan of this file runs.", TEXT),
        "attempts": Setting("The number of attempts of a run in all.", WHOLE),
        "timeout": Setting("The time of one attempt, in seconds.", NUMBER, _seconds),
        "priority": Setting("The place in the queue, from -100 to 100.", WHOLE),
        "credits": Setting("The highest spending of a run.", AMOUNT, _amount),
        "tier": Setting("A named preset of bounds.", word_of(*TIERS)),
        "session": Setting("The session of all runs [default: a new one for each].", TEXT),
        "remembers": Setting("Whether runs start with the earlier conversation of the session.", YES),
        "tags": Setting("Tags of the runs.", TEXTS),
        "meta": Setting("Metadata of the runs.", ARGUMENTS),
    },
    many=True,
    needs=("cron",),
    noun="a schedule",
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
        "The defaults of `remit run`.",
        {
            "agent": Setting("The agent to call.", TEXT),
            "coordinator": Setting("In place of an agent: the coordinator that plans and combines the results.", TEXT),
            "credits": Setting("The highest spending of a run.", AMOUNT, _amount),
            "timeout": Setting("The timeout of a run, in seconds.", NUMBER, _seconds),
            "tier": Setting("A named preset of bounds.", word_of(*TIERS)),
        },
    ),
    "plan": TableKind(
        "The plan that `remit run` without a task carries out; with a coordinator, the plan that it follows.",
        {
            "goal": Setting("The goal of the plan.", TEXT),
            "concurrency": Setting(
                "The number of steps that run at once [default: 5].", WHOLE, _at_least_one("concurrency")
            ),
            "reveal": Setting("Whether the agents of the steps see the goal and the roster.", YES),
            "steps": STEP,
        },
    ),
    "schedules": SCHEDULE,
    "agents": AGENT,
    "tools": TOOL,
    "groups": TableKind(
        'Names for sets of tools: with db = ["query", "dump"] agents may be given, denied or approved "group:db".',
        {},
        many=True,
        short=Setting("The tools, by their names.", TEXTS),
    ),
    "bounds": TableKind(
        "The bounds of every run.",
        {
            "agents": _bound(NAMES, "agents", "The agents that may take part."),
            "tools": _bound(NAMES, "tools", "The tools that may be used."),
            "sees": _bound(NAMES, "sees", "The shared context that may be read."),
            "writes": _bound(NAMES, "writes", "The shared context that may be written."),
            "depth": _bound(WHOLE, "depth", "The number of nested delegations [default: 3]."),
            "deadline": _bound(MOMENT, "deadline", "The time by which every run must end."),
            "credits": _bound(AMOUNT, "credits", "The highest spending of a run."),
            "tokens": _bound(WHOLE, "tokens", "The number of tokens that a run may use."),
            "handoffs": _bound(WHOLE, "handoffs", "The number of handoffs in a run."),
            "members": _bound(WHOLE, "members", "The number of different agents in a run."),
            "tasks": _bound(WHOLE, "tasks", "The number of tasks in a run [default: 1,000]."),
            "requests": _bound(WHOLE, "requests", "Model requests in a run, instead of the 1,000 of loops."),
        },
    ),
    "policy": TableKind(
        "Rules that are not bounds.",
        {
            "concurrency": _policy(WHOLE, "concurrency", "Queued tasks that run at once, in all processes."),
            "handoffs": _policy(WHOLE, "handoffs", "The number of handoffs of one task."),
            "max_parallel_parts": _policy(WHOLE, "max_parallel_parts", "The number of parts of one parallel handoff."),
            "inbox": _policy(WHOLE, "inbox", "Waiting messages of one sender for one reader [default: 32]."),
            "artifact_bytes": _policy(WHOLE, "artifact_bytes", "The size of all artifacts of the workspace."),
            "run_artifact_bytes": _policy(WHOLE, "run_artifact_bytes", "The size of the artifacts that one run saves."),
            "spawns": _policy(WHOLE, "spawns", "The number of unfinished spawned tasks of one task [default: 5]."),
            "last_word": Setting("The part of a run's money that only its first task can spend.", AMOUNT, _amount),
            "short": _policy(word_of("refuse", "ask"), "short", "Too little money: refuse, or ask a person for more."),
            "reviews": _policy(WHOLE, "reviews", "How often people may send back one result [default: 3]."),
            "unknown_price": _policy(
                word_of("refuse", "tokens"),
                "unknown_price",
                "An unknown price: refuse the model, or count tokens.",
            ),
            "on_no_answer": _policy(
                word_of("reject", "approve"), "on_no_answer", "What happens if no one answers an approval."
            ),
            "on_failed_handoff": _policy(
                word_of("fail", "back"),
                "on_failed_handoff",
                "Whether a task goes back to the agent that handed it over if the new one fails.",
            ),
            "answer_days": _policy(NUMBER, "answer_days", "The number of days that people have to answer."),
            "needs_approval": Setting(
                "The function that says which hops a person must approve, as module:name.", TEXT, _place
            ),
            "around": Setting("Functions around every turn, the outermost first, as module:name.", NAMES, _places),
            "guards": Setting(
                "Guards of your own, in the order in which they judge a hop, as module:name.", NAMES, _places
            ),
            "classify": Setting(
                'The classifier that chooses the tier of a run without one: "rules", or a function as module:name.',
                TEXT,
                _classify,
            ),
            "secrets": Setting("Environment variables whose values are never written.", TEXTS),
        },
    ),
    "limits": TableKind(
        "Limits on spending and on started tasks in an hour, a day, a week or a month.",
        {
            "per": Setting("The period.", word_of(*HOURS)),
            "credits": Setting("The amount of money.", AMOUNT, _amount),
            "tokens": Setting("The number of tokens.", WHOLE),
            "tasks": Setting("The number of tasks that may start.", WHOLE),
            "agent": Setting('The agent; "*" for each.', TEXT),
            "session": Setting('The session; "*" for each.', TEXT),
            "by": Setting('The person who started the run; "*" for each.', TEXT),
        },
        listed=True,
        needs=("per",),
        judge=_with(Limit),
        noun="a limit",
    ),
    "breaker": TableKind(
        "The circuit breaker of failing agents.",
        {
            "failures": Setting("The number of failures in a row that open it [default: 3].", WHOLE),
            "cool_off": Setting("The cooldown until a probe, in seconds [default: 60].", NUMBER),
            "probe": Setting("The timeout of the probe, in seconds.", NUMBER),
        },
        judge=_breaker,
    ),
    "certainty": TableKind(
        "How clear a match must be for a delegation by capability.",
        {
            "score": Setting("The least score, from 0 to 1 [default: 0.22].", NUMBER),
            "margin": Setting("The least lead over the second [default: 0.08].", NUMBER),
        },
        judge=_certainty,
    ),
    "loops": LOOPS,
    "retry": TableKind(
        "How queued tasks are retried, for agents without a setting of their own.",
        _RETRY,
        judge=_with(RetryPolicy),
    ),
    "channels": CHANNEL,
    "mcp": MCP_SERVER,
    "prices": TableKind(
        "Your own prices of models: for a million tokens, under the model's name in quotes.",
        {
            "input": _rate("input", "Input."),
            "output": _rate("output", "Output."),
            "cached_input": _rate("cached_input", "Input read from a cache."),
            "cache_written": _rate("cache_written", "Input written to a cache."),
            "cache_written_1h": _rate(
                "cache_written_1h", "Input written to a cache for an hour [default: cache_written]."
            ),
            "request": _rate("request", "An amount for every request."),
        },
        many=True,
        needs=("input", "output"),
    ),
    "store": TableKind(
        "The store [default: in memory].",
        {
            "path": Setting("A file, relative to the folder of this one; a list for several.", NAMES, _file),
            "address": Setting(
                "A server: postgresql://user@host/database; a list for several databases.", NAMES, _server
            ),
            "workspace": Setting("The workspace within it.", TEXT, workspace_name),
        },
    ),
    "serving": TableKind(
        "What a process does for the queue.",
        {
            "concurrency": _serving(WHOLE, "concurrency", "The number of queued tasks it runs at once."),
            "heartbeat_timeout": _serving(
                NUMBER, "heartbeat_timeout", "The seconds without a heartbeat after which others take over."
            ),
            "keep_days": _serving(NUMBER, "keep_days", "Days that ended runs are kept [default: forever]."),
            "keep_events": _serving(WHOLE, "keep_events", "The number of events that are kept in memory."),
        },
    ),
}

SCRIPT_LINE: Final = TableKind(
    "The answers of a scripted model: for each agent a list of lines. The first that applies is taken, and the "
    "next one when the same tool returns again.",
    {
        "when": Setting("Words of the task that this line is for [default: every task].", TEXT),
        "after": Setting("The tool that has just returned; without it the line is for the beginning.", TEXT),
        "say": Setting("The answer. {task}, {result} and {NAME OF A TOOL} stand for the task and for results.", TEXT),
        "call": Setting("The tool to call.", TEXT),
        "with": Setting("Its arguments.", ARGUMENTS),
    },
    many=True,
    one_of=("say", "call"),
)

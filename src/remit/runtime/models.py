"""Registering model agents, and agents of other frameworks.

The code that asks models is in adapters, which are imported when the first such agent is registered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias, cast, get_args, get_type_hints

from remit.core import allow
from remit.core.allow import ANY, NamesGiven
from remit.core.backoff import USUAL, RetryPolicy
from remit.core.card import TEXT_LIMIT, Card
from remit.core.checks import callable_, counted, items, meant, of_type, one_of, yes_or_no
from remit.core.records import NamedTuple, TypedDict
from remit.core.scope import SeesGiven
from remit.core.session import memory
from remit.core.times import SpanGiven, span
from remit.core.toolgroups import GROUP, GROUPS, Repeat, repeat_word
from remit.core.toolgroups import tools as tools_of
from remit.core.values import canonical, shown
from remit.engine.directory import AgentFunction, AgentRules, OnLost, is_interactive
from remit.errors import BadInput
from remit.ports.models import KEY

VERBS: Final = f"{GROUP}agents"
CONTEXT: Final = f"{GROUP}context"
PEOPLE: Final = f"{GROUP}people"
_GROUPED: Final[frozenset[str]] = frozenset[str]().union(*GROUPS.values())
# Names with a fixed meaning in an agent: a tool of this name would replace it.
_RESERVED: Final = {
    **dict.fromkeys(sorted(GROUPS["agents"] | GROUPS["context"] | GROUPS["people"]), "a verb of remit"),
    "final_result": "how a model hands in its result",
}
_HAD: Final = GROUPS["agents"] | GROUPS["context"] | GROUPS["people"]  # verbs that models have without listing them
ITERATIONS: Final = 50


class AboutModel(TypedDict, total=False):
    """The keywords of a model agent: its card, its tools and their rules, and its models with their keys."""

    role: str
    can: str | Iterable[str]
    asks: NamesGiven
    reads: SeesGiven
    writes: SeesGiven
    trusted_output: bool
    concurrency: int | None
    retry: RetryPolicy
    timeout: SpanGiven | None
    instructions: str
    ask_person: bool
    tools: Iterable[Any]
    deny: NamesGiven
    needs_approval: bool
    review: bool
    approve_tools: Iterable[str]
    before: Iterable[Callable[..., Any]]
    after: Iterable[Callable[..., Any]]
    iterations: int
    memory: Literal["session", "whole"] | None
    repeat: Mapping[str, Repeat] | Repeat
    polls: Iterable[str]
    on_lost: OnLost
    fallback: Iterable[Any]
    keys: Any
    base_url: Any
    output: Any
    max_tokens: int
    temperature: float
    settings: Mapping[str, Any]


class AboutGuest(AboutModel, total=False):
    """The further keywords of a guest: the dependencies that its framework passes to its tools, and whether requests
    and tools that remit cannot govern are refused or allowed."""

    deps: Any
    ungoverned: Literal["refuse", "allow"]


Said: TypeAlias = Mapping[str, Any]  # the keywords as given
# A guest is unchanged, unless its owner passes one of these: then it also gets the verbs of context.
_SHARES: Final = ("asks", "reads", "writes", "ask_person")
_UNGOVERNED: Final = ("refuse", "allow")
_ON_LOST: Final = get_args(OnLost)
# Settings that a guest brings itself; passing them here would have no effect.
_BROUGHT: Final = ("tools", "fallback", "keys", "base_url", "max_tokens", "temperature", "settings")
_CARD: Final = (
    *("role", "can", "asks", "reads", "writes", "trusted_output", "concurrency", "instructions", "ask_person"),
    *("needs_approval", "review"),
)


class Registered(NamedTuple):
    """An agent that is ready to be added: its card, its function, and the rules of its tasks and tools."""

    card: Card
    answer: AgentFunction
    retry: RetryPolicy
    rules: AgentRules


class ToolShelf:
    """Registered tools, which agents may use by name."""

    def __init__(self, grouped: Iterable[Iterable[str]] = ()) -> None:
        self._grouped = frozenset[str]().union(*grouped)  # tool names in the owner's groups
        self._tools: dict[str, Any] = {}
        self._repeat: dict[str, Repeat] = {}
        self._polls: set[str] = set()

    @property
    def names(self) -> frozenset[str]:
        """The names of all registered tools, and of the tools in the owner's groups."""
        return self._grouped | self._tools.keys()

    def put(self, tool: Any, repeat: Repeat | None = None, *, polls: bool = False) -> None:
        name = tool_name(tool)
        yes_or_no(polls, "polls")
        if name in self._tools:
            if not is_interactive():
                raise BadInput(f"there is a tool '{name}' already; tools have names of their own")
            self._repeat.pop(name, None)
            self._polls.discard(name)
        if repeat is not None:
            self._repeat[name] = repeat_word(repeat, name)
        self._tools[name] = tool
        if polls:
            self._polls.add(name)

    def find(self, given: Iterable[Any]) -> list[Any]:
        """Return the tools: given directly, by name, or as a group. Raise `BadInput` for an unknown one."""
        listed: dict[str, Any] = {}
        for one in items(given, "tools takes a list of functions and of names"):
            for tool in self._tools_named(one) if isinstance(one, str) else (one,):
                name = tool_name(tool)
                if listed.setdefault(name, tool) is not tool:
                    raise BadInput(f"two of the tools are called {shown(name)}; a model cannot tell them apart")
                if name in _RESERVED:
                    raise BadInput(f"{shown(name)} is {_RESERVED[name]}; give your tool another name")
        return [*listed.values()]

    def repeats(self, tools: Iterable[Any]) -> dict[str, Repeat]:
        """Return the `repeat` of each tool that has one, by name: as registered, as described, or by its function's
        parameters."""
        words: dict[str, Repeat] = {}
        for tool in tools:
            name = tool_name(tool)
            if (word := self._repeat.get(name) or _own_repeat(tool)) is not None:
                words[name] = word
        return words

    def polls(self, tools: Iterable[Any]) -> frozenset[str]:
        """Return the names of the tools that poll: as registered, or as described."""
        described = {tool_name(tool): getattr(tool, "polls", False) is True for tool in tools}
        return frozenset(name for name, polls in described.items() if polls or name in self._polls)

    def _tools_named(self, name: str) -> list[Any]:
        if name in (VERBS, CONTEXT, PEOPLE):
            return []  # models have these verbs without listing them
        if name.startswith(GROUP):
            return self._group(name)
        if name not in self._tools:
            there = ", ".join(sorted(self._tools)) or "none yet"
            raise BadInput(
                f"there is no tool {shown(name)}; give the function, or register it first with rt.tool; "
                f"there is {there}{meant(name, self._tools)}"
            )
        return [self._tools[name]]

    def _group(self, name: str) -> list[Any]:
        members = GROUPS.get(name.removeprefix(GROUP))
        if members is None:
            known = ", ".join(GROUP + group for group in sorted(GROUPS))
            raise BadInput(f"there is no tool group {shown(name)}; the groups are {known}")
        found = [self._tools[one] for one in sorted(members) if one in self._tools]
        if not found:
            raise BadInput(f"no tool of {name} is registered: rt.tool takes {', '.join(sorted(members))}")
        return found


def _own_repeat(tool: Any) -> Repeat | None:
    """Return the tool's own `repeat`, or None. A function with an idempotency key can be called again with the same
    key."""
    described = getattr(tool, "repeat", None)
    if described is not None:
        return repeat_word(described, tool_name(tool))
    function = getattr(tool, "function", tool)
    try:
        return "key" if KEY in inspect.signature(function).parameters else None
    except (TypeError, ValueError):  # some built-in functions have no signature
        return None


def tool_name(tool: object) -> str:
    """Return the name of a tool: its own, or that of the function. Raise `BadInput` if it has none."""
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not isinstance(name, str) or not (callable(tool) or hasattr(tool, "name")):
        raise BadInput(f"a tool is a function, or has a name, not {shown(tool)}")
    return name


def model_agent(name: str, model: Any, about: Said, shelf: ToolShelf, prompt: Any = None) -> Registered:
    """Return an agent whose turns are answered by a model. `about` has the keywords of `rt.add`, `shelf` the tools that
    they name, `prompt` replaces the function that writes the prompt. A model with the method `answering`, such as a
    script without a framework, answers for itself; any other model needs `remit[llm]`."""
    tools = shelf.find(about.get("tools", ()))
    names = frozenset(map(tool_name, tools))
    card, rules = _card(name, names, about), _rules(names, about, shelf.repeats(tools), shelf.names)
    rules = rules._replace(polls=rules.polls | shelf.polls(tools))
    if callable(plain := getattr(model, "answering", None)):  # a script, if no framework is installed
        answer = cast("AgentFunction", plain(tools, verbs=_asks(card), prompt=prompt or _prompt))
        return Registered(card, answer, about.get("retry", USUAL), rules)
    adapter = _adapter("pydantic_ai", "remit[llm]")
    answer = adapter.ModelAgent(
        name=card.name,
        models=[model, *items(about.get("fallback", ()), "fallback takes a list of models")],
        instructions=card.instructions,
        tools=tools,
        verbs=_verbs(card),
        output=about.get("output"),
        keys=about.get("keys", ()),
        base_url=about.get("base_url"),
        max_tokens=about.get("max_tokens", adapter.MAX_TOKENS),
        settings=_settings(about),
        prompt=prompt or _prompt,
    )
    return Registered(card, answer, about.get("retry", USUAL), rules)


def function_agent(function: Any, name: str, model: Any, about: Said, shelf: ToolShelf) -> Registered:
    """Return an agent made from a function: its docstring is the instructions, its return value the prompt, and its
    return annotation the form of the result."""
    callable_(function, "an agent with a model is made of a function")
    given = {**about}
    given.setdefault("instructions", inspect.getdoc(function) or "")
    output = _returns(function)
    if output not in (None, type(None), str, Any):
        given.setdefault("output", output)

    async def prompt(turn: Any) -> str:
        said = function(turn)
        said = await said if inspect.isawaitable(said) else said
        return await turn.prompt() if said is None else str(said)

    return model_agent(name or function.__name__, model, given, shelf, prompt)


def guest_agent(guest: Any, about: Said) -> Registered:
    """Return a guest: an agent of another framework. `about` has the keywords of `rt.add`. Raise `BadInput` for a
    keyword that the guest brings itself, or if it has no name."""
    if brought := [name for name in _BROUGHT if name in about]:
        raise BadInput(
            f"add takes no '{brought[0]}' for an agent of another framework, which brings its own; set it where the "
            "agent is created"
        )
    name = about.get("name") or getattr(guest, "name", None) or ""
    if not name:
        raise BadInput("name the guest: rt.add(guest, name='reviewer')")
    card = Card("guest", asks=about.get("asks", ()), ask_person=about.get("ask_person", False))
    members = frozenset[str]() if card.asks is ANY else card.asks
    join = import_module("remit.adapters.joining").joined
    how = {"prompt": _prompt, "ungoverned": one_of(about.get("ungoverned", "refuse"), _UNGOVERNED, "ungoverned")}
    if "deps" in about:
        how["deps"] = about["deps"]
    shares = any(about.get(name) for name in _SHARES)
    verbs = _verbs(card) if shares else ()
    answer = join(guest, verbs=verbs, members=members, **how)
    names = cast("frozenset[str] | None", answer.tool_names)
    about = {"instructions": _storable(getattr(answer, "instructions", "")), **about}
    made = _card(str(name), names, about, shares=shares)
    rules = _rules(names, about, {})._replace(varies=bool(getattr(answer, "tools_vary", False)))
    return Registered(made, answer, about.get("retry", USUAL), rules)


def members(guest: Registered) -> list[Registered]:
    """Return the agents that a guest has as tools, as members. The guest's retries and tool rules apply to them too."""
    return [_member(one, guest) for one in getattr(guest.answer, "members", ())]


def _member(answer: Any, guest: Registered) -> Registered:
    names = cast("frozenset[str] | None", answer.tool_names)
    approve_tools = guest.rules.approve_tools if names is None else guest.rules.approve_tools & names
    card = Card(
        answer.name,
        _storable(answer.role),
        tools=ANY if names is None else names,
        deny=guest.card.deny,
        instructions=_storable(answer.instructions),
    )
    return asking_members(
        Registered(card, answer, guest.retry, guest.rules._replace(approve_tools=approve_tools, memory=""))
    )


def asking_members(agent: Registered) -> Registered:
    """Return the agent with the right to ask the members that it has as tools. It has no verb for that, only the tools;
    like the verb, they may be repeated, because the delegation is recorded."""
    asked: frozenset[str] = getattr(agent.answer, "asks", frozenset())
    if not asked:
        return agent
    card = replace(agent.card, asks=allow.either(agent.card.asks, frozenset(map(canonical, asked))))
    repeat: dict[str, Repeat] = {**dict.fromkeys(asked, "again"), **agent.rules.repeat}
    return agent._replace(card=card, rules=agent.rules._replace(repeat=repeat))


# -- inside --------------------------------------------------------------------------------------------------


async def _prompt(turn: Any) -> str:
    return await turn.prompt()


def _storable(instructions: str) -> str:
    """Return the part of a guest's instructions that a card can hold. Its model gets them whole."""
    return instructions.replace("\0", "").encode(errors="ignore").decode()[:TEXT_LIMIT]


def _settings(about: Said) -> Said:
    """Return the settings that go to the provider with every request."""
    settings: object = about.get("settings", {})
    of_type(settings, Mapping, "settings takes a mapping, such as {'top_p': 0.9}")
    given = cast("Said", settings)
    if "temperature" not in about:
        return given
    if "temperature" in given:
        raise BadInput("temperature is given twice: as temperature=... and in settings; pass it once")
    return {**given, "temperature": about["temperature"]}


def _verbs(card: Card) -> tuple[Any, ...]:
    """Return the verbs of a model; they are imported late, because they are in a higher layer, like the adapters that
    offer them."""
    return import_module("remit.verbs").verbs_for(asks=_asks(card), person=card.ask_person)


def _asks(card: Card) -> bool:
    return card.asks is ANY or bool(card.asks)


def _card(name: str, tools: frozenset[str] | None, about: Said, *, shares: bool = True) -> Card:
    """Return the card: its tools are those of the agent, or any if they are known only while it runs."""
    given: dict[str, Any] = {key: about[key] for key in _CARD if key in about}
    asks = _asks(Card("any", asks=about.get("asks", ())))
    verbs = _verb_groups(asks=asks, person=about.get("ask_person", False)) if shares else []
    return Card(
        name,
        **given,
        tools=ANY if tools is None else [*sorted(tools), *verbs],
        deny=about.get("deny", ()),
    )


def _verb_groups(*, asks: bool, person: bool) -> list[str]:
    """Return the groups of verbs among a model's tools: those of context always."""
    return [CONTEXT, *((VERBS,) if asks else ()), *((PEOPLE,) if person else ())]


def _rules(
    tools: frozenset[str] | None, about: Said, own: Mapping[str, Repeat], elsewhere: frozenset[str] | None = None
) -> AgentRules:
    """Return the rules of an agent with these tools. `own` is the `repeat` of each. Raise `BadInput` for a tool that
    does not exist. If `tools` is None, they are known only while the agent runs, and `expects` has the named ones.
    `deny` may also name a tool of a group or of other agents (`elsewhere`). If `elsewhere` is None, the agent is a
    guest, whose tools may run unknown agents: then `deny` may have any name, except one that resembles a known name."""
    given = [str(one) for one in items(about.get("approve_tools", ()), "approve_tools takes a list of tools")]
    names = (tools or frozenset()) | _HAD
    wanted, denied = _single(given), _single(_denied_names(about.get("deny", ())))
    polls = frozenset(str(one) for one in items(about.get("polls", ()), "polls takes a list of tools"))
    expects = frozenset[str]()
    if tools is None:
        expects = ((wanted | denied) - names) | _named_in(about.get("repeat", {})) | polls
    else:
        _must_be_there("approve_tools", wanted, names)
        known = names | (elsewhere or frozenset()) | _GROUPED
        _must_be_there("polls", polls, tools)
        _must_be_there("deny", denied if elsewhere is not None else _slips(denied, known), known)
    before, after = _hooks(about.get("before", ()), "before"), _hooks(about.get("after", ()), "after")
    most = counted(about.get("iterations", ITERATIONS), "iterations", least=1)
    repeat: dict[str, Repeat] = {**own, **_repeats(about.get("repeat", {}), tools)}
    on_lost = cast("OnLost", one_of(about.get("on_lost", "fail"), _ON_LOST, "on_lost"))
    wanted |= _approved_groups(given, None if tools is None else names)
    return AgentRules(
        wanted,
        before,
        after,
        most,
        repeat,
        converses=True,
        on_lost=on_lost,
        expects=expects,
        memory=memory(about.get("memory")),
        polls=polls,
        timeout=span(timeout, "timeout") if (timeout := about.get("timeout")) is not None else 0,
    )


def _denied_names(deny: Any) -> Iterable[object]:
    """Return the denied names. A single name stands for a list of one; denying everything names none."""
    if deny is ANY:
        return ()
    return (deny,) if isinstance(deny, str) else items(deny, "deny takes a list of tools")


def _single(given: Iterable[object]) -> frozenset[str]:
    """Return the tool names among names of tools and groups."""
    return frozenset(str(one) for one in given if not str(one).startswith(GROUP) and one != "*")


def _named_in(repeat: object) -> frozenset[str]:
    return frozenset(map(str, cast("Mapping[object, object]", repeat))) if isinstance(repeat, Mapping) else frozenset()


def _slips(named: frozenset[str], names: frozenset[str]) -> frozenset[str]:
    return frozenset(one for one in named if meant(one, names))


def _must_be_there(word: str, named: frozenset[str], names: frozenset[str]) -> None:
    if strange := sorted(named - names):
        raise BadInput(f"{word} names '{strange[0]}', which is no tool of this agent{meant(strange[0], names)}")


def _approved_groups(given: Iterable[str], names: frozenset[str] | None) -> frozenset[str]:
    """Return the agent's tools that belong to the named groups. Raise `BadInput` if it has none of a group. If its
    tools are not known yet (None), return all tools of the groups."""
    found = frozenset[str]()
    for group in (one for one in given if one.startswith(GROUP)):
        members = cast("frozenset[str]", tools_of([group], "approve_tools"))
        if names is not None and not members & names:
            there = ", ".join(sorted(names))
            raise BadInput(f"approve_tools names '{group}', of which this agent has no tool; it has {there}")
        found |= members if names is None else members & names
    return found


def _repeats(given: object, tools: frozenset[str] | None) -> dict[str, Repeat]:
    """Return the `repeat` settings: by tool, or one word for all. They say what happens to a call that may have been
    made before a crash."""
    if isinstance(given, str):
        if tools is None:
            raise BadInput("pass repeat= by tool for this agent, {'search': 'again'}: its tools are not known yet")
        return {tool: repeat_word(given, tool) for tool in tools}
    if not isinstance(given, Mapping):
        raise BadInput(f"repeat takes a dict of tools, such as {{'search': 'again'}}, not {shown(given)}")
    named = {str(tool): word for tool, word in cast("Mapping[object, object]", given).items()}
    if tools is not None and (strange := sorted(named.keys() - tools)):
        raise BadInput(f"repeat names '{strange[0]}', which is no tool of this agent{meant(strange[0], tools)}")
    return {tool: repeat_word(word, tool) for tool, word in named.items()}


def _hooks(given: object, word: str) -> tuple[Callable[..., Any], ...]:
    hooks = items(given, f"{word} takes a list of functions")
    for hook in hooks:
        callable_(hook, f"{word} takes a list of functions")
    return tuple(cast("list[Callable[..., Any]]", hooks))


def _returns(function: Any) -> Any:
    try:
        return get_type_hints(function).get("return", None)
    except NameError as error:
        raise BadInput(
            f"what {function.__name__} returns cannot be read: {error}; define it before the agent"
        ) from None


def _adapter(name: str, extra: str) -> Any:
    try:
        return import_module(f"remit.adapters.{name}")
    except ImportError as error:
        raise BadInput(f"an agent with a model needs pip install '{extra}' ({error})") from error


def checked_keywords(given: Said, verb: str) -> Said:
    """Return the keywords of an agent. Raise `BadInput` for an unknown one."""
    known = (AboutGuest if verb == "add" else AboutModel).__annotations__.keys() | {"name"}
    if strange := sorted(given.keys() - known):
        raise BadInput(f"{verb} takes no '{strange[0]}'{meant(strange[0], known)}")
    of_type(given.get("retry", USUAL), RetryPolicy, "retry takes RetryPolicy(...)")
    return given

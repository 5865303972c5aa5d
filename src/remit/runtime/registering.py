"""The team of a runtime: agents are registered, listed, and replaced in tests."""

import inspect
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, Unpack, cast, overload

from remit.core import checks
from remit.core.allow import NamesGiven
from remit.core.backoff import USUAL, RetryPolicy
from remit.core.card import Card
from remit.core.checks import keywords, of_type
from remit.core.records import TypedDict
from remit.core.scope import SeesGiven
from remit.core.session import memory
from remit.core.times import SpanGiven, span
from remit.core.toolgroups import Repeat, expanded
from remit.core.values import canonical, shown
from remit.engine import asking
from remit.engine.directory import (
    USUAL_RULES,
    Agent,
    AgentFunction,
    AgentRules,
    Around,
    GivenFunction,
    OwnersGuard,
)
from remit.errors import BadInput, NotFound
from remit.runtime import models
from remit.runtime.models import AboutGuest, AboutModel, Registered, ToolShelf
from remit.runtime.opening import Opening

if TYPE_CHECKING:
    from remit.runtime.stacks import AgentStack

AnyAgent = TypeVar("AnyAgent", bound=GivenFunction)
AnyTool = TypeVar("AnyTool")
AnyAround = TypeVar("AnyAround", bound=Around)
AnyGuard = TypeVar("AnyGuard", bound=OwnersGuard)
_TOOLS: Final = ("tools", "deny", "approve_tools")  # keywords that name tools
_NO_GATEWAY: Final = (
    "add takes no 'gateway': the models of a guest go through the turn already, and a program says it itself: "
    "program([...], gateway=[...]); for a client of your own code, use gateway_for(turn, [...]) of "
    "remit.adapters.gateway.clients"
)


class About(TypedDict, total=False):
    """The fields of a card except its name, how the agent's queued tasks are retried, the time of one attempt, and the
    form of its results."""

    role: str
    can: str | Iterable[str]
    asks: NamesGiven
    reads: SeesGiven
    writes: SeesGiven
    deny: NamesGiven
    trusted_output: bool
    needs_approval: bool
    review: bool
    instructions: str
    ask_person: bool
    tools: NamesGiven
    concurrency: int | None
    memory: Literal["session", "whole"] | None
    retry: RetryPolicy
    timeout: SpanGiven | None
    output: Any


class Modelled(TypedDict):
    """The keyword that makes a model the agent."""

    model: object


class AboutAdded(AboutGuest, total=False):
    """The keywords of a card with a function, and those of a guest."""

    name: str
    rules: AgentRules


class HasTeam:
    """Agents: functions, models, and guests from other frameworks; and tools that they may use by name."""

    _opening: Opening
    _shelf: ToolShelf

    @overload
    def agent(self, function: AnyAgent, /) -> AnyAgent: ...
    @overload
    def agent(self, name: str = "", /, **about: Unpack[About]) -> Callable[[AnyAgent], AnyAgent]: ...
    @overload
    def agent(
        self, name: str = "", /, *, model: object, **about: Unpack[AboutModel]
    ) -> Callable[[AnyTool], AnyTool]: ...
    @keywords(About, AboutModel, Modelled)
    def agent(self, what: Any = "", /, **about: Any) -> Any:
        """Register a function as an agent: `@rt.agent`, or `@rt.agent("name", can="...", asks=[...])`. A plain function
        runs in a thread. With `output`, a type or a JSON Schema, a result that does not fit fails the task. `timeout`
        is the time of one attempt in seconds, `concurrency` how many of its tasks run at once, and `retry` how its
        queued tasks are retried.

        With `model="openai:gpt-5"` the model is the agent: the docstring is its instructions, the function's return
        value is the prompt (None: `turn.prompt()`), and its return annotation is the form of the result. It takes the
        keywords of `model_agent`.
        """
        if "model" in about:
            return lambda function: self._add_function_agent(function, what, about)  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType] - it gives back what it is given
        asking.checked("agent", about, About)
        given = cast("About", about)
        if callable(what):
            return self._register(what, "", given)
        return lambda function: self._register(function, what, given)  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]

    @overload
    def add(
        self,
        card: Card,
        answer: GivenFunction,
        *,
        retry: RetryPolicy = USUAL,
        rules: AgentRules = USUAL_RULES,
        timeout: SpanGiven | None = None,
        output: Any = None,
    ) -> None: ...
    @overload
    def add(self, card: object, /, *, name: str = "", **about: Unpack[AboutGuest]) -> None: ...
    @keywords(AboutAdded)
    def add(self, card: Any, answer: GivenFunction | None = None, **about: Any) -> None:
        """Register a card with a function of a turn, or with an object that has `__call__`, plain or async.

        Or register a guest: an agent of pydantic-ai or openai-agents, or a LangGraph graph: `rt.add(agent,
        asks=["coder"])`. `deps` are the dependencies that its framework passes to its tools, or a function of the turn
        that returns them. Agents that it has as tools become members under the names of the tools. With
        `ungoverned="allow"`, agents that its tools run, and tools that remit cannot govern, are left alone, and their
        spending is not counted.
        """
        if "gateway" in about:
            raise BadInput(_NO_GATEWAY)
        if answer is None and hasattr(card, "outside"):  # a program, or an agent of another server, which has a name
            about = dict(about)
            rest = {name: about.pop(name) for name in ("retry", "rules", "timeout", "output") if name in about}
            name = about.pop("name", "") or getattr(card, "name", "")
            if not name:
                raise BadInput("name the program: rt.add(program([...]), name='porter')")
            self.add(Card(name, **about), card, **rest)
            return
        if answer is None and not isinstance(card, Card):
            found = models.guest_agent(card, self._ungrouped(models.checked_keywords(about, "add")))
            self.add(found.card, found.answer, retry=found.retry, rules=found.rules, output=about.get("output"))
            return
        of_type(card, Card, "add takes a Card and what answers for it, or an agent of another framework")
        checks.refuse_strange("add", about, ("retry", "rules", "timeout", "output"))
        retry = about.get("retry", USUAL)
        rules = _rules(about.get("rules", USUAL_RULES), answer, about.get("timeout"))
        of_type(retry, RetryPolicy, "retry takes RetryPolicy(...)")
        polices = getattr(answer, "polices_tools", True)
        unseen = [] if polices else [card.tools, card.deny]
        unasked = rules.approve_tools if not getattr(answer, "approves_tools", polices) else None
        if any(unseen) or unasked:
            what, it, there = cast("Any", answer).outside
            raise BadInput(
                f"'{card.name}' is {what}, and remit does not see which tools {it} uses: leave out tools and deny, "
                f"and set them {there}; needs_approval=True on the card asks a person before it works at all"
            )
        function = _async_function(card, answer)
        if about.get("output") is not None:
            function = forms().FormedAgent(function, forms().form_of(about["output"], "output"))
        agent = models.asking_members(Registered(card, function, retry, rules))
        fresh = [one for one in models.members(agent) if not self._has(one)]
        for one in (agent, *fresh):
            self._opening.directory.add(Agent(*one))

    @keywords(AboutModel)
    def model_agent(self, name: str, model: object, **about: Unpack[AboutModel]) -> None:
        """Register a model with tools as an agent: `rt.model_agent("coder", "openai:gpt-5", tools=[read_file])`.

        `tools` are functions, or names of those registered with `rt.tool`. `deny` are tools that it never uses,
        `approve_tools` tools that a person approves each time; `before` and `after` are called around each tool call.
        `fallback` are models to try if the first does not answer, `keys` are names of environment variables with keys,
        and `output` is the form of the result.
        """
        given = self._ungrouped(models.checked_keywords({**about}, "model_agent"))
        found = models.model_agent(name, model, given, self._shelf)
        self.add(found.card, found.answer, retry=found.retry, rules=found.rules)

    @overload
    def tool(self, function: AnyTool, *, repeat: Repeat | None = None, polls: bool = False) -> AnyTool: ...
    @overload
    def tool(
        self, function: None = None, *, repeat: Repeat | None = None, polls: bool = False
    ) -> Callable[[AnyTool], AnyTool]: ...
    def tool(self, function: Any = None, *, repeat: Repeat | None = None, polls: bool = False) -> Any:
        """Register a tool that agents may use by name: `@rt.tool`, or `@rt.tool(repeat="again")`.

        `repeat` says what happens to a call that may have been made before a crash: `"again"` repeats it, `"key"`
        repeats it with the same `idempotency_key` (the default for a function with that parameter), `"ask"` asks a
        person, and `"tell"` tells the model, which decides. `polls=True` says that the tool asks for the state of
        something, so equal results are fine.
        """
        if function is None:
            return partial(self.tool, repeat=repeat, polls=polls)
        self._shelf.put(function, repeat, polls=polls)
        return function

    def around(self, function: AnyAround) -> AnyAround:
        """Put a function around every turn of every agent: `@rt.around`, then `async def timing(turn, go): ...`.

        `await go()` runs the turn and returns its answer; a handoff is a `Command`. The function returns the answer of
        the turn. It may change the answer, raise to fail the task, or return without `go`, and the agent is not called.
        The first function that is registered is outermost. A retried or resumed task runs it again, like the agent.
        """
        from remit.engine.around import AroundTurns

        self._opening.directory.surround(AroundTurns(function))
        return function

    def guard(self, function: AnyGuard) -> AnyGuard:
        """Register a guard of your own: `@rt.guard`, then `def office_hours(hop): ...` of a `WantedHop`.

        It judges every task that a person starts and every call of an agent, after remit's own guards. It returns None
        for yes and a reason for no, which the asker gets as `Refused` with the rule `guard.office_hours`. It must be a
        plain function without side effects: one hop may be judged more than once. If it raises, the asker's task fails.
        """
        from remit.engine.guarding import OwnGuard

        self._opening.directory.guard(OwnGuard(function))
        return function

    def _has(self, member: Registered) -> bool:
        """Whether an agent that a guest has as a tool is already a member, because another guest has it too."""
        there = self._opening.directory.get(member.card.name)
        if there is None:
            return False
        if getattr(there.answer, "agent", None) is getattr(member.answer, "agent", None):
            return True
        raise BadInput(
            f"the tool '{member.card.name}' is an agent and becomes a member under that name, but there is already an "
            f"agent '{there.card.name}'; give the tool another name: as_tool(tool_name=...)"
        )

    def _add_function_agent(self, function: Any, name: Any, about: dict[str, Any]) -> Any:
        model = about.pop("model")
        given = self._ungrouped(models.checked_keywords(about, "agent"))
        found = models.function_agent(function, name, model, given, self._shelf)
        self.add(found.card, found.answer, retry=found.retry, rules=found.rules)
        return function

    def cards(self) -> list[Card]:
        """Return the cards of all registered agents, by name."""
        return self._opening.directory.cards()

    def stack(self, name: str) -> "AgentStack":
        """Return how an agent is configured: its models and keys, tools, approvals, hooks, functions around its turns
        and limits. Raise `NotFound` if there is no such agent."""
        from remit.runtime.stacks import stack_of

        agent = self._opening.directory.get(canonical(name))
        if agent is None:
            raise NotFound(f"there is no agent {shown(name)}; there are {', '.join(self._opening.directory.names())}")
        return stack_of(agent, self._opening.directory.guards)

    @contextmanager
    def override(self, **agents: GivenFunction) -> Generator[Self]:
        """Replace the functions of these agents while the body runs, for tests; their cards stay."""
        directory = self._opening.directory
        replaced: list[Agent] = []
        try:
            for name, answer in agents.items():
                agent = directory.get(canonical(name))
                if agent is None:
                    there = ", ".join(directory.names())
                    raise BadInput(f"there is no agent {shown(name)} to override; there are {there}")
                replaced.append(agent)
                function = _async_function(agent.card, answer)
                formed = cast("Any", agent.answer)
                if isinstance(formed, forms().FormedAgent):
                    function = forms().FormedAgent(function, formed.form)  # results of tests must fit too
                directory.replace(Agent(agent.card, function, agent.retry, agent.rules))
            yield self
        finally:
            for agent in replaced:
                directory.replace(agent)

    def _ungrouped(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the keywords of an agent with the owner's tool groups replaced by their members."""
        own = self._opening.settings.policy.tool_groups
        return {**about, **{key: expanded(about[key], own) for key in _TOOLS if own and key in about}}

    def _register(self, function: Any, name: str, about: About) -> Any:
        rest = {**self._ungrouped(about)}
        retry, rules, output = rest.pop("retry", USUAL), USUAL_RULES, rest.pop("output", None)
        timeout = rest.pop("timeout", None)
        if word := memory(rest.pop("memory", None)):
            rules = rules._replace(memory=word)
        card = Card(name or getattr(function, "__name__", ""), **rest)
        self.add(card, function, retry=retry, rules=rules, timeout=timeout, output=output)
        return function


def forms() -> Any:
    """Return the module that checks the forms of results, imported when the first is given."""
    return import_module("remit.engine.forms")


def _rules(rules: object, answer: object, timeout: SpanGiven | None) -> AgentRules:
    """Return the rules of an agent. If the owner set no `iterations` or `timeout`, use those of the agent itself: a
    program makes more requests than a model agent, and a coding agent works longer."""
    given = of_type(rules, AgentRules, "rules takes AgentRules(...)")
    if given.iterations == USUAL_RULES.iterations and (requests := getattr(answer, "iterations", 0)):
        given = given._replace(iterations=requests)
    if timeout is None and not given.timeout:
        timeout = getattr(answer, "seconds", None)
    return given if timeout is None else given._replace(timeout=span(timeout, "timeout"))


def _async_function(card: Card, answer: object) -> AgentFunction:
    """Return the function of an agent as an async one: a plain function runs in a thread."""
    call = getattr(answer, "__call__", None)  # noqa: B004 - checks the kind of call, not whether it is callable
    if inspect.iscoroutinefunction(answer) or inspect.iscoroutinefunction(call):
        return cast("AgentFunction", answer)
    if not callable(answer) or isinstance(answer, type):
        raise BadInput(f"agent '{card.name}' needs a function of a turn, `def` or `async def`, got {shown(answer)}")
    if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in (answer, call)):
        raise BadInput(
            f"agent '{card.name}' is a generator, and an agent has one result: use return in place of yield, got "
            f"{shown(answer)}"
        )
    return import_module("remit.engine.threads").ThreadedAgent(answer)

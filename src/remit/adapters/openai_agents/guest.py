"""An agent of this framework as an agent of a team, with the agents it hands off to inside the framework."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar, cast, get_args

from agents import Agent, ModelSettings, RunConfig, Runner
from agents.handoffs import Handoff
from agents.models.interface import Model
from agents.retry import ModelRetrySettings
from agents.run_context import RunContextWrapper
from agents.tool import FunctionTool, Tool
from agents.tool_context import ToolContext

from remit.adapters.guests import (
    MAX_TOKENS,
    NO_DEPS,
    Governing,
    Prompt,
    Ungoverned,
    checked_deps,
    deps_of,
    json_of,
    prompt_of,
    prompted,
)
from remit.adapters.openai_agents.model import GovernedOpenAIModel, GovernedProvider, governed
from remit.adapters.openai_agents.tools import (
    agent_of,
    boxed,
    delegating,
    handoff_tool,
    raising,
    takes_input,
    verb_tools,
)
from remit.core.recovery import Choice
from remit.core.values import Json, canonical, encode
from remit.errors import BadInput
from remit.ports.turn import TurnLike
from remit.verbs import Verb, selected_verbs, unlike

_ONCE: Final = ModelSettings(retry=ModelRetrySettings(max_retries=0))  # neither the runner nor the client retries


class _Guest:
    """An agent of this framework and its governed copy, and what remit reads from them."""

    def __init__(self, agent: Agent[Any], family: "Family") -> None:
        self.max_tokens = family.max_tokens
        self._agent = agent
        self._family = family
        self._governed = family.member(agent)

    @property
    def asks(self) -> frozenset[str]:
        """The names of the team members that the agent has as tools."""
        return frozenset(self._family.asked)

    @property
    def instructions(self) -> str:
        """The agent's instructions, if they are the same for each task; otherwise ""."""
        said = self._agent.instructions
        return said if isinstance(said, str) else ""

    @property
    def tool_names(self) -> frozenset[str] | None:
        """The names of its tools, and of the tools of agents it hands off to; None if some are known only while it
        runs."""
        return self._family.tool_names

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The model of the agent, if it names one."""
        return _choices(self._governed.model)


class OpenAIAgentsGuest(_Guest):
    """Runs an agent on the task of each turn and returns its final output, as text or JSON.

    `prompt` makes the input from the turn, `context` the object that the agent's tools are given. `verbs` are its verbs
    as tools; True means all of them. `team` are the names of the agents it may ask: a handoff to one of these names
    hands the task over within the team, any other handoff stays inside the framework. `run_config` is used except for
    its settings of models, retries, traces and unknown tools. The given agent is not changed.

    `deps` is the same as `context`, or the object itself. The agents that it has as tools are in `members`: they become
    members of the team under the names of their tools. With `ungoverned="allow"`, agents that its tools run, and tools
    that remit cannot govern, are left alone.
    """

    tells_past = True  # the models' seam adds the session's earlier runs

    def __init__(
        self,
        agent: Agent[Any],
        *,
        verbs: bool | Sequence[Verb] = False,
        team: frozenset[str] = frozenset(),
        prompt: Prompt = prompt_of,
        context: Callable[[TurnLike], object] | None = None,
        deps: object = NO_DEPS,
        ungoverned: Ungoverned = "refuse",
        run_config: RunConfig | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self._allow = ungoverned == "allow"
        family = Family(max_tokens, selected_verbs(verbs), team, allow=self._allow)
        super().__init__(agent, family)
        self._prompt = prompt
        self._deps = checked_deps(agent.name, _context_type(agent), deps if context is None else context)
        self._config = governed_config(run_config or RunConfig(), max_tokens)
        family.is_whole = True
        self.members = [AgentAsTool(tool, self._deps, family.agents) for tool in family.agents.values()]

    @property
    def name(self) -> str:
        """The agent's name in its framework."""
        return self._agent.name

    @property
    def tools_vary(self) -> bool:
        """Whether the framework may hand the task to an agent with other tools."""
        return bool(cast("Any", self._governed).handoffs)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The model of the agent, if the agent or the configuration names one."""
        return _choices(self._config.model or self._governed.model)

    async def __call__(self, turn: TurnLike) -> Json:
        """Run the agent on the turn's task and return its result."""
        context = await deps_of(self._deps, turn)
        asked = await prompted(self._prompt, turn)
        async with Governing(turn, self._agent, governed=self._governed, allow=self._allow):
            result = await Runner.run(self._governed, asked, context=context, max_turns=None, run_config=self._config)
        if result.interruptions:
            raise BadInput("the agent waits for an approval of its framework; let remit ask instead: approve_tools=")
        return json_of(result.final_output)


class AgentAsTool(_Guest):
    """An agent that another agent has as a tool, as a member of the team under the name of the tool. It runs as the
    tool would run it: with its own input, output and limits."""

    def __init__(self, tool: FunctionTool, deps: object, agents: "Mapping[str, FunctionTool]") -> None:
        self.agent = cast("Agent[Any]", agent_of(tool))
        super().__init__(self.agent, Family(agents=agents))
        self.tool = tool
        self._own = raising(tool)
        self._deps = deps

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.tool.name

    @property
    def role(self) -> str:
        """The description of the tool."""
        return self.tool.description

    async def __call__(self, turn: TurnLike) -> Json:
        """Run the agent on the turn's task and return its result."""
        given = encode({"input": await turn.prompt()}) if takes_input(self.tool) else turn.remit.data or turn.task
        context = ToolContext(
            await deps_of(self._deps, turn), tool_name=self.name, tool_call_id=turn.remit.id, tool_arguments=given
        )
        async with Governing(turn, self.agent, governed=self._governed):
            return json_of(await self._own.on_invoke_tool(context, given))


def governed_config(given: RunConfig, max_tokens: int = MAX_TOKENS) -> RunConfig:
    """Return a run configuration with governed models, without retries and traces."""
    settings = given.model_settings
    return replace(
        given,
        model=governed(given.model, max_tokens) if isinstance(given.model, Model) else given.model,
        model_provider=GovernedProvider(given.model_provider, max_tokens),
        model_settings=_ONCE if settings is None else settings.resolve(_ONCE),
        tracing_disabled=True,
        tool_not_found_behavior="return_error_to_model",
    )


class Family:
    """An agent and all agents it can hand off to inside the framework, each governed once, because they may hand back
    to each other. Only the first has the verbs and hands over to members of the team.

    `agents` are the agents that they have as tools, by tool name, and `asked` the names of those that they ask
    themselves. Once it `is_whole`, further agents run inside the turn. An `inner` family belongs to an agent that a
    tool runs.
    """

    def __init__(
        self,
        max_tokens: int = MAX_TOKENS,
        verbs: tuple[Verb, ...] = (),
        team: frozenset[str] = frozenset(),
        *,
        inner: bool = False,
        allow: bool = False,
        agents: Mapping[str, FunctionTool] | None = None,
    ) -> None:
        self.max_tokens = max_tokens
        self._verbs = verbs
        self._team = team
        self._inner = inner
        self._allow = allow
        self._members: dict[int, tuple[Agent[Any], Agent[Any]]] = {}
        self.tool_names: frozenset[str] | None = frozenset()
        self.agents: dict[str, FunctionTool] = {} if agents is None else {**agents}
        self.is_whole = inner or agents is not None
        self.asked: set[str] = set()

    def member(self, agent: Agent[Any]) -> Agent[Any]:
        """Return the governed copy of an agent."""
        known = self._members.get(id(agent))
        if known is not None:
            return known[1]
        _check(agent)
        tools = [self._boxed(tool) for tool in agent.tools]
        self._note(agent, tools)
        handoffs: list[Any] = cast("Any", agent).handoffs
        if not self._members:
            tools = [*tools, *verb_tools(unlike(self._verbs, (tool.name for tool in tools)))]
            tools += [handoff_tool(one) for one in handoffs if self._is_colleague(one)]
            handoffs = [one for one in handoffs if not self._is_colleague(one)]
        changes: dict[str, Any] = {"tools": tools, "handoffs": []}
        if isinstance(agent.model, Model):  # names are resolved by the governed provider
            changes["model"] = governed(agent.model, self.max_tokens)
        made = agent.clone(**changes)
        object.__setattr__(made, "get_mcp_tools", self._boxing(made.get_mcp_tools))
        self._members[id(agent)] = (agent, made)  # registered before its handoffs, which may lead back here
        made.handoffs = [self._handoff(one) for one in handoffs]
        return made

    def _boxed(self, tool: Tool) -> Tool:
        if isinstance(tool, FunctionTool) and self._is_member(tool):
            self.asked.add(tool.name)
            return delegating(tool, tool.name)
        return boxed(tool, inner=self._inner, allow=self._allow)

    def _is_member(self, tool: FunctionTool) -> bool:
        """Whether a tool is an agent that is or becomes a member of the team."""
        agent = agent_of(tool)
        if agent is None or self._allow:
            return False
        known = self.agents.get(tool.name)
        if known is None and not self.is_whole:
            self.agents[tool.name] = known = tool
            for one in agent.tools:  # a tool may be an agent with agents as tools
                _ = isinstance(one, FunctionTool) and self._is_member(one)
        return known is not None and agent_of(known) is agent

    def _boxing(self, found: Callable[..., Awaitable[list[Tool]]]) -> Callable[..., Awaitable[list[Tool]]]:
        """Return a function that lists an agent's MCP tools like `found`, with their calls sent through the turn. The
        framework creates these tools again for each request."""

        async def get_mcp_tools(context: RunContextWrapper[Any]) -> list[Tool]:
            return [self._boxed(tool) for tool in await found(context)]

        return get_mcp_tools

    def _is_colleague(self, one: Agent[Any] | Handoff[Any, Any]) -> bool:
        return not isinstance(one, Handoff) and canonical(one.name) in self._team

    def _note(self, agent: Agent[Any], tools: list[Tool]) -> None:
        later = agent.mcp_servers or any(isinstance(one, Handoff) for one in cast("Any", agent).handoffs)
        if self.tool_names is not None:
            self.tool_names = None if later else self.tool_names.union(_functions(tools))

    def _handoff(self, one: Agent[Any] | Handoff[Any, Any]) -> Agent[Any] | Handoff[Any, Any]:
        if not isinstance(one, Handoff):
            return self.member(one)
        invoke: Callable[..., Awaitable[Any]] = one.on_invoke_handoff

        async def invoked(context: RunContextWrapper[Any], given: str) -> Agent[Any]:
            return self.member(await invoke(context, given))

        return replace(one, on_invoke_handoff=invoked)


def _check(agent: object) -> None:
    kinds = type(agent).__mro__
    # A SandboxAgent creates its own tools.
    if Agent not in kinds or "SandboxAgent" in (kind.__name__ for kind in kinds):
        raise BadInput(f"an Agent of openai-agents can be joined, not {kinds[0].__name__}")


def _choices(model: object) -> tuple[Choice, ...]:
    name = model.name if isinstance(model, GovernedOpenAIModel) else model
    return (Choice(name),) if isinstance(name, str) else ()


def _context_type(agent: Agent[Any]) -> object:
    """Return the context type that an agent declares, `Agent[Shop](...)`, or None."""
    given = get_args(getattr(agent, "__orig_class__", None))
    return given[0] if given and not isinstance(given[0], TypeVar) else None


def _functions(tools: list[Tool]) -> list[str]:
    return [tool.name for tool in tools if isinstance(tool, FunctionTool)]

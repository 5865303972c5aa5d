"""An agent of this framework as an agent of a team, together with those it hands off to inside the framework."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, cast

from agents import Agent, ModelSettings, RunConfig, Runner
from agents.handoffs import Handoff
from agents.models.interface import Model
from agents.retry import ModelRetrySettings
from agents.run_context import RunContextWrapper
from agents.tool import FunctionTool, Tool

from remit.adapters.guests import MAX_TOKENS, Prompt, json_of, prompted, task_of
from remit.adapters.openai_agents.model import GovernedOpenAIModel, GovernedProvider, governed
from remit.adapters.openai_agents.tools import boxed, handoff_tool, verb_tools
from remit.core.recovery import Choice
from remit.core.text import canonical
from remit.core.values import Json
from remit.errors import BadInput
from remit.ports.turn import TurnLike

_ONCE: Final = ModelSettings(retry=ModelRetrySettings(max_retries=0))  # neither the runner nor the client asks again


class OpenAIAgentsGuest:
    """Runs an agent on the task of each turn and gives back its final output, as text or JSON.

    `prompt` makes the input of the turn, `context` the object that the agent's tools are given; with `verbs` it may use
    the verbs of delegation as tools. `verbs` may be the names of those whom it may ask: if one of its own `handoffs` is
    called so, the team hands the task over, as by the verb; any other is made inside the framework. `run_config` is
    kept as far as it is not about models, retries, traces and tools that do not exist. The agent that is given is not
    changed.
    """

    def __init__(
        self,
        agent: Agent[Any],
        *,
        verbs: bool | frozenset[str] = False,
        prompt: Prompt = task_of,
        context: Callable[[TurnLike], object] | None = None,
        run_config: RunConfig | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self.max_tokens = max_tokens
        self._family = _Family(max_tokens, verbs)
        self._agent = self._family.member(agent)
        self._prompt = prompt
        self._context = context
        self._config = _config(run_config or RunConfig(), max_tokens)

    @property
    def name(self) -> str:
        """What the agent is called in its framework."""
        return self._agent.name

    @property
    def instructions(self) -> str:
        """What the agent is told, as far as it is the same for each task."""
        said = self._agent.instructions
        return said if isinstance(said, str) else ""

    @property
    def tool_names(self) -> frozenset[str] | None:
        """The names of its tools, and of those whom it hands off to; None if some are known only while it runs."""
        return self._family.tool_names

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The model that it asks, if the agent or the configuration names one."""
        model = self._config.model or self._agent.model
        name = model.name if isinstance(model, GovernedOpenAIModel) else model
        return (Choice(name),) if isinstance(name, str) else ()

    async def __call__(self, turn: TurnLike) -> Json:
        """Answer the turn."""
        context = None if self._context is None else self._context(turn)
        asked = await prompted(self._prompt, turn)
        result = await Runner.run(self._agent, asked, context=context, max_turns=None, run_config=self._config)
        if result.interruptions:
            raise BadInput("the agent waits for an approval of its framework; let remit ask instead: approve=")
        return json_of(result.final_output)


def _config(given: RunConfig, max_tokens: int) -> RunConfig:
    settings = given.model_settings
    return replace(
        given,
        model=governed(given.model, max_tokens) if isinstance(given.model, Model) else given.model,
        model_provider=GovernedProvider(given.model_provider, max_tokens),
        model_settings=_ONCE if settings is None else settings.resolve(_ONCE),
        tracing_disabled=True,
        tool_not_found_behavior="return_error_to_model",
    )


class _Family:
    """An agent and all that it can hand off to inside the framework, each governed once: they may hand back to each
    other. Only the first has the verbs, and hands over to members of the team."""

    def __init__(self, max_tokens: int, verbs: bool | frozenset[str]) -> None:
        self._max_tokens = max_tokens
        self._verbs = bool(verbs)
        self._team = frozenset[str]() if isinstance(verbs, bool) else verbs
        self._members: dict[int, tuple[Agent[Any], Agent[Any]]] = {}
        self.tool_names: frozenset[str] | None = frozenset()

    def member(self, agent: Agent[Any]) -> Agent[Any]:
        """Give the governed copy of an agent."""
        known = self._members.get(id(agent))
        if known is not None:
            return known[1]
        _check(agent)
        tools = [boxed(tool) for tool in agent.tools]
        self._note(agent, tools)
        handoffs: list[Any] = cast("Any", agent).handoffs
        if not self._members:
            tools = [*tools, *(verb_tools(tool.name for tool in tools) if self._verbs else ())]
            tools += [handoff_tool(one) for one in handoffs if self._is_colleague(one)]
            handoffs = [one for one in handoffs if not self._is_colleague(one)]
        changes: dict[str, Any] = {"tools": tools, "handoffs": []}
        if isinstance(agent.model, Model):  # names are looked up by the governed provider
            changes["model"] = governed(agent.model, self._max_tokens)
        made = agent.clone(**changes)
        object.__setattr__(made, "get_mcp_tools", _boxing(made.get_mcp_tools))
        self._members[id(agent)] = (agent, made)  # before those it hands off to: they may lead back here
        made.handoffs = [self._handoff(one) for one in handoffs]
        return made

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
    if Agent not in kinds or "SandboxAgent" in (kind.__name__ for kind in kinds):  # the latter makes its own tools
        raise BadInput(f"an Agent of openai-agents can be joined, not {kinds[0].__name__}")


def _boxing(found: Callable[..., Awaitable[list[Tool]]]) -> Callable[..., Awaitable[list[Tool]]]:
    """Box the tools of MCP servers, which are made anew for each request."""

    async def get_mcp_tools(context: RunContextWrapper[Any]) -> list[Tool]:
        return [boxed(tool) for tool in await found(context)]

    return get_mcp_tools


def _functions(tools: list[Tool]) -> list[str]:
    return [tool.name for tool in tools if isinstance(tool, FunctionTool)]

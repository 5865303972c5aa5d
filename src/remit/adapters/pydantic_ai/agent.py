"""Agents that are models with tools: built from parts, or a guest that was made with pydantic-ai.

Everything is assembled once, when an agent is registered. While it runs, the model and the tools find their turn
themselves.
"""

import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, TypeAlias, cast, get_args

from pydantic import AfterValidator, BaseModel
from pydantic.errors import PydanticUserError
from pydantic_ai import Agent, AgentRunResult, StructuredDict, UsageLimits
from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup, UserError
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_core import to_jsonable_python

from remit.adapters.endpoints import KeyOf, KeysGiven, UrlGiven, key_in_environment
from remit.adapters.guests import NO_DEPS, Governing, Ungoverned, checked_deps, deps_of
from remit.adapters.pydantic_ai.clients import (
    AgentStopped,
    Clients,
    ModelGiven,
    error_text,
    stopped,
)
from remit.adapters.pydantic_ai.model import MAX_TOKENS, GovernedModel
from remit.adapters.pydantic_ai.tools import (
    AnyTool,
    GovernedToolset,
    ToolGiven,
    define_once,
    governed,
    leave_out_idle,
    needs_run,
    verb_tools,
)
from remit.core.checks import counted, meant, of_type
from remit.core.recovery import Choice
from remit.core.values import shown
from remit.errors import BadInput
from remit.ports.models import HandedOver
from remit.ports.turn import TurnLike
from remit.verbs import Verb, selected_verbs, unlike

Prompt: TypeAlias = Callable[[TurnLike], str | Awaitable[str]]

# Ten failed calls of one tool, or of an unknown one; two answers in the wrong form. Each try costs money.
RETRIES: Final[Any] = {"tools": 10, "output": 2}
_PROVIDERS: Final = tuple(
    f"{name}_" for name in ("openai", "anthropic", "google", "bedrock", "azure", "groq", "mistral", "cohere", "xai")
)
_SETTINGS_ELSEWHERE: Final = {
    "max_tokens": "it stands beside it, as max_tokens=...",
    "max_retries": "remit itself asks again when a model does not answer",
}
_FAULTS: Final = 5  # errors of an answer that are reported
_NO_LIMITS: Final = UsageLimits(request_limit=None)  # the turn counts the requests


async def prompt_of(turn: TurnLike) -> str:
    """Return the turn's prompt, in which an untrusted task is quoted."""
    return await turn.prompt()


@dataclass(kw_only=True)
class ModelAgent:
    """An agent made of models, instructions and tools. `models` are tried in order; `keys`, `base_url` and `key_of` are
    those of `Clients`. `verbs` are its verbs; True means all of them. `output` is the form of its result, a type or a
    JSON Schema. `settings` go to the provider with every request, such as `{"temperature": 0.2}`. `prompt` makes the
    prompt from a turn."""

    tells_past: ClassVar[bool] = True  # the models' seam adds the session's earlier runs
    name: str
    models: Sequence[ModelGiven]
    instructions: str = ""
    tools: Sequence[ToolGiven] = ()
    verbs: bool | Sequence[Verb] = False
    output: Any = None
    keys: KeysGiven = ()
    max_tokens: int = MAX_TOKENS
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    base_url: UrlGiven = None
    prompt: Prompt | None = None
    key_of: KeyOf = key_in_environment
    model: GovernedModel = field(init=False)
    agent: Agent[None, Any] = field(init=False)

    def __post_init__(self) -> None:
        clients = Clients(self.models, self.keys, self.base_url, self.key_of)
        most = counted(self.max_tokens, "max_tokens", least=1)
        empty = _may_be_none(self.output)
        self.model = GovernedModel(clients, max_tokens=most, empty=empty, rewrites=False)
        tools = _unlike([*map(governed, self.tools)], self.name)
        tools += verb_tools(unlike(selected_verbs(self.verbs), (tool.name for tool in tools)))
        settings = settings_of(self.settings, most)
        try:
            self.agent = Agent(
                self.model,
                name=self.name,
                instructions=self.instructions or None,
                output_type=form_of(self.output),
                tools=tools,
                retries=RETRIES,
                model_settings=settings,
            )
        except UserError as error:
            raise BadInput(f"agent {self.name}: {error_text(error)}") from None
        except (PydanticUserError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise BadInput(
                f"agent {self.name}: output is a type, not {shown(self.output)}: {error_text(error)}"
            ) from None
        define_once(self.agent, RETRIES["tools"])
        if not any(map(needs_run, tools)) and not _has_code(self.output):
            leave_out_idle(self.agent)

    async def __call__(self, turn: TurnLike) -> Any:
        """Run the task. Return text, the JSON of a structured result, or the command of a handoff."""
        prompt = await _prompt(self.prompt or prompt_of, turn)
        async with Governing(turn, self.agent):
            return await _delivered(self.agent.run(prompt, usage_limits=_NO_LIMITS, infer_name=False))

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The models that it asks, in order."""
        return self.model.clients.choices

    async def aclose(self) -> None:
        """Close this event loop's connections to the models."""
        await self.model.clients.aclose()


@dataclass(kw_only=True)
class GuestAgent:
    """An agent that was made with pydantic-ai, governed while it works on a task and otherwise unchanged. `deps` are
    its dependencies, or a function of the turn that returns them. With `ungoverned="allow"`, agents that its tools run
    are left alone."""

    tells_past: ClassVar[bool] = True  # the models' seam adds the session's earlier runs
    agent: AbstractAgent[Any, Any]
    verbs: bool | Sequence[Verb] = False
    deps: Any = NO_DEPS
    ungoverned: Ungoverned = "refuse"
    max_tokens: int = MAX_TOKENS
    prompt: Prompt | None = None
    model: GovernedModel = field(init=False)

    def __post_init__(self) -> None:
        if self.agent.model is None:
            raise BadInput("the agent has no model; make it with one, such as Agent('openai:gpt-5')")
        most = counted(self.max_tokens, "max_tokens", least=1)
        checked_deps(self.agent.name or "the agent", self.agent.deps_type, self.deps)
        empty = _may_be_none(self.agent.output_type)
        self.model = GovernedModel(Clients([self.agent.model]), max_tokens=most, empty=empty)
        self._seen: list[AnyTool] = []
        self._tools: list[AnyTool] = []
        self._govern(self.agent.toolsets[:1])

    @property
    def tool_names(self) -> frozenset[str] | None:
        """The names of its own tools; None if it has others that are known only while it runs."""
        return None if self.agent.toolsets[1:] else frozenset(tool.name for tool in self._seen)

    @property
    def instructions(self) -> str:
        """The instructions that are the same for each task. Those that functions return are known only while it
        runs."""
        agent: Any = _innermost(self.agent)
        # The framework keeps instructions under private names only. Without access to them the card would have none.
        given = [getattr(one, "instruction", one) for one in getattr(agent, "_instructions", ())]
        return "\n".join(text for text in (*getattr(agent, "_system_prompts", ()), *given) if isinstance(text, str))

    async def __call__(self, turn: TurnLike) -> Any:
        """Run the task. Return text, the JSON of a structured result, or the command of a handoff."""
        prompt = await _prompt(self.prompt or prompt_of, turn)
        mine, *others = self.agent.toolsets
        self._govern([mine])
        more: dict[str, Any] = {"toolsets": [GovernedToolset(toolset) for toolset in others]} if others else {}
        deps = await deps_of(self.deps, turn)
        async with Governing(turn, _innermost(self.agent), allow=self.ungoverned == "allow"):
            with self.agent.override(model=self.model, tools=self._tools, retries=RETRIES, **more):
                run = self.agent.run(prompt, deps=deps, usage_limits=_NO_LIMITS, infer_name=False)
                return await _delivered(run)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The models that it asks, in order."""
        return self.model.clients.choices

    async def aclose(self) -> None:
        """Close this event loop's connections to the models."""
        await self.model.clients.aclose()

    def _govern(self, toolsets: Sequence[AbstractToolset[Any]]) -> None:
        """Wrap the tools that were registered with the agent itself; repeat this only if there are new ones."""
        held = [toolset for toolset in toolsets if isinstance(toolset, FunctionToolset)]
        tools = [tool for toolset in held for tool in toolset.tools.values()]
        if self._tools and [*map(id, tools)] == [*map(id, self._seen)]:
            return
        limit = next((toolset.timeout for toolset in held), None)
        made = [governed(tool, limit) for tool in tools]
        self._tools = [*made, *verb_tools(unlike(selected_verbs(self.verbs), (tool.name for tool in tools)))]
        self._seen = tools


def guest(
    agent: AbstractAgent[Any, Any],
    *,
    verbs: bool | Sequence[Verb] = False,
    deps: Any = NO_DEPS,
    ungoverned: Ungoverned = "refuse",
    max_tokens: int = MAX_TOKENS,
    prompt: Prompt | None = None,
) -> GuestAgent:
    """Return an agent of pydantic-ai as a guest: its model, its tools and its prompt go through the turn."""
    return GuestAgent(agent=agent, verbs=verbs, deps=deps, ungoverned=ungoverned, max_tokens=max_tokens, prompt=prompt)


def _innermost(agent: AbstractAgent[Any, Any]) -> AbstractAgent[Any, Any]:
    """Return the agent inside all wrappers."""
    while isinstance(agent, WrapperAgent):
        agent = agent.wrapped
    return agent


async def _prompt(prompt: Prompt, turn: TurnLike) -> str:
    made = prompt(turn)
    return await made if inspect.isawaitable(made) else made


async def _delivered(run: Awaitable[AgentRunResult[Any]]) -> Any:
    """Return the result of a run, or the handoff command that ended it. Raise `AgentStopped` for an error of the
    framework, without its cause, which may quote a provider."""
    try:
        result = await run
    except HandedOver as handed:
        return handed.command
    except (AgentRunError, UserError, FallbackExceptionGroup) as error:
        trouble = stopped(error)
    else:
        return _result(result.output)
    raise trouble


def _result(output: object) -> Any:
    if isinstance(output, DeferredToolRequests):
        raise AgentStopped("the agent deferred tool calls; let remit ask for approval instead: approve_tools=")
    if isinstance(output, BaseModel):
        return output.model_dump(mode="json")
    return output if isinstance(output, str) else to_jsonable_python(output)


def settings_of(given: Mapping[str, Any], most: int) -> ModelSettings:
    """Return the settings for every request to a model: the given ones, and `most` as `max_tokens`. Raise `BadInput`
    for an unknown setting, one that belongs elsewhere, and a temperature that is not a number.

    The framework silently drops an unknown setting, so the names are checked here. Settings of one provider begin with
    its name, such as `openai_reasoning_effort`.
    """
    of_type(given, Mapping, "settings takes a mapping, such as {'temperature': 0.2}")
    known = ModelSettings.__annotations__.keys()
    for name in given:
        if name in _SETTINGS_ELSEWHERE:
            raise BadInput(f"{name} does not belong in settings: {_SETTINGS_ELSEWHERE[name]}")
        if name not in known and not str(name).startswith(_PROVIDERS):
            raise BadInput(
                f"there is no setting {shown(name)} of a model{meant(name, known)}; settings of one provider begin "
                "with its name, such as openai_reasoning_effort"
            )
    temperature = given.get("temperature")
    if temperature is not None and (isinstance(temperature, bool) or not isinstance(temperature, int | float)):
        raise BadInput(f"temperature is a number, such as 0.2, not {shown(temperature)}")
    return cast("ModelSettings", {"max_tokens": most, **given})


def form_of(output: Any) -> Any:
    """Return the type of an answer; for a JSON Schema, a type that checks the answer against it."""
    if not isinstance(output, Mapping):
        return str if output is None else output
    try:
        from remit.adapters import schema as schemas  # noqa: PLC0415 - only needed with a schema
    except ImportError as error:
        raise BadInput(f"output as a JSON Schema needs pip install 'remit[schema]' ({error})") from error
    schema = cast("dict[str, Any]", {**output})
    schemas.check_schema(schema)

    def fits(value: dict[str, Any]) -> dict[str, Any]:
        if wrong := schemas.check(schema, value):
            raise ValueError("; ".join(wrong[:_FAULTS]))
        return value

    return Annotated[StructuredDict(copy.deepcopy(schema)), AfterValidator(fits)]


def _has_code(output: Any) -> bool:
    """Whether an output may be a function, which the framework would call with the context of its run."""
    return output is not None and not isinstance(output, type | UnionType | Mapping)


def _may_be_none(output: Any) -> bool:
    return output is type(None) or type(None) in get_args(output)


def _unlike(tools: list[AnyTool], name: str) -> list[AnyTool]:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise BadInput(f"agent {name} has two tools named {tool.name}; rename one of them")
        seen.add(tool.name)
    return tools

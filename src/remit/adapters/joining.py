"""Recognizing agents of other frameworks: by their class, without importing the framework."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

from remit.core.values import shown
from remit.errors import BadInput
from remit.verbs import Verb


class _Framework(NamedTuple):
    """A framework. `thing` describes its agents in words; `module` and `kind` are the module and the name of their
    class. `guest` is the name of the function or class in the module `adapter` that makes a guest of an agent, and
    `extra` the extra of remit to install. If its agents have `handoffs` of their own, the guest gets the names of the
    agents that it may ask."""

    name: str
    thing: str
    module: str
    kind: str
    adapter: str
    guest: str
    extra: str
    handoffs: bool = False


class Guest(Protocol):
    """An agent of another framework as the runtime uses it: called with a turn, it returns the result.

    `tool_names` are its tools, or None if they are known only when it runs. The runtime also reads these attributes, if
    the guest has them: `name` and `instructions` for its card; `tools_vary` if the framework may hand the task to an
    agent with other tools; `members`, its tools that are agents, and `asks`, their names; `output` for the form of its
    result; `tells_past` if it passes the session's earlier runs to the model itself; `choices` and `max_tokens`, its
    models and the most tokens of an answer, to describe it; `aclose` to close its connections.
    """

    @property
    def tool_names(self) -> frozenset[str] | None: ...
    def __call__(self, turn: Any, /) -> Any: ...


_FRAMEWORKS: Final = (
    _Framework(
        *("pydantic-ai", "a pydantic-ai agent", "pydantic_ai", "AbstractAgent"),
        *("remit.adapters.pydantic_ai", "guest", "llm"),
    ),
    _Framework(
        *("openai-agents", "an agent of openai-agents", "agents.agent", "AgentBase"),
        *("remit.adapters.openai_agents", "OpenAIAgentsGuest", "openai-agents", True),
    ),
    _Framework(
        *("langgraph", "a compiled LangGraph graph", "langgraph", "Pregel"),
        *("remit.adapters.langgraph", "LangGraphGuest", "langgraph"),
    ),
)


def framework_of(thing: object) -> str | None:
    """Return the name of an agent's framework, or None if it is unknown."""
    found = _framework_of(thing)
    return None if found is None else found.name


def joined(
    thing: object,
    *,
    verbs: bool | Sequence[Verb],
    members: frozenset[str] = frozenset(),
    **how: Any,
) -> Guest:
    """Return an agent of another framework as a member of a team. `verbs` are the verbs that its model gets as tools:
    all, none, or a list. `members` are the agents it may ask, as far as they are named; `how` are the options of every
    guest: `prompt`, `deps`, `ungoverned`. Raise `BadInput` if its framework is unknown, or if a required package is not
    installed."""
    found = _framework_of(thing)
    if found is None:
        hint = "; compile() the graph first" if type(thing).__name__ == "StateGraph" else ""
        *others, last = (framework.thing for framework in _FRAMEWORKS)
        things = f"{', '.join(('a function', *others))} and {last}"
        raise BadInput(f"{things} can be joined, not {type(thing).__name__}: {shown(thing)}{hint}")
    try:
        make = getattr(import_module(found.adapter), found.guest)
    except ImportError as error:
        raise BadInput(f"{found.name} agents need more: pip install 'remit[{found.extra}]' ({error})") from error
    more: dict[str, Any] = {"team": members} if found.handoffs else {}
    return make(thing, verbs=verbs, **more, **how)


def _framework_of(thing: object) -> _Framework | None:
    kinds = [(kind.__module__, kind.__name__) for kind in type(thing).__mro__]
    for framework in _FRAMEWORKS:
        for module, name in kinds:
            if name == framework.kind and f"{module}.".startswith(f"{framework.module}."):
                return framework
    return None

"""Agents of pydantic-ai that a tool runs itself: their requests and tools go through the turn of the tool.

The framework has capabilities, which wrap the model and the tools of a run, but no way to add one to every run. So
`Agent.iter`, which every run goes through, is replaced by a version that adds ours inside a turn, and only there.
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset

from remit.adapters.guests import Governing, governing, is_own, on_loop_of_turn, run_of
from remit.adapters.pydantic_ai.clients import Clients
from remit.adapters.pydantic_ai.model import GovernedModel
from remit.adapters.pydantic_ai.tools import GovernedToolset

_ITER: Final = Agent.iter


class NestedModel(GovernedModel):
    """The governed model of a run that may have an event loop of its own, in a thread."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask on the turn's event loop."""
        return await on_loop_of_turn(super().request(messages, model_settings, model_request_parameters))


@dataclass
class Governed(AbstractCapability[Any]):
    """Sends the requests and tool calls of one run through the turn in which the run started."""

    _models: dict[int, GovernedModel] = field(default_factory=dict[int, GovernedModel])

    def get_wrapper_model(self, model: Model) -> Model | None:
        if isinstance(model, GovernedModel):
            return None
        if id(model) not in self._models:
            self._models[id(model)] = NestedModel(Clients([model]))
        return self._models[id(model)]

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        return GovernedToolset(toolset, inner=True)


@wraps(_ITER)
def _iter(self: Agent[Any, Any], *args: Any, **named: Any) -> AbstractAsyncContextManager[Any]:
    mark = governing()
    return _ITER(self, *args, **named) if mark is None else _run_inside(mark, self, args, named)


@asynccontextmanager
async def _run_inside(
    mark: Governing, agent: Agent[Any, Any], args: tuple[Any, ...], named: dict[str, Any]
) -> AsyncGenerator[Any]:
    if not mark.allow and not is_own(mark, agent):
        named = {**named, "capabilities": [*(named.get("capabilities") or ()), Governed()]}
    with run_of(agent, agent.name or "an agent"):
        async with _ITER(agent, *args, **named) as run:
            yield run


def install() -> None:
    """Make every run of this framework check whether it starts inside a turn."""
    setattr(Agent, "iter", _iter)  # noqa: B010 - typed with one signature only

"""Agents of openai-agents that a tool runs itself: their requests and tools go through the turn of the tool.

`Runner` leaves its work to a default runner, which the framework allows to be replaced; ours wraps the existing one.
"""

from collections.abc import Mapping
from typing import Any, cast

from agents import Agent, RunConfig
from agents.run import AgentRunner, RunState, get_default_agent_runner, set_default_agent_runner

from remit.adapters.guests import Governing, from_thread, governing, is_own, on_loop_of_turn, run_of
from remit.adapters.openai_agents.guest import Family, governed_config
from remit.errors import BadInput


class NestingRunner(AgentRunner):
    """Checks whether a run starts inside a turn, and leaves everything else to the previous runner."""

    def __init__(self, before: AgentRunner) -> None:
        self._before = before

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        mark = governing()
        if mark is None:
            return await self._before.run(starting_agent, input, **options)
        agent, options = _governed(mark, starting_agent, input, options)
        with run_of(starting_agent, starting_agent.name):
            return await on_loop_of_turn(self._before.run(agent, input, **options))

    def run_sync(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        mark = governing()
        if mark is None or mark.allow:
            return self._before.run_sync(starting_agent, input, **options)
        agent, options = _governed(mark, starting_agent, input, options)
        with run_of(starting_agent, starting_agent.name):
            return from_thread(self._before.run(agent, input, **options))

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        mark = governing()
        if mark is None:
            return self._before.run_streamed(starting_agent, input, **options)
        agent, options = _governed(mark, starting_agent, input, options)
        with run_of(starting_agent, starting_agent.name):  # the run continues in a task that is started here
            return self._before.run_streamed(agent, input, **options)


def _governed(
    mark: Governing, agent: Agent[Any], given: object, options: dict[str, Any]
) -> tuple[Agent[Any], dict[str, Any]]:
    """Return the agent and options to run in place of the given ones. Raise `BadInput` for a run that is resumed."""
    if mark.allow or (is_own(mark, agent) and agent is mark.governed):
        return agent, options
    if isinstance(given, RunState):
        raise BadInput(f"'{agent.name}' is resumed from a RunState, which remit cannot govern; start a run of its own")
    config = options.get("run_config")
    if isinstance(config, Mapping):
        config = RunConfig(**cast("dict[str, Any]", config))
    governed = mark.governed if is_own(mark, agent) else Family(inner=True).member(agent)
    return cast("Agent[Any]", governed), {**options, "run_config": governed_config(config or RunConfig())}


def install() -> None:
    """Make every run of this framework check whether it starts inside a turn."""
    set_default_agent_runner(NestingRunner(get_default_agent_runner()))

"""The configuration of an agent, for inspection: its models, its tools, and their rules."""

from typing import NamedTuple

from remit.core.card import Card
from remit.core.recovery import Choice
from remit.core.session import Remembers
from remit.core.times import SECOND
from remit.engine.directory import Agent, JudgesHops


class AgentStack(NamedTuple):
    """The configuration of an agent. `models` are tried in order, with the keys that `keys` names for each; they are
    empty if they are known only while it runs. `approve_tools` are tools that a person approves each time; `before` and
    `after` are the hooks around each tool, in the order of their calls. `around` are the functions around each turn,
    the outermost first; `guards` are the owner's guards of this runtime, which judge every hop.
    `timeout` is the time of one attempt in seconds, None for the default, and `attempts` the number of attempts of a
    queued task."""

    card: Card
    models: tuple[str, ...]
    keys: dict[str, tuple[str, ...]]
    max_tokens: int | None
    iterations: int
    memory: Remembers
    approve_tools: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    around: tuple[str, ...]
    guards: tuple[str, ...]
    timeout: float | None
    attempts: int


def stack_of(agent: Agent, guards: tuple[JudgesHops, ...]) -> AgentStack:
    """Return the configuration of an agent, with the owner's guards."""
    choices: tuple[Choice, ...] = getattr(agent.answer, "choices", ())
    rules = agent.rules
    return AgentStack(
        agent.card,
        tuple(choice.model for choice in choices),
        {choice.model: choice.keys for choice in choices if choice.keys},
        getattr(agent.answer, "max_tokens", None),
        rules.iterations,
        rules.memory,
        tuple(sorted(rules.approve_tools)),
        tuple(map(_hook_name, rules.before)),
        tuple(map(_hook_name, rules.after)),
        tuple(layer.name for layer in agent.around),
        tuple(guard.name for guard in guards),
        rules.timeout / SECOND if rules.timeout else None,
        agent.retry.attempts,
    )


def _hook_name(hook: object) -> str:
    return str(getattr(hook, "__qualname__", None) or type(hook).__qualname__)

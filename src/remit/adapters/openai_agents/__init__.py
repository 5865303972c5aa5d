"""Agents of the openai-agents framework as members of a team (`remit[openai-agents]`).

    rt.add(Card("coder", asks="*"), OpenAIAgentsGuest(agent, verbs=True))

Every request to a model and every call of a function tool, of the agent and of those it hands off to inside the
framework, goes through the turn.
"""

from remit.adapters.openai_agents.guest import OpenAIAgentsGuest
from remit.adapters.openai_agents.model import GovernedOpenAIModel, GovernedProvider
from remit.adapters.openai_agents.tools import boxed, verb_tools

__all__ = ["GovernedOpenAIModel", "GovernedProvider", "OpenAIAgentsGuest", "boxed", "verb_tools"]

"""Agents that are models with tools, based on pydantic-ai (`remit[llm]`)."""

import pydantic_ai

from remit.adapters.endpoints import key_in_environment
from remit.adapters.pydantic_ai.agent import GuestAgent, ModelAgent, guest, prompt_of
from remit.adapters.pydantic_ai.clients import AgentStopped, Clients, failure_of
from remit.adapters.pydantic_ai.model import MAX_TOKENS, GovernedModel

pydantic_ai.BANNER_ENABLED = False  # remit starts the runs, and the screen belongs to the user's program

__all__ = [
    "MAX_TOKENS",
    "AgentStopped",
    "Clients",
    "GovernedModel",
    "GuestAgent",
    "ModelAgent",
    "failure_of",
    "guest",
    "key_in_environment",
    "prompt_of",
]

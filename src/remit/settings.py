"""Settings of a runtime, which its owner chooses: values for `policy`, `serving` and `system`, and for an agent's
`retry`."""

from remit.core.backoff import RetryPolicy
from remit.core.bounds import tier_by_rules
from remit.core.breaker import BreakerPolicy
from remit.core.limits import Limit
from remit.core.loops import Loops
from remit.core.match import Certainty
from remit.engine.settings import Pace, Policy, Serving, System

__all__ = [
    "BreakerPolicy",
    "Certainty",
    "Limit",
    "Loops",
    "Pace",
    "Policy",
    "RetryPolicy",
    "Serving",
    "System",
    "tier_by_rules",
]

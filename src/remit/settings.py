"""What an owner may decide about a runtime: values for its `policy`, `serving` and `system`."""

from remit.core.breaker import BreakerPolicy
from remit.engine.settings import Pace, Policy, Serving, System

__all__ = ["BreakerPolicy", "Pace", "Policy", "Serving", "System"]

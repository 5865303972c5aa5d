"""The real clock and real ids."""

from remit.engine.system.clock import SystemClock, Timers
from remit.engine.system.ids import TimedIds
from remit.engine.system.standstill import USABLE, UsableTime

__all__ = ["USABLE", "SystemClock", "TimedIds", "Timers", "UsableTime"]

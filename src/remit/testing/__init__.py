"""For tests of remit and of what is built on it: a clock and ids under control, the contract of a store."""

from remit.testing.clock import FakeClock
from remit.testing.contract import check_store
from remit.testing.ids import CountedIds

__all__ = ["CountedIds", "FakeClock", "check_store"]

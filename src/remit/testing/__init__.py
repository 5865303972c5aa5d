"""For tests of remit and of what is built on it: a clock under control, deterministic ids, the contract of a store."""

from remit.testing.clock import FakeClock

__all__ = ["FakeClock"]

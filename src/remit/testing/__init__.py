"""Doubles and contracts for those who build on remit, the very ones its own tests use."""

from remit.testing.agents import Scripted
from remit.testing.clock import FakeClock, pass_time
from remit.testing.contract import check_store
from remit.testing.ids import CountedIds
from remit.testing.zombie import Zombie

__all__ = ["CountedIds", "FakeClock", "Scripted", "Zombie", "check_store", "pass_time"]

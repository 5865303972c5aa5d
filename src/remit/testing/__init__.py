"""Test doubles and the store contract, for users of remit. remit's own tests use the same ones."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.testing.agents import Scripted
    from remit.testing.clock import FakeClock, pass_time
    from remit.testing.contract import check_store
    from remit.testing.ids import CountedIds
    from remit.testing.zombie import Zombie

__all__ = ["CountedIds", "FakeClock", "Scripted", "Zombie", "check_store", "pass_time"]

# Where each name is defined. Names are imported on first use, because this package contains the pytest plugin,
# which pytest loads wherever remit is installed.
_HOME_OF = {
    "CountedIds": "ids",
    "FakeClock": "clock",
    "Scripted": "agents",
    "Zombie": "zombie",
    "check_store": "contract",
    "pass_time": "clock",
}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"remit.testing has no {name!r}")
    value: object = getattr(import_module(f"remit.testing.{home}"), name)
    globals()[name] = value
    return value

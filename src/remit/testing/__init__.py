"""Test doubles and the store contract, for users of remit. remit's own tests use the same ones."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.testing.contract import check_store
    from remit.testing.doubles import CountedIds, FakeClock, Scripted, Zombie, pass_time

__all__ = ["CountedIds", "FakeClock", "Scripted", "Zombie", "check_store", "pass_time"]

# Names are imported on first use, because this package contains the pytest plugin, which pytest loads wherever remit is
# installed.


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"remit.testing has no {name!r}")
    home = "contract" if name == "check_store" else "doubles"
    value: object = getattr(import_module(f"remit.testing.{home}"), name)
    globals()[name] = value
    return value

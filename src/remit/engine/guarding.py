"""Guards of the owner: `rt.guard`. They judge a hop after remit's own guards, while it is decided, and only if there is
one."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any, Final, cast

from remit.core.checks import callable_
from remit.core.guards import Verdict, deny
from remit.core.values import excerpt, shown
from remit.engine.approvals import WantedHop
from remit.engine.directory import OwnersGuard
from remit.engine.traces import owners_function
from remit.errors import BadInput

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}", re.ASCII)
_REASON: Final = 500  # characters
_FORM: Final = "`def office_hours(hop): return None if ... else 'come back at nine'`"


@dataclass(frozen=True, slots=True)
class OwnGuard:
    """A guard of the owner, with the name by which its refusals are known."""

    function: OwnersGuard

    def __post_init__(self) -> None:
        given: Any = self.function
        callable_(given, f"guard takes a function of a WantedHop: {_FORM}")
        if inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(getattr(given, "__call__", None)):  # noqa: B004 - its kind
            raise BadInput(
                f"a guard is a plain function, not an async one: it is asked while a hop is decided: {_FORM}"
            )
        if not _NAME.fullmatch(self.name):
            raise BadInput(f"a guard's refusals carry its name: write it with def, not as {shown(given)}: {_FORM}")
        try:
            inspect.signature(given).bind(None)
        except TypeError:
            raise BadInput(f"a guard takes one argument, a WantedHop, not {shown(given)}: {_FORM}") from None

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", None) or type(self.function).__name__)

    def verdict(self, hop: WantedHop) -> Verdict | None:
        """Return the refusal, or None if the guard has no objection."""
        with owners_function(f"the guard {self.name}"):
            said = cast("object", self.function(hop))
            if said is None or said is True:
                return None
            if inspect.iscoroutine(said):
                said.close()
            if said is False:
                why = f"the guard {self.name} says no"
            elif isinstance(said, str) and said.strip():
                why = excerpt(said, _REASON)
            else:
                raise TypeError(f"a guard returns None or True for yes, a text or False for no, not {shown(said)}")
        sentence = f"'{hop.agent}' was not asked: {why}; ask another agent, or finish without it"
        return deny(f"guard.{self.name}", sentence)

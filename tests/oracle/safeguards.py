"""The table of safeguards: what keeps a promise, what is done instead when it is removed, and who must notice.

Each replacement stands in for the code of the function itself, so the names it uses are looked up in that function's
module. They are imported here only for readers and type checkers.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from remit.core.allow import ANY
from remit.core.guards import ALLOW, admitted
from remit.core.scope import Scope

Witness = Literal["oracle", "spy", "zombie"]


class Safeguard(NamedTuple):
    """`witness` is the check that has to fail without it: random trees, pairs of worlds, or a process that others take
    for dead."""

    place: str
    instead: Callable[..., Any]
    witness: Witness = "oracle"

    @property
    def name(self) -> str:
        return f"{self.place.removeprefix('remit.')}, {self.witness}"


def allows(remit: Any, wish: Any, facts: Any) -> Any:
    return ALLOW


def asks_no_card(remit: Any, wish: Any, facts: Any) -> Any:
    return admitted(remit, wish, facts)


def first_only(a: Any, b: Any) -> Any:
    return a


def nothing(*given: Any) -> None:
    return None


def nothing_by_name(*given: Any, **named: Any) -> None:
    return None


def anything(*given: Any) -> Any:
    return ANY


def true(*given: Any) -> bool:
    return True


def false(*given: Any) -> bool:
    return False


def no_list(*given: Any, **named: Any) -> list[Any]:
    return []


def wanted_itself(self: Any, wanted: Any) -> Any:
    return [wanted]


def figures_only(data: Any) -> Any:
    return _exact(**{name: data[name] for name in _FIGURES if name in data})  # noqa: F821 # pyright: ignore[reportUndefinedVariable]


def one_board(session: Any) -> Any:
    return Scope("board:everyone")


def as_given(given: Any, *more: Any) -> Any:
    return given


def everyone(names: Any, remit: Any, card: Any) -> Any:
    return tuple(sorted(names))


def one_key(*given: Any) -> str:
    return "same"


def lowest(self: Any) -> int:
    return 0


_GUARDS: Final = "remit.core.guards"
_ACCESS: Final = "remit.engine.sharing.access:HolderAccess"
_LIVE: Final = "remit.engine.attempt.live:LiveTask"

SAFEGUARDS: Final = (
    # Who may be asked, and how far
    Safeguard(f"{_GUARDS}:not_self", allows),
    Safeguard(f"{_GUARDS}:known", allows),
    Safeguard(f"{_GUARDS}:allowed", asks_no_card),
    Safeguard(f"{_GUARDS}:admitted", allows),
    Safeguard(f"{_GUARDS}:no_loop", allows),
    Safeguard(f"{_GUARDS}:not_too_deep", allows),
    Safeguard(f"{_GUARDS}:in_time", allows),
    Safeguard(f"{_GUARDS}:not_broken", allows),
    Safeguard(f"{_GUARDS}:within_tier", allows),
    Safeguard(f"{_GUARDS}:not_to_itself", allows),
    Safeguard(f"{_GUARDS}:not_to_an_asker", allows),
    Safeguard(f"{_GUARDS}:few_handoffs", allows),
    Safeguard(f"{_GUARDS}:no_repeat", allows),
    Safeguard("remit.core.command:repeated", false),
    Safeguard("remit.core.plan:faults", no_list),
    Safeguard("remit.engine.directory:askable", everyone),
    Safeguard("remit.engine.sharing.inbox:Inbox._may_write_to", nothing),
    Safeguard("remit.core.chain:Chain.depth", lowest),
    Safeguard("remit.core.chain:Chain.replace_holder", as_given),
    # Bounds only get narrower
    Safeguard("remit.core.bounds:Bounds.__and__", first_only),
    Safeguard("remit.core.scope:both", first_only),
    Safeguard("remit.core.scope:both", first_only, "spy"),
    Safeguard("remit.core.allow:both", first_only),
    # What is seen, written and used
    Safeguard("remit.core.remit:sight", anything),
    Safeguard("remit.core.remit:sight", anything, "spy"),
    Safeguard("remit.core.remit:reach", anything),
    Safeguard("remit.core.remit:reach", anything, "spy"),
    Safeguard("remit.core.remit:kit", anything),
    Safeguard("remit.core.scope:covers", true),
    Safeguard(f"{_LIVE}.sees", true),
    Safeguard(f"{_ACCESS}._may_see", nothing),
    Safeguard(f"{_ACCESS}._may_see", nothing, "spy"),
    Safeguard(f"{_ACCESS}._may_write", nothing),
    Safeguard(f"{_ACCESS}._may_write", nothing, "spy"),
    Safeguard(f"{_ACCESS}._visible", wanted_itself),
    Safeguard(f"{_ACCESS}._visible", wanted_itself, "spy"),
    Safeguard(f"{_LIVE}.sight", anything),  # an asker passes on what it does not see
    Safeguard(f"{_LIVE}.sight", anything, "spy"),
    Safeguard("remit.core.scope:board_of", one_board),
    Safeguard("remit.core.scope:board_of", one_board, "spy"),
    Safeguard("remit.engine.sharing.context:_own", as_given),
    # Requests, and turns that are over
    Safeguard("remit.engine.queue.submitting:_same", nothing),
    Safeguard("remit.engine.queue.submitting:_dedup_key", one_key),
    Safeguard(f"{_LIVE}.must_be_at_work", nothing),
    Safeguard(f"{_LIVE}.must_hold", nothing, "zombie"),
    # What comes out of the store is what went in
    Safeguard("remit.core.bounds:restored", figures_only),
    Safeguard("remit.core.scope:restored", anything),
    Safeguard("remit.core.allow:names_restored", anything),
)

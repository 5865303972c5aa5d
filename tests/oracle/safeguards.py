"""The table of safeguards: what keeps a promise, what is done instead when it is removed, and who must notice.

Each replacement stands in for the code of the function itself, so the names it uses are looked up in that function's
module. They are imported here only for readers and type checkers.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from remit.core import allow, scope
from remit.core.allow import ANY
from remit.core.guards import ALLOW, admitted
from remit.core.identity import KEYED
from remit.core.remit import Kit, Rights
from remit.core.scope import Scope
from remit.core.trust import TRUSTED

Witness = Literal["oracle", "spy", "zombie"]


class Safeguard(NamedTuple):
    """`witness` is the check that has to fail without it: random trees, pairs of worlds, or a process that others take
    for dead. `begin` is the seed to try first, for one that is noticed late; all others are tried after it."""

    place: str
    instead: Callable[..., Any]
    witness: Witness = "oracle"
    begin: int = 0

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


def anything(*given: Any) -> Any:
    return ANY


def everything(*given: Any) -> Any:
    return Kit(ANY)


def true(*given: Any) -> bool:
    return True


def false(*given: Any) -> bool:
    return False


def no_list(*given: Any, **named: Any) -> list[Any]:
    return []


def as_wished(self: Any, wish: Any, session: Any) -> Any:
    return Rights(scope.on_board(wish.sees, session), scope.on_board(wish.writes, session), Kit(wish.tools))


def everything_too(remit: Any, to: Any, along: Any) -> Any:
    passed = along.rights
    return remit._replace(
        holder=to,
        chain=remit.chain.replace_holder(to),
        bounds=remit.bounds & along.within,
        sees=scope.either(remit.sees, passed.sees),
        writes=scope.either(remit.writes, passed.writes),
        tools=allow.either(remit.tools, passed.kit.names),
    )


def whatever_it_wrote(self: Any, namespace: Any, key: Any) -> Any:
    return self.wrote.get((namespace, key))


def inside(*given: Any) -> Any:
    return TRUSTED


def figures_only(data: Any) -> Any:
    return _exact(**{name: data[name] for name in _FIGURES if name in data})  # noqa: F821 # pyright: ignore[reportUndefinedVariable]


def one_board(session: Any) -> Any:
    return Scope("board:everyone")


def as_given(given: Any, *more: Any) -> Any:
    return given


def everyone(names: Any, remit: Any, card: Any) -> Any:
    return tuple(sorted(names))


def one_key(*given: Any, **named: Any) -> str:
    return "same"


def one_used_key(*given: Any) -> str:
    return f"{KEYED}same"


def lowest(*given: Any) -> int:
    return 0


_GUARDS: Final = "remit.core.guards"
_ACCESS: Final = "remit.engine.context:HolderAccess"
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
    Safeguard(f"{_GUARDS}:not_broken_for_a_person", allows, begin=50),
    Safeguard(f"{_GUARDS}:within_tier", allows),
    Safeguard(f"{_GUARDS}:room_for_task", allows),
    Safeguard(f"{_GUARDS}:not_to_itself", allows),
    Safeguard(f"{_GUARDS}:not_to_an_asker", allows),
    Safeguard(f"{_GUARDS}:few_handoffs", allows),
    Safeguard(f"{_GUARDS}:no_repeat", allows, begin=41),
    Safeguard("remit.core.loops:repeated", false, begin=41),
    Safeguard("remit.core.plan:faults", no_list),
    Safeguard("remit.engine.directory:askable", everyone),
    Safeguard("remit.engine.inbox:Inbox._may_write_to", nothing),
    Safeguard("remit.core.remit:Chain.depth", lowest),
    Safeguard("remit.core.remit:Chain.replace_holder", as_given),
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
    Safeguard("remit.core.remit:kit", everything),
    Safeguard("remit.core.allow:without", as_given),
    Safeguard("remit.core.scope:covers", true),
    Safeguard(f"{_LIVE}.sees", true),
    Safeguard(f"{_LIVE}.sees", true, "spy"),
    Safeguard(f"{_LIVE}._wrote", whatever_it_wrote, begin=138),  # the ceiling holds for that too
    Safeguard(f"{_ACCESS}._may_write", nothing),
    Safeguard(f"{_ACCESS}._may_write", nothing, "spy"),
    Safeguard("remit.engine.context:Sight.must_cover", nothing),
    Safeguard("remit.engine.context:Sight.must_cover", nothing, "spy", begin=22),
    Safeguard("remit.core.remit:Rights.passed_on", as_wished),  # an asker passes on what it does not have
    Safeguard("remit.core.remit:Rights.passed_on", as_wished, "spy"),
    Safeguard("remit.core.remit:handed_to", everything_too),
    Safeguard("remit.core.scope:board_of", one_board),
    Safeguard("remit.core.scope:board_of", one_board, "spy"),
    Safeguard("remit.engine.context:_own", as_given),
    # What is from outside stays so
    Safeguard(f"{_LIVE}.take", nothing),
    Safeguard(f"{_LIVE}.says", inside),
    Safeguard("remit.core.trust:least", inside, begin=48),
    # Requests, tasks of others, and turns that are over
    Safeguard("remit.engine.queue.submitting:_same", nothing),
    Safeguard("remit.core.identity:content_of", one_key),
    Safeguard("remit.core.identity:keyed", one_used_key),
    Safeguard("remit.engine.queue.control:_is_below", true, "spy", begin=242),
    Safeguard(f"{_LIVE}.must_be_at_work", nothing),
    Safeguard(f"{_LIVE}.must_hold", nothing, "zombie"),
    # What comes out of the store is what went in
    Safeguard("remit.core.bounds:restored", figures_only),
    Safeguard("remit.core.scope:restored", anything),
    Safeguard("remit.core.allow:names_restored", anything),
)

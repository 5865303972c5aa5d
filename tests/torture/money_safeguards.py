"""The table of what keeps the books right: what is done instead when it is removed, and which test must fail then.

Each replacement stands in for the code of the function itself, so the names it uses are looked up in that function's
module. They are imported here only for readers and type checkers. What hides behind another is removed with it.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from remit.core import lifecycle
from remit.core.money import ACCOUNT, LeaseMove, Short, closed_moves, first_line
from remit.core.raising import Raise, tightest
from remit.engine.accounts import _Room  # pyright: ignore[reportPrivateUsage]
from remit.engine.door import holds_resolve, resolved
from remit.ports import Decision

Patch = tuple[str, Callable[..., Any]]


class MoneySafeguard(NamedTuple):
    """`witness` is a test of `engine` that has to fail, or "seeds" for the random teams."""

    name: str
    patches: tuple[Patch, ...]
    witness: str


def no_list(*given: Any, **named: Any) -> list[Any]:
    return []


def nothing(*given: Any) -> None:
    return None


async def nothing_later(*given: Any) -> int:
    return 0


def empty(*given: Any) -> dict[str, Any]:
    return {}


# -- what is there --------------------------------------------------------------------------------------------


def only_more_than_enough(self: Any, path: Any, unit: Any, wanted: Any, own: Any = 0) -> Any:
    leases = [lease for id_ in first_line(path) if (lease := self.lease(id_, unit)) is not None]
    return [Short(lease, wanted, True) for lease in leases if lease.available <= wanted or lease.state == "frozen"]


def frozen_or_not(self: Any, path: Any, unit: Any, wanted: Any, own: Any = 0) -> Any:
    leases = [lease for id_ in first_line(path) if (lease := self.lease(id_, unit)) is not None]
    never = [(lease, wanted > lease.granted - lease.spent - own) for lease in leases]
    return [Short(lease, wanted, for_good) for lease, for_good in never if lease.available < wanted]


def not_for_good(self: Any, path: Any, unit: Any, wanted: Any, own: Any = 0) -> Any:
    leases = [lease for id_ in first_line(path) if (lease := self.lease(id_, unit)) is not None]
    return [Short(lease, wanted, True) for lease in leases if lease.available < wanted or lease.state == "frozen"]


# -- ends -----------------------------------------------------------------------------------------------------


def only_what_left(view: Any, event: Any, standing: Any) -> Any:
    return [resolved(hold, event.at, "") for hold in view.holds(event.task) if hold.state != "held"]


def only_what_is_held(view: Any, event: Any, standing: Any) -> Any:
    return [resolved(hold, event.at, "") for hold in view.holds(event.task) if hold.state == "held"]


def only_at_ends(happening: Any, event: Any, standing: Any) -> Any:
    return holds_resolve(happening.view, event, standing) if event.kind in lifecycle.ENDS else ()


def idle_even_if_used(self: Any) -> bool:
    return not (self.lent or self.reserved)


def idle_even_if_lent(self: Any) -> bool:
    return not (self.users or self.reserved)


def alone(self: Any, id_: Any, unit: Any) -> Any:
    lease = self.lease(id_, unit)
    if lease is None or not lease.is_idle or lease.kind == "account":
        return []
    row = [lease.id, unit, lease.kind, [*lease.above], lease.granted, lease.spent, lease.overrun]
    self._gone.add((lease.id, unit))
    self.move(closed_moves({"closes": [row]}))
    return [row]


def nobody_shares(purse: Any, task: Any) -> Any:
    return []


# -- paths ----------------------------------------------------------------------------------------------------


def a_cap_by_itself(path: Any, opening: Any, lease: Any) -> Any:
    return path if opening is None else ((lease,), *path)


def caps_use_nothing(data: Any) -> Any:
    purse = data.get("purse") or {}
    moves: list[Any] = []
    opens = {unit: (kind, amount) for unit, kind, amount in data.get("opens", ())}
    shares = data.get("asked_how", "delegate") != "delegate"
    for unit, path in purse.items():
        kind, amount = opens.get(unit, ("", 0))
        if kind == "carve":
            moves += [LeaseMove(lease, unit, available=-amount, lent=amount) for lease in first_line(path[1:])]
        elif not kind and shares:
            moves += [LeaseMove(lease, unit, users=1) for lease in first_line(path)[:1] if lease != ACCOUNT]
    return moves


def caps_leave_nothing(data: Any) -> Any:
    moves = [LeaseMove(lease, unit, users=-1) for lease, unit in data.get("leaves", ())]
    for _, unit, kind, above, granted, spent, _ in data.get("closes", ()):
        if kind == "carve":
            back = granted - spent
            moves += [LeaseMove(lease, unit, available=back, lent=-granted, spent=spent) for lease in above]
    return moves


# -- charges --------------------------------------------------------------------------------------------------


def given_back_twice(path: Any, unit: Any, amount: Any, cost: Any) -> Any:
    first, *rest = path[0] if path else ("",)
    if not first:
        return []
    own = LeaseMove(first, unit, available=amount, reserved=-amount, spent=cost)
    return [own, *(LeaseMove(lease, unit, available=amount, lent=-amount, spent=cost) for lease in rest)]


def overrun_is_spent(unit: Any, steps: Any) -> Any:
    return [LeaseMove(lease, unit, available=-taken, spent=taken + lacked) for lease, taken, lacked in steps]


def first_line_only(self: Any, path: Any, unit: Any, amount: Any) -> Any:
    found = [lease for id_ in first_line(path) if (lease := self.lease(id_, unit)) is not None]
    return [[lease.id, min(lease.available, amount), max(0, amount - lease.available)] for lease in found]


def room_for_all(book: Any, purse: Any, unit: Any, held: Any, *, limited: Any) -> Any:
    return _Room(1 << 63, 1 << 63)


async def charged_before_start(self: Any, kind: Any, error: Any, traceback: Any) -> None:
    if not self._sent:
        await self._holding.release(self._live, self.hold, "")
    else:
        await self._holding.settle(self._live, self.hold, self._costs)


async def whatever_state_it_is_in(self: Any, live: Any, hold: Any, events: Any) -> bool:
    def decide(view: Any) -> Any:
        live.must_own(view)
        found = view.hold(hold)
        return Decision(False) if found is None else Decision(True, events(view, found))

    try:
        return (await self.ground.store.tx(f"{hold}/settle", decide)).answer
    except Refused:  # noqa: F821 # pyright: ignore[reportUndefinedVariable]
        return False


def of_this_try(self: Any, why: Any, *amounts: Any) -> str:
    return f"{self._origin}/{self._failures}/spends/{self._next(why)}"


def whatever_key(self: Any, purse: Any) -> Any:
    return purse


def whatever_the_account_has(book: Any, path: Any, want: Any, amount: Any) -> Any:
    takes = [[id_, amount] for line in path[1:] for id_ in line]
    lease = tightest(book, path, want)
    return Raise([[lease.id, amount]] if lease is not None else [], takes, 0)


def out_of_nothing(data: Any) -> Any:
    return [LeaseMove(lease, data["unit"], granted=more, available=more) for lease, more in data["adds"]]


_BOOK: Final = "remit.core.money:Book"
_LEASES: Final = "remit.core.money"
_MOVES: Final = "remit.core.money"
_DOOR: Final = "remit.engine.door"
_HOLDING: Final = "remit.engine.money"
_BILLS: Final = "remit.engine.accounts"
_LIVE: Final = "remit.engine.attempt.live:LiveTask"
_ENDS: Final = "test_money_ends:test_however_a_task_ends_what_was_held_is_released_and_what_left_is_charged"
_ZOMBIE: Final = "test_money_ends:test_after_a_takeover_the_dead_settle_and_pay_nothing"
_OUTLIVES: Final = "test_money_ends:test_what_outlives_its_asker_and_its_run_keeps_the_lease_open_and_gives_it_back"
_GRANTS: Final = "test_money:test_from_the_first_grant_on_nothing_is_spent_that_is_not_there"
_EIGHT: Final = "test_money:test_eight_at_once"
_FROZEN: Final = "test_overruns:test_an_account_that_was_overrun_pays_for_nothing_until_the_owner_unfreezes_it"
_UNKNOWN: Final = "test_overruns:test_a_call_that_turns_out_to_have_cost_more_than_there_is_freezes_the_account_too"
_WORDS: Final = "test_money:test_nothing_said_shares_a_bound_limits_and_credits_are_set_aside"
_EXACT: Final = "test_money:test_exactly_what_is_there_may_be_held_spent_and_set_aside"
_UNDER_WAY: Final = "test_overruns:test_a_turn_under_way_is_refused_when_the_account_is_frozen"
_BATCH: Final = "test_money:test_a_batch_is_judged_whole_however_quick_its_first_is"
_LISTED: Final = "test_spending_limits:test_all_limits_that_something_does_not_fit_are_listed"
_OWN_KEY: Final = "test_spending_limits:test_with_a_key_of_its_own_the_workspace_is_charged_nothing_and_limits_hold"
_EXPIRED: Final = "test_paying:test_what_is_held_and_does_not_start_in_15_minutes_is_released"
_BEFORE: Final = "test_paying:test_what_is_only_held_is_released_also_when_the_block_ends_with_an_error"
_BEYOND: Final = "test_overruns:test_a_bill_that_a_person_confirms_is_paid_by_what_the_lease_was_taken_from"
_STOPS: Final = "test_overruns:test_a_bill_beyond_the_lease_stops_at_the_lease"
_DISPUTED: Final = "test_overruns:test_an_agent_pays_for_nothing_until_a_person_has_said_what_its_call_cost"
_ONCE: Final = "test_paying:test_a_payment_is_found_again_by_what_it_is_for_and_how_often"
_LAST_MONEY: Final = "test_more_money:test_siblings_do_not_both_get_the_last_money"
_IN_ONE_STEP: Final = "test_more_money:test_all_leases_up_to_the_account_are_raised_in_one_step"
_PRUNED: Final = "test_money_ends:test_a_call_is_reconciled_after_its_run_is_pruned"


def _one(name: str, place: str, instead: Callable[..., Any], witness: str) -> MoneySafeguard:
    return MoneySafeguard(name, ((place, instead),), witness)


SAFEGUARDS: Final = (
    # What may be held and spent
    _one("what is available", f"{_BOOK}.shorts", no_list, _GRANTS),
    _one(
        "exactly what is there",
        f"{_BOOK}.shorts",
        only_more_than_enough,
        _EXACT,
    ),
    _one(
        "a frozen account",
        f"{_BOOK}.shorts",
        frozen_or_not,
        _UNDER_WAY,
    ),
    _one("waiting for others", f"{_BOOK}.shorts", not_for_good, _EIGHT),
    _one(
        "a batch judged whole",
        "remit.engine.attempt.slots:Batch.wait",
        nothing_later,
        _BATCH,
    ),
    _one(
        "limits",
        f"{_HOLDING}:Holding._exceeded",
        no_list,
        _LISTED,
    ),
    _one(
        "an own key",
        f"{_HOLDING}:Bill.paid_from",
        whatever_key,
        _OWN_KEY,
    ),
    # Ends
    _one("release of what is held", f"{_DOOR}:holds_resolve", only_what_left, _ENDS),
    _one("charge of what left", f"{_DOOR}:holds_resolve", only_what_is_held, _ENDS),
    _one("calls end when a task is taken away", "remit.engine.consequences:calls_end", only_at_ends, _ZOMBIE),
    _one("leases close", f"{_DOOR}:leases_close", empty, _ENDS),
    _one("leases close, at random", f"{_DOOR}:leases_close", empty, "seeds"),
    _one("users keep a lease open", f"{_LEASES}:Lease.is_idle", idle_even_if_used, _OUTLIVES),
    _one("what is lent keeps a lease open", f"{_LEASES}:Lease.is_idle", idle_even_if_lent, _OUTLIVES),
    _one("what is lent, at random", f"{_LEASES}:Lease.is_idle", idle_even_if_lent, "seeds"),
    _one("closing goes upwards", f"{_BOOK}.close", alone, _OUTLIVES),
    _one("sharers leave", f"{_DOOR}:_shared", nobody_shares, _OUTLIVES),
    _one(
        "expiry",
        "remit.engine.accounts:Accounts.expire",
        nothing_later,
        _EXPIRED,
    ),
    # Paths
    _one("a cap is passed up its line", f"{_LEASES}:shared", a_cap_by_itself, _WORDS),
    _one("a cap is passed up, at random", f"{_LEASES}:shared", a_cap_by_itself, "seeds"),
    MoneySafeguard(
        "caps count as users",
        ((f"{_MOVES}:_opened", caps_use_nothing), (f"{_MOVES}:closed_moves", caps_leave_nothing)),
        _OUTLIVES,
    ),
    # Charges
    _one("what is unused goes back once", f"{_MOVES}:_resolved", given_back_twice, _GRANTS),
    _one(
        "release before the start",
        "remit.engine.money:PaidCall.__aexit__",
        charged_before_start,
        _BEFORE,
    ),
    _one("an overrun is recorded", f"{_BOOK}.charge", no_list, _FROZEN),
    _one(
        "an overrun is paid by what is above",
        f"{_BOOK}.charge",
        first_line_only,
        _BEYOND,
    ),
    _one("an overrun is not spent", f"{_MOVES}:_charged", overrun_is_spent, _FROZEN),
    _one("an overrun freezes", f"{_BILLS}:frozen", no_list, _FROZEN),
    _one("an overrun found later freezes", f"{_BILLS}:frozen", no_list, _UNKNOWN),
    _one("a bill stops at its lease", f"{_BILLS}:_room", room_for_all, _STOPS),
    _one("a bill is disputed", "remit.stores.views:LedgerQueries.disputed", nothing, _DISPUTED),
    _one(
        "a payment is the same in every try",
        "remit.engine.attempt.operations:Operations.spend",
        of_this_try,
        _ONCE,
    ),
    # More money
    _one("no more than the account has", "remit.core.raising:raising", whatever_the_account_has, _LAST_MONEY),
    _one("leases above are raised too", "remit.core.raising:raising", whatever_the_account_has, _IN_ONE_STEP),
    _one("more money comes from above", f"{_MOVES}:_raised", out_of_nothing, _IN_ONE_STEP),
    # Those that are taken for dead
    _one("the fence of a payment", f"{_LIVE}.must_hold", nothing, _ZOMBIE),
    MoneySafeguard(
        "the fence and the state of a call",
        ((f"{_LIVE}.must_own", nothing), (f"{_HOLDING}:Holding._resolved", whatever_state_it_is_in)),
        _ZOMBIE,
    ),
    # Afterwards
    _one(
        "what is pruned is carried",
        "remit.engine.upkeep.prune:carry_over",
        no_list,
        _PRUNED,
    ),
)
# Each of these alone is not noticed: the other stands behind it, and behind both the checks of the tables.
HIDDEN: Final = (
    _one("the fence of a call", f"{_LIVE}.must_own", nothing, _ZOMBIE),
    _one("the state of a call", f"{_HOLDING}:Holding._resolved", whatever_state_it_is_in, _ZOMBIE),
)

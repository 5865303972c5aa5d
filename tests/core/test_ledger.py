"""The ledger: whatever is held, settled, set aside, capped and closed, no credit is made and none is lost."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.made import MADE
from core.make import NOW, journal
from core.paper import Desk
from remit.core.events import Place, Unsealed
from remit.core.kinds.money import ledger_event
from remit.core.ledger import counted_in
from remit.core.money import (
    ACCOUNT,
    MOVES,
    MOVING,
    NO_PURSE,
    UNITS,
    Book,
    Hold,
    Lease,
    LeaseMove,
    LeaseOpening,
    Short,
    Unit,
    amount_text,
    figures,
    first_line,
    moves,
    opened_by,
    owned,
    purse_data,
    purse_restored,
    shared,
)
from remit.core.projection import PROJECTION, changes
from remit.core.raising import Raise, Want, lacking, raising, tightest

# -- the law --------------------------------------------------------------------------------------------------

amounts = st.integers(0, 60)
units = st.sampled_from(UNITS)
openings = st.lists(
    st.tuples(units, st.sampled_from(("carve", "cap")), amounts), max_size=2, unique_by=lambda opening: opening[0]
)
ways = st.sampled_from(("delegate", "delegate", "spawn", "submit"))
bills = st.dictionaries(units, st.integers(1, 40), min_size=1)


class Ledger(RuleBasedStateMachine):
    """Any tree of tasks, any calls: after each event every lease is balanced, and what the leases with money of their
    own have spent is what was billed."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()

    @initialize(credits=st.none() | st.integers(1, 200), tokens=st.none() | st.integers(1, 200))
    def granted(self, credits: int | None, tokens: int | None) -> None:
        grants: dict[Unit, int | None] = {"credits": credits, "tokens": tokens}
        for unit, amount in grants.items():
            if amount is not None:
                self.desk.grant(unit, amount)

    def one(self, data: st.DataObject, of: Any) -> Any:
        return data.draw(st.sampled_from(sorted(of)))

    @rule(data=st.data(), opens=openings, asked_how=ways)
    def begin(self, data: st.DataObject, opens: Any, asked_how: str) -> None:
        under = data.draw(st.sampled_from(["", *sorted(self.desk.jobs)]))
        if len(self.desk.jobs) < 12:
            self.desk.begin(under, opens, asked_how if under else "submit")

    @precondition(lambda self: self.desk.jobs)
    @rule(data=st.data(), amounts=bills, state=st.sampled_from(("held", "started")))
    def hold(self, data: st.DataObject, amounts: Any, state: str) -> None:
        self.desk.hold(self.one(data, self.desk.jobs), amounts, state)

    @precondition(lambda self: self.desk.holds)
    @rule(data=st.data(), costs=st.dictionaries(units, amounts))
    def settle(self, data: st.DataObject, costs: Any) -> None:
        self.desk.settle(self.one(data, self.desk.holds), {unit: cost for unit, cost in costs.items() if cost})

    @precondition(lambda self: self.desk.holds)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.desk.release(self.one(data, self.desk.holds))

    @precondition(lambda self: self.desk.jobs)
    @rule(data=st.data(), unit=units, amount=st.integers(1, 40))
    def spend(self, data: st.DataObject, unit: Unit, amount: int) -> None:
        self.desk.spend(self.one(data, self.desk.jobs), unit, amount)

    @precondition(lambda self: self.desk.jobs)
    @rule(data=st.data(), unit=units, amount=st.integers(1, 80), wanted=st.integers(1, 80))
    def give(self, data: st.DataObject, unit: Unit, amount: int, wanted: int) -> None:
        self.desk.give(self.one(data, self.desk.jobs), unit, amount, wanted)

    @precondition(lambda self: self.desk.jobs)
    @rule(data=st.data(), tokens=amounts)
    def use(self, data: st.DataObject, tokens: int) -> None:
        self.desk.use(self.one(data, self.desk.jobs), tokens)

    @precondition(lambda self: self.desk.jobs)
    @rule(data=st.data(), unit=units, amount=amounts)
    def hand(self, data: st.DataObject, unit: Unit, amount: int) -> None:
        self.desk.hand(self.one(data, self.desk.jobs), unit, amount)

    @precondition(lambda self: self.desk.jobs)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.desk.end(self.one(data, self.desk.jobs))

    @rule(unit=units, amount=st.integers(1, 100))
    def grant_more(self, unit: Unit, amount: int) -> None:
        if self.desk.lease(ACCOUNT, unit) is not None:
            self.desk.grant(unit, amount)

    @invariant()
    def leaves_are_the_root(self) -> None:
        for unit in UNITS:
            assert self.desk.metered(unit) == self.desk.billed[unit]
            account = self.desk.lease(ACCOUNT, unit)
            if account is not None:
                own = [lease for lease in self.desk.leases if lease.unit == unit and lease.kind != "cap"]
                assert sum(lease.spent for lease in own) + account.overrun == self.desk.billed[unit]

    def teardown(self) -> None:
        """When all have ended nothing is left but the account, and nothing in it is set aside."""
        while self.desk.jobs:
            self.desk.end(min(self.desk.jobs))
        for lease in self.desk.leases:
            assert lease.id == ACCOUNT
            assert lease.is_idle
            assert lease.spent + lease.overrun == self.desk.billed[lease.unit]
        assert self.desk.holds == []


TestLedger = pytest.mark.rule("money.balanced", "money.leaves")(Ledger.TestCase)
TestLedger.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


# -- what moves ---------------------------------------------------------------------------------------------------

PLACE = Place("t1", "s", "t1")


def lease(id_: str, granted: int = 100, *, kind: Any = "carve", above: tuple[str, ...] = (), **figures_: Any) -> Lease:
    """A lease of which all is available but what is said."""
    taken = sum(figures_.get(name, 0) for name in ("reserved", "lent", "spent"))
    full: dict[str, Any] = {"reserved": 0, "lent": 0, "spent": 0, "overrun": 0, "users": 0, "state": "open"} | figures_
    return Lease(id_, full.pop("unit", "credits"), kind, above, granted, granted - taken, **full)


def book(*leases: Lease) -> Book:
    known = {(one.id, one.unit): one for one in leases}
    return Book(lambda id_, unit: known.get((id_, unit)))


def told(kind: str, **data: Any) -> Unsealed:
    return ledger_event(kind, PLACE, "coder", NOW, data)


LINE = {"credits": [["a", "account"], ["b"]]}


@pytest.mark.rule("money.line")
def test_a_hold_reserves_in_the_first_of_its_line_and_lends_in_the_others():
    placed = told("hold.placed", amounts={"credits": 10, "tokens": 5}, purse=LINE)
    assert moves(placed) == [
        LeaseMove("a", "credits", available=-10, reserved=10),
        LeaseMove("account", "credits", available=-10, lent=10),
    ]


@pytest.mark.rule("money.line")
def test_a_settled_hold_spends_what_it_cost_in_all_of_its_line_and_gives_the_rest_back():
    settled = told("hold.settled", amounts={"credits": 10}, purse=LINE, costs={"credits": 4})
    assert moves(settled) == [
        LeaseMove("a", "credits", available=6, reserved=-10, spent=4),
        LeaseMove("account", "credits", available=6, lent=-10, spent=4),
    ]


@pytest.mark.rule("money.overrun")
def test_what_it_cost_beyond_the_hold_is_charged_in_steps():
    steps = {"credits": [["a", 3, 2], ["account", 5, 0]]}
    settled = told("hold.settled", amounts={"credits": 10}, purse=LINE, costs={"credits": 15}, steps=steps)
    assert moves(settled)[2:] == [
        LeaseMove("a", "credits", available=-3, spent=3, overrun=2),
        LeaseMove("account", "credits", available=-5, spent=5),
    ]


def test_a_released_hold_is_available_again():
    released = told("hold.released", amounts={"credits": 10}, purse={"credits": [["a"]]})
    assert moves(released) == [LeaseMove("a", "credits", available=10, reserved=-10)]


def test_every_event_that_moves_money_says_so_in_its_data():
    moving = [event for event in MADE if moves(event)]
    assert {event.kind for event in moving} > {"task.completed", "hold.placed", "hold.settled"}
    assert not [event.kind for event in moving if MOVING.isdisjoint(event.data)], "add the name to MOVING"


def test_what_nobody_bounds_moves_nothing():
    for kind in ("hold.placed", "hold.settled", "hold.released"):
        assert moves(told(kind, amounts={"credits": 10}, purse={})) == []
    assert moves(told("task.started")) == []
    assert moves(told("task.handed", purse=LINE)) == []  # nothing narrower was said
    assert moves(told("task.completed", result=1)) == []


@pytest.mark.rule("money.reconcile")
def test_what_was_charged_too_much_goes_back_and_what_was_too_little_is_charged():
    back = told("hold.reconciled", back={"credits": [6, ["a", "account"]]})
    assert moves(back) == [
        LeaseMove("a", "credits", available=6, spent=-6),
        LeaseMove("account", "credits", available=6, spent=-6),
    ]
    more = told("hold.reconciled", steps={"tokens": [["a", 1, 0]]})
    assert moves(more) == [LeaseMove("a", "tokens", available=-1, spent=1)]


def test_the_first_grant_makes_the_account_and_the_next_adds_to_it():
    first = told("account.granted", unit="credits", amount=10, first=True)
    assert (moves(first), opened_by(first)) == ([], [lease(ACCOUNT, 10, kind="account")])
    more = told("account.granted", unit="credits", amount=5)
    assert (moves(more), opened_by(more)) == ([LeaseMove(ACCOUNT, "credits", granted=5, available=5)], [])


@pytest.mark.rule("money.three-words")
def test_setting_aside_lends_in_the_line_above_a_cap_uses_it_and_sharing_does_neither():
    carve = told("task.started", purse={"credits": [["t"], ["a", "account"]]}, opens=[["credits", "carve", 7]])
    assert moves(carve) == [
        LeaseMove("a", "credits", available=-7, lent=7),
        LeaseMove("account", "credits", available=-7, lent=7),
    ]
    assert opened_by(carve) == [lease("t", 7, above=("a", "account"))]
    cap = told("task.started", purse={"credits": [["t", "a", "account"]]}, opens=[["credits", "cap", 7]])
    assert moves(cap) == [LeaseMove("a", "credits", users=1)]
    assert opened_by(cap) == [lease("t", 7, kind="cap", above=("a", "account"))]
    assert moves(told("task.started", purse=LINE)) == []


@pytest.mark.rule("money.outlives")
def test_who_shares_from_the_queue_is_counted_because_it_may_outlive_the_owner_but_not_in_the_account():
    queued = told("task.submitted", purse={"credits": [["a"]], "tokens": [["account"]]}, asked_how="spawn")
    assert moves(queued) == [LeaseMove("a", "credits", users=1)]
    capped = told("task.submitted", purse={"credits": [["t", "account"]]}, opens=[["credits", "cap", 7]])
    assert moves(capped) == []


@pytest.mark.rule("money.short")
def test_money_that_is_added_comes_out_of_the_lines_above_as_far_as_they_have_it():
    cap, own = lease("cap", 40, kind="cap", spent=30), lease("own", 60, spent=40)
    above, top = lease("above", 100, spent=95), lease(ACCOUNT, 500, kind="account", lent=100)
    path = (("cap", "own"), ("above",), (ACCOUNT,))
    books, want = book(cap, own, above, top), Want("credits", 25, "t1")
    assert (tightest(books, path, want), lacking(books, path, want)) == (cap, 15)
    given = raising(books, path, want, 30)
    assert given == Raise([["cap", 30], ["own", 20], ["above", 15]], [["above", 20], [ACCOUNT, 15]], 0)
    data = {"unit": "credits", "adds": given.adds, "takes": given.takes}
    books.move(moves(told("lease.raised", **data)))
    left = {one: books.lease(one, "credits") for one in ("cap", "own", "above", ACCOUNT)}
    assert {name: one.available for name, one in left.items() if one} == {
        "cap": 40,
        "own": 40,
        "above": 0,
        ACCOUNT: 385,
    }
    assert all(one.is_balanced for one in left.values() if one)


@pytest.mark.rule("money.short")
def test_money_that_is_added_is_never_more_than_the_account_has():
    own, top = lease("own", 60, spent=60), lease(ACCOUNT, 100, kind="account", lent=60)
    want = Want("credits", 10, "t1")
    assert raising(book(own, top), (("own",), (ACCOUNT,)), want, 45).lacks == 5
    assert raising(book(lease("own", 60, kind="cap", spent=60), top), (("own", ACCOUNT),), want, 45).lacks == 5
    assert raising(book(own, top._replace(state="frozen")), (("own",), (ACCOUNT,)), want, 10).lacks == 10
    assert raising(book(own), (("own",), ("gone",)), want, 45) == Raise([["own", 45]], [], 0)
    wide = book(lease("wide", 500, kind="cap"), own, top)
    assert raising(wide, (("wide", "own"), (ACCOUNT,)), want, 10) == Raise([["own", 10]], [[ACCOUNT, 10]], 0)
    assert tightest(book(top), ((ACCOUNT,),), want) is None
    assert lacking(book(top), ((ACCOUNT,),), want) == 0
    kept = Want("credits", 10, "own", kept=7)
    assert lacking(book(own, top), (("own",), (ACCOUNT,)), kept) == 17


def test_money_out_of_nothing_has_no_line_above():
    root = told("task.started", purse={"credits": [["t"]]}, opens=[["credits", "carve", 7]])
    assert (moves(root), opened_by(root)) == ([], [lease("t", 7)])


def test_a_lease_that_closes_gives_back_what_is_left_and_says_what_was_spent():
    ended = told("task.failed", leaves=[["b", "tokens"]], closes=[["t", "credits", "carve", ["a"], 10, 4, 0]])
    assert moves(ended) == [LeaseMove("b", "tokens", users=-1), LeaseMove("a", "credits", 0, 6, 0, -10, 4)]
    capped = told("task.failed", closes=[["t", "credits", "cap", ["a", "account"], 10, 4, 0]])
    assert moves(capped) == [LeaseMove("a", "credits", users=-1)]
    assert moves(told("task.failed", closes=[["t", "credits", "cap", ["account"], 10, 4, 0]])) == []


def test_every_event_that_moves_money_is_projected():
    assert MOVES.keys() <= PROJECTION.keys()


# -- purses ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.three-words")
def test_a_task_pays_along_the_path_of_its_asker_or_one_that_begins_with_its_own():
    path = (("a", "account"), ("b",))
    assert shared(path, None, "t") is path
    assert shared(path, LeaseOpening("credits", "cap", 5), "t") == (("t", "a", "account"), ("b",))
    assert shared(path, LeaseOpening("credits", "carve", 5), "t") == (("t",), ("a", "account"), ("b",))
    assert shared((), LeaseOpening("credits", "cap", 5), "t") == (("t",),)
    assert (first_line(path), first_line(())) == (("a", "account"), ())


def test_a_purse_comes_out_of_its_text_as_it_went_in():
    purse: dict[Unit, Any] = {"credits": (("a", "account"), ("b",)), "tokens": (("account",),)}
    assert purse_restored(purse_data(purse)) == purse
    assert purse_restored({}) == NO_PURSE


def test_a_task_owns_what_began_with_it_and_with_its_handoffs():
    purse: dict[Unit, Any] = {"credits": (("t1.2", "t1.1", "t1", "t10"),), "tokens": (("t10",), ("t1",))}
    assert owned(purse, "t1") == [("t1.2", "credits"), ("t1.1", "credits"), ("t1", "credits")]


def test_a_hold_is_of_the_units_that_it_has():
    hold = Hold("h", "t", "r", "s", "a", 1, "held", 5, 0, "{}", 0, "", "x", "", "")
    assert hold.claimed == {}
    assert hold._replace(billed='{"tokens":7}').claimed == {"tokens": 7}
    assert hold.amounts == {"credits": 5}
    assert hold._replace(tokens=3).amounts == {"credits": 5, "tokens": 3}


# -- one decision -----------------------------------------------------------------------------------------------


def test_a_book_sees_what_its_decision_has_done_so_far_and_each_event_once():
    found = book(lease("a"))
    placed = told("hold.placed", amounts={"credits": 30}, purse={"credits": [["a"]]})
    for _ in range(2):
        found.note(placed)
    found.note(told("task.waiting"))
    after = found.lease("a", "credits")
    assert after is not None
    assert (after.available, after.reserved) == (70, 30)
    found.note(told("task.started", purse={"credits": [["t"], ["a"]]}, opens=[["credits", "carve", 20]]))
    assert (found.lease("t", "credits"), found.lease("a", "tokens")) == (lease("t", 20, above=("a",)), None)


@pytest.mark.rule("money.exact")
def test_what_is_exactly_there_is_enough():
    found = book(lease("a", 100, spent=40))
    assert found.shorts((("a",),), "credits", 60) == []
    [short] = found.shorts((("a",),), "credits", 61)
    assert (short.wanted, short.for_good) == (61, True)


@pytest.mark.rule("money.waits")
def test_what_only_others_hold_may_be_waited_for():
    found = book(lease("a", 100, spent=40, reserved=30))
    wanted = {50: False, 60: False, 61: True}  # held by others; exactly what is not spent; more than that
    for amount, for_good in wanted.items():
        assert [short.for_good for short in found.shorts((("a",),), "credits", amount)] == [for_good]
    assert [short.for_good for short in found.shorts((("a",),), "credits", 40, own=20)] == [False]
    assert [short.for_good for short in found.shorts((("a",),), "credits", 41, own=20)] == [True]  # it holds it itself


def test_every_lease_of_the_line_has_to_have_it_and_what_is_behind_the_line_does_not():
    found = book(lease("a", 10, kind="cap"), lease("b", 5), lease("c", 0))
    assert [short.lease.id for short in found.shorts((("a", "b"), ("c",)), "credits", 7)] == ["b"]
    assert [short.lease.id for short in found.shorts((("a", "b"), ("c",)), "credits", 11)] == ["a", "b"]
    assert found.shorts((("gone",),), "credits", 11) == []
    assert found.shorts((), "credits", 11) == []


@pytest.mark.rule("money.frozen")
def test_a_frozen_account_pays_for_nothing_however_much_it_has():
    found = book(lease(ACCOUNT, 100, kind="account", state="frozen"))
    assert [short.for_good for short in found.shorts(((ACCOUNT,),), "credits", 1)] == [True]


@pytest.mark.rule("money.overrun")
def test_a_bill_beyond_the_hold_is_taken_from_the_line_then_from_the_money_above_and_what_is_nowhere_is_overrun():
    found = book(lease("a", 10, spent=6), lease(ACCOUNT, 100, kind="account", lent=90))
    path = (("a",), (ACCOUNT,))
    assert found.charge(path, "credits", 3) == [["a", 3, 0]]
    assert found.charge(path, "credits", 9) == [["a", 4, 5], [ACCOUNT, 5, 0]]
    assert found.charge(path, "credits", 20) == [["a", 4, 16], [ACCOUNT, 10, 6]]
    assert found.charge((("gone",), (ACCOUNT,)), "credits", 2) == [[ACCOUNT, 2, 0]]
    assert found.charge((), "credits", 2) == []


@pytest.mark.rule("money.overrun")
def test_a_cap_that_is_overrun_does_not_keep_the_bill_from_the_money_behind_it():
    found = book(lease("cap", 10, kind="cap", spent=8), lease(ACCOUNT, 100, kind="account"))
    assert found.charge((("cap", ACCOUNT),), "credits", 5) == [["cap", 2, 3], [ACCOUNT, 5, 0]]


@pytest.mark.rule("money.outlives")
def test_a_lease_closes_when_its_owner_has_ended_and_nobody_uses_it_any_more():
    for busy in ({"users": 1}, {"lent": 5}, {"reserved": 5}):
        assert book(lease("a", **busy)).close("a", "credits") == []
    assert book(lease(ACCOUNT, kind="account")).close(ACCOUNT, "credits") == []
    assert book().close("a", "credits") == []
    found = book(lease("a", spent=30, overrun=2, above=("b",)), lease("b", lent=100))
    assert found.close("a", "credits") == [["a", "credits", "carve", ["b"], 100, 30, 2]]
    assert found.lease("a", "credits") is None
    assert found.lease("b", "credits") == lease("b", spent=30)  # its own owner is still at work


@pytest.mark.rule("money.outlives")
def test_the_last_task_to_end_closes_all_leases_above_that_waited_for_it():
    top = lease("top", lent=100)
    middle = lease("mid", above=("top",), users=1)
    found = book(top, middle)
    found.owner_ended("mid", "credits")
    found.owner_ended("top", "credits")
    found.owner_ended("gone", "credits")
    assert [row[0] for row in found.leave("mid", "credits")] == ["mid", "top"]
    assert book(lease("a", users=1)).leave("a", "credits") == []  # its owner goes on
    assert book().leave("gone", "credits") == []


@pytest.mark.rule("money.outlives")
def test_a_sharer_that_hands_its_task_on_with_less_leaves_all_that_it_used():
    desk = Desk()
    lead = desk.begin(opens=[("credits", "carve", 100)], asked_how="submit")
    beside = desk.begin(lead, asked_how="spawn")
    desk.hand(beside, "credits", 10)
    desk.end(lead)
    assert [one.id for one in desk.leases] == [lead, f"{beside}.1"]
    desk.end(beside)
    assert desk.leases == []


# -- words ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.figures")
def test_a_refusal_has_all_figures():
    account = lease(ACCOUNT, 250_000, kind="account", spent=150_000)
    said = "$0.20 wanted, the account has $0.10 left of $0.25 ($0.15 spent, $0.00 set aside)"
    assert figures(Short(account, 200_000, for_good=True), "r") == said
    task = lease("t", 500_000, lent=300_000, reserved=100_000)
    said = "$0.20 wanted, this task has $0.10 left of $0.50 ($0.00 spent, $0.40 set aside)"
    assert figures(Short(task, 200_000, for_good=False), "r") == said
    cap = lease("t", 2_000, kind="cap", unit="tokens", spent=1_500)
    said = (
        "1,000 tokens wanted, this part of the run has 500 tokens left of 2,000 tokens "
        "(1,500 tokens spent, 0 tokens set aside)"
    )
    assert figures(Short(cap, 1_000, for_good=True), "r") == said
    frozen = lease(ACCOUNT, 250_000, kind="account", spent=250_000, overrun=30_000, state="frozen")
    said = "the account is frozen, because $0.03 more was spent than it had; the owner unfreezes it"
    assert figures(Short(frozen, 1, for_good=True), "r") == said


def test_a_lease_of_the_whole_run_is_called_so():
    assert figures(Short(lease("r", 500_000), 600_000, for_good=True), "r").startswith(
        "$0.60 wanted, this run has $0.50"
    )


def test_an_amount_is_written_with_its_unit():
    assert (amount_text("credits", 1_230_000), amount_text("tokens", 12_300)) == ("$1.23", "12,300 tokens")


# -- tables -----------------------------------------------------------------------------------------------------

HOUR = "2023-11-14T22"  # of NOW


def changed(event: Unsealed) -> list[tuple[str, str, dict[str, Any]]]:
    [sealed] = journal(event)
    return [(change.table, change.verb, change.row) for change in changes(sealed)]


@pytest.mark.rule("money.uncertain")
def test_an_uncertain_call_is_kept_until_someone_says_what_it_cost():
    data: dict[str, Any] = {"hold": "h", "amounts": {"credits": 5}, "purse": {}, "why": "x", "costs": {"credits": 5}}
    whose = {"agent": "coder", "session": "s", "person": ""}
    counted = ("meter", "count", {"unit": "credits", "hour": HOUR, **whose, "spent": 5})
    row = {"id": "h", "state": "uncertain", "hour": HOUR, "task": "t1", "credits": 5, "tokens": 0}
    assert changed(told("hold.settled", **data, uncertain=True)) == [("hold", "settle", {**row, "billed": ""}), counted]
    billed = told("hold.settled", **data, uncertain=True, billed={"credits": 900})
    assert changed(billed) == [("hold", "settle", {**row, "billed": '{"credits":900}'}), counted]
    assert changed(told("hold.settled", **data)) == [("hold", "drop", {"id": "h", "task": "t1"}), counted]


@pytest.mark.rule("money.reconcile")
def test_what_is_reconciled_counts_in_the_hour_in_which_it_was_charged_and_frees_no_other_call():
    data: dict[str, Any] = {"hold": "h", "charged": {"credits": 5}, "costs": {"credits": 2}, "hour": "2023-01-01T00"}
    dropped, counted = changed(told("hold.reconciled", **data, why="", by=""))
    assert dropped == ("hold", "drop", {"id": "h"})  # it was not among the open calls of its task any more
    assert (counted[2]["hour"], counted[2]["spent"]) == ("2023-01-01T00", -3)


def test_a_charge_counts_for_the_workspace_the_agent_the_session_and_the_person():
    [(_, _, row)] = changed(told("credits.spent", costs={"credits": 5, "tokens": 0}, steps={}, why="x"))
    assert counted_in(row) == [
        ("workspace", "", "credits", HOUR),
        ("agent", "coder", "credits", HOUR),
        ("session", "s", "credits", HOUR),
    ]
    assert changed(told("tokens.used", tokens=0)) == []
    [(_, _, row)] = changed(told("tokens.used", tokens=5, person="ann"))
    assert counted_in(row)[-1] == ("person", "ann", "tokens", HOUR)


def test_a_call_that_leaves_is_noted_in_its_hold():
    assert changed(told("hold.started", hold="h")) == [("hold", "set", {"id": "h", "state": "started"})]


def test_the_account_is_frozen_and_opened_by_name():
    row = {"id": ACCOUNT, "unit": "tokens", "state": "frozen"}
    assert changed(told("account.set", unit="tokens", state="frozen", why="")) == [("lease", "set", row)]


@pytest.mark.rule("money.pruned")
def test_what_is_carried_stands_as_it_is_said_and_what_is_forgotten_goes():
    desk = Desk()
    desk.grant("credits", 10)
    desk.spend(desk.begin(), "credits", 4)
    old = {"scope": "workspace", "name": "", "unit": "credits", "hour": "2023-11-14T20", "spent": 9}
    now = {**old, "hour": HOUR, "spent": 3}
    account = {**desk.tables["lease"][ACCOUNT, "credits"], "spent": 3, "available": 7}
    hold = {**Hold("h", "t", "r", "s", "a", 1, "uncertain", 5, 0, "{}", 0, HOUR, "x", "", "")._asdict()}
    data: dict[str, Any] = {"leases": [account], "holds": [hold], "meters": [old, now], "forgotten": "2023-11-14T21"}
    desk.append(desk.tell("ledger.carried", Place(), data))
    assert desk.lease(ACCOUNT, "credits") == lease(ACCOUNT, 10, kind="account", spent=3)
    assert desk.tables["hold"] == {("h",): hold}
    assert desk.metered("credits") == 3


@pytest.mark.rule("money.last-word")
@pytest.mark.parametrize(
    ("path", "wanted", "found"),
    [
        ((("run",),), 50, False),
        ((("run",),), 51, True),
        ((("cap", "run"),), 60, True),
        ((("own",), ("run",)), 60, False),
    ],
    ids=["half is left", "less is left", "through a cap", "from a lease of its own"],
)
def test_a_payment_that_leaves_less_than_half_of_a_run_is_found(path: Any, wanted: int, found: bool):
    lease = Lease("run", "credits", "carve", (), 100, 100, 0, 0, 0, 0, 0, "open")
    book = Book(lambda id_, _unit: lease if id_ == "run" else None)
    assert book.half_used("run", path, "credits", wanted) == (lease if found else None)

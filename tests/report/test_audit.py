"""The ledger, audited."""

import pytest

from remit.core.ledger import unbalanced
from remit.report.spend import ledger_audit
from report.money import hold, lease

BALANCED = lease(granted=1_000, available=700, reserved=50, lent=150, spent=100)
CARVE = lease("t2", above=("account",), granted=150, available=150)


HOLDS = (hold(),)


def audit(leases=(BALANCED, CARVE), holds=HOLDS, told=100, *, cut=False, ended=False):
    return ledger_audit(leases, holds, lambda task: ended, {"credits": told}, cut=cut)


@pytest.mark.rule("ledger.verify")
def test_a_ledger_that_adds_up_is_sound():
    found = audit()

    assert found.sound
    assert (found.leases, found.holds, found.uncertain) == (2, 1, 0)
    assert found.spent == found.told == {"credits": 100}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"leases": (BALANCED._replace(available=701), CARVE)}, "lease account of credits does not balance: available"),
        ({"leases": (BALANCED._replace(users=-1), CARVE)}, "lease account of credits has less than nothing in users"),
        ({"leases": (BALANCED,)}, "the account of credits says that $0.00015 is lent of it, and there is $0.00"),
        ({"holds": ()}, "the account of credits says that $0.00005 is held of it, and there is $0.00"),
        ({"holds": (hold("held", credits=49),)}, "the account of credits says that $0.00005 is held"),
        ({"ended": True}, "call h1 of task t1 is started, although the task has ended"),
        ({"told": 101}, "in credits, the account has spent $0.0001, and all charges come to $0.000101"),
        ({"told": 99}, "in credits, the account has spent $0.0001, and all charges come to $0.000099"),
        ({"told": 101, "cut": True}, "in credits, the account has spent $0.0001"),
    ],
)
@pytest.mark.rule("ledger.verify")
def test_whatever_does_not_add_up_is_named(changed, sentence):
    found = audit(**changed)

    assert not found.sound
    assert found.broken[0].startswith(sentence)


def test_of_what_is_cut_the_journal_tells_less():
    assert audit(told=60, cut=True).sound


def test_uncertain_calls_hold_nothing_and_may_outlive_their_task():
    balanced = BALANCED._replace(reserved=0, available=750)
    found = audit((balanced, CARVE), (hold("uncertain"),), ended=True)

    assert (found.sound, found.uncertain) == (True, 1)


def test_calls_along_a_line_lend_from_the_leases_above():
    cap = lease("t2", kind="cap", above=("account",), granted=90, available=40, reserved=50)
    account = lease(granted=1_000, available=950, lent=50)
    found = audit((account, cap), (hold(purse='{"credits":[["t2","account"]]}'),), 0)
    assert found.broken == ()
    assert audit((), (hold(purse=""),), 0).sound
    strange = audit((cap._replace(reserved=49, available=41),), (hold(purse='{"credits":[["t2"]]}'),), 0)
    assert strange.broken[0].startswith("lease t2 of credits says that $0.000049 is held")


def test_a_row_that_balances_has_nothing_wrong():
    assert unbalanced(BALANCED._asdict()) == ""

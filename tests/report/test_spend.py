"""Who spent what: lines that add up, whichever way they are cut."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import NOW, first_remit, journal
from remit.core.events import Place
from remit.core.kinds.money import Outlay
from remit.core.kinds.tasks import tokens_used
from remit.core.tally import Counting, Figures, figures_from
from remit.core.times import DAY
from remit.report import wire
from remit.report.figures import decimal, money
from remit.report.spend import (
    PRUNED,
    SPEND_BY,
    SPEND_OVER,
    SpendLine,
    SpendPoint,
    Spends,
    account_spent,
    csv_points,
    csv_rows,
    from_account,
    spend_points,
)
from report.money import ACCOUNT, CARVED, T1, T2, lease, reconciled, settled, spent

GONE = Place("", "s1", "")


def spends(by: str, *told, backed=lambda lease, unit: False) -> Spends:
    found = Spends(by, backed)
    for event in journal(*told):
        found.add(event)
    return found


TOLD = (
    spent(20_000),
    settled({"credits": 10_000, "tokens": 50}, model="gpt-5", at=T2, agent="coder"),
    settled({"credits": 50_000}, model="gpt-5", uncertain=True, now=NOW + DAY),
    settled({"credits": 7_000}, own_key="acme", purse={"tokens": [["account"]]}),
    tokens_used(first_remit(), 7, NOW, [["account", 7, 0]]),
)


@pytest.mark.rule("spend.adds-up")
@pytest.mark.parametrize("by", SPEND_BY)
def test_however_it_is_cut_the_lines_come_to_the_same_total(by):
    found = spends(by, *TOLD).result()

    assert found.total == SpendLine("total", 87_000, 57, 4, 50_000, 7_000)
    assert found.total.charged == 80_000
    for figure in ("credits", "tokens", "calls", "uncertain", "own_key"):
        assert sum(getattr(line, figure) for line in found.lines) == getattr(found.total, figure)


@pytest.mark.rule("spend.series")
@pytest.mark.parametrize("by", SPEND_OVER)
def test_a_series_has_a_row_for_each_day_agent_and_model_and_adds_up_too(by):
    days: dict[int, defaultdict[str, Figures]] = defaultdict(lambda: defaultdict(Figures))
    counting = Counting(lambda at, who: days[at - at % DAY][who])
    for event in journal(*TOLD):
        counting.add(event)
    points = spend_points(days, by)

    names = by.split(",")
    places = [tuple(getattr(point, name) for name in names) for point in points]
    assert places == sorted({*places})
    assert not any(getattr(point, name) for point in points for name in {"day", "agent", "model"} - {*names})
    figures = ("credits", "tokens", "calls", "uncertain", "own_key")
    assert tuple(sum(getattr(point, name) for point in points) for name in figures) == (87_000, 57, 4, 50_000, 7_000)
    rows = wire.spend_series(by, points)["rows"]
    assert isinstance(rows, list)
    assert all(isinstance(row, dict) and [*row] == [*names, *figures] for row in rows)
    assert len(csv_points(points)) == len(points) + 1


def test_a_series_as_a_table_for_spreadsheets():
    point = SpendPoint("2023-11-14", "=lead", "gpt-5", 20_000, 7, 1)
    assert csv_points([point])[1] == ["2023-11-14", "'=lead", "gpt-5", "0.02", "7", "1", "0.00", "0.00"]
    assert point.counts == (7, 1)


def test_amounts_that_were_counted_before_models_were_have_no_model():
    old = figures_from({"counts": {"credits": 9, "tokens": 4}, "models": {"gpt-5": [5, 1, 1, 0, 0]}})
    assert old.charges() == {"gpt-5": Outlay(5, 1, 1), "": Outlay(4, 3)}


def test_there_is_a_line_for_each_of_them_and_the_one_that_spent_most_is_first():
    assert [line.name for line in spends("agent", *TOLD).result().lines] == ["lead", "coder"]
    assert [line.name for line in spends("model", *TOLD).result().lines] == ["gpt-5", ""]
    assert [line.name for line in spends("day", *TOLD).result().lines] == ["2023-11-14", "2023-11-15"]
    assert [line.name for line in spends("run", *TOLD).result().lines] == ["t1"]
    assert [line.name for line in spends("session", *TOLD).result().lines] == ["s1"]


@pytest.mark.rule("spend.corrections")
def test_a_correction_takes_back_what_was_too_much_and_makes_it_certain():
    back = {"credits": [40_000, ["account"]]}
    found = spends("agent", settled({"credits": 50_000}, uncertain=True), reconciled(50_000, 10_000, back=back))

    (line,) = found.result().lines
    assert (line.credits, line.uncertain, line.calls) == (10_000, 0, 1)
    assert found.told == {"credits": 10_000, "tokens": 0}


def test_a_correction_counts_on_the_day_it_was_made():
    told = (settled({"credits": 50_000}, uncertain=True), reconciled(50_000, 10_000, now=NOW + DAY))
    lines = spends("day", *told).result().lines

    assert [(line.credits, line.uncertain) for line in lines] == [(50_000, 50_000), (-40_000, -50_000)]


@pytest.mark.rule("spend.pruned")
def test_what_pruned_runs_have_spent_is_known_from_the_account():
    told = (spent(20_000), reconciled(50_000, 10_000, at=GONE, back={"credits": [40_000, ["account"]]}))
    found = spends("agent", *told).result({"credits": 90_000, "tokens": 5}, uncertain=30_000)

    assert found.pruned == SpendLine(PRUNED, 70_000, 5, 0, 30_000)
    assert found.rows == [*found.lines, found.pruned, found.total]
    assert (found.total.charged, found.total.tokens) == (90_000, 5)


def test_without_anything_pruned_there_is_no_line_for_it():
    assert spends("agent", spent(20_000)).result({"credits": 20_000}).pruned is None
    assert spends("agent", spent(20_000)).result({}).pruned is None
    assert spends("agent", spent(20_000)).result({"credits": 10_000}).pruned is None
    assert spends("agent").result().rows == [SpendLine("total")]


def test_only_what_came_from_the_account_is_told_of_it():
    """A carve that came from nowhere, a charge without a purse, a key of the workspace's own."""
    carve = spent(20_000, steps={"credits": [["t2", 20_000, 0]]})
    assert spends("run", carve).told["credits"] == 0
    assert spends("run", carve, backed=lambda lease, unit: lease == "t2").told["credits"] == 20_000
    assert spends("run", spent(20_000, steps={})).told["credits"] == 0
    assert spends("run", settled({"credits": 9}, purse=CARVED)).told["credits"] == 9
    assert spends("run", settled({"credits": 9}, purse={"credits": [["t2"]]})).told["credits"] == 0
    assert spends("run", settled({"credits": 9, "tokens": 3}, own_key="x", purse={"tokens": [["account"]]})).told == {
        "credits": 0,
        "tokens": 3,
    }
    assert spends("run", reconciled(5, 9, steps={"credits": [["account", 4, 0]]})).told["credits"] == 4
    assert spends("run", reconciled(9, 5, back={"credits": [4, []]})).told["credits"] == 0


def test_what_the_account_has_spent_has_what_is_set_aside_from_it():
    leases = [
        lease(granted=100, spent=30, overrun=5, lent=50),
        lease("t2", above=("t9.cap", "account"), spent=10),
        lease("t3", above=("t2",), spent=4),
        lease("t4", above=(), spent=400),
        lease("t5", above=("gone",), spent=4_000),
        lease("t6", kind="cap", above=("account",), spent=40_000),
        lease("account", unit="tokens", spent=7),
        lease("t7", unit="tokens", above=("account",), spent=2),
    ]
    assert account_spent(leases) == {"credits": 49, "tokens": 9}
    assert account_spent([lease("t2")]) == {}
    assert not from_account(lease("t4"), {})


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from("abc"), st.booleans())))
def test_any_charges_come_to_their_sum(charges):
    told = [settled({"credits": cost}, agent=agent, uncertain=unsure) for cost, agent, unsure in charges]
    found = spends("agent", *told)
    result = found.result(found.told, sum(cost for cost, _, unsure in charges if unsure))

    assert result.pruned is None
    assert result.total.credits == sum(line.credits for line in result.lines) == found.told["credits"]


def test_rows_for_a_spreadsheet_are_in_dollars_and_no_formula():
    told = (settled({"credits": 10_000}, at=T1._replace(session="=1+1"), own_key="acme"),)
    assert csv_rows(spends("session", *told).result()) == [
        ["session", "credits_usd", "tokens", "calls", "uncertain_usd", "own_key_usd"],
        ["'=1+1", "0.01", "0", "1", "0.00", "0.01"],
        ["total", "0.01", "0", "1", "0.00", "0.01"],
    ]


def test_money_may_go_back():
    assert (money(-40_000), money(40_000), decimal(-40_000)) == ("-$0.04", "$0.04", "-0.04")
    assert ACCOUNT["credits"] == [["account"]]

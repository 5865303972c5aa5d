"""Money from the command line: the account, who spent what, calls of uncertain cost, and whether it all adds up."""

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import remit as package
from commands import command as remit
from remit import Runtime
from remit.core.prices import credits as amount
from remit.settings import System
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio


def team(folder: Path, **settings: object) -> Runtime:
    rt = Runtime(folder / "remit.db", **settings)

    @rt.agent(asks="*")
    async def lead(turn: package.Turn) -> str:
        await turn.spend("$0.02", why="stamps")
        async with turn.paid_call("$0.05", tokens=100, why="a poem", model="m-1"):
            pass  # nobody says what it cost
        await turn.delegate("coder", "part of it", credits="$0.30")
        return "done"

    @rt.agent
    async def coder(turn: package.Turn) -> str:
        async with turn.paid_call("$0.05", why="code", model="m-1") as call:
            call.cost("$0.01", tokens=5)
        return "coded"

    return rt


@pytest.fixture
async def spent(tmp_path: Path) -> Path:
    """A folder with a store in which a run has spent eight cents of ten dollars."""
    with team(tmp_path) as rt:
        await rt.workspace.money.grant("$10", why="May")
        assert await rt.run("lead", "go") == "done"
    return tmp_path


@pytest.mark.rule("credits.commands")
async def test_the_account_is_granted_and_shown(tmp_path: Path):
    assert remit(tmp_path, "db", "migrate").returncode == 0
    assert "no grants yet" in remit(tmp_path, "money").stdout
    assert remit(tmp_path, "money", "grant", "10USD", "--tokens", "5000", "--why", "May").returncode == 0

    shown = remit(tmp_path, "money", "-v")
    assert "$10.00" in shown.stdout
    assert "5,000 tokens" in shown.stdout
    assert "no reservations or caps" in shown.stdout
    told = json.loads(remit(tmp_path, "money", "-v", "--json").stdout)
    assert (told["account"]["credits"]["granted"], told["leases"]) == (amount("$10"), [])
    granted = json.loads(remit(tmp_path, "history", "--json").stdout)[0]["data"]
    assert granted["by"].startswith("terminal")


@pytest.mark.parametrize("words", [(), ("10",), ("--", "-bash.50"), ("abc",), ("0USD",)])
async def test_an_amount_says_its_unit(tmp_path: Path, words: tuple[str, ...]):
    refused = remit(tmp_path, "money", "grant", *words)
    assert refused.returncode == 2
    assert "USD" in refused.stderr


async def test_what_is_set_aside_is_listed_on_demand(tmp_path: Path):
    with Runtime(tmp_path / "remit.db") as rt:
        await rt.workspace.money.grant("$10")
        seen: list[str] = []

        @rt.agent
        async def lead(turn: package.Turn) -> str:
            seen.append(remit(tmp_path, "money", "-v").stdout)
            return "done"

        await rt.run("lead", "go", credits="$0.50")
    assert "set aside" in seen[0].splitlines()[-1]
    assert "$0.50" in seen[0].splitlines()[-1]


async def test_a_frozen_account_says_so_and_can_be_unfrozen(tmp_path: Path):
    with Runtime(tmp_path / "remit.db") as rt:
        await rt.workspace.money.grant("$0.05")

        @rt.agent
        async def lead(turn: package.Turn) -> str:
            async with turn.paid_call("$0.05", why="a poem") as call:
                call.cost("$0.08")
            return "done"

        await rt.run("lead", "go")
        [hold] = await rt.workspace.money.uncertain()
    [line] = [line for line in remit(tmp_path, "money", "uncertain").stdout.splitlines() if hold.id in line]
    assert "$0.08" in line
    remit(tmp_path, "money", "reconcile", hold.id, "0.08USD")
    shown = remit(tmp_path, "money").stdout
    assert "frozen, because $0.03 more was spent than it had" in shown
    assert "is no longer frozen" in remit(tmp_path, "money", "unfreeze", "--why", "paid").stdout
    assert json.loads(remit(tmp_path, "money", "unfreeze", "--json").stdout) == {"changed": False}
    assert "was not frozen" in remit(tmp_path, "money", "unfreeze").stdout


@pytest.mark.rule("spend.adds-up")
async def test_spending_adds_up_to_the_account(spent: Path):
    shown = remit(spent, "money", "spend")
    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["agent", "credits", "tokens", "calls", "uncertain"],
        ["lead", "$0.07", "100", "2", "$0.05"],
        ["coder", "$0.01", "5", "1", "-"],
        ["total", "$0.08", "105", "3", "$0.05"],
    ]
    told = json.loads(remit(spent, "money", "spend", "--by", "model", "--json").stdout)
    account = json.loads(remit(spent, "money", "--json").stdout)["account"]
    assert told["total"]["credits"] == sum(line["credits"] for line in told["lines"]) == account["credits"]["spent"]
    rows = list(csv.reader(remit(spent, "money", "spend", "--by", "run", "--csv").stdout.splitlines()))
    assert [row[1] for row in rows] == ["credits_usd", "0.08", "0.08"]
    assert "no model" in remit(spent, "money", "spend", "--by", "model").stdout


@pytest.mark.rule("spend.pruned")
async def test_what_pruned_runs_have_spent_stays_in_the_sum(tmp_path: Path, clock: FakeClock):
    with team(tmp_path, system=System(clock=clock)) as rt:
        await rt.workspace.money.grant("$10")
        await rt.run("lead", "go")
        clock.advance(5 * 86_400)
        assert await rt.workspace.prune(4) == 1
        await rt.run("coder", "go")
        found, account = await rt.workspace.money.spend("agent"), await rt.workspace.money.account()
    assert found.pruned is not None
    assert (found.pruned.credits, found.pruned.uncertain) == (amount("$0.08"), amount("$0.05"))
    assert account.credits is not None
    assert found.total.charged == account.credits.spent == amount("$0.09")


async def test_spending_of_a_time_is_what_was_spent_then(spent: Path):
    assert "total    $0.08" in remit(spent, "money", "spend", "--since", "1h").stdout
    assert "no spending in that time" in remit(spent, "money", "spend", "--until", "2020-01-01").stdout
    assert remit(spent, "money", "spend", "--since", "1h", "--until", "2h").returncode == 2
    assert remit(spent, "money", "spend", "--csv", "--json").returncode == 2
    assert remit(spent, "money", "spend", "--by", "colour").returncode == 2


@pytest.mark.rule("ledger.verify")
async def test_an_uncertain_call_is_listed_and_reconciled_once(spent: Path):
    (call,) = json.loads(remit(spent, "money", "uncertain", "--json").stdout)
    listed = remit(spent, "money", "uncertain").stdout
    assert call["id"] in listed
    assert "remit money reconcile CALL 0.01USD" in listed

    done = remit(spent, "money", "reconcile", call["id"][-6:], "0.01USD", "--why", "the bill")
    assert "$0.04 refunded" in done.stdout
    again = remit(spent, "money", "reconcile", call["id"], "0.01USD")
    assert "$0.04 refunded" in again.stdout
    assert remit(spent, "money", "reconcile", call["id"], "0.02USD").returncode == 3
    assert "no calls of uncertain cost" in remit(spent, "money", "uncertain").stdout
    verified = remit(spent, "money", "verify")
    assert (verified.returncode, "the ledger balances" in verified.stdout) == (0, True)
    assert json.loads(remit(spent, "money", "verify", "--json").stdout)["sound"] is True


async def test_a_call_may_have_cost_more_or_exactly_that(spent: Path):
    (call,) = json.loads(remit(spent, "money", "uncertain", "--json").stdout)
    assert remit(spent, "money", "reconcile", call["id"], "1").returncode == 2
    more = remit(spent, "money", "reconcile", call["id"], "0.06USD", "--tokens", "90")
    assert "10 tokens refunded, $0.01 more charged" in more.stdout


@pytest.mark.rule("doctor.ledger", "ledger.verify")
async def test_a_row_that_does_not_balance_is_named(spent: Path):
    with closing(sqlite3.connect(spent / "remit.db")) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute("UPDATE lease SET available = available + 1 WHERE id = 'account'")
        database.commit()
    sentence = "lease account of credits does not balance"
    verified, examined = remit(spent, "money", "verify"), remit(spent, "doctor")
    assert (verified.returncode, examined.returncode) == (1, 1)
    assert sentence in verified.stdout
    assert "does not balance" in verified.stdout
    assert sentence in examined.stdout


@pytest.mark.rule("show.money")
async def test_what_was_spent_is_shown_wherever_a_run_is(spent: Path):
    assert "$0.07, $0.01 below" in remit(spent, "show").stdout
    assert "$0.08 spent" in remit(spent, "show").stdout
    assert "$0.08" in remit(spent, "runs").stdout
    assert "$0.08; details: `remit money spend`" in remit(spent, "stats").stdout
    assert "spent    $0.07" in remit(spent, "status").stdout
    assert "$0.07, $0.01 below" in remit(spent, "flow").stdout
    assert json.loads(remit(spent, "runs", "--json").stdout)[0]["credits"] == amount("$0.08")


@pytest.mark.rule("limits.listed", "limits.tasks")
def test_the_limits_of_a_file_hold_and_their_use_is_listed(tmp_path: Path):
    (tmp_path / "remit.toml").write_text(
        '[store]\npath = "remit.db"\n\n[agents.helper]\nfunction = "helping:helper"\n\n'
        '[[limits]]\nper = "day"\ntasks = 1\n\n[[limits]]\nper = "hour"\ncredits = "$1"\nagent = "*"\n',
        encoding="utf-8",
    )
    (tmp_path / "helping.py").write_text("async def helper(turn):\n    return turn.task\n", encoding="utf-8")
    first = remit(tmp_path, "run", "helper", "x")
    assert first.returncode == 0, first.stderr
    second = remit(tmp_path, "run", "helper", "x")
    assert second.returncode == 3
    assert "the workspace has begun 1 of 1 task a day, and there is room again in 1 d" in second.stderr
    shown = remit(tmp_path, "money", "limits").stdout
    assert "the workspace  1 task a day   1 task     -  0 tasks" in shown
    assert "each agent     $1.00 an hour   $0.00" in shown
    tasks, money = json.loads(remit(tmp_path, "money", "limits", "--json").stdout)
    assert [tasks[name] for name in ("per", "scope", "name", "unit", "most", "used", "left")] == [
        *("day", "workspace", "", "tasks", 1, 1, 0)
    ]
    assert (tasks["room_at"] is not None, money["unit"], money["room_at"]) == (True, "credits", None)
    (tmp_path / "remit.toml").write_text('[agents.helper]\nfunction = "helping:helper"\n', encoding="utf-8")
    assert "this team has no limits" in remit(tmp_path, "money", "limits").stdout


@pytest.mark.rule("workspace.op-content", "money.reconcile")
async def test_an_operation_of_the_command_line_is_one_act(spent: Path):
    for _ in range(2):
        assert remit(spent, "money", "grant", "1USD", "--op", "may", "--by", "ann").returncode == 0
    another = remit(spent, "money", "grant", "100USD", "--op", "may")
    assert another.returncode == 3
    assert "the op 'may' was used for another act" in another.stderr
    for words in (("breaker", "trip", "coder", "--why", "away"), ("prune", "--days", "4"), ("context", "cleanup")):
        assert "was used for another act" in remit(spent, *words, "--op", "may").stderr
    told = json.loads(remit(spent, "money", "--json").stdout)
    assert told["account"]["credits"]["granted"] == 11_000_000
    assert "(by ann)" in remit(spent, "history").stdout

    [hold] = json.loads(remit(spent, "money", "uncertain", "--json").stdout)
    for _ in range(2):
        assert remit(spent, "money", "reconcile", hold["id"], "0.01USD", "--op", "bill").returncode == 0
    assert "was reconciled already, with $0.01" in remit(spent, "money", "reconcile", hold["id"], "0.02USD").stderr

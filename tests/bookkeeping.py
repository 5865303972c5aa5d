"""Whether the books of a workspace are right: every lease balanced, every call ended once, leaves = root = meter."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from remit import Event, Runtime
from remit.core.lifecycle import TERMINAL
from remit.core.money import ACCOUNT, UNITS, Lease
from remit.core.projection import Tables
from remit.ports import Span, View

FIGURES = ("granted", "available", "reserved", "lent", "spent", "overrun", "users")
_CHARGES = ("hold.settled", "hold.reconciled", "credits.spent", "tokens.used")


class Books(NamedTuple):
    """One picture of the ledger, and of all that led to it."""

    tables: Tables
    events: list[Event]

    @property
    def leases(self) -> list[dict[str, Any]]:
        return [cast("dict[str, Any]", row) for row in self.tables["lease"].values()]

    @property
    def over(self) -> bool:
        """Whether nothing goes on any more."""
        return all(row["state"] in TERMINAL for row in self.tables["task"].values())

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]


def opened(view: View) -> Books:
    return Books(view.tables(), view.events(Span()))


async def account(rt: Runtime) -> Lease:
    """Give the account in credits; there has to be one."""
    found = (await rt.workspace.money.account()).credits
    assert found is not None
    return found


async def figures(rt: Runtime) -> tuple[int, int, int]:
    """Tell what the account has, what of it is set aside, and what was spent."""
    lease = await account(rt)
    return lease.available, lease.reserved + lease.lent, lease.spent


async def calls(rt: Runtime) -> list[tuple[str, dict[str, Any]]]:
    """What became of calls and payments, in order."""
    kinds = ("hold.placed", "hold.started", "hold.settled", "hold.released", "hold.reconciled", "credits.spent")
    events = await rt.workspace.journal.history(kinds=frozenset(kinds))
    return [(event.kind.partition(".")[2], dict(event.data)) for event in events]


async def told(rt: Runtime) -> list[str]:
    return [kind for kind, _ in await calls(rt)]


async def correct(rt: Runtime) -> None:
    """Look the books over, and have the doctor look at them."""
    found = await wrong(rt)
    assert found == []


async def wrong(rt: Runtime) -> list[str]:
    """A sentence for all that is not right."""
    health = await rt.workspace.check()
    return [*(finding.sentence for finding in health.findings), *misbooked(await rt.workspace.journal.read(opened))]


def misbooked(books: Books) -> list[str]:
    checks = (_unbalanced, _left_open, _calls, _raised, _uncharged, _totals, _unfrozen)
    return [sentence for check in checks for sentence in check(books)]


def hold_of(event: Event) -> str:
    return cast("str", event.data["hold"])


def _unbalanced(books: Books) -> Iterator[str]:
    for row in books.leases:
        if row["available"] + row["reserved"] + row["lent"] + row["spent"] != row["granted"]:
            yield f"lease {row['id']} is not balanced: {row}"
        yield from (f"lease {row['id']} has {row[name]} {name}" for name in FIGURES if row[name] < 0)


def _left_open(books: Books) -> Iterator[str]:
    if not books.over:
        return
    for row in books.leases:
        if row["id"] != ACCOUNT:
            yield f"lease {row['id']} was left open: {row}"
        elif row["reserved"] or row["lent"] or row["users"]:
            yield f"the account has something set aside though nothing goes on: {row}"
    yield from (
        f"call {key[0]} was left {row['state']}"
        for key, row in books.tables["hold"].items()
        if row["state"] != "uncertain"
    )


def _calls(books: Books) -> Iterator[str]:
    """Every call is placed once and ends once, and is reconciled at most once, after it was uncertain."""
    placed = Counter(hold_of(event) for event in books.of("hold.placed"))
    ended = Counter(hold_of(event) for event in books.of("hold.settled", "hold.released"))
    yield from (f"call {hold} was placed {times} times" for hold, times in placed.items() if times > 1)
    yield from (f"call {hold} ended {times} times" for hold, times in ended.items() if times > 1 or not placed[hold])
    if books.over:
        yield from (f"call {hold} never ended" for hold in placed if not ended[hold])
    uncertain = {hold_of(event) for event in books.of("hold.settled") if event.data.get("uncertain")}
    told = Counter(hold_of(event) for event in books.of("hold.reconciled"))
    yield from (f"call {hold} was reconciled {n} times" for hold, n in told.items() if n > 1 or hold not in uncertain)
    kept = {key[0] for key, row in books.tables["hold"].items() if row["state"] == "uncertain"}
    if kept != uncertain - told.keys():
        yield f"uncertain are {sorted(kept)}, and should be {sorted(uncertain - told.keys())}"


def _raised(books: Books) -> Iterator[str]:
    """Every yes to a question for money raises leases once, by no more than it says, and nothing else does."""
    times = Counter(str(event.data["question"]) for event in books.of("lease.raised"))
    asked = {str(event.data["question"]) for event in books.of("question.asked") if event.data["kind"] == "money"}
    yes = {str(event.data["question"]) for event in books.of("question.answered") if event.data["state"] == "approved"}
    for question in {*times, *(asked & yes)}:
        if times[question] != (question in asked & yes):
            yield f"question {question} raised leases {times[question]} times"
    for event in books.of("lease.raised"):
        data = cast("dict[str, Any]", event.data)
        if not data["adds"] or max(amount for _, amount in data["adds"]) > data["amount"]:
            yield f"question {data['question']} gave {data['amount']} and raised {data['adds']}"


def _uncharged(books: Books) -> Iterator[str]:
    """What left is charged, and what did not is not."""
    left = {hold_of(event) for event in books.of("hold.placed") if event.data["state"] == "started"}
    left |= {hold_of(event) for event in books.of("hold.started")}
    yield from (
        f"call {hold_of(event)} was charged and never left"
        for event in books.of("hold.settled")
        if hold_of(event) not in left
    )


def charged(event: Event, unit: str, *, from_leases: bool = False) -> int:
    """What an event charges: all of it, or only what leases pay."""
    data = cast("dict[str, Any]", event.data)
    if event.kind == "tokens.used":
        return data["tokens"] if unit == "tokens" and (not from_leases or "steps" in data) else 0
    pays = unit in data.get("purse", {}) or unit in data.get("steps", {}) or data.get("back", {}).get(unit, (0, ()))[1]
    if from_leases and not pays:
        return 0
    return data.get("costs", {}).get(unit, 0) - data.get("charged", {}).get(unit, 0)


def _totals(books: Books) -> Iterator[str]:
    """What the leaves cost is what the root has spent and what the meters count."""
    for unit in UNITS:
        total = sum(charged(event, unit) for event in books.of(*_CHARGES))
        for scope in ("workspace", "agent", "session"):
            rows = [row for key, row in books.tables["meter"].items() if (key[0], key[2]) == (scope, unit)]
            metered = sum(cast("int", row["spent"]) for row in rows)
            if metered != total:
                yield f"{total} {unit} were charged, and the meter of each {scope} has {metered}"
        root = cast("dict[str, Any] | None", books.tables["lease"].get((ACCOUNT, unit)))
        if root is not None:
            paid = sum(charged(event, unit, from_leases=True) for event in books.of(*_CHARGES))
            own = [row for row in books.leases if row["unit"] == unit and row["kind"] != "cap"]
            spent = sum(row["spent"] for row in own) + root["overrun"]
            if spent != paid:
                yield f"{paid} {unit} were paid by leases, and they have spent {spent}"


def _unfrozen(books: Books) -> Iterator[str]:
    frozen = {str(event.data["unit"]) for event in books.of("account.set") if event.data["state"] == "frozen"}
    over = {row["unit"] for row in books.leases if row["id"] == ACCOUNT and row["overrun"]}
    if frozen != over:
        yield f"the account was overrun in {sorted(over)} and frozen in {sorted(frozen)}"

"""A workspace on paper: tasks that share, cap and set aside, their calls, and the tables that the events lead to.

Every event goes through the projection, and after each of them every lease is looked at."""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from core.make import NOW, UNTIL
from remit.core.bounds import TOP
from remit.core.events import Event, Head, Place, Unsealed, seal
from remit.core.kinds.money import ledger_event
from remit.core.kinds.tasks import Begun, Queued, moved, started, tokens_used
from remit.core.lifecycle import Standing
from remit.core.money import (
    ACCOUNT,
    NO_PURSE,
    UNITS,
    Book,
    Hold,
    Kind,
    Lease,
    LeaseOpening,
    Path,
    Purse,
    Unit,
    purse_data,
    purse_restored,
    shared,
)
from remit.core.projection import fold, fold_in
from remit.core.raising import Want, lacking, raising
from remit.core.remit import NO_RIGHTS, Origin, Pass, Remit, begin, derive
from remit.core.remit import place as place_event
from remit.core.values import decode, encode
from remit.engine.door import leases_close, resolved

FIGURES = ("granted", "available", "reserved", "lent", "spent", "overrun", "users")


class Job(NamedTuple):
    """A task on paper: its remit, along which paths it pays, how it was asked for, and what below it is waited for."""

    remit: Remit
    purse: Purse
    asked_how: str
    handed: int = 0


class Desk:
    def __init__(self) -> None:
        self.tables = fold(())
        self.jobs: dict[str, Job] = {}
        self.events: list[Event] = []
        self.billed: dict[Unit, int] = dict.fromkeys(UNITS, 0)  # what was really charged, and to someone who pays
        self._head = Head()
        self._ids = 0

    # -- reading ----------------------------------------------------------------------------------------------

    def lease(self, id_: str, unit: Unit) -> Lease | None:
        row = self.tables["lease"].get((id_, unit))
        return None if row is None else Lease(**cast("dict[str, Any]", {**row, "above": tuple(decode(row["above"]))}))

    @property
    def leases(self) -> list[Lease]:
        return [lease for key in self.tables["lease"] if (lease := self.lease(*cast("tuple[str, Unit]", key)))]

    @property
    def holds(self) -> list[Hold]:
        """The calls that have not ended."""
        rows = [Hold(**cast("dict[str, Any]", row)) for row in self.tables["hold"].values()]
        return [hold for hold in rows if hold.state != "uncertain"]

    def metered(self, unit: Unit) -> int:
        rows = self.tables["meter"].items()
        return sum(cast("int", row["spent"]) for key, row in rows if (key[0], key[2]) == ("workspace", unit))

    # -- writing ----------------------------------------------------------------------------------------------

    def id(self) -> str:
        self._ids += 1
        return f"t{self._ids}"

    def append(self, *facts: Unsealed) -> None:
        for fact in facts:
            event = seal(fact, encode(fact.data), "home", self._head)
            self._head = Head(event.seq, event.hash)
            self.events.append(event)
            fold_in(self.tables, event)
            self.look()

    def look(self) -> None:
        for lease in self.leases:
            assert lease.available + lease.reserved + lease.lent + lease.spent == lease.granted, lease
            assert all(getattr(lease, name) >= 0 for name in FIGURES), lease

    def tell(self, kind: str, place: Place, data: dict[str, Any], agent: str = "coder") -> Unsealed:
        return ledger_event(kind, place, agent, NOW, data)

    # -- what is done -----------------------------------------------------------------------------------------

    def grant(self, unit: Unit, amount: int) -> None:
        data: dict[str, Any] = {"unit": unit, "amount": amount, "why": "", "by": ""}
        if self.lease(ACCOUNT, unit) is None:
            data["first"] = True
        self.append(self.tell("account.granted", Place(), data))

    def begin(self, under: str = "", opens: Iterable[tuple[Unit, Kind, int]] = (), asked_how: str = "delegate") -> str:
        """Begin a task; "" if what is to be set aside is not there."""
        id_, asker = self.id(), self.jobs.get(under)
        purse = asker.purse if asker else self._account_purse()
        paths: dict[Unit, Path] = {**purse}
        openings = [LeaseOpening(*one) for one in opens]
        for opening in openings:
            path = purse.get(opening.unit, ())
            if opening.kind == "carve" and Book(self.lease).shorts(path, opening.unit, opening.amount):
                return ""
            paths[opening.unit] = shared(path, opening, id_)
        wish = Pass("coder", "x")
        remit = (
            derive(asker.remit, wish, id_, NO_RIGHTS, UNTIL)
            if asker
            else begin(Origin(id_, "home", "s"), wish, TOP, UNTIL)
        )
        funds: dict[str, Any] = {"purse": purse_data(paths), "opens": [[*one] for one in openings]}
        begun = Begun(funds={name: said for name, said in funds.items() if said} if paths else None)
        queued = None if asked_how == "delegate" else Queued(asked_how, 1, 1, NOW)
        self.append(started(remit, NOW, begun, queued))
        self.jobs[id_] = Job(remit, paths, asked_how)
        return id_

    def _account_purse(self) -> Purse:
        return {unit: ((ACCOUNT,),) for unit in UNITS if self.lease(ACCOUNT, unit)} or NO_PURSE

    def hand(self, task: str, unit: Unit, amount: int) -> None:
        """Hand a task over with less than it had: a cap begins."""
        job = self.jobs[task]
        opening, times = LeaseOpening(unit, "cap", amount), job.handed + 1
        purse = {**job.purse, unit: shared(job.purse.get(unit, ()), opening, f"{task}.{times}")}
        data = {"to": "tester", "update": {}, "content": "", "purse": purse_data(purse), "opens": [[*opening]]}
        self.append(Unsealed("task.handed", NOW, data, job.remit.root, "s", task, "coder"))
        self.jobs[task] = job._replace(purse=purse, handed=times)

    def hold(self, task: str, amounts: dict[Unit, int], state: str = "started") -> str:
        """Hold what a call may cost; "" if it is not there."""
        job, book, id_ = self.jobs[task], Book(self.lease), self.id()
        if any(book.shorts(job.purse.get(unit, ()), unit, amount) for unit, amount in amounts.items()):
            return ""
        data = {"hold": id_, "state": state, "amounts": amounts, "purse": purse_data(job.purse)}
        data |= {"fence": 1, "until": NOW, "why": "x"}
        self.append(self.tell("hold.placed", place_event(job.remit), data))
        return id_

    def settle(self, hold: Hold, costs: dict[Unit, int]) -> None:
        book, purse = Book(self.lease), purse_restored(cast("dict[str, Any]", decode(hold.purse)))
        data: dict[str, Any] = {"hold": hold.id, "amounts": hold.amounts, "purse": decode(hold.purse)}
        data |= {"costs": costs, "why": "x"}
        event = self.tell("hold.settled", Place(hold.run, "s", hold.task), data)
        book.note(event)
        over: dict[Unit, int] = {unit: cost - hold.amounts.get(unit, 0) for unit, cost in costs.items()}
        steps = {unit: book.charge(purse.get(unit, ()), unit, more) for unit, more in over.items() if more > 0}
        self.append(event._replace(data={**data, "steps": steps}))
        self._bill(costs)

    def release(self, hold: Hold) -> None:
        data = {"hold": hold.id, "amounts": hold.amounts, "purse": decode(hold.purse), "why": "x"}
        self.append(self.tell("hold.released", Place(hold.run, "s", hold.task), data))

    def spend(self, task: str, unit: Unit, amount: int) -> bool:
        job, book = self.jobs[task], Book(self.lease)
        path = job.purse.get(unit, ())
        if book.shorts(path, unit, amount):
            return False
        data = {"costs": {unit: amount}, "steps": {unit: book.charge(path, unit, amount)}, "why": "x"}
        self.append(self.tell("credits.spent", place_event(job.remit), data))
        self._bill({unit: amount})
        return True

    def give(self, task: str, unit: Unit, amount: int, wanted: int) -> bool:
        """Give a task more for what it lacks, as far as the account has it; then the payment is possible."""
        path = self.jobs[task].purse.get(unit, ())
        want = Want(unit, wanted, task)
        needed = lacking(Book(self.lease), path, want)
        given = raising(Book(self.lease), path, want, amount)
        if needed <= 0 or amount < needed or given.lacks:
            return False
        data: dict[str, Any] = {"question": "q", "unit": unit, "amount": amount, "adds": given.adds}
        data |= {"takes": given.takes, "why": "", "by": ""}
        self.append(self.tell("lease.raised", place_event(self.jobs[task].remit), data))
        assert max(amount_ for _, amount_ in given.adds) <= amount
        assert not Book(self.lease).shorts(path, unit, wanted)
        return True

    def use(self, task: str, tokens: int) -> None:
        job = self.jobs[task]
        steps = Book(self.lease).charge(job.purse.get("tokens", ()), "tokens", tokens)
        self.append(tokens_used(job.remit, tokens, NOW, steps))
        self._bill({"tokens": tokens})

    def _bill(self, costs: dict[Unit, int]) -> None:
        for unit, cost in costs.items():
            self.billed[unit] += cost

    def end(self, task: str) -> None:
        """End a task and what it waits for, as the consequences do: its calls first, then its leases."""
        for child in [
            id_ for id_, job in self.jobs.items() if job.remit.parent == task and job.asked_how == "delegate"
        ]:
            self.end(child)
        job = self.jobs.pop(task)
        place = place_event(job.remit)
        event = moved("task.completed", place, "coder", NOW, {"result": 1})
        calls = [hold for hold in self.holds if hold.task == task]
        following = [resolved(hold, NOW, "it ended") for hold in calls]
        book = Book(self.lease)
        for fact in following:
            book.note(fact)
        standing = Standing("running", 1, 0, job.asked_how, encode(purse_data(job.purse)) if job.purse else "", 0)
        closed = leases_close(book, event, standing)
        self.append(event._replace(data={**event.data, **closed}), *following)
        for hold in calls:
            if hold.state == "started":
                self._bill(hold.amounts)

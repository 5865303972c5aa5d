"""Clauses on money and questions: leases always balance; holds, meters and questions are found."""

from typing import Any, Final

from remit.core.events import Labels, Place, Unsealed
from remit.core.kinds.money import ledger_event
from remit.core.kinds.people import question_event
from remit.core.kinds.tasks import Queued, ended, started, submitted, tokens_used
from remit.core.money import ACCOUNT
from remit.core.remit import Remit, place
from remit.core.times import HOUR, SECOND, hour_of
from remit.errors import StoreError
from remit.ports import Database, Store, View
from remit.testing.clauses.making import NOW, append, both_ways, child_remit, equal, first_remit, look, must, sound

_QUEUED: Final = Queued("spawn", timeout=60 * SECOND, attempts=3, ready_at=NOW)
_ROOT: Final = first_remit("root", session="s")
_ANNS: Final = _ROOT._replace(labels=Labels("ann"))
_PART: Final = child_remit(_ROOT, "part", holder="helper")
_LATER: Final = child_remit(_ROOT, "later", holder="helper")
_ALONG: Final = {"credits": [["part"], ["root", ACCOUNT]]}


def _task_event(kind: str, remit: Remit, data: dict[str, Any]) -> Any:
    return ledger_event(kind, place(remit), remit.holder, NOW, data)


def _hold_data(hold: str, amount: int, **more: Any) -> dict[str, Any]:
    return {"hold": hold, "amounts": {"credits": amount}, "purse": _ALONG, "why": "photo", **more}


async def _funded(store: Store) -> None:
    """Grant 100; start a run capped at 60, a task with 30 reserved, and a queued task that shares the cap."""
    grant = {"unit": "credits", "amount": 100, "why": "", "by": "", "first": True}
    await append(store, "grant", ledger_event("account.granted", Place(), "", NOW, grant))
    cap = {"purse": {"credits": [["root", ACCOUNT]]}, "opens": [["credits", "cap", 60]]}
    carve = {"purse": _ALONG, "opens": [["credits", "carve", 30]]}
    for op, event, funds in (
        ("root", started(_ROOT, NOW), cap),
        ("part", started(_PART, NOW), carve),
        ("later", submitted(_LATER, NOW, _QUEUED), {"purse": cap["purse"]}),
    ):
        await append(store, op, event._replace(data={**event.data, **funds}))


async def _figures(store: Store, lease: str) -> list[object]:
    def of(view: View) -> list[object]:
        found = view.lease(lease, "credits")
        return [*found[4:11]] if found is not None else []

    return await both_ways(store, of)


async def _ties(store: Store, task: str) -> list[object]:
    def of(view: View) -> list[object]:
        standing = view.standing(task)
        return [standing.ties] if standing is not None else []

    return await both_ways(store, of)


async def money_moves_and_is_neither_made_nor_lost(database: Database) -> None:
    store = database.store("one")
    await _funded(store)
    equal(await _figures(store, ACCOUNT), [100, 70, 0, 30, 0, 0, 0], "what is set aside is lent by the account")
    equal(
        await _figures(store, "root"), [60, 30, 0, 30, 0, 0, 1], "and goes through the cap, which one more task shares"
    )
    placed = _hold_data("h1", 20, state="started", fence=1, until=NOW + SECOND)
    await append(store, "hold", _task_event("hold.placed", _PART, placed))
    equal(await _figures(store, "part"), [30, 10, 20, 0, 0, 0, 0], "what is held is reserved")
    over = {"steps": {"credits": [["part", 10, 5], ["root", 5, 0], [ACCOUNT, 5, 0]]}, "costs": {"credits": 35}}
    await append(store, "settle", _task_event("hold.settled", _PART, _hold_data("h1", 20, **over)))
    equal(await _figures(store, "part"), [30, 0, 0, 0, 30, 5, 0], "what it cost more is taken where there is money")
    equal(await _figures(store, ACCOUNT), [100, 65, 0, 30, 5, 0, 0], "above it")
    closes: dict[str, Any] = {"closes": [["part", "credits", "carve", ["root", ACCOUNT], 30, 30, 5]]}
    await append(store, "end", ended(_PART, "task.completed", NOW, {"result": 1, **closes}))
    equal(await _figures(store, "part"), [], "a lease goes with its task")
    equal(await _figures(store, ACCOUNT), [100, 65, 0, 0, 35, 0, 0], "and what it spent is spent above")
    equal((await look(store, lambda view: view.run("root"))).credits, 35, "a run has cost what its calls did")
    await append(store, "end root", ended(_ROOT, "task.completed", NOW, {"closing": [["root", "credits"]]}))
    closing = await look(store, lambda view: view.lease("root", "credits"))
    equal(closing and closing.state, "closing", "its owner has ended")
    last: dict[str, Any] = {
        "leaves": [["root", "credits"]],
        "closes": [["root", "credits", "cap", [ACCOUNT], 60, 35, 0]],
    }
    await append(store, "end later", ended(_LATER, "task.cancelled", NOW, {"error": "x", "type": "X", **last}))
    equal(
        [lease.id for lease in await look(store, lambda view: view.leases(("", ""), 9))], [ACCOUNT], "only it is left"
    )
    await sound(store)


async def money_that_is_added_is_taken_above(database: Database) -> None:
    store = database.store("one")
    await _funded(store)
    given: dict[str, Any] = {"question": "q1", "unit": "credits", "amount": 40, "why": "", "by": "ann"}
    given |= {"adds": [["part", 40], ["root", 10]], "takes": [["root", 40], [ACCOUNT, 40]]}
    await append(store, "give", _task_event("lease.raised", _PART, given))
    equal(await _figures(store, "part"), [70, 70, 0, 0, 0, 0, 0], "a lease that is raised has more")
    equal(await _figures(store, "root"), [70, 0, 0, 70, 0, 0, 1], "the one above is raised as far as it has too little")
    equal(await _figures(store, ACCOUNT), [100, 30, 0, 70, 0, 0, 0], "and the account gives it")
    try:
        await append(store, "give more", _task_event("lease.raised", _PART, given))
    except StoreError:
        refused = True
    else:
        refused = False
    must(refused, "the account never gives more than it has")
    await sound(store)


async def more_than_there_is_cannot_be_written(database: Database) -> None:
    store = database.store("one")
    await _funded(store)
    placed = _hold_data("h1", 31, state="held", fence=1, until=NOW)
    try:
        await append(store, "hold", _task_event("hold.placed", _PART, placed))
    except StoreError:
        refused = True
    else:
        refused = False
    must(refused, "a lease never has less than nothing: the database itself says no")
    equal(await _figures(store, "part"), [30, 30, 0, 0, 0, 0, 0], "and nothing of it is written")
    await sound(store)


async def calls_are_held_until_they_end(database: Database) -> None:
    store = database.store("one")
    await _funded(store)
    for hold, until, person in (("h1", NOW + 5, "ann"), ("h2", NOW + 9, "")):
        held = _hold_data(hold, 5, state="held", fence=1, until=until, person=person)
        await append(store, hold, _task_event("hold.placed", _PART, held))
    equal(await _ties(store, "part"), [2], "a task has calls under way")
    equal([one.id for one in await look(store, lambda view: view.holds("part"))], ["h1", "h2"], "which are listed")
    equal([one.id for one in await look(store, lambda view: view.holds_expired(NOW + 5, 9))], ["h1"], "and are late")
    equal(await look(store, lambda view: view.on_hold("credits")), 10, "what is held in all")
    equal(await look(store, lambda view: view.on_hold("credits", agent="lead")), 0, "and for one agent")
    equal(await look(store, lambda view: view.on_hold("credits", person="ann")), 5, "and for one person")
    await append(store, "start", _task_event("hold.started", _PART, {"hold": "h1"}))
    await append(store, "release", _task_event("hold.released", _PART, _hold_data("h2", 5)))
    charged = _hold_data("h1", 5, costs={"credits": 5}, uncertain=True, billed={"credits": 9})
    equal(await look(store, lambda view: view.disputed("helper")), None, "no bill is doubted")
    await append(store, "charge", _task_event("hold.settled", _PART, charged))
    equal(await _ties(store, "part"), [0], "once they have ended it has none")
    doubted = await both_ways(store, lambda view: [one.claimed if (one := view.disputed("helper")) else None])
    equal(doubted, [{"credits": 9}], "a bill of which not all was charged is doubted")
    uncertain = await look(store, lambda view: view.holds_uncertain("", 9))
    equal([(one.id, one.state) for one in uncertain], [("h1", "uncertain")], "nobody knows what one of them cost")
    equal(await look(store, lambda view: view.holds_of_run("root")), uncertain, "in this run")
    settled = {
        "hold": "h1",
        "charged": {"credits": 5},
        "costs": {"credits": 2},
        "hour": hour_of(NOW),
        "why": "",
        "by": "",
    }
    back = {**settled, "back": {"credits": [3, ["part"]]}}
    await append(store, "reconcile", _task_event("hold.reconciled", _PART, back))
    equal(await look(store, lambda view: view.hold("h1")), None, "until someone says so")
    equal(await look(store, lambda view: view.disputed("helper")), None, "and the bill is settled with it")
    equal(await _figures(store, "part"), [30, 28, 0, 0, 2, 0, 0], "and the rest goes back")
    await sound(store)


async def what_is_spent_is_metered_by_the_hour(database: Database) -> None:
    store = database.store("one")
    await append(store, "root", started(_ROOT, NOW))
    await append(store, "used", tokens_used(_ANNS, 7, NOW))
    spent = {"costs": {"credits": 4}, "steps": {}, "why": "x", "person": "ann"}
    await append(store, "spent", _task_event("credits.spent", _ROOT, spent))
    await append(store, "more", tokens_used(_ANNS, 5, NOW + 3600 * SECOND))
    hour = hour_of(NOW)
    for scope, name in (("workspace", ""), ("agent", "lead"), ("session", "s"), ("person", "ann")):
        found = await look(store, lambda view, of=(scope, name): view.metered(*of, "tokens", hour))
        equal(found, 12, f"what the {scope} has used from that hour on")
        found = await look(store, lambda view, of=(scope, name): view.meter(*of, "credits", hour))
        equal(found, 4, f"what the {scope} has spent in it")
    equal(await look(store, lambda view: view.meter("agent", "helper", "tokens", hour)), None, "others have not")
    rows = [{"scope": "agent", "name": "lead", "unit": "tokens", "hour": hour_of(NOW), "spent": 3}]
    carried = {"leases": [], "holds": [], "meters": rows, "forgotten": hour}
    await append(store, "carried", ledger_event("ledger.carried", Place(), "", NOW, carried))
    equal(await look(store, lambda view: view.meter("agent", "lead", "tokens", hour)), 3, "stated again")
    forgotten = {**carried, "meters": [], "forgotten": hour_of(NOW + 3600 * SECOND)}
    await append(store, "forgotten", ledger_event("ledger.carried", Place(), "", NOW, forgotten))
    equal(await look(store, lambda view: view.meter("agent", "lead", "tokens", hour)), None, "and forgotten")
    await sound(store)


async def tasks_that_count_are_metered_by_the_hour(database: Database) -> None:
    store = database.store("one")
    await append(store, "root", _metered(started(_ROOT, NOW)))
    await append(store, "child", _metered(submitted(child_remit(_ROOT, "child", holder="helper"), NOW + HOUR, _QUEUED)))
    await append(store, "uncounted", submitted(child_remit(_ROOT, "another", holder="helper"), NOW + HOUR, _QUEUED))
    first, second = hour_of(NOW), hour_of(NOW + HOUR)
    for scope, name, counted in (
        ("workspace", "", 2),
        ("agent", "lead", 1),
        ("agent", "helper", 1),
        ("session", "s", 2),
    ):
        found = await look(store, lambda view, of=(scope, name): view.metered(*of, "tasks", first))
        equal(found, counted, f"how many tasks of {scope} '{name}' count")
    hours = await look(store, lambda view: view.meter_hours("workspace", "", "tasks", first))
    equal(hours, [("", first, 1), ("", second, 1)], "how many count in each hour")
    agents = await look(store, lambda view: view.meter_hours("agent", "*", "tasks", second))
    equal(agents, [("helper", second, 1)], "how many of each agent count from an hour on")
    await sound(store)


def _metered(event: Unsealed) -> Unsealed:
    return event._replace(data={**event.data, "metered": True})


async def questions_are_open_until_the_first_answer(database: Database) -> None:
    store = database.store("one")
    await append(store, "root", started(_ROOT, NOW))
    for number in (1, 2):
        asked: dict[str, Any] = {
            "question": f"q{number}",
            "kind": "hop",
            "text": "?",
            "choices": [],
            "digest": "d",
            "expires": "reject",
        }
        event = question_event("question.asked", place(_ROOT), "lead", NOW, {**asked, "until": NOW + number})
        await append(store, f"ask {number}", event)
    equal(await _ties(store, "root"), [2], "a task waits for answers")
    for name, found in {
        "the task's": await look(store, lambda view: view.questions_of("root")),
        "the run's": await look(store, lambda view: view.questions_open_in("root")),
        "all": await look(store, lambda view: view.questions_open(9)),
    }.items():
        equal([one.id for one in found], ["q1", "q2"], f"what is open, {name}")
    late = await look(store, lambda view: view.questions_expired(NOW + 1, 9))
    equal([one.id for one in late], ["q1"], "what nobody answered in time")
    for state, by in (("approved", "ann"), ("rejected", "bob")):
        said = {"question": "q1", "state": state, "by": by, "channel": "", "why": ""}
        await append(store, f"answer {by}", question_event("question.answered", place(_ROOT), "lead", NOW, said))
    used = question_event("question.used", place(_ROOT), "lead", NOW, {"question": "q1"})
    await append(store, "use", used)
    found = await look(store, lambda view: view.question("q1"))
    equal(found and (found.state, found.used), ("approved", 1), "the first answer counts, and is used")
    equal([one.id for one in await look(store, lambda view: view.questions(9))], ["q2", "q1"], "the latest first")
    equal(await look(store, lambda view: view.questions_of_run("root")), ["q1", "q2"], "all of a run")
    await sound(store)


CLAUSES: Final = (
    money_moves_and_is_neither_made_nor_lost,
    money_that_is_added_is_taken_above,
    more_than_there_is_cannot_be_written,
    calls_are_held_until_they_end,
    what_is_spent_is_metered_by_the_hour,
    tasks_that_count_are_metered_by_the_hour,
    questions_are_open_until_the_first_answer,
)

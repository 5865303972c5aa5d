"""Events of money and of people, as the engine writes them."""

from core.make import NOW
from remit.core.events import Place, Unsealed
from remit.core.kinds.money import ledger_event
from remit.core.kinds.people import question_event
from remit.core.money import Hold, Lease

T1 = Place("t1", "s1", "t1")
T2 = Place("t1", "s1", "t2")
ACCOUNT = {"credits": [["account"]], "tokens": [["account"]]}
CARVED = {"credits": [["t2"], ["account"]], "tokens": [["account"]]}


def settled(
    costs: dict[str, int],
    *,
    at: Place = T1,
    agent: str = "lead",
    now: int = NOW,
    purse: dict[str, list[list[str]]] = ACCOUNT,
    **more: object,
) -> Unsealed:
    """A call that was charged."""
    data = {"hold": "h1", "amounts": {"credits": 50_000}, "purse": purse, "costs": costs, "why": "photo", **more}
    return ledger_event("hold.settled", at, agent, now, data)


def spent(credits: int, *, at: Place = T1, agent: str = "lead", now: int = NOW, **more: object) -> Unsealed:
    """A payment."""
    data = {"costs": {"credits": credits}, "steps": {"credits": [["account", credits, 0]]}, "why": "stamps", **more}
    return ledger_event("credits.spent", at, agent, now, data)


def reconciled(charged: int, cost: int, *, at: Place = T1, now: int = NOW, **more: object) -> Unsealed:
    """A correction of an uncertain call."""
    data = {"hold": "h1", "charged": {"credits": charged}, "costs": {"credits": cost}, "hour": "2023-11-14T22"}
    return ledger_event("hold.reconciled", at, "lead", now, {**data, "why": "the bill", "by": "ann", **more})


def asked(question: str = "q1", *, at: Place = T1, kind: str = "ask", **more: object) -> Unsealed:
    data = {"question": question, "kind": kind, "text": "Which?", "choices": [], "digest": "d", "until": NOW + 60}
    return question_event("question.asked", at, "lead", NOW, {**data, "expires": "reject", **more})


def answered(state: str = "answered", *, question: str = "q1", at: Place = T1, **more: object) -> Unsealed:
    data = {"question": question, "state": state, "by": "ann", "channel": "terminal", "why": "", **more}
    return question_event("question.answered", at, "lead", NOW + 9, data)


def used(question: str = "q1", at: Place = T1) -> Unsealed:
    return question_event("question.used", at, "lead", NOW + 10, {"question": question})


def lease(id_: str = "account", **figures: object) -> Lease:
    made = Lease(id_, "credits", "account" if id_ == "account" else "carve", (), 0, 0, 0, 0, 0, 0, 0, "open")
    return made._replace(**figures)


def hold(state: str = "started", **more: object) -> Hold:
    purse = '{"credits":[["account"]]}'
    made = Hold("h1", "t1", "t1", "s1", "lead", 1, state, 50, 0, purse, NOW, "2023-11-14T22", "photo", "", "")
    return made._replace(**more)


_HELD = {"hold": "h1", "state": "held", "amounts": {"credits": 50_000, "tokens": 4_096}, "purse": ACCOUNT}

# One event of each kind, the fullest.
MONEY = [
    ledger_event("account.granted", Place(), "", NOW, {"unit": "tokens", "amount": 5_000, "why": "", "by": ""}),
    ledger_event("account.granted", Place(), "", NOW, {"unit": "credits", "amount": 5_000, "why": "May", "by": "ann"}),
    ledger_event("account.set", Place(), "", NOW, {"unit": "credits", "state": "open", "why": "paid", "by": "ann"}),
    ledger_event("hold.placed", T1, "lead", NOW, {**_HELD, "fence": 1, "until": NOW, "why": "photo", "model": "m"}),
    ledger_event("hold.started", T1, "lead", NOW, {"hold": "h1"}),
    ledger_event("hold.released", T1, "lead", NOW, {"hold": "h1", "amounts": {"credits": 5}, "purse": {}, "why": "x"}),
    settled({}),
    settled({"credits": 10_000}, uncertain=True),
    reconciled(50_000, 10_000),
    spent(20_000),
    ledger_event("ledger.carried", Place(), "", NOW, {"leases": [{}], "holds": [], "meters": [], "forgotten": "h"}),
    ledger_event("task.parked", T1, "lead", NOW, {}),
    asked(),
    answered("withdrawn", by="", channel=""),
    answered("answered", value="red"),
    answered("rejected", why="not today"),
    used(),
    question_event("notice.sent", T1, "lead", NOW, {"question": "q1", "channel": "mail", "ref": "7"}),
    question_event("notice.sent", T1, "lead", NOW, {"question": "q1", "channel": "mail", "error": "no such address"}),
]

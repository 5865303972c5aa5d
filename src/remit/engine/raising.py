"""More money: an agent that lacks money asks a person, whose yes raises its lease. Imported with `Policy(short="ask")`
when a payment lacks money, and when such a question is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from remit.core.events import Place, Unsealed
from remit.core.kinds.money import ledger_event
from remit.core.kinds.people import LacksMoney, QuestionAsked, question_used
from remit.core.money import ACCOUNT, Book, Lease, Path, Purse, Unit, amount_text, lease_name
from remit.core.prices import credits as read_credits
from remit.core.question import Question, QuestionDraft, Reply
from remit.core.raising import Want, lacking, raising, tightest
from remit.core.remit import Remit, path
from remit.core.values import Json, excerpt, shown
from remit.engine.approvals import said_under
from remit.engine.last_share import share_of
from remit.errors import BadInput
from remit.ports import View

if TYPE_CHECKING:
    from remit.core.bounds import Bounds

_DIGITS: Final = 12  # of a number of tokens
_TASK: Final = 1_000  # characters of the task in a question
_SUMMARY: Final = 200


class Shortage(NamedTuple):
    """A payment that a person can make possible: the lease with the least room, the amount that must be added at least,
    and the amount that is proposed. `account` is the account's balance, None if there is no account."""

    want: Want
    lease: Lease
    needed: int
    proposed: int
    account: int | None


def shortage(view: View, path_: Path, want: Want, full: int) -> Shortage | None:
    """Return the shortage of a payment, or None if there is enough, or the account has too little. `full` is the amount
    that the payment would take if there were enough money."""
    book = Book(view.lease)
    lease, needed = tightest(book, path_, want), lacking(book, path_, want)
    if lease is None or needed <= 0:
        return None
    wished = needed + max(0, full - want.amount)
    most = wished - raising(book, path_, want, wished).lacks
    if most < needed:
        return None
    account = book.lease(ACCOUNT, want.unit)
    return Shortage(want, lease, needed, most, account.available if account is not None else None)


def draft(short: Shortage, remit: Remit, why: str, suffix: str = "") -> QuestionDraft:
    """Return the question for more money, with all figures."""
    want, lease, unit = short.want, short.lease, short.want.unit
    whose = lease_name(lease, want.run)
    proposed = amount_text(unit, short.proposed)
    has = f"{amount_text(unit, lease.available)} of {amount_text(unit, lease.granted)}"
    text = (
        f"'{remit.holder}' wants {amount_text(unit, want.amount)} for {shown(why)}, and {whose} has {has} left. "
        f"Give it {proposed} more?"
    )
    shows: dict[str, Json] = {
        "for": why,
        "wants": amount_text(unit, want.amount),
        "has": has,
        "spent": amount_text(unit, lease.spent),
        "set aside": amount_text(unit, lease.reserved + lease.lent),
        "needs": amount_text(unit, short.needed),
        "proposed": proposed,
        "task": excerpt(remit.task, _TASK),
        "chain": path(remit.names),
    }
    if want.kept and lease.id == want.run:
        shows["kept for the last answer"] = amount_text(unit, want.kept)
    if short.account is not None:
        shows["account"] = amount_text(unit, short.account)
    raises: LacksMoney = {"unit": unit, "wanted": want.amount, "kept": want.kept, "adds": short.proposed}
    about = (remit.id, *remit.names)
    return QuestionDraft(
        "money", text, shows=shows, about=about, raises=cast("Mapping[str, Json]", raises), suffix=suffix
    )


def kept_of(view: View, told: Bounds | None, run: str, unit: Unit) -> int:
    """Return the last share that a payment must leave in the lease of its run; 0 if the run has none."""
    lease = view.lease(run, unit)
    return share_of(view, told, lease) if lease is not None else 0


# -- delegations ----------------------------------------------------------------------------------------------------


class WantedMoney(NamedTuple):
    """Money that a task wants to set aside for another one: the task, the other agent and what it is asked, the amount,
    and the operation that delegates."""

    under: Remit
    to: str
    task: str
    amount: int
    op: str


def asks_for_hop(view: View, path_: Path, wanted: WantedMoney, last_word: Bounds | None) -> QuestionDraft | None:
    """Return the question for the money that a delegation wants to reserve. Return None if more money would not help,
    or if a person has rejected an earlier question of this delegation. `path_` is the path along which the delegating
    task pays."""
    under, run = wanted.under, wanted.under.root
    want = Want("credits", wanted.amount, run, kept_of(view, last_word, run, "credits"))
    short = shortage(view, path_, want, wanted.amount)
    if short is None:
        return None
    number = 1
    while (said := said_under(view, f"{wanted.op}/money/{number}")) is not None:
        if not said.approved:
            return None
        number += 1
    return draft(short, under, f"{wanted.to}: {excerpt(wanted.task, _SUMMARY)}", f"/money/{number}")


# -- answers --------------------------------------------------------------------------------------------------------


class GivenMoney(NamedTuple):
    """The money that an approval gives: the amount as text for the record, and the events."""

    value: str
    events: list[Unsealed]


def given_by(view: View, purse: Purse, question: Question, asked: QuestionAsked, reply: Reply, now: int) -> GivenMoney:
    """Return what a yes gives: the proposed amount, or the one in the answer; never more than the account has. Raise
    `BadInput` if that is not enough for the payment. `purse` is that of the asking task."""
    terms = asked.get("raises")
    assert terms is not None  # every question of this kind has it
    unit = cast("Unit", terms["unit"])
    want = Want(unit, terms["wanted"], question.run, terms["kept"])
    book, path_ = Book(view.lease), purse.get(unit, ())
    needed = lacking(book, path_, want)
    wished = terms["adds"] if reply.value is None else _amount(unit, reply.value)
    most = wished - raising(book, path_, want, wished).lacks
    if most < (min(wished, needed) if reply.value is None else wished) or most <= 0:
        raise BadInput(_too_little(book, question, unit, needed, max(0, most)))
    if reply.value is not None and wished < needed:
        raise BadInput(
            f"question {question.id} needs at least {amount_text(unit, needed)}, not {amount_text(unit, wished)}; "
            "approve that much, or reject it"
        )
    raised = raising(book, path_, want, most)
    place = Place(question.run, question.session, question.task)
    data: dict[str, Any] = {"question": question.id, "unit": unit, "amount": most, "adds": raised.adds}
    data |= {"takes": raised.takes, "why": reply.why, "by": reply.by}
    events = [
        ledger_event("lease.raised", place, question.agent, now, data),
        question_used(question.id, place, question.agent, now),
    ]
    return GivenMoney(amount_text(unit, most), events)


def _too_little(book: Book, question: Question, unit: Unit, needed: int, most: int) -> str:
    account = book.lease(ACCOUNT, unit)
    assert account is not None  # nothing else limits an amount
    has = "is frozen" if account.state == "frozen" else f"has {amount_text(unit, account.available)} left"
    could = f"at most {amount_text(unit, most)} can be given" if most else "nothing can be given"
    return (
        f"question {question.id} needs at least {amount_text(unit, needed)}; the account {has}, so {could}: "
        "grant more money first, or reject it"
    )


def _amount(unit: Unit, value: Json) -> int:
    """Return the amount in a person's answer: credits, or a number of tokens. Raise `BadInput` if it is neither, or
    0."""
    if unit == "credits":
        found = read_credits(cast("Any", value), "the amount") or 0
    else:
        text = str(value).replace(",", "").removesuffix("tokens").strip()
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
            raise BadInput(f"the amount is a number of tokens such as 1500, not {shown(value)}")
        found = int(text)
    if not found:
        raise BadInput("the amount is more than nothing; to give nothing, reject the question")
    return found

"""Approvals at the door: who has to be asked, and whether what was approved is what is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias, cast

from remit.core.allow import ANY, names_data
from remit.core.card import Card
from remit.core.chain import path
from remit.core.credits import dollars
from remit.core.events import Unsealed
from remit.core.identity import question
from remit.core.kinds import place, question_asked, question_used
from remit.core.question import Expiry, Question, QuestionDraft, Reply
from remit.core.remit import Pass, Remit
from remit.core.text import excerpt, shown
from remit.engine.door.said import answered, rejected, said_of
from remit.engine.owners import owners_function
from remit.ports import View

POLICY: Final = "policy"
_TASK: Final = 7_000  # characters of a task in a summary; what the question shows has all of it


class WantedHop(NamedTuple):
    """A hop that someone wants, for those who say which are to be approved."""

    kind: str
    asker: str
    agent: str
    task: str
    credits: int | None
    card: Card


# Says whether a person is to approve a hop: True or False, or the reason why.
Approve: TypeAlias = Callable[[WantedHop], "bool | str"]


class Approving(NamedTuple):
    """`approve` is what the owner says about all hops; a card may ask for it too. `expires` says what it means that
    nobody answers."""

    approve: Approve | None = None
    expires: Expiry = "reject"

    def needed(self, kind: str, under: Remit, wish: Pass, card: Card | None) -> str:
        """Tell why a person has to approve a hop; empty if nobody has to."""
        if card is None:
            return ""
        if card.approve:
            return f"'{card.name}' works only after an approval"
        if self.approve is None:
            return ""
        with owners_function("Policy(approve=...)"):
            given = self.approve(WantedHop(kind, under.holder, wish.to, wish.task, wish.credits, card))
        return "" if given is False else _reason(given, card.name, under.holder)

    def draft(self, kind: str, child: Remit, under: Remit, wish: Pass, card: Card, why: str) -> QuestionDraft:
        """Say what is to be approved, and all that it permits."""
        shows: dict[str, Any] = {
            "action": kind,
            "agent": wish.to,
            "task": wish.task,
            "chain": path(under.names),
            "because": why,
            "tools": names_data(card.tools) if card.tools else [],
            "asks": names_data(card.asks) if card.asks else [],
        }
        if wish.credits is not None:
            shows["credits"] = dollars(wish.credits)
        elif child.bounds.credits is not None:
            shows["credits"] = f"at most {dollars(child.bounds.credits)}, shared"
        word = {"handoff": f"hand this over to '{wish.to}'"}.get(kind, f"ask '{wish.to}'")
        text = f"'{under.holder}' wants to {word}: {excerpt(wish.task, _TASK)}"
        about = (under.id, *under.names, *question(wish))  # without its time, which every life works out anew
        return QuestionDraft("hop", text, expires=self.expires, shows=shows, about=about)


def _reason(given: object, agent: str, asker: str) -> str:
    """Say why, in the words of whoever wants it. Whatever is no plain no is asked about."""
    if isinstance(given, str) and given:
        return given
    if given is True:
        return f"'{agent}' is asked by '{asker}'"
    return f"about '{agent}' the policy says {shown(given)}, which is neither yes nor no"


def analysis_only(card: Card) -> bool:
    """Whether an agent can only look and say: it has no tools and asks nobody."""
    return not card.tools and card.tools is not ANY and not card.asks and card.asks is not ANY


class Permit(NamedTuple):
    """What is known of an approval: it is there (`events` use it up), it was refused (`no`), or someone has to be
    asked. `task` is the text as it was approved."""

    events: tuple[Unsealed, ...] = ()
    no: str = ""
    asks: bool = False
    task: str = ""


ASKS: Final = Permit(asks=True)


def permit(view: View, op: str, draft: QuestionDraft, under: Remit, agent: str, now: int) -> Permit:
    """Look for the approval of an action: by its own operation, for exactly this, and not used yet."""
    done = view.done(f"{op}/ask")
    question = view.question(str(done[0])) if done is not None else None
    if question is None or question.is_open:
        return ASKS
    found = said_of(view, question)
    if not found.approved:
        return Permit(no=rejected(found, f"asking '{agent}'"))
    if question.used or question.digest != draft.digest or question.task != under.id:
        return Permit(no=f"asking '{agent}' was approved once, for something else; it is not approved again by itself")
    used = question_used(question.id, place(under), under.holder, now)
    return Permit((used,), task=cast("str", found.value) or "")


def automatic(question: str, draft: QuestionDraft, under: Remit, now: int) -> tuple[Unsealed, ...]:
    """Ask, approve and use in one: on record, with the reason why nobody had to be asked."""
    where = place(under)
    row = Question(question, *where, under.holder, "hop", draft.digest, now, now, "open", "reject", 0, None, 0)
    reply = Reply("approved", POLICY, "auto", "it can only look and say: it has no tools and asks nobody")
    return (
        question_asked(question, draft, now, where, under.holder, now),
        answered(row, reply, now),
        question_used(question, where, under.holder, now),
    )


def withdrawn(question: Question, now: int) -> Unsealed:
    """Take back a question whose task is over."""
    return answered(question, Reply("withdrawn", "", "", "its task is over"), now)

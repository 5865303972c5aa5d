"""Context receipts: the context that one turn saw and why, and the context that was withheld from it and why."""

from collections.abc import Iterable, Mapping
from typing import Literal

from remit.core import scope
from remit.core.allow import ANY
from remit.core.entry import Entry
from remit.core.records import NamedTuple
from remit.core.scope import Sees
from remit.core.trust import TRUSTED, UNTRUSTED, Trust
from remit.core.values import Json, digest, encode, tokens_in

Why = Literal["task", "passed", "card", "memory", "wrote", "dependency", "message", "approved", "said", "session"]

LISTED = 200  # a turn may read a million entries; its receipt names the first ones and counts the rest

_NO_TEXT = digest("")


class Slice(NamedTuple):
    """One piece of context that a turn saw."""

    what: str
    why: Why
    tokens: int
    version: int
    digest: str
    trust: Trust = TRUSTED

    @classmethod
    def of(cls, what: str, why: Why, text: str, trust: Trust = TRUSTED) -> "Slice":
        """Return a slice for something that is not an entry and therefore has no versions."""
        return cls(what, why, tokens_in(text), 1, digest(text), trust)


class Receipt:
    """The context that one turn saw. Filled while the turn runs, and written once, with the event that ends the
    turn."""

    # Defaults of the class: an instance has only the values that differ, and there may be thousands of turns.
    tokens = 0
    unlisted = 0
    _in_text = 0
    _withheld_more = 0
    _untold: tuple[tuple[str, str], ...] = ()

    def __init__(self) -> None:
        self.saw: dict[tuple[str, int, str], Slice] = {}
        self.withheld: dict[str, str] = {}

    def task(self, text: str) -> None:
        """Record the task's text, which every turn sees first."""
        tokens = max(0, tokens_in(text) - self._in_text)  # parts from elsewhere have slices of their own
        self.tokens += tokens
        self.saw["task", 1, ""] = Slice("task", "task", tokens, 1, digest(text))

    def add_parts(self, parts: Iterable[Slice]) -> None:
        """Record the parts that the task's own text contains: results of earlier steps, messages."""
        for part in parts:
            self._in_text += part.tokens
            self._add(part)

    def beside(self, parts: Iterable[Slice]) -> None:
        """Record the parts that come next to the task's text: handed-over data, results of parts."""
        for part in parts:
            self._add(part)

    def entry(self, entry: Entry, why: Why) -> None:
        where = scope.key_spelled(entry.namespace, entry.key)
        self._add(Slice(where, why, tokens_in(entry.text), entry.version, entry.digest, entry.trust))

    def message(self, sender: str, text: str, trust: Trust = TRUSTED) -> None:
        self._add(Slice.of(f"message from {sender}", "message", text, trust))

    def mark_untrusted(self, what: str, text: str, place: str) -> None:
        """Record untrusted input of the turn. If no text is given and a tool took the input in, the tool's result is
        the text: `place` identifies the call."""
        self._add(Slice.of(what, "said", text, UNTRUSTED))
        if not text and place:
            self._untold = (*self._untold, (place, what))

    def tell(self, place: str, value: Json) -> None:
        """Record the result of the tool call at `place`, if it took in untrusted input without giving a text."""
        if not self._untold:
            return
        text = value if isinstance(value, str) else encode(value)
        told = [what for where, what in self._untold if where == place]
        self._untold = tuple([one for one in self._untold if one[0] != place])
        for what in told:
            self.saw.pop((what, 1, _NO_TEXT), None)
            self._add(Slice.of(what, "said", text, UNTRUSTED))

    def withhold(self, what: str, why: str) -> None:
        if len(self.withheld) < LISTED or what in self.withheld:
            self.withheld[what] = why
        else:
            self._withheld_more += 1

    def withhold_all(self, reasons: Mapping[str, str]) -> None:
        """Record the context that the asker withheld from a turn that is about to start."""
        if len(reasons) <= LISTED:
            self.withheld = dict(reasons)
            return
        for what, why in reasons.items():
            self.withhold(what, why)

    def _add(self, part: Slice) -> None:
        at = (part.what, part.version, part.digest)
        if part.why != "message" and at in self.saw:
            return
        self.tokens += part.tokens
        if len(self.saw) >= LISTED:
            self.unlisted += 1
        else:
            self.saw[at if part.why != "message" else (part.what, -len(self.saw), part.digest)] = part

    def data(self) -> dict[str, Json]:
        # Without loops of Python: this runs for every turn.
        withheld: list[Json] = [*map(list[Json], self.withheld.items())]
        if self._withheld_more:
            withheld.append([f"and {self._withheld_more:,} more", "not listed"])
        saw: list[Json] = [*map(list[Json], self.saw.values())]
        return {"saw": saw, "tokens": self.tokens, "unlisted": self.unlisted, "withheld": withheld}


def kept_back(sight: Sees, passed: Sees, wished: Sees) -> dict[str, str]:
    """Return, with reasons, the context that the asker sees and did not pass on, and the context that it wanted to pass
    on without seeing it."""
    reasons: dict[str, str] = {}
    if sight is ANY:
        if passed is not ANY:
            reasons["everything else"] = "not passed"
    else:
        kept = scope.outside(sight, passed) if passed else sight
        reasons |= dict.fromkeys(sorted(map(str, kept)), "not passed")
    if wished is not ANY:
        unseen = scope.outside(wished, sight)
        reasons |= {str(scope_): "the asker does not see all of it" for scope_ in sorted(unseen, key=str)}
    return reasons

"""Session memory: the earlier runs of a session, as a later run of the same agent is given them."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias, cast

from remit.core.records import NamedTuple
from remit.core.trust import TRUSTED, Trust, least, quoted
from remit.core.values import shown
from remit.errors import BadInput

# How much of its session a run is given. "" means the agent's setting, or nothing; "session" question and answer of
# each run; "whole" whole conversations.
Remembers: TypeAlias = Literal["", "nothing", "session", "whole"]
RemembersGiven: TypeAlias = bool | Literal["session", "whole"] | None

SAID_LIMIT: Final = 12_000  # characters of all exchanges
EACH_LIMIT: Final = 4_000  # characters of one question or answer
# Characters of whole conversations; a run that does not fit is reduced to question and answer.
WHOLE_LIMIT: Final = 60_000
LOOKED_AT: Final = 50  # runs of a session
UNDONE: Final = "undone"  # the namespace of the runs that a person took back, by session
REMOVED: Final = "[an earlier exchange was removed]"
_ANSWER_REMOVED: Final = "(removed)"


class EarlierExchange(NamedTuple):
    """One earlier run: the text its agent was asked, and the answer.

    `trust` is the label of the answer, and `said_trust` that of the question. `task` is the id of the run.
    """

    said: str
    answer: str
    trust: Trust = TRUSTED
    said_trust: Trust = TRUSTED
    task: str = ""

    @property
    def label(self) -> Trust:
        """The label of the whole exchange: untrusted if a part of it is."""
        return least((self.trust, self.said_trust))

    @property
    def words(self) -> tuple[str, str]:
        """The question and the answer for a prompt: untrusted text is quoted."""
        return _quoted_unless_trusted(self.said, self.said_trust), _quoted_unless_trusted(self.answer, self.trust)


def removed(task: str) -> EarlierExchange:
    """Return the placeholder for a run whose record was pruned."""
    return EarlierExchange(REMOVED, _ANSWER_REMOVED, task=task)


def remembers(given: object) -> Remembers:
    """Return the keyword `remembers` of a run, checked. Raise `BadInput` if it is invalid."""
    match given:
        case None:
            return ""
        case True:
            return "session"
        case False:
            return "nothing"
        case "nothing" | "session" | "whole":
            return cast("Remembers", given)
        case _:
            raise BadInput(
                f"remembers is True for what was said in the session, 'whole' for whole conversations, or False, not "
                f"{shown(given)}"
            )


def memory(given: object) -> Remembers:
    """Return the keyword `memory` of an agent, checked. Raise `BadInput` if it is invalid."""
    match given:
        case None:
            return ""
        case "session" | "whole":
            return cast("Remembers", given)
        case _:
            raise BadInput(
                f"memory is 'session' for what was said in the session, 'whole' for whole conversations, or None, not "
                f"{shown(given)}"
            )


def shortened(text: str) -> str:
    """Return one question or answer, shortened to the limit, with a note of how much is left out."""
    if len(text) <= EACH_LIMIT:
        return text
    return f"{text[:EACH_LIMIT]}\n[{len(text) - EACH_LIMIT:,} more characters left out]"


def newest(exchanges: Iterable[EarlierExchange]) -> list[EarlierExchange]:
    """Return the newest of these exchanges whose texts together have at most `SAID_LIMIT` characters. They come in with
    the newest first, and stay in this order."""
    fits: list[EarlierExchange] = []
    left = SAID_LIMIT
    for one in exchanges:
        left -= len(one.said) + len(one.answer)
        if left < 0:
            break
        fits.append(one)
    return fits


def said_before(exchanges: Sequence[EarlierExchange]) -> str:
    """Return earlier exchanges for a prompt, the oldest first. Each text is quoted, so that an answer cannot pose as
    something that the asker said."""
    parts = ["## Said before in this session"]
    for one in exchanges:
        parts += ["", "### You were asked", _quoted(one.said, one.said_trust)]
        parts += ["", "### You answered", _quoted(one.answer, one.trust)]
    return "\n".join(parts)


def _quoted_unless_trusted(text: str, trust: Trust) -> str:
    return text if trust == TRUSTED else quoted(text)


def _quoted(text: str, trust: Trust) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines()) if trust == TRUSTED else quoted(text)

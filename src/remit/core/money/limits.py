"""Limits: how much may be spent in an hour, a day, a week or a month."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from remit.core.checks import meant, whole
from remit.core.credits import CreditsGiven, credits  # noqa: A004 - the word of the domain
from remit.core.money.leases import Unit, spelled
from remit.core.text import SESSION_LIMIT, canonical, line, shown
from remit.core.times import HOUR, hour_of
from remit.errors import BadInput

HOURS: Final[dict[str, int]] = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24}
EACH: Final = "*"
LONGEST: Final = max(HOURS.values())

MeterScope = Literal["workspace", "agent", "session"]


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so much in a rolling hour, day, week or month (30 days): of the whole workspace, or of an `agent` or a
    `session`; "*" is for each of them.

    It is counted by whole hours, and the hour in which the time began counts whole: never more than the limit is spent
    within that time.
    """

    per: str
    credits: int | None = None
    tokens: int | None = None
    agent: str = ""
    session: str = ""

    if TYPE_CHECKING:  # what people may write; inside there is one form of each

        def __init__(
            self,
            per: str,
            *,
            credits: CreditsGiven = None,
            tokens: int | None = None,
            agent: str = "",
            session: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.per not in HOURS:
            raise BadInput(f"a limit is per {', '.join(HOURS)}, not {shown(self.per)}{meant(self.per, HOURS)}")
        put(self, "credits", credits(self.credits))
        put(self, "tokens", whole(self.tokens, "tokens"))
        if self.credits is None and self.tokens is None:
            raise BadInput("a limit says how much: credits, tokens, or both")
        if self.agent and self.session:
            raise BadInput("a limit is of an agent or of a session; say two limits")
        if self.agent not in ("", EACH):
            put(self, "agent", canonical(self.agent))
        if self.session not in ("", EACH):
            line(self.session, "a session", SESSION_LIMIT)

    def most(self, unit: Unit) -> int | None:
        return self.credits if unit == "credits" else self.tokens

    def since(self, now: int) -> str:
        """The first hour that counts."""
        return hour_of(now - HOURS[self.per] * HOUR)

    def meters(self, agent: str, session: str) -> "Metered | None":
        """Tell what is counted for whom when this agent spends in that session; None if it does not concern them."""
        if self.agent:
            return Metered("agent", agent) if self.agent in (EACH, agent) else None
        if self.session:
            return Metered("session", session) if self.session in (EACH, session) else None
        return Metered("workspace", "")


class Metered(NamedTuple):
    """Whose spending is counted."""

    scope: MeterScope
    name: str

    def __str__(self) -> str:
        return f"{self.scope} '{self.name}'" if self.name else "the workspace"


class Exceeded(NamedTuple):
    """A limit that something does not fit: what was spent, what is held right now, and what is wanted."""

    limit: Limit
    unit: Unit
    metered: Metered
    spent: int
    held: int
    wanted: int

    @property
    def for_good(self) -> bool:
        """Whether waiting for what is held would not help."""
        return self.spent + self.wanted > (self.limit.most(self.unit) or 0)

    @property
    def sentence(self) -> str:
        unit, most = self.unit, self.limit.most(self.unit) or 0
        held = f" and holds {spelled(unit, self.held)}" if self.held else ""
        used = f"has used {spelled(unit, self.spent)}{held} of {spelled(unit, most)}"
        a = "an" if self.limit.per == "hour" else "a"
        return f"{spelled(unit, self.wanted)} wanted, and {self.metered} {used} {a} {self.limit.per}"

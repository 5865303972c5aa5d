"""Limits: how much may be spent, and how many tasks may begin, in an hour, a day, a week or a month."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from remit.core.checks import meant, whole
from remit.core.credits import CreditsGiven, credits  # noqa: A004 - what it makes is called that
from remit.core.money import UNITS, Unit, spelled
from remit.core.text import SESSION_LIMIT, canonical, line, shown
from remit.core.times import HOUR, begin_of, hour_of, iso
from remit.errors import BadInput

HOURS: Final[dict[str, int]] = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24}
EACH: Final = "*"
LONGEST: Final = max(HOURS.values())
_MINUTE: Final = HOUR // 60

MeterScope = Literal["workspace", "agent", "session"]
TASKS: Final = "tasks"
MeterUnit: TypeAlias = Unit | Literal["tasks"]
METER_UNITS: Final[tuple[MeterUnit, ...]] = (*UNITS, TASKS)


class Metered(NamedTuple):
    """Whose spending is counted."""

    scope: MeterScope
    name: str

    def __str__(self) -> str:
        if self.name == EACH:
            return f"each {self.scope}"
        return f"{self.scope} '{self.name}'" if self.name else "the workspace"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so much in a rolling hour, day, week or month (30 days): of the whole workspace, or of an `agent` or a
    `session`; "*" is for each of them. `credits` and `tokens` limit what is spent, `tasks` how many tasks begin: of an
    agent, how many it is given.

    It is counted by whole hours, and the hour in which the time began counts whole: never more than the limit is spent
    within that time. Tasks are counted in a workspace from when a limit on them is set.
    """

    per: str
    credits: int | None = None
    tokens: int | None = None
    tasks: int | None = None
    agent: str = ""
    session: str = ""

    if TYPE_CHECKING:  # what people may write; inside there is one form of each

        def __init__(
            self,
            per: str,
            *,
            credits: CreditsGiven = None,
            tokens: int | None = None,
            tasks: int | None = None,
            agent: str = "",
            session: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.per not in HOURS:
            raise BadInput(f"a limit is per {', '.join(HOURS)}, not {shown(self.per)}{meant(self.per, HOURS)}")
        put(self, "credits", credits(self.credits))
        put(self, "tokens", whole(self.tokens, "tokens"))
        put(self, "tasks", whole(self.tasks, "tasks"))
        if self.credits is None and self.tokens is None and self.tasks is None:
            raise BadInput("a limit says how much: credits, tokens or tasks, or several of them")
        if self.agent and self.session:
            raise BadInput("a limit is of an agent or of a session; say two limits")
        if self.agent not in ("", EACH):
            put(self, "agent", canonical(self.agent))
        if self.session not in ("", EACH):
            line(self.session, "a session", SESSION_LIMIT)

    @property
    def is_of_money(self) -> bool:
        """Whether it limits what is spent, and not only how many tasks begin."""
        return self.credits is not None or self.tokens is not None

    def most(self, unit: MeterUnit) -> int | None:
        """Return how much the limit allows of a unit; None if it says nothing of that unit."""
        return self.tasks if unit == TASKS else self.credits if unit == "credits" else self.tokens

    def since(self, now: int) -> str:
        """The first hour that counts."""
        return hour_of(now - HOURS[self.per] * HOUR)

    def meters(self, agent: str, session: str) -> Metered | None:
        """Tell what is counted for whom when this agent spends in that session; None if it does not concern them."""
        if self.agent:
            return Metered("agent", agent) if self.agent in (EACH, agent) else None
        if self.session:
            return Metered("session", session) if self.session in (EACH, session) else None
        return Metered("workspace", "")

    @property
    def units(self) -> tuple[MeterUnit, ...]:
        """List the units that it limits."""
        return tuple(unit for unit in METER_UNITS if self.most(unit) is not None)

    @property
    def of(self) -> Metered:
        """Return for whom it is; the name "*" stands for each."""
        if self.agent:
            return Metered("agent", self.agent)
        return Metered("session", self.session) if self.session else Metered("workspace", "")

    def room_at(self, unit: MeterUnit, hours: Iterable[tuple[str, int]]) -> int | None:
        """Return when one more fits, by what was counted in each hour, the oldest first; None if that is never."""
        counted, most = [*hours], self.most(unit) or 0
        used = sum(spent for _, spent in counted)
        for hour, spent in counted:
            used -= spent
            if used < most:
                return begin_of(hour) + (HOURS[self.per] + 1) * HOUR
        return None

    @property
    def each(self) -> str:
        """Say the time of the limit after an amount: a day, an hour."""
        return f"an {self.per}" if self.per == "hour" else f"a {self.per}"


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
        return f"{spelled(unit, self.wanted)} wanted, and {self.metered} {used} {self.limit.each}"


class LimitUse(NamedTuple):
    """How much of a limit is used: `used` counts in its time, `held` is held for calls under way, and `room_at` is when
    there is room again if all of it is used (None: there is room, or never will be)."""

    limit: Limit
    unit: MeterUnit
    metered: Metered
    used: int
    held: int = 0
    room_at: int | None = None

    @property
    def most(self) -> int:
        """Return how much is allowed."""
        return self.limit.most(self.unit) or 0

    @property
    def left(self) -> int:
        """Return how much is left; nothing if more is used than is allowed by now."""
        return max(0, self.most - self.used - self.held)


class TasksUsedUp(NamedTuple):
    """A limit on tasks that lets no other begin: how many began, and when there is room again (None: never)."""

    limit: Limit
    metered: Metered
    begun: int
    room_at: int | None

    def sentence(self, now: int) -> str:
        """Say which limit it is, how many tasks count, and when there is room again."""
        limit = self.limit
        has = "has been given" if self.metered.scope == "agent" else "has begun"
        used = f"{self.metered} {has} {self.begun:,} of {limit.tasks:,} {'task' if limit.tasks == 1 else 'tasks'}"
        if self.room_at is None:
            return f"{used} {limit.each}, so none may begin"
        return f"{used} {limit.each}, and there is room again {_moment(self.room_at, now)}"


def _moment(at: int, now: int) -> str:
    """in 2 h 5 min, at 2026-11-15T02:00Z: rounded up, as nobody should ask too early."""
    minutes = max(1, -((now - at) // _MINUTE))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{number} {word}" for number, word in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    return f"in {' '.join(parts[:2])}, at {iso(at)[:16]}Z"

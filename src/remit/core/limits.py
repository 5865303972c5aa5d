"""Limits: how much may be spent, and how many tasks may start, in an hour, a day, a week or a month."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from remit.core.checks import meant, whole
from remit.core.money import UNITS, Unit, amount_text
from remit.core.prices import CreditsGiven, credits  # noqa: A004 - what it makes is called that
from remit.core.records import NamedTuple, dataclass
from remit.core.times import HOUR, begin_of, hour_of, iso
from remit.core.values import NAME_LIMIT, SESSION_LIMIT, canonical, line, shown
from remit.errors import BadInput

HOURS: Final[dict[str, int]] = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24}
EACH: Final = "*"
LONGEST: Final = max(HOURS.values())
_MINUTE: Final = HOUR // 60

MeterScope = Literal["workspace", "agent", "session", "person"]
TASKS: Final = "tasks"
MeterUnit: TypeAlias = Unit | Literal["tasks"]
METER_UNITS: Final[tuple[MeterUnit, ...]] = (*UNITS, TASKS)


class Metered(NamedTuple):
    """The subject of a meter: the workspace, an agent, a session or a person."""

    scope: MeterScope
    name: str

    def __str__(self) -> str:
        if self.name == EACH:
            return f"each {self.scope}"
        return f"{self.scope} '{self.name}'" if self.name else "the workspace"

    @property
    def narrowed(self) -> dict[str, str]:
        """The subject as a keyword of `View.on_hold`, such as `{"agent": "coder"}`; empty for the workspace."""
        return {} if self.scope == "workspace" else {self.scope: self.name}


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on a rolling hour, day, week or month (30 days). It applies to the whole workspace, to an `agent`, to a
    `session`, or to a person (`by`), whose name the run was started with; "*" gives each of them a limit of its own.
    `credits` and `tokens` limit spending. `tasks` limits how many tasks start; for an agent, how many it is given.

    remit counts by whole hours, and the hour in which the period began counts whole, so the limit is never exceeded
    within the period. A workspace counts its tasks from when the first limit on tasks is set.
    """

    per: str
    credits: int | None = None
    tokens: int | None = None
    tasks: int | None = None
    agent: str = ""
    session: str = ""
    by: str = ""

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
            by: str = "",
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
        if sum(one != "" for one in (self.agent, self.session, self.by)) > 1:
            raise BadInput("a limit is of an agent, of a session or of a person; set one limit for each")
        if self.agent not in ("", EACH):
            put(self, "agent", canonical(self.agent))
        if self.session not in ("", EACH):
            line(self.session, "a session", SESSION_LIMIT)
        if self.by not in ("", EACH):
            line(self.by, "by", NAME_LIMIT)

    @property
    def is_of_money(self) -> bool:
        """Whether it limits spending; False for a limit on tasks only."""
        return self.credits is not None or self.tokens is not None

    def most(self, unit: MeterUnit) -> int | None:
        """Return the allowed amount of a unit, or None if the limit does not cover this unit."""
        return self.tasks if unit == TASKS else self.credits if unit == "credits" else self.tokens

    def since(self, now: int) -> str:
        """Return the first hour whose spending counts for the limit at `now`, as text (see `hour_of`)."""
        return hour_of(now - HOURS[self.per] * HOUR)

    def meters(self, agent: str, session: str, by: str = "") -> Metered | None:
        """Return the meter that counts when this agent spends in this session for this person, or None if the limit
        does not apply. A run without a named person is under no limit of a person."""
        if self.agent:
            return Metered("agent", agent) if self.agent in (EACH, agent) else None
        if self.session:
            return Metered("session", session) if self.session in (EACH, session) else None
        if self.by:
            return Metered("person", by) if by and self.by in (EACH, by) else None
        return Metered("workspace", "")

    @property
    def units(self) -> tuple[MeterUnit, ...]:
        """Return the units that it limits."""
        return tuple(unit for unit in METER_UNITS if self.most(unit) is not None)

    @property
    def of(self) -> Metered:
        """Return the subject of the limit. If its name is "*", each agent, session or person has this limit of its
        own."""
        if self.agent:
            return Metered("agent", self.agent)
        if self.by:
            return Metered("person", self.by)
        return Metered("session", self.session) if self.session else Metered("workspace", "")

    def room_at(self, unit: MeterUnit, hours: Iterable[tuple[str, int]]) -> int | None:
        """Return the time when a limit that is used up has room again, in microseconds since 1970, or None if it never
        has. `hours` has the amount that was used in each hour, the oldest first."""
        counted, most = [*hours], self.most(unit) or 0
        used = sum(spent for _, spent in counted)
        for hour, spent in counted:
            used -= spent
            if used < most:
                return begin_of(hour) + (HOURS[self.per] + 1) * HOUR
        return None

    @property
    def each(self) -> str:
        """The period of the limit as it follows an amount: "a day", "an hour"."""
        return f"an {self.per}" if self.per == "hour" else f"a {self.per}"


class Exceeded(NamedTuple):
    """A limit that a request would exceed: the amounts spent, held right now, and wanted."""

    limit: Limit
    unit: Unit
    metered: Metered
    spent: int
    held: int
    wanted: int

    @property
    def for_good(self) -> bool:
        """Whether the request would exceed the limit even after all holds are released."""
        return self.spent + self.wanted > (self.limit.most(self.unit) or 0)

    @property
    def sentence(self) -> str:
        unit, most = self.unit, self.limit.most(self.unit) or 0
        held = f" and holds {amount_text(unit, self.held)}" if self.held else ""
        used = f"has used {amount_text(unit, self.spent)}{held} of {amount_text(unit, most)}"
        return f"{amount_text(unit, self.wanted)} wanted, and {self.metered} {used} {self.limit.each}"


class LimitUse(NamedTuple):
    """The use of a limit: `used` is the amount in its period, `held` the amount held for running calls. If the limit is
    used up, `room_at` is when there is room again; None means that there is room now, or never will be."""

    limit: Limit
    unit: MeterUnit
    metered: Metered
    used: int
    held: int = 0
    room_at: int | None = None

    @property
    def most(self) -> int:
        """The allowed amount."""
        return self.limit.most(self.unit) or 0

    @property
    def left(self) -> int:
        """The amount that is left; 0 if the limit is exceeded."""
        return max(0, self.most - self.used - self.held)


class TasksUsedUp(NamedTuple):
    """A limit on tasks that is used up: how many tasks started, and when there is room again (None: never)."""

    limit: Limit
    metered: Metered
    begun: int
    room_at: int | None

    def sentence(self, now: int) -> str:
        """Return which limit it is, how many tasks count, and when there is room again."""
        limit = self.limit
        has = "has been given" if self.metered.scope == "agent" else "has begun"
        used = f"{self.metered} {has} {self.begun:,} of {limit.tasks:,} {'task' if limit.tasks == 1 else 'tasks'}"
        if self.room_at is None:
            return f"{used} {limit.each}, so none may begin"
        return f"{used} {limit.each}, and there is room again {_moment(self.room_at, now)}"


def _moment(at: int, now: int) -> str:
    """Return a time as "in 2 h 5 min, at 2026-11-15T02:00Z". The duration is rounded up, so that a caller does not
    retry too early."""
    minutes = max(1, -((now - at) // _MINUTE))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{number} {word}" for number, word in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    return f"in {' '.join(parts[:2])}, at {iso(at)[:16]}Z"

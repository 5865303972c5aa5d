"""Bounds: the limits on a remit and on everything below it. They form a meet-semilattice: `a & b` admits what both
admit."""

from collections.abc import Awaitable, Callable
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from remit.core import allow, scope
from remit.core.allow import ANY, Names, NamesGiven, names_data, names_restored
from remit.core.checks import meant, whole
from remit.core.patterns import pattern
from remit.core.prices import CreditsGiven, credits  # noqa: A004 - the word of the domain
from remit.core.records import dataclass
from remit.core.scope import Sees, SeesGiven
from remit.core.times import LATEST, deadline_of
from remit.core.toolgroups import tools
from remit.core.values import Json, shown
from remit.errors import BadInput

DEFAULT_DEPTH = 3
DEFAULT_HANDOFFS = 5  # of one task
SENDS = 100  # parts of one parallel handoff
SPAWNED = 5  # unfinished spawned tasks of one asker
DEFAULT_TASKS = 1_000
_LISTS: Final = frozenset(("agents", "tools", "sees", "writes"))
_FIGURES = ("depth", "deadline", "credits", "tokens", "handoffs", "members", "tasks", "requests")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for a task and all its subtasks. A field that is left out limits nothing. Bounds can only be narrowed on
    the way down.

    `agents` are the agents that may take part and `tools` the tools that may be used. `sees` and `writes` are the
    stored context that may be read and written. `depth` limits the number of nested delegations. `deadline` is the time
    by which the task must end: an aware datetime, or microseconds since 1970. `credits` and `tokens` limit spending by
    the task and its subtasks. `handoffs` limits how often tasks may be handed over, `members` the number of different
    agents, `tasks` the number of tasks, and `requests` the number of model requests. `handoffs`, `members`, `tasks` and
    `requests` are counted over the whole run. The `requests` that a run is started with replaces `Loops(requests=...)`,
    even if it is higher.
    """

    agents: Names = ANY
    tools: Names = ANY
    sees: Sees = ANY
    writes: Sees = ANY
    depth: int | None = None
    deadline: int | None = None
    credits: int | None = None
    tokens: int | None = None
    handoffs: int | None = None
    members: int | None = None
    tasks: int | None = None
    requests: int | None = None
    _data: dict[str, Json] | None = field(default=None, init=False, repr=False, compare=False)

    if TYPE_CHECKING:  # what callers may pass; stored in one normal form

        def __init__(
            self,
            *,
            agents: NamesGiven = ANY,
            tools: NamesGiven = ANY,
            sees: SeesGiven = ANY,
            writes: SeesGiven = ANY,
            depth: int | None = None,
            deadline: datetime | int | None = None,
            credits: CreditsGiven = None,
            tokens: int | None = None,
            handoffs: int | None = None,
            members: int | None = None,
            tasks: int | None = None,
            requests: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        # Callers pass lists, group names, "$0.50" and datetimes; each is stored in one normal form.
        put = object.__setattr__
        put(self, "agents", allow.agents(self.agents))
        put(self, "tools", tools(self.tools))
        put(self, "sees", scope.scopes(self.sees))
        put(self, "writes", scope.scopes(self.writes, "writes"))
        put(self, "depth", whole(self.depth, "depth"))
        put(self, "deadline", None if self.deadline is None else deadline_of(self.deadline))
        put(self, "credits", credits(self.credits))
        put(self, "tokens", whole(self.tokens, "tokens"))
        put(self, "handoffs", whole(self.handoffs, "handoffs"))
        put(self, "members", whole(self.members, "members", least=1))
        put(self, "tasks", whole(self.tasks, "tasks", least=1))
        put(self, "requests", whole(self.requests, "requests"))

    def __and__(self, other: "Bounds") -> "Bounds":
        if other is TOP or other is self:
            return self
        if self is TOP:
            return other
        return _exact(
            agents=allow.both(self.agents, other.agents),
            tools=allow.both(self.tools, other.tools),
            sees=scope.both(self.sees, other.sees),
            writes=scope.both(self.writes, other.writes),
            depth=_least(self.depth, other.depth),
            deadline=_least(self.deadline, other.deadline),
            credits=_least(self.credits, other.credits),
            tokens=_least(self.tokens, other.tokens),
            handoffs=_least(self.handoffs, other.handoffs),
            members=_least(self.members, other.members),
            tasks=_least(self.tasks, other.tasks),
            requests=self.requests if other.requests is None else _least(self.requests, other.requests),
        )

    def __le__(self, other: "Bounds") -> bool:
        """Whether everything that these bounds admit is admitted by `other`."""
        return (
            allow.within(self.agents, other.agents)
            and allow.within(self.tools, other.tools)
            and scope.within(self.sees, other.sees)
            and scope.within(self.writes, other.writes)
            and all(_under(getattr(self, name), getattr(other, name)) for name in _FIGURES)
        )

    def until(self, deadline: int) -> "Bounds":
        """Return the same bounds with this deadline, in microseconds since 1970, or with the earlier one that they have
        already."""
        if self.deadline is not None and self.deadline <= deadline:
            return self
        return _exact(
            self.agents,
            self.tools,
            self.sees,
            self.writes,
            self.depth,
            deadline,
            self.credits,
            self.tokens,
            self.handoffs,
            self.members,
            self.tasks,
            self.requests,
        )

    def at_most(self, credits: int) -> "Bounds":
        """Return the same bounds with at most this much money, in millionths of a US dollar."""
        figures = {name: getattr(self, name) for name in _FIGURES}
        figures["credits"] = _least(self.credits, credits)
        return _exact(self.agents, self.tools, self.sees, self.writes, **figures)

    def later(self, by: int) -> "Bounds":
        """Return the same bounds with the deadline, if there is one, moved by this many microseconds."""
        if self.deadline is None:
            return self
        deadline = min(self.deadline + by, LATEST)
        figures = (getattr(self, name) for name in _FIGURES if name not in ("depth", "deadline"))
        return _exact(self.agents, self.tools, self.sees, self.writes, self.depth, deadline, *figures)

    def on_board(self, session: str) -> "Bounds":
        """Return the same bounds, with BOARD replaced by the board of this session."""
        sees, writes = scope.on_board(self.sees, session), scope.on_board(self.writes, session)
        if sees is self.sees and writes is self.writes:
            return self
        figures = (getattr(self, name) for name in _FIGURES)
        return _exact(self.agents, self.tools, sees, writes, *figures)

    @property
    def data(self) -> dict[str, Json]:
        """The bounds as JSON; unbounded fields are left out. Cached, because most children have exactly the bounds of
        their parent."""
        data = self._data
        if data is None:
            data = _data(self)
            object.__setattr__(self, "_data", data)
        if _LISTS.isdisjoint(data):
            return data.copy()  # figures only: nothing in it can be changed in place
        return {key: [*value] if isinstance(value, list) else value for key, value in data.items()}


def ceiling(bounds: Bounds) -> Bounds:
    """Return the owner's bounds. If they have no depth or no number of tasks, add the default (3 deep, 1,000 tasks)."""
    depth = DEFAULT_DEPTH if bounds.depth is None else bounds.depth
    tasks = DEFAULT_TASKS if bounds.tasks is None else bounds.tasks
    return bounds & Bounds(depth=depth, tasks=tasks)


def restored(data: dict[str, Json]) -> Bounds:
    """Return the bounds that `data` wrote."""
    return _exact(
        agents=names_restored(data.get("agents", "*")),
        tools=names_restored(data.get("tools", "*")),
        sees=scope.restored(cast("list[str]", data.get("sees", ["*"]))),
        writes=scope.restored(cast("list[str]", data.get("writes", ["*"]))),
        **{name: cast("int", data[name]) for name in _FIGURES if name in data},
    )


def _exact(
    agents: Names = ANY,
    tools: Names = ANY,
    sees: Sees = ANY,
    writes: Sees = ANY,
    depth: int | None = None,
    deadline: int | None = None,
    credits: int | None = None,
    tokens: int | None = None,
    handoffs: int | None = None,
    members: int | None = None,
    tasks: int | None = None,
    requests: int | None = None,
) -> Bounds:
    """Return bounds made from parts that are already normalized. It skips the checks, because it is on the hot path."""
    made = object.__new__(Bounds)
    put = object.__setattr__
    put(made, "agents", agents)
    put(made, "tools", tools)
    put(made, "sees", sees)
    put(made, "writes", writes)
    put(made, "depth", depth)
    put(made, "deadline", deadline)
    put(made, "credits", credits)
    put(made, "tokens", tokens)
    put(made, "handoffs", handoffs)
    put(made, "members", members)
    put(made, "tasks", tasks)
    put(made, "requests", requests)
    put(made, "_data", None)
    return made


def _data(bounds: Bounds) -> dict[str, Json]:
    data: dict[str, Json] = {}
    if bounds.agents is not ANY:
        data["agents"] = names_data(bounds.agents)
    if bounds.tools is not ANY:
        data["tools"] = names_data(bounds.tools)
    if bounds.sees is not ANY:
        data["sees"] = list(scope.scope_texts(bounds.sees))
    if bounds.writes is not ANY:
        data["writes"] = list(scope.scope_texts(bounds.writes))
    for name in _FIGURES:
        value: int | None = getattr(bounds, name)
        if value is not None:
            data[name] = value
    return data


def _least(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _under(a: int | None, b: int | None) -> bool:
    return b is None or (a is not None and a <= b)


TOP = Bounds()


Classify: TypeAlias = Callable[[str], str | Awaitable[str]]

TIERS: Final[dict[str, Bounds]] = {
    "simple": Bounds(handoffs=0, tokens=10_000, members=1),
    "medium": Bounds(handoffs=2, tokens=25_000, members=3),
    "complex": Bounds(handoffs=5, tokens=150_000, members=5),
}

_WORD: Final = pattern(r"\w+")
_ITEM: Final = pattern(r"(?:[-*\u2022]|\d{1,3}[.)])\s")
_LETTERS: Final = 6  # rough length of a word, for scripts without spaces
_LENGTHS: Final = (30, 100, 300)  # numbers of words that give a point each
_MOST: Final = 3  # most points for steps, and for large words, so that neither decides alone
_COMPLEX: Final = 3  # points of a complex task
_STEPS: Final = frozenset(("also", "afterwards", "and", "finally", "next", "plus", "then"))
_LARGE_WORK: Final = """
all analyse analyze application architecture audit benchmark build campaign compare comprehensive coordinate design
develop entire evaluate every evaluation framework implement implementation integrate integration investigate
investigation launch migrate migration multiple optimise optimize overhaul plan platform project prototype redesign
refactor research rewrite roadmap several strategy system team thorough thoroughly whole
"""
_LARGE: Final = frozenset(_LARGE_WORK.split())


def tier(name: object) -> Bounds:
    """Return the bounds of a tier. Raise `BadInput` for an unknown name."""
    bounds = TIERS.get(name) if isinstance(name, str) else None
    if bounds is None:
        raise BadInput(f"there is no tier {shown(name)}; the tiers are {', '.join(TIERS)}{meant(name, TIERS)}")
    return bounds


def tier_by_rules(task: str) -> str:
    """Return the tier of a task by its words: "simple", "medium" or "complex".

    A task gets points for its length, for each further step that it names (list items, "and", "then"), and for each
    word of large work ("design", "migrate", "several"). With no point it is simple, with three or more complex. The
    words are English; in other languages only length and lists count.
    """
    words = _WORD.findall(task.casefold())
    size = max(len(words), len(task) // _LETTERS)
    items = sum(_ITEM.match(line.lstrip()) is not None for line in task.splitlines())
    steps = len(_STEPS.intersection(words)) + max(items - 1, 0)
    points = sum(size > length for length in _LENGTHS)
    points += min(steps, _MOST) + min(len(_LARGE.intersection(words)), _MOST)
    return "simple" if points == 0 else "medium" if points < _COMPLEX else "complex"

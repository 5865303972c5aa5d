"""Bounds: the ceiling on what may happen at and below a remit. A meet-semilattice: `a & b` admits what both admit."""

from dataclasses import dataclass, fields

from remit.core import allow, scope
from remit.core.allow import ANY, Names
from remit.core.credits import credits
from remit.core.scope import Sees
from remit.core.times import moment
from remit.core.toolgroups import tools

DEFAULT_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """Each field left out bounds nothing; each one given can only ever be narrowed further down.

    `agents` who may take part, `tools` what may be used, `sees` which stored context may be read or written,
    `depth` how many hops, `deadline` until when, `credits` and `tokens` how much may be spent.
    """

    agents: Names = ANY
    tools: Names = ANY
    sees: Sees = ANY
    depth: int | None = None
    deadline: int | None = None
    credits: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        # People write lists, group names, "$0.50" and datetimes; inside there is one form of each.
        put = object.__setattr__
        put(self, "agents", allow.agents(self.agents))
        put(self, "tools", tools(self.tools))
        put(self, "sees", scope.scopes(self.sees))
        put(self, "depth", allow.whole(self.depth, "depth"))
        put(self, "deadline", None if self.deadline is None else moment(self.deadline, "deadline"))
        put(self, "credits", credits(self.credits))
        put(self, "tokens", allow.whole(self.tokens, "tokens"))

    def __and__(self, other: "Bounds") -> "Bounds":
        if other == TOP:
            return self
        return _exact(
            agents=allow.both(self.agents, other.agents),
            tools=allow.both(self.tools, other.tools),
            sees=scope.both(self.sees, other.sees),
            depth=_least(self.depth, other.depth),
            deadline=_least(self.deadline, other.deadline),
            credits=_least(self.credits, other.credits),
            tokens=_least(self.tokens, other.tokens),
        )

    def __le__(self, other: "Bounds") -> bool:
        """Whether these bounds admit nothing that the other ones do not."""
        return (
            allow.within(self.agents, other.agents)
            and allow.within(self.tools, other.tools)
            and scope.within(self.sees, other.sees)
            and all(
                _under(getattr(self, name), getattr(other, name))
                for name in ("depth", "deadline", "credits", "tokens")
            )
        )

    def until(self, deadline: int) -> "Bounds":
        """The same, but no later than that."""
        earliest = _least(self.deadline, deadline)
        if earliest == self.deadline:
            return self
        return _exact(
            agents=self.agents,
            tools=self.tools,
            sees=self.sees,
            depth=self.depth,
            deadline=earliest,
            credits=self.credits,
            tokens=self.tokens,
        )

    def on_board(self, session: str) -> "Bounds":
        """The same, with BOARD meaning that session's board."""
        sees = scope.on_board(self.sees, session)
        return self if sees is self.sees else _exact(**{**_parts(self), "sees": sees})


def _parts(bounds: Bounds) -> dict[str, object]:
    return {field.name: getattr(bounds, field.name) for field in fields(bounds)}


def _exact(**parts: object) -> Bounds:
    """Bounds from parts that are already in their inside form: no second reading on the hot path."""
    made = object.__new__(Bounds)
    put = object.__setattr__
    for name, value in parts.items():
        put(made, name, value)
    return made


def _least(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _under(a: int | None, b: int | None) -> bool:
    return b is None or (a is not None and a <= b)


TOP = Bounds()

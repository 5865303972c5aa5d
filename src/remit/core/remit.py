"""The remit: the assignment that travels, who asked whom so far, and the bounds it stays within."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

from remit.core import allow, scope
from remit.core import bounds as bounds_
from remit.core.allow import ANY, NONE, Names, NamesGiven
from remit.core.bounds import TOP, Bounds
from remit.core.card import Card
from remit.core.chain import STAND_IN, Chain, Hop
from remit.core.events import Event
from remit.core.scope import NOTHING, Sees, SeesGiven, memory_of
from remit.core.text import TASK_LIMIT, canonical, plain
from remit.core.times import SECOND, SpanGiven, span
from remit.core.toolgroups import tools
from remit.core.values import Json
from remit.errors import BadInput

DEFAULT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Pass:
    """What an asker wants to pass on: to whom, which task, and what goes along with it.

    `sees` and `tools` are passed beyond what the holder's card has; `within` narrows the bounds further;
    `seconds` is how long it may take.
    """

    to: str
    task: str
    sees: Sees = NOTHING
    tools: Names = NONE
    within: Bounds = TOP
    seconds: float = DEFAULT_SECONDS
    microseconds: int = field(init=False, repr=False, default=DEFAULT_SECONDS * SECOND)

    if TYPE_CHECKING:  # what people may write; inside there is one form of each

        def __init__(
            self,
            to: str,
            task: str,
            *,
            sees: SeesGiven = NOTHING,
            tools: NamesGiven = NONE,
            within: Bounds = TOP,
            seconds: SpanGiven = DEFAULT_SECONDS,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "to", canonical(self.to))
        plain(self.task, "a task", TASK_LIMIT)
        if self.sees is not NOTHING and self.sees is not ANY:
            put(self, "sees", scope.scopes(self.sees))
        if self.tools is not NONE and self.tools is not ANY:
            put(self, "tools", tools(self.tools))
        _ceiling(self.within)
        if self.seconds != DEFAULT_SECONDS:
            put(self, "microseconds", span(self.seconds, "seconds"))


def _ceiling(within: object) -> None:
    if not isinstance(within, Bounds):
        raise BadInput(f"within takes Bounds(...), not {type(within).__name__}; a remit is derived, never given")


def known_pass(to: str, task: str) -> Pass:
    """Make the pass of a task whose holder and text were checked when it was asked for."""
    made = object.__new__(Pass)
    put = object.__setattr__
    put(made, "to", to)
    put(made, "task", task)
    put(made, "sees", NOTHING)
    put(made, "tools", NONE)
    put(made, "within", TOP)
    put(made, "seconds", DEFAULT_SECONDS)
    put(made, "microseconds", DEFAULT_SECONDS * SECOND)
    return made


class Remit(NamedTuple):
    """The assignment that travels. Nobody hands one to the engine, which derives each from its record of the parent."""

    id: str
    workspace: str
    session: str
    holder: str
    task: str
    bounds: Bounds
    chain: Chain
    parent: str
    root: str
    sees: Sees
    tools: Names

    @property
    def asker(self) -> str:
        return self.chain.hops[-1].asker if self.chain.hops else ""

    @property
    def names(self) -> tuple[str, ...]:
        return self.chain.names(self.holder)

    @property
    def led(self) -> bool:
        """Whether it belongs to a plan that is led in a person's place."""
        return self.names[0] == STAND_IN


class Origin(NamedTuple):
    """Where a run begins: ids, workspace and session that the engine made or checked."""

    id: str
    workspace: str
    session: str


def begin(origin: Origin, wish: Pass, ceiling: Bounds, until: int) -> Remit:
    """Make the first remit of a run. The person who starts it passes on what `wish` says, within the ceiling."""
    bounds = (ceiling & wish.within).on_board(origin.session).until(until)
    return Remit(
        id=origin.id,
        workspace=origin.workspace,
        session=origin.session,
        holder=wish.to,
        task=wish.task,
        bounds=bounds,
        chain=Chain(),
        parent="",
        root=origin.id,
        sees=scope.both(bounds.sees, scope.on_board(wish.sees, origin.session)),
        tools=allow.both(bounds.tools, wish.tools),
    )


def derive(parent: Remit, wish: Pass, child: str, sight: Sees, kit: Names, until: int) -> Remit:
    """Derive a child's remit: never wider than the parent's, and only what the asker itself sees and may use."""
    bounds = parent.bounds
    if wish.within is not TOP:
        bounds &= wish.within.on_board(parent.session)
    bounds = bounds.until(until)
    passed = scope.both(sight, scope.on_board(wish.sees, parent.session)) if wish.sees else NOTHING
    return Remit(
        child,
        parent.workspace,
        parent.session,
        wish.to,
        wish.task,
        bounds,
        parent.chain.add(Hop(parent.holder, wish.to, wish.task)),
        parent.id,
        parent.root,
        scope.both(bounds.sees, passed),
        allow.both(bounds.tools, allow.both(kit, wish.tools)),
    )


class RemitData(TypedDict):
    """What the first event of a task says of its remit, as JSON."""

    asker: str
    bounds: dict[str, Json]
    chain: list[str]
    parent: str
    sees: list[str]
    task: str
    tools: str | list[str]


def restored(event: Event) -> Remit:
    """Read a task's remit from the event that began it. Of the hops before the last, the journal has the tasks."""
    data = cast("RemitData", event.data)
    names = data["chain"]
    hops = [Hop(asker, holder, "") for asker, holder in pairwise(names)]
    if hops:
        hops[-1] = hops[-1]._replace(task=data["task"])
    return Remit(
        id=event.task,
        workspace=event.workspace,
        session=event.session,
        holder=event.agent,
        task=data["task"],
        bounds=bounds_.restored(data["bounds"]),
        chain=Chain(tuple(hops)),
        parent=data["parent"],
        root=event.run,
        sees=scope.restored(data["sees"]),
        tools=allow.names_restored(cast("Json", data["tools"])),
    )


def handed_to(remit: Remit, to: str) -> Remit:
    """Put the same assignment in other hands: the new holder stands in the chain where the old one stood."""
    return remit._replace(holder=to, chain=remit.chain.replace_holder(to))


def sight(remit: Remit, card: Card) -> Sees:
    """Tell what the holder sees before it writes anything itself: bounds & (card | passed | its own memory)."""
    own = scope.either(scope.on_board(card.reads, remit.session), frozenset((memory_of(card.name),)))
    return scope.both(remit.bounds.sees, scope.either(own, remit.sees))


def reach(remit: Remit, card: Card) -> Sees:
    """Tell where the holder may write: where the ceiling admits it, narrowed by the card."""
    return scope.both(remit.bounds.sees, scope.on_board(card.writes, remit.session))


def kit(remit: Remit, card: Card) -> Names:
    """Tell which tools the holder may use: bounds & (card | passed)."""
    return allow.both(remit.bounds.tools, allow.either(card.tools, remit.tools))

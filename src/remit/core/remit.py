"""The remit: the assignment that travels, who asked whom so far, and the bounds it stays within."""

from copy import copy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, NotRequired, Protocol, TypedDict, cast

from remit.core import allow, scope
from remit.core import bounds as bounds_
from remit.core.allow import ANY, NONE, Names, NamesGiven, names_data
from remit.core.bounds import TOP, Bounds
from remit.core.card import Card
from remit.core.chain import STAND_IN, Chain, Hop
from remit.core.credits import CreditsGiven, credits, dollars  # noqa: A004 - the word of the domain
from remit.core.events import Event
from remit.core.scope import NOTHING, Sees, SeesGiven, memory_of
from remit.core.session import Remembers, RemembersGiven, remembers
from remit.core.text import TASK_LIMIT, canonical, plain
from remit.core.times import DAY, SECOND, SpanGiven, patience, span
from remit.core.toolgroups import tools
from remit.core.trust import INSIDE, Trust, known_trust
from remit.core.values import Json
from remit.errors import BadInput

DELEGATION_TIME = 300 * SECOND  # of one attempt, when nobody says anything
ATTEMPT_TIME = 260 * SECOND  # the same from the queue
LASTS = 30 * DAY  # how long a task stays in the queue when nobody sets a deadline, also while nobody is there


@dataclass(frozen=True, slots=True)
class Pass:
    """What an asker wants to pass on: to whom, which task, and what goes along with it.

    `sees`, `writes` and `tools` are passed beyond what the holder's card has; `within` narrows the bounds further;
    `seconds` is how long it may take, and nothing below it longer; left out, each attempt has its usual time. `wait` is
    how long the holder is waited for if it is busy, 0 for not at all. `trust="outside"` says that the text comes from
    strangers. `credits` is set aside for it, out of what the asker has; left out, it shares that. `remembers` says
    whether a run is told what was said before in its session; a task that an agent passes on never is.
    """

    to: str
    task: str
    sees: Sees = NOTHING
    writes: Sees = NOTHING
    tools: Names = NONE
    within: Bounds = TOP
    seconds: float | None = None
    wait: float | None = None
    trust: Trust = INSIDE
    credits: int | None = None
    remembers: Remembers = ""
    microseconds: int | None = field(init=False, repr=False, default=None)
    patience: int | None = field(init=False, repr=False, default=None)  # in microseconds; None: as the runtime is set

    if TYPE_CHECKING:  # what people may write; inside there is one form of each

        def __init__(
            self,
            to: str,
            task: str,
            *,
            sees: SeesGiven = NOTHING,
            writes: SeesGiven = NOTHING,
            tools: NamesGiven = NONE,
            within: Bounds = TOP,
            seconds: SpanGiven | None = None,
            wait: SpanGiven | None = None,
            trust: Trust = INSIDE,
            credits: CreditsGiven = None,
            remembers: RemembersGiven = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "to", canonical(self.to))
        plain(self.task, "a task", TASK_LIMIT)
        if self.sees is not NOTHING and self.sees is not ANY:
            put(self, "sees", scope.passed(self.sees))
        if self.writes is not NOTHING and self.writes is not ANY:
            put(self, "writes", scope.passed(self.writes, "writes"))
        if self.tools is not NONE and self.tools is not ANY:
            put(self, "tools", tools(self.tools))
        _ceiling(self.within)
        if self.seconds is not None:
            put(self, "microseconds", span(self.seconds, "seconds"))
        if self.wait is not None:
            put(self, "patience", patience(self.wait))
        if self.trust is not INSIDE:
            known_trust(self.trust)
        if self.credits is not None:
            put(self, "credits", credits(self.credits))
            _aside_fits(self.credits, self.within.credits)
        if self.remembers != "":
            put(self, "remembers", remembers(self.remembers))

    def asking_for(self, task: str) -> "Pass":
        """Give the same with another text: the one that a person approved."""
        made = copy(self)
        object.__setattr__(made, "task", plain(task, "a task", TASK_LIMIT))
        return made

    @property
    def passes(self) -> bool:
        """Whether anything goes along that only whoever has it can pass on."""
        return bool(self.sees or self.writes or self.tools)


def _ceiling(within: object) -> None:
    if not isinstance(within, Bounds):
        raise BadInput(f"within takes Bounds(...), not {type(within).__name__}; a remit is derived, never given")


def _aside_fits(aside: int, within: int | None) -> None:
    if within is not None and aside > within:
        raise BadInput(
            f"credits={dollars(aside)} is to be set aside, and within allows {dollars(within)}; say one of the two: "
            "credits= sets an amount aside, within=Bounds(credits=) only limits what is shared"
        )


class Kit(NamedTuple):
    """Tools: the names that are allowed, without those that are denied."""

    names: Names = NONE
    denied: Names = NONE

    def has(self, tool: str) -> bool:
        return allow.has(self.names, tool) and not allow.has(self.denied, tool)


class Rights(NamedTuple):
    """What a holder has and may pass on, or what was passed to it: which context to see and to write, which tools."""

    sees: Sees = NOTHING
    writes: Sees = NOTHING
    kit: Kit = Kit()

    def given(self, wish: "Gives", session: str) -> "Rights":
        """Give the part of them that is passed on: nobody passes on what it does not have itself."""
        if wish.tools is ANY and self.kit.names is ANY and self.kit.denied:
            raise BadInput("tools='*' cannot be passed on by an agent whose card denies some; name the tools")
        tools = allow.both(self.kit.names, wish.tools)
        return Rights(
            scope.both(self.sees, scope.on_board(wish.sees, session)),
            scope.both(self.writes, scope.on_board(wish.writes, session)),
            Kit(allow.without(tools, self.kit.denied)),
        )


class Gives(Protocol):
    """What says which rights go along: a pass, or a command."""

    @property
    def sees(self) -> Sees: ...
    @property
    def writes(self) -> Sees: ...
    @property
    def tools(self) -> Names: ...


NO_RIGHTS: Final = Rights()


class Passing(NamedTuple):
    """What goes along with a handoff: rights, as far as its sender has them, and narrower bounds."""

    rights: Rights = NO_RIGHTS
    within: Bounds = TOP

    @property
    def data(self) -> dict[str, Json]:
        rights = self.rights
        return {
            "sees": [*scope.spelled(rights.sees)],
            "writes": [*scope.spelled(rights.writes)],
            "tools": names_data(rights.kit.names),
            "within": {**self.within.data},
        }


class PassingData(TypedDict):
    """The same as JSON."""

    sees: list[str]
    writes: list[str]
    tools: str | list[str]
    within: dict[str, Json]


NOTHING_ALONG: Final = Passing()


def passing_restored(data: PassingData) -> Passing:
    """Read what goes along with a handoff as `Passing.data` wrote it."""
    kit = Kit(allow.names_restored(cast("Json", data["tools"])))
    rights = Rights(scope.restored(data["sees"]), scope.restored(data["writes"]), kit)
    return Passing(rights, bounds_.restored(data["within"]))


def known_pass(to: str, task: str, along: Passing = NOTHING_ALONG) -> Pass:
    """Make the pass of what was checked when it was asked for: its holder, its text and what goes along."""
    made = object.__new__(Pass)
    put = object.__setattr__
    rights = along.rights
    put(made, "to", to)
    put(made, "task", task)
    put(made, "sees", rights.sees)
    put(made, "writes", rights.writes)
    put(made, "tools", rights.kit.names)
    put(made, "within", along.within)
    put(made, "seconds", None)
    put(made, "wait", None)
    put(made, "patience", None)
    put(made, "microseconds", None)
    put(made, "trust", INSIDE)
    put(made, "credits", None)
    put(made, "remembers", "")
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
    writes: Sees = NOTHING
    trust: Trust = INSIDE
    remembers: Remembers = ""

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


def begin(origin: Origin, wish: Pass, ceiling: Bounds, until: int | None = None) -> Remit:
    """Make the first remit of a run. The person who starts it passes on what `wish` says, within the ceiling; `until`
    is the deadline, if one was said."""
    bounds = (ceiling & wish.within).on_board(origin.session)
    if wish.credits is not None:
        bounds = bounds.at_most(wish.credits)
    if until is not None:
        bounds = bounds.until(until)
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
        sees=scope.on_board(wish.sees, origin.session),
        tools=wish.tools,
        writes=scope.on_board(wish.writes, origin.session),
        trust=wish.trust,
        remembers=wish.remembers,
    )


def derive(
    parent: Remit, wish: Pass, child: str, own: Rights, until: int | None = None, trust: Trust = INSIDE
) -> Remit:
    """Derive a child's remit: never wider than the parent's, and only what the asker has itself (`own`). `trust` is
    the label of what the asker says."""
    if wish.remembers and parent.id:
        raise BadInput("remembers= is for a run that begins; a task that an agent passes on is told its text alone")
    bounds = parent.bounds
    if wish.within is not TOP:
        bounds &= wish.within.on_board(parent.session)
    if wish.credits is not None:
        bounds = bounds.at_most(wish.credits)
    if until is not None:
        bounds = bounds.until(until)
    passed = own.given(wish, parent.session) if wish.passes else NO_RIGHTS
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
        passed.sees,
        passed.kit.names,
        passed.writes,
        wish.trust if trust is INSIDE else trust,
        wish.remembers,
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
    writes: NotRequired[list[str]]
    trust: NotRequired[Trust]
    remembers: NotRequired[Remembers]


def restored(event: Event) -> Remit:
    """Read a task's remit from the event that began it. Like the remit itself, the event has the names of its chain but
    only the text of the last hop."""
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
        writes=scope.restored(data.get("writes", [])),
        trust=data.get("trust", INSIDE),
        remembers=data.get("remembers", ""),
    )


def handed_to(remit: Remit, to: str, along: Passing = NOTHING_ALONG) -> Remit:
    """Put the same assignment in other hands: the new holder stands in the chain where the old one stood.

    It has what the task was passed by name and what the old holder passes on. The blanket rights of whoever a person
    asked first stay with that holder.
    """
    passed = along.rights
    return remit._replace(
        holder=to,
        chain=remit.chain.replace_holder(to),
        bounds=remit.bounds & along.within,
        sees=scope.either(NOTHING if remit.sees is ANY else remit.sees, passed.sees),
        writes=scope.either(NOTHING if remit.writes is ANY else remit.writes, passed.writes),
        tools=allow.either(NONE if remit.tools is ANY else remit.tools, passed.kit.names),
    )


def sight(remit: Remit, card: Card) -> Sees:
    """Tell what the holder sees before it writes anything itself: bounds & (card | passed | its own memory)."""
    own = scope.either(scope.on_board(card.reads, remit.session), frozenset((memory_of(card.name),)))
    return scope.both(remit.bounds.sees, scope.either(own, remit.sees))


def reach(remit: Remit, card: Card) -> Sees:
    """Tell where the holder may write: bounds & (card | passed | its own memory)."""
    own = scope.either(scope.on_board(card.writes, remit.session), frozenset((memory_of(card.name),)))
    return scope.both(remit.bounds.writes, scope.either(own, remit.writes))


def rights(remit: Remit, card: Card) -> Rights:
    """Tell what the holder has before it writes anything itself."""
    return Rights(sight(remit, card), reach(remit, card), kit(remit, card))


def kit(remit: Remit, card: Card, *, inner: bool = False) -> Kit:
    """Tell which tools the holder may use: bounds & (card | passed), without what its card denies. A card does not list
    the `inner` tools, those of other agents that run inside its turn: the bounds and what it denies hold for them."""
    listed = ANY if inner else allow.either(card.tools, remit.tools)
    names = allow.without(allow.both(remit.bounds.tools, listed), card.denies)
    return Kit(names, card.denies if names is ANY else NONE)


def expires(bounds: Bounds, now: int, lasts: int = DELEGATION_TIME) -> int:
    """Give when a task expires on record that has so much time: nothing is under way for ever."""
    until = now + lasts
    return until if bounds.deadline is None else min(until, bounds.deadline)

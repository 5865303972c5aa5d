"""The remit: a task, the chain of agents that delegated it, and its bounds."""

from collections import deque
from copy import copy
from dataclasses import field
from itertools import pairwise, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NotRequired, Protocol, cast

from remit.core import allow, scope
from remit.core import bounds as bounds_
from remit.core.allow import ANY, NONE, Names, NamesGiven, names_data
from remit.core.bounds import TOP, Bounds
from remit.core.card import Card
from remit.core.events import NO_LABELS, Event, Labels, MetaValue, Place, labels_restored
from remit.core.prices import CreditsGiven, credits, dollars  # noqa: A004 - the word of the domain
from remit.core.records import NamedTuple, TypedDict, dataclass
from remit.core.scope import NOTHING, Sees, SeesGiven, memory_of
from remit.core.session import Remembers, RemembersGiven, remembers
from remit.core.times import DAY, SECOND, SpanGiven, patience, span
from remit.core.toolgroups import tools
from remit.core.trust import TRUSTED, Trust, known_trust
from remit.core.values import TASK_LIMIT, Json, canonical, decode, plain, with_data
from remit.errors import BadInput

# The asker of a plan's steps if the engine leads the plan for a person; no agent has this name.
STAND_IN: Final = "plan"


class Hop(NamedTuple):
    """One delegation: `asker` asked `holder` to do `task`."""

    asker: str
    holder: str
    task: str


class Chain(NamedTuple):
    """The askers of a task. Immutable: `add` returns a new chain."""

    hops: tuple[Hop, ...] = ()

    def add(self, hop: Hop) -> "Chain":
        """Return a new chain with one more hop. Drop the task text of the previous hop: an agent sees the names of the
        agents above it, not their tasks."""
        if not self.hops:
            return Chain((hop,))
        last = self.hops[-1]
        return Chain((*self.hops[:-1], Hop(last.asker, last.holder, ""), hop))

    @property
    def depth(self) -> int:
        """The number of hops. The engine that leads a plan for a person does not count as one."""
        hops = self.hops
        return len(hops) - 1 if hops and hops[0].asker == STAND_IN else len(hops)

    def involves(self, name: str) -> bool:
        """Whether this agent is the asker or the holder of any hop."""
        for hop in self.hops:  # noqa: SIM110 - runs at every hop, and a generator costs more than the check
            if name in (hop.asker, hop.holder):
                return True
        return False

    def replace_holder(self, name: str) -> "Chain":
        """Return the chain after a handoff: the new holder takes the place of the old one."""
        if not self.hops:
            return self
        last = self.hops[-1]
        return Chain((*self.hops[:-1], Hop(last.asker, name, last.task)))

    def names(self, holder: str) -> tuple[str, ...]:
        """Return the path of agents, from the first asker to `holder`."""
        return (*[hop.asker for hop in self.hops], holder)


def path(names: tuple[str, ...]) -> str:
    """Return the path as text: lead > coder > reviewer."""
    return " > ".join(names)


DELEGATION_TIME = 300 * SECOND  # default time of one attempt
ATTEMPT_TIME = 260 * SECOND  # the same for a queued task
LASTS = 30 * DAY  # how long a task without a deadline stays in the queue


@dataclass(frozen=True, slots=True)
class Pass:
    """One delegation: the agent, the task, and the rights that go with it.

    `sees`, `writes` and `tools` are passed in addition to those of the agent's card. `within` narrows the bounds.
    `timeout` limits the time of the task and its subtasks; without it, each attempt has its default time.
    `busy_timeout` is how long to wait for a busy agent; 0 means no wait. `trust` marks the text as untrusted. `credits`
    is reserved for the task out of the asker's money; without it, the task shares that money. `remembers` says whether
    a run starts with the earlier conversation of its session; a task that an agent delegates never does. `data` is a
    JSON value for the agent; then `task` ends with it, and may be left empty.
    """

    to: str
    task: str = ""
    sees: Sees = NOTHING
    writes: Sees = NOTHING
    tools: Names = NONE
    within: Bounds = TOP
    timeout: float | None = None
    busy_timeout: float | None = None
    trust: Trust = TRUSTED
    credits: int | None = None
    remembers: Remembers = ""
    data: str | None = None  # as JSON text; None if there is none
    microseconds: int | None = field(init=False, repr=False, default=None)
    patience: int | None = field(init=False, repr=False, default=None)  # in microseconds; None: the runtime's default
    # Whether the pass has more than an agent and a text. A field, because each delegation reads it three times.
    further: bool = field(init=False, repr=False, compare=False, default=False)

    if TYPE_CHECKING:  # what callers may pass; stored in one normal form

        def __init__(
            self,
            to: str,
            task: str = "",
            *,
            sees: SeesGiven = NOTHING,
            writes: SeesGiven = NOTHING,
            tools: NamesGiven = NONE,
            within: Bounds = TOP,
            timeout: SpanGiven | None = None,
            busy_timeout: SpanGiven | None = None,
            trust: Trust = TRUSTED,
            credits: CreditsGiven = None,
            remembers: RemembersGiven = None,
            data: object = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", canonical(self.to))
        if self.data is not None:
            _put_task(self, self.task, self.data)
        plain(self.task, "a task", TASK_LIMIT)
        if _FURTHER(self) != _NOTHING_FURTHER:
            object.__setattr__(self, "further", True)
            self._read_further()

    def _read_further(self) -> None:
        put = object.__setattr__
        if self.sees is not NOTHING or self.writes is not NOTHING or self.tools is not NONE:
            self._read_rights()
        if self.within is not TOP:
            _ceiling(self.within)
        if self.timeout is not None:
            put(self, "microseconds", span(self.timeout, "timeout"))
        if self.busy_timeout is not None:
            put(self, "patience", patience(self.busy_timeout))
        if self.trust is not TRUSTED:
            known_trust(self.trust)
        if self.credits is not None:
            put(self, "credits", credits(self.credits))
            _aside_fits(self.credits, self.within.credits)
        if self.remembers != "":
            put(self, "remembers", remembers(self.remembers))

    def _read_rights(self) -> None:
        put = object.__setattr__
        if self.sees is not ANY and self.sees is not NOTHING:
            put(self, "sees", scope.passed(self.sees))
        if self.writes is not ANY and self.writes is not NOTHING:
            put(self, "writes", scope.passed(self.writes, "writes"))
        if self.tools is not ANY and self.tools is not NONE:
            put(self, "tools", tools(self.tools))

    @property
    def passes(self) -> bool:
        """Whether it passes on context or tools, which the asker must have itself."""
        return self.further and bool(self.sees or self.writes or self.tools)

    def asking_for(self, task: str) -> "Pass":
        """Return the same pass with another text: the one that a person approved. If the text ends with a line of JSON,
        that is the data from now on; otherwise the data stays."""
        made = copy(self)
        if self.data is None:
            object.__setattr__(made, "task", plain(task, "a task", TASK_LIMIT))
            return made
        text, mark, last = plain(task, "a task", TASK_LIMIT).rstrip().rpartition("\n\n")
        try:
            _put_task(made, text if mark else "", decode(last))
        except (ValueError, RecursionError, BadInput):  # only the text was changed
            _put_task(made, task, decode(self.data))
        return made


# What a pass may have besides agent and text.
_FURTHER: Final = attrgetter(
    *("sees", "writes", "tools", "within", "timeout", "busy_timeout", "trust", "credits", "remembers", "data")
)
_NOTHING_FURTHER: Final = (NOTHING, NOTHING, NONE, TOP, None, None, TRUSTED, None, "", None)


def _put_task(wish: Pass, task: str, data: object) -> None:
    whole, said = with_data(task, data)
    object.__setattr__(wish, "task", whole)
    object.__setattr__(wish, "data", said or None)


def _ceiling(within: object) -> None:
    if not isinstance(within, Bounds):
        raise BadInput(f"within takes Bounds(...), not {type(within).__name__}; a remit is derived, never given")


def _aside_fits(aside: int, within: int | None) -> None:
    if within is not None and aside > within:
        raise BadInput(
            f"credits={dollars(aside)} is to be set aside, and within allows {dollars(within)}; pass one of the two: "
            "credits= sets an amount aside, within=Bounds(credits=) only limits what is shared"
        )


class Kit(NamedTuple):
    """The allowed tools: `names` without `denied`."""

    names: Names = NONE
    denied: Names = NONE

    def has(self, tool: str) -> bool:
        return allow.has(self.names, tool) and not allow.has(self.denied, tool)


class Rights(NamedTuple):
    """The context that a holder may read and write and the tools it may use, and which it may therefore pass on."""

    sees: Sees = NOTHING
    writes: Sees = NOTHING
    kit: Kit = Kit()

    def passed_on(self, wish: "Gives", session: str) -> "Rights":
        """Return the rights that a wish passes on: only those that the holder has itself. Raise `BadInput` for all
        tools if the holder may use all except some."""
        if wish.tools is ANY and self.kit.names is ANY and self.kit.denied:
            raise BadInput("tools='*' cannot be passed on by an agent whose card denies some; name the tools")
        tools = allow.both(self.kit.names, wish.tools)
        return Rights(
            scope.both(self.sees, scope.on_board(wish.sees, session)),
            scope.both(self.writes, scope.on_board(wish.writes, session)),
            Kit(allow.without(tools, self.kit.denied)),
        )


class Gives(Protocol):
    """A request that names rights to pass on: a pass or a command."""

    @property
    def sees(self) -> Sees: ...
    @property
    def writes(self) -> Sees: ...
    @property
    def tools(self) -> Names: ...


NO_RIGHTS: Final = Rights()


class Passing(NamedTuple):
    """The rights that go with a handoff, as far as its sender has them, and the narrower bounds."""

    rights: Rights = NO_RIGHTS
    within: Bounds = TOP

    @property
    def data(self) -> dict[str, Json]:
        rights = self.rights
        return {
            "sees": [*scope.scope_texts(rights.sees)],
            "writes": [*scope.scope_texts(rights.writes)],
            "tools": names_data(rights.kit.names),
            "within": {**self.within.data},
        }


class PassingData(TypedDict):
    """A `Passing` as JSON."""

    sees: list[str]
    writes: list[str]
    tools: str | list[str]
    within: dict[str, Json]


NOTHING_ALONG: Final = Passing()


def passing_restored(data: PassingData) -> Passing:
    """Return the passing that `Passing.data` wrote."""
    kit = Kit(allow.names_restored(cast("Json", data["tools"])))
    rights = Rights(scope.restored(data["sees"]), scope.restored(data["writes"]), kit)
    return Passing(rights, bounds_.restored(data["within"]))


def known_pass(to: str, task: str, along: Passing = NOTHING_ALONG, data: str | None = None) -> Pass:
    """Return a pass from parts that were checked before: the holder, its text and the rights that go along."""
    made = object.__new__(Pass)
    (sees, writes, kit), within = along.rights, along.within
    asks = to, task, sees, writes, kit.names, within, None, None, TRUSTED, None, "", data
    counted = None, None, asks[2:] != _NOTHING_FURTHER  # `microseconds`, `patience` and `further`
    deque(map(object.__setattr__, repeat(made), Pass.__slots__, (*asks, *counted)), maxlen=0)
    return made


class Remit(NamedTuple):
    """A task assignment. The engine derives it from the stored parent; callers cannot supply one. `labels` are those of
    the run. `data` is the value of the task as JSON text, with which `task` ends, or None."""

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
    trust: Trust = TRUSTED
    remembers: Remembers = ""
    labels: Labels = NO_LABELS
    data: str | None = None

    @property
    def by(self) -> str:
        """The person who started the run, or ""."""
        return self.labels.by

    @property
    def asker(self) -> str:
        return self.chain.hops[-1].asker if self.chain.hops else ""

    @property
    def names(self) -> tuple[str, ...]:
        return self.chain.names(self.holder)

    @property
    def led(self) -> bool:
        """Whether it belongs to a plan that the engine leads for a person."""
        return self.names[0] == STAND_IN


def place(remit: Remit) -> Place:
    """Return the run, session and task that the events of a task are recorded under."""
    return Place(remit.root, remit.session, remit.id)


class Origin(NamedTuple):
    """The start of a run: ids, workspace, session and labels, made or checked by the engine."""

    id: str
    workspace: str
    session: str
    labels: Labels = NO_LABELS


def begin(origin: Origin, wish: Pass, ceiling: Bounds, until: int | None = None) -> Remit:
    """Return the first remit of a run. The person who starts it passes on the rights in `wish`, within the ceiling;
    `until` is the deadline, if there is one."""
    bounds = (ceiling & wish.within).on_board(origin.session)
    if wish.credits is not None:
        bounds = bounds.at_most(wish.credits)
    if until is not None:
        bounds = bounds.until(until)
    return Remit(
        origin.id,
        origin.workspace,
        origin.session,
        wish.to,
        wish.task,
        bounds,
        Chain(),
        "",
        origin.id,
        scope.on_board(wish.sees, origin.session),
        wish.tools,
        scope.on_board(wish.writes, origin.session),
        wish.trust,
        wish.remembers,
        origin.labels,
        wish.data,
    )


def derive(
    parent: Remit, wish: Pass, child: str, own: Rights, until: int | None = None, trust: Trust = TRUSTED
) -> Remit:
    """Return a child's remit: never wider than the parent's, and only with rights that the asker has itself (`own`).
    `trust` is the label of the asker's text."""
    if wish.remembers and parent.id:
        raise BadInput("remembers= is for new runs; a task that an agent delegates gets only its text")
    bounds = parent.bounds
    if wish.within is not TOP:
        bounds &= wish.within.on_board(parent.session)
    if wish.credits is not None:
        bounds = bounds.at_most(wish.credits)
    if until is not None:
        bounds = bounds.until(until)
    passed = own.passed_on(wish, parent.session) if wish.further and wish.passes else NO_RIGHTS
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
        # An asker may mark its text as untrusted, but an untrusted asker cannot mark it as trusted.
        wish.trust if trust is TRUSTED else trust,
        wish.remembers,
        parent.labels,
        wish.data,
    )


class RemitData(TypedDict):
    """The remit of a task in its first event, as JSON. `data` is the value of the task; `task` is only its text."""

    asker: str
    bounds: dict[str, Json]
    chain: list[str]
    parent: str
    sees: list[str]
    task: str
    data: NotRequired[Json]
    tools: str | list[str]
    writes: NotRequired[list[str]]
    trust: NotRequired[Trust]
    remembers: NotRequired[Remembers]
    by: NotRequired[str]
    tags: NotRequired[list[str]]
    meta: NotRequired[dict[str, MetaValue]]
    trace: NotRequired[str]


def task_of(data: RemitData) -> str:
    """Return the whole text of a task from its first event: its text, and its value as JSON."""
    return with_data(data["task"], data["data"])[0] if "data" in data else data["task"]


def restored(event: Event) -> Remit:
    """Return a task's remit from its first event. Like the remit itself, the event has the names of the whole chain but
    only the text of the last hop."""
    data = cast("RemitData", event.data)
    names = data["chain"]
    hops = [Hop(asker, holder, "") for asker, holder in pairwise(names)]
    task, value = with_data(data["task"], data["data"]) if "data" in data else (data["task"], None)
    if hops:
        hops[-1] = hops[-1]._replace(task=task)
    return Remit(
        id=event.task,
        workspace=event.workspace,
        session=event.session,
        holder=event.agent,
        task=task,
        bounds=bounds_.restored(data["bounds"]),
        chain=Chain(tuple(hops)),
        parent=data["parent"],
        root=event.run,
        sees=scope.restored(data["sees"]),
        tools=allow.names_restored(cast("Json", data["tools"])),
        writes=scope.restored(data.get("writes", [])),
        trust=data.get("trust", TRUSTED),
        remembers=data.get("remembers", ""),
        labels=labels_restored(data),
        data=value,
    )


def handed_to(remit: Remit, to: str, along: Passing = NOTHING_ALONG) -> Remit:
    """Return the remit after a handoff: the new holder takes the old one's place in the chain.

    The new holder has the rights that were passed to the task by name, and those that the old holder passes on. The
    unlimited rights of the first agent, which a person asked, do not go with a handoff.
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
    """Return the context that the holder may read before it writes any: bounds & (card | passed | its own memory)."""
    own = scope.either(scope.on_board(card.reads, remit.session), frozenset((memory_of(card.name),)))
    return scope.both(remit.bounds.sees, scope.either(own, remit.sees))


def reach(remit: Remit, card: Card) -> Sees:
    """Return the context that the holder may write: bounds & (card | passed | its own memory)."""
    own = scope.either(scope.on_board(card.writes, remit.session), frozenset((memory_of(card.name),)))
    return scope.both(remit.bounds.writes, scope.either(own, remit.writes))


def rights(remit: Remit, card: Card) -> Rights:
    """Return the rights that the holder has before it writes any entry."""
    return Rights(sight(remit, card), reach(remit, card), kit(remit, card))


def kit(remit: Remit, card: Card, *, inner: bool = False) -> Kit:
    """Return the tools that the holder may use: bounds & (card | passed), without those that its card denies. `inner`
    tools are those of other agents that run inside its turn: no card lists them, but bounds and denials apply."""
    listed = ANY if inner else allow.either(card.tools, remit.tools)
    names = allow.without(allow.both(remit.bounds.tools, listed), card.deny)
    return Kit(names, card.deny if names is ANY else NONE)


def expires(bounds: Bounds, now: int, lasts: int = DELEGATION_TIME) -> int:
    """Return when a task expires in the store: `lasts` microseconds after `now`, or at its deadline if that is earlier.
    Every task expires."""
    until = now + lasts
    return until if bounds.deadline is None else min(until, bounds.deadline)

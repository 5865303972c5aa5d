"""Live tasks: the tree of tasks that run in this process, each with its state; and cancellations from other
processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar, cast

from remit.core import remit as remits
from remit.core import scope
from remit.core.allow import ANY
from remit.core.card import Card
from remit.core.command import HandoffState, Move
from remit.core.entry import Entry, Writer
from remit.core.events import Place, read
from remit.core.guards import Refusals
from remit.core.kinds.tasks import Cancelling, Lineage
from remit.core.life import Life
from remit.core.lifecycle import TERMINAL, Outcome, Progress
from remit.core.loops import Echoes, Repeats, Rounds, same
from remit.core.money import Amounts
from remit.core.plan import Lead
from remit.core.receipt import Receipt, Slice, Why, kept_back
from remit.core.records import NamedTuple, cached_property, dataclass
from remit.core.remit import ATTEMPT_TIME, DELEGATION_TIME, Kit, Remit, Rights, expires, place
from remit.core.scope import NOTHING, Sees
from remit.core.trust import TRUSTED, UNTRUSTED, Trust
from remit.core.values import Json, encode
from remit.engine.attempt.calls import Call
from remit.engine.attempt.control import Control, Hands, Line
from remit.engine.attempt.operations import FIRST, Attempt, Operations
from remit.engine.directory import Agent
from remit.engine.timing import While
from remit.errors import Failed, NewerStore, Refused, StoreError
from remit.ports import Clock, Decide, Decision, Span, Store, View, Wants
from remit.ports.models import EarlierRun

if TYPE_CHECKING:
    from remit.core.offers import Offers, Room

T = TypeVar("T")
Written: TypeAlias = dict[tuple[str, str], int]  # the version after a write, by address
NOBODY_WROTE: Final[Mapping[str, Written]] = {}
NOTHING_WRITTEN: Final[Written] = {}  # shared by all tasks without writes; never mutated
Held: TypeAlias = dict[str, tuple[asyncio.Task[object] | None, Amounts]]
NOTHING_HELD: Final[Held] = {}  # the same for holds
NOTHING_DENIED: Final[Mapping[str, int]] = {}
NOWHERE: Final[dict[asyncio.Task[object], int]] = {}  # the same for verbs in other asyncio tasks

_OFTEN: Final = 100
_IN_HAND: Final = frozenset(("running", "waiting", "pending"))  # pending: it waits for a slot to resume
_STOPPED: Final = frozenset(("cancelling", "cancelled"))


class SentBack(NamedTuple):
    """A result that a person sent back to its agent: the result, the reason, the person, and how often the agent's
    results were sent back since it got the task."""

    result: Json
    why: str
    by: str
    times: int


@dataclass(frozen=True, slots=True)
class Handoff:
    """How a task came to its holder: the sender, the data handed over, and the results of parts.

    `sender` is empty if the task was not handed over. If the task stays with its holder because a handoff was refused,
    `refused` is the reason. If the agent that took it over failed and the task came back, `failed` is that error.
    `sent_back` is the result that a person sent back to this agent."""

    sender: str = ""
    state: HandoffState = field(default_factory=HandoffState)
    trail: tuple[Move, ...] = ()
    refused: str = ""
    results: tuple[Outcome, ...] = ()
    failed: str = ""
    sent_back: SentBack | None = None

    def copied(self) -> Handoff:
        """Return a copy that a turn may change; the engine's own value stays unchanged."""
        return replace(self, state=self.state.copied(), results=tuple(outcome.copied() for outcome in self.results))


NOT_HANDED: Final = Handoff()  # shared by all tasks; turns get copies


class Conversation:
    """A turn's conversation with a model: the number of requests and tool calls, how far the context is shortened, and
    the results of its rounds. A rerun builds it again from the same requests."""

    __slots__ = (
        "_wanted",
        "before",
        "calls",
        "ended",
        "handed",
        "inside",
        "lost",
        "passes",
        "pays",
        "requests",
        "rounds",
        "talks",
        "trim",
        "untrusted",
        "used",
        "warning",
        "why_lost",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.trim = 0
        self.calls = 0
        self.rounds = Rounds()
        self.warning = ""  # a warning for the next request
        self.pays = False  # whether money or tokens were held for a request
        self.passes: set[str] = set()  # tools that run an agent, or pass the work on to one
        self.ended: set[str] = set()  # ended tasks whose status it has read
        self.handed: set[str] = set()  # handoffs inside the framework: tool and recipient
        # For tool calls with conversations inside, by place: whether those had a new tool result.
        self.inside: dict[str, bool | None] = {}
        self.talks: dict[str, Any] = {}  # conversations by place
        self.used: set[tuple[str, str]] = set()  # places and ids of the tool calls that this run has reached
        self.untrusted: set[str] = set()  # places of the tool calls with untrusted input
        self.before = ""  # the summary of the earlier conversation for a restarted one
        self.lost: Failed | None = None  # the error, once its record cannot be continued
        self.why_lost = ""
        self._wanted: tuple[str, str] | None = None

    @property
    def round(self) -> int:
        """The number of the current round: the number of model requests so far. Without a model, each tool call is a
        round of its own, numbered -1, -2 and so on."""
        return self.requests or -self.calls

    def must_go_on(self) -> None:
        """Raise the stored error if the conversation is lost: the agent may have caught it before."""
        if self.lost is not None:
            raise self.lost

    def normal_task(self, task: str) -> str:
        """Return the text of its task in the form that equal requests share. Cached."""
        if self._wanted is None or self._wanted[0] != task:
            self._wanted = (task, same(task))
        return self._wanted[1]


class LiveTask:
    """One running task during one turn. The engine reads the task's rights here, not in the turn. An instance holds
    only values that differ from the defaults, because there may be thousands of tasks."""

    wrote = NOTHING_WRITTEN
    past = NOBODY_WROTE
    elsewhere = NOWHERE  # asyncio tasks of the agent in which verbs run
    tokens = 0  # tokens that the agent reported in this turn
    over = False
    returned = False  # whether its agent has returned; code that it left running may do nothing more
    alone: asyncio.Event | None = None  # set when no verb runs in another asyncio task any more
    left = False  # whether its agent was abandoned
    spared = False  # whether a failure does not count for the breaker: it is retried, or not the agent's own
    circled: tuple[str, ...] = ()  # the agents that a stop for lack of progress counts against
    phase = ""  # of a coordinator: planning or combining
    team: frozenset[str] | None = None  # agents it may send messages to, as a member of a team
    lead: Lead | None = None  # the plan or team that the engine leads in its holder's place
    composed = False  # whether remit composed its task: then untrusted parts are quoted already
    steps: list[Json] | None = None  # outcomes of the led plan's steps
    holds = NOTHING_HELD  # holds of its running calls, by asyncio task
    denied = NOTHING_DENIED  # the least amount of each unit for which a person gave no more money in this turn
    spends = False  # whether this turn may have used tokens or money: it asked a model, paid, or is a rerun
    began: int | None = None  # when this turn started, in ticks
    room: Room | None = None  # what its model can do now
    offered: tuple[Room, Offers] | None = None
    artifacts: frozenset[str] = frozenset()  # digests of what its holder saved in this turn
    progress: Progress | None = None  # the latest that its agent reported in this turn
    earlier: tuple[EarlierRun, ...] | None = None  # earlier runs of its session, once they are read

    def __init__(
        self,
        remit: Remit,
        agent: Agent,
        attempt: Attempt = FIRST,
        handoff: Handoff = NOT_HANDED,
        control: Control[LiveTask] | None = None,
    ) -> None:
        self.remit = remit
        self.agent = agent
        self.attempt = attempt
        self.handoff = handoff
        self.control: Control[LiveTask] = control or Control()
        self.life = self.control.life
        self.operations = Operations(remit.id, attempt, 0, remit.holder)
        self.receipt = Receipt()
        self.took: Trust = remit.trust  # the least trusted input so far

    def limit_time(self, clock: Clock, now: int, above: Life | None = None, said: int | None = None) -> Self:
        """Limit the time of this attempt by the timeouts of the agent and the task, by the task's deadline and by its
        asker's time (`above`). If the agent has no timeout, `said`, the timeout that the caller of a delegation
        requested, replaces the default. Return the task itself."""
        control, attempt, deadline = self.control, self.attempt, self.remit.bounds.deadline
        usual = self.agent.rules.timeout
        if usual:
            span = min(attempt.timeout or usual, usual)
        elif attempt.queued:
            usual = ATTEMPT_TIME
            span = attempt.timeout or usual
        else:
            usual = DELEGATION_TIME
            span = said or usual
        control.clock = clock
        self.began = clock.ticks()
        left = None if deadline is None else deadline - now
        control.first_timer = self.life.begin(self.began, span, usual, left, above)
        return self

    def expires(self, now: int) -> int:
        """Return when its first attempt expires in the store, if that starts now."""
        return now + self.life.own - (self.began or 0)

    def tried_again(self, lineage: Lineage) -> None:
        """Continue a retry lineage: look up results under the ids that its earlier tasks used."""
        self.attempt = self.attempt._replace(origin=lineage.origin, failures=lineage.failures)
        self.spends = True
        self.operations = Operations(self.remit.id, self.attempt, 0, self.remit.holder)

    def succeeded_by(self, remit: Remit, agent: Agent, handoff: Handoff) -> LiveTask:
        """Create and return the next turn of the same task, for the same or another agent. End this turn: it may do
        nothing more."""
        heir = LiveTask(remit, agent, self.attempt, handoff, self.control)
        heir.operations = self.operations
        heir.operations.handed_to(remit.holder)
        heir.team, heir.steps, heir.composed = self.team, self.steps, self.composed
        heir.take(self.took if remit.holder == self.remit.holder else self.says)
        heir.recall({**self.past, self.remit.holder: self.wrote} if self.wrote else self.past)
        heir.began = self.began
        for name in ("refusals", "delegated"):  # those that were created
            if name in self.__dict__:
                heir.__dict__[name] = self.__dict__[name]
        self.over = True
        return heir

    def recall(self, past: Mapping[str, Written]) -> None:
        """Restore what the holders of this task wrote in their turns: each still sees its own versions."""
        if past:
            self.past = past
            self.wrote = past.get(self.remit.holder, self.wrote)

    def turn_recorded(self) -> None:
        """Reset everything that is recorded once per turn, after a handoff was recorded with its receipt and tokens."""
        self.receipt, self.tokens, self.spends = Receipt(), 0, False
        if "refusals" in self.__dict__:
            self.refusals.more = 0
        self.operations.next_turn()

    def restart_talk(self, generation: int) -> None:
        """Run this turn again, with a conversation that starts from the beginning."""
        self.operations.restart_talk(generation)
        self.returned = False
        for name in ("conversation", "delegated", "echoes"):
            self.__dict__.pop(name, None)

    @property
    def card(self) -> Card:
        return self.agent.card

    # -- operations ------------------------------------------------------------------------------------

    def op(self, what: str, *about: str) -> str:
        """Return the id of the next operation of the kind `what`. A rerun gets the same ids. Operations with different
        `about` are counted separately."""
        return self.operations.ids(what, *about)[0]

    def guarded(self, decide: Decide[T]) -> Decide[T]:
        """Return a decision that raises `Refused` if the task no longer belongs to this process."""

        def decided(view: View) -> Decision[T]:
            self.must_hold(view)
            return decide(view)

        return decided

    def must_hold(self, view: View) -> None:
        self.must_be_at_work()
        standing = view.standing(self.remit.id)
        if standing is not None and standing.fence == self.attempt.fence and standing.state in _IN_HAND:
            return
        why = "it was cancelled" if standing and standing.state in _STOPPED else "another process has taken it over"
        raise Refused(f"'{self.remit.holder}' no longer holds this task: {why}; stop here", rule="over")

    def must_own(self, view: View) -> None:
        """Raise `Refused` if another process has the task by now, or the task has ended. A passed deadline and a
        pending cancellation are ignored: work that is done may still be recorded."""
        standing = view.standing(self.remit.id)
        if standing is None or standing.fence != self.attempt.fence or standing.state in TERMINAL:
            raise Refused(f"'{self.remit.holder}' no longer holds this task; stop here", rule="over")

    def must_be_at_work(self) -> None:
        """Raise `Refused` for a turn that has ended, was stopped, or whose time is up."""
        if self.over:
            raise Refused(_ended(self.remit.holder), rule="over")
        if why := self.life.why_stopped(self.control.clock.ticks()):
            sentence = f"the turn of '{self.remit.holder}' has ended: {why}; this call was ignored"
            # It keeps calling and never yields, so nothing else could stop it.
            if self.life.tell() > _OFTEN and self.control.calls:
                raise asyncio.CancelledError(sentence)
            raise Refused(sentence, rule="over")

    @property
    def is_requeued(self) -> bool:
        """Whether the task goes back into the queue if its agent is cancelled now."""
        life: Life | None = self.life
        while life is not None:
            if life.stop == "expired":
                most = self.attempt.attempts or self.agent.retry.attempts
                return life is self.life and self.attempt.queued and not life.final and self.attempt.number < most
            if life.stop:
                return life.stop == "released"
            life = life.above
        return self.control.own_line.queued  # its process is closing

    def verb(self) -> AbstractContextManager[object]:
        """Mark that a verb of the turn is running. If it runs in an asyncio task that the agent created, that task is
        cancelled when the turn ends. A function of the owner that raises meanwhile fails the task."""
        if self.returned:
            raise Refused(_ended(self.remit.holder), rule="over")
        task = asyncio.current_task()
        if task is None or not self.control.calls or task is self.control.calls[-1].task:
            return self.control
        return Elsewhere(self, cast("asyncio.Task[object]", task))

    # -- open operations --------------------------------------------------------------------------------------

    @cached_property
    def doing(self) -> set[str]:
        """The ids of the running effects of this turn."""
        return set()

    @cached_property
    def delegated(self) -> Repeats:
        """The recent delegations of this task. Created on demand: most tasks delegate nothing."""
        return Repeats()

    @cached_property
    def refusals(self) -> Refusals:
        """The refused hops of this task. Created on demand: most tasks request none."""
        return Refusals()

    @cached_property
    def echoes(self) -> Echoes:
        """The answers to growing texts. Created on demand: most texts are short."""
        return Echoes()

    @cached_property
    def conversation(self) -> Conversation:
        """The task's conversation with a model; created on demand."""
        self.spends = True
        return Conversation()

    @property
    def talks(self) -> tuple[Any, ...]:
        """The recorded conversations; most tasks have none."""
        conversation: Conversation | None = self.__dict__.get("conversation")
        return () if conversation is None else (*conversation.talks.values(),)

    @cached_property
    def wants(self) -> Wants:
        """The reads that decisions on its delegations will make."""
        return Wants((self.remit.id,), (), (self.remit.root,))

    # -- trust ----------------------------------------------------------------------------------------------

    def take(self, trust: Trust) -> None:
        """Record the trust label of input, for the holder and for the current tool call."""
        if trust is not TRUSTED and trust != TRUSTED:
            self.took = UNTRUSTED
            if call := self.operations.call_under_way:
                self.conversation.untrusted.add(call)

    @property
    def says(self) -> Trust:
        """The trust label of everything that the holder writes, returns, sends and hands over."""
        return TRUSTED if self.agent.card.trusted_output else self.took

    # -- context rights ------------------------------------------------------------------------------------

    @property
    def rights(self) -> Rights:
        """All rights that the holder has and may pass on right now."""
        return Rights(self.sight, self.reach, self.kit)

    @cached_property
    def kit(self) -> Kit:
        """The tools that the holder may use; fixed for the turn."""
        return remits.kit(self.remit, self.card)

    @cached_property
    def sight(self) -> Sees:
        """The context that the holder sees right now. Of what it wrote itself, it sees exactly those versions."""
        if not self.wrote or self.base is ANY:
            return self.base
        wrote = frozenset(scope.of_key(*where, version) for where, version in self.wrote.items())
        return scope.either(self.base, scope.both(self.remit.bounds.sees, wrote))

    @cached_property
    def keeps(self) -> dict[str, str]:
        """The parts of the holder's context that are withheld from a called agent if the holder passes nothing on, each
        with the reason. The called agent's receipt shows them."""
        return kept_back(self.sight, NOTHING, NOTHING)

    def has_written(self, namespace: str, key: str, version: int) -> None:
        """Record a version that the holder wrote, so that it sees that version."""
        if self.wrote is NOTHING_WRITTEN:
            self.wrote = {}
        self.wrote[namespace, key] = version
        self.__dict__.pop("sight", None)  # computed again on next use
        self.__dict__.pop("keeps", None)
        self.room = None

    def has_artifact(self, digest: str) -> None:
        """Record an artifact that the holder saved, so that it sees it."""
        self.artifacts |= {digest}

    @cached_property
    def base(self) -> Sees:
        """The context that the holder sees by card, pass and memory. Fixed for the turn, so cached."""
        return remits.sight(self.remit, self.card)

    @cached_property
    def reach(self) -> Sees:
        """The context that the holder may write."""
        return remits.reach(self.remit, self.card)

    def may_see(self, namespace: str, key: str) -> bool:
        """Whether the holder sees that address at any version."""
        return self._wrote(namespace, key) is not None or scope.touches(self.base, namespace, key)

    def sees(self, namespace: str, key: str, entry: Entry | None) -> bool:
        """Whether the holder sees this entry, or, for None, that the address is empty."""
        if entry is None:
            return scope.covers(self.base, namespace, key)
        if self._wrote(namespace, key) == entry.version:
            return True
        return scope.covers(self.base, namespace, key, entry.version)

    def _wrote(self, namespace: str, key: str) -> int | None:
        """Return the version that the holder wrote at this address, or None if it wrote none or the task's bounds no
        longer let it see the address."""
        version = self.wrote.get((namespace, key))
        return version if version and scope.covers(self.remit.bounds.sees, namespace, key) else None

    @cached_property
    def place(self) -> Place:
        return place(self.remit)

    @cached_property
    def writer(self) -> Writer:
        return Writer(self.remit.holder, self.remit.id, self.remit.names)

    def why(self, entry: Entry) -> Why:
        """Return the right by which the holder sees an entry; the most specific one."""
        if entry.namespace == self.card.memory:
            return "memory"
        if self.wrote.get((entry.namespace, entry.key)) == entry.version:
            return "wrote"
        if scope.covers(self.remit.sees, entry.namespace, entry.key, entry.version):
            return "passed"
        return "card"


class Elsewhere:
    """A running verb of a turn in an asyncio task that the agent created."""

    __slots__ = ("_live", "_task")

    def __init__(self, live: LiveTask, task: asyncio.Task[object]) -> None:
        self._live = live
        self._task = task

    def __enter__(self) -> None:
        if self._live.elsewhere is NOWHERE:
            self._live.elsewhere = {}
        tasks = self._live.elsewhere
        tasks[self._task] = tasks.get(self._task, 0) + 1

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._live.control.__exit__(kind, error, trace)
        tasks = self._live.elsewhere
        tasks[self._task] -= 1
        if not tasks[self._task]:
            del tasks[self._task]
        if not tasks and self._live.alone is not None:
            self._live.alone.set()


def resumed_until(agent: Agent | None, remit: Remit, now: int) -> int:
    """Return when a delegation that is resumed now expires in the store."""
    own = agent.rules.timeout if agent is not None else 0
    return expires(remit.bounds, now, own or DELEGATION_TIME)


_BEAT_PROGRESS: Final = 100  # tasks whose progress goes with one heartbeat; the latest reports win


def progress_json(found: Mapping[str, Progress]) -> str:
    """Return the progress of tasks as JSON, for a heartbeat; "" if there is none."""
    latest = sorted(found.values(), key=lambda one: one.at)[-_BEAT_PROGRESS:]
    return encode([[*one] for one in latest]) if latest else ""


class LiveTasks:
    """The tasks that run in this process. Cancelling one cancels all below it, because their cancel scopes nest."""

    __slots__ = ("_live", "hands")

    def __init__(self) -> None:
        self._live: dict[str, LiveTask] = {}
        self.hands = Hands(0)  # slots of this process's worker, once there is one

    def enter(self, live: LiveTask) -> LiveTask:
        """Add a running task, to the line of its asker or to a line of its own."""
        self._live[live.remit.id] = live
        line = live.control.line
        if line is None:
            line = live.control.line = Line(self.hands if live.attempt.queued else None)
        line.enter(live.remit.id, live)
        return live

    def leave(self, live: LiveTask) -> None:
        """Remove a task that has ended, whichever agent held it last."""
        now = self._live.get(live.remit.id)
        last = live
        if now is not None and now.control is live.control:
            last = now
            del self._live[live.remit.id]
        live.over = last.over = True
        last.life.end()
        line = last.control.line
        assert line is not None  # a live task has a line
        line.leave(last.remit.id, waits=last.life.waits > 0, last=last.attempt.queued)

    def latest(self, live: LiveTask) -> LiveTask:
        """Return the turn of the present holder under the same claim; a later claim of the same task does not count."""
        now = self._live.get(live.remit.id)
        return now if now is not None and now.control is live.control else live

    def progress(self) -> dict[str, Progress]:
        """Return the latest progress of each task that has reported some. Other threads call this too."""
        return {live.remit.id: live.progress for live in tuple(self._live.values()) if live.progress is not None}

    def with_lost_claims(self, held: Mapping[str, int]) -> list[LiveTask]:
        """Return the queued tasks that run here although their claim is lost. `held` has the fences of the valid
        claims."""
        queued = (live for live in self._live.values() if live.attempt.queued)
        return [live for live in queued if held.get(live.remit.id) != live.attempt.fence]

    def nested_in(self, live: LiveTask) -> list[LiveTask]:
        """Return the task and the running tasks that it is nested in."""
        line: list[LiveTask] = []
        above: LiveTask | None = live
        while above is not None:
            line.append(above)
            above = self._live.get(above.remit.parent)
        return line

    def under(self, life: Life) -> list[LiveTask]:
        """Return the running tasks that the attempt with this `life` waits for, directly or indirectly."""
        return [live for live in self._live.values() if live.life.is_under(life)]

    def calls_inside(self, call: Call) -> list[Call]:
        """Return the running agent calls inside this call: nested ones of the same task, and those of tasks below
        it."""
        control = next((live.control for live in self._live.values() if call in live.control.calls), None)
        if control is None:
            return []
        own = control.calls[control.calls.index(call) + 1 :]
        return own + [one for live in self.under(control.life) for one in live.control.calls]

    def get(self, task: str) -> LiveTask | None:
        return self._live.get(task)

    def __len__(self) -> int:
        return len(self._live)


_NOTHING: Final = frozenset[tuple[str, str, int]]()


class Before(NamedTuple):
    """What the turn had seen and written before some code ran."""

    saw: frozenset[tuple[str, int, str]]
    wrote: frozenset[tuple[str, str, int]]


def before(live: LiveTask) -> Before:
    """Return the present state of the turn."""
    return Before(frozenset(live.receipt.saw), _versions_written(live))


def marks(live: LiveTask, then: Before) -> dict[str, Json]:
    """Return the changes of the turn since `then`, in their recorded form: the trust label, and what it saw and wrote.
    Return {} if there are none."""
    found: dict[str, Json] = {}
    if live.took != TRUSTED:
        found["took"] = live.took
    if saw := [[*part] for at, part in live.receipt.saw.items() if at not in then.saw]:
        found["saw"] = cast("Json", saw)
    if wrote := sorted(_versions_written(live) - then.wrote):
        found["wrote"] = cast("Json", [[*one] for one in wrote])
    return found


def apply(live: LiveTask, marks: dict[str, Any]) -> None:
    """Apply the recorded changes of code that is skipped now to the turn."""
    if not marks:
        return
    live.take(marks.get("took", TRUSTED))
    live.receipt.beside(Slice(*part) for part in marks.get("saw", ()))
    for namespace, key, version in marks.get("wrote", ()):
        live.has_written(namespace, key, version)


def _ended(holder: str) -> str:
    return f"the turn of '{holder}' has ended; this call was ignored. Await all work before you return"


def _versions_written(live: LiveTask) -> frozenset[tuple[str, str, int]]:
    return frozenset((*where, version) for where, version in live.wrote.items()) if live.wrote else _NOTHING


WHY: Final = "cancelled from another process"
_CANCELLING: Final = frozenset(("task.cancelling",))

_log = logging.getLogger("remit")


class StopListener:
    """Stops tasks of this process that another process has cancelled. It listens to the store while a `while_working`
    body runs."""

    def __init__(self, store: Store, alive: LiveTasks, worker: str) -> None:
        self._store = store
        self._alive = alive
        self._worker = worker
        self._users = 0
        self._unsubscribe: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking: asyncio.Task[None] | None = None
        self._working = While(self._enter, self._leave)

    def while_working(self) -> While:
        """Return a context manager. While its body runs, tasks of this process that another process cancels are
        stopped."""
        return self._working

    def _enter(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # listeners of an earlier loop ended with it
            self._loop, self._users, self._unsubscribe, self._looking = loop, 0, None, None
        self._users += 1
        if self._unsubscribe is None:
            self._unsubscribe = self._store.listen(self._changed)

    def _leave(self) -> None:
        self._users -= 1
        if not self._users and self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _changed(self) -> None:
        if len(self._alive) and self._loop is not None and (self._looking is None or self._looking.done()):
            self._looking = self._loop.create_task(self.look())

    async def look(self) -> None:
        """Stop the running tasks of this process that the store marks as cancelling."""
        try:
            wanted = await self._store.read(self._tasks_to_stop)
        except NewerStore:  # reported by the worker, or by the work itself
            return
        except StoreError as error:  # the store notifies again
            _log.warning("could not look for what is to be stopped: %s", error)
            return
        for live, why in wanted:
            live.control.stop(why)

    def _tasks_to_stop(self, view: View) -> list[tuple[LiveTask, str]]:
        alive = (self._alive.get(task) for task in view.cancelling(self._worker))
        return [(live, _why(view, live)) for live in alive if live is not None and live.life.stop != "cancelled"]


def _why(view: View, live: LiveTask) -> str:
    """Return the reason of the cancellation."""
    events = view.events(Span(run=live.remit.root, task=live.remit.id, kinds=_CANCELLING))
    return read(events[0], Cancelling).get("why", WHY)

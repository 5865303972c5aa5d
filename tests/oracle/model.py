"""The model: what should come of a scenario, worked out with sets of points and plain numbers.

It is written from the design alone and knows nothing of how remit does it. What it foresees is a log: for each task,
what its turns are told, one line an act.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from oracle.known import today
from oracle.scenario import (
    AGENTS,
    BOARD_NAME,
    EVERYWHERE,
    TOOLS,
    Act,
    Along,
    Answer,
    Breaker,
    Delegate,
    DelegateAll,
    Fail,
    FanOut,
    Get,
    HandOff,
    Inbox,
    Look,
    OwnerPuts,
    OwnerRemoves,
    Point,
    Points,
    Put,
    Query,
    Queue,
    Remove,
    Restart,
    Run,
    RunPlan,
    Scenario,
    Serve,
    Submit,
    Tell,
    Wait,
    Within,
    points,
)

Log: TypeAlias = dict[str, list[Any]]

NO_END = 10**18
SAME_SECONDS = 300
REPEATS_WITHIN = 3  # handoffs
STALE = ("refused", "over")
ELSEWHERE = "no board but its own"


class Unsaid(Exception):
    """Nothing says what should happen here, so it is left out of the scenario."""


class TimeIsUp(Exception):
    """A task's deadline has passed while it, or something below it, was at work."""

    def __init__(self, task: "Task") -> None:
        super().__init__(task.text)
        self.task = task


@dataclass(frozen=True)
class Limits:
    """A ceiling: sets and numbers."""

    agents: frozenset[str] = frozenset((*AGENTS, "zoe"))
    tools: frozenset[str] = frozenset(TOOLS)
    sees: Points = EVERYWHERE
    writes: Points = EVERYWHERE
    depth: int = NO_END
    handoffs: int = NO_END
    members: int = NO_END
    deadline: int = NO_END

    def narrowed(self, by: Within, now: int) -> "Limits":
        least = [(self.depth, by.depth), (self.handoffs, by.handoffs), (self.members, by.members)]
        depth, handoffs, members = (have if said is None else min(have, said) for have, said in least)
        return Limits(
            self.agents if by.agents is None else self.agents & by.agents,
            self.tools if by.tools is None else self.tools & by.tools,
            self.sees if by.sees is None else self.sees & points(by.sees),
            self.writes if by.writes is None else self.writes & points(by.writes),
            depth,
            handoffs,
            members,
            self.deadline if by.seconds is None else min(self.deadline, now + by.seconds),
        )


@dataclass
class Written:
    value: str
    agent: str
    version: int
    task: "Task | None"


@dataclass
class Task:
    """One task: who holds it, what it was passed by name, and whether the person's whole view came with it."""

    text: str
    session: str
    holder: str
    limits: Limits
    askers: tuple[str, ...]
    run: set[str]  # who takes part in its run
    sees: Points = frozenset()
    writes: Points = frozenset()
    tools: frozenset[str] = frozenset()
    sees_all: bool = False
    writes_all: bool = False
    told: str = ""  # what its holder reads as its task
    team: frozenset[str] | None = None  # of the plan that it is a step of
    sender: str = ""
    refused: bool = False
    turn: int = 0
    trail: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    results: tuple[str, ...] = ()
    wrote: set[Point] = field(default_factory=set[Point])
    above: "Task | None" = None
    state: str = "pending"
    result: str = ""


@dataclass(frozen=True)
class Request:
    """What was submitted before: its content, when, and the task that it made."""

    content: tuple[object, ...]
    at: int
    task: Task


class Model:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.team = {member.name: member for member in scenario.team}
        ceiling = replace(
            scenario.ceiling,
            depth=3 if scenario.ceiling.depth is None else scenario.ceiling.depth,
            handoffs=5 if scenario.ceiling.handoffs is None else scenario.ceiling.handoffs,
        )
        self.now = 0
        self.ceiling = Limits().narrowed(ceiling, 0)
        self.log: Log = {}
        self.unsaid = False
        self.entries: dict[Point, Written] = {}
        self.versions: dict[Point, int] = {}
        self.inboxes: dict[tuple[object, str], list[tuple[str, str]]] = {}
        self.broken: set[str] = set()
        self.queue: list[Task] = []
        self.keys: dict[tuple[object, str], Request] = {}
        self.same: dict[tuple[object, ...], Request] = {}

    def played(self) -> Log:
        """Foresee everything, but for the acts of which nothing says what should happen: those are skipped."""
        for number, act in enumerate(self.scenario.acts):
            self._said("", number, act, lambda act=act: self._person(act))
        self.log["entries"] = sorted((at, one.value, one.agent, one.version) for at, one in self.entries.items())
        return self.log

    def _said(self, text: str, number: int, act: Act, do: Any) -> None:
        if act.skipped:
            return
        try:
            answer = do()
        except Unsaid:
            act.skipped = self.unsaid = True
        else:
            self.log.setdefault(text, []).append((number, type(act).__name__, answer))

    # -- the person -----------------------------------------------------------------------------------------------

    def _person(self, act: Act) -> object:
        match act:
            case OwnerPuts():
                return self._written(self._address(act.namespace, act.key, act.session), "person's", None)
            case OwnerRemoves():
                return self._removed(self._address(act.namespace, act.key, act.session))
            case Run():
                return (self._begin(act, queued=False), STALE)
            case Queue():
                return self._begin(act, queued=True)
            case Serve():
                while self.queue:
                    task = self.queue.pop(0)
                    self._carried_out(task)
                return None
            case Wait():
                if today("default-deadline") and any(task.askers for task in self.queue):
                    raise Unsaid
                self.now += act.seconds
                return None
            case Breaker():
                (self.broken.add if act.how == "trip" else self.broken.discard)(act.agent)
                return None
            case Restart():
                return None
            case _:
                raise AssertionError(act)

    def _begin(self, act: Run | Queue, *, queued: bool) -> object:
        task = self.first(act)
        rule = self._first_refusal(act.to, task.limits)
        if not queued:
            return ("refused", rule) if rule else self._carried_out(task)
        known = self._known(act, ("", act.session), task)
        return self._queued(task, rule, known)

    def first(self, act: Run | Queue) -> Task:
        """Make the first task of a run: the person passes everything on to see and to write, unless told otherwise."""
        along = act.along
        limits = self.ceiling.narrowed(along.within, self.now)
        if along.seconds is not None:
            limits = replace(limits, deadline=min(limits.deadline, self.now + along.seconds))
        task = Task(act.task, act.session, act.to, limits, (), {act.to}, told=act.task)
        task.sees_all, task.sees = along.sees is None, points(along.sees or ())
        task.writes_all, task.writes = along.writes is None, points(along.writes or ())
        everything = frozenset(TOOLS) if today("person-tools") else frozenset[str]()
        task.tools = everything if along.tools is None else along.tools
        return task

    def _first_refusal(self, to: str, limits: Limits) -> str:
        if to not in self.team:
            return "unknown"
        if to not in limits.agents:
            return "not-allowed"
        if self.now >= limits.deadline:
            return "deadline"
        return "breaker" if to in self.broken else ""

    # -- asking ---------------------------------------------------------------------------------------------------

    def refusal(self, asker: Task, to: str, within: Within) -> str:
        """Name the first rule that says no to a delegation."""
        limits = asker.limits.narrowed(within, self.now)
        asks = self.team[asker.holder].asks
        checks = (
            ("self", to == asker.holder),
            ("unknown", to not in self.team),
            ("not-allowed", (asks is not None and to not in asks) or to not in limits.agents),
            ("loop", to in asker.askers),
            ("depth", len(asker.askers) >= limits.depth),
            ("deadline", self.now >= limits.deadline),
            ("breaker", to in self.broken),
            ("tier", to not in asker.run and len(asker.run) >= limits.members),
        )
        return next((rule for rule, broken in checks if broken), "")

    def child(self, asker: Task, to: str, text: str, along: Along) -> Task:
        """Make what an asker passes on: of what it sees, may write and may use, what it names."""
        limits = asker.limits.narrowed(along.within, self.now)
        if along.seconds is not None:
            limits = replace(limits, deadline=min(limits.deadline, self.now + along.seconds))
        child = Task(text, asker.session, to, limits, (*asker.askers, asker.holder), asker.run, told=text)
        child.sees = self.sight(asker) & points(along.sees or ())
        child.writes = self.reach(asker) & points(along.writes or ())
        child.tools = self.kit(asker) & (along.tools or frozenset())
        child.above = asker
        return child

    def _delegated(self, asker: Task, child: Task, within: Within = Within()) -> tuple[str, str]:
        rule = self.refusal(asker, child.holder, within)
        if rule:
            return ("refused", rule)
        asker.run.add(child.holder)
        return self._carried_out(child)

    def _submitted(self, asker: Task, act: Submit) -> object:
        if asker.limits.deadline < NO_END:
            raise Unsaid
        child = self.child(asker, act.to, act.task, act.along)
        child.above = None  # nobody waits for it
        rule = self.refusal(asker, act.to, act.along.within)
        where = id(asker.run) if today("same-key") else id(asker)
        answer = self._queued(child, rule, self._known(act, (where, asker.holder), child))
        if answer[0] == "submitted":
            asker.run.add(act.to)
        return answer

    def _known(self, act: Queue | Submit, where: tuple[object, ...], task: Task) -> Any:
        """Find the request that this one repeats, or note it as a new one once it is accepted."""
        content = (*where, act.to, act.task, act.along)
        if act.key:
            named = (where[0], act.key)
            before = self.keys.get(named)
            other = before is not None and before.content != content and not today("same-key")
            return before, other, lambda: self.keys.__setitem__(named, Request(content, self.now, task))
        identity = content[:-1] if today("same-request") else content
        before = self.same.get(identity)
        if before and (self.now - before.at > SAME_SECONDS or before.task.state in ("failed", "timed-out")):
            before = None
        if before and self.now - before.at == SAME_SECONDS:
            raise Unsaid
        return before, False, lambda: self.same.__setitem__(identity, Request(content, self.now, task))

    def _queued(self, task: Task, rule: str, known: Any) -> tuple[str, str]:
        before, other, note = known
        if rule and not (before and today("guards-last")):
            return ("refused", rule)
        if other:
            return ("conflict", "")
        if before:
            return ("existing", before.task.text)
        note()
        self.queue.append(task)
        return ("submitted", task.text)

    # -- what a holder sees, may write and use ----------------------------------------------------------------------

    def sight(self, task: Task) -> Points:
        card = self.team[task.holder]
        own = EVERYWHERE if task.sees_all else task.sees | points(card.reads) | self._memory(task)
        return task.limits.sees & (own | self._wrote(task))

    def reach(self, task: Task) -> Points:
        card = self.team[task.holder]
        if today("writes"):
            return task.limits.sees & (EVERYWHERE if card.writes is None else points(card.writes))
        own = EVERYWHERE if task.writes_all else task.writes | points(card.writes or ()) | self._memory(task)
        return (task.limits.writes & own) | frozenset(task.wrote)

    def kit(self, task: Task) -> frozenset[str]:
        card = self.team[task.holder]
        return (task.limits.tools & (card.tools | task.tools)) - card.denies

    @staticmethod
    def _memory(task: Task) -> Points:
        return frozenset(point for point in EVERYWHERE if point[0] == f"memory:{task.holder}")

    def _wrote(self, task: Task) -> Points:
        """The addresses at which what this task wrote still stands."""
        if today("wrote-address"):
            return frozenset(task.wrote)
        return frozenset(point for point in task.wrote if self._stands(task, point))

    def _stands(self, task: Task, point: Point) -> bool:
        there = self.entries.get(self._address(*point, task.session))
        return there is not None and there.task is task

    def _asked_for(self, task: Task, wanted: Points) -> Points:
        """What of these points is seen. Of what it wrote and someone removed since, nothing says what it is told."""
        seen = self.sight(task) & wanted
        gone = [at for at in task.wrote & wanted - seen if self._address(*at, task.session) not in self.entries]
        if not seen and (gone or (task.wrote & wanted and len(wanted) > 1)):
            raise Unsaid
        return seen

    # -- entries ----------------------------------------------------------------------------------------------------

    @staticmethod
    def _address(namespace: str, key: str, session: str) -> Point:
        return (f"board:{session}" if namespace == BOARD_NAME else namespace, key)

    def _written(self, at: Point, value: str, task: Task | None, agent: str = "") -> int:
        before = self.entries.get(at)
        version = (before.version if before else 0) + 1 if today("same-version") else self.versions.get(at, 0) + 1
        self.versions[at] = version
        self.entries[at] = Written(value, agent, version, task)
        return version

    def _removed(self, at: Point) -> bool:
        return self.entries.pop(at, None) is not None

    def _get(self, task: Task, act: Get) -> object:
        if not self._asked_for(task, frozenset(((act.namespace, act.key),))):
            return ("refused", "not-visible")
        there = self.entries.get(self._address(act.namespace, act.key, task.session))
        if there is None:
            return None
        return there.value if act.namespace == BOARD_NAME else (there.value, there.agent, there.version)

    def _query(self, task: Task, act: Query) -> object:
        wanted = frozenset(at for at in EVERYWHERE if at[0] == act.namespace and at[1].startswith(act.prefix or ""))
        seen = self._asked_for(task, wanted)
        if not seen:
            return ("refused", "not-visible")
        there = {point: self.entries.get(self._address(*point, task.session)) for point in seen}
        return sorted((point[1], one.value) for point, one in there.items() if one is not None)

    def _put(self, task: Task, act: Put, value: str) -> object:
        point = (act.namespace, act.key)
        self._bounded_or_own(task, point)
        if point not in self.reach(task):
            return ("refused", "not-writable")
        at = self._address(*point, task.session)
        if act.expect is not None:
            if point not in self.sight(task):
                raise Unsaid
            there = self.entries.get(at)
            if act.expect != (there.version if there else 0):
                return ("conflict", "")
        task.wrote.add(point)
        return self._written(at, value, task, task.holder)

    def _remove(self, task: Task, act: Remove) -> object:
        point = (act.namespace, act.key)
        self._bounded_or_own(task, point)
        seen, writable = point in self.sight(task), point in self.reach(task)
        if today("remove-order") and not seen:
            return ("refused", "not-visible")
        if not writable:
            return ("refused", "not-writable")
        if not seen:
            raise Unsaid
        return self._removed(self._address(*point, task.session))

    def _bounded_or_own(self, task: Task, point: Point) -> None:
        """Whether what it wrote may still be written when the ceiling was narrowed since, nothing says."""
        if not today("writes") and point in task.wrote and point not in task.limits.writes:
            raise Unsaid

    # -- a task, turn after turn ------------------------------------------------------------------------------------

    def _carried_out(self, task: Task) -> tuple[str, str]:
        task.state = "running"
        try:
            task.state, task.result = self._turns(task)
        except TimeIsUp as up:
            if up.task is not task:
                raise
            task.state, task.result = "timed-out", ""
        return (task.state, task.result)

    def _turns(self, task: Task) -> tuple[str, str]:
        while True:
            script = self.scenario.turn(task.text, task.turn)
            if task.refused and script.stops:  # whether the next process tells it again, nothing says
                script.stops, self.unsaid = False, True
            self._told(task)
            for number, act in enumerate(script.acts):
                self._said(task.text, number, act, lambda act=act, number=number: self._act(task, act, number))
            ending = script.ending
            here = task.turn
            task.turn += 1
            if isinstance(ending, Answer):
                return ("completed", f"{task.text}/{here}")
            if isinstance(ending, Fail):
                return ("failed", "")
            if today("wrote-address"):
                task.wrote = set()
            rule = self._handed(task, ending) if isinstance(ending, HandOff) else self._fanned_out(task, ending)
            if rule:
                if task.refused:
                    return ("failed", "")
                task.refused = True

    def _told(self, task: Task) -> None:
        how = (task.told, task.holder, task.sender, task.refused, task.results)
        self.log.setdefault(task.text, []).append((task.turn, "turn", how))

    def _handoff_refusal(self, task: Task, to: str, content: str, within: Within) -> str:
        limits = task.limits.narrowed(within, self.now)
        asks = self.team[task.holder].asks
        checks = (
            ("self", to == task.holder),
            ("unknown", to not in self.team),
            ("not-allowed", (asks is not None and to not in asks) or to not in limits.agents),
            ("loop", to in task.askers),
            ("deadline", self.now >= limits.deadline),
            ("breaker", to in self.broken),
            *self._moves(task, to, content),
            ("tier", to not in task.run and len(task.run) >= limits.members),
        )
        return next((rule for rule, broken in checks if broken), "")

    @staticmethod
    def _moves(task: Task, to: str, content: str) -> Iterable[tuple[str, bool]]:
        yield "handoffs", len(task.trail) >= task.limits.handoffs
        yield "deadlock", (task.holder, to, content) in task.trail[-REPEATS_WITHIN:]

    def _handed(self, task: Task, command: HandOff) -> str:
        rule = self._handoff_refusal(task, command.to, command.phase, command.along.within)
        if not rule:
            self._moved(task, command.to, command.phase, command.along)
        return rule

    def _moved(self, task: Task, to: str, content: str, along: Along) -> None:
        """The heir has what the task was passed by name, and what the sender has and passes along."""
        sees = task.sees | (self.sight(task) & points(along.sees or ()))
        writes = task.writes | (self.reach(task) & points(along.writes or ()))
        tools = task.tools | (self.kit(task) & (along.tools or frozenset()))
        task.sees, task.writes, task.tools = sees, writes, tools
        if not today("heir-sight"):
            task.sees_all = task.writes_all = False
        task.limits = task.limits.narrowed(along.within, self.now)
        task.trail.append((task.holder, to, content))
        task.run.add(to)
        task.sender, task.holder, task.refused = task.holder, to, False

    def _fanned_out(self, task: Task, command: FanOut) -> str:
        join = command.join if command.join != task.holder else ""
        rule = self._handoff_refusal(task, join, command.phase, Within()) if join else ""
        to = "; ".join(f"{agent}: {text}" for agent, text in command.parts)
        rule = rule or next((rule for rule, broken in self._moves(task, to, command.phase) if broken), "")
        if rule:
            return rule
        task.trail.append((task.holder, to, command.phase))
        children = [self.child(task, agent, text, Along()) for agent, text in command.parts]
        outcomes = [self._delegated(task, child) for child in children]
        task.results = tuple(value or state for state, value in outcomes)
        if not join:
            task.sender, task.refused = task.holder, False
            return ""
        task.trail.pop()  # the fan-out and its join are one handoff
        rule = self._handoff_refusal(task, join, command.phase, Within())
        if not rule:
            self._moved(task, join, command.phase, Along())
        return rule

    # -- the acts of a turn -----------------------------------------------------------------------------------------

    def _act(self, task: Task, act: Act, number: int) -> object:
        match act:
            case Get():
                return self._get(task, act)
            case Query():
                return self._query(task, act)
            case Put():
                return self._put(task, act, f"{task.text}/{task.turn}/{number}")
            case Remove():
                return self._remove(task, act)
            case Look():
                return (sorted(self.kit(task)), self._askable(task), (*task.askers, task.holder), ELSEWHERE)
            case Tell():
                return self._tell(task, act, f"{task.text}/{task.turn}/{number}")
            case Inbox():
                return self._waiting(task, task.holder, take=True)
            case Wait():
                return self._wait(task, act)
            case Delegate():
                return self._delegated(task, self.child(task, act.to, act.task, act.along), act.along.within)
            case DelegateAll():
                wishes = ((self.child(task, to, text, act.along), act.along.within) for to, text in act.wishes)
                return [self._delegated(task, child, within) for child, within in wishes]
            case Submit():
                return self._submitted(task, act)
            case RunPlan():
                return self._plan(task, act)
            case _:
                raise AssertionError(act)

    def _askable(self, task: Task) -> list[str]:
        asks = self.team[task.holder].asks
        named = set(self.team) if asks is None else asks & set(self.team)
        return sorted(named & task.limits.agents - {task.holder, *task.askers})

    def _tell(self, task: Task, act: Tell, text: str) -> object:
        """A message goes to one's askers, to the members of one's team, or else to those one may ask."""
        if act.to not in self.team:
            return ("refused", "unknown")
        asks = self.team[task.holder].asks
        others = task.team if task.team is not None else (set(self.team) if asks is None else asks) & task.limits.agents
        if act.to == task.holder or act.to not in {*task.askers, *others}:
            return ("refused", "not-allowed")
        self._waiting(task, act.to).append((task.holder, text))
        return None

    def _waiting(self, task: Task, agent: str, *, take: bool = False) -> list[tuple[str, str]]:
        where = (task.session if today("session-messages") else id(task.run), agent)
        return self.inboxes.pop(where, []) if take else self.inboxes.setdefault(where, [])

    def _wait(self, task: Task, act: Wait) -> None:
        self.now += act.seconds
        late: Task | None = None
        above: Task | None = task
        while above is not None:
            late = above if above.limits.deadline <= self.now else late
            above = above.above
        if late is not None:
            raise TimeIsUp(late)

    def _plan(self, task: Task, act: RunPlan) -> object:
        able = self._askable(task)
        if any(agent not in able for _, agent, _ in act.steps):
            return ("bad-input", "")
        states: dict[int, str] = {}
        results: dict[int, tuple[str, str]] = {}
        ready = [index for index, (_, _, after) in enumerate(act.steps) if not after]
        while ready:
            index = ready.pop(0)
            title, agent, after = act.steps[index]
            if index in states:
                continue
            child = self.child(task, agent, title, Along())
            notes = list(self._waiting(task, agent))
            child.told = self._prompt(title, [(act.steps[one][0], *results[one]) for one in after], notes)
            child.team = frozenset(agent for _, agent, _ in act.steps)
            if not self.refusal(task, agent, Within()):
                self._waiting(task, agent, take=True)
            outcome, value = self._delegated(task, child)
            states[index] = "completed" if outcome == "completed" else "failed"
            results[index] = (child.holder, value)
            self._settle(act, states, ready, index, spent=outcome == "refused" and value in ("deadline", "tier"))
        return [states[index] for index in range(len(act.steps))]

    @staticmethod
    def _settle(act: RunPlan, states: dict[int, str], ready: list[int], ended: int, *, spent: bool) -> None:
        """Start what waited for this step alone; give up what can no longer be done."""
        for index, (_, _, after) in enumerate(act.steps):
            if index in states or not after:
                continue
            if any(states.get(one) == "failed" for one in after):
                states[index] = "failed"
            elif ended in after and all(states.get(one) == "completed" for one in after):
                ready.append(index)
        if spent:
            for index in range(len(act.steps)):
                states.setdefault(index, "skipped")

    @staticmethod
    def _prompt(title: str, done: list[tuple[str, str, str]], notes: list[tuple[str, str]]) -> str:
        lines = [f"# Task: {title}", "", f"do {title}"]
        if done:
            lines += ["", "## Context from prerequisite tasks"]
        for before, by, result in done:
            lines += ["", f"### {before} (by {by})", result]
        if notes:
            lines += ["", "## Messages from team members", *(f"- **{sender}**: {text}" for sender, text in notes)]
        return "\n".join(lines)


def foreseen(scenario: Scenario) -> Log:
    """Foresee a scenario; first it loses the acts for which nothing says what should happen."""
    while True:
        model = Model(scenario)
        log = model.played()
        if not model.unsaid:
            return log


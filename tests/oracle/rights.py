"""What holders see, may write and may use, and the entries there are: sets of points, and one dictionary."""

from dataclasses import dataclass, field

from oracle.known import today
from oracle.scenario import (
    AGENTS,
    BOARD_NAME,
    EVERYWHERE,
    STRANGER,
    TOOLS,
    Get,
    Member,
    Point,
    Points,
    Put,
    Query,
    Remove,
    Within,
    points,
)

NO_END = 10**18


class Unsaid(Exception):
    """Nothing says what should happen here, so it is left out of the scenario."""


@dataclass(frozen=True)
class Limits:
    """A ceiling: sets and numbers."""

    agents: frozenset[str] = frozenset((*AGENTS, STRANGER))
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
    phase: str = ""
    refused: bool = False
    turn: int = 0
    trail: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    results: tuple[str, ...] = ()
    wrote: set[Point] = field(default_factory=set[Point])
    above: "Task | None" = None
    state: str = "pending"
    result: str = ""


class Rights:
    """The formula: what is passed, what the card names, its own memory and what it wrote, all under the ceiling."""

    def __init__(self, team: dict[str, Member]) -> None:
        self.team = team
        self.entries: dict[Point, Written] = {}
        self.versions: dict[Point, int] = {}

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
        there = self.entries.get(self.address(*point, task.session))
        return there is not None and there.task is task

    def _asked_for(self, task: Task, wanted: Points) -> Points:
        """What of these points is seen. Of what it wrote and someone removed since, nothing says what it is told."""
        seen = self.sight(task) & wanted
        gone = [at for at in task.wrote & wanted - seen if self.address(*at, task.session) not in self.entries]
        if not seen and (gone or (task.wrote & wanted and len(wanted) > 1)):
            raise Unsaid
        return seen

    @staticmethod
    def address(namespace: str, key: str, session: str) -> Point:
        return (f"board:{session}" if namespace == BOARD_NAME else namespace, key)

    def written(self, at: Point, value: str, task: Task | None, agent: str = "") -> int:
        before = self.entries.get(at)
        version = (before.version if before else 0) + 1 if today("same-version") else self.versions.get(at, 0) + 1
        self.versions[at] = version
        self.entries[at] = Written(value, agent, version, task)
        return version

    def removed(self, at: Point) -> bool:
        return self.entries.pop(at, None) is not None

    def get(self, task: Task, act: Get, _value: str) -> object:
        if not self._asked_for(task, frozenset(((act.namespace, act.key),))):
            return ("refused", "not-visible")
        there = self.entries.get(self.address(act.namespace, act.key, task.session))
        if there is None:
            return None
        return there.value if act.namespace == BOARD_NAME else (there.value, there.agent, there.version)

    def query(self, task: Task, act: Query, _value: str) -> object:
        wanted = frozenset(at for at in EVERYWHERE if at[0] == act.namespace and at[1].startswith(act.prefix or ""))
        seen = self._asked_for(task, wanted)
        if not seen:
            return ("refused", "not-visible")
        there = {point: self.entries.get(self.address(*point, task.session)) for point in seen}
        return sorted((point[1], one.value) for point, one in there.items() if one is not None)

    def put(self, task: Task, act: Put, value: str) -> object:
        point = (act.namespace, act.key)
        self._bounded_or_own(task, point)
        if point not in self.reach(task):
            return ("refused", "not-writable")
        at = self.address(*point, task.session)
        if act.expect is not None:
            if point not in self.sight(task):
                raise Unsaid
            there = self.entries.get(at)
            if act.expect != (there.version if there else 0):
                return ("conflict", "")
        task.wrote.add(point)
        return self.written(at, value, task, task.holder)

    def remove(self, task: Task, act: Remove, _value: str) -> object:
        point = (act.namespace, act.key)
        self._bounded_or_own(task, point)
        seen, writable = point in self.sight(task), point in self.reach(task)
        if today("remove-order") and not seen:
            return ("refused", "not-visible")
        if not writable:
            return ("refused", "not-writable")
        if not seen:
            raise Unsaid
        return self.removed(self.address(*point, task.session))

    def _bounded_or_own(self, task: Task, point: Point) -> None:
        """Whether what it wrote may still be written when the ceiling was narrowed since, nothing says."""
        if not today("writes") and point in task.wrote and point not in task.limits.writes:
            raise Unsaid

"""What holders see, may write and may use, and the entries there are: sets of points, and one dictionary."""

from dataclasses import dataclass, field
from typing import TypeAlias

from oracle.scenario import (
    AGENTS,
    BOARD_NAME,
    EVERYWHERE,
    STRANGER,
    TOOLS,
    Along,
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

Versions: TypeAlias = frozenset[tuple[Point, int]]  # at an address, the first write is version 1, the next one 2


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
    tasks: int = NO_END
    deadline: int = NO_END

    def narrowed(self, by: Within, now: int) -> "Limits":
        have = (self.depth, self.handoffs, self.members, self.tasks)
        said = (by.depth, by.handoffs, by.members, by.tasks)
        least = [min(one, NO_END if other is None else other) for one, other in zip(have, said, strict=True)]
        depth, handoffs, members, tasks = least
        return Limits(
            self.agents if by.agents is None else self.agents & by.agents,
            self.tools if by.tools is None else self.tools & by.tools,
            self.sees if by.sees is None else self.sees & points(by.sees),
            self.writes if by.writes is None else self.writes & points(by.writes),
            depth,
            handoffs,
            members,
            tasks,
            self.deadline if by.seconds is None else min(self.deadline, now + by.seconds),
        )


@dataclass(frozen=True)
class Passed:
    """What goes along by name: addresses to see, versions that the asker wrote itself, addresses to write, tools."""

    sees: Points = frozenset()
    versions: Versions = frozenset()
    writes: Points = frozenset()
    tools: frozenset[str] = frozenset()

    def __or__(self, more: "Passed") -> "Passed":
        return Passed(
            self.sees | more.sees, self.versions | more.versions, self.writes | more.writes, self.tools | more.tools
        )


@dataclass(eq=False)
class Whole:
    """A run: who takes part, how many tasks it has, and how often they have changed hands."""

    members: set[str]
    tasks: int = 1
    handoffs: int = 0

    def joined(self, agent: str) -> None:
        self.members.add(agent)
        self.tasks += 1


@dataclass(eq=False)
class Task:
    """One task: who holds it, what it was passed, and whether the person's whole view came with it."""

    text: str
    session: str
    holder: str
    limits: Limits
    askers: tuple[str, ...]
    run: Whole
    passed: Passed = Passed()
    sees_all: bool = False
    writes_all: bool = False
    told: str = ""  # what its holder reads as its task
    team: frozenset[str] | None = None  # of the plan that it is a step of
    sender: str = ""
    phase: str = ""
    refused: bool = False
    turn: int = 0
    trail: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    parts: "tuple[Task, ...]" = ()  # it was last sent out in
    results: tuple[str, ...] = ()
    wrote: dict[str, set[tuple[Point, int]]] = field(default_factory=dict[str, set[tuple[Point, int]]])
    above: "Task | None" = None
    state: str = "pending"
    result: str = ""
    strangers: bool = False  # whether what it is told is from outside
    took: bool = False  # whether its holder took in something that is

    @property
    def own(self) -> Versions:
        """What its present holder wrote itself, in whichever of its turns."""
        return frozenset(self.wrote.get(self.holder, ()))


@dataclass
class Written:
    value: str
    agent: str
    version: int
    outside: bool = False


class Rights:
    """The formula: what is passed, what the card names, its own memory and what it wrote, all under the ceiling."""

    def __init__(self, team: dict[str, Member]) -> None:
        self.team = team
        self.entries: dict[Point, Written] = {}
        self.versions: dict[Point, int] = {}

    def base(self, task: Task) -> Points:
        """The addresses that the holder sees, whoever writes there."""
        card = self.team[task.holder]
        own = EVERYWHERE if task.sees_all else task.passed.sees | points(card.reads) | self._memory(task)
        return task.limits.sees & own

    def sight(self, task: Task) -> Points:
        """What it sees right now: those addresses, and the versions it wrote or was passed, where they still stand."""
        standing = {point for point, version in task.own | task.passed.versions if self._stands(task, point, version)}
        return self.base(task) | (task.limits.sees & standing)

    def reach(self, task: Task) -> Points:
        card = self.team[task.holder]
        own = EVERYWHERE if task.writes_all else task.passed.writes | points(card.writes) | self._memory(task)
        return task.limits.writes & own

    def kit(self, task: Task) -> frozenset[str]:
        card = self.team[task.holder]
        return (task.limits.tools & (card.tools | task.passed.tools)) - card.denies

    def outside(self, task: Task) -> bool:
        """Whether what the holder says is from outside, because it took in something that is; unless it vouches."""
        return task.took and not self.team[task.holder].vouches

    def given(self, task: Task, along: Along) -> Passed:
        """Of what the holder sees, may write and may use, the part that it names."""
        sees = points(along.sees or ())
        return Passed(
            self.base(task) & sees,
            frozenset((point, version) for point, version in task.own | task.passed.versions if point in sees),
            self.reach(task) & points(along.writes or ()),
            self.kit(task) & (along.tools or frozenset()),
        )

    @staticmethod
    def _memory(task: Task) -> Points:
        return frozenset(point for point in EVERYWHERE if point[0] == f"memory:{task.holder}")

    def _stands(self, task: Task, point: Point, version: int) -> bool:
        there = self.entries.get(self.address(*point, task.session))
        return there is not None and there.version == version

    # -- entries ------------------------------------------------------------------------------------------------------

    @staticmethod
    def address(namespace: str, key: str, session: str) -> Point:
        return (f"board:{session}" if namespace == BOARD_NAME else namespace, key)

    def written(self, at: Point, value: str, agent: str = "", *, outside: bool = False) -> int:
        version = self.versions[at] = self.versions.get(at, 0) + 1
        self.entries[at] = Written(value, agent, version, outside)
        return version

    def removed(self, at: Point) -> bool:
        return self.entries.pop(at, None) is not None

    def get(self, task: Task, act: Get, _value: str) -> object:
        point = (act.namespace, act.key)
        if point not in self.sight(task):
            return ("refused", "not-visible")
        there = self.entries.get(self.address(*point, task.session))
        if there is None:
            return None
        task.took |= there.outside
        return there.value if act.namespace == BOARD_NAME else (there.value, there.agent, there.version)

    def query(self, task: Task, act: Query, _value: str) -> object:
        wanted = frozenset(at for at in EVERYWHERE if at[0] == act.namespace and at[1].startswith(act.prefix or ""))
        seen = self.sight(task) & wanted
        if not seen and any(point in wanted for point, _ in task.own | task.passed.versions):
            raise Unsaid  # none of what it wrote or was passed stands any more: nothing there, or nothing to see?
        if not seen:
            return ("refused", "not-visible")
        there = {point: self.entries.get(self.address(*point, task.session)) for point in seen}
        task.took |= any(one.outside for one in there.values() if one is not None)
        return sorted((point[1], one.value) for point, one in there.items() if one is not None)

    def shown(self, task: Task) -> list[tuple[Point, Written]]:
        """List what was passed along by name, stands there and is seen, in order."""
        sight, own = self.sight(task), {point for point, _ in task.own}
        for point, version in task.passed.versions:
            if point not in task.passed.sees and (
                point in own or (point in sight and not self._stands(task, point, version))
            ):
                raise Unsaid  # another version than the one that was passed, which it sees for another reason
        named = (task.passed.sees | {point for point, _ in task.passed.versions}) & sight
        there = {at: self.entries.get(at) for at in (self.address(*point, task.session) for point in named)}
        return sorted(((at, one) for at, one in there.items() if one is not None), key=lambda pair: pair[0])

    def put(self, task: Task, act: Put, value: str) -> object:
        point = (act.namespace, act.key)
        if (answer := self._not_writable(task, point)) is not None:
            return answer
        at = self.address(*point, task.session)
        if act.expect is not None:
            if point not in self.sight(task):
                return ("refused", "not-visible")
            there = self.entries.get(at)
            if act.expect != (there.version if there else 0):
                return ("conflict", "")
        version = self.written(at, value, task.holder, outside=self.outside(task))
        task.wrote.setdefault(task.holder, set()).add((point, version))
        return version

    def remove(self, task: Task, act: Remove, _value: str) -> object:
        point = (act.namespace, act.key)
        if (answer := self._not_writable(task, point)) is not None:
            return answer
        if point not in self.sight(task):
            return ("refused", "not-visible")
        return self.removed(self.address(*point, task.session))

    def _not_writable(self, task: Task, point: Point) -> object:
        if point in self.reach(task):
            return None
        if any(one == point for one, _ in task.own):
            raise Unsaid  # whether it may go on writing there when its rights have changed since
        return ("refused", "not-writable")

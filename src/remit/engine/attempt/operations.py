"""One attempt at a task, and the ids of its operations, which are the same in a rerun."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from remit.core.backoff import ATTEMPTS
from remit.core.events import Event, read
from remit.core.kinds.tasks import Lineage, Queued
from remit.core.kinds.workspace import EffectDone
from remit.core.records import NamedTuple
from remit.core.values import digest

# The tool call that the current code is part of, and its owner: a child may run in its asker's context. The place is
# named after the call's id; the position leaves out the random part of that id.
_INSIDE: Final[ContextVar[tuple[Operations, str, str] | None]] = ContextVar("remit.inside", default=None)


class Attempt(NamedTuple):
    """One attempt at a task: the claim under which this process runs it, and its queue settings.

    `number` counts the claims, `failures` the earlier failures, `attempts` is the maximum (0: the agent's policy).
    `origin` is the first task of the retry lineage; work that any of them finished is reused.
    """

    fence: int = 1
    number: int = 1
    failures: int = 0
    origin: str = ""
    asked_how: str = "delegate"
    queued: bool = False
    timeout: int = 0
    attempts: int = ATTEMPTS

    @property
    def is_rerun(self) -> bool:
        """Whether there was an earlier attempt, of this task or of a task whose work it continues. The fence shows this
        and `number` does not, because a release lowers the number of attempts but never the fence."""
        return self.fence > 1 or self.origin != ""


FIRST: Final = Attempt()


def started_attempt(queued: Queued, lineage: Lineage | None) -> Attempt:
    """Return the attempt of a queued task that starts at once."""
    origin, failures = lineage if lineage is not None else ("", 0)
    how, timeout, attempts = queued.asked_how, queued.timeout, queued.attempts
    return Attempt(1, 1, failures, origin, how, queued=True, timeout=timeout, attempts=attempts)


class KeptEffects:
    """The effects that earlier attempts of a task recorded. Each is returned once, to the same request: the same name,
    arguments and position among equal ones."""

    __slots__ = ("_left", "_taken", "waiting")

    def __init__(self, events: Iterable[Event]) -> None:
        self._left = {event.op: event for event in events if event.op is not None and event.text}
        self._taken: asyncio.Event | None = None
        # Asyncio tasks that wait for others to request recorded effects.
        self.waiting: set[asyncio.Task[object] | None] = set()

    def take(self, op: str) -> EffectDone | None:
        """Return the record of an effect, or None."""
        event = self._left.pop(op, None)
        if event is None:
            return None
        if self._taken is not None:
            self._taken.set()
            self._taken = None
        return read(event, EffectDone)

    def forget(self, prefix: str) -> None:
        """Drop the effects whose ids have this prefix, because the tool call that contains them is recorded as a
        whole."""
        for op in [op for op in self._left if op.startswith(prefix)]:
            del self._left[op]

    def put_back(self, events: Iterable[Event]) -> None:
        """Make the effects of these events available again, because the turn that recorded them restarts within this
        attempt."""
        self._left |= {event.op: event for event in events if event.op is not None and event.text}

    def first_left(self, prefixes: Iterable[str]) -> EffectDone | None:
        """Return the first effect not taken yet whose id has one of these prefixes, or None."""
        begins = tuple(prefixes)
        event = next((event for op, event in self._left.items() if op.startswith(begins)), None)
        return None if event is None else read(event, EffectDone)

    async def someone_comes(self) -> None:
        """Wait until any recorded effect is taken."""
        if self._taken is None:
            self._taken = asyncio.Event()
        await self._taken.wait()


class Operations:
    """The ids of the operations of a task. They are the same in a rerun, so that nothing is done twice.

    An id consists of the task, the try, the turn and its holder, the kind of operation, and how often that kind was
    done before in this turn.
    """

    # Defaults of the class: an instance has only the values that differ, and there may be thousands of tasks.
    has_tools = False  # whether any tool was called; in most tasks none is
    turns = 0  # number of handoffs and parallel handoffs so far
    generation = 0  # how often the conversation of this turn has restarted
    visited: list[str] | None = None  # the turns that it has reached; None in the first attempt
    kept: KeptEffects | None = None  # effects of earlier attempts, once loaded
    chain: str | None = None  # the path to this task, once computed
    _turn = "0"
    _restart = ""  # the id part of a restarted conversation
    _failed: dict[str, list[str]] | None = None
    _given: set[str] | None = None  # tasks of earlier tries whose results this one used
    _positions: dict[str, str] | None = None  # positions of tool calls, by id

    def __init__(self, task: str, attempt: Attempt, turns: int = 0, holder: str = "") -> None:
        self._origin = attempt.origin or task
        self._failures = attempt.failures
        self._holder = holder
        self._counts: dict[str, int] = {}
        if attempt is not FIRST and attempt.is_rerun:
            self.visited = []
        if turns or self.visited is not None:
            self.turns = turns
            self._begin()

    @property
    def origin(self) -> str:
        """The first task of the retry lineage."""
        return self._origin

    def next_turn(self) -> None:
        """Advance to the next turn of the task: the operations that follow get ids of that turn, counted from the
        start."""
        self.turns += 1
        self._begin()

    def skip_to(self, turns: int) -> None:
        """Go to a later turn by its number; the turns between count as not visited."""
        if self.turns < turns:
            self.turns = turns
            self._begin()

    def leave_out_turn(self) -> None:
        """Count the present turn as not visited: its agent is not called again, so it requests no recorded effect."""
        if self.visited is not None:
            self.visited.remove(self._turn)

    def handed_to(self, holder: str) -> None:
        """Set the holder whose name is in the ids, for the turn after a handoff. If it is another agent, count the
        operations from the start."""
        if holder != self._holder:
            self._holder = holder
            self._begin()

    def restart_talk(self, generation: int) -> None:
        """Restart the conversation of this turn for the `generation`-th time: the conversation and its tool calls get
        new ids. All other operations of the turn are counted from the start again and get the same ids as before."""
        self.generation = generation
        self._restart = f"/restart/{generation}"
        self._counts = {}

    def _begin(self) -> None:
        self._turn = f"{self.turns}.{self._holder}" if self.turns else "0"
        self.generation = 0
        self._restart = ""
        self._counts = {}
        if self.visited is not None:
            self.visited.append(self._turn)

    def ids(self, what: str, *about: str) -> list[str]:
        """Return the ids of the next operation of this kind, one for each try: the current try first, then the earlier
        ones, latest first. Operations with different `about` are counted separately."""
        counted = self._next(self._about(what, about))
        return [f"{self._origin}/0/{counted}"] if not self._failures else self._of_every_try(counted)

    def coming(self, what: str, *about: str) -> list[str]:
        """Return the ids that `ids` would return, without counting the operation."""
        name = self._about(what, about)
        return self._of_every_try(f"{name}/{self._counts.get(name, 0) + 1}")

    def _about(self, what: str, about: tuple[str, ...]) -> str:
        where = self._where if self.has_tools else self._turn
        return f"{where}/{what}/{digest(chr(0).join(about))}" if about else f"{where}/{what}"

    def _of_every_try(self, counted: str) -> list[str]:
        if self._failures == 0:  # nearly always
            return [f"{self._origin}/0/{counted}"]
        return [f"{self._origin}/{failures}/{counted}" for failures in range(self._failures, -1, -1)]

    @property
    def effects(self) -> str:
        """The prefix of the ids of all effects of this task. It is the same in every try, because effects are not
        undone."""
        return f"{self._origin}/effects/"

    @property
    def came_through(self) -> list[str]:
        """The prefixes of the ids of all effects of the turns that this attempt has reached. Empty if the attempt is
        not a rerun."""
        return [f"{self.effects}{turn}/" for turn in self.visited or ()]

    @property
    def of_turn(self) -> list[str]:
        """The prefixes of the ids of all delegations and payments of this turn, in every try."""
        tries = [f"{self._origin}/{failures}/{self._turn}/" for failures in range(self._failures + 1)]
        return [*tries, f"{self._origin}/spends/{self._turn}/"]

    @property
    def left_over(self) -> str:
        """The id of the record of finished work that this turn, run again, did not request."""
        return f"{self._origin}/{self._failures}/{self._turn}/left"

    def was_asked(self, op: str) -> bool:
        """Whether this attempt has requested an operation of its turn. Always True for an operation inside a tool call
        or a restarted conversation, because it is not counted by turn."""
        counted = op.removeprefix(f"{self._origin}/").partition("/")[2].partition("/again/")[0]
        name, _, number = counted.rpartition("/")
        if "/tool/" in name or "/restart/" in name or not number.isdecimal():
            return True
        return self._counts.get(name, 0) >= int(number)

    def effect(self, name: str, args: str) -> str:
        """Return the id of the next effect with this name and these arguments."""
        return f"{self.effects}{self._next(f'{self._where}/{digest(name)}/{args}')}"

    def model(self, digest_: str) -> str:
        """Return the id of the next model request with this digest. It is the same in every try: a recorded answer is
        not requested again."""
        return f"{self._origin}/models/{self._next(f'{self._turn}/{digest_}')}"

    @property
    def turn(self) -> str:
        """The name of the current turn in ids: its number and its holder, or "0" for the first turn."""
        return self._turn

    @property
    def where(self) -> str:
        """The id part for conversations of the current code: the turn with the generation of its conversation or,
        inside a tool call, the turn and that call."""
        inside = _INSIDE.get()
        return f"{self._turn}{self._restart}" if inside is None or inside[0] is not self else f"{self._turn}{inside[1]}"

    @property
    def generations(self) -> str:
        """The prefix of the ids that record restarts of this turn's conversation. The number of the restart follows the
        prefix."""
        return f"{self._origin}/restart/{self._turn}/"

    def of_conversations(self, what: str) -> str:
        """The prefix of the ids of all `models` or `tools` of this turn, in every generation of its conversation.
        Generations after the first add `restart/{number}/`."""
        return f"{self._origin}/{what}/{self._turn}/"

    @property
    def effects_of_turn(self) -> str:
        """The prefix of the ids of the effects of this turn."""
        return f"{self.effects}{self._turn}/"

    @property
    def effects_left_behind(self) -> list[str]:
        """The prefixes of the ids of effects inside tool calls of earlier generations."""
        before = ["", *(f"restart/{number}/" for number in range(1, self.generation))] if self.generation else []
        return [f"{self.effects_of_turn}{one}tool/" for one in before]

    @property
    def inside_tool(self) -> bool:
        """Whether the current code is part of a tool call."""
        return self._where != self._turn

    def position(self, talk: str) -> str:
        """Return the id of the next answer in a conversation. Its number counts the earlier answers, so it is the same
        in every try, whatever the request contains."""
        place = f"{self.where}/talk/{talk}"
        return f"{self._origin}/models/{place}/{self._counts.get(place, 0) + 1}"

    def answers(self, talk: str) -> int:
        """Return the number of answers of a conversation that this attempt has used, recorded or new."""
        return self._counts.get(f"{self._turn}{self._restart}/talk/{talk}", 0)

    @property
    def past(self) -> str:
        """The id under which a run records the earlier runs of its session that its agent was shown. It is the same in
        every try."""
        return f"{self._origin}/past"

    def answered(self, talk: str) -> None:
        """Advance to the next position of a conversation."""
        where = self.where
        self._next(f"{where}/talk/{talk}")
        self._next(f"{where}/answers")

    def tools_of(self, call: str) -> str:
        """The prefix of the ids of all tool calls that a model made under this call id."""
        return f"{self._origin}/tools/{self.where}/{digest(call)}/"

    def tool(self, call: str, about: str) -> str:
        """Return the operation id of the next tool call: `call` is the id that the model gave it, `about` its tool and
        arguments. Every try of the task gets the same one."""
        where = self.where
        op = f"{self._origin}/tools/{self._next(f'{where}/{digest(call)}/{about}')}"
        if self._positions is None:
            self._positions = {}
        answers = self._counts.get(f"{where}/answers", 0)
        at = f"{where}/tools/{answers}/{about}"
        self._positions[op] = self._without_chance(f"tools/{self._next(at)}")
        return op

    @contextmanager
    def inside(self, tool: str) -> Generator[None]:
        """While the body runs, put the tool call into the ids of the operations of the current code. A rerun skips
        recorded tool calls, so operations inside the other calls cannot be counted from the start of the turn."""
        self.has_tools = True
        place, position = self._tool_name(tool), digest(self.position_of(tool))
        token = _INSIDE.set((self, f"{self._restart}/tool/{place}", f"{self._restart}/tool/{position}"))
        try:
            yield
        finally:
            _INSIDE.reset(token)

    def _tool_name(self, tool: str) -> str:
        """Return the id part that stands for a tool call in the ids of the operations inside it. It leaves out the
        origin, because a fork replaces the origin."""
        return digest(tool.removeprefix(f"{self._origin}/"))

    def inside_of(self, tool: str) -> str:
        """Return the id part for conversations inside a tool call; see `where`."""
        return f"{self._turn}{self._restart}/tool/{self._tool_name(tool)}"

    def position_of(self, op: str) -> str:
        """Return the position of an operation in its task, without any random part: neither the task's id, nor the try,
        nor the ids that a model gave its calls. So it is the same after a restore from a backup."""
        if self._positions is not None and op in self._positions:
            return self._positions[op]
        kind, _, rest = op.removeprefix(f"{self._origin}/").partition("/")
        return self._without_chance(rest if kind.isdecimal() else f"{kind}/{rest}")

    def position_to_keep(self, op: str) -> str:
        """Return the position to record with an operation inside a tool call, because the position cannot be derived
        from its id. Return "" for any other operation."""
        return self.position_of(op) if self.inside_tool else ""

    def _without_chance(self, named: str) -> str:
        inside = _INSIDE.get()
        return named if inside is None or inside[0] is not self else named.replace(inside[1], inside[2])

    @property
    def call_under_way(self) -> str:
        """The place of the current tool call; empty if there is none."""
        inside = _INSIDE.get()
        return "" if inside is None or inside[0] is not self else inside[1]

    def effects_inside(self, tool: str) -> str:
        """Return the prefix of the ids of all effects inside a tool call."""
        return f"{self.effects}{self._turn}{self._restart}/tool/{self._tool_name(tool)}/"

    def spend(self, why: str, *amounts: str) -> str:
        """Return the id of the next payment with this reason and these amounts. Like the id of an effect, it is the
        same in every try."""
        about = digest(chr(0).join((why, *amounts)))
        return f"{self._origin}/spends/{self._next(f'{self._where}/{about}')}"

    def asking(self, what: str, *about: str) -> list[str]:
        """Return the ids of the next question of this kind: in this try, then in earlier ones. An approval is found in
        every try, so a person is not asked twice."""
        return self.ids(f"asks/{what}", *about)

    @property
    def reviews(self) -> str:
        """The prefix of the ids of all questions about results of this task, in every try."""
        return f"{self._origin}/reviews/"

    def review(self, number: int) -> str:
        """Return the id of question `number` about the result of this turn. If a person edits the result and the edit
        does not fit the agent's form, the next question follows."""
        return f"{self.reviews}{self._failures}/{self._turn}/{number}"

    def handing(self, content: str, *, of_parts: bool = False) -> str:
        """Return the id under which a handoff is approved. Checking the handoff and making it use the same id. A
        handoff that joins parts (`of_parts`) uses the id of the turn before, which sent the parts and checked the
        join."""
        before = self.turns - 1
        turn = self._turn if not of_parts else f"{before}.{self._holder}" if before else "0"
        return f"{self._origin}/{self._failures}/{turn}/handing/{digest(content)}"

    @property
    def _where(self) -> str:
        inside = _INSIDE.get()
        return self._turn if inside is None or inside[0] is not self else f"{self._turn}{inside[1]}"

    def _next(self, name: str) -> str:
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return f"{name}/{count}"

    def give(self, task: str) -> None:
        """Record that this run used the result of a task of an earlier try."""
        if self._given is None:
            self._given = set()
        self._given.add(task)

    def was_given(self, task: str) -> bool:
        return self._given is not None and task in self._given

    # -- retries of subtasks ----------------------------------------------------------------------------------

    def note_failure(self, op: str, origin: str) -> None:
        """Record the origin of a subtask that did not complete: an equal request continues its lineage."""
        if self._failed is None:
            self._failed = {}
        self._failed.setdefault(_unnumbered(op), []).append(origin)

    def failed_before(self, op: str) -> str:
        """Remove and return the origin of the latest subtask of the same operation that did not complete, or ""."""
        failed = self._failed.get(_unnumbered(op)) if self._failed else None
        return failed.pop() if failed else ""


def restarted_talks(origin: str) -> str:
    """Return the prefix of the ids under which the first turn of a run restarted its conversation."""
    return f"{origin}/restart/0/"


def first_position(origin: str, number: int) -> str:
    """Return the id of answer `number` in the first conversation of the first turn of a run."""
    return f"{origin}/models/0/talk//{number}"


def tools_of_first_turn(origin: str, call: str) -> str:
    """Return the prefix of the ids of all tool calls that a model made under this id in the first turn of a run."""
    return f"{origin}/tools/0/{digest(call)}/"


def _unnumbered(op: str) -> str:
    return op.rpartition("/")[0]

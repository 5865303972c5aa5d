"""Noninterference: two worlds that differ only in what a holder may not see look the same to it, to the byte.

In each world a lead asks a spy, which tries everything a turn can do and notes whatever comes back: values, versions,
times, ids, prompts, what tools tell a model, and the texts of errors. What differs are entries, runs, the tasks of
others and the errors that they ended with, and whether there is an agent whom nobody may ask.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random  # noqa: TID251 - each from a seed
from typing import Any

import anyio

from oracle.generating import Generator
from oracle.model import Model
from oracle.playing import NO_LOOPS, bounds, scopes
from oracle.scenario import (
    BOARD_NAME,
    EVERYWHERE,
    KEYS,
    NAMESPACES,
    SESSIONS,
    STRANGER,
    Along,
    Area,
    Member,
    Point,
    Points,
    Run,
    Scenario,
    Within,
)
from remit import Card, Command, Outcome, Plan, Refused, RemitError, Runtime, Send, Step, Turn, Workspace
from remit.ports import Database
from remit.ports.models import ToolCall
from remit.settings import BreakerPolicy, Policy, Serving, System
from remit.testing import CountedIds, FakeClock

HERE, ELSEWHERE = SESSIONS
NOON = 1_800_000_000 * 1_000_000
PATIENCE = 10
MOMENT = 2  # of real time, in seconds: what takes longer waits for something that never comes
FIRST_HIDDEN = 10  # id
LEAD, MIDDLE, SPY, HELPER, WITNESS = "ann", "bob", "cat", "dan", "eve"
TEAM = frozenset((LEAD, MIDDLE, SPY, HELPER, WITNESS))


@dataclass
class Case:
    """A team, how the spy is asked, what is the same in both worlds, what is hidden, and what the spy tries."""

    seed: int
    team: tuple[Member, ...]
    ceiling: Within
    hops: list[tuple[str, Along]]
    shared: list[tuple[Point, str]]
    hidden: Points
    kept: Points  # what is hidden and what it may not write either
    tries: list[tuple[str, Point, int]]


def made(seed: int) -> Case:
    """Make a case. What is hidden from the spy is what it neither sees nor may write."""
    chance = Generator(seed)
    dice = Random(seed)
    team = tuple(_silent(chance.member(name)) for name in sorted(TEAM))
    agents = TEAM if dice.random() < 0.5 else None  # or else it is the spy's card that names those it may ask
    ceiling = replace(chance.within(0.15), agents=agents, depth=4, members=None, tasks=None)
    along = replace(
        chance.along(queued=True), within=replace(chance.within(0.1), agents=None, depth=None, members=None, tasks=None)
    )
    spy = (SPY, replace(along, sees=chance.areas(), writes=chance.areas()))
    hops = [(MIDDLE, along), spy] if dice.random() < 0.5 else [spy]
    model = Model(Scenario(seed, team, ceiling))
    task = model.first(Run(LEAD, "lead", HERE))
    for to, along in hops:
        task = model.child(task, to, to, along)
    hidden = EVERYWHERE - model.rights.sight(task)
    kept = hidden - model.rights.reach(task)
    shared = [
        (point, f"shared {number}") for number, point in enumerate(sorted(EVERYWHERE - hidden)) if dice.random() < 0.6
    ]
    verbs = [*TRIES, *(name for name in TRIES for _ in range(2) if "/" in name)]
    where = [*sorted(EVERYWHERE), *sorted(EVERYWHERE - hidden) * 2]
    tries = [(dice.choice(verbs), dice.choice(where), dice.randint(0, 3)) for _ in range(dice.randint(6, 14))]
    return Case(seed, team, ceiling, hops, shared, hidden, kept, tries)


def _silent(member: Member) -> Member:
    """The lead and the middle may ask; the helper has nothing of its own."""
    if member.name == HELPER:
        return Member(HELPER)
    return replace(member, asks=None)


# -- what a spy can try -------------------------------------------------------------

TRIES: dict[str, Callable[[Turn, Point, int], Any]] = {
    "get/": lambda turn, at, _: turn.context.entry(*at),
    "value/": lambda turn, at, _: turn.context.get(*at),
    "structured/": lambda turn, at, _: turn.context.get_structured(*at),
    "query/": lambda turn, at, n: turn.context.query(at[0], limit=n + 1),
    "many": lambda turn, at, n: turn.context.query_many([at[0], "notes", "code"], limit=n + 1),
    "prefix/": lambda turn, at, _: turn.context.query(at[0], prefix=at[1][:1]),
    "touch/": lambda turn, at, _: turn.context.touch(*at),
    "set/": lambda turn, at, n: turn.context.set(*at, f"mine {n}", ttl=60 if n else None),
    "expect/": lambda turn, at, n: turn.context.set(*at, "mine", expect=n),
    "memory/": lambda turn, at, _: turn.context.set_with_extension(*at, "kept"),
    "remove/": lambda turn, at, _: turn.context.remove(*at),
    "board read": lambda turn, at, _: turn.context.board.get(at[1]),
    "board write": lambda turn, at, n: turn.context.board.set(at[1], n),
    "board list": lambda turn, _, n: turn.context.board.query(n + 1),
    "board delete": lambda turn, at, _: turn.context.board.remove(at[1]),
    "board text": lambda turn, *_: turn.context.board.snapshot(),
    "look": lambda turn, *_: _looked(turn),
    "find": lambda turn, at, _: turn.find(at[0]),
    "inbox": lambda turn, *_: turn.inbox(),
    "prompt": lambda turn, *_: turn.prompt(),
    "offers": lambda turn, *_: turn.offers(),
    "before": lambda turn, *_: turn.talk_so_far(),
    "tool/": lambda *given: _used(*given),  # noqa: PLW0108 - it is defined below
    "send": lambda turn, _, n: turn.send((LEAD, STRANGER, HELPER, WITNESS)[n], "hello"),
    "ask": lambda turn, _, n: _ended(turn, (LEAD, STRANGER, HELPER, WITNESS)[n], "fail" if n % 2 else "work"),
    "ask all": lambda turn, _, n: turn.delegate_all([(HELPER, f"fail {n}"), (STRANGER, "work"), (WITNESS, "fail")]),
    "ask for": lambda turn, at, _: turn.delegate(capability=f"keep {at[1]} {STRANGER}", task="work"),
    "team": lambda turn, _, n: turn.run_plan(Plan([Step("s", "s", agent=(STRANGER, HELPER, WITNESS, MIDDLE)[n])])),
    "lead": lambda turn, _, n: turn.run_team("a goal", (STRANGER, HELPER, WITNESS, MIDDLE)[n]),
    "spend": lambda turn, at, _: turn.spend("$0.01", why=at[1]),
    "take in": lambda turn, at, _: turn.mark_untrusted(at[1], "a page"),
    "report": lambda turn, at, _: turn.progress(at[1]),
    "own": lambda turn, *_: (
        turn.by,
        turn.session,
        turn.attempt,
        turn.tags,
        turn.meta,
        turn.data,
        len(turn.id),
        len(turn.origin),
    ),
    "data": lambda turn, *_: turn.data_as(int),
    "deps": lambda turn, *_: turn.deps,
    "spawn": lambda turn, _, n: turn.spawn((STRANGER, HELPER)[n % 2], f"work {n}"),
    "pass on/": lambda turn, at, _: turn.delegate(HELPER, f"read {at[0]} {at[1]}", sees=scopes((_area(at),))),
    "submit/": lambda turn, at, n: turn.submit(HELPER, f"read {at[0]} {n}", sees=scopes((_area(at),)), key=at[1]),
    "plan": lambda turn, *_: turn.hand_off([Send(STRANGER, "x")], join=STRANGER),
    "hand over": lambda turn, _, n: turn.hand_off((LEAD, STRANGER, WITNESS, HELPER)[n]),
    "status": lambda turn, at, n: turn.submitted(_id(at, n)).status(),
    "await": lambda turn, at, n: turn.submitted(_id(at, n)).wait(timeout=1),
    "cancel": lambda turn, at, n: turn.submitted(_id(at, n)).cancel(),
    "retry": lambda turn, at, n: turn.submitted(_id(at, n)).retry(),
    "save": lambda turn, at, _: turn.artifacts.save(at[1].encode(), "mine"),
    "open": lambda turn, at, _: turn.artifacts.open(f"sha256:{hashlib.sha256(at[1].encode()).hexdigest()}"),
    "once": lambda turn, at, _: turn.once(at[1], lambda: at[0]),
}


async def _used(turn: Turn, at: Point, number: int) -> object:
    """What a model is told of a tool that looks something up."""

    async def look_up(_given: dict[str, Any]) -> str:
        return str(await turn.context.entry(*at))

    names = sorted(turn.tools) if number else ["dig"]
    name = names[number % len(names)] if names else "fly"
    return await turn.tool(ToolCall(name, {"at": [*at], "number": number}, f"{at}{number}{len(turn.talks())}"), look_up)


async def _ended(turn: Turn, to: str, task: str) -> object:
    outcome: Outcome = await turn.outcome(to, task)
    return (outcome.state, outcome.value, str(outcome.error), outcome.trust)


# What a spy cannot try: what waits for a person, what needs a model, and what only costs money.
UNTRIED = frozenset(("ask_approval", "ask_human", "begin_talk", "kept_answers", "model", "paid_call", "report_tokens"))


def tried() -> set[str]:
    """The names that spies look up."""
    return {name for do in (*TRIES.values(), _used, _looked, _ended) for name in do.__code__.co_names}


def _id(at: Point, number: int) -> str:
    """An id that something of the other world may have: they are counted."""
    ids = CountedIds(FIRST_HIDDEN + sorted(EVERYWHERE).index(at) * 4 + number)
    return ids.new()


def _area(at: Point) -> Area:
    return Area(at[0]) if at[0] == BOARD_NAME else Area(*at)


def _looked(turn: Turn) -> object:
    whom = [card.name for card in turn.agents()]
    return (
        turn.remit,
        sorted(turn.tools),
        whom,
        turn.handoff,
        turn.agent,
        turn.card,
        turn.asker,
        turn.is_requeued,
        turn.phase,
        turn.task,
        turn.trust,
    )


async def noted(name: str, turn: Turn, at: Point, number: int) -> str:
    """Try one thing, and write down whatever comes back, to the byte."""
    try:
        answer = TRIES[name](turn, at, number)
        if hasattr(answer, "__await__"):
            with anyio.move_on_after(MOMENT) as moment:
                answer = await answer
            if moment.cancelled_caught:
                return f"{name} {at}: waits"
    except RemitError as error:
        return f"{name} {at}: {type(error).__name__} {_rule(error)}: {error}"
    if isinstance(answer, Command):
        answer = answer.goto
    told = [tuple(one) if isinstance(one, tuple) else one for one in answer] if isinstance(answer, list) else answer
    told = tuple(told) if isinstance(told, tuple) else told
    return f"{name} {at}: {told!r}"


def _rule(error: RemitError) -> str:
    """The word for programs; it tells owners whom there is and whom there is not, models are told the sentence."""
    rule = str(getattr(error, "rule", ""))
    return "not-allowed" if rule == "unknown" else rule


# -- a world -------------------------------------------------------------


class World:
    """One of the two worlds of a case: `dice` makes what is hidden in it."""

    def __init__(self, case: Case, database: Database, name: str, dice: Random) -> None:
        self._case = case
        self._dice = dice
        self._database = database
        self._name = name
        self._clock = FakeClock(NOON - dice.randint(1, 10**6) * 1_000_000)
        self._stranger = dice.random() < 0.5
        self.seen: list[str] = []

    async def spied(self) -> list[str]:
        """What the spy sees of this world, and after that whether what is hidden is as it was."""
        with anyio.fail_after(PATIENCE):
            await self._hide()
            self._clock.jump((NOON - self._clock.now()) / 1e6)
            rt = self._runtime(10**6)
            for (namespace, key), value in self._case.shared:
                await _owned(rt.workspace, namespace, key, value)
            before = await self._hidden(rt)
            outcome = await rt.outcome(LEAD, "lead", session=HERE)
            if not outcome.ok:
                raise RuntimeError(f"the spy was not reached: {outcome.error}")
            same = await self._hidden(rt) == before
        return [*self.seen, f"what is hidden is {'as it was' if same else 'changed'}"]

    def _runtime(self, first: int, name: str = "") -> Runtime:
        rt = Runtime(
            self._database,
            workspace=name or self._name,
            bounds=bounds(self._case.ceiling, NOON),
            system=System(clock=self._clock, ids=CountedIds(first)),
            serving=Serving(concurrency=0),
            policy=Policy(breaker=BreakerPolicy(failures=1_000), loops=NO_LOOPS),  # how often others fail is known
        )
        asks = "*" if self._case.ceiling.agents else TEAM
        for member in (*self._case.team, *([Member(STRANGER)] if self._stranger else [])):
            reads, writes = scopes(member.reads), scopes(member.writes)
            card = Card(
                member.name, can=f"keep {member.name}", asks=asks, tools=member.tools, reads=reads, writes=writes
            )
            rt.add(card, self._answer)
        return rt

    async def _hide(self) -> None:
        """Make what the spy may not see: entries of every age and author, other boards, runs, messages, workspaces."""
        dice = self._dice
        rt = self._runtime(FIRST_HIDDEN)
        await self._hide_runs(rt)
        for point in sorted(self._case.hidden):
            for number in range(dice.choice((0, 0, 0, 1, 3))):
                await _owned(rt.workspace, *point, f"secret {dice.random()}")
                self._clock.jump(number)
                if dice.random() < 0.2:
                    await _removed(rt.workspace, *point)
        for key in KEYS:
            if dice.random() < 0.5:
                await rt.workspace.context(ELSEWHERE).board.set(key, f"secret {dice.random()}")
        if dice.random() < 0.3:
            other = self._runtime(10**6, f"{self._name} next door")
            for namespace, key in dice.sample(sorted(EVERYWHERE), 4):
                await _owned(other.workspace, namespace, key, f"secret {dice.random()}")
            await other.outcome(LEAD, "gossip", session=HERE)

    async def _hide_runs(self, rt: Runtime) -> None:
        dice = self._dice
        if dice.random() < 0.5:
            await rt.outcome(LEAD, "gossip", session=HERE)
        if dice.random() < 0.3:
            await rt.submit(HELPER, "read notes 0", key=dice.choice(KEYS))
        if dice.random() < 0.3:
            await rt.outcome(WITNESS, f"fail {self._told()}", session=HERE)

    async def _hidden(self, rt: Runtime) -> list[Any]:
        context = rt.workspace.context(HERE)
        everything = await context.query_many([one for one in NAMESPACES if one != BOARD_NAME])
        everything += [one._replace(namespace=BOARD_NAME) for one in await context.board.query()]
        return sorted(tuple(map(str, one)) for one in everything if (one.namespace, one.key) in self._case.kept)

    async def _answer(self, turn: Turn) -> object:
        if turn.task == "gossip":
            return await self._gossip(turn)
        if turn.task.startswith("fail"):
            raise ValueError(f"{turn.task}: it cannot be done")
        if turn.agent == WITNESS or turn.task.startswith("work"):
            return turn.task
        if turn.agent == HELPER:
            return await noted("get/", turn, tuple(turn.task.split()[1:3]), 0) if turn.task.count(" ") > 1 else ""
        if turn.agent == SPY:
            for name, at, number in self._case.tries:
                self.seen.append(await noted(name, turn, at, number))
            return ""
        asked = [to for to, _ in self._case.hops].index(turn.agent) + 1 if turn.agent != LEAD else 0
        await turn.outcome(WITNESS, f"{'fail' if self._dice.random() < 0.5 else 'keep'} {self._told()}")
        to, along = self._case.hops[asked]
        how = {"sees": scopes(along.sees or ()), "tools": along.tools or (), "within": bounds(along.within, NOON)}
        if along.writes is not None:
            how["writes"] = scopes(along.writes)
        return await turn.delegate(to, "spy" if to == SPY else f"{self._told()}", **how)

    async def _gossip(self, turn: Turn) -> str:
        """Leave messages, entries and files behind that are no business of the spy."""
        await turn.send(SPY, f"secret {self._dice.random()}")
        for namespace, key in sorted(self._case.hidden):
            if namespace != BOARD_NAME and self._dice.random() < 0.5:
                with suppress(Refused):
                    await turn.context.set(namespace, key, f"secret {self._dice.random()}")
        for key in KEYS:
            if self._dice.random() < 0.5:
                await turn.artifacts.save(key.encode(), f"secret {self._dice.random()}", trust="untrusted")
        return ""

    def _told(self) -> str:
        """What others are asked is no business of the spy."""
        return f"secret {self._dice.random()}"


async def _owned(workspace: Workspace, namespace: str, key: str, value: str) -> None:
    context = workspace.context(HERE)
    await (context.board.set(key, value) if namespace == BOARD_NAME else context.set(namespace, key, value))


async def _removed(workspace: Workspace, namespace: str, key: str) -> None:
    context = workspace.context(HERE)
    await (context.board.remove(key) if namespace == BOARD_NAME else context.remove(namespace, key))


async def check(seed: int, databases: tuple[Database, Database]) -> None:
    """Raise if the spy of this seed can tell its two worlds apart, or change what it may not."""
    case = made(seed)
    one = await World(case, databases[0], f"w{seed}", Random(2 * seed)).spied()
    other = await World(case, databases[1], f"w{seed}", Random(2 * seed + 1)).spied()
    again = f"  PYTHONPATH=tests python -m oracle --spy {seed}"
    assert "changed" not in one[-1] + other[-1], f"the spy of seed {seed} changed what is hidden from it\n{again}"
    apart = [f"{here}\n    {there}" for here, there in zip(one, other, strict=True) if here != there]
    assert not apart, "\n  ".join([f"the spy of seed {seed} can tell its worlds apart:", *apart, again])

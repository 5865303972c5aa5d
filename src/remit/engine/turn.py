"""The turn: one call of an agent, and the handle it gets. Its verbs are what agents can do."""

from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack, cast

import anyio

from remit.core import remit as remits
from remit.core.allow import Names
from remit.core.backoff import ATTEMPTS
from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.checks import whole
from remit.core.command import Command, Send, Update
from remit.core.match import Match
from remit.core.message import Message
from remit.core.outcome import Outcome
from remit.core.plan import Plan, Step
from remit.core.remit import Pass, Remit
from remit.core.text import plain, shown
from remit.core.times import span
from remit.engine.attempt.effects import Effects
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.turns import Conductor, Handoff
from remit.engine.delegation import Delegations
from remit.engine.directory import Directory
from remit.engine.plans.running import PlanOptions, PlanOutcome, PlanRunner
from remit.engine.queue.submitting import KEY_LIMIT, TIMEOUT_SECONDS, Submission, TaskQueue
from remit.engine.queue.task import Task
from remit.engine.sharing.access import HolderAccess
from remit.engine.sharing.context import Context
from remit.engine.sharing.entries import Entries
from remit.engine.sharing.inbox import Inbox
from remit.errors import BadInput, Refused


class How(TypedDict, total=False):
    """What may go along with a task."""

    sees: object
    tools: object
    within: Bounds
    seconds: float


class Queue(How, total=False):
    """The same for a task that nobody waits for: under which key, and how often it is tried."""

    key: str
    attempts: int


class Planning(TypedDict, total=False):
    """How a plan is run: how many steps at a time, whether members are told goal and roster, who approves."""

    concurrency: int
    reveal: bool
    approve: Callable[[Step], Awaitable[bool]] | None
    abort: anyio.Event | None


Wish: TypeAlias = Pass | tuple[str, str]


class TurnServices(NamedTuple):
    """What every turn of a runtime works with."""

    delegations: Delegations
    conductor: Conductor
    directory: Directory
    inbox: Inbox
    entries: Entries
    plan_runner: PlanRunner
    tasks: TaskQueue
    effects: Effects


class Turn:
    """Given to an agent when it is asked. What it may do is kept by the engine, not in here."""

    def __init__(self, services: TurnServices, live: LiveTask) -> None:
        self._services = services
        self._live = live

    # -- what it was given ------------------------------------------------------------------------------

    @property
    def task(self) -> str:
        """What to do."""
        return self._live.remit.task

    @property
    def agent(self) -> str:
        """The holder's name."""
        return self._live.remit.holder

    @property
    def asker(self) -> str:
        """Who asked; empty when a person did."""
        return self._live.remit.asker

    @property
    def remit(self) -> Remit:
        """The assignment itself, to look at."""
        return self._live.remit

    @property
    def tools(self) -> Names:
        """The tools this holder may use this time."""
        return remits.kit(self._live.remit, self._live.card)

    @property
    def handoff(self) -> Handoff:
        """How the task came to this holder: `sender` is empty if it was not handed over, `refused` says why it could
        not be handed on, `results` are those of a parallel handoff."""
        live = self._live
        return Handoff(live.sender, live.state, live.trail, live.refusal, live.results)

    @property
    def phase(self) -> str:
        """For the coordinator of a team: "plan" when a plan is asked for, "synthesis" when the pieces are."""
        return self._live.phase

    @cached_property
    def context(self) -> Context:
        """Shared entries, as far as this holder sees them."""
        return Context(HolderAccess(self._services.entries, self._live))

    # -- verbs ------------------------------------------------------------------------------------------

    async def delegate(self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[How]) -> Any:
        """Passes a part on and returns the result.

        `to` names the agent, or `capability` says what it must be able to do. Raises `Refused` when a rule
        says no, and `Failed` when the agent does not deliver; the run goes on either way.
        """
        outcome = await self._services.delegations.delegate(self._live, self._wish(to, task, capability, how))
        return outcome.unwrap()

    async def delegate_all(
        self, wishes: Iterable[Wish], *, at_once: int | None = None, **how: Unpack[How]
    ) -> list[Outcome]:
        """Passes several parts on at the same time and returns what came of each, in the order given.

        One that is refused, fails or is slow never loses the others. `at_once` limits how many run together.
        """
        passes = [self._pass(wish, how) for wish in wishes]
        outcomes: list[Outcome | None] = [None] * len(passes)
        most = whole(at_once, "at_once", least=1)
        limiter = anyio.CapacityLimiter(most) if most else None

        async def one(index: int) -> None:
            if limiter is None:
                outcomes[index] = await self._services.delegations.delegate(self._live, passes[index])
                return
            async with limiter:
                outcomes[index] = await self._services.delegations.delegate(self._live, passes[index])

        async with anyio.create_task_group() as group:
            for index in range(len(passes)):
                group.start_soon(one, index)
        return [outcome for outcome in outcomes if outcome is not None]

    async def hand_off(self, to: str | list[Send], update: Update | None = None, *, join: str = "") -> Command:
        """Hands the task over: `return await turn.hand_off("billing", {"phase": "refund"})`.

        Raises `Refused` when a rule says no; the present holder is still in charge then. What it gives back is the
        command to return: nothing changes hands before the turn is over.
        """
        command = Command(cast("str", to), update or {}, join)
        await self._services.conductor.allowed(self._live, command)
        return command

    async def run_plan(self, plan: Plan, **options: Unpack[Planning]) -> PlanOutcome:
        """Runs a plan with those this holder may ask, and tells what became of every step."""
        return await self._services.plan_runner.run(self._live, plan, PlanOptions(**options))

    def used(self, tokens: int) -> None:
        """Says how many tokens this turn has used; it counts against the bounds of the run."""
        self._live.must_be_at_work()
        used = whole(tokens, "tokens")
        if used is None:
            raise BadInput("say how many tokens were used, as a whole number")
        self._live.tokens += used

    def find(self, capability: str) -> list[Card]:
        """The agents this holder may ask that can do this, best first."""
        return [match.card for match in self._matches(capability)]

    async def submit(
        self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[Queue]
    ) -> Task:
        """Passes a part on without waiting for it: `status`, `wait`, `cancel` on what it gives back.

        The same task asked for again within five minutes, or under the same `key`, is the same task. `seconds` is the
        time of one attempt; what fails for a passing reason is tried again, `attempts` times in all.
        """
        return await self._queued("submit", to, task, capability, how)

    async def spawn(self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[Queue]) -> Task:
        """The same, beside this turn: what comes of it is announced in this task's inbox, once. At most five at a time;
        the sixth waits up to 30 seconds for one of them to end, and is refused then."""
        return await self._queued("spawn", to, task, capability, how)

    async def once(self, name: str, do: Callable[..., Awaitable[object] | object], *args: object) -> Any:
        """Does something that must not be done twice: `await turn.once("charge", charge_card, 5)`.

        What it gives back is JSON and is kept; when the task is carried out again after a crash or a failure, it is
        read and not done. The same name again in one turn is the next one of that name.
        """
        return await self._services.effects.once(self._live, name, do, *args)

    async def send(self, to: str, text: str) -> None:
        """Leaves a message in another agent's inbox of this session."""
        await self._services.inbox.send(self._live, to, text)

    async def inbox(self) -> list[Message]:
        """The messages that have arrived; each is handed out once."""
        return await self._services.inbox.take(self._live)

    # -- inside -----------------------------------------------------------------------------------------

    def _matches(self, capability: str) -> list[Match]:
        plain(capability, "a capability", 1_000)
        return self._services.directory.find(capability, self._live.remit, self._live.card)

    def _wish(self, to: str | None, task: str, capability: str, how: How) -> Pass:
        if (to is None) == (not capability):
            raise BadInput("say whom to ask, or which capability is needed: one of the two")
        return wish(to if to is not None else self._best(capability), task, how)

    async def _queued(self, asked_how: str, to: str | None, task: str, capability: str, how: Queue) -> Task:
        given = submission(self._wish(to, task, capability, _spoken(how)), how, asked_how)
        return Task(self._services.tasks, await self._services.tasks.submit(self._live, given), self._live)

    def _best(self, capability: str) -> str:
        found = self._matches(capability)
        if not found:
            raise Refused(f"no one you may ask can {capability}; do it yourself or finish without", rule="unknown")
        return found[0].card.name

    def _pass(self, given: Wish, how: How) -> Pass:
        if isinstance(given, Pass):
            return given
        if isinstance(given, tuple) and len(given) == 2:  # pyright: ignore[reportUnnecessaryIsInstance]
            return wish(given[0], given[1], how)
        raise BadInput(f"delegate_all takes (agent, task) pairs or Pass(...), not {shown(given)}")


def submission(given: Pass, how: Queue, asked_how: str = "submit") -> Submission:
    """Checked: what cannot be meant is refused before anything is written."""
    seconds, key = how.get("seconds", TIMEOUT_SECONDS), how.get("key", "")
    attempts = whole(how.get("attempts", ATTEMPTS), "attempts", least=1) or ATTEMPTS
    if key:
        plain(key, "a key", KEY_LIMIT)
    return Submission(given, span(seconds, "seconds"), attempts, key, asked_how)


def _spoken(how: Queue) -> How:
    """What of it goes along with the task itself."""
    return cast("How", {name: value for name, value in how.items() if name in ("sees", "tools", "within")})


def wish(to: str, task: str, how: How) -> Pass:
    return Pass(to, task, **how)  # pyright: ignore[reportArgumentType]

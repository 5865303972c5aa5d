"""The turn: one call of an agent, and the handle it gets. Its verbs are what agents can do."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, Never, TypeAlias, Unpack, cast

import anyio
from anyio.lowlevel import checkpoint

from remit.core.card import Card
from remit.core.checks import between, items, whole
from remit.core.command import Command, Send, Update
from remit.core.entry import Message
from remit.core.identity import question
from remit.core.lifecycle import Outcome
from remit.core.match import BEST, MATCHES, Match
from remit.core.plan import Plan
from remit.core.remit import Pass, Remit
from remit.core.trust import UNTRUSTED, Trust, least
from remit.core.values import INT_LIMIT, NAME_LIMIT, line, plain, shown
from remit.engine import asking
from remit.engine.asking import AlongHandoff, Delegating, DelegatingTeam, Planning, Queueing
from remit.engine.attempt.handoffs import Handoffs
from remit.engine.attempt.live import Handoff, LiveTask
from remit.engine.attempt.slots import Batch
from remit.engine.context import Context, Entries, HolderAccess
from remit.engine.delegation import Delegations
from remit.engine.directory import Directory
from remit.engine.finding import Finder
from remit.engine.inbox import Inbox
from remit.engine.models.prompting import ModelServices, ModelVerbs
from remit.engine.models.toolbox import Toolset
from remit.engine.money import MoneyServices, MoneyVerbs
from remit.engine.people import PeopleServices
from remit.engine.plans import PlanOutcome, PlanRunner
from remit.engine.queue.control import TaskControl
from remit.engine.queue.submitting import TaskQueue
from remit.engine.queue.task import Task
from remit.engine.timing import together
from remit.errors import BadInput

Wish: TypeAlias = Pass | tuple[str, str]


class TurnServices(NamedTuple):
    """What every turn of a runtime works with."""

    directory: Directory
    finder: Finder
    delegations: Delegations
    handoffs: Handoffs
    queue: TaskQueue
    control: TaskControl
    plans: PlanRunner
    entries: Entries
    inbox: Inbox
    money: MoneyServices
    people: PeopleServices
    talking: ModelServices


class Turn(MoneyVerbs, ModelVerbs):
    """Given to an agent when it is asked. What it may do is kept by the engine, not in here."""

    def __init__(self, services: TurnServices, live: LiveTask) -> None:
        self._services = services
        self._money = services.money
        self._people = services.people
        self._talking = services.talking
        self._live = live

    def __repr__(self) -> str:
        return f"<Turn of {self.agent}: {shown(self.task)}>"

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
    def tools(self) -> Toolset:
        """The tools this holder may use this time: `"read_file" in turn.tools`, `for tool in turn.tools`."""
        return Toolset(self._live.kit)

    @cached_property
    def handoff(self) -> Handoff:
        """How the task came to this holder: `sender` is empty if it was not handed over, `refused` says why it could
        not be handed on, `results` are those of a parallel handoff, and `failed` says why the sender failed if the
        task came back because of that. It is a copy: changing it hands nothing over."""
        return self._live.handoff.copied()

    @property
    def phase(self) -> str:
        """For the coordinator of a team: "plan" when a plan is asked for, "synthesis" when the pieces are."""
        return self._live.phase

    @cached_property
    def context(self) -> Context:
        """Shared entries, as far as this holder sees them."""
        return Context(HolderAccess(self._services.entries, self._live))

    # -- verbs ------------------------------------------------------------------------------------------

    async def delegate(
        self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[Delegating]
    ) -> Any:
        """Pass a part on and get the result back.

        `to` names the agent, or `capability` says what it must be able to do. Raises `Refused` when a rule
        says no, and `Failed` when the agent does not deliver; the run goes on either way. An agent that is busy is
        waited for, 30 seconds unless `wait` says otherwise.
        """
        return (await self.outcome(to, task, capability=capability, **how)).unwrap()

    async def outcome(
        self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[Delegating]
    ) -> Outcome:
        """Pass a part on like `delegate`, and get what came of it: its value or its error, and how far to trust it."""
        if to is None or capability:
            to = await self._chosen(to, capability, lambda name: self._delegating(name, task, how))
        wish = asking.passed("delegate", to, task, how)
        with self._live.verb():
            outcome = await self._services.delegations.delegate(self._live, wish)
        self._live.take(outcome.trust)
        return outcome

    async def delegate_all(
        self, wishes: Iterable[Wish], *, concurrency: int | None = None, **how: Unpack[Delegating]
    ) -> list[Outcome]:
        """Pass several parts on at the same time and get what came of each, in the order given.

        One that is refused, fails or is slow never loses the others. All are judged before the first of them begins,
        unless `concurrency` limits how many run together.
        """
        given = items(wishes, "delegate_all takes a list of (agent, task) pairs or Pass(...)")
        passes = [_pass(wish, how) for wish in given]
        outcomes: list[Outcome | None] = [None] * len(passes)
        most = whole(concurrency, "concurrency", least=1)
        limiter = anyio.CapacityLimiter(most) if most else None
        watch = self._services.delegations.watch(self._live, passes)
        batch = Batch(len(passes)) if limiter is None else None  # what runs later is judged later

        async def delegate(index: int) -> None:
            if limiter is None:
                outcomes[index] = await self._services.delegations.part(self._live, passes[index], watch.again, batch)
                return
            async with limiter:
                outcomes[index] = await self._services.delegations.part(self._live, passes[index], watch.again)

        with self._live.verb():
            await together(delegate, len(passes))
        answers = [outcome for outcome in outcomes if outcome is not None]
        self._live.take(least(outcome.trust for outcome in answers))
        if answers:
            watch.learn(answers)
        await checkpoint()  # whoever asks in vain for ever can be stopped, and holds up nobody else
        return answers

    async def hand_off(
        self,
        to: str | list[Send] | None = None,
        update: Update | None = None,
        *,
        join: str = "",
        capability: str = "",
        **along: Unpack[AlongHandoff],
    ) -> Command:
        """Hand the task over: `return await turn.hand_off("billing", {"phase": "refund"})`.

        `to` names the agent, or `capability` says what it must be able to do. Raises `Refused` when a rule says no; the
        present holder is still in charge then. What it gives back is the command to return: nothing changes hands
        before the turn is over.
        """
        if to is None or capability:
            to = await self._chosen(cast("str | None", to), capability, _nothing_asked)
        command = Command(cast("str", to), update or {}, join, **asking.handed(along))
        with self._live.verb():
            await self._services.handoffs.must_allow(self._live, command)
        return command

    @property
    def trust(self) -> Trust:
        """The label of what this holder says right now: "untrusted" once it has taken in something from outside."""
        return self._live.says

    def mark_untrusted(self, source: str, text: str = "") -> None:
        """Say that this turn took in something from outside, that remit did not bring: a page, a mail, a file.

        From here on what it writes, answers and sends is untrusted too, unless its card has `trusted_output`. The
        receipt has `source` with the digest and the tokens of `text`; in a tool that gives no text, those of what the
        tool returns.
        """
        self._live.must_be_at_work()
        self._live.take(UNTRUSTED)
        what = line(source, "source", NAME_LIMIT)
        said = plain(text, "a text", INT_LIMIT, empty=True)
        self._live.receipt.mark_untrusted(what, said, self._live.operations.call_under_way)

    async def run_plan(self, plan: Plan, **options: Unpack[Planning]) -> PlanOutcome:
        """Run a plan with those this holder may ask, and tell what became of every step."""
        wanted = asking.plan_options("run_plan", options)
        with self._live.verb():
            return await self._services.plans.run(self._live, plan, wanted)

    async def run_team(
        self, goal: str, coordinator: str, *strange: Never, plan: Plan | None = None, **how: Unpack[DelegatingTeam]
    ) -> Any:
        """Give a goal to a coordinator, who plans, and puts together what the members bring: `turn.delegate` to a team.

        Run again after a crash, it goes on with the coordinator's plan and what was done of it.
        """
        asking.nothing_more("run_team", "goal and coordinator", strange)
        wish, lead = asking.teamed(goal, coordinator, how, plan)
        with self._live.verb():
            outcome = await self._services.delegations.lead(self._live, wish, lead)
        self._live.take(outcome.trust)
        return outcome.unwrap()

    async def find(self, capability: str, *, limit: int = BEST) -> list[Match]:
        """List the agents this holder may ask that can do this, best first: each with its score and why. Those that
        cannot be asked now, because their breaker is open or they are busy, come last."""
        plain(capability, "a capability", 1_000)
        between(limit, "limit", 1, MATCHES)
        with self._live.verb():
            return (await self._services.finder.find(capability, self._live))[:limit]

    def agents(self) -> list[Card]:
        """List the agents this holder may ask right now, by name."""
        directory, live = self._services.directory, self._live
        found = (directory.get(name) for name in directory.roster(live.remit, live.card))
        return [agent.card for agent in found if agent is not None]

    async def submit(
        self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[Queueing]
    ) -> Task:
        """Pass a part on without waiting for it: `status`, `wait`, `cancel` on what it gives back.

        The same task asked for again under the same `key`, or with `same_within=300` within five minutes, is the same
        task; otherwise it is another one. `seconds` is the time of one attempt; what fails for a passing reason is
        tried again, `attempts` times in all. With `announce` its end is announced in this task's inbox, once, as that
        of a spawned task.
        """
        return await self._queued("submit", (to, capability), task, how)

    async def spawn(
        self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[Queueing]
    ) -> Task:
        """Submit a task beside this turn: what comes of it is announced in this task's inbox, once.

        At most five at a time (`Policy(spawns=5)`). The next waits up to 30 seconds for one of them to end, and is
        refused then.
        """
        return await self._queued("spawn", (to, capability), task, how)

    def submitted(self, task: str) -> Task:
        """Give the handle of a task that was submitted or spawned, by its id."""
        return Task(self._services.control, line(task, "a task's id", NAME_LIMIT), self._live)

    async def send(self, to: str, text: str) -> None:
        """Leave a message in another agent's inbox of this run.

        At most 32 of one sender wait for one reader, of at most 16 KiB each; what is more is refused.
        """
        await self._services.inbox.send(self._live, to, text)

    async def inbox(self) -> list[Message]:
        """Take the messages that have arrived; each is handed out once."""
        return await self._services.inbox.take(self._live)

    # -- inside -----------------------------------------------------------------------------------------

    async def _chosen(self, to: str | None, capability: str, ops: Callable[[str], list[str]]) -> str:
        """Choose whom to ask for a capability; `ops` are the operations that asking someone would be."""
        if (to is None) == (not capability):
            raise BadInput("say whom to ask, or which capability is needed: one of the two")
        plain(capability, "a capability", 1_000)
        with self._live.verb():
            return await self._services.finder.choose(capability, self._live, ops)

    def _delegating(self, name: str, task: str, how: Delegating) -> list[str]:
        return self._live.operations.coming("delegate", *question(asking.passed("delegate", name, task, how)))

    async def _queued(self, asked_how: str, whom: tuple[str | None, str], task: str, how: Queueing) -> Task:
        def ops(name: str) -> list[str]:
            asked = asking.submission(name, task, how, asked_how)
            return self._live.operations.coming(asked.asked_how, *question(asked.wish), asked.key)

        to, capability = whom
        if to is None or capability:
            to = await self._chosen(to, capability, ops)
        submission = asking.submission(to, task, how, asked_how)
        with self._live.verb():
            accepted = await self._services.queue.submit(self._live, submission)
        return Task(self._services.control, accepted.id, self._live, existing=accepted.existing)


def _nothing_asked(_name: str) -> list[str]:
    """Name no operation: a handoff asks for nothing that an earlier run could have begun."""
    return []


def _pass(wish: object, how: Delegating) -> Pass:
    if isinstance(wish, Pass):
        return wish
    if isinstance(wish, tuple):
        pair = cast("tuple[str, ...]", wish)
        if len(pair) == 2:
            return asking.passed("delegate_all", pair[0], pair[1], how)
    raise BadInput(f"delegate_all takes (agent, task) pairs or Pass(...), not {shown(cast('object', wish))}")

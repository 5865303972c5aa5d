"""The turn: one call of an agent, and the handle it gets. Its verbs are what agents can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Never, TypeAlias, TypeVar, Unpack, cast, overload

import anyio
from anyio.lowlevel import checkpoint

from remit.core.allow import ANY, names_text
from remit.core.card import Card
from remit.core.checks import between, callable_, items, keywords, of_type, whole
from remit.core.command import Command, Send, Update
from remit.core.entry import Message
from remit.core.identity import question
from remit.core.lifecycle import Outcome, progress_of
from remit.core.match import BEST, MATCHES, Match
from remit.core.plan import Plan
from remit.core.records import cached_property
from remit.core.remit import Kit, Pass, Remit
from remit.core.session import EarlierExchange
from remit.core.times import patience
from remit.core.trust import TRUSTED, UNTRUSTED, Trust, least
from remit.core.values import INT_LIMIT, NAME_LIMIT, Json, Known, decode, line, plain, shown, without_data
from remit.engine import asking
from remit.engine.asking import AlongHandoff, Delegating, DelegatingTeam, Planning, Queueing
from remit.engine.attempt.live import Handoff, LiveTask
from remit.engine.attempt.slots import Batch
from remit.engine.money_and_people import MoneyVerbs, PeopleVerbs
from remit.engine.timing import together
from remit.errors import BadInput
from remit.ports.models import KeptAnswer, ModelAnswer, ModelCall, ToolCall, ToolFunction, tell_progress

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from remit.core.offers import Offers
    from remit.engine.artifacts import TurnArtifacts
    from remit.engine.context import Context
    from remit.engine.models.talking import KeptTalk
    from remit.engine.money_and_people import TurnServices
    from remit.engine.plans import PlanOutcome
    from remit.engine.queue.task import Task

    Deps = TypeVarWithDefault("Deps", default=Any)  # so that `Turn` alone is complete
else:
    Deps = TypeVar("Deps")

Wish: TypeAlias = Pass | tuple[str, str]
Result = TypeVar("Result")


class Toolset:
    """The tools that an agent may use in this turn: `in` checks one, iteration lists them, `any` says that all may be
    used except those its card denies."""

    __slots__ = ("_kit", "_names")

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._names = kit.names

    @property
    def any(self) -> bool:
        """Whether the agent may use every tool that its card does not deny. Then the iteration lists no tools."""
        return self._names is ANY

    def __contains__(self, tool: object) -> bool:
        return isinstance(tool, str) and self._kit.has(tool)

    def __iter__(self) -> Iterator[str]:
        return iter(()) if self._names is ANY else iter(sorted(self._names))

    def __len__(self) -> int:
        return 0 if self._names is ANY else len(self._names)

    def __bool__(self) -> bool:
        return self._names is ANY or bool(self._names)

    def __eq__(self, other: object) -> bool:
        return self._kit == other._kit if isinstance(other, Toolset) else self._names == other and not self._kit.denied

    def __hash__(self) -> int:
        return hash(self._kit)

    def __repr__(self) -> str:
        denied = f" but {names_text(self._kit.denied)}" if self._kit.denied else ""
        return f"<tools: {f'any{denied}' if self.any else names_text(self._names)}>"


class TurnFacts:
    """The read-only facts about a turn: its task, its run and its agent."""

    _live: LiveTask

    @property
    def task(self) -> str:
        """The task text. If the task has no text but only a value, this is the value as JSON."""
        remit = self._live.remit
        return remit.task if remit.data is None else without_data(remit.task, remit.data)

    @property
    def data(self) -> Json:
        """The JSON value that the task was given with `data=`, as a copy; None if there is none."""
        value = self._live.remit.data
        return None if value is None else decode(value)

    @overload
    def data_as(self, kind: type[Result]) -> Result: ...
    @overload
    def data_as(self, kind: object) -> Any: ...
    def data_as(self, kind: object) -> Any:
        """Return the data as an object of this type: `order = turn.data_as(Order)`. Raise `BadInput` that names each
        place that does not fit. `kind` is a type or a JSON Schema, as for `returns=`."""
        from remit.engine.forms import form_of

        return form_of(kind, "data_as").read(self.data, f"the data of the task of '{self._live.remit.holder}'")

    @property
    def id(self) -> str:
        """The id of this task, as `remit show` and `workspace.tasks.get` take it."""
        return self._live.remit.id

    @property
    def origin(self) -> str:
        """The id of the first task of the retry lineage. For a task that is no retry, this is its own id."""
        return self._live.operations.origin

    @property
    def session(self) -> str:
        """The session of the run; if it was started without one, remit has made it."""
        return self._live.remit.session

    @property
    def by(self) -> str:
        """The person who started the run: `by=` of `rt.run`; empty if none was named."""
        return self._live.remit.by

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the run: `tags=` of `rt.run`."""
        return self._live.remit.labels.tags

    @property
    def meta(self) -> dict[str, str | int | float | bool]:
        """The metadata of the run: `meta=` of `rt.run`, as a copy."""
        return dict(self._live.remit.labels.meta)

    @property
    def attempt(self) -> int:
        """The number of this attempt: 2 and more for a retry. If another worker takes the task over after a crash, the
        number stays, unless remit counts the crash as an attempt of the task."""
        return self._live.attempt.number

    @property
    def agent(self) -> str:
        """The name of this agent."""
        return self._live.remit.holder

    @property
    def card(self) -> Card:
        """The card of this agent."""
        return self._live.card

    @property
    def asker(self) -> str:
        """The agent that delegated the task; empty for a person."""
        return self._live.remit.asker

    @property
    def remit(self) -> Remit:
        """The task assignment, read-only."""
        return self._live.remit

    @property
    def tools(self) -> Toolset:
        """The tools that this agent may use in this turn: `"read_file" in turn.tools`, `for tool in turn.tools`."""
        return Toolset(self._live.kit)

    @property
    def is_requeued(self) -> bool:
        """Whether this task is requeued when its agent is cancelled, because its worker stops, or because only the time
        of one attempt is up. An agent that controls work outside this process need not stop that work then."""
        return self._live.is_requeued

    @property
    def phase(self) -> str:
        """The phase of a team's coordinator: "plan" when it must write the plan, "synthesis" when it must combine the
        results. Empty for other agents."""
        return self._live.phase


class Turn(TurnFacts, MoneyVerbs, PeopleVerbs, Generic[Deps]):
    """The handle of one call of an agent. The engine keeps the agent's rights, not this object.

    `Turn[Deps]` says of which type the `deps` of the runtime are.
    """

    def __init__(self, services: TurnServices, live: LiveTask) -> None:
        self._services = services
        self._live = live

    def __repr__(self) -> str:
        return f"<Turn of {self.agent}: {shown(self.task)}>"

    # -- input ------------------------------------------------------------------------------------------

    @property
    def deps(self) -> Deps:
        """What `Runtime(deps=...)` was given: clients, settings, anything of this process. Raise `BadInput` if it was
        given nothing. remit does not store it."""
        if self._services.deps is None:
            raise BadInput("this runtime has no deps: pass Runtime(deps=...) what its agents need")
        return cast("Deps", self._services.deps)

    @cached_property
    def handoff(self) -> Handoff:
        """How the task came to this agent. `sender` is empty if the task was not handed over. `refused` is why a
        handoff of the task was refused, and `results` are the results of a parallel handoff. If the task came back
        because the other agent failed, `failed` is the reason. This is a copy: changing it has no effect."""
        return self._live.handoff.copied()

    @cached_property
    def context(self) -> Context:
        """The shared entries that this agent may see."""
        from remit.engine.context import Context, HolderAccess

        return Context(HolderAccess(self._services.entries, self._live))

    @cached_property
    def artifacts(self) -> TurnArtifacts:
        """The files that this agent saves and opens: `await turn.artifacts.save(path)`."""
        from remit.engine.artifacts import TurnArtifacts

        return TurnArtifacts(self._services.files, self._live)

    # -- verbs ------------------------------------------------------------------------------------------

    @overload
    async def delegate(
        self,
        to: str | None = None,
        task: str = "",
        *,
        capability: str = "",
        returns: type[Result],
        **how: Unpack[Delegating],
    ) -> Result: ...
    @overload
    async def delegate(
        self,
        to: str | None = None,
        task: str = "",
        *,
        capability: str = "",
        returns: object = None,
        **how: Unpack[Delegating],
    ) -> Known: ...
    @keywords(Delegating)
    async def delegate(
        self,
        to: str | None = None,
        task: str = "",
        *,
        capability: str = "",
        returns: object = None,
        **how: Unpack[Delegating],
    ) -> Any:
        """Delegate a part of the task and return its result: `await turn.delegate("b", "check it", data={"order": 7})`.

        `data` is a JSON value next to the text, or in its place; the agent reads it as `turn.data`. `to` names the
        agent, or `capability` says what it must be able to do. Raise `Refused` if a rule forbids the call, and `Failed`
        if the agent does not return a result; the run continues either way. If the agent is busy, wait up to
        `busy_timeout` seconds [default: 30]. With `returns=Review` the result is a `Review`; raise `BadOutput` if it
        does not fit.
        """
        if returns is not None:
            from remit.engine.forms import form_of, unwrapped

            form = form_of(returns, "returns")
            return unwrapped(await self.outcome(to, task, capability=capability, **how), form)
        return (await self.outcome(to, task, capability=capability, **how)).unwrap()

    @keywords(Delegating)
    async def outcome(
        self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[Delegating]
    ) -> Outcome:
        """Delegate like `delegate`, and return the outcome: the value or the error, and the trust label."""
        if to is None or capability:
            to = await self._chosen(to, capability, lambda name: self._delegating(name, task, how))
        wish = asking.passed("delegate", to, task, how)
        with self._live.verb():
            outcome = await self._services.delegations.delegate(self._live, wish)
        if outcome.trust is not TRUSTED:
            self._live.take(outcome.trust)
        return outcome

    @keywords(Delegating)
    async def delegate_all(
        self, wishes: Iterable[Wish], *, concurrency: int | None = None, **how: Unpack[Delegating]
    ) -> list[Outcome]:
        """Delegate several parts concurrently, and return their outcomes in the same order.

        A refused, failed or slow part does not affect the others. All parts are judged before the first one starts,
        unless `concurrency` limits how many run at a time.
        """
        given = items(wishes, "delegate_all takes a list of (agent, task) pairs or Pass(...)")
        passes = [_pass(wish, how) for wish in given]
        outcomes: list[Outcome | None] = [None] * len(passes)
        most = whole(concurrency, "concurrency", least=1)
        limiter = anyio.CapacityLimiter(most) if most else None
        watch = self._services.delegations.watch(self._live, passes)
        batch = Batch(len(passes)) if limiter is None else None  # with a limit, later parts are judged later

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
        # Yield, so that an endless loop of refused calls can be cancelled and does not block the event loop.
        await checkpoint()
        return answers

    @keywords(AlongHandoff)
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

        `to` names the agent, or `capability` says what it must be able to do. Return the command for the agent to
        return; the task changes hands when the turn ends. Raise `Refused` if a rule forbids it; this agent then keeps
        the task.
        """
        if to is None or capability:
            to = await self._chosen(cast("str | None", to), capability, _nothing_asked)
        command = Command(cast("str", to), update or {}, join, **asking.checked_handoff(along))
        with self._live.verb():
            await self._services.handoffs.must_allow(self._live, command)
        return command

    @property
    def trust(self) -> Trust:
        """The trust label of everything this agent says now: "untrusted" once it has read untrusted input."""
        return self._live.says

    def mark_untrusted(self, source: str, text: str = "") -> None:
        """Mark this turn as untrusted, because it read something from outside that remit did not bring: a page, a mail,
        a file.

        From here on everything it writes, returns and sends is untrusted too, unless its card has `trusted_output`. The
        receipt has `source` with the digest and the tokens of `text`; in a tool that passes no text, those of the
        tool's result.
        """
        self._live.must_be_at_work()
        self._live.take(UNTRUSTED)
        what = line(source, "source", NAME_LIMIT)
        said = plain(text, "a text", INT_LIMIT, empty=True)
        self._live.receipt.mark_untrusted(what, said, self._live.operations.call_under_way)

    def progress(self, text: str, fraction: float | None = None, *, every: float = 0) -> bool:
        """Say how far this task is: `turn.progress("3 of 10", fraction=0.3)`.

        The live tree, `remit ps`, `remit watch` and `rt.stream` show the latest report; other processes see it with the
        next heartbeat. It is no event. If the task does not complete, its end has the last report. With `every`, a
        report is skipped if the last one was less than so many seconds ago, unless its fraction is 1. Return whether
        the report was made.
        """
        live = self._live
        live.must_be_at_work()
        made = progress_of(live.remit.id, live.remit.holder, text, fraction, live.control.clock.now())
        last, pause = live.progress, patience(every, "every")
        if last is not None and made.at - last.at < pause and made.fraction != 1:
            return False
        live.progress = made
        tell_progress(made)
        return True

    @keywords(Planning)
    async def run_plan(self, plan: Plan, **options: Unpack[Planning]) -> PlanOutcome:
        """Run a plan with the agents that this agent may ask, and return the outcome of every step."""
        wanted = asking.plan_options("run_plan", options)
        with self._live.verb():
            return await self._services.plans.run(self._live, plan, wanted)

    @keywords(DelegatingTeam)
    async def run_team(
        self, goal: str, coordinator: str, *strange: Never, plan: Plan | None = None, **how: Unpack[DelegatingTeam]
    ) -> Known:
        """Delegate a goal to a team: the coordinator plans, the members work, and the coordinator combines their
        results. Return its result.

        After a crash, it continues with the coordinator's plan and its finished steps.
        """
        asking.nothing_more("run_team", "goal and coordinator", strange)
        wish, lead = asking.teamed(goal, coordinator, how, plan)
        with self._live.verb():
            outcome = await self._services.delegations.lead(self._live, wish, lead)
        self._live.take(outcome.trust)
        return outcome.unwrap()

    async def find(self, capability: str, *, limit: int = BEST) -> list[Match]:
        """Return the agents that this agent may ask and that match, best first, each with its score and the reason.
        Agents that cannot be called now, because their breaker is open or they are busy, come last."""
        plain(capability, "a capability", 1_000)
        between(limit, "limit", 1, MATCHES)
        with self._live.verb():
            return (await self._services.finder.find(capability, self._live))[:limit]

    def agents(self) -> list[Card]:
        """Return the cards of the agents that this agent may ask right now, by name."""
        directory, live = self._services.directory, self._live
        found = (directory.get(name) for name in directory.roster(live.remit, live.card))
        return [agent.card for agent in found if agent is not None]

    @keywords(Queueing)
    async def submit(
        self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[Queueing]
    ) -> Task:
        """Submit a part of the task without waiting for it, and return its handle with `status`, `wait` and `cancel`.

        With the same `key`, or with `same_within=300` within five minutes, an equal request returns the same task;
        otherwise each call creates one. `timeout` is the time of one attempt; a failure that may pass is retried, up to
        `attempts` in all. With `after=90` (seconds or a timedelta) or `at=` (an aware datetime) no worker starts it
        before that. With `announce` the result arrives as a message in this task's inbox, once, as for a spawned task.
        """
        return await self._queued("submit", (to, capability), task, how)

    @keywords(Queueing)
    async def spawn(
        self, to: str | None = None, task: str = "", *, capability: str = "", **how: Unpack[Queueing]
    ) -> Task:
        """Submit a task whose result arrives as a message in this task's inbox, once.

        At most five at a time (`Policy(spawns=5)`). A further one waits up to 30 seconds for one of them to end, and is
        refused then.
        """
        return await self._queued("spawn", (to, capability), task, how)

    def submitted(self, task: str) -> Task:
        """Return the handle of a submitted or spawned task by its id."""
        return self._handle(line(task, "a task's id", NAME_LIMIT))

    async def send(self, to: str, text: str) -> None:
        """Send a message to another agent's inbox in this run.

        At most 32 messages of one sender wait for one reader, of at most 16 KiB each. Raise `Refused` beyond that.
        """
        await self._services.inbox.send(self._live, to, text)

    async def inbox(self) -> list[Message]:
        """Take the messages that have arrived; each is delivered once."""
        return await self._services.inbox.take(self._live)

    # -- inside -----------------------------------------------------------------------------------------

    async def _chosen(self, to: str | None, capability: str, ops: Callable[[str], list[str]]) -> str:
        """Return the agent that is chosen for a capability. `ops` returns the operation ids of a request to an agent,
        so that a rerun chooses the same agent again. Raise `BadInput` unless exactly one of `to` and `capability` is
        given."""
        if (to is None) == (not capability):
            raise BadInput("pass either an agent or a capability")
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
        return self._handle(accepted.id, existing=accepted.existing)

    def _handle(self, task: str, *, existing: bool = False) -> Task:
        from remit.engine.queue.task import Task

        return Task(self._services.control, task, self._live, existing=existing)

    # -- models: adapters of frameworks call these, agents rarely do --------------------------------------

    async def prompt(self) -> str:
        """Return the prompt of this turn: the task, the entries passed along, how the task came to the agent, and the
        agent's new messages. This takes the messages from the inbox. For a model, the prompt also has its memory, the
        newest notes on the board and the agents it may ask. Untrusted parts are quoted."""
        return await self._services.talking.prompting.prompt(self._live)

    async def talk_so_far(self) -> list[EarlierExchange]:
        """Return the earlier conversation of this session, the oldest first: what this agent was asked in earlier runs,
        and the results. Empty unless the run was started with `remembers=True`, or its agent has `memory="session"`."""
        self._live.must_be_at_work()
        return [run.exchange for run in await self._services.talking.talking.remembering.past(self._live)]

    async def offers(self) -> Offers:
        """Return which tools and verbs a model is shown with its next request: none that is denied or outside the
        bounds, and no verb that cannot succeed now."""
        return await self._services.talking.offering.offers(self._live)

    async def model(self, call: ModelCall) -> ModelAnswer:
        """Ask a model: recorded, paid for, and with fallbacks if one does not answer.

        In a rerun, the recorded answer is found by the digest of the request, or by its position in a conversation that
        `begin_talk` started. It is neither requested nor paid again. Raise `NoAnswer` with the failure of each model,
        and `Refused` if it cannot be paid.
        """
        of_type(call, ModelCall, "model takes a ModelCall of remit.ports.models")
        return await self._services.talking.models.ask(self._live, call)

    def talks(self) -> list[KeptTalk]:
        """Return the conversations that started in this turn, or in the running tool call; the latest first."""
        return self._services.talking.talking.talks(self._live)

    async def begin_talk(self, begins: str, name: str | None = None) -> KeptTalk:
        """Start a conversation that is recorded position by position. `begins` is the digest of its first request.

        A rerun finds the first conversation of a turn however it begins, and others by their `name`, or by `begins`.
        """
        line(begins, "the digest of how it begins", NAME_LIMIT)
        if name is not None:
            line(name, "the name of a conversation", NAME_LIMIT)
        return await self._services.talking.talking.begin(self._live, begins, name)

    async def kept_answers(self) -> list[KeptAnswer]:
        """Return the model requests and the answers of earlier attempts of this turn, the oldest first. If a request
        was not answered, the text of its answer is empty. In the first attempt, the list is empty."""
        self._live.must_be_at_work()
        return await self._services.talking.talking.kept_answers(self._live)

    async def tool(self, call: ToolCall, do: ToolFunction) -> Json:
        """Use a tool that a model has called. Return the text for the model: the result, or the reason why not.

        The tool runs once, however often the task is run. The agent's card and rules decide whether it may, and whether
        a person or a hook is asked first. Raise `HandedOver` if the call hands the task over.
        """
        of_type(call, ToolCall, "tool takes a ToolCall of remit.ports.models, and what does it")
        callable_(do, "tool takes a function of the arguments")
        return await self._services.talking.toolbox.use(self, self._live, call, do)


def _nothing_asked(_name: str) -> list[str]:
    """Return []. An earlier attempt cannot have started a handoff, so there are no operation ids to search."""
    return []


def _pass(wish: object, how: Delegating) -> Pass:
    if isinstance(wish, Pass):
        return wish
    if isinstance(wish, tuple):
        pair = cast("tuple[str, ...]", wish)
        if len(pair) == 2:
            return asking.passed("delegate_all", pair[0], pair[1], how)
    raise BadInput(f"delegate_all takes (agent, task) pairs or Pass(...), not {shown(cast('object', wish))}")

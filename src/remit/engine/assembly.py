"""Assembling the engine, once for every opened store, and setting the six references that would be import cycles.

Every run needs delegations and their services. Any other part is imported and made when it is first used: a run of
plain functions needs no queue, no money, no people and no models.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from remit.core.bounds import Bounds
from remit.core.lifecycle import Outcome
from remit.core.question import QuestionDraft
from remit.engine.approvals import Approving, Said
from remit.engine.asking import Asked
from remit.engine.attempt.endings import Endings
from remit.engine.attempt.handoffs import Handoffs
from remit.engine.attempt.live import LiveTask, LiveTasks, StopListener, progress_json
from remit.engine.attempt.slots import BusyAgents, Slots
from remit.engine.attempt.turns import Conductor, HandlesLostTalks, ReviewsResults
from remit.engine.consequences import Consequent
from remit.engine.delegation import Delegations, Led
from remit.engine.directory import Agent, Directory
from remit.engine.door import Admission, TaskLimits
from remit.engine.ground import Ears, Ground
from remit.engine.presence.bell import Bell
from remit.engine.presence.heartbeat import Heartbeat
from remit.engine.presence.insisting import Insisting
from remit.engine.services import Services
from remit.engine.settings import EngineSettings, Policy, Serving, System
from remit.engine.system import SystemClock
from remit.engine.turn import Turn
from remit.ports import Database, Store

if TYPE_CHECKING:
    from remit.engine.accounts import Accounts
    from remit.engine.acts import Breakers
    from remit.engine.answering import QuestionDesk
    from remit.engine.artifacts import ArtifactFiles
    from remit.engine.context import Entries
    from remit.engine.finding import Finder
    from remit.engine.inbox import Inbox
    from remit.engine.messenger import Messenger
    from remit.engine.models.prompting import ModelServices
    from remit.engine.money import MoneyServices
    from remit.engine.more_money import MoreMoney
    from remit.engine.people import Questions
    from remit.engine.plans import PlanRunner
    from remit.engine.queue.control import TaskControl
    from remit.engine.queue.submitting import ResidentWorker, TaskQueue
    from remit.engine.queue.takeover import Succession
    from remit.engine.schedules import Scheduler
    from remit.engine.team import Leading


class Engine:
    """The parts of the engine that a runtime, its workspace and its turns use."""

    def __init__(self, services: Services, database: Database, settings: EngineSettings) -> None:
        self.services = services
        self.directory = services.ground.directory
        self.handoffs = services.handoffs
        self.delegations = Delegations(services)
        self.deps = settings.deps
        self._database = database
        self._settings = settings
        self._resident: ResidentWorker | None = None

    # -- runs, and the tasks of the queue ---------------------------------------------------------------------

    def begin(self, asked: Asked, ceiling: Bounds, led: Led | None = None) -> Coroutine[Any, Any, Outcome]:
        """Start a run for a person and return its outcome. Meanwhile, deliver the run's questions."""
        begin = partial(self.delegations.begin, asked.wish, ceiling, asked.session, labels=asked.labels, led=led)
        if asked.on_question is None and self.services.messenger is None:
            return begin()
        return self.desk.attended(lambda tell: begin(tell=tell), asked.on_question, asked.labels.by)

    @cached_property
    def queue(self) -> TaskQueue:
        from remit.engine.queue.submitting import TaskQueue

        spawns, wait = self._settings.policy.spawns, self._settings.serving.pace.spawn_timeout
        queue = TaskQueue(self.services, spawns=spawns, spawn_wait=wait)
        queue.hands = self.resident.lend  # a submission may start the worker, which carries tasks
        return queue

    @cached_property
    def control(self) -> TaskControl:
        from remit.engine.queue.control import TaskControl

        services = self.services
        alive, worker = services.conductor.alive, services.heartbeat.worker
        control = TaskControl(services.ground, services.bell, services.slots, alive, worker)
        control.lend = self.resident.lend
        return control

    @property
    def resident(self) -> ResidentWorker:
        """The worker of this process, which starts when it is needed."""
        if self._resident is None:
            from remit.engine.queue.submitting import ResidentWorker

            store, serving = self.services.ground.store, self._settings.serving
            dispatcher = partial(self._database.dispatcher, store.workspace)
            scheduler = partial(_scheduler, self.services, self._settings)
            self._resident = ResidentWorker(self.services, serving, dispatcher, scheduler)
        return self._resident

    def is_closing(self) -> bool:
        """Whether tasks that are cancelled now should be requeued for another worker."""
        return self._resident is not None and self._resident.closing

    def close(self) -> None:
        if self._resident is not None:
            self._resident.let_go()
        self.services.heartbeat.close()

    # -- plans and teams --------------------------------------------------------------------------------------

    @cached_property
    def plans(self) -> PlanRunner:
        from remit.engine.plans import PlanRunner

        services, schemas = self.services, self._settings.schemas
        return PlanRunner(services.ground, self.delegations, self.inbox, services.questions, schemas)

    @cached_property
    def leading(self) -> Leading:
        from remit.engine.team import Leading

        return Leading(self.plans, self.services.conductor)

    def led(self, live: LiveTask) -> Agent:
        """Return the agent that leads a plan or team in its holder's place."""
        return self.leading.agent(live)

    # -- entries, messages, files and agents ------------------------------------------------------------------

    @cached_property
    def entries(self) -> Entries:
        from remit.engine.context import Entries

        return Entries(self.services.ground)

    @cached_property
    def inbox(self) -> Inbox:
        from remit.engine.inbox import Inbox

        return Inbox(self.services.ground, self._settings.policy.inbox)

    @cached_property
    def files(self) -> ArtifactFiles:
        from remit.engine.artifacts import ArtifactFiles

        policy = self._settings.policy
        return ArtifactFiles(self.services.ground, policy.artifact_bytes, policy.run_artifact_bytes)

    @cached_property
    def finder(self) -> Finder:
        from remit.engine.finding import Finder

        return Finder(self.services.ground, self._settings.system.embed, self._settings.policy.certainty)

    @cached_property
    def breakers(self) -> Breakers:
        from remit.engine.acts import Breakers

        return Breakers(self.services.ground)

    # -- money, people and models -----------------------------------------------------------------------------

    @cached_property
    def money(self) -> MoneyServices:
        return _money(self.services, self._settings)

    @cached_property
    def accounts(self) -> Accounts:
        from remit.engine.accounts import Accounts

        return Accounts(self.services.ground)

    @property
    def questions(self) -> Questions:
        return self.services.questions

    def ask(self, live: LiveTask, draft: QuestionDraft, op: str) -> Awaitable[Said]:
        """Ask a person on behalf of a task that is handed over."""
        return self.services.questions.ask(live, draft, op)

    @cached_property
    def desk(self) -> QuestionDesk:
        """The desk that delivers questions to this program as they are asked."""
        from remit.engine.answering import QuestionDesk

        return QuestionDesk(self.services, self._settings.serving.pace.poll_interval)

    @cached_property
    def talking(self) -> ModelServices:
        """What a turn with a model uses."""
        from remit.engine.models.prompting import model_services
        from remit.engine.upkeep.keys import Keys

        settings = self._settings
        keys = Keys(self.services.ground, settings.vault, settings.redaction)
        parts = (keys, self.entries, self.inbox, self.finder)
        return model_services(self.services, self.money.paying, *parts, settings.policy.loops)


def assembled(database: Database, workspace: str, directory: Directory, settings: EngineSettings) -> Engine:
    """Return the assembled engine. Its store adds the follow-up events to every decision."""
    system = settings.system
    contents = partial(database.contents, workspace)
    ears = Ears(system.clock.ticks)
    ground = Ground(_store(database, workspace, settings), system.clock, system.ids, directory, contents, ears)
    services = _services(ground, database, settings)
    engine = Engine(services, database, settings)

    # Delegation is recursive: delegate -> carry -> turn -> delegate. These references, and those of the queue to its
    # worker above, are set here and nowhere else, to avoid import cycles.
    conductor = services.conductor
    conductor.take_turn, conductor.led = partial(Turn, engine), engine.led
    conductor.closing = engine.is_closing
    conductor.reviews = cache(partial(_reviews, services, settings.policy))
    services.handoffs.send = engine.delegations.part
    services.handoffs.ask = engine.ask
    return engine


def _money(services: Services, settings: EngineSettings) -> MoneyServices:
    from remit.engine.attempt.replay import Effects
    from remit.engine.money import Holding, InstalledPrices, MoneyServices, OwnersPrices, Paying, Tariff

    ground, policy = services.ground, settings.policy
    limits = tuple(limit for limit in policy.limits if limit.is_of_money)
    wait, last_word = settings.serving.pace.money_timeout, policy.last_word
    more = cache(partial(_more_money, services)) if policy.short == "ask" else None
    holding = Holding(ground, services.slots, services.insisting, limits, wait, last_word, more)

    async def has_key(provider: str) -> bool:
        return await ground.store.read(lambda view: view.secret(provider) is not None)

    given = settings.system.prices
    prices = InstalledPrices(settings.prices) if given is None else OwnersPrices(given)
    tariff = Tariff(prices, policy.unknown_price == "refuse", has_key, settings.system.in_file)
    return MoneyServices(Paying(ground, holding, tariff), Effects(ground, services.insisting))


def _more_money(services: Services) -> MoreMoney:
    from remit.engine.more_money import MoreMoney

    return MoreMoney(services.questions)


def _reviews(services: Services, policy: Policy) -> ReviewsResults:
    from remit.engine.reviews import Reviews

    return Reviews(services.ground, services.questions, services.handoffs, policy.reviews, policy.on_no_answer)


def _scheduler(services: Services, settings: EngineSettings) -> Scheduler:
    from remit.engine.schedules import Scheduler

    return Scheduler(services, settings.calendar)


def _lost_talks(ground: Ground) -> HandlesLostTalks:
    from remit.engine.models.talking import LostTalks

    return LostTalks(ground)


def _timely(database: Database, workspace: str, system: System) -> Store:
    """Return the store, wrapped so that this process's clock is checked before writes. The check is left out in memory,
    with `check_clock=False`, and for a clock that the caller passed."""
    store = database.store(workspace)
    if not (database.lasting and system.check_clock and isinstance(system.clock, SystemClock)):
        return store
    from remit.engine.presence.peers import TimelyStore

    return TimelyStore(store, system.clock, database.server_time)


def _store(database: Database, workspace: str, settings: EngineSettings) -> Store:
    """Return the store with consequences and, unless it is in memory, with the release of what dead processes hold."""
    system, serving = settings.system, settings.serving
    store = Consequent(_timely(database, workspace, system), settings.policy.breaker, settings.redaction)
    if not database.lasting:
        return store
    from remit.engine.presence.peers import Peers
    from remit.engine.queue.takeover import Succession

    peers = Peers(system.clock, serving.heartbeat_timeout, serving.pace.poll_interval)
    return Succession(store, system.clock, system.ids, peers)


def _task_limits(policy: Policy) -> TaskLimits:
    return TaskLimits(
        handoffs=policy.handoffs,
        sends=policy.max_parallel_parts,
        spawns=policy.spawns,
        echo=policy.loops.echo,
        begun=tuple(limit for limit in policy.limits if limit.tasks is not None),
        repeats=policy.loops.thresholds,
        same_handoff=policy.loops.same_handoff,
        last_word=policy.last_word,
        asks_for_money=policy.short == "ask",
    )


def _services(ground: Ground, database: Database, settings: EngineSettings) -> Services:
    policy, serving = settings.policy, settings.serving
    approving = Approving(policy.needs_approval, policy.on_no_answer)
    admission = Admission(ground.directory, policy.breaker, policy.concurrency, _task_limits(policy), approving)
    bell, time = Bell(ground.store, ground.clock), database.server_time
    pulse, silence = database.pulse(ground.store.workspace), serving.heartbeat_timeout
    heartbeat = Heartbeat(ground, lasting=database.lasting, silence=silence, pulse=pulse, server_time=time)
    alive = LiveTasks()
    heartbeat.progress = lambda: settings.redaction.text(progress_json(alive.progress()))
    handoffs = Handoffs(ground, admission, alive, gives_back=policy.on_failed_handoff == "back")
    insisting = Insisting(ground.clock, serving.pace.store_timeout)
    endings = Endings(ground, bell, insisting, settings.redaction)
    conductor = Conductor(ground, handoffs, endings, alive, grace=serving.pace.grace)
    conductor.lost_talks = partial(_lost_talks, ground)
    stops = StopListener(ground.store, alive, heartbeat.worker)
    slots = Slots(ground, admission, bell, heartbeat)
    busy = BusyAgents(ground, admission, slots, serving.pace.busy_timeout)
    if database.lasting:
        succession = cast("Succession", ground.store)  # see `_store`
        succession.own, busy.relieve, admission.about_to_refuse = heartbeat.worker, succession.relieve, succession.check
    people = cache(partial(_questions, ground, slots, policy.answer_within))
    base = (ground, admission, conductor, handoffs, bell, heartbeat, stops, slots, busy, insisting, people)
    return Services(*base, _messenger(ground, bell, heartbeat, serving))


def _questions(ground: Ground, slots: Slots, within: int) -> Questions:
    from remit.engine.people import Answers, Questions

    return Questions(ground, slots, Answers(ground), within)


def _messenger(ground: Ground, bell: Bell, heartbeat: Heartbeat, serving: Serving) -> Messenger | None:
    if not serving.channels:
        return None
    from remit.engine.messenger import AnswerDesk, Messenger
    from remit.engine.people import Answers

    desk = AnswerDesk(ground, Answers(ground))
    return Messenger(desk, bell, heartbeat, serving.channels, serving.pace.poll_interval)

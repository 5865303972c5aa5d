"""Assembling the engine, once for every opened store, and setting the six references that would be import cycles.

Models are imported by the first turn that uses one, and the care for other processes by a store that others can open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, cast

from remit.core.records import NamedTuple
from remit.engine.accounts import Accounts
from remit.engine.acts import Breakers
from remit.engine.approvals import Approving
from remit.engine.attempt.endings import Endings
from remit.engine.attempt.handoffs import Handoffs
from remit.engine.attempt.live import LiveTasks, StopListener, progress_json
from remit.engine.attempt.replay import Effects
from remit.engine.attempt.slots import BusyAgents, Slots
from remit.engine.attempt.turns import Conductor, HandlesLostTalks, ReviewsResults
from remit.engine.consequences import Consequent
from remit.engine.context import Entries
from remit.engine.delegation import Delegations
from remit.engine.directory import Directory
from remit.engine.door import Admission, TaskLimits
from remit.engine.finding import Finder
from remit.engine.ground import Ears, Ground
from remit.engine.inbox import Inbox
from remit.engine.money import Holding, InstalledPrices, MoneyServices, OwnersPrices, Paying, Tariff
from remit.engine.people import Answers, PeopleServices, Questions
from remit.engine.presence.bell import Bell
from remit.engine.presence.heartbeat import Heartbeat
from remit.engine.presence.insisting import Insisting
from remit.engine.queue.control import TaskControl
from remit.engine.queue.submitting import ResidentWorker, TaskQueue
from remit.engine.services import Services
from remit.engine.settings import EngineSettings, Policy, Serving, System
from remit.engine.system import SystemClock
from remit.engine.turn import Turn, TurnServices
from remit.ports import Database, Store

if TYPE_CHECKING:
    from remit.engine.answering import QuestionDesk
    from remit.engine.artifacts import ArtifactFiles
    from remit.engine.messenger import Messenger
    from remit.engine.models.prompting import ModelServices
    from remit.engine.more_money import MoreMoney
    from remit.engine.plans import PlanRunner
    from remit.engine.queue.takeover import Succession
    from remit.engine.schedules import Scheduler
    from remit.engine.team import Leading


class Engine(NamedTuple):
    """The parts of the engine that a runtime and its workspace use."""

    services: Services
    delegations: Delegations
    queue: TaskQueue
    control: TaskControl
    leading: Callable[[], Leading]
    entries: Entries
    breakers: Breakers
    accounts: Accounts
    finder: Finder
    resident: ResidentWorker
    look: float

    @property
    def desk(self) -> QuestionDesk:
        """The desk that delivers questions to this program as they are asked."""
        from remit.engine.answering import QuestionDesk

        return QuestionDesk(self.services, self.look)


def assembled(database: Database, workspace: str, directory: Directory, settings: EngineSettings) -> Engine:
    """Return the assembled engine. Everything it writes goes through the consequences."""
    policy, serving, system = settings.policy, settings.serving, settings.system
    contents = partial(database.contents, workspace)
    ears = Ears(system.clock.ticks)
    ground = Ground(_store(database, workspace, settings), system.clock, system.ids, directory, contents, ears)
    services = _services(ground, database, settings)
    delegations, inbox = Delegations(services), Inbox(ground, policy.inbox)
    queue = TaskQueue(services, spawns=policy.spawns, spawn_wait=serving.pace.spawn_timeout)
    control = TaskControl(ground, services.bell, services.slots, services.conductor.alive, services.heartbeat.worker)
    entries, scheduler = Entries(ground), partial(_scheduler, services, settings)
    plans = cache(partial(_plan_runner, services, delegations, inbox, settings))
    resident = ResidentWorker(services, serving, lambda: database.dispatcher(workspace), scheduler)
    finder, money = Finder(ground, system.embed, policy.certainty), _money(services, settings)
    turn_services = TurnServices(
        directory,
        finder,
        delegations,
        services.handoffs,
        queue,
        control,
        plans,
        entries,
        inbox,
        money,
        PeopleServices(services.questions),
        cache(partial(_model_services, services, money, entries, inbox, finder, settings)),
        settings.deps,
        cache(partial(_artifact_files, ground, policy)),
    )

    # Delegation is recursive: delegate -> carry -> turn -> delegate. And a submission may start the worker, which
    # carries tasks. These references are set here and nowhere else, to avoid import cycles.
    conductor, leading = services.conductor, cache(partial(_leading, services, plans))
    conductor.take_turn, conductor.led = partial(Turn, turn_services), lambda live: leading().agent(live)
    conductor.closing = lambda: resident.closing
    conductor.reviews = cache(partial(_reviews, services, policy))
    services.handoffs.send = delegations.part
    queue.hands = control.lend = resident.lend
    views = (entries, Breakers(ground), Accounts(ground), finder)
    return Engine(services, delegations, queue, control, leading, *views, resident, serving.pace.poll_interval)


def _money(services: Services, settings: EngineSettings) -> MoneyServices:
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


def _model_services(
    services: Services, money: MoneyServices, entries: Entries, inbox: Inbox, finder: Finder, settings: EngineSettings
) -> ModelServices:
    from remit.engine.models.prompting import model_services
    from remit.engine.upkeep.keys import Keys

    keys = Keys(services.ground, settings.vault, settings.redaction)
    return model_services(services, money.paying, keys, entries, inbox, finder, settings.policy.loops)


def _plan_runner(services: Services, delegations: Delegations, inbox: Inbox, settings: EngineSettings) -> PlanRunner:
    from remit.engine.plans import PlanRunner

    return PlanRunner(services.ground, delegations, inbox, services.questions, settings.schemas)


def _leading(services: Services, plans: Callable[[], PlanRunner]) -> Leading:
    from remit.engine.team import Leading

    return Leading(plans(), services.conductor)


def _more_money(services: Services) -> MoreMoney:
    from remit.engine.more_money import MoreMoney

    return MoreMoney(services.questions)


def _reviews(services: Services, policy: Policy) -> ReviewsResults:
    from remit.engine.reviews import Reviews

    return Reviews(services.ground, services.questions, services.handoffs, policy.reviews, policy.on_no_answer)


def _artifact_files(ground: Ground, policy: Policy) -> ArtifactFiles:
    from remit.engine.artifacts import ArtifactFiles

    return ArtifactFiles(ground, policy.artifact_bytes, policy.run_artifact_bytes)


def _scheduler(services: Services, settings: EngineSettings) -> Scheduler:
    from remit.engine.schedules import Scheduler

    return Scheduler(services, settings.calendar)


def _lost_talks(ground: Ground) -> HandlesLostTalks:
    from remit.engine.models.talking import LostTalks

    return LostTalks(ground)


def _timely(database: Database, workspace: str, system: System) -> Store:
    """Return the store with a check of this process's clock before writes. A clock that the caller passed is not
    checked."""
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
    questions = Questions(ground, slots, Answers(ground), policy.answer_within)
    handoffs.ask = questions.ask
    base = (ground, admission, conductor, handoffs, bell, heartbeat, stops, slots, busy, insisting, questions)
    return Services(*base, _messenger(ground, bell, heartbeat, questions.answers, serving))


def _messenger(
    ground: Ground, bell: Bell, heartbeat: Heartbeat, answers: Answers, serving: Serving
) -> Messenger | None:
    if not serving.channels:
        return None
    from remit.engine.messenger import AnswerDesk, Messenger

    desk = AnswerDesk(ground, answers)
    return Messenger(desk, bell, heartbeat, serving.channels, serving.pace.poll_interval)

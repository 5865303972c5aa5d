"""What a model is given: the prompt, and the verbs that can succeed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from remit.core import offers, scope
from remit.core import remit as remits
from remit.core.allow import ANY
from remit.core.entry import Entry
from remit.core.lifecycle import RunFacts
from remit.core.loops import Loops
from remit.core.offers import Offers, Room, hidden
from remit.core.prices import dollars
from remit.core.prompt import ALONE, Around, Assigned, Colleague, Done, HandedOn, Note, Passed, ReviewNote, brief, cut
from remit.core.scope import Scope, Sees, board_of, memory_of
from remit.core.session import said_before
from remit.core.toolgroups import GROUPS
from remit.core.values import encode
from remit.engine.attempt.live import LiveTask
from remit.engine.context import Entries, HolderAccess
from remit.engine.door import TaskLimits
from remit.engine.finding import Finder
from remit.engine.ground import Ground
from remit.engine.inbox import Inbox
from remit.engine.models.asking import Costs, Models
from remit.engine.models.circling import Circles
from remit.engine.models.remembering import Remembering
from remit.engine.models.talking import KeptTalks
from remit.engine.models.toolbox import Toolbox
from remit.engine.money import Paying
from remit.engine.services import Services
from remit.engine.upkeep.keys import Keys
from remit.ports import View

_ASKING: Final = GROUPS["agents"] - GROUPS["context"]


class Offering(NamedTuple):
    """Decides which tools and verbs are offered. `hide` says whether verbs that cannot succeed are hidden. Verbs that
    no card allows are always hidden."""

    ground: Ground
    limits: TaskLimits
    hide: bool = True

    async def room(self, live: LiveTask) -> Room:
        """Return what a holder can still do. The store is read only if there is an agent that it may ask; otherwise the
        result is valid until the holder writes something."""
        if live.room is None or live.card.asks:
            live.room = await self._room(live)
        return live.room

    async def _room(self, live: LiveTask) -> Room:
        remit = live.remit
        # It may be the agent's own tool of this name.
        own = live.card.tools is not ANY and "ask_person" in live.card.tools
        person = live.card.ask_person or own
        if not self.hide:
            return Room(person=person)
        board = board_of(remit.session)
        room = Room(
            askable=self._may_ask(live),
            deeper=remit.bounds.depth is None or remit.chain.depth < remit.bounds.depth,
            reads=bool(live.sight),
            writes=bool(live.reach),
            board=_any_of(live.sight, board) or _any_of(live.reach, board),
            person=person,
        )
        if not room.askable:
            return room
        run, spawned = await self.ground.store.read(lambda view: _facts(view, live))
        most = remit.bounds.tasks
        return room._replace(
            tasks=most is None or run.tasks < most or (remit.led and run.tasks == most),
            handoffs=self._may_hand(live, run),
            spawns=spawned < self.limits.spawns,
        )

    async def offers(self, live: LiveTask) -> Offers:
        """Return which tools and verbs a model is shown with its next request."""
        live.must_be_at_work()
        room = await self.room(live)
        if live.offered is None or live.offered[0] is not room:
            # A card does not list the tools of agents that run inside the turn: for them, bounds and denials decide.
            kit = remits.kit(live.remit, live.card, inner=True)
            live.offered = room, Offers(kit, offers.hidden(room), live.card.deny)
        return live.offered[1]

    def _may_ask(self, live: LiveTask) -> bool:
        card = live.card
        return bool(card.asks) and bool(self.ground.directory.askable(live.remit, card))

    def _may_hand(self, live: LiveTask, run: RunFacts) -> bool:
        most = live.remit.bounds.handoffs
        return (most is None or run.handoffs < most) and len(live.handoff.trail) < self.limits.handoffs


def has_verbs(live: LiveTask) -> bool:
    """Whether the holder has verbs among its tools, as every model has; agents that are programs have none."""
    return any(live.kit.has(name) for name in (*GROUPS["context"], *_ASKING))


def _facts(view: View, live: LiveTask) -> tuple[RunFacts, int]:
    live.must_hold(view)
    return view.run(live.remit.root), view.spawned(live.remit.id)


def _any_of(sees: Sees, board: scope.Scope) -> bool:
    return bool(scope.parts(sees, board))


_ENTRIES: Final = 50  # passed entries in a prompt; further ones can be read with the verb
_TEAM: Final = 20  # agents in a prompt; list_agents returns the rest
_NEWEST: Final = 10  # entries of the memory, and of the board
_LONG: Final = 1_000  # characters of one of them
_LONGEST: Final = 4_000  # characters of all of them together
_NAMED: Final = 20  # namespaces


class Prompting(NamedTuple):
    entries: Entries
    inbox: Inbox
    offering: Offering
    remembering: Remembering

    async def prompt(self, live: LiveTask) -> str:
        """Return the prompt: the task, the passed entries, the handoff that brought the task to its holder, and new
        messages. A model also gets its memory, the newest notes on the board, and the agents it may ask. If the run
        remembers its session, the earlier conversation is included. Everything in the prompt is on the receipt."""
        passed = await self._passed(live)
        around = await self._around(live) if has_verbs(live) else ALONE
        fresh = not (live.attempt.is_rerun and await self._has_begun(live))
        notes = [Note(one.sender, one.text, one.trust) for one in await self.inbox.take(live, fresh=fresh)]
        remit = live.remit
        task = Assigned(remit.task, remit.trust, remit.asker != "", live.composed, remit.data)
        return brief(task, passed, _handed_on(live), notes, around, before=await self._before(live))

    async def _before(self, live: LiveTask) -> str:
        """Return the session's earlier conversation, or "" if the agent's adapter passes it to the model as
        messages."""
        if getattr(live.agent.answer, "tells_past", False):
            return ""
        past = await self.remembering.past(live)
        return said_before([one.exchange for one in past]) if past else ""

    async def _has_begun(self, live: LiveTask) -> bool:
        """Whether an earlier attempt of the turn has had an answer. If so, its prompt is not sent again, and a new
        message must come with the next request: in the prompt it would be lost."""
        op = live.operations.position("")
        return await self.inbox.ground.store.read(lambda view: view.done(op) is not None)

    async def _passed(self, live: LiveTask) -> list[Passed]:
        sees = live.remit.sees
        if sees is ANY or not sees:  # unlimited rights are no list of entries
            return []
        wanted = [one for one in sorted(sees, key=_order) if scope.parts(live.sight, one)]  # bounds may exclude some
        if not wanted:
            return []
        found = await HolderAccess(self.entries, live).recent(wanted, _ENTRIES)
        listed = sorted(found, key=lambda entry: (entry.namespace, entry.key))
        return [Passed(f"{one.namespace}/{one.key}", one.agent, one.text, one.trust) for one in listed]

    async def _around(self, live: LiveTask) -> Around:
        """Return the parts of the prompt next to the task: only those for which the model is offered a verb."""
        room, kit = await self.offering.room(live), live.kit
        not_offered = hidden(room)

        def offered(name: str) -> bool:
            return name not in not_offered and kit.has(name)

        access = HolderAccess(self.entries, live)
        memory, board = memory_of(live.card.name), board_of(live.remit.session)
        wanted = [memory] if offered("recall") else []
        wanted += [board] if offered("blackboard") else []
        found = await access.newest(wanted, _NEWEST + 1)
        remembered, noted = _fitting(found, memory), _fitting(found, board)
        if remembered or noted:
            await access.note([*remembered, *noted])
        reads, writes = _namespaces(live) if offered("recall") or offered("remember") else ((), ())
        team, more = self._team(live, room, offered)
        return Around(
            memory=_passed_entries(remembered),
            more_memory=len(remembered) < len(found.get(memory, ())),
            board=_passed_entries(noted),
            more_board=len(noted) < len(found.get(board, ())),
            reads=reads if offered("recall") else (),
            writes=writes if offered("remember") else (),
            team=team,
            more_team=more,
            hands_only=not room.asks,
        )

    def _team(self, live: LiveTask, room: Room, offered: Callable[[str], bool]) -> tuple[tuple[Colleague, ...], int]:
        """Return the agents that the holder may ask or hand its task to, and how many more there are."""
        asks = room.asks and any(map(offered, ("call_agent", "call_agent_async", "spawn_agent")))
        if not asks and not (room.hands and offered("handoff")):
            return (), 0
        directory = self.offering.ground.directory
        names = directory.roster(live.remit, live.card)
        agents = (directory.get(name) for name in names[:_TEAM])
        cards = [agent.card for agent in agents if agent is not None]
        return tuple(Colleague(card.name, card.role, card.can) for card in cards), max(0, len(names) - _TEAM)


def _order(scope: Scope) -> tuple[str, str, str]:
    return scope.namespace, scope.key or "", scope.prefix


def _fitting(found: dict[Scope, list[Entry]], wanted: Scope) -> list[Entry]:
    """Return the newest entries that fit into a prompt; at least one, which is cut if it is too long."""
    fits: list[Entry] = []
    left = _LONGEST
    for entry in found.get(wanted, ())[:_NEWEST]:
        left -= min(len(entry.text), _LONG)
        if fits and left < 0:
            break
        fits.append(entry)
    return fits


def _passed_entries(entries: Sequence[Entry]) -> tuple[Passed, ...]:
    return tuple(Passed(one.key, one.agent, cut(one.text, _LONG), one.trust) for one in entries)


def _namespaces(live: LiveTask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the namespaces of shared context that the holder may read, and those that it may write, without its memory
    and the board. They come from its card and from the rights that were passed with the task. Passed rights without
    limits, such as a person's, add none."""
    remit, card = live.remit, live.card
    reads = scope.both(remit.bounds.sees, scope.either(card.reads, scope.NOTHING if remit.sees is ANY else remit.sees))
    writes = scope.both(
        remit.bounds.writes, scope.either(card.writes, scope.NOTHING if remit.writes is ANY else remit.writes)
    )
    return _scope_names(reads), _scope_names(writes)


def _scope_names(sees: scope.Sees) -> tuple[str, ...]:
    if sees is ANY:
        return ()
    named = sorted({one.written for one in sees if not one.namespace.startswith(scope.BOARD_PREFIX)})
    return tuple(named[:_NAMED])


def _handed_on(live: LiveTask) -> HandedOn | None:
    handoff = live.handoff
    sent = handoff.sent_back
    if not handoff.sender and not handoff.results and not handoff.refused and sent is None:
        return None
    results = tuple(
        Done(
            f"part {number}", one.by or one.agent, _text(one.value if one.error is None else str(one.error)), one.trust
        )
        for number, one in enumerate(handoff.results, 1)
    )
    back = ReviewNote(_text(sent.result), sent.why, sent.by) if sent is not None else None
    return HandedOn(
        handoff.sender, handoff.state.text, live.took, results, handoff.refused, handoff.failed, _usage_text(live), back
    )


def _usage_text(live: LiveTask) -> str:
    """Return the usage of earlier holders: 1,200 tokens, 3.5 s, $0.02."""
    state = live.handoff.state
    parts = [f"{state.tokens:,} tokens"] if state.tokens else []
    parts += [f"{state.seconds:,g} s"] if state.seconds else []
    parts += [dollars(state.credits)] if state.credits else []
    return ", ".join(parts)


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode(value)


class ModelServices(NamedTuple):
    models: Models
    toolbox: Toolbox
    prompting: Prompting
    offering: Offering
    talking: KeptTalks


def model_services(
    services: Services, paying: Paying, keys: Keys, entries: Entries, inbox: Inbox, finder: Finder, loops: Loops
) -> ModelServices:
    """Return the services for models, assembled when the first turn uses one."""
    ground, insisting = services.ground, services.insisting
    circles = Circles(ground, finder, loops, OrderedDict())
    models = Models(ground, Costs(paying), keys, insisting, services.slots, {}, circles)
    toolbox = Toolbox(ground, insisting, keys.redaction, circles)
    offering = Offering(ground, services.admission.limits, loops.hide)
    prompting = Prompting(entries, inbox, offering, Remembering(ground))
    return ModelServices(models, toolbox, prompting, offering, KeptTalks(models, inbox, prompting.remembering))

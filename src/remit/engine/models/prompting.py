"""The prompt is the remit: what a holder is told is what it was given, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from remit.core import scope
from remit.core.allow import ANY
from remit.core.credits import dollars
from remit.core.entry import Entry
from remit.core.offers import Room, hidden
from remit.core.prompt import ALONE, Around, Assigned, Colleague, Done, HandedOn, Note, Passed, brief, cut
from remit.core.scope import Scope, board_of, memory_of
from remit.core.session import said_before
from remit.core.values import encode
from remit.engine.attempt.live import LiveTask
from remit.engine.models.offering import Offering, has_verbs
from remit.engine.models.remembering import Remembering
from remit.engine.sharing.access import HolderAccess
from remit.engine.sharing.entries import Entries
from remit.engine.sharing.inbox import Inbox

_ENTRIES: Final = 50  # that are passed along and told; what is more can be read by whoever has the verb
_TEAM: Final = 20  # agents that are introduced; the rest is listed by list_agents
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
        """Write the task, the entries that were passed along, how it came to its holder, and the messages that have
        arrived; for a model also its memory, the newest notes on the board, and whom it may ask. A run that remembers
        its session is told what was said before. Everything that goes in is on the receipt."""
        passed = await self._passed(live)
        around = await self._around(live) if has_verbs(live) else ALONE
        fresh = not (live.attempt.is_rerun and await self._has_begun(live))
        notes = [Note(one.sender, one.text, one.trust) for one in await self.inbox.take(live, fresh=fresh)]
        remit = live.remit
        task = Assigned(remit.task, remit.trust, by_agent=remit.asker != "", composed=live.composed)
        return brief(task, passed, _handed(live), notes, around, before=await self._before(live))

    async def _before(self, live: LiveTask) -> str:
        """Return what was said before in the session. An agent whose adapter gives it to the model as messages is not
        told twice."""
        if getattr(live.agent.answer, "tells_past", False):
            return ""
        past = await self.remembering.past(live)
        return said_before([one.exchange for one in past]) if past else ""

    async def _has_begun(self, live: LiveTask) -> bool:
        """Whether an earlier attempt has had an answer: then a message that is new belongs to the next request, and
        would be lost in a prompt that is not sent again."""
        op = live.operations.position("")
        return await self.inbox.ground.store.read(lambda view: view.done(op) is not None)

    async def _passed(self, live: LiveTask) -> list[Passed]:
        sees = live.remit.sees
        if sees is ANY or not sees:  # a person's blanket sight is no list of what to read
            return []
        wanted = [one for one in sorted(sees, key=_order) if scope.parts(live.sight, one)]  # bounds may leave out some
        if not wanted:
            return []
        found = await HolderAccess(self.entries, live).recent(wanted, _ENTRIES)
        listed = sorted(found, key=lambda entry: (entry.namespace, entry.key))
        return [Passed(f"{one.namespace}/{one.key}", one.agent, one.text, one.trust) for one in listed]

    async def _around(self, live: LiveTask) -> Around:
        """Read what a model is told besides: no more of it than it is offered a verb for."""
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
            memory=_told(remembered),
            more_memory=len(remembered) < len(found.get(memory, ())),
            board=_told(noted),
            more_board=len(noted) < len(found.get(board, ())),
            reads=reads if offered("recall") else (),
            writes=writes if offered("remember") else (),
            team=team,
            more_team=more,
            hands_only=not room.asks,
        )

    def _team(self, live: LiveTask, room: Room, offered: Callable[[str], bool]) -> tuple[tuple[Colleague, ...], int]:
        """Introduce those whom the holder may ask, or hand its task to."""
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
    """Leave the newest entries that fit into a prompt; at least one, however long it is, as it is cut."""
    fits: list[Entry] = []
    left = _LONGEST
    for entry in found.get(wanted, ())[:_NEWEST]:
        left -= min(len(entry.text), _LONG)
        if fits and left < 0:
            break
        fits.append(entry)
    return fits


def _told(entries: Sequence[Entry]) -> tuple[Passed, ...]:
    return tuple(Passed(one.key, one.agent, cut(one.text, _LONG), one.trust) for one in entries)


def _namespaces(live: LiveTask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the context that the holder may read and write by its card and by what it was passed, besides its memory and
    the board. A person's blanket sight names nothing."""
    remit, card = live.remit, live.card
    reads = scope.both(remit.bounds.sees, scope.either(card.reads, scope.NOTHING if remit.sees is ANY else remit.sees))
    writes = scope.both(
        remit.bounds.writes, scope.either(card.writes, scope.NOTHING if remit.writes is ANY else remit.writes)
    )
    return _named(reads), _named(writes)


def _named(sees: scope.Sees) -> tuple[str, ...]:
    if sees is ANY:
        return ()
    named = sorted({one.written for one in sees if not one.namespace.startswith(scope.BOARD_PREFIX)})
    return tuple(named[:_NAMED])


def _handed(live: LiveTask) -> HandedOn | None:
    handoff = live.handoff
    if not handoff.sender and not handoff.results and not handoff.refused:
        return None
    results = tuple(
        Done(
            f"part {number}", one.by or one.agent, _text(one.value if one.error is None else str(one.error)), one.trust
        )
        for number, one in enumerate(handoff.results, 1)
    )
    return HandedOn(
        handoff.sender, handoff.state.text, live.took, results, handoff.refused, handoff.failed, _used(live)
    )


def _used(live: LiveTask) -> str:
    """Say what the holders before have used: 1,200 tokens, 3.5 s, $0.02"""
    state = live.handoff.state
    parts = [f"{state.tokens:,} tokens"] if state.tokens else []
    parts += [f"{state.seconds:,g} s"] if state.seconds else []
    parts += [dollars(state.credits)] if state.credits else []
    return ", ".join(parts)


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode(value)

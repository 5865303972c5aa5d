"""Several databases as one. Each workspace lives in one of them, and may move while this process uses it.

The first database is the home: it keeps where each workspace lives. A new workspace goes where a hash of its name says,
and that is noted before its first event is written, so another database in the list changes nothing for old ones.

A process learns of a move in two ways. The old database refuses a write in its own transaction, so it is repeated at
the new one. A read is checked afterwards against the marks of its database, which are read every half second at most;
`remit move` waits longer than that before it deletes the old copy, so no read returns a half-deleted one.
"""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Self, TypeVar, cast

import anyio
from anyio import to_thread

from remit.core.events import SealKey
from remit.core.placement import MoveMark, chosen, living_at, moved
from remit.core.values import shown
from remit.errors import BadInput, Conflict, Moved, StoreBusy, StoreError
from remit.ports import NOTHING, Beat, Decide, Decided, Dispatcher, Pulse, Sink, Store, View, Wants
from remit.ports.contents import Clearing, ContentReader, Contents, Kept, Saving
from remit.ports.placing import Member, MoveEnd
from remit.ports.store import WordsLine

if TYPE_CHECKING:
    from remit.ports.models import Listeners, TextChunk
    from remit.ports.store import WordsCarrier

T = TypeVar("T")

KNOWN_FOR: Final = 0.5  # seconds
PATIENCE: Final = 10.0  # seconds that a write waits for a move to end
_POLL: Final = 0.05


class KnownMarks:
    """A cache of the move marks of one database, with the time when they were read. Its methods may be called from any
    thread."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._lock = threading.Lock()
        self._marks: dict[str, MoveMark] = {}
        self._at = float("-inf")

    def are_known(self, within: float) -> bool:
        return time.monotonic() - self._at < within

    def mark(self, workspace: str, within: float) -> MoveMark | None:
        """Return the mark of a workspace, as it was at most this many seconds ago."""
        with self._lock:
            now = time.monotonic()
            if now - self._at >= within:
                self._marks = self._member.marks()
                self._at = now  # of the time before the read: a mark that came since may be missing
            return self._marks.get(workspace)


class HomeNotes:
    """Records in the home database where new workspaces live, over one connection that stays open. It is
    thread-safe."""

    def __init__(self, home: Member) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._kept: tuple[int, MoveEnd] | None = None  # with the process that opened it: a fork must not use it

    def note(self, workspace: str, place: str) -> str:
        """Record the database of a workspace, unless one is recorded. Return the recorded one."""
        with self._lock:
            process = os.getpid()
            if self._kept is not None and self._kept[0] == process:
                try:
                    return self._kept[1].place(workspace, place)
                except StoreBusy:
                    raise
                except StoreError:  # the connection was lost; a new one says whether it is more than that
                    self._drop()
            end = self._home.end().__enter__()
            self._kept = (process, end)
            return end.place(workspace, place)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == os.getpid():
            kept[1].__exit__(None, None, None)


class FollowingWatch:
    """A subscription to a workspace's store. When the workspace moves, `follow` subscribes to its new store instead."""

    def __init__(self, begin: Callable[[Store], Callable[[], None]], store: Store) -> None:
        self._begin = begin
        self.stop = begin(store)

    def follow(self, store: Store) -> None:
        self.stop()
        self.stop = self._begin(store)


class WorkspaceRoute:
    """The database in which a workspace lives, as far as this process knows. All users of a workspace in this process
    share one route."""

    def __init__(self, workspace: str, place: str, member: Member, *, is_noted: bool) -> None:
        self.workspace = workspace
        self.place = place
        self.store = member.store(workspace)
        self.is_noted = is_noted  # in the home
        self._watches: list[FollowingWatch] = []
        self._moves: list[Callable[[], None]] = []

    def change(self, place: str, member: Member) -> None:
        """Use another database from now on. Call it on the loop's thread."""
        if place == self.place:
            return
        self.place, self.store, self.is_noted = place, member.store(self.workspace), True
        for watch in self._watches:
            watch.follow(self.store)
        for tell in tuple(self._moves):
            tell()

    def watch(self, begin: Callable[[Store], Callable[[], None]]) -> Callable[[], None]:
        watch = FollowingWatch(begin, self.store)
        self._watches.append(watch)

        def stop() -> None:
            if watch in self._watches:
                self._watches.remove(watch)
                watch.stop()

        return stop

    def on_move(self, tell: Callable[[], None]) -> Callable[[], None]:
        self._moves.append(tell)
        return lambda: self._moves.remove(tell)


class SeveralDatabases:
    """The databases of a server or worker, the home first. `patience` is how many seconds a write waits for a move, and
    `known_for` how many seconds a read relies on the marks that were read before."""

    lasting = True

    def __init__(self, members: Sequence[Member], *, patience: float = PATIENCE, known_for: float = KNOWN_FOR) -> None:
        self._patience = patience
        self._known_for = known_for
        self._routes: dict[str, WorkspaceRoute] = {}
        home = _joined(members[0], "")
        self.members: dict[str, Member] = {home: members[0]}
        for member in members[1:]:
            name = _joined(member, home)
            if name in self.members:
                raise BadInput(f"{member.where} is given twice, or is a copy of {self.members[name].where}")
            self.members[name] = member
        self.home = home
        self.where = ", ".join(member.where for member in members)
        self._marks = {name: KnownMarks(member) for name, member in self.members.items()}
        self._notes = HomeNotes(self.members[home])

    # -- placement ----------------------------------------------------------------------------------

    def route(self, workspace: str) -> WorkspaceRoute:
        """Return the route of a workspace. Raise `Moved` if it is between two databases, or in one that was not
        given."""
        found = self._routes.get(workspace)
        if found is None:
            noted = self.members[self.home].placed(workspace)
            place = self.living(workspace, noted or self.sought(workspace))
            found = WorkspaceRoute(workspace, place, self.members[place], is_noted=noted is not None)
            self._routes[workspace] = found
        return found

    def living(self, workspace: str, place: str, within: float | None = None) -> str:
        """Return the name of the database that has a workspace, following the marks from `place`. `within` is the
        greatest age of cached marks, in seconds [default: `known_for`]. Raise `Moved` while the workspace is between
        two databases, or if it is in one that was not given."""
        found = living_at(place, lambda place: self._mark(place, workspace, within))
        if found is None:
            error = Moved(f"workspace '{workspace}' is between two databases; if that lasts, run `remit move` again")
            error.retryable = True
            raise error
        self._must_have(found, workspace)
        return found

    def mark(self, route: WorkspaceRoute, within: float | None = None) -> MoveMark | None:
        """Return the mark of a workspace in the database of its route, or None. `within` is as for `living`."""
        return self._mark(route.place, route.workspace, within)

    def _mark(self, place: str, workspace: str, within: float | None = None) -> MoveMark | None:
        self._must_have(place, workspace)
        return self._marks[place].mark(workspace, self._known_for if within is None else within)

    def _must_have(self, place: str, workspace: str) -> None:
        if place not in self.members:
            marks = (known.mark(workspace, self._known_for) for known in self._marks.values())
            where = next((f", {mark.where}" for mark in marks if mark is not None and mark.place == place), "")
            raise Moved(
                f"workspace '{workspace}' lives in a database that was not given here{where}; add it with --store"
            )

    def sought(self, workspace: str) -> str:
        """Return the database of a workspace that the home does not know: the one that has its events, or else one that
        a move has marked, or else the one that the hash of its name selects. Raise `Conflict` if several have its
        events and no move explains that."""
        marks = {name: self._mark(name, workspace) for name in self.members}
        found = [name for name, member in self.members.items() if member.has(workspace)]
        live = [name for name in found if marks[name] is None]
        if len(live) > 1:
            places = " and ".join(self.members[name].where for name in live)
            raise Conflict(f"both {places} have a workspace {shown(workspace)}; open them one at a time, and rename")
        marked = [name for name, mark in marks.items() if mark is not None]
        return next(iter((*live, *marked)), "") or chosen(workspace, self.members)

    def note(self, route: WorkspaceRoute) -> str:
        """Record in the home database which database has a new workspace. Return the recorded database: another process
        may have been first."""
        place = self._notes.note(route.workspace, route.place)
        self._must_have(place, route.workspace)
        return place

    async def writable(self, route: WorkspaceRoute) -> Store:
        """Return the store to write to, after its place is noted."""
        if not route.is_noted:
            place = await to_thread.run_sync(self.note, route)
            route.change(place, self.members[place])
            route.is_noted = True
        return route.store

    async def follow(self, route: WorkspaceRoute, until: float) -> None:
        """Wait until a workspace may be written, here or at its new place, and update its route. Raise `Moved` after
        `until`, in monotonic time, or if the new database was not given."""
        while True:
            is_last = time.monotonic() > until
            known_for = 0.0 if is_last else _POLL  # a refusal never goes by an old mark
            try:
                place = await to_thread.run_sync(self.living, route.workspace, route.place, known_for)
                route.change(place, self.members[place])
                mark = await to_thread.run_sync(self.mark, route, known_for)
                if mark is None:
                    return
                waits = moved(route.workspace, mark)  # it may have left since the place was looked up: look again
            except Moved as error:
                if not error.retryable:
                    raise
                waits = error
            if is_last:
                raise waits
            await asyncio.sleep(_POLL)

    async def has_moved(self, route: WorkspaceRoute, place: str) -> bool:
        """Whether a read at `place` must be repeated, because the workspace does not live there any more. The route
        then leads to its new database. Raise `Moved` if that is not found."""
        if not self._marks[place].are_known(self._known_for):
            await to_thread.run_sync(self._marks[place].mark, route.workspace, self._known_for)
        mark = self._marks[place].mark(route.workspace, float("inf"))
        if route.place != place:
            return True
        if mark is None or mark.state == "leaving":
            return False
        await self._reroute(route)
        return True

    async def _reroute(self, route: WorkspaceRoute) -> None:
        until = time.monotonic() + self._patience
        while True:
            try:
                place = await to_thread.run_sync(self.living, route.workspace, route.place, _POLL)
            except Moved as error:
                if not error.retryable or time.monotonic() > until:
                    raise
                await asyncio.sleep(_POLL)
            else:
                route.change(place, self.members[place])
                return

    def until(self) -> float:
        """Return until when a write waits for a move, in monotonic time."""
        return time.monotonic() + self._patience

    # -- `Database` ---------------------------------------------------------------------------------

    def store(self, workspace: str) -> "PlacedStore":
        return PlacedStore(self, self.route(workspace))

    def contents(self, workspace: str) -> "PlacedContents":
        return PlacedContents(self, self.route(workspace))

    def dispatcher(self, workspace: str) -> "PlacedDispatcher":
        return PlacedDispatcher(self, self.route(workspace))

    def words(self, workspace: str) -> "PlacedWords":
        return PlacedWords(self, self.route(workspace))

    def pulse(self, workspace: str) -> "PlacedPulse":
        return PlacedPulse(self, self.route(workspace))

    def server_time(self) -> int | None:
        times = (member.server_time() for member in self.members.values())
        return next((now for now in times if now is not None), None)

    def workspaces(self) -> list[str]:
        """Return the names of the workspaces of all databases, without copies that arrive or that a move left
        behind."""
        found: set[str] = set()
        for member in self.members.values():
            marks = member.marks()
            found |= {one for one in member.workspaces() if one not in marks or marks[one].state == "leaving"}
        return sorted(found)

    async def opened_by(self, access: str) -> str | None:
        """Return the workspace of an access key, or None if no database has it or two have it. All databases are asked,
        because a key does not say where its workspace lives; callers cache the answer."""
        found = {await member.opened_by(access) for member in self.members.values()} - {None}
        return found.pop() if len(found) == 1 else None

    @property
    def key(self) -> SealKey | None:
        return self.members[self.home].key

    def seal_with(self, key: SealKey | None) -> None:
        for member in self.members.values():
            member.seal_with(key)

    def faulty(self) -> list[str]:
        return self._from_each(lambda member: member.faulty())

    def remarks(self) -> list[str]:
        return self._from_each(lambda member: member.remarks())

    def advice(self) -> list[str]:
        return [*dict.fromkeys(one for member in self.members.values() for one in member.advice())]

    def _from_each(self, ask: Callable[[Member], list[str]]) -> list[str]:
        return [f"{member.where}: {one}" for member in self.members.values() for one in ask(member)]

    def close(self) -> None:
        self._notes.close()
        for member in self.members.values():
            member.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _joined(member: Member, home: str) -> str:
    """Return the name of a database; if it has none, it gets one and joins the home with this name ("" makes it a
    home). Raise `BadInput` for a database in memory, and for one that belongs to another home."""
    if not member.lasting:
        raise BadInput("a store in memory cannot be one of several: no other process could find its workspaces")
    known = member.membership()
    if known is None or not known.home:
        with member.end() as end:
            known = end.join(home)
    if known.home != (home or known.name):
        raise BadInput(
            f"{member.where} is one of other databases, and their home has the name {known.home}; "
            "name that home first, then the others"
        )
    return known.name


class PlacedStore:
    """One workspace, in whichever database it is."""

    __slots__ = ("_route", "_several")

    def __init__(self, several: SeveralDatabases, route: WorkspaceRoute) -> None:
        self._several = several
        self._route = route

    @property
    def workspace(self) -> str:
        return self._route.workspace

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        route, until = self._route, 0.0
        while True:
            store = route.store if route.is_noted else await self._several.writable(route)
            try:
                return await store.tx(op, decide, wants)
            except Moved:
                until = until or self._several.until()
                await self._several.follow(route, until)

    async def read(self, look: Callable[[View], T]) -> T:
        return await self._checked(lambda store: store.read(look))

    async def browse(self, look: Callable[[View], T]) -> T:
        return await self._checked(lambda store: store.browse(look))

    async def _checked(self, use: Callable[[Store], Awaitable[T]]) -> T:
        """Read, and again if the workspace has moved meanwhile: the old copy may have been deleted."""
        route = self._route
        while True:
            place = route.place
            try:
                answer = await use(route.store)
            except Exception:
                if await self._several.has_moved(route, place):
                    continue
                raise
            if not await self._several.has_moved(route, place):
                return answer

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        return self._route.watch(lambda store: store.subscribe(sink))

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        def begin(store: Store) -> Callable[[], None]:
            stop = store.listen(ring)
            asyncio.get_running_loop().call_soon(ring)  # something may have happened on the way
            return stop

        return self._route.watch(begin)


class PlacedDispatcher:
    """Wakes the workers of a workspace, wherever it lives."""

    def __init__(self, several: SeveralDatabases, route: WorkspaceRoute) -> None:
        self._several = several
        self._route = route

    async def serve(self, due: Callable[[], Awaitable[None]]) -> None:
        while True:
            moves = asyncio.Event()
            stop = self._route.on_move(moves.set)
            inner = self._several.members[self._route.place].dispatcher(self._route.workspace)
            try:
                await _until_moved(inner, due, moves)
            finally:
                stop()
            await due()


async def _until_moved(inner: Dispatcher | None, due: Callable[[], Awaitable[None]], moves: asyncio.Event) -> None:
    if inner is None:  # the store itself wakes its listeners
        await moves.wait()
        return
    async with anyio.create_task_group() as group:
        group.start_soon(inner.serve, due)
        await moves.wait()
        group.cancel_scope.cancel()


class PlacedWords:
    """Carries the words of models of a workspace, wherever it lives."""

    def __init__(self, several: SeveralDatabases, route: WorkspaceRoute) -> None:
        self._several = several
        self._route = route
        self._lines: dict[str, WordsLine | None] = {}

    def carry(self, ears: "Listeners") -> Callable[[], None]:
        return self._route.watch(lambda _: _unless_none(self._line(), lambda line: line.carry(ears)))

    def hear(self, hear: "Callable[[TextChunk], None]") -> Callable[[], None]:
        return self._route.watch(lambda _: _unless_none(self._line(), lambda line: line.hear(hear)))

    def _line(self) -> WordsLine | None:
        """Return the line of the database in which the workspace lives now, or None if that database has none. It is
        the same object each time, so that it recognizes its own words."""
        place = self._route.place
        if place not in self._lines:
            member: object = self._several.members[place]
            carrier = cast("WordsCarrier", member) if hasattr(member, "words") else None
            self._lines[place] = None if carrier is None else carrier.words(self._route.workspace)
        return self._lines[place]


def _unless_none(line: WordsLine | None, use: Callable[[WordsLine], Callable[[], None]]) -> Callable[[], None]:
    return _nothing if line is None else use(line)


def _nothing() -> None:
    """Do nothing: the words of this workspace stay in this process."""


class PlacedPulse:
    """Writes the heartbeats of a worker where its workspace lives, also if nothing else of this process has noticed yet
    that it has moved."""

    def __init__(self, several: SeveralDatabases, route: WorkspaceRoute) -> None:
        self._several = several
        self._route = route
        self._pulses: dict[str, Pulse] = {}

    def write(self, beat: Beat) -> None:
        route = self._route
        place = self._several.living(route.workspace, route.place)
        pulse = self._pulses.get(place)
        if pulse is None:
            made = self._several.members[place].pulse(route.workspace)
            assert made is not None  # databases in memory are refused
            pulse = self._pulses[place] = made
        pulse.write(beat)

    def close(self) -> None:
        for pulse in self._pulses.values():
            pulse.close()


class PlacedContents:
    """The contents of a workspace's artifacts, wherever it lives."""

    def __init__(self, several: SeveralDatabases, route: WorkspaceRoute) -> None:
        self._several = several
        self._route = route

    def begin(self) -> "PlacedSaving":
        place = self._route.place if self._route.is_noted else self._several.note(self._route)
        return PlacedSaving(self._several, self._route.workspace, place)

    def open(self, digest: str) -> ContentReader | None:
        return self._here().open(digest)

    def stored(self) -> Iterator[Kept]:
        return self._here().stored()

    def unfinished(self) -> int:
        return self._here().unfinished()

    def clearing(self, *, make: bool = False) -> Clearing | None:
        return self._here().clearing(make=make)

    def _here(self) -> Contents:
        place = self._several.living(self._route.workspace, self._route.place)
        return self._several.members[place].contents(self._route.workspace)


class PlacedSaving:
    """A content that is being written. A move of the workspace waits for its end. If a move has begun nevertheless,
    `keep` raises `Moved`: the event could be written at the new place, where the content would be missing."""

    def __init__(self, several: SeveralDatabases, workspace: str, place: str) -> None:
        self._several = several
        self._workspace = workspace
        self._place = place
        self._saving: Saving = several.members[place].contents(workspace).begin()

    def write(self, data: bytes) -> int:
        return self._saving.write(data)

    def keep(self) -> Kept:
        kept = self._saving.keep()
        mark = self._several.members[self._place].marks().get(self._workspace)
        if mark is not None:
            error = moved(self._workspace, mark)
            error.retryable = True
            raise error
        return kept

    def close(self) -> None:
        self._saving.close()

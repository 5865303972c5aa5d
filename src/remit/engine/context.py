"""Context entries: storing them, an agent's access to them, and `turn.context`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast

from anyio.lowlevel import checkpoint

from remit.core import checks, scope
from remit.core import entry as entries
from remit.core.checks import items
from remit.core.entry import MEMORY, Draft, Entry, Writer
from remit.core.events import Place, Unsealed
from remit.core.kinds.sharing import ArtifactData, entries_removed, entry_set, entry_touched
from remit.core.records import NamedTuple
from remit.core.scope import BOARD_PREFIX, Scope, board_of
from remit.core.times import SECOND, span
from remit.core.trust import TRUSTED, UNTRUSTED, Trust
from remit.core.values import Json, Known, encode, shown
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.errors import BadInput, Refused
from remit.ports import Decision, View

if TYPE_CHECKING:
    from remit.core.artifact import Artifact

CLEANUP_BATCH: Final = 100  # entries removed in one step
_WRITES: Final = 50  # writes of one process, after which one of them also removes expired entries


def anyone(_view: View) -> None:
    """Check nothing: the owner needs no permission."""


_OWNER: Final = Writer("")
T = TypeVar("T")
_NOWHERE: Final = Place()
Carries: TypeAlias = Callable[[View], tuple[ArtifactData, ...]]
SeesEntry: TypeAlias = Callable[[str, str, Entry | None], bool]  # the entry, or that there is none


class Sight(NamedTuple):
    """Whether the author of a write may see the current entry. `covers` decides it, also for an empty address (None);
    `unseen` returns the refusal if the answer is no."""

    covers: Callable[[Entry | None], bool]
    unseen: Callable[[], Refused]

    def must_cover(self, entry: Entry | None) -> None:
        """Raise `Refused` if the writer cannot see the entry, with the same text whether or not one exists."""
        if not self.covers(entry):
            raise self.unseen()


class Authority(NamedTuple):
    """The author of a write, its place, its operation id, the check before the write, and the entries that the author
    may see (None: all). `act` is set if the write is an owner's action, which may have an operation id of its own."""

    by: Writer
    at: Place
    op: str
    check: Callable[[View], None] = anyone
    sight: Sight | None = None
    act: Act = ONCE


class Entries:
    """Writes and reads of entries. Every write is one event; every read sees only live entries."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._store = ground.store
        self._clock = ground.clock
        self._writes = 0

    def now(self) -> int:
        return self._clock.now()

    def owner(self, act: Act) -> Authority:
        """Return the authority of the workspace's owner, who writes outside any run."""
        by = Writer("", person=act.by) if act.by else _OWNER
        return Authority(by, _NOWHERE, self._ground.ids.new(), act=act)

    async def _transact(
        self, authority: Authority, content: Callable[[], ActContent], decide: Callable[[View], Decision[T]]
    ) -> T:
        if not authority.act.op:  # nearly always
            return (await self._store.tx(authority.op, decide)).answer
        return (await authority.act.perform(self._ground, content(), decide)).answer

    async def done(self, ops: list[str], check: Callable[[View], None] = anyone) -> tuple[Json] | None:
        """Return the answer of the first of these operations that has happened, or None."""

        def look(view: View) -> tuple[Json] | None:
            check(view)
            return next((done for op in ops if (done := view.done(op)) is not None), None)

        return await self._store.read(look)

    async def put(self, draft: Draft, authority: Authority, carries: Carries | None = None) -> int:
        """Write an entry and return its version. If the value refers to artifacts, `carries` returns them for the
        event."""
        now = self._clock.now()
        self._writes += 1
        tidies = self._writes % _WRITES == 0

        def decide(view: View) -> Decision[int]:
            authority.check(view)
            entry = self._entry_after_write(view, draft, authority, now)
            events = (entry_set(entry, authority.at, authority.by.person, carries(view) if carries else ()),)
            return Decision(entry.version, (*events, *self._expired(view, entry, now)) if tidies else events)

        return await self._transact(authority, lambda: _content_of(draft), decide)

    @staticmethod
    def _expired(view: View, written: Entry, now: int) -> tuple[Unsealed, ...]:
        """Return the events that remove a batch of expired entries together with a write. The batch is larger than the
        number of writes between two batches, so expired entries do not accumulate even if no worker removes them."""
        where = (written.namespace, written.key)
        return _removed([gone for gone in view.expired(now, CLEANUP_BATCH) if gone[:2] != where], now)

    @staticmethod
    def _entry_after_write(view: View, draft: Draft, authority: Authority, now: int) -> Entry:
        where = (draft.namespace, draft.key)
        old = view.entry(*where)
        if authority.sight is not None and not authority.sight.covers(_alive(old, now)):
            if draft.expect is not None:
                raise authority.sight.unseen()
            return entries.written_blind(draft, authority.by, now, authority.op)
        return entries.after_write(
            old, draft, authority.by, now, view.retired(*where) if old is None else entries.NEVER
        )

    @staticmethod
    def _references(value: Json) -> list[Artifact] | None:
        if not isinstance(value, dict | list):
            return None
        from remit.core.artifact import references  # noqa: PLC0415 - imported for the first value that may have one

        return references(value) or None

    def carries(self, value: Json, live: LiveTask | None) -> Carries | None:
        """Return a function that returns the artifacts which a value refers to, as the author may see them. Return None
        if the value refers to none. `live` is the author's task, or None for the owner."""
        if (found := self._references(value)) is None:
            return None
        from remit.engine.attempt.seeing import carried_by  # noqa: PLC0415 - imported for the first that has one

        now = self._clock.now()
        return lambda view: tuple(carried_by(view, live, found, now))

    def carries_in_entries(self, value: Json, card: str, sees: SeesEntry) -> Carries | None:
        """Return a function that returns the artifacts which a value refers to, for an author that has a card but no
        task: it may use the artifacts of the entries that it sees. Return None if the value refers to none."""
        if (found := self._references(value)) is None:
            return None
        from remit.engine.attempt.seeing import carried_by_card  # noqa: PLC0415

        now = self._clock.now()
        return lambda view: tuple(carried_by_card(view, card, sees, found, now))

    async def get(self, namespace: str, key: str, check: Callable[[View], None] = anyone) -> Entry | None:
        entries.address(namespace, key)
        now = self._clock.now()

        def look(view: View) -> Entry | None:
            check(view)
            return view.entry(namespace, key)

        return _alive(await self._store.read(look), now)

    async def touch(self, where: tuple[str, str], by: int, authority: Authority) -> bool:
        now = self._clock.now()

        def decide(view: View) -> Decision[bool]:
            authority.check(view)
            old = view.entry(*where)
            if authority.sight is not None:
                authority.sight.must_cover(_alive(old, now))
            new = entries.touched(old, by, now)
            if new is None or new is old:
                return Decision(new is not None)
            return Decision(True, (entry_touched(new, authority.by, authority.at, now),))

        return await self._transact(
            authority, lambda: ActContent("context.touch", "/".join(where), [*where, by]), decide
        )

    async def remove(self, namespace: str, key: str, authority: Authority) -> bool:
        entries.address(namespace, key)
        now = self._clock.now()

        def decide(view: View) -> Decision[bool]:
            authority.check(view)
            old = _alive(view.entry(namespace, key), now)
            if authority.sight is not None:
                authority.sight.must_cover(old)
            if old is None:
                return Decision(False)
            gone = [(namespace, key, old.version)]
            return Decision(True, (entries_removed(gone, "removed", authority.by, authority.at, now),))

        where = (namespace, key)
        return await self._transact(authority, lambda: ActContent("context.remove", "/".join(where), [*where]), decide)

    async def recent(self, wanted: list[Scope], limit: int, check: Callable[[View], None] = anyone) -> list[Entry]:
        """Return the most recently updated entries of all these scopes together, newest first."""
        now = self._clock.now()

        def look(view: View) -> list[Entry]:
            check(view)
            return [entry for one in wanted for entry in view.recent(one, now, limit)]

        rows = await self._store.read(look)
        if len(wanted) > 1:
            rows.sort(key=lambda e: (-e.updated_at, e.namespace, e.key))
        return rows[:limit]

    async def newest(
        self, wanted: Mapping[Scope, list[Scope]], limit: int, check: Callable[[View], None] = anyone
    ) -> dict[Scope, list[Entry]]:
        """Return the most recently updated entries of each scope, in one read. The value of each scope in `wanted` are
        its visible parts, and only these are read."""
        now = self._clock.now()

        def look(view: View) -> dict[Scope, list[Entry]]:
            check(view)
            return {
                one: [e for place in {part.address for part in parts} for e in view.recent(place, now, limit)]
                for one, parts in wanted.items()
            }

        found = await self._store.read(look)
        return {one: sorted(rows, key=lambda e: (-e.updated_at, e.key))[:limit] for one, rows in found.items()}

    async def by_key(self, wanted: list[Scope], limit: int, check: Callable[[View], None] = anyone) -> list[Entry]:
        now = self._clock.now()

        def look(view: View) -> list[Entry]:
            check(view)
            return [entry for one in wanted for entry in view.by_key(one, now, limit)]

        rows = await self._store.read(look)
        if len(wanted) > 1:
            rows.sort(key=lambda e: e.key)
        return rows[:limit]

    async def cleanup(self, act: Act = ONCE) -> int:
        """Remove expired entries, and return how many. It works in small steps, between which other work can run."""
        by, removed, step = Writer("", person=act.by), 0, 0
        until = (await act.perform(self._ground, ActContent("cleanup", ""), self._moment)).answer if act.op else None
        while True:
            now = self._clock.now() if until is None else until
            id_ = f"cleanup/{act.op}/{step}" if act.op else ""
            if id_ and (done := await self._store.read(methodcaller("done", id_))) is not None:
                removed += done[0]
            elif await self._store.read(methodcaller("expired", now, 1)):
                removed += (
                    await self._store.tx(id_ or self._ground.ids.new(), partial(_cleaned_up, now=now, by=by))
                ).answer
            else:
                return removed
            step += 1
            await checkpoint()

    def _moment(self, _view: View) -> Decision[int]:
        """Return the decision that records the time of a cleanup. A repetition with the same operation id uses this
        time, so it removes only entries that had expired by then."""
        return Decision(self._clock.now())


def _content_of(draft: Draft) -> ActContent:
    where = (draft.namespace, draft.key)
    return ActContent(
        "context.set", "/".join(where), [*where, draft.value, draft.lifetime, draft.extend, draft.trust, draft.expect]
    )


def _cleaned_up(view: View, now: int, by: Writer) -> Decision[int]:
    keys = view.expired(now, CLEANUP_BATCH)
    return Decision(len(keys), _removed(keys, now, by))


def _removed(keys: list[tuple[str, str, int]], now: int, by: Writer = _OWNER) -> tuple[Unsealed, ...]:
    return (entries_removed(keys, "expired", by, _NOWHERE, now),) if keys else ()


def _alive(entry: Entry | None, now: int) -> Entry | None:
    return entry if entry is not None and entry.alive(now) else None


Fetch: TypeAlias = Callable[[list[Scope], int, Callable[[View], None]], Awaitable[list[Entry]]]


class Access(Protocol):
    """The access that `turn.context` and the board use."""

    @property
    def session(self) -> str: ...
    async def put(self, draft: Draft) -> int: ...
    async def get(self, namespace: str, key: str) -> Entry | None: ...
    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]: ...
    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]: ...
    async def touch(self, namespace: str, key: str, by: int) -> bool: ...
    async def remove(self, namespace: str, key: str) -> bool: ...


class OwnerAccess:
    """The access of the workspace's owner: everything, outside any run."""

    def __init__(self, entries: Entries, session: str, act: Act = ONCE) -> None:
        self._entries = entries
        self._act = act
        self.session = session

    async def put(self, draft: Draft) -> int:
        if draft.value.__class__ is str:
            return await self._entries.put(draft, self._authority())
        return await self._entries.put(draft, self._authority(), self._entries.carries(draft.value, None))

    async def get(self, namespace: str, key: str) -> Entry | None:
        return await self._entries.get(namespace, key)

    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]:
        return await self._entries.recent(wanted, checks.limit(limit))

    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]:
        return await self._entries.by_key([wanted], checks.limit(limit))

    async def touch(self, namespace: str, key: str, by: int) -> bool:
        entries.address(namespace, key)
        return await self._entries.touch((namespace, key), by, self._authority())

    async def remove(self, namespace: str, key: str) -> bool:
        entries.address(namespace, key)
        return await self._entries.remove(namespace, key, self._authority())

    def _authority(self) -> Authority:
        return self._entries.owner(self._act)


class HolderAccess:
    """The access of an agent in its turn: what its remit permits."""

    def __init__(self, entries: Entries, live: LiveTask) -> None:
        self._entries = entries
        self._live = live

    @property
    def session(self) -> str:
        return self._live.remit.session

    async def put(self, draft: Draft) -> int:
        self._may_write(draft.namespace, draft.key)
        live = self._live
        if live.says != draft.trust == TRUSTED:
            draft = replace(draft, trust=UNTRUSTED)
        version = await self._put(draft)
        live.has_written(draft.namespace, draft.key, version)
        return version

    async def _put(self, draft: Draft) -> int:
        """Write an entry and return its version. If an earlier attempt has done this write, return the version that it
        wrote. A retry after a failure writes again, except with `draft.expect`: the first write has changed the
        version, so a second one would fail."""
        live, where = self._live, (draft.namespace, draft.key)
        what, carries = draft.value, None
        if not isinstance(what, str):
            what, carries = encode(draft.value), self._entries.carries(draft.value, live)
        ops = live.operations.ids("set", *where, what, repr(draft.expect))
        if (
            draft.expect is not None
            and live.attempt.is_rerun
            and (done := await self._entries.done(ops, live.must_hold)) is not None
        ):
            return cast("int", done[0])
        return await self._entries.put(draft, self._authority(ops[0], where), carries)

    async def get(self, namespace: str, key: str) -> Entry | None:
        entries.address(namespace, key)
        self._may_look(namespace, key)
        entry = await self._entries.get(namespace, key, self._live.must_hold)
        if not self._live.sees(namespace, key, entry):
            raise self._unseen(f"{namespace}/{key}")
        if entry is not None:
            await self._all_seen([entry])
        return entry

    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]:
        return await self._look(wanted, limit, self._entries.recent)

    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]:
        return await self._look([wanted], limit, self._entries.by_key)

    async def newest(self, wanted: list[Scope], limit: int) -> dict[Scope, list[Entry]]:
        """Return the newest visible entries of each of these scopes, in one read. They are not on the receipt until
        `note` is called."""
        seen = {one: parts for one in wanted if (parts := scope.parts(self._live.sight, one))}
        if not seen:
            return {}
        found = await self._entries.newest(seen, limit, self._live.must_hold)
        return {
            one: [entry for entry in entries if self._live.sees(entry.namespace, entry.key, entry)]
            for one, entries in found.items()
        }

    async def note(self, taken: list[Entry]) -> None:
        """Record on the receipt the entries of `newest` that the agent is given."""
        await self._all_seen(taken)

    async def touch(self, namespace: str, key: str, by: int) -> bool:
        entries.address(namespace, key)
        self._may_write(namespace, key)
        where = (namespace, key)
        return await self._entries.touch(where, by, self._authority(self._live.op("touch", *where), where))

    async def remove(self, namespace: str, key: str) -> bool:
        entries.address(namespace, key)
        self._may_write(namespace, key)
        where = (namespace, key)
        return await self._entries.remove(namespace, key, self._authority(self._live.op("remove", *where), where))

    def _authority(self, op: str, where: tuple[str, str]) -> Authority:
        live = self._live
        unseen = partial(self._unseen, "/".join(where))
        return Authority(live.writer, live.place, op, live.must_hold, Sight(partial(live.sees, *where), unseen))

    async def _look(self, wanted: list[Scope], limit: int, fetch: Fetch) -> list[Entry]:
        """Return the visible entries of several scopes."""
        parts = [part for one in wanted for part in self._visible(one)]
        live = self._live
        return await self._all_seen(
            await only_seen(parts, live.sees, lambda places: fetch(places, checks.limit(limit), live.must_hold))
        )

    async def _all_seen(self, seen: list[Entry]) -> list[Entry]:
        """Record on the receipt that the agent has read these entries, and why it may. The turn takes their trust
        labels. Extend the life of entries that live longer when they are read."""
        live = self._live
        for entry in seen:
            live.take(entry.trust)
            live.receipt.entry(entry, live.why(entry))
            if entry.extension is not None:
                await self._extend(entry)
        return seen

    async def _extend(self, entry: Entry) -> None:
        by = entries.read_extends(entry, self._entries.now())
        if by is not None:
            where = (entry.namespace, entry.key)
            await self._entries.touch(where, by, self._authority(self._live.op("extend", *where), where))

    def _visible(self, wanted: Scope) -> list[Scope]:
        """Return the scopes through which the agent sees any of it. Raise `Refused` if there are none."""
        self._live.must_be_at_work()
        parts = scope.parts(self._live.sight, wanted)
        if not parts:
            raise self._unseen(str(wanted))
        return parts

    def _may_look(self, namespace: str, key: str) -> None:
        self._live.must_be_at_work()
        if not self._live.may_see(namespace, key):
            raise self._unseen(f"{namespace}/{key}")

    def _unseen(self, what: str) -> Refused:
        self._live.receipt.withhold(what, "asked for, not passed")
        return not_visible(self._live.remit.holder, what)

    def _may_write(self, namespace: str, key: str) -> None:
        self._live.must_be_at_work()
        if not scope.covers(self._live.reach, namespace, key):
            raise not_writable(self._live.remit.holder, f"{namespace}/{key}")


def not_visible(holder: str, what: str) -> Refused:
    """Return the refusal of a read. `holder` is the agent, or "" for an owner with bounds."""
    # The same sentence whether or not an entry exists: a refusal must not reveal that.
    how = "its asker can pass it with sees=[...], or its card can read it"
    sentence = f"'{holder}' does not see {what}; {how}" if holder else f"the bounds of this caller do not show {what}"
    return Refused(sentence, rule="not-visible")


def not_writable(holder: str, what: str) -> Refused:
    """Return the refusal of a write. `holder` is the agent, or "" for an owner with bounds."""
    how = "its asker can pass it with writes=[...], or its card can write it"
    own = f"the bounds of this caller do not let it write {what}"
    return Refused(f"'{holder}' may not write {what}; {how}" if holder else own, rule="not-writable")


async def only_seen(
    parts: Iterable[Scope], sees: SeesEntry, fetch: Callable[[list[Scope]], Awaitable[list[Entry]]]
) -> list[Entry]:
    """Return the visible entries of these scopes. `fetch` returns one page. If the page has an entry whose current
    version is not visible, fetch it again without that entry, so that the page is still full."""
    places = [*dict.fromkeys(one.address for one in parts)]  # each once: several versions of an entry may be visible
    while True:
        found = await fetch(places)
        gone = {(one.namespace, one.key) for one in found if not sees(one.namespace, one.key, one)}
        if not gone:
            return found
        places = [place for place in places if (place.namespace, place.key) not in gone]


_QUARTER = MEMORY / SECOND


class Context:
    """The entries that the agent may see. Reading any other raises `Refused`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def set(
        self,
        namespace: str,
        key: str,
        value: object,
        ttl: float | None = None,
        *,
        trust: Trust = "trusted",
        expect: int | None = None,
    ) -> int:
        """Write an entry for `ttl` seconds, or forever, and return its version.

        With `expect=N`, write only if the entry is still at version N; with `expect=0`, only if there is none.
        Otherwise raise `Conflict`. `trust="untrusted"` marks text from outside: models get it quoted, and reading does
        not extend its life.
        """
        lifetime = entries.lifetime(ttl)
        return await self._access.put(Draft(_own(namespace), key, value, lifetime, trust=trust, expect=expect))

    async def set_with_extension(self, namespace: str, key: str, value: object, ttl: float = _QUARTER) -> int:
        """Write a memory entry and return its version. It lives for `ttl` seconds [default: 90 days], and as long again
        after each read."""
        return await self._access.put(Draft(_own(namespace), key, value, span(ttl, "ttl"), extend=True))

    async def get(self, namespace: str, key: str, default: Any = None) -> Known:
        """Return the value, or `default` if there is none."""
        found = await self._access.get(_own(namespace), key)
        return default if found is None else found.value

    async def entry(self, namespace: str, key: str) -> Entry | None:
        """Return the value with its author, version and times, or None."""
        return await self._access.get(_own(namespace), key)

    async def get_structured(self, namespace: str, key: str, default: Any = None) -> Known:
        """Return the value as JSON, even if it was stored as text. Raise `BadInput` if it is not JSON."""
        found = await self._access.get(_own(namespace), key)
        return default if found is None else entries.structured(found)

    async def query(self, namespace: str, limit: int = 100, *, prefix: str | None = None) -> list[Entry]:
        """Return the entries of a namespace, most recently updated first. With `prefix`, return those whose key begins
        with exactly this text, in the order of their keys."""
        if prefix is not None:
            return await self._access.by_key(Scope(_own(namespace), prefix=prefix), limit)
        return await self._access.recent([Scope(_own(namespace))], limit)

    async def query_many(self, namespaces: Iterable[str], limit: int = 100) -> list[Entry]:
        """Return the entries of several namespaces together, most recently updated first."""
        if isinstance(namespaces, str):
            raise BadInput("query_many takes a list of namespaces; for one, call query(namespace)")
        given = items(namespaces, "query_many takes a list of namespaces")
        wanted = dict.fromkeys(Scope(_own(cast("str", one))) for one in given)
        return await self._access.recent([*wanted], limit)

    async def touch(self, namespace: str, key: str, ttl: float = _QUARTER) -> bool:
        """Extend an entry's life to at least `ttl` seconds from now, without rewriting it. Return False if it is
        gone."""
        return await self._access.touch(_own(namespace), key, span(ttl, "ttl"))

    async def remove(self, namespace: str, key: str) -> bool:
        """Remove an entry. Return False if there was none."""
        return await self._access.remove(_own(namespace), key)

    @property
    def board(self) -> Board:
        """The entries of this session, for agents that were given `remit.BOARD`."""
        return Board(self._access)


class Board:
    """The shared entries of one session. The boards of two sessions never mix."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._namespace = board_of(access.session).namespace

    async def set(self, key: str, value: object, ttl: float | None = None) -> int:
        """Write an entry on the board under the agent's name, and return its version."""
        return await self._access.put(Draft(self._namespace, key, value, entries.lifetime(ttl)))

    async def get(self, key: str, default: Any = None) -> Known:
        """Return the value, or `default` if there is none."""
        found = await self._access.get(self._namespace, key)
        return default if found is None else found.value

    async def entry(self, key: str) -> Entry | None:
        """Return the entry of that key with its author, version and trust, or None."""
        return await self._access.get(self._namespace, key)

    async def query(self, limit: int = 1_000, *, prefix: str = "") -> list[Entry]:
        """Return the entries of the board whose key begins with `prefix`, in the order of their keys."""
        return await self._access.by_key(Scope(self._namespace, prefix=prefix), limit)

    async def remove(self, key: str) -> bool:
        """Remove an entry from the board. Return False if there was none."""
        return await self._access.remove(self._namespace, key)

    async def snapshot(self) -> str:
        """Return the board as text, one line for each entry, with authors."""
        return entries.snapshot(await self.query())


def _own(namespace: str) -> str:
    """Return the namespace. Raise `BadInput` for a board's namespace: boards are reached through `context.board`, each
    session its own."""
    if isinstance(namespace, str) and namespace.startswith(BOARD_PREFIX):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"namespace {shown(namespace)} is a session's board; use turn.context.board")
    return namespace

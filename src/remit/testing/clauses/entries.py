"""Clauses on entries: exact text, literal prefixes, order, expiry."""

from collections.abc import Iterable
from typing import Final

from remit.core.entry import Draft, Entry, Writer, touched
from remit.core.kinds.sharing import entries_removed, entry_touched
from remit.core.scope import KEY_LIMIT, NAMESPACE_LIMIT, Scope
from remit.core.values import Json, encode
from remit.ports import Database, Decision, Store, View
from remit.testing.clauses.making import NOW, NOWHERE, entry_event, equal, putting, sound

_LAST: Final = "\U0010ffff"
_KEYS: Final = (
    "a",
    "A",
    "aa",
    "ab",
    "b",
    "a b",
    "a%",
    "a%b",
    "a_",
    "a_b",
    "a*",
    "a?",
    "a[b]",
    "a\\",
    "a\\%",
    "a'",
    "a''b",
    'a"',
    "a;--",
    "a\n",
    "a\t",
    "a\x7f",
    "a\u0080",
    "%",
    "_",
    "*",
    "\\",
    "'",
    "ü",  # composed
    "u\u0308",  # decomposed: another key
    "Ü",
    "ß",
    "ss",
    "a\ud7ff",  # the last character before the surrogates
    "a\ud7ffz",
    "a\ue000",  # and the first after them
    "a\uffff",
    "a\U00010000",
    "\U0001f600",
    "\U0001f601",
    f"a{_LAST}",
    f"a{_LAST}{_LAST}",
    f"a{_LAST}b",
    _LAST,
    _LAST * 2,
    _LAST * KEY_LIMIT,
    "k" * KEY_LIMIT,
)
_VALUES: Final[tuple[Json, ...]] = (
    "",
    " ",
    "null",
    "{}",
    "'; DROP TABLE entry; --",
    'quotes " and \\ backslash',
    "lines\r\nand\ttabs\u2028\u0085",
    "ü u\u0308 \U0001f600 \uffff \U0010ffff",
    "x" * 100_000,
    None,
    True,
    False,
    0,
    -1,
    2**63 - 1,
    -(2**63 - 1),
    0.1,
    -0.0,
    1e-300,
    1e300,
    1e16,
    [],
    {},
    ["text", 1, None, [[]]],
    {"b": 1, "a": {"ü": "\U0001f600", "": None}},
)


async def a_prefix_is_literal(database: Database) -> None:
    """Reads by prefix return exactly the keys that begin with it, in the order of their characters."""
    store = database.store("one")
    await _put_all(store, ((key, key) for key in _KEYS))
    prefixes = {key[:length] for key in _KEYS for length in range(min(len(key), 4) + 1)}
    prefixes |= {
        _LAST * KEY_LIMIT,
        _LAST * (KEY_LIMIT - 1),
        "k" * KEY_LIMIT,
        "a\ud7ff",
        "\ud7ff",
        "ab%",
        "zzz",
    }
    for prefix in sorted(prefixes):
        expected = [key for key in sorted(_KEYS) if key.startswith(prefix)]
        scope = Scope("notes", prefix=prefix)
        entries = await store.read(lambda view, scope=scope: view.by_key(scope, NOW, 1_000))
        equal([entry.key for entry in entries], expected, f"the keys that begin with {prefix!r}, in order")
        newest = await store.read(lambda view, scope=scope: view.recent(scope, NOW, 1_000))
        equal(
            sorted(entry.key for entry in newest),
            expected,
            f"the recent entries whose keys begin with {prefix!r}",
        )
        few = await store.read(lambda view, scope=scope: view.by_key(scope, NOW, 2))
        equal([entry.key for entry in few], expected[:2], f"the first two keys that begin with {prefix!r}")


async def a_key_is_exact(database: Database) -> None:
    store = database.store("one")
    await _put_all(store, ((key, key) for key in _KEYS))
    for key in _KEYS:
        pairs = await store.read(lambda view, key=key: _three_ways(view, key))
        equal(pairs, [(key, key)] * 3, f"what is under the key {key!r}")
    for missing in ("U\u0308", "a%%", "aA", "a\\\\", "k"):
        nothing = await store.read(lambda view, key=missing: view.entry("notes", key))
        equal(nothing, None, f"what is under the key {missing!r}, which no one wrote")
    await sound(store)


async def a_namespace_is_exact(database: Database) -> None:
    store = database.store("one")
    names = (
        "notes",
        "Notes",
        "note",
        "notes ",
        "n%tes",
        "n_tes",
        "ü",
        "u\u0308",
        "n" * NAMESPACE_LIMIT,
        "\U0001f600",
    )
    for name in names:
        await store.tx(name, putting(Draft(name, "key", name)))
    for name in names:
        entries = await store.read(lambda view, name=name: view.recent(Scope(name), NOW, 100))
        entries += await store.read(lambda view, name=name: view.by_key(Scope(name), NOW, 100))
        equal([entry.value for entry in entries], [name, name], f"what is in the namespace {name!r}, read in two ways")
    counts = await store.read(lambda view: view.namespaces(NOW))
    equal(counts, [(name, 1) for name in sorted(names)], "the namespaces, in order of their characters")


async def a_value_is_kept_exactly(database: Database) -> None:
    store = database.store("one")
    await _put_all(store, ((f"key {number}", value) for number, value in enumerate(_VALUES)))
    for number, value in enumerate(_VALUES):
        entry = await store.read(lambda view, key=f"key {number}": view.entry("notes", key))
        kept = entry and (type(entry.value), encode(entry.value))
        equal(kept, (type(value), encode(value)), "a value is kept exactly")
    await sound(store)


async def an_entry_is_kept_whole(database: Database) -> None:
    """Author, times, version, digest, extension, trust, task and chain are returned as they were written."""
    store = database.store("one")
    draft = Draft("notes", "a", {"n": 1}, lifetime=50, extend=True, trust="untrusted")
    await store.tx("first", putting(draft, at=NOW, agent="ada"))
    await store.tx("second", putting(Draft("notes", "a", "text", lifetime=70), at=NOW + 10, agent="bob"))
    entry = await store.read(lambda view: view.entry("notes", "a"))
    expected = Entry("notes", "a", "text", "bob", NOW, NOW + 10, NOW + 80, 2, "982d9e3eb996f559")
    equal(entry, expected, "an entry that was written twice")
    await store.tx("third", putting(Draft("notes", "b", [1], lifetime=9, extend=True, trust="untrusted"), agent="eve"))
    entry = await store.read(lambda view: view.entry("notes", "b"))
    whole = entry and (
        entry.value,
        entry.agent,
        entry.expires_at,
        entry.extension,
        entry.trust,
        entry.version,
    )
    equal(whole, ([1], "eve", NOW + 9, 9, "untrusted", 1), "an entry from outside with an extension")


async def the_newest_first(database: Database) -> None:
    """`View.recent` sorts entries by the time of the last write, newest first, then by key. Extending an entry does not
    make it newer."""
    store = database.store("one")
    for key, at in (("c", 1), ("a", 3), ("b", 3), ("d", 2), ("e", 3)):
        await store.tx(f"{key} {at}", putting(Draft("notes", key, at, lifetime=100), at=NOW + at))
    equal(await _recent(store, NOW, 10), ["a", "b", "e", "d", "c"], "the newest first, equally new ones by key")
    await store.tx("again", putting(Draft("notes", "c", 4, lifetime=100), at=NOW + 4))
    await store.tx("touch", lambda view: _touch(view, "d", 500))
    equal(
        await _recent(store, NOW, 10),
        ["c", "a", "b", "e", "d"],
        "what is written again is newest; a touch is no write",
    )
    equal(await _recent(store, NOW, 2), ["c", "a"], "the newest two")
    entry = await store.read(lambda view: view.entry("notes", "d"))
    equal(entry and entry.expires_at, NOW + 500, "the end of an entry that was touched")
    await sound(store)


async def expiry_is_exact(database: Database) -> None:
    """From the moment of expiry an entry is invisible and listed as expired; it is stored until it is removed."""
    store = database.store("one")
    await store.tx("for good", putting(Draft("notes", "for good", 1)))
    await store.tx("passing", putting(Draft("notes", "passing", 2, lifetime=100)))
    await store.tx("later", putting(Draft("notes", "later", 3, lifetime=101)))
    for at, alive, gone in (
        (99, ["for good", "later", "passing"], []),
        (100, ["for good", "later"], ["passing"]),
        (101, ["for good"], ["passing", "later"]),
    ):
        now = NOW + at
        equal(sorted(await _recent(store, now, 10)), alive, f"recent, {at} µs after writing")
        for scope in (Scope("notes"), Scope("notes", prefix="p"), Scope("notes", "passing")):
            keys = [key for key in alive if scope.covers("notes", key)]
            entries = await store.read(lambda view, scope=scope, now=now: view.by_key(scope, now, 10))
            equal([entry.key for entry in entries], keys, f"{scope} by key, {at} µs after writing")
            entries = await store.read(lambda view, scope=scope, now=now: view.recent(scope, now, 10))
            equal(sorted(entry.key for entry in entries), keys, f"{scope} by time, {at} µs after writing")
        expired = await store.read(lambda view, now=now: view.expired(now, 10))
        equal(expired, [("notes", key, 1) for key in gone], f"expired, {at} µs after writing")
        counts = await store.read(lambda view, now=now: view.namespaces(now))
        equal(counts, [("notes", len(alive))], f"entries alive by namespace, {at} µs after writing")
        kept = await store.read(lambda view: view.entry("notes", "passing"))
        equal(kept and kept.value, 2, "what has expired is kept until it is removed")
    equal(
        await store.read(lambda view: view.expired(NOW + 101, 1)),
        [("notes", "passing", 1)],
        "the one that expired first",
    )
    await store.tx("clean", lambda view: _remove(view, NOW + 100))
    equal(await store.read(lambda view: view.entry("notes", "passing")), None, "what was removed")
    retired = await store.read(lambda view: [view.retired("notes", key).version for key in ("passing", "later")])
    equal(retired, [1, 0], "the last versions of what was removed and of what was not")
    equal(
        await store.read(lambda view: view.expired(NOW + 101, 10)),
        [("notes", "later", 1)],
        "expired and not removed",
    )
    await sound(store)


async def _put_all(store: Store, pairs: Iterable[tuple[str, Json]]) -> None:
    drafts = [Draft("notes", key, value) for key, value in pairs]
    events = await store.read(
        lambda view: tuple(entry_event(view, draft, at=NOW + n) for n, draft in enumerate(drafts))
    )
    await store.tx("put all", lambda _view: Decision(None, events))


def _three_ways(view: View, key: str) -> list[tuple[str, Json]]:
    """Return the entries under one key, read directly and through its scope."""
    alone, scope = view.entry("notes", key), Scope("notes", key)
    entries = [alone, *view.by_key(scope, NOW, 10), *view.recent(scope, NOW, 10)]
    return [(entry.key, entry.value) for entry in entries if entry is not None]


async def _recent(store: Store, now: int, limit: int) -> list[str]:
    return [entry.key for entry in await store.read(lambda view: view.recent(Scope("notes"), now, limit))]


def _touch(view: View, key: str, by: int) -> Decision[Json]:
    new = touched(view.entry("notes", key), by, NOW)
    return Decision(None, (entry_touched(new, Writer("toucher"), NOWHERE, NOW + 50),) if new else ())


def _remove(view: View, now: int) -> Decision[Json]:
    return Decision(None, (entries_removed(view.expired(now, 10), "expired", Writer("cleaner"), NOWHERE, now),))


CLAUSES: Final = (
    a_prefix_is_literal,
    a_key_is_exact,
    a_namespace_is_exact,
    a_value_is_kept_exactly,
    an_entry_is_kept_whole,
    the_newest_first,
    expiry_is_exact,
)

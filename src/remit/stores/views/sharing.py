"""What agents share, and what is known of them: entries, messages, breakers and cards; and a workspace's own keys."""

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from remit.codec import decode
from remit.core.breaker import CLOSED, Breaker
from remit.core.card import Card
from remit.core.card import restored as card_restored
from remit.core.entry import Entry, Retired
from remit.core.message import Message
from remit.core.recovery import Cooling
from remit.core.scope import Scope
from remit.core.values import Json
from remit.ports import KeyInfo, KeyRow, Sealed
from remit.stores.queries import after
from remit.stores.views.base import Queries, Values


class AgentQueries(Queries):
    __slots__ = ()

    def breaker(self, name: str) -> Breaker:
        rows = self._ask("breaker", (self.workspace, name))  # read at every hop: filled by hand
        return Breaker(*rows[0]) if rows else CLOSED

    def breaker_set_at(self, name: str) -> int | None:
        row = self._one("breaker_set_at", agent=name)
        return row[0] if row else None

    def breakers(self) -> list[tuple[str, Breaker, int]]:
        return [(row[0], Breaker(*row[1:6]), row[6]) for row in self._rows("breakers")]

    def coolings(self) -> dict[str, Cooling]:
        return {row[0]: Cooling(*row[1:]) for row in self._rows("coolings")}

    def cooling_set_at(self, name: str) -> int | None:
        row = self._one("cooling_set_at", cooling=name)
        return row[0] if row else None

    def card(self, name: str) -> Card | None:
        row = self._one("card", agent=name)
        return None if row is None else _card(row[0])

    def cards(self) -> list[tuple[Card, int]]:
        return [(_card(data), at) for _, data, at in self._rows("cards")]


class EntryQueries(Queries):
    __slots__ = ()

    def entry(self, namespace: str, key: str) -> Entry | None:
        rows = self._ask("entry", (self.workspace, namespace, key))  # the read of all reads: filled by hand
        return _entry(rows[0]) if rows else None

    def recent(self, scope: Scope, now: int, limit: int) -> list[Entry]:
        if scope.key is not None:
            return self._exactly(scope.namespace, scope.key, now)
        if not scope.prefix:
            rows = self._rows("entries_recent", namespace=scope.namespace, now=now, limit=limit)
        else:
            rows = self._range("entries_recent_from", scope, now, limit)
        return [_entry(row) for row in rows]

    def by_key(self, scope: Scope, now: int, limit: int) -> list[Entry]:
        if scope.key is not None:
            return self._exactly(scope.namespace, scope.key, now)
        return [_entry(row) for row in self._range("entries_by_key", scope, now, limit)]

    def _exactly(self, namespace: str, key: str, now: int) -> list[Entry]:
        entry = self.entry(namespace, key)
        return [entry] if entry is not None and entry.alive(now) else []

    def _range(self, name: str, scope: Scope, now: int, limit: int) -> Sequence[Values]:
        start, stop = scope.prefix, after(scope.prefix)
        return self._rows(name, namespace=scope.namespace, start=start, stop=stop, now=now, limit=limit)

    def retired(self, namespace: str, key: str) -> Retired:
        versions = {row[0]: row[1] for row in self._rows("retired", namespace=namespace, key=key)}
        return Retired(versions.get(namespace, 0), versions.get("", 0))

    def expired(self, now: int, limit: int) -> list[tuple[str, str, int]]:
        return [(row[0], row[1], row[2]) for row in self._rows("expired", now=now, limit=limit)]

    def namespaces(self, now: int) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in self._rows("namespaces", now=now)]


class MessageQueries(Queries):
    __slots__ = ()

    def waiting(self, run: str, agent: str, task: str, limit: int) -> list[Message]:
        rows = self._rows("waiting", run=run, agent=agent, task=task, limit=limit)
        return [Message(*row) for row in rows]

    def has_message(self, message: str) -> bool:
        return self._count("has_message", id=message) > 0

    def still_waiting(self, run: str, agent: str, limit: int) -> list[str]:
        return [row[0] for row in self._rows("still_waiting", run=run, agent=agent, limit=limit)]

    def unread(self, run: str, agent: str, sender: str) -> int:
        return self._count("unread", run=run, agent=agent, sender=sender)

    def orphans(self, limit: int) -> list[Message]:
        return [Message(*row) for row in self._rows("orphans", limit=limit)]


class KeyQueries(Queries):
    __slots__ = ()

    def secret(self, name: str) -> KeyRow | None:
        row = self._one("secret", key=name)
        return None if row is None else KeyRow(row[0], Sealed(row[1], row[2]), row[3])

    def secrets(self) -> list[KeyInfo]:
        return [KeyInfo(*row) for row in self._rows("secrets")]


def _entry(row: Values) -> Entry:
    namespace, key, form, value, *others, chain = row
    return Entry._make((namespace, key, value if form == "text" else decode(value), *others, _chain(chain)))


@lru_cache(maxsize=1024)  # the entries of one run have few writers
def _chain(text: str) -> tuple[str, ...]:
    return tuple(cast("list[str]", decode(text)))


def _card(text: str) -> Card:
    return card_restored(cast("dict[str, Json]", decode(text)))

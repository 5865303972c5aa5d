"""Shared dependencies of the engine."""

from typing import NamedTuple

from remit.engine.directory import Directory
from remit.ports import Clock, Ids, Store


class Ground(NamedTuple):
    """The store, whose transactions include all follow-up events; the clock, the ids, and the registry of agents."""

    store: Store
    clock: Clock
    ids: Ids
    directory: Directory


class StoreAround:
    """A store that wraps another and delegates everything that it does not override."""

    __slots__ = ("_store", "browse", "listen", "read", "subscribe", "workspace")

    def __init__(self, store: Store) -> None:
        self._store = store
        self.workspace = store.workspace
        self.read = store.read
        self.browse = store.browse
        self.subscribe = store.subscribe
        self.listen = store.listen

"""Shared dependencies of the engine."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from remit.engine.directory import Directory
from remit.ports import Clock, Ids, Store

if TYPE_CHECKING:
    from remit.ports.contents import Contents
    from remit.ports.models import Ears


class Ground(NamedTuple):
    """The store, whose transactions include all follow-up events; the clock, the ids, the registry of agents, where the
    contents of artifacts are, and the listeners to the answers of all models in this process."""

    store: Store
    clock: Clock
    ids: Ids
    directory: Directory
    contents: Callable[[], "Contents"]
    ears: "Ears"


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

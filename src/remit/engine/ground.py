"""What every part of the engine stands on."""

from typing import NamedTuple

from remit.engine.directory import Directory
from remit.ports import Clock, Ids, Store


class Ground(NamedTuple):
    """The store, whose transactions bring all consequences of what is decided; time, ids, and who there is."""

    store: Store
    clock: Clock
    ids: Ids
    directory: Directory


class StoreAround:
    """A store around another, which does all that is not done otherwise here."""

    __slots__ = ("_store", "browse", "listen", "read", "subscribe", "workspace")

    def __init__(self, store: Store) -> None:
        self._store = store
        self.workspace = store.workspace
        self.read = store.read
        self.browse = store.browse
        self.subscribe = store.subscribe
        self.listen = store.listen

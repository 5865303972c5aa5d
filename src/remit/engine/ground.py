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

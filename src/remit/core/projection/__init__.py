"""What each event does to the tables. The stores and the check of the stores both read it from here, so a table can
hold nothing that the journal does not say."""

from remit.core.projection.change import COLUMNS, KEYS, Change, Key, Row, Table
from remit.core.projection.counts import COUNTS, ONE_TASK, Count, counted
from remit.core.projection.folding import Tables, fold, fold_in
from remit.core.projection.tables import (
    FLOOR,
    PROJECTION,
    changes,
)

__all__ = [
    "COLUMNS",
    "COUNTS",
    "FLOOR",
    "KEYS",
    "ONE_TASK",
    "PROJECTION",
    "Change",
    "Count",
    "Key",
    "Row",
    "Table",
    "Tables",
    "changes",
    "counted",
    "fold",
    "fold_in",
]

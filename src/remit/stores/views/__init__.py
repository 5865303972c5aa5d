"""Reading: rows of any SQL database as values of the core, always within one workspace.

The classes here are the roles of `ports.views`, one for one; `SqlView` is all of them.
"""

from remit.stores.views.base import Ask, Values
from remit.stores.views.journal import JournalQueries, event_of
from remit.stores.views.money import LedgerQueries, QuestionQueries, lease_of
from remit.stores.views.queue import QueueQueries
from remit.stores.views.sharing import AgentQueries, EntryQueries, KeyQueries, MessageQueries
from remit.stores.views.tally import TallyQueries
from remit.stores.views.tasks import TaskQueries, run_facts

__all__ = ["Ask", "SqlView", "Values", "event_of", "lease_of", "run_facts"]


class SqlView(
    JournalQueries,
    TaskQueries,
    QueueQueries,
    AgentQueries,
    EntryQueries,
    MessageQueries,
    TallyQueries,
    LedgerQueries,
    QuestionQueries,
    KeyQueries,
):
    """All of it: what `ports.View` is for a SQL database."""

    __slots__ = ()

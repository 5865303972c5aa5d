"""A change to one row, as events make them, and the columns of every table."""

from typing import Final, Literal, TypeAlias

from remit.core.events import Chapter, Event, Hook
from remit.core.identity import AccessRow, UsedKey
from remit.core.lifecycle import Record
from remit.core.loops import AskCount
from remit.core.money import Hold, Lease
from remit.core.question import Question
from remit.core.records import NamedTuple
from remit.core.times import Schedule
from remit.core.values import Json

Table = Literal[
    "task",
    "run",
    "used_key",
    "entry",
    "retired",
    "message",
    "breaker",
    "card",
    "cooling",
    "ask",
    "event",
    "gap",
    "blob",
    "artifact",
    "chapter",
    "lease",
    "hold",
    "meter",
    "question",
    "schedule",
    "hook",
    "access",
]
_TaskVerb = Literal["claim", "requeue", "lose", "extend", "set", "end", "hand", "fund"]
_MoneyVerb = Literal["settle", "count"]
Verb = Literal["add", "put", "drop", "cut", "touch", "take", "answer", "use", "fire", "revoke"] | _TaskVerb | _MoneyVerb
Key: TypeAlias = tuple[str, ...]
Row: TypeAlias = dict[str, Json]

# The columns of each table in their order, without the workspace. SQL names them as `@task`, `@entry` and so on.
COLUMNS: Final[dict[Table, tuple[str, ...]]] = {
    "task": Record._fields,
    "run": ("id", "members", "tasks", "handoffs", "tokens", "refusals", "credits", "requests"),
    "used_key": UsedKey._fields,
    "entry": (
        *("namespace", "key", "form", "value", "agent", "created_at", "updated_at", "expires_at", "version"),
        *("digest", "extension", "trust", "task", "chain"),
    ),
    "retired": ("namespace", "key", "version"),
    "message": (
        *("id", "session", "sender", "recipient", "text", "sent_at", "seq", "taken_at", "taken_by", "reader", "about"),
        *("trust", "run"),
    ),
    "breaker": ("name", "state", "failures", "until", "probe", "why", "at"),
    "card": ("name", "data", "at"),
    "cooling": ("name", "failures", "until", "kind", "used", "at"),
    "ask": ("run", "key", *AskCount._fields),
    "lease": Lease._fields,
    "hold": Hold._fields,
    "meter": ("scope", "name", "unit", "hour", "spent"),
    "question": Question._fields,
    "schedule": Schedule._fields,
    "hook": Hook._fields,
    "access": AccessRow._fields,
    "gap": ("first", "last", "hash", "stated"),
    "blob": ("seq", "text"),
    "artifact": (
        *("seq", "digest", "kind", "run", "task", "agent", "namespace", "key", "size", "name", "media_type", "trust"),
        "at",
    ),
    "chapter": Chapter._fields,
    "event": tuple("data" if name == "text" else name for name in Event._fields if name != "data"),
}
KEYS: Final[dict[Table, tuple[str, ...]]] = {
    "task": ("id",),
    "run": ("id",),
    "used_key": ("key",),
    "entry": ("namespace", "key"),
    "retired": ("namespace", "key"),
    "message": ("id",),
    "breaker": ("name",),
    "card": ("name",),
    "cooling": ("name",),
    "ask": ("run", "key"),
    "lease": ("id", "unit"),
    "hold": ("id",),
    "meter": ("scope", "name", "unit", "hour"),
    "question": ("id",),
    "schedule": ("name",),
    "hook": ("id",),
    "access": ("id",),
}


class Change(NamedTuple):
    """A change to one row, or with `cut` to several. `add` and `put` write the whole row, `drop` removes it, `count`
    adds to its figures, and the other verbs set the given columns. `cut` removes the events, blobs, chapters, gaps and
    artifacts within a range of the journal, which have no key, the `ask` rows of a run, or the `meter` rows before an
    hour."""

    table: Table
    verb: Verb
    key: Key
    row: Row

"""The changes that each event makes to the tables. Stores and `remit doctor` both use this module, so a table contains
nothing that the journal does not."""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

from remit.core import ledger, lifecycle
from remit.core.change import COLUMNS, KEYS, Change, Key, Row, Table
from remit.core.events import Event, read
from remit.core.identity import KEYED, UsedKey
from remit.core.kinds.models import ToolDone
from remit.core.kinds.money import SPENDS, spent_in
from remit.core.kinds.people import QuestionAnswered, QuestionAsked
from remit.core.kinds.sharing import EntriesRemoved, EntrySet, MessagesTaken
from remit.core.kinds.tasks import FirstData
from remit.core.kinds.upkeep import JournalCut, KeysKept, RunsPruned
from remit.core.kinds.workspace import (
    AccessMade,
    AccessRevoked,
    CardsPublished,
    CardWithdrawn,
    HookAdded,
    HookRemoved,
    HookRotated,
    ScheduleRemoved,
    ScheduleSet,
)
from remit.core.loops import AskCount, strike_key
from remit.core.money import LeaseMove, moves, purse_text
from remit.core.records import NamedTuple
from remit.core.trust import TRUSTED
from remit.core.values import Json, encode


class Count(NamedTuple):
    """The figures that an event adds to the row of its run. `members` is appended text: the name of an agent that
    joins.

    The root task is not counted: a run has no row until something else happens in it.
    """

    members: str = ""
    tasks: int = 0
    handoffs: int = 0
    tokens: int = 0
    refusals: int = 0
    credits: int = 0
    requests: int = 0


ONE_TASK: Final = Count(tasks=1)
_ONE_REFUSAL: Final = Count(refusals=1)
_ONE_REQUEST: Final = Count(requests=1)


def _counts_task(event: Event) -> Count | None:
    data = read(event, FirstData)
    if not data["parent"]:
        return None
    return Count(f" {event.agent}", 1) if data.get("joins") else ONE_TASK


def _counts_handoff(event: Event) -> Count:
    """Return the count of a handoff. A parallel handoff and the joining of its parts are one, counted when the parts
    are sent; a result that a person sends back to its agent is none."""
    to, more = event.data["to"], cast("int", event.data.get("more_refused", 0))
    joins = isinstance(to, str) and event.data.get("joins")
    is_none = event.data.get("of_parts") or "sent_back" in event.data
    return Count(f" {to}" if joins else "", 0, 0 if is_none else 1, 0, more)


def _counts_cost(event: Event) -> Count | None:
    spent = spent_in(event)
    return Count(tokens=spent.tokens, credits=spent.credits) if any(spent) and event.run else None


def _counts_unrecorded(event: Event) -> Count | None:
    """Return the count of refusals that were not recorded one by one, at the end of a turn."""
    more = event.data.get("more_refused")
    return Count(refusals=cast("int", more)) if more else None


def _counts_refusal(event: Event) -> Count | None:
    return _ONE_REFUSAL if event.run else None  # a refused first call has no run


def _counts_request(_event: Event) -> Count:
    """Return the count of one model request, answered or not."""
    return _ONE_REQUEST


COUNTS: Final[dict[str, Callable[[Event], Count | None]]] = {
    "task.submitted": _counts_task,
    "task.started": _counts_task,
    "task.handed": _counts_handoff,
    "hop.refused": _counts_refusal,
    "model.answered": _counts_request,
    "model.failed": _counts_request,
    **dict.fromkeys(sorted(SPENDS), _counts_cost),
    **dict.fromkeys(("task.retrying", *sorted(lifecycle.ENDS)), _counts_unrecorded),
}


def counted(event: Event) -> Count | None:
    """Return the figures that an event adds to its run, or None."""
    counts = COUNTS.get(event.kind)
    return counts(event) if counts is not None else None


def asked(event: Event) -> list[Change]:
    data = read(event, QuestionAsked)
    row: Row = {
        "id": data["question"],
        "run": event.run,
        "session": event.session,
        "task": event.task,
        "agent": event.agent,
        "kind": data["kind"],
        "digest": data["digest"],
        "asked_at": event.at,
        "until": data["until"],
        "state": "open",
        "expires": data["expires"],
        "asked": event.seq,
        "answered": None,
        "used": 0,
    }
    return [Change("question", "add", (data["question"],), row)]


def answered(event: Event) -> list[Change]:
    data = read(event, QuestionAnswered)
    row: Row = {"id": data["question"], "state": data["state"], "answered": event.seq, "task": event.task}
    return [Change("question", "answer", (data["question"],), row)]


def used(event: Event) -> list[Change]:
    question = cast("str", event.data["question"])
    return [Change("question", "use", (question,), {"id": question, "used": 1})]


_BESIDES: Final = frozenset(("leaves", "closing", "closes", "strikes", "artifacts"))

# The row with the version floor, which applies to every address without a retired version of its own.
FLOOR: Final = ("", "*")


def _started(event: Event) -> list[Change]:
    data = read(event, FirstData)
    row = _task(event, data, "running", data.get("asked_how", "delegate"), event.at, 1, event.at)
    row["worker"] = data.get("worker", "")
    return _added(event, data, row)


def _submitted(event: Event) -> list[Change]:
    data = read(event, FirstData)
    row = _task(event, data, "pending", data["asked_how"], data["ready_at"])  # pyright: ignore[reportTypedDictNotRequiredAccess] - the queue says both
    return _added(event, data, row)


def _added(event: Event, data: FirstData, row: Row) -> list[Change]:
    """Return the changes of a new task: its row, its deduplication key and its money."""
    changes = [Change("task", "add", (event.task,), row)]
    if "dedup_key" in data and (key := data["dedup_key"]).startswith(KEYED):
        changes.append(_used_key(UsedKey(key, event.task, event.run, data.get("content", ""), "", None)))
    if purse := data.get("purse"):
        row["purse"] = purse_text(purse)
        changes += ledger.leases_begin(event)
    if "metered" in data:  # it counts for limits on tasks
        changes += ledger.task_counts(event)
    return changes


def _used_key(used: UsedKey) -> Change:
    return Change("used_key", "put", (used.key,), {**used._asdict()})


def _task(
    event: Event,
    data: FirstData,
    state: str,
    asked_how: str,
    ready_at: int,
    tries: int = 0,
    claimed_at: int | None = None,
) -> Row:
    """Return the row of a new task; `tries` is 1 if a worker has claimed it already."""
    return {
        "id": event.task,
        "run": event.run,
        "parent": data["parent"],
        "session": event.session,
        "holder": event.agent,
        "state": state,
        "asked_how": asked_how,
        "led_as": data.get("led_as", ""),
        "worker": "",
        "fence": tries,
        "attempt": tries,
        "failures": data.get("failures", 0),
        "asked_at": event.at,
        "ready_at": ready_at,
        "claimed_at": claimed_at,
        "until": data.get("until") or data["bounds"]["deadline"],
        "ended_at": None,
        "began": event.seq,
        "ended": None,
        "dedup_key": data.get("dedup_key", ""),
        "origin": data.get("origin", ""),
        "losses": 0,
        "purse": "",
        "priority": data.get("priority", 0),
    }


def _claimed(event: Event) -> list[Change]:
    data = event.data
    row: Row = {
        "id": event.task,
        "state": "running",
        "worker": data["worker"],
        "fence": data["fence"],
        "attempt": data["attempt"],
        "claimed_at": event.at,
    }
    return [Change("task", "claim", (event.task,), row), *_extended(event)]


def _requeued(event: Event) -> list[Change]:
    row: Row = {"id": event.task, "state": lifecycle.lands(event.kind)}
    row |= {name: event.data[name] for name in ("worker", "fence", "ready_at", "attempt", "failures")}
    return [Change("task", "requeue", (event.task,), row), *_extended(event)]


def _lost(event: Event) -> list[Change]:
    losses = event.data.get("losses")
    lost = [] if losses is None else [Change("task", "lose", (event.task,), {"id": event.task, "losses": losses})]
    return [*_requeued(event), *lost]


def _extended(event: Event) -> list[Change]:
    """Return the change of a task's expiry: a resumed task has its full time again."""
    until = event.data.get("until")
    return [] if until is None else [Change("task", "extend", (event.task,), {"id": event.task, "until": until})]


def _set(event: Event) -> list[Change]:
    row: Row = {"id": event.task, "state": lifecycle.lands(event.kind)}
    return [Change("task", "set", (event.task,), row), *_extended(event)]


def _ended(event: Event) -> list[Change]:
    state = lifecycle.lands(event.kind)
    row: Row = {"id": event.task, "state": state, "ended_at": event.at, "ended": event.seq}
    if not event.data.keys() & _BESIDES:
        return [Change("task", "end", (event.task,), row)]
    strikes = cast("dict[str, int]", event.data.get("strikes", {}))
    struck = [_ask(event.run, strike_key(name), AskCount(times)) for name, times in strikes.items()]
    return [Change("task", "end", (event.task,), row), *ledger.leases_closed(event), *struck, *_artifacts(event)]


def _artifacts(event: Event) -> list[Change]:
    """Return a row for each artifact that an event refers to."""
    row: Row = {"seq": event.seq, "kind": event.kind, "run": event.run, "task": event.task, "agent": event.agent}
    row |= {"namespace": event.data.get("namespace", ""), "key": event.data.get("key", ""), "at": event.at}
    return [Change("artifact", "add", (), {**row, **one}) for one in cast("list[Row]", event.data.get("artifacts", ()))]


def _asked(event: Event) -> list[Change]:
    """Return the changed counters of a model's request to an agent."""
    return [
        _ask(event.run, key, AskCount(*cast("list[Any]", row)))
        for key, row in read(event, ToolDone).get("asks", {}).items()
    ]


def _ask(run: str, key: str, count: AskCount) -> Change:
    return Change("ask", "put", (run, key), {"run": run, "key": key, **count._asdict()})


def _pruned(event: Event) -> list[Change]:
    """Return the changes that remove the rows and events of pruned runs."""
    data = read(event, RunsPruned)
    changes: list[Change] = []
    for run in data["runs"]:
        changes += [Change("task", "drop", (task,), {"id": task}) for task in run["tasks"]]
        changes += [Change("message", "drop", (id_,), {"id": id_}) for id_ in run.get("messages", ())]
        changes += [Change("question", "drop", (id_,), {"id": id_}) for id_ in run.get("questions", ())]
        changes.append(Change("run", "drop", (run["id"],), {"id": run["id"]}))
        changes.append(Change("ask", "cut", (run["id"],), {"run": run["id"]}))
    return [*changes, *_cut(data["gaps"], event.seq)]


def _cut(gaps: list[tuple[int, int, str]], stated: int) -> list[Change]:
    """Return the changes for gaps in the journal: the events in each gap go, with their blobs, their references to
    artifacts, their chapters and the smaller gaps in it. `stated` is the event that declares the gap."""
    changes: list[Change] = []
    for first, last, hash_ in gaps:
        where: Row = {"first": first, "last": last}
        changes.append(Change("event", "cut", (), {**where}))
        changes.append(Change("blob", "cut", (), {**where}))
        changes.append(Change("artifact", "cut", (), {**where}))
        changes.append(Change("chapter", "cut", (), {**where}))
        changes.append(Change("gap", "cut", (), {**where}))
        changes.append(Change("gap", "add", (), {**where, "hash": hash_, "stated": stated}))
    return changes


def _keys_kept(event: Event) -> list[Change]:
    return [_used_key(UsedKey(*cast("list[Any]", row))) for row in read(event, KeysKept)["keys"]]


def _journal_cut(event: Event) -> list[Change]:
    """Return the changes for forgotten entries. New versions at these addresses continue from the floor."""
    data = read(event, JournalCut)
    changes = [Change("retired", "drop", (ns, key), {"namespace": ns, "key": key}) for ns, key in data["forgotten"]]
    if floor := data["floor"]:
        changes.append(Change("retired", "put", FLOOR, {"namespace": FLOOR[0], "key": FLOOR[1], "version": floor}))
    return [*changes, *_cut(data["gaps"], event.seq)]


def _handed(event: Event) -> list[Change]:
    to = event.data["to"]
    carried = _artifacts(event) if "artifacts" in event.data else []
    if not isinstance(to, str):  # a parallel handoff: the holder keeps the task
        return carried
    hands = Change("task", "hand", (event.task,), {"id": event.task, "holder": to})
    purse = cast("dict[str, Any]", event.data.get("purse"))
    if not purse:
        return [hands, *carried]
    funds = Change("task", "fund", (event.task,), {"id": event.task, "purse": purse_text(purse)})
    return [hands, funds, *ledger.leases_begin(event), *carried]


def _breaker_set(event: Event) -> list[Change]:
    row: Row = {name: event.data[name] for name in COLUMNS["breaker"] if name != "at"}
    row["at"] = event.at
    return [Change("breaker", "put", (cast("str", event.data["name"]),), row)]


def _cooling_set(event: Event) -> list[Change]:
    """Return the change of a cooldown. A model or key without failures needs no row."""
    name = cast("str", event.data["name"])
    if not event.data["failures"]:
        return [Change("cooling", "drop", (name,), {"name": name})]
    row: Row = {column: event.data[column] for column in COLUMNS["cooling"] if column != "at"}
    row["at"] = event.at
    return [Change("cooling", "put", (name,), row)]


def _schedule_set(event: Event) -> list[Change]:
    data = read(event, ScheduleSet)
    row: Row = {
        "name": data["name"],
        "state": data["state"],
        "cron": data["cron"],
        "zone": data["zone"],
        "catch_up": data["catch_up"],
        "agent": event.agent,
        "task": data["task"],
        "request": encode(cast("Json", data["request"])),
        "next": data["next"],
        "last": data["last"],
        "last_task": data["last_task"],
        "runs": data["runs"],
        "set_by": data["by"],
        "set_at": event.at,
        "began": event.seq,
        "moved": event.seq,
    }
    return [Change("schedule", "put", (data["name"],), row)]


def _schedule_removed(event: Event) -> list[Change]:
    name = read(event, ScheduleRemoved)["name"]
    return [Change("schedule", "drop", (name,), {"name": name})]


def _schedule_fired(event: Event) -> list[Change]:
    """Return the change of a schedule after a planned time. The events of started and of skipped runs have all columns
    that they may change, so pruning keeps only the last of them."""
    row: Row = {column: event.data[column] for column in ("name", "next", "last", "last_task", "runs")}
    row["moved"] = event.seq
    return [Change("schedule", "fire", (cast("str", row["name"]),), row)]


def _hook_added(event: Event) -> list[Change]:
    data = read(event, HookAdded)
    row: Row = {
        "id": data["hook"],
        "url": data["url"],
        "kinds": data["kinds"],
        "run": data.get("run", ""),
        "generation": 1,
        "rotated_at": None,
        "added_by": data["by"],
        "added_at": event.at,
        "began": event.seq,
        "moved": event.seq,
        "task": data.get("task", ""),
    }
    return [Change("hook", "put", (data["hook"],), row)]


def _hook_rotated(event: Event) -> list[Change]:
    data = read(event, HookRotated)
    row: Row = {"id": data["hook"], "generation": data["generation"], "rotated_at": event.at, "moved": event.seq}
    return [Change("hook", "set", (data["hook"],), row)]


def _hook_removed(event: Event) -> list[Change]:
    hook = read(event, HookRemoved)["hook"]
    return [Change("hook", "drop", (hook,), {"id": hook})]


def _access_made(event: Event) -> list[Change]:
    data = read(event, AccessMade)
    row: Row = {
        "id": data["id"],
        "digest": data["digest"],
        "name": data["name"],
        "scopes": " ".join(data["scopes"]),
        "agent": data["agent"],
        "bounds": encode(data["bounds"]),
        "expires_at": data["expires"],
        "made_at": event.at,
        "made_by": data["by"],
        "revoked_at": None,
        "revoked_by": "",
    }
    return [Change("access", "add", (data["id"],), row)]


def _access_revoked(event: Event) -> list[Change]:
    data = read(event, AccessRevoked)
    row: Row = {"id": data["id"], "revoked_at": event.at, "revoked_by": data["by"]}
    return [Change("access", "revoke", (data["id"],), row)]


def _cards_published(event: Event) -> list[Change]:
    cards = cast("list[dict[str, Json]]", read(event, CardsPublished)["cards"])
    return [
        Change("card", "put", (name,), {"name": name, "data": encode(card), "at": event.at})
        for card in cards
        for name in (cast("str", card["name"]),)
    ]


def _card_withdrawn(event: Event) -> list[Change]:
    name = read(event, CardWithdrawn)["name"]
    return [Change("card", "drop", (name,), {"name": name})]


def _entry_set(event: Event) -> list[Change]:
    data = read(event, EntrySet)
    value = data["value"]
    row: Row = {
        "namespace": data["namespace"],
        "key": data["key"],
        "form": "text",
        "value": value,
        "agent": event.agent,
        "created_at": data["created_at"],
        "updated_at": event.at,
        "expires_at": data["expires_at"],
        "version": data["version"],
        "digest": data["digest"],
        "extension": data["extension"],
        "trust": data["trust"],
        "task": event.task,
        "chain": _chain(tuple(data["chain"])),
    }
    put = Change("entry", "put", (data["namespace"], data["key"]), row)
    if value.__class__ is str:
        return [put]
    row["form"], row["value"] = "json", encode(value)
    return [put, *_artifacts(event)]


@lru_cache(maxsize=1024)  # the entries of one run have few writers
def _chain(names: tuple[str, ...]) -> str:
    return encode(list(names))


def _entry_touched(event: Event) -> list[Change]:
    namespace, key = cast("str", event.data["namespace"]), cast("str", event.data["key"])
    row: Row = {"namespace": namespace, "key": key, "expires_at": event.data["expires_at"]}
    return [Change("entry", "touch", (namespace, key), row)]


def _entries_removed(event: Event) -> list[Change]:
    """Return the changes that remove entries. Their versions are kept, so that none is used again."""
    keys = read(event, EntriesRemoved)["keys"]
    changes = [Change("entry", "drop", (ns, key), {"namespace": ns, "key": key}) for ns, key, _ in keys]
    for ns, key, version in keys:
        changes.append(Change("retired", "put", (ns, key), {"namespace": ns, "key": key, "version": version}))
    return changes


def _message_sent(event: Event) -> list[Change]:
    row: Row = {
        "id": event.data["id"],
        "session": event.session,
        "sender": event.agent,
        "recipient": event.data["to"],
        "text": event.data["text"],
        "sent_at": event.at,
        "seq": event.seq,
        "taken_at": None,
        "taken_by": None,
        "reader": event.data.get("reader", ""),
        "about": event.data.get("about", ""),
        "trust": event.data.get("trust", TRUSTED),
        "run": event.run,
    }
    return [Change("message", "add", (cast("str", event.data["id"]),), row)]


def _messages_taken(event: Event) -> list[Change]:
    ids = read(event, MessagesTaken)["ids"]
    return [Change("message", "take", (id_,), {"id": id_, "taken_at": event.at, "taken_by": event.task}) for id_ in ids]


def _no_table(_event: Event) -> list[Change]:
    return []


PROJECTION: Final[dict[str, Callable[[Event], list[Change]]]] = {
    "task.submitted": _submitted,
    "task.started": _started,
    "task.claimed": _claimed,
    "task.fenced": _claimed,
    "task.handed": _handed,
    "task.waiting": _set,
    "task.resumed": _set,
    "task.cancelling": _set,
    "task.queued": _requeued,
    "task.retrying": _requeued,
    "task.released": _requeued,
    "task.lost": _lost,
    "task.parked": _lost,
    "task.completed": _ended,
    "task.failed": _ended,
    "task.cancelled": _ended,
    "task.died": _ended,
    "hop.refused": _no_table,
    "tokens.used": ledger.tokens_used,
    "account.granted": ledger.leases_begin,
    "account.set": ledger.account_set,
    "lease.raised": _no_table,  # only adds to leases
    "hold.placed": ledger.hold_placed,
    "hold.started": ledger.hold_started,
    "hold.settled": ledger.hold_settled,
    "hold.released": ledger.hold_released,
    "hold.reconciled": ledger.hold_reconciled,
    "credits.spent": ledger.spent,
    "ledger.carried": ledger.carried,
    "question.asked": asked,
    "question.answered": answered,
    "question.used": used,
    "notice.claimed": _no_table,
    "notice.sent": _no_table,
    "effect.done": _no_table,
    "work.left": _no_table,
    "work.kept": _no_table,
    "model.answered": _no_table,
    "model.failed": _no_table,
    "model.waiting": _no_table,
    "model.told": _no_table,
    "tool.begun": _no_table,
    "talk.restarted": _no_table,
    "tool.done": _asked,
    "session.recalled": _no_table,
    "cooling.set": _cooling_set,
    "plan.started": _no_table,
    "team.planned": _no_table,
    "step.ended": _no_table,
    "runs.pruned": _pruned,
    "keys.kept": _keys_kept,
    "journal.cut": _journal_cut,
    "breaker.set": _breaker_set,
    "cards.published": _cards_published,
    "card.withdrawn": _card_withdrawn,
    "schedule.set": _schedule_set,
    "schedule.removed": _schedule_removed,
    "schedule.fired": _schedule_fired,
    "schedule.skipped": _schedule_fired,
    "hook.added": _hook_added,
    "hook.removed": _hook_removed,
    "hook.rotated": _hook_rotated,
    "access.made": _access_made,
    "access.revoked": _access_revoked,
    "key.set": _no_table,  # keys are not part of the history
    "key.removed": _no_table,
    "owner.acted": _no_table,
    "entry.set": _entry_set,
    "entry.touched": _entry_touched,
    "entries.removed": _entries_removed,
    "message.sent": _message_sent,
    "messages.taken": _messages_taken,
    "artifact.saved": _artifacts,
}


def changes(event: Event) -> list[Change]:
    return PROJECTION[event.kind](event)


Tables: TypeAlias = Mapping[Table, MutableMapping[Key, Row]]


def fold(events: Iterable[Event]) -> Tables:
    """Return the tables that result from these events."""
    tables: Tables = {table: {} for table in KEYS}
    for event in events:
        fold_in(tables, event)
    return tables


def fold_in(tables: Tables, event: Event) -> None:
    """Apply one event to the tables."""
    for move in moves(event):
        _move(tables["lease"], move)
    for change in changes(event):
        if change.table in tables:
            _apply(tables[change.table], change)
    if (count := counted(event)) is not None:
        _add(tables["run"], event.run, count)


def _apply(rows: MutableMapping[Key, Row], change: Change) -> None:
    match change.verb:
        case "count":
            for key in ledger.counted_in(change.row):
                before = rows.get(key, {"spent": 0})
                columns = dict(zip(KEYS["meter"], key, strict=True))
                rows[key] = {**columns, "spent": cast("int", before["spent"]) + cast("int", change.row["spent"])}
        case "cut":  # of the meter, or what a run has asked for
            for key in [key for key in rows if _is_cut(key, change)]:
                del rows[key]
        case "add" | "put":
            rows[change.key] = dict(change.row)
        case "drop":
            rows.pop(change.key, None)
        case _:
            row = rows.get(change.key)
            if row is not None and _open(row, change):
                row.update(change.row)


def _is_cut(key: Key, change: Change) -> bool:
    return key[0] == change.key[0] if change.table == "ask" else key[-1] < cast("str", change.row["hour"])


def _move(rows: MutableMapping[Key, Row], move: LeaseMove) -> None:
    row = rows.get((move.lease, move.unit))
    if row is not None:
        for name, by in zip(LeaseMove._fields[2:], move[2:], strict=True):
            row[name] = cast("int", row[name]) + by


def _add(rows: MutableMapping[Key, Row], run: str, count: Count) -> None:
    before = rows.get((run,))
    added: Row = {**count._asdict()}
    if before is not None:
        added = {name: before[name] + value for name, value in count._asdict().items()}
    rows[run,] = {"id": run, **added}


def _open(row: Row, change: Change) -> bool:
    """Whether the change still applies: a task ends once and does not move after that, and a message is taken once."""
    if change.table == "task":
        return row["ended"] is None
    if change.verb == "answer":
        return row["state"] == "open"
    return change.verb != "take" or row["taken_at"] is None

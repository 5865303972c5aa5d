"""Clauses on isolation: nothing crosses from one workspace to another."""

from collections import Counter
from collections.abc import Callable
from typing import Final, cast

from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.change import KEYS
from remit.core.entry import Draft, Message, Writer
from remit.core.events import INLINE, Gap, Labels, Place, Unsealed
from remit.core.identity import AccessRow
from remit.core.kinds.models import cooling_set
from remit.core.kinds.money import ledger_event
from remit.core.kinds.people import question_event
from remit.core.kinds.sharing import ArtifactData, artifact_saved, message_sent
from remit.core.kinds.tasks import (
    Begun,
    Claim,
    Lineage,
    Queued,
    Requeue,
    claimed,
    ended,
    moved,
    requeued,
    started,
    submitted,
)
from remit.core.kinds.upkeep import journal_cut
from remit.core.kinds.workspace import (
    access_made,
    breaker_set,
    cards_published,
    hook_added,
    key_set,
    schedule_set,
    step_ended,
)
from remit.core.recovery import Cooling
from remit.core.scope import Scope
from remit.core.tally import HOUR_WIDE, Figures, Period, Root, UnderWay, Window
from remit.core.times import SECOND, hour_of
from remit.core.values import Json
from remit.ports import (
    Beat,
    Database,
    Decision,
    KeyChange,
    KeyRow,
    Sealed,
    Span,
    Store,
    Tallied,
    TallyRow,
    View,
    Which,
)
from remit.testing.clauses.making import (
    NOW,
    append,
    child_remit,
    entry_event,
    equal,
    first_remit,
    hooking,
    must,
    putting,
    scheduling,
    sound,
)

# Every kind of read, for names that exist in both workspaces.
_LOOKS: Final[dict[str, Callable[[View], object]]] = {
    "head": lambda view: view.head(),
    "run": lambda view: view.run("root"),
    "card": lambda view: view.card("helper"),
    "cards": lambda view: view.cards(),
    "standing": lambda view: view.standing("root"),
    "record": lambda view: view.record("root"),
    "event": lambda view: (view.event(1), view.event(8)),
    "marks": lambda view: view.marks(2, 3),
    "done": lambda view: view.done("fill"),
    "done_under": lambda view: view.done_under("fi"),
    "blob": lambda view: [view.blob(seq) for seq in range(1, view.head().seq + 1)],
    "blobs": lambda view: view.blobs(),
    "artifact_rows": lambda view: view.artifact_rows("sha256:same"),
    "artifacts": lambda view: view.artifacts(10),
    "artifacts_of_run": lambda view: view.artifacts_of_run("root"),
    "artifacts_at": lambda view: [view.artifacts_at(seq) for seq in range(1, view.head().seq + 1)],
    "artifact_count": lambda view: view.artifact_count(),
    "artifact_bytes": lambda view: (view.artifact_bytes(), view.artifact_bytes("root")),
    "running": lambda view: view.running("helper", NOW),
    "working": lambda view: view.working(),
    "resuming": lambda view: (view.resuming("*"), view.resuming("helper")),
    "queues": lambda view: view.queues(),
    "open_tasks": lambda view: view.open_tasks(10),
    "has_due": lambda view: (view.has_due("helper", NOW + 10), view.has_due("helper", NOW - 1)),
    "due": lambda view: view.due("helper", "worker", NOW + 10, 10),
    "front": lambda view: view.front(NOW + 10, 10),
    "next_due": lambda view: view.next_due(NOW - 1),
    "asks": lambda view: view.asks("root", ("one", "two", "!helper")),
    "below": lambda view: view.below("root"),
    "spawned": lambda view: view.spawned("root"),
    "same_requests": lambda view: view.same_requests("same", NOW - 1),
    "lineage": lambda view: view.lineage("root"),
    "used_key": lambda view: view.used_key("key/k"),
    "keys_of_run": lambda view: view.keys_of_run("root"),
    "key_of_task": lambda view: view.key_of_task("child"),
    "late": lambda view: view.late(NOW + 3600 * SECOND, 10),
    "tasks_of_worker": lambda view: view.tasks_of_worker("worker"),
    "cancelling": lambda view: view.cancelling("worker"),
    "tasks": lambda view: [
        *view.tasks(Which()),
        *view.tasks(Which(run="root", state="open")),
        *view.tasks(Which(session="s")),
        *view.tasks(Which(state="failed")),
    ],
    "task_lines": lambda view: [*view.task_lines(Which()), *view.task_lines(Which(asker="lead"))],
    "run_lines": lambda view: [*view.run_lines(Which(state="open")), *view.run_lines(Which(session="s"))],
    "vitals": lambda view: view.vitals(["root", "child", "none"]),
    "orphans": lambda view: view.orphans(10),
    "chapters": lambda view: view.chapters(0, 10),
    "last_before": lambda view: view.last_before(NOW + 3600 * SECOND),
    "roots": lambda view: view.roots(0, 10),
    "prunable": lambda view: view.prunable("root", NOW + 3600 * SECOND),
    "marks_of_run": lambda view: view.marks_of_run("root"),
    "lasting_of_run": lambda view: view.lasting_of_run("root"),
    "gap_before": lambda view: view.gap_before(17),
    "gaps_around": lambda view: view.gaps_around(15, 17),
    "gaps_stated": lambda view: view.gaps_stated(18),
    "gaps_after": lambda view: view.gaps_after(0, 10),
    "of_run": lambda view: view.of_run("root"),
    "workers": lambda view: view.workers(),
    "unseen": lambda view: view.unseen(),
    "runs": lambda view: view.runs(10),
    "runs_of_session": lambda view: view.runs_of_session("s", "lead", 10),
    "ids_like": lambda view: view.ids_like("", 10) + view.ids_like("", 10, runs=True),
    "ids_ending": lambda view: view.ids_ending("", 10) + view.ids_ending("", 10, runs=True),
    "breaker": lambda view: view.breaker("helper"),
    "breaker_set_at": lambda view: view.breaker_set_at("helper"),
    "coolings": lambda view: view.coolings(),
    "cooling_set_at": lambda view: view.cooling_set_at("key:A"),
    "breakers": lambda view: view.breakers(),
    "entry": lambda view: view.entry("notes", "a"),
    "recent": lambda view: view.recent(Scope("notes"), NOW, 10),
    "by_key": lambda view: view.by_key(Scope("notes"), NOW, 10),
    "retired": lambda view: view.retired("notes", "gone"),
    "expired": lambda view: view.expired(NOW + 10, 10),
    "namespaces": lambda view: view.namespaces(NOW),
    "has_message": lambda view: view.has_message("message"),
    "waiting": lambda view: view.waiting("root", "helper", "claimed", 10),
    "still_waiting": lambda view: view.still_waiting("root", "helper", 10),
    "unread": lambda view: view.unread("root", "helper", "lead"),
    "events": lambda view: (
        view.events(Span())
        + view.events(Span(run="root"))
        + view.events(Span(session="s"))
        + view.events(Span(agent="lead"))
        + view.events(Span(latest=True))
        + view.events(Span(run="root", latest=True))
        + view.events(Span(session="s", latest=True))
    ),
    "tables": lambda view: view.tables(),
    "tallied": lambda view: view.tallied(),
    "tally": lambda view: view.tally(Period(HOUR_WIDE, 0, HOUR_WIDE)),
    "tally_row": lambda view: view.tally_row(HOUR_WIDE, 0, "helper"),
    "under_way": lambda view: view.under_way("root"),
    "open_runs": lambda view: view.open_runs(Window()),
    "events_between": lambda view: view.events_between(0, 100, 100),
    "events_of_run_before": lambda view: view.events_of_run_before("root", 100),
    "secret": lambda view: view.secret("openai"),
    "lease": lambda view: (view.lease("account", "credits"), view.lease("account", "tokens")),
    "leases": lambda view: view.leases(("", ""), 10),
    "hold": lambda view: view.hold("hold"),
    "holds": lambda view: view.holds("root"),
    "holds_expired": lambda view: view.holds_expired(NOW + 10, 10),
    "holds_uncertain": lambda view: view.holds_uncertain("", 10),
    "holds_of_run": lambda view: view.holds_of_run("root"),
    "disputed": lambda view: view.disputed("lead"),
    "on_hold": lambda view: view.on_hold("credits"),
    "metered": lambda view: view.metered("workspace", "", "credits", ""),
    "meter": lambda view: view.meter("workspace", "", "credits", hour_of(NOW)),
    "meter_hours": lambda view: view.meter_hours("workspace", "", "credits", hour_of(NOW)),
    "question": lambda view: view.question("question"),
    "questions_of": lambda view: view.questions_of("root"),
    "questions_open_in": lambda view: view.questions_open_in("root"),
    "questions_of_run": lambda view: view.questions_of_run("root"),
    "questions_expired": lambda view: view.questions_expired(NOW + 10, 10),
    "questions_open": lambda view: view.questions_open(10),
    "questions": lambda view: view.questions(10),
    "secrets": lambda view: view.secrets(),
    "access": lambda view: (view.access("of one"), view.access("of two")),
    "accesses": lambda view: view.accesses(),
    "schedule": lambda view: view.schedule("nightly"),
    "hook": lambda view: view.hook("h1"),
    "hooks": lambda view: view.hooks(),
    "schedules": lambda view: view.schedules(),
    "schedules_due": lambda view: view.schedules_due(NOW + 10, 10),
    "next_planned": lambda view: view.next_planned(),
    "page": lambda view: [view.page(table, None, 10) for table in KEYS],
}


async def workspaces_never_cross(database: Database) -> None:
    """Two workspaces with the same ids, keys and names each read only their own data."""
    methods = {name for name in dir(View) if not name.startswith("_")}
    equal(set(_LOOKS), methods, "this clause asks in every way a view can be asked")
    one, two = database.store("one"), database.store("two")
    empty = await _all_looks(database.store("three"))
    await _fill(one, "of one", NOW + 5)
    alone = await _all_looks(one)
    equal(await _all_looks(two), empty, "what is in one workspace does not show in another")
    await _fill(two, "of two", NOW + 6)
    await two.tx("more", lambda view: Decision(None, (entry_event(view, Draft("more", "b", "of two")),)))
    for name, seen in (await _all_looks(one)).items():
        equal(seen, alone[name], f"{name} sees its own workspace only")
    for name, seen in (await _all_looks(two)).items():
        must("of one" not in repr(seen), f"{name} shows something of another workspace: {seen!r}")
    equal(await _all_looks(database.store("three")), empty, "a third workspace is empty")
    equal(database.workspaces(), ["one", "two"], "the workspaces there are, by name")
    await sound(one)
    await sound(two)


async def workspaces_are_told_apart_exactly(database: Database) -> None:
    names = ("team", "Team", "team ", "te%m", "te_m", "téam", "te\u0301am", "team'--", "\U0001f600")
    for name in names:
        await _fill(database.store(name), f"of {name}", NOW + 5)
    for name in names:
        value = await database.store(name).read(lambda view: view.entry("notes", "a"))
        equal(value.value if value else None, f"of {name}", "workspaces are told apart exactly")
    equal(database.workspaces(), sorted(names), "the workspaces there are, in order of their characters")


def _money(mark: str, place: Place) -> tuple[Unsealed, ...]:
    """Return the events of an account with one open and one uncertain hold, and a question."""
    granted = {"unit": "credits", "amount": 100, "why": mark, "by": "", "first": True}
    purse = {"credits": [["account"]]}
    held = {"amounts": {"credits": 3}, "purse": purse, "why": mark}
    placed = {**held, "state": "held", "fence": 1, "until": NOW}
    unsure = {"hold": "unsure", "uncertain": True, "costs": {"credits": 3}, "billed": {"credits": 4}}
    asked: dict[str, Json] = {
        "question": "question",
        "kind": "ask",
        "text": mark,
        "choices": [],
        "digest": mark,
        "until": NOW,
    }
    return (
        ledger_event("account.granted", Place(), "", NOW, granted),
        ledger_event("hold.placed", place, "lead", NOW, {**placed, "hold": "hold"}),
        ledger_event("hold.placed", place, "lead", NOW, {**placed, "hold": "unsure"}),
        ledger_event("hold.settled", place, "lead", NOW, {**held, **unsure}),
        question_event("question.asked", place, "lead", NOW, {**asked, "expires": "reject"}),
        cooling_set("key:A", Cooling(1 + len(mark), NOW, "auth", NOW), NOW),
        Unsealed("tool.done", NOW, _tool_data(mark), "root", "s", "root", "lead"),
    )


def _tool_data(mark: str) -> dict[str, Json]:
    return {"tool": mark, "call": mark, "given": mark, "outcome": "done", "asks": {"one": [1, 1, mark]}}


async def _all_looks(store: Store) -> dict[str, object]:
    return {name: await store.read(look) for name, look in _LOOKS.items()}


async def _fill(store: Store, mark: str, expires: int) -> None:
    """Write one of everything, with the mark in it."""
    root = first_remit("root", session="s", workspace=store.workspace)._replace(task=mark)
    child = child_remit(root, "child", holder="helper")
    names = ("pending", "claimed", "resumes")
    pending, claimed_, resumes = (child_remit(root, name, holder="helper")._replace(task=mark) for name in names)
    queued = Queued("spawn", timeout=SECOND, attempts=3, ready_at=NOW + 5, dedup_key="same")
    place = Place("root", "s", "root")

    def decide(view: View) -> Decision[Json]:
        kept = Draft("notes", "a", mark)
        passing = Draft("notes", mark, mark, lifetime=expires - NOW)
        events = (
            started(root._replace(labels=Labels(mark)), NOW),
            started(child, NOW, queued=queued._replace(dedup_key="key/k", content=mark)),
            entry_event(view, kept, place=place),
            entry_event(view, passing, place=place),
            submitted(pending, NOW, queued, Begun(lineage=Lineage("root", 1))),
            submitted(claimed_, NOW, queued._replace(ready_at=NOW)),
            claimed(Place("root", "s", "claimed"), "helper", NOW, Claim("worker", 1, 1)),
            moved("task.cancelling", Place("root", "s", "claimed"), "helper", NOW, {"why": mark}),
            submitted(resumes, NOW, queued._replace(ready_at=NOW)),
            requeued("task.lost", Place("root", "s", "resumes"), "helper", NOW, Requeue("worker", 1, NOW, 1, 0), {}),
            message_sent(Message("message", "s", "lead", "helper", mark, NOW), place),
            message_sent(Message("news", "s", "helper", "lead", mark, NOW, "root", "claimed"), place),
            breaker_set("helper", Breaker("open", 3, NOW, "", mark), place, NOW),
            cards_published([Card("helper", mark)], NOW),
            key_set("openai", mark, "", NOW),
            *_money(mark, place),
            step_ended(root, mark, "skipped", mark, NOW),
            ended(root, "task.completed", NOW, {"result": mark}),
        )
        figures = Figures(refusals=Counter([mark]))
        tally = Tallied(
            1, [TallyRow(HOUR_WIDE, 0, "helper", 1, 1, figures)], {"root": UnderWay(root=Root(mark, 0, "a"))}
        )
        keys = KeyChange(puts=(KeyRow("openai", Sealed(mark, mark), NOW),))
        return Decision(mark, events, Beat("worker", mark, 1), tally=tally, besides=keys)

    await store.tx("fill", decide)
    await _cut_and_answer(store, mark)


async def _cut_and_answer(store: Store, mark: str) -> None:
    """Compact the journal, record a long answer, and save an artifact."""
    await store.tx("cut", _cut)
    await store.tx("long", putting(Draft("notes", "a", mark), answer=mark * INLINE))
    facts = {"digest": "sha256:same", "size": len(mark), "name": mark, "media_type": mark, "trust": "trusted"}
    saved = cast("ArtifactData", facts)
    place = Place("root", "s", "root")
    await store.tx("save", lambda _view: Decision(None, (artifact_saved(saved, Writer("lead"), place, NOW),)))
    row = AccessRow(mark, mark, mark, "run", mark, "{}", None, NOW, mark, None, "")
    await append(store, "access", access_made(row))
    await append(store, "schedule", schedule_set(scheduling("nightly", NOW + len(mark), mark), NOW))
    await append(store, "hook", hook_added(hooking("h1", f"https://{mark}.example.com/"), NOW))


def _cut(view: View) -> Decision[Json]:
    [step] = view.events(Span(kinds=frozenset({"step.ended"})))
    return Decision(None, (journal_cut([Gap(step.seq, step.seq, step.hash)], [], 7, NOW),))


CLAUSES: Final = (workspaces_never_cross, workspaces_are_told_apart_exactly)

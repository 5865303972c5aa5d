"""Events of every kind, as their makers make them."""

from typing import get_args

from core.make import NOW, entry, remit_along
from remit.core.breaker import CLOSED, Breaker
from remit.core.card import Card
from remit.core.entry import Message, Writer
from remit.core.events import Gap, Head, Hook, Labels, Place, Unsealed, seal
from remit.core.identity import AccessRow, UsedKey
from remit.core.kinds.models import (
    TalkRestarted,
    ToolDone,
    cooling_set,
    model_answered,
    model_failed,
    model_told,
    model_waiting,
    session_recalled,
    talk_restarted,
    tool_begun,
    tool_done,
)
from remit.core.kinds.money import ledger_event
from remit.core.kinds.people import question_event
from remit.core.kinds.sharing import (
    artifact_saved,
    entries_removed,
    entry_set,
    entry_touched,
    message_sent,
    messages_taken,
)
from remit.core.kinds.tasks import (
    Begun,
    Claim,
    Queued,
    Requeue,
    Wait,
    WaitKind,
    claimed,
    ended,
    fenced,
    handed,
    moved,
    refused,
    requeued,
    started,
    submitted,
    tokens_used,
    waiting,
)
from remit.core.kinds.upkeep import journal_cut, keys_kept, runs_pruned
from remit.core.kinds.workspace import (
    KeptTask,
    access_made,
    access_revoked,
    breaker_set,
    card_withdrawn,
    cards_published,
    effect_done,
    hook_added,
    hook_removed,
    hook_rotated,
    key_removed,
    key_set,
    owner_acted,
    plan_started,
    schedule_fired,
    schedule_removed,
    schedule_set,
    schedule_skipped,
    step_ended,
    team_planned,
    work_kept,
    work_left,
)
from remit.core.plan import Lead, Plan, Step, whole
from remit.core.recovery import Cooling, ModelFailure, ModelTry
from remit.core.remit import Pass, place
from remit.core.scope import Scope
from remit.core.times import Schedule

PLAN = Plan(
    [
        Step("a", "Gather", "all of it", "coder", "code", payload="structured", schema={"type": "object"}, retries=2),
        Step("b", "Write", agent="coder", after=["a"], context="transitive", memory_scope="all"),
    ],
    "a book",
)
STEPS = [
    {"id": "a", "title": "Gather", "agent": "coder", "state": "completed"},
    {"id": "b", "title": "B", "agent": "c", "state": "failed", "task": "t", "reason": "no", "payload": "structured"},
]
REPORT = {"digest": f"sha256:{'a' * 64}", "size": 5, "name": "a.txt", "media_type": "text/plain", "trust": "trusted"}
CODER = remit_along("lead", "coder")
LABELLED = Labels("ann", ("nightly",), (("ticket", 7),), f"00-{'4b' * 16}-{'f0' * 8}-01")
STRANGE = CODER._replace(writes=frozenset((Scope("notes"),)), trust="untrusted", remembers="session", labels=LABELLED)
VALUED = CODER._replace(task='check\n\n{"order":7}', data='{"order":7}')
PASSED = {"sees": ["notes/*"], "writes": [], "tools": ["exec"], "within": {"depth": 2}}
HERE = place(CODER)
USAGE = {"input": 1_200, "output": 7, "cached_input": 800, "cache_written": 100}
RECEIPT = {"saw": [], "tokens": 0, "unlisted": 0, "withheld": []}
TURN = {"receipt": RECEIPT, "tokens": 7, "trust": "untrusted", "left": True, "more_refused": 3, "steps": STEPS}
PURSE = {"credits": [["t2", "account"]]}
FUNDS = {"purse": PURSE, "opens": [["credits", "cap", 50]]}
BACK = Requeue("w1", 2, NOW + 9, 1, 1)
QUEUED = Queued("submit", 260, 4, NOW, "key/d")
LEAD = Lead(PLAN, 2, True).data
BEGUN = Begun("w1", "draft", "plan", True, NOW + 9, 10, lead=LEAD, funds=FUNDS, position="0/delegate/ab/1", priority=7)
FAILED = {"error": "no disk", "type": "OSError"}
ENDED = ("failed", "cancelled", "died")
FAILED_FULLY = {**TURN, **FAILED, "retryable": True, "spared": True, "trace": "team.py:3 in coder"}
RETRIED = {
    "origin": "t0",
    "failures": 1,
    "restart": True,
    "forked": {"run": "r0", "at": 7},
}  # what a retry or a fork of a person adds to the first event before
STEP = {"id": "a", "title": "Gather", "agent": "coder", "capability": "", "after": []}
KEPT = {"id": "t1", "agent": "lead", "session": "s1", "task": "build it", "state": "completed"}
PRUNED = {**KEPT, "asked_at": NOW, "ended_at": NOW + 1, "tasks": ["t1"]}


CLOSES = {
    "leaves": [["t1", "tokens"]],
    "closing": [["t2", "tokens"]],
    "closes": [["t2", "credits", "cap", ["account"], 50, 7, 0]],
}
HELD = {"hold": "h1", "amounts": {"credits": 9}, "purse": PURSE, "why": "photo"}
BILLED = {"model": "m", "own_key": "openai", "person": "ann"}
STEPS_UP = {"credits": [["t2", 3, 0], ["account", 3, 0]]}
ACCOUNT = [
    ("granted", {"unit": "credits", "amount": 900, "why": "", "by": ""}),
    ("granted", {"unit": "credits", "amount": 900, "why": "May", "by": "ann", "first": True}),
    ("set", {"unit": "credits", "state": "frozen", "why": "more was spent than it had"}),
    ("set", {"unit": "credits", "state": "open", "why": "", "by": "ann"}),
]
RECONCILED = {
    "hold": "h1",
    "charged": {"credits": 9},
    "costs": {"credits": 4},
    "hour": "2026-11-15T02",
    "why": "",
    "by": "",
}
OVER = {**BILLED, "billed": {"credits": 900}}
HOLDS = [
    ("placed", {**HELD, "state": "held", "fence": 1, "until": NOW + 9}),
    ("placed", {**HELD, "state": "started", "fence": 1, "until": NOW + 9, **BILLED}),
    ("started", {"hold": "h1"}),
    ("settled", HELD),
    ("settled", {**HELD, "costs": {"credits": 12}, "steps": STEPS_UP, "uncertain": True, "because": "", **OVER}),
    ("released", HELD),
    ("released", {**HELD, "costs": {}, "steps": {}, "uncertain": False, "because": "it was not sent", **OVER}),
    ("reconciled", RECONCILED),
    ("reconciled", {**RECONCILED, "back": {"credits": [5, ["account"]]}, "steps": STEPS_UP, **BILLED}),
]
MORE = {"question": "q1", "unit": "credits", "amount": 9, "adds": [["t1", 9]], "takes": [["account", 9]]}
SPENT = {"costs": {"credits": 3}, "steps": STEPS_UP, "why": "photo"}
CARRIED = {"leases": [], "holds": [], "meters": [], "forgotten": "2026-10-15T02"}
ASKED = {"question": "q1", "kind": "hop", "text": "may I?", "choices": [], "digest": "d", "until": NOW + 9}
ANSWERED = {"question": "q1", "state": "approved", "by": "ann", "channel": "terminal", "why": ""}
LACKS = {"unit": "credits", "wanted": 5, "kept": 0, "adds": 2}
QUESTIONS = [
    ("asked", {**ASKED, "expires": "reject"}),
    ("asked", {**ASKED, "expires": "default", "default": "red", "shows": {"agent": "coder"}}),
    ("asked", {**ASKED, "kind": "money", "expires": "reject", "raises": LACKS}),
    ("answered", ANSWERED),
    ("answered", {**ANSWERED, "value": "go"}),
    ("used", {"question": "q1"}),
]


CI = AccessRow(
    *("k7w2mzq4c3x5ab6d", "9f86d081", "ci", "run approve", "reviewer", '{"depth":2}', NOW + 90, NOW, "ann", None, ""),
)
NIGHTLY = Schedule(
    *("nightly", "active", "0 3 * * *", "Europe/Berlin", "latest", "coder", "tidy up"),
    '{"ceiling":{"depth":3},"keywords":{"priority":3}}',
    *(NOW + 9, None, "", 0, "ann", NOW, 0, 0),
)


HOOK = Hook("h1", "https://example.com/hook", "question.* task.completed", "", 1, None, "ann", NOW, 0, 0)


def with_more(event: Unsealed, **more: object) -> Unsealed:
    return event._replace(data={**event.data, **more})


STOPPED = {"unheard": True, "strikes": {"coder": 1}, "progress": {"text": "3 of 10", "fraction": 0.3}}
RESTARTED: TalkRestarted = {
    "turn": "0",
    "why": "a recorded answer cannot be read",
    "positions": 2,
    "tools": [{"tool": "look", "given": "{}", "outcome": "done"}],
}
FAILED_TOOL: ToolDone = {
    "tool": "look",
    "call": "c3",
    "given": "{}",
    "outcome": "failed",
    "result": "'look' failed: KeyError: 'a'",
    "elapsed": 2_000,
    "place": "team.py:8 in look",
    "asks": {"e3": [1, 1, ""]},
}
# The barest and the fullest event of each kind, as its maker makes it.
MADE = [
    started(CODER, NOW),
    started(VALUED, NOW),
    with_more(started(CODER, NOW), metered=True),
    with_more(started(STRANGE, NOW, BEGUN, QUEUED), **RETRIED),
    submitted(CODER, NOW, QUEUED),
    submitted(VALUED, NOW, QUEUED),
    with_more(submitted(CODER, NOW, QUEUED), metered=True),
    with_more(submitted(STRANGE, NOW, QUEUED, BEGUN), **RETRIED),
    claimed(HERE, "coder", NOW, Claim("w1", 1, 1)),
    claimed(HERE, "coder", NOW, Claim("w1", 1, 1), NOW + 9),
    fenced(HERE, "coder", NOW, Claim("w1", 2, 1)),
    handed(CODER, "tester", NOW, {"update": {}, "content": "d"}),
    handed(CODER, "tester", NOW, {"update": {}, "content": "d", "failed": "it raised"}),
    handed(CODER, ["tester"], NOW, {"update": {}, "content": "d", "payloads": ["x"], "join": "", "data": [{"a": 1}]}),
    handed(CODER, "tester", NOW, {"update": {}, "content": "d", "artifacts": [REPORT]}),
    handed(
        CODER,
        "coder",
        NOW,
        {"update": {}, "content": "", "sent_back": {"result": [1], "why": "no", "by": "ann", "times": 1}},
    ),
    handed(
        CODER,
        ["tester", "writer"],
        NOW,
        {
            **TURN,
            "update": {"phase": "test"},
            "content": "d",
            "payloads": ["a", 1],
            "join": "lead",
            "joins": True,
            "passed": PASSED,
            "of_parts": True,
            **FUNDS,
        },
    ),
    moved("task.waiting", HERE, "coder", NOW, {}),
    *(waiting(HERE, "coder", NOW, Wait(kind)) for kind in get_args(WaitKind)),
    waiting(HERE, "coder", NOW, Wait("person", "q1")),
    moved("task.resumed", HERE, "coder", NOW, {}),
    moved("task.resumed", HERE, "coder", NOW, {"until": NOW + 9}),
    moved("task.cancelling", HERE, "coder", NOW, {"why": "enough"}),
    moved("task.cancelling", HERE, "coder", NOW, {"why": "enough", "by": "ann"}),
    *(requeued(f"task.{word}", HERE, "coder", NOW, BACK, {}) for word in ("queued", "released")),
    requeued("task.released", HERE, "coder", NOW, BACK, TURN),
    requeued("task.queued", HERE, "coder", NOW, BACK, {**TURN, "until": NOW + 9}),
    requeued("task.parked", HERE, "coder", NOW, BACK, {}),
    requeued("task.parked", HERE, "coder", NOW, BACK, {**TURN, "lost_by": "w0", "losses": 1, "until": NOW + 9}),
    *(requeued(f"task.{word}", HERE, "coder", NOW, BACK, {}) for word in ("retrying", "lost")),
    requeued("task.retrying", HERE, "coder", NOW, BACK, FAILED_FULLY),
    requeued("task.lost", HERE, "coder", NOW, BACK, {**TURN, "lost_by": "w0", "losses": 1, "until": NOW + 9}),
    ended(CODER, "task.completed", NOW, {"result": None}),
    ended(CODER, "task.completed", NOW, {"result": [], "artifacts": [REPORT]}),
    ended(CODER, "task.completed", NOW, {**TURN, **CLOSES, "result": {"lines": 40}}),
    *(ended(CODER, f"task.{word}", NOW, FAILED) for word in ("failed", "cancelled", "died")),
    *(ended(CODER, f"task.{word}", NOW, {**FAILED_FULLY, **CLOSES, **STOPPED, "by": "ann"}) for word in ENDED),
    refused(CODER, Pass("lead", "again"), NOW, rule="loop", sentence="no"),
    refused(CODER, Pass("lead", "again"), NOW, rule="loop", sentence="no", handoff=True),
    refused(CODER, Pass("lead", "again", credits="$2"), NOW, rule="credits", sentence="no", handoff=True),
    tokens_used(CODER._replace(labels=Labels("ann")), 7, NOW),
    tokens_used(CODER, 7, NOW, [["t1", 5, 2]]),
    *(ledger_event(f"account.{kind}", Place(), "", NOW, data) for kind, data in ACCOUNT),
    *(ledger_event(f"hold.{kind}", HERE, "coder", NOW, data) for kind, data in HOLDS),
    ledger_event("lease.raised", HERE, "coder", NOW, {**MORE, "why": "", "by": "ann"}),
    ledger_event("credits.spent", HERE, "coder", NOW, {**SPENT}),
    ledger_event("credits.spent", HERE, "coder", NOW, {**SPENT, **BILLED}),
    ledger_event("ledger.carried", Place(), "", NOW, CARRIED),
    *(question_event(f"question.{kind}", HERE, "coder", NOW, data) for kind, data in QUESTIONS),
    question_event("notice.sent", HERE, "coder", NOW, {"question": "q1", "channel": "webhook", "ref": "42"}),
    question_event("notice.sent", HERE, "coder", NOW, {"question": "q1", "channel": "webhook", "error": "401"}),
    effect_done(CODER, "charge", "abc", [1], NOW),
    effect_done(CODER, "charge", "abd", [2], NOW, {"took": "untrusted"}),
    model_answered(CODER, ModelTry("openai:gpt-5"), {"named": "gpt-5", "calls": []}, NOW),
    model_answered(
        CODER,
        ModelTry("openai:gpt-5", "A", 1),
        {"named": "gpt-5", "calls": ["look"], "usage": USAGE, "cost": 3, "elapsed": 9, "receipt": RECEIPT},
        NOW,
    ),
    model_failed(CODER, ModelTry("openai:gpt-5"), ModelFailure("timeout"), NOW),
    model_failed(CODER, ModelTry("openai:gpt-5", "A", 2), ModelFailure("rate-limit", 429, said="slower"), NOW, 7),
    model_waiting(CODER, ModelTry("openai:gpt-5", "A", 2, 7_000_000), 2, NOW),
    model_waiting(CODER, ModelTry("openai:gpt-5", wait=7_000_000), 2, NOW),
    work_left(CODER, ["$0.01 paid for stamps"], NOW),
    work_kept(seal(started(CODER, NOW), "{}", "two", Head()), HERE, NOW, KeptTask(task=CODER.id, state="completed")),
    work_kept(seal(effect_done(CODER, "charge", "abc", [1], NOW), "{}", "one", Head()), HERE, NOW),
    model_told(CODER, 2, NOW),
    tool_begun(CODER, {"tool": "look", "call": "c1", "given": "{}"}, NOW),
    talk_restarted(CODER, RESTARTED, NOW),
    tool_done(CODER, {"tool": "look", "call": "c1", "given": "{}", "outcome": "done"}, NOW),
    tool_done(CODER, {"tool": "look", "call": "c2", "given": "{}", "outcome": "done", "result": "6 lines"}, NOW),
    tool_done(CODER, FAILED_TOOL, NOW),
    session_recalled(CODER, [["r0", "session"], ["r1", "whole"]], NOW),
    cooling_set("key:A", Cooling(1, NOW + 60, "rate-limit", NOW), NOW),
    cooling_set("key:A", Cooling(used=NOW), NOW, "ann"),
    plan_started(CODER, [STEP], NOW, {}),
    plan_started(CODER, [Step("a", "Gather", agent="coder").outline()], NOW, {"goal": "g", "receipt": RECEIPT}),
    team_planned(CODER, {"plan": {"steps": [{"id": "a", "title": "Gather"}]}}, NOW),
    team_planned(CODER, {"plan": whole(PLAN), "trust": "untrusted"}, NOW),
    step_ended(CODER, "a", "skipped", "stop", NOW),
    runs_pruned([PRUNED], [], NOW, "ann"),
    runs_pruned([{**PRUNED, "messages": ["m1"], "questions": ["q1"]}], [Gap(1, 2, "a"), Gap(4, 4, "b")], NOW),
    keys_kept([UsedKey("key/d", "t1", "t1", "all", "completed", NOW + 1)], NOW),
    journal_cut([], [], 0, NOW),
    journal_cut([Gap(1, 2, "a")], [("notes", "k")], 7, NOW),
    breaker_set("coder", CLOSED, Place(), NOW),
    breaker_set("coder", Breaker("half-open", 3, NOW + 5, "t2", "it broke"), HERE, NOW, "ann"),
    cards_published([Card("coder"), Card("lead", asks="*", tools=["exec"], concurrency=2)], NOW),
    card_withdrawn("lead", "ann", NOW),
    card_withdrawn("lead", "", NOW),
    owner_acted("cancel", "t1", "ann", NOW),
    access_made(CI),
    access_made(CI._replace(agent="", bounds="{}", expires_at=None, made_by="")),
    access_revoked(CI.id, "ci", "ann", NOW),
    schedule_set(NIGHTLY, NOW),
    schedule_set(NIGHTLY._replace(state="paused", next=None, last=NOW, last_task="t1", runs=1, set_by=""), NOW),
    schedule_removed("nightly", "ann", NOW),
    schedule_removed("nightly", "", NOW),
    schedule_fired(NIGHTLY._replace(last=NOW, last_task="t1", runs=1), None, NOW),
    schedule_fired(NIGHTLY._replace(next=None, last=NOW, last_task="t1", runs=1), NOW - 9, NOW),
    schedule_skipped(NIGHTLY, NOW, "no worker ran", NOW),
    schedule_skipped(NIGHTLY._replace(next=None, last=NOW, last_task="t1", runs=1), NOW, "no worker ran", NOW),
    hook_added(HOOK, NOW),
    hook_added(HOOK._replace(id="h2", run="r1", task="t1"), NOW),
    hook_added(HOOK._replace(run="r1", added_by=""), NOW),
    hook_rotated("h1", 2, "ann", NOW),
    hook_removed("h1", "", NOW),
    key_set("openai", "1a2b3c4d", "", NOW),
    key_set("openai", "1a2b3c4d", "ann", NOW),
    key_set("openai", "1a2b3c4d", "ann", NOW, "9f86d081884c7d65"),
    key_removed("openai", "", NOW),
    key_removed("openai", "ann", NOW),
    entry_set(entry(value=["x"]), Place(), "ann"),
    entry_set(entry(value=["x"]), Place(), artifacts=(REPORT,)),
    entry_set(entry(by=Writer("coder", "t2", ("lead", "coder")), lifetime=60, extend=True), HERE),
    entry_touched(entry(lifetime=60), Writer("tester"), HERE, NOW),
    entry_touched(entry(lifetime=60), Writer("", person="ann"), HERE, NOW),
    entries_removed([("n", "a", 3)], "expired", Writer(""), Place(), NOW),
    entries_removed([("n", "a", 3)], "removed", Writer("", person="ann"), Place(), NOW),
    message_sent(Message("m1", "s1", "coder", "tester", "look", NOW), HERE),
    message_sent(Message("t2/told", "s1", "coder", "lead", "done", NOW, "t1", "t2", "untrusted"), HERE),
    messages_taken(["m1"], "tester", HERE, NOW),
    artifact_saved(REPORT, Writer("coder"), HERE, NOW),
    artifact_saved({**REPORT, "trust": "untrusted"}, Writer("", person="ann"), Place(), NOW),
    question_event("notice.claimed", HERE, "lead", NOW, {"question": "q1", "channel": "webhook", "worker": "w1"}),
    question_event("notice.sent", HERE, "lead", NOW, {"question": "q1", "channel": "webhook", "ref": "m1"}),
    question_event("notice.sent", HERE, "lead", NOW, {"question": "q1", "channel": "slack", "error": "no"}),
]

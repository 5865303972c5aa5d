"""Events of every kind, as their makers make them."""

from core.make import NOW, entry, remit_along
from remit.core import kinds
from remit.core.breaker import CLOSED, Breaker
from remit.core.card import Card
from remit.core.entry import Message, Writer
from remit.core.events import Gap, Unsealed
from remit.core.identity import UsedKey
from remit.core.kinds import Begun, Claim, Place, Queued, Requeue
from remit.core.plan import Lead, Plan, Step, whole
from remit.core.recovery import Cooling, ModelFailure, ModelTry
from remit.core.remit import Pass, place
from remit.core.scope import Scope

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
CODER = remit_along("lead", "coder")
STRANGE = CODER._replace(writes=frozenset((Scope("notes"),)), trust="untrusted", remembers="session")
PASSED = {"sees": ["notes/*"], "writes": [], "tools": ["exec"], "within": {"depth": 2}}
HERE = place(CODER)
RECEIPT = {"saw": [], "tokens": 0, "unlisted": 0, "withheld": []}
TURN = {"receipt": RECEIPT, "tokens": 7, "trust": "untrusted", "left": True, "more_refused": 3, "steps": STEPS}
PURSE = {"credits": [["t2", "account"]]}
FUNDS = {"purse": PURSE, "opens": [["credits", "cap", 50]]}
BACK = Requeue("w1", 2, NOW + 9, 1, 1)
QUEUED = Queued("submit", 260, 4, NOW, "key/d")
LEAD = Lead(PLAN, 2, True).data
BEGUN = Begun("w1", "draft", "plan", "ann", True, NOW + 9, 10, lead=LEAD, funds=FUNDS, position="0/delegate/ab/1")
FAILED = {"error": "no disk", "type": "OSError"}
ENDED = ("failed", "cancelled", "died")
FAILED_FULLY = {**TURN, **FAILED, "retryable": True, "spared": True, "trace": "team.py:3 in coder"}
RETRIED = {"origin": "t0", "failures": 1, "restart": True}  # what a person's retry adds to the first event before
STEP = {"id": "a", "title": "Gather", "agent": "coder", "capability": "", "after": []}
KEPT = {"id": "t1", "agent": "lead", "session": "s1", "task": "build it", "state": "completed"}
PRUNED = {**KEPT, "asked_at": NOW, "ended_at": NOW + 1, "tasks": ["t1"]}


CLOSES = {
    "leaves": [["t1", "tokens"]],
    "closing": [["t2", "tokens"]],
    "closes": [["t2", "credits", "cap", ["account"], 50, 7, 0]],
}
HELD = {"hold": "h1", "amounts": {"credits": 9}, "purse": PURSE, "why": "photo"}
BILLED = {"model": "m", "own_key": "openai"}
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
SPENT = {"costs": {"credits": 3}, "steps": STEPS_UP, "why": "photo"}
CARRIED = {"leases": [], "holds": [], "meters": [], "forgotten": "2026-10-15T02"}
ASKED = {"question": "q1", "kind": "hop", "text": "may I?", "choices": [], "digest": "d", "until": NOW + 9}
ANSWERED = {"question": "q1", "state": "approved", "by": "ann", "channel": "terminal", "why": ""}
QUESTIONS = [
    ("asked", {**ASKED, "expires": "reject"}),
    ("asked", {**ASKED, "expires": "default", "default": "red", "shows": {"agent": "coder"}}),
    ("answered", ANSWERED),
    ("answered", {**ANSWERED, "value": "go"}),
    ("used", {"question": "q1"}),
]


def with_more(event: Unsealed, **more: object) -> Unsealed:
    return event._replace(data={**event.data, **more})


STOPPED = {"unheard": True, "strikes": {"coder": 1}}
RESTARTED: kinds.TalkRestarted = {
    "turn": "0",
    "why": "a recorded answer cannot be read",
    "positions": 2,
    "tools": [{"tool": "look", "given": "{}", "outcome": "done"}],
}
FAILED_TOOL: kinds.ToolDone = {
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
    kinds.started(CODER, NOW),
    with_more(kinds.started(CODER, NOW), metered=True),
    with_more(kinds.started(STRANGE, NOW, BEGUN, QUEUED), **RETRIED),
    kinds.submitted(CODER, NOW, QUEUED),
    with_more(kinds.submitted(CODER, NOW, QUEUED), metered=True),
    with_more(kinds.submitted(STRANGE, NOW, QUEUED, BEGUN), **RETRIED),
    kinds.claimed(HERE, "coder", NOW, Claim("w1", 1, 1)),
    kinds.claimed(HERE, "coder", NOW, Claim("w1", 1, 1), NOW + 9),
    kinds.fenced(HERE, "coder", NOW, Claim("w1", 2, 1)),
    kinds.handed(CODER, "tester", NOW, {"update": {}, "content": "d"}),
    kinds.handed(CODER, "tester", NOW, {"update": {}, "content": "d", "failed": "it raised"}),
    kinds.handed(
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
    kinds.moved("task.waiting", HERE, "coder", NOW, {}),
    kinds.moved("task.resumed", HERE, "coder", NOW, {}),
    kinds.moved("task.resumed", HERE, "coder", NOW, {"until": NOW + 9}),
    kinds.moved("task.cancelling", HERE, "coder", NOW, {"why": "enough"}),
    kinds.moved("task.cancelling", HERE, "coder", NOW, {"why": "enough", "by": "ann"}),
    *(kinds.requeued(f"task.{word}", HERE, "coder", NOW, BACK, {}) for word in ("queued", "released")),
    kinds.requeued("task.released", HERE, "coder", NOW, BACK, TURN),
    kinds.requeued("task.queued", HERE, "coder", NOW, BACK, {**TURN, "until": NOW + 9}),
    kinds.requeued("task.parked", HERE, "coder", NOW, BACK, {}),
    kinds.requeued("task.parked", HERE, "coder", NOW, BACK, {**TURN, "lost_by": "w0", "losses": 1, "until": NOW + 9}),
    *(kinds.requeued(f"task.{word}", HERE, "coder", NOW, BACK, {}) for word in ("retrying", "lost")),
    kinds.requeued("task.retrying", HERE, "coder", NOW, BACK, FAILED_FULLY),
    kinds.requeued("task.lost", HERE, "coder", NOW, BACK, {**TURN, "lost_by": "w0", "losses": 1, "until": NOW + 9}),
    kinds.ended(CODER, "task.completed", NOW, {"result": None}),
    kinds.ended(CODER, "task.completed", NOW, {**TURN, **CLOSES, "result": {"lines": 40}}),
    *(kinds.ended(CODER, f"task.{word}", NOW, FAILED) for word in ("failed", "cancelled", "died")),
    *(kinds.ended(CODER, f"task.{word}", NOW, {**FAILED_FULLY, **CLOSES, **STOPPED, "by": "ann"}) for word in ENDED),
    kinds.refused(CODER, Pass("lead", "again"), NOW, rule="loop", sentence="no"),
    kinds.refused(CODER, Pass("lead", "again"), NOW, rule="loop", sentence="no", handoff=True),
    kinds.tokens_used(CODER, 7, NOW),
    kinds.tokens_used(CODER, 7, NOW, [["t1", 5, 2]]),
    *(kinds.ledger_event(f"account.{kind}", Place(), "", NOW, data) for kind, data in ACCOUNT),
    *(kinds.ledger_event(f"hold.{kind}", HERE, "coder", NOW, data) for kind, data in HOLDS),
    kinds.ledger_event("credits.spent", HERE, "coder", NOW, {**SPENT}),
    kinds.ledger_event("credits.spent", HERE, "coder", NOW, {**SPENT, "model": "m", "own_key": "openai"}),
    kinds.ledger_event("ledger.carried", Place(), "", NOW, CARRIED),
    *(kinds.question_event(f"question.{kind}", HERE, "coder", NOW, data) for kind, data in QUESTIONS),
    kinds.question_event("notice.sent", HERE, "coder", NOW, {"question": "q1", "channel": "webhook", "ref": "42"}),
    kinds.question_event("notice.sent", HERE, "coder", NOW, {"question": "q1", "channel": "webhook", "error": "401"}),
    kinds.effect_done(CODER, "charge", "abc", [1], NOW),
    kinds.effect_done(CODER, "charge", "abd", [2], NOW, {"took": "untrusted"}),
    kinds.model_answered(CODER, ModelTry("openai:gpt-5"), {"named": "gpt-5", "calls": []}, NOW),
    kinds.model_answered(
        CODER,
        ModelTry("openai:gpt-5", "A", 1),
        {"named": "gpt-5", "calls": ["look"], "usage": {"input": 1_200, "output": 7}, "cost": 3},
        NOW,
    ),
    kinds.model_failed(CODER, ModelTry("openai:gpt-5"), ModelFailure("timeout"), NOW),
    kinds.model_failed(CODER, ModelTry("openai:gpt-5", "A", 2), ModelFailure("rate-limit", 429, said="slower"), NOW),
    kinds.model_waiting(CODER, ModelTry("openai:gpt-5", "A", 2, 7_000_000), 2, NOW),
    kinds.model_waiting(CODER, ModelTry("openai:gpt-5", wait=7_000_000), 2, NOW),
    kinds.work_left(CODER, ["$0.01 paid for stamps"], NOW),
    kinds.tool_begun(CODER, {"tool": "look", "call": "c1", "given": "{}"}, NOW),
    kinds.talk_restarted(CODER, RESTARTED, NOW),
    kinds.tool_done(CODER, {"tool": "look", "call": "c1", "given": "{}", "outcome": "done"}, NOW),
    kinds.tool_done(CODER, {"tool": "look", "call": "c2", "given": "{}", "outcome": "done", "result": "6 lines"}, NOW),
    kinds.tool_done(CODER, FAILED_TOOL, NOW),
    kinds.session_recalled(CODER, [["r0", "session"], ["r1", "whole"]], NOW),
    kinds.cooling_set("key:A", Cooling(1, NOW + 60, "rate-limit", NOW), NOW),
    kinds.cooling_set("key:A", Cooling(used=NOW), NOW, "ann"),
    kinds.plan_started(CODER, [STEP], NOW, {}),
    kinds.plan_started(CODER, [Step("a", "Gather", agent="coder").data()], NOW, {"goal": "g", "receipt": RECEIPT}),
    kinds.team_planned(CODER, {"plan": {"steps": [{"id": "a", "title": "Gather"}]}}, NOW),
    kinds.team_planned(CODER, {"plan": whole(PLAN), "trust": "untrusted"}, NOW),
    kinds.step_ended(CODER, "a", "skipped", "stop", NOW),
    kinds.runs_pruned([PRUNED], [], NOW, "ann"),
    kinds.runs_pruned([{**PRUNED, "messages": ["m1"], "questions": ["q1"]}], [Gap(1, 2, "a"), Gap(4, 4, "b")], NOW),
    kinds.keys_kept([UsedKey("key/d", "t1", "t1", "all", "completed", NOW + 1)], NOW),
    kinds.journal_cut([], [], 0, NOW),
    kinds.journal_cut([Gap(1, 2, "a")], [("notes", "k")], 7, NOW),
    kinds.breaker_set("coder", CLOSED, Place(), NOW),
    kinds.breaker_set("coder", Breaker("half-open", 3, NOW + 5, "t2", "it broke"), HERE, NOW, "ann"),
    kinds.cards_published([Card("coder"), Card("lead", asks="*", tools=["exec"], concurrency=2)], NOW),
    kinds.owner_acted("cancel", "t1", "ann", NOW),
    kinds.key_set("openai", "1a2b3c4d", "", NOW),
    kinds.key_set("openai", "1a2b3c4d", "ann", NOW),
    kinds.key_set("openai", "1a2b3c4d", "ann", NOW, "9f86d081884c7d65"),
    kinds.key_removed("openai", "", NOW),
    kinds.key_removed("openai", "ann", NOW),
    kinds.entry_set(entry(value=["x"]), Place(), "ann"),
    kinds.entry_set(entry(by=Writer("coder", "t2", ("lead", "coder")), lifetime=60, extend=True), HERE),
    kinds.entry_touched(entry(lifetime=60), Writer("tester"), HERE, NOW),
    kinds.entry_touched(entry(lifetime=60), Writer("", person="ann"), HERE, NOW),
    kinds.entries_removed([("n", "a", 3)], "expired", Writer(""), Place(), NOW),
    kinds.entries_removed([("n", "a", 3)], "removed", Writer("", person="ann"), Place(), NOW),
    kinds.message_sent(Message("m1", "s1", "coder", "tester", "look", NOW), HERE),
    kinds.message_sent(Message("t2/told", "s1", "coder", "lead", "done", NOW, "t1", "t2", "untrusted"), HERE),
    kinds.messages_taken(["m1"], "tester", HERE, NOW),
    kinds.question_event("notice.claimed", HERE, "lead", NOW, {"question": "q1", "channel": "webhook", "worker": "w1"}),
    kinds.question_event("notice.sent", HERE, "lead", NOW, {"question": "q1", "channel": "webhook", "ref": "m1"}),
    kinds.question_event("notice.sent", HERE, "lead", NOW, {"question": "q1", "channel": "slack", "error": "no"}),
]

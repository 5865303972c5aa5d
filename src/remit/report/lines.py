"""The journal as plain lines, for files and pipes."""

from collections.abc import Callable
from typing import Final

from remit.core.events import Event, read
from remit.core.kinds.models import (
    CoolingSet,
    ModelAnswered,
    ModelFailed,
    ModelTold,
    ModelWaiting,
    SessionRecalled,
    TalkRestarted,
    ToolBegun,
    ToolDone,
)
from remit.core.kinds.money import (
    AccountGranted,
    AccountSet,
    CreditsSpent,
    HoldPlaced,
    HoldReconciled,
    HoldResolved,
    LeaseRaised,
    LedgerCarried,
)
from remit.core.kinds.people import NoticeSent, QuestionAnswered, QuestionAsked, QuestionNamed
from remit.core.kinds.sharing import ArtifactSaved, EntrySet, MessageSent
from remit.core.kinds.tasks import (
    Cancelling,
    ClaimData,
    Completed,
    FailedData,
    FirstData,
    Handed,
    HopRefused,
    Retrying,
    TokensUsed,
    WaitData,
    fork_text,
)
from remit.core.kinds.upkeep import JournalCut, KeysKept, RunsPruned
from remit.core.kinds.workspace import (
    AccessMade,
    AccessRevoked,
    BreakerSet,
    CardWithdrawn,
    EffectDone,
    HookAdded,
    HookRemoved,
    HookRotated,
    KeyRemoved,
    KeySet,
    OwnerActed,
    PlanStarted,
    ScheduleFired,
    ScheduleRemoved,
    ScheduleSet,
    ScheduleSkipped,
    StepEnded,
    TeamPlanned,
    WorkKept,
    WorkLeft,
)
from remit.core.money import amount_text
from remit.core.remit import task_of
from remit.core.times import iso
from remit.report.figures import count, duration
from remit.report.printable import escaped

_STEPS: Final = 20  # of a plan that are named
_RESULT: Final = 80  # columns of what a tool gave back
_RUNS: Final = 5  # of those pruned that are named


def plain_line(event: Event) -> str:
    """Return an event as a line: 2026-11-15T02:36:54.123Z task.started coder: write the auth module."""
    when = f"{iso(event.at)[:23]}Z"
    return f"{when} {event.kind} {event.agent or 'person'}{detail(event)}"


def detail(event: Event) -> str:
    """Return the end of an event's line: its subject and the person, as ": 2 runs: 0123, 4567 (by ann)"; "" if the kind
    says everything."""
    said = escaped(_SAID[event.kind](event), 240) if event.kind in _SAID else ""
    by = "" if event.kind in _SAY_WHO or event.data.get("parent") else event.data.get("by")  # a run says it once
    return f"{said} (by {escaped(by, 80)})" if by and isinstance(by, str) else said


# -- one reader for each kind of event -----------------------------------------------------------------------


def _started(event: Event) -> str:
    return f": {task_of(read(event, FirstData))}"


def _submitted(event: Event) -> str:
    """Return text such as ": write the auth module (spawn); due 2026-11-16T08:00:00Z"."""
    data = read(event, FirstData)
    ready_at = data.get("ready_at", 0)
    how = " (spawn)" if data.get("asked_how") == "spawn" else ""
    due = f"; due {iso(ready_at)[:19]}Z" if ready_at > event.at else ""
    fork = f"; {fork_text(data['forked'])}" if "forked" in data else ""
    return f": {task_of(data)}{how}{due}{fork}"


def _claimed(event: Event) -> str:
    data = read(event, ClaimData)
    return f": attempt {data['attempt']} on {data['worker']}"


def _retrying(event: Event) -> str:
    """Return text such as ": attempt 1: 'coder' failed: OSError: no disk; next attempt at 02:36:55.123Z"."""
    data = read(event, Retrying)
    return f": attempt {data['attempt']}: {data.get('error', '')}; next attempt at {iso(data['ready_at'])[11:23]}Z"


def _lost(event: Event) -> str:
    return f": its process died or stopped responding: {read(event, Retrying).get('lost_by', '')}"


def _cancelling(event: Event) -> str:
    return f": {read(event, Cancelling)['why']}"


def _completed(event: Event) -> str:
    return f": {read(event, Completed)['result']}"


def _failed(event: Event) -> str:
    return f": {read(event, FailedData)['error']}"


def _handed(event: Event) -> str:
    """Return text such as "to billing (phase refund)"."""
    data = read(event, Handed)
    if "sent_back" in data:
        by, why = data["sent_back"]["by"], data["sent_back"]["why"]
        return f" back{f' by {by}' if by else ''}{f': {why}' if why else ''}"
    to, phase = data["to"], data["update"].get("phase")
    whom = to if isinstance(to, str) else ", ".join(to)
    return f" to {whom}" + (f" (phase {phase})" if phase else "")


def _refused(event: Event) -> str:
    data = read(event, HopRefused)
    word = "handoff to " if data.get("handoff") else ""
    wanted = f", for {amount_text('credits', data['credits'])}" if "credits" in data else ""
    return f": {word}{data['to']} ({data['rule']}{wanted}): {data['sentence']}"


def _planned(event: Event) -> str:
    steps = read(event, PlanStarted)["steps"]
    return f": {len(steps)} steps: {', '.join(step['title'] for step in steps[:_STEPS])}"


def _accepted(event: Event) -> str:
    steps = read(event, TeamPlanned)["plan"]["steps"]
    return f": the plan is accepted: {count(len(steps), 'step')}"


def _step(event: Event) -> str:
    data = read(event, StepEnded)
    return f": step {data['step']} {data['state']}: {data['reason']}"


def _model_answered(event: Event) -> str:
    """Return text such as ": openai:gpt-5, 1,200 tokens read (800 from a cache) and 7 written; calls look"."""
    data = read(event, ModelAnswered)
    usage = data.get("usage")
    cached = f" ({usage['cached_input']:,} from a cache)" if usage and usage.get("cached_input") else ""
    counted = f"{usage['input']:,} tokens read{cached} and {usage['output']:,} written" if usage else "not counted"
    calls = ", ".join(data["calls"])
    return f": {data['model']}, {counted}" + (f"; calls {calls}" if calls else "")


def _model_waiting(event: Event) -> str:
    data = read(event, ModelWaiting)
    tries = ("first", "second", "third", "fourth")
    number = f"{tries[data['number'] - 1]} try" if data["number"] <= len(tries) else f"try {data['number']}"
    return f" waits {duration(data['wait'])} for {data['model']}, {number}"


def _model_told(event: Event) -> str:
    return f": its model gets {count(read(event, ModelTold)['results'], 'result')} of the program's tools"


def _recalled(event: Event) -> str:
    """Return text such as ": its prompt contains 2 earlier runs of its session"."""
    return f": its prompt contains {count(len(read(event, SessionRecalled)['after']), 'earlier run')} of its session"


def _model_failed(event: Event) -> str:
    """Return the model, the kind of failure and the provider's message."""
    data = read(event, ModelFailed)
    status, said = data.get("status"), data.get("said")
    told = f": {data['model']}: {data['why']}" + (f" ({status})" if status is not None else "")
    return f'{told}, "{said}"' if said else told


def _tool_done(event: Event) -> str:
    """Return text such as ": deploy({"env":"prod"}), refused: 'coder' may not use 'deploy' (2 ms, at team.py:8 in
    deploy)"."""
    data = read(event, ToolDone)
    outcome = "" if data["outcome"] == "done" else f", {data['outcome']}"
    result = data.get("result", "").removeprefix(f"'{data['tool']}' failed: ")
    said = f": {escaped(result, _RESULT)}" if result else ""
    facts = [duration(elapsed)] if (elapsed := data.get("elapsed")) else []
    facts += [f"at {data['place']}"] if "place" in data else []
    return f": {data['tool']}({data['given']}){outcome}{said}" + (f" ({', '.join(facts)})" if facts else "")


def _restarted(event: Event) -> str:
    """Return text such as ": the conversation restarts after 3 answers and 2 tool calls: a recorded answer cannot
    be read"."""
    data = read(event, TalkRestarted)
    before = f"{count(data['positions'], 'answer')} and {count(len(data['tools']), 'tool call')}"
    return f": the conversation restarts after {before}: {data['why']}"


def _cooling(event: Event) -> str:
    """Return text such as ": key:A is paused after rate-limit until 2026-11-15T22:13:20Z"."""
    data = read(event, CoolingSet)
    if not data["failures"]:
        return f": {data['name']} is available again"
    return f": {data['name']} is paused after {data['kind']} until {iso(data['until'])[:19]}Z"


def _breaker(event: Event) -> str:
    """Return text such as ": open after 3 failures: no disk"."""
    data = read(event, BreakerSet)
    failures = f" after {count(data['failures'], 'failure')}" if data["failures"] else ""
    return f": {data['state']}{failures}" + (f": {data['why']}" if data["why"] else "")


def _key_set(event: Event) -> str:
    """Return text such as ": openai, encrypted with master key 1a2b3c4d"."""
    data = read(event, KeySet)
    return f": {data['name']}, encrypted with master key {data['key_id']}"


def _key_removed(event: Event) -> str:
    return f": {read(event, KeyRemoved)['name']}"


def _access_made(event: Event) -> str:
    """Return text such as ": 'ci' (k7w2...), run and approve, as reviewer, until 2027-11-15T00:00:00Z"."""
    data = read(event, AccessMade)
    agent = f", as {data['agent']}" if data["agent"] else ""
    until = "" if data["expires"] is None else f", until {iso(data['expires'])[:19]}Z"
    return f": '{data['name']}' ({data['id']}), {' and '.join(data['scopes'])}{agent}{until}"


def _access_revoked(event: Event) -> str:
    """Return text such as ": 'ci' (k7w2...)"."""
    data = read(event, AccessRevoked)
    return f": '{data['name']}' ({data['id']})"


def _schedule_set(event: Event) -> str:
    """Return text such as ": nightly, '30 8 * * *' Europe/Berlin, next 2026-11-16T07:30:00Z: write the report"."""
    data = read(event, ScheduleSet)
    planned = data["next"]
    state = data["state"] if planned is None else f"next {iso(planned)[:19]}Z"
    return f": {data['name']}, '{data['cron']}' {data['zone']}, {state}: {data['task']}"


def _schedule_fired(event: Event) -> str:
    """Return text such as ": nightly of 2026-11-15T07:30:00Z submits 0123, next 2026-11-16T07:30:00Z"."""
    data = read(event, ScheduleFired)
    missed = f"; those from {iso(data['missed'])[:19]}Z were missed" if "missed" in data else ""
    return f": {data['name']} of {iso(data['last'])[:19]}Z submits {data['last_task']}{_next(data['next'])}{missed}"


def _schedule_skipped(event: Event) -> str:
    """Return text such as ": nightly of 2026-11-15T07:30:00Z starts nothing, next 2026-11-16T07:30:00Z: no worker
    ran"."""
    data = read(event, ScheduleSkipped)
    return f": {data['name']} of {iso(data['planned'])[:19]}Z starts nothing{_next(data['next'])}: {data['why']}"


def _next(planned: int | None) -> str:
    return "" if planned is None else f", next {iso(planned)[:19]}Z"


def _hook_added(event: Event) -> str:
    """Return text such as ": 0123, https://example.com/hook, task.completed task.failed of run 4567"."""
    data = read(event, HookAdded)
    if "task" in data:
        return f": {data['hook']}, {data['url']}, task {data['task']} of A2A"
    of_run = f" of run {data['run']}" if "run" in data else ""
    return f": {data['hook']}, {data['url']}, {data['kinds']}{of_run}"


def _acted(event: Event) -> str:
    """Return text such as ": cancel 0123"."""
    data = read(event, OwnerActed)
    return f": {data['verb']}" + (f" {data['target']}" if data["target"] else "")


def _entry(event: Event) -> str:
    data = read(event, EntrySet)
    return f": {data['namespace']}/{data['key']} v{data['version']}"


def _saved(event: Event) -> str:
    """Return text such as ": report.pdf, 12,345 bytes, text/plain"."""
    (one,) = read(event, ArtifactSaved)["artifacts"]
    return f": {one['name']}, {count(one['size'], 'byte')}, {one['media_type']}"


def _pruned(event: Event) -> str:
    """Return text such as ": 2 runs: 0123, 4567"."""
    runs = read(event, RunsPruned)["runs"]
    return f": {count(len(runs), 'run')}: {', '.join(run['id'] for run in runs[:_RUNS])}"


def _cut(event: Event) -> str:
    """Return text such as ": up to event 4,711, in 2 places"."""
    gaps = read(event, JournalCut)["gaps"]
    places = f", in {len(gaps):,} places" if len(gaps) > 1 else ""
    return f": up to event {max((last for _, last, _ in gaps), default=0):,}{places}"


# -- money ----------------------------------------------------------------------------------------------------------


def _amounts(amounts: dict[str, int]) -> str:
    """Return amounts such as "$0.05 and 4,096 tokens"."""
    return " and ".join(amount_text("tokens" if unit == "tokens" else "credits", x) for unit, x in amounts.items())


def _about(why: str) -> str:
    return f" ({why})" if why else ""


def _granted(event: Event) -> str:
    data = read(event, AccountGranted)
    return f": {_amounts({data['unit']: data['amount']})}{_about(data['why'])}"


def _account_set(event: Event) -> str:
    data = read(event, AccountSet)
    return f": {data['unit']} are {data['state']}{_about(data['why'])}"


def _raised(event: Event) -> str:
    """Return text such as ": $0.20 more (finish it)"."""
    data = read(event, LeaseRaised)
    return f": {_amounts({data['unit']: data['amount']})} more{_about(data['why'])}"


def _held(event: Event) -> str:
    """Return text such as ": $0.05 held (photo)"."""
    data = read(event, HoldPlaced)
    return f": {_amounts(data['amounts'])} held{_about(data['why'])}"


def _settled(event: Event) -> str:
    """Return text such as ": $0.01 charged, uncertain, billed $5.00 (photo)"."""
    data = read(event, HoldResolved)
    costs = _amounts(data.get("costs", {})) or "nothing"
    uncertain = ", uncertain" if data.get("uncertain") else ""
    billed = f", billed {_amounts(data['billed'])}" if "billed" in data else ""
    return f": {costs} charged{uncertain}{billed}{_about(data['why'])}"


def _unheld(event: Event) -> str:
    data = read(event, HoldResolved)
    return f": {_amounts(data['amounts'])} released{_about(data['why'])}"


def _reconciled(event: Event) -> str:
    """Return text such as ": $0.05 was charged, it cost $0.01 (by the invoice)"."""
    data = read(event, HoldReconciled)
    return f": {_amounts(data['charged'])} was charged, it cost {_amounts(data['costs'])}{_about(data['why'])}"


def _paid(event: Event) -> str:
    data = read(event, CreditsSpent)
    return f": {_amounts(data['costs'])}{_about(data['why'])}"


def _carried(event: Event) -> str:
    data = read(event, LedgerCarried)
    return f": {count(len(data['leases']), 'lease')} and {count(len(data['holds']), 'call')} carried over unchanged"


# -- people ---------------------------------------------------------------------------------------------------------


def _asked(event: Event) -> str:
    data = read(event, QuestionAsked)
    return f": {data['question']}: {data['text']}"


def _answered(event: Event) -> str:
    """Return text such as ": q1 approved by bob over terminal: go"."""
    data = read(event, QuestionAnswered)
    who = f" by {data['by']}" if data["by"] else ""
    where = f" over {data['channel']}" if data["channel"] else ""
    said = data.get("value") if data["state"] == "answered" else data["why"]
    return f": {data['question']} {data['state']}{who}{where}" + (f": {said}" if said else "")


def _waiting(event: Event) -> str:
    """Return text such as ": waits for a person: q1"."""
    data = read(event, WaitData)
    return f": waits for {_WAITS_FOR[data.get('for', '')]}" + (f": {data['id']}" if "id" in data else "")


def _told(event: Event) -> str:
    data = read(event, NoticeSent)
    how = f"could not be notified: {data['error']}" if "error" in data else "was notified"
    return f": {data['question']}: {data['channel']} {how}"


_WAITS_FOR: Final = {
    "": "a task, or for a person",
    "person": "a person",
    "task": "a task",
    "slot": "a busy agent",
    "money": "money that other calls hold",
    "model": "a model",
}
_SAY_WHO: Final = frozenset(("question.answered",))  # their text names the person
_SAID: Final[dict[str, Callable[[Event], str]]] = {
    "task.started": _started,
    "task.submitted": _submitted,
    "task.fenced": lambda _: ": its process died; it waits until its asker requests it again",
    "task.claimed": _claimed,
    "task.waiting": _waiting,
    "task.resumed": lambda _: ": continues",
    "task.queued": lambda _: ": waits for a free slot to continue",
    "task.retrying": _retrying,
    "task.released": lambda _: ": its worker stops; another worker continues it",
    "task.lost": _lost,
    "task.cancelling": _cancelling,
    "task.completed": _completed,
    "task.failed": _failed,
    "task.cancelled": _failed,
    "task.died": _failed,
    "task.handed": _handed,
    "hop.refused": _refused,
    "tokens.used": lambda event: f": {read(event, TokensUsed)['tokens']:,}",
    "effect.done": lambda event: f": {read(event, EffectDone)['key']}",
    "work.kept": lambda event: f": {read(event, WorkKept)['kind']}, from event {read(event, WorkKept)['of']}",
    "work.left": lambda event: f": {'; '.join(read(event, WorkLeft)['left'])}",
    "model.answered": _model_answered,
    "model.failed": _model_failed,
    "model.waiting": _model_waiting,
    "model.told": _model_told,
    "tool.begun": lambda event: f": {read(event, ToolBegun)['tool']}",
    "talk.restarted": _restarted,
    "tool.done": _tool_done,
    "session.recalled": _recalled,
    "cooling.set": _cooling,
    "plan.started": _planned,
    "team.planned": _accepted,
    "step.ended": _step,
    "breaker.set": _breaker,
    "card.withdrawn": lambda event: f": {read(event, CardWithdrawn)['name']}",
    "key.set": _key_set,
    "key.removed": _key_removed,
    "schedule.set": _schedule_set,
    "schedule.removed": lambda event: f": {read(event, ScheduleRemoved)['name']}",
    "schedule.fired": _schedule_fired,
    "schedule.skipped": _schedule_skipped,
    "hook.added": _hook_added,
    "hook.removed": lambda event: f": {read(event, HookRemoved)['hook']}",
    "hook.rotated": lambda event: f": {read(event, HookRotated)['hook']}, secret {event.data['generation']}",
    "access.made": _access_made,
    "access.revoked": _access_revoked,
    "owner.acted": _acted,
    "entry.set": _entry,
    "artifact.saved": _saved,
    "message.sent": lambda event: f" to {read(event, MessageSent)['to']}",
    "runs.pruned": _pruned,
    "keys.kept": lambda event: f": {count(len(read(event, KeysKept)['keys']), 'idempotency key')}",
    "journal.cut": _cut,
    "task.parked": lambda _: ": waits for a person, without a process",
    "account.granted": _granted,
    "account.set": _account_set,
    "lease.raised": _raised,
    "hold.placed": _held,
    "hold.started": lambda _: ": the call is sent",
    "hold.settled": _settled,
    "hold.released": _unheld,
    "hold.reconciled": _reconciled,
    "credits.spent": _paid,
    "ledger.carried": _carried,
    "question.asked": _asked,
    "question.answered": _answered,
    "question.used": lambda event: f": {read(event, QuestionNamed)['question']} is used",
    "notice.sent": _told,
}

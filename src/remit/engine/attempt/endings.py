"""Ending a task: one event records the end, only the current holder may write it, and outcomes are read from it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from traceback import format_exception
from typing import Final, cast

from remit.core import backoff, lifecycle
from remit.core.backoff import RetryPolicy, retryable, wanted_wait
from remit.core.events import Event, Unsealed, read
from remit.core.kinds.tasks import EndData, Requeue, ended, requeued
from remit.core.lifecycle import TERMINAL, Outcome, OutcomeState, Record
from remit.core.loops import NEVER, strike_key
from remit.core.records import NamedTuple
from remit.core.remit import LASTS, Remit, expires
from remit.core.secret import Redaction
from remit.core.trust import TRUSTED, UNTRUSTED
from remit.core.values import Json
from remit.engine import traces
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.engine.presence.bell import ANYTHING, Bell
from remit.engine.presence.insisting import Insisting
from remit.engine.traces import error_text, owners_fault, storable
from remit.errors import (
    BadInput,
    Cancelled,
    Conflict,
    Failed,
    NoAnswer,
    OutOfRequests,
    Refused,
    RemitError,
    StoreError,
    TimedOut,
)
from remit.ports import Decision, View, Wants

_ERROR_LIMIT = 2_000


class Ending(NamedTuple):
    """The end of a task: the kind and data of the event, and the asker's outcome."""

    kind: str
    data: dict[str, Json]
    outcome: Outcome

    @property
    def retryable(self) -> bool:
        return self.kind == "task.failed" and self.outcome.error is not None and self.outcome.error.retryable

    def wanted_wait(self, now: int, policy: RetryPolicy) -> int:
        """Return the pause that the failing server asks for, in microseconds."""
        error = self.outcome.error
        return wanted_wait(error.__cause__, now, policy) if error is not None and error.__cause__ is not None else 0


class Circled(Refused):
    """A turn was stopped because it made no progress; the text names the agent."""


def completed(remit: Remit, value: Json) -> Ending:
    return Ending("task.completed", {"result": value}, Outcome(remit.holder, remit.id, "completed", value))


def refused(remit: Remit, refusal: Refused) -> Outcome:
    return Outcome(remit.holder, "", "refused", error=refusal)


def failed(remit: Remit, error: BaseException) -> Ending:
    again = retryable(error) or isinstance(error, StoreError)  # a store error may pass
    fault = owners_fault(error)
    if fault is not None:
        error = fault.error
    own = fault is None and is_own(error, remit.id)
    # The failure of another agent already names its place. If no code of the user is involved, as when no model
    # answered, the line of a framework would not help.
    where = traces.place(error, library=not isinstance(error, RemitError)) if own or fault is not None else ""
    whose = f" in {fault.role}" if fault is not None else ""
    sentence = f"'{remit.holder}' failed: {type(error).__name__}: {error_text(error)}{whose}"
    if isinstance(error, Circled):
        sentence = str(error)
    failure = Failed(
        _error_text(sentence, f" ({where})" if where else ""), agent=remit.holder, task=remit.id, retryable=again
    )
    failure.__cause__ = traces.shortened(error)
    ending = _ending(remit, "task.failed", "failed", failure, kind=type(error).__name__)
    if told := traces.trace(error):
        ending.data["trace"] = told
    if not own:
        ending.data["spared"] = True
    return ending


def unusable(remit: Remit, no: BadInput) -> Ending:
    """Return the end of a task whose result cannot be stored. It may be too long or not JSON because of the agent's
    input, so it does not count for the breaker."""
    ending = failed(remit, no)
    ending.data["spared"] = True
    return ending


def is_own(error: BaseException, task: str) -> bool:
    """Whether a failure is the agent's own, not that of a rule, the store, or an agent it called. Making no progress
    and getting no answer from any model are its own."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_own(one, task) for one in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    if isinstance(error, Refused):
        return error.rule == "repeat"
    if isinstance(error, Failed):
        return error.task == task and isinstance(error, NoAnswer | OutOfRequests)
    if isinstance(error, StoreError):
        return False
    return error.__cause__ is None or is_own(error.__cause__, task)


def timed_out(remit: Remit, *, final: bool, short: bool = False) -> Ending:
    """Return the end of a task whose time is up; `final` if that was its deadline, not only the time of one attempt. If
    the time was `short`, less than the default, it does not count for the breaker: the caller set the limit."""
    sentence = f"'{remit.holder}' ran out of time; its work was cancelled"
    error = TimedOut(sentence, agent=remit.holder, task=remit.id, retryable=not final)
    ending = _ending(remit, "task.failed", "timed-out", error)
    if short:
        ending.data["spared"] = True
    return ending


def stopped(remit: Remit, why: str, *, unheard: bool = False) -> Ending:
    """Return the end of a cancelled task; `unheard` if its asker had ended by then, so that no one received the
    outcome."""
    sentence = f"'{remit.holder}' was cancelled: {why}"
    error = Cancelled(sentence, agent=remit.holder, task=remit.id)
    ending = _ending(remit, "task.cancelled", "cancelled", error)
    if unheard:
        ending.data["unheard"] = True
    return ending


def released(remit: Remit) -> Ending:
    """Return the ending that requeues a task because its process stops; the task itself continues."""
    return stopped(remit, "its process was stopped; another carries it out")._replace(kind="task.released", data={})


def without_secrets(ending: Ending, redaction: Redaction) -> Ending:
    """Return the ending with all registered secrets removed from its error. Drop the exception's cause if its traceback
    contains a secret, since logs and models see the whole traceback."""
    error = ending.outcome.error
    if not redaction or not isinstance(error, Failed):
        return ending
    shown = "".join(format_exception(error))
    if redaction.text(shown) == shown:
        return ending
    clean = type(error)(redaction.text(str(error)), agent=error.agent, task=error.task, retryable=error.retryable)
    return ending._replace(outcome=replace(ending.outcome, error=clean))


def dead(ending: Ending, attempts: int) -> Ending:
    """Return the last failure as final, after all attempts failed."""
    sentence = f"{ending.data['error']}; that was attempt {attempts} of {attempts}"
    return Ending("task.died", {**ending.data, "error": _error_text(sentence)}, replace(ending.outcome, state="dead"))


def _ending(remit: Remit, event: str, state: OutcomeState, error: RemitError, *, kind: str = "") -> Ending:
    data: dict[str, Json] = {"error": str(error), "type": kind or type(error).__name__}
    if error.retryable:
        data["retryable"] = True
    return Ending(event, data, Outcome(remit.holder, remit.id, state, error=error))


def _error_text(sentence: str, place: str = "") -> str:
    """Return an error's text, shortened to a page, with its place, and only with characters that a database can
    hold."""
    clean = storable(sentence)
    most = _ERROR_LIMIT - len(place)
    return (clean if len(clean) <= most else f"{clean[: most - 1]}…") + place


# -- reading outcomes ------------------------------------------------------------------------------------------------

_KINDS: dict[str, tuple[OutcomeState, type[Failed]]] = {
    "task.failed": ("failed", Failed),
    "task.cancelled": ("cancelled", Cancelled),
    "task.died": ("dead", Failed),
}


def from_events(began: Event, ended: Event) -> Outcome:
    """Return the outcome of a task from its first and last event."""
    asked, last = began.agent, ended.agent
    by = last if last != asked else ""
    data = read(ended, EndData)
    trust = data.get("trust", TRUSTED)
    if ended.kind == "task.completed":
        return Outcome(asked, ended.task, "completed", data.get("result"), by=by, trust=trust)
    state, kind = _KINDS[ended.kind]
    if ended.kind == "task.failed" and data.get("type") == "TimedOut":
        state, kind = "timed-out", TimedOut
    sentence = data.get("error", "its record was pruned")
    error = kind(sentence, agent=last, task=ended.task, retryable=bool(data.get("retryable")))
    return Outcome(asked, ended.task, state, error=error, by=by, trust=trust)


def is_unheard(view: View, record: Record) -> bool:
    """Whether a task was stopped only because its asker had ended. In a rerun, the asker has to request it again."""
    ended = view.event(record.ended) if record.state == "cancelled" and record.ended is not None else None
    return ended is not None and bool(read(ended, EndData).get("unheard"))


def pruned_before_fork(task: str) -> Conflict:
    """Return the error for a fork that needs the result of a pruned task of its original run. While a task of a run's
    lineage is open, the run is not pruned; but a fork has its own lineage, so it does not protect the original."""
    error = Conflict(
        f"task {task} of the run that this one is a fork of was pruned, its result with it; it is not done again here: "
        "start a new run"
    )
    error.retryable = False  # a rerun would fail in the same way
    return error


def of_record(view: View, record: Record) -> Outcome | None:
    """Return the outcome of a task, or None while it has not ended."""
    if record.state not in TERMINAL:
        return None
    began, ended = view.event(record.began), view.event(record.ended or 0)
    assert began is not None
    assert ended is not None
    return from_events(began, ended)


async def awaited(bell: Bell, task: str) -> Outcome:
    """Wait until a task has ended, whichever process runs it, and return its outcome."""

    def look(view: View) -> Outcome | None:
        record = view.record(task)
        return of_record(view, record) if record is not None else None

    return await bell.until(task, look)


AT_ONCE: Final = 0  # due at once, by any process's clock
_NOT_OURS: Final = ""
_NOT_YET: Final = "not yet"
_STRIKES: Final = frozenset(("task.failed", "task.died"))


class Endings(NamedTuple):
    ground: Ground
    bell: Bell
    insisting: Insisting
    redaction: Redaction

    async def finish(self, live: LiveTask, ending: Ending) -> Ending | None:
        """Record the end. Return what was recorded, or None if the task no longer belongs to this process.

        If the store is unreachable, retry: the work is done and must not be repeated.
        """
        task, tasks = live.remit.id, self.insisting.tasks
        tasks.add(task)
        try:
            recorded = await self._recorded(live, ending)
        except StoreError as error:
            recorded = await self._insisted(live, ending, error)
        finally:
            tasks.discard(task)
        if recorded is None or recorded.outcome.error is None:
            return recorded
        return without_secrets(recorded, self.redaction)

    async def _insisted(self, live: LiveTask, ending: Ending, error: StoreError) -> Ending | None:
        what = f"the end of task {live.remit.id}"
        try:
            return await self.insisting.again(live.life, what, partial(self._recorded, live, ending), error)
        except StoreError:
            self.insisting.unkept.add(live.remit.id)
            raise

    async def finish_torn_down(self, live: LiveTask, ending: Ending) -> None:
        """Record the end of a task whose work was torn down. If the store is unreachable, retry in the background, so
        that nothing waits for it."""
        try:
            await self._recorded(live, ending)
        except StoreError as error:
            if not error.retryable or ending.kind == "task.released":
                self.insisting.unkept.add(live.remit.id)
                raise
            self.insisting.tasks.add(live.remit.id)
            self.insisting.go_on(self.finish(live, ending))

    async def _recorded(self, live: LiveTask, ending: Ending) -> Ending | None:
        task = live.remit.id
        while True:
            op = f"{task}/end/{live.attempt.fence}"
            answer, recorded = await self.ground.store.tx(op, partial(self._decide, live, ending), Wants((task,)))
            if answer != _NOT_YET:
                # No aside: the end was recorded by an earlier teardown, and that record counts.
                return recorded or (ending if answer == ending.kind else None)
            await self.bell.until(ANYTHING, lambda view: nothing_open_below(view, task) or None)

    def _decide(self, live: LiveTask, ending: Ending, view: View) -> Decision[str]:
        remit, now = live.remit, self.ground.clock.now()
        standing = view.standing(remit.id)
        if standing is None or standing.fence != live.attempt.fence or standing.state in lifecycle.TERMINAL:
            return Decision(_NOT_OURS)
        if standing.state == "cancelling" and ending.kind != "task.cancelled":
            ending = stopped(remit, live.life.why or "cancelled")  # it completed after the cancellation
        if standing.state == "cancelling" and not nothing_open_below(view, remit.id):
            return Decision(_NOT_YET)
        if live.took is not TRUSTED and live.says != TRUSTED:
            ending = ending._replace(outcome=replace(ending.outcome, trust=UNTRUSTED))
        ending, event = self._event(view, live, ending, now)
        return Decision(ending.kind, (event,), aside=ending)

    def _event(self, view: View, live: LiveTask, ending: Ending, now: int) -> tuple[Ending, Unsealed]:
        """Return the final ending and its event: a retryable failure of a queued task becomes a retry, until its
        attempts are used up."""
        remit, attempt = live.remit, live.attempt
        if ending.kind == "task.released":
            back = Requeue("", attempt.fence + 1, AT_ONCE, attempt.number - 1, attempt.failures)
            return ending, requeued("task.released", live.place, remit.holder, now, back, {})
        if attempt.queued and ending.retryable:
            policy = live.agent.retry
            most = attempt.attempts or policy.attempts
            if attempt.number >= most:
                ending = dead(ending, most)
            else:
                usual = backoff.delay(attempt.number, self.ground.ids.chance(), policy)
                wait = max(usual, ending.wanted_wait(now, policy))
                ready_at, deadline = now + wait, remit.bounds.deadline
                if deadline is None or ready_at < deadline:
                    back = Requeue("", attempt.fence + 1, ready_at, attempt.number, attempt.failures + 1)
                    data = turn_data(live, ending.data)
                    if attempt.asked_how == "delegate":  # it is queued now, so it gets the expiry of a queued task
                        data["until"] = expires(remit.bounds, now, LASTS)
                    event = requeued("task.retrying", live.place, remit.holder, now, back, data)
                    return ending._replace(kind="task.retrying"), event
        data = turn_data(live, ending.data)
        if live.circled and ending.kind in _STRIKES:
            data["strikes"] = {name: _strikes(view, remit.root, name) + 1 for name in live.circled}
        return ending, ended(remit, ending.kind, now, data)


def _strikes(view: View, run: str, agent: str) -> int:
    key = strike_key(agent)
    return view.asks(run, (key, key, key)).get(key, NEVER).times


def turn_data(live: LiveTask, data: dict[str, Json]) -> dict[str, Json]:
    """Return the data of the event that ends a turn, with its receipt, tokens, unrecorded refusals and trust label
    added."""
    data["receipt"] = live.receipt.data()
    if live.tokens:
        data["tokens"] = live.tokens
    if "refusals" in live.__dict__ and live.refusals.more:
        data["more_refused"] = live.refusals.more
    if live.took is not TRUSTED and live.says != TRUSTED:
        data["trust"] = UNTRUSTED
    # A stand-in holds the task for a person, so a failure is no agent's own. A retried attempt counts only at its last
    # try.
    if "error" in data:
        if live.agent.stand_in or live.spared:
            data["spared"] = True
        if live.progress is not None:  # a completed task has its result instead
            data["progress"] = live.progress.data
    if live.steps is not None:
        data["steps"] = live.steps
    if live.left:
        data["left"] = True
    return data


def nothing_open_below(view: View, task: str) -> bool:
    return all(record.id == task for record in view.below(task))

"""Ending a task: exactly one event records the end, and only the current holder may write it."""

from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from remit.core import backoff, lifecycle
from remit.core.events import Unsealed
from remit.core.kinds import Requeue, ended, requeued
from remit.core.loops import NEVER, strike_key
from remit.core.remit import LASTS, expires
from remit.core.secret import Redaction
from remit.core.trust import TRUSTED, UNTRUSTED
from remit.core.values import Json
from remit.engine.attempt import outcomes
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.outcomes import Ending
from remit.engine.ground import Ground
from remit.engine.presence.bell import ANYTHING, Bell
from remit.engine.presence.insisting import Insisting
from remit.errors import StoreError
from remit.ports import Decision, View, Wants

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
        task, insisting = live.remit.id, self.insisting
        insisting.tasks.add(task)
        try:
            what = f"the end of task {task}"
            recorded = await insisting.insist(live.life, what, partial(self._recorded, live, ending))
        except StoreError:
            insisting.unkept.add(task)
            raise
        finally:
            insisting.tasks.discard(task)
        if recorded is None or recorded.outcome.error is None:
            return recorded
        return outcomes.without_secrets(recorded, self.redaction)

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
            answer, recorded = await self.ground.store.transact(op, partial(self._decide, live, ending), Wants((task,)))
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
            ending = outcomes.stopped(remit, live.life.why or "cancelled")  # it completed after the cancellation
        if standing.state == "cancelling" and not nothing_open_below(view, remit.id):
            return Decision(_NOT_YET)
        if live.says != TRUSTED:
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
                ending = outcomes.dead(ending, most)
            else:
                wait = max(backoff.delay(attempt.number, self.ground.ids.chance(), policy), ending.wanted_wait(now))
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
    if live.refusals.more:
        data["more_refused"] = live.refusals.more
    if live.says != TRUSTED:
        data["trust"] = UNTRUSTED
    # A stand-in holds the task for a person, so a failure is no agent's own. A retried attempt counts only at its last
    # try.
    if "error" in data and (live.agent.stand_in or live.spared):
        data["spared"] = True
    if live.steps is not None:
        data["steps"] = live.steps
    if live.left:
        data["left"] = True
    return data


def nothing_open_below(view: View, task: str) -> bool:
    return all(record.id == task for record in view.below(task))

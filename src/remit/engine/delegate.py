"""THE path: every hop goes facts -> guards -> remit -> task -> run, and ends with exactly one event."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from anyio import CancelScope

from remit.core import guards
from remit.core import remit as remits
from remit.core.allow import has
from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.facts import ended, refused, started
from remit.core.guards import Answer, Facts, Verdict
from remit.core.outcome import Outcome, Status
from remit.core.receipt import kept_back
from remit.core.remit import Origin, Pass, Remit
from remit.core.values import Json, checked
from remit.engine.directory import Agent, Directory
from remit.engine.live import Live, Runs
from remit.errors import Cancelled, Failed, Refused, RemitError, TimedOut
from remit.ports import Clock, Decide, Decision, Ids, Store, View

_ERROR_LIMIT = 2_000


class End(NamedTuple):
    """How a task ended: the event to write and what the asker gets."""

    kind: str
    data: dict[str, Json]
    outcome: Outcome


class Delegations:
    """`take_turn` makes the handle an agent gets; the runtime ties that knot."""

    def __init__(self, store: Store, directory: Directory, clock: Clock, ids: Ids) -> None:
        self.runs = Runs()
        self.take_turn: Callable[[Live], object]
        self._store = store
        self._directory = directory
        self._clock = clock
        self._ids = ids

    async def begin(self, wish: Pass, ceiling: Bounds, session: str) -> Outcome:
        """Starts a run: a person asks the first holder."""
        now = self._clock.now()
        agent = self._directory.get(wish.to)
        origin = Origin(self._ids.new(), self._store.workspace, session or self._ids.new())
        first = remits.begin(origin, wish, ceiling, now)

        def admit(view: View) -> Decision[Json]:
            facts = self._facts(view, first, agent, now)
            verdict = guards.judge(guards.FIRST_HOLDER, first, wish, facts)
            if verdict.answer is Answer.DENY:
                return Decision([verdict.rule, verdict.sentence])  # there is no run yet to record it in
            return Decision(None, (started(first, now),))

        return await self._carry(self._live(first, agent, now), agent, admit)

    async def delegate(self, asker: Live, wish: Pass) -> Outcome:
        """Passes a part of the asker's task on. The child's remit is derived here, from the engine's own record."""
        asker.must_be_at_work()
        now = self._clock.now()
        agent = self._directory.get(wish.to)
        parent = asker.remit
        kit = remits.kit(parent, asker.card) if wish.tools else remits.NONE
        child = remits.derive(parent, wish, self._ids.new(), asker.sight, kit, now)
        live = self._live(child, agent, now, parent)
        live.receipt.withheld = kept_back(asker.sight, child.sees, wish.sees)

        def admit(view: View) -> Decision[Json]:
            verdict = guards.judge(guards.ORDER, parent, wish, self._facts(view, parent, agent, now, asker.card))
            if verdict.answer is Answer.DENY:
                return _refusal(parent, wish, now, verdict)
            return Decision(None, (started(child, now),))

        return await self._carry(live, agent, admit)

    def _facts(self, view: View, remit: Remit, agent: Agent | None, now: int, asker: Card | None = None) -> Facts:
        """What the guards may know, read inside the transaction that admits the task."""
        if agent is None or not has(remit.bounds.agents, agent.card.name):
            roster = self._directory.roster(remit, asker) if asker else self._directory.names()
            asks = asker.asks if asker else guards.ANY
            return Facts(now, known=agent is not None, asks=asks, roster=roster)
        limit = agent.card.concurrency
        running = 0 if limit is None else view.running(agent.card.name, now)
        return Facts(now, True, asker.asks if asker else guards.ANY, (), running, limit)

    @staticmethod
    def _live(remit: Remit, agent: Agent | None, now: int, parent: Remit | None = None) -> Live:
        card = agent.card if agent else Card(remit.holder)
        deadline = remit.bounds.deadline
        assert deadline is not None
        if parent is not None and deadline == parent.bounds.deadline:
            return Live(remit, card, CancelScope())  # the asker's own timer ends it, as the scopes nest
        seconds = max(0, deadline - now) / 1e6
        return Live(remit, card, CancelScope(deadline=asyncio.get_running_loop().time() + seconds))

    async def _carry(self, live: Live, agent: Agent | None, admit: Decide[Json]) -> Outcome:
        remit = live.remit
        self.runs.enter(live)
        try:
            no = await self._store.tx(f"{remit.id}/start", admit)
            if no is not None or agent is None:
                return _refused(remit, no)
            end = await self._answer(live, agent)
            await self._finish(live, end)
        except BaseException as error:
            if not isinstance(error, Exception):
                await self._interrupted(live)
            raise
        else:
            return end.outcome
        finally:
            self.runs.leave(live)

    async def _answer(self, live: Live, agent: Agent) -> End:
        """Calls the agent. Whatever it does, this says truthfully how it ended; only cancellation from
        outside passes."""
        remit = live.remit
        live.receipt.task(remit.task)
        value: Json = None
        error: Exception | None = None
        with live.scope:
            try:
                value = checked(await agent.answer(self.take_turn(live)), f"the result of '{remit.holder}'")
            except Exception as raised:  # noqa: BLE001 - an agent may fail in any way; it is a failed task
                error = raised
        if live.stopped:
            return _stopped(remit, live.stopped)
        if live.scope.cancelled_caught:
            return _timed_out(remit)
        if error is not None:
            return _failed(remit, error)
        return End("task.completed", {"result": value}, Outcome(remit.holder, remit.id, "completed", value))

    async def _finish(self, live: Live, end: End) -> None:
        remit = live.remit
        end.data["receipt"] = live.receipt.data()
        now = self._clock.now()

        fact = ended(remit, end.kind, now, end.data)

        def record(view: View) -> Decision[None]:
            # Terminal is final, and a task that was never admitted does not end.
            return Decision(None, (fact,) if view.status(remit.id) == "running" else ())

        await self._store.tx(f"{remit.id}/end", record)

    async def _interrupted(self, live: Live) -> None:
        """The work was torn down from outside; what is left to do is to say so."""
        with CancelScope(shield=True):
            why = live.stopped or "its asker stopped waiting"
            await self._finish(live, _stopped(live.remit, why))


def _refusal(parent: Remit, wish: Pass, now: int, verdict: Verdict) -> Decision[Json]:
    fact = refused(parent, wish, now, rule=verdict.rule, sentence=verdict.sentence)
    return Decision([verdict.rule, verdict.sentence], (fact,))


def _refused(remit: Remit, no: Json) -> Outcome:
    rule, sentence = (str(part) for part in no) if isinstance(no, list) else ("unknown", "there is no such agent")
    return Outcome(remit.holder, "", "refused", error=Refused(sentence, rule=rule))


def _failed(remit: Remit, error: Exception) -> End:
    said = str(error) or "no message"
    sentence = f"'{remit.holder}' failed: {type(error).__name__}: {said}"
    failure = Failed(_kept(sentence), agent=remit.holder, task=remit.id)
    failure.__cause__ = error
    return _end(remit, "task.failed", "failed", failure, kind=type(error).__name__)


def _timed_out(remit: Remit) -> End:
    sentence = f"'{remit.holder}' ran out of time; its work was cancelled"
    return _end(remit, "task.failed", "timed-out", TimedOut(sentence, agent=remit.holder, task=remit.id))


def _stopped(remit: Remit, why: str) -> End:
    sentence = f"'{remit.holder}' was cancelled: {why}"
    return _end(remit, "task.cancelled", "cancelled", Cancelled(sentence, agent=remit.holder, task=remit.id))


def _end(remit: Remit, event: str, status: Status, error: RemitError, *, kind: str = "") -> End:
    data: dict[str, Json] = {"error": str(error), "type": kind or type(error).__name__}
    return End(event, data, Outcome(remit.holder, remit.id, status, error=error))


def _kept(sentence: str) -> str:
    """An error's text as the journal keeps it: not longer than a page, and only characters a database keeps."""
    clean = sentence.encode("utf-8", "replace").decode().replace("\0", "\\0")
    return clean if len(clean) <= _ERROR_LIMIT else f"{clean[: _ERROR_LIMIT - 1]}…"

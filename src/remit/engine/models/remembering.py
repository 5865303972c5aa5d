"""Session memory: a run finds the earlier runs of its session once, and gets the same ones in every attempt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from remit.core import allow, scope
from remit.core import remit as remits
from remit.core.events import Event, read
from remit.core.kinds.models import SessionRecalled, ToolDone, session_recalled
from remit.core.kinds.tasks import EndData, FirstData
from remit.core.lifecycle import Outcome, Record
from remit.core.receipt import Slice
from remit.core.remit import Kit, task_of
from remit.core.session import LOOKED_AT, UNDONE, WHOLE_LIMIT, EarlierExchange, Remembers, newest, removed, shortened
from remit.core.trust import TRUSTED, Trust, least
from remit.core.values import Json, decode, encode
from remit.engine.attempt import endings
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.operations import first_position, restarted_talks, tools_of_first_turn
from remit.engine.attempt.replay import origin_of
from remit.engine.ground import Ground
from remit.ports import Decision, Span, View
from remit.ports.models import EarlierRun, EarlierTalk, KeptAnswer, ModelAnswer

_BY_RIGHT = frozenset(("passed", "card", "memory", "wrote"))  # reasons on a receipt that need a right to read
_HANDED = frozenset(("task.handed",))


class Remembering(NamedTuple):
    ground: Ground

    async def past(self, live: LiveTask) -> tuple[EarlierRun, ...]:
        """Return the earlier runs that the turn is given, the oldest first; empty if it remembers nothing. They are on
        the turn's receipt. If one of them is untrusted, the turn becomes untrusted."""
        if live.earlier is None:
            level = remembering_level(live)
            live.earlier = await self._chosen_runs(live, level) if level else ()
            for run in live.earlier:
                live.take(run.trust)
            live.receipt.beside(
                Slice.of(f"run {run.exchange.task}", "session", _text(run), run.trust) for run in live.earlier
            )
        return live.earlier

    async def _chosen_runs(self, live: LiveTask, level: Remembers) -> tuple[EarlierRun, ...]:
        """Return the runs that an earlier attempt was given, or choose some and record the choice."""
        op = live.operations.past

        def look(view: View) -> tuple[bool, list[EarlierRun]]:
            live.must_hold(view)
            if live.attempt.is_rerun and (kept := view.done_under(op)):
                return True, [_again(view, *one) for one in read(kept[0], SessionRecalled)["after"]]
            if not _begins(view, live):
                return True, []
            return False, _chosen(view, live, level)

        def decide(view: View) -> Decision[Json]:
            live.must_hold(view)
            after = [[one.exchange.task, "whole" if one.talk is not None else "session"] for one in found]
            return Decision(None, (session_recalled(live.remit, after, self.ground.clock.now()),))

        recorded, found = await self.ground.store.read(look)
        if not recorded:
            await self.ground.store.tx(op, decide)
        return tuple(found)


def remembering_level(live: LiveTask) -> Remembers:
    """Return how much a turn remembers: the run's setting, or else its agent's. Only the first task of a run
    remembers."""
    if live.remit.parent or live.lead is not None or live.phase:
        return ""
    level = live.remit.remembers or live.agent.rules.memory
    return "" if level == "nothing" else level


def _begins(view: View, live: LiveTask) -> bool:
    """Whether this turn may start with the session's earlier runs. Its holder must be the agent that the run was
    submitted to, and no earlier attempt may have started a conversation without them."""
    record = view.record(live.remit.id)
    began = view.event(record.began) if record is not None else None
    if record is None or began is None or began.agent != live.remit.holder:
        return False
    return not live.attempt.is_rerun or view.done(first_position(origin_of(record), 1)) is None


def _chosen(view: View, live: LiveTask, level: Remembers) -> list[EarlierRun]:
    """Return the newest earlier runs that fit into the prompt, the oldest first. At the level `whole`, a run comes with
    its full conversation if the turn has the rights for it and it fits."""
    ended = [*_ended(view, live)]
    fits = newest(exchange for _, exchange in ended)
    if level != "whole":
        return [EarlierRun(one) for one in reversed(fits)]
    found: list[EarlierRun] = []
    left = WHOLE_LIMIT
    for record, exchange in ended[: len(fits)]:
        talk = _conversation(view, origin_of(record)) if _is_covered(view, live, record) else None
        if talk is not None and talk.size <= left and _may_use(live, talk):
            left -= talk.size
            found.append(EarlierRun(exchange, talk))
        else:
            found.append(EarlierRun(exchange))
    return found[::-1]


def _ended(view: View, live: LiveTask) -> Iterator[tuple[Record, EarlierExchange]]:
    """Yield the ended runs of this session that had the same asker and the same agent, the latest first. Of several
    retries of a run, only the last counts. Runs that a person took back are left out."""
    remit = live.remit
    told = {live.attempt.origin or remit.id, *undone(view, remit.session)}
    for record in view.runs_of_session(remit.session, remit.holder, LOOKED_AT):
        began = view.event(record.began)
        outcome = endings.of_record(view, record)
        if began is None or outcome is None or origin_of(record) in told:
            continue
        told.add(origin_of(record))
        if read(began, FirstData)["asker"] == remit.asker:
            yield record, _exchange(began, outcome)


def undone(view: View, session: str) -> list[str]:
    """Return the runs of a session that a person took back."""
    entry = view.entry(UNDONE, session)
    return [str(run) for run in entry.value] if entry is not None and isinstance(entry.value, list) else []


def _exchange(began: Event, outcome: Outcome) -> EarlierExchange:
    data = read(began, FirstData)
    said, answer = shortened(task_of(data)), shortened(_answer(outcome))
    return EarlierExchange(said, answer, outcome.trust, data.get("trust", TRUSTED), began.task)


def _answer(outcome: Outcome) -> str:
    if outcome.ok:
        return (outcome.value if isinstance(outcome.value, str) else encode(outcome.value)) or "(an empty answer)"
    return "(cancelled)" if outcome.state == "cancelled" else f"(failed: {outcome.error})"


def _again(view: View, task: str, how: str) -> EarlierRun:
    """Return the earlier run `task`, as an earlier attempt of this turn was given it: with its conversation if `how` is
    `whole`. If the run has been removed since then, return a note about that."""
    record = view.record(task)
    began = view.event(record.began) if record is not None else None
    outcome = endings.of_record(view, record) if record is not None else None
    if record is None or began is None or outcome is None:
        return EarlierRun(removed(task))
    talk = _conversation(view, origin_of(record)) if how == "whole" else None
    return EarlierRun(_exchange(began, outcome), talk)


def _text(run: EarlierRun) -> str:
    talk = run.talk
    if talk is None:
        return f"{run.exchange.said}\n{run.exchange.answer}"
    return "\n".join((*(f"{one.told}\n{one.answer.text}" for one in talk.positions), encode(dict(talk.results))))


# -- whole conversations ---------------------------------------------------------------------------------------------


def _conversation(view: View, origin: str) -> EarlierTalk | None:
    """Return the full conversation of a run's first turn. Return None if there was none, if it was restarted, or if a
    tool result of it has no record: then it is incomplete."""
    if view.done_under(restarted_talks(origin)):
        return None
    positions: list[KeptAnswer] = []
    results: dict[str, Json] = {}
    tools: set[str] = set()
    framework, trust = "", cast("Trust", TRUSTED)
    while (done := view.done(first_position(origin, len(positions) + 1))) is not None:
        kept = cast("dict[str, Any]", done[0])
        answer = ModelAnswer(kept["text"], kept["model"], None, tuple(kept["calls"]))
        positions.append(KeptAnswer(kept.get("told", ""), answer))
        framework, trust = kept.get("framework", ""), least((trust, kept.get("took", TRUSTED)))
        for call in _calls_told(kept.get("told", "")):
            tool, value = _result(view, origin, call)
            tools.add(tool)
            results[call] = value
    if not positions or "" in tools:
        return None
    return EarlierTalk(framework, tuple(positions), results, frozenset(tools), trust)


def _calls_told(told: str) -> list[str]:
    """Return the ids of the tool calls whose results a recorded request contained. The results are in the records of
    the calls."""
    return cast("list[str]", cast("dict[str, Any]", decode(told)).get("results", [])) if told else []


def _result(view: View, origin: str, call: str) -> tuple[str, Json]:
    """Return the tool of a call and the result that its model was given; an empty name if there is no record."""
    events = [one for one in view.done_under(tools_of_first_turn(origin, call)) if one.kind == "tool.done" and one.op]
    done = view.done(events[-1].op or "") if events else None
    if done is None:
        return "", None
    return read(events[-1], ToolDone)["tool"], cast("list[Json]", done[0])[0]


def _is_covered(view: View, live: LiveTask, record: Record) -> bool:
    """Whether the turn has all the rights of an earlier run: what was passed to that run, its tools, and what its
    receipt lists. A run that did not complete, was a team or plan, or was handed over is not covered."""
    began, ended = view.event(record.began), view.event(record.ended or 0)
    if began is None or ended is None or ended.kind != "task.completed" or record.led_as:
        return False
    then, now = remits.rights(remits.restored(began), live.card), live.rights
    receipt = cast("dict[str, Any]", read(ended, EndData).get("receipt", {}))
    seen = frozenset[scope.Scope]()
    for what, why, *_ in receipt.get("saw", ()):
        if why in _BY_RIGHT:
            seen |= cast("frozenset[scope.Scope]", scope.restored([what]))
    return (
        scope.within(then.sees, now.sees)
        and scope.within(seen, now.sees)
        and not receipt.get("unlisted", 0)
        and _has_tools(now.kit, then.kit)
        and not view.events(Span(run=record.run, task=record.id, kinds=_HANDED, limit=1))
    )


def _has_tools(now: Kit, then: Kit) -> bool:
    """Whether the kit `now` has every tool of the kit `then`."""
    if then.names is allow.ANY:
        return now.names is allow.ANY and allow.within(now.denied, then.denied)
    return all(now.has(tool) for tool in then.names)


def _may_use(live: LiveTask, talk: EarlierTalk) -> bool:
    kit = live.rights.kit
    return all(kit.has(tool) for tool in talk.tools)

"""Clauses on the state machine: a move that is not in the table raises `Conflict` and changes nothing."""

import asyncio
from typing import Final

from remit.core import lifecycle
from remit.core.entry import Draft
from remit.core.events import Unsealed
from remit.core.kinds import Claim, Requeue, claimed, ended, fenced, handed, moved, place, requeued, started
from remit.core.remit import Remit
from remit.core.values import Json
from remit.errors import Conflict
from remit.ports import Beat, Database, Decide, Decision, Store, View
from remit.testing.clauses.making import (
    NOW,
    Content,
    answer_or_error,
    append,
    entry_event,
    equal,
    first_remit,
    must,
    putting,
    queueing,
    record_of,
    sound,
    starting,
    unchanged,
)

_GONE: Final = "no task"  # the id of a task that does not exist
_REQUEUES: Final = ("task.queued", "task.retrying", "task.released", "task.lost")
# The moves that lead to each state, after the submission.
_WAYS: Final[dict[str, tuple[str, ...]]] = {
    "pending": (),
    "running": ("task.claimed",),
    "waiting": ("task.claimed", "task.waiting"),
    "cancelling": ("task.claimed", "task.cancelling"),
    "completed": ("task.claimed", "task.completed"),
    "failed": ("task.claimed", "task.failed"),
    "cancelled": ("task.cancelling", "task.cancelled"),
    "dead": ("task.claimed", "task.waiting", "task.died"),
}


async def every_move_is_one_of_the_table(database: Database) -> None:
    """From each state, and for a task that does not exist: each forbidden move, alone and in the middle of a
    decision."""
    store = database.store("one")
    await _one_in_each_state(store)
    before = await store.read(Content)
    number = 0
    for state, task in (*((state, _work(state)) for state in _WAYS), (lifecycle.START, _work(_GONE))):
        for kind in sorted(lifecycle.MOVES - lifecycle.BEGINNINGS - set(lifecycle.TRANSITIONS[state])):
            number += 1
            why = f"after {kind} of a task that is {state or 'not there'}"
            await _refused(store, f"alone {number}", _deciding(_move(kind, task)), why)
            await _refused(store, f"middle {number}", _deciding(_move(kind, task), among=True), why)
    await unchanged(store, before, "after moves that the lifecycle table does not have")
    must(number > 60, f"there are many moves that the table does not have, tried {number}")
    await sound(store)


async def a_move_is_judged_after_those_before_it(database: Database) -> None:
    """If a decision moves a task several times, each move starts in the state that the previous one led to."""
    store = database.store("one")
    await _one_in_each_state(store)
    running, fresh, waiting = _work("running"), first_remit("fresh", session="s"), _work("waiting")
    before = await store.read(Content)
    for number, events in enumerate(
        (
            (_move("task.completed", running), _move("task.claimed", running)),
            (_move("task.waiting", running), _move("task.resumed", running), _move("task.queued", running)),
            (started(fresh, NOW), _move("task.completed", fresh), _move("task.failed", fresh)),
            (_move("task.lost", waiting), _move("task.waiting", waiting)),
        )
    ):
        await _refused(store, f"op {number}", lambda _view, events=events: Decision(None, events), "after two moves")
        await unchanged(store, before, "after a decision whose last move the table does not have")
    await append(store, "good", started(fresh, NOW), _move("task.waiting", fresh), _move("task.resumed", fresh))
    await append(store, "more", _move("task.completed", fresh), _move("task.resumed", waiting))
    states = [(await record_of(store, task)).state for task in ("fresh", "waiting")]
    equal(states, ["completed", "running"], "the states after moves that the table has")
    await sound(store)


async def a_move_that_is_refused_hurts_no_neighbour(database: Database) -> None:
    """Even in the same transaction as other operations: their answers and their work are not affected."""
    store = database.store("one")
    await _one_in_each_state(store)
    bad = _deciding(_move("task.resumed", _work("cancelling")), among=True)
    crowd = [answer_or_error(store, f"op {n}", putting(Draft("notes", f"key {n}", n), answer=n)) for n in range(40)]
    for place_ in (0, 20, 42):
        crowd.insert(place_, answer_or_error(store, f"bad {place_}", bad))
    answers = await asyncio.gather(*crowd)
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    equal([type(error) for error in refused], [Conflict] * 3, "what became of the moves that the table does not have")
    numbers = [answer for answer in answers if not isinstance(answer, Exception)]
    equal(numbers, list(range(40)), "the answers of their neighbours")
    await sound(store)


async def an_operation_that_was_done_answers_though_its_move_is_past(database: Database) -> None:
    """A repeated operation returns its recorded answer, although its move would now be forbidden."""
    store = database.store("one")
    work = _work("pending")
    await store.tx("submit", queueing(work))
    claim, end = _answering("w1", _move("task.claimed", work)), _answering({"n": 1}, _move("task.completed", work))
    equal(await store.tx("claim", claim), "w1", "the answer to a claim")
    equal(await store.tx("end", end), {"n": 1}, "the answer to an end")
    before = await store.read(Content)
    equal(await store.tx("claim", claim), "w1", "the answer to a claim that was done, though the task has ended")
    equal(await store.tx("end", end), {"n": 1}, "the answer to an end that was done, though the task has ended")
    await _refused(store, "another", end, "after the task has ended")
    await unchanged(store, before, "after operations that were done before")
    await sound(store)


async def _refused(store: Store, op: str, decide: Decide[Json], why: str) -> None:
    """Check that the operation raises `Conflict`, and that its id can still be used."""
    error = await answer_or_error(store, op, decide)
    must(isinstance(error, Conflict), f"what is raised {why} is a Conflict, got {error!r}")
    equal(await store.read(lambda view: view.done(op)), None, f"the operation {why}")


def _deciding(move: Unsealed, *, among: bool = False) -> Decide[Json]:
    """Return a decision that makes a move and writes a heartbeat; `among` puts the move between two entries."""

    def decide(view: View) -> Decision[Json]:
        left, right = (entry_event(view, Draft("among", key, "half")) for key in ("left", "right"))
        events = (left, move, right) if among else (move,)
        return Decision("done", events, Beat("w9", "here", 9))

    return decide


def _answering(answer: Json, *events: Unsealed) -> Decide[Json]:
    return lambda _view: Decision(answer, events)


async def _one_in_each_state(store: Store) -> None:
    for state, way in _WAYS.items():
        await store.tx(f"submit {state}", queueing(_work(state)))
        if way:
            await append(store, f"move {state}", *(_move(kind, _work(state)) for kind in way))
        standing = await store.read(lambda view, task=state: view.standing(task))
        equal(standing and standing.state, state, f"the state after {way}")
    await store.tx("start", starting(first_remit("started", session="s")))


def _work(task: str) -> Remit:
    return first_remit(task, session="s", holder="helper")


def _move(kind: str, remit: Remit) -> Unsealed:
    where, agent = place(remit), remit.holder
    if kind == "task.claimed":
        return claimed(where, agent, NOW, Claim("w1", 1, 1))
    if kind == "task.fenced":
        return fenced(where, agent, NOW, Claim("", 2, 1))
    if kind == "task.handed":
        return handed(remit, "another", NOW, {})
    if kind in _REQUEUES:
        return requeued(kind, where, agent, NOW, Requeue("", 2, NOW, 1, 0), {})
    if kind in lifecycle.ENDS:
        return ended(remit, kind, NOW, {"tokens": 5})
    return moved(kind, where, agent, NOW, {})


CLAUSES: Final = (
    every_move_is_one_of_the_table,
    a_move_is_judged_after_those_before_it,
    a_move_that_is_refused_hurts_no_neighbour,
    an_operation_that_was_done_answers_though_its_move_is_past,
)

"""Clauses on tasks: their table, the moves of the state machine, and lists by every condition, page by page."""

import asyncio
from collections.abc import Callable
from typing import Final

from remit.core import lifecycle
from remit.core.entry import Draft
from remit.core.events import Labels, Unsealed
from remit.core.kinds.tasks import (
    Begun,
    Claim,
    Lineage,
    Queued,
    Requeue,
    claimed,
    ended,
    fenced,
    handed,
    moved,
    refused,
    requeued,
    started,
    submitted,
)
from remit.core.lifecycle import Record, Standing
from remit.core.remit import Pass, Remit, place
from remit.core.times import SECOND
from remit.core.values import Json
from remit.errors import Conflict
from remit.ports import NOTHING, Beat, Database, Decide, Decision, Store, TaskLine, View, Wants, Which
from remit.testing.clauses.making import (
    NOW,
    Content,
    answer_or_error,
    append,
    child_remit,
    ending,
    entry_event,
    equal,
    first_remit,
    ids,
    look,
    must,
    putting,
    queueing,
    record_of,
    sound,
    starting,
    unchanged,
)

# -- the table -----------------------------------------------------------------------------------------------


_RUNNING: Final = Record(
    id="root",
    run="root",
    parent="",
    session="s",
    holder="lead",
    state="running",
    asked_how="delegate",
    led_as="",
    worker="",
    fence=1,
    attempt=1,
    failures=0,
    asked_at=NOW,
    ready_at=NOW,
    claimed_at=NOW,
    until=NOW,
    ended_at=None,
    began=1,
    ended=None,
    dedup_key="",
    origin="",
)


async def a_task_is_kept_whole(database: Database) -> None:
    store = database.store("one")
    root = first_remit("root", session="s")
    child = child_remit(root, "child", holder="helper", seconds=1)
    await store.tx("start", starting(root, child))
    await store.tx("end", ending(child, "task.failed", NOW + 7))
    running = _RUNNING._replace(until=root.bounds.deadline or 0)
    equal(await store.read(lambda view: view.record("root")), running, "a running task")
    failed = running._replace(
        id="child",
        parent="root",
        holder="helper",
        state="failed",
        until=NOW + 1_000_000,
        ended_at=NOW + 7,
        began=2,
        ended=3,
    )
    equal(await store.read(lambda view: view.record("child")), failed, "a task that failed")
    standing = await store.read(lambda view: view.standing("child"))
    equal(standing, Standing("failed", 1, 0, "delegate"), "the standing of a task that failed")
    equal(
        await store.read(lambda view: (view.standing("none"), view.record("none"))),
        (None, None),
        "a task no one began",
    )
    await sound(store)


async def a_task_that_is_handed_on_has_its_new_holder(database: Database) -> None:
    store = database.store("one")
    root = first_remit("root", session="s")
    await store.tx("start", starting(root))
    await store.tx("hand", lambda _: Decision(None, (handed(root, "helper", NOW, {}),)))
    await store.tx("fan", lambda _: Decision(None, (handed(root, ["a", "b"], NOW, {}),)))
    record = await store.read(lambda view: view.record("root"))
    equal(record.holder if record else None, "helper", "the holder of a task that was handed on, and then in parts")
    await store.tx("end", ending(root, "task.completed", NOW))
    await sound(store)


async def running_counts_who_is_running(database: Database) -> None:
    """`View.running` counts the running tasks of one holder, each only until the task's time is up."""
    store = database.store("one")
    root = first_remit("root", session="s")
    parts = [child_remit(root, f"part{number}", holder="helper", seconds=1 + number) for number in range(3)]
    await store.tx("start", starting(root, *parts))
    for at, expected in ((0, 3), (999_999, 3), (1_000_000, 2), (2_000_000, 1), (3_000_000, 0)):
        count = await store.read(lambda view, now=NOW + at: view.running("helper", now))
        equal(count, expected, f"tasks of 'helper' running {at} µs after the start")
    for kind, part, left in (
        ("task.completed", parts[0], 2),
        ("task.failed", parts[1], 1),
        ("task.cancelled", parts[2], 0),
    ):
        await store.tx(f"end {part.id}", ending(part, kind))
        equal(await store.read(lambda view: view.running("helper", NOW)), left, f"running after one {kind[5:]}")
    equal(
        await store.read(lambda view: (view.running("lead", NOW), view.running("no-one", NOW))),
        (1, 0),
        "by holder",
    )
    await sound(store)


# -- the state machine ---------------------------------------------------------------------------------------


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
    """A store refuses each forbidden move, from each state and of a task that does not exist, alone and in the middle
    of a decision."""
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
    """A refused move does not affect the answers and the work of other operations, even in the same transaction."""
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
    equal((await store.tx("claim", claim)).answer, "w1", "the answer to a claim")
    equal((await store.tx("end", end)).answer, {"n": 1}, "the answer to an end")
    before = await store.read(Content)
    equal(
        (await store.tx("claim", claim)).answer, "w1", "the answer to a claim that was done, though the task has ended"
    )
    equal(
        (await store.tx("end", end)).answer, {"n": 1}, "the answer to an end that was done, though the task has ended"
    )
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


# -- lists ---------------------------------------------------------------------------------------------------


_CONDITIONS: Final[tuple[tuple[Which, list[str]], ...]] = (
    (Which(session="s0"), ["run2part", "run0part", "run2", "run0"]),
    (Which(agent="helper"), ["run2part", "run1part", "run0part"]),
    (Which(state="pending"), ["run2part", "run1part"]),
    (Which(state="open"), ["run2part", "run1part", "run2", "run1", "run0"]),
    (Which(state="open", session="s0", agent="helper"), ["run2part"]),
    (Which(state="open", run="run0"), ["run0"]),
    (Which(state="open", parent=""), ["run2", "run1", "run0"]),
    (Which(state="failed"), ["run0part"]),
    (Which(state="failed", agent="lead"), []),
    (Which(state="failed", parent=""), []),
    (Which(state="failed", session="s0"), ["run0part"]),
    (Which(state="dead"), []),
    (Which(session="s0", parent=""), ["run2", "run0"]),
    (Which(session="s0", agent="helper", limit=1), ["run2part"]),
    (Which(session="*"), []),
    (Which(state="failed", run="run1"), []),
    (Which(parent="run1"), ["run1part"]),
    (Which(parent="run1", session="s0"), []),
    (Which(parent="run1", run="run1", agent="helper", state="pending"), ["run1part"]),
    (Which(parent=""), ["run2", "run1", "run0"]),
    (Which(run="run2", agent="lead"), ["run2"]),
    (Which(run="run2", limit=1), ["run2part"]),
    (Which(limit=2), ["run2part", "run1part"]),
    (Which(session="none"), []),
    (Which(run="none"), []),
    (Which(parent="none"), []),
    (Which(asker="lead"), ["run2part", "run1part", "run0part"]),
    (Which(asker=""), ["run2", "run1", "run0"]),
    (Which(asker="", limit=2), ["run2", "run1"]),
    (Which(asker="lead", session="s0"), ["run2part", "run0part"]),
    (Which(asker="lead", state="failed"), ["run0part"]),
    (Which(asker="lead", state="open", limit=1), ["run2part"]),
    (Which(asker="lead", run="run1"), ["run1part"]),
    (Which(asker="lead", parent="run1", agent="helper"), ["run1part"]),
    (Which(asker="helper"), []),
    (Which(asker="none"), []),
    (Which(by="none"), []),
    (Which(by="", limit=2), ["run2part", "run1part"]),
    (Which(asker="lead", by="", session="s0"), ["run2part", "run0part"]),
)


async def tasks_are_listed_by_every_condition(database: Database) -> None:
    """Listed are the tasks that match all conditions, newest first, each with its text."""
    store = database.store("one")
    roots = [first_remit(f"run{n}", session=f"s{n % 2}") for n in range(3)]
    parts = [child_remit(root, f"{root.id}part", holder="helper") for root in roots]
    await store.tx("start", starting(*roots))
    await store.tx("submit", queueing(*parts))
    await store.tx("end", ending(parts[0], "task.failed"))
    every = {line[0].id: line for line in await look(store, lambda view: view.tasks(Which()))}
    order = ["run2part", "run1part", "run0part", "run2", "run1", "run0"]
    equal([*every], order, "all tasks, newest first")
    equal(every["run1part"][1], parts[1].task, "a task with its text")
    equal(every["run1part"][0], await record_of(store, "run1part"), "a task in the list is as it is alone")
    for which, expected in _CONDITIONS:
        listed = await look(store, lambda view, which=which: [record.id for record, _ in view.tasks(which)])
        equal(listed, expected, f"the tasks of {which}")


async def tasks_are_listed_page_by_page(database: Database) -> None:
    """All pages together list each task once, newest first, although tasks start and end between the pages."""
    store = database.store("one")
    roots = [first_remit(f"run{n}", session="s") for n in range(6)]
    for root in roots:
        await store.tx(root.id, starting(root, *_parts(root, 3)))
    several: tuple[Which, ...] = (
        Which(),
        Which(agent="helper"),
        Which(session="s"),
        Which(session="s", agent="helper"),
        Which(parent=""),
        Which(state="running"),
        Which(state="open"),
        Which(run="run3"),
        Which(parent="run3"),
        Which(asker="lead"),
        Which(asker="", session="s"),
    )
    for number, which in enumerate(several):
        sizes = (1, 4, 100) if number < 4 else (4, 100)  # one by one, every page disturbs and every task is a page
        for size in sizes:
            whole = await look(store, lambda view, which=which: _ids_of(view, which))
            pages = _Pages(store, f"{number} {size}", roots[5])
            seen = await pages.through(lambda view, before, which=which, size=size: _page(view, which, before, size))
            equal(seen, whole, f"the tasks of {which}, page by page, {size} on each")
    equal(await look(store, lambda view: view.tasks(Which(before=1))), [], "the tasks before the first one")


async def runs_are_listed_page_by_page(database: Database) -> None:
    store = database.store("one")
    roots = [first_remit(f"run{n}", session="s") for n in range(9)]
    for root in roots:
        await store.tx(root.id, starting(root, *_parts(root, 2)))
    for size in (1, 2, 4, 100):
        whole = [line.record.id for line in await look(store, lambda view: view.runs(1_000))]
        pages = _Pages(store, f"{size}", roots[5])
        seen = await pages.through(lambda view, before, size=size: [line.record for line in view.runs(size, before)])
        equal(seen, whole, f"the runs page by page, {size} on each")
    equal(await look(store, lambda view: view.runs(10, 1)), [], "the runs before the first one")


async def tasks_and_runs_are_found_by_their_labels(database: Database) -> None:
    """Tasks and runs are found by the person, a tag, the asker, the time and the text, wherever in a long journal they
    are."""
    store = database.store("one")
    for first in range(0, 520, 20):
        some: list[Remit] = []
        for number in range(first, first + 20):
            labels = Labels(f"p{number % 7}", ("odd",) if number % 2 else (), (("n", number),))
            root = first_remit(f"run{number}", session="s")._replace(labels=labels)
            some += [root, *_parts(root, 1)]
        await store.tx(some[0].id, starting(*some))
    rare = first_remit("rare", session="s")._replace(labels=Labels("once", ("seldom",)))
    asked = child_remit(rare, "asked", holder="helper")
    asker = child_remit(asked, "below", holder="other")
    await store.tx("rare", starting(rare, asked, asker))
    every = await look(store, lambda view: view.task_lines(Which(limit=10_000)))
    equal(len(every), 1_043, "all tasks")
    must(len(await look(store, lambda view: view.chapters(0, 100))) > 0, "the journal is long enough for chapters")
    cases: tuple[tuple[Which, Callable[[TaskLine], bool]], ...] = (
        (Which(by="p3"), lambda line: line.by == "p3"),
        (Which(tag="odd"), lambda line: "odd" in line.labels.tags),
        (Which(by="once"), lambda line: line.by == "once"),
        (Which(tag="seldom", asker="helper"), lambda line: line.asker == "helper"),
        (Which(asker="nobody"), lambda _: False),
        (Which(text="RUN49", by="p0"), lambda line: "run49" in line.task and line.by == "p0"),
        (Which(since=NOW + 1), lambda _: False),
        (Which(until=NOW + 1, tag="seldom"), lambda line: "seldom" in line.labels.tags),
    )
    for which, fits in cases:
        expected = [line for line in every if fits(line)]
        found = await look(store, lambda view, which=which: view.task_lines(which._replace(limit=10_000)))
        equal(found, expected, f"the tasks of {which}")
        few = await look(store, lambda view, which=which: view.task_lines(which._replace(limit=3)))
        equal(few, expected[:3], f"the newest three of {which}")
        runs = await look(store, lambda view, which=which: view.run_lines(which._replace(limit=10_000)))
        roots = [line.record.id for line in expected if not line.record.parent]
        equal([line.record.id for line in runs], roots, f"the runs of {which}")
    lines = await look(store, lambda view: view.run_lines(Which(limit=10)))
    equal(lines, await look(store, lambda view: view.runs(10)), "the newest runs with their figures")


async def the_newest_runs_first(database: Database) -> None:
    """Runs are listed newest first, each with its task and its figures."""
    store = database.store("one")
    for number in range(4):
        root = first_remit(f"run{number}", session=f"s{number % 2}")
        await store.tx(root.id, starting(root, *_parts(root, number)))
    no = refused(first_remit("run1", session="s1"), Pass("no-one", "work"), NOW, rule="unknown", sentence="no")
    await append(store, "refused", no, no)
    lines = await look(store, lambda view: view.runs(3))
    listed = [(line.record.id, line.task, line.facts.tasks, line.facts.refusals) for line in lines]
    expected = [(f"run{n}", f"the work of run{n}", n + 1, 2 if n == 1 else 0) for n in (3, 2, 1)]
    equal(listed, expected, "the newest three runs with their tasks and refusals")
    equal(lines[0].record, await record_of(store, "run3"), "the record of a run in the list of runs")
    facts = await look(store, lambda view: view.run("run3"))
    equal(lines[0].facts, facts, "the figures of a run in the list of runs")


async def what_is_below_a_task_is_found_from_the_top_down(database: Database) -> None:
    """`View.below` returns a task and its subtasks without those that have ended, also those below an ended one."""
    store = database.store("one")
    root = first_remit("root", session="s")
    left, right = (child_remit(root, name, holder=name) for name in ("left", "right"))
    deep = child_remit(left, "deep", holder="deep")
    await store.tx("start", starting(root, left, right, first_remit("other", session="s")))
    await store.tx("submit", queueing(deep))
    for top, expected in (("root", ["root", "left", "right", "deep"]), ("left", ["left", "deep"]), ("none", [])):
        equal(await look(store, lambda view, top=top: ids(view.below(top))), expected, f"what is below {top}")
    equal(await look(store, lambda view: view.below("deep")), [await record_of(store, "deep")], "a task below itself")
    await store.tx("end", ending(left))
    equal(await look(store, lambda view: ids(view.below("root"))), ["root", "right", "deep"], "what has not ended")
    equal(await look(store, lambda view: ids(view.below("left"))), ["deep"], "what is below one that has ended")
    listed = await look(store, lambda view: sorted(view.of_run("root")))
    expected = [("deep", "pending", None), ("left", "completed", NOW)]
    expected += [("right", "running", None), ("root", "running", None)]
    equal(listed, expected, "every task of a run, with its state")


async def the_same_requests_are_found_newest_first(database: Database) -> None:
    """`View.same_requests` finds requests by their dedup key, for readers and for decisions."""
    store = database.store("one")
    queued = Queued("submit", timeout=60 * SECOND, attempts=3, ready_at=NOW)
    for number in range(3):
        remit = first_remit(f"work{number}", session="s", holder="helper")
        how = queued._replace(dedup_key="k" if number else "")
        await append(store, f"op {number}", submitted(remit, NOW + number, how))
    for key, since, expected in (
        ("k", NOW, ["work2", "work1"]),
        ("k", NOW + 1, ["work2"]),
        ("", 0, []),
        ("x", 0, []),
    ):
        read: Callable[[View], list[str]] = lambda view, key=key, since=since: ids(view.same_requests(key, since))  # noqa: E731
        equal(await look(store, read), expected, f"the requests with the key {key!r} since {since}")
        decide: Decide[list[str]] = lambda view, read=read: Decision(read(view))  # noqa: E731
        for wants in (NOTHING, Wants(same_requests=(key,))):
            within = (await store.tx("look", decide, wants)).answer
            equal(within, expected, f"the requests with the key {key!r} since {since}, within a decision")


async def the_runs_of_a_session_are_found_by_the_agent_that_was_asked(database: Database) -> None:
    """`View.runs_of_session` returns only ended runs that started with this agent, the latest end first."""
    store = database.store("one")
    for name, session, holder in (("one", "s", "lead"), ("two", "s", "lead"), ("three", "s", "lead")):
        await append(store, f"start {name}", started(first_remit(name, session=session, holder=holder), NOW))
    for name, session, holder in (("other", "t", "lead"), ("hers", "s", "helper")):
        remit = first_remit(name, session=session, holder=holder)
        await append(store, f"start {name}", started(remit, NOW))
        await append(store, f"end {name}", ended(remit, "task.completed", NOW, {"result": 1}))
    part = child_remit(first_remit("one", session="s", holder="lead"), "part", holder="lead")
    await append(store, "start part", started(part, NOW))
    await append(store, "end part", ended(part, "task.completed", NOW, {"result": 1}))
    for name, kind in (("two", "task.failed"), ("one", "task.completed")):
        remit = first_remit(name, session="s", holder="lead")
        await append(store, f"end {name}", ended(remit, kind, NOW, {"result": 1, "error": "no", "type": "Failed"}))
    for limit, expected in ((10, ["one", "two"]), (1, ["one"])):
        found = await look(store, lambda view, limit=limit: ids(view.runs_of_session("s", "lead", limit)))
        equal(found, expected, f"the last {limit} runs of the session that have ended")


async def those_tried_for_the_same_are_found(database: Database) -> None:
    """Retries are found by the first task of their lineage. A run that contains one can be pruned only if all tasks of
    the lineage ended before the given time."""
    store = database.store("one")
    for number, origin in enumerate(("", "", "first0", "first0", "first1")):
        begun = Begun(lineage=Lineage(origin, number)) if origin else Begun()
        name = f"again{number}" if origin else f"first{number}"
        remit = first_remit(name, session="s", holder="helper")
        await append(store, f"op {number}", started(remit, NOW + number, begun))
        if number != 2:
            await append(store, f"end {number}", ended(remit, "task.failed", NOW + number, {}))
    for origin, expected in (("first0", ["again2", "again3"]), ("first1", ["again4"]), ("again2", []), ("", [])):
        found = await look(store, lambda view, origin=origin: ids(view.lineage(origin)))
        equal(found, expected, f"those that were tried again for {origin!r}")
    tried = ["first0", "first1", "again2", "again3", "again4"]
    for before, gone in ((NOW + 4, []), (NOW + 5, ["first1", "again4"])):
        lists = await look(store, lambda view, before=before: [view.prunable(run, before) for run in tried])
        found = [run for run, tasks in zip(tried, lists, strict=True) if tasks]
        equal(found, gone, f"the runs that may be pruned if they ended before {before}")


async def ids_are_found_by_their_beginning_and_their_end(database: Database) -> None:
    store = database.store("one")
    known = ("abc", "abd", "ab_", "ab%", "b", "abcd")
    await append(store, "start", *(started(first_remit(task, session="s"), NOW) for task in known))
    for start in ("", "a", "ab", "abc", "ab%", "ab_", "x"):
        listed = await look(store, lambda view, start=start: view.ids_like(start, 10))
        equal(listed, sorted(task for task in known if task.startswith(start)), f"the ids that begin with {start!r}")
    equal(await look(store, lambda view: view.ids_like("ab", 2)), ["ab%", "ab_"], "the first two that begin with 'ab'")
    for end in ("", "b", "c", "bc", "_", "%", "abcdabcd"):
        listed = await look(store, lambda view, end=end: view.ids_ending(end, 10))
        equal(listed, sorted(task for task in known if task.endswith(end)), f"the ids that end with {end!r}")
    await append(store, "part", started(child_remit(first_remit("abc", session="s"), "abz", holder="helper"), NOW))
    runs = await look(store, lambda view: (view.ids_like("ab", 10, runs=True), view.ids_ending("z", 10, runs=True)))
    equal(runs[0], sorted(task for task in known if task != "b"), "the ids of runs alone that begin with 'ab'")
    equal(runs[1], [], "the ids of runs alone that end with 'z'")


# -- pages --------------------------------------------------------------------------------------------------

_ReadPage = Callable[[View, int | None], list[Record]]
_DISTURBED: Final = 4  # only the first pages, otherwise the lists would grow faster than they are read


class _Pages:
    """Reads page by page. Between the first few pages a run starts and ends, and another run gets a new task."""

    def __init__(self, store: Store, name: str, busy: Remit) -> None:
        self._store = store
        self._name = name
        self._busy = busy

    async def through(self, read: _ReadPage) -> list[str]:
        seen: list[str] = []
        before: int | None = None
        pages = 0
        while page := await self._store.read(lambda view, before=before: read(view, before)):
            seen += ids(page)
            before = page[-1].began
            pages += 1
            if pages < _DISTURBED:
                await self._disturb(pages)
        return seen

    async def _disturb(self, number: int) -> None:
        name = f"{self._name} {number}"
        new, part = first_remit(f"new {name}", session="s"), child_remit(self._busy, f"part {name}", holder="helper")
        await self._store.tx(f"begin {name}", lambda _view: Decision(None, (started(new, NOW), started(part, NOW))))
        await self._store.tx(f"end {name}", ending(new))


def _page(view: View, which: Which, before: int | None, size: int) -> list[Record]:
    asked = which._replace(limit=size, before=before)
    return [record for record, _ in view.tasks(asked)]


def _ids_of(view: View, which: Which) -> list[str]:
    return ids(_page(view, which, None, 10_000))


def _parts(root: Remit, count: int) -> list[Remit]:
    return [child_remit(root, f"{root.id}part{part}", holder="helper") for part in range(count)]


CLAUSES: Final = (
    a_task_is_kept_whole,
    a_task_that_is_handed_on_has_its_new_holder,
    running_counts_who_is_running,
    every_move_is_one_of_the_table,
    a_move_is_judged_after_those_before_it,
    a_move_that_is_refused_hurts_no_neighbour,
    an_operation_that_was_done_answers_though_its_move_is_past,
    tasks_are_listed_by_every_condition,
    tasks_are_listed_page_by_page,
    runs_are_listed_page_by_page,
    tasks_and_runs_are_found_by_their_labels,
    the_newest_runs_first,
    what_is_below_a_task_is_found_from_the_top_down,
    the_same_requests_are_found_newest_first,
    the_runs_of_a_session_are_found_by_the_agent_that_was_asked,
    those_tried_for_the_same_are_found,
    ids_are_found_by_their_beginning_and_their_end,
)

"""Clauses on lists of tasks and runs, by every condition and page by page."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from remit.core.kinds import Begun, Lineage, Queued, ended, refused, started, submitted
from remit.core.lifecycle import Record
from remit.core.remit import Pass, Remit
from remit.core.times import SECOND
from remit.ports import NOTHING, Database, Decide, Decision, Store, View, Wants, Which
from remit.testing.clauses.making import (
    NOW,
    append,
    child_remit,
    ending,
    equal,
    first_remit,
    ids,
    look,
    queueing,
    record_of,
    starting,
)

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
)


async def tasks_are_listed_by_every_condition(database: Database) -> None:
    """All conditions must hold; newest first, each task with its text."""
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
    """Each task once, newest first, although tasks start and end between the pages."""
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
        for size in (1, 3, 7, 100):
            whole = await look(store, lambda view, which=which: _listed(view, which))
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


async def the_newest_runs_first(database: Database) -> None:
    """Each with its task and its figures."""
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
    """All unfinished tasks, also below finished ones."""
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
    """By dedup key, for readers and for decisions."""
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
            within = await store.tx("look", decide, wants)
            equal(within, expected, f"the requests with the key {key!r} since {since}, within a decision")


async def the_runs_of_a_session_are_found_by_the_agent_that_was_asked(database: Database) -> None:
    """Only ended runs that started with this agent, the latest end first."""
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
    """Retries are found by the first task of their lineage; and the runs that contain one, unless the latest ended too
    long ago."""
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
    asked = replace(which, limit=size, before=before)
    return [record for record, _ in view.tasks(asked)]


def _listed(view: View, which: Which) -> list[str]:
    return ids(_page(view, which, None, 10_000))


def _parts(root: Remit, count: int) -> list[Remit]:
    return [child_remit(root, f"{root.id}part{part}", holder="helper") for part in range(count)]


CLAUSES: Final = (
    tasks_are_listed_by_every_condition,
    tasks_are_listed_page_by_page,
    runs_are_listed_page_by_page,
    the_newest_runs_first,
    what_is_below_a_task_is_found_from_the_top_down,
    the_same_requests_are_found_newest_first,
    the_runs_of_a_session_are_found_by_the_agent_that_was_asked,
    those_tried_for_the_same_are_found,
    ids_are_found_by_their_beginning_and_their_end,
)

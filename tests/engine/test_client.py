"""A workspace over a wire: the same methods, values and errors as the workspace itself."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import anyio
import pytest

from remit import Bounds, Plan, Runtime, Step, Turn, Workspace
from remit.adapters.vault import fresh_master
from remit.core.values import Json
from remit.errors import BadInput, Conflict, Failed, NotFound, Refused, RemitError, TooMany
from remit.runtime.calls import CALLS, error_data, error_restored
from remit.runtime.client import RemoteWorkspace, SentFile
from remit.runtime.performing import OWNER, ActsFor, perform
from remit.runtime.workers import Crew
from remit.testing import FakeClock
from server.worlds import sent_events
from teams import team

pytestmark = pytest.mark.anyio


class Wire:
    """The way of a call as text, without a network."""

    def __init__(self, workspace: Workspace, who: ActsFor = OWNER) -> None:
        self.workspace = workspace
        self.who = who
        self.where = "here"
        self.is_private = True

    async def call(self, name: str, given: dict[str, Json]) -> Json:
        try:
            answer = await perform(self.workspace, name, json.loads(json.dumps(given)), self.who)
        except RemitError as error:
            raise error_restored(json.loads(json.dumps(error_data(error)))) from None
        return json.loads(json.dumps(answer))

    async def save_file(self, parts: Callable[[], AsyncIterator[bytes]], file: SentFile) -> Json:
        saved = await self.workspace.artifacts.save(parts(), file.name, file.media_type, trust=file.trust, by=file.by)
        return saved.data()

    async def fetch_file(self, digest: str) -> AsyncGenerator[bytes]:
        async for part in await self.workspace.artifacts.open(digest):
            yield part

    def close(self) -> None: ...


def remote(rt: Runtime, who: ActsFor = OWNER) -> RemoteWorkspace:
    return RemoteWorkspace(Wire(rt.workspace, who))


def build(rt: Runtime) -> None:
    @rt.agent(asks="*", writes="*", reads="*", can="lead others")
    async def lead(turn: Turn) -> Json:
        await turn.context.set("notes", "seen", {"all": [1, 2.5, None]})
        await turn.spend("$0.05", why="a call")
        await turn.artifacts.save(b"all is well", "report.txt")
        with pytest.raises(Refused):
            await turn.delegate("nobody", "x")
        return await turn.delegate("worker", "part one")

    @rt.agent
    async def worker(turn: Turn) -> str:
        return "done"

    @rt.agent(ask_person=True)
    async def asker(turn: Turn) -> str:
        return await turn.ask_human("which colour?", choices=["red", "blue"])

    @rt.agent
    async def broken(turn: Turn) -> str:
        raise ValueError("no paper")


# The arguments of each call that reads; {run} is the id of a run, {question} of an open question.
READS: dict[str, dict[str, Any]] = {
    "stats": {"agent": "lead"},
    "edges": {},
    "check": {},
    "tasks.list": {"state": "completed"},
    "tasks.runs": {"agent": "lead"},
    "tasks.progress": {},
    "tasks.orphans": {},
    "journal.history": {"run": "{run}"},
    "journal.gaps": {},
    "looks.task": {"part": "last"},
    "looks.run": {"part": "{run}"},
    "looks.tasks": {},
    "looks.runs": {"agent": "lead"},
    "looks.stats": {"by": "day"},
    "looks.spend": {"by": "day,agent"},
    "looks.detail": {"part": "{run}"},
    "looks.records": {"tasks": ["{run}", "x"]},
    "looks.below": {"part": "{run}"},
    "looks.has_ended": {"task": "{run}"},
    "looks.part": {"part": "{run}"},
    "looks.tree": {"part": "{run}"},
    "looks.talk": {"part": "{run}"},
    "looks.answers": {"events": [1, 2]},
    "looks.open_events": {},
    "looks.head": {},
    "looks.question": {"part": "{question}"},
    "looks.cards": {},
    "looks.ledger": {},
    "looks.entries": {"namespace": "notes"},
    "looks.entry": {"namespace": "notes", "key": "seen"},
    "looks.versions": {"namespace": "notes", "key": "seen"},
    "looks.readers": {"namespace": "notes", "key": "seen"},
    "looks.prunable": {"days": 1},
    "questions.get": {"id": "{question}"},
    "questions.list": {},
    "agents.list": {},
    "agents.find": {"wanted": "lead others"},
    "agents.workers": {},
    "agents.breakers": {},
    "money.account": {},
    "money.leases": {},
    "money.uncertain": {},
    "money.spend": {"by": "model"},
    "context.namespaces": {},
    "artifacts.list": {},
    "schedules.list": {},
    "keys.names": {},
    "keys.cooling.list": {},
    "access.list": {},
    "hooks.list": {},
    "hooks.deliveries": {"hook": "{hook}"},
}
# They are part of a method of another name.
PARTS = {"tasks.status", "tasks.outcome", "tasks.plan_outcome", "journal.next", "looks.uncertain", "artifacts.open"}
SUBMITS = {"submit", "submit_plan", "submit_team"}
PARTS |= {"context.get", "context.recent", "context.by_key"}


@pytest.mark.rule("client.same")
async def test_every_look_over_a_wire_has_the_value_of_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REMIT_MASTER_KEY", fresh_master().reveal())
    async with team(tmp_path / "team.db") as rt:
        build(rt)
        ws, client = rt.workspace, remote(rt)
        await ws.money.grant("$5", tokens=10)
        await ws.access.make("ci", scopes="run", bounds=Bounds(depth=2))
        hooks, _ = await sent_events(rt)
        await rt.outcome("broken", "x")
        await rt.submit("asker", "x")
        question = await anext(aiter(ws.questions.asked()))
        await ws.agents.trip("worker", "broken", by="ann")
        await ws.agents.reset("worker")
        run = (await rt.outcome("lead", "go")).id
        assert {*READS, *PARTS} == {name for name, call in CALLS.items() if not call.acts} - SUBMITS
        for name, words in READS.items():
            given = json.loads(
                json.dumps(words).replace("{run}", run).replace("{question}", question.id).replace("{hook}", hooks[0])
            )
            here, there = await attrgetter(name)(ws)(**given), await attrgetter(name)(client)(**given)
            assert type(here) is type(there), name
            assert timeless(here) == timeless(there), name


def timeless(value: Any) -> Any:
    """A value without the time at which processes were looked at."""
    if isinstance(value, Crew):
        return replace(value, at=0)
    return value._replace(crew=timeless(value.crew)) if hasattr(value, "crew") else value


@pytest.mark.rule("client.same")
async def test_changes_over_a_wire_are_those_of_the_workspace(tmp_path: Path):
    async with team(tmp_path / "team.db") as rt:
        build(rt)
        client = remote(rt)
        task = await client.submit("worker", "x", key="one", within=Bounds(depth=2), tags=["weekly"])
        assert (await task.wait(10)).value == "done"
        assert (await client.submit("worker", "x", key="one", within=Bounds(depth=2), tags=["weekly"])).existing
        assert (await task.status()).tags == ("weekly",)
        failed = await client.submit("broken", "x", attempts=1)
        assert (await failed.wait(10)).state == "failed"
        assert (await client.tasks.retry(failed.id)).id != failed.id
        planned = await client.submit_plan(Plan([Step("a", "A", agent="worker")], "all of it"))
        assert (await planned.wait(10)).ok
        context = client.context("s", by="ann")
        assert await context.set("notes", "k", {"a": 1}, 60, expect=0) == 1
        assert await context.board.set("k", "on the board") == 1
        assert ((await context.get("notes", "k")), await context.board.get("k")) == ({"a": 1}, "on the board")
        assert [one.key for one in await context.query("notes", prefix="")] == ["k"]
        assert [one.key for one in await context.query_many(["notes"])] == ["k"]
        assert (await context.touch("notes", "k", 120), await context.remove("notes", "k")) == (True, True)
        with pytest.raises(Conflict):
            await context.set("notes", "k", 1, expect=7)
        with pytest.raises(NotFound, match="there is no run or task 'nothing'"):
            await client.looks.detail("nothing")
        with pytest.raises(BadInput, match="state"):
            await client.tasks.list(state="odd")
        root = await client.tree(planned.id)
        assert root is not None
        assert root == await rt.workspace.tree(planned.id)


@pytest.mark.rule("client.same")
async def test_questions_and_events_arrive_over_a_wire():
    async with team(keep_events=10) as rt:
        build(rt)
        client = remote(rt)
        for _ in range(5):
            await rt.run("worker", "x")
        asked = await rt.submit("asker", "x")
        async for question in client.questions.asked():
            await question.answer("blue", by="ann")
            break
        assert (await asked.wait(10)).value == "blue"
        seen = [event async for events in client.journal.follow(live=False, limit=3) for event in events]
        assert seen == await rt.workspace.journal.history()
        known = [one async for page in client.journal.follow(live=False, gaps=True) for one in page]
        assert known == [one async for page in rt.workspace.journal.follow(live=False, gaps=True) for one in page]
        with anyio.fail_after(10):
            async with client.journal.follow(kinds=["task.completed"]) as follow:
                await rt.run("worker", "x")
                assert [event.kind for event in await follow.next(10)] == ["task.completed"]


@pytest.mark.rule("client.same")
def test_every_error_arrives_as_what_it_is():
    def walk(kind: type[RemitError]) -> list[type[RemitError]]:
        return [kind, *(one for below in kind.__subclasses__() for one in walk(below))]

    for kind in walk(RemitError):
        names = ("rule",) if issubclass(kind, Refused) else ("agent", "task") if issubclass(kind, Failed) else ()
        error = kind("a sentence", **{name: f"the {name}" for name in names})
        back = error_restored(json.loads(json.dumps(error_data(error))))
        assert (type(back), str(back), back.retryable) == (kind, "a sentence", error.retryable)
        assert {name: getattr(back, name) for name in names} == {name: f"the {name}" for name in names}
        error.retryable = not error.retryable
        assert error_restored(error_data(error)).retryable is error.retryable
    assert type(error_restored({"code": "unheard-of", "detail": "x"})) is RemitError
    late = error_restored(json.loads(json.dumps(error_data(TooMany("wait", seconds=7)))))
    assert isinstance(late, TooMany)
    assert late.seconds == 7


@pytest.mark.rule("client.name")
async def test_a_request_cannot_say_in_whose_name_it_is_made():
    with team(clock=FakeClock()) as rt:
        build(rt)
        who = ActsFor("a1", "access:a1", "lead", Bounds(depth=3), "a1/{}".format)
        for name in ("asker", "under", "ceiling", "told", "trace"):
            with pytest.raises(BadInput, match="cannot be set in a request"):
                await perform(rt.workspace, "submit", {"agent": "worker", name: "x"}, who)
        client = remote(rt, who._replace(agent="", bounds=ActsFor().bounds))
        task = await client.submit("worker", "x", by="boss", key="k")
        assert (await task.status()).by == "access:a1"
        assert not (await remote(rt).submit("worker", "x", key="k")).existing
        with pytest.raises(Refused, match="only an owner"):
            await remote(rt, who).money.grant("$5")
        with pytest.raises(NotFound, match="no such call"):
            await perform(rt.workspace, "close", {})
        with pytest.raises(BadInput):
            await perform(rt.workspace, "tasks.cancel", {"task": "x", "odd": 1})
        with pytest.raises(BadInput, match="works on the store itself"):
            await client.journal.read(lambda view: view.head())

"""Whatever is said wrongly is told when it is said: a sentence, never a crash, and nothing is left behind."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, sound
from engine.talking import Talk
from remit import Bounds, Card, Command, Pass, Plan, Runtime, Scope, Send, Step, Turn, Workspace
from remit.engine.asking import (
    Along,
    DelegatingTeam,
    Planning,
    Queueing,
    Starting,
    StartingPlan,
    Submitting,
    SubmittingPlan,
)
from remit.engine.context import Board, Context
from remit.engine.money_and_people import Calling
from remit.errors import BadInput, RemitError, StoreError
from remit.ports.models import ToolCall
from remit.runtime.filters import EventFilter, HistoryFilter, RunFilter, StatsFilter, TaskFilter
from remit.runtime.models import AboutModel
from remit.settings import BreakerPolicy, Pace, Policy, Serving, System
from teams import echo, team

pytestmark = pytest.mark.anyio

WRONG: list[Any] = [
    *(math.nan, math.inf, -math.inf, 1.5, -1, 0, 2**70, -(2**70), True, False),
    *("5", "", "*", "off", "\0", "\ud800", "no such thing", b"x", None, object(), repr),
    *([], ["s"], [None], [["s"]], {}, {"a": 1}, {1: 2}, (), (1, 2, 3), {"x"}, frozenset({1}), 1j, Ellipsis),
]

Call = Callable[..., Any]


async def settled(made: object) -> object:
    """What comes of a call, awaited if it is to be awaited."""
    if inspect.isasyncgen(made):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                return await anext(made, None)
    if inspect.isawaitable(made):
        async with asyncio.timeout(PATIENCE):
            return await made
    return made


async def tell(call: Call, kwargs: dict[str, Any], name: str, value: object, where: str) -> str:
    """Call with one thing wrong: it is taken, or there is a sentence of ours."""
    try:
        await settled(call(**{**kwargs, name: value}))
    except StoreError as error:
        return f"{where}({name}={value!r}) came as far as the store: {error}"
    except RemitError as error:
        return "" if str(error) else f"{where}({name}={value!r}) says nothing"
    except Exception as error:
        return f"{where}({name}={value!r}) raised {type(error).__name__}: {error}"
    return ""


def parameters(call: Call, *more: type) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = [name for name, one in inspect.signature(call).parameters.items() if one.kind not in kinds and name != "self"]
    return [*own, *(name for typed in more for name in typed.__annotations__)]


async def walk(owner: object, table: dict[str, tuple[dict[str, Any], tuple[type, ...]]]) -> None:
    wrong: list[str] = []
    for name, (kwargs, more) in table.items():
        call = getattr(owner, name)
        for parameter in [*parameters(call, *more), "no_such_keyword"]:
            for value in WRONG:
                if parameter == "no_such_keyword" and not more:
                    continue
                if callable(value) and callable(kwargs.get(parameter)):
                    continue  # what a function of the caller's does is the caller's
                if parameter == "approve_steps" and value is True:
                    continue  # a person is asked
                wrong.append(await tell(call, kwargs, parameter, value, f"{type(owner).__name__}.{name}"))
    assert not "\n".join(filter(None, wrong))


def public(owner: type) -> Iterator[str]:
    for name in dir(owner):
        value = inspect.getattr_static(owner, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, property):
            yield name


PLAN = Plan([Step("a", "A", agent="ok")])


async def passing(_turn: Turn, go: Callable[[], Awaitable[object]]) -> object:
    return await go()


def objecting_to_nothing(_hop: object) -> None: ...


OF_RUNTIME: dict[str, tuple[dict[str, Any], tuple[type, ...]]] = {
    "agent": ({}, ()),
    "add": ({"card": Card("new"), "answer": echo}, ()),
    "model_agent": ({"name": "x", "model": "test"}, (AboutModel,)),
    "tool": ({"function": echo}, ()),
    "around": ({"function": passing}, ()),
    "guard": ({"function": objecting_to_nothing}, ()),
    "stack": ({"name": "ok"}, ()),
    "override": ({}, ()),
    "run": ({"agent": "ok", "task": "x"}, (Starting,)),
    "outcome": ({"agent": "ok", "task": "x"}, (Starting,)),
    "stream": ({"agent": "ok", "task": "x"}, (Starting,)),
    "run_plan": ({"plan": PLAN}, (StartingPlan, Starting, Planning)),
    "run_team": ({"goal": "x", "coordinator": "boss"}, (StartingPlan, Starting, Planning)),
    "stream_plan": ({"plan": PLAN}, (StartingPlan, Starting, Planning)),
    "stream_team": ({"goal": "x", "coordinator": "boss"}, (StartingPlan, Starting, Planning)),
    "submit": ({"agent": "ok", "task": "x"}, (Submitting, Starting)),
    "submit_plan": ({"plan": PLAN}, (SubmittingPlan,)),
    "submit_team": ({"goal": "x", "coordinator": "boss"}, (SubmittingPlan,)),
    "drain": ({}, ()),
    "at": ({}, ()),
}
NOT_WALKED = {"cards", "available", "serve", "serving", "lend", "running", "close"}  # they take nothing

OF_WORKSPACE: dict[str, dict[str, tuple[dict[str, Any], tuple[type, ...]]]] = {
    "": {
        "submit": ({"agent": "ok", "task": "x"}, (Submitting, Starting)),
        "submit_plan": ({"plan": PLAN}, (SubmittingPlan,)),
        "submit_team": ({"goal": "x", "coordinator": "boss"}, (SubmittingPlan,)),
        "tree": ({"run": "x"}, ()),
        "wait_all": ({"run": "x"}, ()),
        "fork": ({"run": "x"}, ()),
        "stats": ({}, (StatsFilter,)),
        "edges": ({}, (StatsFilter,)),
        "prune": ({"days": 4}, ()),
    },
    "tasks": {
        "words": ({"hear": print}, ()),
        "get": ({"task": "x"}, ()),
        "list": ({}, (TaskFilter,)),
        "runs": ({}, ()),
        "cancel": ({"task": "x"}, ()),
        "retry": ({"task": "x"}, ()),
        "orphans": ({}, ()),
    },
    "journal": {
        "history": ({}, (HistoryFilter, EventFilter)),
        "follow": ({}, (EventFilter,)),
        "gaps": ({}, ()),
        "read": ({"look": lambda view: view.head()}, ()),
    },
    "money": {
        "grant": ({"amount": "$1"}, ()),
        "reconcile": ({"hold": "x", "cost": "$1"}, ()),
        "unfreeze": ({}, ()),
        "spend": ({}, ()),
    },
    "questions": {
        "list": ({}, ()),
        "get": ({"id": "x"}, ()),
        "approve": ({"question": "x"}, ()),
        "reject": ({"question": "x"}, ()),
        "answer": ({"question": "x", "value": "y"}, ()),
    },
    "agents": {
        "find": ({"wanted": "x"}, ()),
        "trip": ({"agent": "ok", "why": "x"}, ()),
        "reset": ({"agent": "ok"}, ()),
        "withdraw": ({"agent": "ok"}, ()),
    },
    "access": {"make": ({"name": "x"}, ()), "revoke": ({"id": "x"}, ())},
    "context": {},
    "hooks": {
        "add": ({"url": "https://example.com/hook", "kinds": ["task.completed"]}, ()),
        "remove": ({"hook": "x"}, ()),
        "rotate": ({"hook": "x"}, ()),
        "deliveries": ({"hook": "x"}, ()),
        "replay": ({"delivery": "x"}, ()),
    },
    "looks": {
        "task": ({"part": "x"}, ()),
        "run": ({"part": "x"}, ()),
        "tasks": ({}, (TaskFilter,)),
        "runs": ({}, (RunFilter,)),
        "detail": ({"part": "x"}, ()),
        "records": ({"tasks": ["x"]}, ()),
        "below": ({"part": "x"}, ()),
        "has_ended": ({"task": "x"}, ()),
        "part": ({"part": "x"}, ()),
        "tree": ({"part": "x"}, ()),
        "talk": ({"part": "x"}, ()),
        "answers": ({"events": [1]}, ()),
        "question": ({"part": "x"}, ()),
        "uncertain": ({"part": "x"}, ()),
        "entries": ({"namespace": "n"}, ()),
        "entry": ({"namespace": "n", "key": "k"}, ()),
        "prunable": ({"days": 4}, ()),
        "versions": ({"namespace": "n", "key": "k"}, ()),
        "readers": ({"namespace": "n", "key": "k"}, ()),
        "stats": ({"by": "day"}, (StatsFilter,)),
        "spend": ({}, (StatsFilter,)),
    },
}
TAKE_NOTHING = {
    "": {"check", "close"},
    "tasks": {"progress"},
    "money": {"account", "leases", "uncertain", "limits"},
    "questions": {"asked"},
    "agents": {"list", "workers", "breakers"},
    "access": {"list"},
    "context": {"namespaces", "cleanup"},
    "looks": {"open_events", "head", "cards", "ledger"},
    "hooks": {"list"},
}
OF_CONTEXT: dict[str, tuple[dict[str, Any], tuple[type, ...]]] = {
    "set": ({"namespace": "n", "key": "k", "value": 1}, ()),
    "set_with_extension": ({"namespace": "n", "key": "k", "value": 1}, ()),
    "get": ({"namespace": "n", "key": "k"}, ()),
    "entry": ({"namespace": "n", "key": "k"}, ()),
    "get_structured": ({"namespace": "n", "key": "k"}, ()),
    "query": ({"namespace": "n", "prefix": "k"}, ()),
    "query_many": ({"namespaces": ["n"]}, ()),
    "touch": ({"namespace": "n", "key": "k"}, ()),
    "remove": ({"namespace": "n", "key": "k"}, ()),
}
OF_BOARD: dict[str, tuple[dict[str, Any], tuple[type, ...]]] = {
    "set": ({"key": "k", "value": 1}, ()),
    "get": ({"key": "k"}, ()),
    "query": ({}, ()),
    "entry": ({"key": "k"}, ()),
    "remove": ({"key": "k"}, ()),
}
_WITHOUT_WORDS = ("spawn", "agents", "inbox", "ask_human", "ask_approval", "prompt", "talk_so_far", "talks", "offers")
OF_TURN: dict[str, tuple[dict[str, Any], tuple[type, ...]]] = {
    "data_as": ({"kind": object}, ()),
    "delegate": ({"to": "ok", "task": "x"}, (Along,)),
    "delegate_all": ({"wishes": [("ok", "x")]}, (Along,)),
    "hand_off": ({"to": "ok"}, ()),
    "run_plan": ({"plan": PLAN}, (Planning,)),
    "run_team": ({"goal": "x", "coordinator": "boss"}, (DelegatingTeam,)),
    "report_tokens": ({"tokens": 1}, ()),
    "progress": ({"text": "3 of 10"}, ()),
    "find": ({"capability": "x"}, ()),
    "submit": ({"to": "ok", "task": "x"}, (Queueing, Along)),
    "submitted": ({"task": "x"}, ()),
    "once": ({"name": "n", "do": lambda: 1}, ()),
    "outcome": ({"to": "ok", "task": "x"}, (Along,)),
    "begin_talk": ({"begins": "d"}, ()),
    "kept_answers": ({}, ()),
    "model": ({"call": Talk("x").call()}, ()),
    "tool": ({"call": ToolCall("look", {}, "c"), "do": echo}, ()),
    "mark_untrusted": ({"source": "a page", "text": "buy"}, ()),
    "send": ({"to": "ok", "text": "x"}, ()),
    "spend": ({"amount": "$0.01", "why": "x"}, ()),
    "paid_call": ({"amount": "$0.01", "why": "x"}, (Calling,)),
}
VALUES: dict[str, tuple[Call, dict[str, Any]]] = {
    "Bounds": (Bounds, {}),
    "Card": (Card, {"name": "x"}),
    "Pass": (Pass, {"to": "x", "task": "x"}),
    "Plan": (Plan, {"steps": []}),
    "Step": (Step, {"id": "a", "title": "A"}),
    "Command": (Command, {"goto": "x"}),
    "Send": (Send, {"agent": "x", "payload": "x"}),
    "Scope": (Scope, {"namespace": "x"}),
    "Policy": (Policy, {}),
    "Serving": (Serving, {}),
    "Pace": (Pace, {}),
    "System": (System, {}),
    "a breaker's policy": (lambda **how: Policy(breaker=BreakerPolicy(**how)), {}),
    "Runtime": (Runtime, {}),
    "Workspace": (Workspace, {}),
}


@pytest.fixture
def crew() -> Iterator[Runtime]:
    with team() as rt:

        @rt.agent
        async def ok(turn: Turn) -> int:
            return 1

        @rt.agent(asks="*")
        async def boss(turn: Turn) -> object:
            return {"steps": [{"id": "a", "title": "A", "agent": "ok"}]} if turn.phase == "plan" else "done"

        yield rt


async def nothing_is_left(rt: Runtime) -> None:
    await rt.drain(PATIENCE)
    assert rt.running() == 0
    left = [one for one in await rt.workspace.tasks.list(state="open") if one.state != "pending"]
    assert left == []
    await sound(rt)


@pytest.mark.rule("input.told")
@pytest.mark.parametrize("name", VALUES)
async def test_a_value_that_cannot_be_used_is_refused_when_it_is_made(name: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, kwargs = VALUES[name]
    target = BreakerPolicy if name == "a breaker's policy" else make
    wrong = [await tell(make, kwargs, one, value, name) for one in parameters(target) for value in WRONG]
    assert not "\n".join(filter(None, wrong))


@pytest.mark.untraced
@pytest.mark.rule("input.told")
async def test_whatever_is_said_to_a_runtime_is_done_or_refused_with_a_sentence(crew: Runtime, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {*OF_RUNTIME, *NOT_WALKED} == {*public(Runtime)}, "add a row to OF_RUNTIME"
    await walk(crew, {name: row for name, row in OF_RUNTIME.items() if name != "drain"})
    await nothing_is_left(crew)


@pytest.mark.rule("input.told")
@pytest.mark.parametrize("group", OF_WORKSPACE)
async def test_whatever_is_said_to_a_workspace_is_done_or_refused_with_a_sentence(crew: Runtime, group: str):
    asked = getattr(crew.workspace, group) if group else crew.workspace
    listed = {*OF_WORKSPACE[group], *TAKE_NOTHING.get(group, ())}
    assert listed == {*public(type(asked))}, "add a row to OF_WORKSPACE, or the name to TAKE_NOTHING"
    await walk(asked, OF_WORKSPACE[group])
    await nothing_is_left(crew)


@pytest.mark.rule("input.told")
@pytest.mark.parametrize("who", ["owner", "agent"])
async def test_whatever_is_said_to_a_context_or_a_board_is_done_or_refused_with_a_sentence(crew: Runtime, who: str):
    assert {*OF_CONTEXT} == {*public(Context)}
    assert {*OF_BOARD, "snapshot"} == {*public(Board)}

    @crew.agent(reads="*")
    async def keeper(turn: Turn) -> None:
        await walk(turn.context, OF_CONTEXT)
        await walk(turn.context.board, OF_BOARD)

    if who == "agent":
        await crew.run("keeper", "x")
    else:
        await walk(crew.workspace.context("s"), OF_CONTEXT)
        await walk(crew.workspace.context("s").board, OF_BOARD)
    await nothing_is_left(crew)


@pytest.mark.rule("input.told")
async def test_whatever_an_agent_says_is_done_or_refused_with_a_sentence(crew: Runtime):
    assert {*OF_TURN, *_WITHOUT_WORDS} == {*public(Turn)}, "add a row to OF_TURN"

    @crew.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await walk(turn, OF_TURN)

    await crew.run("lead", "x")
    await nothing_is_left(crew)


@pytest.mark.rule("input.told")
async def test_whatever_is_said_to_a_task_is_done_or_refused_with_a_sentence(crew: Runtime):
    async def fails(turn: Turn) -> None:
        raise ValueError("no")

    crew.add(Card("bad"), fails)
    task = await crew.submit("bad", "x")
    assert (await task.wait(PATIENCE)).state == "failed"
    await walk(task, {"wait": ({}, ()), "result": ({}, ()), "cancel": ({}, ())})
    await nothing_is_left(crew)


# -- the sentences -------------------------------------------------------------------------------------------


@pytest.mark.rule("input.told", "input.keywords")
@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda rt: rt.run("ok", "x", seconds=5), "run takes no 'seconds'; did you mean timeout?"),
        (lambda rt: rt.run_plan(PLAN, seconds=5), "run_plan takes no 'seconds'; did you mean timeout?"),
        (lambda rt: rt.submit("ok", "x", idempotency_key="k"), "submit takes no 'idempotency_key'; did you mean key?"),
        (lambda rt: rt.run_plan(PLAN, concurrency=math.nan), "concurrency is a whole number from 1 to 10,000, not nan"),
        (lambda rt: rt.run_plan(PLAN, concurrency="5"), "concurrency is a whole number from 1 to 10,000, not '5'"),
        (lambda rt: rt.run_plan(PLAN, abort=True), "abort is an anyio.Event()"),
        (lambda rt: rt.run_plan(PLAN, reveal="no"), "reveal is True or False, not 'no'"),
        (lambda rt: rt.run("ok", "x", handoffs="off"), "handoffs is True or False, not 'off'"),
        (lambda rt: rt.run("ok", "x", tier="complx"), "did you mean complex?"),
        (lambda rt: rt.workspace.tasks.list(state=["open"]), "state is open or one of"),
        (lambda rt: rt.workspace.tasks.list(state="faild"), "did you mean failed?"),
        (lambda rt: rt.workspace.tasks.list(session=["s"]), "a session must be text, not list"),
        (lambda rt: rt.workspace.journal.history(run=["x"]), "a run's id must be text, not list"),
        (lambda rt: rt.workspace.journal.history(kinds="task.started"), "kinds is a list"),
        (lambda rt: rt.workspace.journal.history(kinds=["task.startd"]), "did you mean task.started?"),
        (lambda rt: rt.workspace.tasks.orphans("x"), "limit is a whole number from 1"),
        (lambda rt: rt.workspace.context().query_many(5), "query_many takes a list of namespaces, not 5"),
        (lambda rt: rt.workspace.context(5).board.query(), "a session must be text, not int"),
        (lambda rt: rt.run_team("g", "ok", {"tier": "complex"}), "run_team takes no more than goal and coordinator"),
        (lambda rt: rt.workspace.agents.trip("nobdy", "typo"), "there is no agent 'nobdy'; did you mean nobody?"),
        (lambda rt: rt.workspace.agents.reset("nobdy"), "there is no agent 'nobdy'; did you mean nobody?"),
        (lambda rt: rt.workspace.tasks.list(agent="nobdy", limit=0), "limit is a whole number from 1"),
    ],
)
@pytest.mark.case("bad_input")
async def test_what_is_said_wrongly_is_told_with_what_is_allowed(
    call: Callable[[Runtime], Awaitable[object]], sentence
):
    with team() as rt:
        for name in ("ok", "nobody"):
            rt.add(Card(name), echo)
        with pytest.raises((BadInput, LookupError)) as info:
            await call(rt)
        assert sentence in str(info.value)
        assert await rt.workspace.tasks.list() == []
        assert await rt.workspace.agents.breakers() == {}
        await nothing_is_left(rt)


@pytest.mark.rule("input.told")
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Policy(breaker=BreakerPolicy(cool_off=math.nan)), "cool_off must be a positive number of seconds"),
        (lambda: Policy(breaker=BreakerPolicy(failures=0)), "failures is a whole number of at least 1"),
        (lambda: Policy(breaker=BreakerPolicy(probe="5")), "probe is a number of seconds, not '5'"),
        (lambda: Policy(classify="medium"), "classify is a function from a task to a tier's name, not 'medium'"),
        (lambda: Pace(poll_interval=math.nan), "poll_interval must be a positive number of seconds"),
        (lambda: Pace(money_timeout=-1), "money_timeout must be a positive number of seconds, got -1"),
        (lambda: Pace(busy_timeout="long"), "busy_timeout is a number of seconds, not 'long'"),  # type: ignore[arg-type]
        (lambda: Pace(retry_store=0.1), "retry_store is a list of seconds, not 0.1"),
        (lambda: Runtime(policy=Serving()), "policy takes Policy(...)"),
        (lambda: Runtime(serving={"hands": 3}), "serving takes Serving(...)"),
        (lambda: System(clock=None), "clock takes a clock"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_when_they_are_made(make: Callable[[], object], sentence: str):
    with pytest.raises(BadInput) as info:
        make()
    assert sentence in str(info.value)


async def test_an_abort_that_is_an_event_of_asyncio_will_do_too(crew: Runtime):
    for event in (anyio.Event(), asyncio.Event()):
        assert (await crew.run_plan(PLAN, abort=event)).ok  # pyright: ignore[reportArgumentType]

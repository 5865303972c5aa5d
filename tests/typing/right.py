"""What a type checker must accept: every keyword of a verb, and what comes back has a type that can be named."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypedDict, assert_type

from anyio import from_thread

from remit import (
    BOARD,
    END,
    Bounds,
    Card,
    Command,
    Outcome,
    Pass,
    Plan,
    Runtime,
    Scope,
    Send,
    Step,
    Task,
    Turn,
    Workspace,
    run,
)
from remit.errors import Conflict, NotFound
from remit.settings import BreakerPolicy, Limit, Loops, Pace, Policy, Serving, System
from remit.testing import CountedIds, FakeClock, Scripted
from remit.testing.models import Calls, Fails, Says, model_server
from remit.types import Entry, Event, Finding, Handoff, HandoffState, Health, Match, Message, Node, Status, StepOutcome

rt = Runtime(
    "team.db",
    workspace="shop",
    bounds=Bounds(agents=["coder"], tools="*", sees=["spec"], depth=4, deadline=datetime(2030, 1, 1, tzinfo=UTC)),
    policy=Policy(breaker=BreakerPolicy(failures=5), classify=lambda task: "simple", concurrency=10),
    serving=Serving(concurrency=0, heartbeat_timeout=5, keep_days=None, pace=Pace(poll_interval=0.5)),
    system=System(clock=FakeClock(), ids=CountedIds()),
)
rt.add(Card("scripted", can=["answer"], asks="*", reads=[BOARD, Scope("spec", prefix="a")]), Scripted("yes"))
Bounds(credits="0.50 USD")
Bounds(credits=0)
Pass("coder", "write it", sees=["spec"], tools=["read_file"], within=Bounds(credits="$0.50", handoffs=2, members=3))


@rt.agent
async def coder(turn: Turn) -> str:
    answer: str = await turn.delegate("reviewer", "look", sees=["code"], tools="*", within=Bounds(depth=1), timeout=9)
    outcomes: list[Outcome] = await turn.delegate_all([("reviewer", "look")], concurrency=2, sees="*")
    task: Task = await turn.submit(capability="review", task="later", key="k", attempts=2)
    status: Status = await task.status()
    handoff: Handoff = turn.handoff
    state: HandoffState = handoff.state
    messages: list[Message] = await turn.inbox()
    entry: Entry | None = await turn.context.entry("code", "auth")
    await turn.context.set("code", "auth", {"lines": [1, 2]}, ttl=60, trust="untrusted", expect=0)
    return f"{answer} {outcomes} {status.state} {state} {messages} {entry} {'exec' in turn.tools} {turn.agents()}"


@rt.agent("the reviewer", role="reviews", can="review", asks=["coder"], reads=[BOARD, Scope("a")], concurrency=2)
async def reviewer(turn: Turn) -> Command:
    if turn.phase:
        return Command(END, result={"done": True})
    if turn.task:
        return Command([Send("coder", {"part": 1})], join="coder")
    return await turn.hand_off("coder", {"phase": "write", "context": {"order": 1}})


@dataclass
class Review:
    verdict: str


class Verdict(TypedDict):
    verdict: str


@rt.agent(output=Review, asks="*")
async def typed(turn: Turn) -> Review:
    first: Review = await turn.delegate("reviewer", "look", returns=Review, timeout=9)
    several: list[Review] = await turn.delegate(capability="review", task="look", returns=list[Review])
    as_dict: Verdict = await turn.delegate("reviewer", "look", returns=Verdict)
    maybe: Review | None = await turn.delegate("reviewer", "look", returns=Review | None)
    word: Literal["ship", "wait"] = await turn.delegate("reviewer", "look", returns=Literal["ship", "wait"])
    later: Review = await (await turn.submit("reviewer", "look")).result(9, returns=Review)
    print(several, as_dict["verdict"], maybe, word, later.verdict)
    return first


@rt.agent
def plain(turn: Turn) -> str:
    answer: str = from_thread.run(turn.delegate, "reviewer", turn.task)
    return answer


@rt.agent
async def with_deps(turn: Turn[Review]) -> str:
    assert_type(turn.deps, Review)
    about: tuple[str, str, str, int] = (turn.id, turn.session, turn.by, turn.attempt)
    return f"{turn.deps.verdict} {about}"


async def owner(workspace: Workspace) -> None:
    review: Review = await rt.run("typed", "go", returns=Review, session="monday")
    assert_type(review, Review)
    assert_type(await rt.run("typed", "go", returns=list[Review]), list[Review])
    assert_type(run(rt, "typed", "go", returns=Review), Review)
    outcome: Outcome = await rt.outcome("coder", "go", session="monday", tier="simple", handoffs=False, by="ada")
    plan = await rt.run_plan(Plan([Step("a", "A", agent="coder")]), concurrency=2, reveal=True, tier="complex")
    steps: dict[str, StepOutcome] = plan.steps
    events: list[Event] = await workspace.journal.history(run=outcome.id, kinds=frozenset({"task.started"}), limit=5)
    root: Node | None = await workspace.tree(outcome.id)
    health: Health = await workspace.check()
    findings: list[Finding] = health.findings
    matches: list[Match] = await workspace.agents.find("review")
    tasks: list[Status] = await workspace.tasks.list(state="open", agent="coder", limit=5)
    async with rt.serving():
        print(steps, events, root, findings, matches, tasks)
    with rt.override(coder=Scripted("no")):
        pass
    try:
        await workspace.tasks.cancel(outcome.id, op="once", by="ada")
    except (Conflict, NotFound):
        await rt.at("other.db", serving=Serving(concurrency=1)).run_team("a goal", "coder", reveal=True, session="s")


async def declared(turn: Turn) -> str:
    if turn.phase:
        return await turn.context.get("code", "auth")
    if turn.task:
        return await turn.run_team("a goal", "coder")
    if turn.by:
        return await (await turn.submit("reviewer", "look")).result()
    if turn.session:
        return await turn.once("charge", str, 5)
    return await turn.delegate("reviewer", "look")


def script() -> str:
    return run(rt, "coder", "go", timeout=5)


async def scripted() -> list[int]:
    answers = [Says("one"), Calls("look", {}), Fails(429)]
    async with model_server(answers):
        return await rt.run("coder", "go")


Policy(limits=[Limit("day", tasks=3)], loops=Loops(polls=["look"]))

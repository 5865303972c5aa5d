"""The demo's team: scripted agents, written the way a user would write them."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

from remit import Command, Plan, Refused, Runtime, Step, Turn

SPEC = "POST /login checks the password with argon2 and sets a session cookie"
CODE = "modules/auth: login(), logout(), a session store; 214 lines, 31 tests"
RESEARCH = Plan(
    (
        Step("today", "How do we store sessions today?", agent="docs-reader"),
        Step("advice", "What is the advice on argon2?", agent="web-reader"),
        Step("before", "Did we try this before?", agent="archivist"),
        Step("decision", "Decide how the login works", agent="architect", after=("today", "advice")),
    )
)


FAILING = "archivist"
PLACES = ("Lisbon", "Nairobi", "Osaka", "Quito")

Work: TypeAlias = Callable[[float], Awaitable[None]]


def team(store: str, pace: float) -> Runtime:
    """Return the team: a lead that plans, delegates and hands over, researchers, builders and a releaser."""
    rt = Runtime(store)

    async def work(seconds: float) -> None:
        await anyio.sleep(seconds * pace)

    @rt.agent(role="splits the work and puts the pieces together", asks="*")
    async def lead(turn: Turn) -> Command:
        await turn.context.set("spec", "auth", SPEC)
        steps = (await turn.run_plan(RESEARCH)).steps
        await turn.context.set("spec", "decision", steps["decision"].value)
        built = await turn.delegate("coder", "write the auth module", sees=["spec"])
        tests = await turn.delegate_all([("tester", f"sign in from {place}") for place in PLACES], credits="$0.08")
        asked = [steps[name] for name in ("today", "advice", "before")]
        research = f"{sum(step.state == 'completed' for step in asked)} of {len(asked)} researchers answered"
        research += f", {sum(test.ok for test in tests)} of {len(tests)} tests could be paid"
        return await turn.hand_off(
            "releaser", {"phase": "release", "context": {"research": research}, "artifacts": {"module": built}}
        )

    @rt.agent(can="release", needs_approval=True)  # a person must approve first
    async def releaser(turn: Turn) -> str:
        await work(0.4)
        state = turn.handoff.state
        return f"released for {turn.handoff.sender}: {state.artifacts['module']}; {state.context['research']}"

    _add_researchers(rt, work)
    _add_builders(rt, work)

    @rt.agent(can="try it out")
    async def tester(turn: Turn) -> str:
        await turn.spend("$0.05", why="a browser in the cloud")
        await work(0.4)
        return "signed in"

    return rt


def _add_researchers(rt: Runtime, work: Work) -> None:
    """Add the agents of the plan's steps; one of them fails."""

    @rt.agent(can="read documents")
    async def docs_reader(turn: Turn) -> str:
        await work(0.5)
        return "in a table, one row a session"

    @rt.agent(can="read the web")
    async def web_reader(turn: Turn) -> str:
        await work(0.9)
        await turn.send("architect", "the advice is from this spring")
        return "19 MiB of memory, two passes"

    @rt.agent(can="search old projects")
    async def archivist(turn: Turn) -> str:
        await work(0.3)
        raise ConnectionError("the archive is closed on Sundays")

    @rt.agent(can="decide")
    async def architect(turn: Turn) -> str:
        await work(0.4)
        return "argon2 with 19 MiB; keep the session table"


def _add_builders(rt: Runtime, work: Work) -> None:
    """Add a coder, a reviewer and a linter, each delegating to the next; two of them make a forbidden call."""

    @rt.agent(can="write code", asks=["reviewer"], reads=["codebase"], writes=["codebase"])
    async def coder(turn: Turn) -> str:
        spec = await turn.context.get("spec", "auth")
        decision = await turn.context.get("spec", "decision")
        await work(0.6)
        async with turn.paid_call("$0.30", why="a model that writes code") as call:
            await work(0.2)
            call.cost("$0.27")  # the rest of the hold is released
        await turn.context.set("codebase", "auth", f"{CODE}, after: {spec}; {decision}")
        verdict = await turn.delegate("reviewer", "review the auth module", sees=["codebase"])
        return f"auth module written, {verdict}"

    @rt.agent(can="review code", asks=["coder", "linter"])
    async def reviewer(turn: Turn) -> str:
        code = await turn.context.get("codebase", "auth")
        await work(0.4)
        try:
            await turn.delegate("coder", "explain the session store to me")
        except Refused:
            await work(0.2)  # the coder waits for this review: delegating back would be a loop
        style = await turn.delegate("linter", "check the style")
        return f"approved after reading {len(str(code).split())} words, {style}"

    @rt.agent(can="check style", asks=["speller"])
    async def linter(turn: Turn) -> str:
        try:
            await turn.delegate("speller", "check the comments")
        except Refused:
            await work(0.3)  # a fourth level is refused, so it does this part itself
        return "style is fine"

    @rt.agent(can="check spelling")
    async def speller(turn: Turn) -> str:
        return "no mistakes"

"""The agents of a chaos run: concurrent, with effects of equal names, lists that change, plans that are rewritten,
and parts that fail and are tried again. What is asked of them has a name of its own each, which its parts carry on."""

import asyncio
import hashlib
import time
from typing import Any

from remit import Command, Plan, Runtime, Scope, Send, Step, Turn
from torture.chaos.stage import OFTEN, Busy, Stage, answer, question

ROOTS = ("shop", "payroll", "planner", "boss", "chief", "stepper", "host", "triage", "lead", "stamper", "blocker")
BLOCKS = 2.6  # seconds, more than a process may be silent
FAILING = ("boss", "chief", "stepper")  # for a passing reason, and right when they are tried again
UNSURE = ("payroll",)  # whose list differs from life to life: a clear, final Conflict is as good an end as an answer
ATTEMPT = {"chief": 1.5}  # seconds that one attempt may take


def engage(rt: Runtime, stage: Stage) -> None:
    """Register all of them."""
    for some in (_shops, _planners, _bosses, _hosts, _desks, _reviewers):
        some(rt, stage)


def _shops(rt: Runtime, stage: Stage) -> None:
    """Effects of equal name: in concurrent flows, over a list that changes, twice with equal arguments; and one before
    and one after a time in which nothing else can run."""

    @stage.agent(rt, asks=["pricer"])
    async def shop(turn: Turn) -> object:
        async def flow(item: str) -> tuple[list[Any], list[str]]:
            await stage.pause(turn, item)
            price = await stage.ask(turn, "pricer", f"price of {item} for {question(turn)}")
            return price, await stage.effect(turn, "charge", f"{item} for {question(turn)}")

        flows = await asyncio.gather(*(flow(item) for item in stage.shuffled(turn, ("apples", "bread", "cheese"))))
        return answer(turn, parts=[price for price, _ in flows], effects=[charged for _, charged in flows])

    @stage.agent(rt)
    async def pricer(turn: Turn) -> object:
        await stage.pause(turn, "looking it up")
        return answer(turn)

    @stage.agent(rt)
    async def payroll(turn: Turn) -> object:
        people = ["ann", "bob", "cid"]
        lists = (people, people, people, [*people, "zoe"], ["zoe", *people], people[1:], people[::-1])
        chosen = stage.one_of(turn, lists)
        return answer(turn, effects=[await stage.effect(turn, "pay", f"{one} of {question(turn)}") for one in chosen])

    @stage.agent(rt)
    async def blocker(turn: Turn) -> object:
        locked = await stage.effect(turn, "lock", question(turn))
        if not stage.mended:
            time.sleep(BLOCKS)  # noqa: ASYNC251 - as a client does that knows nothing of loops
        return answer(turn, effects=[locked, await stage.effect(turn, "unlock", question(turn))])

    @stage.agent(rt)
    async def stamper(turn: Turn) -> object:
        return answer(turn, effects=[await stage.effect(turn, "stamp", question(turn), times=2) for _ in range(2)])


def _planners(rt: Runtime, stage: Stage) -> None:
    """Two plans at once, rewritten in each process: equal ids, and titles that have changed places."""

    @stage.agent(rt, asks=["answerer"])
    async def planner(turn: Turn) -> object:
        async def plan(colour: str) -> list[list[Any]]:
            titles = [f"{part} of {colour} for {question(turn)}" for part in ("capital", "river")]
            first, second = stage.shuffled(turn, titles, colour)
            steps = [Step("a", first, agent="answerer"), Step("b", second, agent="answerer", after=["a"])]
            return await _planned(turn, Plan(steps))

        red, blue = await asyncio.gather(*(plan(colour) for colour in ("red", "blue")))
        return answer(turn, parts=[*red, *blue])

    @stage.agent(rt)
    async def answerer(turn: Turn) -> object:
        # What it was told before its question is part of the question: with another context it is another effect.
        told = hashlib.sha256(turn.task.encode()).hexdigest()[:8]
        return answer(turn, effects=[await stage.effect(turn, "answer", f"{question(turn)} [{told}]")])

    @stage.agent(rt, asks=["mid"])
    async def stepper(turn: Turn) -> object:
        steps = [Step(one, f"{one} step of {question(turn)}", agent="mid", retries=2) for one in ("one", "two")]
        return answer(turn, parts=await _planned(turn, Plan(steps)))


async def _planned(turn: Turn, plan: Plan) -> list[list[Any]]:
    outcome = await turn.run_plan(plan)
    for step in outcome.steps.values():
        if step.state != "completed":
            raise Busy(f"step '{step.id}' {step.state}: {step.reason}")
    return [[step.title, step.value] for step in outcome.steps.values()]


def _bosses(rt: Runtime, stage: Stage) -> None:
    """A part in the middle fails or takes too long when what is below it has been paid."""

    @stage.agent(rt, asks=["mid"])
    async def boss(turn: Turn) -> object:
        return answer(turn, parts=[await stage.ask(turn, "mid", f"month end of {question(turn)}")])

    @stage.agent(rt, asks=["payer"])
    async def mid(turn: Turn) -> object:
        wages = await stage.ask(turn, "payer", f"wages for {question(turn)}")
        booked = await stage.effect(turn, "book", question(turn))
        if stage.fails(turn, "mid"):
            raise Busy("the mail server is busy")
        return answer(turn, parts=[wages], effects=[booked])

    @stage.agent(rt)
    async def payer(turn: Turn) -> object:
        return answer(turn, effects=[await stage.effect(turn, "wire", question(turn))])

    @stage.agent(rt, asks=["napper"])
    async def chief(turn: Turn) -> object:
        return answer(turn, parts=[await stage.ask(turn, "napper", f"watch of {question(turn)}")])

    @stage.agent(rt, asks=["payer"])
    async def napper(turn: Turn) -> object:
        wages = await stage.ask(turn, "payer", f"wages for {question(turn)}")
        if stage.fails(turn, "napper"):
            await asyncio.sleep(3 * ATTEMPT["chief"])  # longer than whoever asked has
        return answer(turn, parts=[wages])


def _hosts(rt: Runtime, stage: Stage) -> None:
    """Tasks beside their asker, under keys, announced to it."""

    @stage.agent(rt, asks=["guest"])
    async def host(turn: Turn) -> object:
        dishes = [f"{dish} for {question(turn)}" for dish in ("soup", "roast", "cake")]
        spawned = [await turn.spawn("guest", dish, key=dish, attempts=OFTEN) for dish in dishes]
        wine = f"wine for {question(turn)}"
        submitted = await turn.submit("guest", wine, attempts=OFTEN)
        parts = [[dish, await one.result()] for dish, one in zip(dishes, spawned, strict=True)]
        parts.append([wine, await submitted.result()])
        heard: list[str] = []
        for _ in range(20):
            heard += [message.about for message in await turn.inbox()]
            if len(heard) >= len(spawned):
                break
            await asyncio.sleep(0.02)
        return answer(turn, parts=parts, spawned=[one.id for one in spawned], heard=heard)

    @stage.agent(rt)
    async def guest(turn: Turn) -> object:
        return answer(turn, effects=[await stage.effect(turn, "serve", question(turn))])


def _desks(rt: Runtime, stage: Stage) -> None:
    """A case that changes hands, goes out in parts, two of them equal, and comes back."""

    @stage.agent(rt, asks=["middle"])
    async def triage(turn: Turn) -> object:
        looked = await stage.effect(turn, "look", question(turn))
        return Command("middle", {"context": {"looked": looked}})

    @stage.agent(rt, asks=["part"])
    async def middle(turn: Turn) -> object:
        texts = [f"{part} of {question(turn)}" for part in ("first", "first", "second")]
        if turn.handoff.results:
            parts = [[text, one.unwrap()] for text, one in zip(texts, turn.handoff.results, strict=True)]
            return answer(turn, parts=parts, effects=[turn.handoff.state.context["looked"]])
        await stage.effect(turn, "sort", question(turn))
        return Command([Send("part", text) for text in texts])

    @stage.agent(rt)
    async def part(turn: Turn) -> object:
        times = 2 if question(turn).startswith("first") else 1
        return answer(turn, effects=[await stage.effect(turn, "part", question(turn), times)])


def _reviewers(rt: Runtime, stage: Stage) -> None:
    """Equal questions that differ only in what goes along with them."""

    @stage.agent(rt, asks=["pricer", "reviewer"], reads=["code"], writes=["code"])
    async def lead(turn: Turn) -> object:
        async def review(module: str) -> list[list[Any]]:
            part = f"{module} of {question(turn)}"
            await turn.context.set("code", part, part)
            waited = await stage.ask(turn, "pricer", f"price of {part}")
            text = f"review for {question(turn)}"
            seen = await turn.delegate("reviewer", text, sees=[Scope("code", key=part)])
            return [waited, [f"{text} seeing {part}", seen]]

        modules = await asyncio.gather(*(review(module) for module in stage.shuffled(turn, ("auth", "cart"))))
        return answer(turn, parts=[part for parts in modules for part in parts])

    @stage.agent(rt)
    async def reviewer(turn: Turn) -> object:
        entries = await turn.context.query("code")
        return answer(turn, seeing=", ".join(str(entry.value) for entry in entries))

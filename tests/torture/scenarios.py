"""What a team does while it is being killed, and the world outside of its store.

Each scenario registers agents and asks them for something, the same in every life: whoever asks again after a crash
asks under the same key, as a client would. Texts of tasks and names of effects are unique within a scenario, so that
what is done can be counted outside of the store.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from remit import END, Bounds, Card, Command, Plan, Runtime, Send, Step, Task, Turn, Workspace
from remit.core.lifecycle import TERMINAL
from remit.core.question import Inquiry
from remit.errors import Conflict, Refused
from remit.ports import FAULTS, Fault, no_fault
from remit.runtime.workspace import subscribe

# Where a process is killed: in the store, and at what its agents and its clients do.
OUTSIDE = ("agent.begins", "agent.returns", "effect.before", "effect.after", "client.asks", "client.acked")
RIVAL = "rival."  # before a hook that the other process reaches
HOOKS = (*FAULTS, *OUTSIDE)
EVERY_HOOK = (*HOOKS, *(f"{RIVAL}{hook}" for hook in HOOKS))


class World:
    """A file of lines that no crash takes back: what really happened, in which life."""

    def __init__(self, path: Path, life: int = 0, doom: Fault = no_fault) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
        self._path = path
        self.life = life
        self.at = doom
        self.noted = asyncio.Event()

    def close(self) -> None:
        os.close(self._file)

    def note(self, kind: str, *what: object) -> None:
        os.write(self._file, json.dumps([self.life, kind, *what]).encode() + b"\n")
        self.noted.set()

    def notes(self, kind: str) -> list[list[Any]]:
        """The life, and what was noted in it."""
        lines = (json.loads(line) for line in self._path.read_text().splitlines())
        return [[life, *what] for life, found, *what in lines if found == kind]

    def effect(self, name: str, value: object = "done") -> object:
        """Takes effect outside of the store, for example money being sent."""
        self.at("effect.before")
        self.note("effect", name)
        self.at("effect.after")
        return value

    def agent(self, rt: Runtime, **about: Any) -> Callable[[Callable[[Turn], Awaitable[object]]], None]:
        """Registers an agent whose turns are noted."""

        def register(function: Callable[[Turn], Awaitable[object]]) -> None:
            async def noted(turn: Turn) -> object:
                self.note("began", turn.agent, turn.task, turn.remit.id)
                self.at("agent.begins")
                answer = await function(turn)
                self.at("agent.returns")
                return answer

            rt.add(Card(function.__name__, **about), noted)

        return register

    async def submit(self, rt: Runtime, agent: str, task: str, **how: Any) -> str:
        """What a client does that keeps what it was told."""
        self.at("client.asks")
        return await self.acked(task, rt.submit(agent, task, key=task, **how))

    async def acked(self, task: str, asked: Awaitable[Task]) -> str:
        made = await asked
        self.note("ack", task, made.id)
        self.at("client.acked")
        return made.id


class Scenario:
    """`concurrency` is the runtime's. `varies` if it may end in several ways, so that no two runs are compared.
    `disputed` if in each life there is another process that does the opposite, and may be killed as well. `short` says
    what happens to a payment for which there is too little money."""

    concurrency: int | None = None
    varies = False
    disputed = False
    short = "refuse"

    def agents(self, rt: Runtime, world: World) -> None:
        raise NotImplementedError

    async def ask(self, rt: Runtime, world: World) -> bool | None:
        """What a client does; True if it has drained the worker."""
        raise NotImplementedError

    async def oppose(self, workspace: Workspace, world: World) -> None:
        """What the other process does, until there is nothing left to disagree about."""


class Submit(Scenario):
    """Several tasks at once and one after the other, two of them twice under one key."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, reads=["notes"], writes=["notes"])
        async def clerk(turn: Turn) -> object:
            sent = await turn.once(turn.task, world.effect, turn.task, f"{turn.task} sent")
            await turn.context.set("notes", turn.task, sent)
            return sent

    async def ask(self, rt: Runtime, world: World) -> None:
        await asyncio.gather(*(world.submit(rt, "clerk", f"letter {number}") for number in range(4)))
        for number in (1, 4, 5, 4):
            await world.submit(rt, "clerk", f"letter {number}")


class Tree(Scenario):
    """A lead that delegates two levels deep; everyone has effects and writes entries."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["builder"], reads=["plan"], writes=["plan"])
        async def lead(turn: Turn) -> object:
            number = await turn.once("order", world.effect, "order", 42)
            await turn.context.set("plan", "order", {"number": number})
            first = await turn.delegate("builder", "the cellar")
            rest = await turn.delegate_all([("builder", "the house"), ("builder", "the roof"), ("nobody", "no")])
            paid = await turn.once("pay", world.effect, "pay", number)
            return [first, *(str(one.value) for one in rest), paid]

        @world.agent(rt, asks=["digger"], reads=["plan"], writes=["plan"])
        async def builder(turn: Turn) -> object:
            await turn.context.set("plan", turn.task, "begun")
            dug = await turn.delegate("digger", f"dig for {turn.task}")
            return await turn.once("build", world.effect, f"build {turn.task}", f"{dug}, built")

        @world.agent(rt, reads=["holes"], writes=["holes"])
        async def digger(turn: Turn) -> object:
            deep = await turn.once("dig", world.effect, turn.task, turn.task)
            await turn.context.set("holes", turn.task, deep)
            return f"{deep}: dug"

    async def ask(self, rt: Runtime, world: World) -> None:
        await world.submit(rt, "lead", "a house")


class Files(Scenario):
    """A file is written part by part, read by its asker, kept in an entry and handed on to one that reads it again."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["author", "binder"], reads=["shelf"], writes=["shelf"])
        async def press(turn: Turn) -> object:
            book = await turn.delegate("author", "write it")
            read = await (await turn.artifacts.open(book)).text()
            await turn.context.set("shelf", "book", {"file": book})
            return Command("binder", {"artifacts": {"book": book}, "context": {"letters": len(read)}})

        @world.agent(rt)
        async def author(turn: Turn) -> object:
            async def pages() -> AsyncIterator[bytes]:
                for number in range(3):
                    world.at("effect.before")
                    yield f"page {number}\n".encode() * 1_000

            return await turn.artifacts.save(pages(), "book.txt")

        @world.agent(rt)
        async def binder(turn: Turn) -> object:
            book = turn.handoff.state.artifacts["book"]
            return Command(END, result=[book, (await (await turn.artifacts.open(book)).text())[-7:]])

    async def ask(self, rt: Runtime, world: World) -> None:
        await world.submit(rt, "press", "a book")


class Handoff(Scenario):
    """A case changes hands twice, goes out to three at once and is joined by a fourth. Of another, nobody is left to
    join the parts: whoever sent them out goes on with them."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["billing"])
        async def desk(turn: Turn) -> object:
            seen = await turn.once("look", world.effect, "look", "seen")
            return await turn.hand_off("billing", {"phase": "billing", "context": {"desk": seen}})

        @world.agent(rt, asks=["checker", "closer"])
        async def window(turn: Turn) -> object:
            if turn.handoff.refused:
                return [str(one.value) for one in turn.handoff.results]
            await turn.once("open", world.effect, "open")
            return Command([Send("checker", "check the rest")], join="closer")

        @world.agent(rt, asks=["checker", "closer"])
        async def billing(turn: Turn) -> object:
            await turn.once("bill", world.effect, "bill")
            sends = [Send("checker", f"check {number}") for number in range(3)]
            return Command(sends, {"phase": "closing", "completed": ["billing"]}, join="closer")

        @world.agent(rt, reads=["checks"], writes=["checks"])
        async def checker(turn: Turn) -> object:
            await turn.context.set("checks", turn.task, "fine")
            return await turn.once("check", world.effect, turn.task, f"{turn.task}: fine")

        @world.agent(rt, asks=["archive"])
        async def closer(turn: Turn) -> object:
            found = [str(one.value) for one in turn.handoff.results]
            return Command("archive", {"context": {"found": found, "from": turn.handoff.sender}})

        @world.agent(rt)
        async def archive(turn: Turn) -> object:
            await turn.once("file", world.effect, "file")
            state = {name: value for name, value in turn.handoff.state.data().items() if name != "seconds"}
            return Command(END, result=[state, [one.to for one in turn.handoff.trail]])

    async def ask(self, rt: Runtime, world: World) -> None:
        await world.submit(rt, "desk", "a case")
        await world.submit(rt, "window", "a small case", within=Bounds(members=2))


class Spawn(Scenario):
    """Children beside their asker, announced to it; the last one when the asker has gone."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["worker"])
        async def boss(turn: Turn) -> object:
            spawned = [await turn.spawn("worker", f"part {number}") for number in range(3)]
            ends = [await one.wait() for one in spawned]
            heard = sorted(message.text.partition("'")[2] for message in await turn.inbox())
            world.note("heard", heard)
            again = [message.text for message in await turn.inbox()]
            await turn.spawn("worker", "clean up")  # it may end before or after its asker, who looks no more
            return [[one.value for one in ends], heard, again]

        @world.agent(rt)
        async def worker(turn: Turn) -> object:
            return await turn.once("work", world.effect, turn.task, f"{turn.task} is done")

    async def ask(self, rt: Runtime, world: World) -> None:
        await world.submit(rt, "boss", "everything")


class Cancel(Scenario):
    """A tree three deep, with submitted leaves at its ends, is cancelled when all of it is at work."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["branch"])
        async def trunk(turn: Turn) -> object:
            return [str(one.state) for one in await turn.delegate_all([("branch", "left"), ("branch", "right")])]

        @world.agent(rt, asks=["leaf"])
        async def branch(turn: Turn) -> object:
            await turn.submit("leaf", f"{turn.task}, submitted")
            await turn.spawn("leaf", f"{turn.task}, spawned")
            return await turn.delegate("leaf", f"{turn.task}, delegated")

        @world.agent(rt, reads=["leaves"], writes=["leaves"])
        async def leaf(turn: Turn) -> object:
            await turn.context.set("leaves", turn.task, "green")
            await turn.once("grow", world.effect, turn.task)
            await anyio.sleep_forever()

    async def ask(self, rt: Runtime, world: World) -> None:
        tree = await world.submit(rt, "trunk", "a tree")
        if await self._grown(rt, tree):
            world.at("client.asks")
            with suppress(Conflict):  # an earlier life has cancelled it and could not say so any more
                await rt.workspace.tasks.cancel(tree, "autumn")
        world.note("cancelled", tree)
        world.at("client.acked")

    async def _grown(self, rt: Runtime, tree: str) -> bool:
        """Until every leaf has its effect behind it; False if the tree is not growing any more."""
        changed = asyncio.Event()
        stop = subscribe(rt.workspace, lambda _events: changed.set())
        try:
            while True:
                changed.clear()
                status = await rt.workspace.tasks.get(tree).status()
                if status.state in TERMINAL or status.state == "cancelling":
                    return False
                if sum(event.kind == "effect.done" for event in await rt.workspace.journal.history(run=tree)) == 6:
                    return True
                await changed.wait()
        finally:
            stop()


class Retry(Scenario):
    """Failing twice for a passing reason, and once for good, which a person has tried again."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["helper"])
        async def shaky(turn: Turn) -> object:
            await turn.once("pay", world.effect, "pay")
            helped = await turn.delegate("helper", "help once")
            world.note("tried")
            if len(world.notes("tried")) < 3:
                raise ConnectionError("the line is bad")
            return [helped, await turn.once("ship", world.effect, "ship")]

        @world.agent(rt)
        async def helper(turn: Turn) -> object:
            return await turn.once("help", world.effect, turn.task, "helped")

        @world.agent(rt, asks=["helper"])
        async def clumsy(turn: Turn) -> object:
            helped = await turn.delegate("helper", "help the clumsy")
            if not world.notes("repaired"):
                raise ValueError("it is broken")
            return helped

    async def ask(self, rt: Runtime, world: World) -> None:
        await world.submit(rt, "shaky", "try hard", attempts=12)
        task = await world.submit(rt, "clumsy", "break it")
        await rt.workspace.tasks.get(task).wait()
        world.note("repaired")
        if len(await rt.workspace.tasks.list(agent="clumsy")) == 1:
            world.at("client.asks")
            again = await rt.workspace.tasks.get(task).retry()
            world.note("ack", "again", again.id)
            world.at("client.acked")


class Planned(Scenario):
    """A plan of five steps inside a submitted task; members write to each other."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["member", "editor"])
        async def planner(turn: Turn) -> object:
            plan = Plan(
                [
                    Step("a", "look up A", agent="member"),
                    Step("b", "look up B", agent="member"),
                    Step("c", "compare", agent="editor", after=["a", "b"]),
                    Step("d", "draw it", agent="member", after=["a"]),
                    Step("e", "write it", agent="editor", after=["c", "d"]),
                ]
            )
            outcome = await turn.run_plan(plan, concurrency=2)
            return [[one.id, one.state, one.value] for one in outcome.steps.values()]

        @world.agent(rt, asks=["editor"], reads=["finds"], writes=["finds"])
        async def member(turn: Turn) -> object:
            name = turn.task.splitlines()[0]
            await turn.context.set("finds", name, "found")
            return await turn.once("find", world.effect, f"find {name}", f"found: {name}")

        @world.agent(rt)
        async def editor(turn: Turn) -> object:
            name = turn.task.splitlines()[0]
            return await turn.once("edit", world.effect, f"edit {name}", f"{name} after {turn.task.count('found')}")

    async def ask(self, rt: Runtime, world: World) -> None:
        await world.submit(rt, "planner", "a report")


class Led(Scenario):
    """A plan and a team from the queue, whose coordinator has effects and delegates while it plans."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt)
        async def member(turn: Turn) -> object:
            name = turn.task.splitlines()[0]
            return await turn.once("find", world.effect, f"find {name}", f"found: {name}")

        @world.agent(rt, asks=["member"])
        async def chief(turn: Turn) -> object:
            await turn.once(turn.phase, world.effect, f"chief: {turn.phase}")
            if turn.phase == "synthesis":
                return turn.task.count("completed\nfound: ")
            asked = await turn.delegate("member", "what is there?")
            steps = [{"id": "a", "title": "cut"}, {"id": "b", "title": f"sew with {asked}", "after": ["a"]}]
            return {"steps": [{**step, "agent": "member"} for step in steps]}

    async def ask(self, rt: Runtime, world: World) -> None:
        plan = [
            Step("a", "look up A", agent="member"),
            Step("b", "look up B", agent="member"),
            Step("c", "compare", agent="member", after=["a", "b"]),
        ]
        for goal, asked in (
            ("a map", lambda: rt.submit_plan(Plan(plan, "a map"), key="a map")),
            ("a coat", lambda: rt.submit_team("a coat", "chief", key="a coat")),
        ):
            world.at("client.asks")
            await world.acked(goal, asked())


class Waiting(Scenario):
    """One slot in the whole workspace: who waits for a task it submitted gives it up and gets it back."""

    concurrency = 1

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["middle", "last"])
        async def front(turn: Turn) -> object:
            first = await turn.submit("middle", f"middle of {turn.task}")
            second = await turn.submit("last", f"second of {turn.task}")
            return [await second.result(), await first.result()]

        @world.agent(rt, asks=["last"])
        async def middle(turn: Turn) -> object:
            part = await turn.submit("last", f"last of {turn.task}")
            return [await part.result(), await turn.once("middle", world.effect, turn.task)]

        @world.agent(rt)
        async def last(turn: Turn) -> object:
            return await turn.once("last", world.effect, turn.task, turn.task)

    async def ask(self, rt: Runtime, world: World) -> None:
        for name in ("red", "blue"):
            await world.submit(rt, "front", name)


class Drained(Scenario):
    """A process that is told to stop puts back what it has; another one carries it on."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["hand"])
        async def slow(turn: Turn) -> object:
            begun = await turn.once("begin", world.effect, f"begin {turn.task}", turn.task)
            parts = [await turn.delegate("hand", f"{turn.task}, hand {number}") for number in range(2)]
            world.note("slow", turn.task)
            if len(world.notes("slow")) <= 3:  # the first process never gets further
                await anyio.sleep_forever()
            return [begun, *parts]

        @world.agent(rt)
        async def hand(turn: Turn) -> object:
            return await turn.once("lend", world.effect, turn.task, turn.task)

    async def ask(self, rt: Runtime, world: World) -> bool:
        for number in range(3):
            await world.submit(rt, "slow", f"job {number}")
        if world.notes("drained"):
            return False
        while len(world.notes("slow")) < 3:
            world.noted.clear()
            await world.noted.wait()
        await rt.drain(0)
        world.note("drained")
        return True


class Asking(Scenario):
    """People are asked two levels deep, and money is spent: an answer, an approval of an action, one of a hop."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["editor"])
        async def chief(turn: Turn) -> object:
            await turn.spend("$0.01", why="thinking")
            return [await turn.delegate("editor", "edit it"), await turn.once("print", world.effect, "print")]

        @world.agent(rt, asks=["publisher"])
        async def editor(turn: Turn) -> object:
            colour = await turn.ask_human("Which colour?", ["red", "blue"])
            paid = await turn.ask_approval("buy", {"what": "a photo"})
            await turn.spend("$0.05", why="photo")
            return [await turn.delegate("publisher", f"publish it in {colour}"), paid]

        @world.agent(rt, needs_approval=True)
        async def publisher(turn: Turn) -> object:
            await turn.spend("$0.10", why="paper")
            return await turn.once("publish", world.effect, turn.task, f"{turn.task}: done")

    async def ask(self, rt: Runtime, world: World) -> None:
        if await rt.workspace.money.account() is None:
            await rt.workspace.money.grant("$1", why="for all of it")
        task = rt.workspace.tasks.get(await world.submit(rt, "chief", "a paper"))
        async with rt.workspace.journal.follow(after=0) as follow:
            while (await task.status()).ended is None:
                for question in await rt.workspace.questions.list():
                    world.at("client.asks")
                    with suppress(Conflict):  # an earlier life has answered, and could not say so any more
                        await self._answer(rt, question.id, question.kind)
                    world.at("client.acked")
                await follow.next()

    async def _answer(self, rt: Runtime, question: str, kind: str) -> None:
        if kind == "ask":
            await rt.workspace.questions.answer(question, "blue", by="ann")
        else:
            await rt.workspace.questions.approve(
                question, by="ann", value={"what": "two photos"} if kind == "tool" else None
            )


class Reviewed(Scenario):
    """A result is sent back once and then edited, under money; whoever asked for it uses what was approved."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["writer"])
        async def chief(turn: Turn) -> object:
            text = await turn.delegate("writer", "write it")
            return await turn.once("print", world.effect, f"print {text}", f"printed {text}")

        @world.agent(rt, review=True)
        async def writer(turn: Turn) -> object:
            sent = turn.handoff.sent_back
            draft = "first draft" if sent is None else f"{sent.result}, {sent.why}"
            await turn.spend("$0.01", why=draft)
            return await turn.once(draft, world.effect, draft, draft)

    async def ask(self, rt: Runtime, world: World) -> None:
        if await rt.workspace.money.account() is None:
            await rt.workspace.money.grant("$1", why="for all of it")
        task = rt.workspace.tasks.get(await world.submit(rt, "chief", "a paper"))
        async with rt.workspace.journal.follow(after=0) as follow:
            while (await task.status()).ended is None:
                for question in await rt.workspace.questions.list():
                    world.at("client.asks")
                    with suppress(Conflict):  # an earlier life has answered, and could not say so any more
                        await self._decide(rt, question)
                    world.at("client.acked")
                await follow.next()

    async def _decide(self, rt: Runtime, question: Inquiry) -> None:
        if question.shows["result"] == "first draft":
            await rt.workspace.questions.reject(question.id, why="shorter", by="ann")
        else:
            await rt.workspace.questions.approve(question.id, by="ann", value="final text")


class Paid(Scenario):
    """Something is set aside for a buyer that holds, starts and settles a call; who shares the same lease beside it
    outlives their asker; all of them pay at once too."""

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["buyer", "beside"])
        async def lead(turn: Turn) -> object:
            await turn.spend("$0.02", why="a stamp")
            await turn.spawn("beside", "a parcel")
            bought = await turn.delegate("buyer", "a photo", credits="$0.60")
            await turn.spend("$0.02", why="another stamp")
            world.note("lead")
            return bought

        @world.agent(rt)
        async def buyer(turn: Turn) -> object:
            async with turn.paid_call("$0.10", why=turn.task, start=False) as call:
                await call.start()
                world.note("sent", call.hold)
                world.effect(turn.task)
                call.cost("$0.04")
            return await turn.once("frame", world.effect, "a frame", "framed", estimate="$0.05")

        @world.agent(rt)
        async def beside(turn: Turn) -> object:
            while not world.notes("lead"):  # its asker ends first
                world.noted.clear()
                await world.noted.wait()
            await turn.spend("$0.03", why="string")
            async with turn.paid_call("$0.06", why=turn.task) as call:
                world.note("sent", call.hold)
                call.cost("$0.08")
            return "sent"

    async def ask(self, rt: Runtime, world: World) -> None:
        await rt.workspace.money.grant("$9", op="the first")
        await world.submit(rt, "lead", "a present", credits="$3")


class Short(Scenario):
    """All leases are too small: for what a task pays, for what it sets aside, and for what two buyers pay beside each
    other. Ann gives more, but for one that wants a yacht."""

    short = "ask"

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt, asks=["buyer"])
        async def lead(turn: Turn) -> object:
            await turn.spend("$0.05", why="a map")
            one = await turn.delegate("buyer", "a boat", credits="$0.10")
            rest = await turn.delegate_all([("buyer", "a sail"), ("buyer", "a yacht")], credits="$0.01")
            return [one, *(str(part.value) for part in rest)]

        @world.agent(rt)
        async def buyer(turn: Turn) -> object:
            try:
                await turn.spend("$3" if turn.task == "a yacht" else "$0.20", why=turn.task)
            except Refused:
                return "too dear"
            return await turn.once(turn.task, world.effect, turn.task)

    async def ask(self, rt: Runtime, world: World) -> None:
        await rt.workspace.money.grant("$9", op="the first")
        task = rt.workspace.tasks.get(await world.submit(rt, "lead", "a voyage", credits="$0.03"))
        async with rt.workspace.journal.follow(after=0) as follow:
            while (await task.status()).ended is None:
                for question in await rt.workspace.questions.list():
                    world.at("client.asks")
                    with suppress(Conflict):  # an earlier life has answered, and could not say so any more
                        if question.shows["wants"] == "$3.00":
                            await rt.workspace.questions.reject(question.id, by="ann", why="too dear")
                        else:
                            await rt.workspace.questions.approve(question.id, by="ann")
                    world.at("client.acked")
                await follow.next()


class Disputed(Scenario):
    """Ann and Bob disagree about everything at the same time, each in a process of their own: one approves, the other
    rejects or cancels, and each has another answer and another bill. Who may be first changes from task to task and
    from life to life."""

    varies = True
    disputed = True
    TASKS = ("one", "two", "three")
    CANCELLED = "three"

    def agents(self, rt: Runtime, world: World) -> None:
        @world.agent(rt)
        async def clerk(turn: Turn) -> object:
            async with turn.paid_call("$0.10", why=f"advice on {turn.task}"):
                pass  # nobody says what it cost
            try:
                colour = await turn.ask_human(f"Which colour for {turn.task}?", ["red", "blue"])
                await turn.ask_approval("deploy", {"what": turn.task, "colour": colour})
            except Refused:
                return "rejected"
            return await turn.once("deploy", world.effect, f"deploy {turn.task}")

    async def ask(self, rt: Runtime, world: World) -> None:
        if await rt.workspace.money.account() is None:
            await rt.workspace.money.grant("$1", why="for all of it")
        for name in self.TASKS:
            await world.submit(rt, "clerk", name)
        await self._decide(rt.workspace, world, self._anns)

    async def oppose(self, workspace: Workspace, world: World) -> None:
        await self._decide(workspace, world, self._bobs)

    async def _decide(self, workspace: Workspace, world: World, acts: "Side") -> None:
        """Decide whatever is to be decided, until everything has ended and every bill is there."""
        async with workspace.journal.follow(after=0) as follow:
            while True:
                known = {task: name for _, name, task in world.notes("ack")}
                for question in await workspace.questions.list():
                    await self._act(world, acts(workspace, world, question, known.get(question.task, "")))
                if len(known) == len(self.TASKS):
                    ended = [(await workspace.tasks.get(task).status()).ended for task in known]
                    if None not in ended:
                        break
                await follow.next()
        for hold in await workspace.money.uncertain():
            await self._act(world, self._bill(workspace, world, hold.id, 4 if acts == self._anns else 7))

    @staticmethod
    async def _act(world: World, act: Callable[[], Awaitable[None]]) -> None:
        world.at("client.asks")
        with suppress(Conflict):  # the other was first, in this life or in an earlier one
            await act()
        world.at("client.acked")

    def _anns(self, workspace: Workspace, world: World, question: Inquiry, name: str) -> Callable[[], Awaitable[None]]:
        async def say() -> None:
            if self._bob_is_first(world, question, name):
                await self._politely(workspace, question.id)
            if question.kind == "ask":
                await workspace.questions.answer(question.id, "red", by="ann")
            else:
                await workspace.questions.approve(question.id, by="ann")
            world.note("said", question.id, "answered" if question.kind == "ask" else "approved", "ann")

        return say

    def _bobs(self, workspace: Workspace, world: World, question: Inquiry, name: str) -> Callable[[], Awaitable[None]]:
        async def say() -> None:
            if not self._bob_is_first(world, question, name):
                await self._politely(workspace, question.id)
            if question.kind == "ask":
                await workspace.questions.answer(question.id, "blue", by="bob")
            elif name == self.CANCELLED:
                await workspace.tasks.cancel(question.task, "bob does not want it", by="bob")
                world.note("cancelled", question.task)
                return
            else:
                await workspace.questions.reject(question.id, by="bob", why="no")
            world.note("said", question.id, "answered" if question.kind == "ask" else "rejected", "bob")

        return say

    def _bob_is_first(self, world: World, question: Inquiry, name: str) -> bool:
        place = self.TASKS.index(name) if name else 0
        return (world.life + place + (question.kind == "ask")) % 2 > 0

    @staticmethod
    async def _politely(workspace: Workspace, question: str) -> None:
        """Let the other go first, for a moment."""
        for _ in range(20):
            if (await workspace.questions.get(question)).state != "open":
                return
            await asyncio.sleep(0.005)

    @staticmethod
    def _bill(workspace: Workspace, world: World, hold: str, cents: int) -> Callable[[], Awaitable[None]]:
        async def reconcile() -> None:
            await workspace.money.reconcile(hold, f"${cents / 100:.2f}", why="the bill")
            world.note("billed", hold, cents * 10_000)

        return reconcile


Side: TypeAlias = Callable[[Workspace, World, Inquiry, str], Callable[[], Awaitable[None]]]

SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "submit": Submit,
    "tree": Tree,
    "files": Files,
    "handoff": Handoff,
    "spawn": Spawn,
    "cancel": Cancel,
    "retry": Retry,
    "plan": Planned,
    "led": Led,
    "waiting": Waiting,
    "drained": Drained,
    "asking": Asking,
    "reviewed": Reviewed,
    "paid": Paid,
    "short": Short,
    "disputed": Disputed,
}

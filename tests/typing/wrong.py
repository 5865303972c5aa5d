"""What a type checker must refuse: each line that says so, and no other."""

import remit
from remit import Bounds, Card, Runtime, Step, Turn, Workspace
from remit.settings import Policy, Serving

remit.Runtme()  # wrong
rt = Runtime(hands=0)  # wrong
rt = Runtime(policy=Policy(colour="red"))  # wrong
rt = Runtime(serving=Serving(concurrency="many"))  # wrong
rt = Runtime()
Bounds(color=1)  # wrong
Bounds(credits=1)  # wrong
Bounds(credits=0.5)  # wrong
Card("coder", ask=["reviewer"])  # wrong
Step("a", "A", payload="csv")  # wrong


@rt.agent(colour="red")  # wrong
async def painter(turn: Turn) -> str:
    await turn.delegate("reviewer", "look", sess=["code"])  # wrong
    await turn.submit("reviewer", "look", attempts="two")  # wrong
    await turn.run_plan("a plan")  # wrong
    await turn.step("charge", print)  # wrong
    number: int = await turn.delegate("reviewer", "look", returns=str)  # wrong for pyright
    print(number)
    return ""


rt.agent(5)  # wrong


@rt.agent
async def with_deps(turn: Turn[str]) -> int:
    return turn.deps.verdict  # wrong


async def owner(workspace: Workspace) -> None:
    await rt.run("coder", "go", sesion="monday")  # wrong
    await rt.submit("coder", "go", timeout="ten")  # wrong
    await rt.run("coder", "go", credits=500_000)  # wrong
    await rt.tasks()  # wrong
    await workspace.tasks.list(colour="red")  # wrong
    await workspace.journal.history(kind="task.started")  # wrong

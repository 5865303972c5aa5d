"""Teams whose runs the tests of the run page watch."""

from adapters.gateway.asking import asking

PORTING = """
tools = [{"name": "bash", "input_schema": {"type": "object"}}]
said = [{"role": "user", "content": task}]
def turn():
    answer = json.loads(ask(model="claude-sonnet-4-5", messages=said, tools=tools)[1])["content"]
    said.append({"role": "assistant", "content": answer})
    return [one for one in answer if one["type"] == "tool_use"]
while calls := turn():
    results = [{"type": "tool_result", "tool_use_id": one["id"], "content": "2 passed"} for one in calls]
    said.append({"role": "user", "content": results})
print("ported")
"""

# A chain of four; each step waits for a file in the folder of the test, so that a test decides when it goes on.
CHAIN = """
import anyio
import remit
rt = remit.Runtime("remit.db")

async def until(name):
    while not await anyio.Path(name).exists():
        await anyio.sleep(0.02)

@rt.agent(asks="*")
async def lead(turn):
    await turn.context.set("spec", "login", "argon2")
    try:
        await turn.delegate("pricey", "too much", credits="$9")
    except remit.Refused:
        pass
    built = await turn.delegate("coder", "write the module", sees=["spec"])
    return f"lead: {built}"

@rt.agent(asks="*")
async def coder(turn):
    await turn.context.get("spec", "login")
    await turn.spend("$0.05", why="a model")
    await until("go-coder")
    try:
        await turn.delegate("lead", "again")
    except remit.Refused:
        pass
    return await turn.delegate("reviewer", "review it")

@rt.agent(asks="*")
async def reviewer(turn):
    await turn.spend("$0.02", why="a linter")
    return await turn.delegate("publisher", "publish version 1")

@rt.agent(needs_approval=True)
async def publisher(turn):
    return f"published: {turn.task}"

@rt.agent
async def pricey(turn):
    return "never"
"""

# A tree of three levels that works until it is cancelled.
ENDLESS = """
import anyio
import remit
rt = remit.Runtime("remit.db")

@rt.agent(asks="*")
async def lead(turn):
    await turn.delegate_all([("coder", f"part {n}") for n in range(3)])
    return "done"

@rt.agent(asks="*")
async def coder(turn):
    return await turn.delegate("tester", "try it")

@rt.agent
async def tester(turn):
    await anyio.sleep(600)
    return "never"
"""

# A model that a test scripts.
SPEAKER = """
import os
import remit
rt = remit.Runtime("remit.db")
rt.model_agent(
    "speaker", "openai-chat:gpt-5", keys=["OPENAI_KEY"], base_url=os.environ["MODELS"] + "/v1", instructions="Speak."
)
"""

# A program that asks a model through the gateway, runs the tool that the model calls, and asks again.
PORTER = f"""
import os
from remit import Card, Runtime
from remit.adapters.process import program
rt = Runtime("remit.db")
CODE = {asking(PORTING)!r}
models = dict(gateway=["anthropic:claude-sonnet-4-5"], keys={{"anthropic": ["OPENAI_KEY"]}})
rt.add(Card("porter"), program(CODE, **models, base_url={{"anthropic": os.environ["MODELS"]}}))
"""

HOSTILE_NAME = "<img src=x onerror=alert(1)>"
HOSTILE_WORD = "A" * 10_000

# Texts that would break a page that takes them for more than text.
HOSTILE = f'''
import remit
rt = remit.Runtime("remit.db")

@rt.agent(asks="*")
async def lead(turn):
    await turn.context.set("spec", "x" * 60, "{HOSTILE_NAME}")
    for text in ("{HOSTILE_NAME}", "{HOSTILE_WORD}", "\\u202eoverride", "# Task: <script>alert(2)</script>"):
        await turn.delegate_all([("helper", text)], sees=["spec"])
    try:
        await turn.delegate("helper-that-is-not-there-{HOSTILE_NAME}", "{HOSTILE_WORD}")
    except remit.RemitError:
        pass
    return "<b>" + "{HOSTILE_WORD}"

@rt.agent
async def helper(turn):
    await turn.context.get("spec", "x" * 60)
    if turn.task.startswith("<img"):
        raise ValueError("{HOSTILE_NAME} " + "{HOSTILE_WORD}")
    return turn.task
'''

"""A team for the tests of the pages: questions of each kind, money, refusals, failures, shared context."""

import contextlib

import anyio

from remit import Failed, Refused, Runtime, Turn
from remit.settings import Limit, Policy

PATCH = """--- a/shop/auth.py
+++ b/shop/auth.py
@@ -12,4 +12,5 @@ def login(user, password):
     row = users.get(user)
-    if row.password == md5(password):
+    if argon2.verify(row.password, password):
+        sessions.renew(row.id)
         return Session(row.id)
     raise Denied(user)
"""
rt = Runtime("remit.db", policy=Policy(limits=[Limit("day", credits="$20")], short="ask"))


@rt.agent(role="splits the work", can="plan work", asks=["coder", "tester", "releaser", "writer", "speller"])
async def lead(turn: Turn) -> str:
    await turn.context.set("spec", "auth", "POST /login checks the password\nand sets a cookie")
    await turn.context.set("spec", "auth", "POST /login checks the password\nand sets a cookie\nfor 12 hours")
    code = await turn.delegate("coder", "write the auth module", sees=["spec"], credits="$0.40")
    for place in ("Lisbon", "Osaka"):
        with contextlib.suppress(Refused, Failed):
            await turn.delegate("tester", f"sign in from {place}", credits="$0.08")
    return f"built: {code}"


@rt.agent(can="write code", asks=["tester", "coder"], reads=["spec"], writes=["codebase"])
async def coder(turn: Turn) -> str:
    await turn.context.get("spec", "auth")
    async with turn.paid_call("$0.30", why="a model that writes code", model="example-large") as call:
        call.cost("$0.27")
    await turn.context.set("codebase", "auth", PATCH, 3600)
    with contextlib.suppress(Refused):
        await turn.delegate("coder", "explain it to me")
    return "214 lines, 31 tests"


@rt.agent(can="try it out")
async def tester(turn: Turn) -> str:
    await turn.spend("$0.05", why="a browser in the cloud")
    if "Osaka" in turn.task:
        raise ConnectionError("the network in Osaka is down")
    return "signed in"


@rt.agent(can="release", needs_approval=True)
async def releaser(turn: Turn) -> str:
    return "released"


@rt.agent(role="ships what is ready", can="ship", asks=["releaser"])
async def shipper(turn: Turn) -> str:
    return await turn.delegate("releaser", "release the login to production", credits="$0.10")


@rt.agent(role="puts things on servers", can="deploy")
async def deployer(turn: Turn) -> str:
    given = await turn.ask_approval("deploy", {"environment": "production", "replicas": 3, "patch": PATCH})
    return f"deployed to {given['environment']}"


@rt.agent(role="asks when in doubt", can="choose")
async def chooser(turn: Turn) -> str:
    return await turn.ask_human("Which colour should the button have?", ["green", "blue", "none"], default="green")


@rt.agent(role="asks in words", can="ask")
async def asker(turn: Turn) -> str:
    return await turn.ask_human("What should the release be called?")


@rt.agent(role="writes announcements", can="write", review=True)
async def writer(turn: Turn) -> str:
    return "The shop has a new login.\nIt is faster and it remembers you.\nTell us what you think!"


@rt.agent(role="spends what it has", can="spend")
async def spender(turn: Turn) -> str:
    await turn.spend("$0.09", why="the first half")
    await turn.spend("$0.09", why="the second half")
    return "spent"


@rt.agent(role="works for a long time", can="wait")
async def sleeper(turn: Turn) -> str:
    await turn.spend("$0.09", why="a long rental")
    await anyio.sleep(3600)
    return "rested"


@rt.agent(role="checks spelling", can="spell")
async def speller(turn: Turn) -> str:
    return "no mistakes"


@rt.agent(role="pays without a bill", can="call a model")
async def payer(turn: Turn) -> str:
    async with turn.paid_call("$0.20", why="a call without a bill", model="example-large"):
        pass
    return "paid"


@rt.agent(role="<img src=x onerror=alert(1)> \u202eeltit", can="break pages")
async def hostile(turn: Turn) -> str:
    word = "W" * 10_000
    await turn.context.set("<b>space</b>", "<script>alert(1)</script>", f"{word} <script>alert(2)</script>")
    return await turn.ask_human(f"{word[:7_000]} <img src=x onerror=alert(1)>", ["<b>yes</b>", "\u202eno"])

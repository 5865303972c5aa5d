"""The demo's team: scripted agents, written the way a user would write them."""

import anyio

from remit import Failed, Refused, Runtime, Turn

SPEC = "POST /login checks the password with argon2 and sets a session cookie"
CODE = "modules/auth: login(), logout(), a session store; 214 lines, 31 tests"


def team(store: str, pace: float) -> Runtime:
    """A lead, a coder, a reviewer with a linter, and three researchers of whom one has a bad day."""
    rt = Runtime(store)

    async def work(seconds: float) -> None:
        await anyio.sleep(seconds * pace)

    @rt.agent(role="splits the work and puts the pieces together", asks="*")
    async def lead(turn: Turn) -> str:
        await turn.context.set("spec", "auth", SPEC)
        questions = [("docs-reader", "how do we store sessions today?")]
        questions += [
            ("web-reader", "what is the advice on argon2?"),
            ("archivist", "did we try this before?"),
        ]
        found = await turn.delegate_all(questions)
        built = await turn.delegate("coder", "write the auth module", sees=["spec"])
        return f"{built}; {sum(one.ok for one in found)} of {len(found)} researchers answered"

    @rt.agent(can="read documents")
    async def docs_reader(turn: Turn) -> str:
        await work(0.5)
        return "in a table, one row a session"

    @rt.agent(can="read the web")
    async def web_reader(turn: Turn) -> str:
        await work(0.9)
        return "19 MiB of memory, two passes"

    @rt.agent(can="search old projects")
    async def archivist(turn: Turn) -> str:
        await work(0.3)
        raise ConnectionError("the archive is closed on Sundays")

    @rt.agent(can="write code", asks=["reviewer"])
    async def coder(turn: Turn) -> str:
        spec = await turn.context.get("spec", "auth")
        await work(0.6)
        await turn.context.set("codebase", "auth", f"{CODE}, after: {spec}")
        verdict = await turn.delegate("reviewer", "review the auth module", sees=["codebase"])
        return f"auth module written, {verdict}"

    @rt.agent(can="review code", asks=["coder", "linter"])
    async def reviewer(turn: Turn) -> str:
        code = await turn.context.get("codebase", "auth")
        await work(0.4)
        try:
            await turn.delegate("coder", "explain the session store to me")
        except Refused:
            await work(0.2)  # the coder waits for this review: asking it back would never end
        style = await turn.delegate("linter", "check the style")
        return f"approved after reading {len(str(code).split())} words, {style}"

    @rt.agent(can="check style", asks=["speller"])
    async def linter(turn: Turn) -> str:
        try:
            await turn.delegate("speller", "check the comments")
        except (Refused, Failed):
            await work(0.3)  # four deep is too deep here, so it does this part itself
        return "style is fine"

    @rt.agent(can="check spelling")
    async def speller(turn: Turn) -> str:
        return "no mistakes"

    return rt

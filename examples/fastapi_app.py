"""A web application: it takes tasks, shows their state and their events live, and people decide over HTTP.

Start it with `uvicorn --app-dir examples --timeout-graceful-shutdown 5 fastapi_app:app`: without that option, Ctrl-C
waits for the streams of events. It is a worker too, so it needs no other process.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

import stand_in
from remit import RemitError, Runtime
from remit.errors import BadInput, Conflict, NotFound, Refused

stand_in.without_key(stand_in.FASTAPI_APP)  # scripted answers, unless OPENAI_API_KEY is set

rt = Runtime("fastapi_app.db")


@rt.tool
def publish(title: str, text: str, idempotency_key: str) -> str:
    """Publish a post on the blog of the shop."""
    return f"published as /blog/{title.lower().replace(' ', '-')}"


rt.model_agent(
    "writer",
    "openai:gpt-5-mini",
    instructions="You write short posts for the blog of a tea shop, and publish them.",
    tools=["publish"],
    approve_tools=["publish"],  # a person sees each post first
)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    async with rt, rt.serving():
        yield
        await rt.drain(20)  # running tasks have 20 seconds; the next process continues the rest


app = FastAPI(lifespan=lifespan)


class Wish(BaseModel):
    task: str
    by: str
    key: str  # the same key is the same task, so a client can send it again


class Decision(BaseModel):
    approve: bool
    by: str
    why: str = ""


@app.post("/tasks", status_code=202)
async def submit(wish: Wish) -> dict[str, str]:
    task = await rt.submit("writer", wish.task, by=wish.by, key=wish.key, credits="$0.10")
    return {"id": task.id}


@app.get("/tasks/{id}")
async def status(id: str) -> dict[str, object]:
    now = await rt.workspace.tasks.get(id).status()
    return {"state": now.state, "by": now.by, "result": now.result, "error": now.error}


@app.get("/tasks/{id}/events")
async def events(id: str, last_event_id: Annotated[int, Header()] = 0) -> StreamingResponse:
    """Send the events of a task as they happen. A browser that reconnects gets what it missed."""
    task = rt.workspace.tasks.get(id)
    await task.status()  # a task that does not exist is a 404, and not an empty stream

    async def stream() -> AsyncIterator[str]:
        async with rt.workspace.journal.follow(run=id, after=last_event_id) as journal:
            has_ended = False
            while not has_ended:
                has_ended = (await task.status()).ended is not None
                for event in await journal.next(timeout=0 if has_ended else 60):
                    shown = {"agent": event.agent, "at": event.happened.isoformat()}
                    yield f"id: {event.seq}\nevent: {event.kind}\ndata: {json.dumps(shown)}\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


@app.get("/questions")
async def questions() -> list[dict[str, object]]:
    return [{"id": one.id, "text": one.text, "shows": one.shows} for one in await rt.workspace.questions.list()]


@app.post("/questions/{id}")
async def decide(id: str, decision: Decision) -> None:
    if decision.approve:
        await rt.workspace.questions.approve(id, by=decision.by, why=decision.why)
    else:
        await rt.workspace.questions.reject(id, by=decision.by, why=decision.why)


CODES = {NotFound: 404, Conflict: 409, BadInput: 422, Refused: 403}


@app.exception_handler(RemitError)
async def explain(_: Request, error: Exception) -> JSONResponse:
    """Return what remit says as JSON: the second answer to a question, for example, is a 409."""
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), 500)
    return JSONResponse({"detail": str(error)}, code)

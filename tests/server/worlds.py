"""A workspace in which there is one of everything, and what each route may be asked about it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import pytest

from engine.people import asked
from remit import Card, Runtime, Turn
from remit.adapters.vault import fresh_master
from remit.adapters.vetted import Vetted
from remit.core.kinds.workspace import cards_published
from remit.errors import Conflict, NotFound
from remit.ports import Decision
from remit.runtime.delivering import Follower, HookCarrier
from remit.runtime.workspace import opening_of
from remit.server.app import Server, ServerSettings
from remit.server.limits import RateLimits
from server.serving import app_of, caller
from teams import echo, team


class World(NamedTuple):
    """A server of a workspace with one of everything. `names` has what stands in the paths of the table."""

    rt: Runtime
    app: Server
    names: dict[str, str]
    digests: dict[str, str]

    def path(self, template: str, **others: str) -> str:
        """A path of the table about what is there."""
        for name, value in {**self.names, **others}.items():
            template = template.replace(f"{{{name}}}", value)
        return template


@asynccontextmanager
async def world(store: str | Path = ":memory:") -> AsyncIterator[World]:
    async def asks(turn: Turn) -> object:
        if turn.task == "ask":
            return await turn.ask_human("which colour?")
        return await turn.ask_approval("deploy", {"env": turn.task})

    async def fails(turn: Turn) -> None:
        raise ValueError(turn.task)

    async def pays(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="call"):
            pass

    with pytest.MonkeyPatch.context() as patch, team(store) as rt:
        patch.setenv("REMIT_MASTER_KEY", fresh_master().reveal())
        rt.agent("echo", asks="*", can="repeat what was said")(echo)
        rt.agent("asks")(asks)
        rt.agent("fails")(fails)
        rt.agent("pays")(pays)
        settings = ServerSettings(rates=RateLimits(1e9, 1e9))
        app = app_of(rt, caller(), caller("bob"), settings=settings)
        await rt.workspace.context().set("notes", "a/b", {"n": 1})
        await rt.workspace.money.grant("$10", tokens=1_000)
        saved = await rt.workspace.artifacts.save(b"hello", "a.txt")
        async with rt.serving():
            run = (await rt.outcome("echo", "x")).id
            failed = await rt.submit("fails", "x", attempts=1)
            await failed.wait(60)
            await rt.outcome("pays", "x")
            [hold] = await rt.workspace.money.uncertain()
            handles = [await rt.submit("asks", word) for word in ("ask", "prod", "test")]
            with anyio.fail_after(60):
                questions = sorted(await asked(rt, 3), key=lambda one: one.kind)
            waits = await rt.submit("echo", "later", after=10_000)
            access = [(await rt.workspace.access.make(word)).id for word in ("a", "b")]
            hooks, deliveries = await sent_events(rt)
            gone = cards_published([Card("gone"), Card("gone2")], 1)  # of a worker that has left
            await opening_of(rt.workspace).ground.store.tx("gone", lambda _: Decision(None, (gone,)))
            yield World(
                rt,
                app,
                {
                    "task": waits.id,
                    "run": run,
                    "failed": failed.id,
                    "hold": hold.id,
                    "namespace": "notes",
                    "key": "a%2Fb",
                    "digest": saved.digest,
                    "question": questions[0].id,
                    "question2": questions[1].id,
                    "question3": questions[2].id,
                    "agent": "echo",
                    "access": access[0],
                    "access2": access[1],
                    "hook": hooks[0],
                    "hook2": hooks[1],
                    "delivery": deliveries[0],
                    "delivery2": deliveries[1],
                    "seq": "1",
                },
                {one.id: one.digest for one in questions},
            )
            for handle in handles:
                with suppress(Conflict, NotFound):  # it may have ended, and been removed since by a request to prune
                    await handle.cancel()


async def sent_events(rt: Runtime) -> tuple[list[str], list[str]]:
    """Two hooks, and two deliveries to the first of them that were given up."""
    url = "https://example.com/hook"
    hooks = [(await rt.workspace.hooks.add(url, [kind])).id for kind in ("entry.set", "hook.added")]
    opening = opening_of(rt.workspace)
    carrier = HookCarrier(opening, Vetted(), Runtime)
    follower = Follower(carrier, opening, await carrier.log.signing_key())
    await rt.workspace.context().set("notes", "c", 1)
    await rt.workspace.context().set("notes", "d", 1)
    await follower.pass_on()
    found = [one.id for one in await rt.workspace.hooks.deliveries(hooks[0])]
    for one in found:
        await carrier.log.tasks.cancel(one)
    return hooks, found


class Example(NamedTuple):
    """A request that a route takes, and other content for the same key."""

    path: str
    body: Any = None
    other: Any = None
    other_path: str = ""
    raw: bool = False

    async def send(self, http: httpx.AsyncClient, row: Any, at: World, *, other: bool = False, **headers: str) -> Any:
        path = at.path(self.other_path if other and self.other_path else self.path)
        body = self.other if other and self.other is not None else self.body
        if self.raw:
            return await http.request(row.method, path, content=body, headers=headers)
        return await http.request(row.method, path, json=body, headers=headers)

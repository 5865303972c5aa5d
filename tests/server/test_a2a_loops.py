"""Loops through an agent of another server: it may echo what it was told, forget it, or forge it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Message
from google.protobuf.json_format import MessageToDict

from adapters.a2a_served import Stranger, stranger
from remit import Card, Runtime
from remit.adapters.a2a import a2a
from remit.adapters.a2a.parts import CHAIN
from remit.server.app import Server
from remit.server.callers import RUN
from server.serving import app_of, caller, client
from teams import echo, team

pytestmark = [pytest.mark.anyio, pytest.mark.rule("peer.loop")]

Metadata = dict[str, Any]


class Loop:
    """A team whose lead asks a stranger, which asks the lead back under its own key."""

    def __init__(self, tells: Callable[[Metadata], Metadata | None]) -> None:
        self.said: list[str] = []
        self.app: Server
        self._tells = tells

    async def __call__(self, message: Message) -> str:
        told = self._tells(MessageToDict(message.metadata))
        status = await self.ask("lead", told)
        self.said.append(status["message"]["parts"][0]["text"] if "message" in status else status["state"])
        return "done"

    async def ask(self, agent: str, told: Metadata | None, access: str = "s") -> dict[str, Any]:
        """Ask an agent of the team with the stranger's key, or another, and return the status of the task."""
        body = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go on"}]}
        if told is not None:
            body["metadata"] = told
        async with client(self.app, access, **{"A2A-Version": "1.0"}) as http:
            got = await http.post(f"/a2a/{agent}/rest/message:send", json={"message": body}, timeout=20)
        assert got.status_code == 200, got.text
        return got.json()["task"]["status"]

    async def run(self, rt: Runtime, then: Callable[[Stranger], Awaitable[None]] | None = None) -> list[str]:
        """Run the lead, and return what the stranger was told each time it asked back."""
        remote = Stranger(self)
        async with stranger(remote) as address:
            rt.add(Card("lead", asks=["stranger"]), lambda turn: turn.delegate("stranger", "help"))
            rt.add(Card("stranger", asks=["lead"]), a2a(address, networks="127.0.0.0/8"))
            self.app = app_of(rt, caller("s", RUN, agent="stranger"), caller("o", RUN, agent="other"))
            async with rt.serving(), self.app.running():
                await rt.outcome("lead", "begin")
                if then is not None:
                    await then(remote)
        return self.said


async def test_an_echoed_handle_makes_the_request_a_part_of_the_task_and_the_loop_is_refused():
    with team() as rt:
        said = await Loop(lambda told: told).run(rt)
        assert said == [
            "'lead' is already in this delegation (lead > stranger); ask someone else or finish the task yourself"
        ]


async def test_without_the_handle_the_loop_ends_one_lap_later():
    with team() as rt:
        said = await Loop(lambda _told: None).run(rt)
        assert any("'stranger' is already in this delegation (stranger > lead)" in one for one in said)
        assert len(said) == 1  # never a second lap


async def test_a_forged_handle_counts_as_none():
    def forged(told: Metadata) -> Metadata:
        chain = told[CHAIN]
        return {CHAIN: chain | {"handle": chain["handle"][:-4] + "0000"}}

    with team() as rt:
        said = await Loop(forged).run(rt)
        assert any("'stranger' is already in this delegation (stranger > lead)" in one for one in said)


async def test_the_handle_of_an_ended_task_is_refused_and_that_of_another_card_counts_as_none():
    with team() as rt:
        rt.add(Card("echo"), echo)
        rt.add(Card("other", asks=["echo"]), echo)
        loop = Loop(lambda told: told)

        async def later(remote: Stranger) -> None:
            told = MessageToDict(remote.sent[0].metadata)
            status = await loop.ask("lead", told)
            assert status["state"] == "TASK_STATE_REJECTED"
            assert "has ended" in status["message"]["parts"][0]["text"]
            assert (await loop.ask("echo", told, "o"))["state"] == "TASK_STATE_COMPLETED"

        await loop.run(rt, later)

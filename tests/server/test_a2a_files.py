"""Files in messages and results of A2A: from the official client and back."""

from typing import Any

import pytest
from a2a.types.a2a_pb2 import ListTasksRequest, Message, Part, Role, SendMessageRequest, TaskState
from a2a.utils.errors import ContentTypeNotSupportedError

from remit import Runtime, Turn
from remit.core.artifact import references
from remit.core.values import decode
from remit.server.callers import RUN, Caller
from server.serving import app_of, caller
from server.test_a2a import BINDINGS, asking, last
from teams import team

pytestmark = pytest.mark.anyio


async def shouts(turn: Turn) -> object:
    """Opens the file that its task names, and returns another one: as a value, or in words."""
    given = references(decode(turn.task[turn.task.index("{") :]))[0]
    opened = await turn.artifacts.open(given)
    made = await turn.artifacts.save((await opened.read()).upper(), f"loud-{given.name}", given.media_type)
    return f"here it is: {made}" if "words" in turn.task else {"file": made.data(), "trust": opened.trust}


def with_file(text: str, **more: Any) -> SendMessageRequest:
    file = Part(**{"raw": b"hello", "filename": "a.txt", "media_type": "text/plain", **more})
    return SendMessageRequest(message=Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text=text), file]))


def team_of(rt: Runtime) -> Runtime:
    rt.agent("shouts")(shouts)
    rt.agent("visitor", asks=["shouts"])(shouts)
    return rt


VISITOR = Caller("vic", "default", frozenset((RUN,)), "visitor", by="access:vic")


@BINDINGS
@pytest.mark.rule("peer.files")
@pytest.mark.parametrize("access", ["ann", "vic"])
async def test_a_file_comes_in_and_another_goes_out(binding: str, access: str):
    with team() as rt:
        app = app_of(team_of(rt), caller(), VISITOR)
        async with rt.serving(), asking(app, "shouts", binding, access) as client:
            for words in ("do it", "in words"):
                task = await last(client, with_file(words))
                assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
                *_, file = task.artifacts[0].parts
                assert (file.raw, file.filename, file.media_type) == (b"HELLO", "loud-a.txt", "text/plain")
            listed = await client.list_tasks(ListTasksRequest(include_artifacts=True))
            assert not any(part.raw for one in listed.tasks for part in one.artifacts[0].parts)
        saved = await rt.workspace.artifacts.list()
        assert {(one.artifact.name, one.trust) for one in saved} >= {("a.txt", "untrusted")}


@pytest.mark.rule("peer.files")
async def test_names_of_files_lead_nowhere_and_addresses_are_not_fetched():
    with team() as rt:
        app = app_of(team_of(rt), caller())
        async with rt.serving(), asking(app, "shouts") as client:
            for name, kept in (("../../etc/passwd", "loud-passwd"), ("..", "loud-file"), ("", "loud-file")):
                task = await last(client, with_file("do it", filename=name, media_type="x"))
                *_, file = task.artifacts[0].parts
                assert (file.filename, file.media_type) == (kept, "application/octet-stream")
            place = Message(message_id="m", role=Role.ROLE_USER, parts=[Part(url="https://example.com/a.txt")])
            with pytest.raises(ContentTypeNotSupportedError):
                await last(client, SendMessageRequest(message=place))


@pytest.mark.rule("peer.files")
async def test_a_caller_with_a_card_cannot_show_a_file_of_others_by_its_digest():
    with team() as rt:
        own = await team_of(rt).workspace.artifacts.save(b"secret", "s.txt", by="access:ann")
        app = app_of(rt, caller(), VISITOR)
        async with rt.serving(), asking(app, "shouts", access="vic") as client:
            parts = [Part(text=f"do it {own}")]
            message = Message(message_id="m", role=Role.ROLE_USER, parts=parts)
            task = await last(client, SendMessageRequest(message=message))
            assert task.status.state != TaskState.TASK_STATE_COMPLETED
            assert b"SECRET" not in task.SerializeToString()


@pytest.mark.rule("peer.files")
async def test_files_that_are_too_large_stay_references():
    async def fills(turn: Turn) -> object:
        made = [await turn.artifacts.save(bytes([n]) * 3_000_000, f"{n}.bin") for n in (1, 2)]
        return [one.data() for one in made]

    with team() as rt:
        rt.agent("fills")(fills)
        async with rt.serving(), asking(app_of(rt, caller()), "fills") as client:
            task = await last(
                client, SendMessageRequest(message=Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text="x")]))
            )
            data, *files = task.artifacts[0].parts
            assert [one.filename for one in files] == ["1.bin"]
            assert len(data.data.list_value.values) == 2

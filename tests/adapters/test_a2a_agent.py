"""Agents of other servers as holders of a task."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from a2a.types.a2a_pb2 import Message, Part
from starlette.responses import Response
from starlette.routing import Router

from adapters.a2a_served import Stranger, key_pair, on_port, stranger
from remit import Artifact, Bounds, Card, Failed, Runtime, Turn
from remit.adapters.a2a import a2a
from remit.adapters.a2a.parts import data_part
from remit.config.teams import team as team_of
from remit.core.artifact import digests_in, references
from remit.engine.answering import AskedQuestion
from remit.errors import BadInput
from remit.server.callers import RUN
from server.serving import app_of, caller
from teams import team

pytestmark = pytest.mark.anyio
HERE = "127.0.0.0/8"


def asks_remote(rt: Runtime, address: str, **how: str) -> None:
    """A team whose lead asks an agent of another server."""
    rt.add(Card("lead", asks=["stranger"]), lambda turn: turn.delegate("stranger", turn.task))
    rt.add(Card("stranger"), a2a(address, networks=HERE, **how))


@pytest.mark.rule("peer.remote")
@pytest.mark.parametrize(("binding", "streams"), [("JSONRPC", True), ("HTTP+JSON", True), ("JSONRPC", False)])
async def test_a_remote_agent_gets_the_task_with_its_chain_and_its_answer_is_untrusted(binding: str, streams: bool):
    remote = Stranger()
    async with stranger(remote, binding=binding, streams=streams) as address:
        with team() as rt:
            asks_remote(rt, address)
            within = Bounds(credits="$0.50", deadline=datetime(2200, 1, 1, tzinfo=UTC))
            outcome = await rt.outcome("lead", "print", within=within)
            assert outcome.value == "did print"
            (status,) = await rt.workspace.tasks.list(agent="stranger")
            assert status.trust == "untrusted"
            (chain,) = remote.chains
            assert (chain["chain"], chain["credits"]) == (["lead", "stranger"], "$0.50")
            assert chain["deadline"] > 0
            assert await rt.run("lead", "hello") == "hello yourself"


LETTER = Part(raw=b"dear all", filename="../letter.txt", media_type="text/plain")
UNKNOWN = Artifact(f"sha256:{'0' * 64}", 7, "far.txt", "text/plain")


@pytest.mark.rule("peer.remote-files")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_remote_agent_gets_the_files_of_its_task_and_those_it_makes_become_artifacts(binding: str):
    remote = Stranger()
    async with stranger(remote, binding=binding) as address:
        with team() as rt:
            asks_remote(rt, address)
            given = await rt.workspace.artifacts.save(b"two chairs", "order.txt")
            unseen = f"sha256:{'1' * 64}"
            remote.gives = [LETTER]
            result = cast("Any", await rt.run("lead", f"print {given} and {unseen}"))
            (sent,) = [part for part in remote.sent[0].parts if part.HasField("raw")]
            assert (sent.raw, sent.filename, sent.media_type) == (b"two chairs", "order.txt", "text/plain")
            (made,) = references(result)
            assert result == {"text": f"did print {given} and {unseen}", "files": [made.data()]}
            assert (made.name, made.media_type) == ("letter.txt", "text/plain")
            opened = await rt.workspace.artifacts.open(made)
            assert (await opened.read(), opened.trust) == (b"dear all", "untrusted")


async def says_nothing(_: Message) -> str:
    return ""


@pytest.mark.rule("peer.remote-files")
async def test_a_result_has_the_references_to_files_that_arrived_and_the_names_of_the_others():
    remote = Stranger(says_nothing)
    async with stranger(remote) as address:
        with team() as rt:
            asks_remote(rt, address)
            remote.gives = [LETTER]
            letter = cast("Any", await rt.run("lead", "x"))
            assert letter["name"] == "letter.txt"
            remote.gives = [LETTER, data_part({"see": letter})]
            assert await rt.run("lead", "x") == {"see": letter}
            remote.gives = [LETTER, Part(raw=b"", filename="b.txt")]
            assert [one["name"] for one in cast("Any", await rt.run("lead", "x"))] == ["letter.txt", "b.txt"]
            remote.gives = [data_part({"see": UNKNOWN.data()}), Part(url="https://example.com/a.png")]
            assert "[files that did not arrive: https" not in (text := str(await rt.run("lead", "x")))
            assert text.endswith("[files that did not arrive: a file, far.txt]")
            remote.gives = [Part(raw=bytes([n]), filename=f"{n}") for n in range(22)]
            many = cast("Any", await rt.run("lead", "x"))
            assert (len(many["files"]), many["text"]) == (20, "[files that did not arrive: 20, 21]")
            large = [await rt.workspace.artifacts.save(bytes([n]) * 600_000, f"{n}.bin") for n in (1, 2)]
            remote.sent.clear()
            await rt.run("lead", f"{large[0]} {large[1]}")
            text, file = remote.sent[0].parts
            (left,) = {one.name for one in large} - {file.filename}
            assert text.text.endswith(f"[files that were not sent, because they are too large or too many: {left}]")


@pytest.mark.rule("peer.remote-files")
async def test_a_text_and_values_that_do_not_fit_into_a_result_become_files():
    deep: object = "bottom"
    for _ in range(40):
        deep = [deep]
    remote = Stranger(says_nothing)
    async with stranger(remote) as address:
        with team() as rt:
            asks_remote(rt, address)
            for parts, content in (
                ([Part(text="é" * 600_000)], ("é" * 600_000).encode()),
                ([data_part({"deep": deep})], f'{{"deep":{json.dumps(deep)}}}'.encode()),
                ([data_part(1), data_part("x" * 600_000)], f'[1,"{"x" * 600_000}"]'.encode()),
            ):
                remote.gives = parts
                (made,) = references(await rt.run("lead", "x"))
                opened = await rt.workspace.artifacts.open(made)
                assert (await opened.read(), opened.trust) == (content, "untrusted")
            remote.gives = [Part(text="t" * 600_000), data_part("small"), LETTER]
            result = cast("Any", await rt.run("lead", "x"))
            assert (result["data"], [one.name for one in references(result)]) == ("small", ["letter.txt", "answer.txt"])


@pytest.mark.rule("peer.remote")
async def test_what_a_server_says_of_another_task_is_ignored():
    async with stranger(Stranger()) as address:
        with team() as rt:
            asks_remote(rt, address)
            assert await rt.run("lead", "mixed") == "did mixed"


@pytest.mark.rule("peer.remote-files")
async def test_a_file_goes_from_one_server_to_another_and_the_result_comes_back(tmp_path: Path):
    async def shouts(turn: Turn) -> object:
        (digest,) = digests_in(turn.task)
        content = await (await turn.artifacts.open(digest)).read()
        return {"loud": await turn.artifacts.save(content.upper(), "loud.txt")}

    with team(tmp_path / "there.db") as there, team(tmp_path / "here.db") as here:
        there.agent("shouts")(shouts)
        async with there.serving(), on_port(app_of(there, caller("here", RUN))) as address:
            asks_remote(here, f"{address}/a2a/shouts", token="key-here")
            given = await here.workspace.artifacts.save(b"hello", "quiet.txt")
            (loud,) = references(cast("Any", await here.run("lead", f"louder: {given}")))
            assert (loud.name, await (await here.workspace.artifacts.open(loud)).read()) == ("loud.txt", b"HELLO")


@pytest.mark.rule("peer.sorted")
async def test_failures_of_a_remote_agent_are_told_apart():
    remote = Stranger()
    async with stranger(remote) as address:
        with team() as rt:
            asks_remote(rt, address)
            for task, sentence in (
                ("fail", "RemoteFailed: the agent at 127.0.0.1 failed: no ink"),
                ("reject", "Refused: the agent at 127.0.0.1 rejected the task: not on Sundays"),
            ):
                no = (await rt.outcome("stranger", task)).error
                assert isinstance(no, Failed)
                assert sentence in str(no)
                assert not no.retryable


@pytest.mark.rule("peer.sorted")
async def test_a_server_that_cannot_be_reached_is_asked_again_and_one_that_leads_elsewhere_is_not():
    async with stranger(Stranger(), leads_to="http://127.0.0.2:9") as address:
        with team() as rt:
            asks_remote(rt, address)
            elsewhere = (await rt.outcome("stranger", "x")).error
            assert "names another host" in str(elsewhere)
    async with stranger(Stranger(), leads_to="ftp://127.0.0.1") as address:
        with team() as rt:
            asks_remote(rt, address)
            nowhere = (await rt.outcome("stranger", "x")).error
            assert "names no address that may be asked" in str(nowhere)
    async with on_port(Router(default=Response(status_code=503))) as address:
        with team() as rt:
            asks_remote(rt, address)
            busy = (await rt.outcome("stranger", "x")).error
            assert isinstance(busy, Failed)
            assert busy.retryable
            assert str(busy).endswith("RemoteDown: 127.0.0.1 cannot answer now (HTTP 503)")
    with team() as rt:
        asks_remote(rt, address)  # its server has ended
        gone = (await rt.outcome("stranger", "x")).error
        assert isinstance(gone, Failed)
        assert gone.retryable
        assert str(gone).endswith("RemoteDown: 127.0.0.1 cannot be reached (NetworkError)")  # no place in a library
    async with stranger(Stranger()) as address:
        with team() as rt:
            asks_remote(rt, f"{address}/nobody")
            nobody = (await rt.outcome("stranger", "x")).error
            assert str(nobody).endswith("no agent at this address, or none that this token may ask (HTTP 404)")
    for wrong in (
        "http://127.0.0.1/agent",
        "https://localhost/agent",
        "ftp://example.com",
        "https://user@example.com/",
    ):
        with pytest.raises(BadInput):
            a2a(wrong, networks="")
    for networks in (["10.0.0.0/8"], "10.0.0.0/99"):
        with pytest.raises(BadInput, match="^networks lists networks, such as"):
            a2a("https://example.com/agent", networks=cast("str", networks))
    with pytest.raises(BadInput, match="PUBLIC KEY"):
        a2a("https://example.com/agent", key="abc")
    with team() as rt, pytest.raises(BadInput, match="agent of another server"):
        rt.add(Card("stranger", tools=["x"]), a2a("https://example.com/agent"))
    with team() as rt:
        rt.add(a2a("https://example.com/a2a/Translator"), asks=["lead"])
        (card,) = await rt.workspace.agents.list()
        assert card.name == "translator"


@pytest.mark.rule("peer.pinned")
async def test_a_card_must_be_signed_with_the_pinned_key():
    (private, public), (_, other) = key_pair(), key_pair()
    async with stranger(Stranger(), key=private) as address:
        with team() as rt:
            rt.add(Card("good"), a2a(address, networks=HERE, key=public))
            rt.add(Card("bad"), a2a(address, networks=HERE, key=other))
            assert await rt.run("good", "print") == "did print"
            assert "not signed with the key that is pinned" in str((await rt.outcome("bad", "print")).error)
    async with stranger(Stranger()) as address:
        with team() as rt:
            rt.add(Card("unsigned"), a2a(address, networks=HERE, key=public))
            assert "not signed with the key" in str((await rt.outcome("unsigned", "print")).error)


@pytest.mark.rule("peer.remote-question")
async def test_a_question_of_a_remote_agent_goes_to_a_person_and_the_answer_back():
    remote = Stranger()
    async with stranger(remote) as address:
        with team() as rt:
            asks_remote(rt, address)
            asked: list[str] = []

            async def person(question: AskedQuestion) -> None:
                asked.append(question.text)
                await question.answer("the red one")

            assert await rt.run("lead", "ask", on_question=person) == "did the red one"
            assert asked == ["The agent 'stranger' at 127.0.0.1 asks: Which?"]
            assert [one.task_id for one in remote.sent] == ["", "t1"]
            assert await rt.run("lead", "login", on_question=person) == "did the red one"
            assert asked[1:] == ["The agent 'stranger' at 127.0.0.1 wants to be authorised: May I?"]


@pytest.mark.rule("peer.remote-question")
async def test_an_answer_to_what_was_authorised_there_is_not_needed_and_an_answer_to_a_question_is():
    for text, result in (("login", "did hang"), ("ask", "")):
        async with stranger(Stranger()) as address:
            with team() as rt:
                asks_remote(rt, address)

                async def person(question: AskedQuestion) -> None:
                    await question.answer("late")

                outcome = await rt.outcome("lead", text, on_question=person)
                assert outcome.value == (result or None)
                assert outcome.ok == bool(result)


@pytest.mark.rule("peer.cancel")
async def test_a_cancelled_task_is_cancelled_there_too_and_a_requeued_one_goes_on():
    remote = Stranger()
    async with stranger(remote) as address:
        with team() as rt:
            asks_remote(rt, address)
            task = await rt.workspace.submit("stranger", "hang")
            async with rt.serving():
                await remote.working.wait()
            assert (await task.status()).state == "pending"
            assert not remote.cancelled  # its worker has only stopped
            async with rt.serving():
                await remote.followed.wait()
                await task.cancel()
                assert (await task.wait()).state == "cancelled"
            assert remote.cancelled == ["t1"]
            assert len(remote.sent) == 1


@pytest.mark.rule("peer.once")
async def test_a_task_that_failed_is_sent_again_by_a_retry_and_one_that_completed_is_not():
    remote = Stranger()
    async with stranger(remote) as address:
        with team() as rt:
            asks_remote(rt, address)
            async with rt.serving():
                task = await rt.workspace.submit("stranger", "fail")
                assert (await task.wait()).state == "failed"
                again = await rt.workspace.tasks.retry(task.id)
                assert (await again.wait()).state == "failed"
            assert len(remote.sent) == 2
            first, second = remote.chains
            assert first["key"] != second["key"]


@pytest.mark.rule("peer.once")
async def test_after_kill_9_another_worker_follows_the_same_remote_task(tmp_path: Path):
    remote, store = Stranger(), tmp_path / "team.db"
    async with stranger(remote) as address:
        with team(store) as rt:
            asks_remote(rt, address)
            task = await rt.workspace.submit("stranger", "hang")
            command = [sys.executable, "-c", WORKER, str(store), address]
            async with await anyio.open_process(command, stdout=None, stderr=None) as worker:
                await remote.working.wait()
                await _recorded(rt, task.id)
                worker.kill()
            remote.gate.set()
            async with rt.serving():
                assert (await task.wait()).value in ("did hang", "did it later")
            assert len(remote.sent) == 1
            assert not remote.cancelled


WORKER = """
import sys, anyio
from remit import Card, Runtime
from remit.adapters.a2a import a2a

async def main():
    with Runtime(sys.argv[1]) as rt:
        rt.add(Card("stranger"), a2a(sys.argv[2], networks="127.0.0.0/8"))
        async with rt.serving():
            await anyio.sleep_forever()

anyio.run(main)
"""


async def _recorded(rt: Runtime, task: str) -> None:
    """Wait until the remote task is recorded."""
    async with rt.workspace.journal.follow(task=task, after=0, kinds=["effect.done"]) as follow:
        seen = 0
        while seen < 2:  # its handle, and what was sent
            seen += len(await follow.next())


@pytest.mark.rule("peer.remote")
async def test_a_team_file_names_an_agent_of_another_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    remote = Stranger()
    async with stranger(remote) as address:
        monkeypatch.setenv("REMIT_A2A_NETWORKS", HERE)
        monkeypatch.setenv("THEIR_TOKEN", "opensesame")
        file = tmp_path / "remit.toml"
        file.write_text(f'[agents.stranger]\na2a = "{address}"\ntoken = "${{THEIR_TOKEN}}"\nrole = "prints"\n')
        with team_of(file).runtime as rt:
            assert await rt.run("stranger", "print") == "did print"
        assert remote.tokens == {"Bearer opensesame"}
        file.write_text('[agents.stranger]\na2a = "https://10.0.0.1/agent"\n')
        with pytest.raises(BadInput, match=r"agents\.stranger\.a2a: .* a number is no name"):
            team_of(file)

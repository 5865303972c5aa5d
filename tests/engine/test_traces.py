"""A failure says where it was, and nothing that is written says what is secret."""

import json
import logging
import sqlite3
from pathlib import Path
from traceback import extract_tb, format_exception
from typing import cast

import pytest

import remit
from engine.helping import PATIENCE, Shaky, ends, sound
from remit import Failed, Runtime, Turn, run
from remit.engine.traces import Frame, shortened, trace
from remit.errors import BadInput
from remit.runtime.workspace import subscribe
from remit.testing import FakeClock
from remit.testing.models import Fails, model_server
from teams import echo, team

pytestmark = pytest.mark.anyio

KEY = "sk-0123456789abcdef"


@pytest.mark.rule("failure.trace")
@pytest.mark.case("failing_leaf")
async def test_a_failure_keeps_its_frames_and_its_sentence_names_the_last_of_the_users_own(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate("leaf", "x")

    def deeper(mapping: dict[str, int]) -> int:
        return mapping["missing"]

    @rt.agent
    async def leaf(turn: Turn) -> int:
        return deeper({})

    outcome = await rt.outcome("lead", "x")
    line = deeper.__code__.co_firstlineno + 1
    said = f"'leaf' failed: KeyError: 'missing' (test_traces.py:{line} in deeper)"
    assert str(outcome.error) == f"'lead' failed: Failed: {said}"
    failed = await rt.workspace.journal.history(kinds=frozenset({"task.failed"}))
    assert [event.agent for event in failed] == ["leaf", "lead"]
    trace = str(failed[0].data["trace"])
    assert trace.splitlines()[-2:] == [f"{__file__}:{line} in deeper", "KeyError"]
    assert "remit/engine" not in trace
    await sound(rt)


@pytest.mark.rule("failure.trace")
def test_packages_that_are_installed_beside_remit_are_not_taken_for_it():
    assert Frame(remit.__file__, 1, "f").is_ours
    for other in ("httpx/_client.py", "remit_extras/agents.py"):
        assert not Frame(str(Path(remit.__file__).parents[1] / other), 1, "f").is_ours


@pytest.mark.rule("failure.trace")
async def test_a_trace_is_bounded_and_tells_what_led_to_what(rt: Runtime):
    def down(depth: int) -> None:
        if not depth:
            raise ExceptionGroup("two", [ValueError("a"), TypeError("b")])
        down(depth - 1)

    @rt.agent
    async def deep(turn: Turn) -> None:
        try:
            down(900)
        except ExceptionGroup as error:
            raise RuntimeError("x" * 100_000) from error

    outcome = await rt.outcome("deep", "x")
    assert isinstance(outcome.error, Failed)
    assert len(str(outcome.error)) <= 2_000
    assert str(outcome.error).endswith(" in deep)")
    [failed] = await rt.workspace.journal.history(kinds=frozenset({"task.failed"}))
    trace = str(failed.data["trace"])
    assert len(trace) <= 8_000
    assert trace.splitlines()[-1] == "RuntimeError"
    assert "ExceptionGroup" in trace


@pytest.mark.rule("failure.trace")
async def test_a_failure_without_the_users_code_names_no_line_of_a_framework(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("A_KEY", "none")
    async with model_server([Fails(401)]) as server, Runtime() as rt:
        rt.model_agent("coder", "openai-chat:gpt-5", keys=["A_KEY"], base_url=f"{server.url}/v1")
        outcome = await rt.outcome("coder", "x")
    assert str(outcome.error).startswith("'coder' failed: NoAnswer: no model answered; ")
    assert ".py" not in str(outcome.error)


@pytest.mark.rule("failure.trace")
async def test_every_attempt_keeps_its_own(rt: Runtime, clock: FakeClock):
    @rt.agent
    async def shaky(turn: Turn) -> None:
        raise Shaky

    await ends(clock, await rt.submit("shaky", "x", attempts=2))
    kinds = frozenset({"task.retrying", "task.died"})
    assert all("in shaky" in str(event.data["trace"]) for event in await rt.workspace.journal.history(kinds=kinds))


@pytest.mark.rule("log.harmless")
async def test_what_others_said_makes_no_line_of_its_own_in_the_log(rt: Runtime, caplog: pytest.LogCaptureFixture):
    rt.agent("echo")(echo)

    def fails(_events: object) -> None:
        raise ValueError("first\nsecond\x1b[2J")

    subscribe(rt.workspace, fails)
    await rt.run("echo", "x")
    logging.getLogger("remit").warning("a server said %s", "no\nremit: all is well\x1b[2J")

    assert caplog.messages[-1] == "a server said no\\nremit: all is well\\x1b[2J"
    assert "ValueError: first" in caplog.text
    assert "\x1b" not in caplog.text


@pytest.mark.rule("log.harmless")
async def test_many_runtimes_that_nobody_closes_leave_one_filter_on_the_log(caplog: pytest.LogCaptureFixture):
    log = logging.getLogger("remit")
    runtimes = [Runtime(secrets=[f"secret number {number}"]) for number in range(5)]
    for rt in runtimes:
        rt.agent("echo")(echo)
        await rt.run("echo", "x")
    log.warning("a server said %s and %s", "secret number 0", "secret number 4")
    runtimes[4].close()
    log.warning("a server said %s and %s", "secret number 0", "secret number 4")

    assert caplog.messages[-2:] == ["a server said [secret] and [secret]", "a server said [secret] and secret number 4"]
    assert len(log.filters) == 1
    for rt in runtimes:
        rt.close()


@pytest.mark.rule("secret.nowhere")
async def test_a_secret_is_in_no_table_whatever_event_carries_it(tmp_path, clock: FakeClock):
    path = tmp_path / "team.db"
    with team(path, clock=clock, secrets=[KEY, "another secret"]) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> dict[str, object]:
            await turn.context.set("n", "k", {KEY: [f"value {KEY}"]})
            await turn.send("leaf", f"use {KEY}")
            assert await turn.once(f"charge {KEY}", lambda: KEY) == "[secret]"
            with pytest.raises(Failed, match=r"401 for \[secret\]") as failed:
                await turn.delegate("leaf", f"with {KEY}")
            assert KEY not in "".join(format_exception(failed.value.__cause__ or failed.value))
            with pytest.raises(Failed, match=r"401 for \[secret\]"):
                await (await turn.submit("leaf", f"with {KEY}")).result(PATIENCE)
            return {"result": KEY}

        @rt.agent
        async def leaf(turn: Turn) -> None:
            raise ValueError(f"401 for {KEY}, another secret")

        assert await rt.run("lead", KEY) == {"result": KEY}
        await sound(rt)
    await _nowhere(path)


async def _nowhere(path) -> None:
    with sqlite3.connect(path) as database:
        dump = "\n".join(database.iterdump())
    assert KEY not in dump
    assert "another secret" not in dump
    assert "401 for [secret], [secret]" in dump
    for file in path.parent.iterdir():
        assert KEY.encode() not in file.read_bytes()


@pytest.mark.rule("secret.nowhere")
async def test_what_led_to_a_failure_is_told_unless_it_tells_a_secret(clock: FakeClock):
    with team(clock=clock, secrets=[KEY]) as rt:

        @rt.agent
        async def leaf(turn: Turn) -> None:
            raise ValueError("it went wrong") from LookupError(turn.task)

        for said, causes in (("harmless", [ValueError, LookupError]), (KEY, [])):
            with pytest.raises(Failed, match="it went wrong") as failed:
                await rt.run("leaf", said)
            found, at = [], failed.value.__cause__
            while at is not None:
                found.append(type(at))
                at = at.__cause__
            assert found == causes
            assert KEY not in "".join(format_exception(failed.value))


@pytest.mark.rule("secret.nowhere")
async def test_a_secret_is_in_no_line_of_our_log(caplog: pytest.LogCaptureFixture):
    with team(secrets=[KEY]) as rt:
        assert rt.running() == 0
        error = ValueError(KEY)
        logging.getLogger("remit").error("it failed: %r", error, exc_info=error)
    assert "it failed: ValueError('[secret]')" in caplog.text
    assert KEY not in caplog.text
    logging.getLogger("remit").error("afterwards %s", KEY)
    assert KEY in caplog.text  # what another runtime logs is not our affair


@pytest.mark.rule("secret.nowhere")
@pytest.mark.parametrize("wrong", ["a plain text", ["short"], [b"bytes are no text"], 7])
def test_what_cannot_be_a_secret_is_refused(wrong):
    with pytest.raises(BadInput, match="secret"):
        Runtime(secrets=wrong)
    with pytest.raises(BadInput, match="did you mean secrets"):
        Runtime(secret=["long enough for it"])  # pyright: ignore[reportCallIssue]


def files_of(error: BaseException | None) -> list[str]:
    assert error is not None
    return [frame.filename for frame in extract_tb(error.__traceback__)]


def fails_deep(rt: Runtime) -> None:
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate("leaf", "x")

    @rt.agent
    async def leaf(turn: Turn) -> int:
        return len(json.loads("{"))  # ends in a library


@pytest.mark.rule("failure.frames")
async def test_the_traceback_of_a_run_and_of_each_cause_ends_in_the_users_code(rt: Runtime):
    fails_deep(rt)
    with pytest.raises(Failed) as failed:
        await rt.run("lead", "x")
    assert files_of(failed.value) == [__file__]
    assert files_of(failed.value.__cause__) == [__file__]
    first = failed.value.__cause__
    assert first is not None
    assert first.__cause__ is not None
    assert files_of(first.__cause__)[0] == __file__
    assert files_of(first.__cause__)[-1].endswith("decoder.py")
    for word in ("", 7):
        with pytest.raises(BadInput) as bad:
            await rt.run("lead", word)
        assert files_of(bad.value) == [__file__]


@pytest.mark.rule("failure.frames")
def test_the_traceback_of_a_script_ends_in_the_users_code():
    with team() as rt:
        fails_deep(rt)
        with pytest.raises(Failed) as failed:
            run(rt, "lead", "x")
        assert files_of(failed.value) == [__file__]
        assert failed.value.__context__ is failed.value.__cause__ or failed.value.__context__ is None
        with pytest.raises(BadInput) as bad:
            run(rt, "lead", "")
        assert files_of(bad.value) == [__file__]


@pytest.mark.rule("failure.frames")
def test_the_traceback_of_a_bug_inside_remit_stays_whole():
    def bug() -> None:
        trace(cast("BaseException", None))

    with pytest.raises(AttributeError) as found:
        bug()
    before = files_of(found.value)
    assert before[-1].endswith("traces.py")
    assert files_of(shortened(found.value)) == before
    never_raised = ValueError("x")
    assert shortened(never_raised).__traceback__ is None

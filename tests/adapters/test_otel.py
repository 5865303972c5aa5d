"""OpenTelemetry: one span for each task, wherever it ends, in one trace for each run."""

import sys
from contextlib import closing
from pathlib import Path
from threading import Event as Signal
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from adapters.places import KEY, KEY_NAME, KINDS, join, served
from adapters.spanning import attributes, happened, of_trace, own_id, parent, seeing
from engine.helping import PATIENCE, Shaky, doomed, ends, quiet, take_over
from engine.test_takeover import Puppet
from remit import Card, Command, Refused, Runtime, Turn
from remit.adapters import otel_names
from remit.adapters.otel import current_trace, instrument
from remit.adapters.process import program
from remit.core.prices import Usage
from remit.engine.directory import USUAL
from remit.errors import BadInput
from remit.stores.opening import database_at
from remit.testing import FakeClock
from remit.testing.models import Calls, Says
from teams import echo, team

pytestmark = pytest.mark.anyio


@pytest.mark.rule("otel.spans")
async def test_every_task_is_one_span_below_that_of_its_asker_in_the_trace_of_its_run(rt: Runtime):
    @rt.agent(asks=["coder", "desk"])
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused):
            await turn.delegate("stranger", "x")
        queued = await turn.submit("coder", "later")
        return await turn.delegate("desk", turn.task) + await queued.result()

    @rt.agent(asks=["coder"])
    async def desk(turn: Turn) -> Command:
        return Command(goto="coder")

    rt.add(Card("coder"), echo)
    with seeing(rt) as seen:
        async with rt.serving():
            first = await rt.outcome("lead", "go", session="talk")
            second = await rt.outcome("lead", "go")
        spans = await seen.tasks()
        history = await rt.workspace.journal.history()
        begun = {event.task: event for event in history if event.kind in ("task.started", "task.submitted")}
        assert spans.keys() == begun.keys()
        for task, span in spans.items():
            above = str(begun[task].data["parent"])
            assert parent(span) == (own_id(spans[above]) if above else None)
            assert of_trace(span) == of_trace(spans[begun[task].run])
        assert len({of_trace(span) for span in spans.values()}) == 2
        root = spans[first.id]
        assert root.name == "invoke_agent lead"
        assert root.start_time == begun[first.id].at * 1_000
        assert attributes(root) | {"gen_ai.operation.name": "invoke_agent", "remit.state": "completed"} == attributes(
            root
        )
        assert attributes(root)["gen_ai.conversation.id"] == "talk"
        assert [one for one in happened(root) if one not in ("waiting", "resumed")] == ["started", "hop.refused"]
        assert {**(root.events[1].attributes or {})} == {
            "gen_ai.agent.name": "lead",
            "remit.rule": "unknown",
            "remit.to": "other",  # the text of a model may be there
        }
        (handed,) = (
            one for one in spans.values() if one.name == "invoke_agent desk" and of_trace(one) == of_trace(root)
        )
        assert happened(handed) == ["started", "handed"]
        assert attributes(handed)["remit.holder"] == "coder"
        assert second.id in spans


@pytest.mark.rule("otel.attempts")
async def test_retries_are_events_of_one_span_and_a_failure_has_its_type_and_not_its_text(clock: FakeClock):
    tries: list[str] = []

    async def shaky(turn: Turn) -> str:
        tries.append(turn.task)
        raise Shaky("canary") if len(tries) < 3 else ValueError("canary")

    with team(clock=clock) as rt, seeing(rt) as seen:
        rt.add(Card("shaky"), shaky, retry=USUAL)
        async with rt.serving():
            task = await rt.submit("shaky", "x", attempts=3)
            assert (await ends(clock, task)).state in ("failed", "dead")
        (span,) = (await seen.tasks()).values()
        assert happened(span) == ["started", "retrying", "claimed", "retrying", "claimed"]
        assert attributes(span)["remit.attempts"] == 3
        assert attributes(span)["error.type"] == "ValueError"
        assert not span.status.is_ok
        assert "canary" not in span.to_json()


@pytest.mark.rule("otel.takeover")
async def test_a_task_of_a_dead_process_is_one_span_with_both_attempts(tmp_path, clock: FakeClock):
    path = tmp_path / "team.db"
    with doomed(path, clock) as dead, team(path, clock=clock) as heir, seeing(dead, heir) as seen:
        puppet = Puppet()
        dead.add(Card("lead", asks="*"), puppet)
        heir.add(Card("lead", asks="*"), echo)
        task = await dead.submit("lead", "go")
        await puppet.inside.wait()
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "go"
        puppet.go.set()
        await quiet()
        (span,) = (await seen.tasks()).values()
        assert happened(span) == ["started", "lost", "claimed"]
        assert attributes(span)["remit.attempts"] == 2
        workers = [(event.attributes or {}).get("remit.worker") for event in span.events]
        assert workers[0] != workers[2]


@pytest.mark.rule("otel.calls", "otel.nested")
@pytest.mark.parametrize("kind", KINDS)
async def test_requests_tools_and_spans_of_others_are_below_the_turn_of_every_kind(
    kind: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(KEY_NAME, KEY)
    async with (
        served([Calls("look", {"where": "canary"}), Says("canary", usage=Usage(100, 7, 80))]) as place,
        Runtime() as rt,
    ):
        with seeing(rt) as seen:

            def look(where: str) -> str:
                """Look there."""
                with seen.provider.get_tracer("theirs").start_as_current_span("theirs"):
                    return f"canary {where}"

            join(rt, kind, place, tools=[look])
            await rt.run("it", "canary")
            spans = {span.name: span for span in await seen.spans()}
            turn = spans.pop("invoke_agent it")
            assert spans.keys() == {"chat m", "execute_tool look", "theirs"}
            assert all(parent(span) == own_id(turn) for span in spans.values())
            assert all(of_trace(span) == of_trace(turn) for span in spans.values())
            chat = spans["chat m"]
            assert chat.start_time is not None
            assert chat.end_time is not None
            assert chat.end_time > chat.start_time
            assert attributes(chat)["gen_ai.usage.input_tokens"] == 100
            assert attributes(chat)["gen_ai.usage.cache_read.input_tokens"] == 80
            assert attributes(spans["execute_tool look"])["remit.state"] == "done"
            assert "canary" not in "".join(span.to_json() for span in (turn, *spans.values()))


@pytest.mark.rule("otel.nested")
async def test_a_program_is_a_span_too_and_a_span_of_the_caller_is_not_changed():
    with Runtime() as rt, seeing(rt) as seen:
        rt.add(Card("shouter"), program([sys.executable, "-c", "print(input().upper())"]))
        assert await rt.run("shouter", "hello") == "HELLO"
        ((task, span),) = (await seen.tasks()).items()
        assert span.name == "invoke_agent shouter"
        assert attributes(span)["remit.run"] == task


@pytest.mark.rule("otel.incoming")
async def test_a_run_belongs_to_the_trace_of_its_caller_in_every_process(tmp_path: Path):
    def join(rt: Runtime) -> None:
        @rt.agent(asks=["coder"])
        async def lead(turn: Turn) -> str:
            return await turn.delegate("coder", turn.task)

        rt.add(Card("coder"), echo)

    path = tmp_path / "team.db"
    with team(path, hands=0) as asking, team(path) as working, seeing(asking, working) as seen:
        join(asking)
        join(working)
        assert current_trace() == ""
        with seen.provider.get_tracer("theirs").start_as_current_span("request") as request:
            task = await asking.submit("lead", "x", trace=current_trace())
        async with working.serving():
            assert await task.result(PATIENCE) == "x"
        tasks = await seen.tasks()
        assert {of_trace(span) for span in tasks.values()} == {request.get_span_context().trace_id}
        assert parent(tasks[task.id]) == request.get_span_context().span_id
        (other,) = (span for name, span in tasks.items() if name != task.id)
        assert parent(other) == own_id(tasks[task.id])


@pytest.mark.rule("otel.metrics")
async def test_metrics_are_labelled_with_agents_states_rules_and_kinds_only(rt: Runtime):
    @rt.agent(asks=["coder"])
    async def lead(turn: Turn) -> str:
        for to in ("canary-1", "canary-2"):
            with pytest.raises(Refused):
                await turn.delegate(to, "canary")
        return await turn.delegate("coder", turn.task)

    async def coder(turn: Turn) -> str:
        await turn.spend("$0.10", why="canary")
        return turn.task

    rt.add(Card("coder"), coder)
    with seeing(rt) as seen:
        await rt.run("lead", "canary", session="canary")
        figures = await seen.figures()
        assert figures["remit.tasks.ended coder completed"] == 1
        assert figures["remit.task.duration lead completed"] == 1
        assert figures["remit.refusals lead unknown"] == 2
        assert figures["remit.credits coder"] == 100_000
        assert figures["remit.events task.completed"] == 2
        assert not any("canary" in name or rt.workspace.name in name.split()[1:] for name in figures)


class Stuck(SpanExporter):
    """An exporter whose server does not answer."""

    def __init__(self) -> None:
        self.begun = Signal()
        self.go = Signal()
        self.number = 0

    def export(self, spans: Any) -> SpanExportResult:
        self.begun.set()
        self.go.wait(PATIENCE)
        self.number += len(spans)
        if self.number == 1:
            raise OSError("the server is gone")
        return SpanExportResult.SUCCESS


@pytest.mark.rule("otel.slow")
async def test_an_exporter_that_hangs_or_fails_delays_no_run_and_what_is_too_much_is_dropped(
    caplog: pytest.LogCaptureFixture,
):
    stuck, provider = Stuck(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(stuck))
    with Runtime() as rt:
        told = instrument(rt, tracer_provider=provider, backlog=8)
        rt.add(Card("coder"), echo)
        assert [await rt.run("coder", str(number)) for number in range(20)] == [str(number) for number in range(20)]
        assert stuck.begun.wait(PATIENCE)
        assert stuck.number == 0
        stuck.go.set()
        assert told.flush(PATIENCE)
        assert 1 < stuck.number < 20
        assert "facts were dropped" in caplog.text
        told.stop()
        assert await rt.run("coder", "x") == "x"


@pytest.mark.rule("otel.sampling")
async def test_a_sampler_takes_whole_traces():
    with Runtime() as rt, seeing(rt, sampler=TraceIdRatioBased(0.5)) as seen:

        @rt.agent(asks=["coder"])
        async def lead(turn: Turn) -> str:
            return await turn.delegate("coder", turn.task)

        rt.add(Card("coder"), echo)
        for _ in range(20):
            await rt.run("lead", "x")
        taken = [attributes(span)["remit.run"] for span in await seen.spans()]
        assert 0 < len(taken) < 40
        assert all(taken.count(run) == 2 for run in taken)


@pytest.mark.rule("otel.spans")
async def test_a_process_with_many_workspaces_is_told_of_each_once():
    with seeing(None) as seen, closing(database_at(":memory:")) as database:
        ids: list[str] = []
        for name in ("first", "second", "second"):
            rt = Runtime(database, workspace=name)
            rt.add(Card("coder"), echo)
            ids.append((await rt.outcome("coder", "x")).id)
        assert sorted(await seen.tasks()) == sorted(ids)
        assert (await seen.figures())["remit.tasks.ended coder completed"] == 3


def test_without_an_sdk_provider_the_error_says_what_to_give():
    with pytest.raises(BadInput, match="set_tracer_provider"):
        instrument(Runtime())
    with pytest.raises(BadInput, match="of a Runtime or a Workspace"):
        instrument("team.db", tracer_provider=TracerProvider(shutdown_on_exit=False))  # pyright: ignore[reportArgumentType]


def test_the_page_lists_every_attribute_and_metric():
    page = (Path(__file__).parents[2] / "docs" / "guide" / "traces.md").read_text()
    said = {one for one in vars(otel_names).values() if isinstance(one, str) and one.startswith(("remit.", "gen_ai."))}
    said -= {one for one in said if one.startswith("remit.adapters")}  # the name of the module itself
    assert [one for one in said | {metric.name for metric in otel_names.METRICS} if f"`{one}`" not in page] == []

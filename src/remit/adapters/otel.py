"""Traces and metrics for OpenTelemetry: `instrument(rt)`.

The ids of a span are derived from the ids of its run and task, so every process gives a task the same span, and the
process that ends a task exports it. A span is made when its task ends.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, cast

from remit import __version__
from remit.adapters import otel_names as names
from remit.adapters.otel_names import Metric, safe_name
from remit.adapters.telemetry import BACKLOG, Agents, EndedTask, Measures, Telemetry, telemetry_of
from remit.core.checks import whole
from remit.core.events import Event
from remit.core.lifecycle import lands
from remit.errors import BadInput
from remit.runtime.runtime import Runtime
from remit.runtime.workspace import Workspace

try:
    from opentelemetry import metrics, trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.trace import Tracer, TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise BadInput(f"traces need the OpenTelemetry SDK: pip install 'remit[otel]' ({error})") from error

_MICRO: Final = 1_000  # nanoseconds; remit counts microseconds
_BAD_ENDS: Final = frozenset(("failed", "dead"))
_RUNS: Final = 1_000  # whose trace is remembered: every task of a run asks for it several times
_PROPAGATOR: Final = TraceContextTextMapPropagator()


def instrument(
    runtime: Runtime | Workspace | None = None,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    everywhere: bool = False,
    backlog: int = BACKLOG,
) -> Telemetry:
    """Export spans and metrics of what this process does for a runtime, or a workspace; without one, or with
    `everywhere`, for every workspace that it opens from now on.

    Without providers, the global ones of OpenTelemetry are used. The spans of frameworks and HTTP clients that an agent
    uses are below the span of its turn. Up to `backlog` facts wait for a slow exporter; more are dropped and counted.
    `flush()` of the result waits until everything was given to the exporter, `stop()` ends it.
    """
    whole(backlog, "backlog", least=1)
    provider = trace.get_tracer_provider() if tracer_provider is None else tracer_provider
    if not isinstance(provider, TracerProvider):
        raise BadInput(
            "there is no tracer provider of the OpenTelemetry SDK; give one: instrument(rt, "
            "tracer_provider=TracerProvider()), or set it: opentelemetry.trace.set_tracer_provider(...)"
        )
    spans = Spans(provider)
    measures = Measures(_adding(metrics.get_meter_provider() if meter_provider is None else meter_provider))
    telemetry = telemetry_of(runtime, (spans, measures), everywhere=everywhere, backlog=backlog)
    if isinstance(runtime, Runtime):
        runtime.around(Tracing(spans, telemetry))
    return telemetry


def current_trace() -> str:
    """Return the active span of the calling code as W3C traceparent; "" if there is none. Pass it on, and the run
    belongs to the trace of that span: `rt.submit("coder", "x", trace=current_trace())`."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent", "")


# -- ids ---------------------------------------------------------------------------------------------------------------


@lru_cache(_RUNS)
def trace_id(workspace: str, run: str) -> int:
    """Return the id of the trace of a run that belongs to no other trace."""
    return int.from_bytes(sha256(f"trace/{workspace}/{run}".encode()).digest()[:16])


def span_id(workspace: str, task: str) -> int:
    """Return the id of the span of a task."""
    return int.from_bytes(sha256(f"span/{workspace}/{task}".encode()).digest()[:8])


def _call_id(event: Event) -> int:
    return int.from_bytes(sha256(f"event/{event.workspace}/{event.seq}".encode()).digest()[:8])


class _DerivedIds(IdGenerator):
    """The ids of the next span. Only the thread of the telemetry makes spans with it."""

    def __init__(self) -> None:
        self.trace = 0
        self.span = 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span


# -- spans -------------------------------------------------------------------------------------------------------------


class Spans:
    """Makes the spans of tasks, model requests and tool calls. They have names, ids, times and counts, and no text of
    tasks, results, errors, arguments or entries."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = cast("Tracer", provider.get_tracer(names.SCOPE, __version__))
        self._ids = _DerivedIds()
        self._tracer.id_generator = self._ids
        self._flags = lru_cache(_RUNS)(self._sampled)

    def committed(self, events: Sequence[Event], agents: Agents) -> None:
        """Do nothing: spans are made at their end."""

    def dropped(self, number: int) -> None:
        """Do nothing: the metric `remit.telemetry.dropped` counts dropped calls."""

    def rest(self) -> None:
        """Do nothing: a span processor of OpenTelemetry collects and passes on the spans."""

    def context(self, workspace: str, run: str, span: int, incoming: str) -> Context:
        """Return the OpenTelemetry context in which the span with the id `span` is current: spans that begin in it are
        its children. `incoming` is the traceparent that was passed to the run, or ""."""
        parent = _incoming(incoming)
        known = parent.trace_id if parent is not None else trace_id(workspace, run)
        flags = parent.trace_flags if parent is not None else self._flags(known)
        here = SpanContext(known, span, is_remote=False, trace_flags=flags)
        return trace.set_span_in_context(NonRecordingSpan(here), Context())

    def _sampled(self, id_: int) -> TraceFlags:
        """Return the flags of a trace that no caller began: sampled if the sampler takes this trace id. All processes
        must agree on them."""
        taken = self._tracer.sampler.should_sample(None, id_, names.INVOKE_AGENT).decision.is_sampled()
        return TraceFlags(TraceFlags.SAMPLED if taken else TraceFlags.DEFAULT)

    def called(self, event: Event, trace: str) -> None:
        """Export a model request or a tool call, below the span of its task."""
        data = event.data
        name, kind, attributes = _tool_call(data) if event.kind == "tool.done" else _model_call(data)
        parent = self.context(event.workspace, event.run, span_id(event.workspace, event.task), trace)
        self._ids.span = _call_id(event)
        attributes |= {names.AGENT: event.agent, names.RUN: event.run, names.TASK: event.task}
        began = event.at - cast("int", data.get("elapsed", 0))
        span = self._tracer.start_span(name, parent, kind, attributes, start_time=began * _MICRO)
        if names.ERROR in attributes:
            span.set_status(Status(StatusCode.ERROR))
        span.end(event.at * _MICRO)

    def ended(self, task: EndedTask, agents: Agents) -> None:
        """Export the span of a task: its attempts, refusals, handoffs and questions are its events."""
        first, last = task.first, task.last
        workspace, run = first.workspace, first.run
        self._ids.trace, self._ids.span = trace_id(workspace, run), span_id(workspace, first.task)
        state = lands(last.kind)
        span = self._tracer.start_span(
            f"{names.INVOKE_AGENT} {first.agent}",
            self._parent(task),
            SpanKind.INTERNAL,
            _task_attributes(task, state),
            start_time=first.at * _MICRO,
        )
        for event in task.events[:-1]:  # the last is the end of the span
            span.add_event(event.kind, _move_attributes(event, agents), event.at * _MICRO)
        if state in _BAD_ENDS:
            span.set_status(Status(StatusCode.ERROR))
        span.end(last.at * _MICRO)

    def _parent(self, task: EndedTask) -> Context:
        """Return the context of the task's parent: the task that asked for it, or the caller's span for the first task
        of a run. Without the first event of a task, the run is its parent."""
        first = task.first
        workspace, run = first.workspace, first.run
        if first.task == run:
            incoming = _incoming(task.trace)
            return Context() if incoming is None else trace.set_span_in_context(NonRecordingSpan(incoming), Context())
        above = str(first.data.get("parent") or run) if task.is_whole else run
        return self.context(workspace, run, span_id(workspace, above), task.trace)


def _incoming(traceparent: str) -> SpanContext | None:
    """Return the span that a W3C traceparent names, or None."""
    if not traceparent:
        return None
    found = trace.get_current_span(_PROPAGATOR.extract({"traceparent": traceparent}, Context())).get_span_context()
    return found if found.is_valid else None


def _task_attributes(task: EndedTask, state: str) -> dict[str, Any]:
    first, last = task.first, task.last
    found: dict[str, Any] = {
        names.OPERATION: names.INVOKE_AGENT,
        names.AGENT: first.agent,
        names.WORKSPACE: first.workspace,
        names.RUN: first.run,
        names.TASK: first.task,
        names.STATE: state,
        names.ATTEMPTS: task.attempts,
        names.ASKED_HOW: first.data.get("asked_how", "delegate"),
    }
    if first.session:
        found[names.CONVERSATION] = first.session
    if first.data.get("asker"):
        found[names.ASKER] = first.data["asker"]
    if last.agent != first.agent:
        found[names.HOLDER] = last.agent
    if not task.is_whole:
        found[names.INCOMPLETE] = True
    if "type" in last.data:
        found[names.ERROR] = safe_name(last.data["type"])
    return found


def _move_attributes(event: Event, agents: Agents) -> dict[str, Any]:
    data = event.data
    found: dict[str, Any] = {names.AGENT: event.agent}
    for key, name in (("attempt", names.ATTEMPT), ("worker", names.WORKER), ("rule", names.RULE)):
        if data.get(key):
            found[name] = data[key]
    if to := data.get("to"):  # of a refused call, a model may have written anything
        found[names.TO] = agents.label(to) if isinstance(to, str) else [agents.label(one) for one in cast("Any", to)]
    if "type" in data:
        found[names.ERROR] = safe_name(data["type"])
    return found


def _model_call(data: dict[str, Any]) -> tuple[str, SpanKind, dict[str, Any]]:
    provider, _, model = safe_name(data["model"]).rpartition(":")
    found: dict[str, Any] = {names.OPERATION: names.CHAT, names.REQUEST_MODEL: model}
    if provider:
        found[names.PROVIDER] = provider
    if "why" in data:
        found[names.ERROR] = data["why"]
        if "status" in data:
            found[names.STATUS] = data["status"]
    else:
        found[names.RESPONSE_MODEL] = safe_name(data["named"])
    if usage := data.get("usage"):
        found[names.INPUT_TOKENS], found[names.OUTPUT_TOKENS] = usage["input"], usage["output"]
        if "cached_input" in usage:
            found[names.CACHE_READ], found[names.CACHE_WRITTEN] = usage["cached_input"], usage["cache_written"]
    if "cost" in data:
        found[names.COST] = data["cost"]
    return f"{names.CHAT} {model}", SpanKind.CLIENT, found


def _tool_call(data: dict[str, Any]) -> tuple[str, SpanKind, dict[str, Any]]:
    tool = safe_name(data["tool"])
    found: dict[str, Any] = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL: tool,
        names.TOOL_CALL: safe_name(data["call"]),
        names.STATE: data["outcome"],
    }
    if data["outcome"] == "failed":
        found[names.ERROR] = "tool"
    return f"{names.EXECUTE_TOOL} {tool}", SpanKind.INTERNAL, found


# -- turns -------------------------------------------------------------------------------------------------------------


class Tracing:
    """Runs every turn within the context of its task's span, so that the spans of frameworks and clients are below."""

    __slots__ = ("_spans", "_telemetry")

    def __init__(self, spans: Spans, telemetry: Telemetry) -> None:
        self._spans = spans
        self._telemetry = telemetry

    async def __call__(self, turn: Any, go: Callable[[], Awaitable[object]]) -> object:
        known = await self._telemetry.trace_of(turn.id)
        if known is None:
            return await go()
        workspace, incoming = known
        context = self._spans.context(workspace, turn.remit.root, span_id(workspace, turn.id), incoming)
        with trace.use_span(trace.get_current_span(context)):
            return await go()


# -- metrics -----------------------------------------------------------------------------------------------------------


def _adding(provider: MeterProvider) -> Callable[..., None]:
    """Return the function that adds to the metrics of a provider. It takes a metric, an amount (seconds for a
    histogram) and the values of the metric's labels."""
    meter = provider.get_meter(names.SCOPE)
    instruments: dict[Metric, Callable[..., None]] = {}
    for one in names.METRICS:
        if one.is_histogram:
            made = meter.create_histogram(
                one.name, one.unit, one.about, explicit_bucket_boundaries_advisory=names.SECONDS
            )
            instruments[one] = made.record
        else:
            instruments[one] = meter.create_counter(one.name, one.unit, one.about).add

    def add(metric: Metric, amount: float, *labels: str) -> None:
        instruments[metric](amount, dict(zip(metric.labels, labels, strict=True)))

    return add

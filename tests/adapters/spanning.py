"""Spans of a test, kept in memory."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

from remit import Runtime, Workspace
from remit.adapters.otel import instrument
from remit.adapters.telemetry import Telemetry


class Seen:
    """What an operator sees of what these runtimes do: one provider for each process would be the same."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self._told: list[Telemetry] = []

    def watch(self, runtime: Runtime | Workspace | None) -> Telemetry:
        self._told.append(instrument(runtime, tracer_provider=self.provider, meter_provider=self.meters))
        return self._told[-1]

    async def spans(self) -> list[ReadableSpan]:
        for one in self._told:
            await one.settled()
            assert one.flush(20)
        return list(self._exporter.get_finished_spans())

    async def tasks(self) -> dict[str, ReadableSpan]:
        """The spans of tasks by their ids; each has one."""
        found = [span for span in await self.spans() if span.name.startswith("invoke_agent")]
        named = {str(attributes(span)["remit.task"]): span for span in found}
        assert len(named) == len(found)
        return named

    async def figures(self) -> Counter[str]:
        """Counters and the counts of histograms, as `remit.tasks.ended coder completed`."""
        await self.spans()
        data: Any = self._reader.get_metrics_data()
        found: Counter[str] = Counter()
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            for point in metric.data.data_points:
                words = " ".join([metric.name, *map(str, point.attributes.values())])
                found[words] += getattr(point, "value", None) or getattr(point, "count", 0)
        return found

    def stop(self) -> None:
        for one in self._told:
            one.stop()


@contextmanager
def seeing(*runtimes: Runtime | Workspace | None, sampler: Sampler | None = None) -> Iterator[Seen]:
    seen = Seen(sampler)
    try:
        for one in runtimes:
            seen.watch(one)
        yield seen
    finally:
        seen.stop()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return {**(span.attributes or {})}


def happened(span: ReadableSpan) -> list[str]:
    """The events of a span, without `task.`."""
    return [event.name.removeprefix("task.") for event in span.events]


def parent(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def own_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def of_trace(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.trace_id

"""OpenTelemetry as the environment sets it up: the exporters that the `OTEL_*` variables name.

`remit worker` and `remit serve` use it. A program that is started by `opentelemetry-instrument` has providers already,
which are used instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Final, cast

from remit.adapters.otel import instrument  # first: it says what to install
from remit.adapters.telemetry import Telemetry
from remit.errors import BadInput
from remit.runtime.runtime import Runtime

# isort: split
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

NONE: Final = "none"
_USUAL: Final = "otlp"
_PROTOCOLS: Final = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


def from_environment(
    runtime: Runtime | None, variables: Mapping[str, str] = os.environ, *, everywhere: bool = False
) -> tuple[Telemetry, Callable[[], None]]:
    """Call `instrument` with the exporters that the variables name. Return its result, and a function that stops the
    telemetry and exports the rest. Raise `BadInput` if an exporter is not installed."""
    tracers, meters = _tracer_provider(variables), _meter_provider(variables)
    telemetry = instrument(runtime, tracer_provider=tracers, meter_provider=meters, everywhere=everywhere)

    def stop() -> None:
        telemetry.stop()
        for one in (tracers, meters):
            one.force_flush()

    return telemetry, stop


def _tracer_provider(variables: Mapping[str, str]) -> TracerProvider:
    there = trace.get_tracer_provider()
    if isinstance(there, TracerProvider):
        return there
    made = TracerProvider()
    for exporter in _exporters("traces", variables):
        made.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(made)  # agents' own spans go to the same place
    return made


def _meter_provider(variables: Mapping[str, str]) -> MeterProvider:
    there = metrics.get_meter_provider()
    if isinstance(there, MeterProvider):
        return there
    found = _exporters("metrics", variables)
    readers = [one if isinstance(one, MetricReader) else PeriodicExportingMetricReader(one) for one in found]
    made = MeterProvider(readers)
    metrics.set_meter_provider(made)
    return made


def _exporters(signal: str, variables: Mapping[str, str]) -> list[Any]:
    """Return the exporters of one signal, traces or metrics."""
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    named = [name.strip() for name in variables.get(variable, _USUAL).split(",")]
    return [_exporter(signal, variable, name, variables) for name in named if name not in ("", NONE)]


def _exporter(signal: str, variable: str, name: str, variables: Mapping[str, str]) -> Any:
    group = {one.name: one for one in entry_points(group=f"opentelemetry_{signal}_exporter")}
    wanted = [name]
    if name == _USUAL:
        protocol = variables.get("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        wanted = [_PROTOCOLS.get(protocol, name), *_PROTOCOLS.values()]  # else the one that is installed
    found = next((group[one] for one in wanted if one in group), None)
    if found is None:
        there = ", ".join(sorted({one for one in group if not one.startswith(_USUAL)} | {NONE}))
        raise BadInput(
            f"{variable}: there is no exporter '{name}' here; install it (pip install opentelemetry-exporter-otlp), or "
            f"set {variable} to one of {there}"
        )
    return cast("Callable[[], Any]", found.load())()

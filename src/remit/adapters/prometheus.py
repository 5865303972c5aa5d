"""Figures for Prometheus: `collect(rt)`, then expose the registry as you do for the rest of your program."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from remit.adapters import otel_names as names
from remit.adapters.otel_names import Metric
from remit.adapters.telemetry import Measures, Telemetry, telemetry_of
from remit.core.checks import between
from remit.errors import BadInput
from remit.runtime.runtime import Runtime
from remit.runtime.workspace import Workspace

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest, start_http_server
except ImportError as error:
    raise BadInput(f"figures for Prometheus need more packages: pip install 'remit[metrics]' ({error})") from error

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LOOPBACK: Final = "127.0.0.1"
_PORTS: Final = 65_535
_lock: Final = Lock()
_counted: Final[WeakKeyDictionary[CollectorRegistry, Callable[..., None]]] = WeakKeyDictionary()


def collect(runtime: Runtime | Workspace | None = None, *, registry: CollectorRegistry = REGISTRY) -> Telemetry:
    """Count what this process does for a runtime, or a workspace; without one, for every workspace that this process
    opens from now on. The metrics are those of OpenTelemetry, with names such as `remit_tasks_ended_total`.

    `flush()` of the result waits until everything is counted, `stop()` ends it.
    """
    return telemetry_of(runtime, (Measures(_adding(registry)),))


def exposed(port: int, registry: CollectorRegistry = REGISTRY) -> tuple[str, Callable[[], None]]:
    """Serve the registry on this port, for this machine only; 0 is any free port. Return the address, and a function
    that stops the server. Raise `BadInput` if the port cannot be used."""
    between(port, "a port", 0, _PORTS)
    try:
        server, thread = start_http_server(port, addr=LOOPBACK, registry=registry)
    except OSError as error:
        raise BadInput(f"port {port} cannot be used for metrics ({error.strerror}); choose another") from error

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return f"http://{LOOPBACK}:{server.server_port}/metrics", stop


def exposition(registry: CollectorRegistry = REGISTRY) -> bytes:
    """Return all metrics of the registry in the text format of Prometheus, whose media type is `CONTENT_TYPE`."""
    return generate_latest(registry)


def _adding(registry: CollectorRegistry) -> Callable[..., None]:
    """Return the function that adds to the metrics of this registry: it takes a metric, an amount (seconds for a
    histogram) and the values of the metric's labels. All runtimes of a process share the metrics."""
    with _lock:
        if (there := _counted.get(registry)) is None:
            there = _counted[registry] = _registered(registry)
        return there


def _registered(registry: CollectorRegistry) -> Callable[..., None]:
    made: dict[Metric, Any] = {}
    for one in names.METRICS:
        name = one.name.replace(".", "_")
        if one.is_histogram:
            made[one] = Histogram(f"{name}_seconds", one.about, one.labels, registry=registry, buckets=names.SECONDS)
        else:
            made[one] = Counter(name, one.about, one.labels, registry=registry)

    def add(metric: Metric, amount: float, *labels: str) -> None:
        series = made[metric].labels(*labels) if labels else made[metric]
        if metric.is_histogram:
            series.observe(amount)
        else:
            series.inc(amount)

    return add

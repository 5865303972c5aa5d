"""What a hop costs inside of a run that goes on, a step of a plan, and a session that has become long."""

from time import perf_counter, process_time

from measure import AsyncCosts, Cost, Load, Subject, written
from subjects.team import team


def delegations(*, durable: bool) -> Subject:
    """Microseconds for a delegation, one after the other in one run."""

    async def costs(load: Load) -> AsyncCosts:
        times = load.of(500 if durable else 2_000)
        with team(load.folder if durable else None) as runtime:
            await runtime.run("sequence", "10")  # warm
            while True:
                value, cpu = await runtime.run("sequence", str(times))
                yield Cost(value, cpu)

    return costs


async def traced(load: Load) -> AsyncCosts:
    """Microseconds for a delegation whose span and metrics are exported to nowhere. The spans are made on another
    thread, whose time counts."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from remit.adapters.otel import instrument

    times, exporter = load.of(2_000), InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    with team(None) as runtime:
        telemetry = instrument(runtime, tracer_provider=provider, meter_provider=MeterProvider(shutdown_on_exit=False))
        await runtime.run("sequence", "10")  # warm
        try:
            while True:
                began, used = perf_counter(), process_time()
                await runtime.run("sequence", str(times))
                telemetry.flush(60)
                yield Cost((perf_counter() - began) / times * 1e6, (process_time() - used) / times * 1e6)
                exporter.clear()
        finally:
            telemetry.stop()
            provider.shutdown()


async def plan_step(load: Load) -> AsyncCosts:
    """Microseconds that a step costs beyond delegating it."""
    with team(None) as runtime:
        await runtime.run("planner", "10")
        while True:
            yield Cost(await runtime.run("planner", str(load.of(1_000))))


def session(events: int, *, count_bytes: bool = False) -> Subject:
    """Microseconds, or bytes written, for a delegation in a session that has so many delegations already."""

    async def costs(load: Load) -> AsyncCosts:
        with team(load.folder) as runtime:
            await runtime.run("sequence", str(load.of(events)), session="one")
            while True:
                before = written()
                value, cpu = await runtime.run("sequence", "100", session="one")
                yield Cost((written() - before) / 100) if count_bytes else Cost(value, cpu)

    return costs

"""The jobs: what is measured, beside which floor and which peers, and what we aim at."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import context
import delegation
import finding
import floor
import peers
import process
import tasks
from measure import Effort, Samples

Measure: TypeAlias = Callable[[Effort], Samples]
_NONE: Mapping[str, Measure] = MappingProxyType({})


class Job(NamedTuple):
    name: str
    unit: str
    aim: float | None  # None where we only compare
    remit: Measure
    floor: Measure | None = None
    peers: Mapping[str, Measure] = _NONE
    more: bool = False  # more is better


JOBS = (
    Job("delegate-memory", "µs", 130, delegation.in_memory, floor.hop),
    Job("delegate-durable", "µs", 500, delegation.durable, floor.two_commits),
    Job("run-memory", "µs", None, delegation.run_in_memory, peers=peers.RUNS),
    Job("run-durable", "µs", None, delegation.run_durable, peers=peers.DURABLE_RUNS),
    Job("delegate-syncs", "syncs", 2.5, process.syncs),
    Job("concurrent-memory", "ms", 200, delegation.many_in_memory, floor.sleepers),
    Job("concurrent-durable", "ms", 450, delegation.many_durable, floor.sleepers),
    Job("in-flight", "KB each", 12, delegation.in_flight),
    Job("fan-out-50", "ms", 4, delegation.fan_out, floor.fan_out),
    Job("plan-step", "µs", 100, delegation.scheduling),
    Job("long-session", "x", 1.6, delegation.long_session),
    Job("long-session-bytes", "x", 1.1, delegation.long_session_bytes),
    Job("context-get", "µs", 25, context.get, context.bare_get),
    Job("context-last-5", "µs", 45, context.last_five, context.bare_last_five),
    Job("context-prefix-20", "µs", 70, context.prefix, context.bare_prefix),
    Job("find-1000", "ms", 5, finding.thousand),
    Job("sets-alone", "/s", 3_000, context.sets_alone, floor.rows_alone, more=True),
    Job("sets-100-writers", "/s", 12_000, context.sets_together, floor.rows_grouped, more=True),
    Job("tasks-memory", "/s", None, tasks.in_memory, more=True),
    Job("tasks-embedded", "/s", 5_000, tasks.embedded, floor.rows_grouped, {"dbos": tasks.dbos_sqlite}, more=True),
    Job("tasks-latency", "ms", 2, tasks.embedded_latency),
    Job("tasks-waiting", "KB each", 4, tasks.waiting),
    Job("tasks-postgres", "/s", 400, tasks.postgres_one, None, {"dbos": tasks.dbos_postgres}, more=True),
    Job("tasks-postgres-2", "/s", 600, tasks.postgres_two, more=True),
    Job("tasks-postgres-start", "ms", 10, tasks.postgres_start),
    Job("import", "ms CPU", 100, process.importing, floor.start),
    Job("hello", "ms CPU", 180, process.hello, floor.hello),
)

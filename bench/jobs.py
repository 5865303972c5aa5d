"""The jobs: what is measured, in what, and what we aim at."""

from collections.abc import Mapping
from typing import NamedTuple

from measure import Subject
from subjects import (
    agent_framework,
    autogen,
    context,
    finding,
    floor,
    inside,
    langgraph,
    library,
    models,
    money,
    openai_agents,
    ours,
    process,
    pydantic_ai,
    servers,
    tasks,
    web,
)

FLOOR, REMIT, DURABLE = "floor", "remit", "remit, durable"
OPENAI, FRAMEWORK, GRAPHS = "openai-agents", "agent-framework", "langgraph"
PYDANTIC, AUTOGEN = "pydantic-ai", "autogen-core"
FULL_PEERS = (OPENAI, FRAMEWORK)  # those that have handoffs and delegation between agents as a product


class Aim(NamedTuple):
    """What we want of a subject: a figure, or a ratio to the best of some others in the same round."""

    limit: float
    against: tuple[str, ...] = ()
    of: str = REMIT


class Job(NamedTuple):
    """One thing that is measured in several subjects, by name; `fresh` ones have a new process for each round."""

    name: str
    what: str
    unit: str
    subjects: Mapping[str, Subject]
    aims: tuple[Aim, ...] = ()
    more: bool = False  # more is better
    fresh: bool = False


def _full(limit: float, of: str = REMIT) -> Aim:
    return Aim(limit, FULL_PEERS, of)


_HANDOFFS = {
    FLOOR: floor.handoffs,
    REMIT: ours.handoffs,
    OPENAI: openai_agents.handoffs,
    FRAMEWORK: agent_framework.handoffs,
    GRAPHS: langgraph.handoffs,
}
_KEPT = {name: make for name, make in _HANDOFFS.items() if name != FRAMEWORK}  # it keeps checkpoints, not runs
_DELEGATIONS = {
    FLOOR: floor.delegation,
    REMIT: ours.delegation,
    OPENAI: openai_agents.delegation,
    FRAMEWORK: agent_framework.delegation,
    GRAPHS: langgraph.delegation,
    PYDANTIC: pydantic_ai.delegation,
    AUTOGEN: autogen.delegation,
}
_FANS = {
    FLOOR: floor.fan_out,
    REMIT: ours.fan_out,
    OPENAI: openai_agents.fan_out,
    FRAMEWORK: agent_framework.fan_out,
    GRAPHS: langgraph.fan_out,
    PYDANTIC: pydantic_ai.fan_out,
    AUTOGEN: autogen.fan_out,
}
_HELLOS = {
    FLOOR: process.floor_hello,
    REMIT: process.hello(),
    OPENAI: process.hello_of("agents", "openai_agents"),
    FRAMEWORK: process.hello_of("agent_framework", "agent_framework"),
    GRAPHS: process.hello_of("langgraph", "langgraph"),
    PYDANTIC: process.hello_of("pydantic_ai", "pydantic_ai"),
    AUTOGEN: process.hello_of("autogen_core", "autogen"),
}
_UNTRACED = "remit, not traced"
_TWO, _FOUR, _APART = "remit, 2 workers", "remit, 4 workers", "remit, 4 workers in 4 workspaces"

RUNS = (
    Job(
        "handoff",
        "run with a handoff, in memory",
        "µs",
        {name: library.handoff(make) for name, make in _HANDOFFS.items()},
        (_full(1 / 8), Aim(1 / 5, (GRAPHS,))),
    ),
    Job(
        "delegation",
        "run with a delegation, in memory",
        "µs",
        {name: library.delegation(make) for name, make in _DELEGATIONS.items()},
        (_full(1 / 2.5),),
    ),
    Job(
        "chain",
        "run with three handoffs, in memory",
        "µs",
        {name: library.handoff(make, 3) for name, make in _HANDOFFS.items()},
        (_full(1 / 12),),
    ),
    Job(
        "fan-out",
        "50 delegations at once, beyond the 50 ms that each takes",
        "ms",
        {name: library.fan_out(make) for name, make in _FANS.items()},
        (_full(1 / 3.5),),
    ),
    Job(
        "concurrent",
        "1,000 runs with a delegation begun at once, each of which sleeps 20 ms three times",
        "ms",
        {name: library.many(make) for name, make in _DELEGATIONS.items()}
        | {DURABLE: library.many(ours.delegation, durable=True)},
        (_full(1 / 3), _full(1 / 6, DURABLE)),
    ),
    Job(
        "in-flight",
        "memory of the process for each of 1,000 runs whose workers all work",
        "KB",
        {name: library.in_flight(make) for name, make in _DELEGATIONS.items()},
        (Aim(10),),
        fresh=True,
    ),
    Job(
        "durable-handoff",
        "run with a handoff, kept in a file",
        "µs",
        {name: library.durable_handoff(make) for name, make in _KEPT.items()},
        (_full(1 / 7),),
    ),
    Job(
        "durable-handoff-written",
        "written for that",
        "KB",
        {name: library.handoff_written(make) for name, make in _KEPT.items()},
        (Aim(40),),
    ),
    Job(
        "durable-handoff-syncs",
        "syncs of the disk for that",
        "syncs",
        {
            FLOOR: process.handoff_syncs("floor"),
            REMIT: process.handoff_syncs("ours"),
            OPENAI: process.handoff_syncs("openai_agents", "agents"),
            GRAPHS: process.handoff_syncs("langgraph", "langgraph.checkpoint.sqlite"),
        },
        fresh=True,
    ),
    Job(
        "hello",
        "a new process that makes a team, does a run with a delegation and ends",
        "ms",
        _HELLOS,
        (_full(1 / 2),),
    ),
)
INSIDE = (
    Job(
        "delegate-memory",
        "a delegation inside of a run, in memory",
        "µs",
        {FLOOR: floor.hop, REMIT: inside.delegations(durable=False)},
        (Aim(80),),
    ),
    Job(
        "delegate-durable",
        "a delegation inside of a run, kept in a file",
        "µs",
        {FLOOR: floor.two_commits, REMIT: inside.delegations(durable=True)},
        (Aim(500),),
    ),
    Job("delegate-syncs", "syncs of the disk for that", "syncs", {REMIT: process.delegation_syncs}, (Aim(2.5),)),
    Job(
        "delegate-traced",
        "a delegation inside of a run, in memory, with spans and metrics for OpenTelemetry",
        "µs",
        {REMIT: inside.traced, _UNTRACED: inside.delegations(durable=False)},
        (Aim(2, (_UNTRACED,)),),
    ),
    Job(
        "plan-step",
        "what a step of a plan costs beyond its delegation",
        "µs",
        {REMIT: inside.plan_step},
        (Aim(100),),
    ),
    Job(
        "long-session",
        "a durable delegation in a session of 10 and of 500",
        "µs",
        {REMIT: inside.session(500), "remit, session of 10": inside.session(10)},
        (Aim(1.6, ("remit, session of 10",)),),
    ),
    Job(
        "long-session-written",
        "written for that",
        "B",
        {
            REMIT: inside.session(500, count_bytes=True),
            "remit, session of 10": inside.session(10, count_bytes=True),
        },
        (Aim(1.1, ("remit, session of 10",)),),
    ),
    Job("find", "rank 1,000 agents", "ms", {REMIT: finding.among(1_000)}, (Aim(2),)),
    Job("find-many", "rank 10,000 agents", "ms", {REMIT: finding.among(10_000)}, (Aim(20),)),
    Job("find-read", "read the cards of 1,000 agents", "ms", {REMIT: finding.reading}),
)
CONTEXT = (
    Job(
        "context-get",
        "one of 1,000,000 entries",
        "µs",
        {FLOOR: context.bare_get, REMIT: context.get, GRAPHS: context.graph_get},
        (Aim(2, (FLOOR,)),),
    ),
    Job(
        "context-last",
        "the newest 5 of 1,000,000 entries",
        "µs",
        {FLOOR: context.bare_last, REMIT: context.last, GRAPHS: context.graph_last},
        (Aim(2, (FLOOR,)),),
    ),
    Job(
        "context-prefix",
        "20 of 1,000,000 entries by the beginning of their keys",
        "µs",
        {FLOOR: context.bare_prefix, REMIT: context.prefix, GRAPHS: context.graph_prefix},
        (Aim(2.5, (FLOOR,)),),
    ),
    Job(
        "sets-alone",
        "durable writes, one after the other",
        "/s",
        {FLOOR: floor.rows_alone, REMIT: context.sets_alone},
        (Aim(3_000),),
        more=True,
    ),
    Job(
        "sets-together",
        "durable writes by 100 writers at once",
        "/s",
        {FLOOR: floor.rows_grouped, REMIT: context.sets_together},
        (Aim(12_000),),
        more=True,
    ),
)
TASKS = (
    Job("tasks-memory", "no-op tasks in memory", "/s", {REMIT: tasks.no_ops(durable=False)}, more=True),
    Job(
        "tasks-embedded",
        "no-op tasks in a file",
        "/s",
        {FLOOR: floor.rows_grouped, REMIT: tasks.no_ops(durable=True), "dbos": servers.dbos_embedded},
        (Aim(6_000),),
        more=True,
    ),
    Job("tasks-latency", "from submit to result in a file, alone", "ms", {REMIT: tasks.latency}, (Aim(2),)),
    Job(
        "tasks-waiting",
        "Python objects for each of 10,000 submitted tasks",
        "KB",
        {REMIT: tasks.waiting},
        (Aim(4),),
        fresh=True,
    ),
    Job(
        "tasks-postgres",
        "no-op tasks through PostgreSQL and workers of their own; one unless it is said",
        "/s",
        {
            REMIT: servers.served(1),
            _TWO: servers.served(2),
            _FOUR: servers.served(4),
            _APART: servers.served(4, apart=True),
            "procrastinate": servers.bare(1),
            "procrastinate, 2 workers": servers.bare(2),
            "procrastinate, 4 workers": servers.bare(4),
            "dbos": servers.dbos_served,
        },
        (Aim(1, ("procrastinate",)), Aim(1.3, (REMIT,), _TWO), Aim(1.3, (REMIT,), _APART)),
        more=True,
        fresh=True,
    ),
    Job(
        "tasks-postgres-start",
        "from submit to start in an idle worker",
        "ms",
        {REMIT: servers.start_time},
        (Aim(10),),
    ),
    Job("import", "processor time to import it", "ms CPU", {FLOOR: process.floor_importing, REMIT: process.importing}),
)
_UNPAID, _ASIDE = "remit, unpaid", "remit, set aside"
_IN_A_FILE, _PROCESSES = "remit, in a file", "remit, 4 processes on PostgreSQL"
MONEY = (
    Job(
        "hold-memory",
        "a call that is held and settled in memory, beside two transactions that change nothing",
        "µs",
        {FLOOR: money.two_transactions, REMIT: money.pairs},
        (Aim(4, (FLOOR,)),),
    ),
    Job(
        "hold-together",
        "calls that are held and settled by 100 at once, in a file",
        "/s",
        {REMIT: money.pairs_together},
        (Aim(3_000),),
        more=True,
    ),
    Job(
        "delegate-paid",
        "a delegation in memory that shares what its asker has, or for which something is set aside",
        "µs",
        {_UNPAID: money.delegations("unpaid"), REMIT: money.delegations("shared"), _ASIDE: money.delegations("aside")},
        (Aim(1.1, (_UNPAID,)), Aim(1.75, (_UNPAID,), _ASIDE)),
    ),
    Job(
        "reservations",
        "50,000 reservations on one account that has too little for them; the overspend is 0",
        "/s",
        {
            REMIT: money.reservations(durable=False),
            _IN_A_FILE: money.reservations(durable=True),
            _PROCESSES: money.reservations_served,
        },
        more=True,
        fresh=True,
    ),
)
_BARE, _BY_HAND, _GUEST = "pydantic-ai", "remit, by hand", "remit, guest"
MODELS = (
    Job(
        "model-agent",
        "run of a model agent with two requests and a tool, whose model is a function",
        "µs CPU",
        {
            _BARE: models.bare(http=False),
            _BY_HAND: models.by_hand(http=False),
            REMIT: models.ours(http=False),
            _GUEST: models.ours(http=False, guest=True),
        },
        (Aim(1.1, (_BY_HAND,)),),
    ),
    Job(
        "model-agent-http",
        "the same through a real client, with a server on loopback",
        "µs CPU",
        {
            _BARE: models.bare(http=True),
            _BY_HAND: models.by_hand(http=True),
            REMIT: models.ours(http=True),
            _GUEST: models.ours(http=True, guest=True),
        },
        (Aim(1.15, (_BARE,)),),
    ),
    Job(
        "model-hop",
        "a delegation under limits, kept in a file, after 200 answers of 20 KB",
        "µs",
        {REMIT: models.hops(200), "remit, after none": models.hops(0)},
        (Aim(1.5, ("remit, after none",)),),
    ),
)
_PG = "remit, PostgreSQL"
_APART_FILE, _APART_PG = "remit, written by another process", "remit, the same on PostgreSQL"


def _delays(share: float) -> dict[str, Subject]:
    return {
        REMIT: web.delay("SQLite", apart=False, share=share),
        _APART_FILE: web.delay("SQLite", apart=True, share=share),
        _APART_PG: web.delay("PostgreSQL", apart=True, share=share),
    }


_SOON = tuple(Aim(50, of=one) for one in (REMIT, _APART_FILE, _APART_PG))
SERVER = (
    Job(
        "server-reads",
        "status reads over HTTP per second of the server's processor time, with a key and all checks",
        "/s CPU",
        {FLOOR: web.reads("floor"), REMIT: web.reads("SQLite"), _PG: web.reads("PostgreSQL")},
        (Aim(1_500),),
        more=True,
    ),
    Job(
        "server-submits",
        "durable submits over HTTP per second of the server's processor time, with a key and all checks",
        "/s CPU",
        {FLOOR: web.submits("floor"), REMIT: web.submits("SQLite"), _PG: web.submits("PostgreSQL")},
        (Aim(1_000),),
        more=True,
    ),
    Job("server-events", "from an event to the reader of a stream, median", "ms", _delays(0.5), _SOON),
    Job("server-events-p95", "the same, slowest of 95 %", "ms", _delays(0.95)),
    Job("server-stream", "memory of the server for each of 500 streams", "KB", {REMIT: web.stream_memory}, fresh=True),
)
JOBS = (*RUNS, *INSIDE, *CONTEXT, *TASKS, *MONEY, *MODELS, *SERVER)

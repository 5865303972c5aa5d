"""Requests made from the server's own description of itself: those that fit it are accepted, all others are not."""

import asyncio
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import FatalError, NonFatalError, ScenarioFinished
from schemathesis.engine.recorder import ScenarioRecorder

from remit.server.serve import PortServer, listening
from server.worlds import world

KEY = "key-ann"
PHASES = ("coverage", "fuzzing", "stateful")
# What no schema says: cron expressions, steps that depend on each other, the order of two moments and the time between
# them, which characters of which version of Unicode are printable, what there is too much of already, what an event is
# about, and which parameter is for which Accept header.
BEYOND = ("/v1/ag-ui/{agent}", "/v1/schedules/{name}", "/v1/plans", "/v1/teams")
WORDS = (
    "printable",
    "since must be before until",
    "covers at most 31 days",
    "'*' stands alone",
    "is a session's board",
    "letter or a digit",
)
WORDS += (
    "at most 100 hooks",
    "has no answer to replace",
    "is not one of run",
    "is before run",
    "come in a stream only",
)
# For a schema, 1e20 is an integer and too large. The server takes it: it is written as a float, and every parser reads
# that the same.
_LARGE = re.compile(rb"\de\+(?:19|[2-9]\d|\d{3})")


@contextmanager
def served() -> Iterator[str]:
    """A server of a workspace with one of everything, on a port, in a thread of its own."""
    ready, found = threading.Event(), dict[str, Any]()

    async def main() -> None:
        async with world() as at:
            with listening("127.0.0.1", 0) as socket:
                found.update(server=PortServer(at.app), loop=asyncio.get_running_loop())
                found["url"] = f"http://127.0.0.1:{socket.getsockname()[1]}"
                ready.set()
                await found["server"].serve([socket])

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    ready.wait()
    try:
        yield found["url"]
    finally:
        found["loop"].call_soon_threadsafe(found["server"].end)
        thread.join()


def disagreements(examples: int, *, phases: Sequence[str] = PHASES, seed: int | None = 0) -> tuple[list[str], int]:
    """What the server and its description do not agree on, and how many requests were made. `examples` is how many are
    made of each operation, and how many walks along the links."""
    wrong, made = dict[str, None](), 0
    with served() as url:
        how = SchemathesisConfig.from_dict(_settings(examples, phases, seed))
        described = schemathesis.openapi.from_url(f"{url}/v1/openapi.json", config=how).exclude(path_regex="/wait$")
        for event in from_schema(described).execute():
            assert not isinstance(event, FatalError | NonFatalError), event
            if isinstance(event, ScenarioFinished):
                made += len(event.recorder.interactions)
                wrong |= dict.fromkeys(_told(event.recorder))
    return [*wrong], made


def _settings(examples: int, phases: Sequence[str], seed: int | None) -> dict[str, Any]:
    every = ("examples", "coverage", "fuzzing", "stateful")
    return {
        "auth": {"openapi": {"key": {"bearer": KEY}}},
        "continue-on-failure": True,
        # JSON of any shape may have no NUL in it, which no schema says; the mutants of requests have it.
        "generation": {"max-examples": examples, "database": "none", "allow-x00": False},
        "phases": {name: {"enabled": name in phases} for name in every},
        "request-timeout": 60,
        "suppress-health-check": ["all"],
        **({} if seed is None else {"seed": seed}),
    }


def _told(recorder: ScenarioRecorder) -> Iterator[str]:
    """What was wrong with the answers of a scenario, each with its request."""
    for case_id, checks in recorder.checks.items():
        case, answer = recorder.cases[case_id].value, recorder.interactions[case_id].response
        text = "" if answer is None else answer.text
        status = 0 if answer is None else answer.status_code
        for check in checks:
            if check.failure_info is None or (status == 422 and _is_beyond(case.operation.path, text)):
                continue
            if status < 300 and _LARGE.search(recorder.interactions[case_id].request.body or b""):
                continue
            said = " ".join(str(check.failure_info.failure).split())[:300]
            yield f"{case.operation.label}: {status} {text[:300]} {said} {check.failure_info.code_sample[:500]}"


def _is_beyond(path: str, text: str) -> bool:
    return path in BEYOND or any(word in text for word in WORDS)

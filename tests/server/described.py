"""Requests made from the server's own description of itself: those that fit it are accepted, all others are not."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from remit.server.serve import PortServer, listening
from server.worlds import world

KEY = {"Authorization": "Bearer key-ann"}
# What no schema says: cron expressions, steps that depend on each other, the order of two moments, and which characters
# of which version of Unicode are printable.
BEYOND = ("/v1/schedules/{name}", "/v1/plans", "/v1/teams")
WORDS = ("printable", "since must be before until", "'*' stands alone", "is a session's board", "letter or a digit")


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


def disagreements(examples: int, *, derandomize: bool = True) -> tuple[list[str], int]:
    """What the server and its description do not agree on, and how many requests were made."""
    wrong, made = list[str](), 0

    def judged(case: Any, url: str) -> None:
        nonlocal made
        made += 1
        got = case.call(headers=KEY, base_url=url)
        if got.status_code >= 500:
            wrong.append(f"{case.operation.label}: {got.status_code} {got.text[:300]}")
        if got.status_code == 422 and (case.operation.path in BEYOND or any(word in got.text for word in WORDS)):
            return
        try:
            case.validate_response(got, headers=KEY)
        except (Exception, BaseExceptionGroup) as error:  # of several failures, one group
            said = " ".join(str(one) for one in getattr(error, "exceptions", [error]))
            wrong.append(f"{case.operation.label}: {got.status_code} {got.text[:300]} {' '.join(said.split())[:300]}")

    with served() as url:
        for found in schemathesis.openapi.from_url(f"{url}/v1/openapi.json").get_all_operations():
            operation = cast("Any", found).ok()
            if operation.path.endswith("/wait"):
                continue
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                tried = given(case=operation.as_strategy(generation_mode=mode))(lambda case: judged(case, url))
                how = settings(
                    max_examples=examples,
                    deadline=None,
                    database=None,
                    derandomize=derandomize,
                    suppress_health_check=list(HealthCheck),
                    phases=[Phase.generate],
                )
                try:
                    how(tried)()
                except Unsatisfiable:  # nothing about it can be wrong
                    continue
    return wrong, made

"""Requests that are nearly right, many times as many as the tests send: of the table of routes, and of clients of MCP
and A2A; in memory, on a file and on PostgreSQL. Then requests made from the server's own description of itself."""

import asyncio
import logging
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

from postgres import running
from server.described import disagreements
from server.mutants import Tried, tried
from server.serving import client
from server.strangers import Strangers
from server.worlds import world

NAME = "requests"
NUMBER = 100_000
EACH = 1_000  # requests of one workspace
EXAMPLES = 50  # of each route
STORES = ("memory", "file", "postgres")


async def _sent(store: str | Path, seed: int, *, strange: bool) -> Tried:
    async with world(store) as at, at.app.running(), client(at.app) as http:
        return await tried(http, at, EACH, seed, Strangers(http) if strange else None)


def _all(number: int) -> list[tuple[str, Tried]]:
    """Send so many requests, and return what came of each workspace. Every third store is PostgreSQL, and every second
    workspace is asked by strangers."""
    found = list[tuple[str, Tried]]()
    with running() as server:
        for seed in range(max(1, number // EACH)):
            kind, strange = STORES[seed // 2 % 3], bool(seed % 2)
            with tempfile.TemporaryDirectory() as folder:
                address = server.database() if kind == "postgres" else ""
                store = address or (Path(folder) / "team.db" if kind == "file" else ":memory:")
                found.append((f"{kind}{', MCP and A2A' * strange}", asyncio.run(_sent(store, seed, strange=strange))))
                if address:
                    server.drop(address)
    return found


def main(names: list[str]) -> int:
    """Send so many requests. Return 1 if one of them failed the server, or if it is not as described."""
    logging.disable(logging.CRITICAL)  # the libraries log every request that is wrong
    began, bad = perf_counter(), False
    found = _all(int(names[0] if names else NUMBER))
    for kind in dict.fromkeys(kind for kind, _ in found):
        of = [one for own, one in found if own == kind]
        seen = sum((one.seen for one in of), Counter[int]())
        accepted, slowest = sum(one.accepted for one in of), max(one.slowest for one in of)
        bad |= accepted * 20 < seen.total()
        said = f"{kind}: {seen.total():,} requests, {accepted:,} accepted, the slowest {slowest:.2f} s of CPU"
        print(f"{said}: { {int(status): number for status, number in sorted(seen.items())} }")
    print(f"{perf_counter() - began:.0f} s")
    wrong, made = disagreements(EXAMPLES, seed=None)
    print("\n".join([*wrong, f"{made:,} requests from the description, {len(wrong)} not as described"]))
    return int(bool(wrong) or bad)

"""Requests that are nearly right, many times as many as the tests send, in memory and on a file; and requests made from
the server's own description of itself."""

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

from server.described import disagreements
from server.mutants import tried
from server.serving import client
from server.worlds import world

NAME = "requests"
NUMBER = 100_000
EACH = 2_000  # requests of one workspace
EXAMPLES = 50  # of each route


async def _sent(store: str | Path, seed: int) -> Counter[int]:
    async with world(store) as at, client(at.app) as http:
        return await tried(http, at, EACH, seed)


def main(names: list[str]) -> int:
    """Send so many requests. Return 1 if one of them failed the server, or if it is not as described."""
    began, seen = perf_counter(), Counter[int]()
    for seed in range(max(1, int(names[0] if names else NUMBER) // EACH)):
        with tempfile.TemporaryDirectory() as folder:
            seen += asyncio.run(_sent(Path(folder) / "team.db" if seed % 2 else ":memory:", seed))
    accepted = sum(number for status, number in seen.items() if status < 300)
    said = f"{seen.total():,} requests, {accepted:,} accepted, {perf_counter() - began:.0f} s"
    print(f"{said}: {dict(sorted(seen.items()))}")
    wrong, made = disagreements(EXAMPLES, derandomize=False)
    print("\n".join([*wrong, f"{made:,} requests from the description, {len(wrong)} not as described"]))
    return int(bool(wrong) or accepted * 20 < seen.total())

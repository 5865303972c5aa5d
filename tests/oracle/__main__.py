"""Random trees and the model, spies and their two worlds: `python -m oracle [SEED ...]`, `--trees N`, `--spies N`."""

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter

import anyio

from oracle import spying
from oracle.checking import Worlds
from remit.stores.opening import database_at

ENOUGH = 10  # of what is wrong


async def wrong_among(check: Callable[[int], Awaitable[None]], seeds: Sequence[int]) -> int:
    """Check them all, and tell of each that is wrong."""
    wrong = 0
    for seed in seeds:
        try:
            await check(seed)
        except AssertionError as error:
            wrong += 1
            print(error, flush=True)
            if wrong == ENOUGH:
                break
    return wrong


async def trees(seeds: Sequence[int], store: str) -> int:
    return await wrong_among(Worlds(database_at(store) if store == ":memory:" else store).check, seeds)


async def spies(seeds: Sequence[int]) -> int:
    databases = (database_at(":memory:"), database_at(":memory:"))
    return await wrong_among(lambda seed: spying.check(seed, databases), seeds)


def main() -> int:
    options = argparse.ArgumentParser(prog="oracle", description=__doc__)
    options.add_argument("seeds", nargs="*", type=int, help="trees to look at again")
    options.add_argument("--spy", nargs="*", type=int, default=[], help="spies to look at again")
    options.add_argument("--trees", type=int, default=0)
    options.add_argument("--spies", type=int, default=0)
    options.add_argument("--from", dest="first", type=int, default=0, metavar="SEED")
    options.add_argument("--store", default=":memory:")
    given = options.parse_args()
    began = perf_counter()
    wanted = given.seeds or range(given.first, given.first + given.trees)
    watched = given.spy or range(given.first, given.first + given.spies)
    wrong = anyio.run(trees, wanted, given.store) + anyio.run(spies, watched)
    told = f"{len(wanted)} trees and {len(watched)} pairs of worlds, {wrong} wrong, {perf_counter() - began:.0f} s"
    print(told, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

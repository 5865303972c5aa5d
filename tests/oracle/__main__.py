"""Random trees beside the model: `python -m oracle [SEED ...]`, or `--trees N [--from SEED] [--store PATH]`."""

import argparse
import sys
from time import perf_counter

import anyio

from oracle.checking import Worlds
from remit.stores.opening import database_at


async def trees(seeds: range | list[int], store: str) -> int:
    """Check them all, and tell of each that goes other than foreseen."""
    worlds = Worlds(database_at(store) if store == ":memory:" else store)
    wrong = 0
    for seed in seeds:
        try:
            await worlds.check(seed)
        except AssertionError as error:
            wrong += 1
            print(error, flush=True)
            if wrong >= 10:
                break
    return wrong


def main() -> int:
    options = argparse.ArgumentParser(prog="oracle", description=__doc__)
    options.add_argument("seeds", nargs="*", type=int)
    options.add_argument("--trees", type=int, default=1_000)
    options.add_argument("--from", dest="first", type=int, default=0)
    options.add_argument("--store", default=":memory:")
    given = options.parse_args()
    began = perf_counter()
    seeds = given.seeds or range(given.first, given.first + given.trees)
    wrong = anyio.run(trees, seeds, given.store)
    print(f"{len(seeds)} trees, {wrong} other than foreseen, {perf_counter() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

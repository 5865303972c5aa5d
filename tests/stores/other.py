"""Run as a program: another process on the same file.

python other.py open FOLDER          for each line on stdin: opens FOLDER/LINE.db, says what came of it
python other.py write FILE NAME N    writes N entries of that name, in turn one by one and ten at once
"""

import asyncio
import sys
from pathlib import Path

import remit
from remit.errors import RemitError
from remit.stores.sqlite.database import SqliteDatabase


def open_on_demand(folder: Path) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            SqliteDatabase(folder / f"{line.strip()}.db").close()
        except RemitError as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        else:
            print("ok", flush=True)


async def write(file: Path, name: str, count: int) -> None:
    with SqliteDatabase(file, busy_seconds=60) as database, remit.Runtime(database) as rt:
        context = rt.workspace.context()
        for start in range(0, count, 20):
            for number in range(start, start + 10):
                await context.set(name, str(number), number)
            await asyncio.gather(*(context.set(name, str(n), n) for n in range(start + 10, start + 20)))


if __name__ == "__main__":
    if sys.argv[1] == "open":
        open_on_demand(Path(sys.argv[2]))
    else:
        asyncio.run(write(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))

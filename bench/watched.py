"""A server that watches its own event loop: `neighbours.py` starts it, and asks it on standard input how it is.

It is made of the parts of `remit serve`, all its checks included. A line on standard input is answered with JSON: how
long the loop was held at most since the last line, by the clock and in processor time of its thread, and what the
process has.
"""

import asyncio
import gc
import json
import os
import sys
import threading
import time
from pathlib import Path

from remit import open_database
from remit.engine.system import SystemClock
from remit.runtime.workspace import Workspace
from remit.server.app import ServerSettings, create_app
from remit.server.auth import StoreDoorkeeper
from remit.server.carrying import carrying
from remit.server.serve import PortServer, listening, run
from remit.server.tenants import Tenants

_TICK = 0.005  # seconds


class Watch:
    """The longest time between two turns of the loop that were due, beyond what they were due after."""

    def __init__(self) -> None:
        self.held = self.used = 0.0
        self._asked = False

    async def look(self) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(_TICK)
            now, used = time.perf_counter(), time.thread_time()
            if not self._asked:  # then it has held the loop itself
                self.held, self.used = max(self.held, now - wall - _TICK), max(self.used, used - cpu)
            self._asked = False
            wall, cpu = now, used

    def told(self) -> dict[str, float]:
        gc.collect()
        self._asked = True
        found = {
            "held_ms": self.held * 1e3,
            "used_ms": self.used * 1e3,
            "threads": threading.active_count(),
            "files": sum(1 for one in Path("/proc/self/fd").iterdir() if not _is_socket(one)),
            "mb": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20,
        }
        self.held = self.used = 0.0
        return found


def _is_socket(file: Path) -> bool:
    try:
        return str(file.readlink()).startswith("socket:")
    except OSError:  # it was the one that lists them
        return True


async def main(store: str) -> None:
    with open_database(store) as database, listening("127.0.0.1", 0) as socket:
        tenants = Tenants(database, (Workspace(database, "default"),))
        doorkeeper = StoreDoorkeeper(database, SystemClock())
        port: int = socket.getsockname()[1]
        settings = ServerSettings(frozenset((f"127.0.0.1:{port}",)))
        server, watch = PortServer(create_app(tenants, doorkeeper, settings)), Watch()
        async with carrying(tenants):
            serving = asyncio.create_task(server.serve([socket]))
            watching = asyncio.create_task(watch.look())
            print("serving", f"http://127.0.0.1:{port}", flush=True)
            while await asyncio.to_thread(sys.stdin.readline):
                print(json.dumps(watch.told()), flush=True)
            watching.cancel()
            server.end()
            await serving
        await doorkeeper.close()


if __name__ == "__main__":
    run(main(sys.argv[1]))

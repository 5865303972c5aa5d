"""One event loop at a time: what keeps two threads from using the same connections at once."""

import asyncio
import threading

from remit.errors import StoreError

_TWO = (
    "this store is in use by another event loop, in another thread; it serves one loop at a time. Wait until that one "
    "has ended, ask there (asyncio.run_coroutine_threadsafe), or open the store once per loop (runtime.at(...))"
)


class OneLoop:
    """Remembers which event loop uses a store. Another may follow when that one does not run any more.

    A loop runs in one thread, so this is also what keeps a second thread out: SQLite's connections and the tables of
    live tasks would not survive it.
    """

    __slots__ = ("_lock", "loop")

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def enter(self) -> asyncio.AbstractEventLoop:
        """Give the running loop, which is the only one that uses the store now; refuse a second one."""
        loop = asyncio.get_running_loop()
        if loop is not self.loop:
            self._take(loop)
        return loop

    def _take(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            before, self.loop = self.loop, loop
            # Asked after ours is in place: a loop that starts again at this moment finds ours there.
            if before is not None and before.is_running():
                self.loop = before
                raise StoreError(_TWO)

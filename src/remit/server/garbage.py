"""Short collections of garbage, because each holds every request of the process for as long as it takes.

Python's full collection looks at everything there is: modules, open streams, tasks that wait. Here it looks at what has
come since the last one, and at everything only from time to time.
"""

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

WHOLE_SECONDS: Final = 300.0  # between two collections that look at everything
_FULL: Final = 2  # the oldest generation
# The thresholds of the three generations, for `gc.set_threshold`. The objects of a request are soon freed without a
# collection: to collect the youngest generation as often as Python does makes a submit 7 % slower. A full collection
# follows after about 45,000 new objects, instead of 93,000 with the usual thresholds of Python 3.11.
_THRESHOLDS: Final = (5_000, 2, 1)


@contextmanager
def short_collections(ticks: Callable[[], float] = monotonic) -> Generator[None]:
    """Keep full collections short while the body runs: objects that survive one are frozen, and a collection looks at
    them only every five minutes. `ticks` returns a time in seconds. If the program had frozen objects before, all
    objects stay frozen afterwards, because Python cannot unfreeze a part."""
    usual = gc.get_threshold()
    had_frozen = gc.get_freeze_count() > 0
    gc.set_threshold(*_THRESHOLDS)
    gc.collect()
    gc.freeze()
    whole = ticks()

    def collecting(phase: str, info: dict[str, Any]) -> None:
        nonlocal whole
        if info["generation"] < _FULL:
            return
        if phase == "stop":
            gc.freeze()
        elif ticks() - whole >= WHOLE_SECONDS:
            whole = ticks()
            gc.unfreeze()

    gc.callbacks.append(collecting)
    try:
        yield
    finally:
        gc.callbacks.remove(collecting)
        gc.set_threshold(*usual)
        if not had_frozen:
            gc.unfreeze()

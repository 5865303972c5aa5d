"""Collections of garbage in a server look at what is new, and at everything from time to time."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import pytest

from forking import in_a_fork
from remit.server.garbage import WHOLE_SECONDS, short_collections


class Knot:
    """Something that only a collection frees: it holds itself."""

    def __init__(self) -> None:
        self.itself: Knot | None = self


@contextmanager
def only_when_asked() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.rule("http.garbage")
def test_a_full_collection_looks_at_what_has_come_since_the_last_one():
    usual = gc.get_threshold()
    with only_when_asked(), short_collections(lambda: 0.0):
        assert prod(gc.get_threshold()) < prod(usual)  # there is little to look at, because it comes often
        there = gc.get_freeze_count()
        assert there > 1_000  # modules above all
        kept = [Knot() for _ in range(1_000)]
        gc.collect()
        assert gc.get_freeze_count() > there + len(kept) // 2  # some that were there may be freed meanwhile
        assert len(gc.get_objects()) < 1_000  # so many does the next one look at
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("frozen", [False, True])
def test_afterwards_only_what_the_program_froze_itself_is_frozen(frozen: bool):
    def served() -> bool:
        gc.unfreeze()
        if frozen:
            gc.freeze()
        with only_when_asked(), short_collections(lambda: 0.0):
            assert gc.get_freeze_count()
        return gc.get_freeze_count() > 0

    assert in_a_fork(served) == str(frozen)


def test_what_was_dropped_at_once_is_freed_at_once():
    with only_when_asked(), short_collections(lambda: 0.0):
        seen = weakref.ref(Knot())
        assert seen() is not None
        gc.collect()
        assert seen() is None


@pytest.mark.rule("http.garbage")
def test_what_was_there_for_long_is_freed_by_the_next_whole_collection():
    now = [0.0]
    with only_when_asked(), short_collections(lambda: now[0]):
        old = Knot()
        seen = weakref.ref(old)
        gc.collect()
        del old
        gc.collect()
        assert seen() is not None
        now[0] = WHOLE_SECONDS
        gc.collect()
        assert seen() is None

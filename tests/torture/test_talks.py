"""Conversations at random that are interrupted and changed come to what they come to undisturbed. `make torture` plays
many more."""

import logging
from pathlib import Path

import pytest

from deep import some
from torture import talks

pytestmark = pytest.mark.anyio

SEEDS = 12


@pytest.fixture(autouse=True)
def in_peace():
    """Tools fail here, which is logged."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.rule("talk.position", "talk.begun", "model.once", "tool.once", "model.charged")
@pytest.mark.parametrize("first", some(range(0, SEEDS, 6)))
async def test_whatever_a_conversation_goes_through_it_comes_to_the_same(tmp_path: Path, first: int):
    for seed in range(first, first + 6):
        assert await talks.check(seed, tmp_path) == [], talks.repeat(seed)

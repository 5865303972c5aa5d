"""Tiers: named presets of bounds; chosen by the caller or by a classifier."""

import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from remit.core.bounds import Bounds
from remit.core.checks import meant
from remit.core.text import shown
from remit.errors import BadInput

Classify: TypeAlias = Callable[[str], str | Awaitable[str]]

TIERS: Final[dict[str, Bounds]] = {
    "simple": Bounds(handoffs=0, tokens=10_000, members=1),
    "medium": Bounds(handoffs=2, tokens=25_000, members=3),
    "complex": Bounds(handoffs=5, tokens=150_000, members=5),
}

_WORD: Final = re.compile(r"\w+")
_ITEM: Final = re.compile(r"(?:[-*\u2022]|\d{1,3}[.)])\s")
_LETTERS: Final = 6  # rough length of a word, for scripts without spaces
_LENGTHS: Final = (30, 100, 300)  # numbers of words that give a point each
_MOST: Final = 3  # most points for steps, and for large words, so that neither decides alone
_COMPLEX: Final = 3  # points of a complex task
_STEPS: Final = frozenset(("also", "afterwards", "and", "finally", "next", "plus", "then"))
_LARGE_WORK: Final = """
all analyse analyze application architecture audit benchmark build campaign compare comprehensive coordinate design
develop entire evaluate every evaluation framework implement implementation integrate integration investigate
investigation launch migrate migration multiple optimise optimize overhaul plan platform project prototype redesign
refactor research rewrite roadmap several strategy system team thorough thoroughly whole
"""
_LARGE: Final = frozenset(_LARGE_WORK.split())


def tier(name: object) -> Bounds:
    """Return the bounds of a tier. Raise `BadInput` for an unknown name."""
    bounds = TIERS.get(name) if isinstance(name, str) else None
    if bounds is None:
        raise BadInput(f"there is no tier {shown(name)}; the tiers are {', '.join(TIERS)}{meant(name, TIERS)}")
    return bounds


def tier_by_rules(task: str) -> str:
    """Return the tier of a task by its words: "simple", "medium" or "complex".

    A task gets points for its length, for each further step that it names (list items, "and", "then"), and for each
    word of large work ("design", "migrate", "several"). With no point it is simple, with three or more complex. The
    words are English; in other languages only length and lists count.
    """
    words = _WORD.findall(task.casefold())
    size = max(len(words), len(task) // _LETTERS)
    items = sum(_ITEM.match(line.lstrip()) is not None for line in task.splitlines())
    steps = len(_STEPS.intersection(words)) + max(items - 1, 0)
    points = sum(size > length for length in _LENGTHS)
    points += min(steps, _MOST) + min(len(_LARGE.intersection(words)), _MOST)
    return "simple" if points == 0 else "medium" if points < _COMPLEX else "complex"

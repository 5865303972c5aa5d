"""Identity: when two requests are one and the same.

Every part of what is asked counts, spelled in one way: a set in order, a tool group as its tools, a time as whole
microseconds. So a part that is added to a `Pass` cannot be forgotten here.
"""

import hashlib
from dataclasses import fields
from typing import Final, NamedTuple, cast

from remit.core.allow import ANY
from remit.core.bounds import TOP, Bounds
from remit.core.remit import Pass
from remit.core.trust import INSIDE
from remit.core.values import Json, encode

KEYED: Final = "key/"  # begins the dedup key of what was asked for with an idempotency key
_SAME: Final = "same/"
# All of a Pass but what people write in seconds: its microseconds say the same exactly.
_PARTS: Final = tuple(field.name for field in fields(Pass) if field.name not in ("seconds", "wait"))

_TIMES: Final = ("microseconds", "patience")


class UsedKey(NamedTuple):
    """An idempotency key that was used. It outlives its run: `state` and `ended_at` say how the task ended once its
    record is pruned, and are empty before."""

    key: str
    task: str
    run: str
    content: str
    state: str
    ended_at: int | None


class AskedFrom(NamedTuple):
    """Where a request is made: in which task or session, in which agent's name, and under which ceiling."""

    task: str = ""
    session: str = ""
    asker: str = ""
    ceiling: Bounds | None = None


def said(wish: Pass) -> dict[str, Json]:
    """Spell out all of a pass. What a run remembers is spelled if it was said: the names of requests that were kept
    before do not change."""
    return {name: _spelled(getattr(wish, name)) for name in _PARTS if name != "remembers" or wish.remembers}


def question(wish: Pass) -> tuple[str, ...]:
    """Return what identifies a delegation when its asker is rerun: the agent, the task and all that is passed along,
    but no time limits."""
    plain = not wish.passes and wish.trust == INSIDE and wish.credits is None and not wish.remembers
    if wish.within is TOP and plain:  # nearly always
        return wish.to, wish.task
    within: dict[str, Json] = {name: bound for name, bound in wish.within.data.items() if name != "deadline"}
    if not within and plain:
        return wish.to, wish.task
    timeless = {name: part for name, part in said(wish).items() if name not in _TIMES}
    return wish.to, wish.task, encode({**timeless, "within": within})


def content_of(wish: Pass, where: AskedFrom, **how: Json) -> str:
    """Name the whole content of a request: equal for two that ask for the same, and for no others."""
    ceiling = where.ceiling.data if where.ceiling is not None else None
    return _name([said(wish), where.task, where.session, where.asker, ceiling, how])


def keyed(key: str, where: AskedFrom) -> str:
    """Give the dedup key for an idempotency key: it belongs to the task that asks, or to the workspace."""
    return KEYED + _name([where.task, key])


def unkeyed(content: str) -> str:
    """Give the dedup key for a request without one: its content."""
    return _SAME + content


def _name(parts: Json) -> str:
    return hashlib.sha256(encode(parts).encode()).hexdigest()[:32]


def _spelled(part: object) -> Json:
    if part is None or isinstance(part, str | int):
        return part
    if part is ANY:
        return "*"
    if isinstance(part, frozenset):
        return [*sorted(str(one) for one in cast("frozenset[object]", part))]
    if isinstance(part, Bounds):
        return part.data
    raise TypeError(f"a part of a request that has no spelling: {type(part).__name__}")

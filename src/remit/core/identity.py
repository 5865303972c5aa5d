"""Identity: when two requests are the same, and whose key a caller has.

Every field of a request counts, in one canonical form: sets sorted, tool groups expanded, times as whole microseconds.
The fields are listed by the type itself, so a new field of `Pass` counts automatically.
"""

import hashlib
import hmac
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Final, cast

from remit.core import bounds
from remit.core.allow import ANY
from remit.core.bounds import Bounds
from remit.core.records import NamedTuple
from remit.core.remit import Pass
from remit.core.trust import TRUSTED
from remit.core.values import Json, decode, digest, encode

KEYED: Final = "key/"  # prefix of the dedup key of a request with an idempotency key
_SAME: Final = "same/"
# Every digest covers all fields of a Pass except two groups. The first repeats other fields: `microseconds` and
# `patience` have the times, and `further` follows from the rest. The second counts only if it is set.
_SAID_BY_OTHERS: Final = ("timeout", "busy_timeout", "further")
_LATER: Final = ("remembers", "data")
_PARTS: Final = tuple(field.name for field in fields(Pass) if field.name not in (*_SAID_BY_OTHERS, *_LATER))

_TIMES: Final = ("microseconds", "patience")


class UsedKey(NamedTuple):
    """A used idempotency key, with the task that it started and the digest of the request, `content`. It outlives its
    run: when the task's record is pruned, `state` and `ended_at` keep how the task ended; before that `state` is "" and
    `ended_at` is None."""

    key: str
    task: str
    run: str
    content: str
    state: str
    ended_at: int | None


class AccessRow(NamedTuple):
    """An access key as it is stored. `scopes` are words, `bounds` is JSON; `expires_at` and `revoked_at` are None if it
    does not expire and is not revoked."""

    id: str
    digest: str
    name: str
    scopes: str
    agent: str
    bounds: str
    expires_at: int | None
    made_at: int
    made_by: str
    revoked_at: int | None
    revoked_by: str

    def admits(self, digest: str, now: int) -> bool:
        """Whether the key with this digest opens the workspace now. Compares in constant time."""
        return hmac.compare_digest(self.digest, digest) and self.lives(now)

    def lives(self, now: int) -> bool:
        """Whether the access key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    @property
    def limits(self) -> Bounds:
        """The bounds of everything that is requested with the access key."""
        return bounds.restored(cast("dict[str, Json]", decode(self.bounds)))


class AskedFrom(NamedTuple):
    """The origin of a request: its task or session, the agent that asks, and the ceiling."""

    task: str = ""
    session: str = ""
    asker: str = ""
    ceiling: Bounds | None = None


def canonical_fields(wish: Pass) -> dict[str, Json]:
    """Return all fields of a pass in canonical form. Later fields are left out unless they are set, so that the digests
    of requests recorded before they existed stay the same."""
    parts = {name: _canonical_part(getattr(wish, name)) for name in _PARTS}
    if wish.remembers:
        parts["remembers"] = wish.remembers
    if wish.data is not None:
        parts["data"] = wish.data
    return parts


def question(wish: Pass) -> tuple[str, ...]:
    """Return the key that identifies a delegation when its asker is rerun: the agent, the task and everything passed
    along, without time limits."""
    if not wish.further:  # nearly always
        return wish.to, wish.task
    plain = not (wish.passes or wish.remembers or wish.data) and wish.trust == TRUSTED and wish.credits is None
    within: dict[str, Json] = {name: bound for name, bound in wish.within.data.items() if name != "deadline"}
    if not within and plain:
        return wish.to, wish.task
    timeless = {name: part for name, part in canonical_fields(wish).items() if name not in _TIMES}
    return wish.to, wish.task, encode({**timeless, "within": within})


def content_of(wish: Pass, where: AskedFrom, **how: Json) -> str:
    """Return the digest of a whole request; `how` are further options of the request, such as its timeout. Two requests
    have the same digest exactly if they ask for the same."""
    ceiling = where.ceiling.data if where.ceiling is not None else None
    return _name([canonical_fields(wish), where.task, where.session, where.asker, ceiling, how])


def keyed(key: str, where: AskedFrom) -> str:
    """Return the dedup key for an idempotency key. The key belongs to the asking task, or to the workspace."""
    return KEYED + _name([where.task, key])


def unkeyed(content: str) -> str:
    """Return the dedup key for a request without an idempotency key: its content."""
    return _SAME + content


def _name(parts: Json) -> str:
    return hashlib.sha256(encode(parts).encode()).hexdigest()[:32]


def _canonical_part(part: object) -> Json:
    if part is None or isinstance(part, str | int):
        return part
    if part is ANY:
        return "*"
    if isinstance(part, frozenset):
        return [*sorted(str(one) for one in cast("frozenset[object]", part))]
    if isinstance(part, Bounds):
        return part.data
    raise TypeError(f"a part of a request that has no spelling: {type(part).__name__}")


_DEEPEST: Final = 32
_ADDRESS: Final = " at 0x"


def arguments(given: tuple[object, ...]) -> str:
    """Return the digest of the arguments: equal arguments have the same digest in every process. A value without a text
    form of its own, such as an open connection, counts by its type only."""
    return digest(_text_of(given, _DEEPEST))


def _text_of(value: object, depth: int) -> str:
    if depth < 0:
        return "…"
    if isinstance(value, list | tuple):
        return f"[{','.join(_text_of(item, depth - 1) for item in cast('list[object]', value))}]"
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return (
            f"{{{','.join(sorted(f'{_text_of(key, depth - 1)}:{_text_of(item, depth - 1)}' for key, item in items))}}}"
        )
    if isinstance(value, AbstractSet):
        return f"<{','.join(sorted(_text_of(item, depth - 1) for item in cast('AbstractSet[object]', value)))}>"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{_kind(value)}{_text_of([getattr(value, field.name) for field in fields(value)], depth - 1)}"
    text = repr(value)
    return _kind(value) if _ADDRESS in text else text


def _kind(value: object) -> str:
    """Return the qualified name of a function or class, or of the value's type."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{cast('type', named).__qualname__}"

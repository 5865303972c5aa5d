"""Access: the keys that programs outside of a workspace call it with. The form of a key, its scopes, and its expiry."""

import base64
import hmac
import re
import zlib
from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, cast

from remit.core.bounds import Bounds
from remit.core.checks import refuse_strange
from remit.core.identity import AccessRow
from remit.core.patterns import pattern
from remit.core.secret import Secret
from remit.core.times import iso, moment, span
from remit.core.values import shown, whole_digest
from remit.errors import BadInput

PREFIX: Final = "rmt_"  # so that scanners of code and logs recognize a key
ID_BYTES: Final = 10
SECRET_BYTES: Final = 32
_KEY: Final = pattern(r"rmt_([a-z2-7]{16})_[A-Za-z0-9_-]{43}_[0-9a-f]{8}", re.ASCII)
_LENGTH: Final = 73
_ID: Final = pattern(r"[a-z2-7]{16}", re.ASCII)

_BOUNDS: Final = tuple(field.name for field in fields(Bounds) if field.init)

SCOPES: Final = ("read", "run", "approve", "admin")
# What each scope includes: read < run < admin, and approve next to run.
_INCLUDES: Final[dict[str, frozenset[str]]] = {
    "read": frozenset(("read",)),
    "run": frozenset(("read", "run")),
    "approve": frozenset(("read", "approve")),
    "admin": frozenset(SCOPES),
}


class GivenKey(NamedTuple):
    """A key as a caller sent it, without its secret: the id to look it up by, and its digest."""

    id: str
    digest: str


class AccessInfo(NamedTuple):
    """An access key, without its digest. Times are microseconds since 1970.

    `state` is "active", "expired" or "revoked". `agent` is the agent in whose name requests are made; "" is the owner.
    `used_at` is the time of the latest request with the key, exact to about a minute; None if there was none.
    """

    id: str
    name: str
    state: str
    scopes: tuple[str, ...]
    agent: str
    bounds: Bounds
    expires_at: int | None
    made_at: int
    made_by: str
    revoked_at: int | None
    revoked_by: str
    used_at: int | None


class MadeAccess(NamedTuple):
    """A new access and its key. The key is shown once: the store has a digest of it. `key.reveal()` is its text."""

    access: AccessInfo
    key: Secret

    @property
    def id(self) -> str:
        """The id of the access key, which is a part of its text."""
        return self.access.id


def info(row: AccessRow, used_at: int | None, now: int) -> AccessInfo:
    """Return an access key as its owner sees it. `now` decides whether the key has expired; `used_at` is the time of
    its latest request, or None. Both are microseconds since 1970."""
    state = "active" if row.lives(now) else "expired" if row.revoked_at is None else "revoked"
    return AccessInfo(
        row.id,
        row.name,
        state,
        tuple(row.scopes.split()),
        row.agent,
        row.limits,
        row.expires_at,
        row.made_at,
        row.made_by,
        row.revoked_at,
        row.revoked_by,
        used_at,
    )


def key_of(id_bytes: bytes, secret: bytes) -> tuple[GivenKey, Secret]:
    """Return the key that is made of these random bytes: its id and digest, and its text."""
    id_ = base64.b32encode(id_bytes).decode().lower()
    body = f"{PREFIX}{id_}_{base64.urlsafe_b64encode(secret).decode().rstrip('=')}"
    text = f"{body}_{_check(body)}"
    return GivenKey(id_, whole_digest(text)), Secret(text)


def parse_key(text: str) -> GivenKey | None:
    """Return the id and the digest of a key that a caller sent, or None if the text is not an access key. The key
    contains a checksum, so a typing error is found without a query."""
    if len(text) != _LENGTH or (match := _KEY.fullmatch(text)) is None:
        return None
    body, _, check = text.rpartition("_")
    return GivenKey(match[1], whole_digest(text)) if hmac.compare_digest(_check(body), check) else None


def wrong_id(value: object) -> str:
    """Return the problem with the id of an access key, or "". The id itself is not shown, because it may be the key."""
    if isinstance(value, str) and _ID.fullmatch(value) is not None:
        return ""
    return (
        "the id of an access key has 16 characters; `remit access ls` lists them. The given text is not shown: it "
        "may be the key itself"
    )


def scopes(wanted: object) -> tuple[str, ...]:
    """Return the scopes of an access key, each once and in the order of `SCOPES`. `wanted` is a list, or a text with
    spaces between the scopes. Raise `BadInput` for an unknown scope, and if there is none."""
    words: Iterable[object] = wanted.split() if isinstance(wanted, str) else _scope_list(wanted)
    known = [*words]
    strange = [word for word in known if word not in SCOPES]
    if strange or not known:
        what = f"not {shown(strange[0])}" if strange else "and an access key needs at least one"
        raise BadInput(f"scopes are read, run, approve and admin, {what}")
    return tuple(scope for scope in SCOPES if scope in known)


def _scope_list(wanted: object) -> Iterable[object]:
    if isinstance(wanted, list | tuple | set | frozenset):
        return cast("Iterable[object]", wanted)
    raise BadInput(f"scopes is a list such as ['run', 'approve'], not {shown(wanted)}")


def included(words: Iterable[str]) -> frozenset[str]:
    """Return these scopes and all that they include."""
    return frozenset[str]().union(*(_INCLUDES[word] for word in words))


def expiry(given: object, now: int) -> int | None:
    """Return when an access key expires, in microseconds since 1970; None if it does not. `given` is a duration from
    `now`, as a number of seconds or a timedelta, an aware datetime, or None. Raise `BadInput` for anything else, and
    for a moment that has passed."""
    if given is None:
        return None
    if isinstance(given, int | float | timedelta):
        return now + span(given, "expires")
    if not isinstance(given, datetime):
        raise BadInput(f"expires is a number of seconds, a timedelta, or an aware datetime, not {shown(given)}")
    until = moment(given, "expires")
    if until <= now:
        raise BadInput(f"expires has passed: it is {iso(until)}, and now it is {iso(now)}; pass a later time")
    return until


def limits(given: object) -> Bounds:
    """Return the bounds that JSON describes, such as `{"credits": "0.50USD", "depth": 2}`. Raise `BadInput` if it is
    not an object, or has an unknown field or a wrong value."""
    if not isinstance(given, dict):
        raise BadInput(f'bounds is an object such as {{"depth": 2}}, not {shown(given)}')
    named = cast("dict[str, Any]", given)
    refuse_strange("bounds", named, _BOUNDS)
    return Bounds(**named)


def _check(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"

"""The caller of a request: its workspace, its scopes, and the card in whose name it acts, all according to its key."""

from hashlib import sha256
from hmac import compare_digest
from typing import Final, NamedTuple, Protocol

from remit.core.bounds import TOP, Bounds
from remit.engine.acts import OP_LIMIT
from remit.errors import Forbidden, Unauthorised

READ, RUN, APPROVE, ADMIN = "read", "run", "approve", "admin"
# What each scope permits: read < run < admin, and approve beside run.
PERMITS: Final[dict[str, frozenset[str]]] = {
    READ: frozenset((READ,)),
    RUN: frozenset((READ, RUN)),
    APPROVE: frozenset((READ, APPROVE)),
    ADMIN: frozenset((READ, RUN, APPROVE, ADMIN)),
}
SCOPES: Final = tuple(PERMITS)


class Caller(NamedTuple):
    """The caller of a request. `access` is the id of its key, "" for the token of a server on this machine. `agent` is
    the card that it acts as, "" for the owner; `bounds` limit everything that it starts. `by` names it in the
    journal."""

    access: str
    workspace: str
    scopes: frozenset[str]
    agent: str = ""
    bounds: Bounds = TOP
    by: str = "token"

    def may(self, scope: str) -> bool:
        """Whether its scopes permit this one."""
        return scope in self.scopes or any(scope in PERMITS.get(own, ()) for own in self.scopes)

    def must(self, scope: str) -> None:
        """Raise `Forbidden` unless its scopes permit this one."""
        if not self.may(scope):
            raise Forbidden(f"this needs a key with the scope {scope}; `remit access make` creates one")

    def op(self, key: str) -> str:
        """Return the operation id of a request with this Idempotency-Key, or "" without one. Callers with different
        access keys never share an id."""
        if not key:
            return ""
        whole = f"{self.access or 'token'}/{key}"
        return whole if len(whole) <= OP_LIMIT else f"{self.access or 'token'}#{sha256(key.encode()).hexdigest()}"


class Doorkeeper(Protocol):
    """Authenticates requests: returns the caller that a key belongs to."""

    async def caller(self, key: str) -> Caller:
        """Return the caller with this key. Raise `Unauthorised` if the key is not valid."""
        ...


class TokenDoorkeeper:
    """The doorkeeper of a server that only this machine reaches: one token, which permits everything in one
    workspace."""

    def __init__(self, token: str, workspace: str) -> None:
        self._token = token.encode()
        self.own = Caller("", workspace, frozenset((ADMIN,)))

    async def caller(self, key: str) -> Caller:
        if not compare_digest(key.encode(), self._token):
            raise no_key()
        return self.own


def no_key() -> Unauthorised:
    """Return the error of a request without a valid key. It does not say what was wrong with it."""
    return Unauthorised("this needs a valid key, as `Authorization: Bearer <key>`")

"""Sessions of a browser: a key becomes a signed cookie, so that no script of a page has the key.

A cookie comes with every request of the browser, also with those that another page causes. So a request that changes
something must also have a header that only our own page can send, and must come from our own page.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from secrets import token_bytes, token_hex
from typing import Final, Protocol

from starlette.types import Scope

from remit.core.times import HOUR, SECOND
from remit.errors import Forbidden
from remit.ports import Clock
from remit.server.callers import Caller, no_key
from remit.server.strict import header

LASTS: Final = 12 * HOUR
COOKIE: Final = "remit_session"
CSRF: Final = b"x-remit-csrf"
_OVER_TLS: Final = "__Host-remit_session"  # a browser takes it only over TLS, for this host and all paths
_SAFE: Final = frozenset(("GET", "HEAD"))
_OURS: Final = frozenset(("same-origin", "none"))  # none: the person typed the address
_TOKEN: Final = "token"  # noqa: S105 - the word for the token of this machine, not a secret
_PARTS: Final = 4


class AdmittedCallers(Protocol):
    """A doorkeeper that knows its callers by the id of their access."""

    async def again(self, access: str) -> Caller:
        """Return the caller of an access that was admitted before; "" for the token of this machine. Raise
        `Unauthorised` if it is revoked or expired meanwhile."""
        ...


class Sessions:
    """The sessions of a server. A cookie names an access, not a key, and is signed with a secret of this process. It
    lasts for 12 hours, and never longer than the access. `tls` says that browsers reach the server by https."""

    def __init__(
        self, callers: AdmittedCallers, clock: Clock, *, tls: bool = False, secret: bytes | None = None
    ) -> None:
        self._callers = callers
        self._clock = clock
        self._tls = tls
        self._secret = token_bytes(32) if secret is None else secret
        self.name = _OVER_TLS if tls else COOKIE

    def begin(self, caller: Caller) -> tuple[dict[str, str], str]:
        """Begin a session of a caller whose key was just checked. Return the headers that set its cookie, and the text
        that its page sends as X-Remit-CSRF."""
        until = self._clock.now() + LASTS
        body = f"{caller.access or _TOKEN}.{until}.{token_hex(16)}"
        value = f"{body}.{self._signed('session', body)}"
        return self._headers(value, LASTS // SECOND), self.csrf(value)

    def end(self) -> dict[str, str]:
        """Return the headers that remove the cookie."""
        return self._headers("", 0)

    def csrf(self, cookie: str) -> str:
        """Return what a page with this cookie sends as X-Remit-CSRF."""
        return self._signed("csrf", cookie)

    def cookie(self, scope: Scope) -> str:
        """Return the cookie of a request, or "". Two of the same name are none: another host may have set one."""
        pairs = [part.strip().partition("=") for part in header(scope, b"cookie").split(";")]
        found = [value for name, _, value in pairs if name == self.name]
        return found[0] if len(found) == 1 else ""

    async def caller(self, scope: Scope) -> Caller:
        """Return who makes a request with a cookie. Raise `Unauthorised` for an invalid cookie, and `Forbidden` for a
        request that another page may have caused."""
        cookie = self.cookie(scope)
        access = self._access(cookie)
        self._must_be_ours(scope, cookie)
        return await self._callers.again(access)

    def _access(self, cookie: str) -> str:
        parts = cookie.split(".")
        if len(parts) != _PARTS:
            raise no_key()
        access, until, nonce, signature = parts
        right = self._signed("session", f"{access}.{until}.{nonce}")
        # Signed by us, so the rest has the form that we gave it.
        if not hmac.compare_digest(signature.encode(), right.encode()) or self._clock.now() >= int(until):
            raise no_key()
        return "" if access == _TOKEN else access

    def _must_be_ours(self, scope: Scope, cookie: str) -> None:
        site, origin = header(scope, b"sec-fetch-site"), header(scope, b"origin")
        if site and site not in _OURS:
            raise Forbidden("a page of another origin may not use this session")
        if scope["method"] in _SAFE:
            return
        host = header(scope, b"host")
        own = f"{'https' if self._tls else 'http'}://{host}"
        if not (origin == own if origin else site == "same-origin"):
            raise Forbidden("only the server's own page may change something with this session")
        if not hmac.compare_digest(header(scope, CSRF).encode(), self.csrf(cookie).encode()):
            raise Forbidden("the header X-Remit-CSRF is missing or wrong; load the page again")

    def _headers(self, value: str, seconds: int) -> dict[str, str]:
        secure = "; Secure" if self._tls else ""
        return {
            "Set-Cookie": f"{self.name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}",
            "Cache-Control": "no-store",
        }

    def _signed(self, use: str, text: str) -> str:
        return hmac.new(self._secret, f"{use}\n{text}".encode(), sha256).hexdigest()

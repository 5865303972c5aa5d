"""Sessions of a browser: a key becomes a signed cookie, so that no script of a page has the key.

A cookie comes with every request of the browser, also with those that another page causes. So a request that changes
something must also have a header that only our own page can send, and must come from our own page.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from secrets import token_bytes, token_hex
from typing import Final, NamedTuple, Protocol

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
    """A doorkeeper that can return a caller again by the id of its access key, without the key itself."""

    async def again(self, access: str) -> Caller:
        """Return the caller of the access key with this id, which was checked before; the id "" stands for the token of
        this machine. Raise `Unauthorised` if the key has been revoked or has expired since."""
        ...


class BegunSession(NamedTuple):
    """A new session: the headers that set its cookie, and the text that its page sends as X-Remit-CSRF. `until` is its
    end, in microseconds since 1970."""

    headers: dict[str, str]
    csrf: str
    until: int


class Sessions:
    """The sessions of a server. A cookie has the id of an access key, not its text, and is signed with the secret. It
    lasts for 12 hours, and never longer than the access key. `https` are the hosts that browsers reach by https.
    Without a `secret`, the sessions end with the process."""

    def __init__(
        self,
        callers: AdmittedCallers,
        clock: Clock,
        *,
        https: frozenset[str] = frozenset(),
        secret: bytes | None = None,
    ) -> None:
        self._callers = callers
        self._clock = clock
        self._https = https
        self._secret = token_bytes(32) if secret is None else secret

    def begin(self, caller: Caller, scope: Scope) -> BegunSession:
        """Start a session of a caller whose key was just checked, for the browser that made this request. Raise
        `Forbidden` for a request of a page of another origin: such a page must not sign the browser in."""
        self._must_be_own_page(scope)
        until = self._clock.now() + LASTS
        body = f"{caller.access or _TOKEN}.{until}.{token_hex(16)}"
        value = f"{body}.{self._signed('session', body)}"
        return BegunSession(self._headers(scope, value, LASTS // SECOND), self.csrf(value), until)

    def end(self, scope: Scope) -> dict[str, str]:
        """Return the headers that remove the cookie."""
        return self._headers(scope, "", 0)

    def csrf(self, cookie: str) -> str:
        """Return the CSRF token that a page with this cookie must send as X-Remit-CSRF."""
        return self._signed("csrf", cookie)

    def until(self, cookie: str) -> int:
        """Return when the session of a valid cookie ends, in microseconds since 1970."""
        return int(cookie.split(".")[1])

    def cookie(self, scope: Scope) -> str:
        """Return the session cookie of a request. Return "" if it has none or two: another host may have set the
        second."""
        own = self._name(scope)
        pairs = [part.strip().partition("=") for part in header(scope, b"cookie").split(";")]
        found = [value for name, _, value in pairs if name == own]
        return found[0] if len(found) == 1 else ""

    async def caller(self, scope: Scope) -> Caller:
        """Return the caller whose session cookie the request has. Raise `Unauthorised` if the cookie or its access key
        is not valid, and `Forbidden` for a request that a page of another origin may have caused."""
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
        # The signature is checked first: `int` may only read text that this server has written.
        if not hmac.compare_digest(signature.encode(), right.encode()) or self._clock.now() >= int(until):
            raise no_key()
        return "" if access == _TOKEN else access

    def _must_be_ours(self, scope: Scope, cookie: str) -> None:
        site = header(scope, b"sec-fetch-site")
        if site and site not in _OURS:
            raise Forbidden("a page of another origin may not use this session")
        if scope["method"] in _SAFE:
            return
        self._must_be_own_page(scope)
        if not hmac.compare_digest(header(scope, CSRF).encode(), self.csrf(cookie).encode()):
            raise Forbidden("the header X-Remit-CSRF is missing or wrong; load the page again")

    def _must_be_own_page(self, scope: Scope) -> None:
        site, origin = header(scope, b"sec-fetch-site"), header(scope, b"origin")
        own = f"{'https' if self._is_tls(scope) else 'http'}://{header(scope, b'host')}"
        if (site and site not in _OURS) or not (origin == own if origin else site == "same-origin"):
            raise Forbidden("only the server's own page may change something with this session")

    def _is_tls(self, scope: Scope) -> bool:
        return header(scope, b"host").lower() in self._https

    def _name(self, scope: Scope) -> str:
        """Return the name of the session cookie. Browsers send a cookie to every port of a host, so the name contains
        the port, except over TLS."""
        if self._is_tls(scope):
            return _OVER_TLS
        port = header(scope, b"host").rpartition(":")[2]
        return f"{COOKIE}_{port}" if port.isdigit() else COOKIE

    def _headers(self, scope: Scope, value: str, seconds: int) -> dict[str, str]:
        secure = "; Secure" if self._is_tls(scope) else ""
        return {
            "Set-Cookie": f"{self._name(scope)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}",
            "Cache-Control": "no-store",
        }

    def _signed(self, use: str, text: str) -> str:
        return hmac.new(self._secret, f"{use}\n{text}".encode(), sha256).hexdigest()

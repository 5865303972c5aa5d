"""What a store's address means: memory, a file, or a server. What looks like an address is never taken for a file's
name, because a name is printed, and an address may have a password in it."""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from remit.errors import BadInput

_SCHEMES: Final = ("postgresql", "postgres")
_ALLOWED: Final = "a store is a file, ':memory:', or a server as postgresql://user@host/database"
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)(:/*)")
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")  # a path on Windows
_SETTING: Final = re.compile(
    r"(host|hostaddr|port|dbname|user|password|passfile|service|sslmode|options)\s*=", re.IGNORECASE
)
# Without a scheme: somebody@somewhere/something, name:password@host, host:port/database, //host, ?password=.
_LOOKS_LIKE: Final = re.compile(
    r"//[^/]|[^/@]+@[^/@]+(:\d+)?/|[^/@:]*:.*@|(\[[0-9a-f:]+\]|[\w.\-]+):\d+(/|$)|.*[?&](password|user|sslmode)=",
    re.IGNORECASE | re.DOTALL,
)
_EXPLICIT: Final = re.compile(r"\.{0,2}/(?!/)|~|\.\\")  # /there, ./here, ../over: surely a path
_PASSWORDS: Final = (
    re.compile(r"(?<=://)([^\s/@:]*):[^\s/]*(?=@)"),  # postgresql://user:password@
    re.compile(r"(?<=[?&\s'\"])((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE),
    re.compile(r"^((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE),
)


def is_server(where: str | Path) -> bool:
    """Tell whether an address means a PostgreSQL server; refuse one that means nothing we know."""
    text = str(where).strip()
    if text == ":memory:" or _DRIVE.match(text) or _EXPLICIT.match(text):
        return False
    if _SETTING.match(text):
        return True
    scheme = _SCHEME.match(text)
    if scheme is not None:
        name, slashes = scheme[1].lower(), scheme[2]
        if name in _SCHEMES and slashes.startswith("://"):
            return True
        _refuse_scheme(name, certain=slashes == "://")
    if _LOOKS_LIKE.match(text):
        raise BadInput(
            f"that looks like the address of a server, but has no scheme: {_ALLOWED}; did you mean postgresql://...? "
            "A file whose name looks so is written with ./ before it"
        )
    return False


def _refuse_scheme(name: str, *, certain: bool) -> None:
    """Refuse a scheme that is not ours. Without `//` it may as well be a file with a colon in its name."""
    if name in ("sqlite", "sqlite3", "file"):
        raise BadInput(f"a file is given by its path alone, without {name}: in front; {_ALLOWED}")
    if name in _SCHEMES or get_close_matches(name, (*_SCHEMES, "pg", "psql", "postgre"), cutoff=0.7):
        raise BadInput(f"{name}: is not how an address begins; did you mean postgresql://? {_ALLOWED}")
    if certain:
        raise BadInput(f"{name[:20]}:// is no kind of store that remit knows; {_ALLOWED}")


def redacted(text: str) -> str:
    """Take passwords out of text that may quote an address."""
    text = _PASSWORDS[0].sub(r"\1:***", text)
    for pattern in _PASSWORDS[1:]:
        text = pattern.sub(r"\1***", text)
    return text

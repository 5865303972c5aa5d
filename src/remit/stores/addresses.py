"""The meaning of a store's address: memory, a file, or a server. Text that looks like an address is never taken for a
file name, because file names are printed, and an address may contain a password."""

import re
from pathlib import Path
from typing import Final

from remit.core.patterns import pattern
from remit.errors import BadInput

_SCHEMES: Final = ("postgresql", "postgres")
_ALLOWED: Final = "a store is a file, ':memory:', or a server as postgresql://user@host/database"
_DRIVE: Final = pattern(r"[A-Za-z]:[\\/]")  # a path on Windows
_SETTING: Final = pattern(
    r"(host|hostaddr|port|dbname|user|password|passfile|service|sslmode|options)\s*=", re.IGNORECASE
)
_SETTINGS_IN_QUERY: Final = tuple(f"{sign}{name}=" for sign in "?&" for name in ("password", "user", "sslmode"))
_EXPLICIT: Final = pattern(r"\.{0,2}/(?!/)|~|\.\\")  # /there, ./here, ../over: certainly a path
# The beginning of an address in a line of text.
_ADDRESS: Final = pattern(r"(?<![^\s'\"(\[{<=,;])([A-Za-z0-9+.-]*://)")
_WORD: Final = pattern(r"\S+")
_AT: Final = pattern(r"@(?=[^\s'\"])")  # with a host after it
_COLON: Final = pattern(r":|%3a", re.IGNORECASE)
_PASSWORDS: Final = (
    pattern(r"(?<=[?&\s'\"])((?:ssl|pg)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE),
    pattern(r"^((?:ssl|pg)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE),
)


def each_address(where: str | Path) -> list[str]:
    """Return the addresses of a store: those of several databases are on a line each."""
    text = str(where)
    if "\n" not in text:
        return [text]
    return [line.strip() for line in text.splitlines() if line.strip()] or [text]


def is_server(where: str | Path) -> bool:
    """Whether an address means a PostgreSQL server, or one of several addresses does. Raise `BadInput` for an unknown
    kind of address."""
    text = str(where).strip()
    if "\n" in text:
        kinds = [is_server(one) for one in each_address(text)]  # all are checked
        return any(kinds)
    if text == ":memory:" or _DRIVE.match(text) or _EXPLICIT.match(text):
        return False
    if _SETTING.match(text):
        return True
    name, colon, rest = text.partition(":")
    if colon and _is_scheme(name):
        if name.lower() in _SCHEMES and rest.startswith("//"):
            return True
        _refuse_scheme(name.lower(), certain=rest.startswith("//"))
    if _looks_like_server(text):
        raise BadInput(
            f"that looks like the address of a server, but has no scheme: {_ALLOWED}; did you mean postgresql://...? "
            "A file whose name looks so is written with ./ before it"
        )
    return False


def _is_scheme(name: str) -> bool:
    return name[:1].isalpha() and name.isascii() and all(letter.isalnum() or letter in "+.-" for letter in name)


def _looks_like_server(text: str) -> bool:
    """Whether the text is an address without a scheme: //host, user@host/name, name:password@host, host:port/database,
    ?password=. It uses no regular expression, because a path may have any length."""
    if text.startswith("//") and text[2:3] not in ("", "/"):
        return True
    first = text.partition("/")[0]
    user, at, host = first.partition("@")
    if at and user and host and "/" in text:
        return True
    name, colon, rest = text.partition(":")
    if colon and "@" in rest and not {"/", "@"} & set(name):
        return True
    host, colon, port = first.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]").replace(":", "") if host.startswith("[") else host
    if colon and port.isdigit() and bare and all(letter.isalnum() or letter in "_.-" for letter in bare):
        return True
    return any(setting in text.lower() for setting in _SETTINGS_IN_QUERY)


def _refuse_scheme(name: str, *, certain: bool) -> None:
    """Raise `BadInput` for an unknown scheme. Without `//` it may also be a file with a colon in its name."""
    if name in ("sqlite", "sqlite3", "file"):
        raise BadInput(f"a file is given by its path alone, without {name}: in front; {_ALLOWED}")
    from difflib import get_close_matches  # noqa: PLC0415 - most addresses are right

    if name in _SCHEMES or get_close_matches(name, (*_SCHEMES, "pg", "psql", "postgre"), cutoff=0.7):
        raise BadInput(f"{name}: is not how an address begins; did you mean postgresql://? {_ALLOWED}")
    if certain:
        raise BadInput(f"{name[:20]}:// is no kind of store that remit knows; {_ALLOWED}")


def redacted(text: str) -> str:
    """Return the text without passwords, in case it quotes an address. Everything that may be part of a password is
    removed: in the line of an address, everything up to its last `@`, because a password may contain any character."""
    for password in _PASSWORDS:
        text = password.sub(r"\1***", text)
    return "\n".join(map(_without_password, text.split("\n"))) if "@" in text else text


def _without_password(line: str) -> str:
    """Return postgresql://user:password@host or user:password@host with *** in place of the password."""
    before, *rest = _ADDRESS.split(line)  # then each scheme with the text after it
    parts = [before, *(part if part.endswith("://") else _masked(part) for part in rest)]
    return _WORD.sub(lambda word: _masked_word(word[0]), "".join(parts))


def _masked(text: str) -> str:
    ats = [found.start() for found in _AT.finditer(text)]
    colon = _COLON.search(text, 0, ats[-1]) if ats else None
    return text if colon is None else f"{text[: colon.start()]}:***{text[ats[-1] :]}"


def _masked_word(word: str) -> str:
    secret = word.partition(":")[2]
    return word if secret.startswith(("//", "@")) or not secret else _masked(word)

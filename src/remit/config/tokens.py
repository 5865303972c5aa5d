"""The token of a server on this machine, kept where only its user reads it, so that commands find it."""

import hmac
import os
import stat
from contextlib import suppress
from html import escape
from pathlib import Path
from secrets import token_hex
from typing import Final

from remit.errors import BadInput

_FOLDER: Final = "remit"
_KEPT: Final = "sessions.secret"
_DIGITS: Final = 64


def token_file(port: int) -> Path:
    """Return the file of the token of the server on this port."""
    return _folder() / f"serve-{port}.token"


def _folder() -> Path:
    above = os.environ.get("XDG_STATE_HOME", "")
    try:
        folder = Path(above) if Path(above).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise BadInput("there is no home folder to keep the server's token in; set XDG_STATE_HOME") from error
    return folder / _FOLDER


def keep_token(port: int, token: str) -> Path:
    """Write the token of a server, readable by its user only, and return the file. A link is replaced, not followed."""
    return _keep(token_file(port), token)


def _keep(file: Path, token: str) -> Path:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(number, "w", encoding="ascii") as opened:
            opened.write(token)
        draft.replace(file)
    except OSError as error:
        raise BadInput(f"the server's token cannot be kept in {file.parent}: {error.strerror}") from error
    return file


def kept_token(port: int) -> str:
    """Return the token of the server on this port, or "" if none is kept."""
    try:
        return token_file(port).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError, BadInput):
        return ""


def keep_page(address: str) -> Path:
    """Write a page that leads a browser to an address with a key, readable by its user only, and return the file."""
    leading = f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">'
    return _keep(_page_file(), leading)


def forget_page() -> None:
    """Remove the page that `keep_page` has written in this process, if there is one."""
    with suppress(OSError, BadInput):
        _page_file().unlink(missing_ok=True)


def _page_file() -> Path:
    return _folder() / f"open-{os.getpid()}.html"


def session_secret(use: str) -> bytes | None:
    """Return the secret that signs the sessions of browsers for one use, such as a workspace of a store. It is made
    once for each user of this machine, so a session outlives a restart of the server. None where it cannot be kept."""
    try:
        file = _folder() / _KEPT
        if not _is_ours(file):
            _keep(file, token_hex(32))
        return hmac.digest(bytes.fromhex(file.read_text(encoding="ascii")), use.encode(), "sha256")
    except (OSError, ValueError, BadInput):
        return None


def _is_ours(file: Path) -> bool:
    """Whether a file is there, complete, and readable by its owner only."""
    try:
        found = file.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_mode & 0o077 == 0 and found.st_size == _DIGITS


def forget_token(port: int, token: str) -> None:
    """Remove the token of a server that has ended, unless another one has taken its place."""
    if kept_token(port) == token:
        token_file(port).unlink(missing_ok=True)

"""The token of a server on this machine, kept where only its user reads it, so that commands find it."""

import os
from pathlib import Path
from typing import Final

from remit.errors import BadInput

_FOLDER: Final = "remit"


def token_file(port: int) -> Path:
    """Return the file of the token of the server on this port."""
    above = os.environ.get("XDG_STATE_HOME", "")
    try:
        folder = Path(above) if Path(above).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise BadInput("there is no home folder to keep the server's token in; set XDG_STATE_HOME") from error
    return folder / _FOLDER / f"serve-{port}.token"


def keep_token(port: int, token: str) -> Path:
    """Write the token of a server, readable by its user only, and return the file. A link is replaced, not followed."""
    file = token_file(port)
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


def forget_token(port: int, token: str) -> None:
    """Remove the token of a server that has ended, unless another one has taken its place."""
    if kept_token(port) == token:
        token_file(port).unlink(missing_ok=True)

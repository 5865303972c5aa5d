"""The contents of artifacts: files by their digest, next to the tables that refer to them."""

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

PART: Final = 1_048_576  # bytes that are read or written at once


class Kept(NamedTuple):
    """A content that was written whole: its digest, as in an `Artifact`, and its size in bytes."""

    digest: str
    size: int


class Saving(Protocol):
    """A content that is being written. Until `close`, no process removes it."""

    def write(self, data: bytes) -> int:
        """Add bytes to the end, and return the size so far."""
        ...

    def keep(self) -> Kept:
        """Store the content under its digest. When this returns, it survives a loss of power; if the process dies
        before, nothing of it is stored."""
        ...

    def close(self) -> None:
        """Drop what was written and not kept. Call it after the event that refers to the content is committed."""
        ...


class ContentReader(Protocol):
    """An open content."""

    def read(self) -> bytes:
        """Return the next part, of at most `PART` bytes, or `b""` at the end."""
        ...

    def close(self) -> None: ...


class Clearing(Protocol):
    """The exclusive right to remove contents: meanwhile no process saves any."""

    def remove(self, digest: str) -> None: ...
    def sweep(self) -> int:
        """Remove what dead processes have written and not kept. Return the number of such files."""
        ...

    def close(self) -> None: ...


class Contents(Protocol):
    """The contents of one workspace. Every call may wait for a disk or a server, so call it in a thread."""

    def begin(self) -> Saving: ...
    def open(self, digest: str) -> ContentReader | None:
        """Open a content to read it; None if there is none of this digest."""
        ...

    def stored(self) -> Iterator[Kept]:
        """Yield the digests of all stored contents, with the number of bytes that are stored of each."""
        ...

    def unfinished(self) -> int:
        """Return the number of contents that are being written, or were when their process died."""
        ...

    def clearing(self, *, make: bool = False) -> Clearing | None:
        """Start to remove contents. Return None if a process is saving one: try again later then. With `make`, keep
        processes from saving meanwhile even if there was no content before."""
        ...

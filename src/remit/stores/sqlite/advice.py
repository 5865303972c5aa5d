"""What is worth knowing about the SQLite that this process uses."""

from typing import Final

_Version = tuple[int, int, int]

# https://www.sqlite.org/wal.html#walresetbug: from 3.7.0 on; mended in 3.51.3, and in these for those who stay behind.
_MENDED: Final[_Version] = (3, 51, 3)
_MENDED_TOO: Final[tuple[_Version, ...]] = ((3, 44, 6), (3, 50, 7))


def advice(version: _Version) -> list[str]:
    """Name what this version of SQLite may do to a file that several processes use."""
    mended = version >= _MENDED or any(fixed <= version < (3, fixed[1] + 1, 0) for fixed in _MENDED_TOO)
    number, since = (".".join(map(str, one)) for one in (version, _MENDED))
    sentence = (
        f"SQLite {number} has the WAL-reset bug: if two processes write and checkpoint at the very same moment, which "
        f"is rare, the file can be damaged. One process alone is safe; for several use a Python with SQLite {since} or "
        "newer, or PostgreSQL"
    )
    return [] if mended else [sentence]

"""Regular expressions that are compiled on first use: a start reads some thirty of them and uses few."""

import re
from typing import Any, AnyStr, cast

__all__ = ["LatePattern", "pattern"]

_MEMBERS = ("findall", "finditer", "fullmatch", "match", "pattern", "search", "split", "sub")


class LatePattern:
    """A pattern that is compiled when one of its methods is first used. From then on, the methods are those of the
    compiled pattern, and cost nothing extra."""

    __slots__ = (*_MEMBERS, "_flags", "_text")

    def __init__(self, text: object, flags: int) -> None:
        self._text: Any = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern, set its members, and return the named one. Python calls this only while a member is not
        set."""
        compiled = re.compile(self._text, self._flags)
        for member in _MEMBERS:
            setattr(self, member, getattr(compiled, member))
        return getattr(compiled, name)


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when it is first used. Assign it to a variable of a module: only there
    `tests/test_patterns.py` finds it, to test that it takes time in proportion to its input."""
    return cast("re.Pattern[AnyStr]", LatePattern(text, flags))

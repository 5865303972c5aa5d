"""The tools of a turn, as an object that can be asked."""

from collections.abc import Iterator

from remit.core.allow import ANY, Names, has, spelled


class Toolset:
    """Which tools a holder may use this time: `in` asks for one, iteration lists them, `any` says that all are."""

    __slots__ = ("_names",)

    def __init__(self, names: Names) -> None:
        self._names = names

    @property
    def any(self) -> bool:
        """Whether every tool may be used; then there is no list of them."""
        return self._names is ANY

    def __contains__(self, tool: object) -> bool:
        return isinstance(tool, str) and has(self._names, tool)

    def __iter__(self) -> Iterator[str]:
        return iter(()) if self._names is ANY else iter(sorted(self._names))

    def __len__(self) -> int:
        return 0 if self._names is ANY else len(self._names)

    def __bool__(self) -> bool:
        return self._names is ANY or bool(self._names)

    def __eq__(self, other: object) -> bool:
        return self._names == (other._names if isinstance(other, Toolset) else other)

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return f"<tools: {'any' if self.any else spelled(self._names)}>"

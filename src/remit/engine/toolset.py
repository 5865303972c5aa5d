"""The tools of a turn, as an object that can be asked."""

from collections.abc import Iterator

from remit.core.allow import ANY, spelled
from remit.core.remit import Kit


class Toolset:
    """Which tools a holder may use this time: `in` asks for one, iteration lists them, `any` says that all may be used
    but those its card denies."""

    __slots__ = ("_kit", "_names")

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._names = kit.names

    @property
    def any(self) -> bool:
        """Whether every tool may be used that is not denied; then there is no list of them."""
        return self._names is ANY

    def __contains__(self, tool: object) -> bool:
        return isinstance(tool, str) and self._kit.has(tool)

    def __iter__(self) -> Iterator[str]:
        return iter(()) if self._names is ANY else iter(sorted(self._names))

    def __len__(self) -> int:
        return 0 if self._names is ANY else len(self._names)

    def __bool__(self) -> bool:
        return self._names is ANY or bool(self._names)

    def __eq__(self, other: object) -> bool:
        return self._kit == other._kit if isinstance(other, Toolset) else self._names == other and not self._kit.denied

    def __hash__(self) -> int:
        return hash(self._kit)

    def __repr__(self) -> str:
        denied = f" but {spelled(self._kit.denied)}" if self._kit.denied else ""
        return f"<tools: {f'any{denied}' if self.any else spelled(self._names)}>"

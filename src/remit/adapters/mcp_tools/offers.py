"""The tools that a server offers, and which of them are admitted: those that the owner allowed, as the owner knows
them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from remit.core.checks import meant
from remit.core.toolgroups import Repeat
from remit.core.trust import UNTRUSTED
from remit.core.values import shown
from remit.errors import BadInput
from remit.ports.models import ToolFunction
from remit.ports.tools import Tool, pin_of

_LISTED: Final = 100  # names in a sentence
_SHOWN: Final = 600  # characters of a description in a sentence


class Offer(NamedTuple):
    """A tool as a server describes it."""

    name: str
    sentence: str
    schema: Mapping[str, Any]
    harmless: bool = False  # whether the server declares it read-only or idempotent


class Gate:
    """Admits the tools of a server: only those on its allow list, and only while their description and schema equal the
    pinned or first seen ones, also after a restart of the server."""

    def __init__(self, server: str, allow: Sequence[str], pins: Mapping[str, str]) -> None:
        self._server = server
        self._allow = allow
        self._pins = pins
        self._first: dict[str, Tool] = {}

    def admit(self, offers: Sequence[Offer], call: Callable[[str], ToolFunction]) -> list[Tool]:
        """Return tools for the allowed offers; `call` returns the function that calls the tool with a name. Raise
        `BadInput` if a tool is missing, is offered twice, or has changed."""
        there = {offer.name: offer for offer in offers}
        if not self._allow:
            raise BadInput(f"name the tools of {self._server} that may be used, allow=[...]; it offers {_names(there)}")
        for name in self._allow:
            if name not in there:
                raise BadInput(
                    f"{self._server} has no tool {shown(name)}; it offers {_names(there)}{meant(name, there)}"
                )
            if sum(offer.name == name for offer in offers) > 1:
                raise BadInput(f"{self._server} has several tools called {shown(name)}: remit cannot tell them apart")
        tools = [_tool(there[name], call(name)) for name in self._allow]
        for tool in tools:
            self._compare(tool)
        self._first = self._first or {tool.name: tool for tool in tools}
        return tools

    def _compare(self, tool: Tool) -> None:
        now, pin, first = pin_of(tool), self._pins.get(tool.name), self._first.get(tool.name)
        if pin is not None and pin != now:
            self._refuse(tool, f"is not the one that was pinned: its description or its schema has changed since {pin}")
        if first is not None and pin_of(first) != now:
            parts = [
                *(["description"] if first.sentence != tool.sentence else []),
                *(["schema"] if first.schema != tool.schema else []),
            ]
            self._refuse(tool, f"has changed since it was first used here: its {' and its '.join(parts)}")

    def _refuse(self, tool: Tool, what: str) -> None:
        raise BadInput(
            f"the tool '{tool.name}' of {self._server} {what}. A changed description can be an attack: read it, and if "
            f"it is right, pin it as {pin_of(tool)} and start again. It now says {shown(tool.sentence, _SHOWN)}"
        )


def _tool(offer: Offer, call: ToolFunction) -> Tool:
    repeat: Repeat | None = "again" if offer.harmless else None
    return Tool(offer.name, offer.sentence, offer.schema, call, untrusted=True, described=UNTRUSTED, repeat=repeat)


def _names(there: Mapping[str, Offer]) -> str:
    """Return the names of offered tools, which are untrusted text."""
    some = [shown(name, 80) for name in sorted(there)[:_LISTED]]
    return (", ".join(some) + (f" and {len(there) - _LISTED:,} more" if len(there) > _LISTED else "")) or "none"

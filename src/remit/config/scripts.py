"""Scripts: the answers of a scripted model, from a small file, so that a team can be tried without a key.

A scripted model answers from its lines, in their order. Everything around it is real: tools are called, other agents
are asked, and the run is recorded.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from remit.core.prices import Usage
from remit.core.values import encode

SCRIPT: Final = "script:"
_HOLE: Final = re.compile(r"\{(\w+)\}")


class ScriptLine(NamedTuple):
    """One line: when it applies, and what it says or calls."""

    when: str = ""
    after: str = ""
    say: str = ""
    call: str = ""
    arguments: Mapping[str, Any] = {}

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> "ScriptLine":
        """Return the line of a table that was checked."""
        words = {name: str(table.get(name, "")) for name in ("when", "after", "say", "call")}
        return cls(**words, arguments=table.get("with", {}))

    def fits(self, task: str, after: str) -> bool:
        """Whether the line applies to this moment of this task."""
        return self.after == after and self.when.casefold() in task.casefold()


class ToldSoFar(NamedTuple):
    """The state of a conversation: the last result of each tool, the tool that has just returned, and how often it
    has."""

    results: Mapping[str, object] = {}
    after: str = ""
    times: int = 1


def chosen(lines: Sequence[ScriptLine], task: str, so_far: ToldSoFar) -> ScriptLine | None:
    """Return the first line that applies, with its placeholders filled with the task and results, or None. When a tool
    returns for the second time, the second line that applies is used, and so on; the last one serves all that follow.
    """
    fitting = [line for line in lines if line.fits(task, so_far.after)]
    if not fitting:
        return None
    line = fitting[min(so_far.times, len(fitting)) - 1]
    known = {name: _text(value) for name, value in so_far.results.items()} | {"task": task}
    if so_far.after:
        known["result"] = known[so_far.after]
    return line._replace(say=_filled(line.say, known), arguments=_filled(line.arguments, known))


class FreeScripts:
    """The price list of a team that uses scripts only: everything is free."""

    def cost(self, model: str, usage: Usage) -> int | None:
        return 0 if model.startswith(SCRIPT) else None

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        return 0 if model.startswith(SCRIPT) else None


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _HOLE.sub(lambda hole: known.get(hole[1], hole[0]), value)
    if isinstance(value, dict):
        return {name: _filled(one, known) for name, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_filled(one, known) for one in cast("list[Any]", value)]
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode(value)

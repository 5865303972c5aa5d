"""Scripts: what a scripted model says, from a small file, so that a team can be tried without a key.

It is no model and pretends to be none: it answers from its lines, in the order in which they stand. Everything around
it is real: the tools are called, other agents are asked, and the run is recorded.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from remit.core.prices import Usage
from remit.core.values import encode

SCRIPT: Final = "script:"
_HOLE: Final = re.compile(r"\{(\w+)\}")


class ScriptLine(NamedTuple):
    """One line: when it is for, and what is said or called."""

    when: str = ""
    after: str = ""
    say: str = ""
    call: str = ""
    arguments: Mapping[str, Any] = {}

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> "ScriptLine":
        """Make a line of a table that was checked."""
        words = {name: str(table.get(name, "")) for name in ("when", "after", "say", "call")}
        return cls(**words, arguments=table.get("with", {}))

    def fits(self, task: str, after: str) -> bool:
        """Tell whether it is for this moment of this task."""
        return self.after == after and self.when.casefold() in task.casefold()


class ToldSoFar(NamedTuple):
    """What a model was told so far: what each tool answered last, the tool that has just answered, and how often."""

    results: Mapping[str, object] = {}
    after: str = ""
    times: int = 1


def chosen(lines: Sequence[ScriptLine], task: str, so_far: ToldSoFar) -> ScriptLine | None:
    """Give the first line that fits, with what was asked and found in the place of its holes. When a tool answers a
    second time it is the second line that fits, and so on; the last one is for all that follow."""
    fitting = [line for line in lines if line.fits(task, so_far.after)]
    if not fitting:
        return None
    line = fitting[min(so_far.times, len(fitting)) - 1]
    known = {name: _text(value) for name, value in so_far.results.items()} | {"task": task}
    if so_far.after:
        known["result"] = known[so_far.after]
    return line._replace(say=_filled(line.say, known), arguments=_filled(line.arguments, known))


class FreeScripts:
    """Prices of a team that asks nobody else than scripts: nothing."""

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

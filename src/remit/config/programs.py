"""Programs as tools: started from an argument list, never through a shell, with one text as input."""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from remit.adapters.process import LIMIT, last_words, printed, run_process
from remit.core.values import NAME_LIMIT, shown
from remit.errors import BadInput
from remit.ports.turn import current_turn


def program_tool(name: str, table: dict[str, Any], folder: Path) -> Callable[..., Awaitable[str]]:
    """Return a tool that runs a program. Its output is untrusted."""
    program, *rest = cast("list[str]", table["program"])
    found = shutil.which(program)  # looked up once: a later change of PATH must not replace the program
    if found is None:
        raise BadInput(f"there is no program {shown(program)} here that can be run; install it or give its full path")
    command = [str(Path(found).absolute()), *rest]
    as_argument = table.get("input", "stdin") == "argument"

    async def tool(text: str = "") -> str:
        given = [*command, text] if as_argument else command
        done = await run_process(given, text="" if as_argument else text, cwd=folder)
        said = printed(done, LIMIT)
        if done.code:
            said = last_words(done.err) or "it said nothing"
        turn = current_turn()
        if turn is not None:
            turn.mark_untrusted(f"output of {name}"[:NAME_LIMIT], said)
        if done.code:
            raise RuntimeError(f"exit code {done.code}: {said}")
        return said

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = table.get("about") or f"Run {program} with a text and give back what it prints."
    return tool

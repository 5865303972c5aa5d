"""`remit flow`: one run as a picture."""

from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import HERE, Where, out, write_beside
from remit.cli.show import root_of
from remit.cli.terminal import colour
from remit.engine.system import SystemClock
from remit.report import flow as flows
from remit.report.looks import mark

_WRONG: Final = ("failed", "dead", "refused")


def flow(
    run: str = "last",
    *,
    place: Where = HERE,
    format: Literal["text", "mermaid", "svg"] = "text",
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
) -> None:
    """Draw one run: as text, Mermaid or SVG.

    Parameters
    ----------
    run
        Id of a run or of one of its tasks, a unique prefix or suffix of it, or `last`.
    format
        Text for a terminal, Mermaid for Markdown, SVG for a browser.
    output
        Write the diagram to this file.
    """
    root = root_of(run, place)
    now = SystemClock().now()
    draw = {"text": flows.text, "mermaid": flows.mermaid, "svg": flows.svg}[format]
    picture = draw(root, now)
    if output is None:
        out().print(coloured(picture) if format == "text" else picture, markup=False, soft_wrap=True)
    else:
        write_beside(output, picture)
        out().print(Text(f"written to {output}"))


def coloured(picture: str) -> Text:
    """Return the picture with failed lines in colour, from their mark on."""
    text = Text(picture)
    for state in _WRONG:
        text.highlight_regex(rf"(?m)(?<=[─╌┄] ){mark(state)} .*$|^{mark(state)} .*$", colour(state))
    return text

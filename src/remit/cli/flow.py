"""`remit flow`: one run as a picture."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.cli.completing import TaskId
from remit.cli.options import HERE, Where
from remit.cli.show import Form, draw


def flow(
    run: TaskId = "last",
    *,
    place: Where = HERE,
    format: Form = "text",
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
) -> None:
    """Draw a diagram of one run: as text, Mermaid or SVG.

    Parameters
    ----------
    run
        Id of a run or of one of its tasks, a unique prefix or suffix of it, or `last`.
    format
        Text for a terminal, Mermaid for Markdown, SVG for a browser.
    output
        Write the diagram to this file.
    """
    draw(run, place, format, output)

"""A tool with which a model says how far it is: `tools=[report_progress]`.

It has no rights of its own. A report is shown where `turn.progress` is shown. It is no event. Loop detection takes a
report with a new text neither for news nor for a repetition.
"""

from typing import Any, Final, cast

from remit.core.lifecycle import progress_line
from remit.errors import BadInput
from remit.ports.turn import current_turn

_EVERY: Final = 1.0  # seconds between two reports that are shown


async def report_progress(text: str, fraction: float | None = None) -> str:
    """Tell the person who waits how far you are, in one short line such as "3 of 10 files read". fraction is the part
    that is done, from 0 to 1, if you know it. Report only when something has changed, and go on with your task."""
    turn = current_turn()
    if turn is None:
        raise BadInput("report_progress is a tool of an agent: it works during its turn")
    said = progress_line(text)
    turn.progress(said, fraction, every=_EVERY)
    return said


cast("Any", report_progress).repeat = "again"  # a report that was made before a crash may be made again

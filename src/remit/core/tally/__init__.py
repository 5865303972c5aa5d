"""Figures of the journal that can be added up: of an hour, of a day, of any stretch, in any order of adding.

They are derived. The journal says everything, and whatever is kept of them can be counted anew from it.
"""

from remit.core.tally.counting import Counting, Into, Recall, Root, UnderWay, from_nowhere, under_way_from
from remit.core.tally.figures import BreakerStats, Figures, figures_from
from remit.core.tally.times import Times
from remit.core.tally.window import DAY_WIDE, HOUR_WIDE, WIDTHS, Period, Window, start_of

__all__ = [
    "DAY_WIDE",
    "HOUR_WIDE",
    "WIDTHS",
    "BreakerStats",
    "Counting",
    "Figures",
    "Into",
    "Period",
    "Recall",
    "Root",
    "Times",
    "UnderWay",
    "Window",
    "figures_from",
    "from_nowhere",
    "start_of",
    "under_way_from",
]

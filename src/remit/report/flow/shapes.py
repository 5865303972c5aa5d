"""The small shapes a drawn run is made of. Every text on its way into the picture passes through here."""

from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from html import escape
from itertools import accumulate
from typing import Final, Literal

from remit.report.printable import cleaned, columns_of
from remit.report.words import known

_NARROW: Final = frozenset("fijlrtI.,:;!|()[]{}'`/\\ -·")
_WIDER: Final = frozenset("<>=+~#&$→")
_BROAD: Final = frozenset("mwMW@%—…")
_TOOLTIP: Final = 400

_SIGNS: Final = {
    "completed": "M-3 .2l2 2.2 4-4.6",
    "failed": "M-2.4-2.4l4.8 4.8M2.4-2.4l-4.8 4.8",
    "dead": "M0-3.8v7.6M-2.4-1.4h4.8",
    "cancelled": "M-2.8 0h5.6",
    "refused": "M-2.6 2.6l5.2-5.2",
    "handed": "M-3.2 0h6M.4-2.6L3 0L.4 2.6",
    "skipped": "M-3-2.6L-.4 0L-3 2.6M.6-2.6L3.2 0L.6 2.6",
    "unknown": "M0-3v3.4M0 3v.1",
}


_HOLLOW: Final = {
    "pending": "",  # a dotted ring
    "waiting": "",
    "cancelling": '<path class="edge cancelling" d="M-2.6 0h5.2"/>',
}


def words(
    text: str, at: tuple[int, int], look: str, width: int, anchor: Literal["start", "end", "middle"] = "start"
) -> str:
    """A line of text, cut to the width it has."""
    x, y = at
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{look}" x="{x}" y="{y}"{side}>{xml(fitted(text, width, look))}</text>'


def tooltip(text: str) -> str:
    return f"<title>{xml(cleaned(text, _TOOLTIP))}</title>"


def xml(text: str) -> str:
    return escape(text)


def fitted(text: str, width: int, look: str = "") -> str:
    """The text that has room in this many pixels, as far as that can be told without the font at hand."""
    line = cleaned(text, max(4, width // 3))
    if line_width(line, look) <= width:
        return line
    ends = list(accumulate(_advance(char, look) for char in line))
    kept = bisect_right(ends, width - _advance("…", look))
    return f"{line[:kept].rstrip('… ')}…"


def line_width(text: str, look: str = "") -> int:
    return round(sum(_advance(char, look) for char in text))


@lru_cache(maxsize=4096)
def _advance(char: str, look: str) -> float:
    """Pixels from one character to the next; system fonts differ by a few per cent."""
    if "mono" in look:
        return 6.65 * columns_of(char)
    size = 18.0 if "title" in look else 15.6 if "name" in look else 12.8
    if columns_of(char) != 1:
        return size * 0.55 * columns_of(char)
    if char in _NARROW:
        return size * 0.34
    return size * (0.9 if char in _BROAD else 0.72 if char.isupper() or char in _WIDER else 0.56)


def status_dot(state: str, x: int, y: int) -> str:
    """The status as colour and as a sign, because not everybody sees the colour; hollow while it is alive."""
    if state == "running":
        return moved(
            x,
            y,
            '<circle class="ring running" r="6" fill="none"/><circle class="fill running pulse" r="2.8"/>',
        )
    if state in _HOLLOW:
        return moved(x, y, f'<circle class="ring {state}" r="6" fill="none"/>{_HOLLOW[state]}')
    drawn = known(state)
    return moved(x, y, f'<circle class="fill {drawn}" r="7"/><path class="sign" d="{_SIGNS[drawn]}"/>')


def share_bar(found: list[str], at: tuple[int, int], width: int) -> str:
    """How many there are of each status, as parts of one bar; the rarest is still wide enough to be seen."""
    counted = Counter(known(state) for state in found)
    left, top = at
    parts: list[str] = []
    for state, number in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        long = max(5, (width - 7 * (len(counted) - 1)) * number // len(found))
        parts.append(f'<rect class="fill {state}" x="{left}" y="{top}" width="{long}" height="6" rx="3"/>')
        left += long + 2
    return "".join(parts)


def arrow_head(x: int, y: int, look: str, *, down: bool = False) -> str:
    """A solid head whose tip is at this point: something has gone over there."""
    shape = "M0 0l-5.5-9.5q5.5 2.6 11 0z" if down else "M0 0l-9.5-5.5q2.6 5.5 0 11z"
    return moved(x, y, f'<path class="fill {look}" d="{shape}"/>')


def moved(x: int, y: int, inside: str) -> str:
    return f'<g transform="translate({x} {y})">{inside}</g>'

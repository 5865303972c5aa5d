"""The small shapes of a drawn run. Every text in the picture passes through here, to be escaped."""

from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from html import escape
from itertools import accumulate
from typing import Final, Literal

from remit.report.looks import known, look
from remit.report.printable import cleaned, columns_of

_NARROW: Final = frozenset("fijlrtI.,:;!|()[]{}'`/\\ -·")
_WIDER: Final = frozenset("<>=+~#&$→")
_BROAD: Final = frozenset("mwMW@%—…")
_TOOLTIP: Final = 400


def words(
    text: str, at: tuple[int, int], look: str, width: int, anchor: Literal["start", "end", "middle"] = "start"
) -> str:
    """Draw a line of text, cut to its width."""
    x, y = at
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{look}" x="{x}" y="{y}"{side}>{xml(fitted(text, width, look))}</text>'


def tooltip(text: str) -> str:
    return f"<title>{xml(cleaned(text, _TOOLTIP))}</title>"


def xml(text: str) -> str:
    return escape(text)


def fitted(text: str, width: int, look: str = "") -> str:
    """Return the text cut to this many pixels, as far as possible without the font."""
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
    """Return the width of a character in pixels; system fonts differ by a few per cent."""
    if "mono" in look:
        return 6.65 * columns_of(char)
    size = 18.0 if "title" in look else 15.6 if "name" in look else 12.8
    if columns_of(char) != 1:
        return size * 0.55 * columns_of(char)
    if char in _NARROW:
        return size * 0.34
    return size * (0.9 if char in _BROAD else 0.72 if char.isupper() or char in _WIDER else 0.56)


def state_dot(state: str, x: int, y: int) -> str:
    """Draw the state as a colour and as a sign, for readers who cannot see the colour; hollow while the task runs."""
    drawn, (_, _, _, sign, dot, _) = known(state), look(state)
    if dot == "full":
        return moved(x, y, f'<circle class="fill {drawn}" r="7"/><path class="sign" d="{sign}"/>')
    inside = f'<path class="edge {drawn}" d="{sign}"/>' if sign else ""
    if dot == "pulse":
        inside += f'<circle class="fill {drawn} pulse" r="2.8"/>'
    return moved(x, y, f'<circle class="ring {drawn}" r="6" fill="none"/>{inside}')


def share_bar(states: list[str], at: tuple[int, int], width: int) -> str:
    """Draw the number of each state as parts of one bar; the smallest part is still wide enough to be seen."""
    counted = Counter(known(state) for state in states)
    left, top = at
    parts: list[str] = []
    for state, number in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        long = max(5, (width - 7 * (len(counted) - 1)) * number // len(states))
        parts.append(f'<rect class="fill {state}" x="{left}" y="{top}" width="{long}" height="6" rx="3"/>')
        left += long + 2
    return "".join(parts)


def arrow_head(x: int, y: int, look: str, *, down: bool = False) -> str:
    """Draw a solid arrow head with its tip at this point."""
    shape = "M0 0l-5.5-9.5q5.5 2.6 11 0z" if down else "M0 0l-9.5-5.5q2.6 5.5 0 11z"
    return moved(x, y, f'<path class="fill {look}" d="{shape}"/>')


def moved(x: int, y: int, inside: str) -> str:
    return f'<g transform="translate({x} {y})">{inside}</g>'

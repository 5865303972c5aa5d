"""Colours, fonts and small shapes of the drawn run. Every text has a contrast of at least 4.5 to its background, and
passes through here, to be escaped."""

from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from html import escape
from itertools import accumulate
from typing import Final, Literal, NamedTuple, TypeAlias

from remit.core.values import shown
from remit.errors import BadInput
from remit.report.looks import LOOKS, Line, Role, known_state, look
from remit.report.printable import columns_of, picture_line

Theme: TypeAlias = Literal["light", "dark", "auto"]


class Palette(NamedTuple):
    """The colours of one theme: backgrounds, lines, text, and one for each role that a state can have."""

    page: str
    dots: str
    card: str
    refused_card: str
    line: str
    ink: str
    soft: str
    faint: str
    aside: str
    roles: dict[Role, str]


LIGHT: Final = Palette(
    page="#f6f7f9",
    dots="#dde1e7",
    card="#ffffff",
    refused_card="#fff7f7",
    line="#d3d8e0",
    ink="#12161d",
    soft="#434c5a",
    faint="#626b7a",
    aside="#8a5700",
    roles={
        "good": "#15804a",
        "busy": "#2b5fd9",
        "bad": "#c32b2b",
        "grave": "#a8125e",
        "refused": "#c32b2b",
        "moved": "#6d3fc4",
        "queued": "#566482",
        "stopped": "#6a7280",
        "idle": "#6a7280",
    },
)
DARK: Final = Palette(
    page="#0f1217",
    dots="#20262f",
    card="#181d24",
    refused_card="#21191c",
    line="#323b47",
    ink="#eef1f5",
    soft="#b6bfcb",
    faint="#8f99a8",
    aside="#e2aa48",
    roles={
        "good": "#41bd83",
        "busy": "#7ea6ff",
        "bad": "#ff7d75",
        "grave": "#ff82bd",
        "refused": "#ff7d75",
        "moved": "#b79bff",
        "queued": "#93a4c4",
        "stopped": "#98a2b0",
        "idle": "#98a2b0",
    },
)

_SHAPE: Final = """\
.remit-flow{font-family:system-ui,-apple-system,"Segoe UI",Roboto,Inter,Helvetica,Arial,sans-serif}
.remit-flow text{font-size:12.5px}
.remit-flow .title{font-size:17px;font-weight:650}
.remit-flow .name{font-size:13.5px;font-weight:650}
.remit-flow .mono{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:11px}
.remit-flow .card,.remit-flow .pill,.remit-flow .grid{stroke-width:1}
.remit-flow .edge{fill:none;stroke-width:2}
.remit-flow .handoff.edge{stroke-width:2.5}
.remit-flow .need.edge{stroke-width:1.5}
.remit-flow .stack.edge{stroke-dasharray:1 5;stroke-linecap:round}
.remit-flow .refused.edge{stroke-dasharray:5 4}
.remit-flow .submitted.edge,.remit-flow .spawned.edge{stroke-dasharray:7 5}
.remit-flow .queue{fill:none;stroke-width:1.5;stroke-dasharray:1 3;stroke-linecap:round}
.remit-flow .sign{fill:none;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.remit-flow .shade{fill:#000;opacity:.06}
.remit-flow .grid{stroke-dasharray:2 4}
.remit-flow .ring{stroke-width:2}
.remit-flow .bar{opacity:.85}
@keyframes remit-pulse{50%{opacity:.35}}
@media (prefers-reduced-motion:no-preference){.remit-flow .pulse{animation:remit-pulse 1.6s infinite}}
"""


_LINES: Final[dict[Line, str]] = {
    "solid": "",
    "dashed": ".remit-flow .{0}.card{{stroke-dasharray:3 3}}\n",
    "dotted": ".remit-flow .{0}.card{{stroke-dasharray:1.5 3.5}}\n.remit-flow .{0}.ring{{stroke-dasharray:2 2.7}}\n",
}


def style(theme: Theme) -> str:
    """Return the style sheet of the picture: one theme, or both with the reader's choice. Raise `BadInput` for another
    theme."""
    if theme == "auto":
        return f"{_shape()}{_colours(LIGHT)}@media (prefers-color-scheme:dark){{\n{_colours(DARK)}}}\n"
    palette = {"light": LIGHT, "dark": DARK}.get(theme)
    if palette is None:
        raise BadInput(f"a theme is light, dark or auto, not {shown(theme)}")
    return _shape() + _colours(palette)


def _shape() -> str:
    """Return sizes and lines, which are the same in every theme."""
    lines = "".join(_LINES[state_look.line].format(state) for state, state_look in LOOKS.items())
    grave = ",".join(f".remit-flow .{state}.rim" for state, state_look in LOOKS.items() if state_look.role == "grave")
    return f"{_SHAPE}{lines}{grave}{{stroke-width:2.5}}\n"


def _colours(palette: Palette) -> str:
    """Return plain colours, not variables: viewers outside browsers do not support variables."""
    grounds = {
        ".page": f"fill:{palette.page}",
        ".dot": f"fill:{palette.dots}",
        ".card,.pill": f"fill:{palette.card};stroke:{palette.line}",
        ".grid": f"stroke:{palette.line}",
        ".card.refused": f"fill:{palette.refused_card}",
        ".ink,.name,.title": f"fill:{palette.ink}",
        ".soft": f"fill:{palette.soft}",
        ".faint": f"fill:{palette.faint}",
        ".aside": f"fill:{palette.aside}",
        ".sign": f"stroke:{palette.card}",
        ".queue": f"stroke:{palette.faint}",
        ".tick": f"fill:{palette.aside};stroke:{palette.card}",
    }
    rules = [f"{_scoped(where)}{{{what}}}" for where, what in grounds.items()]
    for state, state_look in LOOKS.items():
        colour = palette.roles[state_look.role]
        rules.append(f"{_scoped(f'.fill.{state}')}{{fill:{colour}}}")
        rules.append(f"{_scoped(f'.edge.{state},.ring.{state},.rim.{state}')}{{stroke:{colour}}}")
    return "\n".join(rules) + "\n"


def _scoped(where: str) -> str:
    """Return a rule that is limited to the picture, because a page may contain other things."""
    return ",".join(f".remit-flow {selector}" for selector in where.split(","))


# -- shapes --------------------------------------------------------------------------------------------------


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
    return f'<text class="{look}" x="{x}" y="{y}"{side}>{xml(fitted_text(text, width, look))}</text>'


def tooltip(text: str) -> str:
    return f"<title>{xml(picture_line(text, _TOOLTIP))}</title>"


def xml(text: str) -> str:
    return escape(text)


def fitted_text(text: str, width: int, look: str = "") -> str:
    """Return the text cut to this many pixels, as far as possible without the font."""
    line = picture_line(text, max(4, width // 3))
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
    """Draw the state as a colour and as a sign, for readers who cannot see the colour. It is hollow while the task is
    open."""
    drawn, (_, _, _, sign, dot, _) = known_state(state), look(state)
    if dot == "full":
        return translated_group(x, y, f'<circle class="fill {drawn}" r="7"/><path class="sign" d="{sign}"/>')
    inside = f'<path class="edge {drawn}" d="{sign}"/>' if sign else ""
    if dot == "pulse":
        inside += f'<circle class="fill {drawn} pulse" r="2.8"/>'
    return translated_group(x, y, f'<circle class="ring {drawn}" r="6" fill="none"/>{inside}')


def share_bar(states: list[str], at: tuple[int, int], width: int) -> str:
    """Draw the number of each state as parts of one bar; the smallest part is still wide enough to be seen."""
    counted = Counter(known_state(state) for state in states)
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
    return translated_group(x, y, f'<path class="fill {look}" d="{shape}"/>')


def translated_group(x: int, y: int, inside: str) -> str:
    return f'<g transform="translate({x} {y})">{inside}</g>'

"""Colours and fonts of the drawn run. Every text has a contrast of at least 4.5 to its background."""

from typing import Final, Literal, NamedTuple, TypeAlias

from remit.core.values import shown
from remit.errors import BadInput
from remit.report.looks import LOOKS, Line, Role

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
    """Return the style sheet of the picture: one theme, or both with the reader's choice."""
    if theme == "auto":
        return f"{_shape()}{_colours(LIGHT)}@media (prefers-color-scheme:dark){{\n{_colours(DARK)}}}\n"
    palette = {"light": LIGHT, "dark": DARK}.get(theme)
    if palette is None:
        raise BadInput(f"a theme is light, dark or auto, not {shown(theme)}")
    return _shape() + _colours(palette)


def _shape() -> str:
    """Return sizes and lines, which are the same in every theme."""
    lines = "".join(_LINES[look.line].format(state) for state, look in LOOKS.items())
    grave = ",".join(f".remit-flow .{state}.rim" for state, look in LOOKS.items() if look.role == "grave")
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
    for state, look in LOOKS.items():
        colour = palette.roles[look.role]
        rules.append(f"{_scoped(f'.fill.{state}')}{{fill:{colour}}}")
        rules.append(f"{_scoped(f'.edge.{state},.ring.{state},.rim.{state}')}{{stroke:{colour}}}")
    return "\n".join(rules) + "\n"


def _scoped(where: str) -> str:
    """Return a rule that is limited to the picture, because a page may contain other things."""
    return ",".join(f".remit-flow {selector}" for selector in where.split(","))

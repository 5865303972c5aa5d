"""Colours and type of the drawn run. Every pair of text and ground has a contrast of at least 4.5."""

from typing import Final, Literal, NamedTuple, TypeAlias

from remit.core.text import shown
from remit.errors import BadInput

Theme: TypeAlias = Literal["light", "dark", "auto"]


class Palette(NamedTuple):
    page: str
    dots: str
    card: str
    line: str
    ink: str
    soft: str
    faint: str
    completed: str
    running: str
    failed: str
    cancelled: str
    aside: str
    refused_card: str
    handed: str
    dead: str
    pending: str


LIGHT: Final = Palette(
    page="#f6f7f9",
    dots="#dde1e7",
    card="#ffffff",
    line="#d3d8e0",
    ink="#12161d",
    soft="#434c5a",
    faint="#626b7a",
    completed="#15804a",
    running="#2b5fd9",
    failed="#c32b2b",
    cancelled="#6a7280",
    aside="#8a5700",
    refused_card="#fff7f7",
    handed="#6d3fc4",
    dead="#a8125e",
    pending="#566482",
)
DARK: Final = Palette(
    page="#0f1217",
    dots="#20262f",
    card="#181d24",
    line="#323b47",
    ink="#eef1f5",
    soft="#b6bfcb",
    faint="#8f99a8",
    completed="#41bd83",
    running="#7ea6ff",
    failed="#ff7d75",
    cancelled="#98a2b0",
    aside="#e2aa48",
    refused_card="#21191c",
    handed="#b79bff",
    dead="#ff82bd",
    pending="#93a4c4",
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
.remit-flow .refused.edge,.remit-flow .refused.card{stroke-dasharray:5 4}
.remit-flow .submitted.edge,.remit-flow .spawned.edge{stroke-dasharray:7 5}
.remit-flow .skipped.card,.remit-flow .waiting.card,.remit-flow .cancelling.card{stroke-dasharray:3 3}
.remit-flow .pending.card{stroke-dasharray:1.5 3.5}
.remit-flow .pending.ring{stroke-dasharray:2 2.7}
.remit-flow .queue{fill:none;stroke-width:1.5;stroke-dasharray:1 3;stroke-linecap:round}
.remit-flow .dead.rim{stroke-width:2.5}
.remit-flow .sign{fill:none;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.remit-flow .shade{fill:#000;opacity:.06}
.remit-flow .grid{stroke-dasharray:2 4}
.remit-flow .ring{stroke-width:2}
.remit-flow .bar{opacity:.85}
@keyframes remit-pulse{50%{opacity:.35}}
@media (prefers-reduced-motion:no-preference){.remit-flow .pulse{animation:remit-pulse 1.6s infinite}}
"""


def style(theme: Theme) -> str:
    """The style sheet of the picture: one theme, or both and the reader's choice."""
    if theme == "auto":
        return f"{_SHAPE}{_colours(LIGHT)}@media (prefers-color-scheme:dark){{\n{_colours(DARK)}}}\n"
    found = {"light": LIGHT, "dark": DARK}.get(theme)
    if found is None:
        raise BadInput(f"a theme is light, dark or auto, not {shown(theme)}")
    return _SHAPE + _colours(found)


def _colours(palette: Palette) -> str:
    """Plain colours, not variables: viewers outside browsers know only those."""
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
    statuses = {
        "completed": palette.completed,
        "running": palette.running,
        "failed": palette.failed,
        "dead": palette.dead,
        "refused": palette.failed,
        "cancelled": palette.cancelled,
        "unknown": palette.cancelled,
        "folded": palette.cancelled,
        "handed": palette.handed,
        "pending": palette.pending,
        "waiting": palette.cancelled,
        "cancelling": palette.cancelled,
        "skipped": palette.cancelled,
    }
    rules = [f"{_scoped(where)}{{{what}}}" for where, what in grounds.items()]
    for state, colour in statuses.items():
        rules.append(f"{_scoped(f'.fill.{state}')}{{fill:{colour}}}")
        rules.append(f"{_scoped(f'.edge.{state},.ring.{state},.rim.{state}')}{{stroke:{colour}}}")
    return "\n".join(rules) + "\n"


def _scoped(where: str) -> str:
    """Only inside the picture: a page may hold it among other things."""
    return ",".join(f".remit-flow {one}" for one in where.split(","))

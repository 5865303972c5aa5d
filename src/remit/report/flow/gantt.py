"""The timeline of a run: bars in tree order, below its picture."""

from typing import Final, NamedTuple

from remit.core.times import DAY, SECOND
from remit.report.figures import duration
from remit.report.flow.shapes import tooltip, words
from remit.report.flow.tiles import Stack, Tile
from remit.report.looks import FOLDED, known
from remit.report.stays import Stay
from remit.report.tree import Node, Refusal
from remit.report.words import ASKED

_ROWS: Final = 40
_ROW: Final = 20
_PAD: Final = 16
_HEAD: Final = 42
_NAMES: Final = 176
_TAIL: Final = 84  # room to the right of the longest bar, for its duration
_WIDEST: Final = 1_400
_STEPS: Final = 5

# 1, 2, 5, 10, ... up to ten seconds, then round clock times, then days.
_ROUND: Final = (
    *(digit * 10**power for power in range(7) for digit in (1, 2, 5)),
    *(number * SECOND for number in (10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200)),
    *(days * DAY for days in (1, 2, 7, 14, 30, 90, 365)),
)


class Bar(NamedTuple):
    """One row: the agent, the depth in the tree, start and end, and the times at which a hop was refused or an attempt
    failed. `asked` is when the task was queued, if that was earlier; `begun` says whether an agent has started it."""

    name: str
    depth: int
    start: int
    end: int
    state: str
    refused: tuple[int, ...] = ()
    retries: tuple[int, ...] = ()
    asked: int | None = None
    begun: bool = True

    @property
    def first(self) -> int:
        return self.start if self.asked is None else min(self.asked, self.start)


class Scale(NamedTuple):
    """The conversion of microseconds to pixels."""

    zero: int
    span: int
    left: int
    width: int

    def x(self, at: int) -> int:
        inside = min(max(at - self.zero, 0), self.span)
        return self.left + inside * self.width // self.span


def gantt(tiles: list[Tile], now: int, at: tuple[int, int], room: int) -> tuple[str, int]:
    """Return the drawn timeline and its height."""
    bars = [bar for tile in tiles if (bar := _bar(tile, now)) is not None]
    left, top = at
    width = min(room, _WIDEST)
    scale = _scale(bars, left + _NAMES, width - _NAMES - _TAIL)
    rows = [_row(bar, left + _PAD, top + _HEAD + at * _ROW, scale) for at, bar in enumerate(bars[:_ROWS])]
    bottom = top + _HEAD + len(rows) * _ROW
    axis = _axis(scale, top + 22, bottom)
    if len(bars) > len(rows):
        more = f"+{len(bars) - len(rows):,} more rows"
        rows.append(words(more, (left + _PAD, bottom + 14), "mono faint", _NAMES))
        bottom += _ROW
    height = bottom - top + _PAD
    panel = f'<rect class="card" x="{left}" y="{top}" width="{width}" height="{height}" rx="10"/>'
    return "\n".join([panel, axis, *rows]), height


def _bar(tile: Tile, now: int) -> Bar | None:
    match tile.shows:
        case Stay() as stay:
            return _held(stay, tile.depth, now)
        case Stack() as stack:
            return _folded(stack, tile.depth, now)
        case _:
            return None  # a refusal takes no time; it is a mark on the asker's bar


def _held(stay: Stay, depth: int, now: int) -> Bar:
    node = stay.node
    refused = tuple(hop.at for hop in stay.hops() if isinstance(hop, Refusal))[:_ROWS]
    start, end = stay.start, _end(stay, now)
    if not node.begun:
        start = end = node.asked_at + max(0, node.queued(now))
    bar = Bar(stay.holder, depth, start, end, known(stay.state), refused)
    if stay.came is not None:
        return bar._replace(retries=_retries(stay))
    asked = node.asked_at if node.asked_how in ASKED else None
    return bar._replace(retries=_retries(stay), asked=asked, begun=node.begun)


def _retries(stay: Stay) -> tuple[int, ...]:
    first, last = stay.turns
    return tuple(retry.at for retry in stay.node.retries if first <= retry.turn <= last)[-_ROWS:]


def _folded(stack: Stack, depth: int, now: int) -> Bar | None:
    took = [hop for hop in stack.hidden if not isinstance(hop, Refusal)]
    if not took:
        return None
    start = min(map(_start, took))
    return Bar(f"+{len(took):,} more", depth, start, max(_end(hop, now) for hop in took), FOLDED)


def _start(hop: Node | Stay) -> int:
    return hop.start if isinstance(hop, Stay) else hop.started_at


def _end(hop: Node | Stay, now: int) -> int:
    return _start(hop) + max(0, hop.elapsed(now))


def _scale(bars: list[Bar], left: int, width: int) -> Scale:
    zero = min(bar.first for bar in bars)
    return Scale(zero, max(1, max(bar.end for bar in bars) - zero), left, width)


def _row(bar: Bar, left: int, top: int, scale: Scale) -> str:
    start = scale.x(bar.start)
    end = max(start + 3, scale.x(bar.end))
    indent = min(bar.depth, 8) * 10
    parts = [
        f"<g>{tooltip(f'{bar.name}: {bar.state}')}",
        words(bar.name, (left + indent, top + 13), "mono soft", _NAMES - indent - 2 * _PAD),
        _block(f"fill bar {bar.state}", (start, top + 4), (end - start, 11)),
        *(_refused(scale.x(at), top) for at in bar.refused),
        *(_again(scale.x(at), top) for at in bar.retries),
        words(_length(bar), (end + 8, top + 13), "mono faint", _TAIL),
        "</g>",
    ]
    if bar.first < bar.start:
        parts.insert(2, f'<path class="queue" d="M{scale.x(bar.first)} {top + 9}H{start}"/>')
    if bar.state == "running":
        parts.insert(-1, _block("fill running pulse", (end - 3, top + 1), (4, 17)))
    return "".join(parts)


def _length(bar: Bar) -> str:
    return duration(bar.end - bar.start) if bar.begun else "not begun"


def _block(look: str, at: tuple[int, int], size: tuple[int, int]) -> str:
    return f'<rect class="{look}" x="{at[0]}" y="{at[1]}" width="{size[0]}" height="{size[1]}" rx="3"/>'


def _refused(x: int, top: int) -> str:
    """Draw a ring, which is visible even on a bar of its own colour."""
    return f'<circle class="pill ring refused" cx="{x}" cy="{top + 9}" r="4"/>'


def _again(x: int, top: int) -> str:
    """Draw a small wedge where an attempt ended and another followed."""
    return f'<path class="tick" d="M{x - 5} {top + 2}h10l-5 8z"/>'


def _axis(scale: Scale, top: int, bottom: int) -> str:
    """Draw round steps of time as lines behind the bars."""
    lines: list[str] = []
    for at in range(0, scale.span + 1, _step(scale.span)):
        x = scale.x(scale.zero + at)
        lines.append(f'<path class="grid" d="M{x} {top + 10}V{bottom}"/>')
        lines.append(words(duration(at).replace(".0 s", " s"), (x, top + 2), "mono faint", 90, "middle"))
    return "".join(lines)


def _step(span: int) -> int:
    """Return the smallest round step of which only a few fit."""
    return next((step for step in _ROUND if span // step <= _STEPS), max(1, span // _STEPS))

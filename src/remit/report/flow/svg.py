"""A run as a picture: cards for tasks from left to right, edges that say what was passed, plans, and a timeline.

It is one self-contained SVG document: no scripts, no external fonts or images.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from remit.core.times import DAY, SECOND
from remit.report.figures import count, duration, money
from remit.report.flow.layout import (
    CARD_HEIGHT,
    CARD_WIDTH,
    COLUMN,
    SIBLINGS,
    Box,
    Cell,
    Edge,
    EdgeKind,
    Grid,
    Picture,
    Stack,
    Tile,
    grid,
    outline,
    place,
)
from remit.report.flow.theme import (
    Theme,
    arrow_head,
    line_width,
    share_bar,
    state_dot,
    style,
    tooltip,
    translated_group,
    words,
    xml,
)
from remit.report.looks import FOLDED, LOOKS, known_state, look, mark
from remit.report.printable import picture_line
from remit.report.summary import steps_sentence, summary, waits_for
from remit.report.tree import Node, PlanStep, Refusal, Stay, result_text
from remit.report.uses import uses_in_short, uses_in_signs
from remit.report.words import (
    ASKED,
    WAITS,
    attempt_text,
    kept_from,
    plan_of,
    progress,
    reason,
    refused_word,
    saw_here,
    states,
    subject_of,
    took,
    tries,
)

# -- plans ---------------------------------------------------------------------------------------------------


_PLANS: Final = 4
_WIDTH: Final = 190
_HEIGHT: Final = 50
_GAP: Final = 40
_COLUMN: Final = _WIDTH + _GAP
_STEP_ROW: Final = _HEIGHT + 12
_PLAN_PAD: Final = 16
_PLAN_HEAD: Final = 46
_BAR: Final = 120
_NAME: Final = 220
_ROOM: Final = _WIDTH - 40


class Panel(NamedTuple):
    """One plan with its steps in columns; `tasks` are the tasks of the steps, by id."""

    title: str
    plan: list[PlanStep]
    grid: Grid
    tasks: Mapping[str, Node]
    now: int

    @property
    def width(self) -> int:
        return 2 * _PLAN_PAD + max(cell.column for cell in self.grid.cells) * _COLUMN + _WIDTH

    @property
    def height(self) -> int:
        return _PLAN_HEAD + max(cell.row for cell in self.grid.cells) * _STEP_ROW + _HEIGHT + _PLAN_PAD

    def drawn(self, width: int) -> str:
        bar = width - _PLAN_PAD - _BAR
        name = min(_NAME, line_width(self.title, "name"))
        parts = [
            f'<rect class="card" width="{width}" height="{self.height}" rx="10"/>',
            words(self.title, (_PLAN_PAD, 27), "name", _NAME),
            words(progress(self.plan), (bar - 12, 27), "faint", bar - name - _PLAN_PAD - 24, "end"),
            share_bar([step.state for step in self.plan], (bar, 20), _BAR),
            *(_need(before, after) for before, after in self.grid.needs),
            *(self._cell(cell) for cell in self.grid.cells),
        ]
        return "\n".join(parts)

    def _cell(self, cell: Cell) -> str:
        x, y = _place(cell)
        rim = " rim" if look(cell.state).rimmed else ""
        back = f'<rect class="card {cell.state}{rim}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>'
        inside = self._step(cell.steps[0]) if len(cell.steps) == 1 else _rest(cell)
        return translated_group(x, y, back + inside)

    def _step(self, step: PlanStep) -> str:
        task = self.tasks.get(step.task)
        took = duration(task.elapsed(self.now)) if task is not None else ""
        who = " · ".join(part for part in (step.agent, took, tries(step) or kept_from(step)) if part)
        bad = step.state == "failed" and step.reason
        why = step.reason.removeprefix(f"'{step.agent}' ")
        second = (why, "fill failed") if bad else (why or who, "faint")
        return (
            tooltip(f"{step.id}: {step.title} ({step.agent}) {step.reason}")
            + state_dot(known_state(step.state), 18, 25)
            + words(step.title, (34, 21), "ink", _ROOM)
            + words(second[0], (34, 38), second[1], _ROOM)
        )


def panels(tiles: list[Tile], now: int) -> list[Panel]:
    """Return the panels for the plans of the visible tasks; if there are very many, the first ones."""
    nodes = [tile.shows.node for tile in tiles if isinstance(tile.shows, Stay) and tile.shows.left is None]
    made: list[Panel] = []
    for node in nodes:
        tasks = {child.id: child for child in node.children if child.step}
        made += [
            Panel(plan_of(plan[0].planner or node.agent), plan, grid(plan), tasks, now)
            for plan in node.plans[:_PLANS]
            if plan
        ]
    return made[:_PLANS]


def _rest(cell: Cell) -> str:
    states = [step.state for step in cell.steps]
    return (
        tooltip(cell.sentence())
        + words(f"+{len(states):,} more steps", (14, 22), "ink", _WIDTH - 28)
        + share_bar(states, (14, 33), _WIDTH - 28)
    )


def _place(cell: Cell) -> tuple[int, int]:
    return _PLAN_PAD + cell.column * _COLUMN, _PLAN_HEAD + cell.row * _STEP_ROW


def _need(before: Cell, after: Cell) -> str:
    """Draw the edge from a dependency to a step, in the colour of the dependency's state."""
    (left, top), (x, y) = _place(before), _place(after)
    left, top, y = left + _WIDTH, top + _HEIGHT // 2, y + _HEIGHT // 2
    bend, half = x - _GAP, x - _GAP // 2 - 3
    path = f"M{left} {top}H{bend}C{half} {top} {half} {y} {x - 6} {y}"
    return f'<path class="edge need {before.state}" d="{path}"/>{arrow_head(x, y, before.state)}'


# -- the timeline --------------------------------------------------------------------------------------------


_ROWS: Final = 40
_BAR_ROW: Final = 20
_TIME_PAD: Final = 16
_TIME_HEAD: Final = 42
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
    rows = [_row(bar, left + _TIME_PAD, top + _TIME_HEAD + at * _BAR_ROW, scale) for at, bar in enumerate(bars[:_ROWS])]
    bottom = top + _TIME_HEAD + len(rows) * _BAR_ROW
    axis = _axis(scale, top + 22, bottom)
    if len(bars) > len(rows):
        more = f"+{len(bars) - len(rows):,} more rows"
        rows.append(words(more, (left + _TIME_PAD, bottom + 14), "mono faint", _NAMES))
        bottom += _BAR_ROW
    height = bottom - top + _TIME_PAD
    panel = f'<rect class="card" x="{left}" y="{top}" width="{width}" height="{height}" rx="10"/>'
    return "\n".join([panel, axis, *rows]), height


def _bar(tile: Tile, now: int) -> Bar | None:
    match tile.shows:
        case Stay() as stay:
            return _bar_of(stay, tile.depth, now)
        case Stack() as stack:
            return _folded(stack, tile.depth, now)
        case _:
            return None  # a refusal takes no time; it is a mark on the asker's bar


def _bar_of(stay: Stay, depth: int, now: int) -> Bar:
    node = stay.node
    refused = tuple(hop.at for hop in stay.hops() if isinstance(hop, Refusal))[:_ROWS]
    start, end = stay.start, _end(stay, now)
    if not node.begun:
        start = end = node.asked_at + max(0, node.queued(now))
    bar = Bar(stay.holder, depth, start, end, known_state(stay.state), refused)
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
        words(bar.name, (left + indent, top + 13), "mono soft", _NAMES - indent - 2 * _TIME_PAD),
        _block(f"fill bar {bar.state}", (start, top + 4), (end - start, 11)),
        *(_refused_mark(scale.x(at), top) for at in bar.refused),
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


def _refused_mark(x: int, top: int) -> str:
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


# -- the picture ---------------------------------------------------------------------------------------------


_MARGIN: Final = 32
_HEADER: Final = 92
_NARROWEST: Final = 720
_PAD: Final = 14
_INSIDE: Final = CARD_WIDTH - 2 * _PAD
_HAND: Final = CARD_WIDTH // 2  # where the arrow of a handoff leaves a card and reaches the next
_APART: Final = 16  # between the strips below the tree
_BEND: Final = 56  # length of an edge's bend


def svg(root: Node, now: int, theme: Theme = "light") -> str:
    """Return the picture as a document; `theme` is light, dark, or auto for the reader's preference."""
    sheet = style(theme)
    picture = place(outline(root), _MARGIN, _HEADER)
    plans = panels([box.tile for box in picture.boxes], now)
    width = max(picture.width + 2 * _MARGIN, _NARROWEST, *(plan.width + 2 * _MARGIN for plan in plans))
    below = _HEADER + picture.height + 28
    strips = _strips(plans, below, width - 2 * _MARGIN)
    below += sum(plan.height + _APART for plan in plans)
    bars, height = gantt([box.tile for box in picture.boxes], now, (_MARGIN, below), width - 2 * _MARGIN)
    parts = [
        _opening(root, now, (width, below + height + _MARGIN), sheet),
        _header(root, now, width),
        *_tree(picture, now),
        *strips,
        bars,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _strips(plans: list[Panel], top: int, width: int) -> list[str]:
    drawn: list[str] = []
    for plan in plans:
        drawn.append(translated_group(_MARGIN, top, plan.drawn(width)))
        top += plan.height + _APART
    return drawn


def _opening(root: Node, now: int, size: tuple[int, int], sheet: str) -> str:
    width, height = size
    title = picture_line(f"{root.first}: {root.task}", 120)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" class="remit-flow" role="img" \
aria-labelledby="remit-title remit-desc" width="{width}" height="{height}" viewBox="0 0 {width} {height}">
<title id="remit-title">{xml(title)}</title>
<desc id="remit-desc">{xml(_summary(root, now))}</desc>
<style>
{sheet}</style>
<defs>
<pattern id="remit-dots" width="20" height="20" patternUnits="userSpaceOnUse">\
<circle class="dot" cx="2" cy="2" r="1"/></pattern>
<clipPath id="remit-inside"><rect x="{_PAD - 9}" width="{_INSIDE + 18}" height="{CARD_HEIGHT}"/></clipPath>
</defs>
<rect class="page" width="{width}" height="{height}"/>
<rect fill="url(#remit-dots)" width="{width}" height="{height}"/>"""


def _header(root: Node, now: int, width: int) -> str:
    room = width - 2 * _MARGIN
    title = words(root.task, (_MARGIN, 42), "title", room)
    return f"{title}\n{words(_summary(root, now), (_MARGIN, 64), 'faint', room)}"


def _summary(root: Node, now: int) -> str:
    """Return the figures of the run in one line."""
    figures = summary(root)
    parts = [
        f"{picture_line(root.agent, 40)} {picture_line(root.state, 20)} · {took(root, root.elapsed(now), now)}",
        f"{count(figures.tasks, 'task')} ({states(figures.states.elements())})",
        f"{count(figures.tokens_seen, 'token')} seen",
    ]
    if figures.credits:
        parts.append(f"{money(figures.credits)} spent")
    if figures.model_calls:
        parts.append(count(figures.model_calls, "model call"))
    if figures.tool_calls:
        failed = f", {figures.tools_failed:,} failed" if figures.tools_failed else ""
        parts.append(count(figures.tool_calls, "tool call") + failed)
    if figures.handoffs:
        parts.append(count(figures.handoffs, "handoff"))
    if figures.steps:
        parts.append(steps_sentence(figures.steps))
    if figures.retries:
        parts.append(f"tried again {count(figures.retries, 'time')}")
    if figures.refused:
        parts.append(f"{count(figures.refused, 'hop')} refused")
    return " · ".join(parts)


# -- cards ---------------------------------------------------------------------------------------------------


def _tree(picture: Picture, now: int) -> list[str]:
    """Draw edges first, so that cards cover them, and labels last, so that nothing covers these."""
    return [
        *(_curve(edge) for edge in picture.edges),
        *(_tile(box, now) for box in picture.boxes),
        *(_ENDS[edge.kind](edge) for edge in picture.edges),
        *(_pill(edge) for edge in picture.edges if edge.label),
    ]


def _tile(box: Box, now: int) -> str:
    match box.tile.shows:
        case Stay() as stay:
            back, inside = _back(known_state(stay.state)), _task(stay, now)
        case Refusal() as refusal:
            back, inside = _back("refused"), _refused(refusal)
        case stack:
            back, inside = _back(FOLDED, 5) + _back(FOLDED), _stack(stack)
    return translated_group(box.x, box.y, f'{back}<g clip-path="url(#remit-inside)">{inside}</g>')


def _back(state: str, shift: int = 0) -> str:
    """Draw the card itself, with a little shade; a state that needs attention has a rim in its colour."""
    rim = " rim" if look(state).rimmed else ""
    size = f'width="{CARD_WIDTH}" height="{CARD_HEIGHT}" rx="10"'
    shade = f'<rect class="shade" x="{shift}" y="{shift + 2}" {size}/>'
    return f'{shade}<rect class="card {state}{rim}" x="{shift}" y="{shift}" {size}/>'


def _head(state: str, name: str, right: str) -> str:
    taken = line_width(right, "mono") + 10
    return (
        state_dot(state, _PAD + 5, 22)
        + words(name, (_PAD + 20, 27), "name", _INSIDE - 20 - taken)
        + words(right, (CARD_WIDTH - _PAD, 26), "mono faint", taken, "end")
    )


def _task(stay: Stay, now: int) -> str:
    """Draw the card of a stay, the time during which one agent holds a task: the agent, the task or, after a handoff,
    what the agent saw, the numbers of model requests and tool calls, and how it ended."""
    about = f"saw {saw_here(stay)}" if stay.came and stay.receipt else subject_of(stay.node)
    used = [*uses_in_short(stay.models, stay.tools), *(f"{use.tool}: {use.error}" for use in stay.tools if use.error)]
    counted = uses_in_signs(stay.models, stay.tools)
    taken = line_width(counted, "mono") + 10 if counted else 0
    colours = "mono fill failed" if mark("failed") in counted else "mono faint"
    return (
        tooltip(
            "; ".join(
                (f"{stay.holder}: {subject_of(stay.node)}", *used, *map(attempt_text, stay.node.retries[-SIBLINGS:]))
            )
        )
        + _head(stay.state, stay.holder, _time(stay, now))
        + words(about, (_PAD, 48), "soft", _INSIDE - taken)
        + (words(counted, (CARD_WIDTH - _PAD, 48), colours, taken, "end") if counted else "")
        + _ending(stay)
    )


def _time(stay: Stay, now: int) -> str:
    """Return the time of a card, such as 1.3 s, with the spending and the number of the attempt before it."""
    node = stay.node
    tried = f"\N{MULTIPLICATION SIGN}{node.attempts:,} · " if node.attempts > 1 and stay.left is None else ""
    cost = f"{money(node.credits)} · " if node.credits and stay.left is None else ""
    return tried + cost + took(node, stay.elapsed(now), now)


def _ending(stay: Stay) -> str:
    """Return the last line of a card: the error, the result, the new holder, or the present activity."""
    node = stay.node
    if stay.left is not None:
        return words(f"handed over to {stay.left.to[0]}", (_PAD, 68), "fill handed", _INSIDE)
    if node.state == "completed":
        answer = "done, no result" if node.result is None else f"→ {result_text(node)}"
        return words(answer, (_PAD, 68), "faint", _INSIDE)
    why = reason(node)
    text = f"dead: {why}" if node.state == "dead" else why or _doing(node)
    return words(text, (_PAD, 68), f"fill {known_state(node.state)}", _INSIDE)


def _doing(node: Node) -> str:
    if node.state == "pending" and node.retries:
        return f"pending again; {attempt_text(node.retries[-1])}"
    if node.state not in ("running", "waiting"):
        return _DOING.get(node.state) or (LOOKS[node.state].word if node.state in LOOKS else node.state)
    if node.open_questions:
        return f"{WAITS}: {node.open_questions[0].text}"
    asked = [child.agent for child in waits_for(node)]
    idle = "working" if node.state == "running" else "waiting"
    return f"waits for {', '.join(asked[:SIBLINGS])}" if asked else idle


_DOING: Final = {"pending": "pending: nobody has taken it up"}


def _refused(refusal: Refusal) -> str:
    return (
        tooltip(refusal.sentence)
        + _head("refused", refusal.to, refused_word(refusal))
        + words(refusal.task, (_PAD, 48), "soft", _INSIDE)
        + words(refusal.sentence, (_PAD, 68), "fill refused", _INSIDE)
    )


def _stack(stack: Stack) -> str:
    hidden = stack.states
    below = f"{stack.below:,} below" if stack.below else ""
    return (
        tooltip(stack.sentence())
        + words(f"+{len(hidden):,} more", (_PAD, 27), "name", _INSIDE)
        + words(below, (CARD_WIDTH - _PAD, 26), "mono faint", 100, "end")
        + words(states(hidden), (_PAD, 48), "soft", _INSIDE)
        + share_bar(hidden, (_PAD, 60), _INSIDE)
    )


# -- edges ---------------------------------------------------------------------------------------------------


def _ring(edge: Edge) -> str:
    """Draw the end of a delegation as a ring: the asker waits for the result."""
    at = f'cx="{edge.end.x}" cy="{edge.end.middle}"'
    return f'<circle class="card ring {edge.state}" {at} r="4"/>'


def _one_head(edge: Edge) -> str:
    """Draw the end of a submission as an open head: the asker did not wait."""
    return _open_head(edge, 0)


def _two_heads(edge: Edge) -> str:
    """Draw the end of a spawn as two open heads: the result will be reported to the asker."""
    return _open_head(edge, 0) + _open_head(edge, 7)


def _open_head(edge: Edge, back: int) -> str:
    shape = f"M{edge.end.x - 7 - back} {edge.end.middle - 5}l6 5l-6 5"
    return f'<path class="edge {edge.state}" d="{shape}"/>'


def _arrow(edge: Edge) -> str:
    """Draw the head of the edge to one part of a parallel handoff."""
    return arrow_head(edge.end.x, edge.end.middle, "handed")


def _arrow_down(edge: Edge) -> str:
    """Draw the end of a handoff as a solid head: the task itself has moved."""
    return arrow_head(edge.end.x + _HAND, edge.end.y, edge.state, down=True)


def _nothing(_edge: Edge) -> str:
    return ""


_ENDS: Final[dict[EdgeKind, Callable[[Edge], str]]] = {
    "delegation": _ring,
    "submitted": _one_head,
    "spawned": _two_heads,
    "member": _arrow,
    "handoff": _arrow_down,
    "refusal": _nothing,
    "stack": _nothing,
}


def _curve(edge: Edge) -> str:
    """Draw a bend right after the asker, then a straight line, so that labels have a line of their own."""
    if edge.kind == "handoff":
        x = edge.start.x + _HAND
        path = f"M{x} {edge.start.bottom}V{edge.end.y - 6}"
    else:
        x, y, to = edge.start.right, edge.start.middle, edge.end.middle
        half, bend = x + _BEND // 2, x + _BEND
        path = f"M{x} {y}C{half} {y} {half} {to} {bend} {to}H{edge.end.x - 6 * (edge.kind == 'member')}"
    return f'<path class="edge {edge.kind} {edge.state}" d="{path}"/>'


def _pill(edge: Edge) -> str:
    text, aside = line_width(edge.label, "mono"), line_width(edge.aside, "mono")
    width = text + (aside + 7 if aside else 0) + 16
    left, middle = edge.end.x - (COLUMN - CARD_WIDTH - _BEND + width + 6) // 2, edge.end.middle
    if edge.kind == "handoff":  # halfway down the arrow
        left, middle = edge.end.x + _HAND - width // 2, (edge.start.bottom + edge.end.y) // 2 - 4
    refused = " refused rim" if edge.kind == "refusal" else ""
    look = "mono fill refused" if refused else "mono fill handed" if edge.kind == "handoff" else "mono soft"
    label = words(edge.label, (8, 4), look, text + 8)
    also = words(edge.aside, (text + 15, 4), "mono aside", aside + 8) if aside else ""
    rim = f'<rect class="pill{refused}" y="-10" width="{width}" height="20" rx="10"/>'
    word = words(edge.word, (width // 2, -15), "mono faint", 80, "middle") if edge.word else ""
    return translated_group(left, middle, tooltip(edge.tip) + rim + label + also + word)

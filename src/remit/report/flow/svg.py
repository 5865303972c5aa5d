"""A run as a picture: cards for tasks from left to right, edges that say what was passed, plans, and a timeline.

It is one self-contained SVG document: no scripts, no external fonts or images.
"""

from collections.abc import Callable
from typing import Final

from remit.report.figures import count, money
from remit.report.flow.gantt import gantt
from remit.report.flow.labels import saw_here
from remit.report.flow.layout import (
    CARD_HEIGHT,
    CARD_WIDTH,
    COLUMN,
    Box,
    Edge,
    EdgeKind,
    Picture,
    place,
)
from remit.report.flow.plans import Panel, panels
from remit.report.flow.shapes import arrow_head, line_width, moved, share_bar, state_dot, tooltip, words, xml
from remit.report.flow.theme import Theme, style
from remit.report.flow.tiles import SIBLINGS, Stack, outline
from remit.report.looks import FOLDED, LOOKS, known, look, mark
from remit.report.printable import cleaned
from remit.report.stays import Stay
from remit.report.summary import steps_sentence, summary, waits_for
from remit.report.tree import Node, Refusal, result_text
from remit.report.uses import uses_in_short, uses_in_signs
from remit.report.words import WAITS, called, reason, refused_word, retried, states, took

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
        drawn.append(moved(_MARGIN, top, plan.drawn(width)))
        top += plan.height + _APART
    return drawn


def _opening(root: Node, now: int, size: tuple[int, int], sheet: str) -> str:
    width, height = size
    title = cleaned(f"{root.first}: {root.task}", 120)
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
        f"{cleaned(root.agent, 40)} {cleaned(root.state, 20)} · {took(root, root.elapsed(now), now)}",
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
            back, inside = _back(known(stay.state)), _task(stay, now)
        case Refusal() as refusal:
            back, inside = _back("refused"), _refused(refusal)
        case stack:
            back, inside = _back(FOLDED, 5) + _back(FOLDED), _stack(stack)
    return moved(box.x, box.y, f'{back}<g clip-path="url(#remit-inside)">{inside}</g>')


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
    """Draw a stay: on the first card the task, on the others what came along; and the number of model requests and tool
    calls."""
    about = f"saw {saw_here(stay)}" if stay.came and stay.receipt else called(stay.node)
    used = [*uses_in_short(stay.models, stay.tools), *(f"{use.tool}: {use.error}" for use in stay.tools if use.error)]
    counted = uses_in_signs(stay.models, stay.tools)
    taken = line_width(counted, "mono") + 10 if counted else 0
    colours = "mono fill failed" if mark("failed") in counted else "mono faint"
    return (
        tooltip("; ".join((f"{stay.holder}: {called(stay.node)}", *used, *map(retried, stay.node.retries[-SIBLINGS:]))))
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
    return words(text, (_PAD, 68), f"fill {known(node.state)}", _INSIDE)


def _doing(node: Node) -> str:
    if node.state == "pending" and node.retries:
        return f"pending again; {retried(node.retries[-1])}"
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


def _sent(edge: Edge) -> str:
    """Draw the end of a submission as an open head: the asker did not wait."""
    return _open_head(edge, 0)


def _sent_beside(edge: Edge) -> str:
    """Draw the end of a spawn as two open heads: the result will be reported to the asker."""
    return _open_head(edge, 0) + _open_head(edge, 7)


def _open_head(edge: Edge, back: int) -> str:
    shape = f"M{edge.end.x - 7 - back} {edge.end.middle - 5}l6 5l-6 5"
    return f'<path class="edge {edge.state}" d="{shape}"/>'


def _arrow(edge: Edge) -> str:
    """Draw the end of one part of a parallel handoff."""
    return arrow_head(edge.end.x, edge.end.middle, "handed")


def _arrow_down(edge: Edge) -> str:
    """Draw the end of a handoff as a solid head: the task itself has moved."""
    return arrow_head(edge.end.x + _HAND, edge.end.y, edge.state, down=True)


def _nothing(_edge: Edge) -> str:
    return ""


_ENDS: Final[dict[EdgeKind, Callable[[Edge], str]]] = {
    "delegation": _ring,
    "submitted": _sent,
    "spawned": _sent_beside,
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
    return moved(left, middle, tooltip(edge.tip) + rim + label + also + word)

"""A run as a Mermaid flowchart, for issues, pull requests and docs."""

from collections.abc import Iterator, Mapping
from typing import Final

from remit.report import receipts
from remit.report.flow.layout import Tile, outline, tiles_of
from remit.report.looks import FOLDED, Line, Role, known_state, look, mark
from remit.report.printable import picture_line
from remit.report.summary import Subtotal, subtotals
from remit.report.tree import Node, PlanStep, Refusal, Stay, member_of
from remit.report.uses import uses_in_short
from remit.report.words import (
    ASKED,
    kept_back,
    notes,
    passed_text,
    plan_of,
    progress,
    spending_text,
    states,
    subject_of,
    took,
)

# Mermaid draws at most 500 edges and 50,000 characters; with stacks, this many cards and steps stay below both.
_CARDS: Final = 48
_STEPS: Final = 24
_NEEDS: Final = 8  # edges drawn for a step with very many dependencies
_AGENT: Final = 24
_TASK: Final = 40
_PASSED: Final = 24
_USE: Final = 60

# Apart from letters and digits, only these are plain in Mermaid, Markdown and HTML inside a quoted label.
_PLAIN: Final = frozenset(" ,.'/()+=?!-")

_COLOURS: Final[dict[Role, str]] = {
    "good": "fill:#dff5e7,stroke:#1a7f4b,color:#0b3d24",
    "busy": "fill:#e2eaff,stroke:#2f5fd0,color:#14306f",
    "bad": "fill:#ffe3e1,stroke:#c62f2f,color:#6b1414",
    "grave": "fill:#fbdcec,stroke:#a8125e,color:#5e0733,stroke-width:2px",
    "refused": "fill:#fff5f5,stroke:#c62f2f,color:#8f1d1d",
    "moved": "fill:#efe8fd,stroke:#6d3fc4,color:#3a1d78",
    "queued": "fill:#f3f5f9,stroke:#566482,color:#2b313b",
    "stopped": "fill:#eceff3,stroke:#6b7280,color:#2b313b",
    "idle": "fill:#f6f7f9,stroke:#6b7280,color:#2b313b",
}
_LINES: Final[dict[Line, str]] = {"solid": "", "dashed": ",stroke-dasharray:3 3", "dotted": ",stroke-dasharray:1 3"}


def mermaid(root: Node, now: int) -> str:
    """Return a flowchart from left to right. If there are very many tasks, those far from the root are folded."""
    planned = min(_STEPS, sum(len(plan) for node in root.walk() for plan in node.plans))
    order = list(tiles_of(outline(root, _CARDS - planned)))
    names = {tile: f"n{index}" for index, tile in enumerate(order)}
    hops = [(tile, child) for tile in order for child in tile.children]
    refused = [str(at) for at, (_, child) in enumerate(hops) if isinstance(child.shows, Refusal)]
    plans, steps = _plans(order, names)
    lines = ["flowchart LR"]
    whole = subtotals(root)
    lines += [f"    {names[tile]}{_node(tile, now, whole)}" for tile in order]
    lines += [f"    {names[tile]} {_edge(tile, child)} {names[child]}" for tile, child in hops]
    lines += [f"    {names[tile]} {_handoff(tile.heir)} {names[tile.heir]}" for tile in order if tile.heir is not None]
    lines += plans
    classes = steps | {_class(tile) for tile in order}
    lines += [f"    classDef {name} {class_style(name)}" for name in sorted(classes)]
    if refused:
        lines.append(f"    linkStyle {','.join(refused)} stroke:#c62f2f,color:#8f1d1d")
    return "\n".join(lines) + "\n"


def _node(tile: Tile, now: int, whole: Mapping[str, Subtotal]) -> str:
    match tile.shows:
        case Stay() as stay:
            about = "" if stay.came else f"{_label(subject_of(stay.node), _TASK)}<br/>"
            head = f"{mark(stay.state)} {_label(stay.holder, _AGENT)}"
            parts = [took(stay.node, stay.elapsed(now), now)]
            if stay.left is None:
                parts = [note for note in notes(stay.node) if note not in ASKED.values()] + parts
                parts += filter(None, [_label(spending_text(stay.node, whole), _TASK)])
            below = "".join(f"<br/>{_label(line, _USE)}" for line in uses_in_short(stay.models, stay.tools))
            label = f'["{head}<br/>{about}{", ".join(parts)}{below}"]'
        case Refusal() as refusal:
            label = f'(["{mark("refused")} {_label(refusal.rule, _AGENT)}"])'
        case stack:
            label = f'[["{_label(stack.sentence(), 99)}"]]'
    return f"{label}:::{_class(tile)}"


def _edge(asker: Tile, tile: Tile) -> str:
    match tile.shows:
        case Stay() as stay:
            member = isinstance(asker.shows, Stay) and member_of(stay.node, asker.shows.node)
            asked = ASKED.get(stay.node.asked_how, "")
            arrow = "==>" if member else "-.->" if asked else "-->"
            label = " ".join(filter(None, (_label(passed_text(stay, _PASSED), _TASK), kept_back(stay))))
            return f'{arrow}|"{asked + ", " if asked else ""}{label}"|'
        case Refusal() as refusal:
            verb = "handed to" if refusal.handoff else "asked"
            return f'-.->|"{verb} {_label(refusal.to, _AGENT)}"|'
        case _:
            return "---"


def _handoff(heir: Tile) -> str:
    """Return the edge of a handoff, with its phase and what was passed with it."""
    if not isinstance(heir.shows, Stay) or heir.shows.came is None:
        return "==>"
    along = passed_text(heir.shows, _PASSED) if receipts.passed_on(heir.shows.receipt) else ""
    label = ", ".join(_label(part, _TASK) for part in (heir.shows.came.phase, along) if part)
    return f'==>|"{label}"|' if label else "==>"


def _class(tile: Tile) -> str:
    match tile.shows:
        case Stay() as stay:
            return known_state(stay.state)
        case Refusal():
            return "refused"
        case _:
            return FOLDED


def class_style(state: str) -> str:
    """Return the style of a state: fill:#dff5e7,stroke:#1a7f4b,color:#0b3d24."""
    drawn = look(state)
    return _COLOURS[drawn.role] + _LINES[drawn.line]


# -- plans ---------------------------------------------------------------------------------------------------


def _plans(order: list[Tile], names: dict[Tile, str]) -> tuple[list[str], set[str]]:
    """Return the drawn plans of the visible tasks, each in a box of its own, and the classes of their steps."""
    lines: list[str] = []
    classes: set[str] = set()
    room = _STEPS
    for tile in order:
        stay = tile.shows
        if not isinstance(stay, Stay) or stay.left is not None:
            continue
        for index, plan in enumerate(stay.node.plans):
            if not room or not plan:
                break
            lines += _subgraph(plan, room, (names[tile], f"{names[tile]}p{index}", stay.holder))
            classes |= {known_state(step.state) for step in plan[:room]} | ({FOLDED} if len(plan) > room else set())
            room -= min(room, len(plan))
    return lines, classes


def _subgraph(plan: list[PlanStep], room: int, who: tuple[str, str, str]) -> list[str]:
    owner, box, agent = who
    shown = plan[:room]
    names = {step.id: f"{box}s{at}" for at, step in enumerate(shown)}
    lines = [
        f'    subgraph {box}["{_label(plan_of(plan[0].planner or agent), _AGENT)}, {progress(plan)}"]',
        "        direction LR",
    ]
    lines += [f"        {names[step.id]}{_step(step)}" for step in shown]
    if len(plan) > room:
        rest = f"+{len(plan) - room:,} more ({states(step.state for step in plan[room:])})"
        lines.append(f'        {box}rest[["{rest}"]]:::{FOLDED}')
    for step in shown:
        needs = [names[before] for before in step.after if before in names]
        lines += [f"        {before} --> {names[step.id]}" for before in needs[:_NEEDS]]
    return [*lines, "    end", f"    {owner} -.- {box}"]


def _step(step: PlanStep) -> str:
    state = known_state(step.state)
    return f'["{mark(state)} {_label(step.title, _TASK)}<br/>{_label(step.agent, _AGENT)}"]:::{state}'


# -- labels --------------------------------------------------------------------------------------------------


def _label(text: str, columns: int) -> str:
    """Return the text for a quoted label: every special character becomes its number."""
    return "".join(_characters(picture_line(text, columns)))


def _characters(text: str) -> Iterator[str]:
    for char in text:
        if char == "$":
            yield "#36;#8288;"  # two of them start a formula even as entities; an invisible joiner separates them
        elif char.isalnum() or not char.isascii() or char in _PLAIN:
            yield char
        else:
            yield f"#{ord(char)};"

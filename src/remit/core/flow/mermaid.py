"""A run as a Mermaid flowchart, for the places that draw those: issues, pull requests, docs."""

from collections.abc import Iterator
from typing import Final

from remit.core.flow.cards import Card, cards_of, outline
from remit.core.flow.words import duration, kept_back, known, mark, passed
from remit.core.printable import cleaned
from remit.core.report import Node, Refusal

# Mermaid draws at most 500 edges and 50,000 characters; with stacks, this many cards stay below both.
_CARDS: Final = 48
_AGENT: Final = 24
_TASK: Final = 40

# Besides letters and digits only these mean nothing to Mermaid, to Markdown or to HTML inside a quoted label.
_PLAIN: Final = frozenset(" ,.'/()+=?!-")

_CLASSES: Final = {
    "completed": "fill:#dff5e7,stroke:#1a7f4b,color:#0b3d24",
    "running": "fill:#e2eaff,stroke:#2f5fd0,color:#14306f",
    "failed": "fill:#ffe3e1,stroke:#c62f2f,color:#6b1414",
    "cancelled": "fill:#eceff3,stroke:#6b7280,color:#2b313b",
    "unknown": "fill:#eceff3,stroke:#6b7280,color:#2b313b",
    "refused": "fill:#fff5f5,stroke:#c62f2f,color:#8f1d1d,stroke-dasharray:4 3",
    "folded": "fill:#f6f7f9,stroke:#6b7280,color:#2b313b,stroke-dasharray:2 2",
}


def mermaid(root: Node, now: int) -> str:
    """A flowchart from left to right; tasks far from the root are folded when there are very many."""
    order = list(cards_of(outline(root, _CARDS)))
    names = {card: f"n{index}" for index, card in enumerate(order)}
    hops = [(card, child) for card in order for child in card.children]
    refused = [str(at) for at, (_, child) in enumerate(hops) if isinstance(child.shows, Refusal)]
    lines = ["flowchart LR"]
    lines += [f"    {names[card]}{_node(card, now)}" for card in order]
    lines += [f"    {names[card]} {_edge(child)} {names[child]}" for card, child in hops]
    lines += [f"    classDef {name} {_CLASSES[name]}" for name in sorted({_class(card) for card in order})]
    if refused:
        lines.append(f"    linkStyle {','.join(refused)} stroke:#c62f2f,color:#8f1d1d")
    return "\n".join(lines) + "\n"


def _node(card: Card, now: int) -> str:
    match card.shows:
        case Node() as node:
            head = f"{mark(node.status)} {_label(node.agent, _AGENT)}"
            label = f'["{head}<br/>{_label(node.task, _TASK)}<br/>{duration(node.elapsed(now))}"]'
        case Refusal() as refusal:
            label = f'(["{mark("refused")} {_label(refusal.rule, _AGENT)}"])'
        case stack:
            label = f'[["{_label(stack.sentence(), 99)}"]]'
    return f"{label}:::{_class(card)}"


def _edge(card: Card) -> str:
    match card.shows:
        case Node() as node:
            return f'-->|"{" ".join(filter(None, (passed(node), kept_back(node))))}"|'
        case Refusal() as refusal:
            return f'-.->|"asked {_label(refusal.to, _AGENT)}"|'
        case _:
            return "---"


def _class(card: Card) -> str:
    match card.shows:
        case Node() as node:
            return known(node.status)
        case Refusal():
            return "refused"
        case _:
            return "folded"


def _label(text: str, columns: int) -> str:
    """Text inside a quoted label: whatever could mean something is written as the number of its character."""
    return "".join(_characters(cleaned(text, columns)))


def _characters(text: str) -> Iterator[str]:
    for char in text:
        if char == "$":
            yield "#36;#8288;"  # two of them start a formula even as numbers; an invisible joiner parts them
        elif char.isalnum() or not char.isascii() or char in _PLAIN:
            yield char
        else:
            yield f"#{ord(char)};"

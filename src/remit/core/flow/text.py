"""A run as lines of text, one for each task and one for each refused hop."""

from typing import Final

from remit.core.flow.cards import Hop, hops_of
from remit.core.flow.words import MARKS, duration, mark, reason, saw
from remit.core.printable import escaped
from remit.core.report import Node, Refusal

_AGENT: Final = 32
_TASK: Final = 60
_SENTENCE: Final = 160
_GUIDES: Final = 96  # deeper branches keep only the nearest guides, or a deep chain would fill the screen with them


def text(root: Node, now: int) -> str:
    """The tree with branches; safe to print whatever the agents wrote."""
    lines = [_task(root, now)]
    waiting = _branches(root, "")
    while waiting:
        hop, guides, last = waiting.pop()
        turn, dash = ("└" if last else "├"), ("╌" if isinstance(hop, Refusal) else "─")
        lines.append(f"{guides}{turn}{dash} {_line(hop, now)}")
        if isinstance(hop, Node):
            waiting += _branches(hop, _nearest(guides + ("   " if last else "│  ")))
    return "\n".join(lines) + "\n"


def _branches(node: Node, guides: str) -> list[tuple[Hop, str, bool]]:
    """Whom a task asked, last one first: the next line is taken from the end."""
    hops = hops_of(node)
    return [(hop, guides, at == len(hops)) for at, hop in enumerate(hops, 1)][::-1]


def _nearest(guides: str) -> str:
    return guides if len(guides) <= _GUIDES else f"⋯  {guides[6:]}"


def _line(hop: Hop, now: int) -> str:
    return _refused(hop) if isinstance(hop, Refusal) else _task(hop, now)


def _task(node: Node, now: int) -> str:
    head = f"{mark(node.status)} {escaped(node.agent, _AGENT)}: {escaped(node.task, _TASK)}"
    parts = [head, duration(node.elapsed(now)), saw(node)]
    if node.status not in MARKS:
        parts.append(escaped(node.status, _AGENT))
    if node.error:
        parts.append(escaped(reason(node), _SENTENCE))
    return " · ".join(parts)


def _refused(refusal: Refusal) -> str:
    head = f"{MARKS['refused']} {escaped(refusal.to, _AGENT)}: {escaped(refusal.task, _TASK)}"
    return f"{head} · {escaped(refusal.rule, _AGENT)}: {escaped(refusal.sentence, _SENTENCE)}"

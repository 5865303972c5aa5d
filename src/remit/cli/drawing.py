"""How a run looks in a terminal."""

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from remit.core.flow import duration
from remit.core.printable import block, escaped
from remit.core.report import Node, Refusal, result_text, sentence, tally

_MARKS: Final = {
    "running": ("●", "cyan"),
    "completed": ("✔", "green"),
    "failed": ("✘", "red"),
    "cancelled": ("■", "yellow"),
}
_FOLD = 12  # siblings shown before the rest is counted


def age(microseconds: int) -> str:
    """now, 40 s, 12 min, 5 h, 3 d"""
    seconds = microseconds // 1_000_000
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            return f"{seconds // size} {word}"
    return "now"


def headline(node: Node, now: int) -> Text:
    """One task on one line."""
    mark, colour = _MARKS[node.status]
    text = Text.assemble((f"{mark} ", colour), (node.agent, "bold"), ("  ", ""), (escaped(node.task, 60), ""))
    text.append(f"  {duration(node.elapsed(now))}", "dim")
    saw = len([one for one in node.saw if one[1] != "task"])
    if saw:
        text.append(f"  saw {saw}", "blue")
    return text


def refusal_line(refusal: Refusal) -> Text:
    return Text.assemble(("⊘ ", "red"), (refusal.to, "red"), (f"  refused ({refusal.rule})", "red"))


def refusals(root: Node) -> Iterator[Text]:
    """Every hop that was refused, with the sentence its asker was given."""
    for node in root.walk():
        for refusal in node.refusals:
            told = escaped(refusal.sentence, 240)
            yield Text.assemble(
                ("⊘ ", "red"),
                (f"{node.agent} > {refusal.to}", "bold"),
                (f"  {refusal.rule}: ", "red"),
                (told, "dim"),
            )


def drawn(root: Node, now: int) -> Tree:
    """The run as a tree that rich can print, and print again while it grows."""
    top = Tree(headline(root, now), guide_style="dim")
    pending = [(root, top)]
    while pending:
        node, branch = pending.pop()
        pending.extend((child, branch.add(headline(child, now))) for child in node.children[:_FOLD])
        if len(node.children) > _FOLD:
            branch.add(Text(_folded(node.children[_FOLD:]), "dim"))
        for refusal in node.refusals[:_FOLD]:
            branch.add(refusal_line(refusal))
        if node.error:
            branch.add(Text(escaped(node.error, 200), "red"))
    return top


def summary(root: Node, now: int) -> RenderableType:
    """The sentence and the figures of a run."""
    found = tally(root)
    figures = f"{found.tasks} tasks · depth {found.depth} · {found.refused} refused · {duration(root.elapsed(now))}"
    return Group(Text(sentence(root)), Text(figures, "dim"))


def receipts(root: Node) -> Iterator[Text]:
    """What each turn saw and why, and what was withheld from it."""
    for node in root.walk():
        if not node.receipt:
            continue
        seen = [one for one in node.saw if one[1] != "task"]
        word = f"saw {node.receipt['tokens']} tokens" if seen else "saw its task and nothing else"
        yield Text.assemble((node.agent, "bold"), (f"  {word}", "dim"))
        for what, why, tokens, version, digest in seen:
            where = escaped(str(what), 60)
            yield Text.assemble("   ", (where, "blue"), (f"  {why} · {tokens} tok · v{version} · {digest}", "dim"))
        for what, why in node.withheld:
            yield Text.assemble("   ", (escaped(what, 60), "yellow"), (f"  withheld: {why}", "dim"))


def answer(root: Node) -> Text:
    """What came of it."""
    if root.status == "completed":
        return Text(block(result_text(root)))
    return Text(block(root.error or root.status), "red")


def _folded(rest: list[Node]) -> str:
    states = sorted({node.status for node in rest})
    counts = ", ".join(f"{sum(node.status == state for node in rest)} {state}" for state in states)
    return f"… and {len(rest)} more ({counts})"

"""How a run looks in a terminal."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from remit.core.values import Json
from remit.report.printable import block, escaped
from remit.report.tally import sentence, tally
from remit.report.tree import HandoffMade, Node, PlanStep, Refusal, Retry, result_text
from remit.report.words import AGAIN, called, count, duration, notes, progress, refused_word, retried, took

_MARKS: Final = {
    "running": ("●", "cyan"),
    "completed": ("✔", "green"),
    "failed": ("✘", "red"),
    "dead": ("†", "bold magenta"),
    "cancelled": ("■", "yellow"),
    "cancelling": ("□", "yellow"),
    "pending": ("◌", "dim"),
    "waiting": ("○", "dim"),
    "skipped": ("↷", "dim"),
}
_UNKNOWN: Final = ("?", "dim")
_BAD: Final = frozenset(("failed", "dead", "cancelled"))
_FOLD = 12  # siblings shown before the rest is counted


def age(microseconds: int) -> str:
    """now, 40 s, 12 min, 5 h, 3 d"""
    seconds = microseconds // 1_000_000
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            return f"{seconds // size} {word}"
    return "now"


def tabled(names: Sequence[str], rows: Sequence[Sequence[Text | str]], *, left: int = 1, gives_way: str = "") -> Table:
    """A plain table, the first columns to the left and figures to the right. Only one column may give way when the
    terminal is narrow: a name or a figure that is cut cannot be read or copied."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, name in enumerate(names):
        if name == gives_way:
            table.add_column(name, no_wrap=True, overflow="ellipsis")
        else:
            width = max(len(name), *(len(row[index]) for row in rows))
            table.add_column(name, justify="left" if index < left else "right", no_wrap=True, min_width=width)
    for row in rows:
        table.add_row(*row)
    return table


def headline(node: Node, now: int) -> Text:
    """One task on one line."""
    mark, colour = _MARKS.get(node.state, _UNKNOWN)
    text = Text.assemble((f"{mark} ", colour), (node.first, "bold"), ("  ", ""), (escaped(called(node), 60), ""))
    for said in notes(node):
        text.append(f"  {said}", colour if said == node.state else "dim")
    text.append(f"  {took(node, node.elapsed(now), now)}", "dim")
    saw = len([one for one in node.saw if one[1] != "task"])
    if saw:
        text.append(f"  saw {saw}", "blue")
    return text


def refusal_line(refusal: Refusal) -> Text:
    told = f"  {refused_word(refusal)} ({escaped(refusal.rule, 40)})"
    return Text.assemble(("⊘ ", "red"), (escaped(refusal.to, 64), "red"), (told, "red"))


def retry_line(retry: Retry) -> Text:
    """An attempt that was tried again, and what it died of."""
    return Text.assemble((f"{AGAIN} ", "yellow"), (escaped(retried(retry), 160), "dim"))


def handoff_line(handoff: HandoffMade) -> Text:
    """Who has the task next, or who got a part of it."""
    whom = escaped(", ".join(handoff.to), 80)
    phase = f"  phase {escaped(handoff.phase, 40)}" if handoff.phase else ""
    return Text.assemble(
        ("⇉ " if handoff.parallel else "→ ", "magenta"),
        (whom, "bold"),
        (phase, "magenta"),
        (f"  {escaped(handoff.sender, 64)} had it {duration(handoff.elapsed)}", "dim"),
    )


def plan_branch(plan: list[PlanStep]) -> Tree:
    """A plan's progress, and its steps."""
    branch = Tree(Text.assemble(("plan  ", "bold"), (progress(plan), "dim")), guide_style="dim")
    for step in plan[:_FOLD]:
        mark, colour = _MARKS.get(step.state, _UNKNOWN)
        line = Text.assemble((f"{mark} ", colour), escaped(step.title, 60), (f"  {escaped(step.agent, 64)}", "dim"))
        if step.after:
            line.append(f"  after {escaped(', '.join(step.after), 40)}", "dim")
        if step.reason:
            line.append(f"  {escaped(step.reason, 100)}", colour)
        branch.add(line)
    if len(plan) > _FOLD:
        branch.add(Text(f"… and {len(plan) - _FOLD} more", "dim"))
    return branch


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
        for plan in node.plans[-_FOLD:]:
            branch.add(plan_branch(plan))
        for handoff in node.trail[-_FOLD:]:
            branch.add(handoff_line(handoff))
        pending.extend((child, branch.add(headline(child, now))) for child in node.children[:_FOLD])
        if len(node.children) > _FOLD:
            branch.add(Text(_folded(node.children[_FOLD:]), "dim"))
        for refusal in node.refusals[:_FOLD]:
            branch.add(refusal_line(refusal))
        for retry in node.retries[-_FOLD:]:
            branch.add(retry_line(retry))
        if node.error:
            branch.add(Text(escaped(node.error, 200), _MARKS["dead"][1] if node.state == "dead" else "red"))
    return top


def summary(root: Node, now: int) -> RenderableType:
    """The sentence and the figures of a run."""
    found = tally(root)
    time = took(root, root.elapsed(now), now)
    parts = [count(found.tasks, "task"), f"depth {found.depth}", f"{found.refused} refused", time]
    if found.handoffs:
        parts.insert(2, f"{found.handoffs} handoff{'s' if found.handoffs != 1 else ''}")
    return Group(Text(sentence(root)), Text(" · ".join(parts), "dim"))


def receipts(root: Node) -> Iterator[Text]:
    """What each turn saw and why, and what was withheld from it."""
    for node in root.walk():
        turns = [(one.at, one.sender, one.receipt) for one in node.trail]
        turns += [(one.at, one.agent, one.receipt) for one in node.retries]
        turns.sort(key=lambda turn: turn[0])
        for _, holder, receipt in [*turns, (0, node.agent, node.receipt)]:
            if receipt:
                yield from _receipt(holder, receipt)


def _receipt(holder: str, receipt: dict[str, Json]) -> Iterator[Text]:
    seen = [one for one in cast("list[list[Json]]", receipt["saw"]) if one[1] != "task"]
    word = f"saw {receipt['tokens']} tokens" if seen else "saw its task and nothing else"
    yield Text.assemble((escaped(holder, 64), "bold"), (f"  {word}", "dim"))
    for what, why, tokens, version, digest in seen:
        where = escaped(str(what), 60)
        yield Text.assemble("   ", (where, "blue"), (f"  {why} · {tokens} tok · v{version} · {digest}", "dim"))
    for what, why in cast("list[list[str]]", receipt["withheld"]):
        yield Text.assemble("   ", (escaped(what, 60), "yellow"), (f"  withheld: {why}", "dim"))


def answer(root: Node) -> Text:
    """What came of it."""
    if root.state == "completed":
        return Text(block(result_text(root)))
    return Text(block(root.error or root.state), "red" if root.state in _BAD else "dim")


def _folded(rest: list[Node]) -> str:
    states = sorted({node.state for node in rest})
    counts = ", ".join(f"{sum(node.state == state for node in rest)} {state}" for state in states)
    return f"… and {len(rest)} more ({counts})"

"""How a run looks in a terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from remit.core.times import iso
from remit.core.values import Json, encode
from remit.report.figures import count, duration
from remit.report.looks import AGAIN, Role, look, mark
from remit.report.printable import block, escaped
from remit.report.receipts import Receipt, saw, tokens, withheld
from remit.report.tally import sentence, tally
from remit.report.tree import HandoffMade, Node, PlanStep, Refusal, Retry, result_text
from remit.report.words import called, notes, progress, refused_word, retried, states, took

# What each role of a state looks like in a terminal.
COLOURS: Final[dict[Role, str]] = {
    "good": "green",
    "busy": "cyan",
    "bad": "red",
    "grave": "bold magenta",
    "refused": "red",
    "moved": "magenta",
    "queued": "bright_black",
    "stopped": "yellow",
    "idle": "dim",
}
_BAD: Final = frozenset(("failed", "dead", "cancelled"))
_FOLD = 12  # siblings shown before the rest is counted


def state_text(state: str) -> Text:
    """Write the word of a state in its colour."""
    return Text(state, colour(state))


def colour(state: str) -> str:
    return COLOURS[look(state).role]


def tabled(names: Sequence[str], rows: Sequence[Sequence[Text | str]], *, left: int = 1, gives_way: str = "") -> Table:
    """Make a plain table, the first columns to the left and figures to the right. Only one column may give way when the
    terminal is narrow: a name or a figure that is cut cannot be read or copied."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, name in enumerate(names):
        if name == gives_way:
            table.add_column(name)  # rich shortens columns that may wrap before all others; its cells do not wrap
        else:
            width = max(len(name), *(cell_len(str(row[index])) for row in rows))
            table.add_column(name, justify="left" if index < left else "right", no_wrap=True, min_width=width)
    for row in rows:
        table.add_row(*(_cut(cell) if name == gives_way else cell for name, cell in zip(names, row, strict=True)))
    return table


def _cut(cell: Text | str) -> Text:
    text = cell if isinstance(cell, Text) else Text(cell)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def headline(node: Node, now: int) -> Text:
    """Write one task on one line."""
    text = Text.assemble(_mark(node.state), (node.first, "bold"), ("  ", ""), (escaped(called(node), 60), ""))
    for note in notes(node):
        text.append(f"  {note}", colour(node.state) if note == node.state else "dim")
    text.append(f"  {took(node, node.elapsed(now), now)}", "dim")
    saw = sum(slice_.why != "task" for slice_ in node.saw)
    if saw:
        text.append(f"  saw {saw}", "blue")
    return text


def _mark(state: str) -> tuple[str, str]:
    return f"{mark(state)} ", colour(state)


def refusal_line(refusal: Refusal) -> Text:
    text = f"{escaped(refusal.to, 64)}  {refused_word(refusal)} ({escaped(refusal.rule, 40)})"
    return Text.assemble(_mark("refused"), (text, colour("refused")))


def retry_line(retry: Retry) -> Text:
    """Write one line for an attempt that was tried again, with what it died of."""
    return Text.assemble((f"{AGAIN} ", "yellow"), (escaped(retried(retry), 160), "dim"))


def handoff_line(handoff: HandoffMade) -> Text:
    """Say who has the task next, or who got a part of it."""
    whom = escaped(", ".join(handoff.to), 80)
    phase = f"  phase {escaped(handoff.phase, 40)}" if handoff.phase else ""
    return Text.assemble(
        ("⇉ ", colour("handed")) if handoff.parallel else _mark("handed"),
        (whom, "bold"),
        (phase, colour("handed")),
        (f"  {escaped(handoff.sender, 64)} had it {duration(handoff.elapsed)}", "dim"),
    )


def plan_branch(plan: list[PlanStep]) -> Tree:
    """Draw a plan's progress, and its steps."""
    branch = Tree(Text.assemble(("plan  ", "bold"), (progress(plan), "dim")), guide_style="dim")
    for step in plan[:_FOLD]:
        line = Text.assemble(_mark(step.state), escaped(step.title, 60), (f"  {escaped(step.agent, 64)}", "dim"))
        if step.after:
            line.append(f"  after {escaped(', '.join(step.after), 40)}", "dim")
        if step.reason:
            line.append(f"  {escaped(step.reason, 100)}", colour(step.state))
        branch.add(line)
    if len(plan) > _FOLD:
        branch.add(Text(f"… and {len(plan) - _FOLD} more", "dim"))
    return branch


def refusals(root: Node) -> Iterator[Text]:
    """Write a line for every hop that was refused, with the sentence its asker was given."""
    for node in root.walk():
        for refusal in node.refusals:
            yield Text.assemble(
                _mark("refused"),
                (f"{node.agent} > {refusal.to}", "bold"),
                (f"  {refusal.rule}: ", colour("refused")),
                (escaped(refusal.sentence, 240), "dim"),
            )
        if node.more_refused:
            yield Text.assemble(_mark("refused"), (node.agent, "bold"), (f"  and {node.more_refused:,} more", "dim"))


def drawn(root: Node, now: int) -> Tree:
    """Draw the run as a tree that rich can print, and print again while it grows."""
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
            branch.add(Text(escaped(node.error, 200), colour("dead" if node.state == "dead" else "failed")))
    return top


def summary(root: Node, now: int) -> RenderableType:
    """Write the sentence and the figures of a run."""
    figures = tally(root)
    time = took(root, root.elapsed(now), now)
    parts = [count(figures.tasks, "task"), f"depth {figures.depth}", f"{figures.refused} refused", time]
    if figures.handoffs:
        parts.insert(2, count(figures.handoffs, "handoff"))
    return Group(Text(sentence(root)), Text(" · ".join(parts), "dim"))


def receipts(root: Node) -> Iterator[Text]:
    """Say what each turn saw and why, and what was withheld from it."""
    for node in root.walk():
        turns = [(handoff.at, handoff.sender, handoff.receipt) for handoff in node.trail]
        turns += [(retry.at, retry.agent, retry.receipt) for retry in node.retries]
        turns.sort(key=lambda turn: turn[0])
        for _, holder, receipt in [*turns, (0, node.agent, node.receipt)]:
            if receipt:
                yield from _receipt(holder, receipt)


def _receipt(holder: str, receipt: Receipt) -> Iterator[Text]:
    seen = [slice_ for slice_ in saw(receipt) if slice_.why != "task"]
    word = f"saw {tokens(receipt)} tokens" if seen else "saw its task and nothing else"
    yield Text.assemble((escaped(holder, 64), "bold"), (f"  {word}", "dim"))
    for what, why, size, version, digest, trust in seen:
        where, outside = escaped(what, 60), " · from outside" if trust != "inside" else ""
        said = f"  {why} · {size} tok · v{version} · {digest}{outside}"
        yield Text.assemble("   ", (where, "blue"), (said, "dim"))
    for what, why in withheld(receipt):
        yield Text.assemble("   ", (escaped(what, 60), "yellow"), (f"  withheld: {why}", "dim"))


def answer(root: Node) -> Text:
    """Say what came of a run."""
    if root.state == "completed":
        return Text(block(result_text(root)))
    return Text(block(root.error or root.state), "red" if root.state in _BAD else "dim")


def outcome_text(state: str, result: Json, error: str) -> Text:
    """Say what came of a task."""
    if state == "completed":
        return Text(block(result if isinstance(result, str) else encode(result)))
    return Text(block(error or state), "red")


def moment(at: int) -> str:
    """2026-11-15T02:36:54Z"""
    return f"{iso(at)[:19]}Z"


def _folded(rest: list[Node]) -> str:
    return f"… and {len(rest)} more ({states(node.state for node in rest)})"

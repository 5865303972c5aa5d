"""A run in a terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, TypeAlias, TypeVar

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from remit.cli.options import is_kept, typed
from remit.cli.terminal import colour, moment
from remit.core.values import encode
from remit.report.branches import Leaf, Rest, branches, latest, others
from remit.report.figures import count, duration, money
from remit.report.looks import AGAIN, ASKS, MODEL, TOOL, mark
from remit.report.printable import block, escaped
from remit.report.questions import AskedPerson
from remit.report.receipts import Receipt, saw, tokens, withheld
from remit.report.summary import Subtotal, sentence, subtotals, summary
from remit.report.tree import HandoffMade, Node, PlanStep, Refusal, Retry, Stay, result_text
from remit.report.uses import (
    ModelUse,
    ToolUse,
    model_figures,
    model_name,
    tool_call,
    tool_result,
    tool_time,
)
from remit.report.words import (
    WAITS,
    attempt_text,
    how_to_answer,
    kept_from,
    notes,
    progress,
    refused_word,
    spending_text,
    steps_first,
    subject_of,
    took,
)

_BAD: Final = frozenset(("failed", "dead", "cancelled"))
FOLD: Final = 12  # siblings shown before the rest is counted

T = TypeVar("T")
AsOf: TypeAlias = tuple[int, Mapping[str, Subtotal]]  # now, and what each task and all below it spent


def headline(node: Node, now: int, whole: Mapping[str, Subtotal]) -> Text:
    """Return one task on one line; `whole` has the spending of each task with its subtasks."""
    text = Text.assemble(_mark(node.state), (node.first, "bold"), ("  ", ""), (escaped(subject_of(node), 60), ""))
    for note in notes(node):
        text.append(f"  {note}", colour(node.state) if note == node.state else "dim")
    text.append(f"  {took(node, node.elapsed(now), now)}", "dim")
    if cost := spending_text(node, whole):
        text.append(f"  {cost}", "yellow")
    if not _moved(node):  # otherwise the last holder's line shows it
        text.append(_saw(node), "blue")
    return text


def _moved(node: Node) -> bool:
    return any(not handoff.parallel for handoff in node.trail)


def _saw(node: Node) -> str:
    seen = sum(slice_.why != "task" for slice_ in node.saw)
    return f"  saw {seen}" if seen else ""


def _mark(state: str) -> tuple[str, str]:
    return f"{mark(state)} ", colour(state)


def refusal_line(refusal: Refusal) -> Text:
    text = f"{escaped(refusal.to, 64)}  {refused_word(refusal)} ({escaped(refusal.rule, 40)})"
    return Text.assemble(_mark("refused"), (text, colour("refused")))


def retry_line(retry: Retry) -> Text:
    """Return one line for a retried attempt, with its error."""
    return Text.assemble((f"{AGAIN} ", "yellow"), (escaped(attempt_text(retry), 160), "dim"))


def model_line(use: ModelUse) -> Text:
    """Return one line for a model: its requests, tokens and cost."""
    calls, *figures = model_figures(use)
    line = Text.assemble((f"{MODEL} ", "blue"), model_name(use), (f"  {calls}", "yellow" if use.failed else "dim"))
    return line.append("".join(f"  {figure}" for figure in figures), "dim")


def tool_drawn(use: ToolUse, branch: Tree) -> None:
    """Draw a tool call: its arguments, duration and result. An error has a red line of its own, because a narrow
    terminal would cut it off."""
    mark_, look_ = (f"{TOOL} ", "blue") if use.outcome == "done" else _mark(use.outcome)
    line = Text.assemble((mark_, look_), (tool_call(use), "" if use.outcome == "done" else look_))
    if time := tool_time(use):
        line.append(f"  {time}", "dim")
    result = tool_result(use)
    if use.outcome == "done":
        branch.add(line.append(f"  {result}" if result else "", "dim"))
    else:
        branch.add(line).add(Text(result, look_))


def question_drawn(question: AskedPerson, branch: Tree) -> None:
    """Draw an open question, and how to answer it on a line of its own, because a narrow terminal would cut it off."""
    below = branch.add(Text(f"{ASKS} {WAITS}: {escaped(question.text, 160)}", "yellow"))
    below.add(Text(typed(how_to_answer(question)), "yellow"))


def handoff_line(handoff: HandoffMade) -> Text:
    """Return one line for a handoff: the next agent, or the agents of its parts."""
    whom = escaped(", ".join(handoff.to), 80)
    phase = f"  phase {escaped(handoff.phase, 40)}" if handoff.phase else ""
    if handoff.sent_back:
        phase = f"  sent back by {escaped(handoff.sent_back, 64)}"
    return Text.assemble(
        ("⇉ ", colour("handed")) if handoff.parallel else _mark("handed"),
        (whom, "bold"),
        (phase, colour("handed")),
        (f"  {escaped(handoff.sender, 64)} had it {duration(handoff.elapsed)}", "dim"),
    )


def step_line(step: PlanStep) -> Text:
    """Return one line for a step without a task in this run: it waits, was skipped, a dependency failed, or the result
    of an earlier run counts."""
    line = Text.assemble(_mark(step.state), escaped(step.title, 60), (f"  {escaped(step.agent, 64)}", "dim"))
    kept = kept_from(step)
    return line.append(f"{_after(step)}  {kept}" if kept else _after(step), "dim")


def _after(step: PlanStep) -> str:
    return f"  after {escaped(', '.join(step.after), 40)}" if step.after else ""


def refusals(root: Node) -> Iterator[Text]:
    """Yield a line for every refused hop, with the sentence that its asker got."""
    for node in root.walk():
        for refusal in node.refusals:
            yield Text.assemble(
                _mark("refused"),
                (f"{refusal.asker or node.first} > {refusal.to}", "bold"),
                (f"  {refusal.rule}: ", colour("refused")),
                (escaped(refusal.sentence, 240), "dim"),
            )
        if node.more_refused:
            yield Text.assemble(_mark("refused"), (node.agent, "bold"), (f"  and {node.more_refused:,} more", "dim"))


def decision_lines(root: Node) -> Iterator[Text]:
    """Yield a line for every decided question: the outcome, the person, the time and the channel."""
    for node in root.walk():
        for one in node.questions:
            if one.is_open:
                continue
            who = f" by {escaped(one.by, 64)}" if one.by else ""
            where = f" over {escaped(one.channel, 40)}" if one.channel else ""
            said = one.value if isinstance(one.value, str) or one.value is None else encode(one.value)
            yield Text.assemble(
                (f"{ASKS} ", "yellow"),
                (escaped(one.agent, 64), "bold"),
                (f"  {escaped(one.state, 20)}{who}{where} at {moment(one.answered_at or 0)}", "yellow"),
                f"  {escaped(one.text, 160)}",
                (f" → {escaped(said, 160)}" if said else "", ""),
                (f"  {escaped(one.why, 200)}" if one.why else "", "dim"),
            )


def tree_view(root: Node, now: int, *, whole: bool = False) -> Tree:
    """Return the run as a tree for rich, as it is at `now`. Of many siblings only 12 are drawn, failed and running ones
    first, unless `whole` is set."""
    most = None if whole else FOLD
    sums = subtotals(root)
    top = Tree(headline(root, now, sums), guide_style="dim")
    pending = [(root, top)]
    while pending:
        node, branch = pending.pop()
        planned: set[str] = set()
        plans, before = latest(node.plans, most, "plan")
        for rest in before:
            branch.add(_rest(rest, node))
        for plan in plans:
            pending += _plan_drawn(plan, node, branch.add(_plan_head(plan)), (now, sums), most)
            planned.update(step.task for step in plan)
        for row in branches(node, most=most, tools=most, retries=most, planned=planned):
            if isinstance(row, Node):
                pending.append((row, branch.add(headline(row, now, sums))))
            else:
                _leaf_drawn(row, node, branch)
        if node.error:
            branch.add(Text(escaped(node.error, 200), colour("dead" if node.state == "dead" else "failed")))
    return top


def _plan_head(plan: list[PlanStep]) -> Text:
    return Text.assemble(("plan  ", "bold"), (progress(plan), "dim"))


def _plan_drawn(
    plan: list[PlanStep], node: Node, branch: Tree, as_of: AsOf, most: int | None
) -> Iterator[tuple[Node, Tree]]:
    """Draw the steps of a plan, each once: as its task, if it has one. Yield the tasks that are still to be drawn."""
    tasks = {child.id: child for child in node.children}
    shown, rest = steps_first(plan, most)
    for step in shown:
        task = tasks.get(step.task)
        if task is None:
            below = branch.add(step_line(step))
            if step.reason:  # on its own line, because a narrow terminal would cut it off
                below.add(Text(escaped(step.reason, 200), colour(step.state)))
        else:
            yield task, branch.add(headline(task, *as_of).append(_after(step), "dim"))
    for one in others(step.state for step in rest):
        branch.add(_rest(one, node))


def _leaf_drawn(row: Leaf, node: Node, branch: Tree) -> None:
    match row:
        case ToolUse():
            tool_drawn(row, branch)
        case AskedPerson():
            question_drawn(row, branch)
        case Rest():
            branch.add(_rest(row, node))
        case _:
            branch.add(_line(row, node))


def _line(row: ModelUse | Stay | HandoffMade | Refusal | Retry, node: Node) -> Text:
    match row:
        case ModelUse():
            return model_line(row)
        case Stay():
            assert row.came is not None  # every stay but the first began with a handoff
            line = handoff_line(row.came)
            return line if row.left else line.append(_saw(node), "blue")
        case HandoffMade():
            return handoff_line(row)
        case Refusal():
            return refusal_line(row)
        case Retry():
            return retry_line(row)


def _rest(rest: Rest, node: Node) -> Text:
    hint = f"; `{typed(f'remit show {node.id} --all')}` lists them" if is_kept() else ""
    return Text(f"… {rest.text}{hint}", "dim")


def summed_up(root: Node, now: int) -> RenderableType:
    """Return two lines about a run: a sentence, and its figures (tasks, depth, refusals, time, and others that are not
    0)."""
    figures = summary(root)
    time = took(root, root.elapsed(now), now)
    parts = [count(figures.tasks, "task"), f"depth {figures.depth}", f"{figures.refused} refused", time]
    if figures.handoffs:
        parts.insert(2, count(figures.handoffs, "handoff"))
    if figures.model_calls:
        parts.append(count(figures.model_calls, "model call"))
    if figures.tool_calls:
        parts.append(count(figures.tool_calls, "tool call"))
    if figures.tokens:
        parts.append(f"{count(figures.tokens, 'token')} used")
    if figures.credits:
        parts.append(f"{money(figures.credits)} spent")
    return Group(Text(sentence(root)), Text(" · ".join(parts), "dim"))


def receipts(root: Node) -> Iterator[Text]:
    """Yield what each turn saw and why, and what was withheld; equal receipts are combined."""
    told: dict[str, tuple[list[Text], int]] = {}
    for holder, receipt in _receipts(root):
        lines = list(_receipt(holder, receipt))
        same = "\n".join(line.plain for line in lines)
        told[same] = (lines, told[same][1] + 1 if same in told else 1)
    for lines, times in told.values():
        if times > 1:
            lines[0].append(f"  ({times:,} turns)", "dim")
        yield from lines


def receipts_in_short(root: Node) -> Iterator[Text]:
    """Yield one line for each receipt, such as: coder  saw 35 tokens: spec/auth; withheld: everything else. Equal
    receipts are combined, and of many only the first ones are shown."""
    told = Counter((escaped(holder, 64), _in_short(receipt)) for holder, receipt in _receipts(root))
    for (holder, words), times in islice(told.items(), FOLD):
        turns = f"  ({times:,} turns)" if times > 1 else ""
        yield Text.assemble((holder, "bold"), (f"{turns}  {words}", "dim"))
    if len(told) > FOLD:
        yield _rest(Rest(f"and {len(told) - FOLD:,} more"), root)


def _receipts(root: Node) -> Iterator[tuple[str, Receipt]]:
    """Yield each turn's holder and receipt."""
    for node in root.walk():
        turns = [(handoff.at, handoff.sender, handoff.receipt) for handoff in node.trail]
        turns += [(retry.at, retry.agent, retry.receipt) for retry in node.retries]
        turns.sort(key=lambda turn: turn[0])
        for _, holder, receipt in [*turns, (0, node.agent, node.receipt)]:
            if receipt:
                yield holder, receipt


def _in_short(receipt: Receipt) -> str:
    seen = ", ".join(escaped(slice_.what, 60) for slice_ in saw(receipt) if slice_.why != "task")
    hidden = ", ".join(escaped(what, 60) for what, _ in withheld(receipt))
    words = f"saw {tokens(receipt):,} tokens: {seen}" if seen else "saw its task and nothing else"
    return f"{words}; withheld: {hidden}" if hidden else words


def _receipt(holder: str, receipt: Receipt) -> Iterator[Text]:
    seen = [slice_ for slice_ in saw(receipt) if slice_.why != "task"]
    word = f"saw {tokens(receipt)} tokens" if seen else "saw its task and nothing else"
    yield Text.assemble((escaped(holder, 64), "bold"), (f"  {word}", "dim"))
    for what, why, size, version, digest, trust in seen:
        where, outside = escaped(what, 60), " · from outside" if trust != "trusted" else ""
        said = f"  {why} · {size} tok · v{version} · {digest}{outside}"
        yield Text.assemble("   ", (where, "blue"), (said, "dim"))
    for what, why in withheld(receipt):
        yield Text.assemble("   ", (escaped(what, 60), "yellow"), (f"  withheld: {why}", "dim"))


def answer(root: Node) -> Text:
    """Return the result of a run, or its error."""
    if root.state == "completed":
        return Text(block(result_text(root)))
    return Text(block(root.error or root.state), "red" if root.state in _BAD else "dim")

"""`remit approvals`, `remit approve`, `remit reject`, `remit answer`: the questions of agents to people, and the
answers."""

import asyncio
import json as jsons
from collections.abc import Iterator
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, emit, now, opened_workspace, out, place_options
from remit.cli.terminal import moment
from remit.core.checks import limit as checked_limit
from remit.core.values import Json, encode, shown
from remit.engine.people import Inquiry
from remit.errors import BadInput
from remit.report import wire
from remit.report.figures import age, duration
from remit.report.printable import escaped, visible_line
from remit.report.questions import QuestionLine, shown_question, to_read, whole_question, wrapped_lines

CHANNEL: Final = "terminal"
_LISTED: Final = 2_000  # characters of a question in a list
_WORDS: Final = {"ask": "question", "hop": "approval", "tool": "approval", "review": "result", "money": "more money"}
_DIFF: Final = {"added": "green", "removed": "red", "place": "cyan"}
_COLOURS: Final = {"approved": "green", "answered": "green", "rejected": "red", "expired": "yellow"}


def approvals(
    question: str | None = None,
    *,
    decided: Annotated[bool, Parameter(negative="")] = False,
    limit: int = 100,
    place: Where = HERE,
    json: AsJson = False,
) -> None:
    """List open questions and requests for approval, the next to expire first.

    The list shortens long values and then shows no command to approve them. Show such a question in full first.

    Parameters
    ----------
    question
        Show this question in full, open or decided. Its id, or a unique prefix or suffix of it.
    decided
        List decided questions instead, newest first: who decided, when, over which channel, and why.
    limit
        Maximum number of rows.
    json
        Print JSON.
    """
    most = checked_limit(limit, most=1_000)
    with opened_workspace(place) as workspace:

        async def one(written: str) -> list[Inquiry]:
            return [await workspace.looks.question(written)]

        found = asyncio.run(
            workspace.questions.list(decided=decided, limit=most) if question is None else one(question)
        )
        where = place_options()
    at = now()
    if question is not None:
        _show(found[0], at, where, as_json=json)
    elif json:
        emit([wire.object_of(inquiry) for inquiry in found])
    elif not found:
        out().print(Text("no decisions yet" if decided else "no open questions", "dim"))
    for inquiry in found if not json and question is None else ():
        if decided:
            for text in _decided(inquiry):
                out().print(text)
        else:
            whole = print_question(out(), inquiry, at, size=_LISTED)
            out().print(Text(f"   {_hint(inquiry, at, where, whole=whole)}", "dim"))


def _show(inquiry: Inquiry, now: int, where: str, *, as_json: bool) -> None:
    """Print one question in full, and how to answer it, or the answer."""
    if as_json:
        emit(wire.object_of(inquiry))
        return
    print_question(out(), inquiry, now)
    if inquiry.state == "open":
        out().print(Text(f"   {_hint(inquiry, now, where, whole=True)}", "dim"))
    else:
        for text in _decided(inquiry):
            out().print(text)


def approve(
    question: str,
    *,
    edit: str | None = None,
    args: str | None = None,
    why: str = "",
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Approve an agent's request or result. The agent can use only what you approve.

    Parameters
    ----------
    question
        Question id from `remit approvals`, or a unique prefix or suffix of it.
    edit
        Approve this task or result instead of the agent's, or give this amount of money, such as 0.20USD.
    args
        Approve these arguments, or this result, instead of the agent's. A JSON object.
    why
        A note for the journal.
    json
        Print JSON.
    """
    if edit is not None and args is not None:
        raise BadInput("pass --edit for a task or --args for an action, not both")
    value: Json = arguments(args) if args is not None else edit
    said: dict[str, Any] = {"value": value, "why": why, "channel": CHANNEL, **act.said}
    with opened_workspace(place) as workspace:

        async def done() -> str:
            id_ = (await workspace.looks.question(question)).id
            await workspace.questions.approve(id_, **said)
            return id_

        _tell(asyncio.run(done()), "approved", as_json=json)


def reject(question: str, *, why: str, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Reject an agent's request, or send its result back. The agent gets the reason.

    Parameters
    ----------
    question
        Question id from `remit approvals`, or a unique prefix or suffix of it.
    why
        Reason; the agent gets it.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:

        async def done() -> str:
            id_ = (await workspace.looks.question(question)).id
            await workspace.questions.reject(id_, why=why, channel=CHANNEL, **act.said)
            return id_

        _tell(asyncio.run(done()), "rejected", as_json=json)


def answer(question: str, value: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Answer an agent's question.

    Parameters
    ----------
    question
        Question id from `remit approvals`, or a unique prefix or suffix of it.
    value
        The answer. If the question has choices, one of them. If it asks for money, an amount such as 0.20USD.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:

        async def done() -> str:
            id_ = (await workspace.looks.question(question)).id
            await workspace.questions.answer(id_, value, channel=CHANNEL, **act.said)
            return id_

        _tell(asyncio.run(done()), "answered", as_json=json)


def arguments(typed: str) -> Json:
    """Return the arguments of an action as a person typed them. Raise `BadInput` if they are not a JSON object."""
    try:
        given = jsons.loads(typed)
    except ValueError as error:
        raise BadInput(f'the arguments are a JSON object, such as {{"env": "prod"}}: {error}') from None
    if not isinstance(given, dict):
        raise BadInput(f'the arguments are a JSON object, such as {{"env": "prod"}}, not {shown(typed)}')
    return given  # pyright: ignore[reportUnknownVariableType]


def print_question(
    console: Console, inquiry: Inquiry, now: int, *, size: int | None = None, choices: bool = True
) -> bool:
    """Print a question with everything that its answer permits, shortened to `size` characters if `size` is set. Return
    whether nothing was left out. With `choices=False`, the list of choices is not printed."""
    left = f"{duration(inquiry.until - now)} left" if inquiry.until > now else "expired"
    head = Text.assemble(
        (inquiry.id, "bold"),
        (f"  {_WORDS.get(inquiry.kind, inquiry.kind)} for {escaped(inquiry.agent, 64)}", "cyan"),
        (f"  {age(now - inquiry.asked_at)}, {left}", "dim"),
    )
    console.print(head)
    shown = whole_question(inquiry, choices=choices) if size is None else shown_question(inquiry, size, choices=choices)
    lines = shown.lines
    if inquiry.chain and inquiry.chain != inquiry.agent:
        lines = (*lines, QuestionLine(0, "chain", visible_line(inquiry.chain)))
    for line in lines:
        # Wrap here, not in the terminal: a part of an agent's line must not look like one of our lines.
        for part in wrapped_lines(line, console.width) if console.is_terminal else [str(line)]:
            console.print(Text(f" {part}", _DIFF.get(line.mark, "")), soft_wrap=True)
    return shown.whole


def _hint(inquiry: Inquiry, now: int, where: str, *, whole: bool) -> str:
    """Return the hint below a question: how to answer it; how to read it in full, if a part is hidden (`whole` is
    False); or that it has expired. `where` has the options of the store."""
    if inquiry.until <= now:
        return f"this question expired at {moment(inquiry.until)} and can no longer be answered"
    return how_to(inquiry, where) if whole else f"shortened; show the whole question: {to_read(inquiry)}{where}"


def how_to(inquiry: Inquiry, where: str) -> str:
    """Return the command that answers a question, or the commands that approve and reject it. `where` is appended to
    each: the options of the store."""
    if inquiry.kind == "ask":
        word = "CHOICE" if inquiry.choices else "ANSWER"
        return f"remit answer {inquiry.id} {word}{where}"
    edit = {"review": " [--edit TEXT]", "money": " [--edit AMOUNT]"}.get(inquiry.kind, "")
    return f"remit approve {inquiry.id}{edit}{where}, or: remit reject {inquiry.id} --why ...{where}"


def _decided(one: Inquiry) -> Iterator[Text]:
    """Yield the lines of a decided question: who decided, over which channel, when, and why."""
    who = f" by {escaped(one.by, 64)}" if one.by else ""
    where = f" over {escaped(one.channel, 40)}" if one.channel else ""
    when = f" at {moment(one.answered_at)}" if one.answered_at is not None else ""
    state = f"{one.state}{', used' if one.used else ''}"
    yield Text.assemble(
        (one.id, "bold"), (f"  {state}", _COLOURS.get(one.state, "dim")), (f"{who}{where}{when}", "dim")
    )
    yield Text.assemble(
        ("   ", ""), (escaped(one.agent, 64), "cyan"), f"  {escaped(f'{one.text}{_decision(one)}', 400)}"
    )


def _decision(inquiry: Inquiry) -> str:
    value = inquiry.value if isinstance(inquiry.value, str) or inquiry.value is None else encode(inquiry.value)
    return (f" → {value}" if value else "") + (f" ({inquiry.why})" if inquiry.why else "")


def _tell(question: str, state: str, *, as_json: bool) -> None:
    if as_json:
        emit({"question": question, "state": state})
    else:
        out().print(Text(f"question {question} is {state}"))

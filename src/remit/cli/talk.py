"""A model's conversation in a terminal."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from remit.cli.terminal import colour
from remit.report.figures import count, duration, money
from remit.report.looks import MODEL, TOOL, mark
from remit.report.printable import block, escaped
from remit.report.talk import TalkLine, TaskTalk

_LONG: Final = 4_000  # characters of one text; `--all` prints the rest
_NAME: Final = 64


def print_talk(console: Console, talk: TaskTalk, *, whole: bool) -> None:
    """Print a conversation: messages, tool calls and their results."""
    about = f"  {escaped(talk.about, 60)}"
    console.print(Text.assemble((escaped(talk.agent, _NAME), "bold"), about, (f"  {talk.task}", "dim")))
    for line in talk.lines:
        console.print(_indented(console, _head(line), 2))
        for text in _words(line, whole=whole):
            console.print(_indented(console, text, 4))


def _indented(console: Console, text: Text, columns: int) -> RenderableType:
    """Return an indented text. In a terminal long lines are wrapped within the margin; in a pipe they stay whole."""
    if console.is_terminal:
        return Padding(text, (0, 0, 0, columns), expand=False)
    margin = " " * columns
    return Text(margin + text.plain.replace("\n", f"\n{margin}"), text.style)


def _head(line: TalkLine) -> Text:
    """Return a head such as: ◆ openai:gpt-5 86 tokens."""
    if line.who == "restart":
        return Text("-- restarted: the earlier conversation cannot be continued", "bold")
    if line.who == "prompt":
        return Text("> told (lost)" if line.lost else "> told", "dim")
    bad = line.outcome != "done"
    sign, look = (mark(line.outcome), colour(line.outcome)) if bad else (MODEL if line.who == "model" else TOOL, "blue")
    head = Text.assemble((f"{sign} ", look), (escaped(line.name, _NAME) or line.who, look if bad else "bold"))
    figures = [count(line.tokens, "token") if line.tokens else "", money(line.credits) if line.credits else ""]
    figures += [duration(line.elapsed) if line.elapsed else "", line.outcome if bad and line.who == "tool" else ""]
    figures += ["lost"] if line.lost else []
    return head.append("".join(f"  {figure}" for figure in figures if figure), "dim")


def _words(line: TalkLine, *, whole: bool) -> Iterator[Text]:
    look = "dim" if line.who == "prompt" else "" if line.outcome == "done" else colour(line.outcome)
    if line.words:
        yield Text(_cut(line.words, whole=whole), look)
    if line.place:
        yield Text(f"at {escaped(line.place, _NAME)}", look)
    for call in line.calls:
        yield Text(f"→ {escaped(call.tool, _NAME)}({_cut(call.given, whole=whole)})", "cyan")


def _cut(text: str, *, whole: bool) -> str:
    if whole or len(text) <= _LONG:
        return block(text)
    return f"{block(text[:_LONG])}\n… {len(text) - _LONG:,} more characters; --all prints them"

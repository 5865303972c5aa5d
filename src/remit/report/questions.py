"""The questions of tasks to people, with their answers, and a question as people see it, in a terminal, a chat and on
a page: people approve exactly what is shown.

Agents choose the text and the arguments, so these must not hide anything. Each value is shortened separately, the names
of all arguments stay, every line of an agent is indented below one of remit, and invisible characters are escaped.
`whole` says that nothing is left out; otherwise the reader is not offered to approve.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Final, Literal

from remit.core.events import Event, read
from remit.core.kinds.people import QuestionAnswered, QuestionAsked
from remit.core.question import Inquiry
from remit.core.records import NamedTuple
from remit.core.times import iso
from remit.core.values import EXCERPT_NOTE, Json, encode, excerpt
from remit.report.printable import columns_of, visible_line

ASKING: Final = frozenset(("question.asked", "question.answered", "question.used"))


@dataclass(slots=True)
class AskedPerson:
    """A question to a person, from the journal. `kind` is that of the question; `shows` is the action that an
    approval permits. `state` is open until it is answered."""

    id: str
    kind: str
    text: str
    agent: str
    asked_at: int
    until: int
    choices: tuple[str, ...] = ()
    shows: dict[str, Json] = field(default_factory=dict[str, Json])
    state: str = "open"
    by: str = ""
    channel: str = ""
    why: str = ""
    value: Json = None
    answered_at: int | None = None
    used: bool = False

    @property
    def is_open(self) -> bool:
        return self.state == "open"


def take(questions: list[AskedPerson], event: Event) -> None:
    """Apply an event of `ASKING` to a task's questions."""
    if event.kind == "question.asked":
        questions.append(_asked_person(event))
        return
    for question in questions:
        if question.id == event.data["question"]:
            if event.kind == "question.used":
                question.used = True
            else:
                _answer(question, event)


def asked_in(events: Iterable[Event]) -> list[AskedPerson]:
    """Return the questions in the events of a task, in order."""
    questions: list[AskedPerson] = []
    for event in events:
        if event.kind in ASKING:
            take(questions, event)
    return questions


def _asked_person(event: Event) -> AskedPerson:
    data = read(event, QuestionAsked)
    return AskedPerson(
        id=data["question"],
        kind=data["kind"],
        text=data["text"],
        agent=event.agent,
        asked_at=event.at,
        until=data["until"],
        choices=tuple(data["choices"]),
        shows=data.get("shows", {}),
    )


def _answer(question: AskedPerson, event: Event) -> None:
    data = read(event, QuestionAnswered)
    question.state, question.by, question.channel = data["state"], data["by"], data["channel"]
    question.why, question.value, question.answered_at = data["why"], data.get("value"), event.at


# -- as people see them --------------------------------------------------------------------------------------


INDENT: Final = "  "
_BAR: Final = "| "  # before each line of a multi-line text
_LEVELS: Final = (1_000, 400, 150, 60, 24, 0)  # limits for one value, tried until the question fits
_LINE: Final = 40  # characters of room per allowed line: a thousand empty lines would hide text as well
_NAME: Final = 60
_SMALL_PARTS, _SMALL_TEXT = 12, 60  # values that fit on the line of their name
_FLAT: Final = 50  # items of a list on one line, unless it is shown in full
_SUMMARY: Final = 300  # characters of a summary whose details follow below
_FORMS: Final = frozenset("_-.:*")


DiffMark = Literal["", "added", "removed", "place"]


class QuestionLine(NamedTuple):
    """One line: `name` is its subject, `text` its value or one line of it. Both are safe to show. `mark` says what the
    line is in a diff."""

    depth: int
    name: str
    text: str
    mark: DiffMark = ""

    @property
    def is_quoted(self) -> bool:
        """Whether it is one of several lines of a text."""
        return not self.name and self.text.startswith(_BAR)

    def __str__(self) -> str:
        named = f"{self.name}:" if self.name else ""
        return f"{INDENT * (self.depth + 1)}{named}{' ' if named and self.text else ''}{self.text}"


class ShownQuestion(NamedTuple):
    """A question as lines; `whole` says that nothing is left out."""

    lines: tuple[QuestionLine, ...]
    whole: bool

    @property
    def text(self) -> str:
        return "\n".join(map(str, self.lines))

    @property
    def has_quotes(self) -> bool:
        """Whether a text of several lines is in it, which people read in a monospace font."""
        return any(line.is_quoted for line in self.lines)


def asked_by(inquiry: Inquiry) -> str:
    """Return the origin of a question: asked by lead > coder, open until 2027-01-15T09:00:00.000000Z."""
    return f"asked by {visible_line(inquiry.chain or inquiry.agent)}, open until {iso(inquiry.until)}"


def to_read(inquiry: Inquiry) -> str:
    """Return the command that shows the whole question."""
    return f"remit approvals {inquiry.id}"


def whole_question(inquiry: Inquiry, *, choices: bool = True) -> ShownQuestion:
    """Return the whole question as lines."""
    return _shown_question(inquiry, None, None, choices=choices)


def shown_question(
    inquiry: Inquiry, size: int, *, choices: bool = True, length: Callable[[str], int] = len
) -> ShownQuestion:
    """Return a question in at most `size` characters, as `length` counts them."""
    room = size // _LINE

    def fits(lines: Iterable[QuestionLine]) -> bool:
        text = "\n".join(map(str, lines))
        return length(text) <= size and text.count("\n") < room

    made = ShownQuestion((), whole=False)
    for most in chain((size,), (level for level in _LEVELS if level < size)):
        made = _shown_question(inquiry, most, room + 1, choices=choices)
        if fits(made.lines):
            return made
    last = QuestionLine(0, "", "[the rest is left out]")
    lines = [*made.lines]
    while lines and not fits((*lines, last)):
        lines.pop()
    return ShownQuestion((*lines, last), whole=False)


def wrapped_lines(line: QuestionLine, columns: int) -> list[str]:
    """Return a line as several lines with its indent, so that no part of it looks like a line of remit."""
    before = INDENT * (line.depth + 1)
    bar = _BAR if line.is_quoted else ""
    room = max(columns - len(before) - len(INDENT) - len(bar), 8)
    first, *others = _broken(str(line)[len(before) :], room)
    return [f"{before}{first}", *(f"{before}{bar or INDENT}{other}" for other in others)]


def _broken(text: str, columns: int) -> list[str]:
    parts: list[str] = []
    part, used = "", 0
    for char in text:
        width = columns_of(char)
        if used + width > columns:
            parts.append(part)
            part, used = "", 0
        part += char
        used += width
    return [*parts, part]


def _shown_question(inquiry: Inquiry, most: int | None, room: int | None, *, choices: bool) -> ShownQuestion:
    lines = _Lines(most, room)
    if inquiry.kind == "ask":
        lines.put(0, "", inquiry.text, quotes=False)
    else:  # a summary: its details follow, value by value
        lines.add(0, "", visible_line(" ".join(excerpt(inquiry.text, _SUMMARY).split())))
    if choices and inquiry.choices:
        lines.add(0, "choices", "")
        for number, choice in enumerate(inquiry.choices, 1):
            lines.put(1, str(number), choice, quotes=False)
    if inquiry.default is not None:
        lines.put(0, "if nobody answers", inquiry.default, quotes=False)
    for name, value in inquiry.shows.items():
        if name == "arguments" and isinstance(value, dict):
            lines.arguments(value)
        elif name != "chain" and value not in ("", [], {}, None):  # the chain is in our own line
            lines.put(0, visible_line(name), value, quotes=False)
    return ShownQuestion(tuple(lines.lines), whole=not lines.left_out)


class _Lines:
    """Writes values as lines, with a limit on the characters of each text and on the number of lines."""

    def __init__(self, most: int | None, room: int | None) -> None:
        self.lines: list[QuestionLine] = []
        self.left_out = False
        self._most = most
        self._room = room

    def add(self, depth: int, name: str, text: str, mark: DiffMark = "") -> None:
        if self._is_full:
            self.left_out = True
        else:
            self.lines.append(QuestionLine(depth, name, text, mark))

    @property
    def _is_full(self) -> bool:
        return self._room is not None and len(self.lines) >= self._room

    def arguments(self, given: dict[str, Json]) -> None:
        """Write arguments, each with its name."""
        self.add(0, "arguments", "" if given else "none")
        for name, value in given.items():
            self.put(1, self._name(name), value)

    def put(self, depth: int, name: str, value: Json, *, quotes: bool = True) -> None:
        """Write a value with its name. Without `quotes`, write a text without quotation marks, and a list of plain
        words as one line with commas."""
        if isinstance(value, str):
            self._put_text(depth, name, value, quotes=quotes)
        elif not quotes and isinstance(value, list) and all(map(_is_name, value)):
            self._put_text(depth, name, ", ".join(map(str, value)), quotes=False)
        elif not isinstance(value, list | dict) or _small(value) <= _SMALL_PARTS:
            self.add(depth, name, visible_line(encode(value)))
        elif self._most == 0:
            self.left_out = True
            self.add(depth, name, f"[{len(value):,} parts]")
        elif isinstance(value, list) and (self._most is None or len(value) <= _FLAT) and all(map(_is_flat, value)):
            self._put_text(depth, name, encode(value), quotes=False)
        else:
            self.add(depth, name, "")
            self._put_parts(depth + 1, value)

    def _put_text(self, depth: int, name: str, text: str, *, quotes: bool) -> None:
        short = self._shortened(text)
        if "\n" not in short:
            self.add(depth, name, visible_line(encode(short) if quotes else short))
            return
        if name:
            self.add(depth, name, "")
            depth += 1
        marks = diff_mark if is_diff(text) else _no_mark
        for line in short.split("\n"):
            self.add(depth, "", f"{_BAR}{visible_line(line)}", marks(line))

    def _put_parts(self, depth: int, value: list[Json] | dict[str, Json]) -> None:
        keys = [*value] if isinstance(value, dict) else []
        few = len(value) if self._most is None else min(len(value), 4 + self._most // 10)
        head = few - few // 3
        for at in chain(range(head), range(len(value) - few // 3, len(value))):
            if at == head + len(value) - few and few < len(value):
                self.left_out = True
                self.add(depth, "", f"[{len(value) - few:,} more left out]")
            if self._is_full:
                self.left_out = True
                return
            if isinstance(value, dict):
                self.put(depth, self._name(keys[at]), value[keys[at]])
            else:
                self.put(depth, str(at), value[at])

    def _name(self, name: str) -> str:
        if len(name) <= _NAME or self._most is None:
            return visible_line(name)
        self.left_out = True
        return visible_line(f"{name[:_NAME]}…")

    def _shortened(self, text: str) -> str:
        """Return the beginning and the end of a text, with a note of how much is left out."""
        most = self._most
        if most is None or len(text) <= most + EXCERPT_NOTE:
            return text
        self.left_out = True
        return excerpt(text, most) if most else f"[{len(text):,} characters]"


def is_diff(text: str) -> bool:
    """Whether a text of several lines is a unified diff: it names the old and the new file, or a place with @@."""
    lines = text.split("\n")
    named = any(old.startswith("--- ") and new.startswith("+++ ") for old, new in pairwise(lines))
    return named or any(line.startswith("@@ -") for line in lines)


def diff_mark(line: str) -> DiffMark:
    """Return the kind of a line in a diff, such as added or removed."""
    if line.startswith(("@@", "diff ", "index ", "--- ", "+++ ")):
        return "place"
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else ""


def _no_mark(_line: str) -> DiffMark:
    return ""


def _is_name(value: Json) -> bool:
    return isinstance(value, str) and bool(value) and all(char.isalnum() or char in _FORMS for char in value)


def _is_flat(value: Json) -> bool:
    """Whether a value is neither a list nor an object nor a text of several lines."""
    return not isinstance(value, list | dict | str) or (isinstance(value, str) and _small(value) == 1)


def _small(value: Json, parts: int = 0) -> int:
    """Return `parts` plus the number of parts of a value. Stop counting when they do not fit on a line; a text that
    does not fit counts as too many."""
    parts += 1
    if isinstance(value, str):
        return parts if len(value) <= _SMALL_TEXT and "\n" not in value else _SMALL_PARTS + 1
    inside: Iterable[Json] = ()
    if isinstance(value, list):
        inside = value
    elif isinstance(value, dict):
        inside = chain.from_iterable(value.items())
    for one in inside:
        if parts > _SMALL_PARTS:
            break
        parts = _small(one, parts)
    return parts

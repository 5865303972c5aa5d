"""Reading a file by its description: invalid TOML, unknown tables and keys, wrong kinds. All problems are reported,
each with its line and what to do."""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

from remit.config.description import SCRIPT_LINE, TABLES
from remit.config.kinds import Setting, TableKind, kind_name
from remit.config.places import text_in
from remit.core.patterns import pattern
from remit.core.toolgroups import expanded, own_groups
from remit.core.values import shown
from remit.errors import BadInput

# -- line numbers, which tomllib does not report -------------------------------------------------------------


KeyPath: TypeAlias = tuple[str, ...]  # of a setting: agents, coder, model
Lines: TypeAlias = Mapping[KeyPath, int]

# Strings of all four kinds, comments, line ends, brackets, and any other run of characters.
_TOKEN: Final = pattern(
    r'(?s)"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|\n"
    r"|[\[\]{}=]"
    r"|[^\s\[\]{}=\"'#]+"
)
_AT: Final = pattern(r"\(at (?:line (\d{1,9}), column \d{1,9}|end of document)\)")


def lines_of(text: str) -> Lines:
    """Return the line of every table and key of a text that tomllib can parse. The first `[[x]]` is x.0."""
    return _Scan().of(text)


def line_of(lines: Lines, path: KeyPath) -> int:
    """Return the line of a setting, or of its table if it has none of its own."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 1)


def trouble(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, str]:
    """Return the line and the message of a tomllib error, which combines both in its text."""
    said = str(error)
    place = _AT.search(said)
    last = max(len(text.splitlines()), 1)
    number = min(int(place[1]), last) if place and place[1] else last
    return number, _AT.sub("", said).rstrip()


class _Scan:
    """Finds the line of each table and key in one pass over a text. It collects the words of a header or key. In a
    value, it only counts brackets, to find the end of the value."""

    def __init__(self) -> None:
        self.found: dict[KeyPath, int] = {}
        self._table: KeyPath = ()
        self._many: dict[KeyPath, int] = {}
        self._words: list[str] = []
        self._depth: int | None = None  # depth of brackets in a value; None before it

    def of(self, text: str) -> Lines:
        line = 1
        for token in _TOKEN.finditer(f"{text}\n".replace("\r\n", "\n")):
            word = token[0]
            if not word.startswith("#"):
                self._take(word, line)
            line += word.count("\n")
        return self.found

    def _take(self, word: str, line: int) -> None:
        if self._depth is not None:
            self._depth += (word in "[{") - (word in "]}")
            if word == "\n" and self._depth <= 0:
                self._depth = None
        elif word == "\n":
            self._header(line)
        elif word == "=":
            self._note(self._table, self._words, line)
            self._words, self._depth = [], 0
        else:
            self._words.append(word)

    def _header(self, line: int) -> None:
        words, self._words = self._words, []
        if not words:
            return
        many = words[:2] == ["[", "["]
        path = self._note((), words[2:-2] if many else words[1:-1], line)
        if many:
            count = self._many.get(path, 0)
            self._many[path] = count + 1
            path = (*path, str(count))
            self.found[path] = line
        self._table = path

    def _note(self, table: KeyPath, words: Iterable[str], line: int) -> KeyPath:
        """Record a key and the tables that it implies. Return its path."""
        path = (*table, *_parts("".join(words)))
        for end in range(len(table) + 1, len(path) + 1):
            self.found.setdefault(path[:end], line)
        return path


def _parts(key: str) -> Iterable[str]:
    """Yield the parts of a key as TOML does, with dots and quotes."""
    inside: Any = tomllib.loads(f"{key} = 0")
    while isinstance(inside, dict):
        ((part, inside),) = cast("dict[str, Any]", inside).items()
        yield part


# -- problems ------------------------------------------------------------------------------------------------


LISTED: Final = 50  # problems that are listed
_COMPARED: Final = 20_000  # comparisons of wrong with known names, for hints
_NAMED: Final = 40  # names that are listed in one sentence


class Problem(NamedTuple):
    """One problem of a file. A warning means that something is missing on this machine; the file itself is valid."""

    file: str
    line: int
    setting: str
    sentence: str
    warning: bool = False

    @property
    def text(self) -> str:
        """The problem as text: agents.coder.modle: there is no such setting; did you mean 'model'?"""
        return f"{self.setting}: {self.sentence}" if self.setting else self.sentence

    def __str__(self) -> str:
        """Return the problem with its place: remit.toml:7: agents.coder.modle: there is no such setting; did you mean
        'model'?"""
        return f"{self.file}:{self.line}: {self.text}"


class Problems:
    """The list of problems, which grows while a file is read."""

    def __init__(self, file: str, lines: Lines) -> None:
        self.found: list[Problem] = []
        self.file = file
        self._lines = lines
        self._compared = 0

    def at(self, line: int, sentence: str) -> None:
        self.found.append(Problem(self.file, line, "", sentence))

    def add(self, path: KeyPath, sentence: str, *, warning: bool = False) -> None:
        self.found.append(Problem(self.file, line_of(self._lines, path), dotted(path), sentence, warning))

    def near(self, word: str, known: Collection[str], otherwise: str = "") -> str:
        """Return "; did you mean 'model'?", or `otherwise`. A wrong name is compared with all known names, so only the
        first wrong names get a hint if there are very many."""
        self._compared += len(known)
        return (near(word, known) or otherwise) if self._compared <= _COMPARED else ""

    def near_or_all(self, word: str, known: Collection[str]) -> str:
        """Return "; did you mean 'model'?", or else "; there are agent and model"."""
        hint = self.near(word, known)
        return hint if hint or self._compared > _COMPARED else f"; there are {listing(known)}"


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raise `BadInput` with all problems at once, if there are any."""
    listed = in_order(problems)
    if listed:
        raise BadInput("\n".join([*map(str, listed[:LISTED]), *more_than(listed)]))


def more_than(problems: Sequence[Problem]) -> list[str]:
    """Return the line "and 9,950 more" if there are more problems than are listed."""
    return [f"and {len(problems) - LISTED:,} more"] if len(problems) > LISTED else []


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems by file and line, each once."""
    return sorted(set(problems), key=lambda one: (one.file, one.line, one.setting, one.sentence))


def dotted(path: KeyPath) -> str:
    """Return a path as text: agents.coder.model, or agents."my coder".model."""
    return ".".join(part if part.replace("-", "").replace("_", "").isalnum() else f'"{part}"' for part in path)


def near(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'model'?", or ""."""
    close = get_close_matches(word[:100], [*known], 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def listing(known: Iterable[str]) -> str:
    """Return the names as "a, b and c", or "none" if there are none. Of more than 40 names, the first 40 are named and
    the rest is counted."""
    *some, last = sorted(known) or ["none"]
    if len(some) >= _NAMED:
        some, last = some[:_NAMED], f"{len(some) + 1 - _NAMED:,} more"
    return f"{', '.join(some)} and {last}" if some else last


# -- reading by the description ------------------------------------------------------------------------------


_MOST: Final = 10_000  # settings and items of lists
_SPELLED: Final = 100_000  # tool names after the expansion of groups
_DEEPEST: Final = 50

_NAMING_TOOLS: Final = ("tools", "deny", "approve_tools")


class Document(NamedTuple):
    """The content of a file, and its problems so far."""

    file: Path
    tables: dict[str, Any]
    problems: Problems


def document(file: Path) -> Document:
    """Return a team's file. Raise `BadInput` if it cannot be read; everything else is reported among its problems."""
    read = _parsed(file)
    _strange(read.problems, (), read.tables, TABLES, "table")
    _expand_groups(read)
    for name, kind in TABLES.items():
        if name in read.tables:
            _table(read.problems, (name,), read.tables[name], kind)
    if not read.tables.get("agents") and not read.problems.found:
        read.problems.add(("agents",), 'there are no agents yet; begin with [agents.helper] and model = "..."')
    return read


def script(file: Path) -> Document:
    """Return a script: for each agent a list of lines. Raise `BadInput` if it cannot be read; everything else is
    reported among its problems."""
    read = _parsed(file)
    for agent, lines in read.tables.items():
        if not isinstance(lines, list):
            read.problems.add((agent,), f"a script has a list of lines for each agent; write [[{agent}]]")
            continue
        for number, line in enumerate(cast("list[object]", lines)):
            _one(read.problems, (agent, str(number)), line, SCRIPT_LINE)
    return read


def right(tables: Mapping[str, Any], problems: Problems) -> bool:
    """Whether the file has content and only warnings so far."""
    return bool(tables) and all(one.warning for one in problems.found)


# -- inside --------------------------------------------------------------------------------------------------------


def _parsed(file: Path) -> Document:
    try:
        text = text_in(file)
    except FileNotFoundError:
        raise BadInput(f"there is no {file}; `remit init` makes a team to begin with") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, said = trouble(error, text)
        problems = Problems(str(file), {})
        problems.at(line, f"this is not TOML: {said}")
        return Document(file, {}, problems)
    except RecursionError:
        raise BadInput(f"{file} is nested too deeply to be read") from None
    _refuse_too_much(file, tables)
    return Document(file, tables, Problems(str(file), lines_of(text)))


def _refuse_too_much(file: Path, tables: dict[str, Any]) -> None:
    """Raise `BadInput` for a file with too many settings: each one is looked up and its line is searched."""
    number, level = 0, list[object]([tables])
    for _ in range(_DEEPEST):
        level = [each for one in level for each in _within(one)]
        number += len(level)
        if number > _MOST:
            raise BadInput(f"{file} has more than {_MOST:,} settings; a team of that size is made by a program")
        if not level:
            return
    raise BadInput(f"{file} is nested too deeply to be read")


def _within(given: object) -> list[object]:
    if isinstance(given, dict):
        return [*cast("dict[str, object]", given).values()]
    return cast("list[object]", given) if isinstance(given, list) else []


def _expand_groups(read: Document) -> None:
    """Replace the file's own tool groups by their members wherever tools are named, before anything else is read."""
    given = read.tables.get("groups")
    own: dict[str, frozenset[str]] = {}
    for name, members in cast("dict[str, object]", given).items() if isinstance(given, dict) else ():
        try:
            own |= own_groups({name: members})
        except BadInput as error:
            if isinstance(members, list) or members == {}:  # other kinds are reported when the table is read
                read.problems.add(("groups", name), str(error))
    number = 0
    for table, key in _naming_tools(read.tables) if own else ():
        table[key] = expanded(table[key], own)
        number += len(table[key])
        if number > _SPELLED:
            raise BadInput(f"{read.file} names more than {_SPELLED:,} tools once its groups are spelled out")


def _naming_tools(tables: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the tables that name tools, each with its key."""
    agents = tables.get("agents")
    several = [*cast("dict[str, object]", agents).values()] if isinstance(agents, dict) else []
    for one in (*several, tables.get("bounds")):
        table = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        for key in _NAMING_TOOLS:
            if isinstance(table.get(key), list | str):
                yield table, key


def _table(problems: Problems, path: KeyPath, given: object, kind: TableKind) -> None:
    if kind.listed:
        _list(problems, path, given, kind)
        return
    if not kind.many:
        _one(problems, path, given, kind)
        return
    if isinstance(given, list):
        problems.add(path, f"this is a list; write [{dotted(path)}.NAME] and its settings below for each")
        return
    if not isinstance(given, dict):
        _no_table(problems, path, given)
        return
    for name, one in cast("dict[str, object]", given).items():
        _one(problems, (*path, name), one, kind)


def _list(problems: Problems, path: KeyPath, given: object, kind: TableKind) -> None:
    if not isinstance(given, list):
        problems.add(path, f"this is a list of tables; write [[{dotted(path)}]] and its settings below for each")
        return
    for number, one in enumerate(cast("list[object]", given)):
        _one(problems, (*path, str(number)), one, kind)


def _no_table(problems: Problems, path: KeyPath, given: object) -> None:
    problems.add(path, f"this is a table; write its settings below [{dotted(path)}], not {shown(given)}")


def _one(problems: Problems, path: KeyPath, given: object, kind: TableKind) -> None:
    if kind.short is not None and not isinstance(given, dict):
        _value(problems, path, given, kind.short)
        return
    if not isinstance(given, dict):
        _no_table(problems, path, given)
        return
    table, before = cast("dict[str, object]", given), len(problems.found)
    _strange(problems, path, table, kind.settings, "setting")
    for name in kind.settings.keys() & table.keys():
        _setting(problems, (*path, name), table[name], kind.settings[name])
    for name in kind.needs:
        if name not in table:
            problems.add(path, f"{name} is missing: {kind_name(kind.settings[name])}")
    if kind.one_of:
        _exactly_one(problems, path, table, kind)
    if kind.judge is not None and len(problems.found) == before:
        try:
            kind.judge(table)
        except BadInput as no:
            problems.add(path, str(no))


def _setting(problems: Problems, path: KeyPath, given: object, setting: Setting | TableKind) -> None:
    if isinstance(setting, TableKind):
        _table(problems, path, given, setting)
    else:
        _value(problems, path, given, setting)


def _strange(problems: Problems, path: KeyPath, given: dict[str, Any], known: Mapping[str, object], word: str) -> None:
    for name in given:
        if name not in known:
            # People write settings of the whole team at the top of the file, or for one agent.
            hint = _elsewhere(name) if path[:1] in ((), ("agents",)) else ""
            hint = hint or problems.near_or_all(name, known)
            problems.add((*path, name), f"there is no such {word}{hint}")


def _elsewhere(name: str) -> str:
    """Return "; it belongs below [policy]" for a setting that another table has, or ""."""
    tables = [f"[{one}]" for one, kind in TABLES.items() if name in kind.settings and not (kind.many or kind.listed)]
    return f"; it belongs below {' or '.join(tables)}" if tables else ""


def _value(problems: Problems, path: KeyPath, given: object, setting: Setting) -> None:
    if not setting.kind.fits(given):
        hint = problems.near(given, setting.kind.words) if isinstance(given, str) else ""
        problems.add(path, f"this is {setting.kind.called}, not {shown(given)}{hint}")
        return
    if setting.judge is not None:
        try:
            setting.judge(given)
        except BadInput as no:
            problems.add(path, str(no).removeprefix(f"{path[-1]}: "))


def _exactly_one(problems: Problems, path: KeyPath, given: dict[str, object], kind: TableKind) -> None:
    """Check that exactly one of the keys in `one_of` is there, and of the other keys only those that go with it."""
    said = [name for name in kind.one_of if name in given]
    words = " or ".join(kind.one_of)
    if not said and not any(problems.near(name, kind.one_of) for name in given if name not in kind.settings):
        problems.add(path, f"set one of {words}")
    for more in said[1:]:
        problems.add((*path, more), f"there is {said[0]} already; set only one of {words}")
    way = said[0] if said else ""
    for name, setting in kind.settings.items():
        if name in given and way and setting.ways and way not in setting.ways:
            wanted = " or ".join(setting.ways)
            problems.add((*path, name), f"this is for {kind.noun} with a {wanted}, and this one has a {way}")

"""Where words leave: docs/threats.md lists every module that writes to a terminal, a log, a file, a server or a
program, or tells a model its task, and what lets the words out there. A new one is found here."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import remit

SOURCE = Path(remit.__file__).parent
THREATS = Path(__file__).parents[1] / "docs" / "threats.md"
HEAD = "| words go to | what lets them out |"
LEVELS = frozenset(("debug", "info", "warning", "error", "exception", "critical"))
STREAMS = frozenset(("stdout", "stderr"))
WRITERS = frozenset(("write_text", "write_bytes", "fdopen", "write_beside"))
CLIENTS = frozenset(("httpcore", "httpx", "httpx2", "aiohttp", "urllib3", "requests", "smtplib", "http"))
SERVERS = frozenset(("start_server", "start_unix_server", "open_connection", "create_server", "create_connection"))
STARTERS = frozenset(("subprocess_exec", "subprocess_shell", "create_subprocess_exec", "create_subprocess_shell"))
STARTERS |= frozenset(("Popen", "posix_spawn", "execv", "execve", "execvp", "execvpe"))
# Which rows may list a module of each kind, by how they begin.
ROWS = {
    "terminal": ("a person", "a terminal", "a file"),
    "stream": ("a terminal", "a file"),
    "log": ("the log",),
    "file": ("a file", "the journal"),
    "network": ("a chat", "a server", "a model"),
    "program": ("a program",),
    "task": ("a model", "a program", "a chat", "a server"),
}


def kinds(tree: ast.AST) -> Iterator[str]:
    """Name the ways in which words leave a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if CLIENTS & {name.partition(".")[0] for name in names} or "urllib.request" in names:
                yield "network"
            if "subprocess" in names:
                yield "program"
        elif isinstance(node, ast.Attribute):
            yield from _attribute(node)
        elif isinstance(node, ast.Call):
            yield from _call(node)


def _attribute(node: ast.Attribute) -> Iterator[str]:
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    if node.attr in SERVERS:
        yield "network"
    if node.attr in STARTERS or (owner, node.attr) == ("os", "system"):
        yield "program"
    if node.attr == "O_CREAT":
        yield "file"
    if owner == "turn" and node.attr in ("task", "prompt"):
        yield "task"


def _call(node: ast.Call) -> Iterator[str]:
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    owner = called.value.id if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) else ""
    if name in ("print", "Console"):
        yield "terminal"
    written = [called.value] if isinstance(called, ast.Attribute) and name in ("write", "writelines") else []
    if any(map(_is_stream, [*written, *node.args])):
        yield "stream"  # past the console
    if name in LEVELS and owner.lower().strip("_") in ("log", "logger", "logging"):
        yield "log"
    if name in WRITERS or (name == "open" and _writes(node)):
        yield "file"
    if name == "post" or (name == "import_module" and CLIENTS & set(_texts(node))):
        yield "network"


def _is_stream(node: ast.expr) -> bool:
    """Whether it is sys.stdout or sys.stderr."""
    owner = node.value.id if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
    return owner == "sys" and isinstance(node, ast.Attribute) and node.attr in STREAMS


def _writes(node: ast.Call) -> bool:
    """Whether a file is opened with a mode that writes."""
    modes = (text for text in _texts(node) if re.fullmatch(r"[rwxabt+]{1,4}", text))
    return any(set(mode) & set("wxa+") for mode in modes)


def _texts(node: ast.Call) -> list[str]:
    given = [*node.args, *(word.value for word in node.keywords)]
    return [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def modules() -> dict[str, set[str]]:
    """Each module in which words leave, and how."""
    found: dict[str, set[str]] = {}
    for file in SOURCE.rglob("*.py"):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if name.startswith(("testing", "config.templates")):  # for tests, and what is copied into a team's folder
            continue
        if how := set(kinds(ast.parse(file.read_text()))):
            found[name] = how
    return found


def rows() -> list[list[str]]:
    lines = THREATS.read_text().split(HEAD)[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def listed(row: list[str]) -> list[str]:
    """The modules of a row; the last part of one may stand for all of a package."""
    return [
        path.removesuffix(".py").removeprefix("remit/").replace("/", ".")
        for path in re.findall(r"`([\w/*.]+)`", row[3])
    ]


def covers(pattern: str, module: str) -> bool:
    return module.startswith(pattern[:-1]) if pattern.endswith(".*") else module == pattern


@pytest.mark.rule("words.listed")
def test_the_table_of_threats_lists_every_module_in_which_words_leave_and_no_other():
    found = modules()
    missing = [
        f"{module} ({kind})"
        for module, how in sorted(found.items())
        for kind in sorted(how)
        if not any(
            covers(pattern, module) and not (kind == "stream" and "*" in pattern)
            for row in rows()
            if row[0].startswith(ROWS[kind])
            for pattern in listed(row)
        )
    ]
    assert missing == []
    stale = [one for row in rows() for one in listed(row) if not any(covers(one, module) for module in found)]
    assert stale == []


@pytest.mark.rule("words.listed")
def test_every_row_names_the_function_that_lets_the_words_out():
    for row in rows():
        functions = re.findall(r"`([a-z]\w*(?:\.\w+)+)`", row[1])
        assert functions, row[0]
        for path in functions:
            assert _is_there(path), path


def _is_there(path: str) -> bool:
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: object = import_module(".".join(["remit", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found is not None
    return False


@pytest.mark.rule("words.listed")
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("print(text)", "terminal"),
        ("console.print(text)", "terminal"),
        ("sys.stderr.write(text)", "stream"),
        ("csv.writer(sys.stdout)", "stream"),
        ("_log.warning('%s', text)", "log"),
        ("path.write_text(text)", "file"),
        ("path.open('x', encoding='utf-8')", "file"),
        ("open(path, mode='wb')", "file"),
        ("import httpx", "network"),
        ("import_module('httpx')", "network"),
        ("asyncio.start_server(serve)", "network"),
        ("from subprocess import run", "program"),
        ("loop.subprocess_exec(lambda: it, *argv)", "program"),
        ("ask(turn.task)", "task"),
        ("await turn.prompt()", "task"),
    ],
)
def test_a_new_place_is_found(code: str, kind: str):
    assert set(kinds(ast.parse(code))) == {kind}


@pytest.mark.parametrize("code", ["path.open('r')", "open(path)", "log.filter(text)", "vault.open(name)", "self.task"])
def test_what_lets_nothing_out_is_not_taken_for_one(code: str):
    assert set(kinds(ast.parse(code))) == set()

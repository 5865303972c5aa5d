"""The shape of the code stays: sizes, one name for one class, tests through the front door."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "remit"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py"))

MODULE, CLASS, FUNCTION = 700, 400, 40

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef

# Participles that say neither what a function does nor to what. Only a function for one kind of event may have one as
# its name, and these: what users write, and words that read well where they are called.
VAGUE = re.compile(
    "_*(asked|begun|called|carried|done|found|given|gone|handed|heard|held|kept|known|left|listed|lost|made|named|offered"
    "|opened|said|seen|sent|shown|spelled|taken|told|used|wanted|written)_*"
)
VAGUE_BUT_USUAL = {
    "asked": {"answering.py", "client.py", "questions.py", "server.py"},  # workspace.questions.asked()
    "done": {"context.py", "connection.py", "history.py", "journal.py", "views.py", "writer.py"},  # view.done(op)
    "gone": {"peers.py"},
    "handed": {"tasks.py"},  # core/kinds: the name of the event
    "known": {"guards.py"},
    "offered": {"verbs.py"},  # remit.verbs.offered(turn)
    "shown": {"values.py"},
}

# The one file of the tests that may reach inside; see its docstring.
INSIDE = "inside.py"
# What the standard library means to be used although its name begins with an underscore.
PUBLIC_IN_SPITE_OF_IT = ("_replace", "_asdict", "_fields", "_make", "_exit")


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def nodes(path: Path, words: str) -> Iterator[ast.AST]:
    """All of a module in which these words are found, and nothing of one in which they are not: that takes long."""
    text = path.read_text(encoding="utf-8")
    return ast.walk(ast.parse(text)) if re.search(words, text) else iter(())


@cache
def tree(path: Path) -> ast.Module:
    """A module without what only type checkers read."""
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    for node in ast.walk(module) if "TYPE_CHECKING" in text else ():
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return module


def definitions(node: ast.AST, where: str) -> Iterator[tuple[str, ast.AST]]:
    """Every class and function with its dotted name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            dotted = f"{where}.{child.name}" if where else child.name
            yield dotted, child
            yield from definitions(child, dotted)
        elif not isinstance(child, ast.expr):  # in which nothing is defined
            yield from definitions(child, where)


@cache
def defined(path: Path) -> list[tuple[str, ast.AST]]:
    """Every class and function of a module with its dotted name. Finding them takes long."""
    return [*definitions(tree(path), "")]


def lines(node: ast.AST) -> int:
    """How many lines there are to read besides the docstring, which for a command is its help."""
    assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    doc = node.body[0] if ast.get_docstring(node) else None
    said = (doc.end_lineno or doc.lineno) - doc.lineno + 1 if doc is not None else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - said


def too_large(found: dict[str, int], limit: int) -> list[str]:
    """The worst first, to be read when the test fails."""
    worst = sorted(((size, where) for where, size in found.items() if size > limit), reverse=True)
    return [f"{where}: {size}, at most {limit}" for size, where in worst]


def sizes(kind: type | tuple[type, ...]) -> dict[str, int]:
    return {
        f"{name(path)}:{dotted}": lines(node)
        for path in MODULES
        for dotted, node in defined(path)
        if isinstance(node, kind)
    }


def test_modules_are_small():
    assert too_large({name(path): len(path.read_text().splitlines()) for path in MODULES}, MODULE) == []


def test_classes_and_functions_are_small_and_a_class_name_means_one_thing():
    """In one test: every process that runs a part of it parses all modules."""
    assert too_large(sizes(ast.ClassDef), CLASS) == []
    assert too_large(sizes((ast.FunctionDef, ast.AsyncFunctionDef)), FUNCTION) == []
    homes: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for dotted, node in defined(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(f"{name(path)}:{dotted}")
    twice = {word: places for word, places in homes.items() if len(places) > 1}
    assert twice == {}, "give the new class another name"


def test_names_of_functions_say_what_they_do():
    vague: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for dotted, node in defined(path):
            if isinstance(node, FUNCTIONS) and VAGUE.fullmatch(node.name) and is_for_itself(node, dotted):
                vague[node.name].add(path.name)
    assert vague == VAGUE_BUT_USUAL, "name the function by a verb and its object, or by a noun"


def is_for_itself(node: ast.FunctionDef | ast.AsyncFunctionDef, dotted: str) -> bool:
    """Whether the name must say what the function does: it is no property, no step of the function around it, and
    handles no event or data of one, whose kind would be its name."""
    is_property = any("property" in ast.unparse(one) for one in node.decorator_list)
    is_inside = any(word.strip("_")[:1].islower() for word in dotted.split(".")[-2:-1])
    hints = [ast.unparse(one.annotation) for one in node.args.args if one.annotation is not None]
    return not (is_property or is_inside or "Event" in hints or hints == ["Mapping[str, Any]"])


def test_tests_go_through_the_front_door():
    """No private name is touched from a test, except in the one file that says why it must."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path in TESTS
        if path.name not in (INSIDE, Path(__file__).name)
        for node in nodes(path, r"\._(?!_)")
        if isinstance(node, ast.Attribute) and is_private(node)
    ]
    assert found == []


def is_private(node: ast.Attribute) -> bool:
    own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    return bool(re.match(r"_(?!_)", node.attr)) and node.attr not in PUBLIC_IN_SPITE_OF_IT and not own


def test_tests_patch_no_constants():
    """What a test must change is a setting; only the process around it may be patched: environment, folder, streams."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in TESTS
        for node in nodes(path, r"\bsetattr\b")
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("monkeypatch.setattr")
        and node.args
        and ast.unparse(node.args[0]) not in ("sys", "os")
    ]
    assert found == []


def test_the_package_has_no_holes():
    """Nothing is called done that is not."""
    holes = re.compile(r"NotImplementedError|\bTODO\b|\bFIXME\b|\bXXX\b")
    assert [name(path) for path in MODULES if holes.search(path.read_text())] == []


def test_a_class_with_a_method_named_like_a_type_has_late_annotations():
    """Python 3.14 looks names in annotations up in the class, where `list` may be a method."""
    early: list[str] = []
    for path in MODULES:
        if "from __future__ import annotations" in path.read_text(encoding="utf-8"):
            continue
        for dotted, kind in defined(path):
            methods = [node for node in getattr(kind, "body", ()) if isinstance(node, FUNCTIONS)]
            names = {method.name for method in methods} if isinstance(kind, ast.ClassDef) else set[str]()
            for method in methods if names else ():
                given = (one.annotation for one in ast.walk(method.args) if isinstance(one, ast.arg))
                hints = (hint for hint in (method.returns, *given) if hint is not None)
                if names & {one.id for hint in hints for one in ast.walk(hint) if isinstance(one, ast.Name)}:
                    early.append(f"{name(path)}:{dotted}.{method.name}")
    assert not early, "begin these files with `from __future__ import annotations`"

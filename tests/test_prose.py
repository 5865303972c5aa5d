"""Pages, docstrings, comments, help texts, names and SQL use plain words: see "How we write" in CONTRIBUTING.md."""

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "remit"
BANNED = re.compile(r"\b(whoever|whomever|anew|of late|for ever|came of|unless told otherwise)\b", re.IGNORECASE)
# The letters of a banned word, as they stand in a comment or in a name. Few files have them, so few are taken apart.
LETTERS = re.compile(BANNED.pattern.replace(r"\b", "").replace(" ", "[ _]?"), re.IGNORECASE)
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Where a banned word may stand: the table of words itself.
ALLOWED = ("| unless told otherwise | [default: N]",)


def words_in(text: str) -> Iterator[str]:
    """Yield each banned word with its surroundings, outside of code and of the allowed places."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(\"\w+\"|`[^`\n]*`|^ *\w+$)", "", text, flags=re.MULTILINE)  # the last is a parameter's name
    for allowed in ALLOWED:
        text = text.replace(allowed, "")
    for found in BANNED.finditer(text):
        yield " ".join(text[max(0, found.start() - 50) : found.end() + 30].split())


def prose_of(file: Path) -> Iterator[str]:
    """Yield the docstrings and comments of a module; of commands, also the help texts and sentences that they print."""
    text = file.read_text()
    tree = ast.parse(text)
    printed = file.is_relative_to(SOURCE / "cli") or file.name == "description.py"
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        elif printed and isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value
    if LETTERS.search(text):
        tokens = tokenize.generate_tokens(StringIO(text).readline)
        yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


def names_in(file: Path) -> Iterator[str]:
    """Yield the names of a module and of its classes and functions, as words."""
    yield file.stem
    text = file.read_text()
    for node in ast.walk(ast.parse(text)) if LETTERS.search(text) else ():
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def as_words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_uses_plain_words(page: Path):
    assert list(words_in(page.read_text())) == []


ROOMS = [*(path for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()), ROOT / "bench", ROOT / "docs"]


@pytest.mark.parametrize("room", sorted(ROOMS), ids=lambda room: room.name)
def test_docstrings_and_comments_use_plain_words(room: Path):
    files = sorted(room.rglob("*.py")) if room.is_dir() else [room]
    found = [
        f"{file.relative_to(ROOT)}: {word}" for file in files for text in prose_of(file) for word in words_in(text)
    ]
    assert found == []


@pytest.mark.parametrize("room", [*sorted(ROOMS), ROOT / "tests"], ids=lambda room: room.name)
def test_names_use_plain_words(room: Path):
    files = sorted(room.rglob("*.py")) if room.is_dir() else [room]
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in files
        for name in names_in(file)
        if BANNED.search(as_words(name))
    ]
    assert found == []


def test_comments_of_queries_use_plain_words():
    files = [file for file in (SOURCE / "stores").rglob("*.sql") if file.parent.name != "migrations"]
    assert files
    assert [f"{file.name}: {word}" for file in files for word in words_in(file.read_text())] == []


@pytest.mark.parametrize(
    "text", ["Whoever asks is told.", "What came of it.", "It is made\nanew.", "Kept for ever; of late."]
)
def test_a_banned_word_is_found(text: str):
    assert list(words_in(text))


@pytest.mark.parametrize("name", ["BegunAnew", "test_whoever_asks", "_came_of", "kept_for_ever"])
def test_a_banned_word_in_a_name_is_found(name: str):
    assert BANNED.search(as_words(name))


@pytest.mark.parametrize(
    "name", ["BegunAnew", "whoever_asks", "CameOf", "kept_for_ever", "ofLate", "Unless_told_otherwise"]
)
def test_a_banned_word_in_a_module_is_found(name: str, tmp_path: Path):
    module = tmp_path / "module.py"
    module.write_text(f"def {name}(): ...  # {as_words(name)}\n")
    assert [found for found in names_in(module) if BANNED.search(as_words(found))] == [name]
    assert [word for text in prose_of(module) for word in words_in(text)]


@pytest.mark.parametrize("name", ["became_of", "for_every_agent", "renewed"])
def test_a_name_that_contains_the_letters_of_a_banned_word_is_allowed(name: str):
    assert not BANNED.search(as_words(name))


@pytest.mark.parametrize("text", ['| `remit retry --anew`, `on_lost="anew"` | `--restart` |', "forever"])
def test_an_old_name_in_code_is_allowed(text: str):
    assert list(words_in(text)) == []

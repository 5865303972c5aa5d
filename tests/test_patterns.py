"""Nothing that others write can hold up the loop: our patterns, and what reads without one, take time in proportion."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any

import pytest

import remit
from remit.core import prices as money
from remit.core.card import Card
from remit.core.match import rank
from remit.core.patterns import LatePattern
from remit.core.values import canonical, checked, line, plain, shown, summary
from remit.engine.team import unfenced
from remit.errors import RemitError
from remit.report.printable import block, escaped
from remit.stores.addresses import is_server, redacted

LONG = 15_000
SECONDS = 0.1  # a pattern that takes the square of its input takes more than twice that; one in proportion, hundredths


def modules() -> Iterator[object]:
    for found in pkgutil.walk_packages(remit.__path__, "remit."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


PATTERNS = {
    f"{module.__name__}.{name}.{at}": pattern  # pyright: ignore[reportAttributeAccessIssue]
    for module in modules()
    for name, value in vars(module).items()
    for at, pattern in enumerate(value if isinstance(value, tuple) else (value,))
    if isinstance(pattern, re.Pattern | LatePattern)
}


def hostile(alphabet: str, long: int) -> Iterator[str]:
    """Much of the same, begun and ended in ways that a pattern may hope for."""
    signs = sorted({*alphabet, *'\n\t a0.-`[{("\\'})
    begins = [begin for begin in ("```json\n", "-- name: a\n") if not alphabet or begin[:2] in alphabet]
    for sign in signs:
        for more in (sign, f"a{sign}"):
            for begin in ("", *begins):
                yield f"{begin}{more * (long // len(more))}\0"


def held(do: Callable[[str], object], alphabet: str) -> float:
    """The most CPU time that any hostile text takes; it stops at the first that is too long."""
    slowest = 0.0
    for long in (1_000, LONG):  # so that a bad one is found by the short text
        for text in hostile(alphabet, long):
            began = process_time()
            do(text)
            slowest = max(slowest, process_time() - began)
            if slowest > SECONDS:
                return slowest
    return slowest


@pytest.mark.rule("input.linear")
@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_of_ours_takes_time_in_proportion(name: str):
    pattern = PATTERNS[name]
    written = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()

    def tried(text: str) -> None:
        subject: Any = text if isinstance(pattern.pattern, str) else text.encode()
        pattern.match(subject)
        pattern.fullmatch(subject)
        for _ in pattern.finditer(subject):
            pass

    assert held(tried, written) <= SECONDS


def test_patterns_are_values_of_modules_and_not_made_on_the_way():
    """Otherwise the test above would not see them."""
    for path in Path(remit.__path__[0]).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "templates" in path.parts or path.stem == "patterns":  # templates are files of users, no modules of ours
            continue
        tree = ast.parse(text)
        late = sum(isinstance(node, ast.Call) and _is(node.func, "pattern") for node in ast.walk(tree))
        assert late <= sum(f".{path.stem}." in name for name in PATTERNS), path
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is(node.value, "re")}
        assert used <= {"compile", "Pattern", "Match", "MULTILINE", "IGNORECASE", "ASCII"}, path
        if "compile" in used:
            assert any(f".{path.stem}." in name for name in PATTERNS), path


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


READERS: dict[str, Callable[[str], object]] = {
    "a name": canonical,
    "a capability": lambda text: rank(text, [Card("coder", can=[text[:200] or "x"], role=text)]),
    "an amount": money.credits,
    "a plan": unfenced,
    "plain text": lambda text: plain(text, "it", 1_000_000),
    "a line": lambda text: line(text, "it", 1_000_000),
    "a value": lambda text: checked(text, "it"),
    "a summary": summary,
    "what is shown": shown,
    "a line that is printed": lambda text: escaped(text, 80),
    "what is printed": block,
    "an address": is_server,
    "a sentence without passwords": redacted,
}


@pytest.mark.untraced
@pytest.mark.rule("input.linear")
@pytest.mark.parametrize("name", READERS)
def test_whatever_reads_what_others_wrote_takes_time_in_proportion(name: str):
    def read(text: str) -> None:
        with suppress(RemitError):
            READERS[name](text)

    assert held(read, "") <= SECONDS

"""The blocks of code on our pages, as the tests that run and check them read them."""

import re
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
SKIP = re.compile(r"<!-- not run: (.+) -->\n$")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)\n")


class Block(NamedTuple):
    """A piece of code on a page, with the output that the page shows below it; `skipped` says why it is not run."""

    page: Path
    number: int
    language: str
    code: str
    output: str
    skipped: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.number}"

    @property
    def file(self) -> str:
        """The name of the file that the block is, if its first line says one."""
        named = FILE.match(self.code)
        return named[1] if named else ""


def blocks(language: str) -> list[Block]:
    return [block for page in PAGES for block in _all_on(page) if block.language == language]


@cache
def _all_on(page: Path) -> tuple[Block, ...]:
    """Every worker asks for the blocks of every page while it collects, so each page is read once."""
    found: list[Block] = []
    text = page.read_text()
    fences = [*FENCE.finditer(text)]
    end = 0  # of the fence before
    for fence, after in zip_longest(fences, fences[1:]):
        shown = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
        skipped = SKIP.search(text, end, fence.start())
        number = text.count("\n", 0, fence.start()) + 1
        output, why = after[2] if shown else "", skipped[1] if skipped else ""
        found.append(Block(page, number, fence[1], fence[2], output, why))
        end = fence.end()
    return tuple(found)

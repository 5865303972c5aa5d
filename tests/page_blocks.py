"""The blocks of code on our pages, as the tests that run and check them read them."""

import re
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
    found: list[Block] = []
    for page in PAGES:
        text = page.read_text()
        fences = [*FENCE.finditer(text)]
        for fence, after in zip_longest(fences, fences[1:]):
            shown = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
            skipped = SKIP.search(text, 0, fence.start())
            if fence[1] == language:
                number = text.count("\n", 0, fence.start()) + 1
                output, why = after[2] if shown else "", skipped[1] if skipped else ""
                found.append(Block(page, number, language, fence[2], output, why))
    return found

"""The generated parts of docs/performance.md: each stands between two comments, and all else is left as it is."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"


def _marks(part: str) -> tuple[str, str]:
    return f"<!-- {part}: measured, not written by hand -->", f"<!-- end of {part} -->"


def replaced(page: str, part: str, body: str) -> str:
    """The page with another body between the marks of a part; a page without them is a mistake."""
    begin, end = _marks(part)
    pattern = re.compile(rf"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{PAGE.name} has no place for '{part}': put {begin} and {end} on lines of their own")
    return pattern.sub(lambda _: f"{begin}\n\n{body.strip()}\n\n{end}", page)


def rows(part: str, path: Path = PAGE) -> dict[str, str]:
    """The lines of a part's table that stand on the page, by the name in backticks that each begins with."""
    begin, end = _marks(part)
    text = path.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
    return {found[1]: found[0] for found in re.finditer(r"^\| `([^`]+)`.*$", text, re.MULTILINE)}


def write(part: str, body: str, path: Path = PAGE) -> None:
    """Put what was measured onto the page."""
    path.write_text(replaced(path.read_text(encoding="utf-8"), part, body), encoding="utf-8")


def table(head: list[str], rows: list[list[str]], words: tuple[str, ...] = ()) -> str:
    """A Markdown table; the first column and those named as `words` are text, the others are figures."""
    under = ["---" if name in (head[0], *words) else "---:" for name in head]
    return "\n".join(line(cells) for cells in [head, under, *rows])


def line(cells: list[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def number(value: float) -> str:
    """A figure with as many digits as it deserves."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

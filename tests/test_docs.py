"""The README and the how-tos tell the truth: their code is run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n+```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str, str]]:
    """Every Python block, with the output the page shows below it."""
    return [
        (f"{page.relative_to(ROOT)}:{number}", code, output)
        for page in PAGES
        for number, (code, output) in enumerate(BLOCK.findall(page.read_text()), 1)
    ]


@pytest.mark.parametrize(("where", "code", "output"), blocks(), ids=[where for where, *_ in blocks()])
def test_code_on_a_page_runs_and_prints_what_the_page_says(where: str, code: str, output: str, tmp_path: Path):
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if output:
        assert done.stdout.strip() == output.strip()


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_the_drawn_parts_are_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "docs" / "draw.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

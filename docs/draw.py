"""Draws what the docs show of the code: `make docs`; with --check it only says whether that is up to date."""

import json
import sys
from pathlib import Path

from pages import PAGES
from picture import picture

HERE = Path(__file__).parent


def drawn() -> dict[str, str]:
    run = json.loads((HERE / "demo.json").read_text())
    return {name: page() for name, page in PAGES.items()} | {"demo.svg": picture(run)}


def main() -> int:
    stale = {
        name: text for name, text in drawn().items() if not (HERE / name).exists() or (HERE / name).read_text() != text
    }
    if "--check" in sys.argv:
        for name in stale:
            sys.stdout.write(f"docs/{name} is out of date; run make docs\n")
        return 1 if stale else 0
    for name, text in stale.items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(text)
        sys.stdout.write(f"drew docs/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

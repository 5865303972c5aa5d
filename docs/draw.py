"""Draws what the docs show of the code: `make docs`; with --check it only says whether that is up to date."""

import sys
from pathlib import Path

from remit.core import breaker, lifecycle

HERE = Path(__file__).parent

PAGES = {
    "states.md": f"""# The life of a task

Drawn from the table in `src/remit/core/lifecycle.py`; do not edit, run `make docs`.

```mermaid
{lifecycle.mermaid()}```

While it runs, a task may change hands: a handoff is an event of its own and leaves the state as it is.

## The breaker of an agent

Drawn from the table in `src/remit/core/breaker.py`. Three failures in a row are too many, the cool-off takes 60 s and a
probe expires after 300 s, unless the runtime says otherwise.

```mermaid
{breaker.mermaid()}```
""",
}


def main() -> int:
    stale = [name for name, text in PAGES.items() if not (HERE / name).exists() or (HERE / name).read_text() != text]
    if "--check" in sys.argv:
        for name in stale:
            sys.stdout.write(f"docs/{name} is out of date; run make docs\n")
        return 1 if stale else 0
    for name in stale:
        (HERE / name).write_text(PAGES[name])
        sys.stdout.write(f"drew docs/{name}\n")
    return 0


sys.exit(main())

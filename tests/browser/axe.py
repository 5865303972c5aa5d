"""Accessibility of a page, as axe-core sees it. It is a package for development: nothing of it is in the wheel."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
# Colours depend on the theme and the layout on the width: both themes and both widths are seen, not every pair of them.
LOOKS = [  # dark, phone
    pytest.param(True, True, id="dark-phone"),
    pytest.param(False, False, id="light-desk", marks=pytest.mark.deep),
]


def findings(page: Page) -> list[str]:
    """Return what axe-core finds wrong with the page: the rule, and where."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make dashboard` installs it")
    page.evaluate(AXE.read_text())  # by the debugger, so that the page's own policy stays as it is
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['target'][-1]} {node['failureSummary'].splitlines()[-1].strip()}"
        for one in found["violations"]
        for node in one["nodes"]
    ]

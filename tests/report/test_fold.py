"""The dashboard folds events in the browser, in TypeScript. It must come to the same tree as `remit.report.tree`."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from commands import command
from remit.core.events import Event
from remit.core.lifecycle import TRANSITIONS
from remit.report import wire
from remit.report.tree import tree
from report.journals import journals
from report.said import SAID

DASHBOARD = Path(__file__).parents[2] / "dashboard"
NUMBER = 200


def _folded(events: Sequence[Event]) -> dict[str, object]:
    root = tree(events)
    return {"events": [wire.event(event) for event in events], "tree": None if root is None else wire.tree(root)}


def _demo(folder: Path) -> object:
    store = str(folder / "demo.db")
    assert command(folder, "demo", "--store", store, "--pace", "0").returncode == 0
    return orjson.loads(command(folder, "history", "--run", "last", "--store", store, "--json").stdout)


@pytest.mark.rule("page.same-tree")
def test_the_page_passes_its_own_tests_and_folds_200_journals_to_the_same_tree_as_the_report(tmp_path):
    node = shutil.which("node")
    vitest = DASHBOARD / "node_modules" / "vitest" / "vitest.mjs"
    if node is None or not vitest.exists():
        pytest.skip("there is no Node, or the packages of the dashboard are not installed: `make dashboard`")
    corpus = {
        "transitions": TRANSITIONS,
        "runs": [_folded(events) for events in journals(NUMBER)],
        "demo": _demo(tmp_path),
        "said": [[kept, "\n".join(one.words for one in said if one.words)] for kept, said in SAID],
    }
    (tmp_path / "corpus.json").write_bytes(orjson.dumps(corpus))
    ran = subprocess.run(
        [node, str(vitest), "run"],
        cwd=DASHBOARD,
        env={**os.environ, "REMIT_CORPUS": str(tmp_path / "corpus.json"), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert "passed" in ran.stdout
    assert "skipped" not in ran.stdout

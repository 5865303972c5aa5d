"""The public surface, pinned: a name appears or goes only on purpose."""

import subprocess
import sys

import remit


def test_the_root_has_exactly_these_names():
    assert sorted(remit.__all__) == [
        "ANY",
        "BOARD",
        "BadInput",
        "Bounds",
        "Card",
        "Command",
        "Conflict",
        "END",
        "Entry",
        "Event",
        "Failed",
        "NotFound",
        "Outcome",
        "Pass",
        "Plan",
        "Refused",
        "RemitError",
        "Runtime",
        "Scope",
        "Send",
        "Step",
        "StoreError",
        "Task",
        "Turn",
        "run",
    ]
    assert len(remit.__all__) <= 25
    assert all(getattr(remit, name) is not None for name in remit.__all__)


def test_importing_remit_stays_light():
    heavy = ["rich", "cyclopts", "pydantic", "fastapi", "opentelemetry", "hypothesis"]
    code = f"import sys, remit; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_verbs_of_a_turn_have_a_docstring():
    public = [name for name in vars(remit.Turn) if not name.startswith("_")]
    assert {
        "agent",
        "asker",
        "context",
        "delegate",
        "delegate_all",
        "find",
        "inbox",
        "remit",
        "send",
        "task",
        "tools",
    } <= set(public)
    assert [name for name in public if not getattr(remit.Turn, name).__doc__] == []

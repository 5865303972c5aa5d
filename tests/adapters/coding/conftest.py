"""What all tests of coding agents share."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_profile(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home of the user, which every program of the test gets.

    Claude Code and Codex start login shells, which read the user's profile. A profile may take a minute, and a shell
    that is killed there may leave a lock behind, for which every later login shell waits.
    """
    home = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("HOME", str(home))
    return home

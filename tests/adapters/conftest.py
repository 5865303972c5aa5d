"""What the tests of adapters share: the sign by which a process says that it is there."""

from pathlib import Path

import pytest


@pytest.fixture
def sign(tmp_path: Path) -> Path:
    """A file by which a process says that it is there."""
    return tmp_path / "sign"

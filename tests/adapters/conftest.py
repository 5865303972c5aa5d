"""What the tests of adapters share: the sign by which a process says that it is there, and no certificates."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def sign(tmp_path: Path) -> Path:
    """A file by which a process says that it is there."""
    return tmp_path / "sign"


@pytest.fixture(scope="session", autouse=True)
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have no certificates: every client reads all there are, which takes longer than most tests, and here everyone
    listens on loopback, in plain HTTP."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("certificates")))
        yield

"""What the acceptance tests of models share."""

import pytest

from adapters.places import KEY, KEY_NAME


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)

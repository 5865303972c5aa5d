"""What the tests of adapters share: the sign by which a process says that it is there, and requests that are made
quickly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai._utils import async_maybe_transform


@pytest.fixture
def sign(tmp_path: Path) -> Path:
    """A file by which a process says that it is there."""
    return tmp_path / "sign"


@pytest.fixture(scope="session", autouse=True)
def plain_requests() -> Iterator[None]:
    """Have openai send lists that are plain JSON as they are. It compares each message with all the types that it might
    have, in every request, which takes half the time of these tests and changes nothing in plain JSON. The tests of
    examples, of the command line and of the model server leave it as it is."""

    async def sent(data: dict[str, Any], expected_type: object) -> dict[str, Any]:
        plain = {name: value for name, value in data.items() if isinstance(value, list) and _is_plain(value)}
        rest = {name: value for name, value in data.items() if name not in plain}
        return {**(await async_maybe_transform(rest, expected_type) or {}), **plain}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("openai.resources.chat.completions.completions.async_maybe_transform", sent)
        patch.setattr("openai.resources.responses.responses.async_maybe_transform", sent)
        yield


def _is_plain(data: object) -> bool:
    if isinstance(data, dict):
        return all(map(_is_plain, data.values()))
    if isinstance(data, list):
        return all(map(_is_plain, data))
    return data is None or isinstance(data, str | int | float)

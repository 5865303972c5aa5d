"""JSON from outside: one reading, or none."""

from collections.abc import Iterable
from typing import Any

import anyio
import pytest

from remit.codec.strict import KEYS, VALUES, parse
from remit.core.values import DEPTH_LIMIT
from remit.errors import Malformed, RemitError, TooLarge, TooSlow, WrongType
from remit.server.strict import BodyLimits, StrictBody, read_json

pytestmark = pytest.mark.anyio

SECRET = "s3cr3t"


@pytest.mark.rule("http.strict", "http.no-echo")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"s3cr3t": 1, "s3cr3t": 2}', "same key twice"),
        (b'{"a": [{"s3cr3t": 1, "s3cr3t": 1}]}', "same key twice"),
        (b"[9223372036854775808]", "64 bits"),
        (b"[-9223372036854775809]", "64 bits"),
        (b"1" * 5_000, "64 bits"),
        (b"[NaN]", "NaN"),
        (b"-Infinity", "NaN"),
        (b"[1e999]", "too large"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a": "s3cr3t\xff"}', "UTF-8, at byte 13"),
        (b'"s3cr3t\\u0000"', "NUL"),
        (b'{"s3cr3t\\u0000": 1}', "NUL"),
        (b'"s3cr3t\\ud800"', "surrogate"),
        (b'{"a": s3cr3t}', "not JSON, at character 6"),
        (b"{} {}", "not JSON"),
        (b"", "not JSON"),
        (b"[" * 100_000, "deep"),
        (b"[" * (DEPTH_LIMIT + 1) + b"1" + b"]" * (DEPTH_LIMIT + 1), "deep"),
        (b"[" + b"0," * VALUES + b"0]", "values"),
        (b"{" + b",".join(b'"%d":0' % n for n in range(KEYS + 1)) + b"}", "keys"),
    ],
)
def test_what_two_parsers_could_read_differently_is_refused_without_being_repeated(text: bytes, why: str):
    with pytest.raises(Malformed, match=why) as no:
        parse(text)
    assert SECRET not in str(no.value)


@pytest.mark.rule("http.strict")
def test_all_other_json_is_read_as_it_is():
    text = '{"a": [1, -9223372036854775808, 2.5, true, null, "\U0001f600 \\ud83d\\ude00"], "": {}}'.encode()
    assert parse(text) == {"a": [1, -(2**63), 2.5, True, None, "\U0001f600 \U0001f600"], "": {}}
    parse(b"[" * DEPTH_LIMIT + b"1" + b"]" * DEPTH_LIMIT)


def sent(parts: Iterable[bytes], **headers: str) -> tuple[dict[str, Any], Any]:
    """A request in these parts."""
    kept = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    waiting = [*parts]

    async def receive() -> dict[str, Any]:
        part = waiting.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(waiting)}

    return {"type": "http", "headers": [(name.encode(), value.encode()) for name, value in kept.items()]}, receive


@pytest.mark.rule("http.body")
@pytest.mark.parametrize(
    ("parts", "headers", "error"),
    [
        ([b"[1", b"," * 100 + b"1]"], {}, TooLarge),
        ([b"{}"], {"content_length": "101"}, TooLarge),
        ([b"{}"], {"content_length": "-1"}, Malformed),
        ([b"{}"], {"content_length": "9" * 5_000}, Malformed),
        ([b"{}"], {"content_type": "text/plain"}, WrongType),
        ([b"{}"], {"content_type": "application/json; charset=latin-1"}, WrongType),
        ([b"{}"], {"content_encoding": "gzip"}, WrongType),
    ],
)
async def test_a_body_that_is_too_large_or_no_json_is_refused(
    parts: list[bytes], headers: dict[str, str], error: type[RemitError]
):
    with pytest.raises(error):
        await read_json(*sent(parts, **headers), BodyLimits(size=100))


@pytest.mark.rule("http.body")
async def test_a_body_that_does_not_arrive_in_time_is_refused():
    async def never() -> dict[str, Any]:
        await anyio.sleep_forever()
        raise AssertionError

    with pytest.raises(TooSlow, match="within 0 seconds"):
        await read_json({"headers": []}, never, BodyLimits(seconds=0))


@pytest.mark.rule("http.body")
async def test_an_application_of_another_library_gets_the_bytes_that_were_encoded_again():
    got: list[Any] = []

    async def other(scope: Any, receive: Any, _send: Any) -> None:
        got.extend([await receive(), dict(scope["headers"])[b"content-length"], scope["remit.body"]])

    scope, receive = sent([b'{ "b": 1,', b' "a": "\\u00e4" }'], transfer_encoding="chunked")
    await StrictBody(other)(scope, receive, None)
    assert got[0] == {"type": "http.request", "body": '{"a":"ä","b":1}'.encode(), "more_body": False}
    assert got[1:] == [b"16", {"a": "ä", "b": 1}]

"""A provider's error message, made fit to be shown: short, on one line, and without secrets."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, cast

LONGEST: Final = 300  # characters
_HIDDEN: Final = "[secret]"
_SHORTEST: Final = 6  # characters; a shorter secret would match parts of words
_WORD: Final = re.compile(r"[\w+/=*.-]+")
_PREFIXES: Final = tuple(f"{name}{mark}" for name in ("sk", "pk", "rk", "gsk", "xai", "hf", "ghp") for mark in "-_")
_ANNOUNCED: Final = ("key", "bearer", "token")  # words before a key
_LONG: Final = 32  # characters; a mix of letters and digits this long must be a key
_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")  # headers with keys
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")


def provider_words(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Return the provider's message, or the address that did not answer; "" if there is neither."""
    text = _message(getattr(error, "body", None))
    if text:
        return shown_words(text, [*secrets, *_keys_sent(error)])
    address = _address(error) if getattr(error, "status_code", None) is None else ""
    return f"{address} did not answer" if address else ""


def shown_words(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text on one line of at most 300 characters, without secrets."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _HIDDEN)
    text = _without_keys(text[: 10 * LONGEST])
    text = " ".join(_UNPRINTABLE.sub(" ", text).replace('"', "'").split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _without_keys(text: str) -> str:
    """Return the text without anything that looks like a key, whole or partly masked: providers often quote the key."""
    before = ""

    def shown(found: re.Match[str]) -> str:
        nonlocal before
        word, earlier = found[0], before
        before = word.lower()
        if not _is_key(word.lower(), earlier):
            return word
        return _HIDDEN + ("." if word.endswith(".") else "")  # keep the full stop of the sentence

    return _WORD.sub(shown, text)


def _is_key(word: str, before: str) -> bool:
    if "***" in word or (word.startswith(_PREFIXES) and len(word) >= 9) or (word.startswith("aiza") and len(word) > 13):
        return True
    for announced in _ANNOUNCED:
        rest = word if before == announced else word.removeprefix(announced)[1:] if word.startswith(announced) else ""
        if len(rest) >= _SHORTEST and any(letter.isdigit() or letter == "*" for letter in rest):
            return True
    return any(len(part) >= _LONG and _is_mixed(part) for part in word.split("."))


def _is_mixed(word: str) -> bool:
    return any(letter.isdigit() for letter in word) and any(letter.isalpha() for letter in word)


def _message(body: object) -> str:
    """Return the message in the body of an error: under `message` or `error`, as providers write it."""
    for _ in range(3):
        if isinstance(body, list) and body:
            body = cast("list[object]", body)[0]
        if not isinstance(body, Mapping):
            break
        found = cast("Mapping[str, Any]", body)
        body = found.get("message") or found.get("error") or found.get("detail")
    text = body.strip() if isinstance(body, str) else ""
    return "" if text.startswith(("<", "{")) else text  # a page or JSON is nothing for people


def _keys_sent(error: BaseException) -> Iterator[str]:
    """Yield the keys that were sent with the request."""
    for request in _requests(error):
        headers = cast("Mapping[str, str]", getattr(request, "headers", None) or {})
        for name in _HEADERS:
            yield headers.get(name, "").removeprefix("Bearer ")


def _address(error: BaseException) -> str:
    """Return the address of a request."""
    for request in _requests(error):
        url = getattr(request, "url", None)
        if url is not None and getattr(url, "host", ""):
            port = f":{url.port}" if url.port else ""
            return f"{url.scheme}://{url.host}{port}"
    return ""


def _requests(error: BaseException) -> Iterator[Any]:
    """Yield the requests in a client's error and its causes."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        for holder in (at, getattr(at, "response", None)):
            with suppress(RuntimeError):  # httpx raises if the error has no request
                yield getattr(holder, "request", None)
        at = at.__cause__ or at.__context__

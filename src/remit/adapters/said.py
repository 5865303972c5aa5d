"""What a provider wrote about a failure, made fit to be shown: short, on one line, and without secrets."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, cast

LONGEST: Final = 300  # characters
_HIDDEN: Final = "[secret]"
_SHORTEST: Final = 6  # characters of a secret: a shorter one is a part of too many words
# What looks like a key, whole or with stars in it: providers like to quote the one that they were sent.
_KEYS: Final = re.compile(
    r"""(?ix)
    \b(?:sk|pk|rk|gsk|xai|hf|ghp)[-_][\w*-]{6,}              # sk-..., hf_...
    | \b(?:key|bearer|token)[-_ ](?=[\w*.-]*[\d*])[\w*.-]{6,}  # Bearer ...
    | \bAIza[\w-]{10,}                                       # Google
    | \b(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])[\w+/=-]{32,}       # any long word of letters and digits
    | [\w-]*\*{3,}[\w-]*                                     # what the provider has hidden itself
    """
)
_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")  # in which keys go out
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")


def provider_words(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Give what the provider said in its answer, or the address that did not answer; empty if there is neither."""
    text = _message(getattr(error, "body", None))
    if text:
        return shown_words(text, [*secrets, *_keys_sent(error)])
    address = _address(error) if getattr(error, "status_code", None) is None else ""
    return f"{address} did not answer" if address else ""


def shown_words(text: str, secrets: Iterable[str] = ()) -> str:
    """Shorten a text to one line of at most 300 characters, and take secrets out."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _HIDDEN)
    text = _KEYS.sub(_HIDDEN, text[: 10 * LONGEST])
    text = " ".join(_UNPRINTABLE.sub(" ", text).replace('"', "'").split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _message(body: object) -> str:
    """Find the sentence in the body of an error: under `message`, or under `error`, as all of them have it."""
    for _ in range(3):
        if isinstance(body, list) and body:
            body = cast("list[object]", body)[0]
        if not isinstance(body, Mapping):
            break
        found = cast("Mapping[str, Any]", body)
        body = found.get("message") or found.get("error") or found.get("detail")
    text = body.strip() if isinstance(body, str) else ""
    return "" if text.startswith(("<", "{")) else text  # a page, or more JSON: nothing for people


def _keys_sent(error: BaseException) -> Iterator[str]:
    """Give the keys that went out with the request."""
    for request in _requests(error):
        headers = cast("Mapping[str, str]", getattr(request, "headers", None) or {})
        for name in _HEADERS:
            yield headers.get(name, "").removeprefix("Bearer ")


def _address(error: BaseException) -> str:
    """Find where a request went."""
    for request in _requests(error):
        url = getattr(request, "url", None)
        if url is not None and getattr(url, "host", ""):
            port = f":{url.port}" if url.port else ""
            return f"{url.scheme}://{url.host}{port}"
    return ""


def _requests(error: BaseException) -> Iterator[Any]:
    """Find the request in the error of a client, or in what it came of."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        for holder in (at, getattr(at, "response", None)):
            with suppress(RuntimeError):  # an error of httpx that was made without its request
                yield getattr(holder, "request", None)
        at = at.__cause__ or at.__context__

"""The links of questions, answered by the server itself: the page of `AnswerServer` at /answer.

A link needs no key: its token permits exactly one choice of one question. So its page is open, and a form may come from
any page; browsers send no origin with it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope

from remit.adapters.asking.server import BODY_LIMIT, HEADERS, BadRequest, PageRequest, fields_of, result_page
from remit.errors import Malformed, RemitError
from remit.server.strict import BodyLimits, header, read_bytes

PATH: Final = "/answer"
_FORM: Final = "application/x-www-form-urlencoded"
_HEADERS: Final = {name: HEADERS[name] for name in ("content-security-policy", "cache-control")}

_log = logging.getLogger("remit")


class AnswerPage(Protocol):
    """Serves the pages behind the links that are signed with its secret."""

    async def respond(self, request: PageRequest) -> tuple[HTTPStatus, str]: ...


async def answer_link(pages: Sequence[AnswerPage], scope: Scope, receive: Receive) -> Response:
    """Return the page of a link, or the result of its form. A link that no page knows gets the same as a wrong one."""
    try:
        request = await _request(scope, receive)
        status, html = HTTPStatus.FORBIDDEN, ""
        for page in pages:
            status, html = await page.respond(request)
            if status != HTTPStatus.FORBIDDEN:
                break
    except BadRequest as error:
        status, html = error.status, result_page(error.status.phrase, "Nothing was decided.")
    except RemitError:
        raise
    except Exception as error:  # noqa: BLE001 - the text of an error may have the token of a link
        _log.error("an answer by a link could not be taken: %s", type(error).__name__)
        status, html = HTTPStatus.INTERNAL_SERVER_ERROR, result_page("That did not work", "Nothing was decided.")
    return Response(html.encode(errors="replace"), status, _HEADERS, "text/html")


async def _request(scope: Scope, receive: Receive) -> PageRequest:
    method: str = scope["method"]
    if method in ("GET", "HEAD"):
        return PageRequest(method, PATH, fields_of(_ascii(scope["query_string"])))
    if method != "POST":
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED)
    if header(scope, b"content-type").partition(";")[0].strip().lower() != _FORM:
        raise BadRequest(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    body = await read_bytes(scope, receive, BodyLimits(size=BODY_LIMIT))
    return PageRequest(method, PATH, fields_of(_ascii(body)))


def _ascii(text: bytes) -> str:
    try:
        return text.decode("ascii")
    except UnicodeDecodeError:
        raise Malformed("a form and an address have ASCII characters only") from None

"""Errors as answers: `application/problem+json`, made from the tree of errors.

A problem says what was wrong and what to do. It repeats nothing that the request contained, and an object of another
workspace, an unknown one and an impossible id look the same.
"""

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import orjson
from starlette.responses import Response

from remit.core.values import Json, shown
from remit.errors import BadInput, Conflict, Failed, NotFound, Refused, RemitError, StoreError, TooMany, Unauthorised

PROBLEM: Final = "application/problem+json"
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")
_NOT_THERE: Final = "there is no such object in this workspace"


def code_of(error: type[RemitError]) -> str:
    """Return the code of a class of errors: its name in kebab-case."""
    return _CAPITAL.sub("-", error.__name__).lower()


def problem(error: RemitError, request: str = "", given: Iterable[str] = ()) -> Response:
    """Return the answer for an error. `request` is the method and the path as the table has them; `given` are the texts
    of the request, which the sentence must not repeat."""
    body: dict[str, Json] = {
        "type": f"/errors/{code_of(type(error))}",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": sentence_of(error, given),
        "code": code_of(type(error)),
        "retryable": error.retryable,
        "request": request,
    }
    if isinstance(error, Refused):
        body["rule"] = error.rule
    elif isinstance(error, Failed):
        body |= {"agent": error.agent, "task": error.task}
    return Response(orjson.dumps(body), error.status, headers_of(error), PROBLEM)


def headers_of(error: RemitError) -> dict[str, str]:
    """Return the headers of the answer for an error."""
    if isinstance(error, TooMany):
        return {"Retry-After": str(error.seconds)}
    return {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorised) else {}


def plain_problem(status: HTTPStatus, code: str, detail: str, request: str = "", allow: str = "") -> Response:
    """Return the answer for something that is no error of remit: no such path, no such method, a bug."""
    body = {
        "type": f"/errors/{code}",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
        "code": code,
        "retryable": False,
        "request": request,
    }
    return Response(orjson.dumps(body), status, {"Allow": allow} if allow else {}, PROBLEM)


def sentence_of(error: RemitError, given: Iterable[str] = ()) -> str:
    """Return the text of an error for an answer, without the details of `NotFound` and `StoreError`. `given` are texts
    of the request: in the text of `BadInput` and `Conflict`, they are replaced."""
    if isinstance(error, NotFound):
        return _NOT_THERE
    if isinstance(error, StoreError):  # its text may name hosts and files
        return "the store does not answer; try again later"
    sentence = str(error)
    if isinstance(error, BadInput | Conflict):
        for text in given:
            sentence = sentence.replace(shown(text), "the value given")
    return sentence

"""The small HTTP server behind the links. It serves one page; put a proxy with TLS in front of it.

A request is read with limits on size and time, and without ambiguous input. The page shows the whole question and the
action that an approval permits, and asks for confirmation: only its forms decide. All its text comes from agents, so
all of it is escaped, and no script runs on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from html import escape
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qs

import anyio
from anyio import to_thread

from remit.adapters.asking.links import LOOK, TEXT, Links, Option, replied
from remit.adapters.asking.secrecy import SecretGiven
from remit.core.checks import between
from remit.core.question import Inquiry
from remit.core.times import SECOND, iso, span
from remit.core.values import NAME_LIMIT, line
from remit.errors import BadInput, Conflict, NotFound, RemitError
from remit.ports.services import Desk, Down
from remit.report.printable import visible_line
from remit.report.questions import QuestionLine, asked_by, whole_question

# -- reading one request -------------------------------------------------------------------------------------


HEAD_LIMIT: Final = 16_384  # bytes
BODY_LIMIT: Final = 131_072  # enough for an answer of 8,000 characters, form-encoded
_FIELDS: Final = 16
_ONCE: Final = ("content-length", "content-type")


class BadRequest(Exception):
    """A request that is answered with this status only."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class PageRequest(NamedTuple):
    """A request. `fields` are those of the posted form, or of the address."""

    method: str
    path: str
    fields: dict[str, str]


async def read_request(reader: asyncio.StreamReader) -> PageRequest:
    """Return the next request. Raise `BadRequest` if it is invalid, and `EOFError` if none came."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
    first, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target = _target(first)
    path, _, query = target.partition("?")
    if method in ("GET", "HEAD"):
        return PageRequest(method, path, fields_of(query))
    if method != "POST":
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED)
    body = await reader.readexactly(_length(_headers(rest)))
    try:
        return PageRequest(method, path, fields_of(body.decode("ascii")))
    except UnicodeDecodeError:
        raise BadRequest(HTTPStatus.BAD_REQUEST) from None


def _target(first: str) -> tuple[str, str]:
    match first.split(" "):
        case [method, target, "HTTP/1.1" | "HTTP/1.0"] if target.startswith("/") and target.isascii():
            return method, target
        case _:
            raise BadRequest(HTTPStatus.BAD_REQUEST)


def _headers(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in lines:
        name, colon, value = text.partition(":")
        name = name.lower()
        if not colon or name != name.strip() or (name in found and name in _ONCE):
            raise BadRequest(HTTPStatus.BAD_REQUEST)
        found[name] = value.strip()
    return found


def _length(headers: dict[str, str]) -> int:
    length = headers.get("content-length", "")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
        raise BadRequest(HTTPStatus.LENGTH_REQUIRED)
    if len(length) > 9 or int(length) > BODY_LIMIT:
        raise BadRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise BadRequest(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    return int(length)


def fields_of(text: str) -> dict[str, str]:
    """Return the fields of a form or of an address. Raise `BadRequest` for two of the same name."""
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError:
        raise BadRequest(HTTPStatus.BAD_REQUEST) from None
    if any(len(values) > 1 for values in found.values()):
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    return {name: values[0] for name, values in found.items()}


# -- the page ------------------------------------------------------------------------------------------------


HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:2em auto;padding:0 1em}"
    "div,pre{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext}pre,section{background:#f4f4f4;padding:.7em}"
    "textarea,input{width:100%;font:inherit}"
    ".quoted{font-family:ui-monospace,monospace}.added{color:#116329;background:#dafbe1}"
    ".removed{color:#82071e;background:#ffebe9}.place{color:#0550ae}"
    "button{font:inherit;padding:.5em 1.5em;margin-top:1em}"
)


def page(workspace: str, inquiry: Inquiry, chosen: Sequence[tuple[Option, str]]) -> str:
    """Return the page of a question, with one or all of its answers as forms, each with its token."""
    lines = "".join(map(_line, whole_question(inquiry).lines))
    forms = "".join(_form(workspace, inquiry, one, token) for one, token in chosen)
    return _html("A question for you", f"<p>{escape(asked_by(inquiry))}</p><section>{lines}</section>{forms}")


def _line(line: QuestionLine) -> str:
    """Return a line of the question as HTML. The indent is a margin, so that a long line that wraps keeps it."""
    name = f"<strong>{escape(line.name)}</strong>  " if line.name else ""
    look = f' class="quoted {line.mark}"' if line.is_quoted else ""
    return f'<div{look} style="margin-left:{1.5 * line.depth}em">{name}{escape(line.text) or " "}</div>'


def _form(workspace: str, inquiry: Inquiry, chosen: Option, token: str) -> str:
    hidden = {"w": workspace, "q": inquiry.id, "c": chosen.code, "t": token}
    fields = "".join(f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in hidden.items())
    label = escape(visible_line(chosen.label))
    return f'<form method="post">{fields}{_text_field(inquiry, chosen)}{_NAME_FIELD}<button>{label}</button></form>'


def result_page(title: str, sentence: str) -> str:
    """Return a page that shows the result of a request: a title and a sentence."""
    return _html(title, f"<pre>{escape(visible_line(sentence))}</pre>")


_NAME_FIELD: Final = '<p><label>Your name, for the record<br><input name="name" maxlength="40"></label></p>'


def _text_field(inquiry: Inquiry, chosen: Option) -> str:
    """Return the form field for an answer text, another amount or a reason; "" for a choice of an agent's question."""
    if chosen.code == TEXT:
        return (
            '<p><label>Your answer<br><textarea name="said" rows="6" maxlength="8000" required></textarea></label></p>'
        )
    if inquiry.kind == "ask":
        return ""
    if inquiry.kind == "money" and chosen.code == "approve":
        return '<p><label>Another amount, such as 0.20USD<br><input name="said" maxlength="40"></label></p>'
    return '<p><label>Why, if it matters<br><input name="said" maxlength="500"></label></p>'


def _html(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><meta name="robots" content="noindex"><title>{escape(title)}</title>'
    head += f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    return f"<!doctype html><html><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body></html>"


# -- the server ----------------------------------------------------------------------------------------------


SECONDS: Final = 10.0  # for a whole request
MOST: Final = 64  # connections at a time
PORT: Final = 8642
_NAME: Final = 40

_log = logging.getLogger("remit")


class AnswerServer:
    """Serves the links of `Webhook` and `Slack`, with the same secret: a channel that only listens.

    Fetching a link decides nothing, because programs fetch links for previews; it returns a page with a form that
    decides. Everyone who has the link may answer. It does not prove who they are, so `by` is `link` and the name they
    typed. `remit serve` answers the links of its team at /answer, too; with `port=None` only there.
    """

    def __init__(
        self,
        secret: SecretGiven,
        *,
        port: int | None = PORT,
        host: str = "127.0.0.1",
        name: str = "answers",
        timeout: float = SECONDS,
    ) -> None:
        self.name = name
        self.port = None if port is None else between(port, "port", 0, 65_535)
        self._desk: Desk | None = None
        self._host = line(host, "host", 255)
        self._seconds = span(timeout, "timeout") / SECOND
        self._links = Links(secret)
        self._serving: set[asyncio.Task[object]] = set()
        # Connections that wait for their client, the longest first.
        self._waiting: dict[asyncio.Task[object], None] = {}
        self.ready = asyncio.Event()  # set when it listens; then `port` is the actual port

    def __repr__(self) -> str:
        return "<AnswerServer>" if self.port is None else f"<AnswerServer at {self._host}:{self.port}>"

    async def respond(self, request: PageRequest) -> tuple[HTTPStatus, str]:
        """Return the status and the page for a request that another server has read. Until `listen` is called, every
        link is rejected."""
        return _WRONG_LINK if self._desk is None else await self._answered(self._desk, request)

    async def listen(self, desk: Desk) -> None:
        """Answer requests until cancelled."""
        self._desk = desk
        if self.port is None:
            self.ready.set()
            await anyio.sleep_forever()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(desk, reader, writer)

        try:
            server = await asyncio.start_server(serve, self._host, self.port, limit=HEAD_LIMIT)
        except OSError as error:
            raise Down(why=f"port {self.port} of {self._host} cannot be had: {error.strerror}") from None
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        try:
            await anyio.sleep_forever()
        finally:
            server.close()
            for task in self._serving:
                task.cancel()

    async def _serve(self, desk: Desk, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            if not self._has_room():
                return
            self._serving.add(task)
            with anyio.move_on_after(self._seconds):
                writer.write(await self._response(desk, reader, task))
                with self._kept_waiting(task):
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        except (OSError, EOFError):  # the client has gone
            pass
        finally:
            self._serving.discard(task)
            writer.transport.abort()  # close() alone would wait forever for a client that does not read

    def _has_room(self) -> bool:
        """Whether one more connection can be served. If all places are taken, close the connection that has been
        waiting for its client the longest, so that idle clients cannot block others."""
        if len(self._serving) < MOST:
            return True
        slowest = next(iter(self._waiting), None)
        if slowest is None:
            return False
        del self._waiting[slowest]
        self._serving.discard(slowest)
        slowest.cancel()
        return True

    @contextmanager
    def _kept_waiting(self, task: asyncio.Task[object]) -> Generator[None]:
        """Mark the connection as waiting for its client while the body runs: it may be closed then."""
        self._waiting[task] = None
        try:
            yield
        finally:
            self._waiting.pop(task, None)

    async def _response(self, desk: Desk, reader: asyncio.StreamReader, task: asyncio.Task[object]) -> bytes:
        method = ""
        try:
            with self._kept_waiting(task):
                request = await read_request(reader)
            method = request.method
            status, html = await self._answered(desk, request)
        except BadRequest as error:
            status, html = error.status, result_page(error.status.phrase, "Nothing was decided.")
        except EOFError:
            raise
        except Exception as error:  # noqa: BLE001 - the client gets an error page, whatever is wrong here
            _log.error("an answer by a link could not be taken: %s", type(error).__name__)
            status, html = HTTPStatus.INTERNAL_SERVER_ERROR, result_page("That did not work", "Nothing was decided.")
        body = html.encode(errors="replace")
        headers = {**HEADERS, "content-length": str(len(body)), "connection": "close"}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}\r\n".encode() + (b"" if method == "HEAD" else body)

    async def _answered(self, desk: Desk, request: PageRequest) -> tuple[HTTPStatus, str]:
        if not request.path.endswith("/answer"):
            return HTTPStatus.NOT_FOUND, result_page("There is nothing here", "Nothing was decided.")
        found = await self._question_of_link(desk, request.fields)
        if found is None:
            return _WRONG_LINK
        inquiry, chosen = found
        if request.method == "POST":
            if request.fields["c"] == LOOK:
                return HTTPStatus.UNPROCESSABLE_ENTITY, result_page("That is no answer", "Nothing was decided.")
            return await self._decide(desk, inquiry, chosen[0], request.fields)
        if inquiry.state != "open":
            return HTTPStatus.OK, result_page("Already decided", _became(inquiry))
        tokens = [(one, self._links.token(desk.workspace, inquiry, one.code)) for one in chosen]
        # In a thread: the page has all the text of agents, which may be a megabyte.
        return HTTPStatus.OK, await to_thread.run_sync(page, desk.workspace, inquiry, tokens)

    async def _question_of_link(self, desk: Desk, fields: dict[str, str]) -> tuple[Inquiry, tuple[Option, ...]] | None:
        """Return the question and the options of a link, or None for any invalid link, so that a guess reveals
        nothing."""
        if fields.get("w") != desk.workspace:
            return None
        try:
            inquiry = await desk.look(fields.get("q", ""))
        except (BadInput, NotFound):
            return None
        chosen = self._links.verified(desk.workspace, inquiry, fields.get("c", ""), fields.get("t", ""))
        return (inquiry, chosen) if chosen else None

    async def _decide(
        self, desk: Desk, inquiry: Inquiry, chosen: Option, fields: dict[str, str]
    ) -> tuple[HTTPStatus, str]:
        name = "".join(letter for letter in fields.get("name", "") if letter.isprintable()).strip()[:_NAME]
        by = f"link:{name}"[:NAME_LIMIT] if name else "link"
        said = fields.get("said", "").replace("\r\n", "\n")
        try:
            await desk.answer(inquiry.id, replied(inquiry, chosen, by, self.name, said))
        except Conflict as error:
            return HTTPStatus.CONFLICT, result_page("Already decided", str(error))
        except BadInput as error:
            return HTTPStatus.UNPROCESSABLE_ENTITY, result_page("That is no answer", f"{error}. Go back and try again.")
        except RemitError as error:
            _log.warning("an answer by a link could not be recorded: %s", error)
            return HTTPStatus.SERVICE_UNAVAILABLE, result_page(
                "Not recorded", "Nothing was decided; try again in a moment."
            )
        return HTTPStatus.OK, result_page("Recorded", f"{chosen.label}: question {inquiry.id} is decided. Thank you.")


_WRONG_LINK: Final = (
    HTTPStatus.FORBIDDEN,
    result_page("This link does not count", "This link is wrong, or it is not for this any more. Nothing was decided."),
)


def _became(inquiry: Inquiry) -> str:
    whom = f" by {inquiry.by}" if inquiry.by else ""
    where = f" over {inquiry.channel}" if inquiry.channel else ""
    when = f" at {iso(inquiry.answered_at)}" if inquiry.answered_at is not None else ""
    return f"Question {inquiry.id}: {inquiry.state}{whom}{where}{when}. The first answer counts."

"""A channel that sends questions to Telegram, and receives answers from there.

    Serving(channels=[Telegram(token, chat=-1001234, allow=[4711])])

An answer counts if its author is on the list, in that chat, and used a button or message that carries our MAC.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from remit.adapters.asking.http import SECONDS, Answered, Http, address
from remit.adapters.asking.links import TEXT, Option, labels, mac, option, options, replied, same
from remit.adapters.asking.secrecy import SecretGiven, secret_reader, token_hidden
from remit.core.checks import between, items
from remit.core.question import Inquiry
from remit.core.values import shown
from remit.errors import BadInput, Conflict, NotFound, RemitError, StoreError
from remit.ports.services import Desk, Down, Undeliverable
from remit.report.printable import visible_line
from remit.report.questions import asked_by, shown_question, to_read

API: Final = "https://api.telegram.org"
POLL: Final = 50  # seconds that Telegram holds a request if there is nothing new

_TOKEN: Final = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}", re.ASCII)
_USERNAME: Final = re.compile(r"[A-Za-z0-9_]{1,32}", re.ASCII)
_MAC_BYTES: Final = 12
_DATA: Final = 64  # bytes of a button
_MESSAGE: Final = 4_096  # characters as UTF-16 counts them
_LABEL: Final = 60
_ALERT: Final = 190
_WORDS: Final = 200
_REPLY: Final = "Reply to this message to answer."
_PART: Final = "Not all of it is shown here. Read it whole and answer with"
_NOT_YOURS: Final = "You are not among those who may answer this."
_WRONG: Final = "This button does not count; nothing was decided."

_log = logging.getLogger("remit")


class Press(NamedTuple):
    """An action in the chat: a pressed button, or a reply to a message. `carries` is the data about the question in the
    button or message that we sent. `said` is the text of a reply, None for a button. `query` is Telegram's id of the
    button press, "" for a reply; `message` is the id of the message with the button, or of the reply."""

    who: int
    username: str
    chat: int
    carries: str
    said: str | None
    query: str
    message: int


class Telegram:
    """Sends each question to a chat, with a button for each choice, and polls Telegram for answers. A question that
    wants text is answered by a reply to its message.

    `allow` are the ids of the people whose answers count. Telegram holds each poll for up to `poll` seconds. If two
    processes poll for the same bot, Telegram rejects one of them; it retries later, and nothing is lost.
    """

    def __init__(
        self,
        token: SecretGiven,
        chat: int,
        allow: list[int],
        api: str = API,
        *,
        name: str = "telegram",
        poll: int = POLL,
    ) -> None:
        self.name = name
        self._token = secret_reader(token, "the token of a bot")
        if not _TOKEN.fullmatch(self._token()):
            raise BadInput("the token of a bot looks like 123456:ABC...; what was given is not shown here")
        self._bot = int(self._token().partition(":")[0])
        self._chat = _id(chat, "chat")
        self._allow = frozenset(_id(one, "an id in allow") for one in items(allow, "allow is a list of ids of people"))
        if not self._allow:
            raise BadInput(
                "allow is the list of ids of the people whose answers count; without one nobody could answer"
            )
        self._api = address(api, "api").rstrip("/")
        self._poll = between(poll, "poll", 0, POLL)
        self._http = Http(token_hidden(self._token))
        self._offset = 0

    def __repr__(self) -> str:
        return f"<Telegram '{self.name}'>"

    # -- delivery -------------------------------------------------------------------------------------------------

    async def tell(self, workspace: str, inquiry: Inquiry) -> str:
        head = f"{asked_by(inquiry)}\n"
        wants_words = options(inquiry)[0].code == TEXT
        # The last line identifies the question, because a reply quotes it.
        last = f"\n\n{_REPLY}\n{self._button_data(workspace, inquiry, TEXT)}" if wants_words else f"\n\n{inquiry.id}"
        part = f"\n\n{_PART}: {to_read(inquiry)}\n{inquiry.id}"
        room = _MESSAGE - _length(head) - max(_length(last), _length(part))
        shown = shown_question(inquiry, room, length=_length)
        told: dict[str, Any] = {
            "chat_id": self._chat,
            "text": f"{head}{shown.text}{last if shown.whole else part}",
            "link_preview_options": {"is_disabled": True},
        }
        if shown.has_quotes:  # a code block, by position: Telegram then takes the text as it is
            told["entities"] = [{"type": "pre", "offset": _length(head), "length": _length(shown.text)}]
        if shown.whole:  # only then may a person answer here
            told["reply_markup"] = {"force_reply": True} if wants_words else self._buttons(workspace, inquiry)
        sent = await self._call("sendMessage", told)
        return str(_of(sent, "message_id", int) or "")

    def _buttons(self, workspace: str, inquiry: Inquiry) -> dict[str, Any]:
        rows = [
            [{"text": label, "callback_data": self._button_data(workspace, inquiry, one.code)}]
            for one, label in labels(inquiry, _LABEL)
        ]
        return {"inline_keyboard": rows}

    def _button_data(self, workspace: str, inquiry: Inquiry, code: str) -> str:
        """Return the data of a button: question, choice and MAC, so that it cannot be forged."""
        data = f"{inquiry.id}.{code}.{self._mac(workspace, inquiry, code)}"
        if len(data) > _DATA:
            raise Undeliverable(f"the id of the question is too long for a button of Telegram: {shown(inquiry.id)}")
        return data

    def _mac(self, workspace: str, inquiry: Inquiry, code: str) -> str:
        key = hmac.digest(self._token().encode(), b"remit-telegram-1", "sha256")
        return mac(key, workspace, inquiry, code, _MAC_BYTES)

    # -- listening ------------------------------------------------------------------------------------------------

    async def listen(self, desk: Desk) -> None:
        """Poll for answers until cancelled. Handled updates are not requested again."""
        while True:
            wanted = {"offset": self._offset, "timeout": self._poll, "allowed_updates": ["callback_query", "message"]}
            for update in await self._updates(wanted):
                press = _press(update, self._bot)
                if press is not None:
                    await self._handle(desk, press)
                self._offset = cast("int", _of(update, "update_id", int) or self._offset) + 1

    async def _updates(self, wanted: dict[str, Any]) -> list[Any]:
        got = await self._call("getUpdates", wanted, self._poll + SECONDS)
        if not isinstance(got, list):  # not Telegram's answer: another server replied, so do not poll again at once
            raise Down(why="it answered with something that is no list of updates")
        return cast("list[Any]", got)

    async def _handle(self, desk: Desk, press: Press) -> None:
        try:
            tells = await self._answered(desk, press)
        except StoreError:  # the store may recover: request the same update again
            raise
        except RemitError as error:
            tells = str(error)
        except Exception as error:  # noqa: BLE001 - an update that cannot be handled must not be requested forever
            _log.error("channel '%s' could not handle an answer: %s", self.name, type(error).__name__)
            tells = "That did not work; nothing was decided."
        if tells is not None:
            await self._tell_back(press, tells)

    async def _answered(self, desk: Desk, press: Press) -> str | None:
        """Record an answer and return the sentence for its author; None if the action was no answer."""
        if press.chat != self._chat or press.who not in self._allow:
            return _NOT_YOURS if press.query else None
        found = await self._question_of_press(desk, press)
        if found is None:
            return _WRONG if press.query else None
        inquiry, chosen = found
        username = f"/{press.username}" if press.username else ""
        reply = replied(inquiry, chosen, f"telegram:{press.who}{username}", self.name, press.said or "")
        try:
            await desk.answer(inquiry.id, reply)
        except Conflict as error:
            await self._close(press, inquiry, str(error))
            raise
        word = {"approve": "approved", "reject": "rejected", TEXT: "answered"}.get(
            chosen.code, f"answered {chosen.label}"
        )
        await self._close(press, inquiry, f"{word} by {press.username or press.who}")
        return f"Recorded: {word}."

    async def _question_of_press(self, desk: Desk, press: Press) -> tuple[Inquiry, Option] | None:
        match press.carries.split("."):
            case [question, code, given] if (press.said is not None) == (code == TEXT):
                pass
            case _:
                return None
        try:
            inquiry = await desk.look(question)
        except (BadInput, NotFound):
            return None
        right = same(self._mac(desk.workspace, inquiry, code), given)
        chosen = option(inquiry, code) if right else None
        return None if chosen is None else (inquiry, chosen)

    async def _tell_back(self, press: Press, sentence: str) -> None:
        """Send the author of an answer the result of it."""
        if press.query:
            told = {"callback_query_id": press.query, "text": _cut(sentence, _ALERT), "show_alert": True}
            await self._try("answerCallbackQuery", told)
        else:
            reply = {"message_id": press.message, "allow_sending_without_reply": True}
            await self._try(
                "sendMessage", {"chat_id": press.chat, "text": _cut(sentence, _MESSAGE), "reply_parameters": reply}
            )

    async def _close(self, press: Press, inquiry: Inquiry, became: str) -> None:
        """If a button was pressed, write the result `became` into its message and remove the buttons."""
        if press.query:
            head, last = f"{asked_by(inquiry)}\n", f"\n\n{visible_line(became)}\n{inquiry.id}"
            shown = shown_question(inquiry, _MESSAGE - _length(head) - _length(last), length=_length)
            text = f"{head}{shown.text}{last}"
            await self._try("editMessageText", {"chat_id": press.chat, "message_id": press.message, "text": text})

    async def _try(self, method: str, says: dict[str, Any]) -> None:
        """Call an optional method; errors are logged only, because the answer is recorded already."""
        try:
            await self._call(method, says)
        except (Down, Undeliverable) as error:
            _log.info("channel '%s' could not do %s: %s", self.name, method, error)

    # -- requests -------------------------------------------------------------------------------------------------

    async def _call(self, method: str, says: dict[str, Any], seconds: float = SECONDS) -> Any:
        """Call a method of the bot API and return its result. Raise `Down` if a retry may help, and `Undeliverable` if
        it cannot."""
        url: Callable[[], str] = lambda: f"{self._api}/bot{self._token()}/{method}"  # noqa: E731 - not kept anywhere
        body = json.dumps(says).encode()
        answered = await self._http.post(url, body, {"content-type": "application/json"}, seconds)
        got = _decoded(answered)
        wait = _of(_of(got, "parameters", dict), "retry_after", int)
        answered.judge(_described(got, self._token()), float(wait) if wait is not None else None)
        return cast("dict[str, Any]", got).get("result") if isinstance(got, dict) else None


def _press(update: object, bot: int) -> Press | None:
    """Return the action of an update if it may concern us: a pressed button, or a reply to our bot. Otherwise None."""
    query = _of(update, "callback_query", dict)
    if query is not None:
        message = _of(query, "message", dict)
        return _pressed(query, message, _of(query, "data", str) or "", None, _of(query, "id", str) or "")
    message = _of(update, "message", dict)
    above = _of(message, "reply_to_message", dict)
    said, carried = _of(message, "text", str), _of(above, "text", str)
    if said is None or carried is None or _of(_of(above, "from", dict), "id", int) != bot:
        return None
    return _pressed(message, message, carried.rpartition("\n")[2], said, "")


def _pressed(by: object, message: object, carries: str, said: str | None, query: str) -> Press | None:
    who, chat = _of(_of(by, "from", dict), "id", int), _of(_of(message, "chat", dict), "id", int)
    if who is None or chat is None:
        return None
    username = _of(_of(by, "from", dict), "username", str) or ""
    clean = username if _USERNAME.fullmatch(username) else ""
    return Press(who, clean, chat, carries, said, query, _of(message, "message_id", int) or 0)


def _of(place: object, name: str, kind: type) -> Any:
    """Return a field of a server's response if it has this type, otherwise None."""
    found = cast("dict[str, Any]", place).get(name) if isinstance(place, dict) else None
    odd = isinstance(found, bool) and kind is int
    return found if isinstance(found, kind) and not odd else None


def _decoded(answered: Answered) -> Any:
    try:
        return json.loads(answered.body)
    except (ValueError, RecursionError):
        return None


def _described(got: object, token: str) -> str:
    """Return Telegram's error description, on one line."""
    said = str(_of(got, "description", str) or "").replace(token, "[secret]")
    return " ".join(said.split())[:_WORDS]


def _id(given: object, what: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise BadInput(f"{what} is a whole number, as Telegram has them, not {shown(given)}")
    return given


def _length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _cut(text: str, most: int) -> str:
    if _length(text) <= most:
        return text
    return text.encode("utf-16-le")[: 2 * (most - 1)].decode("utf-16-le", errors="ignore") + "…"

"""Recorded conversations of a framework: an answer comes from the record, or the next request is built from the record.

A framework runs its own loop from the beginning each time. Here its requests meet the record: as long as there is a
recorded answer at the next position, the framework gets that answer, and nothing is sent. The first request that is
sent consists of the recorded conversation and of what is new; instructions, tools and settings are the current ones.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from remit.adapters.guests.asking import digest_of
from remit.adapters.guests.nested import in_own_run
from remit.core.values import Json, encode
from remit.ports.models import EarlierRun, EarlierTalk, ModelAnswer, ModelCall, Position
from remit.ports.turn import OF_RUN, Hops, TalkLike, TurnLike

_UNREADABLE: Final = "the record of {} cannot be read ({})"
Message = TypeVar("Message")
Answer = TypeVar("Answer")


class Dialect(Protocol[Message, Answer]):
    """How one framework writes its conversations."""

    framework: str

    def is_said(self, message: Message) -> bool:
        """Whether the model said this message."""
        ...

    def words(self, message: Message) -> Any:
        """Return the content of a message, without ids and times that differ from run to run; call ids stay."""
        ...

    def calls(self, message: Message) -> Sequence[str]:
        """Return the ids of the tool calls in a model's message."""
        ...

    def gist(self, messages: Sequence[Message]) -> Any:
        """Return the content of messages, without any ids."""
        ...

    def results(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the results of tool calls, by call id."""
        ...

    def messages_json(self, messages: Sequence[Message], elsewhere: Collection[str]) -> Json:
        """Return messages as JSON. The results of calls whose ids are in `elsewhere` are left empty, because they are
        recorded with the calls."""
        ...

    def read(self, told: Any, results: Mapping[str, Any]) -> list[Message]:
        """Return the messages that `messages_json` wrote, with these results in the places left empty."""
        ...

    def result(self, value: Any, call: str) -> Any:
        """Return a tool result from the recorded value of an earlier run."""
        ...

    def with_results(self, messages: list[Message], results: Mapping[str, Any]) -> list[Message]:
        """Return the messages with these results in place of the framework's own for the same calls."""
        ...

    def with_news(self, messages: list[Message], text: str) -> list[Message]:
        """Return the messages with this text for the model at the end."""
        ...

    def answer(self, reply: ModelAnswer) -> Answer:
        """Return the framework's object for an answer."""
        ...

    def answer_messages(self, answer: Answer) -> list[Message]:
        """Return an answer as messages of the conversation."""
        ...

    def question_message(self, text: str) -> Message:
        """Return the message for the question of an earlier run."""
        ...

    def replied(self, text: str) -> Message:
        """Return the message for the answer of an earlier run."""
        ...

    def after(self, past: list[Message], messages: list[Message]) -> list[Message]:
        """Return a conversation after the messages of earlier runs. The current system messages stay first."""
        ...

    def retold(self, messages: list[Message]) -> list[Message]:
        """Return an earlier conversation without its system messages."""
        ...


class NextRequest(NamedTuple, Generic[Message]):
    """A request at its position in a conversation: `messages` is the whole conversation, and `ids` are the call ids
    already used in it."""

    messages: list[Message]
    at: Position
    ids: frozenset[str]


Make = Callable[[NextRequest[Message]], ModelCall]


async def conversed(
    turn: TurnLike,
    dialect: Dialect[Message, Answer],
    messages: Sequence[Message],
    make: Make[Message],
    name: str | None = None,
    *,
    begins: bool = False,
    hops: Hops | None = None,
    rewrites: bool = True,
) -> Answer:
    """Return the answer to a request: the recorded one, or the model's. `make` builds the request that is sent. If the
    conversation is the turn's own, or `begins` with the turn's task, it also gets the session's earlier runs. A `name`
    identifies it in later attempts. `hops` lists the calls in an answer that pass the work to another agent inside the
    framework. `rewrites` says that the agent may shorten or change the earlier conversation; if it did, the model gets
    the agent's version."""
    at = _after_answer(dialect, messages)
    talk, goes_on = await _find_talk(turn, dialect, messages, at, name, rewrites=rewrites)
    if at and goes_on:
        await _judged(talk, dialect)
        goes_on = not rewrites or _is_as_given(dialect, talk.given, messages[:at])
    elif at and not rewrites and talk.sent:
        raise talk.lost_error("its agent asks about another conversation than the one on record")
    past = await _past(talk, dialect) if begins or talk.is_own else []
    new = talk.tail = [*messages[at:]]
    talk.hops = hops
    head = [*talk.sent] if goes_on else [*messages[:at]]
    kept = await talk.recall(dialect.framework)  # before `news`: a recorded request contains its own messages
    if kept is not None:
        told, answer = await _read(talk, dialect, kept.told, new), _answered(talk, dialect, kept.answer)
        said = dialect.answer_messages(answer)
        talk.sent, talk.given = [*head, *told, *said], [*messages, *said] if rewrites else []
        return answer
    if talk.from_record:
        new = await _with_missed(talk, dialect, head, new)
    if text := await talk.news():
        new, talk.tail = dialect.with_news(new, text), None
    if text := talk.warning():
        new = dialect.with_news(new, text)
    ids = frozenset(one for message in (*past, *head) if dialect.is_said(message) for one in dialect.calls(message))
    request = NextRequest(dialect.after(past, [*head, *new]), Position("", framework=dialect.framework), ids)
    answer = dialect.answer(await talk.ask(make(request), _new_text(talk, dialect, new)))
    said = dialect.answer_messages(answer)
    talk.sent, talk.given = [*head, *new, *said], [*messages, *said] if rewrites else []
    return answer


def _is_as_given(dialect: Dialect[Message, Answer], before: Sequence[Message], now: Sequence[Message]) -> bool:
    """Whether the messages `now` have the same content as `before`, the latest request with its answer."""
    return len(before) == len(now) and all(
        one is other or one == other or dialect.words(one) == dialect.words(other)
        for one, other in zip(before, now, strict=True)
    )


async def _judged(talk: TalkLike, dialect: Dialect[Message, Answer]) -> None:
    """Check the latest round for progress, if nothing of it went through the turn: the model answered, and the
    framework continued by itself."""
    answer = talk.sent[_before_answer(dialect, talk.sent) :]
    calls = False
    for message in answer:
        for call in dialect.calls(message):
            if talk.was_used(call):
                return
            calls = True
    if talk.tail is None:
        return
    hops = talk.hops(answer) if talk.hops is not None else []
    words = digest_of([dialect.gist(talk.tail), hops or dialect.gist(answer)])
    await talk.exchanged(words, says=not calls, hands_on=bool(hops))


def _before_answer(dialect: Dialect[Message, Answer], messages: Sequence[Message]) -> int:
    """Return the index where the final answer begins."""
    at = len(messages)
    while at and dialect.is_said(messages[at - 1]):
        at -= 1
    return at


async def _with_missed(
    talk: TalkLike, dialect: Dialect[Message, Answer], head: Sequence[Message], new: list[Message]
) -> list[Message]:
    """Add recorded results of tool calls in the last answer that the framework could not repeat: the tools are gone or
    take other arguments now, so the framework does not have their results."""
    results: dict[str, Any] = {}
    for message in reversed(head):
        if not dialect.is_said(message):
            break
        for call in dialect.calls(message):
            if not talk.was_used(call) and (kept := await talk.result(call)) is not None:
                results[call] = dialect.result(kept[0], call)
    return dialect.with_results(new, results) if results else new


async def _past(talk: TalkLike, dialect: Dialect[Message, Answer]) -> list[Message]:
    """Return the messages of the session's earlier runs, the oldest first."""
    if talk.before is None:
        talk.before = [message for run in await talk.past() for message in _earlier(dialect, run)]
    return talk.before


def _earlier(dialect: Dialect[Message, Answer], run: EarlierRun) -> list[Message]:
    """Return an earlier run as messages: its whole conversation, or question and answer."""
    said, answer = run.exchange.words
    if run.talk is not None and run.talk.framework == dialect.framework:
        try:
            return _whole(dialect, run.talk, answer)
        except (ValueError, TypeError, LookupError):  # written by an older version of the framework
            pass
    return [dialect.question_message(said), dialect.replied(answer)]


def _whole(dialect: Dialect[Message, Answer], talk: EarlierTalk, answer: str) -> list[Message]:
    """Return a whole conversation. If its last answer calls tools, such as the one that submits a structured result,
    the final answer replaces it. Raise `LookupError` if another call has no result."""
    told: list[Message] = []
    last: list[Message] = []
    for one in talk.positions:
        written = json.loads(one.told)
        results = {call: dialect.result(talk.results[call], call) for call in written["results"]}
        told += [*last, *dialect.read(written["messages"], results)]
        last = dialect.answer_messages(dialect.answer(one.answer))
    if any(dialect.calls(one) for one in last):
        last = [dialect.replied(answer)]
    calls = {call for one in told if dialect.is_said(one) for call in dialect.calls(one)}
    if missing := calls - dialect.results(told).keys():
        raise LookupError(min(missing))
    return [*dialect.retold(told), *last]


async def _find_talk(
    turn: TurnLike,
    dialect: Dialect[Message, Answer],
    messages: Sequence[Message],
    at: int,
    name: str | None,
    *,
    rewrites: bool,
) -> tuple[TalkLike, bool]:
    """Return the conversation that a request belongs to, and whether the request continues it. It is the conversation
    whose last answer is the last one before `at`; a request without any answer starts one. If an agent has rewritten
    its history beyond recognition, its version is sent as it is."""
    if name is not None:
        return await turn.begin_talk(name, name), False
    if not at:
        number = sum(talk.is_of_run for talk in turn.talks()) if rewrites and in_own_run() else 0
        begins = digest_of([dialect.words(one) for one in messages])
        return await turn.begin_talk(begins, f"{OF_RUN}{number + 1}" if number else None), True
    last, words = messages[at - 1], None
    begun = [talk for talk in turn.talks() if talk.sent]
    for talk in begun:
        said = talk.sent[-1]  # the last sent message is the answer
        if said is last:
            return talk, True
        words = dialect.words(last) if words is None else words
        if _last_words(dialect, talk.sent) == words:
            return talk, True
    return (begun[-1] if begun else await turn.begin_talk(digest_of([dialect.words(one) for one in messages]))), False


def _last_words(dialect: Dialect[Message, Answer], sent: Sequence[Message]) -> Any:
    return next((dialect.words(one) for one in reversed(sent) if dialect.is_said(one)), None)


def _after_answer(dialect: Dialect[Message, Answer], messages: Sequence[Message]) -> int:
    """Return the index after the last answer; 0 if there is no answer."""
    at = len(messages)
    while at and not dialect.is_said(messages[at - 1]):
        at -= 1
    return at


def _new_text(talk: TalkLike, dialect: Dialect[Message, Answer], new: Sequence[Message]) -> str:
    """Return the new messages as text. A result is recorded with its call and not written twice."""
    elsewhere = [call for call in dialect.results(new) if talk.was_used(call)]
    return encode({"messages": dialect.messages_json(new, elsewhere), "results": cast("Json", elsewhere)})


async def _read(talk: TalkLike, dialect: Dialect[Message, Answer], told: str, new: Sequence[Message]) -> list[Message]:
    """Return the recorded messages. Results are those that this run got for the same calls, or the recorded ones for
    tools that it did not reach."""
    own = dialect.results(new)
    written = _decoded(talk, told)
    results: dict[str, Any] = {}
    for call in written.results:
        if talk.was_used(call) and call in own:
            results[call] = own[call]
        elif (kept := await talk.result(call)) is not None:
            results[call] = dialect.result(kept[0], call)
    try:
        return dialect.read(written.messages, results)
    except Exception as error:
        raise talk.lost_error(_UNREADABLE.format("what its model was told", type(error).__name__)) from error


class _Written(NamedTuple):
    """The recorded request at a position: messages, and the ids of calls whose results are recorded elsewhere."""

    messages: Any
    results: list[str]


def _decoded(talk: TalkLike, told: str) -> _Written:
    try:
        kept = json.loads(told)
        return _Written(kept["messages"], [str(call) for call in kept["results"]])
    except (ValueError, TypeError, LookupError) as error:
        raise talk.lost_error(_UNREADABLE.format("what its model was told", type(error).__name__)) from error


def _answered(talk: TalkLike, dialect: Dialect[Message, Answer], reply: ModelAnswer) -> Answer:
    """Return a recorded answer. If its framework raises, it cannot read what it or another version has written: raise
    the error for a lost conversation."""
    try:
        return dialect.answer(reply)
    except Exception as error:
        raise talk.lost_error(_UNREADABLE.format("what its model answered", type(error).__name__)) from error

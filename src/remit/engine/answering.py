"""Questions as a program gets them: one by one as they are asked, or of one run for a function that answers them."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, NamedTuple, TypeAlias, cast

from remit.core.lifecycle import Outcome
from remit.core.question import Inquiry, Question, Reply
from remit.core.values import Json, shown
from remit.engine.ground import Ground
from remit.engine.people import Answers, asked_since, inquiry, open_questions
from remit.engine.services import Services
from remit.engine.timing import paused
from remit.engine.traces import OwnersFunctionFailed, owners_function
from remit.errors import BadInput, Conflict, NotFound, StoreError
from remit.ports import View

CODE: Final = "code"  # the channel of an answer that a function gives
_ASKED: Final = frozenset(("question.asked",))
_YES, _NO = ("yes", "y"), ("no", "n")
_WHY: Final = 500  # characters of a reason

_log = logging.getLogger("remit")


@dataclass(frozen=True, slots=True)
class AskedQuestion(Inquiry):
    """An open question, with the ways to decide it. The first answer counts; a later one raises `Conflict`."""

    _answers: Answers | None = field(default=None, repr=False, compare=False)
    _person: str = field(default="", repr=False, compare=False)

    async def answer(self, value: str, *, by: str = "") -> None:
        """Answer an agent's question."""
        await self._decide("answered", by, value=value)

    async def approve(self, value: Json = None, *, why: str = "", by: str = "") -> None:
        """Approve a request; `value` is the changed task or arguments, or another amount of money."""
        await self._decide("approved", by, why, value)

    async def reject(self, why: str = "", *, by: str = "") -> None:
        """Reject a request, or decline to answer; the agent gets the reason."""
        await self._decide("rejected", by, why)

    async def _decide(self, state: Any, by: str, why: str = "", value: Json = None) -> None:
        assert self._answers is not None  # set by `asked_question`
        await self._answers.answer(self.id, Reply(state, by or self._person, CODE, why, value))


# Answers a question: returns a text, or True or False for an approval; for more money also an amount. None leaves the
# question open.
OnQuestion: TypeAlias = Callable[[AskedQuestion], "str | bool | Awaitable[str | bool | None] | None"]

# Starts a run, calls the given function with its id, and returns its outcome.
BeginRun: TypeAlias = Callable[[Callable[[str], None]], Coroutine[Any, Any, Outcome]]

_FIELDS: Final = tuple(one.name for one in fields(Inquiry))


class QuestionDesk(NamedTuple):
    """Delivers the questions of a workspace as they are asked. `look` is the longest poll interval, in seconds."""

    services: Services
    look: float

    @property
    def ground(self) -> Ground:
        return self.services.ground

    async def asked(self) -> AsyncGenerator[AskedQuestion]:
        """Yield the open questions, the first asked first, and then each that is asked, in any process."""
        seen: int | None = None
        async with self.services.bell.listen(_ASKED) as listener:
            listener.heeds_all = False
            while True:
                since = seen
                if since is None:
                    seen, found = await self.ground.store.browse(open_questions)
                else:
                    seen, found = await self.ground.store.read(lambda view, since=since: asked_since(view, since))
                async with aclosing(self._open(found)) as questions:
                    async for question in questions:
                        yield question
                await listener.wait(self.look)

    async def asked_in(self, run: str, known: set[str]) -> AsyncGenerator[AskedQuestion]:
        """Yield the open questions of a run, and then each that is asked in it. `known` are the questions that were
        yielded already."""
        async with self.services.bell.listen(_ASKED) as listener:
            listener.heeds_all = False
            while True:
                found = await self.ground.store.read(lambda view: view.questions_open_in(run))
                async with aclosing(self._open([one for one in found if one.id not in known])) as questions:
                    async for question in questions:
                        known.add(question.id)
                        yield question
                await listener.wait(self.look)

    async def _open(self, found: list[Question]) -> AsyncGenerator[AskedQuestion]:
        for row in sorted(found, key=lambda one: one.asked):
            question = await self.ground.store.read(lambda view, row=row: self._question(view, row.id))
            if question is not None:
                yield question

    def _question(self, view: View, id: str) -> AskedQuestion | None:
        """Return a question, or None if it was decided while others were handled."""
        row = view.question(id)
        if row is None or not row.is_open:
            return None
        known = inquiry(view, row)
        return AskedQuestion(*(getattr(known, name) for name in _FIELDS), _answers=self.services.questions.answers)

    # -- of one run --------------------------------------------------------------------------------------------

    async def attended(self, begin: BeginRun, on_question: OnQuestion | None, by: str) -> Outcome:
        """Start a run with `begin` and return its outcome. Meanwhile, deliver its questions to the channels of this
        process and let `on_question` answer them. If `on_question` raises, the run fails."""
        messenger = self.services.messenger
        telling: AbstractAsyncContextManager[None] = nullcontext() if messenger is None else messenger.attend()
        tasks: list[asyncio.Task[None]] = []

        def begun(run: str) -> None:
            if on_question is not None:
                tasks.append(asyncio.create_task(_Attending(self, on_question, by).attend(run)))

        async with telling:
            try:
                return await begin(begun)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


class _Attending:
    """Passes the questions of one run to a function, one after the other."""

    def __init__(self, desk: QuestionDesk, function: OnQuestion, by: str) -> None:
        self._desk = desk
        self._function = function
        self._by = by
        self._is_async = _is_async(function)

    async def attend(self, run: str) -> None:
        """Let the function answer the questions of a run until this call is cancelled or the function raises. If it
        raises, stop the run with that error."""
        known: set[str] = set()
        while True:
            try:
                async with aclosing(self._desk.asked_in(run, known)) as questions:
                    async for question in questions:
                        await self._handle(replace(question, _person=self._by))
            except OwnersFunctionFailed as failure:
                live = self._desk.services.conductor.alive.get(run)
                if live is not None:
                    live.control.give_up(failure)
                return
            except StoreError as error:
                _log.warning("what run %s asks could not be looked up, tried again: %s", run, error)
                await paused(self._desk.ground.clock, self._desk.look)

    async def _handle(self, question: AskedQuestion) -> None:
        try:
            answer = await (self._while_open(question) if self._is_async else self._call(question))
            decision = _decision(question, answer, self._by)
        except OwnersFunctionFailed:
            raise
        except Exception as error:
            raise OwnersFunctionFailed("on_question", error) from error
        if decision is not None:
            await self._record(question, decision)

    async def _record(self, question: AskedQuestion, decision: Reply) -> None:
        while True:
            try:
                return await self._desk.services.questions.answers.answer(question.id, decision)
            except (Conflict, NotFound):  # another answer was first, or its task has ended
                return None
            except BadInput as error:
                if question.kind == "money" and decision.value is None and decision.state == "approved":
                    decision = decision._replace(state="rejected", why=str(error)[:_WHY])  # the account has less by now
                    continue
                raise OwnersFunctionFailed("on_question", error) from error
            except StoreError as error:
                _log.warning("the answer to %s could not be recorded, tried again: %s", question.id, error)
                await paused(self._desk.ground.clock, self._desk.look)

    async def _while_open(self, question: AskedQuestion) -> object:
        """Call the function and return its answer. If the question is decided elsewhere first, cancel the call and
        return None."""
        bell = self._desk.services.bell
        call = asyncio.create_task(self._call(question))
        decided = asyncio.create_task(bell.until(question.task, lambda view: _is_decided(view, question.id)))
        try:
            await asyncio.wait((call, decided), return_when=asyncio.FIRST_COMPLETED)
            if not call.done() and decided.exception() is None:
                return None
            return await call
        finally:
            for task in (call, decided):
                task.cancel()
            await asyncio.gather(call, decided, return_exceptions=True)

    async def _call(self, question: AskedQuestion) -> object:
        with owners_function("on_question"):
            # In a thread: a plain function that reads a line must not block the event loop.
            answer: object = self._function(question) if self._is_async else await _in_thread(self._function, question)
            return await answer if inspect.isawaitable(answer) else answer


async def _in_thread(function: OnQuestion, question: AskedQuestion) -> object:
    """Return what a plain function returns. Its thread is a daemon: after Ctrl-C, a function that reads a line would
    keep the process until that line is typed."""
    loop, context = asyncio.get_running_loop(), copy_context()
    ended = asyncio.Event()
    value, error = None, None

    def call() -> None:
        nonlocal value, error
        try:
            value = context.run(function, question)
        except BaseException as raised:  # noqa: BLE001 - raised again below
            error = raised
        with suppress(RuntimeError):  # the event loop has ended
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=call, name="remit-question", daemon=True).start()
    await ended.wait()
    if error is not None:
        raise error
    return value


def _is_async(function: OnQuestion) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004 - an object with an async `__call__`
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _is_decided(view: View, question: str) -> bool | None:
    found = view.question(question)
    return True if found is None or not found.is_open else None


def _decision(question: AskedQuestion, answer: object, by: str) -> Reply | None:
    """Return the reply that the answer of `on_question` stands for. If the answer is None, return None: the question
    stays open."""
    if answer is None:
        return None
    if question.kind == "ask":
        return Reply("answered", by, CODE, value=_text(question, answer))
    yes = _means(answer)
    if yes is None and question.kind == "money":
        return Reply("approved", by, CODE, value=cast("Json", answer))  # an amount, checked where it is recorded
    if yes is None:
        raise BadInput(
            f"on_question answers an approval with True or False, not with {shown(answer)}; "
            "to change it or to give a reason, await question.approve(value) or question.reject(why), and return None"
        )
    return Reply("approved" if yes else "rejected", by, CODE)


def _means(answer: object) -> bool | None:
    if isinstance(answer, bool):
        return answer
    word = answer.strip().casefold() if isinstance(answer, str) else ""
    return True if word in _YES else False if word in _NO else None


def _text(question: AskedQuestion, answer: object) -> str:
    """Return the answer to a question as text. A string is returned as it is. True and False become the choice that
    means yes or no; if the question has no such choice, raise `BadInput`."""
    if not isinstance(answer, bool):
        return cast("str", answer)  # checked where it is recorded
    words = _YES if answer else _NO
    found = next((choice for choice in question.choices if choice.casefold() in words), None)
    if found is None:
        raise BadInput(f"question {question.id} wants a text, and on_question returned {answer}")
    return found

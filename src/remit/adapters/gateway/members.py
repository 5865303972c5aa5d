"""A program's way to models and colleagues while it works on a task: valid for one attempt, and worth nothing after it.

Requests come from the listener's tasks. Their work is done in tasks that carry the context of the turn, and the engine
cancels those when the turn ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Coroutine, Generator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, Final, TypeVar

from remit.adapters.gateway.passing import AnswerPipe, ProgramRequest, RequestPassage
from remit.adapters.gateway.reading import KEPT_RESULT, RESULT, fields, recorded
from remit.adapters.gateway.tools import ToolPermit
from remit.adapters.gateway.upstream import BROKEN, Upstreams
from remit.core.command import Command
from remit.core.prompt import cut
from remit.core.values import Json, encode
from remit.errors import Refused, RemitError
from remit.ports.models import ModelCall, Position
from remit.ports.turn import TalkLike, TurnLike

T = TypeVar("T")

MAX_TOKENS: Final = 8_000  # of one answer, unless the member says otherwise
LEAST_TOKENS: Final = 4_096  # a shorter answer would be cut, and the program would ask for it again
AT_ONCE: Final = 8  # requests of one member
WAITING: Final = 64  # requests of one member, at work or waiting
_LOOKS: Final = frozenset(("list_agents", "check_delegation_status", "recall"))
_BYTES: Final = 3  # of a request for each token of input, if nothing better is known


class GatewayMember:
    """One attempt of a program. `token` is its key to the gateway, which knows the member by the digest of the token.

    `upstreams` are the models that it may ask, None for none, and `most` limits the output tokens of an answer. `verbs`
    says whether it may use the verbs of the turn, `approves` whether a person is asked about its own tools, and
    `resumes` whether the results of its tools are recorded for a later attempt."""

    def __init__(
        self,
        turn: TurnLike,
        upstreams: Upstreams | None,
        *,
        most: int = MAX_TOKENS,
        verbs: bool = False,
        approves: bool = False,
        resumes: bool = False,
    ) -> None:
        self.turn = turn
        self.has_verbs = verbs
        self.approves = approves
        self.upstreams = upstreams
        self.token = f"rmg_{secrets.token_urlsafe(32)}"
        self.digest = digest_of(self.token)
        self.handed: Command | None = None  # how the program handed its task over
        self.is_handed = asyncio.Event()
        self.failure: Exception | None = None  # an error of the owner's code, which fails the task
        self.tokens = 0  # that models have counted for this attempt
        self.refused = ""  # the sentence of the last request that got no answer
        self._most = most
        self._resumes = resumes
        self._told: set[str] = set()  # tool calls whose results this attempt has recorded
        self._permit: ToolPermit | None = None  # the same during one attempt
        self._context = copy_context()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._free = asyncio.Semaphore(AT_ONCE)
        self._here = 0  # requests at work or waiting
        self._calls: Counter[str] = Counter()
        self._last = (0, 0)  # bytes of the latest request, and its tokens of input

    def knows(self, token: str) -> bool:
        """Whether this is the member's token."""
        return hmac.compare_digest(digest_of(token), self.digest)

    @contextmanager
    def room(self) -> Generator[None]:
        """Count a request while it is here. Raise `Refused` if there are too many: each has its body in memory."""
        if self._here >= WAITING:
            raise Refused(f"this program has {WAITING} requests at once already; wait for their answers", rule="busy")
        self._here += 1
        try:
            yield
        finally:
            self._here -= 1

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run work of the turn in a task that carries the turn's context."""
        task = asyncio.get_running_loop().create_task(work, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self.failure = self.failure or error

    async def leave(self) -> None:
        """Cancel the asyncio tasks of this attempt, and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def ask(self, request: ProgramRequest, out: AnswerPipe) -> None:
        """Ask a model for the program, and pass its answer to `out`. If there is no answer, pass on the reason, and set
        `refused` to it."""
        assert self.upstreams is not None
        passage = RequestPassage(request, self.upstreams, out)
        try:
            async with self._free:
                await self._ask_model(request, passage)
        except RemitError as error:
            self.refused = str(error)
            await passage.refuse(self.refused)
        except BROKEN as error:  # in the middle: a part of the answer is with the program
            self.refused = f"the answer broke off: {str(error) or type(error).__name__}"
            await passage.refuse(self.refused, again=True)

    async def _ask_model(self, request: ProgramRequest, passage: RequestPassage) -> None:
        assert self.upstreams is not None
        permit = self._permit = self._permit or ToolPermit((await self.turn.offers()).kit, self.turn.tools)
        passage.request = request = request.within(permit)
        choices = self.upstreams.choices(request.wire, request.asked)
        talk = await self.turn.begin_talk(secrets.token_hex(8))
        await self._tell(talk, request.asked.news)
        most = min(request.asked.most or self._most, self._most)

        def size(_trim: int) -> int:
            return self.estimate(request.size)

        call = ModelCall(
            "",
            choices,
            size,
            most,
            passage.send,
            passage.failure,
            request.asked.tools,
            self.upstreams.ready,
            Position("", framework=request.wire.name),
            least=min(most, LEAST_TOKENS),
            spent=passage.spent,
        )
        answer = await talk.ask(call, recorded(request.asked.news))
        if answer.usage is not None:
            self.tokens += answer.usage.input + answer.usage.output
            self._last = request.size, answer.usage.input
        calls = passage.calls()
        if denied := [name for name in calls if not permit.shows(name)]:
            sentence = f"'{self.turn.agent}' may not use '{denied[0]}' for this task, and its model called it"
            raise Refused(sentence, rule="not-allowed")
        await talk.exchanged(passage.words(), says=not calls, hands_on=False)
        await passage.finish()

    async def _tell(self, talk: TalkLike, news: list[Json]) -> None:
        """Record new results of the program's tools before the model is asked: if this attempt is killed before the
        answer, the next one knows that these calls are done."""
        if not self._resumes:
            return
        results = [item for item in map(fields, news) if item.get("type") == RESULT]
        fresh = [item for item in results if item["call_id"] not in self._told]
        if fresh:
            self._told.update(item["call_id"] for item in fresh)
            shortened: list[Json] = [item | {"output": cut(item["output"], KEPT_RESULT)} for item in fresh]
            await talk.tell(recorded(shortened), len(fresh))

    def estimate(self, size: int) -> int:
        """Return an estimate of the input tokens of a request of `size` bytes: the tokens of the last request, and one
        for every three new bytes. If there is no last request or it was longer, one for every three bytes."""
        before, tokens = self._last
        return tokens + (size - before) // _BYTES if tokens and size >= before else size // _BYTES + 1

    def call_id(self, verb: str, arguments: Mapping[str, Any]) -> str:
        """Return the id of a verb's call. A verb that does something has the same id in every attempt, so that what was
        done is found in the record; one that looks at the present has a new id each time."""
        if verb in _LOOKS or (verb == "blackboard" and arguments.get("action") in ("read", "list")):
            return secrets.token_hex(8)
        about = f"{verb} {encode(dict(arguments))}"
        self._calls[about] += 1
        return f"verb-{self._calls[about]}"

    def hand_over(self, command: Command) -> None:
        """Record that the program has handed its task over, and wake the code that waits for that: the program has
        nothing left to do."""
        self.handed = command
        self.is_handed.set()


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()

"""`ws.questions`: the questions of agents to people, and the answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from remit.core.checks import between, text_or_none
from remit.core.question import Inquiry, Question, Reply
from remit.core.values import NAME_LIMIT, Json, line, shown
from remit.engine.answering import AskedQuestion
from remit.engine.people import inquiry
from remit.errors import NotFound
from remit.ports import View
from remit.runtime.opening import Opening

_MOST = 1_000


class WorkspaceQuestions:
    """The questions of agents to people, and the answers. The first answer counts; a later one raises `Conflict`, which
    says who was first, when and over which channel. The same answer with the same `op` is one answer."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def get(self, id: str) -> Inquiry:
        """Return one question, open or decided. Raise `NotFound` if there is none."""
        line(id, "a question's id", NAME_LIMIT)

        def look(view: View) -> Inquiry | None:
            found = view.question(id)
            return inquiry(view, found) if found is not None else None

        found = await self._opening.records.read(look)
        if found is None:
            raise NotFound(f"there is no question {shown(id)} in this workspace; `remit approvals` lists what is open")
        return found

    async def approve(
        self, question: str, *, by: str = "", value: Json = None, why: str = "", channel: str = "", op: str = ""
    ) -> None:
        """Approve a request; `value` is the changed task or arguments, or another amount of money."""
        await self._answer(question, Reply("approved", by, channel, why, value), op)

    async def reject(self, question: str, *, why: str = "", by: str = "", channel: str = "", op: str = "") -> None:
        """Reject a request; the agent gets the reason."""
        await self._answer(question, Reply("rejected", by, channel, why), op)

    async def answer(self, question: str, value: str, *, by: str = "", channel: str = "", op: str = "") -> None:
        """Answer an agent's question."""
        await self._answer(question, Reply("answered", by, channel, value=value), op)

    async def list(
        self,
        *,
        decided: bool = False,
        limit: int = 100,
        before: int | None = None,
        run: str | None = None,
        task: str | None = None,
    ) -> list[Inquiry]:
        """Return the open questions, the first to expire first; or those that were `decided`, the latest first. With
        `run` or `task`, return those of a run or of one task. For decided questions, `before` is the `seq` of the last
        one on the previous page."""
        between(limit, "limit", 1, _MOST)
        text_or_none(run, "a run's id", NAME_LIMIT)
        text_or_none(task, "a task's id", NAME_LIMIT)

        def look(view: View) -> list[Inquiry]:
            if run is not None or task is not None:
                found = [one for one in _questions_in(view, run, task) if one.is_open != decided]
                kept = [one for one in found if one.is_open or before is None or one.asked < before]
            else:
                kept = _decided(view, limit, before) if decided else view.questions_open(limit)
            return [inquiry(view, question) for question in kept[:limit]]

        return await self._opening.records.browse(look)

    def asked(self) -> AsyncGenerator[AskedQuestion]:
        """Yield the open questions, the first asked first, and then each as it is asked, in any process. The loop ends
        when you leave it.

        Example: `async for question in ws.questions.asked(): await question.answer("blue", by="ann")`. An approval is
        decided with `question.approve()` or `question.reject("too late")`.
        """
        return self._opening.engine.desk.asked()

    async def _answer(self, question: str, reply: Reply, op: str) -> None:
        await self._opening.engine.services.questions.answers.answer(question, reply, op)


def _decided(view: View, limit: int, before: int | None) -> list[Question]:
    """Return at least `limit` decided questions before that event, if there are so many, the latest asked first. Open
    questions stand between them, so one page may not be enough."""
    found: list[Question] = []
    while len(found) < limit and (page := view.questions(limit, before)):
        found += [one for one in page if not one.is_open]
        before = page[-1].asked
    return found


def _questions_in(view: View, run: str | None, task: str | None) -> list[Question]:
    """Return the questions of a run or of a task; of the task, if both are given and it belongs to the run. Open
    questions come first, the first to expire first. The others follow, the latest asked first."""
    record = view.record(task) if task is not None else None
    where = run if task is None else record.run if record is not None and run in (None, record.run) else None
    ids = view.questions_of_run(where) if where is not None else []
    found = [one for id_ in ids if (one := view.question(id_)) is not None and task in (None, one.task)]
    return sorted(found, key=lambda one: (not one.is_open, one.until if one.is_open else -one.asked))

"""Approvals and questions over HTTP. An answer names the digest of what was shown, so nothing else is approved."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from remit.core.question import TEXT_LIMIT, Inquiry
from remit.errors import Conflict
from remit.report import wire
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.fields import NO_NUL, AnyJson, Cursor, Limit, Line

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
Reason = Annotated[str, Field(max_length=TEXT_LIMIT, json_schema_extra={"pattern": NO_NUL})]


class QuestionsQuery(QueryModel):
    """Which questions to list: the open ones, or those that were decided."""

    run: Line | None = None
    task: Line | None = None
    decided: Literal["true", "false"] = "false"
    limit: Limit = 100
    cursor: Cursor | None = None


class ApproveBody(BodyModel):
    """An approval; `value` is the changed task or arguments, or another amount of money."""

    digest: Digest
    why: Reason = ""
    value: AnyJson = None


class RejectBody(BodyModel):
    """A rejection; the agent gets the reason."""

    digest: Digest
    why: Reason = ""


class AnswerBody(BodyModel):
    """The answer to an agent's question."""

    digest: Digest
    value: Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT, json_schema_extra={"pattern": NO_NUL})]


async def listing(call: HttpCall[QuestionsQuery, NoBody]) -> HttpAnswer:
    """List questions to people: open ones, the first to expire first, or decided ones, the latest first."""
    query, decided = call.query, call.query.decided == "true"
    found = await call.workspace.questions.list(
        decided=decided, limit=query.limit, before=query.cursor, run=query.run, task=query.task
    )
    following = str(found[-1].seq) if decided and len(found) == query.limit else None
    return HttpAnswer({"approvals": [wire.object_of(one) for one in found], "next": following})


async def look(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show a question, open or decided."""
    return HttpAnswer(wire.object_of(await call.workspace.questions.get(call.id)))


async def approve(call: HttpCall[NoQuery, ApproveBody]) -> HttpAnswer:
    """Approve what the question shows."""
    asked = await _question_seen(call, call.body.digest)
    body = call.body
    await call.workspace.questions.approve(
        asked.id, by=call.caller.by, value=body.value, why=body.why, channel="http", op=_op(call, asked)
    )
    return HttpAnswer({"id": asked.id, "state": "approved"})


async def reject(call: HttpCall[NoQuery, RejectBody]) -> HttpAnswer:
    """Reject what the question shows."""
    asked = await _question_seen(call, call.body.digest)
    await call.workspace.questions.reject(
        asked.id, why=call.body.why, by=call.caller.by, channel="http", op=_op(call, asked)
    )
    return HttpAnswer({"id": asked.id, "state": "rejected"})


async def answer(call: HttpCall[NoQuery, AnswerBody]) -> HttpAnswer:
    """Answer an agent's question."""
    asked = await _question_seen(call, call.body.digest)
    await call.workspace.questions.answer(
        asked.id, call.body.value, by=call.caller.by, channel="http", op=_op(call, asked)
    )
    return HttpAnswer({"id": asked.id, "state": "answered"})


def _op(
    call: HttpCall[NoQuery, ApproveBody] | HttpCall[NoQuery, RejectBody] | HttpCall[NoQuery, AnswerBody], asked: Inquiry
) -> str:
    """Return the operation id of an answer. Without an Idempotency-Key, it is made of the access key and the question,
    so a repeated answer counts once."""
    return call.op or call.caller.op(f"answer/{asked.id}")


async def _question_seen(
    call: HttpCall[NoQuery, ApproveBody] | HttpCall[NoQuery, RejectBody] | HttpCall[NoQuery, AnswerBody], digest: str
) -> Inquiry:
    """Return the question of the path. Raise `Conflict` if it is not the one that the caller saw."""
    found = await call.workspace.questions.get(call.id)
    if found.digest != digest:
        no = Conflict("the digest is not that of this question; read it again and decide about what it shows")
        no.retryable = False
        raise no
    return found

"""Money over HTTP: the account, its reservations, what was spent, the limits, and calls whose cost is uncertain."""

from __future__ import annotations

from typing import cast

from pydantic import ConfigDict

from remit.core.tally import SpendSeries
from remit.core.times import aware
from remit.errors import BadInput
from remit.report import wire
from remit.report.spend import SPEND_SERIES, SpendBy
from remit.runtime.filters import SeriesBy, StatsFilter
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.fields import AgentName, Amount, Granted, QueryMoment, Tokens, Why


class FiguresQuery(QueryModel):
    """The period and the agent of figures."""

    since: QueryMoment | None = None
    until: QueryMoment | None = None
    agent: AgentName | None = None

    def filters(self) -> StatsFilter:
        since, until = (None if at is None else aware(at) for at in (self.since, self.until))
        return {"since": since, "until": until, "agent": self.agent}


class AnalyticsQuery(FiguresQuery):
    """The period and the agent of statistics, and whether they are for each hour or day."""

    by: SeriesBy | None = None


class SpendQuery(QueryModel):
    """How spending is grouped, and its period. Several names, with commas, are a series from the statistics."""

    by: SpendBy | SpendSeries = "agent"
    since: QueryMoment | None = None
    until: QueryMoment | None = None


class GrantBody(BodyModel):
    """An amount for the account: money, tokens, or both."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["amount"], "properties": {"amount": {"type": "string"}}},
                {"required": ["tokens"], "properties": {"tokens": {"minimum": 1}}},
            ]
        }
    )
    amount: Granted | None = None
    tokens: Tokens = 0
    why: Why = ""


class ReconcileBody(BodyModel):
    """The real cost of a call: money, tokens, or both."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["cost"], "properties": {"cost": {"type": "string"}}},
                {"required": ["tokens"], "properties": {"tokens": {"type": "integer"}}},
            ]
        }
    )

    cost: Amount | None = None
    tokens: Tokens | None = None
    why: Why = ""


class UnfreezeBody(BodyModel):
    """Why the account is unfrozen."""

    why: Why = ""


async def spend(call: HttpCall[SpendQuery, NoBody]) -> HttpAnswer:
    """Show what was spent."""
    query = call.query
    since, until = (None if at is None else aware(at) for at in (query.since, query.until))
    if query.by in SPEND_SERIES:
        by = cast("SpendSeries", query.by)
        return HttpAnswer(wire.spend_series(by, await call.workspace.looks.spend(by, since=since, until=until)))
    found = await call.workspace.money.spend(cast("SpendBy", query.by), since=since, until=until)
    return HttpAnswer(wire.spending(found))


async def account(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show the account in each unit; null for a unit without a grant."""
    return HttpAnswer(wire.object_of(await call.workspace.money.account()))


async def leases(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List the reservations and caps."""
    return HttpAnswer({"leases": [wire.lease(one) for one in await call.workspace.money.leases()]})


async def uncertain(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List the calls that were charged in full because their cost is unknown."""
    return HttpAnswer({"uncertain": [wire.hold(one) for one in await call.workspace.money.uncertain()]})


async def limits(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show the use of each limit."""
    return HttpAnswer({"limits": [wire.limit_use(one) for one in await call.workspace.money.limits()]})


async def grant(call: HttpCall[NoQuery, GrantBody]) -> HttpAnswer:
    """Add money or tokens to the account. The answer is the grant itself, so that a repetition gets the same."""
    body = call.body
    await call.workspace.money.grant(body.amount, tokens=body.tokens, why=body.why, op=call.op, by=call.caller.by)
    return HttpAnswer({"granted": {"credits": body.amount, "tokens": body.tokens}}, 201)


async def reconcile(call: HttpCall[NoQuery, ReconcileBody]) -> HttpAnswer:
    """Enter the real cost of an uncertain call, once."""
    body, act = call.body, {"op": call.op, "by": call.caller.by}
    if body.cost is None and body.tokens is None:
        raise BadInput("the body: cost or tokens is needed")
    refund = await call.workspace.money.reconcile(call.id, body.cost, tokens=body.tokens, why=body.why, **act)
    return HttpAnswer({"refund": {**refund}})


async def unfreeze(call: HttpCall[NoQuery, UnfreezeBody]) -> HttpAnswer:
    """Unfreeze the account after an overrun."""
    changed = await call.workspace.money.unfreeze(call.body.why, op=call.op, by=call.caller.by)
    return HttpAnswer({"changed": changed})


async def analytics(call: HttpCall[AnalyticsQuery, NoBody]) -> HttpAnswer:
    """Show statistics of agents, durations, handoffs and refusals: of a period, or of each hour or day of it. By hour,
    the period has at most 31 days; without `since`, it is the last day."""
    by = call.query.by
    if by is not None:
        points = await call.workspace.looks.stats(by, **call.query.filters())
        return HttpAnswer({"by": by, "series": [wire.stats_point(point) for point in points]})
    return HttpAnswer(wire.stats(await call.workspace.stats(**call.query.filters())))


async def edges(call: HttpCall[FiguresQuery, NoBody]) -> HttpAnswer:
    """Show who asks whom: how often, how it ended, and what it cost."""
    return HttpAnswer({"edges": [wire.edge(one) for one in await call.workspace.edges(**call.query.filters())]})

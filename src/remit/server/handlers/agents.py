"""Agents over HTTP: their cards, the best for something, their breakers, and the workers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from remit.core.allow import has
from remit.core.card import Card
from remit.core.match import BEST, MATCHES, choice
from remit.engine.acts import WHY_LIMIT
from remit.report import wire
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.fields import NO_NUL, Why, digits


class FindQuery(QueryModel):
    """A search for agents: the capability, in words."""

    q: Annotated[str, Field(min_length=1, max_length=1_000, json_schema_extra={"pattern": NO_NUL})]
    limit: Annotated[int, Field(ge=1, le=MATCHES), BeforeValidator(digits)] = BEST


class TripBody(BodyModel):
    """Why an agent is taken out of service."""

    why: Annotated[str, Field(min_length=1, max_length=WHY_LIMIT, json_schema_extra={"pattern": NO_NUL})]


class ResetBody(BodyModel):
    """Why an agent's breaker is closed."""

    why: Why = ""


async def listing(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List the cards of the agents, each with the number of workers that have it."""
    crew = await call.workspace.agents.workers()
    cards = await _cards(call)
    return HttpAnswer({"agents": [wire.card(one, workers=len(crew.workers_of(one.name))) for one in cards]})


async def _cards(call: HttpCall[NoQuery, NoBody] | HttpCall[FindQuery, NoBody]) -> list[Card]:
    """Return the cards that the caller may know: those that its own card may ask, or all for an owner."""
    cards = await call.workspace.agents.list()
    if not call.caller.agent:
        return cards
    own = next((card for card in cards if card.name == call.caller.agent), None)
    return [] if own is None else [card for card in cards if has(own.asks, card.name)]


async def find(call: HttpCall[FindQuery, NoBody]) -> HttpAnswer:
    """Find the agents that suit best, each with its score and the reason."""
    known = {card.name for card in await _cards(call)}
    found = await call.workspace.agents.find(call.query.q, limit=MATCHES)
    found = [one for one in found if one.card.name in known][: call.query.limit]
    chosen = choice(found)
    return HttpAnswer({"matches": [wire.match(one, chosen=one is chosen) for one in found]})


async def breakers(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List the breakers of agents that have failed recently or were taken out of service."""
    found = await call.workspace.agents.breakers()
    return HttpAnswer({"breakers": [wire.breaker(name, one) for name, one in sorted(found.items())]})


async def trip(call: HttpCall[NoQuery, TripBody]) -> HttpAnswer:
    """Take an agent out of service."""
    await call.workspace.agents.trip(call.agent, call.body.why, op=call.op, by=call.caller.by)
    return HttpAnswer(None, 204)


async def reset(call: HttpCall[NoQuery, ResetBody]) -> HttpAnswer:
    """Close an agent's circuit breaker, so that the agent can be called at once."""
    await call.workspace.agents.reset(call.agent, call.body.why, op=call.op, by=call.caller.by)
    return HttpAnswer(None, 204)


async def withdraw(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Remove the card of an agent that no worker has."""
    await call.workspace.agents.withdraw(call.agent, op=call.op, by=call.caller.by)
    return HttpAnswer(None, 204)


async def workers(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List the processes that run tasks."""
    crew = await call.workspace.agents.workers()
    return HttpAnswer({"workers": [wire.worker(one) for one in crew.workers]})

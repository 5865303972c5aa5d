"""What each failure of a provider means, over HTTP, in every dialect, plain and streamed; the most common dialect is
tried with the whole engine, for every kind of agent, in `adapters/acceptance`."""

import pytest
from pydantic_ai import exceptions as pai

from adapters.pydantic_ai.asking import KEYS, PROMPT, TOOLS, ask, dialects, governed_model, streams
from adapters.pydantic_ai.turns import ModelDown, StandInTurn, under_way
from remit.adapters.pydantic_ai import failure_of
from remit.core.recovery import ModelFailure
from remit.core.times import SECOND
from remit.testing.models import Cut, Empty, Fails, Garbage, Overflow, Reset, Says, Slow, model_server

pytestmark = pytest.mark.anyio

ROWS = {
    "429": (Fails(429), ModelFailure("rate-limit", 429)),
    "429 with seconds": (Fails(429, retry_after=7), ModelFailure("rate-limit", 429, retry_after=7 * SECOND)),
    "429 with milliseconds": (Fails(429, retry_after=1.5), ModelFailure("rate-limit", 429, retry_after=1_500_000)),
    "429 quota": (Fails(429, code="insufficient_quota"), ModelFailure("billing", 429)),
    "402": (Fails(402), ModelFailure("billing", 402)),
    "401": (Fails(401), ModelFailure("auth", 401)),
    "403": (Fails(403), ModelFailure("forbidden", 403)),
    "overflow": (Overflow(), ModelFailure("overflow", 400)),
    "413": (Fails(413), ModelFailure("overflow", 413)),
    "400 prompt_too_long": (Fails(400, code="prompt_too_long"), ModelFailure("rejected", 400)),
    "400": (Fails(400), ModelFailure("rejected", 400)),
    "422": (Fails(422), ModelFailure("rejected", 422)),
    "404": (Fails(404), ModelFailure("not-found", 404)),
    "408": (Fails(408), ModelFailure("unavailable", 408)),
    "409": (Fails(409), ModelFailure("unavailable", 409)),
    "500": (Fails(500), ModelFailure("unavailable", 500)),
    "502": (Fails(502), ModelFailure("unavailable", 502)),
    "503": (Fails(503), ModelFailure("unavailable", 503)),
    "503 overloaded": (Fails(503, message="overloaded"), ModelFailure("unavailable", 503)),
    "504": (Fails(504), ModelFailure("unavailable", 504)),
    "529": (Fails(529), ModelFailure("unavailable", 529)),
    "reset": (Reset(), ModelFailure("connection")),
    "cut": (Cut(Says("a long answer " * 20)), ModelFailure("connection")),
    "garbage": (Garbage(), ModelFailure("broken")),
    "another page": (Garbage(content_type="text/html"), ModelFailure("broken")),
    "empty": (Empty(), ModelFailure("empty")),
}


@pytest.mark.rule("pydantic.failures")
@streams
@pytest.mark.parametrize("dialect", ["responses", "messages"])
@pytest.mark.parametrize("row", ROWS)
async def test_every_failure_is_told_by_type_and_status(row: str, dialect: str, listens: bool):
    reply, expected = ROWS[row]
    with pytest.raises(ModelDown) as down:
        await ask(reply, dialect, listens=listens)
    assert down.value.failure._replace(code="", said="", usage=None) == expected


@streams
@dialects
async def test_a_refused_connection_has_sent_nothing(dialect: str, listens: bool):
    async with model_server() as server:
        gone = server.url
    async with governed_model(gone, dialect) as model:
        with under_way(StandInTurn(listens=listens)), pytest.raises(ModelDown) as down:
            await model.request(PROMPT, None, TOOLS)
    assert down.value.failure == ModelFailure("connection", sent=False, said=f"{gone} did not answer")


@streams
@dialects
@pytest.mark.parametrize("setting", ["timeout", "request_timeout"])
async def test_a_slow_answer_was_sent_for(setting: str, dialect: str, listens: bool):
    with pytest.raises(ModelDown) as down:
        await ask(Slow(Says("late"), 30), dialect, listens=listens, settings={setting: 0.2})
    assert down.value.failure._replace(said="") == ModelFailure("timeout")


@dialects
async def test_a_client_never_asks_again_by_itself(dialect: str):
    async with model_server([Fails(503)]) as server, governed_model(server.url, dialect) as model:
        with under_way(StandInTurn()), pytest.raises(ModelDown):
            await model.request(PROMPT, None, TOOLS)
        assert len(server.requests) == 1


@pytest.mark.rule("pydantic.failures")
@dialects
async def test_what_a_provider_writes_is_never_told(dialect: str):
    """A provider may quote the key in its message, and even in its code."""
    for code in ("", KEYS["FIRST"], "x" * 1_000):
        with pytest.raises(ModelDown) as down:
            await ask(Fails(400, code=code, message=f"bad key {KEYS['FIRST']}"), dialect)
        assert "canary" not in repr(down.value.failure)
        assert "xxx" not in repr(down.value.failure)


def test_an_error_of_other_code_is_not_the_models():
    assert failure_of(ValueError("mine")) is None
    assert failure_of(TimeoutError()) is None


def test_of_a_model_that_tries_several_the_last_failure_counts():
    last = pai.ModelHTTPError.for_category(pai.ModelRateLimitError, status_code=429, model_name="b", retry_after=2.0)
    group = pai.FallbackExceptionGroup("all failed", [pai.ModelAPIError("a", "?"), last])
    assert failure_of(group) == ModelFailure("rate-limit", 429, retry_after=2 * SECOND)


def test_the_rest_of_the_table():
    assert failure_of(pai.ContentFilterError("no")) == ModelFailure("rejected")
    assert failure_of(pai.ModelTimeoutError("a", "?", phase="connect")) == ModelFailure("timeout", sent=False)
    assert failure_of(pai.ModelConnectionError("a", "?", phase="pool")) == ModelFailure("connection", sent=False)
    assert failure_of(pai.ModelConnectionError("a", "?")) == ModelFailure("connection")
    assert failure_of(pai.ModelHTTPError(418, "a")) == ModelFailure("rejected", 418)
    odd = pai.ModelHTTPError.for_category(pai.ModelRateLimitError, status_code=429, model_name="a", retry_after=1e400)
    assert failure_of(odd) == ModelFailure("rate-limit", 429)

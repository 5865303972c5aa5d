"""What is told of a conversation with a server that broke off in the middle."""

import psycopg
import pytest

from remit.stores.postgres.address import broke, reason


def broken(before: Exception | None) -> psycopg.Error:
    """As psycopg tells it when it cannot leave a pipeline whose connection is gone."""
    error = psycopg.OperationalError("cannot exit pipeline mode while busy")
    error.__context__ = before
    return error


@pytest.mark.rule("postgres.hung")
def test_the_reason_is_what_went_wrong_first_and_never_that_a_pipeline_cannot_be_left():
    first = psycopg.OperationalError("server closed the connection unexpectedly")
    assert reason(broken(broken(first))) is first
    assert reason(first) is first
    assert str(reason(broken(None))) == str(reason(broken(ValueError("x")))) == "the connection broke"
    assert broke(broken(first))
    assert not broke(first)

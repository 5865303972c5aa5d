"""The errors: the tree that is drawn is the tree that is built, and each says what to do with it."""

import copy
import pickle
import re

import pytest

from remit import errors
from remit.errors import (
    BadInput,
    Cancelled,
    Conflict,
    Failed,
    NotFound,
    Refused,
    RemitError,
    StoreError,
    TimedOut,
)

ALL = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, RemitError)]


def an(error: type[RemitError]) -> RemitError:
    if issubclass(error, Refused):
        return error("no", rule="loop")
    if issubclass(error, Failed):
        return error("no", agent="coder", task="t2")
    return error("no")


def drawn() -> dict[str, str]:
    """Each class in the drawing, and the one above it; four columns of the drawing are one step down."""
    above: dict[int, str] = {}
    found: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"^    ([│├└─ ]*)([A-Z]\w+)(?: |$)", line):
            step = len(match[1]) // 4
            above[step] = match[2]
            found[match[2]] = above[step - 1] if step else "Exception"
    return found


def test_the_drawing_shows_every_error_below_the_right_one():
    assert drawn() == {error.__name__: error.__bases__[0].__name__ for error in ALL}


@pytest.mark.parametrize("error", ALL)
def test_every_error_says_whom_it_addresses_its_status_and_whether_to_retry(error):
    assert error.addressee in {"asker", "caller", "operator"}
    assert 400 <= error.status < 600
    assert isinstance(error.retryable, bool)


@pytest.mark.parametrize(
    ("error", "addressee", "status", "retryable"),
    [
        (BadInput, "caller", 422, False),
        (NotFound, "caller", 404, False),
        (Conflict, "caller", 409, True),
        (Refused, "asker", 403, False),
        (Failed, "asker", 502, False),
        (TimedOut, "asker", 504, True),
        (Cancelled, "asker", 409, False),
        (StoreError, "operator", 503, False),
        (errors.NotAStore, "operator", 500, False),
        (errors.NewerStore, "operator", 500, False),
        (errors.StoreBusy, "operator", 503, True),
    ],
)
def test_what_each_error_says(error, addressee, status, retryable):
    assert (error.addressee, error.status, error.retryable) == (addressee, status, retryable)


def test_bad_input_and_not_found_are_also_what_python_calls_them():
    assert issubclass(BadInput, ValueError)
    assert issubclass(NotFound, LookupError)


def test_a_refusal_carries_its_rule():
    error = Refused("'kik' is already in this delegation", rule="loop")

    assert (str(error), error.rule) == ("'kik' is already in this delegation", "loop")


@pytest.mark.parametrize("error", [Failed, TimedOut, Cancelled])
def test_a_failure_carries_its_agent_and_its_task(error):
    found = error("did not deliver", agent="coder", task="t2")

    assert (str(found), found.agent, found.task) == ("did not deliver", "coder", "t2")


@pytest.mark.parametrize("error", ALL)
@pytest.mark.parametrize(
    "sent",
    [copy.copy, lambda error: pickle.loads(pickle.dumps(error))],
    ids=["copied", "sent to another process"],
)
def test_an_error_survives_being_copied_and_being_sent_to_another_process(error, sent):
    original = an(error)

    found = sent(original)

    assert type(found) is error
    assert str(found) == "no"
    assert vars(found) == vars(original)

"""A secret is shown nowhere but where someone asks for it by name."""

import copy
import json
import logging
import pickle
import pprint
import traceback
from dataclasses import asdict, dataclass

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit import Secret
from remit.core.secret import LONGEST
from remit.errors import BadInput

CANARY = "canary-4f1d9c2e7b"


def shown(error: BaseException, *, but_for: str = "") -> str:
    """A traceback as the most talkative logger writes it: with the variables of every frame, but for those of a file
    that has a secret in its own."""
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    led_to = [told]
    for one in led_to:
        one.stack[:] = [frame for frame in one.stack if frame.filename != but_for]
        led_to += [before for before in (one.__cause__, one.__context__) if before is not None]
    return "".join("".join(one.format(chain=False)) for one in led_to)


@pytest.mark.rule("secret.value")
def test_only_reveal_gives_a_secret_out():
    secret = Secret(CANARY)

    assert secret.reveal() == CANARY
    assert repr(secret) == str(secret) == f"{secret}" == f"{secret!r}" == "%s" % secret == "[secret]"  # noqa: UP031
    assert f"{secret:>10}" == "  [secret]"
    assert pprint.pformat({"k": [secret]}) == "{'k': [[secret]]}"


@pytest.mark.rule("secret.value")
def test_a_secret_has_no_attribute_that_shows_it():
    secret = Secret(CANARY)

    with pytest.raises(TypeError):
        vars(secret)
    # From outside, as a debugger or a serializer would go through it.
    found = {name: getattr(secret, name, None) for name in dir(secret) if name not in ("reveal", "_told")}
    assert CANARY not in repr(found)
    assert CANARY not in repr([getattr(secret, name) for name in Secret.__slots__])


@pytest.mark.rule("secret.value")
@pytest.mark.parametrize("write", [json.dumps, orjson.dumps, pickle.dumps, lambda secret: pickle.dumps(secret, 0)])
def test_a_secret_is_not_written_as_json_or_pickled(write):
    with pytest.raises(TypeError) as no:
        write([Secret(CANARY)])
    assert CANARY not in shown(no.value)


@pytest.mark.rule("secret.value")
def test_a_copy_of_a_secret_is_the_same_object():
    @dataclass
    class Holder:
        key: Secret

    secret = Secret(CANARY)
    assert copy.copy(secret) is copy.deepcopy(secret) is copy.deepcopy({"k": [secret]})["k"][0] is secret
    assert asdict(Holder(secret)) == {"key": secret}
    assert CANARY not in repr(Holder(secret))


@pytest.mark.rule("secret.value")
def test_secrets_are_compared_and_nothing_else_is_told_of_them():
    assert Secret(CANARY) == Secret(CANARY) != Secret("another")
    assert Secret("über") != Secret("uber")
    assert Secret(CANARY) != CANARY
    for ask in (hash, len, list, bytes):
        with pytest.raises(TypeError):
            ask(Secret(CANARY))
    assert Secret(CANARY)


@pytest.mark.rule("secret.value")
def test_a_secret_is_in_no_log_and_in_no_traceback_with_variables(caplog: pytest.LogCaptureFixture):
    def fails(secret: Secret) -> None:
        mine, _again = secret, [{"key": secret}]
        raise ValueError(f"it failed with {mine}")

    caplog.set_level(logging.DEBUG)
    with pytest.raises(ValueError, match=r"it failed with \[secret\]") as failed:
        fails(Secret(CANARY))
    logging.getLogger("anyone").debug("used %s and %r", Secret(CANARY), [Secret(CANARY)], exc_info=failed.value)
    assert "used [secret] and [[secret]]" in caplog.text
    assert CANARY not in caplog.text + shown(failed.value)


@pytest.mark.rule("secret.value")
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: "", "a secret is not empty"),
        (CANARY.encode, "a secret is text, not bytes"),
        (lambda: None, "a secret is text, not NoneType"),
        (lambda: CANARY * (LONGEST // len(CANARY) + 1), "at most 8,192 bytes"),
        (lambda: CANARY + "ü" * (LONGEST // 2), "at most 8,192 bytes"),
        (lambda: CANARY + "\ud800", "half of a surrogate pair"),
    ],
)
def test_what_cannot_be_a_secret_is_refused_without_showing_it(make, sentence):
    with pytest.raises(BadInput, match=sentence) as no:
        Secret(make())
    assert CANARY not in shown(no.value)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
def test_what_goes_in_comes_out(text: str):
    assert Secret(text).reveal() == text
    assert Secret("x" * LONGEST).reveal() == "x" * LONGEST

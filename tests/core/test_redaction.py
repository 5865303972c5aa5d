"""Secrets are taken out of text and JSON, wherever they stand in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.secret import NOTHING_SECRET, Redaction, Secret
from remit.errors import BadInput


@pytest.mark.rule("secret.nowhere")
def test_a_secret_is_taken_out_of_values_keys_and_the_middle_of_words():
    redact = Redaction(["12345678", "1234567890", "a.b.c.d.e"])

    assert redact.text("x1234567890y 12345678 a.b.c.d.e aXbXcXdXe") == "x[secret]y [secret] [secret] aXbXcXdXe"
    assert redact.json({"k12345678": [1, None, True, 1.5, "12345678"]}) == {
        "k[secret]": [1, None, True, 1.5, "[secret]"]
    }
    assert redact


def test_without_secrets_everything_stays():
    assert not NOTHING_SECRET
    assert NOTHING_SECRET.text("12345678") == "12345678"
    assert NOTHING_SECRET.json({"a": ["12345678"]}) == {"a": ["12345678"]}


@pytest.mark.rule("secret.nowhere")
@pytest.mark.parametrize("wrong", ["text itself", b"bytes", 7, ["short"], [12345678]])
def test_what_cannot_be_a_secret_is_refused_and_not_shown(wrong):
    with pytest.raises(BadInput, match="secret") as no:
        Redaction(wrong)
    assert "12345678" not in str(no.value)


@pytest.mark.rule("secret.nowhere")
def test_a_secret_that_is_learned_later_is_taken_out_from_then_on():
    redact = Redaction()
    assert redact.text("x1234567890y") == "x1234567890y"

    for secret in ("12345678", "1234567890", "12345678", "short"):
        redact.learn(Secret(secret))

    assert redact
    assert redact.text("x1234567890y 12345678 short") == "x[secret]y [secret] short"


_FEW = st.text("ab", min_size=8, max_size=12)


@pytest.mark.rule("secret.nowhere")
@given(st.lists(_FEW, min_size=1, max_size=3), st.lists(st.one_of(st.text("abc", max_size=9), _FEW), max_size=9))
def test_a_text_in_pieces_is_without_the_same_secrets_as_the_whole(secrets: list[str], pieces: list[str]):
    redact, told, held = Redaction(secrets), "", ""
    for piece in [*pieces, secrets[0], secrets[-1][:5]]:
        part, held = redact.split(held + piece)
        told += part
        assert not any(secret in told for secret in secrets)

    assert told + redact.text(held) == redact.text("".join([*pieces, secrets[0], secrets[-1][:5]]))

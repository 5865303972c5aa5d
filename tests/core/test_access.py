"""The form of an access key, its scopes, its expiry and its bounds."""

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as some

from core.made import CI
from core.make import NOW
from remit.core import access
from remit.core.access import GivenKey, MadeAccess, expiry, included, info, key_of, limits, parse_key, scopes, wrong_id
from remit.core.bounds import TOP, Bounds
from remit.core.times import DAY, SECOND
from remit.errors import BadInput

LATER = datetime(2030, 1, 1, tzinfo=timezone(timedelta(hours=2)))
GIVEN, KEY = key_of(bytes(range(10)), bytes(range(32)))


@pytest.mark.rule("access.form")
def test_a_key_has_a_prefix_an_id_256_bits_and_a_checksum():
    assert KEY.reveal() == "rmt_aaaqeayeaudaocaj_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8_da4d1724"
    assert parse_key(KEY.reveal()) == GIVEN
    assert [parse_key(text) for text in ("", "x" * 73, KEY.reveal().upper(), KEY.reveal()[:-1] + "0")] == [None] * 4
    assert GIVEN.id == "aaaqeayeaudaocaj"
    assert re.fullmatch("[0-9a-f]{64}", GIVEN.digest)
    assert "AAECAw" not in repr(MadeAccess(info(CI, None, NOW), KEY))


@pytest.mark.rule("access.form")
@drawn(some.binary(min_size=10, max_size=10), some.binary(min_size=32, max_size=32), some.data())
def test_any_key_is_understood_and_none_with_another_character(id_: bytes, secret: bytes, data: some.DataObject):
    made, key = key_of(id_, secret)
    text = key.reveal()
    assert parse_key(text) == made
    at = data.draw(some.integers(0, len(text) - 1))
    other = data.draw(some.sampled_from("abcXYZ019_-é\n \0").filter(lambda letter: letter != text[at]))
    assert parse_key(text[:at] + other + text[at + 1 :]) is None


@pytest.mark.rule("access.form")
@drawn(some.text(max_size=100))
def test_other_text_is_no_key(text: str):
    assert parse_key(text) is None
    assert parse_key(f"rmt_{text}") is None


@pytest.mark.parametrize("value", ["", None, 7, "k7w2", "K7W2MZQ4C3X5AB6D", "k7w2mzq4c3x5ab6d\n", KEY.reveal()])
def test_an_id_that_is_none_is_refused_without_being_shown(value: Any):
    assert wrong_id(CI.id) == ""
    assert "has 16 characters" in wrong_id(value)
    assert "AAECAw" not in wrong_id(value)


@pytest.mark.rule("access.scopes")
def test_scopes_include_smaller_ones_and_approve_is_next_to_run():
    assert scopes("approve run") == scopes(["run", "approve", "run"]) == ("run", "approve")
    assert included(["read"]) == {"read"}
    assert included(["run"]) == {"read", "run"}
    assert included(["approve"]) == {"read", "approve"}
    assert included(["run", "approve"]) == {"read", "run", "approve"}
    assert included(["admin"]) == {*access.SCOPES}
    assert included([]) == set()


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ([], "and an access key needs at least one"),
        ("", "and an access key needs at least one"),
        (["run", "Admin"], "scopes are read, run, approve and admin, not 'Admin'"),
        ([["run"]], r"scopes are read, run, approve and admin, not \['run'\]"),
        (None, r"scopes is a list such as \['run', 'approve'\], not None"),
        ({"run": True}, "scopes is a list such as"),
    ],
)
def test_strange_scopes_are_refused(wanted: Any, sentence: str):
    with pytest.raises(BadInput, match=sentence):
        scopes(wanted)


@pytest.mark.rule("access.expiry")
def test_an_access_expires_after_a_duration_or_at_a_moment_or_never():
    assert expiry(None, NOW) is None
    assert expiry(90, NOW) == expiry(timedelta(seconds=90), NOW) == NOW + 90 * SECOND
    assert expiry(LATER, NOW) == expiry(datetime(2029, 12, 31, 22, tzinfo=UTC), NOW)
    assert CI.lives(NOW)
    assert not CI.lives(NOW + 90)
    assert CI._replace(expires_at=None).lives(NOW + 9_000 * DAY)
    assert not CI._replace(revoked_at=NOW).lives(NOW)


@pytest.mark.parametrize(
    "when", [0, -1, math.nan, True, "tomorrow", LATER.replace(tzinfo=None), datetime(1999, 1, 1, tzinfo=UTC)]
)
def test_an_expiry_that_is_none_is_refused(when: Any):
    with pytest.raises(BadInput, match="expires"):
        expiry(when, NOW)


@pytest.mark.rule("access.form")
def test_only_the_same_key_opens_and_only_while_the_access_lives():
    row = CI._replace(digest=GIVEN.digest)
    assert row.admits(GIVEN.digest, NOW)
    assert not row.admits(GIVEN.digest, NOW + 90)
    assert not row.admits(GIVEN.digest[:-1] + "x", NOW)
    assert not row._replace(revoked_at=NOW - 1).admits(GIVEN.digest, NOW)
    assert GivenKey("a", "b").digest == "b"


def test_the_facts_about_an_access_have_its_state_and_not_its_digest():
    facts = info(CI, NOW + 1, NOW)
    assert facts[:5] == (CI.id, "ci", "active", ("run", "approve"), "reviewer")
    assert facts.bounds == Bounds(depth=2)
    assert (facts.used_at, facts.expires_at, facts.made_at, facts.made_by) == (NOW + 1, NOW + 90, NOW, "ann")
    assert info(CI, None, NOW + 90).state == "expired"
    assert info(CI._replace(revoked_at=NOW), None, NOW + 90).state == "revoked"
    assert CI.digest not in repr(facts)
    assert MadeAccess(facts, KEY).id == CI.id


def test_bounds_are_given_as_json():
    assert limits({}) == TOP
    assert limits({"depth": 2, "credits": "$0.50", "agents": ["coder"]}) == Bounds(
        depth=2, credits="$0.50", agents=["coder"]
    )
    with pytest.raises(BadInput, match="bounds takes no 'dept'; did you mean depth"):
        limits({"dept": 2})
    with pytest.raises(BadInput, match="bounds takes no '_data'"):
        limits({"_data": {}})
    with pytest.raises(BadInput, match="bounds is an object"):
        limits([2])

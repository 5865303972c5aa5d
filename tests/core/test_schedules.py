"""A schedule as a value: its names, its times, and the keywords of its submission as JSON."""

from datetime import timedelta
from typing import Any

import pytest

from core.made import NIGHTLY
from core.make import NOW
from remit import BOARD, Bounds, Scope
from remit.core import scope
from remit.core.schedule import catch_up_of, given_again, keywords_json, operation, schedule_name
from remit.core.times import aware, is_schedule, starter
from remit.core.values import NAME_LIMIT, decode, encode
from remit.errors import BadInput

HOW: dict[str, Any] = {
    "sees": ["notes", Scope("a/b", prefix="x*"), BOARD],
    "writes": "*",
    "tools": ["exec"],
    "within": Bounds(depth=2, credits="$1"),
    "timeout": timedelta(minutes=2),
    "credits": "$0.50",
    "remembers": True,
    "session": "s1",
    "priority": 3,
    "tier": None,
}


def test_keywords_are_the_same_after_they_were_kept_as_json():
    text = encode(keywords_json(HOW))
    again = given_again(decode(text))
    assert again == {
        "sees": scope.passed(HOW["sees"]),
        "writes": scope.passed("*"),
        "tools": frozenset({"exec"}),
        "within": HOW["within"],
        "timeout": 120.0,
        "credits": "$0.50",
        "remembers": "session",
        "session": "s1",
        "priority": 3,
    }
    assert encode(keywords_json(again)) == text


def test_a_schedule_has_its_times_as_datetimes_and_its_keywords():
    assert (NIGHTLY.next_time, NIGHTLY.last_time) == (aware(NOW + 9), None)
    ran = NIGHTLY._replace(next=None, last=NOW)
    assert (ran.next_time, ran.last_time) == (None, aware(NOW))
    assert NIGHTLY.keywords == {"priority": 3}


def test_schedules_ask_for_the_same_whatever_they_have_done():
    assert NIGHTLY.asks_for == NIGHTLY._replace(state="paused", next=None, last=NOW, runs=7, set_by="bob").asks_for
    assert NIGHTLY.asks_for != NIGHTLY._replace(zone="UTC").asks_for


def test_the_longest_name_of_a_schedule_fits_where_a_person_is_named():
    name = schedule_name("x" * 55)
    assert len(starter(name)) == NAME_LIMIT
    assert is_schedule(starter(name))
    assert not is_schedule("ann")
    with pytest.raises(BadInput, match="a schedule's name"):
        schedule_name("x" * 56)


def test_the_operation_of_a_run_is_the_name_and_the_planned_time():
    assert operation("nightly", NOW) == "schedule/nightly/2023-11-14T22:13:20"


def test_an_unknown_way_to_catch_up_is_an_error():
    assert catch_up_of("all") == "all"
    with pytest.raises(BadInput, match="catch_up is latest or one of all, none, not 'al'; did you mean all"):
        catch_up_of("al")

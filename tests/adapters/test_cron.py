"""The planned times of cron expressions: in time zones, where clocks change, and after a long time."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.adapters.cron import latest, next_after
from remit.core.times import DAY, HOUR, SECOND, aware, moment
from remit.errors import BadInput

BERLIN = "Europe/Berlin"


def at(text: str) -> int:
    return moment(datetime.fromisoformat(text), "a time")


def planned(cron: str, zone: str, after: str, until: str) -> list[str]:
    """Return the planned times as a person in that zone reads them."""
    found: list[str] = []
    time = at(after)
    while (time := next_after(cron, zone, time) or at(until)) < at(until):
        found.append(aware(time).astimezone(ZoneInfo(zone)).strftime("%d %H:%M %Z"))
    return found


def test_a_time_is_that_of_its_zone_in_winter_and_in_summer():
    assert next_after("30 8 * * *", BERLIN, at("2026-01-10T12:00Z")) == at("2026-01-11T08:30+01:00")
    assert next_after("30 8 * * *", BERLIN, at("2026-07-10T12:00Z")) == at("2026-07-11T08:30+02:00")
    assert next_after("30 8 * * *", "UTC", at("2026-07-10T12:00Z")) == at("2026-07-11T08:30Z")


def test_the_next_time_is_after_the_moment_not_at_it():
    noon = at("2026-07-10T12:00Z")
    assert next_after("0 12 * * *", "UTC", noon) == noon + DAY
    assert next_after("0 12 * * *", "UTC", noon - 1) == noon
    assert next_after("*/10 * * * * *", "UTC", noon) == noon + 10 * SECOND


@pytest.mark.rule("schedule.clock-changes")
def test_a_time_that_is_skipped_when_clocks_change_is_planned_right_after_the_gap():
    spring = ("2026-03-28T12:00Z", "2026-03-30T12:00Z")
    assert planned("30 2 * * *", BERLIN, *spring) == ["29 03:00 CEST", "30 02:30 CEST"]


@pytest.mark.rule("schedule.clock-changes")
def test_a_time_that_happens_twice_when_clocks_change_is_planned_the_first_time_only():
    autumn = ("2026-10-24T12:00Z", "2026-10-26T12:00Z")
    assert planned("30 2 * * *", BERLIN, *autumn) == ["25 02:30 CEST", "26 02:30 CET"]


@pytest.mark.rule("schedule.clock-changes")
def test_a_time_of_the_first_of_two_equal_hours_is_not_planned_again_in_the_second():
    second = at("2026-10-25T02:10+01:00")
    assert next_after("30 2 * * *", BERLIN, second) == at("2026-10-26T02:30+01:00")


@pytest.mark.rule("schedule.clock-changes")
def test_a_schedule_of_every_half_hour_follows_the_real_time_when_clocks_change():
    spring = planned("*/30 * * * *", BERLIN, "2026-03-29T00:15Z", "2026-03-29T02:00Z")
    assert spring == ["29 01:30 CET", "29 03:00 CEST", "29 03:30 CEST"]
    autumn = planned("*/30 * * * *", BERLIN, "2026-10-25T00:15Z", "2026-10-25T02:00Z")
    assert autumn == ["25 02:30 CEST", "25 02:00 CET", "25 02:30 CET"]


def test_the_latest_times_include_both_ends_and_are_in_order():
    noon = at("2026-07-10T12:00Z")
    assert latest("0 * * * *", "UTC", noon - 2 * HOUR, noon, 100) == [noon - 2 * HOUR, noon - HOUR, noon]
    assert latest("0 * * * *", "UTC", noon - DAY, noon, 2) == [noon - HOUR, noon]
    assert latest("0 * * * *", "UTC", noon + 1, noon + 2, 2) == []


def test_the_latest_times_of_a_year_of_seconds_take_a_moment():
    noon = at("2026-07-10T12:00Z")
    assert latest("* * * * * *", BERLIN, noon - 365 * DAY, noon, 2) == [noon - SECOND, noon]


ZONES = ["UTC", BERLIN, "America/New_York", "Asia/Kathmandu", "Africa/Casablanca", "America/Santiago", "Pacific/Apia"]
CRONS = ["30 2 * * *", "0,30 2 * * *", "*/5 * * * *", "15 1-3 * * *", "0 */2 * * *", "45 1,2 * * SUN", "0 0 L * *"]
CHANGES = [(3, 8), (3, 29), (4, 5), (9, 6), (10, 25), (11, 1), (7, 14)]


@given(
    st.sampled_from(CRONS),
    st.sampled_from(ZONES),
    st.sampled_from(CHANGES),
    st.integers(-2_000, 2_000),
    st.integers(1, 3_000),
)
def test_the_latest_times_are_those_that_come_one_after_the_other(
    cron: str, zone: str, day: tuple[int, int], minutes: int, length: int
):
    first = moment(datetime(2026, *day, tzinfo=UTC) + timedelta(minutes=minutes), "a time")
    now = first + length * 60 * SECOND
    found: list[int] = []
    time = first - SECOND
    while (time := next_after(cron, zone, time) or now + 1) <= now:
        found.append(time)
    assert latest(cron, zone, first, now, 1_000) == found
    assert latest(cron, zone, first, now, 2) == found[-2:]


@pytest.mark.rule("schedule.checked")
@pytest.mark.parametrize(
    ("cron", "wrong"),
    [
        ("", "Wrong number of fields"),
        ("61 * * * *", "Bad minute"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("0 0 * * SOON", "Bad day-of-week"),
        ("@daily", "Wrong number of fields"),
    ],
)
def test_a_wrong_expression_is_an_error_that_shows_a_right_one(cron: str, wrong: str):
    with pytest.raises(BadInput, match=f"is not a cron expression \\({wrong}\\); .* such as '30 8 \\* \\* MON-FRI'"):
        next_after(cron, "UTC", 0)


@pytest.mark.rule("schedule.checked")
@pytest.mark.parametrize("zone", ["", "Europe", "Berlin", "../etc/passwd", "/etc/passwd", "a\0b"])
def test_an_unknown_time_zone_is_an_error(zone: str):
    with pytest.raises(BadInput, match="there is no time zone .* on this machine; use a name such as 'Europe/Berlin'"):
        next_after("0 0 * * *", zone, 0)


def test_an_expression_that_never_matches_has_no_next_time():
    assert next_after("0 0 */20 * 1L", "UTC", 0) is None


@pytest.mark.rule("schedule.checked")
def test_without_the_package_an_error_says_what_to_install():
    code = (
        "import asyncio, sys\n"
        "sys.modules['cronsim'] = None\n"
        "import remit\n"
        "rt = remit.Runtime()\n"
        "rt.add(remit.Card('coder'), lambda turn: turn.task)\n"
        "asyncio.run(rt.workspace.schedules.add('report', '0 * * * *', 'coder', 'write it'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "BadInput: schedules need the cronsim package: pip install 'remit[schedule]'" in done.stderr

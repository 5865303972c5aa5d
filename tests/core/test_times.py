"""Time in whole microseconds: exact, positive where it is a duration, aware where it is a moment."""

import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.times import DAY, SECOND, Delay, aware, delay, iso, moment, span, span_of_days
from remit.errors import BadInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CENTURIES = 200 * 365 * 86_400


# --- durations ---------------------------------------------------------------------------------


@given(st.integers(1, CENTURIES))
def test_whole_seconds_are_exact(seconds):
    assert span(seconds, "ttl") == seconds * SECOND


@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=3650)))
def test_a_timedelta_is_exact(given_):
    assert span(given_, "ttl") == given_ // timedelta(microseconds=1)


@pytest.mark.parametrize(("seconds", "microseconds"), [(0.5, 500_000), (1e-6, 1), (1e-9, 1), (86_400, DAY)])
def test_parts_of_a_second_are_rounded_but_never_to_nothing(seconds, microseconds):
    assert span(seconds, "ttl") == microseconds


@pytest.mark.rule("entry.ttl")
@pytest.mark.parametrize(
    "seconds", [0, 0.0, -0.0, -1, -1e-9, math.nan, math.inf, -math.inf, timedelta(0), timedelta(seconds=-1)]
)
def test_a_duration_is_positive_and_finite(seconds):
    with pytest.raises(BadInput, match="ttl must be a positive number of seconds"):
        span(seconds, "ttl")


@pytest.mark.rule("entry.ttl")
@pytest.mark.parametrize("seconds", ["60", None, True, Decimal(60), [60], 60j])
def test_a_duration_is_a_number(seconds):
    with pytest.raises(BadInput, match="ttl is a number of seconds, not"):
        span(seconds, "ttl")


@pytest.mark.rule("entry.ttl")
def test_two_centuries_are_the_longest():
    assert span(CENTURIES, "ttl") == CENTURIES * SECOND

    with pytest.raises(BadInput, match="at most two centuries"):
        span(CENTURIES + 1, "ttl")


@pytest.mark.rule("entry.ttl")
@pytest.mark.parametrize(
    "seconds",
    [1e300, pytest.param(10**400, id="beyond floats"), pytest.param(10**5000, id="enormous"), timedelta.max],
)
def test_an_absurd_duration_is_refused_however_large(seconds):
    with pytest.raises(BadInput, match="at most two centuries"):
        span(seconds, "ttl")


@pytest.mark.rule("entry.ttl")
def test_an_absurdly_negative_duration_is_refused_like_any_negative_one():
    with pytest.raises(BadInput, match="positive number of seconds"):
        span(-(10**400), "ttl")


# --- moments -----------------------------------------------------------------------------------


@pytest.mark.rule("input.told")
def test_days_are_told_in_days_and_fit_every_store():
    assert span_of_days(0.5, "keep_days") == DAY // 2
    assert span_of_days(73_000, "keep_days") == 73_000 * DAY
    for given_, sentence in (
        (0, "keep_days must be a positive number of days, got 0"),
        ("7", "keep_days is a number of days, not '7'"),
        (1e9, "keep_days is at most two centuries, got .* days"),
    ):
        with pytest.raises(BadInput, match=sentence):
            span_of_days(given_, "keep_days")


@given(st.datetimes(timezones=st.timezones() | st.just(timezone(timedelta(hours=-9, minutes=-30)))))
def test_a_moment_is_exact_to_the_microsecond_in_any_year_and_zone(when):
    assert moment(when, "deadline") == (when - EPOCH) // timedelta(microseconds=1)


@given(st.integers(-(2**40), 2**60))
def test_microseconds_since_1970_are_taken_as_they_are(at):
    assert moment(at, "deadline") == at


def test_a_moment_without_a_time_zone_is_refused_and_told_what_to_say():
    with pytest.raises(BadInput, match=r"deadline needs a time zone; pass datetime.now\(UTC\)"):
        moment(datetime(2026, 1, 1), "deadline")  # noqa: DTZ001 - that is the point


class Nowhere(tzinfo):
    """A zone that does not know its offset; Python counts such a datetime as naive."""

    def utcoffset(self, _when: datetime | None) -> None:
        return None


def test_a_zone_without_an_offset_is_no_time_zone():
    with pytest.raises(BadInput, match="needs a time zone"):
        moment(datetime(2026, 1, 1, tzinfo=Nowhere()), "deadline")


@pytest.mark.parametrize("when", ["tomorrow", 1.5, True, None])
def test_a_moment_is_a_datetime(when):
    with pytest.raises(BadInput, match="deadline is an aware datetime, not"):
        moment(when, "deadline")


@pytest.mark.rule("input.json")
def test_a_moment_that_no_store_can_hold_is_refused():
    with pytest.raises(BadInput, match="deadline"):
        moment(2**63, "deadline")


# --- for people --------------------------------------------------------------------------------


@given(st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis wants it naive
def test_iso_says_the_moment_to_the_microsecond(when):
    at = (when - EPOCH) // timedelta(microseconds=1)

    assert iso(at).endswith("Z")
    assert datetime.fromisoformat(iso(at)) == when


def test_iso_reads_like_this():
    assert iso(1_794_710_214_123_456) == "2026-11-15T02:36:54.123456Z"


@given(st.integers(-(10**15), 4 * 10**15))
def test_a_moment_as_a_datetime_is_exact(at):
    assert moment(aware(at), "it") == at


# --- delays ------------------------------------------------------------------------------------


@pytest.mark.rule("delay.due")
def test_a_delay_is_due_so_long_after_its_request_or_at_its_moment():
    assert delay(90, None) == delay(timedelta(seconds=90), None) == Delay(after=90 * SECOND)
    assert Delay(after=90 * SECOND).due(5) == 90 * SECOND + 5
    at = delay(None, EPOCH + timedelta(seconds=7))
    assert at == Delay(at=7 * SECOND)
    assert [at.due(now * SECOND) for now in (6, 7, 8)] == [7 * SECOND, 0, 0]


@pytest.mark.rule("delay.due")
def test_no_delay_and_a_moment_before_1970_mean_at_once():
    assert delay(None, None) is delay(0, None) is None
    long_ago = delay(None, EPOCH - timedelta(days=1))
    assert long_ago is not None
    assert long_ago.due(5) == 0


@pytest.mark.rule("delay.input")
def test_a_delay_is_one_of_two_and_its_moment_has_a_time_zone():
    for after, at, sentence in (
        (1, EPOCH, "pass one of them"),
        (None, EPOCH.replace(tzinfo=None), "at needs a time zone"),
        (None, 5, "at is a datetime with a time zone, not 5"),
        (-1, None, "after must be a positive number"),
    ):
        with pytest.raises(BadInput, match=sentence):
            delay(after, at)

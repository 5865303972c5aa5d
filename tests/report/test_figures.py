"""Numbers as people read them."""

import pytest

from remit.core.times import DAY, SECOND
from remit.report.figures import age, count, short


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [(-SECOND, "now"), (SECOND - 1, "now"), (40 * SECOND, "40 s"), (719 * SECOND, "11 min"), (3 * DAY, "3 d")],
)
def test_an_age_has_one_unit(microseconds, said):
    assert age(microseconds) == said


@pytest.mark.parametrize(("number", "said"), [(0, "0 tasks"), (1, "1 task"), (2_400, "2,400 tasks")])
def test_a_count_has_a_word(number, said):
    assert count(number, "task") == said


@pytest.mark.parametrize(("number", "said"), [(999, "999"), (2_412, "2.4k"), (150_000, "150k"), (1_999_999, "1.9M")])
def test_a_short_figure_is_rounded_down(number, said):
    assert short(number) == said

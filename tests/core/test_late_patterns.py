"""A pattern is compiled when it is first used, and is the pattern that `re.compile` makes."""

import re

import pytest

from remit.core.patterns import LatePattern, pattern


def test_a_pattern_does_what_the_compiled_one_does():
    late, made = pattern(r"(a)(b)?", re.IGNORECASE), re.compile(r"(a)(b)?", re.IGNORECASE)
    text = "xAb aB a"
    for _ in range(2):  # before and after it is compiled
        assert late.findall(text) == made.findall(text)
        assert late.sub("-", text) == made.sub("-", text)
        assert late.split(text) == made.split(text)
        assert [one.span() for one in late.finditer(text)] == [one.span() for one in made.finditer(text)]
    assert late.match(text) is None
    assert late.fullmatch("aB") is not None
    found = late.search(text)
    assert found is not None
    assert found.groups() == ("A", "b")
    assert late.pattern == made.pattern


def test_a_pattern_is_compiled_by_its_first_use():
    late = pattern("(")
    assert isinstance(late, LatePattern)
    with pytest.raises(re.error):
        late.match("")


def test_what_a_pattern_does_not_have_is_an_error():
    with pytest.raises(AttributeError, match="matches"):
        _ = getattr(pattern("a"), "matches")  # noqa: B009

"""Tool groups: expanded where they are written, and a typo is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.allow import ANY
from remit.core.toolgroups import GROUPS, tools
from remit.errors import BadInput


@pytest.mark.rule("bounds.groups")
@pytest.mark.parametrize("group", sorted(GROUPS))
def test_a_group_becomes_its_members(group):
    assert tools([f"group:{group}"]) == GROUPS[group]


@pytest.mark.rule("bounds.groups")
def test_the_group_of_files_is_these_tools():
    assert tools("group:fs") == {"read_file", "write_file", "edit_file", "append_file", "list_dir"}


@pytest.mark.rule("bounds.groups")
@given(st.sets(st.sampled_from(sorted(GROUPS))), st.sets(st.sampled_from(["exec", "deploy", "read_file"])))
def test_groups_and_tools_mix_and_no_group_is_left_inside(groups, singles):
    found = tools([*(f"group:{group}" for group in groups), *singles])

    assert found == singles.union(*(GROUPS[group] for group in groups))
    assert not any(name.startswith("group:") for name in found)  # pyright: ignore[reportGeneralTypeIssues]


@pytest.mark.rule("bounds.groups")
@pytest.mark.parametrize("written", ["group:file", "group:", "group:FS", "group: fs", "group:*"])
def test_an_unknown_group_is_an_error_that_lists_the_groups(written):
    with pytest.raises(
        BadInput, match=f"no tool group '{written.replace('*', '.')}'; the groups are .*group:fs.*group:web"
    ):
        tools(["exec", written])


@pytest.mark.rule("bounds.empty")
def test_no_tools_are_no_tools():
    assert tools(()) == frozenset()


def test_a_star_is_every_tool():
    assert tools("*") is ANY


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ([""], "a tool name must not be empty"),
        ([7], "a tool name must be text, not int"),
        (["t" * 65], "a tool name has at most 64 characters"),
        (None, "tools is None"),
        (["exec", "*"], "stands alone"),
    ],
)
def test_tools_that_cannot_be_meant_are_refused(written, reason):
    with pytest.raises(BadInput, match=reason):
        tools(written)

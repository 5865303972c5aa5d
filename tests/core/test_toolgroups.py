"""Tool groups: expanded where they are written, and a typo is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.allow import ANY
from remit.core.toolgroups import GROUPS, REPEATS, expanded, own_groups, repeat_word, tools
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


# -- groups of an owner ------------------------------------------------------------------------------------------


@pytest.mark.rule("bounds.own-groups")
def test_an_owner_defines_groups_of_tools_and_of_other_groups():
    own = own_groups({"db": ["query", "dump"], "shell": ("group:exec", "bash")})

    assert own == {"db": {"query", "dump"}, "shell": {"exec", "bash"}}
    assert expanded(["group:db", len, "group:fs", "query"], own) == ["dump", "query", len, "group:fs", "query"]
    assert expanded("group:db", own) == ["dump", "query"]
    assert expanded(["group:db", "group:db"], own) == ["dump", "query"]  # named twice, spelled out once
    for same in ("*", "group:web", "query", ANY, True, 7):
        assert expanded(same, own) == same
    assert expanded((), own) == []


@pytest.mark.rule("bounds.own-groups")
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["db"], "groups is a mapping from a group's name to its tools, not \\['db'\\]"),
        ({"fs": ["cat"]}, "group:fs comes with remit; give your group a name of its own, which may contain it"),
        ({"group:db": ["x"]}, "a group's name is up to 32 of a-z, 0-9, dash and underscore, not 'group:db'"),
        ({7: ["x"]}, "a group's name is up to 32 of a-z, 0-9, dash and underscore, not 7"),
        ({"db": []}, "the group 'db' lists its tools, at least one"),
        ({"db": "*"}, "the group 'db' lists its tools, at least one"),
        ({"db": ["group:nothing"]}, "there is no tool group 'group:nothing'"),
        ({"db": [""]}, "a tool name must not be empty"),
    ],
)
def test_a_group_that_cannot_be_meant_is_refused(given, reason):
    with pytest.raises(BadInput, match=reason):
        own_groups(given)


@pytest.mark.rule("talk.begun")
def test_a_tool_says_in_one_of_four_words_how_its_calls_repeat():
    assert [repeat_word(word, "charge") for word in REPEATS] == [*REPEATS]
    with pytest.raises(BadInput, match="repeat of 'charge' is one of again, key, ask, tell, not 'never'"):
        repeat_word("never", "charge")

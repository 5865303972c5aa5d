"""Tool groups: names for sets of tools. They are expanded where a caller passes them; inside there are only tool
names."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, cast

from remit.core.allow import ANY, Names, Unbounded, as_set
from remit.core.patterns import pattern
from remit.core.values import plain, shown
from remit.errors import BadInput

Groups: TypeAlias = Mapping[str, frozenset[str]]

GROUP: Final = "group:"
_NAME: Final = pattern(r"[a-z0-9][a-z0-9_-]{0,31}", re.ASCII)
TOOL_LIMIT = 64

GROUPS: Final[dict[str, frozenset[str]]] = {
    "fs": frozenset({"read_file", "write_file", "edit_file", "append_file", "list_dir"}),
    "web": frozenset({"web_search", "web_fetch"}),
    "exec": frozenset({"exec"}),
    "comms": frozenset({"message", "send_email", "notify"}),
    "agents": frozenset(
        {
            "list_agents",
            "call_agent",
            "call_agent_async",
            "check_delegation_status",
            "cancel_delegation",
            "handoff",
            "spawn_agent",
            "blackboard",
        }
    ),
    "context": frozenset({"recall", "remember", "blackboard"}),
    "people": frozenset({"ask_person"}),
}

VERB_GROUPS: Final = ("agents", "context", "people")  # verbs of remit, which every model has without listing them
Repeat: TypeAlias = Literal["again", "key", "ask", "tell"]
REPEATS: Final[tuple[Repeat, ...]] = ("again", "key", "ask", "tell")


def repeat_word(given: object, tool: str) -> Repeat:
    """Return the `repeat` of a tool: what happens to a call that may have been made before a crash. Raise `BadInput` if
    unknown."""
    if given not in REPEATS:
        raise BadInput(f"repeat of '{tool}' is one of {', '.join(REPEATS)}, not {shown(given)}")
    return given


def tools(given: object, what: str = "tools") -> Names:
    """Return tool names, with every `group:` replaced by its members. Raise `BadInput` for an unknown group."""
    sets: frozenset[frozenset[str]] | Literal[Unbounded.ANY] = as_set(given, what, _members)
    return ANY if sets is ANY else frozenset[str]().union(*sets)


def _members(item: object) -> frozenset[str]:
    name = plain(item, "a tool name", TOOL_LIMIT)
    if not name.startswith(GROUP):
        return frozenset((name,))
    members = GROUPS.get(name.removeprefix(GROUP))
    if members is None:
        known = ", ".join(GROUP + group for group in sorted(GROUPS))
        raise BadInput(f"there is no tool group '{name}'; the groups are {known}")
    return members


def own_groups(given: object) -> Groups:
    """Return the groups that an owner defines: the tools of each, by name, with built-in groups replaced by their
    members. Raise `BadInput` for an invalid or built-in name, and for a group of no tools or of all."""
    if not isinstance(given, Mapping):
        raise BadInput(f"groups is a mapping from a group's name to its tools, not {shown(given)}")
    return MappingProxyType({_own_name(name): _group_tools(name, its) for name, its in cast("_Given", given).items()})


def expanded(given: Any, own: Groups) -> Any:
    """Return tools or tool names with an owner's groups replaced by their members. Everything else is unchanged; it is
    checked where it is used."""
    if isinstance(given, str):
        return sorted(own[given.removeprefix(GROUP)]) if _is_own(given, own) else given
    if not isinstance(given, Iterable):
        return given
    found: list[object] = []
    spelled: set[str] = set()  # groups expanded so far, so that a repeated group is expanded once
    for one in cast("Iterable[object]", given):
        if not _is_own(one, own):
            found.append(one)
        elif (group := str(one).removeprefix(GROUP)) not in spelled:
            spelled.add(group)
            found += sorted(own[group])
    return found


_Given: TypeAlias = Mapping[object, object]


def _is_own(item: object, own: Groups) -> bool:
    return isinstance(item, str) and item.startswith(GROUP) and item.removeprefix(GROUP) in own


def _own_name(given: object) -> str:
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise BadInput(f"a group's name is up to 32 of a-z, 0-9, dash and underscore, not {shown(given)}")
    if given in GROUPS:
        raise BadInput(f"group:{given} comes with remit; give your group a name of its own, which may contain it")
    return given


def _group_tools(name: object, given: object) -> frozenset[str]:
    found = tools(given, f"the group {shown(name)}")
    if found is ANY or not found:
        raise BadInput(f"the group {shown(name)} lists its tools, at least one; '*' is every tool without a group")
    return found

"""Tool groups: names for sets of tools, expanded where a person writes them; inside there are only tool names."""

from typing import Final, Literal

from remit.core.allow import ANY, Names, Unbounded, listed
from remit.core.text import plain
from remit.errors import BadInput

GROUP: Final = "group:"
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
}


def tools(given: object, what: str = "tools") -> Names:
    """Read tool names, every `group:` replaced by its members; an unknown group is an error, not an empty set."""
    sets: frozenset[frozenset[str]] | Literal[Unbounded.ANY] = listed(given, what, _members)
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

"""What a program did before it was interrupted, from the record of its model requests.

A program writes its session late, and drops a tool call that has no result. The record has both: every call is recorded
before the program can read it, and its result before the model gets it.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from remit.adapters.gateway.reading import KEPT_RESULT, RESULT, fields
from remit.adapters.gateway.tools import bare
from remit.core.prompt import cut
from remit.core.toolgroups import GROUPS, VERB_GROUPS
from remit.ports.models import KeptAnswer

_VERBS: Final = frozenset[str]().union(*(GROUPS[name] for name in VERB_GROUPS))
_LISTED: Final = 50  # calls in a prompt, the latest ones
_ARGUMENTS: Final = 1_000  # characters of arguments
_LONGEST: Final = 64 * 2**20  # bytes of a line in a session


class CallBefore(NamedTuple):
    """A tool call of an earlier attempt. `result` is None if its end is unknown."""

    id: str
    name: str
    arguments: str
    result: str | None


def calls_before(kept: Iterable[KeptAnswer]) -> list[CallBefore]:
    """Return the tool calls of recorded answers, in order, with the results that later requests brought."""
    calls: list[CallBefore] = []
    for one in kept:
        for item in _items(one.told):
            if item.get("type") == RESULT and (place := _index_of_call(calls, str(item.get("call_id")))) is not None:
                calls[place] = calls[place]._replace(id=str(item["call_id"]), result=str(item.get("output", "")))
        for item in _items(one.answer.text):
            if item.get("type") == "function_call":
                id_, name, arguments = (str(item.get(field, "")) for field in ("call_id", "name", "arguments"))
                calls.append(CallBefore(id_, name, arguments, None))
    return calls


def _index_of_call(calls: list[CallBefore], id_: str) -> int | None:
    """Return the place of the call that has a result with this id. A call to which the provider gave no id is known by
    its name, and gets its id from the program; results come in the order of the calls."""
    known = [place for place, call in enumerate(calls) if call.id == id_ and call.name != id_]
    unnamed = [place for place, call in enumerate(calls) if call.id == call.name and call.result is None]
    return known[-1] if known else next(iter(unnamed), None)


def finished_in(sessions: Iterable[Path]) -> set[str]:
    """Return the ids of the tool calls whose results are in the files of a session."""
    found: set[str] = set()
    for file in sessions:
        with file.open("rb") as lines:
            while line := lines.readline(_LONGEST):
                found.update(_results_in(_json(line)))
    return found


def going_on(
    task: str, calls: list[CallBefore], finished: Collection[str], *, has_session: bool, has_files: bool = True
) -> str:
    """Return the prompt of a later attempt: the calls of earlier attempts that its session lacks, and the task.
    `finished` are the ids of calls whose results are in the session. Without `has_files`, the prompt says that the
    changed files are gone. If there were no calls and there is no session, return only the task."""
    lacks = [call for call in calls if call.id not in finished]
    if not has_session and not calls:
        return task
    head = "You were interrupted." if has_session else "An earlier attempt at your task was interrupted."
    if not lacks:
        return f"{head} Go on with your task:\n\n{task}"
    lacking = "Of what you did, your history lacks this:" if has_session else "It did this:"
    if not has_files:
        lacking = f"The files that it changed are gone; you have the repository as it was. {lacking}"
    more = [f"- ({len(lacks) - _LISTED} earlier calls are not listed)"] if len(lacks) > _LISTED else []
    return "\n".join(
        [f"{head} {lacking}", *more, *map(_call_line, lacks[-_LISTED:]), f"Go on with your task:\n\n{task}"]
    )


def _call_line(call: CallBefore) -> str:
    what = f"{call.name}({cut(call.arguments, _ARGUMENTS)})"
    if call.result is not None:
        return f"- DONE: {what} gave: {cut(call.result, KEPT_RESULT)}"
    if bare(call.name) in _VERBS:
        return f"- BEGUN, outcome unknown: {what}; call it again in the same words, and you get what it gave"
    return f"- BEGUN, outcome unknown: {what}; look whether it was done before you do it again"


def _items(text: str) -> list[dict[str, Any]]:
    found = _json(text)
    if not isinstance(found, list):
        return []
    return [cast("dict[str, Any]", one) for one in cast("list[Any]", found) if isinstance(one, dict)]


def _json(text: str | bytes) -> object:
    """Return a JSON value, or None: the last line of a session may be cut."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _results_in(value: object) -> Iterator[str]:
    """Yield the ids of tool results in a line of a session: of Claude Code's `tool_result`, Codex's `*_output`, or
    Gemini CLI's `functionResponse`, whose ids begin with the name of the tool."""
    below: list[object] = [value]
    while below:
        one = below.pop()
        if isinstance(one, list):
            below += cast("list[object]", one)
        elif isinstance(one, dict):
            given = cast("dict[str, object]", one)
            below += given.values()
            kind, id_ = given.get("type"), given.get("tool_use_id") or given.get("call_id")
            if isinstance(id_, str) and isinstance(kind, str) and (kind == "tool_result" or kind.endswith("_output")):
                yield id_
            answered = fields(given.get("functionResponse"))
            if isinstance(id_ := answered.get("id"), str):
                yield id_.removeprefix(f"{answered.get('name')}__")

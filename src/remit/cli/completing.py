"""Shell completion of ids, agents and teams. A completer that finds nothing offers nothing."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from cyclopts import Parameter

from remit.cli.options import TOML, Where, opened_workspace, team_file
from remit.config.places import FILE_LIMIT, tables_in
from remit.core.patterns import pattern
from remit.errors import RemitError
from remit.report.printable import escaped
from remit.runtime.workspace import Workspace

Offer: TypeAlias = tuple[str, str]  # a word, and what it stands for

_IDS: Final = 30  # newest runs, and open tasks
_ABOUT: Final = 50  # characters of a task
_FILES: Final = 50  # scripts of a folder that are searched for a runtime
_RUNTIME: Final = pattern(r"^(\w{1,64}) = (?:remit\.)?Runtime\(", re.MULTILINE)


def ids(context: Any) -> list[Offer]:
    """Offer `last`, the newest runs and the open tasks of the store that the command names."""

    async def look(workspace: Workspace) -> list[Offer]:
        looks = workspace.looks
        lines, open_ = (await looks.runs(_IDS)).runs, (await looks.tasks(state="open", limit=_IDS)).tasks
        runs = [(line.record.id, f"{line.record.holder}: {line.task}") for line in lines]
        tasks = [(line.record.id, line.record.holder) for line in open_]
        return [*runs, *(task for task in tasks if task[0] not in dict(runs))]

    return [("last", "the newest run"), *_read(context, look)]


def agents(context: Any) -> list[Offer]:
    """Offer the agents that workers have published, and those of the team file."""

    async def look(workspace: Workspace) -> list[Offer]:
        return [(one.card.name, one.card.role) for one in await workspace.looks.cards()]

    published = dict(_read(context, look))
    try:
        named: dict[str, object] = dict(tables_in(team_file()).get("agents", {}))
    except (RemitError, TypeError, ValueError):  # a file that is not one, or half written
        named = {}
    return [*({**dict.fromkeys(named, ""), **published}.items())]


def accesses(context: Any) -> list[Offer]:
    """Offer the access keys that are not revoked."""

    async def look(workspace: Workspace) -> list[Offer]:
        return [(one.id, one.name) for one in await workspace.access.list() if one.state != "revoked"]

    return _read(context, look)


def team_words(context: Any) -> list[Offer]:
    """Offer the first words of `remit run`: teams and agents, then the agents alone."""
    if context.index:
        return agents(context)
    return [*agents(context), *_teams()]


def teams(_: Any) -> list[Offer]:
    """Offer the teams in this folder: team files, and runtimes in scripts."""
    return list(_teams())


def _teams() -> Iterator[Offer]:
    here = Path()
    for file in sorted(here.glob(f"*{TOML}")):
        if file.name != "pyproject.toml":
            yield file.name, "a team file"
    for script in sorted(here.glob("*.py"))[:_FILES]:
        try:
            text = script.read_text(encoding="utf-8", errors="replace") if script.stat().st_size < FILE_LIMIT else ""
        except OSError:
            continue
        for name in _RUNTIME.findall(text):
            yield f"./{script.name}:{name}", "a runtime"


def _read(context: Any, look: Callable[[Workspace], Coroutine[None, None, list[Offer]]]) -> list[Offer]:
    place = Where(*(_typed(context, name) for name in ("--store", "--workspace", "--server")))
    try:
        with opened_workspace(place) as workspace:
            found = asyncio.run(look(workspace))
    except RemitError:
        return []
    return [(word, escaped(about, _ABOUT)) for word, about in found]


def _typed(context: Any, option: str) -> str | None:
    found = context.get(option)
    return str(found.value) if found is not None and found.provided else None


TaskId: TypeAlias = Annotated[str, Parameter(completer=ids)]
AccessId: TypeAlias = Annotated[str, Parameter(completer=accesses)]
AgentName: TypeAlias = Annotated[str, Parameter(completer=agents)]
TeamWord: TypeAlias = Annotated[str, Parameter(completer=team_words)]
TeamName: TypeAlias = Annotated[str, Parameter(completer=teams)]

"""References of a team's file: the agents, tools, keys and scripts that one part names must exist in the file; the
keys, prices and folders that it expects should exist on this machine.

`remit check` warns of each that this machine lacks. A run stops if a variable for a key, a channel, an MCP server or
the token of a remote agent is not set. It does not stop without a provider's usual key, a price or a folder: the
workspace may store a key of its own, and a model may never be asked.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from remit.adapters.providers import default_key, endpoint_of, provider_of
from remit.config.places import store_in
from remit.config.reading import Document, Problem, Problems, listing, script
from remit.config.scripts import SCRIPT, ScriptLine
from remit.config.variables import unset
from remit.core.prices import Price
from remit.core.recovery import on_loopback
from remit.core.toolgroups import GROUP, GROUPS, VERB_GROUPS
from remit.core.values import canonical, shown
from remit.errors import BadInput
from remit.ports import Prices
from remit.stores.addresses import each_address, is_server

# -- names within the file -----------------------------------------------------------------------------------


class Script(NamedTuple):
    """A script file that a model of the team uses: its lines, by canonical name of the agent."""

    lines: Mapping[str, tuple[ScriptLine, ...]]
    problems: tuple[Problem, ...] = ()


def check_references(read: Document) -> dict[str, Script]:
    """Check the references between parts of a file, and add wrong ones to its problems. Return the scripts that its
    agents name, by model: `script:FILE`."""
    agents, problems = tables_of(read.tables, "agents"), read.problems
    names = _names(agents, problems)
    for name, table in agents.items():
        at = ("agents", name)
        for asked in texts(table.get("asks")):
            if asked != "*":
                _check_agent_exists(problems, (*at, "asks"), asked, names)
        _tools(problems, at, table, _all_tools(read.tables))
        for key in texts(table.get("keys")):
            if not os.environ.get(key):
                sentence = f"the environment variable {key} is not set; its key cannot be used"
                problems.add((*at, "keys"), sentence, warning=True)
    _named_elsewhere(read, names)
    _variables(read)
    _store(read)
    return _scripts(read.file.parent, agents, problems)


def tables_of(tables: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """Return the tables below the table `name`, by key; other values are skipped."""
    return {key: cast("dict[str, Any]", one) for key, one in _below(tables, name) if isinstance(one, dict)}


def tables_or_texts(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return everything below the table `name`, by key; nothing if there is no such table."""
    return dict(_below(tables, name))


def texts(given: object) -> list[str]:
    """Return the texts in a value: one text or a list of them. Other values are skipped; they have been reported
    already."""
    if isinstance(given, str):
        return [given]
    return [one for one in cast("list[object]", given) if isinstance(one, str)] if isinstance(given, list) else []


def models_of(table: Mapping[str, Any]) -> list[str]:
    """Return the models of an agent, in the order in which they are tried."""
    return [*texts(table.get("model")), *texts(table.get("fallback"))]


# -- inside --------------------------------------------------------------------------------------------------------


def _below(tables: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    found = tables.get(name)
    if isinstance(found, dict):
        yield from cast("dict[str, Any]", found).items()


def _tables_in(tables: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the tables of a list; other values are skipped."""
    found = tables.get(name)
    ones = cast("list[object]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", one) for one in ones if isinstance(one, dict)]


def _names(agents: Iterable[str], problems: Problems) -> dict[str, str]:
    """Return each agent's name as written, by its canonical name. Invalid and repeated names are added to the
    problems."""
    names: dict[str, str] = {}
    for name in agents:
        try:
            counts = canonical(name)
        except BadInput as no:
            problems.add(("agents", name), str(no))
            continue
        if counts in names:
            problems.add(("agents", name), f"this is the same agent as {names[counts]}; give it another name")
        names.setdefault(counts, name)
    return names


def _named_elsewhere(read: Document, names: Mapping[str, str]) -> None:
    """Check the agents that are named outside the tables of agents."""
    for number, limit in enumerate(_tables_in(read.tables, "limits")):
        for asked in texts(limit.get("agent")):
            if asked != "*":
                _check_agent_exists(read.problems, ("limits", str(number), "agent"), asked, names)
    for name, table in tables_of(read.tables, "schedules").items():
        _known_in(read.problems, ("schedules", name), table, names)
    run = read.tables.get("run")
    if isinstance(run, dict):
        said = cast("dict[str, Any]", run)
        _known_in(read.problems, ("run",), said, names)
        if "agent" in said and "coordinator" in said:
            read.problems.add(("run", "coordinator"), "there is agent already; set only one of agent or coordinator")
    plan = read.tables.get("plan")
    for number, step in enumerate(_tables_in(cast("dict[str, Any]", plan), "steps") if isinstance(plan, dict) else ()):
        for asked in texts(step.get("agent")):
            _check_agent_exists(read.problems, ("plan", "steps", str(number), "agent"), asked, names)


def _known_in(problems: Problems, at: tuple[str, ...], table: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Check the agent and the coordinator that a table names."""
    for key in ("agent", "coordinator"):
        for asked in texts(table.get(key)):
            _check_agent_exists(problems, (*at, key), asked, names)


def _check_agent_exists(problems: Problems, path: tuple[str, ...], asked: str, names: Mapping[str, str]) -> None:
    try:
        there = canonical(asked) in names
    except BadInput:
        return  # reported when the file was read
    if not there:
        problems.add(path, f"there is no agent {shown(asked)}{problems.near_or_all(asked, names)}")


def _tools(problems: Problems, at: tuple[str, ...], table: Mapping[str, Any], there: Mapping[str, Any]) -> None:
    """Check that an agent's tools exist, and that those that need approval are among them."""
    has = set(GROUPS["context"] | (GROUPS["agents"] if table.get("asks") else frozenset[str]()))
    has |= GROUPS["people"] if table.get("ask_person") else frozenset[str]()
    for tool in texts(table.get("tools")):
        members = GROUPS.get(tool.removeprefix(GROUP), frozenset()) if tool.startswith(GROUP) else {tool}
        has |= members
        if tool.startswith(GROUP):
            given = tool.removeprefix(GROUP) not in VERB_GROUPS  # models have the verbs without listing them
            if members and "model" in table and given and not members & there.keys():
                sentence = f"no tool of {tool} is there; name one of {listing(members)} below [tools]"
                problems.add((*at, "tools"), sentence)
        elif "model" in table and tool not in there:
            hint = problems.near(tool, there, "; name it below [tools]")
            problems.add((*at, "tools"), f"there is no tool {shown(tool)}{hint}")
    for tool in texts(table.get("approve_tools")) if "model" in table else ():
        if tool not in has:
            problems.add((*at, "approve_tools"), f"{shown(tool)} is no tool of this agent{problems.near(tool, has)}")


def _all_tools(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tools that agents may name: those below [tools], and those that MCP servers may bring."""
    servers = tables_of(tables, "mcp").values()
    return {**dict(_below(tables, "tools")), **{name: None for one in servers for name in texts(one.get("allow"))}}


def _variables(read: Document) -> None:
    """Warn of environment variables that the file names and that are not set here."""
    for table in ("channels", "mcp"):
        for name, one in tables_of(read.tables, table).items():
            for key, value in one.items():
                _warn_of_unset(read, (table, name, key), value)
    for name, agent in tables_of(read.tables, "agents").items():
        _warn_of_unset(read, ("agents", name, "token"), agent.get("token"))


def _warn_of_unset(read: Document, at: tuple[str, ...], value: object) -> None:
    for variable in unset(value):
        read.problems.add(at, f"the environment variable {variable} is not set", warning=True)


def _store(read: Document) -> None:
    store = read.tables.get("store")
    if isinstance(store, dict) and "path" in store and "address" in store:
        read.problems.add(("store", "address"), "there is a path already; set only one of path and address")


def _scripts(folder: Path, agents: Mapping[str, dict[str, Any]], problems: Problems) -> dict[str, Script]:
    """Return the scripts that agents name, each read once. Problems in a script are reported with its own lines."""
    scripts: dict[str, Script] = {}
    for name, table in agents.items():
        for model in models_of(table):
            if not model.startswith(SCRIPT):
                continue
            key = "model" if model == table.get("model") else "fallback"
            if model not in scripts:
                scripts[model] = _script(folder / model.removeprefix(SCRIPT), problems, ("agents", name, key))
            found = scripts[model]
            if not found.problems and canonical(name) not in found.lines:
                sentence = f"{model.removeprefix(SCRIPT)} has no lines for it; begin with [[{name}]]"
                problems.add(("agents", name, key), sentence)
    for one in scripts.values():
        problems.found.extend(one.problems)
    return scripts


def _script(file: Path, problems: Problems, path: tuple[str, ...]) -> Script:
    try:
        read = script(file)
    except BadInput as no:
        problems.add(path, str(no).replace("; `remit init` makes a team to begin with", ""))
        return Script({}, (problems.found[-1],))
    if read.problems.found:
        return Script({}, tuple(read.problems.found))
    return Script({canonical(name): tuple(map(ScriptLine.from_table, lines)) for name, lines in read.tables.items()})


# -- things that this machine lacks --------------------------------------------------------------------------


def warn_of_missing(read: Document) -> None:
    """Add a warning to the document for each key, price and folder that it needs and that is missing on this
    machine."""
    _folder(read)
    prices = _prices(read) if _limits_money(read.tables) else None
    for name, table in tables_of(read.tables, "agents").items():
        for model in models_of(table):
            if not model.startswith(SCRIPT) and model != "test":
                at = ("agents", name, "model" if model == table.get("model") else "fallback")
                url = table.get("base_url") if model == table.get("model") else None
                _key(read, at, model, table, url)
                if prices is not None:
                    _price(read, at, model, prices, url)


def _key(read: Document, at: tuple[str, ...], model: str, table: Mapping[str, Any], url: str | None) -> None:
    provider = provider_of(model)
    same = provider == provider_of(str(table.get("model", "")))
    if same and (texts(table.get("keys")) or url or table.get("base_url")):
        return  # named keys are checked elsewhere, and a custom address may need no key
    key = default_key(provider)
    if key and not os.environ.get(key):
        sentence = f"the environment variable {key} is not set, which holds the key of {provider}; set it, or name "
        read.problems.add(at, sentence + 'another with keys = ["NAME"]', warning=True)


def _price(read: Document, at: tuple[str, ...], model: str, prices: Prices, url: str | None) -> None:
    if prices.worst(model, 0, 1) is None and not on_loopback(endpoint_of(provider_of(model), url)):
        sentence = f'the price of {model} is not known, and money is limited here; name it: [prices."{model}"] with '
        read.problems.add(at, sentence + 'input = "$1" and output = "$2" for a million tokens', warning=True)


class _NoPrices:
    """A price list without prices."""

    def cost(self, model: str, usage: object) -> None:
        return None

    def worst(self, model: str, input_tokens: int, max_output: int) -> None:
        return None


def _prices(read: Document) -> Prices:
    said = {name: Price(**table) for name, table in tables_of(read.tables, "prices").items()}
    try:
        return cast("Prices", import_module("remit.adapters.prices").KnownPrices(said))
    except BadInput:
        return _NoPrices()


def _limits_money(tables: Mapping[str, Any]) -> bool:
    listed = tables.get("limits", ())
    limits = cast("list[Mapping[str, Any]]", listed) if isinstance(listed, list) else []
    counted = tables.get("policy", {}).get("unknown_price") == "tokens"
    return not counted and any("credits" in one for one in (tables.get("run", {}), tables.get("bounds", {}), *limits))


def _folder(read: Document) -> None:
    store = store_in(read.tables.get("store", {}), read.file.parent)
    for one in each_address(store) if store and not is_server(store) else ():
        folder = (read.file.parent / one).parent
        if not folder.is_dir():
            read.problems.add(
                ("store", "path"), f"there is no folder {folder}; make it: mkdir -p {folder}", warning=True
            )

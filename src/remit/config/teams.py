"""Teams from files: read, checked, linked, and assembled as a runtime."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from remit.config import parts
from remit.config.description import CODING, RULES, WAYS
from remit.config.linking import Script, check_references, models_of, tables_of, tables_or_texts, texts, warn_of_missing
from remit.config.parts import NotImported, found_at, named_at
from remit.config.places import store_in
from remit.config.reading import Document, Problem, Problems, document, in_order, raise_problems, right
from remit.config.scripts import SCRIPT, FreeScripts, ScriptedModel
from remit.config.variables import unset
from remit.core.allow import has
from remit.core.backoff import RetryPolicy
from remit.core.bounds import Bounds
from remit.core.breaker import BreakerPolicy
from remit.core.card import Card
from remit.core.limits import Limit
from remit.core.loops import Loops
from remit.core.match import Certainty
from remit.core.plan import Lead, Plan, Step, faults
from remit.core.prices import Price
from remit.core.session import memory
from remit.core.values import canonical, shown
from remit.engine.directory import USUAL_RULES
from remit.engine.settings import Policy, Serving, System
from remit.errors import BadInput
from remit.ports import Calendar, Prices
from remit.ports.tools import ToolFailed
from remit.runtime.opening import DEFAULT_WORKSPACE
from remit.runtime.runtime import Runtime
from remit.runtime.workspace import opening_of
from remit.stores.sqlite.database import MEMORY

if TYPE_CHECKING:
    from remit.config.schedules import FileSchedule

# Settings that say what the agent is.
_OWN: Final = frozenset((*WAYS, "token", "key"))
_OF_PROGRAMS: Final = frozenset(("files", "gateway", "verbs", "keys", "base_url", "max_tokens"))
_OF_CODING: Final = frozenset(
    ("cwd", "worktree", "allow", "approve", "sandbox", "command", "fallback", "keys", "base_url", "max_tokens")
)


class RunDefaults(NamedTuple):
    """The defaults of a run. `lead` has the plan of the file, and how it or a coordinator's plan is carried out."""

    agent: str = ""
    credits: str | None = None
    timeout: float | None = None
    tier: str = ""
    coordinator: str = ""
    lead: Lead = Lead()


class Team(NamedTuple):
    """A runtime, the defaults of its runs, what is missing on this machine, and the schedules and the name of its
    file."""

    runtime: Runtime
    run: RunDefaults
    warnings: tuple[Problem, ...] = ()
    schedules: "tuple[FileSchedule, ...]" = ()
    file: str = ""


def team(file: Path, *, runs: bool = True, trusted: bool = True) -> Team:
    """Return the team of a file. Raise `BadInput` with all problems. If the team `runs`, warnings about this machine
    count as problems too, such as a variable that is not set. Without `trusted`, no module of the folder is imported,
    and the team cannot run."""
    made, problems = _team_and_problems(file, connect=runs, trusted=trusted)
    raise_problems(problems if runs or made is None else ())
    assert made is not None
    return made


def check_team(file: Path, *, trusted: bool = True) -> tuple[Team | None, list[Problem]]:
    """Return the team of a file, or None if the file is invalid, and all its problems and warnings. Without `trusted`,
    no module is imported and no MCP server is started."""
    made, problems = _team_and_problems(file, connect=trusted, warn=True, trusted=trusted)
    return made, in_order(problems)


def _team_and_problems(
    file: Path, *, connect: bool, warn: bool = False, trusted: bool = True
) -> tuple[Team | None, list[Problem]]:
    read = document(file)
    scripts = check_references(read)
    if not right(read.tables, read.problems):
        return None, read.problems.found
    if warn:
        warn_of_missing(read)
    building = _Building(read, scripts, connect=connect, find=found_at if trusted else named_at)
    runtime = building.runtime()
    defaults = _run_defaults(read.tables)
    schedules = building.schedules(runtime, defaults) if "schedules" in read.tables else ()
    if not right(read.tables, read.problems):
        return None, read.problems.found
    return Team(runtime, defaults, tuple(read.problems.found), schedules, file.name), read.problems.found


def _run_defaults(tables: Mapping[str, Any]) -> RunDefaults:
    said = RunDefaults(**tables.get("run", {}), lead=_lead(tables.get("plan", {})))
    agents = [*tables["agents"]]
    alone = len(agents) == 1 and not said.agent and not said.coordinator
    return said._replace(agent=agents[0]) if alone else said


def _planned(calendar: Calendar, table: Mapping[str, Any]) -> None:
    """Raise `BadInput` if the cron expression is invalid or matches no time, or the calendar does not know the time
    zone."""
    if calendar.next_after(table["cron"], table.get("zone", "UTC"), 0) is None:
        raise BadInput(f"the cron expression {shown(table['cron'])} matches no time")


def _lead(table: Mapping[str, Any]) -> Lead:
    """Return the plan of a file. It may have no steps: then it says how a coordinator's plan is carried out."""
    steps = [Step(**one) for one in table.get("steps", ())]
    how = {key: table[key] for key in ("concurrency", "reveal") if key in table}
    return Lead(Plan(steps, table.get("goal", "")) if steps else None, **how)


class _Building:
    """Assembles a runtime from checked tables; an error of one part becomes a problem of that part. MCP servers are
    started only with `connect`: a team that does not run needs only the names of their tools."""

    def __init__(self, read: Document, scripts: Mapping[str, Script], *, connect: bool, find: parts.Find) -> None:
        self._tables = read.tables
        self._folder = read.file.parent
        self._problems: Problems = read.problems
        self._scripts = scripts
        self._connect = connect
        self._find = find
        self._agents = tables_of(read.tables, "agents")

    def runtime(self) -> Runtime:
        store = self._tables.get("store", {})
        policy = dict(self._tables.get("policy", {}))
        around, guards = (texts(policy.pop(key, ())) for key in ("around", "guards"))
        secrets = [os.environ[name] for name in policy.pop("secrets", ()) if os.environ.get(name)]
        made = Runtime(
            store_in(store, self._folder) or MEMORY,
            workspace=store.get("workspace", DEFAULT_WORKSPACE),
            bounds=Bounds(**self._tables.get("bounds", {})),
            policy=self._part(("policy",), lambda: self._policy(policy)),
            serving=self._part(("channels",), self._serving),
            system=System(prices=self._part(("prices",), self._prices), in_file=True),
            secrets=secrets,
        )
        for name, tool in tables_or_texts(self._tables, "tools").items():
            self._part(("tools", name), partial(self._put_tool, made, name, tool))
        for where in around:
            self._part(("policy", "around"), lambda where=where: made.around(self._find(where, self._folder)))
        for where in guards:
            self._part(("policy", "guards"), lambda where=where: made.guard(self._guard(where)))
        self._add_servers(made)
        self._warn_of_packages()
        if right(self._tables, self._problems):  # otherwise every agent with that tool would report the problem again
            for name, table in self._agents.items():
                self._part(("agents", name), lambda name=name, table=table: self._add(made, name, table))
            self._check_plan(made)
        return made

    def _check_plan(self, made: Runtime) -> None:
        """Check the plan of the file against the team: the agent of each step, and the dependencies."""
        plan = _lead(self._tables.get("plan", {})).plan
        cards = {card.name: card for card in made.cards()}
        if (leads := self._tables.get("run", {}).get("coordinator")) is not None:
            asks = cards[canonical(leads)].asks
            cards = {name: card for name, card in cards.items() if has(asks, name)}
        for fault in faults(plan, cards) if plan is not None and right(self._tables, self._problems) else ():
            self._problems.add(("plan",), fault)

    def schedules(self, made: Runtime, run: RunDefaults) -> "tuple[FileSchedule, ...]":
        """Return the schedules of the file; each wrong one is a problem."""
        if not right(self._tables, self._problems):
            return ()
        own = import_module("remit.config.schedules")  # few files have schedules
        defaults = own.FileDefaults(run.agent, run.coordinator, run.lead)
        try:
            calendar = opening_of(made.workspace).settings.calendar()
        except BadInput as no:
            self._problems.add(("schedules",), str(no), warning=True)
            calendar = None
        found: list[Any] = []
        for name, table in tables_of(self._tables, "schedules").items():
            at = ("schedules", name)
            found.append(self._part(at, lambda name=name, table=table: own.file_schedule(name, table, defaults)))
            if calendar is not None:
                self._part((*at, "cron"), lambda table=table: _planned(calendar, table))
        return tuple(one for one in found if one is not None)

    def _loops(self) -> Loops:
        said: dict[str, Any] = {key: None if one is False else one for key, one in self._tables["loops"].items()}
        if "hide" in said:
            said["hide"] = bool(said["hide"])
        return replace(Loops.off(), **said) if said.pop("off", None) else Loops(**said)

    def _policy(self, said: dict[str, Any]) -> Policy:
        if "last_word" in said:
            said["last_word"] = Bounds(credits=said["last_word"])
        for key in ("needs_approval", "classify"):
            if said.get(key, RULES) != RULES:
                said[key] = self._import_object(("policy", key), said[key])
        said["certainty"] = Certainty(**self._tables.get("certainty", {}))
        said["breaker"] = BreakerPolicy(**self._tables.get("breaker", {}))
        said["limits"] = [Limit(**table) for table in self._tables.get("limits", ())]
        if "loops" in self._tables:
            said["loops"] = self._loops()
        if groups := self._tables.get("groups"):
            said["groups"] = groups
        return Policy(**said)

    def _guard(self, where: str) -> Any:
        found = self._find(where, self._folder)
        return found.as_guard() if isinstance(found, NotImported) else found

    def _serving(self) -> Serving:
        given = tables_or_texts(self._tables, "channels")
        channels = [self._channel(name, one) for name, one in given.items() if not unset(one)]
        made = [one for one in channels if one is not None and not isinstance(one, NotImported)]
        return Serving(channels=made, **self._tables.get("serving", {}))

    def _channel(self, name: str, given: Any) -> Any:
        return self._part(("channels", name), lambda: parts.channel(name, given, self._folder, self._find))

    def _warn_of_packages(self) -> None:
        """Warn of missing packages for agents of other servers, and for MCP servers if they are not started now."""
        agents, servers = (tables_of(self._tables, name) for name in ("agents", "mcp"))
        remote = next((name for name, table in agents.items() if "a2a" in table), None)
        if remote is not None and not parts.installed("a2a"):
            sentence = "agents of other servers need the a2a-sdk package: pip install 'remit[a2a]'"
            self._problems.add(("agents", remote, "a2a"), sentence, warning=True)
        if servers and not self._connect and not parts.installed("mcp"):
            sentence = "an MCP server needs the mcp package: pip install 'remit[mcp]'"
            self._problems.add(("mcp", next(iter(servers))), sentence, warning=True)

    def _add_servers(self, made: Runtime) -> None:
        """Add the tools of MCP servers. A server that cannot be reached is a warning, like a key that is not set."""
        tables = tables_of(self._tables, "mcp")
        servers: dict[str, Any] = {}
        for name, table in tables.items():
            if self._connect and not unset(table):
                found = self._part(("mcp", name), lambda name=name, table=table: self._server(name, table))
                servers.update({name: found} if found is not None else {})
        offered = parts.tools_of(servers)
        for name, table in tables.items():
            tools = offered.get(name, [])
            if isinstance(tools, BadInput):
                self._problems.add(("mcp", name, "allow"), str(tools))
            elif isinstance(tools, ToolFailed):
                self._problems.add(("mcp", name), parts.why_away(tools), warning=True)
            listed = tools if isinstance(tools, list) and tools else parts.placeholders(table["allow"])
            for tool in listed:
                self._part(("mcp", name, "allow"), lambda tool=tool: made.tool(tool))

    def _server(self, name: str, table: Mapping[str, Any]) -> Any:
        return parts.server(name, table, self._folder)

    def _part(self, path: tuple[str, ...], make: Callable[[], Any]) -> Any:
        try:
            return make()
        except BadInput as no:
            self._problems.add(path, str(no))
            return None

    def _put_tool(self, made: Runtime, name: str, given: Any) -> None:
        said = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        made.tool(self._tool(name, given), polls=said.get("polls", False))

    def _tool(self, name: str, given: Any) -> Any:
        if isinstance(given, dict):
            return parts.program_tool(name, cast("dict[str, Any]", given), self._folder)
        found = self._find(given, self._folder)
        if isinstance(found, NotImported):
            return parts.placeholders([name])[0]
        if not callable(found) and not hasattr(found, "name"):
            raise BadInput(f"{given} is no function")
        called = getattr(found, "name", None) or getattr(found, "__name__", "")
        if called == name:
            return found
        return _adapter().Tool(found, name=name) if _has_adapter() else _renamed(found, name)

    def _add(self, made: Runtime, name: str, table: Mapping[str, Any]) -> None:
        own = _OWN | (_OF_PROGRAMS if "program" in table else _OF_CODING if _coding(table) else frozenset[str]())
        about = {key: value for key, value in table.items() if key not in own}
        retry = RetryPolicy(**about.pop("retry", self._tables.get("retry", {})))
        for key in ("before", "after"):
            if key in about:
                at, places = ("agents", name, key), texts(about[key])
                about[key] = (
                    self._part(at, lambda places=places: [self._find(one, self._folder) for one in places]) or ()
                )
        for key, make in (("output", partial(parts.form, find=self._find)), ("deps", self._find)):
            if key in about:
                given = about[key]
                at, there = ("agents", name, key), (given, self._folder)
                about[key] = self._part(at, lambda make=make, there=there: make(*there))
                if isinstance(about[key], NotImported):
                    del about[key]
        if "model" in table:
            about["fallback"] = [self._model(model, name) for model in about.get("fallback", ())]
            made.model_agent(name, self._model(table["model"], name), retry=retry, **about)
        elif "guest" in table:
            guest = self._import_object(("agents", name, "guest"), table["guest"])
            if guest is not None:
                self._add_guest(made, name, guest, retry=retry, **about)
        elif (answer := self._answer(("agents", name, "function"), table)) is not None:
            rules = USUAL_RULES._replace(memory=memory(about.pop("memory", None)))
            output, timeout = about.pop("output", None), about.pop("timeout", None)
            made.add(Card(name, **about), answer, retry=retry, rules=rules, timeout=timeout, output=output)

    def _add_guest(self, made: Runtime, name: str, guest: Any, **about: Any) -> None:
        if isinstance(guest, NotImported):
            made.add(Card(name), guest)
        else:
            made.add(guest, name=name, **about)

    def _import_object(self, path: tuple[str, ...], where: str) -> Any:
        """Return the object at `module:name`, or None if there is none, which is a problem of this setting."""
        return self._part(path, lambda: self._find(where, self._folder))

    def _answer(self, path: tuple[str, ...], table: Mapping[str, Any]) -> Any:
        if "function" in table:
            return self._import_object(path, table["function"])
        if "a2a" in table:
            return self._part((*path[:-1], "a2a"), lambda: parts.remote_agent(table))
        if way := _coding(table):
            return self._part((*path[:-1], way), lambda: self._coding_agent(way, table))
        own = {name: table[name] for name in _OF_PROGRAMS if name in table}
        program = import_module("remit.adapters.process").program
        return self._part((*path[:-1], "program"), lambda: program(table["program"], cwd=self._folder, **own))

    def _coding_agent(self, way: str, table: Mapping[str, Any]) -> Any:
        own = {name: table[name] for name in _OF_CODING if name in table}
        own["cwd"] = Path(self._folder, own.get("cwd", "."))
        return getattr(import_module("remit.adapters.coding"), way)(table[way], **own)

    def _model(self, model: str, agent: str) -> Any:
        if not model.startswith(SCRIPT):
            return model
        lines = self._scripts[model].lines[canonical(agent)]
        if not _has_adapter():
            return ScriptedModel(model, agent, lines)
        return model, import_module("remit.config.scripted").scripted(model, agent, lines)

    def _prices(self) -> Prices | None:
        """Return the price list of the file; scripts cost nothing. Return None, for the installed list, if the file has
        neither."""
        models = {model for table in self._agents.values() for model in models_of(table)}
        said = {name: Price(**table) for name, table in self._tables.get("prices", {}).items()}
        scripts = {model for model in models if model.startswith(SCRIPT)}
        if not said and models == scripts:
            return FreeScripts()
        if not said and not scripts:
            return None
        free = dict.fromkeys(scripts, Price(0, 0))
        return import_module("remit.adapters.prices").KnownPrices({**free, **said})


def _has_adapter() -> bool:
    """Whether the library that asks models is installed; scripts do not need it."""
    try:
        import_module("pydantic_ai")
    except ImportError:
        return False
    return True


def _renamed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    made = wraps(function)(partial(function))
    made.__name__ = name
    return made


def _adapter() -> Any:
    """Return the library that asks models. Raise `BadInput` with the command that installs it if it is missing."""
    try:
        return import_module("pydantic_ai")
    except ImportError as error:
        raise BadInput(f"an agent with a model needs pip install 'remit[llm]' ({error})") from error


def _coding(table: Mapping[str, Any]) -> str:
    """Return which coding agent a table describes; "" for any other agent."""
    return next((way for way in CODING if way in table), "")

"""The pages of docs/ that are made from the code: signatures, fields, sentences and tables as they are there."""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cached_property
from typing import Any, ForwardRef, get_args, get_type_hints

import lives
from refusals import refusals_page

import remit
from remit import errors, settings, types, verbs
from remit.cli import commands
from remit.cli.main import exit_code
from remit.config import description
from remit.core import breaker, kinds, lifecycle
from remit.core.values import Json
from remit.engine import approvals, asking, finding

NOTE = "Generated from the code: do not edit, run `make docs`.\n"

# The meaning of keywords that several methods share. A keyword that is missing here fails `make docs`.
KEYWORDS = {
    "data": "a JSON value next to the text, or in its place: `turn.data` of the agent",
    "sees": "context to pass, in addition to what the holder's card reads: namespaces, or `Scope(...)`",
    "tools": "tools to pass, in addition to those of the holder's card; a function that calls tools directly, not "
    "through `turn.tool`, must check `turn.tools` itself",
    "within": "`Bounds(...)` that narrow the bounds of the asker",
    "writes": "context that the holder may write, in addition to its card",
    "trust": '`"untrusted"`: the text of the task comes from untrusted users',
    "timeout": "how long it may take: 300, or 260 an attempt for what is submitted or spawned",
    "key": "idempotency key: the same request with the same key is the same task",
    "same_within": "number of seconds for which the same request is the same task without a key",
    "attempts": "maximum number of attempts (default 4)",
    "after": "start no earlier than so many seconds after the request; or a timedelta",
    "priority": "place in the queue, from -100 to 100, higher first (default 0)",
    "at": "start no earlier than this moment, a datetime with a time zone",
    "announce": "`True`: announce the end in the asker's inbox, like that of a spawned task",
    "session": "id of a group of runs that share a blackboard and inboxes",
    "remembers": '`True`: start with the earlier messages of the session; `"whole"`: with whole conversations',
    "on_question": "a function that answers what the run asks people: it returns a text, `True`, `False`, or `None`",
    "credits": 'money to reserve, for example `"$0.50"` or `"0.50 USD"`',
    "tier": "`simple`, `medium` or `complex`: a preset of bounds",
    "handoffs": "`False`: forbid handoffs",
    "by": "name of the person who starts the run, for limits, lists and the journal",
    "tags": "tags of the run: at most 16, of up to 64 characters each; lists can be narrowed by them",
    "meta": "metadata of the run: at most 16 names, each with a text of up to 512 characters, a number, True or False",
    "trace": "the W3C `traceparent` of the request that starts the run; the first event of each task has it",
    "concurrency": "maximum number of steps at a time (default 5)",
    "reveal": "whether members get the goal and the list of members",
    "approve_steps": "a function that decides before each step; `True`: ask a person",
    "abort": "an `anyio.Event`; once it is set, no more steps start",
}

# What people write, where the field holds it in another form.
_GIVEN = {"deadline": "datetime | None", "credits": '"$0.50" | None'}


def states() -> str:
    return f"""# The life of a task

Drawn from the table in `src/remit/core/lifecycle.py`, which remit checks at every write of a task. {NOTE}
```mermaid
{lifecycle.mermaid()}```

A handoff does not change the state of a task; it is an event of its own.

## An attempt in the process that runs it

Drawn from `src/remit/core/life.py`, by trying each input in each state. A stronger stop replaces a weaker one: a task
that is being requeued and is then cancelled does not run again. After an attempt or its asker has stopped, nothing
more is done in its name.

```mermaid
{lives.mermaid()}```

## The circuit breaker of an agent

Drawn from the table in `src/remit/core/breaker.py`. By default, three failures in a row open the breaker, the
cool-off takes 60 s, and a probe expires after 300 s.

```mermaid
{breaker.mermaid()}```
"""


# -- verbs ---------------------------------------------------------------------------------------------------


def turn() -> str:
    offered = [
        (f"`{verb.name}`", verb.sentence, ", ".join(f"`{name}`" for name in _properties(verb))) for verb in verbs.VERBS
    ]
    return f"""# Methods of a turn

The object that an agent receives. {NOTE}
{_members(remit.Turn, "turn")}
## Shared keywords

{_table(("keyword", "meaning"), _keywords(asking.Queueing))}

## Verbs: the methods as tools of a model

`await remit.verbs.offered(turn)` returns these verbs as data: a name, a description, a JSON Schema of the arguments,
and a call on the turn. It leaves out verbs that cannot succeed: for example, verbs that ask agents if there is no
agent to ask or the depth limit is reached.

{_table(("tool", "sentence", "takes"), offered)}
"""


def _groups() -> list[str]:
    """Describe the groups of a workspace, one section each."""
    groups = (
        types.WorkspaceTasks,
        types.WorkspaceSchedules,
        types.WorkspaceJournal,
        types.WorkspaceMoney,
        types.WorkspaceQuestions,
        types.WorkspaceAgents,
        types.WorkspaceContext,
        types.WorkspaceArtifacts,
        types.KeyRing,
        types.WorkspaceAccess,
        types.WorkspaceHooks,
        types.WorkspaceLooks,
    )
    named = "tasks schedules journal money questions agents context artifacts keys access hooks looks"
    names = named.split()
    placed = [*zip(names, groups, strict=True), ("keys.cooling", types.CoolingList)]
    return [
        part
        for name, group in placed
        for part in (
            f"## workspace.{name}\n",
            f"{_sections(group.__doc__)}\n",
            _members(group, f"workspace.{name}", "###"),
        )
    ]


def runtime() -> str:
    parts = [
        "# Runtime and Workspace\n",
        (
            "A `Runtime` has agents and runs them. Its `workspace` has the owner actions that need no agents; it "
            f"can also be opened alone. {NOTE}"
        ),
        "```text",
        "Runtime" + _signature(remit.Runtime),
        "Workspace" + _signature(remit.Workspace),
        "```\n",
        f"{_sections(remit.Runtime.__doc__)}\n",
        "## Runtime\n",
        _members(remit.Runtime, "rt", "###"),
        "`remit.run(rt, agent, task, ...)` is `await rt.run(...)` for a script without an event loop.\n",
        "## Workspace\n",
        f"{_sections(remit.Workspace.__doc__)}\n",
        _members(remit.Workspace, "workspace", "###"),
        *_groups(),
        "## Task\n",
        f"{_sections(remit.Task.__doc__)}\n",
        _members(remit.Task, "task", "###"),
        "## Context\n",
        "`turn.context` as a holder sees it, `workspace.context()` as an owner does.\n",
        _members(types.Context, "context", "###"),
        "## Files\n",
        "`turn.artifacts` saves and opens files; an opened one is read in several ways.\n",
        _members(types.TurnArtifacts, "turn.artifacts", "###"),
        _members(types.OpenedArtifact, "file", "###"),
        "## Board\n",
        _members(types.Board, "board", "###"),
        "## Keywords of a run\n",
        _table(("keyword", "meaning"), _keywords(asking.StartingPlan, asking.Submitting)),
    ]
    return "\n".join(parts) + "\n"


def settings_page() -> str:
    parts = [
        "# Settings\n",
        (
            "Values that `Runtime` takes, from `remit.settings`; and `Bounds`, `Card` and `Step` from `remit`. All "
            f"fields with a default are optional. {NOTE}"
        ),
        "```text",
        'Runtime("team.db", bounds=Bounds(depth=4), policy=Policy(concurrency=20), serving=Serving(concurrency=10))',
        "```\n",
    ]
    given = [getattr(settings, name) for name in settings.__all__]
    for kind in (*filter(inspect.isclass, given), remit.Bounds, remit.Card, remit.Step):
        rows = [(f"`{name}`", _code(hint), _code(default)) for name, hint, default in _fields(kind)]
        parts += [
            f"## {kind.__name__}\n",
            f"{_sections(kind.__doc__)}\n",
            _table(("field", "type", "default"), rows) + "\n",
        ]
    for function in filter(inspect.isfunction, given):
        parts += [f"## {function.__name__}\n", f"{_sections(function.__doc__)}\n"]
    parts.append(
        "`tools` limits the tools that models and guests can call; a function checks `turn.tools` itself. "
        "`credits` and `tokens` limit what agents pay for and report with `await turn.report_tokens(1_200)`.\n"
    )
    return "\n".join(parts)


# -- what is seen from outside -------------------------------------------------------------------------------


def _group(parent: Any) -> str:
    """Return the heading under which the commands of a group are listed."""
    return "Run" if parent is commands.schedule else "Maintain"


def commands_page() -> str:
    apps = [(name, sentence, commands.app[name], group.name) for group, name, _, sentence in commands._COMMANDS]  # noqa: SLF001
    groups_here = [commands.app[name] for name in ("money", "cooling")]
    named = (
        commands.schedule,
        commands.artifacts,
        commands.context,
        commands.breaker,
        commands.keys,
        commands.access,
        commands.hooks,
        commands.db,
    )
    for parent in (*groups_here, *named):
        apps += [
            (f"{parent.name[0]} {name}", _sentence(parent[name]), parent[name], _group(parent))
            for name in parent
            if not name.startswith("-")
        ]
    groups: dict[str, list[tuple[str, str]]] = {}
    details: list[str] = []
    silent: list[str] = []
    for name, sentence, app, group in apps:
        groups.setdefault(group, []).append((f"[`remit {name}`](#remit-{name.replace(' ', '-')})", sentence))
        arguments = [one for one in app.assemble_argument_collection(parse_docstring=True) if one.show]
        if not any("--json" in one.names for one in arguments):
            silent.append(f"`{name}`")
        rows = [_option(one) for one in arguments if not _PLACES & set(one.names)]
        table = f"{_table(('option', 'default', 'meaning'), rows)}\n" if rows else ""
        details.append("\n".join([f"## remit {name}\n", *_about(app), table]))
    lists = "\n".join(f"## {name}\n\n{_table(('command', ''), rows)}\n" for name, rows in groups.items())
    codes = re.findall(r"(\d+) (.+?)[;.](?= \d|$)", commands.EXIT_CODES.removeprefix("Exit codes: "))
    return f"""# The command line

`--store` is a SQLite file or a `postgresql://` URL, `--workspace` a workspace in it. REMIT_STORE and REMIT_WORKSPACE
set them for all commands. `--server` or REMIT_SERVER is the address of a `remit serve` instead, and REMIT_KEY its key;
on the same machine remit finds its token. The default is the store of the named runtime, else of the `remit.toml` in
this folder, else the file `remit.db`. Every command has `--json`, except {", ".join(silent)}. {NOTE}
{lists}
## Exit codes

{_table(("code", "meaning"), codes)}

{chr(10).join(details)}"""


def _sentence(app: Any) -> str:
    """What a command says of itself in one sentence."""
    return app.help.partition("\n\n")[0].replace("\n", " ")


def _about(app: Any) -> Iterator[str]:
    """Yield the paragraphs of a command's docstring, as its help shows them."""
    about = (inspect.getdoc(app.default_command) or "").partition("\nParameters\n")[0]
    yield from (f"{_sections(paragraph)}\n" for paragraph in about.strip().split("\n\n"))


_PLACES = {"--store", "--workspace", "--server", "--json"}


def _option(argument: Any) -> tuple[str, str, str]:
    """An option of a command as its help tells it; what has a place is written in capitals."""
    name = argument.names[0]
    if argument.index is not None:
        name = name.removeprefix("--").upper()
    default = argument.field_info.default
    meaning = " ".join((argument.parameter.help or "").split())
    if default in (inspect.Parameter.empty, None, "", False) or "[default: " in meaning:
        return f"`{name}`", "", meaning
    told = ", ".join(map(_default, default)) if isinstance(default, tuple) else _default(default)
    return f"`{name}`", _code(told), meaning


def file_page() -> str:
    """The settings of a team's file, from the description that its checks and its JSON Schema are made of."""
    parts = [
        "# Team file\n",
        (
            "The settings of `remit.toml`. `remit check` validates a team file, and `remit check --schema` prints its "
            f"JSON Schema. {NOTE}"
        ),
    ]
    for name, kind in description.TABLES.items():
        parts.append(f"## {name}\n")
        header = f"[[{name}]]" if kind.listed else f"[{name}.NAME]" if kind.many else f"[{name}]"
        parts.append(f"`{header}`: {kind.about}\n")
        parts.append(_file_settings(kind))
    parts += ["## A script\n", f"`[[AGENT]]` in a file that `script:FILE` names: {description.SCRIPT_LINE.about}\n"]
    return "\n".join([*parts, _file_settings(description.SCRIPT_LINE)])


def _file_settings(kind: description.TableKind) -> str:
    short = [] if kind.short is None else [("`NAME = ...`", kind.short.kind.called, kind.short.about)]
    return f"{_table(('setting', 'value', 'meaning'), [*short, *_file_rows(kind)])}\n"


def _file_rows(kind: description.TableKind, above: str = "") -> list[tuple[str, str, str]]:
    """A row for each setting, with those of a table below it."""
    rows: list[tuple[str, str, str]] = []
    for name, setting in kind.settings.items():
        rows.append((f"`{above}{name}`", description.kind_name(setting), setting.about))
        if isinstance(setting, description.TableKind):
            rows += _file_rows(setting, f"{above}{name}.")
    return rows


def events_page() -> str:
    parts = [
        "# Events\n",
        (
            "Every change is exactly one event. Each has `seq`, `at` (microseconds since 1970), `kind`, `run`, "
            f"`session`, `task`, `agent`, `data` and `hash`; the content of `data` depends on the kind. {NOTE}"
        ),
        "A field in *italics* is optional. After a run is pruned, the `data` of its events is empty.\n",
        (
            "The first event of an operation also has `op`, the id of the operation, and `answer`, its result: the "
            "text of a model, the result of a tool. `remit history --json` prints both; in Python, `answer` is JSON "
            "text. An answer of more than 64 Ki characters is stored next to its event, which then has its digest and "
            "size, `blob:DIGEST:SIZE`; `remit history --json` prints the answer itself.\n"
        ),
    ]
    shapes: dict[type, list[str]] = {}
    for kind, shape in kinds.SHAPES.items():
        shapes.setdefault(shape, []).append(kind)
    for shape, all_kinds in shapes.items():
        parts.append(f"## {', '.join(all_kinds)}\n")
        rest = _sections(shape.__doc__)
        if ". " in rest or ":" in rest or ";" in rest:
            parts.append(f"{rest}\n")
        rows = [_field_row(shape, field, hint) for field, hint in shape.__annotations__.items()]
        parts.append((_table(("field", "type"), rows) if rows else "Nothing.") + "\n")
    return "\n".join(parts)


def errors_page() -> str:
    tree, _, after = (errors.__doc__ or "").partition("RemitError\n")[2].partition("\n\n")
    drawn = inspect.cleandoc("    RemitError\n" + tree)
    rows = [
        (
            f"`{kind.__name__}`",
            kind.addressee,
            kind.status,
            "yes" if kind.retryable else "no",
            exit_code(_bare(kind)),
        )
        for kind in _tree(errors.RemitError)
    ]
    return f"""# Errors

All in `remit.errors`; `RemitError`, `Refused` and `Failed` also in `remit`. {NOTE}
```text
{drawn}
```

{after.strip()}

{_table(("error", "audience", "HTTP status", "retryable", "exit code"), rows)}

A `Failed` is retryable if the agent's error is: connection and timeout errors, and errors with status 408, 409, 425,
429 or 5xx. The words of a message never matter.
"""


# -- how it is written down ----------------------------------------------------------------------------------


def _members(kind: type, called: str, heading: str = "##") -> str:
    """Every public member in the order of the code, what it has from other modules of ours behind its own: how it is
    written, and its docstring."""
    parts: list[str] = []
    ours = [one for one in kind.__mro__ if one.__module__.startswith("remit.")]
    found = {name: member for one in reversed(ours) for name, member in vars(one).items()}
    own = {name for one in ours if one.__module__ == kind.__module__ for name in vars(one)}
    for name, member in sorted(found.items(), key=lambda item: item[0] not in own):
        if name.startswith("_"):
            continue
        if isinstance(member, property | cached_property):
            function = member.fget if isinstance(member, property) else member.func
            written = f"{called}.{name} -> {_type(get_type_hints(function, _names(function)).get('return', ''))}"
        elif callable(member):
            function = member
            written = f"{_prefix(member)}{called}.{name}{_signature(member)}"
        else:
            continue
        if function.__doc__:  # what has none is for remit's own rooms
            parts += [f"{heading} {name}\n", f"```text\n{written}\n```\n", f"{_sections(function.__doc__)}\n"]
    return "\n".join(parts)


def _prefix(function: Callable[..., object]) -> str:
    inner = inspect.unwrap(function)
    if inspect.isasyncgenfunction(inner):
        return "async with " if function is not inner else "async for events in "
    if inspect.isgeneratorfunction(inner):
        return "with "
    return "await " if inspect.iscoroutinefunction(inner) else ""


def _signature(function: Callable[..., object]) -> str:
    """Like `(agent, task, *, session, tier)`: types, and defaults that `...` stands for, are left to the editor."""
    names: list[str] = []
    star = False
    for name, parameter in inspect.signature(function, globals=_names(function), eval_str=True).parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            names.append(f"**{name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            names.append("*")
            star = True
        prefix = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        left_out = parameter.default is parameter.empty or repr(parameter.default) == "..."
        default = "" if left_out else f"={_default(parameter.default)}"
        names.append(f"{prefix}{name}{default}")
        star = star or bool(prefix)
    return f"({', '.join(names)})"


def _names(where: Any) -> dict[str, Any]:
    """The names in annotations: those of its module, and types that it does not import when it runs."""
    inner = inspect.unwrap(where)
    return {**vars(types), **vars(approvals), **vars(finding), **vars(asking), **vars(sys.modules[inner.__module__])}


def _default(value: object) -> str:
    if isinstance(value, remit.Bounds):
        return "Bounds()"
    if isinstance(value, float) and value == int(value):
        return f"{int(value)}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _fields(kind: type) -> Iterator[tuple[str, object, str]]:
    hints = get_type_hints(kind, _names(kind))
    if is_dataclass(kind):
        for field in fields(kind):
            if field.init:
                yield field.name, _GIVEN.get(field.name, hints[field.name]), _default_of(field)
        return
    for name in kind._fields:  # a named tuple
        yield name, hints[name], _default(kind._field_defaults[name])


def _default_of(field: "Field[Any]") -> str:
    if field.default is not MISSING:
        empty = field.default in ((), frozenset()) and field.default is not None
        return "nothing" if empty else "any" if repr(field.default) == "ANY" else _default(field.default)
    if field.default_factory is not MISSING:
        return f"{getattr(field.default_factory, '__name__', '')}()"
    return ""


def _type(hint: object) -> str:
    if get_args(hint)[:1] in ((frozenset[str],), (frozenset[remit.Scope],)):
        return 'names, or "*"' if get_args(hint)[0] == frozenset[str] else 'namespaces, Scope(...), or "*"'
    if isinstance(hint, ForwardRef):
        hint = hint.__forward_arg__
    if hint == Json:
        return "Json"
    if isinstance(hint, str):
        return hint.strip("'\"")
    text = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    for written in (f"ForwardRef('{Json}')", f"'{Json}'"):
        text = text.replace(written, "Json")
    text = re.sub(r"^typing\.(?:Not)?Required\[(.*)\]$", r"\1", text)
    text = re.sub(r"\b(?:typing|collections\.abc|remit(?:\.\w+)*|datetime)\.", "", text)
    return text.replace("NoneType", "None")


def _field_row(shape: type, field: str, hint: object) -> tuple[str, str]:
    always = field in shape.__required_keys__
    mark = "`" if always else "*"
    return f"{mark}{field}{mark}", _code(_type(hint))


def _keywords(*shapes: type) -> list[tuple[str, str]]:
    names = dict.fromkeys(name for shape in shapes for name in shape.__annotations__)
    return [(f"`{name}`", KEYWORDS[name]) for name in names]


def _properties(verb: verbs.Verb) -> Iterable[str]:
    properties: Any = verb.schema["properties"]
    return properties


def _tree(kind: type) -> Iterator[Any]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child)


def _yes(so: object) -> str:
    return "yes" if so else "no"


def _bare(kind: type) -> Any:
    return kind.__new__(kind)


def _code(hint: object) -> str:
    text = hint if isinstance(hint, str) else _type(hint)
    return f"`{text}`".replace("|", "\\|") if text else ""


def _sections(doc: str | None) -> str:
    """A docstring as prose: paragraphs stay, lines are joined."""
    paragraphs = inspect.cleandoc(doc or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


PAGES: dict[str, Callable[[], str]] = {
    "states.md": states,
    "reference/turn.md": turn,
    "reference/runtime.md": runtime,
    "reference/settings.md": settings_page,
    "reference/commands.md": commands_page,
    "reference/team-file.md": file_page,
    "reference/refusals.md": refusals_page,
    "reference/events.md": events_page,
    "reference/errors.md": errors_page,
}

"""The pages of docs/ that are made from the code: signatures, fields, sentences and tables as they are there."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cached_property
from typing import Any, ForwardRef, Never, Unpack, get_args, get_origin, get_type_hints, is_typeddict

import lives
from refusals import refusals_page

import remit
from remit import errors, settings, types, verbs
from remit.cli import main as commands
from remit.config import description
from remit.core import breaker, kinds, lifecycle
from remit.core.values import Json
from remit.engine import asking

NOTE = "Made from the code; do not edit, run `make docs`.\n"

# What the keywords mean that several verbs take. A keyword that is missing here stops the drawing.
KEYWORDS = {
    "sees": "which context is passed along, beyond what the holder's card reads: namespaces, or `Scope(...)`",
    "tools": "which tools are passed along, beyond those of the holder's card; one that calls its tools itself, not "
    "through `turn.tool`, has to heed that itself",
    "within": "`Bounds(...)` that narrow those of the asker",
    "writes": "where the holder may write, beyond what its card says",
    "trust": '`"untrusted"`: the text of the task comes from strangers',
    "seconds": "how long it may take: 300, or 260 an attempt for what is submitted or spawned",
    "key": "idempotency key: what is submitted under it again is the same task",
    "same_within": "for how many seconds the same request is the same task without a key",
    "attempts": "how often it is tried before it is dead: 4",
    "announce": "`True`: its end is announced in the asker's inbox, as that of a spawned task",
    "session": "what several runs have in common: a board and inboxes",
    "remembers": '`True`: it is told what was said before in the session; `"whole"`: whole conversations',
    "credits": 'what is set aside for it to spend, for example `"$0.50"` or `"0.50 USD"`',
    "tier": "`simple`, `medium` or `complex`: bounds with a name",
    "handoffs": "`False`: every task stays where it was put",
    "by": "who starts the run, as the journal keeps it",
    "concurrency": "how many steps run at a time: 5",
    "reveal": "whether members are told the goal and who takes part",
    "approve": "an async function that is asked before each step",
    "abort": "an `anyio.Event`; when it is set nothing more is started",
}

# What people write, where the field holds it in another form.
_GIVEN = {"deadline": "datetime | None", "credits": '"$0.50" | None'}


def states() -> str:
    return f"""# The life of a task

Drawn from the table in `src/remit/core/lifecycle.py`, which every write of a task is checked against. {NOTE}
```mermaid
{lifecycle.mermaid()}```

While it runs, a task may change hands: a handoff is an event of its own and leaves the state as it is.

## An attempt in the process that runs it

Drawn from `src/remit/core/life.py`, by trying each input in each state. A stronger stop replaces a weaker one: a task
that is being put back into the queue and is then cancelled is not run again. Nothing is done in the name of an attempt
that has stopped, or whose asker has.

```mermaid
{lives.mermaid()}```

## The breaker of an agent

Drawn from the table in `src/remit/core/breaker.py`. Three failures in a row are too many, the cool-off takes 60 s and a
probe expires after 300 s, unless the runtime says otherwise.

```mermaid
{breaker.mermaid()}```
"""


# -- verbs ---------------------------------------------------------------------------------------------------


def turn() -> str:
    offered = [
        (f"`{verb.name}`", verb.sentence, ", ".join(f"`{name}`" for name in _properties(verb))) for verb in verbs.VERBS
    ]
    return f"""# The verbs of a turn

What an agent receives when it is asked. {NOTE}
{_members(remit.Turn, "turn")}
## Keywords that go along

{_table(("keyword", "meaning"), _keywords(asking.Queueing))}

## The same for a model

`await remit.verbs.offered(turn)` gives these as data: a name, a sentence, a JSON Schema of what it takes, and a call on
the turn. A verb that cannot succeed is not among them: none that asks where there is nobody to ask or the depth limit
is reached, none that hands over when no handoff is left.

{_table(("tool", "sentence", "takes"), offered)}
"""


def runtime() -> str:
    parts = [
        "# Runtime and Workspace\n",
        (
            "A `Runtime` has agents, and lets them be asked. Its `workspace` has what an owner does without agents; it "
            f"can also be opened alone. {NOTE}"
        ),
        "```text",
        "Runtime" + _signature(remit.Runtime),
        "Workspace" + _signature(remit.Workspace),
        "```\n",
        f"{_sections(remit.Runtime.__doc__)}\n",
        "## Runtime\n",
        _members(remit.Runtime, "rt", "###"),
        "`remit.run(rt, agent, task, ...)` is `await rt.run(...)` for a script that has no event loop.\n",
        "## Workspace\n",
        f"{_sections(remit.Workspace.__doc__)}\n",
        _members(remit.Workspace, "workspace", "###"),
        "## Keys\n",
        f"`workspace.keys`: {_sections(types.KeyRing.__doc__)}\n",
        _members(types.KeyRing, "workspace.keys", "###"),
        "## Cooling\n",
        f"`workspace.cooling`: {_sections(types.CoolingList.__doc__)}\n",
        _members(types.CoolingList, "workspace.cooling", "###"),
        "## Task\n",
        f"{_sections(remit.Task.__doc__)}\n",
        _members(remit.Task, "task", "###"),
        "## Context\n",
        "`turn.context` as a holder sees it, `workspace.context()` as an owner does.\n",
        _members(types.Context, "context", "###"),
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
            "Values that `Runtime` takes, from `remit.settings`; and `Bounds`, `Card` and `Step` from `remit`. What is "
            f"left out has the default. {NOTE}"
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
        "`tools` bound what models and guests can call; a function that uses tools looks them up in `turn.tools`. "
        "`credits` and `tokens` count what agents pay for and report with `await turn.report_tokens(1_200)`.\n"
    )
    return "\n".join(parts)


# -- what is seen from outside -------------------------------------------------------------------------------


def commands_page() -> str:
    apps = [(name, sentence, commands.app[name], group.name) for group, name, _, sentence in commands._COMMANDS]  # noqa: SLF001
    groups_here = [commands.app[name] for name in ("credits", "ledger", "cooling")]
    for parent in (*groups_here, commands.context, commands.breaker, commands.keys, commands.db):
        apps += [
            (f"{parent.name[0]} {name}", _sentence(parent[name]), parent[name], "Maintain")
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
        details.append("\n".join([f"## remit {name}\n", f"{sentence}\n", *_more(app), table]))
    lists = "\n".join(f"## {name}\n\n{_table(('command', ''), rows)}\n" for name, rows in groups.items())
    codes = re.findall(r"(\d+) (.+?)[;.](?= \d|$)", commands.EXIT_CODES.removeprefix("Exit codes: "))
    return f"""# The command line

`--store` is a file or `postgresql://...`, and `--workspace` a workspace in it; REMIT_STORE and REMIT_WORKSPACE say so
for all commands. Where neither is said it is the store of the runtime that is named, or of the `remit.toml` in this
folder, or the file `remit.db`. `--json` is there for every command but {", ".join(silent)}. {NOTE}
{lists}
## Exit codes

{_table(("code", "meaning"), codes)}

{chr(10).join(details)}"""


def _sentence(app: Any) -> str:
    """What a command says of itself in one sentence."""
    return app.help.partition("\n\n")[0].replace("\n", " ")


def _more(app: Any) -> Iterator[str]:
    """What a command's docstring says beyond its first sentence."""
    about = (inspect.getdoc(app.default_command) or "").partition("\nParameters\n")[0]
    yield from (f"{_sections(paragraph)}\n" for paragraph in about.strip().split("\n\n")[1:])


_PLACES = {"--store", "--workspace", "--json"}


def _option(argument: Any) -> tuple[str, str, str]:
    """An option of a command as its help tells it; what has a place is written in capitals."""
    name = argument.names[0]
    if argument.index is not None:
        name = name.removeprefix("--").upper()
    default = argument.field_info.default
    told = "" if default in (inspect.Parameter.empty, None, "", False) else _code(_default(default))
    meaning = (argument.parameter.help or "").strip()
    return f"`{name}`", told, meaning


def file_page() -> str:
    """The settings of a team's file, from the description that its checks and its JSON Schema are made of."""
    parts = [
        "# The team's file\n",
        (
            "What may stand in `remit.toml`. `remit check` says what is wrong with one, and `remit check --schema` "
            f"prints the same as a JSON Schema. {NOTE}"
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
        rows.append((f"`{above}{name}`", description.called(setting), setting.about))
        if isinstance(setting, description.TableKind):
            rows += _file_rows(setting, f"{above}{name}.")
    return rows


def events_page() -> str:
    parts = [
        "# Events\n",
        (
            "Every change is exactly one event. Each has `seq`, `at` (microseconds since 1970), `kind`, `run`, "
            f"`session`, `task`, `agent`, `data` and `hash`; what is in `data` depends on the kind. {NOTE}"
        ),
        "A field in *italics* is not always there. After a run is pruned, `data` of its events is empty.\n",
        (
            "The first event of an operation also has `op`, the id of the operation, and `answer`, what the operation "
            "answered: what a model said, what a tool returned. `remit history --json` prints both; in "
            "Python `answer` is JSON text. An answer of more than 64 Ki characters is kept beside its event, which "
            "then has its digest and size, `blob:DIGEST:SIZE`; `remit history --json` prints the answer itself.\n"
        ),
    ]
    shapes: dict[str, list[str]] = {}
    for kind, shape in kinds.SHAPES.items():
        shapes.setdefault(shape.__name__, []).append(kind)
    for name, all_kinds in shapes.items():
        shape = getattr(kinds, name)
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
            commands.exit_code(_bare(kind)),
        )
        for kind in _tree(errors.RemitError)
    ]
    return f"""# Errors

All in `remit.errors`; `RemitError`, `Refused` and `Failed` also in `remit`. {NOTE}
```text
{drawn}
```

{after.strip()}

{_table(("error", "addresses", "HTTP status", "try again", "exit code"), rows)}

A `Failed` takes `retryable` from what the agent died of: connection and timeout errors, and errors with a status of
408, 409, 425, 429 or 5xx. Words in a message never decide.
"""


# -- how it is written down ----------------------------------------------------------------------------------


def _members(kind: type, called: str, heading: str = "##") -> str:
    """Every public member in the order of the code, what it has from parts of ours behind its own: how it is written,
    and its docstring."""
    parts: list[str] = []
    ours = [one for one in kind.__mro__ if one.__module__.startswith("remit.")]
    found = {name: member for one in reversed(ours) for name, member in vars(one).items()}
    for name, member in sorted(found.items(), key=lambda item: item[0] not in vars(kind)):
        if name.startswith("_"):
            continue
        if isinstance(member, property | cached_property):
            function = member.fget if isinstance(member, property) else member.func
            written = f"{called}.{name} -> {_type(function.__annotations__.get('return', ''))}"
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
    """Like `(agent, task, *, session, tier)`: keywords of a TypedDict are spelled out, types are left to the editor."""
    names: list[str] = []
    star = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.annotation is Never:  # taken only to be refused with a sentence
            continue
        if name == "self":
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            spelled = _spelled(parameter)
            names += [*([] if star or len(spelled) == 1 else ["*"]), *spelled]
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            names.append("*")
            star = True
        prefix = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        names.append(f"{prefix}{name}{default}")
        star = star or bool(prefix)
    return f"({', '.join(names)})"


def _spelled(parameter: inspect.Parameter) -> list[str]:
    hint = parameter.annotation
    if get_origin(hint) is Unpack and is_typeddict(get_args(hint)[0]):
        return [*get_args(hint)[0].__annotations__]
    return [f"**{parameter.name}"]


def _default(value: object) -> str:
    if isinstance(value, remit.Bounds):
        return "Bounds()"
    if isinstance(value, float) and value == int(value):
        return f"{int(value)}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _fields(kind: type) -> Iterator[tuple[str, object, str]]:
    hints = get_type_hints(kind)
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

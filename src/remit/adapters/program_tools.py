"""Programs as tools: started from an argument list, never through a shell, and none of their processes outlives the
call.

    program_tool("count_lines", ["wc", "-l", "--", "{path}"], "Count the lines of a file.", ["path"])

The model's text becomes items of the command and nothing else: no shell reads it.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypedDict, Unpack

import anyio

from remit.adapters.process import GRACE, LIMIT, ending, last_words, located, printed, run_process
from remit.core.checks import items, keywords, patience, refuse_strange
from remit.core.trust import quoted
from remit.core.values import TASK_LIMIT, line, plain, shown
from remit.errors import BadInput
from remit.ports.tools import Schema, Tool, ToolFailed

SECONDS: Final = 60.0  # for one call

_PLACE: Final = re.compile(r"\{(\w+)\}")
_NAME: Final = re.compile(r"\w{1,64}")
_END_OF_OPTIONS: Final = "--"
_SAID: Final = 1_000  # characters of the error about wrong arguments

Wrong: TypeAlias = Callable[[dict[str, Any]], list[str]]


class ProgramOptions(TypedDict, total=False):
    """How a program runs: `timeout`, the seconds for one call; `limit`, the bytes that are kept of each of its output
    streams; `env`, further environment variables; `cwd`, its folder; `grace`, the seconds between SIGTERM and
    SIGKILL."""

    timeout: float
    limit: int
    env: Mapping[str, str]
    cwd: str | os.PathLike[str]
    grace: float


@keywords(ProgramOptions)
def program_tool(
    name: str,
    command: Sequence[str],
    sentence: str,
    arguments: Schema | Sequence[str] = (),
    *,
    stdin: str | None = None,
    polls: bool = False,
    **how: Unpack[ProgramOptions],
) -> Tool:
    """Return a tool that runs a program. Its result is the program's output, which is untrusted.

    `arguments` are names of texts, all of them required, or the JSON Schema of an object. Each argument replaces its
    `{name}` in the command, or is appended in this order; `stdin` names the argument that the program reads from
    standard input instead. A missing argument removes its item. Text that begins with `-` is refused where the program
    could read it as an option: put "--" before it, or write `--option={name}`. `polls=True` says that the program
    reports the state of something, so equal output is fine.
    """
    refuse_strange("program_tool", how, ProgramOptions.__annotations__)
    patience(how.get("timeout", SECONDS), "timeout")
    schema, wrong = _arguments(arguments)
    names = list(schema["properties"])
    if stdin is not None and stdin not in names:
        raise BadInput(f"stdin is the name of an argument, not {shown(stdin)}; the arguments are {', '.join(names)}")
    spelled = _Spelled(located(command, how.get("env")), [each for each in names if each != stdin])
    run = partial(_run, Path(command[0]).name, how)

    async def call(given: dict[str, Any]) -> str:
        if troubles := wrong(given):
            raise ToolFailed(f"'{name}' does not take these arguments: {'; '.join(troubles)}"[:_SAID])
        text = _text(given[stdin], stdin) if stdin is not None and stdin in given else ""
        try:
            return await run(spelled.out(given), text)
        except BadInput as error:  # it existed when the tool was created
            raise ToolFailed(str(error)) from None

    return Tool(name, sentence, schema, call, untrusted=True, polls=polls)


async def _run(name: str, how: ProgramOptions, argv: list[str], text: str) -> str:
    seconds, limit = how.get("timeout", SECONDS), how.get("limit", LIMIT)
    done = None
    with anyio.move_on_after(seconds):
        run = partial(run_process, argv, text=text, env=how.get("env"), cwd=how.get("cwd"))
        done = await run(limit=limit, grace=how.get("grace", GRACE))
    if done is None:
        raise ToolFailed(f"'{name}' was not done within {seconds:g} s and was ended; what it did until then stays done")
    if done.code:
        said = last_words(done.err)
        raise ToolFailed(f"{ending(name, done)}{f': {quoted(said)}' if said else ' and said nothing'}")
    return printed(done, limit)


class _Spelled:
    """A command with places for arguments."""

    def __init__(self, command: list[str], names: list[str]) -> None:
        placed = {found for item in command[1:] for found in _PLACE.findall(item)}
        if strange := sorted(placed - set(names)):
            given = f"the arguments are {', '.join(names)}" if names else "it has none"
            raise BadInput(f"the command has a place for {{{strange[0]}}}, which is no argument of it; {given}")
        self._command = [*command, *(f"{{{name}}}" for name in names if name not in placed)]

    def out(self, given: Mapping[str, Any]) -> list[str]:
        """Return the command with the arguments filled in."""
        program, *rest = self._command
        argv, options = [program], True
        for item in rest:
            wants = _PLACE.findall(item)
            if all(name in given for name in wants):
                argv.append(self._filled(item, given, options=options) if wants else item)
            options = options and item != _END_OF_OPTIONS
        return argv

    @staticmethod
    def _filled(item: str, given: Mapping[str, Any], *, options: bool) -> str:
        filled = _PLACE.sub(lambda found: _text(given[found[1]], found[1]), item)
        if options and filled.startswith("-") and not item.startswith("-"):
            raise ToolFailed(f"{shown(filled)} begins with '-' and could be read as an option; say it in another way")
        return filled


def _text(value: object, name: str) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        return plain(text, f"the argument '{name}'", TASK_LIMIT, empty=True)
    except BadInput as error:
        raise ToolFailed(str(error)) from None


def _arguments(given: Schema | Sequence[str]) -> tuple[dict[str, Any], Wrong]:
    """Return the JSON Schema of the arguments, and a function that returns the errors of the arguments of one call, a
    sentence for each."""
    if isinstance(given, Mapping):
        return _checked(given)
    names = [line(each, "an argument's name", 64) for each in items(given, "arguments takes a list of names")]
    properties = {_argument_name(name): {"type": "string"} for name in names}
    schema = {"type": "object", "properties": properties, "required": names, "additionalProperties": False}

    def wrong(arguments: dict[str, Any]) -> list[str]:
        missing = [f"'{name}' is missing" for name in names if name not in arguments]
        strange = [f"there is no {shown(name)}" for name in arguments if name not in properties]
        kinds = [f"'{name}' is not text" for name in names if not isinstance(arguments.get(name, ""), str)]
        return [*missing, *strange, *kinds]

    return schema, wrong


def _checked(schema: Schema) -> tuple[dict[str, Any], Wrong]:
    try:
        from remit.adapters.schema import check, check_schema  # noqa: PLC0415 - most tools have only names
    except ImportError:
        raise BadInput(
            "arguments as a JSON Schema need the jsonschema package: pip install 'remit[schema]'; or give their names"
        ) from None
    closed: dict[str, Any] = {"properties": {}, "additionalProperties": False, **schema}
    check_schema(closed)
    for name in closed["properties"]:
        _argument_name(name)

    def wrong(arguments: dict[str, Any]) -> list[str]:
        # Unknown arguments have no place in the command.
        strange = sorted(arguments.keys() - closed["properties"].keys())
        return check(closed, arguments) or [f"there is no {shown(name)}" for name in strange]

    return closed, wrong


def _argument_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadInput(f"an argument's name is made of letters, digits and _, not {shown(name)}")
    return name

"""The help of a command, and the sentences about wrong words in a call of it."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from inspect import getdoc
from typing import Final, get_args

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    Token,
    UnknownCommandError,
    UnusedCliTokensError,
)

from remit.core.patterns import pattern
from remit.core.values import shown

_NO_SERVER: Final = "Unknown option: --server"
_ITSELF: Final = "this command works on the store itself and takes no --server: run it where the store is"
_WORD: Final = pattern(r"\w+")
_SHOWN: Final = 3
_CLOSE: Final = 0.66  # as "workr" is to "worker"; "tree" is not close to "reject"


def usage_error(error: CycloptsError) -> str:
    """Return a sentence that says what was wrong and how to write it."""
    match error:
        case UnknownCommandError(app=App() as app, unused_tokens=[word, *_]):
            return _unknown(app, word, ("remit", *(error.command_chain or ())))
        case MissingArgumentError() if missing := _missing(error):
            return missing
        case UnusedCliTokensError(unused_tokens=[word, *_]):
            return f"{_command_words(error)} does not take {shown(word)}; {_help(error)}"
        case CoercionError(token=Token() as token, target_type=kind) if choices := ", ".join(map(repr, _choices(kind))):
            return f"{token.keyword or 'this'} is one of {choices}, not {shown(token.value)}"
        case _:
            text = str(error)
            return _ITSELF if _NO_SERVER in text else text


@contextmanager
def whole_help(app: App, given: Sequence[str]) -> Generator[None]:
    """Let the help of the command in these words show its whole docstring. The sentence with which a command is
    registered is for lists of commands, which are shown without importing the commands."""
    command = app.parse_commands([word for word in given if word not in app.help_flags])[1][-1]
    short = command.help
    if command.default_command is not None:
        command.help = getdoc(command.default_command)
    try:
        yield
    finally:
        command.help = short


def _command_words(error: CycloptsError) -> str:
    return " ".join(("remit", *(error.command_chain or ())))


def _help(error: CycloptsError) -> str:
    return f"`{_command_words(error)} --help` shows how to write it"


def _missing(error: MissingArgumentError) -> str:
    """Return the sentence for a missing argument, named as in the help; "" for an option without its value, which the
    parser reports."""
    argument = error.argument
    if argument is None or error.keyword or argument.tokens:
        return ""
    positional = argument.field_info.is_positional
    name = argument.name.removeprefix("--").upper() if positional else argument.name
    return f"{_command_words(error)} needs {name}; {_help(error)}"


def _choices(kind: object) -> Iterator[str]:
    """Yield the words of a Literal, or of a union of them."""
    for one in get_args(kind):
        if isinstance(one, str):
            yield one
        else:
            yield from _choices(one)


def _unknown(app: App, word: str, above: tuple[str, ...]) -> str:
    """Return a sentence about an unknown command, with the command that was probably meant: found by name, by
    description, or as a typing error."""
    commands = {" ".join((*above, *path)): sentence for path, sentence in _commands(app)}
    near = get_close_matches(word, [path.split()[-1] for path in commands], n=1, cutoff=_CLOSE)
    found = (
        [path for path in commands if path.split()[-1].startswith(word)]
        or [path for path, sentence in commands.items() if _says(sentence, word)]
        or [path for path in commands if path.split()[-1] in near]
    )
    called = " ".join(above)
    hint = f"; did you mean `{'` or `'.join(found[:_SHOWN])}`?" if found else ";"
    return f"{called} has no command {shown(word)}{hint} `{called} --help` lists its commands"


def _commands(app: App) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path of each command below an app, and the sentence that says what it does."""
    for name in app:
        if not name.startswith("-"):
            yield (name,), app[name].help
            yield from (((name, *path), sentence) for path, sentence in _commands(app[name]))


def _says(sentence: str, word: str) -> bool:
    """Whether a sentence has a word that begins like this one: spend, spending."""
    least = 4  # letters: shorter words begin too many others
    return len(word) >= least and any(one.startswith(word.lower()) for one in _WORD.findall(sentence.lower()))

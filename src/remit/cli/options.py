"""Options that several commands share, and output."""

import getpass
import json
import os
import shlex
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias, TypedDict, cast

from cyclopts import Parameter, Token
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from remit.config.places import FILE_NAME, place_of
from remit.core.patterns import pattern
from remit.core.prices import credits as money
from remit.core.values import Json, decode, shown
from remit.engine.system import SystemClock
from remit.errors import BadInput
from remit.report.printable import block, escaped, harmless
from remit.runtime.workspace import Workspace
from remit.stores.addresses import each_address, is_server

DEFAULT_STORE: Final = "remit.db"
DEFAULT_WORKSPACE: Final = "default"
_QUOTED: Final = pattern(r"`(remit [a-z][^`\n]*)`")
_WITHOUT_STORE: Final = frozenset(("check", "demo", "init", "trust"))
_WITHOUT_WORKSPACE: Final = frozenset(("backup", "chat", "db", "move", "run", "worker"))
# Commands that work on a store itself, or run a team in their own process: they have no --server.
LOCAL: Final = frozenset(("backup", "chat", "db", "doctor", "move", "run", "serve", "worker"))
TOML: Final = ".toml"
STORE_NAMES: Final = ("--store", "--database", "-s")


def _stores(_: object) -> list[str]:
    """Offer the SQLite files in this folder, for completion."""
    return sorted(str(file) for file in Path().glob("*.db"))


def _lines(_: object, given: Sequence[Token]) -> str:
    """Return the addresses of several databases as one text, a line each."""
    return "\n".join(one.value for one in given)


def _whole(_: object, value: str, **__: object) -> list[str]:
    """Return a variable of the environment as it is: a path may contain spaces."""
    return [value]


if TYPE_CHECKING:
    OwnStore: TypeAlias = str | None  # the converter below makes one text of all that were given
else:
    OwnStore = Annotated[
        list[str] | str | None,
        Parameter(
            name=STORE_NAMES,
            env_var="REMIT_STORE",
            env_var_split=_whole,
            completer=_stores,
            converter=_lines,
            consume_multiple=False,
            negative="",
        ),
    ]
InWorkspace: TypeAlias = Annotated[str | None, Parameter(alias="-w", env_var="REMIT_WORKSPACE")]
AtServer: TypeAlias = Annotated[str | None, Parameter(env_var="REMIT_SERVER")]
# A shell may turn "$0.50" into `-bash.50`, see `with_unit`.
Credits: TypeAlias = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
DataOption: TypeAlias = Annotated[str | None, Parameter(name="--data", allow_leading_hyphen=True)]
AsJson: TypeAlias = Annotated[bool, Parameter(name="--json", negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """The store and the workspace of a command."""

    store: OwnStore = None
    """SQLite file or postgresql:// URL. Repeat it for several databases. [default: from remit.toml, else remit.db]"""

    workspace: InWorkspace = None
    """Workspace in the store. [default: from remit.toml, else "default"]"""

    server: AtServer = None
    """Address of `remit serve`, instead of a store. REMIT_KEY is its key; on this machine remit finds the token."""


HERE = Where()


class Doing(TypedDict):
    """The keywords that every action of an owner takes."""

    op: str
    by: str


@Parameter(name="*")
@dataclass(frozen=True)
class Acting:
    """The person that acts, and the operation id."""

    by: str = ""
    """Name of the actor, for the journal. [default: the user of this terminal]"""

    op: str = ""
    """Operation id: repeated with the same id, the command acts once; another action with this id is refused."""

    @property
    def said(self) -> Doing:
        return {"op": self.op, "by": self.by or at_terminal()}


MYSELF = Acting()


def typed_data(given: str | None, option: str = "--data", such_as: str = '{"order": 7}') -> Json:
    """Return the value of `--data`, or of another option that takes JSON: its JSON, or that of the file after an @;
    None if the option is missing. Raise `BadInput` for anything else; `such_as` is the example in the error."""
    if given is None:
        return None
    try:
        text = Path(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given
        return decode(text)
    except OSError as error:
        raise BadInput(f"{option}: {shown(given[1:])} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        what = shown(given[1:]) if given.startswith("@") else shown(given)
        file = "@order.json" if option == "--data" else f"@{option[2:]}.json"
        raise BadInput(f"{option} is JSON, such as '{such_as}', or {file}; {what} is not: {error}") from error


def store_at(given: str | None) -> str:
    """Return the store of a command: the given one, that of the team in this folder, or the default. Raise `BadInput`
    if the folder is not trusted and its file names a server."""
    if not given:
        refuse_server(team_file())
    return given or usual_store()


def usual_store() -> str:
    """Return the store of a command that names none: that of the team in this folder, or the default."""
    return place_of(team_file()).store or DEFAULT_STORE


def usual_team() -> str:
    """Return the team of a command that names none: that of REMIT_TEAM, or the file in this folder; "" for none."""
    return os.environ.get("REMIT_TEAM", "") or (FILE_NAME if Path(FILE_NAME).exists() else "")


def team_file() -> Path:
    """Return the team file of a command that names none: that of REMIT_TEAM, else remit.toml in this folder, which need
    not exist. Raise `BadInput` if REMIT_TEAM names a file that does not exist."""
    team = usual_team()
    if not team.endswith(TOML):
        return Path(FILE_NAME)
    if not Path(team).exists():
        raise BadInput(f"REMIT_TEAM names {shown(team)}, and there is no such file; correct it or unset it")
    return Path(team)


def refuse_server(file: Path) -> None:
    """Raise `BadInput` if a file names a server and its folder is not trusted: a server could request the password from
    the environment or a password file, and would get it."""
    store = place_of(file).store
    if not store:
        return
    # Most commands read a store without a team file, and reading team files takes many modules.
    from remit.config.trusting import is_trusted, names_server, server_shown

    if names_server(store) and not is_trusted(file):
        raise BadInput(
            f"{file} names the server {escaped(server_shown(store), 200)}, and its folder is not trusted. remit did "
            "not connect, because the server could ask for your password. `remit trust` shows what the file asks for "
            "and trusts it; or pass --store"
        )


def workspace_at(given: str | None) -> str:
    """Return the workspace of a command: the given one, that of the team file in this folder, or "default" if neither
    names one."""
    return given or place_of(team_file()).workspace or DEFAULT_WORKSPACE


@contextmanager
def opened_workspace(place: Where, *, create: bool = False) -> Generator[Workspace]:
    """Open the workspace of a command, in a store or on a server. Without `create`, no new file is created."""
    if server := server_of(place):
        with remote_at(server) as workspace:
            yield workspace
        return
    store = store_at(place.store)
    with Workspace(store, workspace_at(place.workspace), create=create) as workspace:
        _stay_at(workspace, store)
        yield workspace


def server_of(place: Where) -> str:
    """Return the server of a command, or "" for a store. An option takes precedence over an environment variable. Raise
    `BadInput` if both a store and a server are set in the same way, or if `--workspace` is set for a server."""
    if not place.server:
        return ""
    if place.workspace and place.workspace != os.environ.get("REMIT_WORKSPACE"):
        raise BadInput("the key says which workspace of a server it is for; leave out --workspace")
    if not place.store:
        return place.server
    says_store, says_server = (
        given != os.environ.get(name) for given, name in ((place.store, "REMIT_STORE"), (place.server, "REMIT_SERVER"))
    )
    if says_store == says_server:
        both = "--store or --server" if says_store else "REMIT_STORE or REMIT_SERVER"
        raise BadInput(f"a command works on a store or on a server: set {both}, not both")
    return place.server if says_server else ""


@contextmanager
def remote_at(server: str) -> Generator[Workspace]:
    """Open the workspace on a server that the key in REMIT_KEY is for. Without REMIT_KEY, use the stored token of a
    server on this machine."""
    from remit.config.tokens import kept_token

    try:
        from remit.adapters.http_client import Client
        from remit.adapters.http_wire import local_port
    except ImportError as error:
        raise BadInput(f"--server needs the httpx package: pip install 'remit[server]' ({error})") from error
    port = local_port(server)
    key = os.environ.get("REMIT_KEY", "") or (kept_token(port) if port else "")
    with Client(server, key=key) as client:
        _here.store = partial(_server_option, client.where)
        _here.workspace, _here.local = "", True
        yield cast("Workspace", client)  # it has the same groups and methods


def _server_option(server: str) -> str:
    return "" if server == os.environ.get("REMIT_SERVER", "").rstrip("/") else f" --server {shlex.quote(server)}"


def must_be_local(place: Where, command: str) -> None:
    """Raise `BadInput` if a command that works on the store itself is given a server."""
    if server_of(place):
        raise BadInput(f"remit {command} works on the store itself: run it where the store is, with --store")


def now() -> int:
    """Return the time of this machine, in microseconds since 1970."""
    return SystemClock().now()


# -- commands in hints ---------------------------------------------------------------------------------------


@dataclass
class _Place:
    """The store and the workspace of the present command, as options for commands in hints. Both are empty if the
    commands would use the same ones anyway."""

    store: Callable[[], str] = str  # called for a hint only: it may open the store
    workspace: str = ""
    kept: bool = True  # whether other commands can read the store
    local: bool = False  # whether some commands cannot be used there, because it is a server


_here = _Place()


def stay_at(workspace: Workspace, given: str | None) -> None:
    """From now on, add the store and the workspace of a runtime to commands in hints. `given` is the store as the user
    typed it, or None for the own store of the runtime."""
    _stay_at(workspace, given or workspace.where)
    _here.kept = workspace.lasting


def _stay_at(workspace: Workspace, store: str) -> None:
    if _here.local:  # on a server
        return
    _here.store = partial(_store_option, workspace, store)
    is_usual = workspace.name == workspace_at(os.environ.get("REMIT_WORKSPACE"))
    _here.workspace = "" if is_usual else f" --workspace {shlex.quote(workspace.name)}"


def _store_option(workspace: Workspace, store: str) -> str:
    if store == (os.environ.get("REMIT_STORE") or usual_store()):
        return ""
    addresses = workspace.where.split(", ") if is_server(store) else each_address(store)  # without passwords
    return "".join(f" --store {shlex.quote(one)}" for one in addresses)


def forget_place() -> None:
    """Add no store and workspace to commands in hints any more: the command has ended."""
    _here.store, _here.workspace, _here.kept, _here.local = str, "", True, False


def place_options() -> str:
    """Return the options with which other commands find this store and workspace: ` --store team.db`."""
    return f"{_here.store()}{_here.workspace}"


def is_kept() -> bool:
    """Whether other commands can read the store of this one."""
    return _here.kept


def typed(command: str) -> str:
    """Return a command as it must be typed here: remit ps --store team.db."""
    name = command.split()[1]
    if name in _WITHOUT_STORE or (_here.local and name in LOCAL):
        return command
    return f"{command}{_here.store()}{'' if name in _WITHOUT_WORKSPACE else _here.workspace}"


def typed_with_team(command: str, rest: str = "") -> str:
    """Return the command `remit COMMAND TEAM REST` as it must be typed here. The team is left out if there is a usual
    one."""
    return typed(f"remit {command}{'' if usual_team() else ' module:runtime'}{rest}")


def completed(text: str) -> str:
    """Return a text with each command in backquotes as it must be typed here."""
    return _QUOTED.sub(lambda found: f"`{typed(found[1])}`", text)


def at_terminal() -> str:
    """Return the name of the user at this terminal: terminal:ann."""
    try:
        return f"terminal:{getpass.getuser()}"
    except (OSError, KeyError):  # a user without a name, as in some containers
        return "terminal"


def with_unit(given: str | None, what: str = "--credits") -> str | None:
    """Return the amount without surrounding spaces, or None if none is given. Raise `BadInput` if it has no unit. In
    double quotes a shell turns "$0.50" into its own name and ".50", "$5" into nothing and "$10" into "0": an amount
    without a unit may be such a rest, so not even 0 is accepted."""
    if given is None:
        return None
    text = given.strip()
    if not (text.startswith("$") or text.lower().endswith("usd")):
        raise BadInput(
            f"{what} takes an amount with its unit, 0.50USD, or '$0.50' in single quotes, not {shown(given)}; "
            "inside double quotes the shell expands $0 and $1"
        )
    money(text, what)
    return text


def write_beside(file: Path, text: str) -> None:
    """Write a file atomically: to a temporary file next to it, then in its place. Its mode follows the umask. A
    symbolic link is replaced, not followed, because it may point to an unrelated file. Raise `BadInput` if the file
    cannot be written."""
    if file.is_dir():
        raise BadInput(f"{file} is a folder; name a file in it")
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666)
        with os.fdopen(number, "w", encoding="utf-8") as opened:
            opened.write(text)
        draft.replace(file)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise BadInput(f"{file} cannot be written: {error.strerror}") from error


class Output(Console):
    """A console. If its reader goes away, as with `| head`, the command continues silently; `quiet` says so.

    Output may contain text from agents or from an untrusted file: none of it is markup, and control characters are
    escaped. This is done here, where all output passes.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        super().__init__(highlight=False, markup=False, emoji=False, soft_wrap=not stream.isatty(), stderr=stderr)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or segment.text == "\n":
                yield segment
            else:
                yield Segment(block(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def out() -> Console:
    """Return the console for people. Agent text is printed as plain text, never as markup."""
    return Output()


def aside() -> Console:
    """Return the console for everything but the result, so that programs that read the result do not see it."""
    return Output(stderr=True)


def emit(data: object) -> None:
    """Print one JSON document for programs. Programs pass it on to terminals, so control characters are escaped."""
    sys.stdout.write(harmless(json.dumps(data, indent=2, ensure_ascii=False)) + "\n")


@contextmanager
def json_list() -> Generator[Callable[[object], None]]:
    """Yield a function that prints the items of one JSON list, each when it is given."""
    before = "[\n"

    def emit_one(data: object) -> None:
        nonlocal before
        text = json.dumps(data, indent=2, ensure_ascii=False).replace("\n", "\n  ")
        sys.stdout.write(harmless(f"{before}  {text}"))
        before = ",\n"

    yield emit_one
    sys.stdout.write("[]\n" if before == "[\n" else "\n]\n")

"""`remit init`: a first team, which runs at once and without a key."""

import json
import shlex
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from rich.text import Text

from remit.cli.options import aside, out
from remit.config.places import FILE_NAME
from remit.config.schema import schema
from remit.config.trusting import trust_by_running
from remit.errors import BadInput

Template = Literal["support", "research", "coding"]

# A first task for each team.
_FIRST: Final[dict[Template, str]] = {
    "support": "my lamp of order 17 is broken, I want my money back",
    "research": "when does high water come?",
    "coding": "write a function that greets somebody",
}
_SCHEMA: Final = "remit.schema.json"


def init(folder: Path = Path(), *, template: Template = "support") -> int:
    """Create a team: remit.toml, a script that plays its models, and its tools.

    The team runs without an API key. The command overwrites no file.

    Parameters
    ----------
    folder
        Target folder. [default: this folder]
    template
        Team: a support desk, a research desk, or a coder and a reviewer.
    """
    files = {**_files(resources.files("remit.config") / "templates" / template), _SCHEMA: _schema()}
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise BadInput(f"{folder / there[0]} exists already, so nothing was written; name another folder")
    try:
        for name, text in files.items():
            _write(folder / name, text)
    except OSError as error:
        raise BadInput(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    trust_by_running(folder / FILE_NAME)  # remit wrote the file itself
    _tell(folder, template, [*files])
    return 0


def _files(folder: Traversable, above: str = "") -> dict[str, str]:
    """Return the files of a template, the team's file first."""
    found = dict(_walked(folder, above))
    return dict(sorted(found.items(), key=lambda item: (item[0] != "remit.toml", item[0])))


def _walked(folder: Traversable, above: str) -> Iterator[tuple[str, str]]:
    for one in folder.iterdir():
        if one.is_file() and not one.name.endswith(".pyc"):
            yield f"{above}{one.name}", one.read_text(encoding="utf-8")
        elif one.is_dir() and one.name != "__pycache__":
            yield from _walked(one, f"{above}{one.name}/")


def _schema() -> str:
    return f"{json.dumps(schema(), indent=2)}\n"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8") as new:
        new.write(text)


def _tell(folder: Path, template: Template, names: list[str]) -> None:
    console = out()
    console.print(Text(f"wrote {', '.join(str(folder / name) for name in names)}", "dim"))
    if find_spec("pydantic_ai") is None:
        console.print(Text("a real model needs more: pip install 'remit[llm]'", "yellow"))
    enter = f"cd {shlex.quote(str(folder))} && " if folder != Path() else ""
    aside().print(Text("next:", "dim"))
    console.print(Text(f'{enter}remit run "{_FIRST[template]}"', "cyan"))

"""The pages tell the truth: their code is run, their commands are run, and what they name is there."""

import ast
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Never, Unpack, get_args, get_origin, get_type_hints

import httpx
import pytest

import remit
import remit.errors
import remit.settings
import remit.testing
import remit.types
import remit.verbs
from deep import some
from page_blocks import PAGES, ROOT, Block, blocks
from programs import ran
from remit.adapters import otel_names
from remit.core.kinds import SHAPES
from remit.engine import approvals, asking, finding
from standing_in import standing_in

PYTHON = [block for block in blocks("python") if not block.skipped]
FIRST = {block.page: block for block in reversed(PYTHON)}
DEEP = [block for block in PYTHON if block.page != ROOT / "README.md" and block is not FIRST[block.page]]
SHELL = {page: [block for block in blocks("sh") if block.page == page] for page in PAGES}


def same(printed: str, shown: str) -> bool:
    """Whether a page shows what was printed, but for spaces at the end of lines; ` ... ` stands for anything."""
    pattern = r".*?".join(re.escape(part) for part in re.split(r" *\.\.\. *", trimmed(shown)))
    return re.fullmatch(pattern, trimmed(printed), re.DOTALL) is not None


def trimmed(text: str) -> str:
    return re.sub(r" +$", "", text, flags=re.MULTILINE).strip()


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, id=block.where, marks=[pytest.mark.deep] if block in DEEP else []) for block in PYTHON],
)
def test_code_on_a_page_runs_and_prints_what_the_page_says(block: Block, tmp_path: Path):
    """In a file, as readers run it: errors name its lines."""
    (tmp_path / "example.py").write_text(block.code)
    done = ran("-W", "error", "example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if block.output:
        assert same(done.stdout, block.output), done.stdout


@pytest.fixture
def bin_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a `remit` that is quick, or without one: the commands of the README are the installed ones."""
    folder = tmp_path_factory.mktemp("bin")
    with nullcontext() if request.getfixturevalue("page").parent == ROOT else standing_in(folder):
        yield folder


@pytest.mark.parametrize(
    "page", some([page for page in PAGES if SHELL[page]], 3), ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_on_a_page_run_one_after_the_other(page: Path, tmp_path: Path, bin_folder: Path):
    """In a folder with the files that the page shows, and `remit` on the path."""
    if any("sqlite3 " in block.code for block in SHELL[page]) and shutil.which("sqlite3") is None:
        pytest.skip("the page uses the sqlite3 program")
    for block in blocks("python"):
        if block.page == page and block.file:
            (tmp_path / block.file).write_text(block.code)
    folders = [str(bin_folder), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        "PATH": os.pathsep.join(folders),
        "HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
        "COLUMNS": "100",
    }
    for block in SHELL[page]:
        if block.skipped:
            continue
        code = re.sub(r"^pip install .*$", "", block.code, flags=re.MULTILINE)  # it is there, and there is no network
        command = ["bash", "-e", "-u", "-o", "pipefail", "-c", code]
        running = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            printed, complaint = running.communicate(timeout=60)
        finally:
            with suppress(ProcessLookupError):  # what a block that failed left running in the background
                os.killpg(running.pid, signal.SIGKILL)
        assert running.returncode == 0, f"{block.where}: {printed}{complaint}"
        if block.output:
            assert same(printed, block.output), f"{block.where}: {printed}"


# -- what is named in the middle of a sentence ---------------------------------------------------------------

KINDS = {
    "rt": remit.Runtime,
    "runtime": remit.Runtime,
    "turn": remit.Turn,
    "workspace": remit.Workspace,
    "task": remit.Task,
    "context": remit.types.Context,
    "board": remit.types.Board,
    "outcome": remit.Outcome,
    "clock": remit.testing.FakeClock,
    "remit": remit,
}
MADE = {name: getattr(remit, name) for name in remit.__all__ if isinstance(getattr(remit, name), type)}
MADE |= {name: getattr(remit.settings, name) for name in remit.settings.__all__}
MADE |= {name: getattr(remit.testing, name) for name in remit.testing.__all__}
RULES = frozenset(re.findall(r"^\| ([\w.-]+) \|", (ROOT / "docs" / "rules.md").read_text(), re.MULTILINE))
EXPORTED = {one for one in vars(otel_names).values() if isinstance(one, str)}
EXPORTED |= {one.name for one in otel_names.METRICS}
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LEAD = re.compile(r"^(?:@|await |return await |return |async with |async for \w+ in |with )")


def expressions() -> Iterator[tuple[str, ast.expr]]:
    """Every inline piece of code that says something about one of the names above."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for found in INLINE.findall(text):
            code = LEAD.sub("", found.replace("\\|", "|")).rstrip(":")
            code = re.sub(r": \.\.\.$| as \w+$", "", code)
            if not re.match(rf"(?:{'|'.join(KINDS)})\.\w|(?:{'|'.join(MADE)})\(", code):
                continue
            if code in SHAPES or code in RULES or code in EXPORTED or is_module(code):
                continue
            if re.fullmatch(r"[\w.]+\.(?:py|db|json|toml|md|\*)", code):
                continue
            try:
                yield f"{page.relative_to(ROOT)}: `{found}`", ast.parse(code, mode="eval").body
            except SyntaxError:
                pytest.fail(f"{page.relative_to(ROOT)}: `{found}` is not Python")


def is_module(code: str) -> bool:
    """Whether this names something in a module of remit, such as `runtime.opening`."""
    room, _, rest = code.partition(".")
    return (ROOT / "src" / "remit" / room / f"{rest.partition('.')[0]}.py").exists()


def named(node: ast.expr) -> object:
    """What a dotted name stands for; raises AttributeError if there is no such thing."""
    if isinstance(node, ast.Name):
        return KINDS.get(node.id) or MADE.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = named(node.value)
        return None if owner is None else member(owner, node.attr)
    return None


def member(owner: object, name: str) -> object:
    """An attribute; of a class also one that `__init__` sets, and for a property the class of what it gives."""
    if owner is remit.Runtime and name == "workspace":
        return remit.Workspace
    if owner is remit.Task and name in ("id", "existing"):
        return None
    if inspect.ismodule(owner) and hasattr(owner, "__path__") and find_spec(f"{owner.__name__}.{name}") is not None:
        return import_module(f"{owner.__name__}.{name}")
    found = inspect.getattr_static(owner, name) if isinstance(owner, type) else getattr(owner, name)
    if isinstance(found, property | cached_property):
        function = found.fget if isinstance(found, property) else found.func
        given = get_type_hints(function, names_in(function)).get("return")
        return given if isinstance(given, type) and given.__module__.startswith("remit") else None
    return found


def names_in(function: object) -> dict[str, object]:
    """The names in its annotations: those of its module, and types that it does not import when it runs."""
    module = getattr(inspect.unwrap(function), "__module__", "remit")  # pyright: ignore[reportArgumentType]
    others = {"httpx": httpx}
    return {
        **others,
        **vars(remit.types),
        **vars(approvals),
        **vars(finding),
        **vars(asking),
        **vars(sys.modules[module]),
    }


def takes(function: object) -> tuple[inspect.Signature, set[str]]:
    signature = inspect.signature(function, globals=names_in(function), eval_str=True)  # pyright: ignore[reportArgumentType]
    taken = [one for one in signature.parameters.values() if one.annotation is not Never]  # else only to be refused
    signature = signature.replace(parameters=taken)
    names = {one.name for one in taken if one.kind is not one.VAR_KEYWORD}
    for one in taken:
        if one.kind is one.VAR_KEYWORD:
            unpacked = get_origin(one.annotation) is Unpack
            names |= set(get_args(one.annotation)[0].__annotations__) if unpacked else {"*"}
    return signature, names


def wrong(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if not isinstance(part, ast.Attribute | ast.Call):
            continue
        try:
            function = named(part.func if isinstance(part, ast.Call) else part)
        except AttributeError as error:
            yield f"there is no {error}"
            return
        if isinstance(part, ast.Call) and callable(function):
            yield from misused(part, function)


def misused(call: ast.Call, function: object) -> Iterator[str]:
    signature, names = takes(function)
    yield from (f"no keyword {one.arg}" for one in call.keywords if one.arg not in names and "*" not in names)
    elided = any(isinstance(arg, ast.Constant) and arg.value is ... for arg in call.args)
    if elided or not inspect.isfunction(function):
        return
    method = isinstance(call.func, ast.Attribute) and isinstance(named(call.func.value), type)
    itself = [None] if method else []
    try:
        signature.bind_partial(*itself, *call.args)
    except TypeError as error:
        yield str(error)


def test_what_the_pages_name_is_there_and_takes_these_keywords():
    found = list(expressions())
    assert len(found) > 30
    assert [f"{where}: {trouble}" for where, node in found for trouble in wrong(node)] == []


@pytest.mark.parametrize(
    "code",
    [
        "rt.run_team(goal, 'coordinator', {'tier': 'complex'})",
        "rt.tasks()",
        "turn.step('charge', charge)",
        "rt.workspace.tasks.list(colour='red')",
        "Runtime(hands=0)",
    ],
)
def test_a_name_or_keyword_that_is_not_there_is_found(code: str):
    assert list(wrong(ast.parse(code, mode="eval").body))


# -- pages -----------------------------------------------------------------------------------------------------


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CHANGELOG.md"]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
            there = (page.parent / target) if target else page
            assert there.exists(), f"{page.relative_to(ROOT)} links to {target}"
            if anchor:
                assert anchor in anchors(there), f"{page.relative_to(ROOT)} links to {target}#{anchor}"


def test_files_that_pages_name_are_there():
    """Paths of our own; a bare name such as `team.py` is a file of the reader's."""
    places = (ROOT, ROOT / "src", ROOT / "src" / "remit", ROOT / "src" / "remit" / "engine")
    for page in PAGES:
        for name in re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", page.read_text()):
            assert any((place / name).exists() for place in places), f"{page.relative_to(ROOT)} names {name}"


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    words = [re.sub(r"\[(.+?)\]\(.+?\)", r"\1", head) for head in heads]  # of a link, only its text counts
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in words}


def test_the_index_leads_to_every_page():
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert sorted(page for page in pages if f"]({page}" not in index) == []


def test_the_first_screen_says_how_to_get_it_and_how_to_work_on_it():
    first = "\n".join((ROOT / "README.md").read_text().splitlines()[:25])
    for command in ("pip install remit", "remit demo", "make demo", "make test"):
        assert command in first


def test_the_drawn_parts_are_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "docs" / "draw.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_changelog_tells_of_this_version():
    assert re.search(rf"^## {re.escape(remit.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

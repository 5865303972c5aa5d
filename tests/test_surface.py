"""The public surface, pinned: a name appears or goes only on purpose, and whatever is given back can be named."""

import importlib
import inspect
import pydoc
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from functools import cached_property

import pytest

import remit
import remit.errors
import remit.ports
import remit.settings
import remit.testing
import remit.types
from remit.core import values
from remit.engine import asking
from remit.runtime import filters, streaming

ROOT = [
    "Artifact",
    "BOARD",
    "Bounds",
    "Card",
    "Client",
    "Command",
    "END",
    "Entry",
    "Event",
    "Failed",
    "Outcome",
    "Pass",
    "Plan",
    "Refused",
    "RemitError",
    "Runtime",
    "Scope",
    "Secret",
    "Send",
    "Step",
    "Task",
    "Turn",
    "Workspace",
    "open_database",
    "run",
]
MOST = 25

WALKED = (
    *(remit.Runtime, remit.Workspace, remit.Turn, remit.Task),
    *(
        remit.types.WorkspaceTasks,
        remit.types.WorkspaceJournal,
        remit.types.WorkspaceMoney,
        remit.types.WorkspaceQuestions,
        remit.types.WorkspaceAgents,
        remit.types.WorkspaceSchedules,
        remit.types.WorkspaceHooks,
        remit.types.WorkspaceLooks,
        remit.types.WorkspaceAccess,
    ),
    *(remit.types.WorkspaceContext, remit.types.KeyRing, remit.types.CoolingList, remit.types.Follow),
    *(remit.types.Context, remit.types.Board),
    *(remit.types.WorkspaceArtifacts, remit.types.TurnArtifacts, remit.types.OpenedArtifact),
)
PUBLIC = ("remit.errors", "remit.report.")  # whole modules
INSIDE = {"Remit.chain is Chain", "Command.goto is End"}  # to look at, and the type of END
# What an owner may hand in, and so may also be given back.
PORTS = {remit.ports.Clock, remit.ports.Database, remit.ports.Store, remit.ports.View}


def test_the_root_has_exactly_these_names():
    assert sorted(remit.__all__) == sorted(ROOT)
    assert len(remit.__all__) <= MOST
    assert all(getattr(remit, name) is not None for name in remit.__all__)


def test_a_name_that_is_not_there_is_a_plain_error():
    with pytest.raises(AttributeError, match="remit has no 'BadInput'"):
        remit.BadInput  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue] - looking is the test


@pytest.mark.rule("testing.light")
def test_importing_remit_stays_light():
    heavy = ["rich", "cyclopts", "pydantic", "fastapi", "opentelemetry", "hypothesis", "psycopg", "procrastinate"]
    heavy += ["cryptography", "genai_prices", "httpx", "mcp"]
    plugin = "import sys, remit.testing.plugin; print(sorted(name for name in sys.modules if name.startswith('remit')))"
    code = f"{plugin}; remit.Runtime(); print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    plain = ["remit", "remit.testing", "remit.testing.plugin", "remit.watching"]  # wherever pytest runs
    assert done.stdout.splitlines() == [str(plain), "[]"]


@pytest.mark.parametrize("module", [remit.types, remit.settings], ids=lambda module: module.__name__)
def test_a_public_module_has_what_it_says(module: types.ModuleType):
    assert module.__all__ == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def members(kind: type) -> Iterator[tuple[str, typing.Any]]:
    """The public methods and properties of a class, each as the function that is annotated."""
    for name in dir(kind):
        if name.startswith("_"):
            continue
        member = inspect.getattr_static(kind, name)
        if isinstance(member, property):
            yield name, member.fget
        elif isinstance(member, cached_property):
            yield name, member.func
        elif inspect.isfunction(member):
            yield name, inspect.unwrap(member)


def named(hint: object) -> Iterator[type]:
    """Every class of ours in an annotation."""
    if isinstance(hint, list | tuple):
        for part in hint:
            yield from named(part)
    for part in typing.get_args(hint):
        yield from named(part)
    if isinstance(hint, type) and typing.get_origin(hint) is None and hint.__module__.startswith("remit"):
        yield hint


def returned(kind: type) -> Iterator[tuple[str, type]]:
    for name, function in members(kind):
        modules = (remit.types, asking, values, filters, streaming, sys.modules[function.__module__])
        names = {name: one for module in modules for name, one in vars(module).items()}
        hints = typing.get_type_hints(function, names)
        for found in named(hints.get("return")):
            yield f"{kind.__name__}.{name}", found


@pytest.mark.parametrize("kind", WALKED, ids=lambda kind: kind.__name__)
def test_what_is_given_back_can_be_imported_from_a_public_place(kind: type):
    public = {getattr(remit, name) for name in remit.__all__ if isinstance(getattr(remit, name), type)}
    public |= {getattr(module, name) for module in (remit.types, remit.settings) for name in module.__all__}
    found = list(returned(kind))
    assert [f"{where} gives {what.__name__}" for where, what in found if what not in public | PORTS] == []


def test_what_is_given_back_is_made_of_what_can_be_imported():
    """The fields of what is returned: a plan's outcome has steps, and a step's outcome can be named too."""
    public = {getattr(remit.types, name) for name in remit.types.__all__}
    public |= {getattr(remit, name) for name in remit.__all__ if isinstance(getattr(remit, name), type)}
    given = {getattr(remit.settings, name) for name in remit.settings.__all__}
    strange: list[str] = []
    for kind in sorted(public, key=lambda kind: kind.__name__):
        hints = {name: hint for name, hint in annotations(kind).items() if not name.startswith("_")}
        for name, hint in hints.items():
            strange += [
                f"{kind.__name__}.{name} is {what.__name__}"
                for what in named(hint)
                if what not in public | given and not what.__module__.startswith(PUBLIC)
            ]
    assert [one for one in strange if one not in INSIDE] == []


def annotations(kind: type) -> dict[str, object]:
    module = vars(sys.modules[kind.__module__])
    try:
        return typing.get_type_hints(kind, {**vars(values), **module})
    except NameError:  # an annotation that only a type checker can follow
        return {}


@pytest.mark.parametrize("kind", WALKED, ids=lambda kind: kind.__name__)
def test_public_methods_have_a_docstring(kind: type):
    silent = [f"{kind.__name__}.{name}" for name, function in members(kind) if not function.__doc__]
    assert silent == []


# They take as many as you like: the arguments of a function, agents by their names, answers one after the other.
ANY_NUMBER = {"Turn.once": "args", "Runtime.override": "agents", "Scripted": "answers"}
OF_ADAPTERS = "files mcp_tools prices process program_tools slack telegram vault webhook"


def callables() -> Iterator[tuple[str, typing.Any]]:
    """Everything public that can be called: functions, classes, and the methods of these."""
    adapters = [importlib.import_module(f"remit.adapters.{name}") for name in OF_ADAPTERS.split()]
    public = [remit, remit.settings, remit.types, remit.testing]
    named = {name: getattr(module, name) for module in public for name in module.__all__}
    for module in adapters:
        own = {name: one for name, one in vars(module).items() if getattr(one, "__module__", "") == module.__name__}
        named |= {name: one for name, one in own.items() if not name.startswith("_")}
    for name, one in named.items():
        if not isinstance(one, type):
            yield from [(name, one)] if inspect.isfunction(one) else []
        elif (
            not issubclass(one, Exception) and not typing.is_typeddict(one) and not getattr(one, "_is_protocol", False)
        ):
            yield name, one
            for method in dir(one):
                found = inspect.getattr_static(one, method)
                if not method.startswith("_") and inspect.isfunction(found):
                    yield f"{name}.{method}", found


@pytest.mark.rule("surface.signatures")
def test_help_and_completion_show_the_parameters_of_everything_that_can_be_called():
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    caught = {
        name: parameter.name
        for name, one in callables()
        for parameter in inspect.signature(one).parameters.values()
        if parameter.kind in many
    }
    assert caught == ANY_NUMBER


@pytest.mark.rule("surface.signatures")
def test_every_keyword_that_is_taken_is_shown():
    shown = inspect.signature(remit.Runtime().run).parameters
    assert [*shown][:3] == ["agent", "task", "returns"]
    assert shown.keys() - {"agent", "task", "returns"} == set(asking.Running.__annotations__)
    assert str(shown["by"]) == "by: str = ..."
    assert "key" in inspect.signature(remit.Workspace().submit).parameters
    assert "timeout" in inspect.signature(remit.Turn.delegate).parameters
    assert {"secrets", "deps"} <= inspect.signature(remit.Runtime).parameters.keys()
    assert {"model", "can", "fallback"} <= inspect.signature(remit.Runtime.agent).parameters.keys()
    assert "busy_timeout: " in pydoc.render_doc(remit.Turn.delegate)


def test_a_workspace_has_groups_and_few_names_of_its_own():
    own = "check close edges fork lasting name prune stats submit submit_plan submit_team tree wait_all where"
    groups = "access agents artifacts context hooks journal keys looks money questions schedules tasks"
    assert names_of(remit.Workspace) == f"{own} {groups}"
    assert names_of(remit.types.WorkspaceTasks) == "cancel get list orphans progress retry runs words"
    assert names_of(remit.types.WorkspaceJournal) == "follow gaps history read"
    assert names_of(remit.types.WorkspaceMoney) == "account grant leases limits reconcile spend uncertain unfreeze"
    assert names_of(remit.types.WorkspaceQuestions) == "answer approve asked get list reject"
    assert names_of(remit.types.WorkspaceSchedules) == "add add_plan add_team list pause remove resume"
    assert names_of(remit.types.WorkspaceAgents) == "breakers find list reset trip withdraw workers"
    assert names_of(remit.types.WorkspaceContext) == "cleanup namespaces"
    assert names_of(remit.types.WorkspaceArtifacts) == "list open save"
    looks = "answers below cards detail entries entry has_ended head ledger open_events part prunable question readers"
    looks += " records run runs spend stats talk task tasks tree uncertain versions"
    assert names_of(remit.types.WorkspaceLooks) == looks
    assert names_of(remit.types.WorkspaceAccess) == "list make revoke"
    assert names_of(remit.types.WorkspaceHooks) == "add deliveries list remove replay rotate"
    assert names_of(remit.types.KeyRing) == "cooling names remove rotate set"


def names_of(kind: type) -> str:
    names = [name for name in dir(kind) if not name.startswith("_")]
    groups = [name for name in names if isinstance(inspect.getattr_static(kind, name), cached_property)]
    return " ".join([*(name for name in names if name not in groups), *groups])


def test_the_verbs_of_a_turn_are_there():
    verbs = {
        "agent",
        "agents",
        "artifacts",
        "ask_approval",
        "ask_human",
        "asker",
        "attempt",
        "begin_talk",
        "by",
        "card",
        "context",
        "data",
        "data_as",
        "delegate",
        "delegate_all",
        "deps",
        "find",
        "hand_off",
        "handoff",
        "id",
        "inbox",
        "is_requeued",
        "kept_answers",
        "mark_untrusted",
        "meta",
        "model",
        "offers",
        "once",
        "origin",
        "outcome",
        "paid_call",
        "phase",
        "progress",
        "prompt",
        "remit",
        "report_tokens",
        "run_plan",
        "run_team",
        "send",
        "session",
        "spawn",
        "spend",
        "submit",
        "submitted",
        "tags",
        "talk_so_far",
        "talks",
        "task",
        "tool",
        "tools",
        "trust",
    }
    found = {name for name in dir(remit.Turn) if not name.startswith("_")}
    assert found == verbs, "add a new method of a turn to this list, and to OF_TURN in tests/engine/test_bad_input.py"


EXTRAS = (
    "a2a",
    "aiohttp",
    "cronsim",
    "cryptography",
    "genai_prices",
    "httptools",
    "httpx",
    "jsonschema",
    "langgraph",
    "mcp",
)
FURTHER = ("opentelemetry", "prometheus_client", "psycopg", "pydantic", "pydantic_ai", "starlette", "uvicorn")


def without_extras(program: str) -> str:
    """Run a program as if only what remit itself needs were installed, and return what it prints."""
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({EXTRAS + FURTHER!r}))\n"
    done = subprocess.run([sys.executable, "-c", hidden + program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.rule("surface.alone")
def test_without_extras_every_name_of_the_root_can_be_imported():
    printed = without_extras("from remit import *\nprint(Client.__name__, Runtime.__name__)")
    assert printed == "Client Runtime\n"


@pytest.mark.rule("surface.alone")
@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("import remit; remit.Client('http://127.0.0.1:1')", "remit.Client needs the httpx package"),
        ("from remit.adapters.gateway.clients import gateway_for", "need pip install 'remit[gateway]'"),
        ("from remit.adapters.coding import claude_code", "need pip install 'remit[gateway]'"),
        (
            "from remit.adapters.process import program; program(['cat'], verbs=True)",
            "need pip install 'remit[gateway]'",
        ),
        ("import remit; remit.Runtime().model_agent('m', 'openai:gpt-5')", "pip install 'remit[llm]'"),
    ],
)
def test_without_an_extra_what_needs_it_says_which(program: str, sentence: str):
    told = f"from remit.errors import BadInput\ntry:\n    {program}\nexcept BadInput as error:\n    print(error)\n"
    assert sentence in without_extras(told)

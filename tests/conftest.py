"""Shared by all tests: the async backend, a runtime with a clock and ids under our control, and PostgreSQL.

Fixtures stand here and not in the folders that use them: pytest 9.1 loses those of a folder that is named twice on the
command line, once by a file in it and once by a folder or file further down.
"""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from examples.real_model.smollm import is_there
from hypothesis import settings

import remit
from deep import beyond_each_once
from postgres import OwnServer, Server, running
from remit.testing import FakeClock
from teams import in_memory, team
from tracing import is_on_a_disk, is_traced

pytest_plugins = ["abreast", "pytester"]

# All that is imported and collected stays to the end: nobody has to look through it for what is not needed any more,
# neither while it grows nor in every collection that comes after.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000)  # a test makes less garbage than would pay for looking at it thirty times as often
    gc.enable()


# Where there is such a place, files of tests are kept in memory: kill -9 does not take them away, and no disk is waited
# for. A loss of power is tried by `make powercut`, which records what is written.
IN_MEMORY = in_memory()
if IN_MEMORY is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile("torture", deadline=None, max_examples=500)
settings.load_profile("ci")


LONG = frozenset(("test_killed_conversations", "test_killed", "test_lives", "test_published", "test_examples"))


VARIED = frozenset(("adapters", "engine", "workers"))  # where each value of a parameter is tried once


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="leave out what takes long, or is tried on a file or on PostgreSQL"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("quick"):
        settings.load_profile("quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("llm") and not (config.getoption("markexpr") == "llm" and is_there()):
            item.add_marker(pytest.mark.skip("a real model is asked with -m llm, once `make demo-llm` has fetched it"))
        folder = _folder(item)
        if folder == "engine" and (_round(item) == "file" or (_round(item) == "postgres" and _takes_long(item))):
            item.add_marker("deep")
        if is_traced(item, folder):
            item.add_marker("traced")
    varied = (item for item in items if _folder(item) in VARIED and not item.get_closest_marker("deep"))
    for item in beyond_each_once(varied):
        item.add_marker("deep")
    items.sort(key=lambda item: item.path.stem not in LONG)  # else one worker is at them when the others are done
    if config.getoption("quick"):
        left_out = {
            item
            for item in items
            if any(item.get_closest_marker(name) for name in ("long", "deep"))
            or is_on_a_disk(item)
            or _needs_a_server(item)
        }
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(item.config.rootpath).parts[1]


def _round(item: pytest.Item) -> object:
    """Return the store of the fixture `rt` or `anywhere`. By the contract of stores a file does what memory does, so a
    second round on a file is deep."""
    if not (isinstance(item, pytest.Function) and hasattr(item, "callspec")):
        return None
    return item.callspec.params.get("rt", item.callspec.params.get("anywhere"))


def _takes_long(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("long", "untraced"))


def _needs_a_server(item: pytest.Item) -> bool:
    return "postgres" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def own_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Folders that tests trust are not trusted by whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have no certificates: every client reads all there are, which takes longer than most tests, and here everyone
    listens on loopback, in plain HTTP."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("certificates")))
        yield


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "file"])
def rt(request: pytest.FixtureRequest, tmp_path, clock: FakeClock) -> Iterator[remit.Runtime]:
    """A runtime on a store in memory, and the same on a file."""
    where = ":memory:" if request.param == "memory" else tmp_path / "team.db"
    with team(where, clock=clock) as runtime:
        yield runtime


@pytest.fixture(params=["memory", "file", "postgres"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[remit.Runtime]:
    """A runtime on every kind of store, for what must hold on all of them."""
    where: str | Path = ":memory:"
    if request.param == "file":
        where = tmp_path / "team.db"
    elif request.param == "postgres":
        where = request.getfixturevalue("address")
    with team(where, clock=clock) as runtime:
        yield runtime


@pytest.fixture
def sign(tmp_path: Path) -> Path:
    """A file by which a process says that it is there."""
    return tmp_path / "sign"


# -- PostgreSQL ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def new_address(postgres: Server) -> Iterator[Callable[..., str]]:
    """Makes databases that last as long as the test."""
    made: list[str] = []

    def new(*, empty: bool = False, secured: bool = False) -> str:
        made.append(postgres.database(empty=empty, secured=secured))
        return made[-1]

    yield new
    for address in made:
        postgres.drop(address)


@pytest.fixture
def address(new_address: Callable[..., str]) -> str:
    """A migrated database of the test's own."""
    return new_address()


@pytest.fixture
def own_server(postgres: Server) -> OwnServer:
    if not isinstance(postgres, OwnServer):
        pytest.skip("only a server that we started may be restarted")
    return postgres

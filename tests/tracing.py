"""Coverage, only where it is needed: `pytest -p tracing` traces what has a floor while the tests beside it run.

Tracing doubles what Python costs, in pytest and in foreign packages too. So it is on while the modules with a floor are
imported, and in the functions and fixtures of the tests that are there to reach their lines; it is off while tests are
collected, in what pytest does around a test, and in all other tests.
"""

import importlib
import pkgutil
from collections.abc import Generator
from types import ModuleType

import pytest
from coverage import Coverage

FLOORED = ("core", "report", "engine", "stores")  # the packages that have a floor, and the folders of their tests

# What only models make the engine do, and workers the stores.
TOO = frozenset(("adapters/test_sessions", "adapters/test_restarted_talks", "workers/test_words_elsewhere"))

# What others reach as well, with less: all lines but one in two hundred.
LESS = {
    "engine": ("breakers", "forgetting", "gaps", "lineage", "lines", "parked", "queue", "threads"),
    "report": ("fold",),
    "stores": ("connections", "crash", "files", "plans", "queries", "unwritten"),
}
AGAIN = ("file", "postgres")


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before anything is imported by tests; only who is named with `-p` is asked."""
    early_config.pluginmanager.register(Tracing())


class Tracing:
    """What traces the tests that are marked `traced`."""

    def __init__(self) -> None:
        self._is_on = False
        self._coverage = Coverage(data_suffix=True)
        self._coverage.start()
        for package in FLOORED:
            import_all(importlib.import_module(f"remit.{package}"))
        importlib.import_module("core.made")  # it makes an event of each kind when it is imported
        self._coverage.stop()

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        return (yield from self._traced(pyfuncitem))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, request: pytest.FixtureRequest) -> Generator[None, object, object]:
        return (yield from self._traced(request.node))

    def _traced(self, node: pytest.Item) -> Generator[None, object, object]:
        if self._is_on or not node.get_closest_marker("traced"):
            return (yield)
        self._is_on = True
        self._coverage.start()
        try:
            return (yield)
        finally:
            self._coverage.stop()
            self._is_on = False

    def pytest_sessionfinish(self) -> None:
        self._coverage.save()


def import_all(package: ModuleType) -> None:
    """Import the modules of a package, those of packages in it too."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def is_traced(item: pytest.Item, folder: str) -> bool:
    """Whether a test is there to reach lines: not one of random teams, kills, commands or pages, nor the second time on
    a file or a server, nor what is tried with a hundred examples. Of the contract of stores, a file reaches what memory
    and a server do."""
    stem = item.path.stem
    again = (folder == "engine" and is_on_a_disk(item)) or (stem == "test_contract" and "[file" not in item.name)
    tried_often = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    left_out = any(item.get_closest_marker(name) for name in ("long", "deep", "untraced"))
    less = stem.removeprefix("test_") in LESS.get(folder, ())
    return (folder in FLOORED or f"{folder}/{stem}" in TOO) and not (again or tried_often or left_out or less)


def is_on_a_disk(item: pytest.Item) -> bool:
    return any(word in item.name.partition("[")[2] for word in AGAIN)

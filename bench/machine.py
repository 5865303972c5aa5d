"""What the machine was doing meanwhile: figures from a busy one say less."""

import os
import platform
import sqlite3
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

PACKAGES = (
    "remit",
    "openai-agents",
    "agent-framework-core",
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "pydantic-ai-slim",
    "autogen-core",
    "procrastinate",
    "dbos",
)


class _Moment(NamedTuple):
    at: float
    busy: float  # seconds of processor time of the whole machine
    own: float  # of this process and of its children that have ended
    load: float


class Machine:
    """Looks at the machine when it is made, and again when it is asked what went on."""

    def __init__(self) -> None:
        self._before = _moment()

    def told(self) -> dict[str, object]:
        """What it is and what it did, as JSON."""
        after, before = _moment(), self._before
        seconds = after.at - before.at
        own, busy = after.own - before.own, after.busy - before.busy
        cores = os.cpu_count() or 1
        return {
            "system": f"{platform.system()} on {platform.machine()}",
            "cores": cores,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "versions": {name: found for name in PACKAGES if (found := _version(name))},
            "minutes": round(seconds / 60, 1),
            "load_before": round(before.load, 1),
            "load_after": round(after.load, 1),
            "others_percent": round(100 * max(0.0, busy - own) / (seconds * cores)) if seconds and busy else None,
        }


def sentence(told: dict[str, object]) -> str:
    """The same in a line for people."""
    versions = told["versions"]
    assert isinstance(versions, dict)
    libraries = ", ".join(f"{name} {number}" for name, number in versions.items())
    others = told["others_percent"]
    used = "" if others is None else f"; other processes used {others} % of the processors meanwhile"
    return (
        f"{told['cores']} cores, {told['system']}, Python {told['python']}, SQLite {told['sqlite']}; {libraries}. "
        f"It took {told['minutes']} minutes; load {told['load_before']} before and {told['load_after']} after{used}."
    )


def _moment() -> _Moment:
    own = os.times()
    return _Moment(
        time.monotonic(),
        _busy(),
        own.user + own.system + own.children_user + own.children_system,
        os.getloadavg()[0],
    )


def _busy() -> float:
    """Seconds in which the processors did something; 0 where the system does not tell."""
    try:
        first = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waiting, *rest = (int(field) for field in first[:7])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""

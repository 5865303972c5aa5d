"""Try remit on the newer Pythons that this machine has: `make pythons`.

Each gets an environment with remit and its four dependencies. It runs a program that treats warnings as errors and
reads the signature of everything public, and it runs the demo.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEWER = ("3.12", "3.13", "3.14")
PROGRAM = """
import asyncio, gc, inspect
import remit
import remit.testing, remit.types

def run_once():
    rt = remit.Runtime()

    @rt.agent
    async def hello(turn: remit.Turn) -> str:
        return "hi"

    assert asyncio.run(rt.run("hello", "x")) == "hi"
    groups = (getattr(rt.workspace, name) for name in dir(rt.workspace) if not name.startswith("_"))
    return [remit.Workspace, remit.Client, *{type(group) for group in groups}]

public = [getattr(module, name) for module in (remit, remit.types, remit.testing) for name in module.__all__]
for kind in (*public, *run_once()):
    for name, member in inspect.getmembers(kind, inspect.isfunction) if isinstance(kind, type) else ():
        if kind.__module__.startswith("remit.") and not name.startswith("_"):
            inspect.signature(member)
gc.collect()
"""


def interpreter(version: str) -> str | None:
    """Return the path of this Python: on the PATH, or one of pyenv's."""
    homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"), reverse=True)
    for found in (shutil.which(f"python{version}"), *map(str, homes)):
        if found is not None and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            return found  # a shim of pyenv may be on the PATH, and have no such version
    return None


def tried(found: str, version: str) -> None:
    """Make an environment and run everything in it. Raise if something fails."""
    home = ROOT / ".venv" / "pythons" / version
    python = str(home / "bin" / "python")
    if not (home / "bin" / "remit").exists():
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps"]
        subprocess.run([found, "-m", "venv", "--clear", home], check=True)
        subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements" / "light.txt"], check=True)
        subprocess.run([*pip, "--no-build-isolation", "-e", ROOT], check=True)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([python, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, env=environment)
    if done.returncode or done.stderr:  # a warning in a finalizer is only printed
        sys.exit(f"Python {version}: {done.stderr}")
    demo = [str(home / "bin" / "remit"), "demo"]
    subprocess.run(demo, check=True, env=environment, cwd=home, stdout=subprocess.DEVNULL)


def main() -> None:
    for version in NEWER:
        found = interpreter(version)
        if found is None:
            print(f"Python {version}: not on this machine, so not tried")
            continue
        try:
            tried(found, version)
        except subprocess.CalledProcessError as error:
            sys.exit(f"Python {version}: {error}")
        print(f"Python {version}: a program without warnings and the demo work")


if __name__ == "__main__":
    main()

"""Commands in processes of their own, forked from one that has imported remit: each starts in a few milliseconds."""

import multiprocessing
import os
import pkgutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, NoReturn

import remit.cli

_FORKS = multiprocessing.get_context("forkserver")
_MODULES = [module.name for module in pkgutil.iter_modules(remit.cli.__path__, "remit.cli.")]
_FORKS.set_forkserver_preload([name for name in _MODULES if not name.endswith("__main__")])


class Said(NamedTuple):
    """How a command ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def command(folder: Path, *words: str, seconds: float = 60) -> Said:
    """Run `remit` with these words in a folder, with no settings of its environment."""
    with TemporaryDirectory() as place:
        files = [Path(place) / name for name in ("stdout", "stderr")]
        process = _FORKS.Process(target=_run, args=(folder, words, *files))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"remit {' '.join(words)} took longer than {seconds:g} s")
        code = process.exitcode
        process.close()
        return Said(code, *(file.read_text() for file in files))


def _run(folder: Path, words: tuple[str, ...], *files: Path) -> NoReturn:
    from remit.cli.main import main  # noqa: PLC0415 - in the process that is forked from

    for number, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    for name in [name for name in os.environ if name.startswith("REMIT_")]:
        del os.environ[name]
    os.chdir(folder)
    sys.path.insert(0, "")
    main(words)
    raise AssertionError("main always exits")

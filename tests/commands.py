"""Commands in processes of their own."""

import os
from pathlib import Path

from programs import PATIENCE, Said, ran

__all__ = ["Said", "command"]


def command(folder: Path, *words: str, seconds: float = PATIENCE, **env: str) -> Said:
    """Run `remit` with these words in a folder, with no settings of its environment but those given."""
    return ran("-m", "remit.cli", *words, cwd=folder, env={**plain_environment(), **env}, timeout=seconds)


def plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")}

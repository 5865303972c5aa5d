"""The tools of this team. A tool is a function: models see its name, its docstring and its types."""

from pathlib import Path

WORK = Path(__file__).parent.resolve() / "work"


def read_file(path: str) -> str:
    """Read a file of the folder work."""
    return _inside(path).read_text(encoding="utf-8")


def write_file(path: str, text: str) -> str:
    """Write a file of the folder work."""
    file = _inside(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.lstrip(), encoding="utf-8")
    return f"{len(text.split())} words are in work/{path}"


def list_dir(path: str = ".") -> list[str]:
    """List a folder of the folder work."""
    return sorted(one.name for one in _inside(path).iterdir())


def _inside(path: str) -> Path:
    """Return the path below the folder. Raise if it is outside: a model may ask for any path."""
    found = (WORK / path).resolve()
    if not found.is_relative_to(WORK):
        raise ValueError(f"{path} is outside of the folder work")
    return found

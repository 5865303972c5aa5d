"""The wheel holds everything remit needs at run time, and nothing else; installed alone, it works."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import remit

pytestmark = pytest.mark.together
ROOT = Path(__file__).parent.parent
SCRIPT = """
import remit, remit.settings, remit.testing, remit.types, remit.verbs
import remit.report.flow, remit.adapters.process

rt = remit.Runtime("team.db")


@rt.agent
async def clerk(turn):
    return f"filed {turn.task}"


print(remit.run(rt, "clerk", "the letter"), remit.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it. What remit depends on is seen through links, so nothing is fetched,
    and the sources of this folder are not: an editable install is a file of its own that is not linked."""
    home = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = home / "lib" / version / "site-packages"
    for theirs in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for one in theirs.iterdir():
            ours = one.name.startswith(("remit", "_remit", "__editable__")) or one.suffix == ".pth"
            if not ours and not (packages / one.name).exists():
                (packages / one.name).symlink_to(one)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install"]
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, *options, str(wheel)], check=True, capture_output=True)
    return home


def run(home: Path, folder: Path, *command: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV", "REMIT"))}
    words = [str(home / "bin" / command[0]), *command[1:]]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_the_code_and_the_sql_and_nothing_else(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*") if path.is_file()}
    wanted = {name for name in sources if "__pycache__" not in name}
    assert {name for name in names if name.startswith("remit/")} == wanted
    assert any(name.endswith(".sql") for name in wanted)
    assert "remit/py.typed" in names
    assert [name for name in names if not name.startswith(("remit/", f"remit-{remit.__version__}.dist-info/"))] == []


def test_the_wheel_brings_a_plugin_for_pytest(wheel: Path):
    told = zipfile.ZipFile(wheel).read(f"remit-{remit.__version__}.dist-info/entry_points.txt").decode()
    assert "[pytest11]\nremit = remit.testing.plugin\n" in f"{told}\n"


def test_installed_alone_it_says_its_version(installed: Path, tmp_path: Path):
    assert run(installed, tmp_path, "remit", "--version").strip() == f"remit {remit.__version__}"


def test_installed_alone_it_runs_a_script(installed: Path, tmp_path: Path):
    (tmp_path / "script.py").write_text(SCRIPT)
    printed = run(installed, tmp_path, "python", "-W", "error", "script.py")
    assert printed.startswith("filed the letter ")
    assert str(installed) in printed
    assert str(ROOT / "src") not in printed
    assert (tmp_path / "team.db").exists()


def test_installed_alone_it_begins_a_team(installed: Path, tmp_path: Path):
    assert "remit run" in run(installed, tmp_path, "remit", "init")
    assert "Order 17 is a brass lamp" in run(installed, tmp_path, "remit", "run", "what is order 17?")


def test_installed_alone_it_runs_the_demo(installed: Path, tmp_path: Path):
    printed = run(installed, tmp_path, "remit", "demo", "--pace", "0")
    assert "released for lead" in printed
    assert ": OK" in run(installed, tmp_path, "remit", "doctor", "--store", "remit-demo.db")


def pins(name: str) -> set[tuple[str, ...]]:
    """Read the pins of a file: each version with its hashes, wherever it is needed."""
    text = (ROOT / "requirements" / name).read_text().replace("\\\n", " ")
    found = [line.split() for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    return {(words[0], *(word for word in words if word.startswith("--hash="))) for words in found}


def test_what_the_demo_takes_is_what_the_tests_have():
    light, dev = pins("light.txt"), pins("dev.txt")
    assert sorted(light - dev) == []
    assert {"anyio", "cyclopts", "orjson", "rich"} < {pin[0].partition("==")[0] for pin in light}
    assert len(light) < len(dev) / 4

"""The wheel holds everything remit needs at run time, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_wheel_has_the_code_and_the_sql_and_nothing_else(tmp_path: Path):
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "remit/stores/sql/queries.sql" in names
    assert "remit/stores/sql/sqlite_001.sql" in names
    assert "remit/py.typed" in names
    assert [name for name in names if not name.startswith(("remit/", "remit-"))] == []
    assert [name for name in names if name.endswith((".db", ".pth"))] == []

"""A process dies in the middle of its work. Another one carries on, and what was finished is not done twice."""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from night_shift_team import rt

TEAM = Path(__file__).with_name("night_shift_team.py")

with tempfile.TemporaryDirectory() as folder:
    store = f"{folder}/team.db"
    first = subprocess.call([sys.executable, TEAM, store])
    print(f"the first process died of signal {-first}")

    with rt.at(store) as team:
        task = asyncio.run(team.submit("lead", "bake", key="tomorrow"))  # finds what the first process asked for
        print(asyncio.run(task.result()))

"""Conducts a chaos run: processes that ask and work at once on one store, harm that is done to them, a last worker that
is left in peace, and a checker that knows nothing of remit.

    python -m torture chaos --store sqlite|postgres --seed N --seconds S

Which harm is done, in which order and to whom, and what agents decide, comes from the seed. When exactly it hits does
not: a race that failed once may have to be run a few times before it fails again.
"""

import argparse
import heapq
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

from torture.chaos.agents import ROOTS
from torture.chaos.harm import BUDGET, Harm, harms
from torture.chaos.life import Where, move_clock
from torture.chaos.processes import Process, Processes, forked
from torture.chaos.targets import Target, target

NAME = "chaos"
ROUND = 120.0  # seconds at most
ROLES = ["worker-0", "worker-1", "worker-2", "asker-0", "asker-1"]
SILENCE = 2.0  # seconds after which a process is taken for gone
_PATIENT = 60.0
STOPS_IN = 15.0  # seconds in which a process that is told to stop has stopped
WORKED_OFF_IN = 90.0  # seconds in which the last worker has nothing left to do
CHECKER = Path(__file__).parent / "checker.py"
_LOOKS = 0.01


class Conductor:
    """Does one harm after the other, and keeps up the number of those it can be done to."""

    def __init__(self, folder: Path, where: Target, seed: int, seconds: float, silence: float = SILENCE) -> None:
        self._folder = folder
        self._target = where
        self._seed = seed
        self._began = time.monotonic()
        self._ends = self._began + seconds
        self._seconds = seconds
        self._later = 0
        self._undone: list[tuple[float, int, Callable[[], None]]] = []  # what is to be undone, and when
        self._numbers = count()
        self._outsiders: list[int] = []
        self.did: Counter[str] = Counter()
        self.processes = Processes(folder, seed, Where(where.store, silence), ROLES)
        move_clock(folder / "later", 0)

    def conduct(self) -> None:
        """Do harm until the time is up, and end with everyone killed; then one worker works off what is left."""
        try:
            for one in harms(self._seed, self._target.weights, self._target.pause):
                self._wait(one.after)
                if time.monotonic() >= self._ends:
                    break
                self.did[one.kind] += 1
                getattr(self, f"_{one.kind}")(one)
        finally:
            self._end_all()
        (self._folder / "mended").touch()
        self._work_off()

    def leave_in_peace(self) -> None:
        """Let everyone ask and work without any harm until one of each was asked for, and work off what is left."""
        (self._folder / "mended").touch()
        askers = [self._folder / "ledger" / f"{role}.jsonl" for role in ROLES if role.startswith("asker")]
        try:
            while not all(path.exists() and path.read_text().count('"ack"') >= len(ROOTS) for path in askers):
                self._wait(_LOOKS)
            for process in self.processes.all:
                if process.role.startswith("asker"):
                    self.processes.send(process, signal.SIGTERM)
                    while not self.processes.ended(process):
                        time.sleep(_LOOKS)
            self._work_off()
        finally:
            self._end_all()

    def _end_all(self) -> None:
        for process in self.processes.all:
            self.processes.kill(process)
        for pid in self._outsiders:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _work_off(self) -> None:
        last = Process("last", elsewhere=False)
        self.processes.start(last)
        until = time.monotonic() + WORKED_OFF_IN
        while not self.processes.ended(last):
            if time.monotonic() > until:
                self.processes.note("not worked off", seconds=WORKED_OFF_IN)
                self.processes.kill(last)
                return
            time.sleep(_LOOKS)

    # -- harm -----------------------------------------------------------------------------------------------------

    def _kill(self, harm: Harm) -> None:
        self.processes.kill(self._whom(harm))

    def _stop(self, harm: Harm) -> None:
        process = self._whom(harm)
        if process.pid and not process.stopped:
            pid = process.pid
            self.processes.halt(process)
            self._later_do(harm.seconds, lambda: self._continue(process, pid))

    _stop_for_long = _stop

    def _continue(self, process: Process, pid: int) -> None:
        if process.pid == pid and process.stopped:  # it may have been killed as it stood there
            self.processes.resume(process)

    def _terminate(self, harm: Harm) -> None:
        process = self._whom(harm)
        if process.pid and not process.told:
            self.processes.send(process, signal.SIGTERM)
            process.told = time.monotonic()

    def _switch_off(self, harm: Harm) -> None:
        """The machine loses its power, and gets it back minutes or hours later."""
        for process in self.processes.all:
            self.processes.kill(process)
            process.starts_at = time.monotonic() + harm.seconds
        self._pass(harm.passes)

    def _sleep(self, harm: Harm) -> None:
        """The machine falls asleep with all that runs on it, and wakes up minutes or hours later."""
        awake = [process for process in self.processes.all if process.pid and not process.stopped]
        for process in awake:
            self.processes.halt(process)
        time.sleep(harm.seconds / 10)
        self._pass(harm.passes)
        for process in awake:
            self.processes.resume(process)

    def _pass(self, microseconds: int) -> None:
        """Let time pass, but in the whole run never as much as a task has to begin."""
        earned = BUDGET * (time.monotonic() - self._began) / self._seconds
        self._later += max(0, min(microseconds, int(earned) - self._later))
        move_clock(self._folder / "later", self._later)
        self.processes.note("time passed", later=self._later)

    def _hold(self, harm: Harm) -> None:
        self._outside("hold", lambda: self._target.hold(harm.seconds))

    _hold_for_long = _hold

    def _cut(self, _harm: Harm) -> None:
        self._outside("cut", self._target.cut)

    def _restart(self, _harm: Harm) -> None:
        self.processes.note("restarts")
        self._target.restart()

    def _calm(self, harm: Harm) -> None:
        self._wait(harm.seconds)

    # -- around it ------------------------------------------------------------------------------------------------

    def _whom(self, harm: Harm) -> Process:
        return self.processes.all[int(harm.whom * len(self.processes.all))]

    def _later_do(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._undone, (time.monotonic() + seconds, next(self._numbers), what))

    def _outside(self, kind: str, what: Callable[[], None]) -> None:
        """Have it done by someone else, one at a time."""
        if not self._outsiders:
            self.processes.note(kind)
            self._outsiders.append(forked(what, self._folder / "outsider.log"))

    def _wait(self, seconds: float) -> None:
        """Meanwhile continue the stopped processes, and restart those that have ended."""
        until = min(time.monotonic() + seconds, self._ends)
        while (now := time.monotonic()) < until:
            while self._undone and self._undone[0][0] <= now:
                heapq.heappop(self._undone)[2]()
            for process in self.processes.all:
                self._look_after(process, now)
            self._outsiders = [pid for pid in self._outsiders if not os.waitpid(pid, os.WNOHANG)[0]]
            time.sleep(_LOOKS)

    def _look_after(self, process: Process, now: float) -> None:
        if self.processes.ended(process):
            if now >= process.starts_at:
                self.processes.start(process)
        elif process.told and now - process.told > STOPS_IN and not process.stopped:
            self.processes.note("did not stop", target=process.name, seconds=STOPS_IN)
            self.processes.kill(process)


def check(folder: Path, store: str) -> tuple[int, str]:
    """Have the checker look: its exit code, and what it says."""
    command = [sys.executable, str(CHECKER), str(folder), "--store", store]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def repeat(store: str, seed: int, seconds: float) -> str:
    """Give the command that does the same harm again."""
    return f'make torture ARGS="chaos --store {store} --seed {seed} --seconds {seconds:g}"'


def once(store: str, seed: int, seconds: float, *, harm: bool = True, into: Path | None = None) -> tuple[int, str]:
    """Do one run: 0 and what happened if nothing is wrong, or what is wrong, with all of it kept in a folder."""
    memory = Path("/dev/shm")  # what a killed process wrote survives in memory as well as on a disk, and faster
    made = into or Path(tempfile.mkdtemp(prefix="remit-chaos-", dir=memory if os.access(memory, os.W_OK) else None))
    with target(store, made) as where:
        conductor = Conductor(made, where, seed, seconds, SILENCE if harm else _PATIENT)
        if harm:
            conductor.conduct()
        else:
            conductor.leave_in_peace()
        code, said = check(made, where.store)
    did = ", ".join(f"{number} {kind}" for kind, number in sorted(conductor.did.items()))
    said = f"{said}harm: {did or 'none'}; {conductor.processes.deaths} processes killed\n"
    if code == 0:
        if into is None:
            shutil.rmtree(made)
        return code, said
    return code, f"{said}to repeat it: {repeat(store, seed, seconds)}\nledger, logs and store are kept in {made}\n"


def rounds(seed: int, seconds: float) -> list[tuple[int, float]]:
    """Divide a long run into short ones, each with a seed of its own: what fails is found soon, and soon repeated."""
    number = max(1, math.ceil(seconds / ROUND))
    return [(seed + place, seconds / number) for place in range(number)]


def main(arguments: list[str]) -> int:
    """Do harm to each store for as long as told, in rounds that are checked one by one, until one goes wrong."""
    parser = argparse.ArgumentParser(prog="python -m torture chaos", description=main.__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=150.0, help="of harm, on each of the stores")
    given = parser.parse_args(arguments)
    failed = 0
    for store in ("sqlite", "postgres") if given.store == "both" else (given.store,):
        for seed, seconds in rounds(given.seed, given.seconds):
            print(f"chaos on {store}, seed {seed}, {seconds:g} s", flush=True)
            code, said = once(store, seed, seconds)
            print(said, flush=True)
            if code:
                failed += 1
                break
    return 1 if failed else 0

"""The power goes: what was acknowledged is there when it is back, and the rest is sound.

    python -m torture powercut --images 1000 --seed 1
    python -m torture powercut --recording LOG --seed 1 --image 417     that one again, of a recording that was kept

Several processes submit and carry out tasks on one file, and what SQLite does to its files is recorded. From that are
made the images that a power cut at some moment may leave, and each is looked at from outside; every ninth is opened by
remit an hour later, which has to finish everything. So that we know that we would see it, the same is done with less
syncing than remit asks for: with NORMAL acknowledged work must be missing, with OFF files must be damaged.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from torture.powercut_check import looked_at
from torture.powercut_images import LOG, Cut, Image, Recording, cuts, images
from torture.powercut_record import OWN
from torture.powercut_reopen import reopened
from torture.powercut_shim import reachable

NAME = "powercut"
RECORD = Path(__file__).with_name("powercut_record.py")
MEMORY = Path("/dev/shm")  # the disk is imagined, so the real one need not be waited for
TASKS = 9  # that each process submits, each time it opens the file
EACH = 125  # images of one recording
PROCESSES = (2, 3)
KEPT = 5  # images that failed; the others are alike
REOPENED = 9  # every so many
CONTROLS, FEWEST = 10, 60  # for so many images one with less syncing, and how many of them say something


class Failure(NamedTuple):
    cut: Cut
    sentences: list[str]


@dataclass
class Figures:
    """What came of some images."""

    images: int = 0
    lost: int = 0  # in so many something was missing that someone had been told
    damaged: int = 0  # so many were not sound
    reopened: int = 0
    unsynced: Counter[str] = field(default_factory=Counter)  # at the cut, and what became of it
    failures: list[Failure] = field(default_factory=list)

    def look(self, recording: Recording, cut: Cut, image: Image, folder: Path, *, again: bool) -> None:
        """Look at one more, and have remit open it if it is to be opened again."""
        said = recording.said(cut.record)
        broken = looked_at(image.write(folder), said)
        sentences = broken.all
        if again:
            sentences += [f"opened again: {sentence}" for sentence in reopened(image.write(folder), said)]
        self.images += 1
        self.lost += bool(broken.lost)
        self.damaged += bool(broken.damaged)
        self.reopened += again
        self.unsynced.update(f"{file} {way}" for file, way in image.ways.items())
        if sentences:
            self.failures.append(Failure(cut, sentences))


def room() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None, prefix="powercut-")


def recorded(folder: Path, processes: int, synchronous: str) -> Recording:
    """Have so many processes work on the store in a folder, and give what they did to its files."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-W", "error", str(RECORD), str(folder), str(processes), synchronous, str(TASKS)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    if done.returncode or done.stderr:
        raise RuntimeError(f"the recording did not come about: {done.stderr[-2_000:]}")
    return Recording(folder / LOG)


def carried_on(before: Recording, folder: Path, cut: Cut, processes: int) -> Recording:
    """Have so many processes carry on with what a cut has left, to cut the power again."""
    for _, image in images(before, [cut]):
        image.lay(folder, before.said(cut.record))
    return recorded(folder, processes, OWN)


def looked_through(
    recording: Recording, folder: Path, seed: int, numbers: Iterable[int], *, every: int, into: Figures | None = None
) -> Figures:
    """Look at an image for each number, and have remit open one of `every`, none if that is 0."""
    figures = into or Figures()
    for cut, image in images(recording, cuts(recording, seed, numbers)):
        figures.look(recording, cut, image, folder / "image", again=every > 0 and cut.number % every == 0)
    return figures


# -- as a program ------------------------------------------------------------------------------------------


def attacked(folder: Path, count: int, seed: int) -> Figures:
    """As remit asks for it: nothing may be broken. Every other recording carries on where the power went before."""
    figures = Figures()
    keeping = Path(tempfile.gettempdir())
    recording: Recording | None = None
    for part, start in enumerate(range(0, count, EACH)):
        processes = PROCESSES[part // 2 % len(PROCESSES)]
        own = folder / f"{part}"
        if part % 2 and recording:
            earliest = cuts(recording, seed, range(start, start + 3))[0]  # so that there is something left to do
            recording = carried_on(recording, own, earliest, processes)
        else:
            recording = recorded(own, processes, OWN)
        known = len(figures.failures)
        looked_through(recording, own, seed, range(start, min(start + EACH, count)), every=REOPENED, into=figures)
        for failure in figures.failures[known:KEPT]:
            print("\n".join([*failure.sentences[:5], f"  {kept(recording, failure.cut, keeping)}"]), flush=True)
        shutil.rmtree(own)
        print(f"  {processes} processes, {len(recording.records)} records: {figures.images} images so far", flush=True)
    return figures


def controlled(folder: Path, synchronous: str, count: int, seed: int) -> Figures:
    """With less syncing than remit asks for."""
    figures = Figures()
    for processes in PROCESSES:
        recording = recorded(folder / f"{synchronous}-{processes}", processes, synchronous)
        looked_through(recording, folder, seed, range(count // len(PROCESSES)), every=0, into=figures)
        shutil.rmtree(recording.path.parent)
    return figures


def blind(normal: Figures, off: Figures) -> list[str]:
    """Why this would not see what is wrong; and what it sees that is not."""
    sentences: list[str] = []
    if normal.lost < normal.images / 4:
        sentences.append(f"with NORMAL only {normal.lost} of {normal.images} images have lost something")
    if normal.damaged:
        sentences.append(
            f"with NORMAL {normal.damaged} images are damaged, which SQLite excludes: the disk is drawn wrong"
        )
    if off.damaged < off.images / 10:
        sentences.append(f"with OFF only {off.damaged} of {off.images} images are damaged")
    return sentences


def kept(recording: Recording, cut: Cut, into: Path) -> str:
    """Keep the recording and the image; gives the command that looks at it again."""
    folder = into / f"powercut-{cut.seed}-{cut.number}"
    for _, image in images(recording, [cut]):
        image.write(folder / "image")
    shutil.copy(recording.path, folder / LOG)
    where = f"--recording {folder / LOG} --seed {cut.seed} --image {cut.number}"
    return f"PYTHONPATH=tests .venv/bin/python -m torture {NAME} {where}"


def again(log: Path, seed: int, number: int) -> int:
    """Look at one image of a recording that was kept."""
    with room() as name:
        figures = looked_through(Recording(log), Path(name), seed, [number], every=1)
    print("\n".join(sentence for failure in figures.failures for sentence in failure.sentences) or "nothing is broken")
    return 1 if figures.failures else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recording", type=Path, help="a log that was kept")
    parser.add_argument("--image", type=int, default=0, help="which image of it")
    given = parser.parse_args(arguments)
    if given.recording:
        return again(given.recording, given.seed, given.image)
    if why := reachable():
        print(f"the power cannot be cut here: {why}")
        return 1
    began = perf_counter()
    with room() as name:
        folder = Path(name)
        full = attacked(folder, given.images, given.seed)
        controls = max(FEWEST, given.images // CONTROLS)
        normal, off = (controlled(folder, word, controls, given.seed) for word in ("NORMAL", "OFF"))
    wrong = blind(normal, off)
    print("not synced at the cut:", ", ".join(f"{what} {count}" for what, count in sorted(full.unsynced.items())))
    print(f"control: something is lost in {normal.lost} of {normal.images} with NORMAL;", end=" ")
    print(*(f"{off.damaged} of {off.images} are damaged with OFF", *wrong), sep="\n")
    taken = perf_counter() - began
    print(f"{full.images} images, {full.reopened} opened again, {len(full.failures)} broken, {taken:.0f} s")
    return 1 if full.failures or wrong else 0

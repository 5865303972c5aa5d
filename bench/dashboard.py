"""The page of a run in a browser: `make bench-page`.

A run of 50 tasks and one of 1,000 are opened and then get 20 events a second. The figures are those of the best of
several rounds: other programs on the machine only make them worse. What is found has a verdict.
"""

import argparse
import shutil
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

import page
from browser.large_runs import RUN, LargeRun, watched
from browser.serving import Served
from machine import Machine, sentence
from neighbours import Finding, markdown
from remit.server.static import FOLDER

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
SIZES = (50, 1_000)
UPDATES, RATE = 100, 20
_SETTLED = 1_500  # milliseconds in which the rest of the page is drawn
_NOTES = """
window.noted = { tasks: [], first: 0 };
new PerformanceObserver((list) => noted.tasks.push(...list.getEntries().map((one) => one.duration)))
  .observe({ type: "longtask", buffered: true });
const look = (now) => {
  if (document.querySelector(".run .node")) noted.first = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


class Seen(NamedTuple):
    """What a browser measured of one page, in milliseconds."""

    first: float  # from the request until the first node is there
    opening: float  # the longest task of the page's thread meanwhile
    updating: float  # the longest with 20 events a second
    frame: float  # the slowest of 95 % of the frames meanwhile
    cpu: float  # processor time of the page's thread for each event


def seen(browser: Browser, served: Served, tasks: int) -> Seen:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_init_script(_NOTES)
    try:
        tab = context.new_page()
        tab.goto(f"{served.url}/#key={served.token}")
        tab.get_by_role("navigation", name="Pages").wait_for()
        run = LargeRun(tasks)
        run.serve(tab)
        tab.goto(f"{served.url}/runs/{RUN}")
        tab.locator(".run .node").first.wait_for(timeout=60_000)
        tab.wait_for_timeout(_SETTLED)
        opened: dict[str, Any] = tab.evaluate("window.noted")
        return Seen(opened["first"], max(opened["tasks"], default=0), *_updated(context, tab, run))
    finally:
        context.close()


def _updated(context: BrowserContext, tab: Page, run: LargeRun) -> tuple[float, float, float]:
    session = context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used() -> float:
        told = session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in told if one["name"] == "TaskDuration") * 1e3

    before = used()
    found = watched(tab, run, UPDATES, RATE)
    frames = sorted(found["frames"])
    return max(found["tasks"], default=0), frames[int(len(frames) * 0.95)], (used() - before) / UPDATES


def best(rounds: list[Seen]) -> Seen:
    return Seen(*map(min, zip(*rounds, strict=True)))


def kilobytes() -> float:
    """Return the size of the page's files, as they are sent."""
    return sum(one.stat().st_size for one in FOLDER.rglob("*") if one.is_file()) / 1000


def findings(small: Seen, large: Seen) -> list[Finding]:
    return [
        Finding("first node of a run of 50 tasks", "ms", small.first),
        Finding("first node of a run of 1,000 tasks", "ms", large.first, 1_500),
        Finding("longest task of the page's thread while 50 tasks are opened", "ms", small.opening),
        Finding("longest task of the page's thread while 1,000 tasks are opened", "ms", large.opening, 100),
        Finding("longest task with 20 events a second, 50 tasks", "ms", small.updating),
        Finding("longest task with 20 events a second, 1,000 tasks", "ms", large.updating, 100),
        Finding("slowest of 95 % of the frames, 50 tasks", "ms", small.frame),
        Finding("slowest of 95 % of the frames, 1,000 tasks", "ms", large.frame),
        Finding("factor between the frames", "x", large.frame / small.frame, 3),
        Finding("processor time of the page's thread for an event, 50 tasks", "ms", small.cpu),
        Finding("processor time of the page's thread for an event, 1,000 tasks", "ms", large.cpu),
        Finding("files of the page, as they are sent", "kB", kilobytes(), 250),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each run is opened [default: 5]")
    parser.add_argument("--page", action="store_true", help="put the table into docs/performance.md too")
    given = parser.parse_args()
    if CHROMIUM is None:
        raise SystemExit("there is no chromium to measure in: `make browser` installs one")
    machine = Machine()
    with TemporaryDirectory(prefix="remit-bench-") as folder, sync_playwright() as playwright:
        served = Served(Path(folder))
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
            rounds = [[seen(browser, served, tasks) for tasks in SIZES] for _ in range(given.rounds)]
            browser.close()
        finally:
            served.close()
    found = findings(*(best([one[at] for one in rounds]) for at in range(len(SIZES))))
    usual = statistics.median(one[-1].first for one in rounds)
    said = f"The usual round had its first of 1,000 nodes after {usual:,.0f} ms. A task of 0 ms: none took 50 ms."
    body = f"{sentence(machine.told())}\n\n{markdown({'chromium': found})}\n\n{said}"
    if given.page:
        page.write("dashboard", body)
    print(body)
    return 1 if any("missed" in one.verdict for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Take the pictures of the dashboard in docs/pictures: the demo, while it waits for a person.

`make pictures` runs it. It needs chromium.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final, Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

HERE = Path(__file__).parent / "pictures"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
SIZE: Final[ViewportSize] = {"width": 1440, "height": 900}
PACE = "2"  # as slow as it takes for times that are worth reading


@contextmanager
def demo(folder: str) -> Iterator[tuple[str, str]]:
    """Run the demo until it waits for a person. Yield the address of its dashboard, and the key."""
    words = [sys.executable, "-m", "remit.cli", "demo", "--web", "--no-open", "--pace", PACE]
    env = {**os.environ, "XDG_STATE_HOME": folder, "COLUMNS": "300"}
    with subprocess.Popen(  # noqa: S603 - our own program
        words, cwd=folder, env=env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        assert run.stderr is not None
        try:
            url, _, key = _line(run.stderr, "dashboard: ").split()[1].partition("/#key=")
            _line(run.stderr, "waits for a person")
            yield url, key
        finally:
            run.terminate()


def _line(stream: IO[str], words: str) -> str:
    for line in stream:
        if words in line:
            return line
    raise SystemExit(f"the demo ended without saying: {words}")


def taken(browser: Browser, url: str, key: str, *, theme: Literal["light", "dark"]) -> None:
    context = browser.new_context(viewport=SIZE, color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{url}/#key={key}")
    page.get_by_role("navigation", name="Pages").wait_for()
    end = "" if theme == "light" else f"-{theme}"
    page.locator("a[href^='/runs/']").first.click()
    page.locator("svg text").first.wait_for()
    _shot(page, f"run{end}")
    if theme == "light":
        page.goto(f"{url}/approvals")
        page.get_by_role("button", name="Approve").first.wait_for()
        _shot(page, "approvals")
    context.close()


def _shot(page: Page, name: str) -> None:
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(500)  # for what comes with the next event
    page.screenshot(path=HERE / f"{name}.png", animations="disabled")
    sys.stdout.write(f"took docs/pictures/{name}.png, {(HERE / f'{name}.png').stat().st_size // 1000} kB\n")


def main() -> None:
    if CHROMIUM is None:
        raise SystemExit("there is no chromium to take pictures with: `make browser` installs one")
    HERE.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, demo(folder) as (url, key), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        taken(browser, url, key, theme="light")
        taken(browser, url, key, theme="dark")
        browser.close()


if __name__ == "__main__":
    main()

"""A browser, and pages of a server in it. A test is a plain function that uses playwright's synchronous calls."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from browser.serving import TEAM, Served
from browser.watching import Watch
from remit.server.static import FOLDER

T = TypeVar("T")
SHOTS = Path(__file__).parent / "shots"
# The shell has no window to draw, so a page costs it a third of the processor time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--font-render-hinting=none")


class BrowserThread:
    """The thread that playwright runs in: its event loop would otherwise run in the thread of all other tests."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "browser")
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def __call__(self, do: Callable[[], T]) -> T:
        return self._thread.submit(do).result()

    def context(self, **how: Any) -> BrowserContext:
        """Return a new context: cookies and storage of its own. Call it in the thread."""
        if self._browser is None:
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        return self._browser.new_context(**how)

    def close(self) -> None:
        self(self._end)
        self._thread.shutdown()

    def _end(self) -> None:
        if self._browser is not None and self._playwright is not None:
            self._browser.close()
            self._playwright.stop()


class Serve(Protocol):
    """Starts a server of a team, which ends with the test."""

    def __call__(self, team: str = TEAM, **env: str) -> Served: ...


class OpenPage(Protocol):
    """Opens a page of a server in a context of its own, signed in unless told otherwise."""

    def __call__(
        self,
        path: str = "/",
        *,
        at: Served | None = None,
        dark: bool = False,
        phone: bool = False,
        key: str | None = None,
        **how: Any,
    ) -> Page: ...


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Run the test in the browser's thread."""
    run = cast("BrowserThread", pyfuncitem.funcargs["in_browser"])
    names = signature(pyfuncitem.obj).parameters
    run(lambda: pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def browser_thread() -> Iterator[BrowserThread]:
    thread = BrowserThread()
    yield thread
    thread.close()


@pytest.fixture(autouse=True)
def in_browser(browser_thread: BrowserThread) -> BrowserThread:
    if CHROMIUM is None:
        pytest.skip("there is no chromium to show the dashboard in: `make browser` installs one")
    if not (FOLDER / "index.html").exists():
        pytest.skip("the dashboard is not built: `make dashboard` builds it")
    return browser_thread


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started = list[Served]()

    def start(team: str = TEAM, **env: str) -> Served:
        folder = tmp_path / f"served-{len(started)}"
        folder.mkdir()
        started.append(Served(folder, team, **env))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def served(serve: Serve) -> Served:
    """A server of a team of two."""
    return serve()


@pytest.fixture
def watches(in_browser: BrowserThread) -> Iterator[list[Watch]]:
    """The watches of the open contexts. The test fails if one has seen something wrong."""
    found = list[Watch]()
    yield found
    assert [wrong for watch in found for wrong in watch.wrong] == []


@pytest.fixture
def open_page(
    in_browser: BrowserThread, watches: list[Watch], serve: Serve, request: pytest.FixtureRequest
) -> Iterator[OpenPage]:
    """Opens pages. It uses `serve`, so that its pages are closed before the servers end and their streams break."""
    contexts = list[BrowserContext]()

    def opened(
        path: str = "/",
        *,
        at: Served | None = None,
        dark: bool = False,
        phone: bool = False,
        key: str | None = None,
        **how: Any,
    ) -> Page:
        where: Served = request.getfixturevalue("served") if at is None else at
        size: dict[str, Any] = (
            {"viewport": PHONE, "has_touch": True, "is_mobile": True} if phone else {"viewport": DESK}
        )
        # Without a graphics card, what moves is drawn by the processor for as long as it is seen.
        still: dict[str, Any] = {"reduced_motion": "reduce", "color_scheme": "dark" if dark else "light"}
        context = in_browser.context(**{**still, **size, **how})
        contexts.append(context)
        context.set_default_timeout(15_000)
        watches.append(Watch(context, where.url))
        page = context.new_page()
        given = where.token if key is None else key
        page.goto(f"{where.url}{path}{f'#key={given}' if given else ''}")
        if given:
            page.get_by_role("navigation", name="Pages").wait_for()
        return page

    yield opened
    in_browser(lambda: [context.close() for context in contexts])


@pytest.fixture
def shot() -> Callable[[Page, str], Path]:
    """Take a picture of a page, for people to look at."""

    def taken(page: Page, name: str) -> Path:
        SHOTS.mkdir(exist_ok=True)
        page.evaluate("document.fonts.ready")
        page.screenshot(path=SHOTS / f"{name}.png", animations="disabled")
        return SHOTS / f"{name}.png"

    return taken

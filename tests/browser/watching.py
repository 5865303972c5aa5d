"""What must not happen in a browser while a test uses it: a request elsewhere, an error in the console, a breach of the
content policy."""

from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
  console.error(`content policy: ${event.violatedDirective} ${event.blockedURI}`));"""


class Watch:
    """Notes what goes wrong in the pages of a context. `forgive` names parts of what a test expects to go wrong."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.origin = origin
        self.requests: list[str] = []
        self._wrong: list[str] = []
        self._forgiven: list[str] = []
        context.add_init_script(_VIOLATIONS)
        context.on("request", self._requested)
        context.on("page", self._opened)

    def forgive(self, *parts: str) -> None:
        self._forgiven += parts

    @property
    def wrong(self) -> list[str]:
        return [one for one in self._wrong if not any(part in one for part in self._forgiven)]

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith(("blob:", f"{self.origin}/")):
            self._wrong.append(f"a request to {urlsplit(request.url).netloc or request.url}")

    def _opened(self, page: Page) -> None:
        page.on("console", self._logged)
        page.on("pageerror", lambda error: self._wrong.append(f"an error that nothing caught: {error}"))

    def _logged(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._wrong.append(f"in the console: {message.text} {message.location.get('url', '')}")

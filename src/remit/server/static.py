"""The dashboard's files, and the paths that show it. They are in the package, built by `make dashboard`."""

from __future__ import annotations

from gzip import decompress
from pathlib import Path
from typing import Final

from starlette.responses import Response

FOLDER: Final = Path(__file__).parent / "page"
# No script or style but the page's own files, nothing of another server, and no frame around the page.
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "font", "img", "connect")),
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_INDEX: Final = "index.html"
_PAGES: Final = frozenset(("", "runs", "approvals", "agents", "context", "spend", "settings"))
_BELOW: Final = frozenset(("runs", "approvals", "agents", "context"))
_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".woff2": "font/woff2",
}
_UNCHANGING: Final = "public, max-age=31536000, immutable"  # the name of such a file changes with its content
_PLAIN: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>remit</title>
<h1>The dashboard is not built</h1>
<p>This server runs from a source folder without it. Run <code>make dashboard</code> there, then load this page again.
<p>Meanwhile, <a href="/docs">the API</a> and the commands work: <code>remit runs</code>, <code>remit approvals</code>.
</html>
"""


_PACKED: Final = ".gz"  # scripts and styles are in the package as browsers load them: compressed


class StaticPage:
    """The built dashboard in a folder. Its files are read once, and again when the page is built again."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._files: dict[str, bytes] = {}
        self._built = 0

    def answer(self, path: str, accepts: str = "") -> Response | None:
        """Return the file or the page at a path, or None if it has neither. `accepts` is the header Accept-Encoding: a
        compressed file is unpacked for a client without gzip."""
        if not path.startswith("/"):
            return None
        _, first, *below = path.split("/")
        if first in _PAGES and (not any(below) or first in _BELOW):
            self._read()
            index = self._files.get(f"/{_INDEX}", _PLAIN.encode())
            return self._response(index, _INDEX, "no-store")
        if not (path in self._files or f"{path}{_PACKED}" in self._files):
            self._read()
        packed = self._files.get(f"{path}{_PACKED}")
        found = self._files.get(path, packed)
        if found is None or path == f"/{_INDEX}":
            return None
        kept = _UNCHANGING if first == "assets" else "no-cache"
        if found is not packed:
            return self._response(found, path, kept)
        takes = "gzip" in accepts
        answer = self._response(found if takes else decompress(found), path, kept)
        answer.headers["Vary"] = "Accept-Encoding"
        if takes:
            answer.headers["Content-Encoding"] = "gzip"
        return answer

    def _read(self) -> None:
        try:
            built = (self._folder / _INDEX).stat().st_mtime_ns
        except OSError:
            self._files, self._built = {}, 0
            return
        if built != self._built:
            files = [file for file in self._folder.rglob("*") if file.is_file()]
            self._files = {f"/{file.relative_to(self._folder).as_posix()}": file.read_bytes() for file in files}
            self._built = built

    @staticmethod
    def _response(body: bytes, name: str, kept: str) -> Response:
        kind = _TYPES.get(Path(name).suffix, "application/octet-stream")
        headers = {
            "Content-Security-Policy": POLICY,
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": kept,
        }
        return Response(body, 200, headers, kind)

"""An answer of a model while it is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from remit.core.secret import Redaction
    from remit.engine.ground import Ears
    from remit.ports.models import TextChunk

SPEECH: Final = 65_536  # characters of an answer that are kept for a listener that joins later


class Speech:
    """An answer that is being streamed. Secrets are redacted: text that may be the beginning of a secret is held back
    until more text has arrived."""

    __slots__ = ("_ears", "_held", "_own", "_redaction", "so_far")

    def __init__(
        self, begins: TextChunk, own: tuple[Callable[[TextChunk], None], ...], ears: Ears, redaction: Redaction
    ) -> None:
        self.so_far = begins
        self._own = own
        self._ears = ears
        self._redaction = redaction
        self._held = ""
        with ears.lock:
            ears.speeches[self] = None
            self._pass_on(begins)

    def hear(self, text: str) -> None:
        """Add the next piece of the answer, on any thread."""
        if not self._redaction.is_empty:
            text, self._held = self._redaction.split(self._held + text)
        if text:
            self._tell(text)

    def end(self, *, is_whole: bool) -> None:
        """End the stream. If the answer is complete, send the text that was held back."""
        if is_whole and self._held:
            self._tell(self._redaction.text(self._held))
        with self._ears.lock:
            self._ears.speeches.pop(self, None)

    def _tell(self, text: str) -> None:
        with self._ears.lock:
            self.so_far = self.so_far._replace(text=(self.so_far.text + text)[-SPEECH:])
            self._pass_on(self.so_far._replace(text=text, begins=False))

    def _pass_on(self, chunk: TextChunk) -> None:
        for hear in (*self._own, *self._ears.hearing):
            hear(chunk)

"""Drawings of a run, folded from its events: as lines of text, as a Mermaid flowchart, as an SVG picture."""

from remit.core.flow.mermaid import mermaid
from remit.core.flow.svg import svg
from remit.core.flow.text import text
from remit.core.flow.theme import Theme
from remit.core.words import duration

__all__ = ["Theme", "duration", "mermaid", "svg", "text"]

"""Drawings of a run, folded from its events: as lines of text, as a Mermaid flowchart, as an SVG picture."""

from remit.report.figures import duration
from remit.report.flow.mermaid import mermaid
from remit.report.flow.svg import svg
from remit.report.flow.text import text
from remit.report.flow.theme import Theme

__all__ = ["Theme", "duration", "mermaid", "svg", "text"]

"""The page behind a link. It shows what is asked and what an approval permits, and asks to be sure: only its form
decides. All that is on it is text of strangers, so all of it is escaped, and no script runs on it."""

import json
from html import escape
from typing import Final

from remit.adapters.asking.links import TEXT, Option
from remit.core.question import Inquiry
from remit.core.times import iso
from remit.core.values import Json

HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:2em auto;padding:0 1em}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext;background:#f4f4f4;padding:.7em}"
    "th{text-align:left;vertical-align:top;padding-right:1em}textarea,input{width:100%;font:inherit}"
    "button{font:inherit;padding:.5em 1.5em;margin-top:1em}"
)


def page(workspace: str, inquiry: Inquiry, chosen: Option, token: str) -> str:
    """Show a question, and one of its answers as a form to post."""
    rows = [("agent", inquiry.agent), ("chain", inquiry.chain), ("until", iso(inquiry.until)), *_shown(inquiry.shows)]
    table = "".join(f"<tr><th>{escape(name)}</th><td><pre>{escape(text)}</pre></td></tr>" for name, text in rows)
    hidden = {"w": workspace, "q": inquiry.id, "c": chosen.code, "t": token}
    fields = "".join(f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in hidden.items())
    form = f'<form method="post">{fields}{_said(inquiry, chosen)}{_NAME}<button>{escape(chosen.label)}</button></form>'
    return _html("A question for you", f"<pre>{escape(inquiry.text)}</pre><table>{table}</table>{form}")


def told(title: str, sentence: str) -> str:
    """Tell what came of it."""
    return _html(title, f"<pre>{escape(sentence)}</pre>")


_NAME: Final = '<p><label>Your name, for the record<br><input name="name" maxlength="40"></label></p>'


def _said(inquiry: Inquiry, chosen: Option) -> str:
    """Give the field for what is said besides the choice."""
    if chosen.code == TEXT:
        return (
            '<p><label>Your answer<br><textarea name="said" rows="6" maxlength="8000" required></textarea></label></p>'
        )
    if inquiry.kind == "ask":
        return ""
    return '<p><label>Why, if it matters<br><input name="said" maxlength="500"></label></p>'


def _shown(shows: dict[str, Json]) -> list[tuple[str, str]]:
    told = ((name, value) for name, value in shows.items() if name != "chain")
    return [(name, value if isinstance(value, str) else json.dumps(value, indent=1)) for name, value in told]


def _html(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><meta name="robots" content="noindex"><title>{escape(title)}</title>'
    head += f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    return f"<!doctype html><html><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body></html>"

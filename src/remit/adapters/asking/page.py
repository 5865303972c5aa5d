"""The page behind a link. It shows the whole question and the action that an approval permits, and asks for
confirmation: only its forms decide. All its text comes from agents, so all of it is escaped, and no script runs on it.
"""

from collections.abc import Sequence
from html import escape
from typing import Final

from remit.adapters.asking.links import TEXT, Option
from remit.core.question import Inquiry
from remit.report.printable import seen
from remit.report.questions import QuestionLine, asked_by, whole_question

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
    "div,pre{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext}pre,section{background:#f4f4f4;padding:.7em}"
    "textarea,input{width:100%;font:inherit}"
    "button{font:inherit;padding:.5em 1.5em;margin-top:1em}"
)


def page(workspace: str, inquiry: Inquiry, chosen: Sequence[tuple[Option, str]]) -> str:
    """Return the page of a question, with one or all of its answers as forms, each with its token."""
    lines = "".join(map(_line, whole_question(inquiry).lines))
    forms = "".join(_form(workspace, inquiry, one, token) for one, token in chosen)
    return _html("A question for you", f"<p>{escape(asked_by(inquiry))}</p><section>{lines}</section>{forms}")


def _line(line: QuestionLine) -> str:
    """Return a line with its indent, including the parts it is broken into."""
    name = f"<strong>{escape(line.name)}</strong>  " if line.name else ""
    return f'<div style="margin-left:{1.5 * line.depth}em">{name}{escape(line.text) or " "}</div>'


def _form(workspace: str, inquiry: Inquiry, chosen: Option, token: str) -> str:
    hidden = {"w": workspace, "q": inquiry.id, "c": chosen.code, "t": token}
    fields = "".join(f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in hidden.items())
    label = escape(seen(chosen.label))
    return f'<form method="post">{fields}{_said(inquiry, chosen)}{_NAME}<button>{label}</button></form>'


def told(title: str, sentence: str) -> str:
    """Return the page with the result."""
    return _html(title, f"<pre>{escape(seen(sentence))}</pre>")


_NAME: Final = '<p><label>Your name, for the record<br><input name="name" maxlength="40"></label></p>'


def _said(inquiry: Inquiry, chosen: Option) -> str:
    """Return the form field for an answer text or a reason."""
    if chosen.code == TEXT:
        return (
            '<p><label>Your answer<br><textarea name="said" rows="6" maxlength="8000" required></textarea></label></p>'
        )
    if inquiry.kind == "ask":
        return ""
    return '<p><label>Why, if it matters<br><input name="said" maxlength="500"></label></p>'


def _html(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><meta name="robots" content="noindex"><title>{escape(title)}</title>'
    head += f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    return f"<!doctype html><html><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body></html>"

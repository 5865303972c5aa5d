"""The picture in the README: a run of the demo as an indented tree with a time scale, narrow enough for a page.

It is drawn from demo.json, which is what `remit demo --json` printed once, so that it is the same each time.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from remit.core.prices import dollars
from remit.report.figures import duration
from remit.report.flow.theme import DARK, LIGHT, Palette
from remit.report.looks import LOOKS

_WIDTH, _MARGIN, _TOP, _ROW, _INDENT = 880, 22, 92, 50, 24
_BARS, _BARS_WIDTH = 650, 150  # where the time scale is, and how wide
_CHARACTER = 6.6  # of the ordinary type, on average
_PERSON = "a person"
_LEGEND = (
    ("completed", "completed"),
    ("failed", "failed; the others go on"),
    ("refused", "a hop was refused; the run went on"),
    ("handed", "handed over for good"),
)


class Row(NamedTuple):
    """One line of the tree: agent, state, task, outcome and times."""

    depth: int
    name: str
    state: str
    task: str
    note: str
    began: int
    ended: int


def picture(run: dict[str, Any]) -> str:
    rows = list(_rows(run, 0))
    height = _TOP + len(rows) * _ROW + 56
    scale = _BARS_WIDTH / (run["ended_at"] - run["started_at"])
    hops = sum(row.state == "refused" for row in rows)
    spent, asked = dollars(run["with_below"]["credits"]), sum(row.name == _PERSON for row in rows)
    turns, took = len(rows) - hops - asked, duration(run["ended_at"] - run["started_at"])
    about = f"{turns} turns, {hops} hops refused, 1 handoff, {asked} question to a person, {spent} spent, {took}"
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}">'
        ),
        f"<title>A run of the demo: {escape(run['task'])}</title>",
        f"<style>\n{_sheet()}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}" rx="10"/>',
        _text(_MARGIN, 38, "title", run["task"]),
        _text(_MARGIN, 60, "faint", about),
        _text(_BARS, 60, "faint", "time, from the left"),
        *(_drawn(row, _TOP + number * _ROW, (run["started_at"], scale)) for number, row in enumerate(rows)),
        *_legend(height - 26),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _rows(node: dict[str, Any], depth: int) -> Iterator[Row]:
    """The task in the hands of its first holder, what it asked for in order, and those who took the task over."""
    moves = node["trail"]
    began, ended = node["started_at"], node["ended_at"]
    state, note, until = node["state"], _note(node), ended
    if moves:
        state, note, until = "handed", f"handed over to {moves[0]['to'][0]}", moves[0]["at"]
    yield Row(depth, node["first"], state, _title(node), note, began, until)
    below = [(child["started_at"], list(_rows(child, depth + 1))) for child in node["children"]]
    below += [(refusal["at"], [_refused(refusal, depth + 1)]) for refusal in node["refusals"]]
    below += [(question["asked_at"], [_question(question, depth + 1)]) for question in node["questions"]]
    for _, rows in sorted(below, key=lambda found: found[0]):
        yield from rows
    for number, move in enumerate(moves):
        last = number == len(moves) - 1
        until = ended if last else moves[number + 1]["at"]
        state, about = node["state"] if last else "handed", f"{move['phase']}, handed over by {move['sender']}"
        yield Row(depth, move["to"][0], state, about, _note(node), move["at"], until)


def _refused(refusal: dict[str, Any], depth: int) -> Row:
    at = refusal["at"]
    return Row(depth, refusal["to"], "refused", refusal["task"], f"{refusal['rule']}: {refusal['sentence']}", at, at)


def _question(question: dict[str, Any], depth: int) -> Row:
    said = f"{question['state']} by {question['by']}"
    return Row(depth, _PERSON, "completed", question["text"], said, question["asked_at"], question["answered_at"])


def _title(node: dict[str, Any]) -> str:
    return node["task"].removeprefix("# Task: ").splitlines()[0]


def _note(node: dict[str, Any]) -> str:
    paid = f"{dollars(node['credits'])} " if node["credits"] else ""
    return node["error"] or f"{paid}→ {node['result']}"


def _drawn(row: Row, top: int, time: tuple[int, float]) -> str:
    x, (start, scale) = _MARGIN + row.depth * _INDENT, time
    room = _BARS - x - 40
    name_width = len(row.name) * 9 + 8
    begin, width = _BARS + (row.began - start) * scale, max((row.ended - row.began) * scale, 3)
    length = _text(_WIDTH - _MARGIN, top + 17, "faint end", "" if row.state == "refused" else _time(row))
    branch = f'<path class="line" d="M{x - 14} {top - 24}V{top + 12}H{x - 4}"/>' if row.depth else ""
    return (
        f"{branch}{_dot(row.state, x + 8, top + 12)}"
        + _text(x + 24, top + 17, "name", row.name)
        + _text(x + 24 + name_width, top + 17, "soft", _cut(row.task, room - name_width))
        + _text(x + 24, top + 35, f"note {row.state}", _cut(row.note, room))
        + f'<rect class="fill {row.state}" x="{begin:.0f}" y="{top + 8}" width="{width:.0f}" height="9" rx="3"/>'
        + length
    )


def _time(row: Row) -> str:
    return duration(row.ended - row.began)


def _dot(state: str, x: int, y: int) -> str:
    sign = f'<path class="sign" transform="translate({x} {y})" d="{LOOKS[state].sign}"/>'
    return f'<circle class="fill {state}" cx="{x}" cy="{y}" r="8"/>{sign}'


def _legend(y: int) -> Iterator[str]:
    x = _MARGIN
    for state, meaning in _LEGEND:
        yield _dot(state, x + 8, y - 5) + _text(x + 24, y, "soft", meaning)
        x += 48 + round(len(meaning) * 7.2)


def _text(x: float, y: int, kind: str, text: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y}">{escape(text)}</text>'


def _cut(text: str, room: float) -> str:
    most = int(room / _CHARACTER)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _sheet() -> str:
    """Plain colours, not variables: viewers outside browsers know only those."""
    return f"""text{{font:13.5px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}}
.title{{font-size:19px;font-weight:650}}
.name{{font-size:14.5px;font-weight:650}}
.end{{text-anchor:end}}
.line{{fill:none;stroke-width:1.5}}
.sign{{fill:none;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}}
{_colours(LIGHT)}@media (prefers-color-scheme:dark){{
{_colours(DARK)}}}
"""


def _colours(palette: Palette) -> str:
    rules = [
        f".page{{fill:{palette.page}}}",
        f".title,.name{{fill:{palette.ink}}}",
        f".soft{{fill:{palette.soft}}}",
        f".faint,.note{{fill:{palette.faint}}}",
        f".line{{stroke:{palette.line}}}",
        f".sign{{stroke:{palette.page}}}",
    ]
    for state, _ in _LEGEND:
        colour = palette.roles[LOOKS[state].role]
        text = f",.note.{state}" if state != "completed" else ""
        rules.append(f".fill.{state}{text}{{fill:{colour}}}")
    return "\n".join(rules) + "\n"

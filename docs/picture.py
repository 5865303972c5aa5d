"""The pictures of the README and of the examples: a run as an indented tree with a time scale, narrow enough for a
page.

Each is drawn from a recorded run, as `remit show --json` prints it, so that it is the same each time.
"""

import json
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
_LEGEND = (
    ("completed", "completed"),
    ("failed", "failed; the others go on"),
    ("refused", "was refused; the run went on"),
    ("handed", "handed over for good"),
)


class Row(NamedTuple):
    """One line of the tree: agent, state, task, outcome and times. `kind` is turn, hop, question, tool or loss."""

    kind: str
    depth: int
    name: str
    state: str
    task: str
    note: str
    began: int
    ended: int


def picture(run: dict[str, Any], what: str) -> str:
    rows = list(_rows(run, 0))
    height = _TOP + len(rows) * _ROW + 56
    scale = _BARS_WIDTH / (run["ended_at"] - run["started_at"])
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}">'
        ),
        f"<title>A run of {escape(what)}: {escape(run['task'])}</title>",
        f"<style>\n{_sheet()}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}" rx="10"/>',
        _text(_MARGIN, 38, "title", run["task"]),
        _text(_MARGIN, 60, "faint", _about(run, rows)),
        _text(_BARS, 60, "faint", "time, from the left"),
        *(_branch(rows, number) for number in range(1, len(rows))),
        *(_drawn(row, _TOP + number * _ROW, (run["started_at"], scale)) for number, row in enumerate(rows)),
        *_legend(height - 26, {row.state for row in rows}),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _about(run: dict[str, Any], rows: list[Row]) -> str:
    """Return the figures of a run, without those that are zero."""
    counts = {
        "turn": sum(row.kind == "turn" for row in rows),
        "tool call": sum(row.kind == "tool" for row in rows),
        "hop refused": sum(row.kind == "hop" for row in rows),
        "handoff": sum(row.state == "handed" for row in rows),
        "question to a person": sum(row.kind == "question" for row in rows),
        "worker lost": sum(row.kind == "loss" for row in rows),
    }
    said = [f"{count} {_plural(word, count)}" for word, count in counts.items() if count]
    spent = [f"{dollars(run['with_below']['credits'])} spent"] if run["with_below"]["credits"] else []
    return ", ".join([*said, *spent, duration(run["ended_at"] - run["started_at"])])


def _plural(word: str, count: int) -> str:
    noun, space, rest = word.partition(" ")
    if word == "tool call":
        return word if count == 1 else "tool calls"
    return word if count == 1 else f"{noun}s{space}{rest}"


def _rows(node: dict[str, Any], depth: int) -> Iterator[Row]:
    """The task in the hands of each holder, and below it what happened meanwhile, in order."""
    moves, ended = node["trail"], node["ended_at"]
    below = [
        *((child["started_at"], list(_rows(child, depth + 1))) for child in node["children"]),
        *((refusal["at"], [_refused(refusal, depth + 1)]) for refusal in node["refusals"]),
        *((question["asked_at"], [_question(question, depth + 1)]) for question in node["questions"]),
        *((tool["at"] - tool["elapsed"], [_tool(tool, depth + 1)]) for tool in _tools(node)),
        *((loss["at"], [_loss(loss, depth + 1)]) for loss in node["retries"]),
    ]
    below.sort(key=lambda found: found[0])
    starts = [node["started_at"], *(move["at"] for move in moves)]
    for number, began in enumerate(starts):
        last = number == len(moves)
        until = ended if last else moves[number]["at"]
        holder = moves[number - 1]["to"][0] if number else node["first"]
        task = _moved(moves[number - 1]) if number else _title(node)
        state, note = (node["state"], _note(node)) if last else _left(moves[number])
        yield Row("turn", depth, holder, state, task, note, began, until)
        for at, rows in below:
            if (at >= began or not number) and (last or at < until):
                yield from rows


def _moved(move: dict[str, Any]) -> str:
    if move["sender"] == move["to"][0]:
        return "sent back by a person"
    return f"{move['phase']}, handed over by {move['sender']}".removeprefix(", ")


def _left(move: dict[str, Any]) -> tuple[str, str]:
    """Return the state and the note of a holder that does not end the task."""
    if move["sender"] == move["to"][0]:
        return "refused", "sent back by a person"
    return "handed", f"handed over to {move['to'][0]}"


def _tools(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tool calls of a task, without delegations, which have rows of their own."""
    return [tool for tool in node.get("tools", ()) if tool["tool"] != "call_agent"]


def _refused(refusal: dict[str, Any], depth: int) -> Row:
    at, sentence = refusal["at"], f"{refusal['rule']}: {refusal['sentence']}"
    return Row("hop", depth, refusal["to"], "refused", refusal["task"], sentence, at, at)


def _question(question: dict[str, Any], depth: int) -> Row:
    said, times = f"{question['state']} by {question['by']}", (question["asked_at"], question["answered_at"])
    state = "refused" if question["state"] == "rejected" else "completed"
    return Row("question", depth, "a person", state, question["text"], said, *times)


def _tool(tool: dict[str, Any], depth: int) -> Row:
    state, began = "completed" if tool["outcome"] == "done" else tool["outcome"], tool["at"] - tool["elapsed"]
    return Row("tool", depth, tool["tool"], state, _given(tool["given"]), f"→ {tool['result']}", began, tool["at"])


def _given(arguments: str) -> str:
    try:
        return ", ".join(f"{name}={value}" for name, value in json.loads(arguments).items())
    except ValueError:  # long arguments are recorded in short
        return arguments


def _loss(loss: dict[str, Any], depth: int) -> Row:
    return Row("loss", depth, "the worker", "failed", loss["error"], "another goes on", loss["at"], loss["at"])


def _title(node: dict[str, Any]) -> str:
    return node["task"].removeprefix("# Task: ").splitlines()[0]


def _note(node: dict[str, Any]) -> str:
    paid, result = f"{dollars(node['credits'])} " if node["credits"] else "", node["result"]
    if isinstance(result, dict) and "digest" in result:
        result = f"{result['name']}, {result['size']} bytes"
    said = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return node["error"] or f"{paid}→ {said}"


def _branch(rows: list[Row], number: int) -> str:
    """Return the line to a row from its parent, or from the row before it that has the same parent."""
    depth = rows[number].depth
    if not depth:
        return ""
    before = max(one for one in range(number) if rows[one].depth <= depth)
    start = _TOP + before * _ROW + (12 if rows[before].depth == depth else 26)
    x, y = _MARGIN + depth * _INDENT, _TOP + number * _ROW + 12
    return f'<path class="line" d="M{x - 14} {start}V{y}H{x - 4}"/>'


def _drawn(row: Row, top: int, time: tuple[int, float]) -> str:
    x, (start, scale) = _MARGIN + row.depth * _INDENT, time
    room = _BARS - x - 40
    name_width = len(row.name) * 9 + 8
    begin, width = _BARS + (row.began - start) * scale, max((row.ended - row.began) * scale, 3)
    length = _text(_WIDTH - _MARGIN, top + 17, "faint end", _time(row))
    return (
        _dot(row.state, x + 8, top + 12)
        + _text(x + 24, top + 17, "name", row.name)
        + _text(x + 24 + name_width, top + 17, "soft", _cut(row.task, room - name_width))
        + _text(x + 24, top + 35, f"note {row.state}", _cut(row.note, room))
        + f'<rect class="fill {row.state}" x="{begin:.0f}" y="{top + 8}" width="{width:.0f}" height="9" rx="3"/>'
        + length
    )


def _time(row: Row) -> str:
    return "" if row.began == row.ended else duration(row.ended - row.began)


def _dot(state: str, x: int, y: int) -> str:
    sign = f'<path class="sign" transform="translate({x} {y})" d="{LOOKS[state].sign}"/>'
    return f'<circle class="fill {state}" cx="{x}" cy="{y}" r="8"/>{sign}'


def _legend(y: int, shown: set[str]) -> Iterator[str]:
    x = _MARGIN
    for state, meaning in _LEGEND:
        if state not in shown:
            continue
        yield _dot(state, x + 8, y - 5) + _text(x + 24, y, "soft", meaning)
        x += 48 + round(len(meaning) * 7.2)


def _text(x: float, y: int, kind: str, text: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y}">{escape(text)}</text>'


def _cut(text: str, room: float) -> str:
    most, text = int(room / _CHARACTER), " ".join(text.split())
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

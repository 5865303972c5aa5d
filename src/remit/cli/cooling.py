"""`remit cooling`: keys and models on cooldown after a failure, and how to clear it."""

import asyncio
import os

from cyclopts import App
from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, emit, now, opened_workspace, out
from remit.cli.terminal import Rows
from remit.core.recovery import Resting, key_mark
from remit.report import wire
from remit.report.figures import count, duration
from remit.report.printable import escaped

app = App(name="cooling", help="List provider keys and models that are paused after a failure; end the pause.")


@app.default
def listing(*, place: Where = HERE, json: AsJson = False) -> None:
    """List provider keys and models that are paused after a provider refused, limited or could not serve them.

    remit identifies a key by a digest of its value, so a corrected key is not paused. If an environment variable here
    holds the key, its name is shown next to the digest. The key itself is never printed.

    Parameters
    ----------
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        found, at = asyncio.run(workspace.keys.cooling.list()), now()
    names = _names_here() if any(one.key for one in found) else {}
    if json:
        emit([{**wire.resting(one), "key_name": _key_name(one, names)} for one in found])
    elif not found:
        out().print(Text("no key or model is paused", "dim"))
    else:
        rows = [[*_what(one, names), one.kind or "", str(one.failures), duration(one.until - at)] for one in found]
        out().print(Rows(("key", "model", "endpoint", "after", "failures", "rests"), rows, left=4))


@app.command
def clear(what: str = "", *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Use paused keys and models again at once.

    Parameters
    ----------
    what
        A model, an endpoint such as openai, the digest of a key, or the variable that holds it. [default: everything]
    json
        Print the number of cleared pauses as JSON.
    """
    marks = [mark for mark, name in _names_here().items() if name == what] if what else []
    with opened_workspace(place) as workspace:
        done = asyncio.run(workspace.keys.cooling.clear(marks[0] if marks else what, **act.said))
    if json:
        emit({"cleared": done})
    else:
        out().print(Text(f"{count(done, 'pause')} ended" if done else "no pause matches; nothing changed"))


def _what(one: Resting, names: dict[str, str]) -> list[Text | str]:
    name = _key_name(one, names)
    mark = one.key.partition("#")[2] or one.key
    key = f"{name} ({mark})" if name else mark
    return [Text(escaped(key, 80), "bold"), escaped(one.model or "every model", 80), escaped(one.endpoint, 80)]


def _key_name(one: Resting, names: dict[str, str]) -> str:
    own = one.key.partition("#")
    return own[0] if own[1] else names.get(one.key, "")


def _names_here() -> dict[str, str]:
    """Return the environment variables by the digests of their values."""
    return {key_mark(value): name for name, value in sorted(os.environ.items(), reverse=True) if value}

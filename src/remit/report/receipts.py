"""Context receipts in the journal: which slices of context a turn saw and why, and what was withheld from it."""

from typing import Final, TypeAlias, cast

from remit.core.receipt import Slice, Why
from remit.core.records import NamedTuple
from remit.core.values import Json

Receipt: TypeAlias = dict[str, Json]
_PASSED_ON: Final = frozenset[Why](("passed", "dependency", "message"))


class Withheld(NamedTuple):
    """A piece of context that was withheld from a turn."""

    what: str
    why: str


def saw(receipt: Receipt) -> list[Slice]:
    """Return the slices; if there are very many, the first ones."""
    rows = cast("list[tuple[str, Why, int, int, str]]", receipt.get("saw", []))
    return [Slice(*row) for row in rows]


def passed_on(receipt: Receipt) -> list[str]:
    """Return the names of what other agents gave the turn next to its task: entries, results, messages, each once."""
    return list(dict.fromkeys(part.what for part in saw(receipt) if part.why in _PASSED_ON))


def withheld(receipt: Receipt) -> list[Withheld]:
    return [Withheld(*row) for row in cast("list[tuple[str, str]]", receipt.get("withheld", []))]


def tokens(receipt: Receipt) -> int:
    """Return the number of tokens that the turn saw."""
    return _figure(receipt, "tokens")


def slices(receipt: Receipt) -> int:
    """Return the number of slices, including unlisted ones."""
    return len(saw(receipt)) + _figure(receipt, "unlisted")


def _figure(receipt: Receipt, name: str) -> int:
    return cast("int", receipt.get(name, 0))

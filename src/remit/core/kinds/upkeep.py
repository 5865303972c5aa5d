"""Events of upkeep: which runs were deleted, and the facts that are kept about them."""

from typing import Final, NotRequired, cast

from remit.core.events import Gap, Unsealed
from remit.core.identity import UsedKey
from remit.core.records import TypedDict
from remit.core.values import Json


class PrunedRun(TypedDict):
    """The facts that are kept about a deleted run; `messages` are the ids of its messages, `questions` of its
    questions."""

    id: str
    agent: str
    session: str
    task: str
    state: str
    asked_at: int
    ended_at: int | None
    tasks: list[str]
    messages: NotRequired[list[str]]
    questions: NotRequired[list[str]]


class RunsPruned(TypedDict):
    """The data of `runs.pruned`: the kept facts of each run, and the gaps that the removal leaves in the journal: the
    first and the last missing number, and the hash of the last."""

    runs: list[PrunedRun]
    gaps: list[tuple[int, int, str]]
    by: NotRequired[str]


def runs_pruned(runs: list[PrunedRun], gaps: list[Gap], now: int, by: str = "") -> Unsealed:
    data: dict[str, Json] = {"runs": cast("list[Json]", [*runs]), "gaps": [[*gap] for gap in gaps]}
    if by:
        data["by"] = by
    return Unsealed("runs.pruned", now, data)


class KeysKept(TypedDict):
    """The data of `keys.kept`: the idempotency keys of pruned runs, as rows."""

    keys: list[list[Json]]


def keys_kept(keys: list[UsedKey], now: int) -> Unsealed:
    return Unsealed("keys.kept", now, {"keys": [[*key] for key in keys]})


class JournalCut(TypedDict):
    """The data of `journal.cut`: the gaps that the removal leaves in the journal, as in `runs.pruned`; the addresses of
    removed entries whose last version is forgotten, and `floor`, the highest counted version that was ever forgotten.
    New entries at these addresses get higher versions."""

    gaps: list[tuple[int, int, str]]
    forgotten: list[tuple[str, str]]
    floor: int


def journal_cut(gaps: list[Gap], forgotten: list[tuple[str, str]], floor: int, now: int) -> Unsealed:
    where: list[Json] = [[*address] for address in forgotten]
    data: dict[str, Json] = {"gaps": [[*gap] for gap in gaps], "forgotten": where, "floor": floor}
    return Unsealed("journal.cut", now, data)


SHAPES: Final[dict[str, type]] = {
    "runs.pruned": RunsPruned,
    "keys.kept": KeysKept,
    "journal.cut": JournalCut,
}

"""Events of upkeep: what was deleted, and what stays known of it."""

from typing import NotRequired, TypedDict, cast

from remit.core.events import Gap, Unsealed
from remit.core.identity import UsedKey
from remit.core.values import Json


class PrunedRun(TypedDict):
    """What is told of a run whose records are deleted; `messages` are those that were sent in it, `questions`
    what was asked in it."""

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
    """The data of `runs.pruned`: what is told of each run, and where the journal has gaps now: the first and the last
    number that is missing, and the hash of the last."""

    runs: list[PrunedRun]
    gaps: list[tuple[int, int, str]]
    by: NotRequired[str]


def runs_pruned(runs: list[PrunedRun], gaps: list[Gap], now: int, by: str = "") -> Unsealed:
    data: dict[str, Json] = {"runs": cast("list[Json]", [*runs]), "gaps": [[*gap] for gap in gaps]}
    if by:
        data["by"] = by
    return Unsealed("runs.pruned", now, data)


class KeysKept(TypedDict):
    """The data of `keys.kept`: the idempotency keys that were used in runs that are pruned, as rows."""

    keys: list[list[Json]]


def keys_kept(keys: list[UsedKey], now: int) -> Unsealed:
    return Unsealed("keys.kept", now, {"keys": [[*key] for key in keys]})


class JournalCut(TypedDict):
    """The data of `journal.cut`: where the journal has gaps now, which removed entries are forgotten, and up to which
    version entries may have been counted that are."""

    gaps: list[tuple[int, int, str]]
    forgotten: list[tuple[str, str]]
    floor: int


def journal_cut(gaps: list[Gap], forgotten: list[tuple[str, str]], floor: int, now: int) -> Unsealed:
    where: list[Json] = [[*address] for address in forgotten]
    data: dict[str, Json] = {"gaps": [[*gap] for gap in gaps], "forgotten": where, "floor": floor}
    return Unsealed("journal.cut", now, data)

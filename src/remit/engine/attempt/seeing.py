"""Who sees which artifact, and which ones a value may refer to.

An agent sees an artifact if it saved it in this task, or if it was given a value with the reference: an entry that it
sees, the result of a task that it asked for, the data handed over to it, or the text of its task. A value can only
contain references that its author sees, so an agent that knows a digest cannot make itself a value with it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, TypeAlias, cast

from remit.core.artifact import BINARY, Artifact, digests_in, references
from remit.core.entry import Entry
from remit.core.events import Event, read
from remit.core.kinds.sharing import ArtifactData
from remit.core.kinds.tasks import EndData, FirstData, Handed
from remit.core.remit import STAND_IN, task_of
from remit.core.trust import least
from remit.core.values import Json
from remit.engine.attempt.live import LiveTask
from remit.errors import NotFound, Refused
from remit.ports import ArtifactRow, View

_SAVED: Final = "artifact.saved"
SeesEntry: TypeAlias = Callable[[str, str, Entry | None], bool]


def rows_seen(view: View, live: LiveTask, digest: str, now: int) -> list[ArtifactRow]:
    """Return the references by which the holder sees an artifact; none if it does not see it. The names and the trust
    labels of other references are left out, because they would tell it what it was not given."""
    rows, task = view.artifact_rows(digest), live.remit.id
    given = [row for row in rows if _is_given(view, live, row, now)]
    if given or not rows:
        return given
    for one in (one for value in _handed_over(live) for one in references(value) if one.digest == digest):
        handed = [row for row in rows if row.kind == "task.handed" and row.task == task]
        return [row._replace(name=one.name, media_type=one.media_type) for row in handed or rows]
    if digest in live.artifacts or (digest in digests_in(live.remit.task) and _had_asker(view, task, digest)):
        return [row._replace(name="artifact", media_type=BINARY) for row in rows]
    return []


def _is_given(view: View, live: LiveTask, row: ArtifactRow, now: int) -> bool:
    if row.kind != "entry.set":
        return _was_given(view, row, live.remit.id, live.remit.holder)
    return _is_in_entry(view, live.sees, row, now)


def _is_in_entry(view: View, sees: SeesEntry, row: ArtifactRow, now: int) -> bool:
    """Whether the entry of this reference still exists, may be seen (`sees`), and still contains the reference."""
    entry = view.entry(row.namespace, row.key)
    if entry is None or not entry.alive(now) or not sees(row.namespace, row.key, entry):
        return False
    return any(one.digest == row.digest for one in references(entry.value))


def _was_given(view: View, row: ArtifactRow, task: str, holder: str) -> bool:
    """Whether the event of this reference gave an artifact to the holder of a task. It did if the holder saved the
    artifact in the task, or got it in the result of a task that it requested. A text result gives the artifacts that
    its author saved and that the text names."""
    if row.kind == _SAVED and row.task == task:
        return row.agent == holder
    if row.kind not in (_SAVED, "task.completed"):
        return False
    record = view.record(row.task)
    if record is None or record.parent != task:
        return False
    first = view.event(record.began)
    if first is None or read(first, FirstData)["asker"] not in (holder, STAND_IN):
        return False
    return row.kind != _SAVED or _names(view.event(record.ended or 0), row)


def _names(ended: Event | None, row: ArtifactRow) -> bool:
    """Whether the result of a task is a text of the agent that saved an artifact, and names it."""
    if ended is None or ended.kind != "task.completed" or ended.agent != row.agent:
        return False
    result = read(ended, EndData).get("result")
    return isinstance(result, str) and row.digest in digests_in(result)


def _handed_over(live: LiveTask) -> list[Json]:
    """Return the values that came with a handoff."""
    handoff = live.handoff
    return [handoff.state.data(), *(one.value for one in handoff.results)]


def _had_asker(view: View, task: str, digest: str) -> bool:
    """Whether the asker that wrote the text of a task saw this artifact. A person sees all artifacts. A caller from
    outside that acts as a card, without a task of its own, sees those that it saved."""
    record = view.record(task)
    first = view.event(record.began) if record is not None else None
    if first is None:
        return False
    data = read(first, FirstData)
    if _sent_by(view, digest, str(first.data.get("by", ""))):
        return True
    if not data["parent"]:
        return not data["asker"]
    parent, asker = data["parent"], data["asker"]
    for row in view.artifact_rows(digest):
        if _was_given(view, row, parent, asker):
            return True
        if row.kind == "task.handed" and row.task == parent:
            handed = view.event(row.seq)
            if handed is not None and read(handed, Handed)["to"] == asker:
                return True
    above = view.record(parent)
    began = view.event(above.began) if above is not None else None
    return (
        began is not None and digest in digests_in(task_of(read(began, FirstData))) and _had_asker(view, parent, digest)
    )


def _sent_by(view: View, digest: str, caller: str) -> bool:
    """Whether a caller from outside has saved this artifact, in no task."""
    rows = [row for row in view.artifact_rows(digest) if row.kind == _SAVED and not row.task] if caller else []
    return any(
        event is not None and event.data.get("by") == caller for event in map(view.event, (row.seq for row in rows))
    )


def unseen(live: LiveTask, digest: str) -> Refused:
    """Record in the receipt that an artifact was withheld, and return the refusal. The refusal is the same if no such
    artifact exists."""
    live.receipt.withhold(f"artifact {digest[:19]}", "asked for, not passed")
    return _not_visible(live.remit.holder, digest)


def _not_visible(holder: str, digest: str) -> Refused:
    sentence = (
        f"'{holder}' does not see the artifact {digest}; its asker can pass it in the task, in a handoff, "
        "or in an entry with sees=[...]"
    )
    return Refused(sentence, rule="not-visible")


def carried_by(view: View, live: LiveTask | None, found: list[Artifact], now: int) -> list[ArtifactData]:
    """Return the data of the artifacts in a value, for the event that records the value. Raise `Refused` if the value's
    author does not see one of them. `live` is the author's task; None means the owner, who sees all artifacts."""
    carried: list[ArtifactData] = []
    for one in found:
        rows = view.artifact_rows(one.digest) if live is None else rows_seen(view, live, one.digest, now)
        if not rows:
            raise unseen(live, one.digest) if live is not None else _none(one.digest)
        carried.append(_artifact_data(one, rows))
    return carried


def carried_by_card(view: View, card: str, sees: SeesEntry, found: list[Artifact], now: int) -> Generator[ArtifactData]:
    """Yield the data of the artifacts in a value whose author is a card without a task. The card sees only artifacts in
    entries that it sees. Raise `Refused` if it does not see one of them."""
    for one in found:
        rows = [row for row in view.artifact_rows(one.digest) if row.kind == "entry.set"]
        given = [row for row in rows if _is_in_entry(view, sees, row, now)]
        if not given:
            raise _not_visible(card, one.digest)
        yield _artifact_data(one, given)


def _artifact_data(one: Artifact, rows: list[ArtifactRow]) -> ArtifactData:
    return cast("ArtifactData", {**one.data(), "size": rows[0].size, "trust": least(row.trust for row in rows)})


def _none(digest: str) -> NotFound:
    return NotFound(f"there is no artifact {digest}; save it first: await workspace.artifacts.save(...)")

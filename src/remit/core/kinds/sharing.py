"""Events of shared data: context entries, messages and artifacts."""

from typing import Final, NotRequired, cast

from remit.core.entry import Entry, Message, Writer
from remit.core.events import Place, Unsealed
from remit.core.records import TypedDict
from remit.core.trust import TRUSTED, Trust
from remit.core.values import Json


class ArtifactData(TypedDict):
    """A reference to an artifact, as events have it: with the trust label of its content."""

    digest: str
    size: int
    name: str
    media_type: str
    trust: Trust


class EntrySet(TypedDict):
    """The data of `entry.set`; `by` is the person who wrote it, if one is named. `artifacts` are those that the value
    refers to."""

    chain: list[str]
    created_at: int
    digest: str
    expires_at: int | None
    extension: int | None
    key: str
    namespace: str
    trust: Trust
    value: Json
    version: int
    by: NotRequired[str]
    artifacts: NotRequired[list[ArtifactData]]


def entry_set(entry: Entry, at: Place, by: str = "", artifacts: tuple[ArtifactData, ...] = ()) -> Unsealed:
    data: dict[str, Json] = {
        "chain": list(entry.chain),
        "created_at": entry.created_at,
        "digest": entry.digest,
        "expires_at": entry.expires_at,
        "extension": entry.extension,
        "key": entry.key,
        "namespace": entry.namespace,
        "trust": entry.trust,
        "value": entry.value,
        "version": entry.version,
    }
    if by:
        data["by"] = by
    if artifacts:
        data["artifacts"] = cast("Json", [*artifacts])
    return Unsealed("entry.set", entry.updated_at, data, at.run, at.session, at.task, entry.agent)


class EntryTouched(TypedDict):
    """The data of `entry.touched`: the address of an entry whose expiry was extended, and its new expiry."""

    expires_at: int | None
    key: str
    namespace: str
    by: NotRequired[str]


def entry_touched(entry: Entry, by: Writer, at: Place, now: int) -> Unsealed:
    data: dict[str, Json] = {"expires_at": entry.expires_at, "key": entry.key, "namespace": entry.namespace}
    if by.person:
        data["by"] = by.person
    return Unsealed("entry.touched", now, data, at.run, at.session, at.task, by.agent)


class EntriesRemoved(TypedDict):
    """The data of `entries.removed`: namespace, key and last version of each removed entry."""

    keys: list[tuple[str, str, int]]
    why: str
    by: NotRequired[str]


def entries_removed(keys: list[tuple[str, str, int]], why: str, by: Writer, at: Place, now: int) -> Unsealed:
    data: dict[str, Json] = {"keys": [[*key] for key in keys], "why": why}
    if by.person:
        data["by"] = by.person
    return Unsealed("entries.removed", now, data, at.run, at.session, at.task, by.agent)


class MessageSent(TypedDict):
    """The data of `message.sent`; `reader` and `about` are there for a result message, `trust` for an untrusted one."""

    id: str
    text: str
    to: str
    reader: NotRequired[str]
    about: NotRequired[str]
    trust: NotRequired[Trust]


def message_sent(message: Message, at: Place) -> Unsealed:
    data: dict[str, Json] = {"id": message.id, "text": message.text, "to": message.to}
    if message.reader:
        data |= {"reader": message.reader, "about": message.about}
    if message.trust != TRUSTED:
        data["trust"] = message.trust
    return Unsealed("message.sent", message.sent_at, data, at.run, message.session, at.task, message.sender)


class MessagesTaken(TypedDict):
    """The data of `messages.taken`: the ids of the messages that an agent has read."""

    ids: list[str]


def messages_taken(ids: list[str], agent: str, at: Place, now: int) -> Unsealed:
    return Unsealed("messages.taken", now, {"ids": list(ids)}, at.run, at.session, at.task, agent)


class ArtifactSaved(TypedDict):
    """The data of `artifact.saved`; `by` is the person who saved it, if one is named."""

    artifacts: list[ArtifactData]
    by: NotRequired[str]


def artifact_saved(artifact: ArtifactData, by: Writer, at: Place, now: int) -> Unsealed:
    data: dict[str, Json] = {"artifacts": [cast("Json", artifact)]}
    if by.person:
        data["by"] = by.person
    return Unsealed("artifact.saved", now, data, at.run, at.session, at.task, by.agent)


SHAPES: Final[dict[str, type]] = {
    "entry.set": EntrySet,
    "entry.touched": EntryTouched,
    "entries.removed": EntriesRemoved,
    "message.sent": MessageSent,
    "messages.taken": MessagesTaken,
    "artifact.saved": ArtifactSaved,
}

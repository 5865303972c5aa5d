"""Shared data: entries, each with an author, a version and an expiry, and messages between agents of one run."""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from remit.core.records import NamedTuple, dataclass
from remit.core.scope import KEY_LIMIT, NAMESPACE_LIMIT
from remit.core.times import DAY, aware, span
from remit.core.trust import TRUSTED, Trust, key_told, known_trust, prompt_text
from remit.core.values import Json, checked, decode, digest, encode, plain, shown, summary
from remit.errors import BadInput, Conflict

MEMORY: Final = 90 * DAY
_BLIND: Final = 2**51  # twice as much is still exact in every JSON parser (53 bits)


class Entry(NamedTuple):
    """A value under a namespace and a key. `extension` is set on memory entries, in microseconds: a read moves their
    expiry to that long after the read.

    Times are microseconds since 1970; `created`, `updated` and `expires` are the same as datetimes. An entry is a named
    tuple, so a JSON encoder writes a list; `remit.report.wire.entry` returns an object.
    """

    namespace: str
    key: str
    value: Json
    agent: str
    created_at: int
    updated_at: int
    expires_at: int | None
    version: int
    digest: str
    extension: int | None = None
    trust: Trust = "trusted"
    task: str = ""
    chain: tuple[str, ...] = ()

    def alive(self, now: int) -> bool:
        return self.expires_at is None or self.expires_at > now

    @property
    def text(self) -> str:
        """The value as text: a string as it is, any other value as JSON."""
        return self.value if isinstance(self.value, str) else encode(self.value)

    @property
    def created(self) -> datetime:
        return aware(self.created_at)

    @property
    def updated(self) -> datetime:
        return aware(self.updated_at)

    @property
    def expires(self) -> datetime | None:
        return None if self.expires_at is None else aware(self.expires_at)

    def __repr__(self) -> str:
        return f"<Entry {self.namespace}/{self.key} v{self.version} by {self.agent or 'person'}: {shown(self.value)}>"


class Writer(NamedTuple):
    """The author of a write: the agent, its task, and the chain that asked for it. `person` is set if a person writes
    in the owner's name."""

    agent: str
    task: str = ""
    chain: tuple[str, ...] = ()
    person: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that is to be written. Creating a draft checks its address, value, trust label and `expect`, before the
    store is read. `lifetime` is in microseconds; None means that the entry never expires. With `extend`, a read
    restarts the lifetime. `expect` is the version that the current entry must have, or 0 if no entry may exist; None
    skips this check."""

    namespace: str
    key: str
    value: Json
    lifetime: int | None = None
    extend: bool = False
    trust: Trust = "trusted"
    expect: int | None = None

    if TYPE_CHECKING:  # what callers may pass: any object that has a form in JSON

        def __init__(
            self,
            namespace: str,
            key: str,
            value: object,
            lifetime: int | None = None,
            extend: bool = False,
            trust: Trust = "trusted",
            expect: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        address(self.namespace, self.key)
        object.__setattr__(self, "value", checked(self.value, "a value"))
        known_trust(self.trust)
        _expected(self.expect)


def _expected(version: object) -> None:
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise BadInput(f"expect is the version you read, or 0 for 'not there yet', not {shown(version)}")


def address(namespace: object, key: object) -> None:
    plain(namespace, "a namespace", NAMESPACE_LIMIT)
    plain(key, "a key", KEY_LIMIT)


def lifetime(ttl: object) -> int | None:
    """Return a lifetime in microseconds, from seconds as a caller writes them; None means that the entry never
    expires."""
    return None if ttl is None else span(ttl, "ttl")


class Retired(NamedTuple):
    """The versions that a new entry must not reuse at an address without an entry. `version` is the last version at
    this address; 0 if there was none or it is no longer stored. `floor` is the highest version among the removed
    entries of the workspace whose versions were deleted when the journal was cut."""

    version: int = 0
    floor: int = 0


NEVER: Final = Retired()


def after_write(old: Entry | None, draft: Draft, by: Writer, now: int, retired: Retired = NEVER) -> Entry:
    """Return the entry after a write. Raise `Conflict` if `draft.expect` is another version than the current one.

    A retired version is never used again.
    """
    living = old is not None and old.alive(now)
    current = old.version if old is not None and living else 0
    if draft.expect is not None and draft.expect != current:
        where = f"{draft.namespace}/{draft.key}"
        raise Conflict(f"{where} is at version {current}, not {draft.expect}; read it again and decide again")
    created_at = old.created_at if old is not None and living else now
    return _new_entry(draft, by, now, created_at, (old.version if old is not None else max(retired)) + 1)


def counts_up(version: int) -> bool:
    """Whether a version was counted up; False for the version of a write by an agent that may not read the address (see
    `written_blind`)."""
    return version < _BLIND


def written_blind(draft: Draft, by: Writer, now: int, op: str) -> Entry:
    """Return the entry after a write by an agent that may not read the address. The entry depends on nothing that is
    stored there. Its version comes from the operation id and is far above counted versions, so that it reveals nothing
    and is never reused."""
    return _new_entry(draft, by, now, now, _BLIND + int(digest(op), 16) % _BLIND)


def _new_entry(draft: Draft, by: Writer, now: int, created_at: int, version: int) -> Entry:
    return Entry(
        namespace=draft.namespace,
        key=draft.key,
        value=draft.value,
        agent=by.agent,
        created_at=created_at,
        updated_at=now,
        expires_at=None if draft.lifetime is None else now + draft.lifetime,
        version=version,
        digest=digest(draft.value if isinstance(draft.value, str) else encode(draft.value)),
        extension=draft.lifetime if draft.extend else None,
        trust=draft.trust,
        task=by.task,
        chain=by.chain,
    )


def touched(entry: Entry | None, by: int, now: int) -> Entry | None:
    """Return the entry with its expiry moved to `by` microseconds after `now`. Return the same object if it expires
    later or never, and None if no live entry exists."""
    if entry is None or not entry.alive(now):
        return None
    if entry.expires_at is None or entry.expires_at >= now + by:
        return entry
    return entry._replace(expires_at=now + by)


def read_extends(entry: Entry, now: int) -> int | None:
    """Return how many microseconds after `now` the entry expires because of a read, as `touched` takes them, or None if
    the read does not extend it. Only memory entries are extended, and untrusted ones never.

    Gains below a thousandth of the extension are skipped, so that a loop of reads is not a loop of writes.
    """
    if entry.extension is None or entry.trust == "untrusted" or entry.expires_at is None:
        return None
    gain = now + entry.extension - entry.expires_at
    return entry.extension if gain > entry.extension // 1000 else None


def structured(entry: Entry) -> Json:
    """Return the value as JSON; a text is parsed. Raise `BadInput` if it is not JSON."""
    if not isinstance(entry.value, str):
        return entry.value
    try:
        return checked(decode(entry.value), f"{entry.namespace}/{entry.key}")
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{entry.namespace}/{entry.key} is not JSON ({error}): {shown(entry.value)}") from error


def rendered(entry: Entry) -> str:
    """Return the value for a prompt. Untrusted text is quoted, so that no part of it can pose as the prompt."""
    return prompt_text(entry.text, entry.trust)


def snapshot(entries: list[Entry]) -> str:
    """Return the entries of a board as text, sorted by key, with authors. Each entry is one line, so that none can pose
    as another."""
    return "\n".join(_entry_line(entry) for entry in sorted(entries, key=lambda e: e.key))


def _entry_line(entry: Entry) -> str:
    said = f"{key_told(entry.key)} ({entry.agent or 'person'}): {summary(entry.text)}"
    return said if entry.trust == TRUSTED else f"> {said} [from outside, quoted as data]"


@dataclass(frozen=True, slots=True)
class Message:
    """A message to an agent's inbox in the same run, delivered once.

    A result message reports the end of task `about`, to the holder of task `reader` only. `trust` is the label of the
    sender's input.
    """

    id: str
    session: str
    sender: str
    to: str
    text: str
    sent_at: int
    reader: str = ""
    about: str = ""
    trust: Trust = TRUSTED

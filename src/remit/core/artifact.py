"""Artifacts: references to files, and where they occur in values and texts."""

from dataclasses import dataclass
from typing import Final, cast

from remit.core.patterns import pattern
from remit.core.values import INT_LIMIT, Json, decode, encode, plain, shown
from remit.errors import BadInput

NAME_LENGTH: Final = 200  # characters; with a suffix, every file system takes as many
BINARY: Final = "application/octet-stream"
_TYPE_LENGTH: Final = 127
_PREFIX: Final = "sha256:"
_DIGEST: Final = pattern(r"sha256:[0-9a-f]{64}")
_TYPE: Final = pattern(r"[a-zA-Z0-9!#$&^_.+-]{1,64}/[a-zA-Z0-9!#$&^_.+-]{1,64}")
_LONGEST: Final = 2_000  # characters of a reference as JSON
_FIELDS: Final = frozenset(("digest", "size", "name", "media_type"))


@dataclass(frozen=True, slots=True)
class Artifact:
    """A reference to a file that remit stores: the digest of its content (`sha256:` and 64 hex digits), its size in
    bytes, its name and its media type.

    In an entry, a result or a handoff, the reference is a JSON object. `str(artifact)` is the same JSON as text, so you
    can write it into a task. Only an agent that has been given the reference can open the file.
    """

    digest: str
    size: int
    name: str
    media_type: str = BINARY

    def __post_init__(self) -> None:
        digest_of(self.digest)
        if self.size.__class__ is not int or not 0 <= self.size <= INT_LIMIT:
            raise BadInput(f"the size of an artifact is a number of bytes, not {shown(self.size)}")
        file_name(self.name)
        media_type(self.media_type)

    def __str__(self) -> str:
        return encode(self.data())

    def data(self) -> dict[str, Json]:
        """Return the reference as JSON."""
        return {"digest": self.digest, "size": self.size, "name": self.name, "media_type": self.media_type}


def digest_of(given: object) -> str:
    """Return the digest of an artifact, given as an `Artifact`, as its JSON, or as the digest itself. Raise `BadInput`
    for anything else."""
    found = given.digest if isinstance(given, Artifact) else given
    if isinstance(found, dict):
        found = cast("dict[str, object]", found).get("digest")
    if not isinstance(found, str) or not _DIGEST.fullmatch(found):
        raise BadInput(
            f"an artifact is what save() returned, or its digest: sha256: and 64 hex digits, not {shown(given)}"
        )
    return found


def file_name(name: object) -> str:
    """Return the name of an artifact. Raise `BadInput` if it is more than a file name: a path could lead anywhere."""
    checked = plain(name, "the name of an artifact", NAME_LENGTH)
    if not checked.isprintable() or checked in (".", "..") or "/" in checked or "\\" in checked:
        raise BadInput(f"the name of an artifact is a file name without a folder, not {shown(checked)}")
    return checked


def media_type(given: object) -> str:
    """Return the given media type, such as `text/plain`. Raise `BadInput` if it is not a media type."""
    checked = plain(given, "a media type", _TYPE_LENGTH)
    if not _TYPE.fullmatch(checked):
        raise BadInput(f"a media type is written like text/plain or image/png, not {shown(checked)}")
    return checked


def references(value: Json) -> list[Artifact]:
    """Return the artifacts that a value refers to, each digest once. A reference is an object with exactly the fields
    of an `Artifact`."""
    found: dict[str, Artifact] = {}
    _collect(value, found)
    return [*found.values()]


def _collect(value: Json, found: dict[str, Artifact]) -> None:
    if isinstance(value, list):
        for item in value:
            _collect(item, found)
    elif isinstance(value, dict):
        if (reference := _reference(value)) is not None:
            found.setdefault(reference.digest, reference)
            return
        for item in value.values():
            _collect(item, found)


def _reference(value: dict[str, Json]) -> Artifact | None:
    if value.keys() != _FIELDS or not str(value["digest"]).startswith(_PREFIX):
        return None
    try:
        return Artifact(**cast("dict[str, str]", value))  # pyright: ignore[reportArgumentType] - checked there
    except BadInput:
        return None


def digests_in(text: str) -> set[str]:
    """Return the digests that a text mentions."""
    return {*_DIGEST.findall(text)} if _PREFIX in text else set()


def reference_in(text: str, digest: str) -> Artifact | None:
    """Return the artifact whose JSON, as `str(artifact)` writes it, surrounds the first occurrence of `digest` in the
    text. Return None if there is no such JSON. Raise `ValueError` if the digest does not occur in the text."""
    at = text.index(digest)
    start, end = text.rfind("{", max(0, at - _LONGEST), at), text.find("}", at, at + _LONGEST)
    if start < 0 or end < 0:
        return None
    try:
        return next(iter(references(decode(text[start : end + 1]))), None)
    except (ValueError, RecursionError):
        return None

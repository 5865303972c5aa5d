"""Scopes: which stored context may be read. A scope is a namespace, a prefix of its keys, or one key; always literal
text."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from remit.core.allow import ANY, Unbounded, as_set
from remit.core.checks import whole
from remit.core.records import dataclass
from remit.core.values import digest, plain, shown
from remit.errors import BadInput

NAMESPACE_LIMIT = 64
MOST_PASSED: Final = 64  # scopes that one pass names
KEY_LIMIT = 128
BOARD_PREFIX: Final = "board:"


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of the stored context. `Scope("codebase")` is the whole namespace, `prefix=` a part of it, `key=` one
    entry, and `version=` that entry only while it has this version."""

    namespace: str
    key: str | None = None
    prefix: str = ""
    version: int | None = None

    def __post_init__(self) -> None:
        plain(self.namespace, "a namespace", NAMESPACE_LIMIT)
        plain(self.prefix, "a prefix", KEY_LIMIT, empty=True)
        if self.key is not None:
            plain(self.key, "a key", KEY_LIMIT)
            if self.prefix:
                raise BadInput("a scope has a key or a prefix, not both")
        if self.version is not None:
            whole(self.version, "a version", least=1)
            if self.key is None:
                raise BadInput("a version belongs to one key; pass key= as well")

    def covers(self, namespace: str, key: str, version: int | None = None) -> bool:
        """Whether the scope includes that entry at that version; without a version, at any."""
        if namespace != self.namespace or (self.version is not None and version != self.version):
            return False
        return key == self.key if self.key is not None else key.startswith(self.prefix)

    def __and__(self, other: "Scope") -> "Scope | None":
        """Return the part that both cover: one of the two, or None. Scopes are nested or disjoint."""
        if other.contains(self):
            return self
        return other if self.contains(other) else None

    def contains(self, other: "Scope") -> bool:
        if other.namespace != self.namespace:
            return False
        if other.key is not None:
            return self.covers(other.namespace, other.key, other.version)
        return self.key is None and other.prefix.startswith(self.prefix)

    @property
    def written(self) -> str:
        """The scope for a prompt: a namespace, one key of it, or a prefix of its keys."""
        if self.key is not None:
            return f"{self.namespace}/{self.key}"
        return f"{self.namespace}/{self.prefix}*" if self.prefix else self.namespace

    @property
    def address(self) -> "Scope":
        """The same scope for any version."""
        return self if self.version is None else of_key(self.namespace, self.key or "")

    def __str__(self) -> str:
        if self.key is not None:
            spelled = key_spelled(self.namespace, self.key)
            return spelled if self.version is None else f"{spelled}*v{self.version}"
        return f"{_escaped(self.namespace, '/')}/{_escaped(self.prefix, '*')}*"


def key_spelled(namespace: str, key: str) -> str:
    """Return the text of one key's scope without creating the scope: every entry that is read is named on a receipt."""
    return f"{_escaped(namespace, '/')}/{_escaped(key, '*')}"


def of_key(namespace: str, key: str, version: int | None = None) -> Scope:
    """Return the scope of one key that has been checked already."""
    made = object.__new__(Scope)
    put = object.__setattr__
    put(made, "namespace", namespace)
    put(made, "key", key)
    put(made, "prefix", "")
    put(made, "version", version)
    return made


def _escaped(text: str, mark: str) -> str:
    """Return a text with `mark` and the backslash escaped, so that no two scopes share a spelling."""
    if mark not in text and "\\" not in text:
        return text
    return text.replace("\\", "\\\\").replace(mark, f"\\{mark}")


Sees: TypeAlias = frozenset[Scope] | Literal[Unbounded.ANY]
SeesGiven: TypeAlias = "str | Scope | Iterable[str | Scope] | Unbounded"  # as callers write them
NOTHING: Final[frozenset[Scope]] = frozenset()

# Stands for the board of the current session; the engine fills in the session.
BOARD: Final = Scope(BOARD_PREFIX)


def scopes(given: object, what: str = "sees") -> Sees:
    """Return the scopes that a caller wrote. Text is a whole namespace, taken literally."""
    return normal(as_set(given, what, _scope))


def passed(given: object, what: str = "sees") -> Sees:
    """Return the scopes of a pass. Raise `BadInput` if there are more than `MOST_PASSED`."""
    found = scopes(given, what)
    if found is not ANY and len(found) > MOST_PASSED:
        raise BadInput(
            f"{what} lists {len(found):,} scopes, and a pass has at most {MOST_PASSED}; pass a prefix of the keys, "
            f'Scope("namespace", prefix="..."), or the whole namespace'
        )
    return found


def _scope(item: object) -> Scope:
    scope = item if isinstance(item, Scope) else Scope(plain(item, "a namespace", NAMESPACE_LIMIT))
    if scope.namespace.startswith(BOARD_PREFIX) and scope != BOARD:
        raise BadInput(
            f"namespace {shown(scope.namespace)} is a session's board; use remit.BOARD for your own session's"
        )
    return scope


def normal(sees: Sees) -> Sees:
    """Return the scopes without those that another one contains, so that equal sets are equal values."""
    if sees is ANY or len(sees) < 2:
        return sees
    wide = _Wide(sees)
    return frozenset(one for one in sees if not (_held_loosely(one, sees) or wide.above(one)))


def _held_loosely(one: Scope, sees: frozenset[Scope]) -> bool:
    """Whether `one` is a version of an entry that `sees` includes at any version."""
    return one.version is not None and one.address in sees


class _Wide:
    """The whole namespaces and prefixes among scopes, indexed by prefix: a lookup per prefix length replaces a
    comparison with every scope."""

    __slots__ = ("_lengths", "_prefixes")

    def __init__(self, sees: frozenset[Scope]) -> None:
        self._prefixes: set[tuple[str, str]] = set()
        self._lengths: set[int] = set()
        for one in sees:
            if one.key is None:
                self._prefixes.add((one.namespace, one.prefix))
                self._lengths.add(len(one.prefix))

    def above(self, one: Scope) -> bool:
        """Whether another of these scopes contains this one."""
        if not self._prefixes:
            return False
        # A prefix is contained in shorter ones only, not in itself; a key is contained in each of its prefixes.
        text, longest = (one.prefix, len(one.prefix) - 1) if one.key is None else (one.key, len(one.key))
        return any(length <= longest and (one.namespace, text[:length]) in self._prefixes for length in self._lengths)


def both(a: Sees, b: Sees) -> Sees:
    """Return the context that `a` and `b` both include."""
    if a is ANY:
        return b
    if b is ANY:
        return a
    if not a or not b:
        return NOTHING
    return normal((a - outside(a, b)) | (b - outside(b, a)))


def either(a: Sees, b: Sees) -> Sees:
    """Return the context that `a` or `b` includes."""
    if a is ANY or b is ANY:
        return ANY
    if not a:
        return b
    return normal(a | b) if b else a


def within(a: Sees, b: Sees) -> bool:
    """Whether `b` includes everything that `a` does."""
    if b is ANY:
        return True
    return a is not ANY and not outside(a, b)


def outside(a: frozenset[Scope], b: Sees) -> frozenset[Scope]:
    """Return the scopes of `a` that no scope of `b` contains."""
    if b is ANY:
        return NOTHING
    wide = _Wide(b)
    return frozenset(one for one in a if not (one in b or _held_loosely(one, b) or wide.above(one)))


def covers(sees: Sees, namespace: str, key: str, version: int | None = None) -> bool:
    return sees is ANY or any(scope.covers(namespace, key, version) for scope in sees)


def touches(sees: Sees, namespace: str, key: str) -> bool:
    """Whether any version of that entry is included."""
    return sees is ANY or any(scope.covers(namespace, key, scope.version) for scope in sees)


def parts(sees: Sees, wanted: Scope) -> list[Scope]:
    """Return the scopes, disjoint and in order, through which `sees` includes any part of `wanted`."""
    if sees is ANY:
        return [wanted]
    shared = both(sees, frozenset((wanted,)))
    assert shared is not ANY
    return sorted(shared, key=lambda scope: (scope.key or scope.prefix, scope.key is None))


def on_board(sees: Sees, session: str) -> Sees:
    """Return the scopes with BOARD replaced by the session's board."""
    if sees is ANY or BOARD not in sees:
        return sees
    return (sees - {BOARD}) | {board_of(session)}


@lru_cache(maxsize=256)
def board_of(session: str) -> Scope:
    return Scope(BOARD_PREFIX + session)


@lru_cache(maxsize=256)
def memory_of(agent: str) -> Scope:
    """Return the scope `memory:{agent}`. A name too long for a namespace is cut, with a digest added to keep it
    unique."""
    namespace = f"memory:{agent}"
    if len(namespace) > NAMESPACE_LIMIT:
        namespace = f"{namespace[: NAMESPACE_LIMIT - 17]}~{digest(agent)}"  # unambiguous: no agent name contains ~
    return Scope(namespace)


def restored(texts: list[str]) -> Sees:
    """Return the scopes that `scope_texts` wrote."""
    return ANY if texts == ["*"] else frozenset(_read(text) for text in texts)


def _read(text: str) -> Scope:
    """Return one scope from text: the namespace up to the first bare slash, then a key, or a prefix if it ends with a
    bare star. After a bare star a version may follow."""
    parts: list[list[str]] = [[]]
    starred = False
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            parts[-1].append(next(letters))
        elif letter == "/" and len(parts) == 1:
            parts.append([])
        elif letter == "*" and len(parts) == 2:
            starred = True
            parts.append([])
        else:
            parts[-1].append(letter)
    namespace, rest, version = ("".join(part) for part in (*parts, [])[:3])
    if version:
        return Scope(namespace, key=rest, version=int(version.removeprefix("v")))
    return Scope(namespace, prefix=rest) if starred else Scope(namespace, key=rest)


def scope_texts(sees: Sees) -> list[str]:
    """Return the scopes as text, for people and for the journal: '*' or the scopes in order."""
    return ["*"] if sees is ANY else sorted([str(s) for s in sees])

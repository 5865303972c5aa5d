"""Argument checks. Each raises `BadInput` with a message that says what is wrong and what to pass instead. Also the
signatures of functions whose keywords a `TypedDict` lists."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import Parameter, Signature
from types import FunctionType, MappingProxyType
from typing import Any, Final, TypeVar, cast

from remit.core.values import INT_LIMIT, plain, shown
from remit.errors import BadInput

T = TypeVar("T")
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

_TYPED: Final = 100  # characters; a longer word is no typo


def of_type(value: object, kind: type[T], what: str) -> T:
    """Return `value` if it is a `kind`, otherwise raise `BadInput`. `what` begins the message, for example "bounds
    takes Bounds(...)"."""
    if isinstance(value, kind):
        return value
    raise BadInput(f"{what}, not {shown(value)}")


def whole(given: object, what: str, *, least: int = 0) -> int | None:
    """Return a whole number of at least `least`, or None for no limit. Raise `BadInput` otherwise."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= INT_LIMIT:
        raise BadInput(f"{what} is a whole number of at least {least} or None, not {shown(given)}")
    return given


def counted(given: object, what: str, *, least: int = 0) -> int:
    """Return a whole number of at least `least`. Raise `BadInput` otherwise, also for None."""
    if given is None:
        raise BadInput(f"{what} is a whole number of at least {least}, not None")
    return cast("int", whole(given, what, least=least))


def patience(seconds: object, what: str) -> None:
    """Raise `BadInput` unless `seconds` is a time to wait: a number of seconds, 0 for no wait, or None to wait without
    limit."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (number and 0 <= cast("float", seconds) <= INT_LIMIT):
        raise BadInput(f"{what} is a number of seconds from 0, or None for as long as it takes, not {shown(seconds)}")


def yes_or_no(given: object, what: str) -> bool:
    """Return True or False. Raise `BadInput` for anything else, such as "off", 0 or None."""
    if not isinstance(given, bool):
        raise BadInput(f"{what} is True or False, not {shown(given)}")
    return given


def text_or_none(given: object, what: str, most: int) -> str | None:
    """Return the given text or None. Raise `BadInput` for anything else, and for a text of more than `most`
    characters."""
    return None if given is None else plain(given, what, most, empty=True)


def one_of(given: object, known: Sequence[str], what: str) -> str:
    """Return the word if it is one of `known`, otherwise raise `BadInput`."""
    if not isinstance(given, str) or given not in known:
        others = ", ".join(known[1:])
        raise BadInput(f"{what} is {known[0]} or one of {others}, not {shown(given)}{meant(given, known)}")
    return given


def items(given: object, what: str) -> list[object]:
    """Return the items of a list, a tuple or a set. Raise `BadInput` otherwise: a text or a mapping is no list of its
    parts. `what` begins the message, for example "query_many takes a list of namespaces"."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise BadInput(f"{what}, not {shown(cast('object', given))}")
    return list(cast("Iterable[object]", given))


def callable_(given: object, what: str) -> None:
    """Raise `BadInput` unless the value can be called; `what` begins the message."""
    if not callable(given):
        raise BadInput(f"{what}, not {shown(given)}")


def meant(given: object, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" with the known word that is close to the given one, or "" if none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - most programs make no such mistake

    near = get_close_matches(given, list(known), 1) if isinstance(given, str) and len(given) <= _TYPED else []
    return f"; did you mean {near[0]}?" if near else ""


def limit(given: object, *, most: int = 10_000) -> int:
    """Return the number of rows to list. Raise `BadInput` unless it is from 1 to `most`."""
    return between(given, "limit", 1, most)


def between(given: object, what: str, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`. Raise `BadInput` otherwise."""
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise BadInput(f"{what} is a whole number from {least} to {most:,}, not {shown(given)}")
    return given


# Keywords of other libraries, and ours for the same thing.
_ELSEWHERE: Final = {
    "seconds": "timeout",
    "time": "timeout",
    "ttl": "timeout",
    "wait": "busy_timeout",
    "deadline": "within",
    "bounds": "within",
    "limits": "within",
    "budget": "credits",
    "cost": "credits",
    "idempotency_key": "key",
    "retries": "attempts",
    "max_attempts": "attempts",
    "session_id": "session",
    "user": "by",
    "context": "sees",
    "reads": "sees",
    "parallel": "concurrency",
}


def refuse_strange(verb: str, how: Mapping[str, object], takes: Collection[str]) -> None:
    """Raise `BadInput` if `how` has a keyword that is not in `takes`. The message begins with `verb`, the name of the
    function, and names the keyword that was probably meant."""
    if strange := sorted(how.keys() - set(takes)):
        word = _ELSEWHERE.get(strange[0], "")
        hint = f"; did you mean {word}?" if word in takes else meant(strange[0], takes) or "."
        raise BadInput(f"{verb} takes no {shown(strange[0])}{hint} It takes {', '.join(sorted(takes))}")


def keywords(*takes: type | Callable[[], type]) -> Callable[[AnyFunction], AnyFunction]:
    """Return a decorator for a function with `**how: Unpack[Takes]`: `help()`, completion and `inspect.signature` show
    each keyword of these `TypedDict` classes as a parameter, and its default as `...`. A class that is imported late is
    given as a function that returns it."""

    def spell_out(function: AnyFunction) -> AnyFunction:
        cast("Any", function).__signature__ = _SpelledOut(cast("FunctionType", function), takes)
        return function

    return spell_out


class _LeftOut:
    """The default of a keyword that may be left out. Signatures show it as `...`, like type stubs."""

    def __repr__(self) -> str:
        return "..."


_LEFT_OUT: Final = _LeftOut()


class _SpelledOut(Signature):
    """A signature that is computed when it is read: to define a function must cost next to nothing."""

    __slots__ = ("_function", "_takes")

    def __init__(self, function: FunctionType, takes: tuple[type | Callable[[], type], ...]) -> None:
        super().__init__(return_annotation=function.__annotations__.get("return", Signature.empty))
        self._function = function
        self._takes = takes

    @property
    def parameters(self) -> MappingProxyType[str, Parameter]:
        """The parameters of the function without its `*` and `**` parameters, followed by the keywords of the
        `TypedDict` classes."""
        ours = self._function
        bare = FunctionType(ours.__code__, ours.__globals__, ours.__name__, ours.__defaults__, ours.__closure__)
        bare.__kwdefaults__, bare.__annotations__ = ours.__kwdefaults__, ours.__annotations__
        caught = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        written = Signature.from_callable(bare).parameters.values()
        found = {one.name: one for one in written if one.kind not in caught}
        for listed in self._takes:
            typed = listed if isinstance(listed, type) else listed()
            for name, hint in typed.__annotations__.items():
                kind = getattr(hint, "__forward_arg__", hint)  # a name that is only imported for type checkers
                found.setdefault(name, Parameter(name, Parameter.KEYWORD_ONLY, default=_LEFT_OUT, annotation=kind))
        return MappingProxyType(found)

    def replace(self, **changes: Any) -> Signature:
        """Return an ordinary signature with these changes. `inspect` calls this method to remove `self` from the
        signature of a method."""
        return Signature([*self.parameters.values()], return_annotation=self.return_annotation).replace(**changes)

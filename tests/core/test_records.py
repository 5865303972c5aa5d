"""Named tuples, typed dictionaries, frozen dataclasses and cached properties are those of Python, made faster."""

import copy
import dataclasses
import functools
import inspect
import pickle
import sys
import typing
from dataclasses import field
from typing import Any, Generic, NotRequired, Required, TypeVar

import pytest

from remit.core.records import FieldTuple, NamedTuple, TypedDict, cached_property, dataclass

T = TypeVar("T")


class Place(NamedTuple):
    """Where something is."""

    row: int
    column: int = 1
    name: str = ""

    @property
    def after(self) -> "Place":
        return self._replace(column=self.column + 1)


class Same(typing.NamedTuple):
    """Where something is."""

    row: int
    column: int = 1
    name: str = ""


class Boxed(NamedTuple, Generic[T]):
    value: T


class Empty(NamedTuple):
    pass


def test_a_named_tuple_is_made_compared_and_shown_as_by_typing():
    ours, theirs = Place(2, name="x"), Same(2, name="x")
    assert repr(ours) == repr(theirs).replace("Same", "Place")
    assert ours == theirs == (2, 1, "x")
    assert hash(ours) == hash(theirs)
    assert (ours.row, ours.column, ours.name) == (2, 1, "x")
    assert ours._asdict() == theirs._asdict()
    assert ours.after == Place(2, 2, "x")
    assert isinstance(ours, FieldTuple) == (sys.version_info < (3, 14))  # later versions make their own
    assert Empty() == ()


def test_its_class_says_the_same_as_that_of_typing():
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__slots__", "__annotations__"):
        assert getattr(Place, name) == getattr(Same, name), name
    assert [*inspect.signature(Place).parameters.values()] == [*inspect.signature(Same).parameters.values()]
    assert inspect.getdoc(Place.row) == inspect.getdoc(Same.row)
    assert typing.get_type_hints(Place) == typing.get_type_hints(Same)
    assert Place.__new__.__name__ == "__new__"


def test_a_wrong_call_is_refused_in_the_words_of_python():
    calls: list[tuple[list[Any], dict[str, Any]]] = [([], {}), ([1, 2, "", 4], {}), ([1], {"depth": 2})]
    for arguments, names in calls:
        with pytest.raises(TypeError) as ours:
            Place(*arguments, **names)
        with pytest.raises(TypeError) as theirs:
            Same(*arguments, **names)
        assert str(ours.value).split(") ")[-1] == str(theirs.value).split(") ")[-1]
    with pytest.raises(TypeError, match="Expected 3 arguments, got 1"):
        Place._make([1])
    with pytest.raises((TypeError, ValueError), match=r"Got unexpected field names: \['depth'\]"):
        Place(1)._replace(depth=2)
    with pytest.raises(AttributeError):
        setattr(Place(1), "row", 2)  # noqa: B010


def test_it_can_be_copied_pickled_taken_apart_and_given_a_type():
    place = Place(3)
    assert pickle.loads(pickle.dumps(place)) == copy.deepcopy(place) == place
    assert type(pickle.loads(pickle.dumps(place))) is Place
    match place:
        case Place(row, column=column):
            assert (row, column) == (3, 1)
    assert Boxed[int](1).value == Boxed(1).value == 1


@dataclass(frozen=True, slots=True)
class Wish:
    """Something wanted."""

    name: str
    times: int = 1
    tags: list[str] = field(default_factory=list[str])
    note: str = field(default="", repr=False, compare=False)
    length: int = field(default=0, init=False)
    first: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", self.name[:1])


@dataclasses.dataclass(frozen=True, slots=True)
class SameWish:
    """Something wanted."""

    name: str
    times: int = 1
    tags: list[str] = field(default_factory=list[str])
    note: str = field(default="", repr=False, compare=False)
    length: int = field(default=0, init=False)
    first: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", self.name[:1])


@dataclass(frozen=True, slots=True)
class Alike:  # noqa: PLW1641  # made by the decorator
    """Equal to everything of its kind."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike)

    def __repr__(self) -> str:
        return "Alike"


@dataclass(frozen=True, slots=True)
class Point:
    row: int
    column: int


def test_a_frozen_dataclass_is_made_compared_and_shown_as_by_python():
    ours, theirs = Wish("tea", tags=["hot"], note="n"), SameWish("tea", tags=["hot"], note="n")
    assert repr(ours) == repr(theirs).replace("SameWish", "Wish")
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert ours == Wish("tea", tags=["hot"])
    assert ours != Wish("tea")
    assert ours != theirs
    assert Wish("tea").tags is not Wish("tea").tags
    assert dataclasses.replace(ours, times=2).times == 2
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert {Point(1, 2), Point(1, 2), Point(2, 1)} == {Point(1, 2), Point(2, 1)}
    with pytest.raises(TypeError, match="unhashable"):
        hash(ours)


def test_its_class_says_the_same_as_that_of_python():
    for name in ("__match_args__", "__slots__", "__doc__"):
        assert getattr(Wish, name) == getattr(SameWish, name), name
    assert dataclasses.is_dataclass(Wish)
    assert repr(vars(Wish)["__dataclass_params__"]) == repr(vars(SameWish)["__dataclass_params__"])
    ours, theirs = ([*inspect.signature(kind).parameters.values()] for kind in (Wish, SameWish))
    assert [(one.name, one.annotation) for one in ours] == [(one.name, one.annotation) for one in theirs]
    assert Wish.__init__.__qualname__ == "Wish.__init__"
    assert (repr(Alike("a")), Alike("a") == Alike("b"), hash(Alike("a")) == hash(Alike("a"))) == ("Alike", True, True)


def test_a_frozen_dataclass_cannot_be_changed_and_can_be_copied():
    wish = Wish("tea")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
        setattr(wish, "name", "coffee")  # noqa: B010
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        delattr(wish, "name")
    assert pickle.loads(pickle.dumps(wish)) == copy.deepcopy(wish) == copy.copy(wish) == wish
    assert copy.copy(wish).first == "t"


class Given(TypedDict, total=False):
    """The keywords of a verb."""

    name: Required[str]
    size: int
    later: "Place | None"


class GivenSame(typing.TypedDict, total=False):
    """The keywords of a verb."""

    name: Required[str]
    size: int
    later: "Place | None"


class More(Given):
    size: NotRequired[int]
    last: bool


class MoreSame(GivenSame):
    size: NotRequired[int]
    last: bool


_Worded = TypedDict("_Worded", {"for": str}, total=False)  # a keyword cannot be a field of a class
_WordedSame = typing.TypedDict("_WordedSame", {"for": str}, total=False)


@pytest.mark.parametrize(("ours", "theirs"), [(Given, GivenSame), (More, MoreSame), (_Worded, _WordedSame)])
def test_a_typed_dictionary_says_the_same_as_that_of_typing(ours: Any, theirs: Any):
    assert typing.is_typeddict(ours)
    assert typing.get_type_hints(ours) == typing.get_type_hints(theirs)
    assert typing.get_type_hints(ours, include_extras=True) == typing.get_type_hints(theirs, include_extras=True)
    for name in ("__required_keys__", "__optional_keys__", "__total__", "__doc__"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.__mro__[1:] == theirs.__mro__[1:]
    assert ours(name="x") == {"name": "x"}
    assert type(ours(name="x")) is dict
    with pytest.raises(TypeError, match="TypedDict does not support instance and class checks"):
        isinstance({}, ours)


class Counts:
    def __init__(self) -> None:
        self.times = 0

    @cached_property
    def ours(self) -> int:
        """How often."""
        self.times += 1
        return self.times

    @functools.cached_property
    def theirs(self) -> int:
        """How often."""
        self.times += 1
        return self.times


@pytest.mark.parametrize("name", ["ours", "theirs"])
def test_a_cached_property_is_computed_once_for_each_object_and_again_once_it_is_deleted(name: str):
    static = inspect.getattr_static(Counts, name)
    assert isinstance(static, functools.cached_property)
    assert getattr(Counts, name) is static
    assert static.__doc__ == "How often."
    one, other = Counts(), Counts()
    assert (getattr(one, name), getattr(one, name), one.times, other.times) == (1, 1, 1, 0)
    delattr(one, name)
    assert (getattr(one, name), getattr(other, name)) == (2, 1)
    setattr(one, name, 7)
    assert getattr(one, name) == 7

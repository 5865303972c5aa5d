"""The rules of schedules: their names, the operations of their runs, and the keywords of their submissions as JSON."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from remit.core import bounds as bounds_
from remit.core import scope
from remit.core.allow import names_data, names_restored
from remit.core.bounds import Bounds
from remit.core.checks import one_of
from remit.core.prices import credits, dollars  # noqa: A004 - the word of the domain
from remit.core.session import remembers
from remit.core.times import SECOND, iso, span, starter
from remit.core.toolgroups import tools
from remit.core.values import NAME_LIMIT, Json, checked, line

CatchUp: TypeAlias = Literal["latest", "all", "none"]
CATCH_UP: Final = ("latest", "all", "none")
MISSED: Final = 100  # runs that catch_up="all" starts after downtime, at most
LATE: Final = 60 * SECOND  # a planned time is missed if no worker starts its run within this
# Characters of a name: a run names its schedule as the person who started it.
SCHEDULE_LIMIT: Final = NAME_LIMIT - len(starter(""))


def schedule_name(given: object) -> str:
    """Return the name of a schedule as it was given. Raise `BadInput` if it cannot be one."""
    return line(given, "a schedule's name", SCHEDULE_LIMIT)


def catch_up_of(given: object) -> CatchUp:
    """Return the rule for missed runs. Raise `BadInput` if it is not one of the known rules."""
    return cast("CatchUp", one_of(given, CATCH_UP, "catch_up"))


def operation(name: str, planned: int) -> str:
    """Return the operation id of a planned run: however many workers try it, one of them starts it."""
    return f"schedule/{name}/{iso(planned)[:19]}"


def keywords_json(how: Mapping[str, Any]) -> dict[str, Json]:
    """Return the keywords of a submission as JSON; `given_again` reads them. None stands for the default everywhere."""
    said = [(name, how[name]) for name in sorted(how) if how[name] is not None]
    return {name: _WRITES[name](value) if name in _WRITES else value for name, value in said}


def given_again(kept: Mapping[str, Json]) -> dict[str, Any]:
    """Return the keywords that `keywords_json` wrote."""
    return {name: _READS[name](value) if name in _READS else value for name, value in kept.items()}


_WRITES: Final[dict[str, Callable[[object], Json]]] = {
    "sees": lambda given: [*scope.scope_texts(scope.passed(given))],
    "writes": lambda given: [*scope.scope_texts(scope.passed(given, "writes"))],
    "tools": lambda given: names_data(tools(given)),
    "within": lambda given: {**cast("Bounds", given).data},
    "timeout": lambda given: span(given, "timeout") / SECOND,
    "credits": lambda given: dollars(credits(given) or 0),
    "remembers": remembers,
    "data": lambda given: checked(given, "data"),
}
_READS: Final[dict[str, Callable[[Any], object]]] = {
    "sees": scope.restored,
    "writes": scope.restored,
    "tools": names_restored,
    "within": bounds_.restored,
}

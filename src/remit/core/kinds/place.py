"""The place of an event (run, session, task), and typed access to its data."""

from typing import NamedTuple, TypeVar, cast

from remit.core.events import Event, Unsealed
from remit.core.remit import Remit

Shape = TypeVar("Shape")


def read(event: Event | Unsealed, shape: type[Shape]) -> Shape:
    """Return an event's data as the TypedDict of its kind."""
    return cast("Shape", event.data)


class Place(NamedTuple):
    """The run, session and task that an event belongs to. All are empty for an action of a person outside a run."""

    run: str = ""
    session: str = ""
    task: str = ""


def place(remit: Remit) -> Place:
    return Place(remit.root, remit.session, remit.id)

"""Where an event belongs, and how its data is read."""

from typing import NamedTuple, TypeVar, cast

from remit.core.events import Event, Unsealed
from remit.core.remit import Remit

Shape = TypeVar("Shape")


def read(event: Event | Unsealed, shape: type[Shape]) -> Shape:
    """Give an event's data in the shape of its kind."""
    return cast("Shape", event.data)


class Place(NamedTuple):
    """The run, session and task an event belongs to; all empty for what a person does outside a run."""

    run: str = ""
    session: str = ""
    task: str = ""


def place(remit: Remit) -> Place:
    return Place(remit.root, remit.session, remit.id)

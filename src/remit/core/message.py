"""Messages: what one agent tells another between turns."""

from dataclasses import dataclass

from remit.core.trust import INSIDE, Trust


@dataclass(frozen=True, slots=True)
class Message:
    """What one agent sends another; it reaches the other's inbox of the same run, once.

    An announcement tells of the end of task `about`, to whoever holds task `reader`, and to nobody else. `trust` is
    "outside" if its sender had taken in something from outside.
    """

    id: str
    session: str
    sender: str
    to: str
    text: str
    sent_at: int
    reader: str = ""
    about: str = ""
    trust: Trust = INSIDE

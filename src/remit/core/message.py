"""Messages between agents of one run."""

from dataclasses import dataclass

from remit.core.trust import TRUSTED, Trust


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

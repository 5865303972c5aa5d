"""Every error remit raises, in one tree.

    RemitError
    ├── BadInput        the caller gave something that cannot be used; nothing was written
    ├── NotFound        the caller named something this workspace does not have
    ├── Conflict        the caller lost a race: what it read has changed since
    ├── Refused         a rule said no to one hop or one read; the run goes on
    ├── Failed          an agent was asked and did not deliver
    │   ├── TimedOut    ... because its time was up
    │   ├── Cancelled   ... because someone stopped it
    │   ├── NoAnswer    ... because no model answered it
    │   └── OutOfRequests   ... because it asked its model as often as it may
    └── StoreError      the database could not do its part; nothing was half-written
        ├── NotAStore   the file is something else
        ├── NewerStore  the file was written by a newer remit
        └── StoreBusy   another process held the file for too long

Each class says whom it addresses, which HTTP status it becomes, and whether trying the same thing again can help.
"""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Literal, Self

Addressee = Literal["asker", "caller", "operator"]


class RemitError(Exception):
    """The root: catch this to catch everything remit raises on purpose."""

    addressee: ClassVar[Addressee] = "caller"
    status: ClassVar[int] = 500
    retryable: bool = False


class BadInput(RemitError, ValueError):
    """The caller gave something that cannot be used."""

    status = 422


class NotFound(RemitError, LookupError):
    """The caller named something this workspace does not have."""

    status = 404


class Conflict(RemitError):
    """What the caller read has changed since; read again and decide anew."""

    status = 409
    retryable = True


class Refused(RemitError):
    """A rule said no. `rule` names it; the text tells the asker, person or model, what to do instead."""

    addressee = "asker"
    status = 403

    def __init__(self, sentence: str, *, rule: str) -> None:
        super().__init__(sentence)
        self.rule = rule

    def data(self) -> dict[str, str]:
        """As the journal keeps it."""
        return {"rule": self.rule, "sentence": str(self)}

    @classmethod
    def read(cls, data: Mapping[str, object]) -> Self:
        """Make the refusal that `data` tells of."""
        return cls(str(data["sentence"]), rule=str(data["rule"]))

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), rule=self.rule), self.args


class Failed(RemitError):
    """An agent was asked and did not deliver. `agent` and `task` say which; `retryable` comes from what it died of."""

    addressee = "asker"
    status = 502

    def __init__(self, sentence: str, *, agent: str, task: str, retryable: bool | None = None) -> None:
        super().__init__(sentence)
        self.agent = agent
        self.task = task
        if retryable is not None:
            self.retryable = retryable

    def __reduce__(self) -> tuple[object, ...]:
        told = vars(self).get("retryable")
        return partial(type(self), agent=self.agent, task=self.task, retryable=told), self.args


class TimedOut(Failed):
    """The agent's time was up; its work was cancelled."""

    status = 504
    retryable = True


class Cancelled(Failed):
    """Someone stopped the task, or the run it belongs to."""

    status = 409


class NoAnswer(Failed):
    """No model answered the agent; the text says what became of each. `retryable` if one may answer later."""

    status = 503


class OutOfRequests(Failed):
    """The agent asked its model as often as it may for one task."""


class StoreError(RemitError):
    """The database could not do its part."""

    addressee = "operator"
    status = 503


class NotAStore(StoreError):
    """The file is not a remit store, or cannot be opened as one."""

    status = 500


class NewerStore(StoreError):
    """The file was written by a newer remit; upgrade remit to read it."""

    status = 500


class StoreBusy(StoreError):
    """Another process held the file for longer than we wait."""

    retryable = True

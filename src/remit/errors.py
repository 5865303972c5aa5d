"""All exceptions that remit raises, as one tree.

    RemitError
    ├── BadInput        an argument is invalid; nothing was written
    │   ├── Malformed   ... because it is not the JSON that remit accepts
    │   ├── TooLarge    ... because it is too large
    │   └── WrongType   ... because it is sent in a form that remit does not read
    ├── NotFound        the workspace has no such object
    ├── Conflict        the caller lost a race: the data it read has changed since
    ├── Refused         a rule rejected one call or one read; the run continues
    ├── Unauthorised    a request to a server came without a valid key
    ├── Forbidden       the key of a request does not permit it
    ├── TooMany         a caller made more requests than its limit allows
    ├── TooSlow         a request did not arrive in time
    ├── Failed          an agent was called and did not return a result
    │   ├── TimedOut    ... because its time was up
    │   ├── Cancelled   ... because a person or a program stopped it
    │   ├── NoAnswer    ... because no model answered
    │   ├── OutOfRequests   ... because it used up its model requests
    │   └── BadOutput   ... because its result does not fit the form that was asked for
    └── StoreError      the database failed; the transaction was rolled back
        ├── NotAStore   the file is not a remit store
        ├── NewerStore  the file was written by a newer version of remit
        ├── StoreBusy   another process held the file for too long
        ├── Moved       the workspace lives in another database, or is on its way there
        └── NoServer    no server answers at the address

Each class defines its addressee, its HTTP status, and whether a retry can help.
"""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Literal, Self

Addressee = Literal["asker", "caller", "operator"]


class RemitError(Exception):
    """The root of the tree: catch it to catch every exception that remit raises on purpose."""

    addressee: ClassVar[Addressee] = "caller"
    status: ClassVar[int] = 500
    retryable: bool = False


class BadInput(RemitError, ValueError):
    """An argument is invalid. Nothing was written."""

    status = 422


class Malformed(BadInput):
    """The input is not JSON, or has something in it that JSON parsers read in different ways."""

    status = 400


class TooLarge(BadInput):
    """The input is larger than a request may be."""

    status = 413


class WrongType(BadInput):
    """The input is sent in a form that remit does not read."""

    status = 415


class NotFound(RemitError, LookupError):
    """The workspace has no object of this name or id."""

    status = 404


class Conflict(RemitError):
    """The data that the caller read has changed since. Read it again and decide again."""

    status = 409
    retryable = True


class Refused(RemitError):
    """A rule rejected the call. `rule` is its name; the text tells the asker, a person or a model, what to do
    instead."""

    addressee = "asker"
    status = 403

    def __init__(self, sentence: str, *, rule: str) -> None:
        super().__init__(sentence)
        self.rule = rule

    def data(self) -> dict[str, str]:
        """The refusal as JSON, for the journal."""
        return {"rule": self.rule, "sentence": str(self)}

    @classmethod
    def read(cls, data: Mapping[str, object]) -> Self:
        """Return the refusal that `data` describes."""
        return cls(str(data["sentence"]), rule=str(data["rule"]))

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), rule=self.rule), self.args


class Unauthorised(RemitError):
    """A request to a server came without a valid key."""

    status = 401


class Forbidden(RemitError):
    """The key does not permit the request, or the server accepts no requests for this host or from this web page."""

    status = 403


class TooMany(RemitError):
    """A caller made more requests than its limit allows. `seconds` is how long the caller should wait."""

    status = 429
    retryable = True

    def __init__(self, sentence: str, *, seconds: int = 1) -> None:
        super().__init__(sentence)
        self.seconds = seconds

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), seconds=self.seconds), self.args


class TooSlow(RemitError):
    """A request did not arrive in time."""

    status = 408
    retryable = True


class Failed(RemitError):
    """An agent was called and did not return a result. `agent` is its name, `task` the id of its task. `retryable` says
    whether a retry may succeed."""

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
    """A person or a program stopped the task, or its run."""

    status = 409


class NoAnswer(Failed):
    """No model answered the agent. The text lists the failure of each model; `retryable` is true if one may answer
    later."""

    status = 503


class OutOfRequests(Failed):
    """The agent has used up its model requests for one task."""


class BadOutput(Failed):
    """The agent's result does not fit its `output`, or the `returns` of its asker. The text names each place that
    differs."""


class StoreError(RemitError):
    """The database failed. The transaction was rolled back."""

    addressee = "operator"
    status = 503


class NotAStore(StoreError):
    """The file is not a remit store, or cannot be opened as one."""

    status = 500


class NewerStore(StoreError):
    """The file was written by a newer remit; upgrade remit to read it."""

    status = 500


class StoreBusy(StoreError):
    """Another process held the file for longer than remit waits."""

    retryable = True


class Moved(StoreError):
    """The workspace lives in another database, or is on its way there; `retryable` while it is on its way."""


class NoServer(StoreError):
    """No server answers at the address that a client was given."""

    retryable = True

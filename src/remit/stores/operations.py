"""One operation on its way into the journal, alone or in a batch. The same for every SQL database."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from remit.core.events import Event
from remit.errors import RemitError, StoreBusy, StoreError
from remit.ports import NOTHING, Decide, Decided, Fault, Wants

BATCH: Final = 128  # operations a transaction takes at most, so that nobody waits long for the others

Feed: TypeAlias = Callable[[list[Event]], None]
Applied: TypeAlias = tuple[Any, list[Event], Any]  # the answer, the events appended, and what was said aside
Apply: TypeAlias = Callable[[str, str, Decide[Any]], Applied]


class Operation:
    """A decision that someone awaits: what it was told to do, and what came of the last try."""

    __slots__ = ("answer", "aside", "decide", "error", "events", "future", "op", "wants", "workspace")

    def __init__(
        self, workspace: str, op: str, decide: Decide[Any], future: "asyncio.Future[Any]", wants: Wants = NOTHING
    ) -> None:
        self.workspace = workspace
        self.op = op
        self.decide = decide
        self.future = future
        self.wants = wants
        self.answer: Any = None
        self.aside: Any = None
        self.events: list[Event] = []
        self.error: Exception | None = None

    def perform(self, apply: Apply, failures: tuple[type[Exception], ...] = (StoreError,)) -> None:
        """Apply the operation. `failures` are the database's and are raised; any other error is the operation's own
        and is kept for whoever awaits it."""
        self.answer, self.aside, self.events, self.error = None, None, [], None
        try:
            self.answer, self.events, self.aside = apply(self.workspace, self.op, self.decide)
        except failures:
            raise
        except StopIteration as error:  # the one exception a future does not take
            self.error = RuntimeError("a decision raised StopIteration")
            self.error.__cause__ = error
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.error = error

    def fail(self, error: RemitError) -> None:
        """Forget what came of it: the database failed, and none of it is written."""
        self.error, self.events = error, []

    def settle(self) -> None:
        """Answer whoever awaits it, on the thread of its event loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(Decided(self.answer, self.aside))


def answer_all(batch: Sequence[Operation], feed: Feed, fault: Fault) -> None:
    """Feed the sinks with what was committed, then answer: whoever is answered finds that the sinks have heard."""
    for operation in batch:
        if operation.error is None and operation.events:
            feed(operation.events)
        fault("store.before-answer")
        operation.settle()


def try_one_by_one(batch: Sequence[Operation], error: StoreError) -> bool:
    """Tell whether a batch that the database failed is tried again one by one.

    One bad operation must not take its neighbours along. A database that is busy is so for each of them.
    """
    return len(batch) > 1 and not isinstance(error, StoreBusy)

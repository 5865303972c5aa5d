"""Channels: they deliver questions to people and bring their answers back.

A channel delivers (`tell`), or receives answers (`listen`), or both. Its exceptions are logged and recorded, so they
must not contain secrets.
"""

from typing import Protocol, TypeAlias

from remit.core.question import Inquiry, Reply


class Down(Exception):
    """The channel is not available now. remit retries, after `retry_after` seconds if the channel gave a time."""

    def __init__(self, retry_after: float | None = None, why: str = "it cannot be reached") -> None:
        super().__init__(why)
        self.retry_after = retry_after


class Undeliverable(Exception):
    """The channel rejects this question for good; `why` is shown to people."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Desk(Protocol):
    """Where a channel hands in the answers that it receives."""

    @property
    def workspace(self) -> str: ...

    async def look(self, question: str) -> Inquiry:
        """Return a question, open or decided. Raise `NotFound` if there is none."""
        ...

    async def answer(self, question: str, reply: Reply) -> None:
        """Record an answer: approved, rejected or answered. Raise `Conflict`, with the name of the first person, if the
        answer is not the first or comes too late. Raise `BadInput` if it does not fit the question."""
        ...


class Teller(Protocol):
    """A channel that delivers questions to people."""

    @property
    def name(self) -> str: ...

    async def tell(self, workspace: str, inquiry: Inquiry) -> str:
        """Deliver a question. Return the channel's own id for it.

        A question may be delivered more than once, always with the same id. Raise `Down` to be retried, and
        `Undeliverable` if a retry is useless.
        """
        ...


class Hearer(Protocol):
    """A channel that receives answers."""

    @property
    def name(self) -> str: ...

    async def listen(self, desk: Desk) -> None:
        """Hand in answers at the desk until cancelled. Raise `Down` to be called again later."""
        ...


Channel: TypeAlias = Teller | Hearer

"""Channels: by which people are told of questions, and by which their answers come back.

A channel tells (`tell`), or brings answers (`listen`), or both. What it raises is logged and put on record, so nothing
secret may be in it.
"""

from typing import Protocol, TypeAlias

from remit.core.question import Inquiry, Reply


class Down(Exception):
    """The channel cannot be used now: it is tried again, after `retry_after` seconds if it said so."""

    def __init__(self, retry_after: float | None = None, why: str = "it cannot be reached") -> None:
        super().__init__(why)
        self.retry_after = retry_after


class Undeliverable(Exception):
    """The channel will not take this, however often it is tried; `why` is shown to people."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Desk(Protocol):
    """Where a channel brings answers."""

    @property
    def workspace(self) -> str: ...

    async def look(self, question: str) -> Inquiry:
        """Give a question, open or decided. Raises NotFound if there is none."""
        ...

    async def answer(self, question: str, reply: Reply) -> None:
        """Record an answer: approved, rejected or answered. Raises Conflict with who was first if it is not the first
        one or comes too late, and BadInput if it is no answer to this question."""
        ...


class Teller(Protocol):
    """A channel that tells people of questions."""

    @property
    def name(self) -> str: ...

    async def tell(self, workspace: str, inquiry: Inquiry) -> str:
        """Tell someone of a question; gives back what the channel calls it.

        It may be told more than once, always with the same id. Raises Down if it is to be tried again, and
        Undeliverable if that is useless."""
        ...


class Hearer(Protocol):
    """A channel that brings answers."""

    @property
    def name(self) -> str: ...

    async def listen(self, desk: Desk) -> None:
        """Bring answers to the desk until cancelled. Raises Down if it cannot listen now, and is called again."""
        ...


Channel: TypeAlias = Teller | Hearer

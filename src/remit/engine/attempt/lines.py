"""Lines of work: a task from the queue, or a person's run, and all that is delegated below it in this process.

A line has one slot: a hand of its worker, and a place in the workspace's concurrency. It holds the slot as long as
anyone in it works, however many they are, and gives it up while all of them wait. All of this is in memory and costs an
ordinary delegation nothing but a few additions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

Member = TypeVar("Member")


class Hands:
    """The hands of one worker: how many lines of work it carries at a time. Who had one before and wants it again comes
    before whatever is new."""

    __slots__ = ("_returning", "held", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._returning: deque[asyncio.Event] = deque()

    def free(self) -> int:
        """Tell how many more may be taken by what is new."""
        return self.most - self.held - len(self._returning)

    def take(self) -> None:
        self.held += 1

    def give(self) -> None:
        """Give a hand back: to whoever has waited longest for one."""
        self.held -= 1
        while self._returning and self.held < self.most:
            self.held += 1
            self._returning.popleft().set()

    async def take_again(self) -> None:
        """Wait for a hand. Whoever is cancelled meanwhile has one all the same: it goes on, if only to stop."""
        if self.held < self.most and not self._returning:
            self.held += 1
            return
        turn = asyncio.Event()
        self._returning.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if not turn.is_set():
                self._returning.remove(turn)
                self.held += 1
            raise


class Line(Generic[Member]):
    """One line of work. `hands` are those of the worker that claimed it; None for a person's run, which needs none.

    `working` counts its members that do not wait. `rests` says that nobody in it works and its slot was given up.
    """

    __slots__ = ("_holds", "hands", "members", "rests", "working")

    def __init__(self, hands: Hands | None) -> None:
        self.hands = hands
        self.members: dict[str, Member] = {}
        self.working = 0
        self.rests = False
        self._holds = hands is not None
        if hands is not None:
            hands.take()

    @property
    def queued(self) -> bool:
        """Whether it came out of the queue, and so has a slot."""
        return self.hands is not None

    def enter(self, task: str, member: Member) -> None:
        """Take in a task that begins, or the same one in other hands."""
        if task not in self.members:
            self.working += 1
        self.members[task] = member

    def leave(self, task: str, *, waits: bool, last: bool) -> None:
        """Forget a task that is over; with the `last`, the one out of the queue, the line is over too."""
        if self.members.pop(task, None) is not None and not waits:
            self.working -= 1
        if last:
            self.let_go()

    def let_go(self) -> None:
        """Give up the hand."""
        if self._holds and self.hands is not None:
            self._holds = False
            self.hands.give()

    async def hold(self) -> None:
        """Take a hand again, unless another member has done so already."""
        hands = self.hands
        if self._holds or hands is None:
            return
        try:
            await hands.take_again()
        finally:
            if self._holds:  # another member was faster
                hands.give()
            self._holds = True

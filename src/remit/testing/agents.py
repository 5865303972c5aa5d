"""Scripted agents: doubles that answer what a test says, and remember what they were asked."""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any


class Scripted:
    """An agent that gives its answers in order, the last one again and again. An answer that is an exception is raised,
    one that is a function is called with the turn; `tasks` lists what it was asked."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers) or [None]
        self.tasks: list[str] = []

    async def __call__(self, turn: Any) -> Any:
        answer = self._answers[min(len(self.tasks), len(self._answers) - 1)]
        self.tasks.append(turn.task)
        if isinstance(answer, Exception):
            raise answer
        if not callable(answer):
            return answer
        call: Callable[[Any], object] = answer
        given = call(turn)
        return await given if isawaitable(given) else given

"""Scripted agents: doubles that return what a test says, and record their tasks."""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any


class Scripted:
    """An agent that returns its answers in order, and the last one from then on. An answer that is an exception is
    raised; one that is a function is called with the turn. `tasks` lists the tasks it was given."""

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

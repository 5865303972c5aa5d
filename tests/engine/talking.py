"""A model for tests of the engine: it answers what a script says, without a client and without HTTP."""

from collections.abc import Callable, Sequence
from typing import Any

from remit.core.prices import Usage
from remit.core.recovery import Choice, FailureKind, ModelFailure, ModelTry
from remit.ports.models import Hear, ModelAnswer, ModelCall

FEW = Usage(10, 5)


class Down(Exception):
    """A failure of a model."""

    def __init__(self, kind: FailureKind, **more: Any) -> None:
        super().__init__(kind)
        self.failure = ModelFailure(kind, **more)


class Rates:
    """A token that is read costs one millionth, one that is written two."""

    def __init__(self, *unknown: str) -> None:
        self._unknown = unknown

    def cost(self, model: str, usage: Usage) -> int | None:
        return None if model in self._unknown else usage.input + 2 * usage.output

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        return None if model in self._unknown else input_tokens + 2 * max_output


class Talk:
    """Answers from a script, one after the other, and remembers what was asked. An error is raised; a function is
    called with the try; a text is the answer."""

    def __init__(self, *script: str | ModelAnswer | Exception | Callable[[ModelTry], Any]) -> None:
        self.script = list(script)
        self.asked: list[ModelTry] = []
        self.most: list[int] = []

    async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
        self.asked.append(attempt)
        self.most.append(most)
        said = self.script.pop(0)
        if callable(said):
            said = said(attempt)
            if hasattr(said, "__await__"):
                said = await said
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, ModelAnswer) else ModelAnswer(said, attempt.model, FEW)

    def call(self, digest: str = "d", *models: str | Choice, most: int = 1_000, tools: Sequence[str] = ()) -> ModelCall:
        choices = [Choice(one) if isinstance(one, str) else one for one in models or ("big",)]
        return ModelCall(digest, tuple(choices), lambda _trim: 10, most, self.send, _failure, frozenset(tools))


def _failure(error: Exception) -> ModelFailure | None:
    return error.failure if isinstance(error, Down) else None

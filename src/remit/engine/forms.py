"""Results that fit a form: a type, or a JSON Schema. `output=` checks what an agent returns, `returns=` what its asker
gets. Imported when one of them is used."""

from dataclasses import replace
from importlib import import_module
from typing import Any

from remit.core.command import END, Command
from remit.core.lifecycle import Outcome
from remit.core.values import Json
from remit.engine.directory import AgentFunction
from remit.errors import BadInput, BadOutput
from remit.ports.forms import Form


def form_of(given: object, keyword: str) -> Form:
    """Return the form for a type or a JSON Schema. Raise `BadInput` if `given` is neither, or if a package is
    missing."""
    return import_module("remit.adapters.forms").form_of(given, keyword)


def unwrapped(outcome: Outcome, form: Form) -> Any:
    """Return the value of an outcome as an object of this form. If the outcome has an error, raise it. If the value
    does not fit the form, raise `BadOutput`."""
    value = outcome.unwrap()
    try:
        return form.read(value, f"the result of '{outcome.agent}'")
    except BadInput as no:
        raise BadOutput(str(no), agent=outcome.agent, task=outcome.id) from None


class FormedAgent:
    """An agent whose result is checked against a form when its turn ends. Everything else is passed to the wrapped
    agent."""

    def __init__(self, answer: AgentFunction, form: Form) -> None:
        self.answer = answer
        self.form = form

    def __getattr__(self, name: str) -> Any:
        return getattr(self.answer, name)

    async def __call__(self, turn: Any) -> object:
        answer = await self.answer(turn)
        if isinstance(answer, Command):  # another agent gives the result, unless this ends the task
            return replace(answer, result=self._checked(answer.result, turn)) if answer.goto is END else answer
        return answer if turn.phase == "plan" else self._checked(answer, turn)

    def _checked(self, answer: object, turn: Any) -> Json:
        try:
            return self.form.write(answer, f"the result of '{turn.agent}'")
        except BadInput as no:
            raise BadOutput(str(no), agent=turn.agent, task=turn.remit.id) from None

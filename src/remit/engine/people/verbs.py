"""The verbs of a turn that ask people."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from remit.core.question import QuestionDraft, asked_by_agent
from remit.core.text import NAME_LIMIT, excerpt, line, shown
from remit.core.times import SECOND, SpanGiven, span
from remit.core.values import Json, checked, digest, encode
from remit.engine.attempt.live import LiveTask
from remit.engine.door.said import not_answered, rejected
from remit.engine.people.questions import Questions
from remit.errors import BadInput, Refused

_NAME, _VALUE = 60, 200  # characters of an argument in a summary


class PeopleServices(NamedTuple):
    questions: Questions


class PeopleVerbs:
    """What an agent can ask people. It holds no slot and its clock stands still while it waits."""

    _live: LiveTask
    _people: PeopleServices

    async def ask_human(
        self,
        question: str,
        choices: list[str] | None = None,
        *,
        default: str | None = None,
        timeout: SpanGiven | None = None,  # noqa: ASYNC109 - of the question, which outlives this process
    ) -> str:
        """Ask a person, and wait for the answer: `await turn.ask_human("Which?", ["red", "blue"], default="red")`.

        With `choices` it is one of them. If nobody answers within `timeout` seconds, seven days unless it says
        otherwise, it is the `default`; without one this raises `Refused`. The question survives this process: run
        again, the task gets the answer that was given.
        """
        draft = asked_by_agent(question, choices, default)
        if timeout is not None:
            draft = draft._replace(seconds=span(timeout, "timeout") / SECOND)
        ops = self._live.operations.asking("ask", question, encode([*draft.choices]))
        with self._live.verb():
            said = await self._people.questions.ask_once(self._live, draft, ops)
        if said.state != "answered":
            raise not_answered(said)
        return cast("str", said.value)

    async def approve(self, action: str, arguments: dict[str, Json] | None = None) -> dict[str, Any]:
        """Ask a person to approve an action before it is done: `args = await turn.approve("deploy", {"env": "prod"})`.

        Gives back the arguments as they were approved: they may have been changed. Raises `Refused` with what the
        person said if it was not approved. The approval is for this one action, and used up by it.
        """
        line(action, "an action", NAME_LIMIT)
        if arguments is not None and not isinstance(arguments, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"the arguments of an action are a dict, not {shown(arguments)}")
        given = cast("dict[str, Any]", checked(arguments or {}, "the arguments of an action"))
        live, remit = self._live, self._live.remit
        # A summary: each value is shortened by itself, so that none hides the next; `shows` has all of them.
        listed = ", ".join(f"{excerpt(name, _NAME)}={excerpt(encode(one), _VALUE)}" for name, one in given.items())
        text = f"'{remit.holder}' wants to {action}({listed})"
        shows: dict[str, Json] = {"action": action, "arguments": given, "chain": " > ".join(remit.names)}
        draft = QuestionDraft("tool", text[:8_000], shows=shows, about=(live.operations.origin, *remit.names))
        ops = live.operations.asking("approve", action, digest(encode(given)))
        with live.verb():
            said = await self._people.questions.ask_once(live, draft, ops)
        if not said.approved:
            raise Refused(rejected(said, f"'{action}'"), rule="approval")
        await self._people.questions.use(live, said, draft)
        return given if said.value is None else cast("dict[str, Any]", said.value)

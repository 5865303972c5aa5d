"""Verbs of a turn for money and people, and the services of every turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, Unpack, cast

from remit.core.checks import keywords, of_type, refuse_strange, yes_or_no
from remit.core.prices import CreditsGiven, Usage
from remit.core.question import QuestionDraft, asked_by_agent
from remit.core.records import TypedDict, cached_property
from remit.core.times import SECOND, SpanGiven, span
from remit.core.values import NAME_LIMIT, Json, Known, checked, digest, encode, excerpt, line, shown
from remit.engine.approvals import not_answered, rejected
from remit.engine.attempt.live import LiveTask
from remit.errors import BadInput, Refused

if TYPE_CHECKING:
    from remit.engine.artifacts import ArtifactFiles
    from remit.engine.attempt.handoffs import Handoffs
    from remit.engine.context import Entries
    from remit.engine.delegation import Delegations
    from remit.engine.directory import Directory
    from remit.engine.finding import Finder
    from remit.engine.inbox import Inbox
    from remit.engine.models.prompting import ModelServices
    from remit.engine.money import MoneyServices, PaidCall
    from remit.engine.people import Questions
    from remit.engine.plans import PlanRunner
    from remit.engine.queue.control import TaskControl
    from remit.engine.queue.submitting import TaskQueue


class TurnServices(Protocol):
    """The services of every turn of a runtime. Most are made when they are first used."""

    directory: Directory
    handoffs: Handoffs
    delegations: Delegations
    deps: object

    @cached_property
    def queue(self) -> TaskQueue: ...
    @cached_property
    def control(self) -> TaskControl: ...
    @cached_property
    def plans(self) -> PlanRunner: ...
    @cached_property
    def entries(self) -> Entries: ...
    @cached_property
    def inbox(self) -> Inbox: ...
    @cached_property
    def files(self) -> ArtifactFiles: ...
    @cached_property
    def finder(self) -> Finder: ...
    @cached_property
    def money(self) -> MoneyServices: ...
    @cached_property
    def talking(self) -> ModelServices: ...
    @property
    def questions(self) -> Questions: ...


# -- money ------------------------------------------------------------------------------------------------------


class Calling(TypedDict, total=False):
    """The keywords of a paid call: its highest number of tokens, its purpose, its model and usage, the provider whose
    key it uses, and whether it is sent at once."""

    tokens: int
    why: str
    model: str
    usage: Usage
    provider: str
    start: bool


class MoneyVerbs:
    """The verbs of a turn that pay. Every payment is charged to the money of the agent's task."""

    _live: LiveTask
    _services: TurnServices

    async def spend(self, amount: CreditsGiven, *, why: str, provider: str = "") -> None:
        """Pay for something at once: `await turn.spend("$0.02", why="stock photo")`.

        In a rerun the recorded payment is found and not repeated. Raise `Refused` with all figures if it cannot be
        paid.
        """
        from remit.engine.money import billed

        await self._services.money.paying.spend(self._live, billed(amount, 0, why, "", provider))

    @keywords(Calling)
    def paid_call(self, amount: CreditsGiven = None, **about: Unpack[Calling]) -> PaidCall:
        """Hold the highest cost of a call while it is made: `async with turn.paid_call("$0.05", why="photo") as call`.

        Report the cost in the body with `call.cost("$0.013")`, or with `call.report_usage(Usage(...))` for a `model`
        with a price; the rest of the hold is released. If you report nothing, remit charges the full hold as uncertain;
        `call.not_sent()` releases it. Instead of an amount, `usage` is the highest usage of the model. With
        `start=False` the money is only held until `await call.start()`. `provider` names the provider whose key is
        used: calls with the workspace's own key are not charged.

        In a rerun the body runs again and is paid again. `turn.once(..., estimate="$0.05")` is paid once.
        """
        from remit.engine.money import billed, costs_of

        refuse_strange("paid_call", about, Calling.__annotations__.keys())
        model, usage, tokens = about.get("model", ""), about.get("usage"), about.get("tokens", 0)
        why, provider = about.get("why", "") or model, about.get("provider", "")
        paying, start = self._services.money.paying, yes_or_no(about.get("start", True), "start")
        if usage is None:
            return paying.call(self._live, billed(amount, tokens, why, model, provider), start=start)
        if amount is not None or tokens:
            raise BadInput("pass either the maximum cost of the call or the usage of its model")
        worst = costs_of(of_type(usage, Usage, "usage takes Usage(...)"), model, paying.tariff)
        named = billed(None, 1, why, model, provider)
        return paying.call(self._live, named._replace(amounts=worst), start=start)

    async def report_tokens(self, tokens: int) -> None:
        """Report the tokens that this turn has used: `await turn.report_tokens(answer.usage.total_tokens)`.

        They are recorded and count at once. If they exceed the budget, this raises `Refused` afterwards; return what
        you have, or let the error through.
        """
        await self._services.money.paying.report_tokens(self._live, tokens)

    async def once(
        self,
        name: str,
        do: Callable[..., Awaitable[object] | object],
        *args: object,
        estimate: CreditsGiven = None,
        provider: str = "",
    ) -> Known:
        """Run an effect that must not be repeated: `await turn.once("charge", charge_card, 5)`.

        The result must be JSON and is recorded. When the task is run again after a crash or a failure, remit returns
        the recorded result. Only if the process dies between the effect and the record, the effect runs again: a
        function with a parameter `idempotency_key` gets the same key both times. An effect is identified by its name
        and its arguments.

        With an `estimate` it is paid for, once: that amount is held while it runs, and charged when it is recorded. A
        function with a parameter `paid` may report the real cost: `paid.cost("$0.03")`.
        """
        effects, paying = self._services.money.effects, self._services.money.paying
        if estimate is None:
            return await effects.once(self._live, name, do, *args)
        from remit.engine.money import billed

        paid = paying.call(self._live, billed(estimate, 0, name, "", provider), start=True)
        return await effects.once(self._live, name, do, *args, paid=paid)


# -- people -----------------------------------------------------------------------------------------------------

_NAME, _VALUE = 60, 200  # characters of an argument in a summary


class PeopleVerbs:
    """Asking people. While a task waits for a person, it holds no slot and its timeout is suspended. A deadline that a
    caller set still applies."""

    _live: LiveTask
    _services: TurnServices

    async def ask_human(
        self,
        question: str,
        choices: list[str] | None = None,
        *,
        default: str | None = None,
        timeout: SpanGiven | None = None,  # noqa: ASYNC109 - the timeout of the question, which outlives this process
    ) -> str:
        """Ask a person, and wait for the answer: `await turn.ask_human("Which?", ["red", "blue"], default="red")`. With
        `choices`, the answer is one of them. If no person answers within `timeout` seconds [default: seven days],
        return the `default`; without one, raise `Refused`. The question is stored: in a rerun, the task gets the
        recorded answer."""
        draft = asked_by_agent(question, choices, default)
        if timeout is not None:
            draft = draft._replace(seconds=span(timeout, "timeout") / SECOND)
        ops = self._live.operations.asking("ask", question, encode([*draft.choices]))
        with self._live.verb():
            said = await self._services.questions.ask_once(self._live, draft, ops)
        if said.state != "answered":
            raise not_answered(said)
        return cast("str", said.value)

    async def ask_approval(self, action: str, arguments: dict[str, Json] | None = None) -> dict[str, Any]:
        """Ask a person to approve an action before it is done.

        Example: `args = await turn.ask_approval("deploy", {"env": "prod"})`.

        Return the approved arguments, which the person may have changed. Raise `Refused` with the person's reason if
        the action was rejected. The approval is valid for this one action, which consumes it.
        """
        line(action, "an action", NAME_LIMIT)
        if arguments is not None and not isinstance(arguments, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"the arguments of an action are a dict, not {shown(arguments)}")
        given = cast("dict[str, Any]", checked(arguments or {}, "the arguments of an action"))
        live, remit = self._live, self._live.remit
        # A summary: each value is shortened separately, so that none hides the next; `shows` has all of them.
        listed = ", ".join(f"{excerpt(name, _NAME)}={_summary(one)}" for name, one in given.items())
        text = f"'{remit.holder}' wants to {action}({listed})"
        shows: dict[str, Json] = {"action": action, "arguments": given, "chain": " > ".join(remit.names)}
        draft = QuestionDraft("tool", text[:8_000], shows=shows, about=(live.operations.origin, *remit.names))
        ops = live.operations.asking("approve", action, digest(encode(given)))
        with live.verb():
            said = await self._services.questions.ask_once(live, draft, ops)
        if not said.approved:
            raise Refused(rejected(said, f"'{action}'"), rule="approval")
        await self._services.questions.use(live, said, draft)
        return given if said.value is None else cast("dict[str, Any]", said.value)


def _summary(value: Json) -> str:
    """Return a short form of an argument for the text of a question: an excerpt, or the number of lines if the argument
    is a text of several lines."""
    if isinstance(value, str) and "\n" in value:
        return f"[{value.count(chr(10)) + 1} lines]"
    return excerpt(encode(value), _VALUE)

"""Using tools in a model's name: policy, loops, journal, hooks, approval, and then the tool itself.

The model gets every result as a value or a sentence, and the same one when the task is run again. Policy is outside the
journal, because it decides the same each time. Answers of people and hooks are inside, so that no one is asked again,
and so are the loop counters, so that nothing is counted twice.
"""

from __future__ import annotations

import inspect
import logging
from asyncio import CancelledError
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn, Protocol, cast

from anyio.lowlevel import checkpoint

from remit.core import remit as remits
from remit.core.command import Command
from remit.core.kinds.models import ToolBegun, ToolDone, ToolOutcome, tool_begun, tool_done
from remit.core.secret import Redaction
from remit.core.toolgroups import GROUPS
from remit.core.trust import TRUSTED, UNTRUSTED, Trust, failure_told, quoted
from remit.core.values import VALUE_LIMIT, Json, checked, checked_with_text, digest, encode, summary
from remit.engine.attempt import live as marks
from remit.engine.attempt.calls import is_interrupt
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.replay import kept_effects, key_of
from remit.engine.ground import Ground
from remit.engine.models.circling import Circle, Circles
from remit.engine.presence.insisting import Insisting
from remit.engine.timing import shielded
from remit.engine.traces import OwnersFunctionFailed, error_text, is_cancelled, owners_function, place, storable
from remit.errors import BadInput, Failed, Refused, RemitError, StoreError
from remit.ports import Decision, View
from remit.ports.models import TOOL_KEY, HandedOver, Rendered, ToolCall, ToolFunction
from remit.ports.tools import ToolFailed

_log = logging.getLogger("remit")
_HARMLESS: Final = ("again", "key")  # settings under which a call may be repeated after a crash
_LISTED: Final = 20  # tools listed in a refusal
_LOOKED_AT: Final = 2_000  # characters of a value that its summary uses


class Approver(Protocol):
    """The part of a turn that tools need: it asks people."""

    async def ask_approval(self, action: str, arguments: dict[str, Json] | None = None) -> dict[str, Any]: ...


class ToolAnswer(NamedTuple):
    """The result of a call for the model: whether the tool ran, failed or was refused, and by which `rule`. `elapsed`
    is the tool's own duration in microseconds, `place` the line of the user's code where it raised. `trust` is the
    label of the value; a `told` value quotes its untrusted parts already. `said` is the value in short, for people."""

    value: Json
    outcome: ToolOutcome = "done"
    elapsed: int = 0
    place: str = ""
    rule: str = ""
    trust: Trust = TRUSTED
    told: bool = False
    said: str = ""
    fault: OwnersFunctionFailed | None = None  # a hook that raised: the result is recorded, then the task fails


class Toolbox(NamedTuple):
    ground: Ground
    insisting: Insisting
    redaction: Redaction
    circles: Circles

    async def use(self, turn: Approver, live: LiveTask, call: ToolCall, do: ToolFunction) -> Json:
        """Use a tool, and return the text for the model. Raise `HandedOver` if the call hands the task over."""
        live.must_be_at_work()
        live.conversation.must_go_on()
        call, given, wrong = _read(call)
        with live.verb():
            circle = self.circles.around(live, call, given)
            told = await self._use_once(turn, live, call, do, circle, _not_allowed(live, call) or wrong)
            more = await circle.learn(told.value, told.outcome)
        return f"{told.value if isinstance(told.value, str) else encode(told.value)}\n\n{more}" if more else told.value

    async def _use_once(
        self, turn: Approver, live: LiveTask, call: ToolCall, do: ToolFunction, circle: Circle, refusal: str | None
    ) -> ToolAnswer:
        """Return the recorded result of a call. If there is none, use the tool, or refuse the call for the reason
        `refusal`, and record the result."""
        live.conversation.used.add((live.operations.where, call.id))
        op = live.operations.tool(call.id, digest(circle.action))
        if live.attempt.is_rerun:
            if (kept := await self._recalled(live, op, circle)) is not None:
                return kept
            if refusal is not None and await self._was_begun(op):
                refusal = f"{may_be_done(call.name)}. {refusal}"
            doubt = await self._in_doubt(live, call, op) if refusal is None else refusal
            if doubt is not None:
                refusal = doubt
                await self._forget_effects(live, op)  # they will not be requested again; the model gets a note
        then = marks.before(live)
        if refusal is not None:
            told = ToolAnswer(refusal, "refused", rule="not-allowed")
        elif again := await circle.no():
            told = ToolAnswer(again, "refused", rule="repeat")
        else:
            with live.operations.inside(op):
                told = await self._use_approved(turn, live, op, call, do, circle.given)
        said = await _after(turn, live, call, told)
        told = _let_out(live, call, said)
        circle.judge(op, told.value, told.outcome, told.rule)
        told = told._replace(said=self._short(said.value))
        kept = await self._record_result(live, op, call, told, circle, marks.marks(live, then))
        if said.fault is not None:
            await _give_up(live, said.fault)
        return kept

    async def _use_approved(
        self, turn: Approver, live: LiveTask, op: str, call: ToolCall, do: ToolFunction, written: str
    ) -> ToolAnswer:
        """Run the hooks before a call, get the approval, and use the tool. Only the tool's own time is counted.
        `written` is the text of the arguments as the model wrote them."""
        ticks, began = self.ground.clock.ticks, -1
        try:
            arguments = await _hooked(turn, live, call)
            hooked = call if arguments is call.arguments else call._replace(arguments=arguments)
            given = await self._approved(turn, live, hooked, op)
            await self._begin(live, op, call, written)
            key = await key_of(self.ground, live, op) if call.name in live.agent.rules.repeat else ""
            began = ticks()
            token = TOOL_KEY.set(key)
            try:
                told = _value(call.name, await do(given))
            finally:
                TOOL_KEY.reset(token)
            if call.untrusted or call.name in GROUPS["web"]:
                _take_in(live, call.name, told.value)
        except StoreError:
            raise  # without the store the task cannot continue
        except OwnersFunctionFailed as failed:
            await _give_up(live, failed)
        except Refused as refused:
            live.must_be_at_work()  # raises if the turn itself is over
            told = ToolAnswer(_text_of(refused), "refused", rule=refused.rule)
        except Failed as failed:  # the failure of an agent that the tool called
            told = ToolAnswer(_text_of(failed), "failed", place=place(failed, library=False))
        except (Exception, SystemExit, KeyboardInterrupt, CancelledError) as error:  # noqa: BLE001 - it goes to the model
            # A SystemExit or KeyboardInterrupt would end the process: tools that parse options call sys.exit.
            _must_be_its_own(live, error)
            told = _failed(call, error)
            if began >= 0 and (call.untrusted or call.name in GROUPS["web"]):
                _take_in(live, call.name, told.value)
        live.conversation.must_go_on()  # a lost conversation inside the tool, whose error the tool may have caught
        under_way = live.operations.call_under_way
        live.receipt.tell(under_way, told.value)
        if under_way in live.conversation.untrusted:
            told = told._replace(trust=UNTRUSTED)
        return told if began < 0 else told._replace(elapsed=ticks() - began)

    async def _recalled(self, live: LiveTask, op: str, circle: Circle) -> ToolAnswer | None:
        """Return the recorded result of a call, or None if there is none. Apply the recorded effects of the call to the
        turn."""
        kept = await self.ground.store.read(lambda view: view.done(op))
        if kept is None:
            return None
        await self._forget_effects(live, op)
        value, outcome, *beside = cast("list[Any]", kept[0])
        circle.recall(value, outcome, beside[0] if beside else {})
        marks.apply(live, beside[0] if beside else {})
        return ToolAnswer(value, outcome)

    async def _forget_effects(self, live: LiveTask, op: str) -> None:
        (await kept_effects(self.ground, live)).forget(live.operations.effects_inside(op))

    async def _in_doubt(self, live: LiveTask, call: ToolCall, op: str) -> str | None:
        """If an earlier attempt started this call and did not finish it, return the text that tells the model why the
        call is not repeated. Return None if the call may be repeated, or if a person decides that."""
        how = live.agent.rules.repeats(call.name)
        if how in (*_HARMLESS, "ask") or not await self._was_begun(op):
            return None
        return f"{may_be_done(call.name)}. Find out whether it was done; call it again only if that does no harm"

    async def _was_begun(self, op: str) -> bool:
        return await self.ground.store.read(lambda view: view.done(_begin(op))) is not None

    async def _approved(self, turn: Approver, live: LiveTask, call: ToolCall, op: str) -> dict[str, Any]:
        """If a call needs approval, ask for it, with the arguments that the hooks returned: a person sees what will be
        done. Return the arguments for the tool."""
        name, rules, given = call.name, live.agent.rules, cast("dict[str, Any]", call.arguments)
        if name in rules.approve_tools:
            given = await turn.ask_approval(name, given)
        if live.attempt.is_rerun and rules.repeats(name) == "ask" and await self._was_begun(op):
            try:
                given = await turn.ask_approval(f"{name} again", given)
            except Refused as refused:
                live.must_be_at_work()
                await self._forget_effects(live, op)
                raise Refused(f"{may_be_done(name)}: {refused}", rule="not-allowed") from None
        return given

    async def _begin(self, live: LiveTask, op: str, call: ToolCall, written: str) -> None:
        """Check right before the tool runs that the task still belongs to this process. A tool that must not run twice
        is recorded as started."""
        if live.agent.rules.repeats(call.name) in _HARMLESS:
            await self.ground.store.read(live.must_hold)
            return
        data: ToolBegun = {"tool": call.name, "call": call.id, "given": self._short(written)}

        def decide(view: View) -> Decision[Json]:
            live.must_hold(view)
            return Decision(None, (tool_begun(live.remit, data, self.ground.clock.now()),))

        await self.ground.store.tx(_begin(op), decide)

    async def _record_result(
        self, live: LiveTask, op: str, call: ToolCall, told: ToolAnswer, circle: Circle, marked: dict[str, Json]
    ) -> ToolAnswer:
        """Record the result of a call, and return it as recorded: without the owner's secrets, and as the model will
        get it in a rerun."""
        data: ToolDone = {
            "tool": call.name,
            "call": call.id,
            "given": self._short(circle.given),
            "outcome": told.outcome,
            "result": told.said,
            "elapsed": told.elapsed,
        }
        if told.place:
            data["place"] = told.place

        def decide(view: View) -> Decision[Json]:
            live.must_own(view)
            asks = circle.counted(view, told.value, told.outcome)
            done: ToolDone = {**data, "asks": asks} if asks else data
            beside: dict[str, Json] = {**circle.beside(), **marked}
            kept: list[Json] = [told.value, told.outcome, *([beside] if beside else ())]
            return Decision(kept, (tool_done(live.remit, done, self.ground.clock.now()),))

        what = f"the result of '{call.name}' in task {live.remit.id}"
        write = self.insisting.insist(live.life, what, lambda: self.ground.store.tx(op, decide))
        kept = (await shielded(write)).answer
        if told.outcome == "failed":
            _log.warning("%s", _warning(live, data))
        value, outcome, *_ = cast("list[Any]", kept)
        return ToolAnswer(value, outcome)

    def _short(self, value: Json) -> str:
        """Return a value in one short line. Secrets are removed first: half of a cut secret would not be recognized."""
        text = self.redaction.text(value if isinstance(value, str) else encode(value))
        return summary(text if len(text) <= _LOOKED_AT else f"{text[:_LOOKED_AT]} …")


def _warning(live: LiveTask, data: ToolDone) -> str:
    """Return a log line: tool 'lookup' failed in task t1 of 'clerk', at team.py:8 in lookup: KeyError: 'lamp'."""
    where = f", at {data['place']}" if "place" in data else ""
    said = data.get("result", "").removeprefix(f"'{data['tool']}' failed: ")
    # Logs are read in terminals: escape control characters.
    said = "".join(char if char.isprintable() else repr(char)[1:-1] for char in said)
    return f"tool '{data['tool']}' failed in task {live.remit.id} of '{live.remit.holder}'{where}: {said}"


async def _hooked(turn: Approver, live: LiveTask, call: ToolCall) -> dict[str, Any]:
    """Run the hooks before a call. Return the arguments, as changed by the hooks."""
    given = cast("dict[str, Any]", call.arguments)
    for hook in live.agent.rules.before:
        changed = await _call_hook("a before= hook", hook, turn, call._replace(arguments=given))
        given = given if changed is None else _arguments(call.name, changed)
    return given


def _value(name: str, given: object) -> ToolAnswer:
    """Return a tool's result. A command is no result for the model but the end of its turn: raise `HandedOver`."""
    if isinstance(given, Command):
        raise HandedOver(given)
    if isinstance(given, Rendered):
        return ToolAnswer(checked(given.value, f"what '{name}' gives back"), told=True)
    return ToolAnswer(checked(given, f"what '{name}' gives back"))


def _must_be_its_own(live: LiveTask, error: BaseException) -> None:
    """Raise `error` if it ends the turn: a person's Ctrl-C, or a CancelledError that comes from the end or the
    cancellation of the turn. Return if it is the tool's own failure, for example the CancelledError of an inner asyncio
    task that the tool cancelled."""
    if is_interrupt(error):
        raise error
    if not isinstance(error, CancelledError):
        return
    if is_cancelled() or live.control.scope.cancel_called:
        raise error
    live.must_be_at_work()  # raises if the turn itself is over


def _failed(call: ToolCall, error: BaseException) -> ToolAnswer:
    """Return the result of a tool that raised. A `ToolFailed` quotes foreign text itself."""
    said = f"{_head(call)}{type(error).__name__}: {_text_of(error)}"
    return ToolAnswer(said, "failed", place=place(error, library=False), told=isinstance(error, ToolFailed))


def _text_of(error: BaseException) -> str:
    """Return the text of an error, whatever its class does, as a value that can be recorded."""
    return storable(error_text(error))[: VALUE_LIMIT // 2]  # room for what is put around it


def _take_in(live: LiveTask, name: str, value: Json) -> None:
    """Record that a tool brought untrusted input, although its code did not say so."""
    live.take(UNTRUSTED)
    text = value if isinstance(value, str) else encode(value)
    live.receipt.mark_untrusted(f"tool {name}", text, live.operations.call_under_way)


def _let_out(live: LiveTask, call: ToolCall, answer: ToolAnswer) -> ToolAnswer:
    """Return a tool's result as the model gets it, with untrusted text quoted. Every result of a tool passes through
    here."""
    value, trust = answer.value, answer.trust
    if trust != TRUSTED:
        live.take(trust)  # also for the enclosing call
    if answer.told or (trust == TRUSTED and answer.outcome != "failed"):
        return answer
    if answer.outcome == "done" and call.quote is not None:
        return answer._replace(value=call.quote(value))
    text = value if isinstance(value, str) else encode(value)
    if answer.outcome == "done":
        text = quoted(text)
    elif answer.outcome == "refused":
        text = failure_told(f"'{call.name}' was refused", text, trust)
    elif trust != TRUSTED or len(text.splitlines()) > 1:
        text = failure_told(_head(call).rstrip(": "), text.removeprefix(_head(call)), trust)
    return answer._replace(value=text)


def _head(call: ToolCall) -> str:
    return f"'{call.name}' failed: "


async def _after(turn: Approver, live: LiveTask, call: ToolCall, told: ToolAnswer) -> ToolAnswer:
    """Run the hooks after a tool, whatever its result; each may replace the text for the model."""
    for hook in live.agent.rules.after:
        try:
            changed = await _call_hook("an after= hook", hook, turn, call, told.value)
        except (RemitError, OwnersFunctionFailed) as no:  # the hook withholds the result
            fault = no if isinstance(no, OwnersFunctionFailed) else None
            error = no if fault is None else fault.error
            text = f"{_head(call)}a hook said {type(error).__name__}: {_text_of(error)}"
            where = place(error, library=False)
            return told._replace(value=text, outcome="failed", place=where, told=False, fault=fault)
        if changed is not None:
            told = told._replace(value=checked(changed, f"what a hook says of '{call.name}'"))
    return told


async def _call_hook(role: str, hook: Any, *args: object) -> Any:
    with owners_function(role):
        result = hook(*args)
        return await result if inspect.isawaitable(result) else result


async def _give_up(live: LiveTask, failed: OwnersFunctionFailed) -> NoReturn:
    """Fail the task: the result of the owner's function is unknown, and no model can fix that."""
    live.control.give_up(failed)
    await checkpoint()
    raise failed


def _arguments(name: str, changed: object) -> dict[str, Any]:
    if not isinstance(changed, Mapping):
        raise BadInput(
            f"a hook before '{name}' gives back None or its arguments as a dict, not {type(changed).__name__}"
        )
    return {**cast("Mapping[str, Any]", changed)}


# -- refusals ---------------------------------------------------------------------------------------------------


def _not_allowed(live: LiveTask, call: ToolCall) -> str | None:
    name, kit = call.name, remits.kit(live.remit, live.card, inner=True) if call.inner else live.kit
    if kit.has(name):
        return None
    names = sorted(kit.names - GROUPS["context"])[:_LISTED] if isinstance(kit.names, frozenset) else ["others"]
    may = f"you may use {', '.join(names)}" if names else "you may use no tools"
    return f"'{live.remit.holder}' may not use '{name}' for this task; {may}, or finish without it"


def _read(call: ToolCall) -> tuple[ToolCall, str, str | None]:
    """Check the arguments of a call. Return the call with them, their text, and None. If they are too large or too
    deep, return the call without arguments, `{}`, and the error."""
    try:
        given, text = checked_with_text({**call.arguments}, f"the arguments of '{call.name}'")
    except BadInput as wrong:
        return call._replace(arguments={}), "{}", f"'{call.name}' was not used: {wrong}"
    return call._replace(arguments=cast("dict[str, Any]", given)), text, None


def _begin(op: str) -> str:
    return f"{op}/begun"


def may_be_done(name: str) -> str:
    """Return the sentence for a tool call that an interrupted attempt may have made."""
    return f"'{name}' was begun before the task was interrupted and may have been done; it was not used again"

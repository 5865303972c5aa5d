"""Asking a model: once for every request, however often the task is run. A failing model is replaced by the next, and
everything that was sent is recorded and paid for."""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import Callable, Generator, Iterable
from functools import partial
from itertools import filterfalse
from typing import Any, NamedTuple, cast

from remit.core.checks import meant
from remit.core.events import Unsealed
from remit.core.kinds.models import cooling_set, model_answered, model_failed, model_waiting
from remit.core.kinds.money import ledger_event
from remit.core.kinds.tasks import Wait
from remit.core.money import LEAST_OUTPUT, UNITS, Lease, Purse, Unit, first_line, fitting
from remit.core.prices import Usage
from remit.core.recovery import (
    FRESH,
    OWN_KEY,
    Choice,
    Cooling,
    GaveUp,
    ModelFailure,
    ModelTry,
    Situation,
    after,
    charged,
    cleared,
    key_name,
    names_of,
    on_loopback,
    own_key,
    recovery,
    resting,
    sentence,
)
from remit.core.secret import Secret
from remit.core.times import SECOND
from remit.core.trust import TRUSTED
from remit.core.values import Json
from remit.engine.attempt import live as marks
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.slots import Slots
from remit.engine.door import purse_in
from remit.engine.ground import Ground
from remit.engine.last_share import LAST_WORD, last_share
from remit.engine.models.circling import Circles
from remit.engine.models.speaking import Speech
from remit.engine.money import NOT_SENT, Bill, InstalledPrices, Paying, unknown_price
from remit.engine.presence.insisting import Insisting
from remit.engine.timing import move_on_after, shielded
from remit.engine.traces import OwnersFunctionFailed
from remit.engine.upkeep.keys import Keys, own_mark
from remit.errors import Failed, NoAnswer, OutOfRequests, Refused
from remit.ports import Decision, View
from remit.ports.models import LISTENER, KeptAnswer, ModelAnswer, ModelCall, Position, TextChunk


class PaidRequest(NamedTuple):
    """A model request that is ready to be sent: the try, its output token limit, when it was made ready (0 if it cannot
    be sent), and the id of its hold (empty if no budget applies)."""

    attempt: ModelTry
    most: int
    began: int
    hold: str = ""


class Costs(NamedTuple):
    paying: Paying

    async def prepared(self, live: LiveTask, call: ModelCall, attempt: ModelTry, purse: Purse) -> PaidRequest:
        """Place a hold for the highest cost of a request, if a budget or limit applies. If less money is left, lower
        the output limit. Raise `Refused` with all figures if it cannot be paid."""
        ground, holding = self.paying.ground, self.paying.holding
        if not purse and not holding.limits:
            return PaidRequest(attempt, call.most, ground.clock.now())
        bill = Bill({}, attempt.model, attempt.model, own_key(attempt))
        read, priced = call.size(attempt.trim), await self._is_priced(live, bill, purse, attempt)
        units: tuple[Unit, ...] = ("credits", "tokens") if priced else ("tokens",)

        def worst(unit: Unit, most: int) -> int:
            return read + most if unit == "tokens" else self._worst(attempt, read, most)

        async def fits(most: int) -> int:
            left = await ground.store.read(lambda view: [self._amount_left(view, live, bill, unit) for unit in units])
            return _fitting(worst, zip(units, left, strict=True), most, max(LEAST_OUTPUT, call.least))

        most = await fits(call.most)
        while True:
            held = bill._replace(amounts={unit: worst(unit, most) for unit in units})
            try:
                hold = await holding.place(live, held, started=True, asks=False)
                return PaidRequest(attempt, most, ground.clock.now(), hold)
            except Refused as no:
                fewer = await fits(most)  # other calls may have spent some of it while this one waited
                if fewer == most:
                    full: dict[Unit, int] = {unit: worst(unit, call.most) for unit in units}
                    if not await holding.has_more(live, held, no, full):
                        raise
                    fewer = await fits(call.most)
            most = fewer

    def cost(self, attempt: ModelTry, usage: Usage | None) -> int | None:
        """Return the cost of `usage` in millionths of a dollar, or None if it is unknown. A model on this machine costs
        nothing unless it has a price."""
        prices = self.paying.tariff.prices
        if usage is None or (isinstance(prices, InstalledPrices) and not prices.is_loaded):
            return None
        found = prices.cost(attempt.model, usage)
        return 0 if found is None and on_loopback(attempt.endpoint) else found

    def charge(
        self, view: View, live: LiveTask, request: PaidRequest, usage: Usage | None, cost: int | None
    ) -> list[Unsealed]:
        """Return the events that charge a model answer: the real cost, or the full hold if the provider reported no
        usage."""
        costs: dict[Unit, int] | None = None
        if usage is not None:
            costs = {"tokens": usage.input + usage.output}
            if cost is not None:
                costs["credits"] = cost
        if request.hold:
            held = view.hold(request.hold)
            if held is None or held.state == "uncertain":
                return []
            if costs is not None and "credits" in held.amounts and cost is None:
                costs = None
            live.conversation.pays = True
            return self.paying.holding.settled(view, live, held, costs)
        if not costs:
            return []
        model, now = request.attempt.model, self.paying.ground.clock.now()
        data: dict[str, Any] = {"costs": costs, "steps": {}, "why": model, "model": model}
        if own := own_key(request.attempt):
            data["own_key"] = own
        if live.remit.by:
            data["person"] = live.remit.by
        return [ledger_event("credits.spent", live.place, live.remit.holder, now, data)]

    def charge_failure(
        self,
        view: View,
        live: LiveTask,
        request: PaidRequest,
        failure: ModelFailure | None,
        spent: Usage | None = None,
    ) -> list[Unsealed]:
        """Return the events that charge a failed request. If the provider reported the usage, charge its real cost. If
        the request was not sent, or was answered with an error, charge nothing. Otherwise charge `spent`, the most that
        the request can have used, or the full hold where that is unknown."""
        if failure is not None and failure.usage is not None:
            return self.charge(view, live, request, failure.usage, self.cost(request.attempt, failure.usage))
        held = view.hold(request.hold) if request.hold else None
        if held is None or held.state == "uncertain":
            return []
        if failure is not None and charged(failure) == "nothing":
            why = f"{failure.kind}: nothing is charged for that" if failure.sent else NOT_SENT
            return self.paying.holding.released(live, held, why)
        return self.paying.holding.settled(view, live, held, None, self._at_most(request.attempt, spent))

    # -- inside -----------------------------------------------------------------------------------------

    def _at_most(self, attempt: ModelTry, spent: Usage | None) -> dict[Unit, int] | None:
        """Return the amounts that a request can have cost at most, for the units in which that is known."""
        if spent is None:
            return None
        found: dict[Unit, int] = {"tokens": spent.input + spent.output}
        if (cost := self.cost(attempt, spent)) is not None:
            found["credits"] = cost
        return found

    async def _is_priced(self, live: LiveTask, bill: Bill, purse: Purse, attempt: ModelTry) -> bool:
        """Whether credits are held for the request. If credits are limited, a model without a known price is refused
        or, by policy, only its tokens count."""
        tariff = self.paying.tariff
        limited = "credits" in bill.paid_from(purse) or any(
            limit.most("credits") is not None and limit.meters(live.remit.holder, live.remit.session, live.remit.by)
            for limit in self.paying.holding.limits
        )
        if limited and isinstance(tariff.prices, InstalledPrices) and not tariff.prices.is_loaded:
            await to_thread(tariff.prices.load)
        if self._priced(attempt, 0, 1) is not None:
            return True
        if limited and tariff.refuse_unknown:
            raise unknown_price(attempt.model, tariff)
        return False

    def _priced(self, attempt: ModelTry, read: int, most: int) -> int | None:
        found = self.paying.tariff.prices.worst(attempt.model, read, most)
        return 0 if found is None and on_loopback(attempt.endpoint) else found

    def _worst(self, attempt: ModelTry, read: int, most: int) -> int:
        return self._priced(attempt, read, most) or 0

    async def last_word(self, live: LiveTask) -> str:
        """Return the sentence that tells a model that this is its last answer, or "". The sentence is for the first
        task of a run, if the money is left for only one more answer and a person, if asked, grants no more."""
        if not live.conversation.pays or live.remit.id != live.remit.root:
            return ""
        holding = self.paying.holding

        def look(view: View) -> tuple[Lease, int] | None:
            leases = [lease for unit in UNITS if (lease := view.lease(live.remit.root, unit)) is not None]
            shares = [(lease, last_share(view, holding.last_word, lease)) for lease in leases]
            return next(((lease, share) for lease, share in shares if lease.available < 2 * share), None)

        found = await self.paying.ground.store.read(look)
        if found is None or (holding.more is not None and await holding.more().go_on(holding, live, *found)):
            return ""
        return LAST_WORD

    def _amount_left(self, view: View, live: LiveTask, bill: Bill, unit: Unit) -> int | None:
        """Return the amount that leases and limits leave for a request, or None if nothing limits it. Amounts in open
        holds count as available."""
        holding, remit = self.paying.holding, live.remit
        path = bill.paid_from(purse_in(view, live.remit.id)).get(unit, ())
        leases = [lease for id_ in first_line(path) if (lease := view.lease(id_, unit)) is not None]
        left = [lease.available + lease.reserved for lease in leases]
        if remit.id != remit.root:  # only the first task of the run can spend its last share
            run = [lease for lease in leases if lease.id == remit.root]
            left += [one.available + one.reserved - last_share(view, holding.last_word, one) for one in run]
        for limit in holding.limits:
            most, metered = limit.most(unit), limit.meters(remit.holder, remit.session, remit.by)
            if most is not None and metered is not None:
                since = limit.since(self.paying.ground.clock.now())
                left.append(most - view.metered(metered.scope, metered.name, unit, since))
        return max(0, min(left)) if left else None


def _fitting(worst: Callable[[Unit, int], int], left: Iterable[tuple[Unit, int | None]], most: int, least: int) -> int:
    """Return the highest output limit, from `least` to `most`, whose cost the remaining amount of each unit covers. If
    not even `least` is covered, return it: its hold is then refused. A remaining amount of None is unlimited."""
    for unit, there in left:
        if there is not None:
            most = fitting(partial(worst, unit), there, most, least)
    return most


Search = Generator[ModelTry, Situation, GaveUp | None]


class _Known(NamedTuple):
    """The facts from the store before a request: recent failures, the task's purse, and the digest of the workspace's
    own key for each provider."""

    coolings: dict[str, Cooling]
    purse: Purse
    own: dict[str, str]


class Models(NamedTuple):
    """Asks models. `used` has the time at which this process last used each key. Of several keys, the one that was not
    used for the longest time is tried next."""

    ground: Ground
    costs: Costs
    keys: Keys
    insisting: Insisting
    slots: Slots
    used: dict[str, int]
    circles: Circles

    async def ask(self, live: LiveTask, call: ModelCall) -> ModelAnswer:
        """Ask a model. In a rerun, return the recorded answer, without asking or paying again."""
        live.must_be_at_work()
        if live.agent.rules.expects:
            _must_have_what_was_named(live, call.tools)
        at = call.at
        op = live.operations.model(call.digest) if at is None else live.operations.position(at.talk)
        with live.verb():
            reply = await self._recorded_answer(live, op) if at is None and live.attempt.is_rerun else None
            if reply is None:
                _must_go_on(live)
                reply = await self._first_answer(live, call, op)
        if at is not None:
            live.operations.answered(at.talk)
        live.conversation.requests += 1
        if reply.calls and (strange := _strange(call, reply)):
            await self.circles.unknown(live, strange)
        return reply

    async def recalled(self, live: LiveTask, talk: str, kept: dict[str, Any]) -> KeptAnswer:
        """Return the record at the next position of a conversation, and advance past it."""
        answer = self.kept_answer(live, kept)
        live.operations.answered(talk)
        live.conversation.requests += 1
        if strange := kept.get("strange"):
            await self.circles.unknown(live, strange)
        return answer

    def kept_answer(self, live: LiveTask, kept: dict[str, Any]) -> KeptAnswer:
        """Return the request text and the answer of a record."""
        return KeptAnswer(kept.get("told", ""), _answer(live, kept))

    async def record(self, live: LiveTask, talk: str) -> dict[str, Any] | None:
        """Return the recorded answer at the next position of a conversation, or None if the model has not been asked
        there yet."""
        op = live.operations.position(talk)

        def look(view: View) -> tuple[Json] | None:
            live.must_hold(view)
            return view.done(op)

        kept = await self.ground.store.read(look)
        return None if kept is None else cast("dict[str, Any]", kept[0])

    async def _recorded_answer(self, live: LiveTask, op: str) -> ModelAnswer | None:
        kept = await self.ground.store.read(lambda view: view.done(op))
        return None if kept is None else _answer(live, cast("dict[str, Any]", kept[0]))

    async def _first_answer(self, live: LiveTask, call: ModelCall, op: str) -> ModelAnswer:
        """Ask one model after the other until one answers. Raise `NoAnswer` with the failure of each if none does."""
        known = await self._look_up(live, call)
        choices = [_with_own_key(choice, known.own) for choice in call.choices] if known.own else call.choices
        start = self._situation(known, None)
        search = recovery(choices, start, until=self._until(live), trim=live.conversation.trim)
        tries: dict[str, int] = {}
        try:
            attempt = next(search)
            while True:
                live.conversation.trim = max(live.conversation.trim, attempt.trim)
                tries[attempt.model] = tries.get(attempt.model, 0) + 1
                if attempt.wait:
                    await self._pause(live, attempt, tries[attempt.model])
                reply = await self._tried(live, call, op, attempt, known)
                if not isinstance(reply, ModelFailure):
                    return reply
                known = await self._look_up(live, call)
                attempt = search.send(self._situation(known, reply))
        except StopIteration as over:
            raise _no_answer(live, cast("GaveUp", over.value)) from None

    async def _tried(
        self, live: LiveTask, call: ModelCall, op: str, attempt: ModelTry, known: _Known
    ) -> ModelAnswer | ModelFailure:
        """Send one request, record its result, and return the answer or the failure."""
        if provider := own_key(attempt):
            attempt = attempt._replace(secret=await self._own_key(live, provider))
        if call.ready is not None and (failure := await self._unready(live, call, attempt)) is not None:
            return failure
        request = await self.costs.prepared(live, call, attempt, known.purse)
        if key := key_name(attempt):
            self.used[key] = request.began
        try:
            if LISTENER.get() is not None or self.ground.ears.awake:
                reply = await _send_request(call, attempt, request.most, self._speech(live, request.began))
            else:
                reply = await call.send(attempt, request.most, None)
        except Exception as error:
            failure = call.failure(error)
            await self._record_failure(live, request, failure, call.spent)
            if failure is None:
                raise
            return failure
        except BaseException:
            await self._record_failure(live, request, None, call.spent)
            raise
        return await self._keep(live, op, request, reply, known, call)

    def _speech(self, live: LiveTask, began: int) -> Speech | None:
        """Notify the listeners that an answer starts, and return the stream to them. Return None if there is no
        listener and none is expected."""
        listener, remit, ears = LISTENER.get(), live.remit, self.ground.ears
        # A worker that the listener's context started must not stream other runs.
        own = () if listener is None or listener.run != remit.root else (listener.hear,)
        if not own and not ears.are_open:
            return None
        begins = TextChunk(remit.holder, remit.id, begins=True, run=remit.root, session=remit.session, began=began)
        return Speech(begins, own, ears, self.keys.redaction)

    async def _unready(self, live: LiveTask, call: ModelCall, attempt: ModelTry) -> ModelFailure | None:
        """Create the client before any money is held: a request that cannot be sent costs nothing. Return the failure,
        or None."""
        assert call.ready is not None
        try:
            opened = await call.ready(attempt)
        except Exception as error:
            failure = call.failure(error)
            if failure is None:
                raise
            await self._record_failure(live, PaidRequest(attempt, 0, 0), failure)
            return failure
        if opened is not None:
            self.keys.redaction.learn(opened)
        return None

    async def _pause(self, live: LiveTask, attempt: ModelTry, number: int) -> None:
        """Wait until this model is available, and record that: people see what a task waits for."""

        def decide(view: View) -> Decision[Json]:
            live.must_own(view)
            return Decision(None, (model_waiting(live.remit, attempt, number, self.ground.clock.now()),))

        await self.ground.store.tx(self.ground.ids.new(), decide)
        async with self.slots.given_up(live, Wait("model", attempt.model)):
            with move_on_after(self.ground.clock, attempt.wait / SECOND):
                await asyncio.Event().wait()

    # -- recording ----------------------------------------------------------------------------------------------

    async def _keep(
        self, live: LiveTask, op: str, request: PaidRequest, reply: ModelAnswer, known: _Known, call: ModelCall
    ) -> ModelAnswer:
        """Record an answer and charge it in one transaction, and retry until the store has it. Return the answer as
        recorded: secrets are redacted, as they will be in a rerun."""
        attempt = request.attempt
        try:
            cost = self.costs.cost(attempt, reply.usage)
        except OwnersFunctionFailed as failed:  # the full hold is charged, as uncertain
            await self._record_failure(live, request, None)
            live.control.give_up(failed)
            raise
        kept: dict[str, Json] = {
            "text": reply.text,
            "model": reply.model,
            "calls": [*reply.calls],
            "trim": attempt.trim,
            **_position_data(call.at),
        }
        if reply.calls and (strange := _strange(call, reply)):
            kept["strange"] = cast("Json", strange)
        if live.took != TRUSTED:
            kept["took"] = live.took

        def decide(view: View) -> Decision[Json]:
            live.must_own(view)
            now = self.ground.clock.now()
            told = _answer_data(reply, cost, now - request.began)
            if not live.conversation.requests:
                # With the first answer, so that people see the receipt while the turn runs, not only at its end.
                told["receipt"] = live.receipt.data()
            events = [
                model_answered(live.remit, attempt, told, now),
                *self.costs.charge(view, live, request, reply.usage, cost),
                *_rested(known, attempt, now),
            ]
            return Decision(kept, events)

        what = f"an answer to task {live.remit.id}"
        found = await self._write_reliably(live, request, what, lambda: self.ground.store.tx(op, decide))
        return reply if found["text"] == reply.text else reply._replace(text=found["text"], response=None)

    async def _record_failure(
        self,
        live: LiveTask,
        request: PaidRequest,
        failure: ModelFailure | None,
        spent: Callable[[], Usage | None] | None = None,
    ) -> None:
        """Record a failed model request, charge it, and put the model or its key on cooldown."""
        attempt, op = request.attempt, self.ground.ids.new()
        most = spent() if spent is not None else None

        def decide(view: View) -> Decision[Json]:
            live.must_own(view)
            now = self.ground.clock.now()
            events = self.costs.charge_failure(view, live, request, failure, most)
            if failure is not None:
                took = now - request.began if request.began else 0
                events += [model_failed(live.remit, attempt, failure, now, took), *_rests(view, attempt, failure, now)]
            return Decision(None, events)

        if failure is not None or request.hold:
            what = f"a request of task {live.remit.id}"
            await self._write_reliably(live, request, what, lambda: self.ground.store.tx(op, decide))

    async def _write_reliably(self, live: LiveTask, request: PaidRequest, what: str, write: Any) -> Any:
        try:
            return (await shielded(self.insisting.insist(live.life, what, write))).answer
        finally:
            live.holds.pop(request.hold, None)

    # -- facts from the store -----------------------------------------------------------------------------------

    async def _look_up(self, live: LiveTask, call: ModelCall) -> _Known:
        providers, at = {choice.provider for choice in call.choices if choice.provider}, call.at

        def look(view: View) -> _Known:
            if at is None or at.talk or at.begins:  # otherwise `news` has just read the store, including this
                live.must_hold(view)
            self.circles.must_go_on(view, live)
            own = {name: own_mark(row) for name in providers if (row := view.secret(name)) is not None}
            return _Known(view.coolings(), purse_in(view, live.remit.id), own)

        return await self.ground.store.read(look)

    async def _own_key(self, live: LiveTask, provider: str) -> Secret:
        """Return the workspace's own key for a provider."""
        secret = await self.keys.open(provider)
        if secret is None:
            gone = f"the workspace's key for {provider} was removed a moment ago; try again"
            raise Failed(gone, agent=live.remit.holder, task=live.remit.id, retryable=True)
        return secret

    def _situation(self, known: _Known, failure: ModelFailure | None) -> Situation:
        if not self.used:
            return Situation(failure, self.ground.clock.now(), known.coolings)
        state = {**known.coolings}
        for name, used in self.used.items():
            state[name] = state.get(name, FRESH)._replace(used=used)
        return Situation(failure, self.ground.clock.now(), state)

    def _until(self, live: LiveTask) -> int:
        """Return the time at which the task's time is up, at most a year from now."""
        return self.ground.clock.now() + min(live.life.ends - live.control.clock.ticks(), _LONG)


_LONG = 365 * 86_400 * SECOND


def _with_own_key(choice: Choice, own: dict[str, str]) -> Choice:
    """If the workspace has a key for the endpoint of a choice, return the choice with this key. It comes after the keys
    that the agent names. If the agent names none, it replaces the key of the environment."""
    if choice.provider not in own:
        return choice
    key, mark = (OWN_KEY + choice.provider,), (own[choice.provider],)
    if not choice.named:
        return choice._replace(keys=key, marks=mark)
    return choice._replace(keys=choice.keys + key, marks=choice.marks + mark)


async def _send_request(call: ModelCall, attempt: ModelTry, most: int, speech: Speech | None) -> ModelAnswer:
    """Send a request. If there is a listener, stream the answer to it."""
    if speech is None:
        return await call.send(attempt, most, None)
    is_whole = False
    try:
        reply = await call.send(attempt, most, speech.hear)
        is_whole = True
        return reply
    finally:
        speech.end(is_whole=is_whole)


def _must_go_on(live: LiveTask) -> None:
    most = live.agent.rules.iterations
    if live.conversation.requests >= most:
        raise OutOfRequests(
            f"'{live.remit.holder}' has asked its model {most} times, which is all it may for one task; what was said "
            "is kept in the journal. Give it a smaller task, or more iterations",
            agent=live.remit.holder,
            task=live.remit.id,
            retryable=False,
        )


def _answer(live: LiveTask, kept: dict[str, Any]) -> ModelAnswer:
    """Return a recorded answer, and apply its recorded trust label and effects to the turn."""
    live.conversation.trim = max(live.conversation.trim, kept["trim"])
    marks.apply(live, kept)
    return ModelAnswer(kept["text"], kept["model"], None, tuple(kept["calls"]))


def _must_have_what_was_named(live: LiveTask, tools: frozenset[str]) -> None:
    """Raise `Failed` if the owner's `deny`, `approve_tools` or `repeat` names a tool that the agent does not have: a
    typo would protect nothing. If the agent's tools vary from request to request, raise only for a name that resembles
    one of `tools`."""
    if live.operations.inside_tool:
        return  # a request of another agent, with its own tools
    rules = live.agent.rules
    for name in sorted(rules.expects - tools):
        hint = meant(name, tools)
        if hint or not rules.varies:
            raise Failed(
                f"'{name}' is named in deny, approve_tools or repeat of '{live.remit.holder}', which has no such "
                f"tool{hint}; it has {', '.join(sorted(tools)) or 'none'}",
                agent=live.remit.holder,
                task=live.remit.id,
                retryable=False,
            )


def _strange(call: ModelCall, reply: ModelAnswer) -> list[str]:
    """Return the names of called tools that the model was not offered."""
    return [*filterfalse(call.tools.__contains__, reply.calls)]


def _position_data(at: Position | None) -> dict[str, Json]:
    """Return the data recorded with an answer at a position, without empty fields."""
    if at is None:
        return {}
    data: dict[str, Json] = {"told": at.told} if at.told else {}
    if at.begins:
        data["begins"] = at.begins
    if at.framework:
        data["framework"] = at.framework
    if at.saw:
        data["saw"] = [*at.saw]
    return data


def _answer_data(reply: ModelAnswer, cost: int | None, elapsed: int) -> dict[str, Json]:
    data: dict[str, Json] = {"named": reply.model, "calls": [*reply.calls], "elapsed": elapsed}
    if (usage := reply.usage) is not None:
        counts: dict[str, Json] = {"input": usage.input, "output": usage.output}
        if usage.cached_input or usage.cache_written:
            counts |= {"cached_input": usage.cached_input, "cache_written": usage.cache_written}
        if usage.cache_written_1h:
            counts["cache_written_1h"] = usage.cache_written_1h
        data["usage"] = counts
    if cost is not None:
        data["cost"] = cost
    return data


def _rested(known: _Known, attempt: ModelTry, now: int) -> list[Unsealed]:
    """Return the events that clear the cooldown of a model and a key that have just answered."""
    if not known.coolings:
        return []
    return [cooling_set(name, cleared(now), now) for name in names_of(attempt) if name in known.coolings]


def _rests(view: View, attempt: ModelTry, failure: ModelFailure, now: int) -> list[Unsealed]:
    name = resting(attempt, failure.kind)
    before: Cooling = view.coolings().get(name, FRESH)
    then = after(before, failure, now)
    return [cooling_set(name, then, now)] if then.until > now and then._replace(used=before.used) != before else []


def _no_answer(live: LiveTask, gave_up: GaveUp) -> NoAnswer:
    return NoAnswer(
        sentence(gave_up), agent=live.remit.holder, task=live.remit.id, retryable=gave_up.again_at is not None
    )

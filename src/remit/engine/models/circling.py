"""The rules on loops, applied to model calls: one object for each call, which is asked before the call and updated
after it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn, cast

from anyio.lowlevel import checkpoint

from remit.core.kinds.models import ToolOutcome
from remit.core.lifecycle import TERMINAL
from remit.core.loops import (
    ASKS,
    MORE,
    NEVER,
    SHORT,
    AskCount,
    Loops,
    ModelAsk,
    SeenOutcomes,
    last_time,
    learned,
    not_asked,
    refusal_key,
    same,
    stale_sentence,
    stale_warning,
    strike_key,
)
from remit.core.values import Json, canonical, encode
from remit.engine.attempt.endings import Circled
from remit.engine.attempt.live import LiveTask
from remit.engine.finding import Finder
from remit.engine.ground import Ground
from remit.errors import Refused
from remit.ports import View
from remit.ports.models import Brought, ToolCall

RUNS: Final = 256  # runs whose tool outcomes a process remembers
_LATER: Final = frozenset(("call_agent_async", "spawn_agent"))
_ASKS: Final = _LATER | {"call_agent"}
_HANDS_OVER: Final = "handoff"
_STATUS: Final = "check_delegation_status"
_WRITES: Final = frozenset(("remember", "blackboard"))
_REPORTS: Final = "report_progress"  # `remit.adapters.progress`
_CAPABLE: Final = "?"  # prefix of a capability in place of an agent's name
# Refusals that are never the agent's own failure.
_NOT_ITS_OWN: Final = frozenset(("credits", "tokens", "price", "approval", "deadline", "limit"))


class Circles(NamedTuple):
    """Shared state of all model calls. `runs` is what this process has seen of each run."""

    ground: Ground
    finder: Finder
    rules: Loops
    runs: OrderedDict[str, SeenOutcomes]

    def around(self, live: LiveTask, call: ToolCall, given: str) -> Circle:
        return Circle(self, live, call, given)

    def outcomes_of(self, run: str) -> SeenOutcomes:
        found = self.runs.get(run)
        if found is None:
            found = self.runs[run] = SeenOutcomes()
            if len(self.runs) > RUNS:
                self.runs.popitem(last=False)
        else:
            self.runs.move_to_end(run)
        return found

    def must_go_on(self, view: View, live: LiveTask) -> None:
        """Raise `Refused` if the run has used up its model requests. Raise `Circled` if this task has had no new result
        and the latest tasks of its agent in this run were stopped for lack of progress."""
        remit, talk = live.remit, live.conversation
        most = (
            self.rules.requests if remit.bounds.requests is None else self._requests(view, live, remit.bounds.requests)
        )
        if most is not None and view.run(remit.root).requests >= most:
            raise Refused(
                f"the models of this run have been asked {most:,} times, which is all they may be; '{remit.holder}' "
                "stops here",
                rule="requests",
            )
        if self.rules.strikes is None or not talk.requests or talk.rounds.has_gained:
            return
        key = strike_key(remit.holder)
        strikes = view.asks(remit.root, (key, key, key)).get(key, NEVER).times
        is_like_them = live.attempt.asked_how != "delegate" and talk.rounds.has_refusals
        if strikes >= (1 if is_like_them else self.rules.strikes):
            raise Circled(
                f"'{remit.holder}' was stopped: its latest tasks in this run were stopped too, and this one has "
                "brought no new result either",
                rule="repeat",
            )

    def _requests(self, view: View, live: LiveTask, own: int) -> int:
        """Return how many model requests the run may make, if the bounds of a task limit it to `own`. The bounds of the
        whole run may exceed the rule `requests`; the bounds of a subtask can only lower it."""
        if not live.remit.parent:
            return own
        root = view.record(live.remit.root)
        began = view.event(root.began) if root is not None else None
        first = cast("dict[str, int]", began.data["bounds"]).get("requests") if began is not None else None
        most = self.rules.requests if first is None else first
        return own if most is None else min(most, own)

    async def unknown(self, live: LiveTask, names: list[str]) -> None:
        """Count calls of tools that a model was not offered; no other rule sees such calls. Stop the turn with
        `Circled` if the model keeps making them."""
        rounds, number, rules = live.conversation.rounds, live.conversation.round, self.rules
        for name in names:
            stale, times = rounds.in_vain(number), rounds.refused("unknown-tool", name, number)
            often = rules.refusals is not None and times >= rules.refusals
            if often or (rules.stale is not None and stale >= rules.stale + MORE):
                how = "again and again" if often else "and others"
                await stop(live, f"it called '{name}' {how}, which it does not have", "unknown-tool")

    async def exchanged(self, live: LiveTask, words: str, number: int, *, says: bool, hands_on: bool) -> None:
        """Judge a round without a tool call, by the request and the answer. Such a round cannot be refused: an agent
        that repeats it is warned, and then stopped."""
        talk, most = live.conversation, self.rules.most(asks=hands_on)
        if not talk.rounds.exchanged(words, number, says=says) or most is None:
            return
        stale = talk.rounds.stale
        if stale >= most:
            how = f"{stale} times in a row nothing new came of what it did"
            await stop(live, f"it goes on with what brings nothing new: {how}", "repeat")
        talk.warning = stale_warning(stale, most) if stale >= self.rules.told else ""


class Circle:
    """One tool call of a model, as the loop rules see it. `given` is the text of its arguments. `action` is the name of
    the tool, followed by `given`."""

    __slots__ = (
        "_call",
        "_came",
        "_circles",
        "_fresh",
        "_live",
        "_passed",
        "_rows",
        "_wanted",
        "_what",
        "action",
        "asks",
        "given",
        "is_poll",
        "rule",
    )

    def __init__(self, circles: Circles, live: LiveTask, call: ToolCall, given: str) -> None:
        self._circles, self._live, self._call = circles, live, call
        self.given, self.action = given, f"{call.name} {given}"
        is_ask = call.name in _ASKS or call.asks is not None
        self.asks = is_ask or call.name in live.conversation.passes
        # The judged request: a status request is the same whatever its `wait`.
        self._what = f"{_STATUS} {call.arguments.get('task')}" if call.name == _STATUS else self.action
        is_poll = circles.rules.is_poll(call.name) or call.name in live.agent.rules.polls
        self.is_poll = is_poll and self._what not in live.conversation.ended
        self.rule = ""  # the rule that refused it
        self._wanted = _ask_of(live, call) if is_ask else None
        self._passed = False  # whether it ran an agent, or passed the work on to one
        self._came: bool | None = None  # whether its subtask had a new result
        self._fresh: bool | None = None  # whether its result was new; None if that does not count
        self._rows: Mapping[str, AskCount] = {}
        live.conversation.calls += 1

    async def no(self) -> str:
        """Return why the call is refused, or "" if it may be made."""
        rules, stale = self._circles.rules, self._live.conversation.rounds.stale
        if self._wanted is not None:
            wanted = self._wanted = await self._resolved(self._wanted)
            run = self._live.remit.root
            rows = await self._circles.ground.store.read(lambda view: view.asks(run, wanted.keys))
            if why := not_asked(rules, wanted, rows):
                return why
        most = rules.most(asks=self.asks)
        if self._call.name == _HANDS_OVER or self.is_poll or most is None or stale < most:
            return ""
        return stale_sentence(self._call.name, stale, asks=self.asks)

    async def _resolved(self, wanted: ModelAsk) -> ModelAsk:
        """Return the request. If it names a capability, replace that by the agent that the capability stands for: the
        request counts like one that names this agent."""
        if not wanted.agent.startswith(_CAPABLE):
            return wanted
        chosen = await self._circles.finder.chosen(wanted.agent[len(_CAPABLE) :], self._live)
        return wanted._replace(agent=chosen) if chosen else wanted

    def judge(self, op: str, value: Json, outcome: ToolOutcome, rule: str) -> None:
        """Check whether the result is new, as far as this process has seen, before it is recorded."""
        self.rule = rule
        seen, remit = self._circles.outcomes_of(self._live.remit.root), self._live.remit
        if self._call.name == _STATUS:
            self._look_at_state(value, outcome)
        if outcome == "refused" or self.is_poll:
            return
        if self._wanted is None:
            self._fresh = self._judged(seen, op, value)
        elif self._call.name in _LATER:  # its result is not known yet
            self._came = not (isinstance(value, dict) and bool(value.get("existing")))
        else:
            self._came = seen.came(remit.id, self._wanted.text)

    def _judged(self, seen: SeenOutcomes, op: str, value: Json) -> bool | None:
        """Return whether a tool's result is new, or None if the result says nothing about progress."""
        talk, call = self._live.conversation, self._call
        brought = None if call.brought is None else call.brought(value)
        if brought is not None and brought.hands_on:
            return self._handed_on(brought)
        if brought is not None:
            value = brought.value
        elif call.name in _WRITES:
            value = _without_version(value)
        place = self._live.operations.inside_of(op) if talk.inside else ""
        if place not in talk.inside:
            fresh = seen.is_new(self._what, encode(value))
            if call.name == _REPORTS and fresh:
                return None  # a new text is no repetition; it is no news either, or it could hide a loop
        else:
            self._passes()
            if (came := talk.inside.pop(place)) is not None:  # tools were used inside: their results decide
                return came or None
            text = value if isinstance(value, str) else encode(value)
            short = len(text.split()) <= SHORT  # "yes", "done": each question may have this answer
            fresh = seen.is_new(self.action if short else self._call.name, text) is True
        self._tell_asker(seen, new=fresh is not False)
        return fresh

    def _look_at_state(self, value: Json, outcome: ToolOutcome) -> None:
        """Record that the task which the model asks about has ended: from now on, asking again is a repetition and not
        a poll."""
        if outcome == "done" and (not isinstance(value, dict) or value.get("state") in TERMINAL):
            self._live.conversation.ended.add(self._what)
            self.is_poll = False

    def _handed_on(self, brought: Brought) -> bool:
        """Record that the work was passed on. Return whether that is new in this turn."""
        hop, talk = f"{self._call.name} {encode(brought.value)}", self._live.conversation
        self._passes()
        is_new = hop not in talk.handed
        talk.handed.add(hop)
        return is_new

    def _passes(self) -> None:
        self._passed = True
        self._live.conversation.passes.add(self._call.name)

    def counted(self, view: View, value: Json, outcome: ToolOutcome) -> dict[str, list[Json]]:
        """Count a request to an agent, in the transaction that records the call. Return the changed rows."""
        wanted, run = self._wanted, self._live.remit.root
        if wanted is None or outcome != "done":
            return {}
        rows = view.asks(run, wanted.keys)
        self._fresh, changed = learned(wanted, rows, value if isinstance(value, str) else encode(value), self._came)
        self._rows = changed
        if wanted.key not in rows and view.run(run).tasks > ASKS:  # enough rows: do not add more
            changed = {key: row for key, row in changed.items() if key in rows}
        return {key: [*row] for key, row in changed.items()}

    def beside(self) -> dict[str, Json]:
        """Return the data to record with the result of the call: the rule that refused it, whether the result was new,
        whether the call ran an agent or handed the work on, and its request counts. `recall` restores it in a rerun."""
        kept: dict[str, Json] = {"rule": self.rule} if self.rule else {}
        if self._fresh is not None:
            kept["new"] = self._fresh
        if self._passed:
            kept["passed"] = True
        if self._wanted is not None and (row := self._rows.get(self._wanted.key)) is not None:
            kept["asked"] = [row.times, row.in_vain]
        return kept

    def recall(self, value: Json, outcome: ToolOutcome, kept: Mapping[str, Any]) -> None:
        """Restore the data that an earlier attempt recorded with the result of this call, without counting the call
        again."""
        self.rule, self._fresh = kept.get("rule", ""), kept.get("new")
        if self._call.name == _STATUS:
            self._look_at_state(value, outcome)
        if self._wanted is None and self._fresh is not None:
            self._seen_before(value, self._fresh, passed="passed" in kept)
        if self._wanted is not None and "asked" in kept:
            self._rows = {self._wanted.key: AskCount(*kept["asked"])}

    def _seen_before(self, value: Json, fresh: bool, *, passed: bool) -> None:
        """Record the result of a call that an earlier attempt made, so that a repetition of it is not new. `fresh` is
        whether the result was new then, and `passed` whether the call ran an agent or handed the work on."""
        seen, brought = self._circles.outcomes_of(self._live.remit.root), _brought(self._call, value)
        if passed:
            self._passes()
        if brought is not None and brought.hands_on:
            self._handed_on(brought)
            return
        if brought is not None:
            value = brought.value
        elif self._call.name in _WRITES:
            value = _without_version(value)
        if not passed:
            seen.is_new(self._what, encode(value))
        self._tell_asker(seen, new=fresh)

    async def learn(self, value: Json, outcome: ToolOutcome) -> str:
        """Count the result of the call. Stop a turn that makes no progress. Return the warning to append to the result,
        or "". If the result is a structure to which no text can be appended, return "" and send the warning with the
        next request."""
        more = await self._learned(value, outcome)
        if more and _brought(self._call, value) is not None:
            self._live.conversation.warning = more
            return ""
        return more

    async def _learned(self, value: Json, outcome: ToolOutcome) -> str:
        rounds, number = self._live.conversation.rounds, self._live.conversation.round
        if outcome == "refused":
            await self._refused(value)
            return ""
        if self.is_poll or self._call.name == _HANDS_OVER:
            return ""
        if self._wanted is not None and outcome == "failed":
            rounds.in_vain(number)  # failures are the breaker's business
            return ""
        if self._wanted is not None:
            return self._answered(self._wanted)
        if self._fresh:
            self._gained()
        return self._warning(rounds.in_vain(number)) if self._fresh is False else ""

    def _answered(self, wanted: ModelAsk) -> str:
        rounds, number = self._live.conversation.rounds, self._live.conversation.round
        more = last_time(self._circles.rules, wanted, self._rows.get(wanted.key, NEVER))
        if not wanted.later:
            self._tell_asker(self._circles.outcomes_of(self._live.remit.root), new=bool(self._fresh))
        if not self._fresh:
            stale = rounds.in_vain(number)
            return more or self._warning(stale)
        if not wanted.later:
            self._gained()
        return more

    async def _refused(self, value: Json) -> None:
        rules, talk = self._circles.rules, self._live.conversation
        hop = self._wanted is not None or self._call.name == _HANDS_OVER
        whom = (await self._resolved(_ask_of(self._live, self._call))).agent if hop else self._call.name
        stale = talk.rounds.in_vain(talk.round)
        times = talk.rounds.refused(self.rule, whom, talk.round)
        if rules.refusals is not None and times:
            together = self._count_refusal(whom)
            # Tasks that run concurrently do not see each other's refusals, so each stops one refusal earlier.
            earlier = rules.refusals >= MORE and together >= rules.refusals * MORE
            if times >= rules.refusals - earlier:
                await stop(self._live, f"it was refused again and again: {value}", self.rule)
        most = rules.most(asks=self.asks)
        if most is not None and stale >= most + MORE:
            await stop(self._live, f"it goes on with what brings nothing new: {value}", self.rule)

    def _count_refusal(self, whom: str) -> int:
        """Count this refusal, and return how often the concurrent tasks of this agent in the run had it. A task whose
        asker waits for it is not counted: then return 0."""
        live = self._live
        if live.attempt.asked_how == "delegate":
            return 0
        outcomes = self._circles.outcomes_of(live.remit.root)
        return outcomes.count_refusal(live.remit.holder, refusal_key(self.rule, whom))

    def _gained(self) -> None:
        self._live.conversation.rounds.gained(self._live.conversation.round)
        if self._live.attempt.asked_how != "delegate":
            self._circles.outcomes_of(self._live.remit.root).gained(self._live.remit.holder)

    def _warning(self, stale: int) -> str:
        rules = self._circles.rules
        most = rules.most(asks=self.asks)
        return stale_warning(stale, most) if most is not None and stale >= rules.told else ""

    def _tell_asker(self, seen: SeenOutcomes, *, new: bool) -> None:
        """Record for the asker, and for the enclosing tool call, whether this call had a new result."""
        remit, live = self._live.remit, self._live
        if (inside := live.conversation.inside) and (where := live.operations.where) in inside:
            inside[where] = bool(inside[where]) or new
        if remit.parent:
            seen.note_progress(remit.parent, self._live.conversation.normal_task(remit.task), new=new)


async def stop(live: LiveTask, why: str, rule: str) -> NoReturn:
    """Stop a turn that makes no progress: raise `Circled`, and fail its task. The stop counts as a strike against the
    holder and against the agent that had the task before its first handoff."""
    holder, trail = live.remit.holder, live.handoff.trail
    live.circled = tuple(dict.fromkeys((holder, trail[0].sender if trail else holder)))
    live.spared = live.spared or rule in _NOT_ITS_OWN
    refused = Circled(f"'{holder}' was stopped: {why}", rule="repeat")
    live.control.give_up(refused)
    await checkpoint()
    raise refused


def _without_version(value: Json) -> Json:
    """Return the result of a verb that writes, without the version, which differs each time."""
    return None if isinstance(value, dict) and value.keys() == {"version"} else value


def _brought(call: ToolCall, value: Json) -> Brought | None:
    return None if call.brought is None else call.brought(value)


def _ask_of(live: LiveTask, call: ToolCall) -> ModelAsk:
    if call.asks is not None:
        agent, text = call.asks
        return ModelAsk(live.remit.holder, canonical(agent), same(text))
    whom = call.arguments.get("agent") or ""
    agent = canonical(whom) if isinstance(whom, str) and whom else f"{_CAPABLE}{call.arguments.get('capability', '')}"
    text = call.arguments.get("task", "")
    return ModelAsk(live.remit.holder, agent, same(text if isinstance(text, str) else ""), call.name in _LATER)

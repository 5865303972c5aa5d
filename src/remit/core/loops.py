"""Loop detection: repeated actions, and models that delegate, hand over and call tools again and again without a new
result.

`Repeats` serves delegations and tool calls of programs and models. It gets digests of actions and outcomes, counts over
the latest ones, and takes a changed outcome for progress. Handoffs have their own rule: see `repeated`.

`Loops` has the rules for models. They look for new results, not for similar requests. The outcome of a tool call is new
if the run has not seen it. A delegation was useful if it led to a new outcome below, or, if no tool was used there, to
another answer. A round is one answer of a model: ten calls in one answer are one round, and one new outcome makes the
round new. Decisions of programs are not judged by them, except by `Echoes`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Self

from remit.core.checks import items, of_type, whole
from remit.core.patterns import pattern
from remit.core.records import NamedTuple, dataclass
from remit.core.values import canonical, digest, shown
from remit.errors import BadInput

if TYPE_CHECKING:
    from remit.core.command import Move

WINDOW: Final = 30
HANDOFF_WINDOW: Final = 3
NEVER_REACHED: Final = 1_000_000_000
LONGEST: Final = 1_000  # actions that are remembered


class Thresholds(NamedTuple):
    """The numbers of repeats after which an asker is warned, refused, and stopped."""

    warn: int = 10
    block: int = 20
    stop: int = 30


USUAL: Final = Thresholds()


class Sign(IntEnum):
    """Ordered from mild to severe: nothing, a warning, a refusal of this action, and the end of a task that
    continues."""

    NONE = 0
    WARN = 1
    BLOCK = 2
    STOP = 3


class Repetition(NamedTuple):
    """How often the same action was done, this time included; `in_turn` if two actions alternate. `echo` is not 0 if an
    answer keeps coming back: the number of such answers after which the agent is not called any more. `at` are the
    thresholds."""

    times: int = 1
    in_turn: bool = False
    echo: int = 0
    at: Thresholds = USUAL

    @property
    def sign(self) -> Sign:
        times, at = self.times, self.at
        if times < at.warn and times < at.block and times < at.stop:
            return Sign.NONE
        if times < at.block and times < at.stop:
            return Sign.WARN
        return Sign.BLOCK if times < at.stop else Sign.STOP


ONCE: Final = Repetition()


class Repeats:
    """Detects repeated actions with the same outcome. Kept in memory for one task; not persisted."""

    __slots__ = ("_at", "_latest", "_most", "_window")

    def __init__(self) -> None:
        self._at = USUAL
        self._most = WINDOW
        self._window: list[tuple[str, str]] = []  # short; a deque takes ten times the memory
        self._latest: dict[str, list[str]] = {}  # of each action in the window: its outcomes, in order

    def judge_by(self, at: Thresholds) -> None:
        """Use these thresholds, and keep as many actions as they need."""
        self._at = at
        self._most = min(max(WINDOW, at.stop), LONGEST)

    def asks(self, action: str) -> Repetition:
        """Return how often this action would have been done with the same outcome, if it were done now."""
        outcomes = self._latest.get(action)
        if outcomes is None:  # nearly always
            return ONCE
        same, in_turn = _equal_at_end(outcomes) + 1, self._in_turn(action) + 1
        return Repetition(in_turn, True, 0, self._at) if in_turn > same else Repetition(same, at=self._at)

    def record(self, action: str, outcome: str) -> Repetition:
        """Record the outcome of an action. Return how often the action has now had this outcome in a row, alone or
        alternating with one other action."""
        outcomes = self._latest.get(action)
        stays = outcomes is not None and outcomes[-1] == outcome
        found = self.asks(action) if stays else ONCE
        self._note(action, outcome, outcomes)
        return found

    def blocked(self, action: str) -> None:
        """Record an action that was refused: repeating a refused action is no progress either."""
        outcomes = self._latest.get(action)
        self._note(action, outcomes[-1] if outcomes is not None else "", outcomes)

    def _note(self, action: str, outcome: str, outcomes: list[str] | None) -> None:
        self._window.append((action, outcome))
        if outcomes is None:
            self._latest[action] = [outcome]
        else:
            outcomes.append(outcome)
        if len(self._window) > self._most:
            oldest, _ = self._window.pop(0)
            outcomes = self._latest[oldest]
            if len(outcomes) == 1:
                del self._latest[oldest]
            else:
                del outcomes[0]

    def _in_turn(self, action: str) -> int:
        """Return how long this action and one other have alternated, each with the same outcome every time."""
        pair = (self._window[-1][0], action)
        outcomes: dict[str, str] = {}
        times = 0
        for done, came in reversed(self._window):
            if done != pair[times % 2] or outcomes.setdefault(done, came) != came:
                break
            times += 1
        return times if pair[0] != action else 0


def _equal_at_end(outcomes: Sequence[str]) -> int:
    """Return the number of latest outcomes that are equal."""
    times = 0
    for outcome in reversed(outcomes):
        if outcome != outcomes[-1]:
            break
        times += 1
    return times


def repeated(trail: "Sequence[Move]", wanted: "Move", window: int | None = HANDOFF_WINDOW) -> bool:
    """Whether `wanted` is among the latest `window` handoffs of a trail, with the same content. False if `window` is
    None."""
    return window is not None and wanted in trail[-window:]


CALLS: Final = 2_048  # tool calls of a run that a process remembers
OUTCOMES: Final = 8  # of one call
ANSWERS: Final = 4  # of one agent to one asker
ASKS: Final = 1_024  # different requests of a run that are counted
SHORT: Final = 5  # words; an answer this short may fit several questions
LONG: Final = 2_000  # characters; in a longer text only case and white space are ignored
GROWN: Final = 200  # characters; a shorter text has not grown yet
MORE: Final = 2  # further rounds with refused calls before the turn is stopped

_PASSING: Final = frozenset(("concurrency", "spawn", "over"))  # refusals that pass with time
_OF_ALL: Final = frozenset(
    ("depth", "tasks", "handoffs", "tier", "deadline", "sends", "limit")
)  # the same for every agent
_BETWEEN_WORDS: Final = pattern(r"[\W_]+")
_TRIES: Final = pattern(  # no other numbers, because a map over many items differs only in those
    r"\b(?:attempt|try|retry|retries)\s*[#:.]?\s*\d+\b|\b\d+(?:st|nd|rd|th) (?:time|try|attempt)\b"
    r"|\b(?:again|please|once more)\b"
)
_REPEATS: Final = ("repeat_told", "repeat_refused", "repeat_stopped")
_TWICE: Final = ("same_ask", "any_ask", *_REPEATS)
_POLLS: Final = frozenset(("check_delegation_status",))  # asks how far something is


@dataclass(frozen=True, slots=True)
class Loops:
    """When a model that makes no progress is warned, refused and stopped; None switches a rule off.

    `same_ask`: the number of times in a row that an agent may be asked for the same without a new result; the next
    request is refused. `any_ask`: the same, whatever the results. `refusals`: the number of equal refusals to one task,
    without a new result in between, after which the task is stopped. `strikes`: the number of tasks of an agent stopped
    one after the other, after which the run does not call that agent any more. `stale`, `stale_asks`: the number of
    model answers in a row without a new result, after which its tool calls, or its delegations, are refused; two
    answers later the model is stopped. `echo`: how often an agent may repeat an earlier answer to a text that only
    grows. `requests`: the number of model requests in a run, over all its tasks. `hide`: verbs that cannot succeed are
    not offered. `polls`: tools that `stale` ignores, because they ask for the state of something, or because their
    result does not show what they do.

    These apply to programs and models alike: `repeat_told`, `repeat_refused` and `repeat_stopped` are the number of
    equal requests with equal outcomes after which a task is warned, refused and stopped. `same_handoff` is the number
    of latest handoffs of a task among which the same handoff with the same content is refused.
    """

    same_ask: int | None = 4
    any_ask: int | None = 14
    refusals: int | None = 3
    strikes: int | None = 2
    stale: int | None = 10
    stale_asks: int | None = 8
    echo: int | None = 6
    requests: int | None = 1_000
    hide: bool = True
    polls: frozenset[str] = frozenset()
    repeat_told: int | None = USUAL.warn
    repeat_refused: int | None = USUAL.block
    repeat_stopped: int | None = USUAL.stop
    same_handoff: int | None = HANDOFF_WINDOW

    if TYPE_CHECKING:  # what callers may pass; stored in one normal form

        def __init__(
            self,
            *,
            same_ask: int | None = 4,
            any_ask: int | None = 14,
            refusals: int | None = 3,
            strikes: int | None = 2,
            stale: int | None = 10,
            stale_asks: int | None = 8,
            echo: int | None = 6,
            requests: int | None = 1_000,
            hide: bool = True,
            polls: Iterable[str] = (),
            repeat_told: int | None = USUAL.warn,
            repeat_refused: int | None = USUAL.block,
            repeat_stopped: int | None = USUAL.stop,
            same_handoff: int | None = HANDOFF_WINDOW,
        ) -> None: ...

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.name not in ("hide", "polls"):
                given = whole(getattr(self, one.name), one.name, least=2 if one.name in _TWICE else 1)
                if one.name in _REPEATS and given is not None and given > LONGEST:
                    raise BadInput(f"{one.name} is at most {LONGEST:,}, not {given:,}; None switches the rule off")
        of_type(self.hide, bool, "hide is True or False")
        names = items(self.polls, "polls is a list of names of tools")
        for name in names:
            if not isinstance(name, str) or not name:
                raise BadInput(f"polls is a list of names of tools, not of {shown(name)}")
        object.__setattr__(self, "polls", frozenset(names))

    @classmethod
    def off(cls) -> Self:
        """Return rules that allow everything."""
        return cls(
            same_ask=None,
            any_ask=None,
            refusals=None,
            strikes=None,
            stale=None,
            stale_asks=None,
            echo=None,
            requests=None,
            hide=False,
            repeat_told=None,
            repeat_refused=None,
            repeat_stopped=None,
            same_handoff=None,
        )

    @property
    def thresholds(self) -> Thresholds:
        """The numbers of equal requests after which a task is warned, refused and stopped."""
        said = (self.repeat_told, self.repeat_refused, self.repeat_stopped)
        return USUAL if said == USUAL else Thresholds(*(NEVER_REACHED if one is None else one for one in said))

    def is_poll(self, tool: str) -> bool:
        return tool in _POLLS or tool in self.polls

    def most(self, *, asks: bool) -> int | None:
        """Return the number of rounds without a new result after which a tool call is refused, or with `asks` a
        delegation."""
        return self.stale_asks if asks else self.stale

    @property
    def told(self) -> int:
        """The number of rounds in a row without a new result from which on the model is warned."""
        return max(1, (self.stale or self.stale_asks or 0) // 2)


def same(text: str) -> str:
    """Return the text in a form that equal requests share: without case, punctuation, counters of tries, and
    politeness."""
    low = text.lower()
    if len(low) > LONG:  # long texts have no counters of tries
        return " ".join(low.split())
    return " ".join(_BETWEEN_WORDS.sub(" ", _TRIES.sub(" ", low)).split())


def answer_digest(answer: str) -> str:
    """Return a digest of an answer, 16 characters."""
    return digest(" ".join(answer.lower().split()))


# -- requests in a run ------------------------------------------------------------------------------------------


class AskCount(NamedTuple):
    """One row of a run: how often a request was made, and how often in a row without a new result.

    There are three kinds of rows: one for each asker, agent and text; one for each asker and agent, which has the
    latest `answers`; and one for each stopped agent, whose `times` counts how often in a row it was stopped.
    """

    times: int = 0
    in_vain: int = 0
    answers: str = ""


NEVER: Final = AskCount()


def strike_key(agent: str) -> str:
    """Return the key of the row that counts how often in a row an agent was stopped."""
    return f"!{agent}"


class ModelAsk(NamedTuple):
    """A model's request to an agent: the asker, the agent, and the text as `same` returns it. `later` is true if the
    model does not wait for the result."""

    asker: str
    agent: str
    text: str
    later: bool = False

    @property
    def key(self) -> str:
        return digest(f"{self.asker}\0{self.agent}\0{self.text}")

    @property
    def pair(self) -> str:
        return "=" + digest(f"{self.asker}\0{self.agent}")

    @property
    def keys(self) -> tuple[str, str, str]:
        """The keys of all rows about this request."""
        return self.key, self.pair, strike_key(self.agent)


def not_asked(rules: Loops, wanted: ModelAsk, rows: Mapping[str, AskCount]) -> str:
    """Return why an agent may not be called, or "" if it may."""
    agent, strikes = wanted.agent, rows.get(strike_key(wanted.agent), NEVER).times
    if rules.strikes is not None and strikes >= (1 if wanted.later else rules.strikes):
        how = "without waiting " if strikes < rules.strikes else ""
        what = "its latest task was" if strikes == 1 else f"its latest {strikes} tasks were"
        return (
            f"'{agent}' is not asked {how}in this run any more: {what} stopped, as it got nowhere; do without it, or "
            "finish with what you have"
        )
    ask = rows.get(wanted.key, NEVER)
    asked = f"'{agent}' was not asked: you have asked it for this {ask.times} times in this run"
    if rules.same_ask is not None and ask.in_vain >= rules.same_ask - 1:
        return (
            f"{asked}, and the latest results brought nothing new; ask for something else, ask someone else, or finish "
            "with what you have"
        )
    if rules.any_ask is not None and ask.times >= rules.any_ask - 1:
        return f"{asked}; finish with what you have"
    return ""


class Learned(NamedTuple):
    """The effect of an answer on the counters: whether it was new, and the changed rows."""

    new: bool
    rows: dict[str, AskCount]


def learned(wanted: ModelAsk, rows: Mapping[str, AskCount], answer: str, came: bool | None) -> Learned:
    """Return the counters after an answer. `came` says whether the subtask had a new outcome; None if it used no tool,
    so that the answer itself decides."""
    ask, before = rows.get(wanted.key, NEVER), rows.get(wanted.pair, NEVER).answers
    answers, said = before.split(), answer_digest(answer)
    short = ask.times == 0 and len(answer.split()) <= SHORT  # "yes", "done": each question may have this answer
    new = came if came is not None else short or said not in answers
    in_vain = 1 if new or ask.times == 0 else ask.in_vain + 1
    changed = {wanted.key: AskCount(ask.times + 1, in_vain)}
    if said not in answers:
        changed[wanted.pair] = AskCount(answers=" ".join([*answers, said][-ANSWERS:]))
    if new and not wanted.later and rows.get(strike_key(wanted.agent), NEVER).times:
        changed[strike_key(wanted.agent)] = NEVER
    return Learned(new, changed)


def last_time(rules: Loops, wanted: ModelAsk, ask: AskCount) -> str:
    """Return the warning that this request will be refused next time, or "" if it will not."""
    if rules.same_ask is None or ask.in_vain < rules.same_ask - 1:
        return ""
    return (
        f"[you have asked '{wanted.agent}' for this {ask.times} times, and nothing new comes of it: it will not be "
        "asked for it again]"
    )


# -- new results ------------------------------------------------------------------------------------------------


class SeenOutcomes:
    """The outcomes that this process has seen in a run: of tool calls, and whether delegations led to something new.
    Kept in memory only: an outcome that another process saw counts as new."""

    __slots__ = ("_calls", "_came", "_refused")

    def __init__(self) -> None:
        self._refused: dict[str, dict[str, int]] = {}  # by agent, for its tasks without a waiting asker
        self._calls: dict[str, tuple[str, ...]] = {}  # latest outcomes of each call; the latest call is last
        self._came: dict[tuple[str, str], bool] = {}  # by task and request

    def is_new(self, call: str, outcome: str) -> bool | None:
        """Record an outcome. Return True if the run has not seen it, False if it equals the last one, and None if the
        run has seen it before but not the last time."""
        key, came = digest(call), digest(outcome)
        had = self._calls.pop(key, None)
        if had is not None and had[-1] == came:
            self._calls[key] = had
            return False
        self._calls[key] = (*[one for one in had or () if one != came][-(OUTCOMES - 1) :], came)
        _keep(self._calls, CALLS)
        return True if had is None or came not in had else None

    def count_refusal(self, agent: str, key: str) -> int:
        """Count a refusal of one of several tasks of an agent that run concurrently. Return how often they had the same
        refusal without a new result in any of them."""
        refused = self._refused.setdefault(agent, {})
        refused[key] = refused.get(key, 0) + 1
        _keep(refused, OUTCOMES)
        _keep(self._refused, CALLS)
        return refused[key]

    def gained(self, agent: str) -> None:
        """Record that a task of this agent had a new result."""
        self._refused.pop(agent, None)

    def note_progress(self, task: str, text: str, *, new: bool) -> None:
        """Record whether a task's request has led to something new so far."""
        self._came[task, text] = self._came.get((task, text), False) or new
        _keep(self._came, CALLS)

    def came(self, task: str, text: str) -> bool | None:
        """Return whether a task's request led to something new, or None if no tool was used for it. The record is
        removed."""
        return self._came.pop((task, text), None)


def _keep(of: dict[Any, Any], most: int) -> None:
    if len(of) > most:
        del of[next(iter(of))]


def refusal_key(rule: str, what: str) -> str:
    """Return a key that equal refusals share, or "" if the same request may be allowed a moment later. `what` is the
    refused agent or tool; some rules refuse all agents alike, so their key leaves it out."""
    if rule in _PASSING:
        return ""
    return rule if rule in _OF_ALL else what


class Rounds:
    """The rounds of one turn: how many in a row had no new result, and how often each request was refused meanwhile."""

    __slots__ = ("_exchanges", "_fresh", "_latest", "_refused", "stale")

    def __init__(self) -> None:
        self.stale = 0
        self._exchanges: set[str] = set()  # exchanges of rounds without a tool call
        self._latest: int | None = None  # latest round without a new result
        self._fresh: int | None = None  # latest round with a new result
        self._refused: dict[str, tuple[int, int | None]] = {}  # count, and the latest round

    @property
    def has_gained(self) -> bool:
        """Whether this turn has had a new result."""
        return self._fresh is not None

    @property
    def has_refusals(self) -> bool:
        """Whether a request of this turn was refused, without a new result since."""
        return bool(self._refused)

    def gained(self, number: int) -> None:
        """Record a new result in this round."""
        self._fresh = number
        self.stale = 0
        self._refused.clear()

    def in_vain(self, number: int) -> int:
        """Record that a call of this round had no new result. Return the number of such rounds in a row."""
        if number not in (self._latest, self._fresh):
            self.stale += 1
        self._latest = number
        return self.stale

    def exchanged(self, words: str, number: int, *, says: bool) -> bool:
        """Record a round in which the model used no tool. `words` are its request and answer. Return whether an earlier
        round had the same words, so that this one has no new result; False if the round was counted before. If the
        model `says` something for the first time, that is a new result."""
        if number in (self._latest, self._fresh):
            return False  # this round has been counted
        if words in self._exchanges:
            self.in_vain(number)
            return True
        self._exchanges.add(words)
        if says:
            self.gained(number)
        return False

    def refused(self, rule: str, what: str, number: int) -> int:
        """Record a refusal in this round. Return the number of rounds with the same refusal, or 0 if the same request
        may be allowed a moment later."""
        key = refusal_key(rule, what)
        if not key:
            return 0
        times, latest = self._refused.get(key, (0, None))
        if latest != number:
            times += 1
            self._refused[key] = (times, number)
        return times


def stale_sentence(tool: str, stale: int, *, asks: bool) -> str:
    """Return the refusal of a tool call after too many rounds without a new result."""
    more = "; if there is more to ask, ask for all of it in one answer" if asks else ""
    return (
        f"'{tool}' was not used: {stale} times in a row nothing new came of what you did; do something that you have "
        f"not done yet, or finish with what you have{more}"
    )


def stale_warning(stale: int, most: int) -> str:
    return f"[{stale} times in a row nothing new came of what you did; at {most} it is not done any more]"


# -- echoes ------------------------------------------------------------------------------------------------------


class _Echo(NamedTuple):
    length: int = 0
    text: str = ""
    times: int = 0
    answers: tuple[str, ...] = ()


_SILENCE: Final = _Echo()


class Echoes:
    """Detects agents that keep repeating an answer while the text they are asked only grows."""

    __slots__ = ("_agents",)

    def __init__(self) -> None:
        self._agents: dict[str, _Echo] = {}

    def times(self, agent: str, text: str) -> int:
        """Return how often in a row the agent has repeated an answer. Return 0 unless `text` is the latest text that
        the agent was asked, with more added to it."""
        echo = self._agents.get(canonical(agent), _SILENCE)
        return echo.times if echo.times and self._grows(echo, text) else 0

    def learn(self, agent: str, text: str, answer: str) -> None:
        """Record an agent's answer to a text."""
        name = canonical(agent)
        echo, said = self._agents.get(name, _SILENCE), answer_digest(answer)
        grows = self._grows(echo, text)
        times = echo.times + 1 if grows and said in echo.answers else 0
        answers: Sequence[str] = echo.answers if said in echo.answers else (*echo.answers, said)[-ANSWERS:]
        self._agents[name] = _Echo(len(text), digest(text), times, tuple(answers))

    def refused(self, agent: str) -> None:
        """Record that an agent was not called because it repeats itself."""
        echo = self._agents[canonical(agent)]
        self._agents[canonical(agent)] = echo._replace(times=echo.times + 1)

    @staticmethod
    def _grows(echo: _Echo, text: str) -> bool:
        return len(text) > echo.length > 0 and digest(text[: echo.length]) == echo.text


def echo_sentence(agent: str, times: int) -> str:
    return (
        f"'{agent}' was not asked: {times} times in a row it said again what it had said before, to a text that only "
        "grew; finish with what you have"
    )

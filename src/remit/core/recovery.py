"""Recovery from model failures: what a failure means, which model or key goes on cooldown, and which is tried next."""

import hashlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from ipaddress import ip_address
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal

from remit.core.patterns import pattern
from remit.core.records import NamedTuple
from remit.core.secret import Secret
from remit.core.times import DAY, HOUR, SECOND

if TYPE_CHECKING:
    from remit.core.prices import Usage

FailureKind = Literal[
    "rate-limit",
    "billing",
    "auth",
    "forbidden",
    "no-key",
    "overflow",
    "rejected",
    "not-found",
    "unavailable",
    "connection",
    "timeout",
    "broken",
    "empty",
]

# Failures of the key: another key may succeed.
KEY_KINDS: Final[frozenset[FailureKind]] = frozenset(("rate-limit", "billing", "auth", "forbidden", "no-key"))
# Failures that no pause fixes: the owner of the key must act.
LASTING: Final[frozenset[FailureKind]] = frozenset(("billing", "auth", "forbidden", "no-key"))
# Failures without an answer that can be used, although the request may have arrived and cost money.
_UNANSWERED: Final[frozenset[FailureKind]] = frozenset(("timeout", "connection", "broken", "empty"))

# A provider's code is more specific than its status.
_CODES: Final[dict[tuple[int, str], FailureKind]] = {
    (400, "context_length_exceeded"): "overflow",
    (403, "insufficient_quota"): "billing",
    (429, "insufficient_quota"): "billing",
}
_STATUSES: Final[dict[int, FailureKind]] = {
    401: "auth",
    402: "billing",
    403: "forbidden",
    404: "not-found",
    408: "unavailable",
    409: "unavailable",
    413: "overflow",
    425: "unavailable",
    429: "rate-limit",
}


class ModelFailure(NamedTuple):
    """The failure of one model request. `status` is the HTTP status, `code` the provider's error code, `retry_after`
    the pause that the provider asks for, in microseconds. `sent` is false if the request never left. `said` is the
    provider's message, or the address that did not answer; it is for people to read, and no rule depends on it.
    `usage` is set if the provider reported the usage of an empty answer."""

    kind: FailureKind
    status: int | None = None
    code: str = ""
    retry_after: int | None = None
    sent: bool = True
    said: str = ""
    usage: "Usage | None" = None


def kind_of(status: int, code: str = "") -> FailureKind:
    """Return the kind of failure of an HTTP response. A response without an error status was broken in another way."""
    if status < 400:
        return "broken"
    found = _CODES.get((status, code)) or _STATUSES.get(status)
    if found is not None:
        return found
    return "unavailable" if status >= 500 else "rejected"


def charged(failure: ModelFailure) -> Literal["nothing", "whole"]:
    """Return how much of the hold is charged: nothing if the request was not sent or was answered with an error; the
    whole hold if it was sent and its cost is unknown. `usage` is ignored here: if it is known, the caller charges its
    cost instead."""
    return "whole" if failure.sent and failure.kind in _UNANSWERED else "nothing"


MINUTE: Final = 60 * SECOND
FORGET: Final = DAY  # after the end of a cooldown; then the next failure counts as the first
LONGEST_REST: Final = HOUR  # even if a server says more: one absurd header must not stop a team for days

# Start with a minute for every kind: the owner may pay the bill or grant the permission at any moment.
_STEPS: Final = (MINUTE, 5 * MINUTE, 25 * MINUTE, 60 * MINUTE)
RESTS: Final[dict[FailureKind, tuple[int, ...]]] = dict.fromkeys(("rate-limit", "billing", "auth", "forbidden"), _STEPS)
# These concern the request or the model's name, not the model's availability, so they start no cooldown.
_NO_REST: Final[frozenset[FailureKind]] = frozenset(("overflow", "rejected", "not-found", "no-key"))


class Cooling(NamedTuple):
    """The cooldown of a key or a model: paused until `until`, after `failures` failures of one kind in a row. `used` is
    the time of the last request; among several keys, the one that was used longest ago is tried first."""

    failures: int = 0
    until: int = 0
    kind: FailureKind | None = None
    used: int = 0


FRESH: Final = Cooling()


def after(cooling: Cooling, failure: ModelFailure, now: int) -> Cooling:
    """Return the cooldown after a failure. A failure reported during a cooldown, by a request that was in flight, is
    not counted; it can only make the cooldown longer."""
    used = cooling._replace(used=now)
    if failure.kind in _NO_REST:
        return used
    failures = _count(cooling, failure.kind, now)
    until = now + _rest(failure, failures)
    return used if until <= max(now, cooling.until) else Cooling(failures, until, failure.kind, now)


def cleared(now: int) -> Cooling:
    """Return the cooldown of a model or key that has answered: no failures."""
    return Cooling(used=now)


def _count(cooling: Cooling, kind: FailureKind, now: int) -> int:
    if cooling.kind != kind or now >= cooling.until + FORGET:
        return 1
    return cooling.failures if now < cooling.until else cooling.failures + 1


def _rest(failure: ModelFailure, failures: int) -> int:
    steps = RESTS.get(failure.kind)
    usual = steps[min(failures, len(steps)) - 1] if steps else 0
    if failure.retry_after is None:
        return usual
    wanted = min(max(failure.retry_after, 0), LONGEST_REST)
    # Retry-After beats the table. But for failures that last, wait at least as long as the table says.
    return max(usual, wanted) if failure.kind in LASTING else wanted


TRIMS: Final = 3
OWN_KEY: Final = "workspace/"  # prefix of the workspace's own keys, before the provider
WAITS: Final = (5 * SECOND, 10 * SECOND, 20 * SECOND)

Stopped = Literal["rejected", "overflow", "deadline", "exhausted"]


class Choice(NamedTuple):
    """A model that may be asked, and the names of its keys; without any, it is asked without a named key.

    `provider` says whose key the model takes, if it takes one: `openai`, or `openai@host` for a model with an address
    of its own. A key that the workspace stores under that name is used for it, and no other. `marks` are digests of the
    key values, in their order: a corrected key counts as another key. `endpoint` is where the model is reached; if
    empty, the provider. `named` says that the agent names its keys itself.
    """

    model: str
    keys: tuple[str, ...] = ()
    provider: str = ""
    marks: tuple[str, ...] = ()
    endpoint: str = ""
    named: bool = False


class ModelTry(NamedTuple):
    """One provider request: ask this model with this key, with the context shortened to `trim`, after waiting for
    `wait` microseconds. `secret` is the key itself if it is the workspace's own. `mark` and `endpoint` are those of the
    choice."""

    model: str
    key: str = ""
    trim: int = 0
    wait: int = 0
    secret: Secret | None = None
    mark: str = ""
    endpoint: str = ""


def own_key(attempt: ModelTry) -> str:
    """Return the provider whose workspace key the request uses, or "" if it uses another key."""
    return attempt.key.removeprefix(OWN_KEY) if attempt.key.startswith(OWN_KEY) else ""


class Situation(NamedTuple):
    """The input of the next decision: the failure of the last try, or None; the time; and the cooldowns, by the names
    that `resting` returns. The cooldowns include that of the failure."""

    failure: ModelFailure | None
    now: int
    state: Mapping[str, Cooling] = {}


class Tried(NamedTuple):
    """Why a model, or a model with this key, did not answer: its last failure, or the failure behind its cooldown; how
    many microseconds of the cooldown are left; and the provider's message."""

    model: str
    key: str
    kind: FailureKind
    status: int | None = None
    left: int = 0
    said: str = ""


class GaveUp(NamedTuple):
    """No model answered. `why` is the reason why the search ended, `tried` the outcome of each model, and `again_at`
    when the first of them is available again, if waiting helps."""

    why: Stopped
    tried: tuple[Tried, ...] = ()
    again_at: int | None = None


class Resting(NamedTuple):
    """A cooldown: of a key at an endpoint, of a key for one model, or of a model; after how many failures of which
    kind, and until when. `key` is the digest of the key's value: the value itself is stored nowhere."""

    name: str
    key: str
    model: str
    endpoint: str
    kind: FailureKind | None
    failures: int
    until: int


_NAME: Final = pattern(r"(?:key:(?P<key>\S*) ?)?(?:at:(?P<endpoint>\S*) ?)?(?:model:(?P<model>[\s\S]*))?")


def what_rests(name: str, cooling: Cooling) -> Resting:
    """Return the cooldown that belongs to a name which `resting` returned."""
    found = _NAME.match(name)
    assert found is not None  # each of its parts may be missing
    parts = found.groupdict("")
    return Resting(name, parts["key"], parts["model"], parts["endpoint"], cooling.kind, cooling.failures, cooling.until)


def key_mark(value: str) -> str:
    """Return a digest that distinguishes key values without revealing them."""
    return hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()[:12]


def key_name(tried: ModelTry) -> str:
    """Return the cooldown name of a key at its endpoint, or "" if the model is asked without a key."""
    mark = tried.mark or tried.key
    return f"key:{mark}{_place(tried)}" if mark else ""


def on_loopback(endpoint: str) -> bool:
    """Whether an endpoint is on this machine: `ollama@localhost:11434`, `127.0.0.1:8000`."""
    host = endpoint.rpartition("@")[2]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return bool(host) and ip_address(host).is_loopback
    except ValueError:
        return False


def resting(tried: ModelTry, kind: FailureKind) -> str:
    """Return the name of the cooldown that a failure of this kind starts: the key at its endpoint if the key is
    rejected or has no money; the key for this one model if a rate limit is reached or a permission is missing;
    otherwise the model at its endpoint."""
    model, key, both = _names(tried)
    if not key or kind not in KEY_KINDS:
        return model
    return key if kind in ("auth", "billing") else both


def names_of(tried: ModelTry) -> tuple[str, ...]:
    """Return all cooldown names that concern this model with this key."""
    names = _names(tried)
    return names if names[1] else names[:1]


def _names(tried: ModelTry) -> tuple[str, str, str]:
    key, model = key_name(tried), f"{_place(tried)} model:{tried.model}".lstrip()
    return model, key, f"{key} model:{tried.model}"


def _place(tried: ModelTry) -> str:
    return f" at:{tried.endpoint}" if tried.endpoint else ""


def recovery(
    choices: Sequence[Choice], start: Situation, *, until: int, trim: int = 0, waits: Sequence[int] = WAITS
) -> Generator[ModelTry, Situation, GaveUp | None]:
    """Yield the next try for each failure that is sent in. Return None when a try succeeds, or `GaveUp` when nothing is
    left to try or the time `until` is reached. If no model is available, wait for the first one, at most once for each
    of `waits`, which are the pauses in microseconds after failures without a cooldown. The same situations yield the
    same tries, so a caller can make the first try itself and start this generator only if that fails."""
    search: _Search | None = None  # created on demand: usually the first model answers
    found: ModelTry | GaveUp | None = _only_try(choices, start, until, trim)
    situation = start
    while True:
        if found is None:
            search = search or _Search(choices, until, trim, waits)
            found = search.next(situation)
        if isinstance(found, GaveUp):
            return found
        situation = yield found
        if situation.failure is None:
            return None
        search = search or _Search(choices, until, trim, waits)
        search.failed(found, situation.failure)
        found = None


def _only_try(choices: Sequence[Choice], start: Situation, until: int, trim: int) -> ModelTry | None:
    """Return the first try if it needs no search: there is one model with at most one key, and it is not on
    cooldown."""
    if len(choices) != 1 or len(choices[0].keys) > 1 or start.now >= until:
        return None
    (only,) = _tries(choices[0])
    if start.state and any(cooling.until > start.now for cooling in _coolings(only, start.state)):
        return None
    return only._replace(trim=trim) if trim else only


class _Search:
    """The state of a search: what has failed since the last pause, what is excluded for good, and how far the context
    is shortened."""

    def __init__(self, choices: Sequence[Choice], until: int, trim: int, waits: Sequence[int]) -> None:
        self._tries = {(one.model, one.key): one for choice in choices for one in _tries(choice)}
        self._until = until
        self._trim = trim
        self._waits = list(waits)
        self._failures: dict[tuple[str, str], ModelFailure] = {}  # the last failure of each, for the error
        self._round: set[tuple[str, str]] = set()  # failed since the last pause
        self._waiting: dict[tuple[str, str], int] = {}  # failed earlier, and paused until this time
        self._gone: set[tuple[str, str]] = set()  # models that do not exist or say nothing, and keys that are not set
        self._same: tuple[str, str] | None = None  # to be asked again at once
        self._silent: set[str] = set()  # models that gave an empty answer
        self._stopped: Stopped | None = None

    def next(self, situation: Situation) -> ModelTry | GaveUp:
        now, state = situation.now, situation.state
        if self._stopped is not None:
            return self._gave_up(self._stopped, situation)
        if now >= self._until:
            return self._gave_up("deadline", situation)
        ready = [pair for pair in self._pairs(state) if pair not in self._round and self._rests(pair, state) <= now]
        # The context was too long, or the answer empty: ask the same model again before any other.
        if self._same in ready:
            ready = [self._same]
        return self._tries[ready[0]]._replace(trim=self._trim) if ready else self._pause(situation)

    def failed(self, tried: ModelTry, failure: ModelFailure) -> None:
        pair = (tried.model, tried.key)
        self._failures[pair] = failure
        self._same = None
        match failure.kind:
            case "overflow" if self._trim < TRIMS:
                self._trim += 1
                self._same = pair
            case "overflow" | "rejected":
                self._stopped = failure.kind
            case "empty" if tried.model not in self._silent:
                self._silent.add(tried.model)
                self._same = pair
            case "not-found" | "empty":  # neither a pause nor another key helps
                self._gone.update(other for other in self._tries if other[0] == tried.model)
            case "no-key":
                self._gone.add(pair)
            case "rate-limit" | "billing" | "auth" | "forbidden":
                self._round.add(pair)
            case _:  # a failure of the model: another key does not help
                self._round.update(other for other in self._tries if other[0] == tried.model)

    def _pause(self, situation: Situation) -> ModelTry | GaveUp:
        """Wait until the first model is available, and start with the first choice again. Do not wait for a rejected
        key: give up at once."""
        times = {pair: at for pair, at in self._times(situation).items() if not self._lasts(pair, situation)}
        if not times or not self._waits:
            return self._gave_up("exhausted", situation)
        soonest = min(times.values())
        if soonest >= self._until:
            return self._gave_up("deadline", situation)
        self._waiting.update((pair, times[pair]) for pair in self._round & times.keys())
        self._round.clear()
        del self._waits[0]
        pair = next(pair for pair, at in times.items() if at == soonest)
        return self._tries[pair]._replace(trim=self._trim, wait=soonest - situation.now)

    def _times(self, situation: Situation) -> dict[tuple[str, str], int]:
        """Return when each model with a key is available: at the end of its cooldown, or, if it failed without one,
        after the next pause."""
        pause = self._waits[0] if self._waits else 0
        found: dict[tuple[str, str], int] = {}
        for pair in self._pairs(situation.state):
            rested = self._rests(pair, situation.state)
            found[pair] = rested if rested > situation.now else situation.now + pause
        return found

    def _rests(self, pair: tuple[str, str], state: Mapping[str, Cooling]) -> int:
        """Return the time until which this model with this key is paused."""
        return max(self._waiting.get(pair, 0), *(cooling.until for cooling in _coolings(self._tries[pair], state)))

    def _lasts(self, pair: tuple[str, str], situation: Situation) -> bool:
        """Whether only the key's owner can fix the failure of this model with this key."""
        failure = self._failures.get(pair)
        rests = (one for one in _coolings(self._tries[pair], situation.state) if one.until > situation.now)
        return any(one.kind in LASTING for one in rests) or (failure is not None and failure.kind in LASTING)

    def _pairs(self, state: Mapping[str, Cooling]) -> Iterable[tuple[str, str]]:
        """Return models and keys in the order of trying: among the keys of one model, the one that was used longest ago
        first; the workspace's own key after those that the agent names."""
        for _, tries in groupby(self._tries.values(), key=lambda one: one.model):
            ordered = sorted(tries, key=lambda one: (bool(own_key(one)), state.get(key_name(one), FRESH).used))
            yield from (pair for one in ordered if (pair := (one.model, one.key)) not in self._gone)

    def _gave_up(self, why: Stopped, situation: Situation) -> GaveUp:
        told = [
            told for pair, one in self._tries.items() for told in _reasons(one, self._failures.get(pair), situation)
        ]
        helps = why in ("deadline", "exhausted")
        again_at = min((self._times(situation).values()), default=None) if helps else None
        return GaveUp(why, tuple(dict.fromkeys(told)), again_at)


def _tries(choice: Choice) -> list[ModelTry]:
    place = choice.endpoint or choice.provider
    keys = choice.keys or ("",)
    marks = (*choice.marks, *("" for _ in keys))
    return [ModelTry(choice.model, key, mark=mark, endpoint=place) for key, mark in zip(keys, marks, strict=False)]


def _coolings(tried: ModelTry, state: Mapping[str, Cooling]) -> list[Cooling]:
    return [state.get(name, FRESH) for name in names_of(tried)]


def _reasons(tried: ModelTry, failure: ModelFailure | None, situation: Situation) -> Iterable[Tried]:
    """Return why this model with this key is not available: its cooldown, or else its last failure, if it was asked at
    all."""
    longest = max(_coolings(tried, situation.state), key=lambda cooling: cooling.until)
    if longest.until > situation.now and longest.kind is not None:
        left = longest.until - situation.now
        said = failure.said if failure is not None and failure.kind == longest.kind else ""
        yield Tried(tried.model, _key_at_fault(tried.key, longest.kind), longest.kind, None, left, said)
    elif failure is not None:
        yield Tried(tried.model, _key_at_fault(tried.key, failure.kind), failure.kind, failure.status, 0, failure.said)


def _key_at_fault(key: str, kind: FailureKind) -> str:
    return key if kind in KEY_KINDS else ""


def sentence(gave_up: GaveUp) -> str:
    """Return why no model answered: the outcome of each, and what to do."""
    parts = ["no model answered", *map(_failure_line, gave_up.tried), _advice(gave_up)]
    if any(tried.left for tried in gave_up.tried):
        parts.append("`remit cooling` lists the pauses, and `remit cooling clear` ends them")
    return "; ".join(parts)


def _failure_line(tried: Tried) -> str:
    who = f"{tried.model} with key '{tried.key}'" if tried.key else tried.model
    said = f', "{tried.said}"' if tried.said else ""
    if tried.kind == "empty":
        return f"{who}: an empty answer, without text and without a tool call"
    if tried.kind == "no-key":
        return f"{who}: {tried.said}"
    if tried.left:
        seconds = -(-tried.left // SECOND)  # rounded up: after this long the cooldown is over
        return f"{who}: paused for {seconds} s after {tried.kind}{said}"
    return f"{who}: {tried.kind}" + (f" ({tried.status})" if tried.status is not None else "") + said


def _advice(gave_up: GaveUp) -> str:
    if gave_up.why == "rejected":
        return "it is not retried, because the same request would be rejected again; change it"
    if gave_up.why == "overflow":
        return "it is too long for the model even when it is shortened; ask for less at once"
    kinds = {tried.kind for tried in gave_up.tried}
    if gave_up.why == "exhausted" and not kinds:
        return "there is none to ask; name a model"
    if kinds and kinds <= {"not-found", "empty"}:
        return "check the names of the models" if "not-found" in kinds else "ask in another way, or name another model"
    if kinds and kinds <= {"not-found", *LASTING}:
        return "then ask again" if kinds == {"no-key"} else "check the keys and what is left on their accounts"
    return "try again later"

"""Whom to ask when a model does not answer, as a generator: it gives tries and is told what came of them.

Keys before models, models before a pause. A pause lasts until the soonest of them can be asked; there are at most three
and none reaches the deadline. What is too long is shortened and asked of the same model; what is rejected is not asked
again. No clock, no client, no store: a list of outcomes is enough to test it.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from remit.core.recovery.cooling import FRESH, Cooling
from remit.core.recovery.failures import KEY_KINDS, FailureKind, ModelFailure
from remit.core.secret import Secret
from remit.core.times import SECOND

TRIMS: Final = 3
OWN_KEY: Final = "workspace/"  # how the name of a key begins that the workspace brought; its provider follows
WAITS: Final = (5 * SECOND, 10 * SECOND, 20 * SECOND)

Stopped = Literal["rejected", "overflow", "deadline", "exhausted"]


class Choice(NamedTuple):
    """A model that may be asked, and the names of the keys for it; without any it is asked without a named key.
    `provider` is whose key it takes, if it takes one that is given to it: then the workspace's own goes before all."""

    model: str
    keys: tuple[str, ...] = ()
    provider: str = ""


class ModelTry(NamedTuple):
    """Ask this model with this key, with the context shortened so far, after waiting for so many microseconds. `secret`
    is the key itself if it is the workspace's own."""

    model: str
    key: str = ""
    trim: int = 0
    wait: int = 0
    secret: Secret | None = None


def own_key(attempt: ModelTry) -> str:
    """Tell for which provider a request takes the key that the workspace brought; empty if it takes another."""
    return attempt.key.removeprefix(OWN_KEY) if attempt.key.startswith(OWN_KEY) else ""


class Situation(NamedTuple):
    """What is known at one moment: what the last try failed of, if it did, and who rests. `state` has the failure
    counted; it goes by the names that `resting` gives."""

    failure: ModelFailure | None
    now: int
    state: Mapping[str, Cooling] = {}


class Tried(NamedTuple):
    """Why a model, or a model with this key, did not answer: what it failed of last, or what it rests after, and for
    how many microseconds more."""

    model: str
    key: str
    kind: FailureKind
    status: int | None = None
    left: int = 0


class GaveUp(NamedTuple):
    """No model answered. `why` says what ended it, `tried` what became of each, and `again_at` when the soonest of them
    can be asked, if waiting helps."""

    why: Stopped
    tried: tuple[Tried, ...] = ()
    again_at: int | None = None


def resting(model: str, key: str, kind: FailureKind) -> str:
    """Name what a failure of this kind puts to rest: the key if it is about the key, otherwise the model."""
    return f"key:{key}" if key and kind in KEY_KINDS else f"model:{model}"


def recovery(
    choices: Sequence[Choice], start: Situation, *, until: int, trim: int = 0, waits: Sequence[int] = WAITS
) -> Generator[ModelTry, Situation, GaveUp | None]:
    """Give the next try for each failure that it is told of, until one has none or nothing is left to try. The same
    situations give the same tries, so whoever makes the first one first may start this when that has failed."""
    search = _Search(choices, until, trim, waits)
    situation = start
    while True:
        found = search.next(situation)
        if isinstance(found, GaveUp):
            return found
        situation = yield found
        if situation.failure is None:
            return None
        search.failed(found, situation.failure)


class _Search:
    """Where a search stands: what has failed since the last pause, what is out for good, and how short the context
    is."""

    def __init__(self, choices: Sequence[Choice], until: int, trim: int, waits: Sequence[int]) -> None:
        self._choices = choices
        self._until = until
        self._trim = trim
        self._waits = list(waits)
        self._failures: dict[tuple[str, str], ModelFailure] = {}  # the last of each, for the sentence
        self._round: set[tuple[str, str]] = set()  # failed since the last pause
        self._waiting: dict[tuple[str, str], int] = {}  # failed before that, and are left alone until then
        self._gone: set[str] = set()  # models that do not exist
        self._same: tuple[str, str] | None = None  # to be asked again with less
        self._stopped: Stopped | None = None

    def next(self, situation: Situation) -> ModelTry | GaveUp:
        now, state = situation.now, situation.state
        if self._stopped is not None:
            return self._gave_up(self._stopped, situation)
        if now >= self._until:
            return self._gave_up("deadline", situation)
        ready = [pair for pair in self._pairs(state) if pair not in self._round and self._rests(pair, state) <= now]
        if self._same in ready:
            ready = [self._same]
        return ModelTry(*ready[0], self._trim) if ready else self._pause(situation)

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
            case "not-found":
                self._gone.add(tried.model)
            case "rate-limit" | "billing" | "auth":
                self._round.add(pair)
            case _:  # it is the model's failure: another key does not help
                self._round.update(other for other in self._pairs({}) if other[0] == tried.model)

    def _pause(self, situation: Situation) -> ModelTry | GaveUp:
        """Wait until the soonest can be asked, and begin with the first again."""
        times = self._times(situation)
        if not times or not self._waits:
            return self._gave_up("exhausted", situation)
        soonest = min(times.values())
        if soonest >= self._until:
            return self._gave_up("deadline", situation)
        self._waiting.update((pair, times[pair]) for pair in self._round & times.keys())
        self._round.clear()
        del self._waits[0]
        pair = next(pair for pair, at in times.items() if at == soonest)
        return ModelTry(*pair, self._trim, soonest - situation.now)

    def _times(self, situation: Situation) -> dict[tuple[str, str], int]:
        """Tell when each can be asked: when it has rested, or, if it failed and does not rest, after the next wait."""
        pause = self._waits[0] if self._waits else 0
        found: dict[tuple[str, str], int] = {}
        for pair in self._pairs(situation.state):
            rested = self._rests(pair, situation.state)
            found[pair] = rested if rested > situation.now else situation.now + pause
        return found

    def _rests(self, pair: tuple[str, str], state: Mapping[str, Cooling]) -> int:
        """Tell until when this model with this key is left alone."""
        return max(self._waiting.get(pair, 0), *(cooling.until for cooling in _coolings(pair, state)))

    def _pairs(self, state: Mapping[str, Cooling]) -> Iterable[tuple[str, str]]:
        """List models and keys in the order in which they are asked."""
        for model, keys, _ in self._choices:
            if model not in self._gone:
                ordered = sorted(keys, key=lambda key: state.get(f"key:{key}", FRESH).used)
                yield from ((model, key) for key in ordered or ("",))

    def _gave_up(self, why: Stopped, situation: Situation) -> GaveUp:
        told = [
            one
            for model, keys, _ in self._choices
            for key in keys or ("",)
            for one in _reasons((model, key), self._failures.get((model, key)), situation)
        ]
        helps = why in ("deadline", "exhausted")
        again_at = min((self._times(situation).values()), default=None) if helps else None
        return GaveUp(why, tuple(dict.fromkeys(told)), again_at)


def _coolings(pair: tuple[str, str], state: Mapping[str, Cooling]) -> list[Cooling]:
    model, key = pair
    names = (f"model:{model}", f"key:{key}") if key else (f"model:{model}",)
    return [state.get(name, FRESH) for name in names]


def _reasons(pair: tuple[str, str], failure: ModelFailure | None, situation: Situation) -> Iterable[Tried]:
    """Tell what a model with this key rests after, else what it failed of, if it was asked at all."""
    model, key = pair
    longest = max(_coolings(pair, situation.state), key=lambda cooling: cooling.until)
    if longest.until > situation.now and longest.kind is not None:
        left = longest.until - situation.now
        yield Tried(model, _named(key, longest.kind), longest.kind, None, left)
    elif failure is not None:
        yield Tried(model, _named(key, failure.kind), failure.kind, failure.status)


def _named(key: str, kind: FailureKind) -> str:
    return key if kind in KEY_KINDS else ""


def sentence(gave_up: GaveUp) -> str:
    """Say why no model answered, of each what became of it, and what to do."""
    parts = ["no model answered", *map(_told, gave_up.tried), _advice(gave_up)]
    return "; ".join(parts)


def _told(tried: Tried) -> str:
    who = f"{tried.model} with key '{tried.key}'" if tried.key else tried.model
    if tried.left:
        seconds = -(-tried.left // SECOND)  # rounded up: who waits that long is not told the same again
        return f"{who}: resting after {tried.kind}, {seconds} s more"
    return f"{who}: {tried.kind}" + (f" ({tried.status})" if tried.status is not None else "")


def _advice(gave_up: GaveUp) -> str:
    if gave_up.why == "rejected":
        return "the request itself is wrong, so it is not asked again; change it"
    if gave_up.why == "overflow":
        return "it is too long for the model even when it is shortened; ask for less at once"
    kinds = {tried.kind for tried in gave_up.tried}
    if gave_up.why == "exhausted" and not kinds:
        return "there is none to ask; name a model"
    if kinds and kinds <= {"not-found"}:
        return "check the names of the models"
    if kinds and kinds <= {"not-found", "auth", "billing"}:
        return "check the keys and what is left on their accounts"
    return "try again later"

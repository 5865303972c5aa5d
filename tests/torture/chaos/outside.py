"""Whether what was done in the world outside was done as often as it should be, told from the ledger.

An effect is known outside by its name and what it is for. It goes through moments that are noted: it is asked for, then
it is about to be done, it is done, and it is kept, which is when the asker goes on. A process that dies or stands still
between doing and keeping may leave it to be done once more, and nothing else may.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from torture.chaos.ledger import Line
from torture.chaos.picture import Picture, Violation

_STORE = ("StoreError", "StoreBusy", "NotAStore")
_TAKEN = "another process has taken it over"
_ALWAYS = 2**62
_KILLED = -9
_REASONS = {
    "effect.store-said-no": "the store said no when it was to be kept, and it was not told again",
    "effect.taken-alive": "a process that nothing had happened to lost its task while it did it",
    "effect.repeated": "a process that nothing had happened to did it and never said what became of it",
}


class Call(NamedTuple):
    """One try at an effect by one process, and when it got how far; 0 where it did not get. `missed` is the error that
    kept it from being kept, `taken` whether that says that another process has the task."""

    who: str
    task: str
    asked: int
    before: int
    kept: int
    missed: str
    taken: bool
    key: str | None


class Effect(NamedTuple):
    """All tries at one effect, in the order in which they began."""

    name: str
    what: str
    times: int
    calls: list[Call]

    @property
    def receipt(self) -> str:
        return f"{self.name}: {self.what}"

    @property
    def doings(self) -> list[Call]:
        return [call for call in self.calls if call.before]


class Harmed:
    """What was done to which process when."""

    def __init__(self, lines: list[Line]) -> None:
        self._ends: dict[str, list[int]] = {}
        self._stood: dict[str, list[tuple[int, int]]] = {}
        for line in lines:
            if line["kind"] in ("killed", "terminated") or line.get("code") == _KILLED:  # it is noted, and then sent
                self._ends.setdefault(line["target"], []).append(line["at"])
            elif line["kind"] == "stopped":
                self._stood.setdefault(line["target"], []).append((line["at"], _ALWAYS))
            elif line["kind"] == "continued" and line["target"] in self._stood:
                since, _ = self._stood[line["target"]].pop()
                self._stood[line["target"]].append((since, line["at"]))

    def stood(self, who: str, since: int, until: int) -> bool:
        """Tell whether a process stood still at some moment of that time."""
        return any(begins <= until and ends >= since for begins, ends in self._stood.get(who, ()))

    def ended(self, who: str, since: int, until: int) -> bool:
        """Tell whether it was killed, or told to stop, in that time."""
        return any(since <= at <= until for at in self._ends.get(who, ()))


def effects(lines: list[Line]) -> list[Effect]:
    """Put together what the ledger says of each effect."""
    calls: dict[str, Line] = {}
    for line in lines:
        if line["kind"] in ("asks effect", "before", "kept", "missed"):
            call = calls.setdefault(
                line["call"], {**line, "before": 0, "kept": 0, "missed": "", "taken": False, "key": None}
            )
            if line["kind"] == "before":
                call["before"], call["key"] = line["at"], line["key"]
            elif line["kind"] == "kept":
                call["kept"] = line["at"]
            elif line["kind"] == "missed":
                call["missed"], call["taken"] = line["error"], _TAKEN in line["says"]
    found: dict[tuple[str, str], Effect] = {}
    for one in sorted(calls.values(), key=lambda line: line["before"] or line["at"]):
        effect = found.setdefault((one["name"], one["what"]), Effect(one["name"], one["what"], one["times"], []))
        moments = (one["at"], one["before"], one["kept"], one["missed"], one["taken"], one["key"])
        effect.calls.append(Call(one["who"], one["task"], *moments))
    return list(found.values())


def done_once(found: list[Effect], lines: list[Line]) -> Iterator[Violation]:
    """An effect is done as often as it should be; more often only after a harm that nobody can make good, and then
    with the same key."""
    harmed = Harmed(lines)
    for effect in found:
        for one in _by_key(effect):
            yield from _not_after_kept(one, harmed)
            yield from _excused(one, harmed)
        keys = {call.key for call in effect.doings if call.key}
        if len(keys) > effect.times:
            sentence = f"'{effect.receipt}' was done under {len(keys)} idempotency keys, not {effect.times}"
            yield Violation("effect.key", sentence, effect.doings[-1].task)


def _by_key(effect: Effect) -> list[Effect]:
    """Tell effects apart that should be done several times, as the world outside can: by their keys."""
    keys = sorted({call.key for call in effect.doings if call.key})
    if len(keys) != effect.times or not all(call.key for call in effect.doings):  # nobody knows which is which
        return [effect]
    return [effect._replace(times=1, calls=[call for call in effect.calls if call.key == key]) for key in keys]


def _not_after_kept(effect: Effect, harmed: Harmed) -> Iterator[Violation]:
    """Nobody does what is kept already, unless it stood still just between looking and doing."""
    kept = sorted(call.kept for call in effect.doings if call.kept)
    if len(kept) < effect.times:
        return
    enough = kept[effect.times - 1]
    for call in effect.doings:
        if call.before > enough and not harmed.stood(call.who, call.asked, call.before):
            late = (call.before - enough) / 1e6
            sentence = f"'{effect.receipt}' was done again {late:.3f} s after it was kept"
            yield Violation("effect.again", sentence, call.task)


def _excused(effect: Effect, harmed: Harmed) -> Iterator[Violation]:
    """Whoever had not kept it when the next one began to do it had a reason: it died, stood still, or was stopped."""
    extra = len(effect.doings) - effect.times
    unkept = [(call, then) for call, then in pairwise(effect.doings) if not 0 < call.kept <= then.before]
    reasons = [_reason(call, then, harmed) for call, then in unkept]
    gaps = sum(harmed.stood(call.who, call.asked, call.before) for call in effect.doings)
    wrong = [(kind, call) for kind, (call, _) in zip(reasons, unkept, strict=True) if kind]
    if wrong and extra > len(reasons) - len(wrong) + gaps:
        kind, call = wrong[0]
        sentence = f"'{effect.receipt}' was done {len(effect.doings)} times: {_REASONS[kind]} ({call.who})"
        yield Violation(kind, sentence, call.task)


def _reason(call: Call, then: Call, harmed: Harmed) -> str:
    """Say which promise it breaks that a process did not keep what it did before the next one did it; empty if that
    could not be helped."""
    if harmed.ended(call.who, call.before, then.before) or harmed.stood(call.who, call.asked, then.before):
        return ""
    if call.missed in _STORE:
        return "effect.store-said-no"
    if call.kept or call.taken:
        return "effect.taken-alive"
    return "" if call.missed else "effect.repeated"


def recorded_once(found: list[Effect], seen: Picture) -> Iterator[Violation]:
    """The store has each effect once, whichever tasks and retries it went through."""
    times = {effect.receipt: effect.times for effect in found}
    records = Counter(event.data["result"] for event in seen.events if event.kind == "effect.done")
    tasks = {event.data["result"]: event.task for event in seen.events if event.kind == "effect.done"}
    for result, number in records.items():
        if result not in times:
            yield Violation("effect.unknown", f"{result!r} is on record, and nobody asked for it", tasks[result])
        elif number > times[result]:
            yield Violation("effect.recorded-twice", f"'{result}' is on record {number} times", tasks[result])

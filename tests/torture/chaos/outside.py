"""Whether what was done in the world outside was done as often as it should be, told from the ledger.

An effect is known outside by its name and what it is for. It goes through moments that are noted: it is asked for, then
it is about to be done, it is done, and it is kept, which is when the asker goes on. A process that dies or stands still
between doing and keeping may leave it to be done once more, and nothing else may.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from torture.chaos.ledger import Line
from torture.chaos.picture import Picture, Violation

_STORE = ("StoreError", "StoreBusy", "NotAStore")
_ALWAYS = 2**62


class Call(NamedTuple):
    """One try at an effect by one process, and when it got how far; 0 where it did not get."""

    who: str
    task: str
    asked: int
    before: int
    kept: int
    missed: str
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
            if line["kind"] in ("killed", "terminated"):
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
            call = calls.setdefault(line["call"], {**line, "before": 0, "kept": 0, "missed": "", "key": None})
            if line["kind"] == "before":
                call["before"], call["key"] = line["at"], line["key"]
            elif line["kind"] == "kept":
                call["kept"] = line["at"]
            elif line["kind"] == "missed":
                call["missed"] = line["error"]
    found: dict[tuple[str, str], Effect] = {}
    for one in sorted(calls.values(), key=lambda line: line["before"] or line["at"]):
        effect = found.setdefault((one["name"], one["what"]), Effect(one["name"], one["what"], one["times"], []))
        moments = (one["at"], one["before"], one["kept"], one["missed"], one["key"])
        effect.calls.append(Call(one["who"], one["task"], *moments))
    return list(found.values())


def done_once(found: list[Effect], lines: list[Line]) -> Iterator[Violation]:
    """An effect is done as often as it should be; more often only after a harm that nobody can make good, and then
    with the same key."""
    harmed = Harmed(lines)
    for effect in found:
        yield from _not_after_kept(effect, harmed)
        yield from _excused(effect, harmed)
        keys = {call.key for call in effect.doings if call.key}
        if len(keys) > effect.times:
            sentence = f"'{effect.receipt}' was done under {len(keys)} idempotency keys, not {effect.times}"
            yield Violation("effect.key", sentence, effect.doings[-1].task)


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
    """Whoever did it and did not keep it had a reason: it died, stood still, or had lost its task."""
    doings = effect.doings
    extra = len(doings) - effect.times
    if extra <= 0:
        return
    unkept = [call for call in doings if not call.kept]
    last = doings[-1].before
    if refused := [call for call in unkept if call.missed in _STORE]:
        sentence = f"'{effect.receipt}' was done {len(doings)} times, because the store said no when it was to be kept"
        yield Violation("effect.store-said-no", sentence, refused[0].task)
        return
    excused = [
        call
        for call in unkept
        if call.missed or harmed.ended(call.who, call.before, last) or harmed.stood(call.who, call.asked, last)
    ]
    gaps = [call for call in doings if call.kept and harmed.stood(call.who, call.asked, call.before)]
    again = [call for call in doings if call.kept]
    if extra > len(excused) + len(gaps) and len(again) <= effect.times:
        sentence = f"'{effect.receipt}' was done {len(doings)} times, and nothing happened that excuses it"
        yield Violation("effect.repeated", sentence, doings[-1].task)


def recorded_once(found: list[Effect], seen: Picture) -> Iterator[Violation]:
    """The store has each effect once, whichever tasks and retries it went through."""
    times = {effect.receipt: effect.times for effect in found}
    records = Counter(event.data["result"] for event in seen.events if event.kind == "effect.done" and event.text)
    tasks = {event.data["result"]: event.task for event in seen.events if event.kind == "effect.done" and event.text}
    for result, number in records.items():
        if result not in times:
            yield Violation("effect.unknown", f"{result!r} is on record, and nobody asked for it", tasks[result])
        elif number > times[result]:
            yield Violation("effect.recorded-twice", f"'{result}' is on record {number} times", tasks[result])

"""Cutting the journal: removing the events that nothing needs any more.

A journal has to fold to its tables. An entry that was overwritten or removed since, a breaker that was set anew, a run
that is pruned: what told of them changes nothing any more, so it may go. What is left in its place is a gap, which an
event states: see `Gap`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, cast

from anyio.lowlevel import checkpoint

from remit.core import kinds
from remit.core.card import restored as card_restored
from remit.core.entry import counts_up
from remit.core.events import Event, Gap, Mark, joined
from remit.core.kinds import journal_cut, read
from remit.core.projection import FLOOR
from remit.core.values import Json
from remit.engine.ground import Ground
from remit.engine.upkeep.carrying import carried_again, is_metered
from remit.engine.upkeep.tallying import keep_figures
from remit.ports import Decision, Span, View

_STEP: Final = 250  # events looked at in one step
_APART: Final = 500  # events, after which gaps are looked for anew
_STATING: Final = ("runs.pruned", "journal.cut")
_TOLD_ANEW: Final = (*_STATING, "entries.removed")


class _Page(NamedTuple):
    """Some events that were looked at: up to which place, which of them go, and whether there may be more."""

    upto: int
    gone: list[Event]
    more: bool


async def cut(ground: Ground, before: int, after: int = 0) -> int:
    """Remove what happened before then and nothing needs any more, from behind that event on; tells how far it came.

    It goes in small steps, between which it may be cancelled."""
    store = ground.store
    counted = False
    while True:
        page = await store.read(lambda view, after=after: _looked_at(view, after, before))
        if page.gone:
            if not counted:  # their figures stay
                await keep_figures(store)
                counted = True
            now = ground.clock.now()
            await store.tx(ground.ids.new(), lambda view, after=after, now=now: _step(view, after, before, now))
        if not page.more:
            return page.upto
        after = page.upto
        await checkpoint()


def gaps_left_by(view: View, gone: Iterable[Event | Mark], restated: Sequence[Gap] = ()) -> list[Gap]:
    """Give the gaps that there are when these events are gone: those that are new, joined with what they touch, and
    those whose event is among what goes, so that they have to be stated anew."""
    fresh = joined(Gap(event.seq, event.seq, event.hash) for event in gone)
    known = {gap for first, last in _stretches(fresh) for gap in view.gaps_around(first, last)}
    found = [gap for gap in joined({*fresh, *known}) if gap not in known]
    return sorted([*found, *(gap for gap in restated if not any(_holds(one, gap) for one in found))])


def _stretches(gaps: list[Gap]) -> Iterator[tuple[int, int]]:
    """Tell from where to where gaps lie; apart where they are far apart, so that what is between need not be read."""
    if not gaps:
        return
    first, last = gaps[0].first, gaps[0].last
    for gap in gaps:
        if gap.first - last > _APART:
            yield first, last
            first = gap.first
        last = gap.last
    yield first, last


def _holds(outer: Gap, inner: Gap) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last


def outlives(view: View, event: Event, going: Container[str] = ()) -> bool:
    """Tell whether an event says something that is still so when its run is gone, and the messages that go with it."""
    says = _SAYS.get(event.kind)
    return says is not None and says(view, event, going)


def _entry_stands(view: View, event: Event, _going: Container[str]) -> bool:
    told = read(event, kinds.EntrySet)
    entry = view.entry(told["namespace"], told["key"])
    return entry is not None and entry.version == told["version"]


def _expires_then(view: View, event: Event, _going: Container[str]) -> bool:
    told = read(event, kinds.EntryTouched)
    entry = view.entry(told["namespace"], told["key"])
    return entry is not None and entry.expires_at == told["expires_at"]


def _message_stays(view: View, event: Event, going: Container[str]) -> bool:
    """What was taken in another run: by a task that was tried again."""
    ids = read(event, kinds.MessagesTaken)["ids"]
    return any(id_ not in going and view.has_message(id_) for id_ in ids)


def _breaker_stands(view: View, event: Event, _going: Container[str]) -> bool:
    return view.breaker_set_at(read(event, kinds.BreakerSet)["name"]) == event.at


def _cooling_stands(view: View, event: Event, _going: Container[str]) -> bool:
    return view.cooling_set_at(read(event, kinds.CoolingSet)["name"]) == event.at


def _card_stands(view: View, event: Event, _going: Container[str]) -> bool:
    cards = [card_restored(card) for card in cast("list[dict[str, Json]]", event.data["cards"])]
    return any(view.card(card.name) == card for card in cards)


def _is_metered(view: View, event: Event, _going: Container[str]) -> bool:
    return is_metered(view, event)


def _key_stands(view: View, event: Event, _going: Container[str]) -> bool:
    """Who put in what is kept now."""
    key = view.secret(read(event, kinds.KeySet)["name"])
    return key is not None and key.set_at == event.at


def _always(_view: View, _event: Event, _going: Container[str]) -> bool:
    return True


_SAYS: Final[dict[str, Callable[[View, Event, Container[str]], bool]]] = {
    "entry.set": _entry_stands,
    "entry.touched": _expires_then,
    "entries.removed": _always,
    "messages.taken": _message_stays,
    "breaker.set": _breaker_stands,
    "cards.published": _card_stands,
    "cooling.set": _cooling_stands,
    "keys.kept": _always,
    "account.granted": _always,
    "account.set": _always,
    "hold.reconciled": _always,
    "ledger.carried": _is_metered,
    "key.set": _key_stands,
    "owner.acted": _always,  # operations are kept for good, as idempotency keys are
}


def _looked_at(view: View, after: int, before: int) -> _Page:
    """Look at some events, up to the first that is young: what took back something must not go before that has gone."""
    runs: dict[str, bool] = {"": False}  # those that are not pruned: in them everything may be asked for again
    gone: list[Event] = []
    upto, gaps = after, 0
    for event in view.events(Span(after=after, limit=_STEP)):
        if event.at >= before or gaps >= _STEP:
            return _Page(upto, gone, gaps >= _STEP)
        upto = event.seq
        if event.run not in runs:
            runs[event.run] = view.record(event.run) is not None
        if not runs[event.run] and (event.kind in _TOLD_ANEW or not outlives(view, event)):
            gone.append(event)
            gaps += len(view.gaps_stated(event.seq)) if event.kind in _STATING else 0
    return _Page(upto, gone, upto > after)


def _step(view: View, after: int, before: int, now: int) -> Decision[int]:
    """Remove what goes of some events; all that they say and is so is said once more."""
    gone = _looked_at(view, after, before).gone
    if not gone:
        return Decision(0)
    restated = [gap for event in gone if event.kind in _STATING for gap in view.gaps_stated(event.seq)]
    forgotten: dict[tuple[str, str], int] = {}
    floor = view.retired(*FLOOR).floor
    for event in gone:
        for namespace, key, version in read(event, kinds.EntriesRemoved)["keys"] if _removes(event) else ():
            if view.retired(namespace, key).version == version:
                forgotten[namespace, key] = version
    floor = max([floor, *filter(counts_up, forgotten.values())])
    gaps = gaps_left_by(view, gone, restated)
    events = (journal_cut(gaps, [*forgotten], floor, now), *carried_again(view, gone, now))
    return Decision(len(gone), events)


def _removes(event: Event) -> bool:
    return event.kind == "entries.removed"

"""The prompt is the remit: what a holder is told is what it was given, and nothing else."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.core.allow import ANY
from remit.core.prompt import Done, HandedOn, Note, Passed, brief
from remit.core.scope import Scope
from remit.core.values import encode
from remit.engine.attempt.live import LiveTask
from remit.engine.sharing.access import HolderAccess
from remit.engine.sharing.entries import Entries
from remit.engine.sharing.inbox import Inbox
from remit.errors import Refused

_ENTRIES: Final = 50  # that are passed along and told; what is more can be read by whoever has the verb


class Prompting(NamedTuple):
    entries: Entries
    inbox: Inbox

    async def prompt(self, live: LiveTask) -> str:
        """Write the task, the entries that were passed along, how it came to its holder, and the messages that have
        arrived. Everything that goes in is on the receipt."""
        passed = await self._passed(live)
        fresh = not (live.attempt.is_rerun and await self._has_begun(live))
        notes = [Note(one.sender, one.text, one.trust) for one in await self.inbox.take(live, fresh=fresh)]
        return brief(live.remit.task, passed, _handed(live), notes)

    async def _has_begun(self, live: LiveTask) -> bool:
        """Whether an earlier attempt has had an answer: then a message that is new belongs to the next request, and
        would be lost in a prompt that is not sent again."""
        op = live.operations.position("")
        return await self.inbox.ground.store.read(lambda view: view.done(op) is not None)

    async def _passed(self, live: LiveTask) -> list[Passed]:
        sees = live.remit.sees
        if sees is ANY or not sees:  # a person's blanket sight is no list of what to read
            return []
        access = HolderAccess(self.entries, live)
        try:
            found = await access.recent(sorted(sees, key=_order), _ENTRIES)
        except Refused:  # what was passed is not there any more, or never was
            live.must_be_at_work()
            return []
        listed = sorted(found, key=lambda entry: (entry.namespace, entry.key))
        return [Passed(f"{one.namespace}/{one.key}", one.agent, one.text, one.trust) for one in listed]


def _order(scope: Scope) -> tuple[str, str, str]:
    return scope.namespace, scope.key or "", scope.prefix


def _handed(live: LiveTask) -> HandedOn | None:
    handoff = live.handoff
    if not handoff.sender and not handoff.results and not handoff.refused:
        return None
    results = tuple(
        Done(
            f"part {number}", one.by or one.agent, _text(one.value if one.error is None else str(one.error)), one.trust
        )
        for number, one in enumerate(handoff.results, 1)
    )
    return HandedOn(handoff.sender, handoff.state.text, live.took, results, handoff.refused, handoff.failed)


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode(value)

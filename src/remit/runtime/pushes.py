"""Push notifications for clients of A2A: for a task, the address that is sent its state, and the credentials for it.

Each address is a hook of the workspace, so its deliveries are tasks that are retried for a day. The credentials and the
id of the client's access key are stored like a provider key: encrypted, outside the journal.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple, cast

from remit.core.events import Hook
from remit.core.lifecycle import ENDS
from remit.core.secret import Redaction, Secret
from remit.core.values import encode
from remit.engine.acts import act_of
from remit.engine.hooks import Hooks
from remit.engine.upkeep.keys import Keys
from remit.errors import BadInput
from remit.runtime.hooks import DeliveryLog, client, hook_key
from remit.runtime.opening import Opening

KINDS: Final = " ".join(sorted({*ENDS, "question.asked", "task.claimed", "task.started"}))
MOST_OF_TASK: Final = 10  # addresses of one task


class PushTarget(NamedTuple):
    """An address that is sent the state of a task. `name` is the client's name for it. `scheme` and `credentials` make
    the Authorization header, and `token` lets the client recognize the request. `agent` is the agent that the client
    gave the task. `access` is the id of the client's key, `by` its name in the journal, and `approves` whether it may
    approve."""

    name: str
    url: str
    token: str
    scheme: str
    credentials: str
    access: str
    by: str
    agent: str
    approves: bool


class Pushes:
    """The push notifications of a workspace: addresses that are sent the state of one task each."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._log = DeliveryLog(opening)

    @property
    def are_possible(self) -> bool:
        """Whether there is a master key to encrypt the credentials with."""
        try:
            self._opening.settings.vault()
        except BadInput:
            return False
        return True

    async def set(self, task: str, run: str, target: PushTarget, *, now: bool = False) -> PushTarget:
        """Send the state of a task to an address when the task starts, asks a question or ends; with `now`, also send
        it at once. An address of the same name is replaced. Raise `BadInput` if requests to the address are forbidden,
        or if the task has too many addresses."""
        client().check(target.url)
        others = await self._of(task)
        same = [hook for hook, one in others if one.name == target.name]
        if len(others) - len(same) >= MOST_OF_TASK:
            raise BadInput(f"a task has at most {MOST_OF_TASK} addresses")
        hook, removed = await Hooks(self._opening.ground).push(task, run, target.url, KINDS, target.by)
        await self._keys.set(hook_key(hook.id), Secret(encode([*target])))
        for one in [*removed, *(hook.id for hook in same)]:
            await self.drop(one)
        if now:
            meta = {"event": 0, "kind": "task"}
            body = encode({"type": "task", "data": {"seq": 0}})
            await self._log.submit(hook, body, meta, f"{hook.id}/now", self._opening.workspace)
        return target

    async def list(self, task: str) -> list[PushTarget]:
        """Return the addresses that are sent the state of a task, the oldest first."""
        return [target for _, target in await self._of(task)]

    async def remove(self, task: str, name: str) -> bool:
        """Stop sending the state of a task to the address of this name. Return whether there was one."""
        found = [hook for hook, one in await self._of(task) if one.name == name]
        for hook in found:
            await self.drop(hook.id)
        return bool(found)

    async def target(self, hook: Hook) -> PushTarget | None:
        """Return the address of a hook with its credentials, or None if they are not stored."""
        kept = await self._keys.open(hook_key(hook.id))
        return None if kept is None else PushTarget(*cast("list[Any]", json.loads(kept.reveal())))

    async def drop(self, hook: str) -> None:
        """Delete a hook and its credentials."""
        await Hooks(self._opening.ground).remove(hook, act_of("", ""))
        await self._keys.remove(hook_key(hook))

    async def is_active(self, target: PushTarget) -> bool:
        """Whether the access key that asked for the notifications is still valid. True if no access key did."""
        if not target.access:
            return True
        found = await self._opening.records.read(lambda view: view.access(target.access))
        return found is not None and found[0].lives(self._opening.clock.now())

    async def _of(self, task: str) -> list[tuple[Hook, PushTarget]]:
        hooks = await self._opening.records.read(lambda view: view.hooks())
        found = [(hook, await self.target(hook)) for hook in hooks if hook.task == task]
        return [(hook, target) for hook, target in found if target is not None]

    @property
    def _keys(self) -> Keys:
        # These credentials are in no text of a task, so texts are not searched for them: an empty Redaction.
        return Keys(self._log.opening.ground, self._opening.settings.vault, Redaction())

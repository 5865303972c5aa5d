"""A workspace's own provider keys: encrypted in its store, and decrypted for the engine only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, NamedTuple

from anyio import to_thread

from remit.core.events import Event, Unsealed, read
from remit.core.kinds.models import cooling_set
from remit.core.kinds.workspace import KeyRemoved, KeySet, key_removed, key_set
from remit.core.recovery import FRESH, OWN_KEY, Resting, cleared, what_rests
from remit.core.secret import Redaction, Secret
from remit.core.values import Json, digest, encode, endpoint, shown
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.ground import Ground
from remit.errors import BadInput, Conflict
from remit.ports import Decision, KeyChange, KeyInfo, KeyRow, Vault, View

MOST: Final = 1_000  # keys of one workspace, so that one transaction can encrypt all of them again
NAME_LIMIT: Final = 40  # characters; shorter than a key that is passed as a name by mistake
ENDPOINT_LIMIT: Final = 200  # of a name with a host, openai@llm.example.com: keys contain no @


class Keys(NamedTuple):
    """The provider keys of a workspace. `vault` returns the vault each time, because master keys may have changed.

    Every key that is stored or decrypted here is redacted from then on: an agent that fails with its key in the error
    must not write it into the journal.
    """

    ground: Ground
    vault: Callable[[], Vault]
    redaction: Redaction

    async def set(self, name: str, secret: Secret, act: Act = ONCE) -> KeyInfo:
        """Store a key under this name, and replace an existing one."""
        named = _key_name(name)
        self.redaction.learn(secret)
        now = self.ground.clock.now()
        row = KeyRow(named, self.vault().seal(self.ground.store.workspace, named, secret), now)

        def decide(view: View) -> Decision[list[Json]]:
            if view.secret(named) is None and len(view.secrets()) >= MOST:
                raise BadInput(f"a workspace keeps at most {MOST:,} keys; remove those that nobody needs")
            told = (_told_of(row, act.by), *_rested(view, named, now))
            return Decision([named, row.sealed.key_id, now], told, besides=KeyChange(puts=(row,)))

        told = ""
        if act.op:  # on a thread: it takes a tenth of a second
            told = await to_thread.run_sync(_fingerprint, self.ground.store.workspace, act.op, secret)
        content = ActContent("keys.set", named, told)
        return KeyInfo._make((await act.perform(self.ground, content, decide)).answer)

    async def remove(self, name: str, act: Act = ONCE) -> bool:
        """Delete the key of this name; the row is really removed. Return whether there was one."""
        named, now = _key_name(name), self.ground.clock.now()

        def decide(view: View) -> Decision[bool]:
            if view.secret(named) is None:
                return Decision(False)
            return Decision(True, (key_removed(named, act.by, now),), besides=KeyChange(drops=(named,)))

        return (await act.perform(self.ground, ActContent("keys.remove", named), decide)).answer

    async def names(self) -> list[KeyInfo]:
        """Return the facts about the stored keys, by name, without decrypting them."""
        return await self.ground.store.read(lambda view: view.secrets())

    async def rotate(self, act: Act = ONCE) -> int:
        """Encrypt all keys again that do not use the newest master key, in one transaction. Return their number."""
        vault, store, now = self.vault(), self.ground.store, self.ground.clock.now()
        stale = await store.read(lambda view: _stale(view, vault.newest))
        fresh = {row: self._encrypted_again(vault, row, now) for row in stale}

        def decide(view: View) -> Decision[int]:
            rows = _stale(view, vault.newest)
            if not fresh.keys() >= set(rows):
                raise Conflict("a key was changed while the keys were being encrypted again; rotate again")
            puts = [fresh[row] for row in rows]
            told = [_told_of(row, act.by) for row in puts]
            return Decision(len(puts), told, besides=KeyChange(puts=puts) if puts else None)

        return (await act.perform(self.ground, ActContent("keys.rotate", ""), decide)).answer

    async def open(self, name: str) -> Secret | None:
        """Return the decrypted key of this name, or None."""
        named = _key_name(name)
        row = await self.ground.store.read(lambda view: view.secret(named))
        return None if row is None else self._open_key(self.vault(), row)

    def _open_key(self, vault: Vault, row: KeyRow) -> Secret:
        secret = vault.open(self.ground.store.workspace, row.name, row.sealed)
        self.redaction.learn(secret)
        return secret

    def _encrypted_again(self, vault: Vault, row: KeyRow, now: int) -> KeyRow:
        secret = self._open_key(vault, row)
        return KeyRow(row.name, vault.seal(self.ground.store.workspace, row.name, secret), now)


class Coolings(NamedTuple):
    """Keys and models on cooldown after a failure."""

    ground: Ground

    async def list(self) -> list[Resting]:
        """Return the current cooldowns, the longest first."""
        coolings, now = await self.ground.store.read(lambda view: view.coolings()), self.ground.clock.now()
        found = [what_rests(name, cooling) for name, cooling in coolings.items() if cooling.until > now]
        return sorted(found, key=lambda one: (-one.until, one.name))

    async def clear(self, what: str, act: Act = ONCE) -> int:
        """Clear cooldowns, so that keys and models can be used at once. `what` is a model, an endpoint or the digest of
        a key; "" clears all. Return the number of cleared cooldowns."""
        wanted = what.casefold()

        def chosen(one: Resting) -> bool:
            return not wanted or wanted in {part.casefold() for part in (one.name, one.key, one.model, one.endpoint)}

        def decide(view: View) -> Decision[int]:
            now = self.ground.clock.now()
            names = [name for name, cooling in view.coolings().items() if chosen(what_rests(name, cooling))]
            return Decision(len(names), [cooling_set(name, cleared(now), now, act.by) for name in names])

        return (await act.perform(self.ground, ActContent("cooling.clear", wanted), decide)).answer


def _fingerprint(workspace: str, op: str, secret: Secret) -> str:
    """Return a slow hash of a secret, which distinguishes secrets and is hard to guess from."""
    salt = encode([workspace, op]).encode()
    return hashlib.scrypt(secret.reveal().encode(), salt=salt, n=2**14, r=8, p=1, dklen=16).hex()


def own_mark(row: KeyRow) -> str:
    """Return an id of a workspace's key that changes when the key is replaced, without decrypting it."""
    return f"{OWN_KEY}{row.name}#{digest(row.sealed.text)[:12]}"


class KeysTold:
    """The keys of a workspace according to its journal, to compare the rows with."""

    def __init__(self) -> None:
        self._told: dict[str, KeySet] = {}

    def take(self, event: Event) -> None:
        if event.kind == "key.set":
            data = read(event, KeySet)
            self._told[data["name"]] = data
        elif event.kind == "key.removed":
            self._told.pop(read(event, KeyRemoved)["name"], None)

    def differences(self, view: View) -> list[str]:
        """Return a sentence for each stored key that differs from the journal. In a journal of an earlier version,
        events have no mark of the key; then only its name and master key are compared."""
        found = {info.name: view.secret(info.name) for info in view.secrets()}
        sentences = [f"key {shown(name)} is in the table but not in the journal" for name in found.keys() - self._told]
        for name, told in self._told.items():
            row = found.get(name)
            if row is None:
                sentences.append(f"key {shown(name)} is in the journal but not in the table")
            elif row.sealed.key_id != told["key_id"] or told.get("mark", _mark(row)) != _mark(row):
                sentences.append(f"key {shown(name)} is not the one that the journal tells of: set it again")
        return sorted(sentences)


def _mark(row: KeyRow) -> str:
    return digest(row.sealed.text)


def _told_of(row: KeyRow, by: str) -> Unsealed:
    return key_set(row.name, row.sealed.key_id, by, row.set_at, _mark(row))


def _rested(view: View, named: str, now: int) -> list[Unsealed]:
    """Return the events that clear the cooldowns of the workspace's key `named`, which is being replaced."""
    row = view.secret(named)
    gone = () if row is None else [name for name in view.coolings() if what_rests(name, FRESH).key == own_mark(row)]
    return [cooling_set(name, cleared(now), now) for name in gone]


def _key_name(name: object) -> str:
    """Return the canonical spelling of a key's name. Raise `BadInput` if it is invalid."""
    try:
        named = endpoint(name)
    except BadInput:
        named = ""
    if not 0 < len(named) <= (ENDPOINT_LIMIT if "@" in named else NAME_LIMIT):
        raise BadInput(
            f"a key is named after its provider, such as openai, in at most {NAME_LIMIT} characters, or after its "
            "endpoint, such as openai@llm.example.com; what was given is not shown, for it may be the key itself"
        )
    return named


def _stale(view: View, newest: str) -> list[KeyRow]:
    """Return the keys that are encrypted with another master key than the newest."""
    rows = [view.secret(info.name) for info in view.secrets() if info.key_id != newest]
    return [row for row in rows if row is not None]

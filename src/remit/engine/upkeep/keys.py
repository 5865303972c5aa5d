"""A workspace's own keys to providers: sealed in its store, and opened for the engine alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, NamedTuple

from remit.core.events import Event, Unsealed
from remit.core.kinds import KeyRemoved, KeySet, cooling_set, key_removed, key_set, read
from remit.core.recovery import FRESH, OWN_KEY, Resting, cleared, what_rests
from remit.core.secret import Redaction, Secret
from remit.core.values import Json, digest, encode, endpoint, shown
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.ground import Ground
from remit.errors import BadInput, Conflict
from remit.ports import Decision, KeyChange, KeyInfo, KeyRow, Vault, View

MOST: Final = 1_000  # keys of one workspace, so that all of them can be sealed anew in one transaction
NAME_LIMIT: Final = 40  # characters: less than a key has that someone gives for a name by mistake
ENDPOINT_LIMIT: Final = 200  # of a name with a host in it, openai@llm.example.com: keys have no such mark


class Keys(NamedTuple):
    """The keys of a workspace. `vault` finds what seals them, each time anew: master keys may have been changed since.

    Whatever is set or opened here is redacted from then on: an agent that fails with its key in the error must not
    write it into the journal.
    """

    ground: Ground
    vault: Callable[[], Vault]
    redaction: Redaction

    async def set(self, name: str, secret: Secret, act: Act = ONCE) -> KeyInfo:
        """Keep a key under this name, in the place of the one that was there."""
        named = _named(name)
        self.redaction.learn(secret)
        now = self.ground.clock.now()
        row = KeyRow(named, self.vault().seal(self.ground.store.workspace, named, secret), now)

        def decide(view: View) -> Decision[list[Json]]:
            if view.secret(named) is None and len(view.secrets()) >= MOST:
                raise BadInput(f"a workspace keeps at most {MOST:,} keys; remove those that nobody needs")
            told = (_told_of(row, act.by), *_rested(view, named, now))
            return Decision([named, row.sealed.key_id, now], told, vault=KeyChange(puts=(row,)))

        told = _fingerprint(self.ground.store.workspace, act.op, secret) if act.op else ""
        content = ActContent("keys.set", named, told)
        return KeyInfo._make((await act.perform(self.ground, content, decide)).answer)

    async def remove(self, name: str, act: Act = ONCE) -> bool:
        """Keep the key of this name no more: it is deleted, not marked. Tells whether there was one."""
        named, now = _named(name), self.ground.clock.now()

        def decide(view: View) -> Decision[bool]:
            if view.secret(named) is None:
                return Decision(False)
            return Decision(True, (key_removed(named, act.by, now),), vault=KeyChange(drops=(named,)))

        return (await act.perform(self.ground, ActContent("keys.remove", named), decide)).answer

    async def names(self) -> list[KeyInfo]:
        """List the keys there are, by name, unopened."""
        return await self.ground.store.read(lambda view: view.secrets())

    async def rotate(self, act: Act = ONCE) -> int:
        """Seal anew whatever is not sealed with the newest master key; tells how many. All of them, or none."""
        vault, store, now = self.vault(), self.ground.store, self.ground.clock.now()
        stale = await store.read(lambda view: _stale(view, vault.newest))
        fresh = {row: self._sealed_anew(vault, row, now) for row in stale}

        def decide(view: View) -> Decision[int]:
            rows = _stale(view, vault.newest)
            if not fresh.keys() >= set(rows):
                raise Conflict("a key was changed while the keys were being sealed anew; rotate once more")
            puts = [fresh[row] for row in rows]
            told = [_told_of(row, act.by) for row in puts]
            return Decision(len(puts), told, vault=KeyChange(puts=puts) if puts else None)

        return (await act.perform(self.ground, ActContent("keys.rotate", ""), decide)).answer

    async def open(self, name: str) -> Secret | None:
        """Open the key of this name; None if there is none."""
        named = _named(name)
        row = await self.ground.store.read(lambda view: view.secret(named))
        return None if row is None else self._opened(self.vault(), row)

    def _opened(self, vault: Vault, row: KeyRow) -> Secret:
        secret = vault.open(self.ground.store.workspace, row.name, row.sealed)
        self.redaction.learn(secret)
        return secret

    def _sealed_anew(self, vault: Vault, row: KeyRow, now: int) -> KeyRow:
        secret = self._opened(vault, row)
        return KeyRow(row.name, vault.seal(self.ground.store.workspace, row.name, secret), now)


class Coolings(NamedTuple):
    """Keys and models that rest after a failure."""

    ground: Ground

    async def list(self) -> list[Resting]:
        """List what rests now, the longest first."""
        coolings, now = await self.ground.store.read(lambda view: view.coolings()), self.ground.clock.now()
        found = [what_rests(name, cooling) for name, cooling in coolings.items() if cooling.until > now]
        return sorted(found, key=lambda one: (-one.until, one.name))

    async def clear(self, what: str, act: Act = ONCE) -> int:
        """Let keys and models be asked again at once: all of them, or those of this model, endpoint or mark of a key.
        Tells how many that are."""
        wanted = what.casefold()

        def chosen(one: Resting) -> bool:
            return not wanted or wanted in {part.casefold() for part in (one.name, one.key, one.model, one.endpoint)}

        def decide(view: View) -> Decision[int]:
            now = self.ground.clock.now()
            names = [name for name, cooling in view.coolings().items() if chosen(what_rests(name, cooling))]
            return Decision(len(names), [cooling_set(name, cleared(now), now, act.by) for name in names])

        return (await act.perform(self.ground, ActContent("cooling.clear", wanted), decide)).answer


def _fingerprint(workspace: str, op: str, secret: Secret) -> str:
    """Tell a secret from another without keeping what it could be guessed from at any speed."""
    salt = encode([workspace, op]).encode()
    return hashlib.scrypt(secret.reveal().encode(), salt=salt, n=2**14, r=8, p=1, dklen=16).hex()


def own_mark(row: KeyRow) -> str:
    """Tell a workspace's key from the one that it replaced, without opening either."""
    return f"{OWN_KEY}{row.name}#{digest(row.sealed.text)[:12]}"


class KeysTold:
    """The keys of a workspace as its journal tells of them, to compare the rows with."""

    def __init__(self) -> None:
        self._told: dict[str, KeySet] = {}

    def take(self, event: Event) -> None:
        if event.kind == "key.set":
            data = read(event, KeySet)
            self._told[data["name"]] = data
        elif event.kind == "key.removed":
            self._told.pop(read(event, KeyRemoved)["name"], None)

    def differences(self, view: View) -> list[str]:
        """Say which rows differ. A journal of an earlier remit has no marks: there a name and a master key count."""
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
    """Forget what the key before this one failed of: it is gone."""
    row = view.secret(named)
    gone = () if row is None else [name for name in view.coolings() if what_rests(name, FRESH).key == own_mark(row)]
    return [cooling_set(name, cleared(now), now) for name in gone]


def _named(name: object) -> str:
    """Give the one spelling of a key's name."""
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
    """List what is sealed with another master key than the newest."""
    rows = [view.secret(info.name) for info in view.secrets() if info.key_id != newest]
    return [row for row in rows if row is not None]

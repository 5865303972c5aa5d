"""Access: keys for callers from outside are made, listed and revoked; the key itself is shown once."""

import logging
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.test_vault import forms
from core.test_secret import shown
from engine.helping import sound
from remit import Bounds, Runtime
from remit.core.access import parse_key
from remit.core.identity import AccessRow
from remit.core.kinds.workspace import access_made
from remit.engine.upkeep.access import MOST
from remit.errors import BadInput, Conflict, NotFound, RemitError
from remit.ports import Decision
from remit.runtime.workspace import opening_of
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)


@pytest.mark.rule("access.once", "access.told", "access.scopes")
async def test_an_access_is_made_listed_and_revoked(anywhere: Runtime, clock: FakeClock):
    access, database = anywhere.workspace.access, opening_of(anywhere.workspace).database
    assert await access.list() == []
    made = await access.make(
        "ci", scopes=["approve", "run"], expires=HOUR, agent="Lead", bounds=Bounds(depth=2), by="ann"
    )
    key = parse_key(made.key.reveal())
    assert key is not None
    assert key.id == made.id
    assert await database.opened_by(made.id) == anywhere.workspace.name
    row, used_at = await anywhere.workspace.journal.read(lambda view: view.access(made.id)) or (None, None)
    assert row is not None
    assert (row.admits(key.digest, clock.now()), used_at) == (True, None)
    assert await access.list() == [made.access]
    assert (made.access.scopes, made.access.agent, made.access.bounds) == (("run", "approve"), "lead", Bounds(depth=2))

    assert await access.revoke(made.id, by="bob")
    assert not await access.revoke(made.id, by="eve")
    (revoked,) = await access.list()
    assert (revoked.state, revoked.revoked_by, revoked.revoked_at) == ("revoked", "bob", clock.now())
    with pytest.raises(NotFound, match="there is no access 'aaaaaaaaaaaaaaaa'"):
        await access.revoke("a" * 16)
    events = await anywhere.workspace.journal.history(kinds={"access.made", "access.revoked"})
    assert [(event.kind, event.data["by"]) for event in events] == [("access.made", "ann"), ("access.revoked", "bob")]
    assert events[0].data["digest"] == key.digest
    await sound(anywhere)


@pytest.mark.rule("access.once")
async def test_a_repeated_operation_makes_one_access_and_does_not_show_its_key_again(rt: Runtime):
    access = rt.workspace.access
    made = await access.make("ci", expires=90, op="first")
    with pytest.raises(
        Conflict, match=f"this operation created the access key {made.id} before, and it was shown then"
    ):
        await access.make("ci", expires=90, op="first")
    with pytest.raises(Conflict, match="first"):
        await access.make("ci", expires=91, op="first")
    assert [one.id for one in await access.list()] == [made.id]
    assert await access.revoke(made.id, op="second")
    assert await access.revoke(made.id, op="second")


async def test_an_expired_access_is_listed_as_expired(rt: Runtime, clock: FakeClock):
    await rt.workspace.access.make("short", expires=HOUR)
    clock.advance(3_600)
    assert [one.state for one in await rt.workspace.access.list()] == ["expired"]


async def test_a_workspace_has_a_thousand_active_accesses_at_most(rt: Runtime, clock: FakeClock):
    rows = [AccessRow(f"{n}", "", "x", "run", "", "{}", None, clock.now(), "", None, "") for n in range(MOST)]
    ended = rows[0]._replace(id="ended", expires_at=clock.now())
    store = opening_of(rt.workspace).engine.services.ground.store
    await store.tx("fill", lambda _: Decision(None, [access_made(row) for row in (*rows[1:], ended)]))
    await rt.workspace.access.make("the last")
    with pytest.raises(BadInput, match="a workspace has at most 1,000 active access keys; revoke those"):
        await rt.workspace.access.make("one more")


@pytest.mark.rule("access.kept")
async def test_pruning_keeps_accesses_and_their_events(rt: Runtime, clock: FakeClock):
    made = await rt.workspace.access.make("ci")
    clock.advance(1)
    gone = await rt.workspace.access.make("old")
    await rt.workspace.access.revoke(gone.id)
    clock.advance(90 * 86_400)
    await rt.workspace.prune(30)
    assert [(one.id, one.state) for one in await rt.workspace.access.list()] == [
        (made.id, "active"),
        (gone.id, "revoked"),
    ]
    await sound(rt)


@pytest.mark.rule("access.once")
async def test_a_key_is_in_no_event_row_log_or_error(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "team.db"
    errors: list[BaseException] = []
    with team(path) as rt:
        made = await rt.workspace.access.make("ci", op="once")
        key = made.key.reveal()
        for wrong in (rt.workspace.access.revoke(key), rt.workspace.access.make("ci", op="once")):
            with pytest.raises(RemitError) as no:
                await wrong
            errors.append(no.value)
        await rt.workspace.access.revoke(made.id)
        events = "\n".join(f"{event}{event.text}" for event in await rt.workspace.journal.history())
    with sqlite3.connect(path) as database:
        rows = "\n".join(database.iterdump())
    database.close()
    said = "".join([caplog.text, *(shown(error, but_for=__file__) for error in errors), *map(repr, errors)])
    secret = key[21:64]
    written = [path.read_bytes(), events.encode(), rows.encode(), said.encode(), f"{made!r}{made}".encode()]
    assert [form for form in forms(secret) for text in written if form in text] == []

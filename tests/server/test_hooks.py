"""Hooks over HTTP, and a server that sends the events of all its workspaces."""

import threading
from contextlib import closing
from pathlib import Path

import pytest
import standardwebhooks
from anyio import to_thread

from adapters.standin import stand_in
from remit import Runtime, open_database
from remit.adapters.vault import fresh_master
from remit.errors import StoreError
from remit.server.carrying import carrying
from remit.server.tenants import Tenants
from remit.stores.sqlite.database import MEMORY, SqliteDatabase
from server.serving import app_of, caller, client
from teams import echo

pytestmark = pytest.mark.anyio
PATIENCE = 20.0


@pytest.mark.rule("hook.http")
async def test_an_admin_adds_a_hook_over_http_and_the_server_sends_the_events_of_every_workspace(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("REMIT_MASTER_KEY", fresh_master().reveal())
    monkeypatch.setenv("REMIT_HOOK_NETWORKS", "127.0.0.0/8")
    async with stand_in() as server:
        with open_database(MEMORY) as database:
            secrets = {}
            teams = [Runtime(database, workspace=name) for name in ("one", "two")]
            async with carrying(Tenants(database, [rt.workspace for rt in teams])):
                for rt in teams:
                    rt.agent("echo")(echo)
                    name = rt.workspace.name
                    async with client(app_of(rt, caller(workspace=name))) as http:
                        wrong = await http.post("/v1/hooks", json={"url": "http://10.0.0.1/x", "kinds": ["task.*"]})
                        assert (wrong.status_code, "10.0.0.1" in wrong.text) == (422, False)
                        body = {"url": f"{server.url}/{name}", "kinds": ["task.completed"]}
                        made = await http.post("/v1/hooks", json=body)
                        assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
                        secrets[f"/{name}"] = made.json()["secret"]
                        await rt.run("echo", name)
                        other = "two" if name == "one" else "one"
                        strange = client(app_of(Runtime(database, workspace=other), caller(workspace=other)))
                        hidden = await strange.get(f"/v1/hooks/{made.json()['id']}/deliveries")
                        assert hidden.status_code == 404
                        assert (await http.get("/v1/hooks")).json()["hooks"][0]["url"] == body["url"]
                await server.until(lambda: len(server.got) == 2)
            for got in server.got:
                standardwebhooks.Webhook(secrets[got.path]).verify(got.body, got.headers)
                assert got.json["data"]["workspace"] == got.path[1:]


class Away(SqliteDatabase):
    """A database that does not answer until the loop goes on, as a server that is being restarted."""

    def __init__(self, where: Path) -> None:
        super().__init__(where)
        self.asked, self.is_back = threading.Event(), threading.Event()

    def workspaces(self) -> list[str]:
        self.asked.set()
        if not self.is_back.wait(PATIENCE):
            raise StoreError("the loop waited with it")
        return super().workspaces()


@pytest.mark.rule("hook.http")
async def test_a_server_answers_while_it_waits_for_a_database_that_is_away(tmp_path: Path, caplog):
    with closing(Away(tmp_path / "team.db")) as database:
        async with carrying(Tenants(database, [Runtime(database).workspace])):
            assert await to_thread.run_sync(database.asked.wait, PATIENCE)
            database.is_back.set()
    assert caplog.records == []

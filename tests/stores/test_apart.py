"""Row-level security: the server itself keeps workspaces apart, whatever a query says."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import remit
from commands import command
from postgres import Server
from remit.core.kinds.tasks import started
from remit.errors import StoreError
from remit.stores.postgres.address import STATEMENTS
from remit.stores.postgres.database import PostgresDatabase
from remit.testing.clauses.making import NOW, append, first_remit
from teams import echo

WITH_A_WORKSPACE = """
SELECT c.relname, c.relrowsecurity, (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace'
WHERE c.relnamespace = 'remit'::regnamespace AND c.relkind = 'r'"""


@pytest.fixture
def app(postgres: Server, address: str) -> str:
    """The address of a store for the role that may only serve it."""
    return postgres.served(address)


@pytest.fixture
def owner(address: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


@pytest.mark.rule("postgres.apart")
def test_every_table_with_a_workspace_has_a_policy_and_a_new_one_gets_it(
    app: str, address: str, owner: psycopg.Connection
):
    tables = owner.execute(WITH_A_WORKSPACE).fetchall()
    assert len(tables) > 20
    assert [name for name, is_on, policies in tables if not is_on or policies != 1] == []
    owner.execute('CREATE TABLE remit.more (workspace text COLLATE "C" NOT NULL)')
    with closing(PostgresDatabase(address)) as database:
        assert [one for one in database.faulty() if "row-level" in one] == [
            "table more has no row-level security, and others have; run `remit db secure`"
        ]
    with owner.transaction():  # as every migration ends: whatever has come is secured
        owner.execute(STATEMENTS["path"])
        owner.execute(STATEMENTS["secure_again"])
    assert ("more", True, 1) in owner.execute(WITH_A_WORKSPACE).fetchall()
    granted = owner.execute("SELECT has_table_privilege(%s, 'remit.more', 'SELECT')", (conninfo_to_dict(app)["user"],))
    assert granted.fetchone() == (True,)


@pytest.mark.rule("postgres.apart")
def test_the_server_shows_and_takes_only_rows_of_the_workspaces_that_are_named(app: str, address: str):
    async def fill() -> None:
        with closing(PostgresDatabase(app)) as database:
            for name in ("one", "two"):
                await append(
                    database.store(name), "begin", started(first_remit("root", session="s", workspace=name), NOW)
                )
            assert database.workspaces() == ["one", "two"]

    asyncio.run(fill())
    with psycopg.connect(app, autocommit=True) as connection:

        def seen(named: str | None) -> list[tuple[str]]:
            with connection.transaction():
                if named is not None:
                    connection.execute("SELECT set_config('remit.workspaces', %s, true)", (named,))
                return connection.execute("SELECT DISTINCT workspace FROM remit.event ORDER BY 1").fetchall()

        assert seen(None) == seen("") == seen("three") == []
        assert seen("one") == [("one",)]
        assert seen("one\ntwo") == [("one",), ("two",)]
        assert seen("two; DROP TABLE remit.event") == []
        assert seen(None) == []
        connection.execute("SELECT set_config('remit.workspaces', 'one', false)")
        moved = connection.execute("UPDATE remit.task SET state = 'pending' WHERE workspace = 'two'")
        assert moved.rowcount == 0
        for change in (
            "UPDATE remit.task SET workspace = 'two'",
            "INSERT INTO remit.card VALUES ('two', 'a', '{}', 1)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                connection.execute(change.encode())
        for change in ("DROP POLICY workspace ON remit.task", "SELECT remit.secure('')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(change.encode())


@pytest.mark.rule("postgres.apart")
def test_a_team_runs_queues_saves_and_is_examined_as_the_role_that_serves(app: str):
    with remit.Runtime(app) as rt:
        rt.add(remit.Card("echo"), echo)
        assert remit.run(rt, "echo", "done") == "done"

        async def all_of_it() -> None:
            task = await rt.submit("echo", "from the queue")
            assert (await task.wait(timeout=60)).unwrap() == "from the queue"
            saved = await rt.workspace.artifacts.save(b"hello", "a.txt")
            assert await (await rt.workspace.artifacts.open(saved.digest)).read() == b"hello"
            made = await rt.workspace.access.make("ci")
            assert await rt.workspace.access.revoke(made.id)
            assert [one.name for one in await rt.workspace.agents.list()] == ["echo"]
            health = await rt.workspace.check()
            assert health.sound, health.findings

        asyncio.run(all_of_it())


@pytest.mark.rule("postgres.apart")
def test_only_the_owner_secures_a_store_and_for_a_role_that_exists(app: str, address: str):
    with closing(PostgresDatabase(app)) as database, pytest.raises(StoreError, match="this user may not do that"):
        database.secure("anyone")
    with (
        closing(PostgresDatabase(address)) as database,
        pytest.raises(StoreError, match='role "no one" does not exist'),
    ):
        database.secure("no one")


@pytest.mark.rule("postgres.apart")
def test_the_command_secures_a_store_for_a_role(app: str, address: str, tmp_path: Path):
    role = str(conninfo_to_dict(app)["user"])
    said = command(tmp_path, "db", "secure", role, "--store", url(address))
    assert (said.returncode, said.stderr) == (0, "")
    assert f"tables secured; connect servers and workers as {role}" in said.stdout


def url(address: str) -> str:
    given = conninfo_to_dict(address)
    return f"postgresql://{given['user']}@/{given['dbname']}?host={given['host']}"

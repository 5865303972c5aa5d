"""Users of PostgreSQL: whose schema is trusted, and how little a worker or an onlooker may be allowed."""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import remit
from postgres import Server
from remit.core.breaker import Breaker
from remit.core.events import Place
from remit.core.kinds.workspace import breaker_set
from remit.engine.upkeep.tallying import ENOUGH
from remit.errors import NotAStore, NotFound, StoreError
from remit.ports import Decision
from remit.runtime.workspace import opening_of
from remit.stores.postgres.address import Address
from remit.stores.postgres.database import PostgresDatabase
from teams import echo

PAGE = Path(__file__).parent.parent.parent / "docs" / "operating.md"
Role = Callable[..., str]


@pytest.fixture
def role(postgres: Server, address: str) -> Iterator[Role]:
    """Makes users; gives the address of the database for each."""
    made: list[str] = []

    def new(name: str) -> str:
        made.append(f"{name}_{conninfo_to_dict(address)['dbname']}")
        postgres.run(f"CREATE ROLE {made[-1]} LOGIN")
        return make_conninfo(address, user=made[-1])

    yield new
    with psycopg.connect(address, autocommit=True) as connection:
        for name in made:
            connection.execute(f"DROP OWNED BY {name} CASCADE".encode())
    for name in made:
        postgres.run(f"DROP ROLE {name}")


def run(address: str, *statements: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def user(address: str) -> str:
    return str(conninfo_to_dict(address)["user"])


def grants(heading: str) -> list[str]:
    """The statements on the page about operating, as they are written there."""
    block = re.search(rf"-- {heading}.*?\n(.*?)(?:\n\n|```)", PAGE.read_text(), re.DOTALL)
    assert block is not None
    return [line for line in block[1].splitlines() if line]


@pytest.mark.rule("postgres.owner")
@pytest.mark.parametrize("migrate", [True, False])
def test_a_schema_that_a_stranger_made_first_is_refused(address: str, role: Role, migrate: bool):
    mallory, worker = role("mallory"), role("worker")
    run(address, "DROP SCHEMA remit CASCADE", f"CREATE SCHEMA remit AUTHORIZATION {user(mallory)}")
    for who in (worker, address):  # a superuser has most to lose
        with pytest.raises(
            NotAStore, match=f"others can change what remit would execute in the schema `remit`: {user(mallory)}"
        ):
            PostgresDatabase(who, migrate=migrate)


@pytest.mark.rule("postgres.owner")
@pytest.mark.parametrize("statement", ["GRANT CREATE ON SCHEMA remit TO {}", "ALTER TABLE remit.task OWNER TO {}"])
def test_roles_that_may_create_objects_in_the_schema_are_named(address: str, role: Role, statement: str):
    mallory = role("mallory")
    PostgresDatabase(address).close()
    run(address, statement.format(user(mallory)))
    with pytest.raises(NotAStore, match=user(mallory)):
        PostgresDatabase(address)
    run(address, f"REVOKE CREATE ON SCHEMA remit FROM {user(mallory)}", "GRANT CREATE ON SCHEMA remit TO PUBLIC")
    with pytest.raises(NotAStore, match="everyone"):
        PostgresDatabase(address)


@pytest.mark.rule("postgres.owner")
def test_temporary_tables_do_not_hide_ours(address: str):
    """A temporary table would be found before ours, unless the path says otherwise."""
    with Address(make_conninfo(address, options="-c search_path=public")).connect() as connection:
        connection.execute("CREATE TEMP TABLE task (id text)")
        assert connection.execute("SELECT 'task'::regclass::oid = 'remit.task'::regclass::oid").fetchone() == (True,)


@pytest.mark.rule("postgres.least")
def test_a_worker_needs_no_more_than_the_page_says(address: str, role: Role):
    worker = role("worker")
    run(address, *(line.replace("worker", user(worker)) for line in grants("a worker")))

    with remit.Runtime(worker) as rt:
        rt.add(remit.Card("echo"), echo)
        assert remit.run(rt, "echo", "done") == "done"

        async def queued() -> object:
            task = await rt.submit("echo", "from the queue")
            return (await task.wait(timeout=20)).unwrap()

        assert asyncio.run(queued()) == "from the queue"
        assert asyncio.run(rt.workspace.check()).sound
    for statement in ("DROP TABLE remit.task", "CREATE TABLE remit.mine ()", "ALTER TABLE remit.task ADD mine text"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(worker, statement)


@pytest.mark.rule("postgres.least")
def test_a_worker_makes_no_store(new_address: Callable[..., str], role: Role):
    address = make_conninfo(new_address(empty=True), user=user(role("worker")))
    with pytest.raises(StoreError, match="may not do that"):
        PostgresDatabase(address)
    with pytest.raises(NotFound, match="no tables of this version"):
        PostgresDatabase(address, migrate=False)


@pytest.mark.rule("postgres.least")
def test_an_onlooker_sees_everything_and_changes_nothing(address: str, role: Role):
    viewer = role("viewer")
    run(address, *(line.replace("viewer", user(viewer)) for line in grants("an onlooker")))
    with remit.Runtime(address) as rt:
        rt.add(remit.Card("echo"), echo)
        remit.run(rt, "echo", "done")
        failed = breaker_set("echo", Breaker("closed", 1, 0, "", ""), Place(), opening_of(rt.workspace).clock.now())
        asyncio.run(
            opening_of(rt.workspace).ground.store.tx("failed", lambda _view: Decision(None, (failed,) * ENOUGH))
        )

    with remit.Workspace(viewer, create=False) as workspace:

        async def look() -> int:
            assert (await workspace.check()).sound
            [line] = await workspace.tasks.runs()
            assert await workspace.tree(line.record.id) is not None
            assert (await workspace.stats()).breakers["echo"].failures == 1
            return len(await workspace.journal.history())

        assert asyncio.run(look()) == 2 + ENOUGH
        with pytest.raises(StoreError, match="may not do that"):
            asyncio.run(workspace.agents.trip("echo", "no"))

"""The contract of a store: a store is everything that passes `check_store`.

Each clause is a small function that gets a fresh database, and raises `AssertionError` if the database breaks a promise
of `ports.Store`. The clauses use the ports and the core, never a particular store.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from anyio import fail_after

from remit.ports import Database
from remit.testing.clauses import (
    agents,
    artifacts,
    entries,
    journal,
    money,
    queue,
    runs,
    tasks,
    transactions,
    workspaces,
)

Clause: TypeAlias = Callable[[Database], Awaitable[None]]

PATIENCE: Final = 60.0  # seconds for one clause, even on a busy machine; a store that never answers fails it

CLAUSES: Final[tuple[Clause, ...]] = (
    *transactions.CLAUSES,
    *workspaces.CLAUSES,
    *entries.CLAUSES,
    *tasks.CLAUSES,
    *runs.CLAUSES,
    *queue.CLAUSES,
    *agents.CLAUSES,
    *journal.CLAUSES,
    *money.CLAUSES,
    *artifacts.CLAUSES,
)


async def check_store(open_database: Callable[[], Database]) -> None:
    """Check a store against its contract. `open_database` returns a new, empty database each time."""
    for clause in CLAUSES:
        await check_clause(clause, open_database)


async def check_clause(clause: Clause, open_database: Callable[[], Database]) -> None:
    """Check a store against one clause, on a database of its own; every error is raised as a breach of this clause."""
    database = open_database()
    try:
        with fail_after(PATIENCE):
            await clause(database)
    except AssertionError as error:
        raise AssertionError(f"{title(clause)}: {error}") from error
    except TimeoutError as error:
        raise AssertionError(f"{title(clause)}: no answer within {PATIENCE:g} seconds") from error
    except Exception as error:
        raise AssertionError(f"{title(clause)}: {type(error).__name__}: {error}") from error
    finally:
        database.close()


def title(clause: Clause) -> str:
    """Return the name of a clause as words: `answers_again` -> 'answers again'."""
    return clause.__name__.replace("_", " ")

"""`remit history`: the latest events, however long the journal is."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from commands import command as remit
from remit.core.entry import Draft
from remit.ports import Decision
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing.clauses.making import entry_event

MANY = 2_500


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of many events, of which each tenth is of a rare agent."""
    folder = tmp_path_factory.mktemp("history")
    drafts = [Draft("notes", f"key {number}", number) for number in range(MANY)]
    with closing(SqliteDatabase(folder / "remit.db")) as database:
        events = [("busy" if number % 10 else "rare", draft) for number, draft in enumerate(drafts)]
        asyncio.run(
            database.store("default").tx(
                "op",
                lambda view: Decision(None, tuple(entry_event(view, draft, agent=agent) for agent, draft in events)),
            )
        )
    return folder


def numbers(text: str) -> list[int]:
    return [int(line.split()[0]) for line in text.splitlines()]


@pytest.mark.rule("journal.history")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), range(MANY - 999, MANY + 1)),
        (("--limit", "3"), range(MANY - 2, MANY + 1)),
        (("--limit", "2200"), range(301, MANY + 1)),
        (("--limit", "1000000000"), range(1, MANY + 1)),
        (("--agent", "rare", "--limit", "2"), (MANY - 19, MANY - 9)),
        (("--agent", "nobody"), ()),
        (("--session", "none"), ()),
    ],
)
def test_the_latest_events_are_shown_in_order(folder: Path, words: tuple[str, ...], expected: range):
    assert numbers(remit(folder, "history", *words).stdout) == [*expected]


@pytest.mark.rule("journal.history")
@pytest.mark.parametrize("limit", [1, 1_500])
def test_json_is_one_document_however_long(folder: Path, limit: int):
    text = remit(folder, "history", "--json", "--limit", str(limit)).stdout
    events = json.loads(text)
    assert [event["seq"] for event in events] == [*range(MANY - limit + 1, MANY + 1)]
    assert text == json.dumps(events, indent=2, ensure_ascii=False) + "\n"


def test_json_of_nothing_is_an_empty_list(folder: Path):
    assert remit(folder, "history", "--json", "--agent", "nobody").stdout == "[]\n"

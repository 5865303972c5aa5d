"""The SQL itself: each query names the workspace; none has a pattern, is made from text, or is unused."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.core import projection as tables
from remit.stores import queries
from remit.stores.sqlite.database import OPENS, WORKSPACES

FOLDER = Path(queries.__file__).parent
MODULES = sorted(FOLDER.rglob("*.py"))
SQL_FILES = sorted(FOLDER.rglob("*.sql"))
NAMED = {name: query.sql for name, query in queries.queries(r":\1").items()}  # with the names of their places
PATTERN = re.compile(r"\b(LIKE|ILIKE|GLOB|REGEXP|MATCH|SIMILAR)\b", re.IGNORECASE)
RUNS_SQL = {"execute", "executemany", "executescript", "run", "query", "write", "erase", "rows", "_execute", "_send"}
RUNS_SQL |= {"_rows", "_one", "_ask", "_count", "_records", "_range"}


def without_comments(sql: str) -> str:
    return re.sub(r"--.*", "", sql)


def calls() -> Iterator[tuple[str, ast.expr]]:
    """The first argument of everything in the stores that runs SQL or names a query, and where."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in RUNS_SQL:
                    yield f"{path.name}:{node.lineno}", node.args[0]


def texts(path: Path) -> list[str]:
    return [
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_the_queries_are_read_as_they_are_written():
    written = [
        name for path in (FOLDER / "sql").glob("*.sql") for name in re.findall(r"-- name: (\w+)", path.read_text())
    ]
    assert sorted(written) == sorted(NAMED), "each name once"
    assert len(NAMED) > 25


@pytest.mark.rule("store.workspace")
@pytest.mark.parametrize("name", NAMED)
def test_every_query_names_the_workspace(name: str):
    sql = without_comments(NAMED[name])
    assert ":workspace" in sql
    if not sql.lstrip().startswith("INSERT"):
        assert re.search(r"\bworkspace = :workspace\b", sql)
    tables = re.findall(
        r"\b(?:FROM|JOIN)\s+(event|task|run|entry|message|breaker|card|worker|tally|tally_task|tally_mark|secret|lease|hold"
        r"|meter|question|schedule|hook|access)\b",
        sql,
    )
    conditions = re.findall(r"\bworkspace = (?::workspace|\w+\.workspace)", sql)
    assert len(conditions) >= len(tables), "each table it looks into is bound to the workspace"


@pytest.mark.rule("store.workspace")
def test_what_is_asked_outside_of_the_named_queries_is_not_about_the_content_of_a_workspace():
    found = {text for path in MODULES for text in texts(path) if re.search(r"\bFROM\s", text)}
    assert found <= {
        WORKSPACES,
        OPENS,
        "SELECT count(*) FROM sqlite_master",
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name",
    }


@pytest.mark.rule("entry.prefix")
def test_no_sql_has_a_pattern():
    for path in SQL_FILES:
        assert not PATTERN.search(without_comments(path.read_text())), path.name
    for where, argument in calls():
        assert not PATTERN.search(ast.unparse(argument)), where


@pytest.mark.rule("input.text")
def test_no_sql_is_made_from_text():
    """Only a PRAGMA, which takes no parameters, has numbers of our own put in."""
    for where, argument in calls():
        for node in ast.walk(argument):
            if isinstance(node, ast.JoinedStr):
                start = node.values[0]
                is_pragma = isinstance(start, ast.Constant) and str(start.value).startswith("PRAGMA ")
                is_name = ast.unparse(node) == "f'{table}_{verb}'"
                assert is_pragma or is_name, where
            adds = isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Mult)
            assert not adds, f"{where} puts text together"
            assert not (isinstance(node, ast.Attribute) and node.attr in {"format", "join", "format_map"}), where
    made = r"\b(SELECT|INSERT|UPDATE|DELETE|WHERE|VALUES|FROM)\b"
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
                assert not re.search(made, " ".join(parts)), f"{path.name}:{node.lineno}"


def test_every_query_is_used():
    used = {text for path in MODULES for text in texts(path)}
    sources = Path(tables.__file__).parent.glob("*.py")
    changes = re.findall(r'Change\(\s*"(\w+)",\s*"(\w+)"', "".join(path.read_text() for path in sources))
    used |= {f"{table}_{verb}" for table, verb in changes}
    assert set(queries.queries("?", "places")) - used == set()
    assert set(NAMED) - used == set()


def test_every_statement_of_postgresql_is_used_and_has_no_percent_sign():
    """A percent sign would be taken for a place by psycopg."""
    used = {text for path in MODULES for text in texts(path)}
    own = queries.queries("%s", "postgres")
    assert set(own) - used == set()
    for query in (*own.values(), *queries.queries("%s").values()):
        assert query.sql.count("%") == len(query.names)


def test_every_query_that_is_asked_for_is_there():
    names = {str(argument.value) for _, argument in calls() if isinstance(argument, ast.Constant)}
    known = set(NAMED) | set(queries.queries("%s", "postgres")) | set(queries.queries("%s", "places"))
    assert {name for name in names if re.fullmatch(r"[a-z_]+", name)} <= known


@pytest.mark.rule("entry.prefix")
@pytest.mark.parametrize(
    ("prefix", "stop"),
    [
        ("a", "b"),
        ("a%", "a&"),
        ("a\ud7ff", "a\ue000"),
        ("a\U0010ffff", "b"),
        ("\ue000\U0010ffff\U0010ffff", "\ue001"),
        ("\x7f", "\x80"),
        ("\uffff", "\U00010000"),
    ],
)
def test_a_range_ends_where_its_prefix_ends(prefix: str, stop: str):
    assert queries.after(prefix) == stop


@pytest.mark.rule("entry.prefix")
@pytest.mark.parametrize("prefix", ["", "\U0010ffff", "\U0010ffff" * 128])
def test_a_range_without_a_next_text_ends_after_every_key(prefix: str):
    assert queries.after(prefix) > "\U0010ffff" * 128

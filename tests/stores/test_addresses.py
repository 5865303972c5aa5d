"""What an address means, and that no password in one is ever shown."""

from pathlib import Path

import pytest

import remit
from commands import command
from remit.errors import BadInput
from remit.stores.addresses import is_server, redacted
from remit.stores.postgres.address import Address

SECRET = "hunter2"


@pytest.mark.rule("store.address")
@pytest.mark.parametrize(
    "where",
    [
        "postgresql://ann@host/db",
        "postgres://ann:pw@host:5432/db?sslmode=require",
        "POSTGRESQL://host/db",
        "  postgresql:///db",
        "host=/run/pg user=ann password=x dbname=team",
        "password = 'a b' host=h",
        "service=team",
    ],
)
def test_an_address_of_a_server_is_one(where: str):
    assert is_server(where)


@pytest.mark.rule("store.address")
@pytest.mark.parametrize(
    "where",
    [
        *(":memory:", "remit.db", "./host:5432/db", "../a@b/c.db", "/srv/a:b@c/team.db", "~/team.db", "me@home.db"),
        *("C:\\data\\team.db", "C:/data/team.db", "notes:2026.db", "folder/team.db", "post.db", "a=b.db", "12:30.db"),
    ],
)
def test_a_name_of_a_file_is_one(where: str):
    assert not is_server(where)
    assert where.startswith("./") or not is_server(Path(where))  # a Path forgets that it was written with ./


@pytest.mark.rule("store.address")
@pytest.mark.parametrize(
    ("where", "hint"),
    [
        (f"mysql://ann:{SECRET}@host/db", "mysql:// is no kind of store"),
        (f"redis://:{SECRET}@host", "redis:// is no kind of store"),
        (f"https://ann:{SECRET}@host/db", "https:// is no kind of store"),
        (f"postgresql+psycopg://ann:{SECRET}@host/db", "did you mean postgresql://"),
        (f"postgress://ann:{SECRET}@host/db", "did you mean postgresql://"),
        (f"postgersql://ann:{SECRET}@host/db", "did you mean postgresql://"),
        (f"postgres:ann:{SECRET}@host/db", "did you mean postgresql://"),
        (f"postgresql:/ann:{SECRET}@host/db", "did you mean postgresql://"),
        (f"postgresql:ann:{SECRET}", "did you mean postgresql://"),
        (f"pg://ann:{SECRET}@host/db", "did you mean postgresql://"),
        (f"psql:ann:{SECRET}@host", "did you mean postgresql://"),
        (f"ann:{SECRET}@host:5432/db", "did you mean postgresql://"),
        (f"ann:{SECRET}/x@host", "did you mean postgresql://"),
        (f"://ann:{SECRET}@host/db", "did you mean postgresql://"),
        (f"//ann:{SECRET}@host/db", "did you mean postgresql://"),
        (f"host:5432/{SECRET}", "did you mean postgresql://"),
        (f"[::1]:5432/{SECRET}", "did you mean postgresql://"),
        (f"db.example:5432/{SECRET}", "did you mean postgresql://"),
        (f"ann@host/{SECRET}", "did you mean postgresql://"),
        (f"host/db?user=ann&password={SECRET}", "did you mean postgresql://"),
        (f"db?password={SECRET}", "did you mean postgresql://"),
        ("sqlite:///team.db", "by its path alone"),
        ("file:team.db?mode=ro", "by its path alone"),
    ],
)
def test_what_looks_like_an_address_is_no_file_and_is_not_repeated(where: str, hint: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in (where, Path(where)):
        with pytest.raises(BadInput, match="a store is a file") as caught:
            remit.Runtime(given)
        assert SECRET not in str(caught.value)
    with pytest.raises(BadInput) as caught:
        is_server(where)
    assert hint in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rule("store.address")
def test_what_is_no_address_at_all_is_not_repeated():
    with pytest.raises(BadInput, match="not a value of type bytes") as caught:
        remit.Runtime(f"postgresql://ann:{SECRET}@h".encode())  # pyright: ignore[reportArgumentType]
    assert SECRET not in str(caught.value)


@pytest.mark.rule("store.address")
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (f"postgresql://ann:{SECRET}@h/db", "postgresql://ann:***@h/db"),
        (f"postgresql://ann:{SECRET}%40x@h/db", "postgresql://ann:***@h/db"),
        (f"postgresql://ann%3A{SECRET}@h/db", "postgresql://ann:***@h/db"),
        (f"postgresql://ann:x@{SECRET}@h/db", "postgresql://ann:***@h/db"),
        (f"postgresql://ann@h/db?password={SECRET}", "postgresql://ann:***@h/db"),
        (f"postgresql://h/db?user=ann&pass%77ord={SECRET}", "postgresql://ann:***@h/db"),
        (f"host=h user=ann password='{SECRET}' dbname=db", "postgresql://ann:***@h/db"),
        (f"host=h user=ann dbname='x://ann:{SECRET}@h'", "postgresql://ann@h/x:***@h"),
    ],
)
def test_an_address_is_shown_without_anything_secret(given: str, shown: str):
    address = Address(given)
    assert address.where == shown


@pytest.mark.rule("store.address")
@pytest.mark.parametrize(
    "given", [f"ann:{SECRET}@h", f"ann:x@{SECRET}@h", f"ann%3A{SECRET}@h", f"h/?sslpassword={SECRET}"]
)
def test_what_is_secret_is_taken_out_of_the_words_of_libraries(given: str):
    words = Address(f"postgresql://{given}").masked(f"could not translate host name {SECRET}@h, x@{SECRET}@h")
    assert SECRET not in words


@pytest.mark.rule("store.address")
def test_the_password_of_the_environment_is_not_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert SECRET not in Address("postgresql://ann@h/db").masked(f"the server says {SECRET}")


@pytest.mark.rule("store.address")
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"no 'postgresql://ann:{SECRET}@h/db' here", "no 'postgresql://ann:***@h/db' here"),
        (f"x://:{SECRET}@h", "x://:***@h"),
        (f"--store 'host=h password={SECRET} port=1'", "--store 'host=h password=*** port=1'"),
        (f"password={SECRET}", "password=***"),
        (f"h?sslpassword={SECRET}&password='{SECRET}'", "h?sslpassword=***&password=***"),
        ("say password=... or http://host:80/path", "say password=*** or http://host:80/path"),
        (f"postgresql://ann:{SECRET}/x@h/db", "postgresql://ann:***@h/db"),
        (f"postgresql://ann:x {SECRET}@h/db", "postgresql://ann:***@h/db"),
        (f"postgresql://ann:{SECRET} @h/db", "postgresql://ann:***@h/db"),
        (f"postgresql://ann:x@ {SECRET}@h/db", "postgresql://ann:***@h/db"),
        (f"postgresql://ann:x://{SECRET}@h/db", "postgresql://ann:***@h/db"),
        (f"postgresql://ann%3A{SECRET}@h/db", "postgresql://ann:***@h/db"),
        (f"store=ann:{SECRET}@h is no store", "store=ann:***@h is no store"),
        (f"'ann:x/{SECRET}@h/db'", "'ann:***@h/db'"),
        (f"PGPASSWORD={SECRET} psql", "PGPASSWORD=*** psql"),
        (f"a://b:{SECRET}@h\nc://d:{SECRET}@h e://f:{SECRET}@h", "a://b:***@h\nc://d:***@h e://f:***@h"),
        ("team.py:8: write @rt.agent, not ann@host", "team.py:8: write @rt.agent, not ann@host"),
        ("mail ann@host:25, or http://ann@host:80/x", "mail ann@host:25, or http://ann@host:80/x"),
    ],
)
def test_text_that_quotes_an_address_loses_its_password(text: str, clean: str):
    assert redacted(text) == clean


@pytest.mark.rule("store.address")
@pytest.mark.parametrize(
    "words",
    [
        ("runs", "--store", f"mysql://ann:{SECRET}@127.0.0.1/db"),
        ("runs", "--store", f"postgresql://ann:{SECRET}@127.0.0.1:1/db"),
        ("doctor", "--json", "--store", f"postgresql://ann@127.0.0.1:1/db?password={SECRET}"),
        ("db", "migrate", "--store", f"host=127.0.0.1 port=1 user=ann password={SECRET}"),
        ("runs", "--stor", f"postgresql://ann:{SECRET}@127.0.0.1:1/db"),
        ("runs", f"postgresql://ann:{SECRET}@127.0.0.1:1/db"),
        ("run", f"postgresql://ann:{SECRET}@127.0.0.1:1/db", "agent", "task"),
        ("show", f"postgresql://ann:{SECRET}@127.0.0.1:1/db", "--store", "no.db"),
    ],
)
def test_no_command_repeats_a_password(words: tuple[str, ...], tmp_path: Path):
    done = command(tmp_path, *words)
    assert done.returncode in (2, 4, 5)
    assert done.stdout if "--json" in words else done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []

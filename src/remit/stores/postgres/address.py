"""The way to a PostgreSQL server: its address, connections, timeouts, and the meaning of its errors."""

import hashlib
import os
import time
from collections.abc import Generator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper

from remit.core.checks import meant
from remit.errors import BadInput, NotAStore, StoreBusy, StoreError
from remit.stores.addresses import redacted
from remit.stores.queries import queries

T = TypeVar("T")

_PIPELINE: Final = "pipeline mode"


class PatientConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is given up when the server has not answered for `patience` seconds; 0 waits forever.

    A network that drops all packets looks like a slow server. The caller gets an error, and the next try opens a new
    connection.
    """

    patience: float = 0.0

    def wait(self, gen: Generator[Any, Any, T], *how: Any, **named: Any) -> T:
        if not self.patience:
            return super().wait(gen, *how, **named)
        try:
            return super().wait(_limited(gen, self.patience), *how, **named)
        except TimeoutError:
            self.close()
            sentence = f"it has not answered for {self.patience:g} s, so the connection was given up"
            raise psycopg.OperationalError(sentence) from None


def _limited(gen: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    """Yield whatever a psycopg operation waits for. Raise `TimeoutError` if nothing has arrived for that many seconds;
    psycopg resumes this generator several times a second even if nothing has arrived."""
    try:
        wanted = next(gen)
        until = time.monotonic() + seconds
        while True:
            ready = yield wanted
            now = time.monotonic()
            if ready:
                until = now + seconds
            elif now >= until:
                raise TimeoutError
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


def broke(error: psycopg.Error) -> bool:
    """Whether the error only says that the pipeline could not be closed after its connection broke."""
    return _PIPELINE in str(error)


def reason(error: psycopg.Error) -> psycopg.Error:
    """Return the error that broke the pipeline."""
    before = error
    while broke(before) and isinstance(before.__context__, psycopg.Error):
        before = before.__context__
    return psycopg.OperationalError("the connection broke") if broke(before) else before


Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

CONFINED: Final = "remit.workspaces"  # the setting that names the workspaces of a transaction, for row-level security
_SECRET: Final = 3  # characters; a shorter secret would match ordinary words

# Only our own schema is searched; temporary tables come last, so that they cannot shadow ours.
_PATH: Final = "remit, pg_temp"
_DEFAULTS: Final = {
    "connect_timeout": "5",
    "application_name": "remit",
    "client_encoding": "utf8",
    # Without these, a vanished machine would be waited for for hours.
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
_MEANING: Final = {
    "25006": "the database is read-only, perhaps a standby; remit needs to write to it",
    "42501": "this user may not do that; let it own the schema `remit`, or create one in the database",
    "42P01": "a table is missing; the schema `remit` is not as remit made it",
    "53100": "the disk of the server is full; make room and try again",
    "53300": "the server has no connection left; raise max_connections, or stop something",
    "55P03": "another process has been writing for too long; try again, or stop it",
    "57014": "the server stopped a query that took too long",
    "XX001": "the database is damaged; restore it from a backup",
    "XX002": "an index is damaged; REINDEX it",
}
# Retryable errors, by the prefix of their code: connections, deadlocks, disk space, locks, server shutdown.
_PASSING: Final = ("08", "40001", "40P01", "53", "55P03", "57014", "57P")
_NOT_READY: Final = "the server is not ready"
# The first entry applies whose parts all occur in the message.
_REFUSALS: Final = (
    (
        (("password authentication failed",), ("no password supplied",), ("empty password",)),
        "the server refuses the user or password",
    ),
    ((("database ", " does not exist"),), "there is no such database on the server; make it with createdb"),
    ((("role ", " does not exist"),), "there is no such user on the server; make it with createuser"),
    ((("no pg_hba.conf entry",),), "the server does not let this user in from here (pg_hba.conf)"),
    (
        (("server does not support SSL",), ("SSL error",), ("certificate",)),
        "the server and the address do not agree about SSL",
    ),
    ((("starting up",), ("shutting down",), ("recovery mode",)), _NOT_READY),
)

STATEMENTS: Final[Mapping[str, bytes]] = {  # bytes, which psycopg uses unchanged
    name: query.sql.encode()
    for folder in ("sql", "places", "postgres")  # PostgreSQL's own statements override the shared ones
    for name, query in queries("%s", folder).items()
}


@lru_cache(maxsize=4096)
def digest(workspace: str) -> str:
    """Return a short plain name of a workspace; the same as `job_queue` in the database."""
    return hashlib.sha256(workspace.encode()).hexdigest()[:32]


def lock_key(workspace: str) -> int:
    return int.from_bytes(bytes.fromhex(digest(workspace)[:16]), signed=True)


_ESCAPES: Final = "; in a user or password, write % as %25, @ as %40, : as %3A, / as %2F, ? as %3F and # as %23"


def _misspelt_option(said: str) -> str:
    """Return "; did you mean ...?" if the message `said` of libpq is about an unknown option whose name is close to one
    of libpq's options; otherwise "". The unknown name is never repeated, because it may be a part of a password."""
    name = said.strip().removeprefix('invalid URI query parameter: "').removesuffix('"')
    return meant(name, (one.keyword.decode() for one in psycopg.pq.Conninfo.get_defaults()))


class Address:
    """The address of a database. `where` is the text for people, without the password."""

    def __init__(self, conninfo: str) -> None:
        try:
            parts = {name: str(value) for name, value in conninfo_to_dict(conninfo).items() if value is not None}
        except psycopg.Error as error:  # its text may contain the password
            raise BadInput(
                "that is no address of a PostgreSQL database; one is, for example, postgresql://user@host/database"
                f"{_misspelt_option(str(error)) or _ESCAPES}"
            ) from None
        self.where = _printable_address(parts)
        self._parts = parts
        self._secrets = _secrets(parts)

    def settings(self) -> dict[str, Any]:
        """Return the settings for libpq. None of them is a session setting, because poolers do not pass those on."""
        return {**_DEFAULTS, **self._parts, "autocommit": True}

    def connect(self, patience: float = 0.0, **session: str) -> PatientConnection:
        """Open a connection with these session settings, such as lock_timeout. If the server then does not answer for
        `patience` seconds, the connection is closed; 0 waits forever. Raise psycopg's errors."""
        connection = PatientConnection.connect(**self.settings())
        connection.patience = patience
        try:
            prepare(connection, **session)
        except BaseException:
            connection.close()
            raise
        return connection

    def masked(self, text: str) -> str:
        """Return the text of a server or library without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def translated(self, error: psycopg.Error) -> StoreError:
        """Return the error of remit for an error of psycopg."""
        text = self.masked(str(error).strip())
        if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
            return self._unreachable(text)
        meaning = _MEANING.get(error.sqlstate or "")
        kind: type[StoreError] = {"55P03": StoreBusy, "42P01": NotAStore}.get(error.sqlstate or "", StoreError)
        if meaning is None:
            meaning = f"the database failed ({type(error).__name__}): {text.splitlines()[0] if text else 'no reason'}"
        return _passing(kind(f"{self.where}: {meaning}"), passes=(error.sqlstate or "").startswith(_PASSING))

    def _unreachable(self, text: str) -> StoreError:
        for sentences, meaning in _REFUSALS:
            if any(all(part in text for part in parts) for parts in sentences):
                kind = NotAStore if sentences[0][0] == "database " else StoreError
                return _passing(kind(f"{self.where}: {meaning}"), passes=meaning == _NOT_READY)
        told = StoreError(f"{self.where}: no PostgreSQL server answers there ({_last_line(text)})")
        return _passing(told, passes=True)


def _passing(error: StoreError, *, passes: bool) -> StoreError:
    """Return the error, marked with whether a retry may help."""
    error.retryable = passes
    return error


def prepare(connection: Connection, **session: str) -> None:
    """Plan every statement once, and set the session settings. All integers have one type, because each size would be
    planned separately."""
    connection.prepare_threshold = 0
    connection.prepared_max = None
    connection.adapters.register_dumper(int, Int8Dumper)
    wanted = {"search_path": _PATH, **session}
    connection.execute(STATEMENTS["session"], (list(wanted), list(wanted.values())), prepare=False)


def is_connection_lost(error: psycopg.Error, connection: Connection) -> bool:
    """Whether the connection failed, not the statement."""
    return connection.closed or (error.sqlstate or "").startswith(("08", "57P"))


def _secrets(parts: Mapping[str, str]) -> list[str]:
    """Return the secrets of an address, the longest first. An @ or : that was not written as %40 or %3A puts a part of
    the password into the host or the user."""
    found = {parts.get("password", ""), parts.get("sslpassword", ""), os.environ.get("PGPASSWORD", "")}
    found |= {parts.get("host", "").rpartition("@")[0], parts.get("user", "").partition(":")[2]}
    return sorted((secret for secret in found if len(secret) >= _SECRET), key=len, reverse=True)


def _printable_address(parts: Mapping[str, str]) -> str:
    user, colon, _ = parts.get("user", "").partition(":")
    password = ":***" if "password" in parts or colon else ""
    host, port = parts.get("host", parts.get("hostaddr", "")).rpartition("@")[2], parts.get("port", "")
    folder = f"?host={host}" if host.startswith("/") else ""
    place = f"{'' if folder else host}{port and f':{port}'}"
    return redacted(f"postgresql://{user}{password}{user and '@'}{place}/{parts.get('dbname', '')}{folder}")


def _last_line(text: str) -> str:
    """Return the last line of an error of libpq, which has one line for each address that it tried. Skip the lines that
    begin with a tab: they only ask "Is the server running ...?"."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("\t")]
    return lines[-1].removeprefix("connection failed: ") if lines else "it gives no reason"

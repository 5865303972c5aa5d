"""A store and its engine, opened on first use.

The engine is imported when it is first needed: a command that only reads a store does not pay for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from weakref import WeakSet

from remit import watching
from remit.core import checks
from remit.core.checks import of_type, refuse_strange
from remit.core.events import SealKey
from remit.core.secret import Redaction
from remit.core.values import NAME_LIMIT, RESERVED, line, shown, workspace_name
from remit.engine.settings import KEEP_EVENTS, EngineSettings, Policy, Serving, System
from remit.errors import BadInput, Refused, StoreError
from remit.ports import Calendar, Clock, Database, Prices, Sink, Store, Vault
from remit.ports.turn import current_turn
from remit.stores import forks
from remit.stores.addresses import is_server
from remit.stores.opening import database_at
from remit.stores.threads import OneLoop

if TYPE_CHECKING:
    from remit.engine.assembly import Engine
    from remit.engine.directory import Directory
    from remit.engine.ground import Ears, Ground
    from remit.engine.plans import Schemas
    from remit.ports.models import TextChunk
    from remit.ports.store import WordsCarrier, WordsLine
    from remit.stores.sqlite.database import SqliteDatabase

DEFAULT_WORKSPACE: Final = "default"
KEY_VARIABLE: Final = "REMIT_JOURNAL_KEY"
CLOCK_VARIABLE: Final = "REMIT_CHECK_CLOCK"

_log = logging.getLogger("remit")

StoreGiven: TypeAlias = str | Path | Database


class LogRedaction(logging.Filter):
    """The filter of remit's own log lines and tracebacks: it removes the secrets of every open workspace, and escapes
    line breaks and control characters in foreign text.

    There is one for the process, and it holds workspaces weakly. A filter for each of them would stay on the logger of
    a process that opens many and closes none, and every line would pass through all of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._openings: WeakSet[Opening] = WeakSet()

    def add(self, opening: Opening) -> None:
        """Redact the secrets of this workspace; more of them may follow, when a key is decrypted."""
        with self._lock:
            self._openings.add(opening)

    def discard(self, opening: Opening) -> None:
        with self._lock:
            self._openings.discard(opening)

    def filter(self, record: logging.LogRecord) -> bool:
        from remit.report.printable import block, on_one_line

        redactions = self._redactions()
        said = record.getMessage()
        told = on_one_line(_redacted(said, redactions))
        if told != said:
            record.msg, record.args = told, ()
        if record.exc_info:
            record.exc_text = block(_redacted(logging.Formatter().formatException(record.exc_info), redactions))
            record.exc_info = None if redactions else record.exc_info
        return True

    def _redactions(self) -> list[Redaction]:
        with self._lock:
            return [one.settings.redaction for one in self._openings if one.settings.redaction]


def _redacted(text: str, redactions: list[Redaction]) -> str:
    for redaction in redactions:
        text = redaction.text(text)
    return text


LOG_REDACTION: Final = LogRedaction()


class Opening:
    """The place of a workspace, and its engine once it is needed: importing a module that creates a runtime creates no
    file."""

    def __init__(
        self,
        store: StoreGiven,
        workspace: str,
        settings: EngineSettings,
        *,
        create: bool = True,
        is_own: bool = False,
    ) -> None:
        if not isinstance(store, str | Path) and not hasattr(store, "store"):
            kind = type(store).__name__  # do not show the value: it may contain a password
            raise BadInput(f"a store is a path, a postgresql:// address, or a database, not a value of type {kind}")
        if isinstance(store, str | Path):
            is_server(store)  # checked here, not at the first use
        self.workspace = line(workspace, "a workspace", NAME_LIMIT) if is_own else workspace_name(workspace)
        self.settings = settings
        self.store = store
        self._create = create
        self._is_own = is_own
        self._database: Database | None = None
        self._records: Store | None = None
        self._engine: Engine | None = None
        self._line: WordsLine | None = None  # of models, to other processes
        self._is_announced = False
        self._stops: list[Callable[[], None]] = []  # end the subscriptions of the watchers
        self._one = OneLoop()
        self._process = os.getpid()

    @cached_property
    def directory(self) -> Directory:
        """The agents of this process. Most commands have none."""
        from remit.engine.directory import Directory

        return Directory()

    @property
    def database(self) -> Database:
        self._come_home()
        if self._database is None:
            store = self.store
            if isinstance(store, str | Path):
                keep_events = self.settings.serving.keep_events
                self._database = database_at(store, create=self._create, key=self._key(), keep_events=keep_events)
            else:
                self._database = self._shared(store)
        return self._database

    def _shared(self, database: Database) -> Database:
        """Return the database that the caller opened, and will close."""
        if self.settings.system.journal_key and database.key is None:
            raise BadInput("this database was opened without a journal key; call open_database(..., journal_key=...)")
        return database

    @property
    def engine(self) -> Engine:
        self._come_home()
        if is_running():
            self._one.enter()
        if self._engine is None:
            from remit.engine.assembly import assembled

            self._engine = assembled(self.database, self.workspace, self.directory, self._settings_with_environment())
            self._announce(self._engine.services.ground.store)
            self._connect_words(self._engine.services.ground.ears)
        return self._engine

    def _connect_words(self, ears: Ears) -> None:
        """Stream the text of this workspace's models to other processes, if the database can carry it."""
        database: object = self._database
        if hasattr(database, "words"):
            self._line = cast("WordsCarrier", database).words(self.workspace)
            if self._line is not None:
                self._stops.append(self._line.carry(ears))

    def hear(self, hear: Callable[[TextChunk], None]) -> Callable[[], None]:
        """Call `hear` with the streamed text of this workspace's models: in this process, and in others if the database
        can carry it. Return a function that stops it."""
        ears = self.ground.ears
        ears.add(hear)
        stop = None if self._line is None else self._line.hear(hear)

        def unheard() -> None:
            nonlocal stop
            ears.remove(hear)
            if stop is not None:
                stop()
                stop = None

        return unheard

    @property
    def records(self) -> Store:
        """The store of this workspace, to read it: with its engine if there is one, else without."""
        self._come_home()
        if self._engine is not None:
            return self.engine.services.ground.store
        if is_running():
            self._one.enter()
        if self._records is None:
            self._records = self.database.store(self.workspace)
            self._announce(self._records)
        return self._records

    def _announce(self, store: Store) -> None:
        """Install the redaction of the log and notify the watchers of this process, once: when the first reader or the
        engine opens."""
        if self._is_announced:
            return
        self._is_announced = True
        LOG_REDACTION.add(self)
        _log.addFilter(LOG_REDACTION)

        def subscribe(sink: Sink) -> Callable[[], None]:
            self._stops.append(stop := store.subscribe(sink))
            return stop

        watching.tell(self, subscribe)

    @property
    def clock(self) -> Clock:
        return self.settings.system.clock

    @property
    def ground(self) -> Ground:
        """The store of this workspace and its clock; asking for it opens the database."""
        return self.engine.services.ground

    async def wait(self) -> Engine:
        """Return the engine as soon as the store can be opened; wait for a server that is starting."""
        from remit.engine.presence.insisting import until_there

        self._come_home()
        return await until_there(self.settings.system.clock, self._open_engine)

    async def _open_engine(self) -> Engine:
        store = self.store
        if self._database is None and isinstance(store, str | Path) and is_server(store):
            database = await _opened_beside(partial(database_at, store, create=self._create, key=self._key()))
            if self._database is None:
                self._database = database
            else:
                database.close()  # a concurrent caller has opened it meanwhile
        return self.engine

    @property
    def is_open(self) -> bool:
        self._come_home()
        return self._database is not None

    @property
    def has_engine(self) -> bool:
        return self._engine is not None

    def must_be_outside(self, verb: str, instead: str) -> None:
        """Raise `Refused` if a person's verb is called by code that runs in a turn: its request belongs to that turn,
        and to its limits."""
        turn = current_turn()
        if turn is None or self._engine is None or self._engine.services.conductor.alive.get(turn.remit.id) is None:
            return
        sentence = f"{verb} was called by '{turn.agent}' while it has a turn; inside a turn say {instead}"
        raise Refused(sentence, rule="inside")

    def _key(self) -> SealKey | None:
        return _seal_key(self.settings.system.journal_key)

    def _settings_with_environment(self) -> EngineSettings:
        """Return the settings, with those from the environment."""
        settings = self.settings
        if os.environ.get(CLOCK_VARIABLE, "") != "no":
            return settings
        return settings._replace(system=replace(settings.system, check_clock=False))

    def _come_home(self) -> None:
        """In a forked process, drop everything that belongs to the parent, without closing it, so that a path or
        address is opened again. Raise `StoreError` if the store is in the memory of the parent."""
        if self._process == os.getpid():
            return
        database = self._database
        if database is not None and not database.lasting and isinstance(self.store, str | Path):
            raise StoreError(
                "this runtime keeps everything in the memory of the process that this one was forked from; "
                "keep it in a file to share it, or make a new runtime here"
            )
        if isinstance(self.store, str | Path) and hasattr(database, "path"):  # it may have changed its folder since
            self.store = cast("SqliteDatabase", database).path
        forks.keep((self._engine, database))
        self._engine = self._line = self._records = self._database = None
        self._is_announced, self._stops = False, []
        self._one = OneLoop()
        self._process = os.getpid()

    def elsewhere(self, store: StoreGiven | None, serving: Serving | None) -> Opening:
        """Return the same agents and rules on another store, or with other serving settings."""
        settings = self.settings
        if serving is not None:
            settings = settings._replace(serving=of_type(serving, Serving, "serving takes Serving(...)"))
        place = self.store if store is None else store
        there = Opening(place, self.workspace, settings, is_own=self._is_own)
        there.directory = self.directory
        return there

    def close(self) -> None:
        """Close the store; it is reopened on the next use. A database that the caller opened stays open: other
        workspaces may use it."""
        if self._process != os.getpid() and self._database is not None and not self._database.lasting:
            return  # it belongs to the parent process
        self._come_home()
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        if self._database is not None:
            LOG_REDACTION.discard(self)
            if isinstance(self.store, str | Path):
                self._database.close()
            while self._stops:
                self._stops.pop()()
            self._line = self._records = self._database = None
            self._is_announced = False


def open_database(
    store: str | Path | Sequence[str | Path],
    *,
    create: bool = True,
    journal_key: str = "",
    keep_events: int | None = KEEP_EVENTS,
) -> Database:
    """Open a file, `:memory:` or a PostgreSQL server once, for any number of workspaces and runtimes:
    `Workspace(database, "one")`, `Runtime(database, workspace="two")`. They cost no thread, file or connection each,
    and closing one leaves the database open. `database.close()` closes it, as does `with open_database(...)`.

    A list of addresses opens several databases as one: each workspace lives in one of them, and the first database of
    the list records which.

    Without `create`, no new file is created and nothing is migrated. With `journal_key`, or `REMIT_JOURNAL_KEY`, its
    journals are signed. In memory, each workspace keeps its newest `keep_events` events.
    """
    given: object = [store] if isinstance(store, str | Path) else store
    listed = cast("Sequence[object]", given) if isinstance(given, list | tuple) else ()
    wrong = next((one for one in listed if not isinstance(one, str | Path)), None)
    if not listed or wrong is not None:  # do not show the value: it may contain a password
        kind = type(given if wrong is None else wrong).__name__
        raise BadInput(f"open_database takes a path or a postgresql:// address, or a list, not a value of type {kind}")
    checks.yes_or_no(create, "create")
    checks.whole(keep_events, "keep_events", least=1)
    address = "\n".join(map(str, listed))
    return database_at(address, create=create, key=_seal_key(journal_key), keep_events=keep_events)


def own_opening(store: StoreGiven, name: str, serving: Serving | None = None, system: System | None = None) -> Opening:
    """Return the place of one of remit's own workspaces, whose name begins with `remit.`: give it to `Workspace` or
    `Runtime`."""
    assert name.startswith(RESERVED)
    return Opening(store, name, settings(None, serving, system), is_own=True)


def _seal_key(given: str) -> SealKey | None:
    secret = given or os.environ.get(KEY_VARIABLE, "")
    return SealKey(secret) if secret else None


async def _opened_beside(open_: Callable[[], Database]) -> Database:
    """Open a database in a thread: a server that does not answer must not block other work, such as stopping. If the
    caller is cancelled meanwhile, nothing stays open."""
    from anyio import to_thread

    given_up = Event()

    def opened() -> Database:
        database = open_()
        if given_up.is_set():
            database.close()
        return database

    try:
        return await to_thread.run_sync(opened, abandon_on_cancel=True)
    except asyncio.CancelledError:
        given_up.set()
        raise


def is_running() -> bool:
    """Whether an event loop is running here; a script may use a runtime without one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def refuse_unknown(what: str, unknown: Mapping[str, object], takes: tuple[str, ...]) -> None:
    """Raise `BadInput` for an unknown keyword, and say where it belongs if it is a setting."""
    for name in sorted(unknown):
        for section, values in (("policy", Policy), ("serving", Serving), ("system", System)):
            if name in {field.name for field in fields(values)}:
                where = f"{section}={values.__name__}({name}=...), from remit.settings"
                raise BadInput(f"{what} takes no {shown(name)} itself; it is a setting: {where}")
    refuse_strange(what, unknown, takes)


def settings(
    policy: Policy | None, serving: Serving | None, system: System | None, redaction: Redaction | None = None
) -> EngineSettings:
    """Return the settings, with defaults for what was left out."""
    given = of_type(System() if system is None else system, System, "system takes System(...)")
    return EngineSettings(
        of_type(Policy() if policy is None else policy, Policy, "policy takes Policy(...)"),
        of_type(Serving() if serving is None else serving, Serving, "serving takes Serving(...)"),
        given,
        _schemas,
        Redaction() if redaction is None else redaction,
        _vault if given.vault is None else partial(_the, given.vault),
        _prices,
        _calendar,
    )


@cache
def _schemas() -> Schemas:
    """Return the adapter for JSON Schema, imported when a plan first needs it."""
    try:
        return cast("Schemas", import_module("remit.adapters.schema"))
    except ImportError as error:
        raise BadInput("a step with a schema needs the jsonschema package; install remit[schema]") from error


@cache
def _calendar() -> Calendar:
    """Return the adapter for cron expressions, imported when a schedule first needs it."""
    try:
        return cast("Calendar", import_module("remit.adapters.cron"))
    except ImportError as error:
        raise BadInput(f"schedules need the cronsim package: pip install 'remit[schedule]' ({error})") from error


def _vault() -> Vault:
    """Return the vault of the environment, created each time: a file of master keys may have changed."""
    return import_module("remit.adapters.vault").from_environment()


def _prices() -> Prices | None:
    """Return the installed price list, or None."""
    try:
        return import_module("remit.adapters.prices").KnownPrices()
    except BadInput:
        return None


def _the(vault: Vault) -> Vault:
    return vault

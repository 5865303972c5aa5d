"""Databases around a database: what is asked of it is counted, or every decision is made twice."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

from remit.ports import NOTHING, Database, Decide, Decided, Decision, Dispatcher, Pulse, Store, View, Wants
from remit.stores.opening import database_at

T = TypeVar("T")

Around = Callable[[Decide[Any]], Decide[Any]]
Looking = Callable[[View], View]


class WrappedStore:
    """A store whose decisions and looks go through something else first."""

    def __init__(self, store: Store, around: Around, looking: Looking) -> None:
        self._store = store
        self._around = around
        self._looking = looking
        self.workspace = store.workspace
        self.subscribe = store.subscribe
        self.listen = store.listen

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        return await self._store.tx(op, self._around(decide), wants)

    async def read(self, look: Callable[[View], T]) -> T:
        return await self._store.read(lambda view: look(self._looking(view)))

    async def browse(self, look: Callable[[View], T]) -> T:
        return await self._store.browse(lambda view: look(self._looking(view)))


class Wrapped:
    """A database whose stores are wrapped."""

    def __init__(self, store: str | Path | Database) -> None:
        self._database = database_at(store) if isinstance(store, str | Path) else store
        self.lasting = self._database.lasting
        self.server_time = self._database.server_time
        self.workspaces = self._database.workspaces
        self.contents = self._database.contents
        self.key = self._database.key
        self.faulty = self._database.faulty
        self.remarks = self._database.remarks
        self.advice = self._database.advice
        self.close = self._database.close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def store(self, workspace: str) -> Any:
        return WrappedStore(self._database.store(workspace), self.around, self.looking)

    def dispatcher(self, workspace: str) -> Dispatcher | None:
        return self._database.dispatcher(workspace)

    def pulse(self, workspace: str) -> Pulse | None:
        return self._database.pulse(workspace)

    def around(self, decide: Decide[T]) -> Decide[T]:
        return decide

    def looking(self, view: View) -> View:
        return view


class Twice(Wrapped):
    """Each decision is made twice and the first thrown away, as by a store that has to start again. `decisions` counts
    them."""

    decisions = 0

    def around(self, decide: Decide[T]) -> Decide[T]:
        def decided(view: View) -> Decision[T]:
            self.decisions += 1
            try:
                decide(view)
            except Exception:  # what it raises it raises again
                return decide(view)
            return decide(view)

        return decided


class _CountedView:
    def __init__(self, view: View, asked: "Counter[str]") -> None:
        self._view = view
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        self._asked[name] += 1
        return getattr(self._view, name)


class Counted(Wrapped):
    """`asked` counts what is asked of the views, by the names of the questions."""

    def __init__(self, store: str | Path | Database) -> None:
        super().__init__(store)
        self.asked: Counter[str] = Counter()

    def around(self, decide: Decide[T]) -> Decide[T]:
        return lambda view: decide(self.looking(view))

    def looking(self, view: View) -> Any:
        return _CountedView(view, self.asked)

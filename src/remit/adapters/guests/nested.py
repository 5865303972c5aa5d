"""Runs that start inside a turn of a model or guest: a tool that runs another agent, or a graph that asks a model.

A guest marks its turn with `Governing`. Each framework's adapter has a hook in its framework that reads the mark: a run
that starts under it is governed as well, without any change to the tool. Outside of such a turn a hook does nothing.
"""

import asyncio
import logging
import sys
from collections.abc import Coroutine, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, Token
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias, TypeVar

import anyio

from remit.errors import BadInput, Refused
from remit.ports.turn import TurnLike, current_turn

T = TypeVar("T")
Ungoverned: TypeAlias = Literal["refuse", "allow"]

# A module of a framework, and the module with our hook in it.
_HOOKS: Final = (
    ("pydantic_ai.agent", "remit.adapters.pydantic_ai.nested"),
    ("agents.run", "remit.adapters.openai_agents.nested"),
    ("langchain_core.language_models.chat_models", "remit.adapters.langgraph.nested"),
)
# Modules whose import may complete a framework; from then on its hook can be installed.
_LATER: Final = frozenset(
    (
        "pydantic_ai",
        "agents",
        "langchain_core.language_models.chat_models",
        "langchain.agents",
        "langgraph.graph",
        "langgraph.prebuilt",
    )
)
_log: Final = logging.getLogger("remit")
_hooked: Final[set[str]] = set()


class Governing:
    """Marks a turn whose nested runs are governed, while its body runs.

    `own` is the agent that the guest itself runs; `governed` is the agent that runs in its place, or None if it runs
    itself. `tools` are the tools of a graph that are on its card. With `allow`, nested runs are left alone.
    """

    __slots__ = ("_bridge", "_runs", "_token", "allow", "governed", "own", "tools", "turn")

    def __init__(
        self,
        turn: TurnLike,
        own: object,
        *,
        governed: object = None,
        tools: frozenset[str] = frozenset(),
        allow: bool = False,
    ) -> None:
        self.turn = turn
        self.own = own
        self.governed = governed
        self.tools = tools
        self.allow = allow

    async def __aenter__(self) -> None:
        hook_frameworks()
        self._bridge = _Bridge()
        self._token: Token[Governing | None] = _GOVERNING.set(self)
        self._runs = _RUNS.set(())

    async def __aexit__(self, *_: object) -> None:
        _RUNS.reset(self._runs)
        _GOVERNING.reset(self._token)
        await self._bridge.close()

    @property
    def bridge(self) -> "_Bridge":
        """The connection from a thread to the turn's event loop."""
        return self._bridge


_GOVERNING: Final[ContextVar[Governing | None]] = ContextVar("remit.governing", default=None)
_RUNS: Final[ContextVar[tuple[tuple[object, str], ...]]] = ContextVar("remit.runs", default=())


def governing() -> Governing | None:
    """Return the mark of the current turn, or None if that turn governs no nested runs. A turn of a plain function
    governs none."""
    mark = _GOVERNING.get()
    return mark if mark is not None and mark.turn is current_turn() else None


def is_own(mark: Governing, agent: object) -> bool:
    """Whether this is the run that the guest itself starts, not one that its tools start."""
    return (agent is mark.own or agent is mark.governed) and not _RUNS.get()


def in_own_run() -> bool:
    """Whether the calling code is part of the guest's own run, not of a run inside it."""
    mark, runs = governing(), _RUNS.get()
    return mark is not None and len(runs) == 1 and runs[0][0] in (mark.own, mark.governed)


@contextmanager
def run_of(agent: object, name: str) -> Generator[None]:
    """Count a nested run while it lasts. Refuse a run of an agent that is already running further up, or that is deeper
    than the task may go, as a delegation would be."""
    mark = governing()
    if mark is None:
        yield
        return
    if not mark.allow and not is_own(mark, agent):
        _must_be_allowed(mark, agent, name)
    token = _RUNS.set((*_RUNS.get(), (agent, name)))
    try:
        yield
    finally:
        _RUNS.reset(token)


def _must_be_allowed(mark: Governing, agent: object, name: str) -> None:
    runs, remit = _RUNS.get(), mark.turn.remit
    inside = runs[1:] if runs and runs[0][0] in (mark.own, mark.governed) else runs
    names = (*remit.names, *(one for _, one in inside))
    if agent is mark.own or any(agent is one for one, _ in runs):
        raise Refused(
            f"'{name}' is already at work in this task ({' > '.join(names)}); finish the task yourself", rule="loop"
        )
    depth, limit = remit.chain.depth + len(inside), remit.bounds.depth
    if limit is not None and depth >= limit:
        raise Refused(
            f"'{name}' was not run: this delegation is {depth} deep ({' > '.join(names)}) and at most {limit} is "
            "allowed; finish the task yourself with what you have",
            rule="depth",
        )


# -- hooks in the frameworks --------------------------------------------------------------------------------------


def hook_frameworks() -> None:
    """Install our hook in each framework that this process has imported, and watch for imports of the others."""
    for framework, hook in _HOOKS:
        if hook not in _hooked and framework in sys.modules:
            _hook(framework, hook)
    if _WATCH not in sys.meta_path:
        sys.meta_path.insert(0, _WATCH)


def _hook(framework: str, hook: str) -> None:
    _hooked.add(hook)
    try:
        import_module(hook).install()
    except ImportError as error:
        spec = getattr(sys.modules.get(framework.partition(".")[0]), "__spec__", None)
        if getattr(spec, "_initializing", False) or "partially initialized" in str(error):
            _hooked.discard(hook)  # the framework is being imported right now: its next module triggers another try
            return
        _log.warning("runs of %s inside a tool are not governed: %s", framework.partition(".")[0], error)


class _Watch(MetaPathFinder):
    """Hooks a framework when it is first imported, before a tool can use it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _LATER:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                hook_frameworks()

            setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 - typed as a method, which cannot be assigned
        return spec


_WATCH: Final = _Watch()


# -- threads and other loops --------------------------------------------------------------------------------------


class _Bridge:
    """Runs coroutines from threads on the turn's event loop. None outlives the turn."""

    __slots__ = ("_over", "loop", "tasks")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[Any]] = set()
        self._over = False

    def start(self, work: Coroutine[Any, Any, T], told: "Future[T]") -> None:
        """Start the coroutine, on the loop. `told` gets its result; it is cancelled if the turn is over."""
        if self._over:
            work.close()
            told.cancel()
            return
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(lambda done: self._work_done(done, told))
        told.add_done_callback(lambda left: self._cancel_unawaited(left, task))

    def _work_done(self, task: "asyncio.Task[T]", told: "Future[T]") -> None:
        self.tasks.discard(task)
        if told.cancelled():
            return
        if task.cancelled():
            told.cancel()
        elif (error := task.exception()) is not None:
            told.set_exception(error)
        else:
            told.set_result(task.result())

    def _cancel_unawaited(self, told: "Future[Any]", task: "asyncio.Task[Any]") -> None:
        """Cancel work that the other loop no longer waits for."""
        if told.cancelled() and not task.done():
            self.loop.call_soon_threadsafe(task.cancel)

    async def close(self) -> None:
        """Cancel the remaining work, and wait for it."""
        self._over = True
        left = list(self.tasks)
        if not left:
            return
        for task in left:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*left, return_exceptions=True)


def from_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine on the turn's loop, wait for it in this thread, and return its result. Raise `BadInput` outside
    of a turn that governs nested runs, and on the thread of the turn's loop, which would block."""
    mark = _GOVERNING.get()
    if mark is None or _running_loop() is mark.bridge.loop:
        work.close()
        raise BadInput("a governed model or tool is asked with await (ainvoke), or in a node that runs in a thread")
    return _start_in_loop(mark.bridge, work).result()


async def on_loop_of_turn(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine on the turn's loop, and return its result: a tool that is a plain function may run an agent in
    a loop of its own."""
    mark = _GOVERNING.get()
    if mark is None or mark.bridge.loop is asyncio.get_running_loop():
        return await work
    return await asyncio.wrap_future(_start_in_loop(mark.bridge, work))


def _start_in_loop(bridge: _Bridge, work: Coroutine[Any, Any, T]) -> "Future[T]":
    told: Future[T] = Future()
    bridge.loop.call_soon_threadsafe(bridge.start, work, told)
    return told


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

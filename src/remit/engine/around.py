"""Functions of the owner around every turn: `rt.around`. They are put around an agent when it is registered, so a turn
without any costs nothing extra."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from remit.core.checks import callable_
from remit.core.values import shown
from remit.engine.traces import OwnersFunctionFailed
from remit.errors import BadInput, RemitError
from remit.ports.models import HandedOver

if TYPE_CHECKING:
    from remit.engine.directory import AgentFunction, Around

_FORM = "`async def timing(turn, go): ...; return await go()`"


@dataclass(frozen=True, slots=True)
class AroundTurns:
    """A function of the owner around every turn."""

    function: Around

    def __post_init__(self) -> None:
        given: Any = self.function
        callable_(given, f"around takes a function: {_FORM}")
        called = given if inspect.iscoroutinefunction(given) else getattr(given, "__call__", None)  # noqa: B004 - its kind
        if not inspect.iscoroutinefunction(called):
            raise BadInput(f"the function around a turn must be async, not {shown(given)}: {_FORM}")
        try:
            inspect.signature(given).bind(None, None)
        except TypeError:
            raise BadInput(f"the function around a turn takes the turn and `go`, not {shown(given)}: {_FORM}") from None

    @property
    def name(self) -> str:
        """The name of the function, or that of its type."""
        return str(getattr(self.function, "__qualname__", None) or type(self.function).__qualname__)

    def wrap(self, inner: AgentFunction) -> AgentFunction:
        """Return the function that a turn calls: this one, with `inner` as its `go`."""
        return partial(_call, self, inner)


class Going:
    """The `go` argument of a function around a turn. A call runs the next such function, or the agent if there is none.
    `error` is the exception that the call raised, and `trace` is its traceback."""

    __slots__ = ("_inner", "_turn", "error", "has_gone", "trace")

    def __init__(self, inner: AgentFunction, turn: object) -> None:
        self._inner = inner
        self._turn = turn
        self.has_gone = False
        self.error: BaseException | None = None
        self.trace: TracebackType | None = None

    async def __call__(self) -> object:
        """Run the rest of the turn and return its answer; a handoff is returned as a `Command` by every kind of
        agent."""
        if self.has_gone:
            raise BadInput("`go` was called twice in one turn; the agent's `retry=` runs a failed task again")
        self.has_gone = True
        try:
            return await self._inner(self._turn)
        except HandedOver as handed:  # how a model's tool call hands its task over
            return handed.command
        except BaseException as error:
            self.error, self.trace = error, error.__traceback__
            raise


async def _call(around: AroundTurns, inner: AgentFunction, turn: object) -> object:
    """Call one function around a turn and return its answer. If the function raises an error of its own, raise
    `OwnersFunctionFailed` with its name. Errors of the agent and errors of remit, such as `Refused`, are raised
    unchanged."""
    go = Going(inner, turn)
    try:
        answer = await around.function(turn, go)
    except Exception as error:
        if error is go.error:
            raise error.with_traceback(go.trace)  # noqa: B904 - the agent's own: its place is not in this function
        if isinstance(error, RemitError | OwnersFunctionFailed):
            raise
        raise OwnersFunctionFailed(_role(around), error) from error
    finally:
        go.error = go.trace = None  # break the reference cycle with this frame
    if inspect.iscoroutine(answer):
        answer.close()
        no = BadInput("it returned a coroutine instead of an answer; write `return await go()`")
        raise OwnersFunctionFailed(_role(around), no) from no
    return answer


def _role(around: AroundTurns) -> str:
    return f"{around.name}, which is around its turn"

"""Chat models and tools of LangChain that are used inside a turn, in a graph or in a tool: they go through the turn. A
graph that a tool runs is refused where a delegation would be.

The framework's callbacks see a request but cannot answer it from the record. So the methods that every request and tool
call goes through are replaced by methods that check for a turn.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.llms import BaseLLM
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs]

from remit.adapters.guests import Governing, governing, run_of
from remit.adapters.langgraph.model import Seam, at_work, governed, inside, is_inside
from remit.adapters.langgraph.tools import BoxedTool, boxed
from remit.errors import BadInput

T = TypeVar("T", BaseChatModel, BaseTool)

_ASKS: Final = ("generate", "agenerate", "stream", "astream", "stream_events", "astream_events")
_COMPLETES: Final = ("generate", "agenerate", "stream", "astream")
_USES: Final[tuple[tuple[type, str], ...]] = (
    *((BaseTool, name) for name in ("invoke", "ainvoke")),
    *((kind, "ainvoke") for kind in (StructuredTool, Tool)),
)
_REMEMBERED: Final = 64  # copies of models and tools
_copies: Final[dict[int, tuple[object, Any]]] = {}


def install() -> None:
    """Make every model and tool of this framework check whether it is used inside a turn."""
    for name in _ASKS:
        _replace(BaseChatModel, name, _governed_model)
    for name in _COMPLETES:
        _replace(BaseLLM, name, _refused)
    for kind, name in _USES:
        _replace(kind, name, _boxed_tool)
    for name in ("invoke", "ainvoke"):
        setattr(Pregel, name, _counted(getattr(Pregel, name)))


def _replace(kind: type, name: str, instead: Callable[[Governing, Any], Any]) -> None:
    """Replace the method `name` of a class. Inside a turn, the new method calls that of the object that `instead`
    returns. Outside a turn, or if `instead` returns None, it calls the original method."""
    method: Callable[..., Any] = getattr(kind, name)

    @wraps(method)
    def through(self: Any, *args: Any, **named: Any) -> Any:
        mark = governing()
        other = None if mark is None else instead(mark, self)
        return method(self, *args, **named) if other is None else getattr(other, name)(*args, **named)

    setattr(kind, name, through)


def _counted(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return `invoke` or `ainvoke` of a graph, wrapped. If a tool runs the graph inside a turn, the run counts as a
    nested run and may be refused like a delegation. A graph that is a node of another graph belongs to the run of that
    graph and is not counted."""

    def run(self: Any) -> AbstractContextManager[object]:
        if governing() is None or not isinstance(at_work(), BoxedTool):
            return nullcontext()
        return _run_in_tool(self)

    @wraps(method)
    def plain(self: Any, *args: Any, **named: Any) -> Any:
        with run(self):
            return method(self, *args, **named)

    @wraps(method)
    async def awaited(self: Any, *args: Any, **named: Any) -> Any:
        with run(self):
            return await method(self, *args, **named)

    return awaited if iscoroutinefunction(method) else plain


@contextmanager
def _run_in_tool(graph: Any) -> Generator[None]:
    with run_of(graph, str(graph.name)), inside(graph):
        yield


def _governed_model(mark: Governing, model: BaseChatModel) -> BaseChatModel | None:
    # Do not govern the models inside a governed one again.
    if mark.allow or isinstance(model, Seam) or isinstance(at_work(), Seam):
        return None
    return _copy(model, governed)


def _boxed_tool(mark: Governing, tool: BaseTool) -> BaseTool | None:
    if isinstance(tool, BoxedTool) or is_inside(tool) or (mark.allow and tool.name not in mark.tools):
        return None
    return _copy(tool, boxed)


def _refused(mark: Governing, model: BaseLLM) -> None:
    if not mark.allow:
        raise BadInput(
            f"{type(model).__name__} is a completion model, which remit cannot govern; use a chat model, or pass "
            'rt.add(..., ungoverned="allow")'
        )


def _copy(thing: T, make: Callable[[T], T]) -> T:
    """Return the governed copy of an object. Up to 64 copies are remembered and returned again."""
    known = _copies.get(id(thing))
    if known is None:
        if len(_copies) >= _REMEMBERED:
            _copies.clear()
        known = _copies[id(thing)] = (thing, make(thing))
    return known[1]

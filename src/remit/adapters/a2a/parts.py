"""Texts, values and messages of A2A, and the metadata that one remit gives another with a task."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from a2a.types.a2a_pb2 import Message, Part, TaskState
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from remit.core.times import EARLIEST
from remit.core.values import Json

CHAIN: Final = "urn:remit:chain:1"
HANDLE: Final = "a2a.handle"  # the effect that records the second half of a task's handle
ABOVE: Final = "a2a.above"  # the metadata of a run that an agent of another server started: the handles of its tasks
MOST_ABOVE: Final = 8
_HANDLE: Final = re.compile(r"[a-z2-7]{16}\.[0-9a-f]{32}", re.ASCII)
_KEY: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_AMOUNT: Final = 40  # characters
_EXACT: Final = 2**53  # numbers of A2A are floating-point numbers

STATES: Final[dict[int, str]] = {number: name.removeprefix("TASK_STATE_").lower() for name, number in TaskState.items()}


class ChainData(NamedTuple):
    """The data that goes with a task to another server: the handle of the task that it is for, the handles of the tasks
    above that one on other servers, the chain of askers, the deadline in microseconds, the budget, and an idempotency
    key for the request."""

    handle: str = ""
    above: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    deadline: int | None = None
    credits: str = ""
    key: str = ""

    def metadata(self) -> dict[str, Json]:
        """Return the data as metadata of a message."""
        data: dict[str, Json] = {"handle": self.handle, "chain": [*self.chain]}
        if self.above:
            data["above"] = [*self.above]
        if self.deadline is not None:
            data["deadline"] = self.deadline
        if self.credits:
            data["credits"] = self.credits
        if self.key:
            data["key"] = self.key
        return {CHAIN: data}


def chain_in(message: Message) -> ChainData:
    """Return the chain data of a message. It is untrusted: a field that does not have the right form is ignored."""
    metadata = cast("dict[str, Any]", plain_value(MessageToDict(message.metadata)))
    given: Any = metadata.get(CHAIN)
    if not isinstance(given, dict):
        return ChainData()
    data = cast("Mapping[str, object]", given)
    above, deadline, credits_ = data.get("above"), data.get("deadline"), data.get("credits")
    handles = cast("list[object]", above)[:MOST_ABOVE] if isinstance(above, list) else []
    is_time = isinstance(deadline, int) and not isinstance(deadline, bool) and EARLIEST <= deadline < _EXACT
    return ChainData(
        handle=_fitting(_HANDLE, data.get("handle")),
        above=tuple(found for one in handles if (found := _fitting(_HANDLE, one))),
        deadline=cast("int", deadline) if is_time else None,
        credits=credits_ if isinstance(credits_, str) and len(credits_) <= _AMOUNT else "",
        key=_fitting(_KEY, data.get("key")),
    )


def _fitting(form: re.Pattern[str], given: object) -> str:
    return given if isinstance(given, str) and form.fullmatch(given) else ""


# -- texts and values -----------------------------------------------------------------------------------------------


def text_part(text: str) -> Part:
    return Part(text=text, media_type="text/plain")


def data_part(value: Json) -> Part:
    return Part(data=ParseDict(cast("Any", value), Value()), media_type="application/json")


def parts_of(value: Json) -> list[Part]:
    """Return a result as parts: a text as text, everything else as data. A value with a number that A2A cannot hold is
    sent as the text of its JSON."""
    if isinstance(value, str):
        return [text_part(value)]
    return [data_part(value) if _is_exact(value) else Part(text=as_text(value), media_type="application/json")]


def _is_exact(value: Json) -> bool:
    if isinstance(value, list):
        return all(_is_exact(one) for one in value)
    if isinstance(value, dict):
        return all(_is_exact(one) for one in value.values())
    return not isinstance(value, int) or abs(value) <= _EXACT


def texts_in(parts: Iterable[Part]) -> str:
    """Return the texts of these parts, with an empty line between them; "" if there are none."""
    return "\n\n".join(keepable(part.text) for part in parts if part.HasField("text") and part.text.strip())


def data_in(parts: Iterable[Part]) -> list[Json]:
    """Return the values of these parts."""
    return [plain_value(MessageToDict(part.data)) for part in parts if part.HasField("data")]


def keepable(text: str) -> str:
    """Return text that every store can hold."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def plain_value(value: Any) -> Json:
    """Return a value of A2A with whole numbers as `int`, because A2A has floating-point numbers only, and with texts
    that every store can hold. The SDK's parser limits the depth of values, so the recursion ends."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, str):
        return keepable(value)
    if isinstance(value, list):
        return [plain_value(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {keepable(name): plain_value(one) for name, one in cast("dict[str, Any]", value).items()}
    return value


def as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

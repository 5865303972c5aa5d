"""Observability of a worker or a server: telemetry as the environment configures it, metrics on a port, and logs as
JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import out
from remit.core.times import SECOND, iso
from remit.engine.system import SystemClock
from remit.engine.traces import trace
from remit.errors import RemitError
from remit.ports.turn import current_turn
from remit.report.printable import harmless
from remit.runtime.opening import LOG_REDACTION

if TYPE_CHECKING:
    from remit.runtime.runtime import Runtime

LogFormat: TypeAlias = Annotated[Literal["text", "json"], Parameter(name="--log-format")]

# Any of these turns OpenTelemetry on, unless OTEL_SDK_DISABLED is "true".
_VARIABLES: Final = (
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)


@contextmanager
def observed(
    runtime: Runtime | None, metrics: int | None, say: Callable[[str], None], *, serves: bool = False
) -> Generator[None]:
    """Export telemetry while the body runs: to OpenTelemetry if the environment asks for it, and to Prometheus on the
    port `metrics` if it is set. `say` prints a line about each. With `serves`, export for all workspaces of the
    process; a server counts for Prometheus by itself."""
    with ExitStack() as stack:
        if os.environ.get("OTEL_SDK_DISABLED", "").lower() != "true" and any(map(os.environ.get, _VARIABLES)):
            from remit.adapters.otel_environment import from_environment

            stack.callback(from_environment(runtime, everywhere=serves)[1])
            say("exporting to OpenTelemetry, as the OTEL_ variables say")
        if metrics is not None:
            from remit.adapters.prometheus import collect, exposed

            address, stop = exposed(metrics)
            stack.callback(stop)
            if not serves:
                stack.callback(collect(runtime).stop)
            say(f"metrics: {address}")
        yield


# -- logs as JSON ------------------------------------------------------------------------------------------------------


def saying(log_format: str) -> Callable[[str], None]:
    """Return the function that prints a sentence in this format."""
    if log_format == "json":
        return lambda sentence: out().print(Text(json_line(SystemClock().now(), "info", sentence, {})), soft_wrap=True)
    return lambda sentence: out().print(Text(sentence), soft_wrap=True)


def json_line(at: int, level: str, message: str, more: Mapping[str, object]) -> str:
    """Return one line of a JSON log: the time (`at` is in microseconds since 1970), level and message, and the facts of
    `more` that are not None or ""."""
    found = {name: value for name, value in more.items() if value not in (None, "")}
    return harmless(json.dumps({"at": iso(at), "level": level, "message": message, **found}, ensure_ascii=False))


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, with the run, the task and the agent of the turn that it comes from.

    Of an exception it has the class and the places in the code. Its text is left out: it may contain what the agent
    worked with.
    """

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, object] = {"logger": record.name}
        if (turn := current_turn()) is not None:
            facts |= {"run": turn.remit.root, "task": turn.remit.id, "agent": turn.agent}
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            facts |= {"error": type(error).__name__, "trace": trace(error)}
        elif record.exc_text:  # redacted, and formatted already
            facts["error"] = record.exc_text.splitlines()[-1].partition(":")[0].strip()
        message = _message(record)
        return json_line(round(record.created * SECOND), record.levelname.lower(), message, facts)


def _message(record: logging.LogRecord) -> str:
    """Return the message of a record. If an argument is an exception that is not of remit, the message has only its
    class."""
    args = record.args
    if isinstance(args, tuple):
        named = tuple(type(one).__name__ if _is_foreign(one) else one for one in args)
        return str(record.msg) % named if named else str(record.msg)
    return record.getMessage()


def _is_foreign(value: object) -> bool:
    return isinstance(value, BaseException) and not isinstance(value, RemitError)


@contextmanager
def json_logs(log_format: str) -> Generator[None]:
    """Write the log of this process to standard error as JSON while the body runs, if that is the format."""
    if log_format != "json":
        yield
        return
    root = logging.getLogger()
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(LOG_REDACTION)  # secrets in records of other loggers too
    before = root.handlers
    root.handlers = [handler]
    try:
        yield
    finally:
        root.handlers = before

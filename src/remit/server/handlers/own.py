"""What the server says about itself: whether it is up, and whether its store answers."""

from typing import Any

from remit.server.calls import HttpAnswer, HttpCall


async def alive(_call: HttpCall[Any, Any]) -> HttpAnswer:
    """Say that the process is up; nothing else is looked at."""
    return HttpAnswer({"ok": True})


async def ready(call: HttpCall[Any, Any]) -> HttpAnswer:
    """Say whether the store answers: one read."""
    await call.workspace.journal.read(lambda view: view.head().seq)
    return HttpAnswer({"ok": True})

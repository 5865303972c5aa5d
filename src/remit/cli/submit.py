"""`remit submit`: put a task into the queue and come back at once."""

import asyncio
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.loading import lasting, load
from remit.cli.options import AsJson, OwnStore, aside, emit, options_for, out
from remit.cli.watch import answered, print_end, waited
from remit.core.backoff import ATTEMPTS
from remit.engine.asking import Submitting
from remit.engine.settings import Serving
from remit.runtime.runtime import Runtime


def submit(
    runtime: str,
    agent: str,
    task: str,
    *,
    store: OwnStore = None,
    key: str = "",
    attempts: int = ATTEMPTS,
    seconds: float | None = None,
    session: str = "",
    wait: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> int:
    """Put a task into the queue and come back at once. A worker carries it out: `remit worker`.

    The same task asked for again within five minutes, or under the same key, is the same task.

    Parameters
    ----------
    runtime
        Where the Runtime is, as `module:name`, for example `team:rt`.
    agent
        Whom to ask.
    task
        What to do.
    store
        The store whose queue it is, a file or postgresql://...; the runtime's own unless told otherwise.
    key
        Idempotency key: submitting it again returns the same task.
    attempts
        How often it is tried before it is dead.
    seconds
        The time of one attempt; 260 unless told otherwise.
    session
        Continue a session: its board and its inboxes.
    wait
        Wait until it has ended and print the result.
    json
        Print JSON instead.
    """
    how: Submitting = {"session": session}
    if seconds is not None:
        how["seconds"] = seconds
    with load(runtime).at(store, serving=Serving(hands=0)) as team:
        lasting(team, "nobody would ever carry the task out")
        return asyncio.run(_submit(team, (agent, task), (key, attempts), how, options=(store, wait, json)))


async def _submit(
    runtime: Runtime,
    ask: tuple[str, str],
    queue: tuple[str, int],
    how: Submitting,
    *,
    options: tuple[str | None, bool, bool],
) -> int:
    store, wait, as_json = options
    how = {**how, "key": queue[0], "attempts": queue[1]}
    handle = await runtime.submit(*ask, **how)
    workspace = runtime.workspace
    where = options_for(workspace.database, workspace.name, store)
    if not wait:
        if as_json:
            emit({"task": handle.id})
        else:
            out().print(Text(handle.id))
            aside().print(Text(f"remit wait {handle.id}{where}", "dim"))
        return 0
    if not as_json:
        aside().print(Text(f"waiting for {handle.id}; Ctrl-C leaves it in the queue", "dim"))
    record = await workspace.read(lambda view: view.record(handle.id))
    assert record is not None
    seen, screen = await waited(workspace, record, None, None if as_json else out())
    if as_json:
        return answered(seen, as_json=True, seconds=None)
    print_end(out(), seen, screen)
    out().print(Text(f"remit show {record.run}{where}", "dim"))
    return 0 if seen.record.state == "completed" else 1

"""`remit hooks`: webhooks, which are sent events, and their deliveries."""

import asyncio
from typing import Literal

from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, aside, emit, opened_workspace, out, typed
from remit.cli.terminal import Rows, moment
from remit.engine.hooks import no_hook
from remit.report import wire
from remit.report.printable import escaped
from remit.runtime.hooks import Delivery, HookInfo, NewHook

DeliveryState = Literal["open", "pending", "running", "waiting", "completed", "failed", "dead", "cancelled"]


def listing(*, place: Where = HERE, json: AsJson = False) -> None:
    """List the hooks: address, kinds of events, deliveries that wait, and whether deliveries succeed. Times are UTC.

    Parameters
    ----------
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        found = asyncio.run(workspace.hooks.list())
    if json:
        emit([wire.object_of(one) for one in found])
    elif not found:
        adds = typed("remit hooks add https://example.com/hook task.completed")
        out().print(Text(f"no hooks; add one: {adds}", "dim"))
    else:
        names = ("hook", "address", "events", "run", "added", "waiting", "state")
        out().print(Rows(names, [_row(one) for one in found], left=5, gives_way="state"))
        for one in found:
            if one.failing_since is not None:
                aside().print(Text(_failing(one), "yellow"))


def add(url: str, *kinds: str, run: str = "", place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Send events to an address from now on, signed (standardwebhooks.com). Workers and `remit serve` send them.

    The command prints the secret that signs them, once. It is derived from a key in the store that a master key
    encrypts: see `remit keys master`.

    Parameters
    ----------
    url
        Address: https:// and a public name, such as https://example.com/hook.
    kinds
        Kinds of events, such as task.completed, or question.* for all kinds that start with "question.". `remit
        history` shows kinds.
    run
        Send events of this run only.
    json
        Print JSON.
    """
    with opened_workspace(place, create=True) as workspace:
        made = asyncio.run(workspace.hooks.add(url, kinds, run=run, **act.said))
    _say(made, "added", as_json=json)


def remove(hook: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Remove a hook. Nothing more is sent to it.

    Parameters
    ----------
    hook
        Id of the hook.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        if not asyncio.run(workspace.hooks.remove(hook, **act.said)):
            raise no_hook(hook)
    if json:
        emit({"id": hook, "removed": True})
    else:
        out().print(Text(f"hook {escaped(hook, 64)} is removed"))


def rotate(hook: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Give a hook a new secret. For 24 hours, deliveries are signed with the old secret too.

    Parameters
    ----------
    hook
        Id of the hook.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        made = asyncio.run(workspace.hooks.rotate(hook, **act.said))
    _say(made, "has a new secret", as_json=json)


def deliveries(
    hook: str,
    *,
    state: DeliveryState | None = None,
    limit: int = 50,
    before: str = "",
    place: Where = HERE,
    json: AsJson = False,
) -> None:
    """List the deliveries of a hook, sent and waiting, newest first. Times are UTC. The log keeps 30 days.

    Parameters
    ----------
    hook
        Id of the hook.
    state
        Only deliveries in this state: open (not ended), completed, dead (a day of retries has failed), failed, or
        another state of a task.
    limit
        Maximum number of deliveries.
    before
        Only deliveries older than this one: the id of the last delivery of the previous page.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        found = asyncio.run(workspace.hooks.deliveries(hook, state=state, limit=limit, before=before))
    if json:
        emit([wire.object_of(one) for one in found])
    elif not found:
        out().print(Text("nothing was sent to this hook yet", "dim"))
    else:
        names = ("delivery", "event", "kind", "state", "tries", "asked", "ended or next", "why")
        out().print(Rows(names, [_line(one) for one in found], left=8, gives_way="why"))


def replay(delivery: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Send a delivery again that has ended, whether it arrived or not. A worker does so.

    Parameters
    ----------
    delivery
        Id of the delivery; `remit hooks deliveries HOOK` lists them.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        again = asyncio.run(workspace.hooks.replay(delivery, **act.said))
    if json:
        emit({"id": again})
    else:
        out().print(Text(f"delivery {again} sends it again"))


def _say(made: NewHook, what: str, *, as_json: bool) -> None:
    if as_json:
        emit({"id": made.id, "secret": made.secret.reveal()})
        return
    out().print(Text(f"hook {made.id} {what}"))
    out().print(Text(f"secret: {made.secret.reveal()}"), soft_wrap=True)
    aside().print(
        Text(f"remit does not show the secret again; a worker sends the events: {typed('remit worker')}", "dim")
    )


def _failing(one: HookInfo) -> str:
    assert one.failing_since is not None
    why = escaped(one.failing, 200)
    look = typed(f"remit hooks deliveries {one.id} --state dead")
    return f"hook {one.id} did not take its last delivery, given up at {moment(one.failing_since)}: {why}; see {look}"


def _row(one: HookInfo) -> list[Text | str]:
    state = Text("ok", "green") if one.failing_since is None else Text("failing", "red")
    kinds = escaped(" ".join(one.kinds), 200)
    return [Text(one.id, "bold"), escaped(one.url, 200), kinds, one.run, moment(one.added_at), str(one.waiting), state]


def _line(one: Delivery) -> list[Text | str]:
    when = one.ended_at if one.ended_at is not None else one.next_at
    times = moment(one.asked_at), moment(when) if when is not None else ""
    event = str(one.event) if one.event else ""
    return [Text(one.id, "bold"), event, one.kind, one.state, str(one.attempt), *times, escaped(one.error, 200)]

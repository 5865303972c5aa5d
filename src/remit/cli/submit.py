"""`remit submit`: queue a task and return at once."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, cast

from cyclopts import Parameter
from rich.text import Text

from remit.cli.completing import TeamWord
from remit.cli.loading import has_team, lasting, load_team
from remit.cli.options import (
    AsJson,
    AtServer,
    Credits,
    DataOption,
    InWorkspace,
    OwnStore,
    Where,
    aside,
    emit,
    now,
    out,
    remote_at,
    server_of,
    stay_at,
    store_at,
    typed,
    typed_data,
    with_unit,
    workspace_at,
)
from remit.cli.ps import due_in
from remit.cli.run import NO_LABELS, AskedFor, LabelOptions, asked_by, asked_for, has_task, words_of
from remit.cli.times import typed_delay
from remit.cli.watch import print_end, print_outcome, wait_for_end
from remit.config.teams import RunDefaults
from remit.core.plan import Plan, plan_from_json
from remit.core.values import decode
from remit.engine.asking import StartingQueued, Submitting, SubmittingPlan
from remit.engine.queue.task import Task
from remit.engine.settings import Serving
from remit.errors import BadInput
from remit.runtime.workspace import Workspace

_SAME: Final = 300  # seconds in which the same request is the same task


@Parameter(name="*")
@dataclass(frozen=True)
class InQueue:
    """The queue options of a task."""

    attempts: int | None = None
    """Maximum number of attempts. [default: the agent's retry policy, else 4]"""

    timeout: float | None = None
    """Timeout of one attempt, in seconds. [default: 260]"""

    after: str = ""
    """Start the task no earlier than so long from now: 90s, 10m, 2h or 1d."""

    at: str = ""
    """Start the task no earlier than this time, such as 2026-12-01T08:00+01:00. Without a time zone it is UTC."""

    priority: int = 0
    """Place in the queue: from -100 to 100, higher first."""

    @property
    def how(self) -> StartingQueued:
        given = {"attempts": self.attempts, "timeout": self.timeout, "priority": self.priority or None}
        how = {name: value for name, value in given.items() if value is not None}
        return cast("StartingQueued", {**how, **typed_delay(self.after, self.at)})


USUAL = InQueue()


def submit(
    *request: TeamWord,
    store: OwnStore = None,
    workspace: InWorkspace = None,
    server: AtServer = None,
    key: str = "",
    labels: LabelOptions = NO_LABELS,
    queue: InQueue = USUAL,
    credits: Credits = None,
    data: DataOption = None,
    session: str = "",
    remembers: Annotated[bool, Parameter(negative="")] = False,
    plan: Path | None = None,
    team: Annotated[bool, Parameter(negative="")] = False,
    wait: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> int:
    """Add a task to the queue and print its id. A worker runs it: `remit worker`.

    Parameters
    ----------
    request
        `[[TEAM] AGENT] TASK`: TEAM is `team:rt`, `./team.py:rt` or a team file [default: REMIT_TEAM, else
        remit.toml]. Without a team, AGENT is one that a worker has published: `remit agents` lists them. AGENT may be
        omitted if the team file names a default agent or a coordinator, TASK if it has a plan.
    store
        Store of the queue: a SQLite file or a postgresql:// URL. [default: that of the imported runtime]
    workspace
        Workspace in the store. An imported runtime has its own.
    server
        Address of `remit serve`, instead of a store and a team. REMIT_KEY is the key.
    key
        Idempotency key: submitting it again returns the same task. [default: the same request of the same person within
        five minutes is the same task]
    labels
        Whose run it is, and its labels.
    credits
        Budget of the task, for example 0.50USD.
    data
        JSON value for the agent, next to the task's text: `'{"order": 7}'`, or `@order.json` for a file.
    session
        Continue a session: its blackboard and inboxes.
    remembers
        Start with the earlier messages of the session: the newest 12,000 characters of the agent's runs.
    plan
        Run the plan in this JSON file instead of a task: an object with `steps` and, optionally, a `goal`.
    team
        Let AGENT coordinate a team; TASK is the goal.
    wait
        Wait for the task and print its result.
    json
        Print JSON.
    """
    how: StartingQueued = {"session": session, "credits": with_unit(credits)}
    how |= {**labels.how, **queue.how, **_sameness(key)}
    where, agent, task = request_words(request, plan, team=team)
    asks = read_plan(plan) if plan is not None else None

    alone = _alone(remembers, data)
    if alone and (team or plan is not None):
        raise BadInput(f"--{next(iter(alone))} is for a run of one agent, and not for a plan or a team")

    def ask(owner: Workspace) -> Awaitable[Task]:
        if asks is not None:
            return owner.submit_plan(asks, **how)
        if team:
            return owner.submit_team(task, agent or asked_by(defaults, "submit"), **how)
        return _submission(owner, asked_for(defaults, agent, task, "submit"), how, alone)

    place = Where(store, workspace, server)
    team_opened, defaults = opened_team(where, place)
    with team_opened as owner:
        return asyncio.run(_submit(owner, ask, options=(store, wait, json)))


def _sameness(key: str) -> StartingQueued:
    """Return the keyword that makes two requests the same task: an equal key, or without a key, equal content within 5
    minutes."""
    return {"key": key} if key else {"same_within": _SAME}


def _alone(remembers: bool, data: str | None) -> Submitting:
    """Return the keywords that only a run of one agent takes."""
    alone: Submitting = {"remembers": True} if remembers else {}
    if data is not None:
        alone["data"] = typed_data(data)
    return alone


def _submission(owner: Workspace, asked: AskedFor, how: StartingQueued, alone: Submitting) -> Awaitable[Task]:
    """Return an awaitable that submits a task, a goal for a team, or a plan. Raise `BadInput` if `alone`, the keywords
    for a run of one agent, is set for a team or a plan."""
    lead = asked.lead
    if lead is None:
        return owner.submit(asked.agent, asked.task, **{**how, **alone})
    if alone:
        option = f"--{next(iter(alone))}"
        raise BadInput(f"{option} is for a run of one agent: name it, remit submit AGENT 'task' {option}")
    led: SubmittingPlan = {**how, "concurrency": lead.concurrency, "reveal": lead.reveal}
    if asked.agent:
        return owner.submit_team(asked.task, asked.agent, plan=lead.plan, **led)
    assert lead.plan is not None
    return owner.submit_plan(lead.plan, **led)


def request_words(
    request: tuple[str, ...], plan: Path | None, *, team: bool, command: str = "submit"
) -> tuple[str, str, str]:
    """Return the team, the agent and the task from the words of a request; a missing one is "". A plan has neither
    agent nor task. Raise `BadInput` for words that do not fit; the error names `command`."""
    if plan is not None:
        if team or len(request) > 1:
            raise BadInput("with --plan, pass only [module:runtime]: a plan names its agents and its tasks itself")
        return "".join(request), "", ""
    if not team and not has_task(request):
        return "".join(request), "", ""
    where, agent, task = words_of(request, command)
    if not (where or agent or has_team()):
        asked_by(RunDefaults(), command)  # says so
    return where, agent, task


def read_plan(plan: Path) -> Plan:
    """Return the plan in a JSON file. Raise `BadInput` if the file cannot be read or has no valid plan."""
    try:
        return plan_from_json(decode(plan.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadInput(f"the plan in {plan} cannot be read: {error.strerror}") from error
    except BadInput as no:
        raise BadInput(f"the plan in {plan} cannot be used: {no}") from no
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{plan} is not JSON: {error}") from error


def opened_team(where: str, place: Where) -> tuple[AbstractContextManager[Workspace], RunDefaults]:
    """Return a context manager of a workspace, and the defaults of its runs. The workspace is on the server that
    `place` names; else it is that of the team `where` or of the usual team; without a team, it is that of the store.
    Raise `BadInput` for a server with a team, or for a store in memory."""
    if server := server_of(place):
        if where:
            raise BadInput("a server has its own team: name the agent and the task only")
        return remote_at(server), RunDefaults()
    if not where and not has_team():
        return Workspace(store_at(place.store), workspace_at(place.workspace), create=False), RunDefaults()
    team = load_team(where, runs=False)
    runtime = lasting(team.runtime.at(place.store, serving=Serving(concurrency=0)), "no worker could run the task")
    return runtime.workspace, team.run


async def _submit(
    workspace: Workspace, ask: Callable[[Workspace], Awaitable[Task]], *, options: tuple[str | None, bool, bool]
) -> int:
    store, wait, as_json = options
    handle = await ask(workspace)
    stay_at(workspace, store)
    [*found] = (await workspace.looks.records([handle.id])).records
    record = found[0] if found else None
    if not wait:
        if as_json:
            emit({"task": handle.id, "existing": handle.existing})
        else:
            out().print(Text(handle.id))
            known = "; it exists: the same task was submitted before" if handle.existing else ""
            due = due_in(record, now()) if record is not None else ""
            aside().print(Text(f"{typed(f'remit wait {handle.id}')}{f'; {due}' if due else ''}{known}", "dim"))
        return 0
    if record is None:  # an earlier task with this key was pruned: raises with the details
        await handle.status()
        raise AssertionError("a task that was accepted has a status, or a reason why not")
    if not as_json:
        aside().print(Text(f"waiting for {handle.id}; Ctrl-C leaves it in the queue", "dim"))
    seen, screen = await wait_for_end(workspace, record, None, None if as_json else out())
    if as_json:
        return print_outcome(seen, as_json=True, seconds=None)
    print_end(out(), seen, screen)
    out().print(Text(typed(f"remit show {record.run}"), "dim"))
    return 0 if seen.record.state == "completed" else 1

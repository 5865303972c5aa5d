"""`remit run`: run a task with a team from a file or from a Python module."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias, TypedDict

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from remit.cli.completing import TeamWord
from remit.cli.drawing import answer, summed_up
from remit.cli.interrupts import INTERRUPTED, Interrupts, interrupts
from remit.cli.loading import has_team, is_file, load_team
from remit.cli.options import (
    AsJson,
    Credits,
    DataOption,
    OwnStore,
    aside,
    at_terminal,
    emit,
    is_kept,
    out,
    place_options,
    stay_at,
    typed,
    typed_data,
    with_unit,
)
from remit.cli.prompting import PromptDesk, Typist, answering
from remit.cli.screen import Drawing, Words, starting, watching
from remit.cli.terminal import outcome_text
from remit.cli.web import NO_WEB, Dashboard, WebOptions, dashboard
from remit.config.teams import RunDefaults
from remit.core.bounds import TOP, Bounds
from remit.core.events import Event, MetaValue
from remit.core.lifecycle import Outcome, Progress
from remit.core.plan import Lead, Plan
from remit.core.session import RemembersGiven
from remit.core.values import Json, shown
from remit.engine.asking import Starting, StartingPlan
from remit.engine.presence.heartbeat import loop_watched
from remit.engine.presence.peers import process_address
from remit.engine.system import SystemClock
from remit.errors import BadInput, Conflict
from remit.ports import View, Which
from remit.ports.models import TextChunk
from remit.report import wire
from remit.report.figures import count
from remit.runtime.runtime import Runtime, run_main
from remit.runtime.streaming import Streamed
from remit.runtime.workspace import Workspace, subscribe

HAND_BACK_SECONDS: Final = 5.0  # time for tasks of other runs that started here


@Parameter(name="*")
@dataclass(frozen=True)
class Limits:
    """Limits of the run."""

    credits: Credits = None
    """Budget of the run, for example 0.50USD."""

    depth: int | None = None
    """Maximum depth of nested delegations. [default: 3]"""

    timeout: float | None = None
    """Deadline of the run in seconds, including waits for people. [default: 300 per attempt, without such waits]"""

    tier: Literal["simple", "medium", "complex"] | None = None
    """Preset of limits for handoffs, tokens and agents."""

    no_handoffs: Annotated[bool, Parameter(name="--no-handoffs", negative="")] = False
    """Forbid handoffs."""


_OPEN = Limits()


class Labelled(TypedDict, total=False):
    """The keywords for the labels of a run."""

    tags: Iterable[str]
    meta: Mapping[str, MetaValue]


@Parameter(name="*")
@dataclass(frozen=True)
class TagOptions:
    """Labels of a run: lists of runs and tasks can be narrowed by them."""

    tag: Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=False)] = ()
    """A tag of the run; repeat the option for more, up to 16."""

    meta: Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=False)] = ()
    """Metadata of the run, as NAME=VALUE; repeat the option for more, up to 16."""

    @property
    def labels(self) -> Labelled:
        labels: Labelled = {}
        if self.tag:
            labels["tags"] = self.tag
        if self.meta:
            labels["meta"] = dict(map(_named_value, self.meta))
        return labels


@Parameter(name="*")
@dataclass(frozen=True)
class LabelOptions(TagOptions):
    """Whose run it is, and its labels."""

    by: str = ""
    """Name of the person who starts the run. [default: the user of this terminal]"""

    @property
    def how(self) -> Starting:
        return {"by": self.by or at_terminal(), **self.labels}


NO_TAGS = TagOptions()
NO_LABELS = LabelOptions()


def _named_value(typed: str) -> tuple[str, str]:
    name, equals, value = typed.partition("=")
    if not (name and equals):
        raise BadInput(f"--meta is NAME=VALUE, such as --meta ticket=T-7, not {shown(typed)}")
    return name, value


class Ask(NamedTuple):
    """A request and how to show it. With `lead`, `agent` leads a team, or, if `agent` is empty, a plan runs."""

    agent: str
    task: str
    how: Starting
    as_json: bool
    lead: Lead | None = None
    remembers: RemembersGiven = None
    data: Json = None


def run(
    *request: TeamWord,
    limits: Limits = _OPEN,
    labels: LabelOptions = NO_LABELS,
    store: OwnStore = None,
    data: DataOption = None,
    session: str = "",
    remembers: Annotated[bool, Parameter(negative="")] = False,
    web: WebOptions = NO_WEB,
    json: AsJson = False,
) -> int:
    """Run a task in the foreground and show its progress.

    In a pipe, standard output has only the answer; progress goes to standard error. The first Ctrl-C cancels the run;
    the second stops the command at once.

    Parameters
    ----------
    request
        `[[TEAM] AGENT] TASK`: TEAM is `team:rt`, `./team.py:rt` or a team file [default: REMIT_TEAM, else
        remit.toml]. AGENT may be omitted if the team file names a default agent or a coordinator, TASK if it has a
        plan.
    limits
        Limits of the run.
    labels
        Whose run it is, and its labels.
    store
        Use this store instead of the runtime's own: a SQLite file or a postgresql:// URL.
    data
        JSON value for the agent, next to the task's text: `'{"order": 7}'`, or `@order.json` for a file.
    session
        Continue a session: its blackboard and inboxes.
    remembers
        Start with the earlier messages of the session: the newest 12,000 characters of the agent's runs.
    web
        The dashboard beside the run.
    json
        Print the run as JSON.
    """
    where, agent, task = words_of(request) if has_task(request) else ("".join(request), "", "")
    amount = with_unit(limits.credits)
    with starting(None if json else _beside(out())):
        team = load_team(where)
    how = _how(limits, amount, team.run)
    how |= {"session": session, **labels.how}
    asks = asked_for(team.run, agent, task)
    with team.runtime.at(store) as runtime:
        stay_at(runtime.workspace, store)
        try:
            ask = Ask(asks.agent, asks.task, how, json, asks.lead, remembers or None, typed_data(data))
            return run_main(_run(runtime, ask, web))
        except asyncio.CancelledError:  # the second Ctrl-C
            return INTERRUPTED


def has_task(request: tuple[str, ...]) -> bool:
    """Whether the words of a request contain a task. Otherwise they are at most a team file, and the command runs the
    plan of that file. Without words and without a usual team, return True: `words_of` then raises the error."""
    return not (has_team() if not request else len(request) == 1 and is_file(request[0]))


class AskedFor(NamedTuple):
    """The agent and its task; with `lead` the agent leads a team, or without an agent a plan is carried out."""

    agent: str
    task: str
    lead: Lead | None = None


def asked_for(defaults: RunDefaults, agent: str, task: str, command: str = "run") -> AskedFor:
    """Return the agent and the task from the command line, with the file's defaults for what is missing. Raise
    `BadInput` if the file does not have them either; the error names `command`."""
    lead, plan = defaults.lead, defaults.lead.plan
    if agent or (task and defaults.agent):
        return AskedFor(agent or defaults.agent, task)
    goal = task or (plan.goal if plan is not None else "")
    if defaults.coordinator and goal:
        return AskedFor(defaults.coordinator, goal, lead._replace(coordinated=plan is not None))
    if plan is not None and not defaults.coordinator:
        return AskedFor("", goal, lead._replace(plan=replace(plan, goal=goal)))
    if not task:
        raise BadInput(f"give a task: remit {command} 'task'; or add a [plan] with a goal and steps to the file")
    return AskedFor(asked_by(defaults, command), task)


def words_of(request: tuple[str, ...], command: str = "run") -> tuple[str, str, str]:
    """Return the team, the agent and the task from the words `[TEAM] [AGENT] TASK`; a missing one is "". Raise
    `BadInput` for other words; the error names `command`."""
    match request:
        case (task,):
            return "", "", task
        case (where, task) if is_file(where):
            return where, "", task
        case (agent, task) if ":" not in agent:
            return "", agent, task
        case (where, agent, task):
            return where, agent, task
        case (where, _):
            raise BadInput(f"name an agent: remit {command} {where} AGENT 'task'")
        case _:
            raise BadInput(
                f"pass [module:runtime] [AGENT] 'task': up to three words, not {len(request)}; quote the task"
            )


def asked_by(defaults: RunDefaults, command: str = "run") -> str:
    """Return the default agent of a file. Raise `BadInput` if it has none."""
    if not defaults.agent:
        how = f"remit {command} AGENT 'task'; or name one in the file, with agent = ... below [run]"
        raise BadInput(f"name an agent: {how}")
    return defaults.agent


def _how(limits: Limits, amount: str | None, defaults: RunDefaults) -> Starting:
    """Return the options of the run from the command line, with the file's defaults for what is missing."""
    how: Starting = {
        "within": Bounds(depth=limits.depth) if limits != _OPEN else TOP,
        "tier": limits.tier or defaults.tier,
        "handoffs": not limits.no_handoffs,
    }
    if (most := amount if amount is not None else defaults.credits) is not None:
        how["credits"] = most
    if (timeout := limits.timeout if limits.timeout is not None else defaults.timeout) is not None:
        how["timeout"] = timeout
    return how


async def _run(runtime: Runtime, ask: Ask, options: WebOptions) -> int:
    with interrupts() as heard:
        async with dashboard(runtime.workspace, options) as web:
            return await _run_shown(runtime, ask, heard, web)


async def _run_shown(runtime: Runtime, ask: Ask, heard: Interrupts, web: Dashboard) -> int:
    runs: list[str] = []
    words, console = Words(), None if ask.as_json else _beside(out())
    with ExitStack() as shown:
        drawing = shown.enter_context(watching(runtime, console, words))
        hear = words.hear if console is not None and console.is_terminal else None
        async with answering(runtime.workspace, runs, _desk(ask, drawing)):
            outcome = await run_request(runtime, ask, heard, runs, hear)
            shown.close()
            if outcome.state == "refused":
                outcome.unwrap()
            interrupted = heard.count > 0
            if not ask.as_json:
                await _report(runtime, outcome, ask)
            await web.stay(runtime, heard)
            await _settle(runtime, outcome.id, heard)
        if ask.as_json:
            await _report(runtime, outcome, ask)
    if interrupted and outcome.state == "cancelled":
        return INTERRUPTED
    return 0 if outcome.ok else 1


def _beside(console: Console) -> Console:
    """Return the console for everything but the result: the same terminal, or standard error next to a pipe."""
    return console if console.is_terminal else aside()


def _desk(ask: Ask, drawing: Drawing) -> PromptDesk:
    """Return the desk that answers questions: in this terminal if a person is at it, otherwise from elsewhere."""
    console = out()
    where = place_options() if is_kept() else None
    here = not ask.as_json and console.is_terminal and sys.stdin.isatty()
    return PromptDesk(aside(), drawing.paused, where, Typist(sys.stdin.fileno(), console) if here else None)


Hearing: TypeAlias = Callable[[Event | TextChunk], None]


async def run_request(
    runtime: Runtime, ask: Ask, heard: Interrupts, runs: list[str], hear: Hearing | None = None
) -> Outcome:
    """Run the request and return the outcome. The first signal cancels the run, which then ends like any other. `runs`
    gets the run's id, and `hear` its events and text."""

    def note(events: Sequence[Event]) -> None:
        runs.extend(event.run for event in events if event.kind == "task.started" and event.task == event.run)

    if runtime.serving_settings.channels:  # channels work only while a process serves
        runtime.lend()
    stop = subscribe(runtime.workspace, note)
    work = asyncio.create_task(_outcome(runtime, ask, hear))
    told = asyncio.create_task(heard.first.wait())
    try:
        with nullcontext() if is_kept() else loop_watched():  # heartbeats watch the loop too
            await asyncio.wait((work, told), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                aside().print(Text("cancelling the run; press Ctrl-C again to stop at once", "yellow"))
                await _cancel(runtime, runs, work)
            return await work
    finally:
        told.cancel()
        stop()


async def _outcome(runtime: Runtime, ask: Ask, hear: Hearing | None) -> Outcome:
    if hear is None and ask.lead is None:
        return await runtime.outcome(ask.agent, ask.task, remembers=ask.remembers, data=ask.data, **ask.how)
    async for one in _stream(runtime, ask):
        if isinstance(one, Outcome):
            return one
        if hear is not None and not isinstance(one, Progress):  # the tree shows progress
            hear(one)
    raise AssertionError("a stream ends with its outcome")


def _stream(runtime: Runtime, ask: Ask) -> AsyncGenerator[Streamed]:
    lead = ask.lead
    if lead is None:
        return runtime.stream(ask.agent, ask.task, remembers=ask.remembers, data=ask.data, **ask.how)
    if ask.remembers or ask.data is not None:
        option = "--remembers" if ask.remembers else "--data"
        raise BadInput(f"{option} is for a run of one agent: name it, remit run AGENT 'task' {option}")
    how: StartingPlan = {**ask.how, "concurrency": lead.concurrency, "reveal": lead.reveal}
    if ask.agent:
        return runtime.stream_team(ask.task, ask.agent, plan=lead.plan, **how)
    assert lead.plan is not None
    return runtime.stream_plan(lead.plan, **how)


async def _cancel(runtime: Runtime, runs: list[str], work: "asyncio.Task[Outcome]") -> None:
    if not runs:  # it has not started yet
        work.cancel()
        return
    try:
        await runtime.workspace.tasks.cancel(runs[0], "interrupted")
    except Conflict:  # it ended meanwhile
        return


async def _settle(runtime: Runtime, run: str, heard: Interrupts) -> None:
    """Wait until the tasks that the run left open are done in this process, unless a signal has come. Then drain the
    runtime: claim nothing more, and requeue tasks of other runs that do not finish in time."""
    if not heard.count and runtime.concurrency:
        await _wait_for_rest(runtime, run, heard)
    others = await runtime.workspace.journal.read(_unfinished_here)
    if others and not heard.count:
        begun = f"{count(others, 'task')} of other runs started here"
        aside().print(Text(f"{begun}; unfinished ones are requeued after {HAND_BACK_SECONDS:g} s", "dim"))
    await runtime.drain(0.0 if heard.count else HAND_BACK_SECONDS)


async def _wait_for_rest(runtime: Runtime, run: str, heard: Interrupts) -> None:
    workspace = runtime.workspace
    lasting = workspace.lasting
    left = await workspace.journal.read(lambda view: _rest(view, run, lasting=lasting))
    if not left:
        return
    word = "requeues them" if lasting else "drops them"
    aside().print(Text(f"waiting for {count(left, 'task')} it left running; Ctrl-C {word}", "yellow"))
    async with workspace.journal.follow(after=0, run=run) as follow:
        told = asyncio.create_task(heard.first.wait())
        told.add_done_callback(lambda _: follow.changed.set())
        try:
            while left and not heard.count:
                await follow.next()
                left = await workspace.journal.read(lambda view: _rest(view, run, lasting=lasting))
        finally:
            told.cancel()


def _rest(view: View, run: str, *, lasting: bool) -> int:
    """Return the number of open tasks of the run that this process runs or can run."""
    found = [record for record, _ in view.tasks(Which(state="open", run=run, limit=100_000))]
    if not lasting:
        return len(found)
    return sum(not record.worker or record.worker in _here(view) for record in found)


def _unfinished_here(view: View) -> int:
    """Return the number of queued tasks that this process has started and not ended."""
    return sum(record.asked_how != "delegate" for worker in _here(view) for record in view.tasks_of_worker(worker))


def _here(view: View) -> set[str]:
    """Return the ids under which this process writes heartbeats."""
    return {beat.worker for beat in view.workers() if beat.home == process_address()}


async def _results(workspace: Workspace, run: str, plan: Plan | None) -> Text:
    """Return the results of a plan: those of the steps on which no other step depends."""
    assert plan is not None
    done = await workspace.tasks.get(run).plan_outcome()
    waited_for = {before for step in plan.steps for before in step.after}
    last = [done.steps[step.id] for step in plan.steps if step.id not in waited_for]
    if len(last) == 1:
        return outcome_text("completed", last[0].value, "")
    return Text("\n\n").join(
        Text.assemble((f"{step.title}\n", "bold"), outcome_text("completed", step.value, "")) for step in last
    )


async def _report(runtime: Runtime, outcome: Outcome, ask: Ask) -> None:
    workspace = runtime.workspace
    root = await workspace.tree(outcome.id)
    assert root is not None
    if ask.as_json:
        emit(wire.tree(root))
        return
    console = out()
    beside = _beside(console)
    if console.is_terminal:  # the answer stays where it was streamed
        console.print()
    if ask.lead is not None and not ask.agent and outcome.ok:
        console.print(await _results(workspace, outcome.id, ask.lead.plan))
    else:
        console.print(answer(root))
    if console.is_terminal:
        console.print()
    beside.print(summed_up(root, SystemClock().now()))
    if is_kept():
        beside.print(Text(typed(f"remit show {outcome.id}"), "dim"))
    else:
        beside.print(Text("this run was in memory only; add --store FILE to keep it", "dim"))

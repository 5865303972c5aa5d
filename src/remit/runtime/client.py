"""A workspace on a server: the same groups and methods as `Workspace`, the same values, the same errors.

A call is checked against the method of the same name, so that an editor and a type checker know it; what it needs is
sent, and its answer is made the value that the method returns.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import fields
from functools import cache, cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Never, Protocol, Self, TypeAlias, Unpack, cast

from remit.core import checks
from remit.core.artifact import Artifact, digest_of
from remit.core.checks import keywords
from remit.core.entry import Draft, Entry
from remit.core.events import Event, Gap
from remit.core.lifecycle import Outcome
from remit.core.question import Inquiry, Reply
from remit.core.scope import Scope
from remit.core.secret import Secret
from remit.core.trust import TRUSTED, Trust, known_trust
from remit.core.values import SESSION_LIMIT, Json, line
from remit.engine.acts import Act, act_of
from remit.engine.answering import AskedQuestion
from remit.engine.artifacts import OpenedArtifact, Source, described, parts_of
from remit.engine.asking import Submitting, SubmittingPlan
from remit.engine.context import Context
from remit.engine.plans import PlanOutcome
from remit.engine.queue.task import Status, Task
from remit.errors import BadInput, NoServer
from remit.report.tree import Node, tree
from remit.runtime import (
    access,
    agents,
    artifacts,
    contexts,
    hooks,
    journal,
    keys,
    looks,
    money,
    questions,
    schedules,
    tasks,
)
from remit.runtime.calls import CALLS, EventPage, TaskMade, argument_json, restored
from remit.runtime.filters import EventFilter, StatsFilter, which_events
from remit.runtime.journal import LOOK_SECONDS
from remit.runtime.tasks import id_of
from remit.runtime.workspace import Workspace

if TYPE_CHECKING:
    from remit.core.plan import Plan
    from remit.engine.attempt.live import LiveTask
    from remit.engine.people import Answers
    from remit.engine.upkeep.doctor import Health
    from remit.ports import KeyInfo
    from remit.report.edges import AskEdge
    from remit.report.stats import Stats
    from remit.runtime.agents import WorkspaceAgents
    from remit.runtime.artifacts import ArtifactLook, WorkspaceArtifacts
    from remit.runtime.contexts import WorkspaceContext
    from remit.runtime.journal import WorkspaceJournal
    from remit.runtime.keys import KeyRing
    from remit.runtime.looks import WorkspaceLooks
    from remit.runtime.money import WorkspaceMoney
    from remit.runtime.questions import WorkspaceQuestions
    from remit.runtime.schedules import WorkspaceSchedules
    from remit.runtime.tasks import WorkspaceTasks

LONG_POLL: Final = 20.0  # seconds that one request waits
_LOST_SECONDS: Final = 60.0  # without an answer, after which a reader gives up
_AGAIN_SECONDS: Final = 0.5


class RemoteWire(Protocol):
    """The connection of a client to a server: it sends calls and files, and returns the answers."""

    @property
    def where(self) -> str: ...
    @property
    def is_private(self) -> bool:
        """Whether the connection is encrypted or stays on this machine."""
        ...

    async def call(self, name: str, given: dict[str, Json]) -> Json:
        """Make a call, and return its answer. Raise the error that the server reports, or `NoServer` if no server
        answers."""
        ...

    async def save_file(self, parts: Callable[[], AsyncIterator[bytes]], file: SentFile) -> Json:
        """Send a file, and return the reference to it. If it can be read `again`, it is sent again after a lost
        answer. Raise the same errors as `call`."""
        ...

    def fetch_file(self, digest: str) -> AsyncGenerator[bytes]:
        """Yield the parts of a file. Raise the same errors as `call`."""
        ...

    def close(self) -> None: ...


class SentFile(NamedTuple):
    """The properties of an uploaded file: name, media type and trust, its sender, and whether it can be read `again`
    for a retry."""

    name: str
    media_type: str
    trust: Trust
    op: str
    by: str
    again: bool


async def _call_remote(wire: RemoteWire, name: str, given: dict[str, Json]) -> Any:
    return restored(CALLS[name].returns, await wire.call(name, given))


@cache
def _signature(name: str) -> inspect.Signature:
    """Return the parameters of a method by its name in a workspace, such as `tasks.cancel`."""
    *groups, verb = name.split(".")
    kind: Any = Workspace
    for group in groups:
        member = inspect.getattr_static(kind, group)
        getter = member.func if isinstance(member, cached_property) else member.fget
        kind = _classes()[inspect.get_annotations(getter)["return"].strip('"')]
    return inspect.signature(getattr(kind, verb))


@cache
def _classes() -> dict[str, type]:
    """Return the classes of the groups by their names."""
    modules = (access, agents, artifacts, contexts, hooks, journal, keys, looks, money, questions, schedules, tasks)
    return {name: kind for module in modules for name, kind in vars(module).items() if isinstance(kind, type)}


def _arguments_json(name: str, words: tuple[object, ...], named: dict[str, object]) -> dict[str, Json]:
    """Return the arguments of a call as JSON, each under its name."""
    bound = _signature(name).bind(None, *words, **named)
    arguments = dict(bound.arguments)
    arguments.pop("self", None)
    for parameter in bound.signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and parameter.name in arguments:
            arguments |= cast("dict[str, object]", arguments.pop(parameter.name))
    return {key: argument_json(value) for key, value in arguments.items()}


def _absent(name: str, *_: object, **__: object) -> Never:
    raise BadInput(f"workspace.{name} works on the store itself, and not over a server; open the store for it")


class RemoteGroup:
    """A group of a workspace on a server, such as `tasks`."""

    def __init__(self, wire: RemoteWire, name: str) -> None:
        self._wire = wire
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name} at {self._wire.where}>"

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        name = f"{self._name}.{verb}"
        if verb.startswith("_"):
            raise AttributeError(name)
        return partial(self._call, name) if name in CALLS else partial(_absent, name)

    async def _call(self, name: str, *words: object, **named: object) -> Any:
        return await _call_remote(self._wire, name, _arguments_json(name, words, named))


# -- tasks -----------------------------------------------------------------------------------------------------------


class RemoteControl:
    """Status, waiting, cancelling and retrying for the handles of tasks (`Task`), by requests to a server."""

    def __init__(self, wire: RemoteWire) -> None:
        self._wire = wire

    async def status(self, task: str, asker: LiveTask | None = None) -> Status:
        return await _call_remote(self._wire, "tasks.status", {"task": task})

    async def outcome(self, task: str, seconds: float | None) -> Outcome:
        """Wait for the end of a task with one request after the other, and return its outcome. Raise `TimeoutError`
        after `seconds`."""
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        while True:
            left = LONG_POLL if until is None else max(0.0, min(LONG_POLL, until - loop.time()))
            found = await _call_remote(self._wire, "tasks.outcome", {"task": task, "timeout": left})
            if found is not None:
                return found
            if until is not None and loop.time() >= until:
                raise TimeoutError(f"task {task} has not ended after {seconds:g} s; it continues")

    async def awaited(self, asker: LiveTask, task: str, seconds: float | None) -> Outcome:
        return await self.outcome(task, seconds)

    async def cancel(self, task: str, why: str, asker: LiveTask | None, act: Act) -> int:
        given: dict[str, Json] = {"task": task, "why": why, "op": act.op, "by": act.by}
        return await _call_remote(self._wire, "tasks.cancel", given)

    async def retry(self, task: str, asker: LiveTask | None, act: Act, *, restart: bool = False) -> str:
        given: dict[str, Json] = {"task": task, "restart": restart, "op": act.op, "by": act.by}
        return (await _call_remote(self._wire, "tasks.retry", given)).id

    async def plan_outcome(self, outcome: Outcome, asker: LiveTask | None) -> PlanOutcome:
        return await _call_remote(self._wire, "tasks.plan_outcome", {"task": outcome.id})


def _handle(wire: RemoteWire, made: TaskMade) -> Task:
    return Task(RemoteControl(wire), made.id, existing=made.existing)


class RemoteTasks(RemoteGroup):
    """The tasks of a workspace on a server."""

    def get(self, task: str) -> Task:
        """Return the handle of a task by its id."""
        return Task(RemoteControl(self._wire), id_of(task))

    async def retry(self, *words: object, **named: object) -> Task:
        """Retry a task, and return the handle of the new one."""
        return _handle(self._wire, await self._call("tasks.retry", *words, **named))


# -- journal ---------------------------------------------------------------------------------------------------------


class RemoteFollow:
    """The events of a server that `journal.follow` selects. If the connection is lost, it continues after the last
    event that arrived. It raises `NoServer` when no server has answered for a minute."""

    def __init__(self, wire: RemoteWire, which: dict[str, Json], *, live: bool, from_now: bool) -> None:
        self._wire = wire
        self._which = which
        self._live = live
        self._from_now = from_now
        self.position = cast("int", which.pop("after", 0))

    async def __aenter__(self) -> Self:
        if self._from_now:
            self.position, self._from_now = cast("int", await self._wire.call("looks.head", {})), False
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def aclose(self) -> None:
        """Stop following; nothing is open between two requests."""

    def __aiter__(self) -> AsyncIterator[list[Event | Gap]]:
        return self._events() if self._live else self._pages()

    async def next(self, timeout: float = LOOK_SECONDS) -> list[Event | Gap]:  # noqa: ASYNC109 - an empty list, no error
        """Wait for events since the last call, and return them. Return an empty list if there are none for `timeout`
        seconds. If no server answers, retry for a minute, then raise `NoServer`."""
        loop = asyncio.get_running_loop()
        until, lost_at = loop.time() + timeout, None
        while True:
            left = max(0.0, min(LONG_POLL, until - loop.time()))
            try:
                page: EventPage = await _call_remote(
                    self._wire, "journal.next", {**self._which, "after": self.position, "timeout": left}
                )
            except NoServer:
                lost_at = lost_at or loop.time()
                if loop.time() - lost_at > _LOST_SECONDS:
                    raise
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            lost_at = None
            self.position = page.position
            if page.events or page.gaps or loop.time() >= until:
                return page.items

    async def _events(self) -> AsyncGenerator[list[Event | Gap]]:
        async with self:
            while True:
                if events := await self.next(LONG_POLL):
                    yield events

    async def _pages(self) -> AsyncGenerator[list[Event | Gap]]:
        """Yield the events that existed at the beginning."""
        head = cast("int", await self._wire.call("looks.head", {}))
        while self.position < head:
            found = await self.next(0)
            if before := [one for one in found if (one.first if isinstance(one, Gap) else one.seq) <= head]:
                yield before


class RemoteJournal(RemoteGroup):
    """The journal of a workspace on a server."""

    def follow(self, *, live: bool = True, gaps: bool = False, **which: Unpack[EventFilter]) -> RemoteFollow:
        """Follow the events that match all conditions; with `gaps`, also the ranges of removed events between them."""
        checks.yes_or_no(live, "live")
        checks.yes_or_no(gaps, "gaps")
        which_events("follow", which)
        given = {name: argument_json(value) for name, value in which.items() if value is not None} | {"gaps": gaps}
        return RemoteFollow(self._wire, given, live=live, from_now=live and "after" not in which)


# -- people ----------------------------------------------------------------------------------------------------------


class RemoteAnswers:
    """Decides questions on a server."""

    def __init__(self, wire: RemoteWire) -> None:
        self._wire = wire

    async def answer(self, question: str, reply: Reply, op: str = "") -> None:
        verb = {"approved": "approve", "rejected": "reject"}.get(reply.state, "answer")
        given: dict[str, Json] = {"question": question, "by": reply.by, "channel": reply.channel, "op": op}
        given |= {"why": reply.why} if verb != "answer" else {}
        given |= {"value": reply.value} if verb != "reject" else {}
        await _call_remote(self._wire, f"questions.{verb}", given)


class RemoteQuestions(RemoteGroup):
    """The questions of a workspace on a server."""

    def _to_decide(self, inquiry: Inquiry) -> AskedQuestion:
        parts = {one.name: getattr(inquiry, one.name) for one in fields(Inquiry)}
        return AskedQuestion(**parts, _answers=cast("Answers", RemoteAnswers(self._wire)))

    async def asked(self) -> AsyncGenerator[AskedQuestion]:
        """Yield the open questions, the first asked first, and then each as it is asked."""
        journal, told_of = RemoteJournal(self._wire, "journal"), set[str]()
        async with journal.follow(kinds=["question.asked"]) as follow:
            waiting: list[Inquiry] = await self._call("questions.list", limit=1_000)
            for question in sorted(waiting, key=attrgetter("asked_at")):
                told_of.add(question.id)
                yield self._to_decide(question)
            while True:
                for event in cast("list[Event]", await follow.next(LONG_POLL)):
                    question = await self._call("questions.get", str(event.data["question"]))
                    if question.id not in told_of and question.state == "open":
                        told_of.add(question.id)
                        yield self._to_decide(question)


# -- entries ---------------------------------------------------------------------------------------------------------


class RemoteAccess:
    """The access to the entries of a workspace on a server."""

    def __init__(self, wire: RemoteWire, session: str, op: str, by: str) -> None:
        self._wire = wire
        self.session = session
        self._act: dict[str, Json] = {"session": session, "op": op, "by": by}

    async def put(self, draft: Draft) -> int:
        names = ("namespace", "key", "value", "lifetime", "extend", "trust", "expect")
        given = {name: getattr(draft, name) for name in names}
        return await _call_remote(self._wire, "context.put", {**self._act, **given})

    async def get(self, namespace: str, key: str) -> Entry | None:
        return await self._ask("context.get", {"namespace": namespace, "key": key})

    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]:
        return await self._ask("context.recent", {"namespaces": [one.namespace for one in wanted], "limit": limit})

    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]:
        given: dict[str, Json] = {"namespace": wanted.namespace, "prefix": wanted.prefix or "", "limit": limit}
        return await self._ask("context.by_key", given)

    async def touch(self, namespace: str, key: str, by: int) -> bool:
        given: dict[str, Json] = {"namespace": namespace, "key": key, "lifetime": by}
        return await _call_remote(self._wire, "context.touch", {**self._act, **given})

    async def remove(self, namespace: str, key: str) -> bool:
        given: dict[str, Json] = {"namespace": namespace, "key": key}
        return await _call_remote(self._wire, "context.remove", {**self._act, **given})

    async def _ask(self, name: str, given: dict[str, Json]) -> Any:
        return await _call_remote(self._wire, name, {"session": self.session, **given})


class RemoteContext(RemoteGroup):
    """The entries of a workspace on a server."""

    def __call__(self, session: str = "", *, op: str = "", by: str = "") -> Context:
        """Return the entries of the workspace; with a session, its board too."""
        if session != "":
            line(session, "a session", SESSION_LIMIT)
        return Context(RemoteAccess(self._wire, session, op, by))


class RemoteArtifacts(RemoteGroup):
    """The files of a workspace on a server. They travel in parts, and what arrives is checked against its digest."""

    async def save(
        self,
        source: Source,
        name: str = "",
        media_type: str = "",
        *,
        trust: Trust = TRUSTED,
        op: str = "",
        by: str = "",
    ) -> Artifact:
        """Send a file, and return the reference to it."""
        act = act_of(op, by)
        known_trust(trust)
        again = isinstance(source, bytes | bytearray | memoryview | os.PathLike)
        file = SentFile(*described(source, name, media_type), trust, act.op, act.by, again)
        first = parts_of(source)  # a source of another kind is an error before anything is sent
        saved = await self._wire.save_file(lambda: parts_of(source) if again else first, file)
        return restored(Artifact, saved)

    async def open(self, artifact: Artifact | str | dict[str, Any]) -> OpenedArtifact:
        """Open a file by its reference or its digest. Its content comes when it is read."""
        digest = digest_of(artifact)
        given = artifact.data() if isinstance(artifact, Artifact) else artifact
        look: ArtifactLook = await _call_remote(self._wire, "artifacts.open", {"artifact": cast("Json", given)})
        return OpenedArtifact(look.artifact, look.trust, partial(self._wire.fetch_file, digest), _always)


def _always() -> None:
    """Check nothing: a workspace has no turn that could be over."""


class RemoteKeys(RemoteGroup):
    """The keys of a workspace on a server. A key travels to the server, and never back."""

    async def set(self, name: str, secret: Secret, *, op: str = "", by: str = "") -> KeyInfo:
        """Store a key on the server, which encrypts it. It is not sent over plain HTTP to another machine."""
        if not isinstance(secret, Secret):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may pass anything
            kind = type(secret).__name__
            del secret  # so that a traceback with local variables does not show it
            raise BadInput(f"a key is given as Secret(...), not as {kind}; nothing of it is shown here")
        if not self._wire.is_private:
            raise BadInput("a key is not sent over plain HTTP to another machine; use https://, or set it there")
        given: dict[str, Json] = {"name": name, "secret": secret.reveal(), "op": op, "by": by}
        return await _call_remote(self._wire, "keys.set", given)

    @property
    def cooling(self) -> RemoteGroup:
        """The keys and models on cooldown after a failure."""
        return RemoteGroup(self._wire, "keys.cooling")


# -- the workspace ---------------------------------------------------------------------------------------------------


class RemoteWorkspace:
    """A workspace on a server. It has the methods and groups of `Workspace` that can be called from afar; a method that
    works only on the store itself raises `BadInput`."""

    lasting: Final = True

    def __init__(self, wire: RemoteWire, name: str = "") -> None:
        self._wire = wire
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.where}>"

    def __getattr__(self, name: str) -> RemoteGroup:
        """Return a group that has no property here, such as `hooks`. Its methods raise `BadInput` unless the server has
        them."""
        if name.startswith("_") or not hasattr(Workspace, name):
            raise AttributeError(f"a workspace has no {name!r}")
        return RemoteGroup(self._wire, name)

    @property
    def where(self) -> str:
        """The address of the server."""
        return self._wire.where

    @cached_property
    def tasks(self) -> WorkspaceTasks:
        """Its tasks and runs: list, cancel, retry."""
        return cast("WorkspaceTasks", RemoteTasks(self._wire, "tasks"))

    @cached_property
    def journal(self) -> WorkspaceJournal:
        """Its events: read and follow them."""
        return cast("WorkspaceJournal", RemoteJournal(self._wire, "journal"))

    @cached_property
    def money(self) -> WorkspaceMoney:
        """Its account: grant money, see the spending, reconcile calls."""
        return cast("WorkspaceMoney", RemoteGroup(self._wire, "money"))

    @cached_property
    def questions(self) -> WorkspaceQuestions:
        """The questions of agents to people: list, approve, reject, answer."""
        return cast("WorkspaceQuestions", RemoteQuestions(self._wire, "questions"))

    @cached_property
    def agents(self) -> WorkspaceAgents:
        """Its agents and workers: list, find, trip, reset."""
        return cast("WorkspaceAgents", RemoteGroup(self._wire, "agents"))

    @cached_property
    def context(self) -> WorkspaceContext:
        """Its shared context."""
        return cast("WorkspaceContext", RemoteContext(self._wire, "context"))

    @cached_property
    def artifacts(self) -> WorkspaceArtifacts:
        """Its files: save, open and list them."""
        return cast("WorkspaceArtifacts", RemoteArtifacts(self._wire, "artifacts"))

    @cached_property
    def keys(self) -> KeyRing:
        """The names of its provider keys, and cooldowns of keys and models."""
        return cast("KeyRing", RemoteKeys(self._wire, "keys"))

    @cached_property
    def schedules(self) -> WorkspaceSchedules:
        """Its schedules."""
        return cast("WorkspaceSchedules", RemoteGroup(self._wire, "schedules"))

    @cached_property
    def looks(self) -> WorkspaceLooks:
        """Lists and details of the workspace, as commands and dashboards show them."""
        return cast("WorkspaceLooks", RemoteGroup(self._wire, "looks"))

    @keywords(Submitting)
    async def submit(self, agent: str, task: str = "", **how: Unpack[Submitting]) -> Task:
        """Queue a task, and return its handle. If the answer is lost, the request is repeated and is the same task."""
        return await self._call_for_task("submit", agent, task, **how)

    @keywords(SubmittingPlan)
    async def submit_plan(self, plan: Plan, **how: Unpack[SubmittingPlan]) -> Task:
        """Queue a plan, and return its handle."""
        return await self._call_for_task("submit_plan", plan, **how)

    @keywords(SubmittingPlan)
    async def submit_team(
        self, goal: str, coordinator: str, *, plan: Plan | None = None, **how: Unpack[SubmittingPlan]
    ) -> Task:
        """Queue a goal for a team, and return its handle."""
        return await self._call_for_task("submit_team", goal, coordinator, plan=plan, **how)

    async def fork(
        self,
        run: str,
        at: int | None = None,
        *,
        task: str | None = None,
        data: object = ...,
        answer: object = ...,
        op: str = "",
        by: str = "",
    ) -> Task:
        """Start a new run that continues another one from one of its events. Return the handle of its first task; see
        `Workspace.fork`."""
        given = {"data": data, "answer": answer}
        other = {name: value for name, value in given.items() if value is not ...}
        return await self._call_for_task("fork", run, at, task=task, op=op, by=by, **other)

    async def tree(self, run: str) -> Node | None:
        """Return a run as a tree of its tasks, or None if there is no such run."""
        return tree(await self.journal.history(run=run))

    async def wait_all(self, run: str) -> None:
        """Wait until all tasks that a run submitted or spawned have ended."""
        async with self.journal.follow(after=0, run=id_of(run, "a run's id")) as follow:
            while not await self.looks.has_ended(run, run=True):
                await follow.next(LONG_POLL)

    @keywords(StatsFilter)
    async def stats(self, **which: Unpack[StatsFilter]) -> Stats:
        """Return statistics of agents, durations, handoffs and refusals."""
        return await self._call("stats", **which)

    @keywords(StatsFilter)
    async def edges(self, **which: Unpack[StatsFilter]) -> list[AskEdge]:
        """Return the graph of who asks whom; see `Workspace.edges`."""
        return await self._call("edges", **which)

    async def prune(self, days: float, *, op: str = "", by: str = "", told: Callable[[int], None] | None = None) -> int:
        """Delete the runs that ended more than `days` ago. Return their number; `told` is called with it."""
        number = await self._call("prune", days, op=op, by=by)
        if told is not None:
            told(number)
        return number

    async def check(self) -> Health:
        """Check the database, and the journal, tables and files of this workspace. Return the findings."""
        return await self._call("check")

    def close(self) -> None:
        """Close the connections to the server."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _call_for_task(self, name: str, *words: object, **named: object) -> Task:
        return _handle(self._wire, await self._call(name, *words, **named))

    async def _call(self, name: str, *words: object, **named: object) -> Any:
        return await _call_remote(self._wire, name, _arguments_json(name, words, named))


AnyWorkspace: TypeAlias = Workspace | RemoteWorkspace

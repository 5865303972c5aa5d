"""Scripted models that insist: each goes on with what it wants, whatever it is told."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from remit import Runtime
from remit.core.lifecycle import BEGINNINGS, ENDS
from remit.settings import Loops, Policy
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server
from remit.types import Event, Outcome

Plays = Callable[[str, ModelRequest], ModelReply]  # what an agent says to a request


class Numbers:
    """Counts on. A test that begins again at zero does not depend on the tests before it."""

    def __init__(self) -> None:
        self._next = 0

    def begin_again(self, at: int = 0) -> None:
        self._next = at

    def __next__(self) -> int:
        self._next += 1
        return self._next - 1


NUMBERS = Numbers()
LONG = "a long answer that is the same each and every time"


class Played(NamedTuple):
    """What came of it: how often models were asked, how the run ended, and all that happened."""

    requests: int
    outcome: Outcome
    events: list[Event]
    said: str

    def told(self) -> int:
        return self.said.count("nothing new came of what you did; at") + self.said.count("nothing new comes of it: it")

    def refused(self) -> int:
        return sum(event.data["outcome"] == "refused" for event in self.of("tool.done"))

    def stopped(self) -> int:
        return sum("strikes" in event.data for event in self.events)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]


async def played(
    plays: Plays,
    team: Mapping[str, Sequence[str]],
    *,
    tools: Sequence[Any] = (),
    loops: Loops | None = None,
    iterations: int = 100,
    deny: Sequence[str] = (),
    program: Callable[[Runtime], str] | None = None,
) -> Played:
    """Run a team of native model agents, each with whom it may ask, until nothing of it is open any more."""
    names = list(team)

    def script(request: ModelRequest) -> ModelReply:
        said = json.dumps(request.body)
        return plays(next(name for name in names if f"You are {name}." in said), request)

    policy = Policy() if loops is None else Policy(loops=loops)
    async with model_server(script) as server, Runtime(policy=policy) as rt:
        # Of all clients Anthropic's takes the least time for a long conversation, and the same is held of each dialect.
        how: Any = {"model": "anthropic:claude-x", "keys": ["KEY_A"], "base_url": server.url}
        for name, asks in team.items():
            own: Any = {"tools": list(tools), "deny": list(deny)} if tools else {}
            rt.model_agent(name, instructions=f"You are {name}.", asks=list(asks), iterations=iterations, **own, **how)
        first = names[0] if program is None else program(rt)
        outcome = await rt.outcome(first, "go")
        events = await until_nothing_is_open(rt)
        said = json.dumps([request.messages[-1] for request in server.requests])
        return Played(len(server.requests), outcome, events, said)


async def until_nothing_is_open(rt: Runtime) -> list[Event]:
    events: list[Event] = []
    open_: set[str] = set()
    async for some in rt.workspace.journal.follow(after=0):
        events += some
        open_ |= {event.task for event in some if event.kind in BEGINNINGS}
        open_ -= {event.task for event in some if event.kind in ENDS}
        if not open_:
            break
    return events


def results(request: ModelRequest) -> list[str]:
    """What came of the tools so far, as the model of one of these agents is told."""
    parts = [
        part for message in request.messages if isinstance(message["content"], list) for part in message["content"]
    ]
    came = [part["content"] for part in parts if part["type"] == "tool_result"]
    return [one if isinstance(one, str) else "".join(piece["text"] for piece in one) for one in came]


def asks(verb: str, whom: Mapping[str, str], text: Callable[[], str]) -> Plays:
    """Each asks another, on and on."""
    return lambda me, _request: Calls(verb, {"agent": whom[me], "task": text()})


def hands(whom: Mapping[str, str], text: Callable[[], str] | None = None) -> Plays:
    def plays(me: str, _request: ModelRequest) -> ModelReply:
        update = {} if text is None else {"update": {"context": {"n": text()}}}
        return Calls("handoff", {"agent": whom[me], **update})

    return plays


def star(text: Callable[[], str], answer: Callable[[], str], workers: str = "b") -> Plays:
    """One asks others in turn, who answer."""
    turns = itertools.cycle(workers)

    def plays(me: str, _request: ModelRequest) -> ModelReply:
        return Calls("call_agent", {"agent": next(turns), "task": text()}) if me == "a" else Says(answer())

    return plays

"""A caller from outside as a turn without a task: what its card allows, and the tasks that it has started."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from remit.core.allow import ANY
from remit.core.bounds import TOP, Bounds
from remit.core.card import Card
from remit.core.entry import Entry
from remit.core.lifecycle import Outcome
from remit.core.match import BEST, Match, unclear
from remit.core.question import Inquiry, Reply
from remit.core.trust import UNTRUSTED
from remit.core.values import NAME_LIMIT
from remit.engine.people import inquiry
from remit.engine.queue.task import Status, Task
from remit.errors import NotFound, Refused
from remit.ports import Clock, View
from remit.runtime.workspace import Workspace, opening_of

_LISTED: Final = 100  # tasks whose questions are listed


@dataclass(frozen=True, slots=True)
class Outsider:
    """A caller outside remit. `card` is the card that it acts as, "" for the owner of the workspace. `session` is the
    session of everything that it starts, `bounds` limit that, and `by` is its name in the journal. `answers` says
    whether the person at the client may answer questions of its tasks."""

    workspace: Workspace
    session: str
    card: str = ""
    bounds: Bounds = TOP
    by: str = ""
    answers: bool = True

    async def turn(self) -> "OutsideTurn":
        """Return the verbs that this caller can use, with the agents that exist now. Raise `NotFound` if its card is
        gone."""
        cards = {card.name: card for card in await self.workspace.agents.list()}
        own = cards.get(self.card)
        if self.card and own is None:
            raise NotFound(f"there is no card '{self.card}' in this workspace; the worker that has it publishes it")
        return OutsideTurn(self, own, _askable(cards, own, self.bounds))

    async def status(self, task: str) -> Status:
        """Return the state of a task that this caller started; for the owner, of any task. Raise `NotFound` for any
        other, with the same text whether or not the task exists."""
        if 0 < len(task) <= NAME_LIMIT and task.isprintable():
            try:
                status = await self.workspace.tasks.get(task).status()
            except NotFound:
                status = None
            if status is not None and (not self.card or self._started(status)):
                return status
        raise NotFound("you have started no task with this id; call_agent_async returns the id of the task")

    def _started(self, status: Status) -> bool:
        return not status.parent and (status.session, status.asker) == (self.session, self.card)

    async def questions(self, task: str = "") -> list[Inquiry]:
        """Return the open questions of a task of this caller, or of all its tasks, the first asked first."""
        if task:
            return await self.questions_in([(await self.status(task)).run])
        if not self.card:
            return await self.workspace.questions.list()
        own = await self.workspace.tasks.list(state="open", limit=_LISTED, session=self.session, asker=self.card)
        return await self.questions_in([one.run for one in own if self._started(one)])

    async def questions_in(self, runs: Iterable[str]) -> list[Inquiry]:
        """Return the open questions of these runs, the first asked first."""

        def look(view: View) -> list[Inquiry]:
            return [inquiry(view, one) for run in runs for one in view.questions_open_in(run)]

        return sorted(await opening_of(self.workspace).records.read(look), key=lambda one: one.seq)

    async def decide(self, question: str, reply: Reply) -> None:
        """Record the answer of the person at the client. Raise `Conflict` if somebody was first, `BadInput` if it does
        not fit."""
        await opening_of(self.workspace).engine.services.questions.answers.answer(question, reply)

    async def seal(self, purpose: bytes, tasks: Iterable[str]) -> bytes:
        """Return bytes to derive a key from, always the same for these tasks. If the journal has a key, they depend on
        `purpose`, and only a server with the journal's key can compute them. Raise `NotFound` if the caller did not
        start one of the tasks."""
        began = [(await self.status(task)).began for task in tasks]
        opening = opening_of(self.workspace)
        first = await opening.records.read(lambda view: [view.event(seq) for seq in began])
        hashes = "".join(event.hash for event in first if event is not None).encode()
        key = opening.database.key
        return hashes if key is None else key.seal(purpose + hashes).encode()

    @property
    def clock(self) -> Clock:
        return opening_of(self.workspace).clock


def _askable(cards: dict[str, Card], own: Card | None, bounds: Bounds) -> list[Card]:
    """Return the cards that a caller may ask, by name."""
    names = frozenset(cards)
    for allowed in (ANY if own is None else own.asks, bounds.agents):
        names = names if allowed is ANY else names & allowed
    return [cards[name] for name in sorted(names - {own.name if own is not None else ""})]


class OutsideTurn:
    """The part of a turn that a caller without a task has: find agents, start tasks, follow them, and use shared
    context."""

    def __init__(self, outsider: Outsider, card: Card | None, cards: list[Card]) -> None:
        self.outsider = outsider
        self._card = card
        self._cards = cards

    @property
    def agent(self) -> str:
        return self.outsider.card

    @property
    def context(self) -> "OutsideContext":
        return OutsideContext(self.outsider)

    def agents(self) -> list[Card]:
        """Return the cards of the agents that this caller may ask, by name."""
        return self._cards

    async def find(self, capability: str, *, limit: int = BEST) -> list[Match]:
        """Return the agents that match, best first."""
        finder = opening_of(self.outsider.workspace).engine.finder
        return (await finder.find_in(capability, self._cards))[:limit]

    async def submit(self, to: str | None = None, task: str = "", *, capability: str = "", **how: Any) -> Task:
        """Start a run in the name of the caller, and return its first task. Without `to`, the best agent for
        `capability` gets it. Raise `Refused` if no match is clear."""
        outsider = self.outsider
        agent = to or await self._chosen(capability)
        how.pop("announce", None)  # a caller without a task has no inbox
        how = {"sees": (), "writes": (), **how}  # the owner would pass on everything
        return await outsider.workspace.submit(
            agent, task, asker=outsider.card, session=outsider.session, by=outsider.by, ceiling=outsider.bounds, **how
        )

    async def _chosen(self, capability: str) -> str:
        matches = await self.find(capability)
        chosen = next((match for match in matches if match.chosen), None)
        if chosen is None:
            raise Refused(unclear(capability, matches, self._cards), rule="unknown")
        return chosen.card.name

    def submitted(self, task: str) -> "OutsideTask":
        """Return the handle of a task that this caller started."""
        return OutsideTask(self.outsider, task)


class OutsideTask:
    """A task that a caller started."""

    def __init__(self, outsider: Outsider, task: str) -> None:
        self._outsider = outsider
        self.id = task

    async def status(self) -> Status:
        return await self._outsider.status(self.id)

    async def wait(self, timeout: float | None = None) -> Outcome:  # noqa: ASYNC109 - the task outlives it
        task = await self._own()
        return await task.wait(timeout)

    async def cancel(self, why: str) -> int:
        await self._outsider.status(self.id)
        return await self._outsider.workspace.tasks.cancel(self.id, why, by=self._outsider.by)

    async def _own(self) -> Task:
        return self._outsider.workspace.tasks.get((await self._outsider.status(self.id)).id)


class OutsideContext:
    """Shared context as a caller reads and writes it: everything that it writes is untrusted."""

    def __init__(self, outsider: Outsider) -> None:
        session, card, bounds, by = outsider.session, outsider.card, outsider.bounds, outsider.by
        self._context = outsider.workspace.context(session, asker=card, ceiling=bounds, by=by)

    async def entry(self, namespace: str, key: str) -> Entry | None:
        return await self._context.entry(namespace, key)

    async def query(self, namespace: str, limit: int, *, prefix: str | None = None) -> list[Entry]:
        return await self._context.query(namespace, limit, prefix=prefix)

    async def set(self, namespace: str, key: str, value: object) -> int:
        return await self._context.set(namespace, key, value, trust=UNTRUSTED)

    async def set_with_extension(self, namespace: str, key: str, value: object) -> int:
        return await self.set(namespace, key, value)  # reading does not extend the life of untrusted entries

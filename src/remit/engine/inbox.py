"""Messages: point to point, within a run, delivered once."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from anyio.lowlevel import checkpoint

from remit.core.allow import has
from remit.core.entry import Message
from remit.core.kinds.sharing import message_sent, messages_taken
from remit.core.trust import Trust
from remit.core.values import TASK_LIMIT, Json, canonical, plain
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.errors import Refused
from remit.ports import Decide, Decision, View

TEXT_BYTES = 16_384


class Inbox:
    """Sends and takes messages. At most `most` messages of one sender wait for one reader, and one read returns at most
    as many."""

    def __init__(self, ground: Ground, most: int) -> None:
        self.ground = ground
        self._most = most

    async def send(self, live: LiveTask, to: str, text: str) -> None:
        live.must_be_at_work()
        name = canonical(to)
        plain(text, "a message", TASK_LIMIT)
        self._may_write_to(live, name)
        if (size := len(text.encode())) > TEXT_BYTES:
            figures = f"has {size:,} bytes, and at most {TEXT_BYTES:,} are allowed"
            raise Refused(f"the message to '{name}' {figures}; say less, or write an entry", rule="message-size")
        id_, now = self.ground.ids.new(), self.ground.clock.now()
        message = Message(id_, live.remit.session, live.remit.holder, name, text, now, trust=live.says)
        sent = message_sent(message, live.place)

        def decide(view: View) -> Decision[bool]:
            full = view.unread(live.remit.root, name, message.sender) >= self._most
            return Decision(full, () if full else (sent,))

        # The same operation id in every try, so that a message is sent once.
        if (await self.ground.store.tx(live.operations.ids("send", name, text)[-1], live.guarded(decide))).answer:
            waiting = f"{self._most} of {self._most} messages of '{message.sender}' wait for '{name}'"
            # Yield, so that an endless loop of refused calls can be cancelled and does not block the event loop.
            await checkpoint()
            raise Refused(f"{waiting} already; try again when it has read some", rule="inbox-full")

    async def take(self, live: LiveTask, *, at: str = "", fresh: bool = True) -> list[Message]:
        """Return the new messages in the inbox of a task's holder; each message is delivered once. `at` is the
        operation id of a position in a conversation, if the messages are for one. Without `fresh`, take no new
        messages: return only those that an earlier attempt took at this place."""
        remit, now = live.remit, self.ground.clock.now()
        session, agent = remit.session, remit.holder

        def look(view: View) -> list[Message]:
            live.must_hold(view)
            return view.waiting(remit.root, agent, live.attempt.origin or remit.id, self._most)

        def decide(view: View) -> Decision[Json]:
            waiting = look(view)
            events = (messages_taken([message.id for message in waiting], agent, live.place, now),) if waiting else ()
            rows: Json = [[one.id, one.sender, one.text, one.sent_at, one.about, one.trust] for one in waiting]
            return Decision(rows, events)

        rows = cast(
            "list[tuple[str, str, str, int, str, Trust]]", await self._take(live, look, decide, at, fresh=fresh)
        )
        messages = [
            Message(id_, session, sender, agent, text, sent_at, remit.id if about else "", about, trust)
            for id_, sender, text, sent_at, about, trust in rows
        ]
        for message in messages:
            live.take(message.trust)
            live.receipt.message(message.sender, message.text, message.trust)
        return messages

    async def _take(
        self, live: LiveTask, look: Callable[[View], list[Message]], decide: Decide[Json], at: str, *, fresh: bool
    ) -> Json:
        """Take the new messages and return them as rows. In a rerun, return the messages that an earlier attempt took
        at this place. Look for messages with a read first, because usually there are none and a read is cheaper than a
        transaction."""
        ops = [at] if at else live.operations.ids("inbox")

        def taken(view: View) -> tuple[Json] | None:
            live.must_hold(view)
            return next((done for op in ops if (done := view.done(op)) is not None), None)

        if live.attempt.is_rerun and (before := await self.ground.store.read(taken)) is not None:
            return before[0]
        if not fresh or not await self.ground.store.read(look):
            return []
        return (await self.ground.store.tx(ops[0], decide)).answer

    async def peek(self, live: LiveTask, agent: str) -> list[Message]:
        """Return the messages for a member whose turn is about to start; they are taken when the turn is admitted."""

        def look(view: View) -> list[Message]:
            live.must_hold(view)
            return view.waiting(live.remit.root, agent, "", self._most)

        return await self.ground.store.read(look)

    def _may_write_to(self, live: LiveTask, name: str) -> None:
        """Raise `Refused` unless the recipient is an asker, a member of the team, or an agent that the sender may
        delegate to. The refusal does not reveal whether an agent of another name exists."""
        holder, whom = live.remit.holder, "its askers and to those it may ask"
        unknown = self.ground.directory.get(name) is None
        if live.team is not None:
            may, whom = name in live.team, "the members of its team"
        else:
            may = has(live.card.asks, name) and has(live.remit.bounds.agents, name)
        if name == holder or not (may or name in live.remit.names):
            sentence = f"'{holder}' may send messages to {whom}, not to '{name}'"
            raise Refused(sentence, rule="unknown" if unknown else "not-allowed")
        if unknown:
            raise Refused(f"there is no agent '{name}' to send a message to", rule="unknown")

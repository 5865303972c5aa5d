"""Clauses on agents: breakers, published cards, messages that each reader gets once and in order; on provider keys,
which are not part of the history; and on the keys of callers from outside, which are."""

from typing import Final

from remit.core.breaker import CLOSED, Breaker
from remit.core.card import Card
from remit.core.entry import Draft, Message
from remit.core.events import Place, Unsealed
from remit.core.identity import AccessRow
from remit.core.kinds.models import cooling_set
from remit.core.kinds.sharing import messages_taken
from remit.core.kinds.workspace import (
    access_made,
    access_revoked,
    breaker_set,
    card_withdrawn,
    cards_published,
    key_removed,
    key_set,
)
from remit.core.recovery import Cooling
from remit.core.remit import place
from remit.core.scope import Scope
from remit.core.values import Json
from remit.ports import AccessUse, Database, Decide, Decision, KeyChange, KeyInfo, KeyRow, Sealed, Store, View
from remit.testing.clauses.making import (
    NOW,
    answer_or_error,
    append,
    ending,
    equal,
    first_remit,
    journal,
    look,
    must,
    putting,
    sending,
    sound,
    starting,
)


async def a_key_that_rests_is_known_until_it_has_answered(database: Database) -> None:
    store = database.store("one")
    rests = Cooling(2, NOW + 60, "rate-limit", NOW)
    await append(store, "rest", cooling_set("key:A", rests, NOW), cooling_set("model:m", rests, NOW + 1))
    await append(database.store("two"), "rest", cooling_set("key:B", rests, NOW))
    equal(await look(store, lambda view: view.coolings()), {"key:A": rests, "model:m": rests}, "those that rest")
    equal(await look(store, lambda view: view.cooling_set_at("model:m")), NOW + 1, "when it was put down")
    await append(store, "again", cooling_set("key:A", rests._replace(failures=3), NOW + 2))
    await append(store, "answer", cooling_set("model:m", Cooling(used=NOW + 3), NOW + 3))
    within = (await store.tx("look", lambda view: Decision([*view.coolings()["key:A"]]))).answer
    equal(within, [3, NOW + 60, "rate-limit", NOW], "one that rests, within a decision")
    equal([*await look(store, lambda view: view.coolings())], ["key:A"], "those that have not answered since")
    equal(await look(store, lambda view: view.cooling_set_at("model:m")), None, "one that has answered")


async def what_was_not_there_is_found_once_it_is(database: Database) -> None:
    """A store may cache that something does not exist, but must notice when it does."""
    store = database.store("one")
    remit, other = first_remit("reads", session="s1"), first_remit("other", session="s1")
    await store.tx("start", starting(remit, other))
    here, notes = place(remit), Scope("notes")

    async def waiting(task: str) -> list[str]:
        found = await look(store, lambda view: view.waiting(remit.root, "lead", task, 9))
        return [message.text for message in found]

    for _ in range(2):
        equal(await waiting(remit.id), [], "messages that nobody sent")
        equal(await look(store, lambda view: view.recent(notes, NOW, 9)), [], "entries that nobody wrote")
        equal(await look(store, lambda view: view.coolings()), {}, "keys that never failed")
        equal(await look(store, lambda view: view.secret("openai")), None, "a key that nobody put in")
    await store.tx("other", sending(Message("m0", "s1", "helper", "lead", "not for it", NOW), place(other)))
    equal(await waiting(remit.id), [], "messages of another run")
    await store.tx("send", sending(Message("m1", "s1", "helper", "lead", "hello", NOW), here))
    equal(await waiting(remit.id), ["hello"], "a message, once it was sent")
    announced = Message("m2", "s1", "helper", "lead", "done", NOW, remit.id, "part")
    await store.tx("announce", sending(announced, place(other)))
    equal(await waiting(remit.id), ["hello", "done"], "an announcement, from another run")
    await store.tx("write", putting(Draft("notes", "a", "text")))
    equal(
        [one.key for one in await look(store, lambda view: view.recent(notes, NOW, 9))], ["a"], "an entry, once written"
    )


async def a_breaker_is_kept_as_it_was_last_set(database: Database) -> None:
    """The last setting counts, for readers and for decisions."""
    store = database.store("one")
    equal(await look(store, lambda view: view.breaker("helper")), CLOSED, "the breaker of an agent that never failed")
    for number, breaker in enumerate(
        (Breaker("open", 3, NOW + 5, "", "why"), Breaker("half-open", 3, NOW + 9, "t", "why"))
    ):
        await append(store, f"set {number}", breaker_set("helper", breaker, Place(), NOW + number))
        equal(await look(store, lambda view: view.breaker("helper")), breaker, "a breaker as it was last set")
        equal(await look(store, lambda view: view.breaker_set_at("helper")), NOW + number, "when it was set")
        within = (await store.tx("look", lambda view: Decision([*view.breaker("helper")]))).answer
        equal(within, [*breaker], "a breaker as it was last set, within a decision")
        expected = [("helper", breaker, NOW + number)]
        equal(await look(store, lambda view: view.breakers()), expected, "all breakers, with the time they were set")
    await sound(store)


async def a_card_is_kept_as_it_was_last_published(database: Database) -> None:
    store = database.store("one")
    equal(await look(store, lambda view: view.card("helper")), None, "a card that nobody published")
    equal(await look(store, lambda view: view.cards()), [], "the cards, where nobody published any")
    full = Card(
        "helper",
        "a role, ü \U0001f600 'quoted'",
        can=("write code", "review"),
        asks=["lead"],
        reads=["notes", "board"],
        writes=["notes"],
        tools=["read_file"],
        concurrency=3,
    )
    plain, open_ = Card("anna"), Card("zoe", asks="*", reads="*", tools="*")
    await append(store, "publish", cards_published([full, open_, plain], NOW))
    await append(store, "nothing", cards_published([], NOW + 1))
    equal(await look(store, lambda view: view.cards()), [(plain, NOW), (full, NOW), (open_, NOW)], "the cards, by name")
    changed = Card("helper", "another role")
    await append(store, "again", cards_published([changed], NOW + 2))
    equal(await look(store, lambda view: view.card("helper")), changed, "a card as it was last published")
    equal(await look(store, lambda view: view.card("zoe")), open_, "a card that was published once")
    expected = [(plain, NOW), (changed, NOW + 2), (open_, NOW)]
    equal(await look(store, lambda view: view.cards()), expected, "the cards with the time they were published")
    within = (await store.tx("look", lambda view: Decision([card.role for card, _ in view.cards()]))).answer
    equal(within, ["", "another role", ""], "the cards, within a decision")
    await append(store, "withdraw", card_withdrawn("zoe", "", NOW + 3), card_withdrawn("nobody", "", NOW + 3))
    equal(await look(store, lambda view: view.card("zoe")), None, "a card that was withdrawn")
    equal(await look(store, lambda view: view.cards()), expected[:2], "the cards that were not withdrawn")
    await append(store, "back", cards_published([open_], NOW + 4))
    equal(await look(store, lambda view: view.card("zoe")), open_, "a card that was published again")
    await sound(store)


async def messages_wait_until_they_are_taken(database: Database) -> None:
    """Messages wait for one agent in one run, in the order in which they were sent. A message that was taken no longer
    waits."""
    store = database.store("one")
    mail = [Message(f"m{9 - n}", "s", "lead", "helper", f"text {n} ü%'\U0001f600", NOW + n % 2) for n in range(4)]
    others = [Message("o1", "s", "lead", "another", "x", NOW), Message("o2", "t", "lead", "helper", "y", NOW)]
    for message in (*mail, *others):
        await store.tx(message.id, sending(message, Place(f"run of {message.session}")))
    equal(await _waiting(store, 10), mail, "messages in the order they were sent")
    equal(await _waiting(store, 2), mail[:2], "the first two messages")
    equal(
        await store.read(lambda view: view.waiting("run of s", "another", "", 10)),
        others[:1],
        "messages of another agent",
    )
    equal(
        await store.read(lambda view: view.waiting("run of t", "helper", "", 10)),
        others[1:],
        "messages of another run",
    )

    def take(view: View) -> Decision[Json]:
        ids = [message.id for message in view.waiting("run of s", "helper", "", 2)]
        return Decision(list(ids), (messages_taken(ids, "helper", Place("run", "s", "task"), NOW),))

    equal((await store.tx("take", take)).answer, ["m9", "m8"], "the messages taken")
    equal(await _waiting(store, 10), mail[2:], "what is taken waits no more")
    equal(
        (await store.tx("take", take)).answer,
        ["m9", "m8"],
        "taking again under the same operation gives the same messages",
    )
    equal(await _waiting(store, 10), mail[2:], "taking again under the same operation takes nothing more")
    await sound(store)


async def messages_are_counted_by_sender_without_reading_them(database: Database) -> None:
    store = database.store("one")
    for number, sender in enumerate(("lead", "writer", "lead", "lead")):
        letter = Message(f"m{number}", "s", sender, "helper", "text", NOW)
        await store.tx(letter.id, sending(letter, Place("run of s")))
    news = Message("news", "s", "lead", "helper", "text", NOW, "root", "part")
    await store.tx(news.id, sending(news, Place("run of s")))
    await append(store, "take", messages_taken(["m0"], "helper", Place("run of s", "s", "task"), NOW))

    def counted(view: View) -> list[int]:
        return [view.unread("run of s", "helper", sender) for sender in ("lead", "writer", "nobody")]

    equal(await look(store, counted), [2, 1, 0], "what waits of each sender, announcements apart")
    equal(await look(store, lambda view: view.unread("run of t", "helper", "lead")), 0, "what waits in another run")
    still = await look(store, lambda view: view.still_waiting("run of s", "helper", 2))
    equal(still, ["m1", "m2"], "the ids of the first that wait")
    await sound(store)


async def announcements_reach_the_task_that_asked(database: Database) -> None:
    """A result message reaches only the task that asked. If that task has ended, the message is listed as
    undelivered."""
    store = database.store("one")
    root = first_remit("root", session="s")
    await store.tx("start", starting(root))
    news = [Message(f"news{n}", "s", "helper", "lead", f"text {n}", NOW, "root", f"part{n}") for n in range(2)]
    letter = Message("letter", "s", "helper", "lead", "for any of its tasks", NOW)
    for message in (*news, letter):
        await store.tx(message.id, sending(message, place(root)))
    for task, expected in (("root", [*news, letter]), ("other", [letter]), ("", [letter])):
        listed = await look(store, lambda view, task=task: view.waiting("root", "lead", task, 10))
        equal(listed, expected, f"what waits for {task!r}")
    equal(await look(store, lambda view: view.orphans(10)), [], "no announcement is an orphan while its reader lives")
    await append(store, "take", messages_taken(["news0"], "lead", place(root), NOW))
    await store.tx("end", ending(root))
    equal(await look(store, lambda view: view.orphans(10)), news[1:], "announcements that nobody will read")
    await sound(store)


NO_KEYS: Final[tuple[KeyRow | None, list[KeyInfo]]] = (None, [])


def _keys(view: View) -> tuple[KeyRow | None, list[KeyInfo]]:
    return view.secret("openai"), view.secrets()


def _keeping(*rows: KeyRow) -> Decide[Json]:
    told = [key_set(row.name, row.sealed.key_id, "ann", row.set_at) for row in rows]
    return lambda _view: Decision(None, told, besides=KeyChange(puts=rows))


async def a_key_is_kept_as_it_was_last_sealed_and_is_no_event(database: Database) -> None:
    """There is one row for each name. Events report that a key was set or removed, not the key itself."""
    store = database.store("one")
    equal(await look(store, _keys), NO_KEYS, "keys where there are none")
    zed, first = (KeyRow(name, Sealed("m1", f"first of {name} ü"), NOW) for name in ("zed", "openai"))
    again = KeyRow("openai", Sealed("m2", "again " * 2_000), NOW + 1)
    await store.tx("put", _keeping(zed, first))
    await store.tx("again", _keeping(again))
    for repeated in ("put", "again"):
        await store.tx(repeated, _keeping(first._replace(set_at=NOW + 9)))
    equal(await look(store, lambda view: view.secret("openai")), again, "a key as it was last sealed")
    expected = [KeyInfo("openai", "m2", NOW + 1), KeyInfo("zed", "m1", NOW)]
    equal(await look(store, lambda view: view.secrets()), expected, "what is told of the keys, by name")
    _, within = await store.tx("look", lambda view: Decision(None, aside=(view.secret("zed"), view.secrets())))
    equal(within, (zed, expected), "the keys, within a decision")
    equal(await look(database.store("two"), _keys), NO_KEYS, "the keys of another workspace")
    await store.tx("drop", lambda _: Decision(None, (key_removed("zed", "", NOW),), besides=KeyChange(drops=("zed",))))
    equal(await look(store, lambda view: view.secret("zed")), None, "a key that was removed")
    equal([event.kind for event in await journal(store)], ["key.set"] * 3 + ["key.removed"], "what tells of keys")
    told = " ".join(event.text for event in await journal(store))
    must("first" not in told and "again" not in told, f"a sealed key is in no event: {told}")
    await sound(store)


async def keys_change_with_their_events_or_not_at_all(database: Database) -> None:
    store = database.store("one")
    kept, other = KeyRow("openai", Sealed("m1", "kept"), NOW), KeyRow("openai", Sealed("m2", "not kept"), NOW)
    await store.tx("put", _keeping(kept))

    def fails(_view: View) -> Decision[Json]:
        begun = (key_set("openai", "m2", "", NOW), Unsealed("task.started", NOW, {"nothing": "of what it needs"}))
        return Decision(None, begun, besides=KeyChange(puts=(other,)))

    answer = await answer_or_error(store, "fails", fails)
    must(isinstance(answer, Exception), "an event that no table can take is refused")
    await store.tx("no event", lambda _: Decision(None, besides=KeyChange(drops=("openai",))))
    equal(await look(store, lambda view: view.secret("openai")), kept, "a key after changes that were not written")
    await append(store, "more", key_removed("another", "", NOW))  # the rolled-back operation removed nothing
    equal(len(await journal(store)), 2, "the number of events")
    equal(await look(store, lambda view: view.secret("openai")), kept, "a key after more was written")
    await sound(store)


async def an_access_leads_to_its_workspace_and_stays_when_it_is_revoked(database: Database) -> None:
    """The id of an access key is enough to find its workspace, unless two workspaces have it. The time of its use is
    written without an event."""
    one, two = database.store("one"), database.store("two")
    first = AccessRow("a", "of a", "ci", "run approve", "lead", '{"depth":2}', NOW + 5, NOW, "ann", None, "")
    other = AccessRow("b", "of b", "ops", "admin", "", "{}", None, NOW + 1, "", None, "")
    await append(one, "make", access_made(first), access_made(other._replace(id="c")))
    await append(two, "make", access_made(other))
    equal(await database.opened_by("a"), "one", "the workspace of an access")
    equal(await database.opened_by("b"), "two", "the workspace of another access")
    equal(await database.opened_by("x"), None, "the workspace of an access that was never made")
    equal(await look(one, lambda view: view.access("a")), (first, None), "an access, never used")
    equal(await look(one, lambda view: view.access("b")), None, "an access of another workspace, asked for in this one")
    await append(two, "copy", access_made(other._replace(id="c")))
    equal(await database.opened_by("c"), None, "an access that two workspaces have opens neither")
    await append(one, "revoke", access_revoked("a", "ci", "bob", NOW + 3))
    revoked = first._replace(revoked_at=NOW + 3, revoked_by="bob")
    equal(await look(one, lambda view: view.access("a")), (revoked, None), "an access after it was revoked")
    await one.tx("use", lambda _: Decision(None, beat=AccessUse("c", NOW + 9)))
    used = [(row.id, used_at) for row, used_at in await look(one, lambda view: view.accesses())]
    equal(used, [("a", None), ("c", NOW + 9)], "when each was used last, by id")
    equal(len(await journal(one)), 3, "the number of events")
    await sound(one)
    await sound(two)


async def _waiting(store: Store, limit: int) -> list[Message]:
    return await store.read(lambda view: view.waiting("run of s", "helper", "", limit))


CLAUSES: Final = (
    a_breaker_is_kept_as_it_was_last_set,
    what_was_not_there_is_found_once_it_is,
    a_key_that_rests_is_known_until_it_has_answered,
    a_card_is_kept_as_it_was_last_published,
    messages_wait_until_they_are_taken,
    messages_are_counted_by_sender_without_reading_them,
    announcements_reach_the_task_that_asked,
    a_key_is_kept_as_it_was_last_sealed_and_is_no_event,
    keys_change_with_their_events_or_not_at_all,
    an_access_leads_to_its_workspace_and_stays_when_it_is_revoked,
)

"""What events tell of one entry: its versions, and who read them."""

from core.make import NOW, entry, first_remit, journal
from remit.core.entry import Writer
from remit.core.events import Place
from remit.core.kinds.sharing import entries_removed, entry_set
from remit.core.kinds.tasks import ended
from remit.core.receipt import Receipt
from remit.report.entries import READER_KINDS, VERSION_KINDS, readers_in, versions_in

PLACE = Place("t1", "s1", "t2")


def test_versions_are_those_of_this_entry():
    one = entry()
    gone = [(one.namespace, one.key, 1), ("other", "k", 3)]
    written, removed, quietly = journal(
        entry_set(one, PLACE, "ann"),
        entries_removed(gone, "expired", Writer("", ()), PLACE, NOW),
        entries_removed(gone, "", Writer("", ()), PLACE, NOW),
    )
    assert {written.kind, removed.kind} == VERSION_KINDS
    [made] = versions_in(written, one.namespace, one.key)
    assert (made.version, made.by, made.task, made.value, made.digest) == (1, "ann", "t2", one.value, one.digest)
    assert [(found.version, found.removed) for found in versions_in(removed, "other", "k")] == [(3, "expired")]
    assert [found.removed for found in versions_in(quietly, "other", "k")] == ["removed"]
    assert [*versions_in(written, "other", "k"), *versions_in(removed, "none", "k")] == []


def test_readers_are_the_turns_whose_receipts_name_it():
    one, receipt = entry(), Receipt()
    receipt.task("build")
    receipt.entry(one, "card")
    with_receipt, without = journal(
        ended(first_remit(), "task.completed", NOW, {"result": 1, "receipt": receipt.data()}),
        ended(first_remit(), "task.failed", NOW, {"error": "x", "type": "E"}),
    )
    assert {with_receipt.kind, without.kind} < READER_KINDS
    [found] = readers_in(with_receipt, one.namespace, one.key)
    assert (found.version, found.agent, found.why, found.at) == (1, "lead", "card", NOW)
    assert [*readers_in(with_receipt, "other", one.key), *readers_in(without, one.namespace, one.key)] == []

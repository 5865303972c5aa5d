"""Labels of a run: who started it, its tags and its metadata."""

import math
from typing import Any

import pytest

from core.make import first_remit
from remit.core.events import NO_LABELS, Labels, labels_given, labels_restored, mark, marks, tag_given
from remit.core.kinds.tasks import started
from remit.errors import BadInput

NOW = 1_700_000_000_000_000
TRACE = f"00-{'4b' * 16}-{'f0' * 8}-01"


@pytest.mark.rule("run.labels")
def test_labels_are_kept_in_one_order_and_each_tag_once():
    given = labels_given("ann", ["b", "a", "b"], {"z": 1, "a": "x", "on": True, "part": 0.5})
    assert given == Labels("ann", ("a", "b"), (("a", "x"), ("on", True), ("part", 0.5), ("z", 1)))
    assert given.data == {"by": "ann", "tags": ["a", "b"], "meta": {"a": "x", "on": True, "part": 0.5, "z": 1}}
    assert labels_given("", (), ()) == NO_LABELS
    assert labels_given("", (), (), TRACE).data == {"trace": TRACE}
    assert NO_LABELS.data == {}


@pytest.mark.rule("run.labels")
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"by": "a\nb"}, "by"),
        ({"tags": "nightly"}, "tags is a list of texts, such as ['nightly'], not 'nightly'"),
        ({"tags": [""]}, "a tag"),
        ({"tags": ["x" * 65]}, "a tag"),
        ({"tags": [7]}, "a tag"),
        ({"tags": [f"t{number}" for number in range(17)]}, "a run has at most 16 tags, not 17"),
        ({"meta": "ticket=7"}, "meta is a dict of names and values, such as {'ticket': 'T-7'}, not 'ticket=7'"),
        ({"meta": {f"m{number}": 1 for number in range(17)}}, "a run has at most 16 entries in meta, not 17"),
        ({"meta": {"": 1}}, "a name in meta"),
        ({"meta": {"a": "x" * 513}}, "meta['a']"),
        ({"meta": {"a": None}}, "meta['a'] is a text, a number, True or False, not None"),
        ({"meta": {"a": [1]}}, "meta['a'] is a text, a number, True or False, not [1]"),
        ({"meta": {"a": 2**63}}, "meta['a'] is a text, a number, True or False"),
        ({"meta": {"a": math.nan}}, "meta['a'] is a text, a number, True or False, not nan"),
        ({"trace": 7}, "trace is a W3C traceparent, such as 00-4b4b"),
        ({"trace": TRACE.upper()}, "trace is a W3C traceparent"),
        ({"trace": f"{TRACE}-01"}, "trace is a W3C traceparent"),
        ({"trace": f"{TRACE}\n"}, "trace is a W3C traceparent"),
        ({"trace": f"ff{TRACE[2:]}"}, "trace is a W3C traceparent"),
        ({"trace": f"00-{'0' * 32}-{'f0' * 8}-01"}, "trace is a W3C traceparent"),
        ({"trace": f"00-{'4b' * 16}-{'0' * 16}-01"}, "trace is a W3C traceparent"),
    ],
)
def test_labels_beyond_the_bounds_are_refused_with_the_bound(given: dict[str, Any], sentence: str):
    with pytest.raises(BadInput) as no:
        labels_given(**{"by": "", "tags": (), "meta": (), **given})
    assert sentence in str(no.value)


def test_labels_are_found_again_in_the_first_event_of_a_task():
    for given in (NO_LABELS, Labels("ann"), Labels("", ("a",)), Labels("", (), (("n", 1),)), Labels(trace=TRACE)):
        event = started(first_remit()._replace(labels=given), NOW)
        assert labels_restored(event.data) == given
    assert labels_restored({}) is NO_LABELS


def test_a_task_is_marked_with_its_asker_its_person_and_its_tags():
    assert marks({"asker": "lead", "by": "ann smith", "tags": ["a"]}) == {"asker lead", "by ann smith", "tag a"}
    assert marks({"asker": ""}) == set()
    assert mark("tag", tag_given("a")) in marks({"tags": ["a"]})

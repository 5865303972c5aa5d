"""Hooks as values: which events they want, and signatures that the reference implementation accepts."""

import pytest
import standardwebhooks

from core.make import NOW
from remit.core.events import Hook
from remit.core.hook import delivery_id, derived_secret, secret_text, signed_headers, wanted_kinds
from remit.core.kinds import SHAPES
from remit.core.times import DAY, SECOND
from remit.engine.system import SystemClock
from remit.errors import BadInput

HOOK = Hook("h1", "https://example.com/hook", "question.* task.completed", "", 2, NOW, "ann", NOW, 7, 9)
ROOT = bytes(range(32))


@pytest.mark.rule("hook.signed")
def test_the_reference_accepts_the_signature_of_each_secret_and_of_no_other():
    secrets = [derived_secret(ROOT, "shop", "h1", generation) for generation in (2, 1)]
    stamp = SystemClock().now() // SECOND
    headers = signed_headers(secrets, delivery_id("shop", 12), stamp, b'{"type":"task.completed"}')
    for secret in secrets:
        standardwebhooks.Webhook(secret_text(secret)).verify(b'{"type":"task.completed"}', headers)
    others = [("shop", "h1", 3), ("shop", "h2", 2), ("sho", "ph1", 2), ("other", "h1", 2)]
    for other in others:
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(secret_text(derived_secret(ROOT, *other))).verify(b"{}", headers)


def test_an_id_is_the_same_at_every_try_and_differs_between_workspaces():
    assert delivery_id("shop", 12) == delivery_id("shop", 12)
    assert len({delivery_id("shop", 12), delivery_id("shop", 13), delivery_id("other", 12)}) == 3


@pytest.mark.rule("hook.rotate")
def test_the_secret_before_a_rotation_signs_for_another_day():
    assert HOOK.generations(NOW + DAY - SECOND) == [2, 1]
    assert HOOK.generations(NOW + DAY) == [2]
    assert HOOK._replace(generation=1, rotated_at=None).generations(NOW) == [1]


@pytest.mark.rule("hook.kinds")
def test_a_hook_wants_kinds_families_and_the_events_of_its_run():
    assert HOOK.wants("task.completed", "r1")
    assert HOOK.wants("question.asked", "")
    assert not HOOK.wants("task.failed", "r1")
    of_run = HOOK._replace(run="r1")
    assert of_run.wants("task.completed", "r1")
    assert not of_run.wants("task.completed", "r2")
    of_task = HOOK._replace(run="r1", task="t1")
    assert of_task.wants("task.completed", "r1", "t1")
    assert not of_task.wants("task.completed", "r1", "t2")
    assert not of_task.wants("question.asked", "r1", "t2")
    assert of_task._replace(task="r1").wants("question.asked", "r1", "t2")


@pytest.mark.rule("hook.kinds")
def test_kinds_are_known_ones():
    assert wanted_kinds(["task.*", "question.asked", "task.*"], SHAPES) == "question.asked task.*"
    with pytest.raises(BadInput, match=r"no kind of event 'task\.complete'; did you mean task\.completed\?"):
        wanted_kinds(["task.complete"], SHAPES)
    with pytest.raises(BadInput, match=r"no kind of event 7; docs/reference/events\.md lists them"):
        wanted_kinds([7], SHAPES)
    with pytest.raises(BadInput, match="at least one kind"):
        wanted_kinds([], SHAPES)
    with pytest.raises(BadInput, match="kinds is a list"):
        wanted_kinds("task.completed", SHAPES)

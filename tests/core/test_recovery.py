"""Recovery: which model is asked next, with which key, after how long, and what is said when none answered."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import NOW, SECOND
from remit.core.recovery import (
    FRESH,
    RESTS,
    TRIMS,
    WAITS,
    Choice,
    Cooling,
    FailureKind,
    GaveUp,
    ModelFailure,
    ModelTry,
    Resting,
    Situation,
    Tried,
    after,
    charged,
    cleared,
    key_mark,
    kind_of,
    names_of,
    on_loopback,
    recovery,
    resting,
    sentence,
    what_rests,
)
from remit.core.times import DAY, HOUR

MINUTE = 60 * SECOND
FAR = NOW + 10 * DAY

KINDS: tuple[FailureKind, ...] = (
    *("rate-limit", "billing", "auth", "forbidden", "no-key", "overflow", "rejected"),
    *("not-found", "unavailable", "connection", "timeout", "broken"),
)

RATE = ModelFailure("rate-limit", 429)
QUOTA = ModelFailure("billing", 429, "insufficient_quota")
AUTH = ModelFailure("auth", 401)
FORBIDDEN = ModelFailure("forbidden", 403)
UNSET = ModelFailure("no-key", sent=False, said="there is no key: set A_KEY")
LONG = ModelFailure("overflow", 400, "context_length_exceeded")
WRONG = ModelFailure("rejected", 400)
GONE = ModelFailure("not-found", 404)
DOWN = ModelFailure("unavailable", 503)
SILENT = ModelFailure("empty")
SLOW = ModelFailure("timeout")

BIG = Choice("big", ("k1", "k2"))
SMALL = Choice("small")


def in_a(seconds: float, failure: ModelFailure = RATE) -> ModelFailure:
    return failure._replace(retry_after=round(seconds * SECOND))


class World(NamedTuple):
    """What is asked when models fail like this, one after the other, each try taking a second: the tries, when each was
    made, who rested by then, and how it ended. None in a list of outcomes is an answer, and so is its end."""

    tries: list[ModelTry]
    times: list[int]
    states: list[Mapping[str, Cooling]]
    end: GaveUp | None

    @property
    def asked(self) -> list[str]:
        return [f"{one.model}/{one.key}" if one.key else one.model for one in self.tries]

    @property
    def waits(self) -> list[float]:
        return [one.wait / SECOND for one in self.tries]


def world(
    choices: Sequence[Choice],
    outcomes: Sequence[ModelFailure | None],
    *,
    state: Mapping[str, Cooling] | None = None,
    until: int = FAR,
    trim: int = 0,
) -> World:
    """Ask as recovery says, and keep what rests as a caller does."""
    rests = dict(state or {})
    found = World([], [], [], None)
    left = iter(outcomes)
    search = recovery(choices, Situation(None, NOW, dict(rests)), until=until, trim=trim)
    now = NOW
    try:
        tried = next(search)
        while True:
            now += tried.wait
            found.tries.append(tried)
            found.times.append(now)
            found.states.append(dict(rests))
            now += SECOND
            failure = next(left, None)
            if failure is not None:
                name = resting(tried, failure.kind)
                rests[name] = after(rests.get(name, FRESH), failure, now)
            tried = search.send(Situation(failure, now, dict(rests)))
    except StopIteration as stop:
        return found._replace(end=stop.value)


# --- kinds -------------------------------------------------------------------------------------


@pytest.mark.rule("model.kinds")
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, "", "rate-limit"),
        (429, "rate_limit_exceeded", "rate-limit"),
        (429, "insufficient_quota", "billing"),
        (403, "insufficient_quota", "billing"),
        (402, "", "billing"),
        (401, "", "auth"),
        (403, "", "forbidden"),
        (400, "context_length_exceeded", "overflow"),
        (413, "", "overflow"),
        (400, "", "rejected"),
        (400, "prompt_too_long", "rejected"),
        (422, "", "rejected"),
        (418, "insufficient_quota", "rejected"),
        (404, "", "not-found"),
        *((status, "", "unavailable") for status in (408, 409, 425, 500, 502, 503, 504, 529, 599)),
        *((status, "", "broken") for status in (200, 204, 302)),
    ],
)
def test_a_kind_goes_by_status_and_code(status: int, code: str, kind: FailureKind):
    assert kind_of(status, code) == kind


@pytest.mark.rule("model.charged")
@pytest.mark.parametrize("kind", KINDS)
def test_what_never_left_costs_nothing_and_what_was_never_answered_costs_all(kind: FailureKind):
    assert charged(ModelFailure(kind, sent=False)) == "nothing"
    assert charged(ModelFailure(kind)) == ("whole" if kind in ("timeout", "connection", "broken") else "nothing")


@pytest.mark.rule("model.charged")
def test_an_answer_that_is_none_is_paid_although_it_has_a_status():
    assert charged(ModelFailure("broken", 200)) == "whole"
    assert charged(ModelFailure("unavailable", 503)) == charged(ModelFailure("rate-limit", 429)) == "nothing"


# --- resting -----------------------------------------------------------------------------------


def rests_in_a_row(failure: ModelFailure, times: int) -> list[int]:
    """How long each rest is if the next request after it fails too."""
    cooling, now, found = FRESH, NOW, []
    for _ in range(times):
        cooling = after(cooling, failure, now)
        found.append(cooling.until - now)
        now = cooling.until
    return found


@pytest.mark.rule("model.cooling")
def test_rests_become_longer_up_to_the_longest():
    assert rests_in_a_row(RATE, 5) == [MINUTE, 5 * MINUTE, 25 * MINUTE, 60 * MINUTE, 60 * MINUTE]
    assert all(rests_in_a_row(one, 5) == rests_in_a_row(RATE, 5) for one in (QUOTA, AUTH, FORBIDDEN))


@pytest.mark.rule("model.cooling")
def test_a_day_after_a_rest_and_after_an_answer_the_next_failure_is_the_first():
    third = Cooling(3, NOW, "rate-limit")

    assert after(third, RATE, NOW + DAY - 1).failures == 4
    assert after(third, RATE, NOW + DAY) == Cooling(1, NOW + DAY + MINUTE, "rate-limit", NOW + DAY)
    assert after(cleared(NOW), RATE, NOW) == Cooling(1, NOW + MINUTE, "rate-limit", NOW)


@pytest.mark.rule("model.cooling")
def test_what_was_under_way_when_a_rest_began_is_not_counted_again():
    rests = after(FRESH, RATE, NOW)

    assert after(rests, RATE, NOW + SECOND) == Cooling(1, NOW + SECOND + MINUTE, "rate-limit", NOW + SECOND)
    assert after(rests, in_a(1), NOW + SECOND) == rests._replace(used=NOW + SECOND)  # it rests longer already
    assert after(rests, QUOTA, NOW + 1) == Cooling(1, NOW + 1 + MINUTE, "billing", NOW + 1)


@pytest.mark.rule("model.cooling")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in RESTS])
def test_what_says_nothing_about_the_key_puts_nothing_to_rest(kind: FailureKind):
    assert after(FRESH, ModelFailure(kind), NOW) == Cooling(used=NOW)


@pytest.mark.rule("model.cooling")
@given(st.sampled_from(KINDS), st.none() | st.integers(-SECOND, 3 * DAY), st.integers(0, 2 * DAY))
def test_a_failure_never_makes_a_rest_shorter(kind, wanted, later):
    rests = Cooling(2, NOW + HOUR, "rate-limit", NOW)

    found = after(rests, ModelFailure(kind, retry_after=wanted), NOW + later)

    assert found.until >= rests.until
    assert found.used == NOW + later
    assert found.until <= NOW + later + DAY


@pytest.mark.rule("model.retry-after")
def test_what_the_provider_says_replaces_the_minute():
    assert after(FRESH, in_a(7), NOW).until == NOW + 7 * SECOND
    assert after(FRESH, in_a(0.2), NOW).until == NOW + 200_000
    assert after(FRESH, in_a(3600), NOW).until == NOW + HOUR
    assert after(FRESH, in_a(3, DOWN), NOW) == Cooling(1, NOW + 3 * SECOND, "unavailable", NOW)


@pytest.mark.rule("model.retry-after")
def test_it_is_believed_for_an_hour_at_most_and_pays_no_bill():
    assert after(FRESH, in_a(10**9), NOW).until == NOW + HOUR
    assert after(FRESH, in_a(7, QUOTA), NOW).until == NOW + MINUTE
    assert after(FRESH, in_a(600, QUOTA), NOW).until == NOW + 10 * MINUTE
    assert after(FRESH, in_a(-1), NOW) == after(FRESH, in_a(0), NOW) == Cooling(used=NOW)
    assert after(FRESH, in_a(7, WRONG), NOW) == Cooling(used=NOW)


# --- whom to ask next --------------------------------------------------------------------------


@pytest.mark.rule("model.keys-first")
@pytest.mark.parametrize(
    ("outcomes", "asked"),
    [
        ([], ["big/k1"]),
        ([RATE], ["big/k1", "big/k2"]),
        ([RATE, QUOTA], ["big/k1", "big/k2", "small"]),
        ([AUTH, AUTH], ["big/k1", "big/k2", "small"]),
        ([DOWN], ["big/k1", "small"]),
        ([SLOW], ["big/k1", "small"]),
        ([ModelFailure("connection", sent=False)], ["big/k1", "small"]),
        ([ModelFailure("broken", 200)], ["big/k1", "small"]),
        ([GONE], ["big/k1", "small"]),
        ([RATE, DOWN], ["big/k1", "big/k2", "small"]),
        ([DOWN, DOWN], ["big/k1", "small", "big/k1"]),
        ([DOWN, DOWN, RATE], ["big/k1", "small", "big/k1", "big/k2"]),
        ([GONE, DOWN], ["big/k1", "small", "small"]),
    ],
)
def test_keys_come_before_models(outcomes: list[ModelFailure], asked: list[str]):
    assert world([BIG, SMALL], outcomes).asked == asked


@pytest.mark.rule("model.keys-first")
def test_the_key_that_was_used_longest_ago_is_asked_first():
    state = {"key:k1": cleared(NOW - 1), "key:k2": cleared(NOW - 3), "key:k3": cleared(NOW - 2)}

    assert world([Choice("big", ("k1", "k2", "k3"))], [RATE, RATE], state=state).asked == ["big/k2", "big/k3", "big/k1"]
    assert world([Choice("big", ("k1", "new"))], [], state=state).asked == ["big/new"]


@pytest.mark.rule("model.keys-first")
def test_a_model_on_cooldown_is_skipped():
    state = {"key:k1": Cooling(1, NOW + HOUR, "auth"), "model:small": Cooling(1, NOW + MINUTE, "unavailable")}

    assert world([BIG, SMALL, Choice("tiny")], [DOWN], state=state).asked == ["big/k2", "tiny"]


@pytest.mark.rule("model.keys-first")
def test_a_key_that_rests_does_so_for_every_model():
    others = Choice("other", ("k1",))

    assert world([Choice("big", ("k1",)), others, SMALL], [QUOTA]).asked == ["big/k1", "small"]
    assert resting(ModelTry("big", "k1"), "auth") == resting(ModelTry("big", "k1"), "billing") == "key:k1"
    assert resting(ModelTry("big"), "auth") == resting(ModelTry("big", "k1"), "unavailable") == "model:big"


@pytest.mark.rule("model.what-rests")
@pytest.mark.parametrize("failure", [RATE, in_a(3600), FORBIDDEN])
def test_a_limit_of_one_model_leaves_the_others_of_its_provider_to_be_asked(failure: ModelFailure):
    found = world([Choice("big", ("k1",)), Choice("small", ("k1",))], [failure])

    assert found.asked == ["big/k1", "small/k1"]
    assert resting(ModelTry("big", "k1"), failure.kind) == "key:k1 model:big"


@pytest.mark.rule("model.what-rests")
def test_a_key_is_its_value_at_its_endpoint():
    wrong = ModelTry("big", "A_KEY", mark="d1", endpoint="openai")

    assert resting(wrong, "auth") == "key:d1 at:openai"
    assert resting(wrong, "unavailable") == "at:openai model:big"
    state = {resting(wrong, "auth"): Cooling(1, NOW + HOUR, "auth")}
    assert world([Choice("big", ("A_KEY",), "openai", ("d1",))], [], state=state).end is not None
    assert world([Choice("big", ("A_KEY",), "openai", ("d2",))], [], state=state).asked == ["big/A_KEY"]
    assert world([Choice("big", ("B_KEY",), "openai", ("d1",))], [], state=state).asked == []
    assert world([Choice("big", ("A_KEY",), "openai@host", ("d1",))], [], state=state).asked == ["big/A_KEY"]
    assert world([Choice("big", marks=("d1",), endpoint="openai")], [], state=state).asked == []


@pytest.mark.rule("model.what-rests")
@pytest.mark.parametrize("place", ["", "openai", "openai@host:8000"])
@pytest.mark.parametrize(("kind", "parts"), [("auth", "k"), ("forbidden", "km"), ("unavailable", "m")])
def test_the_name_of_what_rests_can_be_read_again(place: str, kind: FailureKind, parts: str):
    tried = ModelTry("openai:a b@1", "A_KEY", mark="d1", endpoint=place)

    found = what_rests(resting(tried, kind), Cooling(2, NOW, kind))

    assert found == Resting(
        resting(tried, kind), "d1" * ("k" in parts), "openai:a b@1" * ("m" in parts), place, kind, 2, NOW
    )


@pytest.mark.rule("model.what-rests")
@pytest.mark.parametrize("failure", [AUTH, QUOTA, FORBIDDEN])
def test_what_only_the_owner_of_the_key_can_mend_is_not_waited_for(failure: ModelFailure):
    found = world([Choice("big", ("k1",))], [failure])

    assert found.waits == [0]
    assert found.end is not None
    assert found.end.why == "exhausted"
    assert found.end.again_at is not None  # a task in the queue may be tried again later


@pytest.mark.rule("prices.loopback")
@pytest.mark.parametrize(
    ("endpoint", "here"),
    [
        ("ollama@localhost:11434", True),
        ("openai@127.0.0.1:8000", True),
        ("127.9.9.9", True),
        ("openai@[::1]:8000", True),
        ("openai@a.localhost", True),
        ("openai@0.0.0.0:8000", False),
        ("openai@localhost.example.com", False),
        ("openai", False),
        ("", False),
    ],
)
def test_an_endpoint_on_this_machine_is_known(endpoint: str, here: bool):
    assert on_loopback(endpoint) is here


@pytest.mark.rule("model.own-key")
def test_the_keys_that_an_agent_names_go_before_the_one_of_the_workspace():
    state = {"key:k1": cleared(NOW)}

    assert world([Choice("big", ("workspace/openai", "k1"))], [AUTH], state=state).asked == [
        "big/k1",
        "big/workspace/openai",
    ]


@pytest.mark.rule("model.no-key")
def test_a_key_that_is_not_set_is_passed_over_and_told():
    assert world([BIG, SMALL], [UNSET]).asked == ["big/k1", "big/k2"]
    found = world([Choice("big", ("A_KEY",))], [UNSET])

    assert found.end == GaveUp("exhausted", (Tried("big", "A_KEY", "no-key", None, 0, UNSET.said),))
    assert sentence(found.end) == (
        "no model answered; big with key 'A_KEY': there is no key: set A_KEY; then ask again"
    )


@pytest.mark.rule("model.said")
def test_what_the_provider_said_is_told():
    found = world([SMALL], [ModelFailure("rejected", 400, said="Invalid schema")])

    assert found.end is not None
    assert sentence(found.end).startswith('no model answered; small: rejected (400), "Invalid schema"; ')


# --- pauses ------------------------------------------------------------------------------------


@pytest.mark.rule("model.pauses")
def test_when_all_have_failed_there_are_three_pauses_and_no_more():
    found = world([SMALL], [DOWN] * 9)

    assert found.waits == [0, 5, 10, 20]
    assert found.end == GaveUp("exhausted", (Tried("small", "", "unavailable", 503),), found.times[-1] + SECOND)


@pytest.mark.rule("model.pauses", "model.retry-after")
def test_a_pause_is_until_the_soonest_can_be_asked():
    keys = Choice("big", ("k1", "k2"))

    assert world([keys], [in_a(30), in_a(7)]).waits == [0, 0, 7]
    assert world([keys], [in_a(30), in_a(7)]).asked == ["big/k1", "big/k2", "big/k2"]
    assert world([keys, SMALL], [in_a(30), in_a(7), DOWN]).waits == [0, 0, 0, 5]
    assert world([Choice("big", ("k1",))], [RATE]).waits == [0, 60]
    assert world([Choice("big", ("k1",))], [in_a(0)]).waits == [0, 5]  # else it would be asked at once, again and again


@pytest.mark.rule("model.pauses")
def test_a_failed_model_is_not_asked_for_its_whole_wait_although_another_is_asked_before():
    found = world([Choice("down"), Choice("big", ("k1",))], [DOWN, in_a(1), in_a(1), in_a(1)])

    assert found.asked == ["down", "big/k1", "big/k1", "big/k1", "down"]
    assert [(at - NOW) // SECOND for at in found.times] == [0, 1, 3, 5, 2 + 5]


@pytest.mark.rule("model.pauses")
def test_the_first_try_waits_too_if_all_rest():
    state = {"key:k1": Cooling(1, NOW + 9 * SECOND, "rate-limit"), "key:k2": Cooling(1, NOW + HOUR, "auth")}

    assert world([BIG], [], state=state).tries == [ModelTry("big", "k1", 0, 9 * SECOND)]


@pytest.mark.rule("model.pauses")
@pytest.mark.parametrize(("seconds", "tries"), [(0, 0), (1, 1), (6, 1), (7, 2), (17, 2), (18, 3)])
def test_no_pause_reaches_the_deadline(seconds: int, tries: int):
    found = world([SMALL], [DOWN] * 9, until=NOW + seconds * SECOND)

    assert len(found.tries) == tries
    assert found.end is not None
    assert found.end.why == "deadline"


@pytest.mark.rule("model.pauses")
def test_what_is_not_there_is_not_waited_for():
    found = world([SMALL, Choice("tiny")], [GONE, GONE])

    assert found.asked == ["small", "tiny"]
    assert found.end == GaveUp("exhausted", (Tried("small", "", "not-found", 404), Tried("tiny", "", "not-found", 404)))


# --- too long, and wrong -----------------------------------------------------------------------


@pytest.mark.rule("model.overflow")
def test_what_is_too_long_is_shortened_three_times_and_asked_of_the_same_key():
    found = world([BIG, SMALL], [RATE, *[LONG] * 9])

    assert found.tries[1:] == [ModelTry("big", "k2", trim) for trim in range(TRIMS + 1)]
    assert found.end == GaveUp(
        "overflow", (Tried("big", "k1", "rate-limit", None, MINUTE - 4 * SECOND), Tried("big", "", "overflow", 400))
    )


@pytest.mark.rule("model.overflow")
def test_what_is_too_long_stays_with_its_key_although_an_earlier_one_has_rested_meanwhile():
    state = {"key:k1": Cooling(1, NOW + 1, "rate-limit")}

    assert world([BIG], [LONG], state=state).tries == [ModelTry("big", "k2"), ModelTry("big", "k2", 1)]


@pytest.mark.rule("model.overflow")
def test_what_was_shortened_stays_so_for_all_that_come_after():
    found = world([BIG, SMALL], [LONG, RATE, DOWN, LONG], trim=1)

    assert [(one.model, one.key, one.trim) for one in found.tries] == [
        *(("big", "k1", 1), ("big", "k1", 2), ("big", "k2", 2), ("small", "", 2), ("small", "", 3)),
    ]


@pytest.mark.rule("model.overflow")
def test_a_key_that_others_put_to_rest_meanwhile_is_not_asked_although_it_was_only_too_long():
    search = recovery([BIG], Situation(None, NOW), until=FAR)
    assert next(search) == ModelTry("big", "k1")

    rests = {"key:k1": Cooling(1, NOW + MINUTE, "rate-limit")}

    assert search.send(Situation(LONG, NOW, rests)) == ModelTry("big", "k2", 1)


@pytest.mark.rule("model.rejected")
def test_what_is_wrong_in_itself_is_asked_of_nobody_else():
    found = world([BIG, SMALL], [WRONG])

    assert found.asked == ["big/k1"]
    assert found.end == GaveUp("rejected", (Tried("big", "", "rejected", 400),))


# --- what is said ------------------------------------------------------------------------------


@pytest.mark.rule("model.empty")
def test_a_model_that_says_nothing_is_asked_once_more_and_then_the_next_one_without_a_pause():
    found = world([BIG, SMALL], [SILENT, SILENT, SILENT, None], until=NOW + HOUR)

    assert [(one.model, one.wait) for one in found.tries] == [("big", 0), ("big", 0), ("small", 0), ("small", 0)]
    assert found.tries[0].key == found.tries[1].key
    assert found.end is None
    assert charged(SILENT) == "whole"


@pytest.mark.rule("model.gave-up")
def test_a_sentence_tells_what_became_of_each():
    choices = [Choice("down"), Choice("big", ("k1", "k2"))]

    found = world(choices, [DOWN, in_a(3602), AUTH], until=NOW + 6 * SECOND)

    assert found.end is not None
    assert sentence(found.end) == (
        "no model answered; down: unavailable (503); big with key 'k1': paused for 3599 s after rate-limit; "
        "big with key 'k2': paused for 60 s after auth; try again later; "
        "`remit cooling` lists the pauses, and `remit cooling clear` ends them"
    )
    assert found.end.again_at == NOW + 8 * SECOND


@pytest.mark.rule("model.gave-up")
def test_a_model_that_rests_is_told_once_whatever_keys_it_has():
    state = {"model:big": Cooling(1, NOW + 1, "unavailable")}

    assert world([BIG], [], state=state, until=NOW + 1).end == GaveUp(
        "deadline", (Tried("big", "", "unavailable", None, 1),), NOW + 1
    )


@pytest.mark.rule("model.gave-up")
@pytest.mark.parametrize(
    ("choices", "outcomes", "end"),
    [
        ([], [], "there is none to ask; name a model"),
        ([SMALL], [SLOW] * 4, "small: timeout; try again later"),
        ([SMALL], [GONE], "small: not-found (404); check the names of the models"),
        (
            [SMALL],
            [SILENT] * 2,
            ("small: an empty answer, without text and without a tool call; ask in another way, or name another model"),
        ),
        (
            [SMALL],
            [WRONG],
            "small: rejected (400); it is not retried, because the same request would be rejected again; change it",
        ),
        (
            [SMALL],
            [LONG] * 4,
            "small: overflow (400); it is too long for the model even when it is shortened; ask for less at once",
        ),
        (
            [Choice("big", ("k1",))],
            [AUTH],
            (
                "big with key 'k1': paused for 60 s after auth; check the keys and what is left on their "
                "accounts; `remit cooling` lists the pauses, and `remit cooling clear` ends them"
            ),
        ),
    ],
)
def test_and_what_to_do(choices: list[Choice], outcomes: list[ModelFailure], end: str):
    gave_up = world(choices, outcomes, until=NOW + HOUR).end

    assert gave_up is not None
    assert sentence(gave_up) == f"no model answered; {end}"


@pytest.mark.rule("model.gave-up")
def test_when_there_is_no_time_at_all_nothing_is_tried():
    found = world([SMALL], [], until=NOW)

    assert found.end == GaveUp("deadline", (), NOW + WAITS[0])
    assert sentence(found.end) == "no model answered; try again later"


# --- whatever happens --------------------------------------------------------------------------

failures = st.builds(
    ModelFailure,
    st.sampled_from(KINDS),
    st.none() | st.sampled_from([400, 401, 429, 503]),
    retry_after=st.none() | st.integers(0, 40).map(lambda seconds: seconds * SECOND),
)
keys = st.lists(st.sampled_from(["k1", "k2", "k3"]), max_size=3, unique=True).map(tuple)
lists_of_choices = st.lists(st.builds(Choice, st.sampled_from(["a", "b", "c"]), keys), max_size=3)
coolings = st.builds(
    Cooling,
    st.integers(0, 4),
    st.integers(NOW - MINUTE, NOW + MINUTE),
    st.sampled_from([*RESTS, "unavailable"]),
    st.integers(NOW - MINUTE, NOW),
)
states = st.dictionaries(st.sampled_from(["key:k1", "key:k2", "model:a", "model:b"]), coolings)
outcomes = st.lists(st.none() | failures | st.just(DOWN) | st.just(LONG), max_size=60)
deadlines = st.just(FAR) | st.integers(NOW - SECOND, NOW + 2 * MINUTE)


@pytest.mark.rule("model.pauses", "model.overflow", "model.retry-after", "model.rejected", "model.keys-first")
@given(lists_of_choices, outcomes, states, deadlines, st.integers(0, TRIMS))
def test_whatever_happens(choices, outcomes, state, until, trim):
    found = world(choices, outcomes, state=state, until=until, trim=trim)

    pairs = {(choice.model, key) for choice in choices for key in choice.keys or ("",)}
    assert len(found.tries) <= (len(pairs) + 1) * (len(WAITS) + 1) + TRIMS + len(choices)  # it ends
    assert all((one.model, one.key) in pairs for one in found.tries)
    assert sum(one.wait > 0 for one in found.tries) <= len(WAITS)
    assert all(at < until for at in found.times)
    trims = [one.trim for one in found.tries]
    assert trims == sorted(trims)
    assert set(trims) <= set(range(trim, TRIMS + 1))
    for one, at, rests in zip(found.tries, found.times, found.states, strict=True):
        assert at >= max(rests.get(name, FRESH).until for name in names_of(one))
    for failed, one, again in zip(outcomes, found.tries, found.tries[1:], strict=False):
        assert failed is not None
        assert failed.kind != "rejected"
        if failed.kind == "overflow":
            assert again == one._replace(trim=one.trim + 1, wait=0)
        if failed.kind == "not-found":
            assert again.model != one.model
    assert world(choices, outcomes, state=state, until=until, trim=trim) == found
    assert found.end is None or sentence(found.end).startswith("no model answered; ")


def test_two_values_of_a_key_have_two_marks_that_do_not_show_them():
    assert key_mark("one") != key_mark("two")
    assert "one" not in key_mark("one")

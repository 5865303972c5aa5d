"""The schedule: who may start, and who cannot any more."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from remit.core.plan import Plan, Step, StepEnd, StepSchedule


def plan(**after: str) -> Plan:
    """Steps by id, each with the ids it waits for."""
    return Plan([Step(id_, f"Do {id_}", agent="ann", after=waits.split()) for id_, waits in after.items()])


@st.composite
def dags(draw) -> Plan:
    """Steps that wait only for steps with a lower number, in any order."""
    waits = {}
    for number in range(draw(st.integers(1, 9))):
        lower = draw(st.permutations(sorted(waits)))
        waits[f"s{number}"] = " ".join(lower[: draw(st.integers(0, 4))])
    return plan(**dict(draw(st.permutations(sorted(waits.items())))))


def waiting_for(found: Plan, step: str) -> set[str]:
    """All who wait for a step, directly or not; worked out the slow way."""
    above = {step}
    for _ in found.steps:
        above |= {one.id for one in found.steps if above & set(one.after)}
    return above - {step}


def after_of(found: Plan) -> dict[str, tuple[str, ...]]:
    return {one.id: one.after for one in found.steps}  # pyright: ignore[reportReturnType]


class Run:
    """Someone who carries a plan out: what is ready, what runs, and in which order it started."""

    def __init__(self, found: Plan) -> None:
        self.schedule = StepSchedule(found)
        self.after = after_of(found)
        self.ready = self.schedule.first()
        self.running: list[str] = []
        self.started: list[str] = []

    def start(self, step: str) -> None:
        assert self.schedule.states[step] == "waiting", "started twice, or after it was given up"
        assert all(self.schedule.states[one] == "completed" for one in self.after[step]), "started too early"
        self.ready.remove(step)
        self.schedule.start(step)
        self.running.append(step)
        self.started.append(step)

    def complete(self, step: str) -> None:
        self.running.remove(step)
        self.ready += self.schedule.complete(step)

    def go_on(self, data, moves: int) -> None:
        """Starts and completes steps in any order, at most so many times."""
        for _ in range(moves):
            if not self.ready and not self.running:
                return
            one = data.draw(st.sampled_from([*self.ready, *self.running]))
            (self.start if one in self.ready else self.complete)(one)

    @property
    def states(self) -> dict[str, str]:
        return dict(self.schedule.states)


# --- starting ----------------------------------------------------------------------------------


@pytest.mark.rule("plan.events")
@given(dags(), st.data())
def test_every_step_starts_once_and_only_after_what_it_waits_for(found, data):
    run = Run(found)

    run.go_on(data, 100)

    assert sorted(run.started) == sorted(run.after)
    assert set(run.states.values()) == {"completed"}


@pytest.mark.rule("plan.events")
@given(dags(), st.data())
def test_a_step_is_ready_as_soon_as_its_own_dependencies_are_done(found, data):
    run = Run(found)

    run.go_on(data, data.draw(st.integers(0, 20)))

    done = {one for one, state in run.states.items() if state == "completed"}
    may = {one for one, after in run.after.items() if set(after) <= done}
    assert set(run.ready) == may - set(run.started)


@pytest.mark.rule("plan.events")
def test_what_becomes_ready_is_told_in_the_order_of_the_plan():
    schedule = StepSchedule(plan(z="a", a="", b="a", c="a b"))

    assert schedule.first() == ["a"]
    schedule.start("a")
    assert schedule.states == {"z": "waiting", "a": "running", "b": "waiting", "c": "waiting"}
    assert schedule.complete("a") == ["z", "b"]
    assert schedule.complete("z") == []
    assert schedule.complete("b") == ["c"]


# --- failing and skipping ----------------------------------------------------------------------


@pytest.mark.rule("plan.failure")
@pytest.mark.parametrize(("how", "state", "word"), [("fail", "failed", "failed"), ("skip", "skipped", "was skipped")])
@given(found=dags(), data=st.data())
def test_giving_up_a_step_reaches_exactly_those_who_depend_on_it(how, state, word, found, data):
    run = Run(found)
    run.go_on(data, data.draw(st.integers(0, 10)))
    assume(run.ready or run.running)
    step = data.draw(st.sampled_from([*run.ready, *run.running]))
    before = run.states

    gone = getattr(run.schedule, how)(step)

    assert sorted(one.id for one in gone) == sorted(waiting_for(found, step))  # each once
    given_up = {step, *(one.id for one in gone)}
    assert run.states == {one: state if one in given_up else was for one, was in before.items()}
    for one in gone:
        assert one.state == state
        assert one.reason in {f'dependency "{cause}" {word}' for cause in set(run.after[one.id]) & given_up}


@pytest.mark.rule("plan.failure")
@given(dags(), st.data())
def test_the_others_go_on_and_all_of_them_complete(found, data):
    run = Run(found)
    run.go_on(data, data.draw(st.integers(0, 10)))
    assume(run.running)
    step = data.draw(st.sampled_from(run.running))
    run.running.remove(step)

    run.schedule.fail(step)
    run.go_on(data, 100)

    lost = {step, *waiting_for(found, step)}
    assert run.states == {one: "failed" if one in lost else "completed" for one in run.after}


@pytest.mark.rule("plan.failure")
def test_the_reason_names_the_direct_dependency():
    schedule = StepSchedule(plan(a="", b="a", c="b", free=""))

    assert schedule.fail("a") == [
        StepEnd("b", "failed", 'dependency "a" failed'),
        StepEnd("c", "failed", 'dependency "b" failed'),
    ]
    assert schedule.states == {"a": "failed", "b": "failed", "c": "failed", "free": "waiting"}


@pytest.mark.rule("plan.failure")
def test_skipping_a_step_skips_those_who_wait_for_it():
    schedule = StepSchedule(plan(a="", b="a", c="b"))

    assert schedule.skip("a") == [
        StepEnd("b", "skipped", 'dependency "a" was skipped'),
        StepEnd("c", "skipped", 'dependency "b" was skipped'),
    ]


@pytest.mark.rule("plan.failure")
def test_of_two_causes_the_first_counts_and_the_failed_step_never_starts():
    schedule = StepSchedule(plan(a="", b="", c="", d="a b c"))

    assert [one.id for one in schedule.fail("a")] == ["d"]
    assert schedule.skip("b") == []
    assert schedule.complete("c") == []
    assert schedule.states["d"] == "failed"


# --- draining ----------------------------------------------------------------------------------


@pytest.mark.rule("plan.drain")
@given(dags(), st.data())
def test_draining_skips_exactly_what_waits_and_what_runs_finishes(found, data):
    run = Run(found)
    run.go_on(data, data.draw(st.integers(0, 12)))
    before = run.states

    gone = run.schedule.skip_rest("the plan was aborted")

    waited = [one for one, state in before.items() if state == "waiting"]
    assert gone == [StepEnd(one, "skipped", "the plan was aborted") for one in waited]
    assert run.states == {one: "skipped" if state == "waiting" else state for one, state in before.items()}
    for step in list(run.running):
        assert run.schedule.complete(step) == []
    assert set(run.states.values()) <= {"completed", "skipped"}
    assert run.schedule.skip_rest("again") == []


@pytest.mark.rule("plan.drain", "plan.failure")
def test_what_fails_after_draining_takes_no_one_along_any_more():
    schedule = StepSchedule(plan(a="", b="a"))
    schedule.start("a")
    schedule.skip_rest("stop")

    assert schedule.fail("a") == []
    assert schedule.states == {"a": "failed", "b": "skipped"}


# --- size --------------------------------------------------------------------------------------


@pytest.mark.rule("plan.failure")
def test_the_longest_chain_is_given_up_whole():
    chain = plan(s0="", **{f"s{number}": f"s{number - 1}" for number in range(1, 10_000)})

    gone = StepSchedule(chain).fail("s0")

    assert len(gone) == 9_999
    assert gone[-1] == StepEnd("s9999", "failed", 'dependency "s9998" failed')

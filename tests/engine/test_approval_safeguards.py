"""Every safeguard of questions and approvals is missed: removed, a case that is made for it goes wrong.

Each replacement stands in for the code of the function itself, so the names it uses are looked up in that function's
module; they are imported here for readers and type checkers.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from deep import some
from engine.approval_cases import (
    Case,
    Place,
    a_deadline_comes_after_an_answer,
    a_line_waits_longer_than_its_timers,
    a_parked_task_goes_on_without_an_answer,
    a_question_ends_with_the_deadline,
    a_question_is_withdrawn_with_its_task,
    an_answer_from_elsewhere_wakes,
    another_card_is_not_approved,
    it_expires_although_nobody_waits,
    nobody_takes_up_what_is_parked,
    others_go_on_beside_a_question,
    the_first_answer_wins,
    the_same_again_is_asked_again,
    two_stop_the_clock_until_the_second,
    who_hangs_beside_a_question_is_stopped,
    who_has_tools_is_asked_about,
)
from engine.helping import PATIENCE
from inside import without
from remit.engine.timing import While
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio


# -- what is done instead --------------------------------------------------------------------------------------------


def nothing(*given: Any, **named: Any) -> None:
    return None


def no(*given: Any) -> bool:
    return False


def yes(*given: Any) -> bool:
    return True


def no_events(*given: Any) -> list[Any]:
    return []


def one_digest(self: Any) -> str:
    return "the same"


def uncounted(self: Any, name: str) -> str:
    return f"{name}/1"


async def under_any_operation(self: Any, question: Any, decide: Any) -> None:
    await self.ground.store.tx(f"{question}/{self.ground.ids.new()}", decide)


def open_or_not(view: Any, question: Any) -> Any:
    return view.question(question)


def only_its_own(control: Any) -> Any:
    return While(control.pause, control.go_on)


def at_the_first_answer(self: Any, now: int) -> Any:
    self.asking -= 1
    self.ends = now + self.left
    return self._timer(self.ends, now, deadline=False)


def with_all_that_was_left(self: Any, now: int) -> Any:
    self.asking -= 1
    if self.asking:
        return None
    self.ends = now + self.left
    return self._timer(self.ends, now, deadline=False)


def a_week(self: Any, live: Any, draft: Any, now: Any) -> int:
    return now + self.within


def tasks_only(self: Any, view: Any) -> Any:
    known, head = self._known, view.head()
    if known is None:
        return head, set()
    marks = view.marks(known.seq, 1_000)
    return head, {mark.task for mark in marks[1:] if mark.kind.startswith("task.")}


async def does_nothing(*given: Any) -> None:
    return None


# -- the table -------------------------------------------------------------------------------------------------------

_ANSWERS = "remit.engine.people"
_CONTROL = "remit.engine.attempt.control:Control"
_LIFE = "remit.core.life:Life"
_PARKING = "remit.engine.approvals"
Removed = tuple[tuple[str, Callable[..., Any]], ...]

SAFEGUARDS: dict[str, tuple[Removed, Case]] = {
    "the operation of an answer, and that it is open": (
        ((f"{_ANSWERS}:Answers._first", under_any_operation), (f"{_ANSWERS}:_open", open_or_not)),
        the_first_answer_wins,
    ),
    "the digest": ((("remit.core.question:QuestionDraft.digest", one_digest),), another_card_is_not_approved),
    "single use": (
        (("remit.engine.attempt.operations:Operations._next", uncounted),),
        the_same_again_is_asked_again,
    ),
    "standing still": (
        ((f"{_CONTROL}.pause", nothing), (f"{_CONTROL}.go_on", nothing)),
        a_line_waits_longer_than_its_timers,
    ),
    "of the whole line": (
        (("remit.engine.people:clocks_stand_still", only_its_own),),
        a_line_waits_longer_than_its_timers,
    ),
    "the counter": (((f"{_LIFE}.answered", at_the_first_answer),), two_stop_the_clock_until_the_second),
    "a timer for who has none": (((f"{_CONTROL}.arm", nothing),), who_hangs_beside_a_question_is_stopped),
    "a said deadline": (((f"{_LIFE}.answered", with_all_that_was_left),), a_deadline_comes_after_an_answer),
    "a said deadline of the question": (
        (("remit.engine.people:Questions._until", a_week),),
        a_question_ends_with_the_deadline,
    ),
    "withdrawing": (
        (("remit.engine.consequences:questions_withdrawn", no_events),),
        a_question_is_withdrawn_with_its_task,
    ),
    "the bell": ((("remit.engine.presence.bell:Bell._since", tasks_only),), an_answer_from_elsewhere_wakes),
    "parking": (((f"{_PARKING}:has_question", no),), nobody_takes_up_what_is_parked),
    "parking of parts": (
        (("remit.engine.consequences:parts_are_parked", no_events),),
        nobody_takes_up_what_is_parked,
    ),
    "putting back by the answer": (((f"{_PARKING}:unparked", no_events),), nobody_takes_up_what_is_parked),
    "putting back without one": (((f"{_PARKING}:unparked", no_events),), a_parked_task_goes_on_without_an_answer),
    "expiry by the caretaker": (
        ((f"{_ANSWERS}:Answers.expire_all", does_nothing),),
        it_expires_although_nobody_waits,
    ),
    "giving up the slot": (
        (("remit.engine.attempt.slots:Slots.rest", does_nothing),),
        others_go_on_beside_a_question,
    ),
    "only who can look and say": (
        (("remit.engine.approvals:analysis_only", yes),),
        who_has_tools_is_asked_about,
    ),
}
CASES = dict.fromkeys(case for _, case in SAFEGUARDS.values())


@pytest.mark.rule("approval.safeguards")
@pytest.mark.parametrize("name", some(SAFEGUARDS, 6))
async def test_a_safeguard_that_is_gone_is_missed(name: str, tmp_path: Path, clock: FakeClock):
    removed, case = SAFEGUARDS[name]
    with ExitStack() as gone:
        for where, instead in removed:
            gone.enter_context(without(where, instead))
        assert not await case(Place(tmp_path, clock))


@pytest.mark.rule("approval.safeguards")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_with_all_of_them_in_place_nothing_is_missed(case: Case, tmp_path: Path, clock: FakeClock):
    assert await case(Place(tmp_path, clock, PATIENCE))

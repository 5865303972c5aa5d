"""The engine on PostgreSQL: what it is tested for on SQLite holds there too, by the same tests."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from typing import Any

import psycopg
import pytest

import remit
from remit.stores.postgres.database import PostgresDatabase
from remit.testing import FakeClock
from teams import team
from workers.crew import PATIENCE, as_url, sound, until

pytestmark = [pytest.mark.anyio, pytest.mark.rule("postgres.engine")]

# Some of each: those where the store has most to say, as decisions are made in its own thread and answers come later.
CHOSEN = {
    "delegation": (
        "the_sample_of_the_design_runs_as_printed",
        "a_refused_hop_leaves_the_run_going_and_stays_visible",
        "concurrent_delegations_through_one_agent_see_only_their_own_chain",
        "an_agent_with_a_limit_refuses_what_exceeds_it_if_nobody_waits",
    ),
    "tasks": (
        "an_agent_that_raises_has_failed",
        "a_deadline_really_cancels_the_work_below",
        "in_a_fan_out_one_bad_member_never_loses_the_others",
        "cancelling_a_run_stops_everything_below_it",
        "a_run_whose_caller_goes_away_is_recorded_as_cancelled",
    ),
    "context": (
        "every_turn_leaves_a_receipt",
        "boards_belong_to_a_session",
        "a_message_reaches_one_agent_in_one_session_once",
    ),
    "handoffs": (
        "the_new_holder_reads_what_was_handed_over_and_stands_in_the_chain",
        "ping_pong_stops_at_the_third_identical_handoff_and_ends_with_a_result",
        "a_concurrency_limit_holds_for_handoffs_too",
    ),
    "parallel_handoffs": ("a_parallel_handoff_joins_at_a_named_agent",),
    "entries": ("compare_and_set",),
    "plan_prompts": (
        "a_step_is_told_its_dependencies_results_in_their_order",
        "messages_between_members_are_told_once_and_reach_no_one_outside",
    ),
    "plans": ("a_failure_reaches_exactly_those_who_depend_on_it",),
    "team_runs": ("a_coordinator_plans_and_puts_the_pieces_together",),
    "led": (
        "a_submitted_plan_is_carried_out_and_tells_what_became_of_every_step",
        "a_plan_is_retried_by_hand_and_does_again_only_what_did_not_complete",
        "the_same_plan_is_the_same_task_and_another_is_not",
        "the_leader_of_a_submitted_plan_counts_neither_as_an_agent_nor_as_a_hop",
        "a_team_is_retried_with_the_plan_it_had_and_another_is_made_if_none_was_accepted",
        "an_agent_gives_a_goal_to_a_team_and_gets_its_answer",
    ),
    "breakers": (
        "of_a_hundred_at_once_exactly_one_is_the_probe",
        "a_breaker_survives_a_restart_and_holds_for_every_run",
        "a_task_handed_to_an_agent_that_rested_is_its_probe",
    ),
    "queue": (
        "submit_comes_back_at_once_and_the_task_runs_later",
        "what_nobody_has_hands_for_waits_until_someone_has",
        "a_task_of_another_workspace_is_not_found",
        "every_task_of_a_session_is_listed_with_state_and_times",
        "the_same_key_is_the_same_task_while_it_runs_and_after_it_failed",
        "what_waits_past_its_time_fails_and_never_begins",
    ),
    "retry": (
        "what_may_go_better_is_tried_again",
        "it_is_not_tried_before_its_time",
        "the_time_of_an_attempt_ends_the_code_and_the_next_attempt_has_its_own_time",
    ),
    "retry_by_hand": ("an_operators_retry_is_a_new_task_that_repeats_nothing",),
    "door": ("a_fan_out_whose_first_member_is_unknown_escapes_no_limit",),
    "consequences": ("an_end_brings_announcement_children_and_lesson_whichever_process_writes_it",),
    "cards": ("cards_that_a_worker_publishes_can_be_read_by_every_process_with_the_store",),
    "spawn": (
        "the_sixth_waits_until_one_of_five_has_ended",
        "what_comes_of_it_is_announced_once_to_its_asker",
        "an_announcement_nobody_is_left_to_read_is_kept_and_shown",
    ),
    "cancel": (
        "one_transaction_fences_the_whole_tree",
        "a_parent_is_cancelled_after_its_children",
        "nothing_is_recorded_in_the_name_of_a_cancelled_task",
        "another_process_can_cancel_what_runs_here",
    ),
    "takeover": (
        "a_zombie_changes_nothing",
        "a_zombies_result_does_not_replace_the_work_that_goes_on",
        "a_plan_or_team_run_by_a_program_that_is_gone_has_failed",
    ),
    "release": (
        "what_is_put_back_is_taken_up_where_it_was",
        "draining_waits_for_what_ends_in_time_and_takes_nothing_new",
        "what_a_finishing_turn_submits_while_draining_is_left_to_others",
    ),
    "replay": (
        "finished_delegations_and_steps_are_not_repeated",
        "context_writes_and_sends_are_not_repeated",
        "what_was_taken_from_the_inbox_is_found_again",
        "open_children_are_taken_up_and_not_started_twice",
        "submitted_and_spawned_children_are_asked_for_once",
        "steps_of_a_plan_are_not_repeated",
        "a_task_that_was_handed_over_goes_on_with_its_present_holder",
        "a_parallel_handoff_resumes",
    ),
    "lines": (
        "one_slot_is_enough_however_deep_someone_waits",
        "a_line_that_waits_is_cancelled_whole",
    ),
    "busy": (
        "a_fan_out_of_fifty_over_one_narrow_agent_is_done_in_turn",
        "two_narrow_agents_that_ask_each_others_kind_do_not_block_each_other",
        "an_agent_that_another_process_keeps_busy_is_waited_for",
    ),
    "effects": (
        "an_effect_with_other_arguments_on_a_re_run_is_told_and_ends_the_task",
        "a_process_that_lost_its_task_does_no_effect_and_reads_nothing",
    ),
    "questions": (
        "flows_that_come_back_in_another_order_get_their_own_receipts",
        "a_loop_over_a_list_that_changed_is_right_or_told",
        "the_same_words_with_other_context_are_another_question",
        "a_rewritten_plan_gets_the_answers_to_its_own_questions",
        "two_plans_at_once_with_the_same_ids_are_told_apart",
        "a_step_of_a_second_plan_does_not_get_the_first_ones_answer",
        "nobody_is_asked_again_about_a_step_because_a_process_died",
    ),
    "approvals": (
        "every_door_asks_a_person_and_goes_on_after_the_approval",
        "an_approval_is_for_one_hop_with_exactly_this_text",
        "the_task_is_done_as_it_was_approved_and_what_was_asked_stays_on_record",
    ),
    "asking": (
        "a_task_that_is_tried_again_asks_nobody_twice",
        "a_tool_is_used_with_the_arguments_as_they_were_approved",
        "the_first_answer_counts_and_the_second_is_told_whose_it_was",
        "of_many_answers_at_once_one_counts",
        "a_question_that_nobody_answers_has_its_default",
        "a_question_is_withdrawn_when_its_tree_is_cancelled",
    ),
    "asking_input": ("a_question_of_another_workspace_is_not_found",),
    "asking_clocks": (
        "a_task_that_asks_a_person_holds_no_slot",
        "an_agents_limit_holds_after_a_long_wait",
        "a_line_of_three_waits_longer_than_all_its_timers",
        "two_questions_at_once_stop_the_clock_once",
    ),
    "parked": (
        "a_question_outlives_its_process",
        "a_question_is_answered_where_there_is_no_process_at_all",
        "a_question_expires_although_nobody_waits_for_it",
        "what_is_parked_is_cancelled_whole",
        "a_parked_task_goes_on_when_the_task_that_asked_is_cancelled",
        "a_task_with_two_questions_goes_on_when_both_are_answered",
    ),
    "plan_approvals": ("a_person_approves_each_step",),
    "lineage": (
        "what_completed_below_one_that_failed_is_not_done_again",
        "an_effect_of_one_that_failed_is_not_done_again",
        "the_retry_of_a_step_finds_what_the_first_try_did",
        "what_one_that_is_tried_again_still_needs_is_not_pruned",
        "an_announcement_is_found_by_a_retried_task",
        "time_in_which_nobody_was_there_is_nobodys",
    ),
    "clocks": ("processes_whose_clocks_differ_share_a_queue",),
    "prune": ("runs_that_ended_more_than_four_days_ago_go_and_a_line_of_each_stays",),
    "journal": ("workspaces_share_a_file_and_nothing_else",),
}


class Folder:
    """Stands in for a folder: what would be a file in it is a database on the server, the same for the same name."""

    def __init__(self, new: Callable[[], str]) -> None:
        self._new = new
        self._made: dict[str, str] = {}

    def __truediv__(self, name: str) -> str:
        if name not in self._made:
            self._made[name] = as_url(self._new())
        return self._made[name]


@pytest.fixture
def tmp_path(new_address: Callable[[], str]) -> Folder:
    return Folder(new_address)


@pytest.fixture
def rt(request: pytest.FixtureRequest, address: str, clock: FakeClock) -> Iterator[remit.Runtime]:
    home = import_module(request.function.__module__)
    breaker = {"breaker": home.PATIENT} if hasattr(home, "PATIENT") else {}
    with team(as_url(address), clock=clock, **breaker) as runtime:
        yield runtime


AGAIN = {f"test_{module}_{name}" for module, names in CHOSEN.items() for name in names[1:]}  # left to make deep

for _module, _names in CHOSEN.items():
    for _name in _names:
        _test = getattr(import_module(f"engine.test_{_module}"), f"test_{_name}")
        globals()[f"test_{_module}_{_name}"] = _test


@pytest.mark.rule("drain.claims")
async def test_what_is_being_claimed_when_a_process_stops_serving_is_put_back(address: str, clock: FakeClock):
    """The claim is committed, and whoever asked for it is cancelled before it hears of that."""
    loop = asyncio.get_running_loop()

    def fault(name: str) -> None:
        if name == "store.after-commit" and _running(address):
            loop.call_soon_threadsafe(serving.cancel)

    async def late(_turn: remit.Turn) -> str:
        return "done"

    database = PostgresDatabase(address, fault=fault)
    with team(as_url(address), clock=clock, hands=0) as owner, team(database, clock=clock, hands=1) as server:
        server.agent("late")(late)
        owner.agent("late")(late)
        task = await owner.submit("late", "go")
        serving = asyncio.create_task(server.serve())
        await asyncio.wait([serving], timeout=20)
        assert serving.cancelled()
        assert (await task.status()).state == "pending"


def _running(address: str) -> bool:
    with psycopg.connect(address) as connection:
        return connection.execute("SELECT 1 FROM remit.task WHERE state = 'running'").fetchone() is not None


@pytest.mark.rule("effect.insist")
@pytest.mark.case("resume/step_locked")
async def test_an_effect_is_told_until_it_is_kept_while_another_program_has_locked_the_journal(address: str, caplog):
    charged: list[str] = []
    locks: list[psycopg.Connection[Any]] = []

    async def charge() -> str:
        charged.append("5")
        lock = await asyncio.to_thread(psycopg.connect, address)
        await asyncio.to_thread(lock.execute, "LOCK TABLE remit.event IN EXCLUSIVE MODE")
        locks.append(lock)
        return f"receipt {len(charged)}"

    with closing(PostgresDatabase(as_url(address), patience=0.3)) as database, team(database) as rt:

        @rt.agent
        async def till(turn: remit.Turn) -> str:
            return await turn.once("charge", charge)

        task = await rt.submit("till", "order 7")
        await until(lambda: "could not be recorded, trying again" in caplog.text or None)
        locks[0].close()
        assert await task.result(PATIENCE) == "receipt 1"
        assert charged == ["5"]
        assert (await task.status()).attempt == 1
        await sound(rt)

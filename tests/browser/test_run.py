"""The page of a run: what it shows while the run goes on, and what a person can do there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.conftest import OpenPage, Serve
from browser.serving import Served
from browser.teams_of_runs import CHAIN, ENDLESS, HOSTILE, HOSTILE_NAME
from browser.watching import Watch
from commands import command
from programs import PATIENCE
from remit.core.times import SECOND

Shot = Callable[[Page, str], Path]
BROKEN = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET")


def node(page: Page, agent: str) -> Locator:
    return page.locator(".run .node", has=page.locator(".nm", has_text=re.compile(rf"(^|→ ){agent}\b")))


def item(page: Page, agent: str) -> Locator:
    """A task in the list that the keyboard and screen readers use."""
    return page.get_by_role("treeitem", name=re.compile(rf"^{agent}\b"))


def pill(page: Page) -> Locator:
    return page.locator(".run .head .pill")


def go(served: Served, name: str) -> None:
    (served.folder / name).touch()


def asked(served: Served, run: str) -> Any:
    """Wait for the question of a run, and return it."""
    for event in events(served, run, until="question.asked"):
        if event["kind"] == "question.asked":
            return event["data"]
    raise AssertionError("nothing was asked")


def events(served: Served, run: str, *, until: str = "") -> list[Any]:
    found: list[Any] = []
    for _ in range(round(PATIENCE / 0.1)):
        found = served.call("GET", f"/v1/events?run={run}&limit=1000")["events"]
        if not until or any(event["kind"] == until for event in found):
            return found
    raise AssertionError(f"no {until}")


@pytest.mark.rule("page.live")
def test_a_run_is_shown_from_its_start_to_its_end(serve: Serve, open_page: OpenPage, shot: Shot):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    page = open_page(f"/runs/{run}", at=served)
    expect(node(page, "coder")).to_be_visible()
    expect(pill(page)).to_have_text("running")
    expect(page.locator(".sentence")).to_contain_text("lead asked coder; coder is at work")
    go(served, "go-coder")
    expect(node(page, "reviewer")).to_be_visible()
    expect(pill(page)).to_have_text("waits for you")
    expect(page.locator(".sentence")).to_contain_text("reviewer waits for you")
    shot(page, "run-asks")
    page.keyboard.press("a")
    expect(pill(page)).to_have_text("completed", timeout=2_000)
    expect(page.locator(".fact.money")).to_contain_text("$0.07 of $0.50")
    expect(page.get_by_role("region", name="Answered")).to_contain_text("published: publish version 1")
    shot(page, "run-done")


@pytest.mark.rule("page.refused")
def test_a_refused_delegation_stands_where_its_node_would_be_with_its_reason(
    serve: Serve, open_page: OpenPage, shot: Shot
):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    page = open_page(f"/runs/{run}", at=served)
    chip = page.locator(".run .chip", has_text="pricey")
    expect(chip).to_contain_text("credits")
    chip.click()
    expect(page.get_by_role("tab", name="Refused")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel")).to_contain_text("$9")
    expect(page.locator(".fact", has_text="refused")).to_contain_text("1")
    expect(page.get_by_role("treeitem", name="pricey refused: credits")).to_be_attached()
    shot(page, "run-refused")


@pytest.mark.rule("page.receipt")
def test_a_node_says_what_it_saw_why_and_what_was_withheld(serve: Serve, open_page: OpenPage, shot: Shot):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    go(served, "go-coder")
    served.call("POST", f"/v1/approvals/{(q := asked(served, run))['question']}/approve", {"digest": q["digest"]})
    served.outcome(run)
    page = open_page(f"/runs/{run}", at=served)
    node(page, "coder").click()
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text(re.compile(r"Saw \d+ tokens in 2 slices"))
    expect(panel.locator(".slice", has_text="spec/login")).to_contain_text("passed on")
    expect(panel.locator(".notpassed").first).to_contain_text("not passed")
    panel.locator(".slice", has_text="spec/login").hover()
    expect(page.locator(".arcs rect")).to_have_count(1)
    page.get_by_role("tab", name="Money").click()
    expect(panel).to_contain_text("Shares the money of lead; spent $0.07")
    expect(panel.locator(".row", has_text="a model")).to_contain_text("$0.05")
    shot(page, "run-receipt")


@pytest.mark.rule("page.decide")
def test_a_question_at_depth_3_is_edited_and_approved_by_the_keyboard(serve: Serve, open_page: OpenPage, shot: Shot):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    go(served, "go-coder")
    page = open_page(f"/runs/{run}", at=served)
    expect(page.get_by_role("button", name="Edit")).to_be_visible()
    page.keyboard.press("e")
    field = page.get_by_label("The task, as you approve it")
    expect(field).to_be_focused()
    expect(field).to_have_value("publish version 1")
    field.fill("publish version 2")
    shot(page, "run-edit")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(pill(page)).to_have_text("completed")
    expect(page.locator(".drawer")).to_contain_text("published: publish version 2")


@pytest.mark.rule("page.decide")
def test_a_question_is_rejected_with_a_reason(serve: Serve, open_page: OpenPage):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    go(served, "go-coder")
    page = open_page(f"/runs/{run}", at=served)
    expect(page.get_by_role("button", name="Reject")).to_be_visible()
    page.keyboard.press("r")
    page.keyboard.type("not on a Friday")
    page.keyboard.press("Enter")
    expect(pill(page)).to_have_text("failed")
    expect(page.locator(".drawer")).to_contain_text("not on a Friday")
    answered = next(one for one in events(served, run) if one["kind"] == "question.answered")
    assert (answered["data"]["state"], answered["data"]["why"]) == ("rejected", "not on a Friday")


@pytest.mark.rule("page.cancel")
def test_a_tree_is_cancelled_with_the_true_number_and_the_page_counts_down(
    serve: Serve, open_page: OpenPage, shot: Shot
):
    served = serve(ENDLESS)
    run = served.run("work")
    page = open_page(f"/runs/{run}", at=served)
    expect(page.locator(".run .node")).to_have_count(7)
    page.get_by_role("button", name="Cancel tree").click()
    page.get_by_label("Reason").fill("enough")
    shot(page, "run-cancel")
    page.get_by_role("button", name="Cancel 7 tasks").click()
    expect(pill(page)).to_have_text("cancelled", timeout=5_000)
    expect(page.locator(".run .node.stopped")).to_have_count(7)
    expect(page.get_by_text("Stopping 7 tasks")).to_be_visible()
    expect(page.get_by_role("region", name="Cancelled")).to_contain_text("enough")
    page.locator(".head").get_by_role("button", name="Retry").click()
    expect(pill(page)).to_have_text("running")
    assert run not in page.url


@pytest.mark.rule("page.moment")
def test_every_part_of_the_page_shows_the_same_moment(serve: Serve, open_page: OpenPage, shot: Shot):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    go(served, "go-coder")
    question = asked(served, run)
    served.call("POST", f"/v1/approvals/{question['question']}/approve", {"digest": question["digest"]})
    served.outcome(run)
    all_ = events(served, run)
    page = open_page(f"/runs/{run}", at=served)
    expect(pill(page)).to_have_text("completed")
    spent = next(at for at, event in enumerate(all_) if event["kind"] == "credits.spent")
    for _ in range(len(all_) - 1 - spent):
        page.keyboard.press("[")
    since = (all_[spent]["at"] - all_[0]["at"]) / SECOND
    expect(page.locator(".top-line")).to_contain_text(f"as it was at {since:.2f} s")
    expect(pill(page)).to_have_text("running")
    expect(page.locator(".fact.money")).to_contain_text("$0.05 of $0.50")
    expect(page.locator(".fact", has_text="tasks")).to_contain_text("2")
    expect(page.locator(".run .node")).to_have_count(2)
    expect(page.locator(".run .notyet")).to_have_count(2)
    expect(page.locator(".sentence")).to_have_text(
        "lead asked coder; coder is at work; 1 delegation refused (credits)."
    )
    expect(page.locator(".time")).to_contain_text("$0.45 of $0.50")
    expect(page.get_by_role("tab", name="Events")).to_contain_text(
        str(sum(event["task"] == run for event in all_[: spent + 1]))
    )
    shot(page, "run-moment")
    page.get_by_role("button", name="Back to now").click()
    expect(pill(page)).to_have_text("completed")


@pytest.mark.rule("page.moment")
def test_a_run_is_forked_from_the_moment_that_is_shown(serve: Serve, open_page: OpenPage):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    expect_started = events(served, run, until="credits.spent")
    page = open_page(f"/runs/{run}", at=served)
    expect(node(page, "coder")).to_be_visible()
    page.keyboard.press("[")
    page.get_by_role("button", name="Fork from here").click()
    page.get_by_role("button", name=f"Fork at event {expect_started[-2]['seq']}").click()
    expect(page.locator(".meta")).to_contain_text(f"fork at event {expect_started[-2]['seq']} of {run}")


@pytest.mark.rule("page.resume")
def test_the_page_goes_on_without_a_gap_after_the_server_was_killed(
    serve: Serve, open_page: OpenPage, watches: list[Watch], shot: Shot
):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    page = open_page(f"/runs/{run}", at=served)
    watches[0].forgive(*BROKEN)
    expect(node(page, "coder")).to_be_visible()
    served.kill()
    expect(page.get_by_role("status").filter(has_text="reconnecting, live view paused")).to_be_visible()
    shot(page, "run-reconnecting")
    go(served, "go-coder")
    served.again()
    expect(page.locator(".sentence")).to_contain_text("waits for you", timeout=30_000)
    node(page, "lead").click()
    page.get_by_role("tab", name="Events").click()
    shown = page.locator(".panel .row .faint").all_inner_texts()
    assert [int(one) for one in shown] == [one["seq"] for one in events(served, run) if one["task"] == run]


@pytest.mark.rule("page.removed")
def test_a_run_that_was_pruned_says_which_events_were_removed(serve: Serve, open_page: OpenPage, shot: Shot):
    served = serve()
    run = served.run("a")
    served.outcome(run)
    told = [event["seq"] for event in events(served, run)]
    served.stop()
    pruned = command(served.folder, "prune", "--days", "0.0000001", "--store", str(served.store))
    assert pruned.returncode == 0, pruned.stderr
    served.again()
    page = open_page(f"/runs/{run}", at=served)
    expect(page.locator(".run")).to_contain_text(f"-{told[-1]} were removed")
    shot(page, "run-pruned")


@pytest.mark.rule("page.hostile")
def test_texts_of_agents_are_texts_and_do_not_break_the_page(serve: Serve, open_page: OpenPage, shot: Shot):
    served = serve(HOSTILE)
    run = served.run(HOSTILE_NAME)
    served.outcome(run)
    page = open_page(f"/runs/{run}", at=served)
    expect(page.locator(".run .node")).to_have_count(5)
    expect(page.locator(".head .runtitle")).to_have_text(HOSTILE_NAME)
    for at in range(5):
        page.locator(".run .node").nth(at).click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(
            "document.querySelector('.drawer').scrollWidth <= document.querySelector('.drawer').clientWidth"
        )
    assert page.locator(".run img, .run script").count() == 0
    shot(page, "run-hostile")
    phone = open_page(f"/runs/{run}", at=served, phone=True)
    expect(phone.get_by_role("tree")).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(phone, "run-hostile-phone")

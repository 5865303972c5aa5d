"""Questions to people in the dashboard: by keyboard, by touch, with changes, and when somebody else was faster."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Locator, Page, Route, expect

from browser.axe import findings
from browser.conftest import OpenPage, Serve
from browser.serving import Served

Shot = Callable[[Page, str], Path]
OFFICE = (Path(__file__).parent / "office.py").read_text()
STREAM = "**/v1/events?words=true"
SENT = 15_000  # milliseconds: a decision is sent after five seconds


@pytest.fixture
def office(serve: Serve) -> Served:
    return serve(OFFICE)


def asked(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=name)


def state_of(office: Served, task: str) -> Any:
    return office.call("GET", f"/v1/tasks/{task}")["state"]


@pytest.mark.rule("page.decide")
def test_a_decision_by_keyboard_can_be_undone_and_is_sent_after_five_seconds(
    office: Served, open_page: OpenPage, shot: Shot
):
    task = office.run("put it on the servers", "deployer")
    page = open_page("/approvals", at=office)
    question = asked(page, "deployer wants to deploy")
    expect(question).to_contain_text("environment")
    expect(question.get_by_role("group", name="A diff")).to_contain_text("argon2.verify")
    expect(page).to_have_title(re.compile(r"^\(1\) Approvals"))
    shot(page, "approvals")
    page.keyboard.press("a")
    expect(question).to_contain_text("approving")
    page.keyboard.press("u")
    expect(question.get_by_role("button", name="Approve")).to_be_visible()
    assert state_of(office, task) == "waiting"
    page.keyboard.press("a")
    shot(page, "approvals-undo")
    expect(question).to_contain_text("approved by token", timeout=SENT)
    assert office.outcome(task)["value"] == "deployed to production"
    expect(page).to_have_title("Approvals · remit")


@pytest.mark.rule("page.decide")
def test_arguments_are_changed_with_a_diff_and_a_reason_reaches_the_agent(
    office: Served, open_page: OpenPage, shot: Shot
):
    task = office.run("put it on the servers", "deployer")
    page = open_page("/approvals", at=office)
    page.get_by_role("button", name="Edit").click()
    field = page.get_by_label("The arguments, as you approve them")
    field.fill('["production"]')
    page.get_by_role("button", name="Approve the change").click()
    expect(page.get_by_role("alert")).to_contain_text("a JSON object")
    field.fill('{"environment": "staging"}')
    expect(page.get_by_role("group", name="Differences")).to_contain_text('+ {"environment": "staging"}')
    shot(page, "approvals-edit")
    field.press("Control+Enter")
    expect(asked(page, "deployer wants to deploy")).to_contain_text("approved by token", timeout=SENT)
    assert office.outcome(task)["value"] == "deployed to staging"

    task = office.run("ship it", "shipper")
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="shipper wants to ask releaser")).to_be_visible()
    page.get_by_role("link", name="shipper wants to ask releaser").click()
    page.keyboard.press("r")
    page.get_by_label("Why?").fill("not on a Friday")
    page.get_by_role("button", name="Reject").click()
    expect(asked(page, "shipper wants to ask releaser")).to_contain_text("not on a Friday", timeout=SENT)
    assert "not on a Friday" in str(office.outcome(task))
    page.get_by_role("link", name="Decided").click()
    expect(page.get_by_role("list", name="Questions").get_by_role("listitem")).to_have_count(2)
    shot(page, "approvals-decided")


@pytest.mark.rule("page.decide")
def test_choices_words_results_and_money_are_answered_on_a_phone(office: Served, open_page: OpenPage, shot: Shot):
    colour, name = office.run("pick a colour", "chooser"), office.run("name it", "asker")
    text, money = office.run("announce it", "writer"), office.run("spend", "spender", credits="$0.10")
    page = open_page("/approvals", at=office, phone=True, dark=True)
    listed = page.get_by_role("list", name="Questions").get_by_role("listitem")
    expect(listed).to_have_count(4)
    assert findings(page) == []
    shot(page, "approvals-phone-dark")
    page.get_by_role("link", name="Which colour").tap()
    blue = page.get_by_role("button", name="blue")
    box = blue.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, "approvals-phone-choices-dark")
    blue.tap()
    page.get_by_label("Your answer").fill("Amber")  # the next question is shown at once
    page.get_by_role("button", name="Answer").tap()
    expect(page.get_by_role("button", name="Send back")).to_be_visible()
    shot(page, "approvals-phone-review-dark")
    page.get_by_role("button", name="Approve").tap()
    page.get_by_role("button", name="Approve").tap()
    assert [office.outcome(one)["value"] for one in (colour, name, money)] == ["blue", "Amber", "spent"]
    assert "new login" in office.outcome(text)["value"]


@pytest.mark.rule("page.decide")
def test_a_question_that_somebody_else_decided_turns_grey_with_name_and_time(
    office: Served, open_page: OpenPage, watches: list[Any], shot: Shot
):
    for task in ("first", "second"):
        office.run(task, "shipper")
    page = open_page("/approvals", at=office)
    watches[0].forgive("409")
    listed = page.get_by_role("list", name="Questions").get_by_role("listitem")
    expect(listed).to_have_count(2)
    first, second = office.call("GET", "/v1/approvals")["approvals"]
    office.call("POST", f"/v1/approvals/{second['id']}/reject", {"digest": second["digest"], "why": "too late"})
    expect(page.get_by_text("rejected by token")).to_be_visible()
    made = office.call("POST", "/v1/access", {"name": "ann", "scopes": ["approve"]})
    page.get_by_role("button", name="Approve").click()
    body = {"digest": first["digest"], "why": "no"}
    office.call("POST", f"/v1/approvals/{first['id']}/reject", body, key=made["key"])
    expect(page.get_by_role("status").filter(has_text="the first answer counts")).to_be_visible(timeout=SENT)
    expect(page.get_by_text(f"rejected by access:{made['id']}").first).to_be_visible()
    shot(page, "approvals-somebody-else")


@pytest.mark.rule("page.decide")
def test_a_question_that_was_decided_before_the_live_view_began_turns_grey_too(
    office: Served, open_page: OpenPage, watches: list[Any]
):
    for task in ("first", "second"):
        office.run(task, "shipper")
    page = open_page(at=office)
    watches[0].forgive("ERR_FAILED")
    page.route(STREAM, lambda route: route.abort())
    page.goto(f"{office.url}/approvals")
    listed = page.get_by_role("list", name="Questions").get_by_role("listitem")
    expect(listed).to_have_count(2)
    reject(office, office.call("GET", "/v1/approvals")["approvals"][1])
    page.unroute(STREAM)
    expect(page.get_by_text("rejected by token")).to_be_visible(timeout=SENT)
    expect(listed).to_have_count(2)


@pytest.mark.rule("page.decide")
def test_a_list_that_is_older_than_a_decision_does_not_open_the_question_again(office: Served, open_page: OpenPage):
    office.run("first", "shipper")
    page = open_page("/approvals", at=office)
    listed = page.get_by_role("list", name="Questions").get_by_role("listitem")
    expect(listed).to_have_count(1)
    held = list[tuple[Route, APIResponse]]()
    page.route("**/v1/approvals?limit=200", lambda route: held.append((route, route.fetch())))
    with page.expect_request("**/v1/approvals?limit=200"):
        office.run("second", "shipper")
    while not held:
        page.wait_for_timeout(10)
    reject(office, office.call("GET", "/v1/approvals")["approvals"][0])
    expect(listed).to_contain_text("rejected by token")
    for route, answer in held:
        route.fulfill(response=answer)
    expect(listed).to_have_count(2)
    expect(listed.first).to_contain_text("rejected by token")


def reject(office: Served, question: dict[str, Any]) -> None:
    office.call("POST", f"/v1/approvals/{question['id']}/reject", {"digest": question["digest"], "why": "too late"})


@pytest.mark.rule("page.scopes")
def test_a_key_that_may_only_read_sees_why_its_buttons_are_off(
    office: Served, open_page: OpenPage, watches: list[Any], shot: Shot
):
    made = office.call("POST", "/v1/access", {"name": "viewer", "scopes": ["read"]})
    task = office.run("ship it", "shipper")
    page = open_page("/approvals", at=office, key=made["key"])
    watches[0].forgive("403")
    question = asked(page, "shipper wants to ask releaser")
    expect(question).to_contain_text("This needs a key with the scope approve")
    page.keyboard.press("a")
    question.get_by_role("button", name="Approve").click(force=True)
    expect(page.get_by_role("status").filter(has_text="scope approve").first).to_be_visible()
    assert findings(page) == []
    shot(page, "approvals-read-only")
    assert state_of(office, task) == "waiting"
    page.goto(f"{office.url}/settings?tab=access")
    expect(page.get_by_role("alert")).to_contain_text("This key may not see this")
    shot(page, "settings-no-permission")

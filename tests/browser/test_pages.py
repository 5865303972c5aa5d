"""The pages of the dashboard: the main job of each, what is shown when there is nothing, and texts that mean harm."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Dialog, Page, Route, expect

from browser.axe import LOOKS, findings
from browser.conftest import OpenPage, Serve
from browser.serving import Served
from browser.test_pages_approvals import OFFICE, asked

Shot = Callable[[Page, str], Path]
# Texts in a space so narrow that each letter has its own line.
SQUEEZED = """[...document.querySelectorAll("main *")].filter((one) => {
  const text = [...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
  return text.length > 3 && one.clientWidth > 0 && one.clientWidth < 24 && one.clientHeight > 3 * one.clientWidth;
}).map((one) => one.outerHTML.slice(0, 80))"""
PATHS = ("/", "/approvals", "/agents", "/context", "/spend", "/settings?tab=workers", "/settings?tab=schedules")


@pytest.fixture
def office(serve: Serve) -> Served:
    return serve(OFFICE)


def filled(office: Served) -> None:
    """Let every kind of thing happen once."""
    ended = [
        office.run("build the login of the shop", "lead", credits="$0.50"),
        office.run("call a model", "payer"),
        office.run("check the words", "speller"),
    ]
    for agent in ("shipper", "deployer", "chooser"):
        office.run(f"work for {agent}", agent)
    office.run("guard the servers over night", "sleeper", credits="$0.10")
    for one in ended:
        office.outcome(one)


def row(page: Page, text: str):
    return page.get_by_role("row").filter(has_text=text)


def settled(page: Page) -> None:
    """Wait until nothing on the page is loading any more."""
    expect(page.locator(".loading")).to_have_count(0)
    expect(page.locator("header.top").get_by_text("live", exact=True)).to_be_visible()


@pytest.mark.rule("page.runs")
def test_a_list_of_runs_that_is_older_than_its_events_is_shown_with_them(office: Served, open_page: OpenPage):
    page = open_page("/approvals", at=office)  # it reads the stream for both
    other = page.context.new_page()
    other.goto(office.url)
    for one in (page, other):
        settled(one)
    held = list[tuple[Route, APIResponse]]()
    page.route("**/v1/runs?*", lambda route: held.append((route, route.fetch())), times=1)
    page.get_by_role("link", name="Runs").first.click()
    while not held:
        page.wait_for_timeout(10)
    for number in range(2):
        office.run(f"check page {number}", "speller")
    for number in range(2):
        expect(row(other, f"check page {number}")).to_contain_text("completed")
    for route, answer in held:
        route.fulfill(response=answer)
    for number in range(2):
        expect(row(page, f"check page {number}")).to_contain_text("completed")
    expect(row(page, "check page")).to_have_count(2)


@pytest.mark.rule("page.runs")
def test_runs_appear_and_change_without_a_reload_and_several_are_cancelled(
    office: Served, open_page: OpenPage, watches: list[Any], shot: Shot
):
    page = open_page("/", at=office)
    expect(page.get_by_text("No run yet")).to_be_visible()
    shot(page, "runs-empty")
    settled(page)
    filled(office)
    expect(row(page, "guard the servers")).to_contain_text("running")
    expect(row(page, "guard the servers")).to_contain_text("$0.09 of $0.10")
    expect(row(page, "build the login")).to_contain_text("completed")
    expect(row(page, "work for shipper")).to_contain_text("waits for you")
    assert len([one for one in watches[0].requests if "/v1/runs" in one]) <= 2  # the stream tells the rest
    needs = page.get_by_role("region", name="Needs you")
    expect(needs).to_contain_text("$0.09 of $0.10 used")
    assert findings(page) == []
    shot(page, "runs")
    page.reload()
    expect(row(page, "build the login")).to_contain_text("$0.37 of $0.50")
    for _ in range(2):
        page.keyboard.press("j")
    page.keyboard.press("x")
    row(page, "guard the servers").get_by_role("checkbox").check()
    page.get_by_role("region", name="Chosen runs").get_by_role("button", name="Cancel 2 runs").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel 2 runs?")
    assert findings(page) == []
    shot(page, "runs-cancel")
    dialog.get_by_role("button", name="Cancel 2 runs").click()
    expect(row(page, "guard the servers")).to_contain_text("cancelled")
    page.get_by_label("State").select_option("completed")
    expect(row(page, "guard the servers")).to_have_count(0)
    assert "state=completed" in page.url
    page.goto(f"{office.url}/?text=nothing+has+this")
    expect(page.get_by_text("No run fits this filter")).to_be_visible()


@pytest.mark.rule("page.agents")
def test_a_breaker_is_tripped_and_reset_and_unused_permissions_are_listed(
    office: Served, open_page: OpenPage, shot: Shot
):
    filled(office)
    page = open_page("/agents", at=office)
    settled(page)
    page.get_by_role("button", name="Trip the breaker of speller").click()
    page.get_by_label("Why?").fill("it is ill")
    page.get_by_role("dialog").get_by_role("button", name="Trip").click()
    expect(row(page, "speller").first).to_contain_text("out of service")
    expect(page.get_by_role("banner")).to_contain_text("speller is out")
    assert findings(page) == []
    shot(page, "agents")
    page.get_by_role("heading", name="Who asks whom").scroll_into_view_if_needed()
    shot(page, "agents-matrix")
    page.get_by_role("button", name="Reset the breaker of speller").click()
    page.get_by_role("dialog").get_by_role("button", name="Reset").click()
    expect(page.get_by_role("banner")).not_to_contain_text("speller is out")
    expect(page.get_by_role("listitem").filter(has_text="lead never asked")).to_contain_text("writer")
    page.get_by_role("link", name="coder", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("write code")
    assert findings(page) == []
    shot(page, "agents-card")


@pytest.mark.rule("page.context")
def test_an_entry_is_written_with_its_history_and_not_over_a_newer_version(
    office: Served, open_page: OpenPage, watches: list[Any], shot: Shot
):
    filled(office)
    page = open_page("/context/spec/auth", at=office)
    watches[0].forgive("409", "404")
    entry = page.get_by_role("region", name="spec/auth")
    expect(entry).to_contain_text("for 12 hours")
    entry.locator("summary").first.click()
    expect(entry.get_by_role("group", name="Differences")).to_contain_text("+ for 12 hours")
    assert findings(page) == []
    shot(page, "context")
    entry.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    office.call("PUT", "/v1/context/spec/auth", {"value": "somebody was faster"})
    dialog.get_by_label("Text").fill("mine")
    dialog.get_by_role("button", name="Write").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    entry.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Text")).to_have_value("somebody was faster")
    dialog.get_by_label("Text").fill("mine")
    dialog.get_by_label("Seconds").fill("3600")
    dialog.get_by_role("button", name="Write").click()
    expect(entry.locator(".entry-text")).to_have_text("mine")
    expect(entry).to_contain_text("60 min left")
    entry.get_by_role("button", name="Remove").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("mine", exact=True)).to_have_count(0)


@pytest.mark.rule("page.spend")
def test_money_is_shown_granted_reconciled_and_downloaded(
    office: Served, open_page: OpenPage, watches: list[Any], shot: Shot
):
    filled(office)
    page = open_page("/spend", at=office)
    watches[0].forgive("422")
    expect(page.get_by_role("row").filter(has_text="total")).to_contain_text("$0.66")
    assert findings(page) == []
    shot(page, "spend")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    lines = Path(download.value.path()).read_bytes().decode().split("\r\n")
    assert lines[0] == "agent,dollars,tokens,calls,uncertain dollars,own key dollars"
    assert "coder,0.27,0,1,0,0" in lines
    page.get_by_role("button", name="Reconcile").click()
    page.get_by_label("Real cost").fill("much")
    page.get_by_role("dialog").get_by_role("button", name="Reconcile").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    page.get_by_label("Real cost").fill("$0.01")
    page.get_by_role("dialog").get_by_role("button", name="Reconcile").click()
    expect(page.get_by_text("None: the cost of every call is known.")).to_be_visible()
    page.get_by_role("button", name="Grant money").click()
    page.get_by_label("Amount").fill("$10")
    page.get_by_role("dialog").get_by_role("button", name="Grant").click()
    expect(page.get_by_text("Account, money")).to_be_visible()


@pytest.mark.rule("page.settings")
def test_old_runs_are_counted_and_pruned(served: Served, open_page: OpenPage, shot: Shot):
    served.outcome(served.run("a"))
    page = open_page("/settings?tab=keep", at=served)
    expect(page.get_by_role("status").filter(has_text="0 runs")).to_be_visible()
    expect(page.get_by_role("button", name="Prune")).to_have_attribute("title", "No run is that old.")
    page.route("**/v1/prune?days=1", lambda route: route.fulfill(json={"prunable": 3}))
    page.get_by_label("Ended more than").fill("1")
    expect(page.get_by_role("status").filter(has_text="3 runs")).to_be_visible()
    shot(page, "settings-keep")
    page.get_by_role("button", name="Prune").click()
    page.get_by_role("button", name="Delete 3 runs").click()
    expect(page.get_by_text("0 runs deleted")).to_be_visible()  # those of the test are new


@pytest.mark.rule("page.settings")
def test_a_key_is_shown_once_and_revoked_and_a_hook_is_added(serve: Serve, open_page: OpenPage, shot: Shot):
    office = serve(OFFICE, REMIT_MASTER_KEY="MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
    page = open_page("/settings", at=office)
    page.get_by_role("button", name="Create an access key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name, for lists").fill("nightly")
    dialog.get_by_role("checkbox", name="run").check()
    assert findings(page) == []
    dialog.get_by_role("button", name="Create").click()
    key = dialog.locator(".once code").inner_text()
    assert office.call("GET", "/v1/runs", key=key)["runs"] == []
    shot(page, "settings-key")
    dialog.get_by_role("button", name="I have it").click()
    expect(row(page, "nightly")).to_contain_text("active")
    assert key not in page.content()
    page.get_by_role("button", name="Revoke nightly").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(row(page, "nightly")).to_contain_text("revoked")
    shot(page, "settings-access")
    page.get_by_role("tab", name="Hooks").click()
    page.get_by_role("button", name="Add a hook").click()
    dialog.get_by_label("Address").fill("https://hooks.example/remit")
    dialog.get_by_role("button", name="Add").click()
    secret = dialog.locator(".once code").inner_text()
    dialog.get_by_role("button", name="I have it").click()
    expect(row(page, "https://hooks.example/remit")).to_contain_text("task.failed")
    assert secret not in page.content()
    page.get_by_role("button", name="Deliveries").click()
    expect(page.get_by_text("Nothing was sent yet.")).to_be_visible()
    assert findings(page) == []
    page.get_by_role("tab", name="Workers").click()
    expect(page.get_by_role("table")).to_contain_text("100")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("appr")
    expect(page.get_by_role("option", name="Approvals")).to_have_attribute("aria-selected", "true")
    assert findings(page) == []
    shot(page, "palette")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/approvals$"))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("go to Spend")
    shot(page, "keys")


@pytest.mark.rule("page.hostile")
def test_texts_of_agents_stay_texts_and_break_no_layout(
    office: Served, open_page: OpenPage, watches: list[Any], shot: Shot
):
    office.run("<script>alert(1)</script> " + "W" * 10_000, "hostile")
    page = open_page("/approvals", at=office)
    watches[0].forgive("404")
    alerts = list[str]()

    def heard(dialog: Dialog) -> None:
        alerts.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", heard)
    expect(page.get_by_role("button", name="<b>yes</b>")).to_be_visible()
    entry = "/context/%3Cb%3Espace%3C%2Fb%3E/%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    for path in ("/approvals", "/", "/agents/hostile", entry):
        page.goto(f"{office.url}{path}")
        settled(page)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)
            shot(page, f"hostile-{path.split('/')[1] or 'runs'}-{width}")
        page.set_viewport_size({"width": 1280, "height": 844})
        assert page.locator("main img, main script, main b b").count() == 0
    assert alerts == []


@pytest.mark.rule("page.states")
def test_the_pages_say_that_the_server_is_gone_and_catch_up(
    office: Served, open_page: OpenPage, watches: list[Any], shot: Shot
):
    page = open_page("/", at=office)
    settled(page)
    watches[0].forgive("ERR_", "401")
    office.kill()
    expect(page.get_by_role("banner").get_by_role("status")).to_have_text("reconnecting")
    page.get_by_role("link", name="Spend").click()
    expect(page.get_by_role("alert").first).to_contain_text("The server does not answer")
    shot(page, "server-gone")
    office.again()
    office.run("after the pause", "speller")
    page.get_by_role("link", name="Runs").click()
    expect(row(page, "after the pause")).to_contain_text("completed", timeout=30_000)
    expect(page.get_by_role("banner").get_by_role("status")).to_have_text("live")


@pytest.mark.rule("page.accessible")
@pytest.mark.parametrize(("dark", "phone"), LOOKS)
def test_axe_finds_nothing_in_either_theme_and_on_the_phone(
    office: Served, open_page: OpenPage, shot: Shot, watches: list[Any], dark: bool, phone: bool
):
    page = open_page("/context", at=office, dark=dark, phone=phone)
    watches[0].forgive("404")
    expect(page.get_by_text("No shared context yet")).to_be_visible()
    assert findings(page) == []
    filled(office)
    how = f"{'phone' if phone else 'desk'}-{'dark' if dark else 'light'}"
    for path in (*PATHS, "/context/codebase/auth", "/context/spec/auth", "/settings?tab=keep"):
        page.goto(f"{office.url}{path}")
        settled(page)
        assert findings(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.evaluate(SQUEEZED) == [], path
        shot(page, f"{re.sub(r'[^a-z]+', '-', path).strip('-') or 'runs'}-{how}")
    page.goto(f"{office.url}/approvals/{office.call('GET', '/v1/approvals')['approvals'][1]['id']}")
    expect(asked(page, "deployer wants to deploy")).to_be_visible()
    assert findings(page) == []
    shot(page, f"approval-{how}")

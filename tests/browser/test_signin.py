"""Signing in: by the printed address, by typing a key, not with a wrong one, and for as long as the session counts."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import OpenPage
from browser.serving import Served
from browser.watching import Watch

Shot = Callable[[Page, str], Path]


def the_pages(page: Page):
    return page.get_by_role("navigation", name="Pages")


@pytest.mark.rule("page.key")
def test_the_printed_address_signs_in_and_the_key_leaves_it(served: Served, open_page: OpenPage):
    page = open_page("/approvals?state=open")
    assert page.url == f"{served.url}/approvals?state=open"
    kept = page.evaluate(
        "[document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href]"
    )
    assert served.token not in str(kept)
    page.go_back()
    assert served.token not in page.url
    (cookie,) = page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite"), cookie.get("path")) == (True, "Strict", "/")
    page.goto(served.url)
    expect(the_pages(page)).to_be_visible()


@pytest.mark.rule("page.key")
def test_a_wrong_key_is_refused_with_a_sentence_and_a_right_one_is_taken(
    served: Served, open_page: OpenPage, watches: list[Watch], shot: Shot
):
    page = open_page(key="")
    watches[0].forgive("401")
    field = page.get_by_label("Token or key")
    field.fill("rmt_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("valid key")
    expect(field).to_be_focused()
    shot(page, "signin-wrong")
    field.fill(served.token)
    page.get_by_role("button", name="Sign in").click()
    expect(the_pages(page)).to_be_visible()


@pytest.mark.rule("http.session")
def test_a_session_outlives_a_restart_and_ends_with_its_access(
    served: Served, open_page: OpenPage, watches: list[Watch]
):
    made = served.call("POST", "/v1/access", {"name": "page", "scopes": ["admin"]})
    page = open_page(key=made["key"])
    watches[0].forgive("401", "net::ERR_")  # requests are cut in whatever way when a server is killed
    served.kill()
    served.again()
    page.reload()
    expect(the_pages(page)).to_be_visible()
    served.call("DELETE", f"/v1/access/{made['id']}")
    page.reload()
    expect(page.get_by_role("heading", name="Sign in to remit")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_signing_in_works_on_a_phone_and_in_the_dark(open_page: OpenPage, watches: list[Watch], shot: Shot):
    page = open_page(key="", phone=True, dark=True)
    watches[0].forgive("401")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    button = page.get_by_role("button", name="Sign in").bounding_box()
    assert button is not None
    assert button["height"] >= 44
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, "signin-phone-dark")


@pytest.mark.rule("page.policy")
def test_the_policy_of_the_page_is_strict_and_holds(open_page: OpenPage, watches: list[Watch]):
    page = open_page()
    watches[0].forgive("content policy", "Content Security Policy", "127.0.0.1:9")
    with page.expect_event("requestfailed") as failed:
        done = page.evaluate("""() => {
      const tag = document.createElement("script");
      tag.textContent = "window.broken = true";
      document.body.append(tag);
      const link = document.createElement("img");
      link.src = "http://127.0.0.1:9/x.png";
      document.body.append(link);
      document.body.insertAdjacentHTML("beforeend", "<b id=b style='color: red' onclick='window.broken = true'>x</b>");
      document.getElementById("b").click();
      return [window.broken ?? null, getComputedStyle(document.getElementById("b")).color];
    }""")
    assert done[0] is None
    assert done[1] != "rgb(255, 0, 0)"
    assert failed.value.failure == "csp"


def test_a_page_that_is_not_there_says_so(open_page: OpenPage):
    page = open_page("/runs/a/b/c")
    expect(page.get_by_role("heading", name=re.compile("no such page"))).to_be_visible()

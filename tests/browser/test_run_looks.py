"""The page of a run for everybody: by keyboard, with a screen reader, on a phone, in the dark, and when it is large."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.axe import LOOKS, findings
from browser.conftest import OpenPage, Serve
from browser.large_runs import RUN, LargeRun, watched
from browser.serving import Served
from browser.teams_of_runs import CHAIN
from browser.test_run import go, item, node, pill
from remit.core.times import SECOND

Shot = Callable[[Page, str], Path]


@pytest.fixture
def asking(serve: Serve) -> tuple[Served, str]:
    """A run that waits for a person at depth 3, with two refusals."""
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    go(served, "go-coder")
    return served, run


@pytest.mark.rule("page.accessible")
@pytest.mark.parametrize(("dark", "phone"), LOOKS)
def test_axe_finds_nothing_wrong_with_the_page_of_a_run(
    asking: tuple[Served, str], open_page: OpenPage, shot: Shot, dark: bool, phone: bool
):
    served, run = asking
    page = open_page(f"/runs/{run}", at=served, dark=dark, phone=phone)
    expect(page.get_by_role("button", name="Edit")).to_be_visible()
    shot(page, f"run-{'phone' if phone else 'desk'}-{'dark' if dark else 'light'}")
    assert findings(page) == []
    for tab in ("Money", "Events"):
        page.get_by_role("tab", name=tab).click()
        assert findings(page) == []


@pytest.mark.rule("page.accessible")
def test_the_arrow_keys_walk_the_tree(asking: tuple[Served, str], open_page: OpenPage):
    served, run = asking
    page = open_page(f"/runs/{run}", at=served)
    expect(item(page, "reviewer")).to_be_attached()
    item(page, "reviewer").focus()
    page.keyboard.press("ArrowLeft")
    expect(item(page, "coder")).to_be_focused()
    expect(page.locator(".drawer h2").last).to_have_text("coder")
    page.keyboard.press("Home")
    expect(item(page, "lead").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(item(page, "pricey")).to_be_focused()
    expect(page.get_by_role("tab", name="Refused")).to_have_attribute("aria-selected", "true")
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    expect(page.locator(".top-line")).to_contain_text("as it was at 0.00 s")
    page.keyboard.press("Escape")
    expect(page.get_by_text("as it was at")).to_have_count(0)


@pytest.mark.rule("page.decide")
def test_on_a_phone_the_question_comes_first_with_large_buttons(
    asking: tuple[Served, str], open_page: OpenPage, shot: Shot
):
    served, run = asking
    page = open_page(f"/runs/{run}", at=served, phone=True)
    approve = page.get_by_role("button", name="Approve")
    box = approve.bounding_box()
    tree = page.get_by_role("tree").bounding_box()
    assert box is not None
    assert tree is not None
    assert box["height"] >= 44
    assert box["y"] < tree["y"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    approve.tap()
    expect(pill(page)).to_have_text("completed")
    shot(page, "run-phone-done")


@pytest.mark.rule("page.accessible")
def test_nothing_moves_for_a_person_who_wants_no_motion(asking: tuple[Served, str], open_page: OpenPage):
    served, run = asking
    page = open_page(f"/runs/{run}", at=served, reduced_motion="reduce")
    expect(node(page, "reviewer")).to_be_visible()
    assert page.evaluate("document.getAnimations().length") == 0


@pytest.mark.rule("page.lost")
def test_the_node_of_a_worker_that_is_silent_is_hollow(serve: Serve, open_page: OpenPage):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    page = open_page("/", at=served)
    (worker,) = served.call("GET", "/v1/workers")["workers"]
    silent = {**worker, "seen_at": worker["seen_at"] - 31 * SECOND}
    told = [[{**worker, "id": "other"}, silent]]
    page.route("**/v1/workers", lambda route: route.fulfill(json={"workers": told[0]}))
    page.goto(f"{served.url}/runs/{run}")
    expect(node(page, "coder").locator(".glyph.s-gone")).to_be_visible()
    told[0] = [worker]
    page.reload()
    expect(node(page, "coder").locator(".glyph.s-live")).to_be_visible()


@pytest.mark.rule("page.large")
def test_a_run_of_1000_tasks_is_drawn_and_kept_up_to_date(served: Served, open_page: OpenPage, shot: Shot):
    page = open_page("/", at=served)
    run = LargeRun(1_000)
    run.serve(page)
    page.goto(f"{served.url}/runs/{RUN}")
    expect(node(page, "lead")).to_be_visible(timeout=30_000)
    expect(page.locator(".fact", has_text="tasks")).to_contain_text("1,000")
    assert page.locator(".run .node").count() < 300  # what is out of sight is not drawn
    shot(page, "run-1000")
    seen = watched(page, run, 60)
    expect(page.locator(".fact.money")).to_contain_text("$0.0030")
    assert max(seen["tasks"], default=0) < 1_000, sorted(seen["tasks"])[-5:]
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    expect(page.locator(".top-line")).to_contain_text("as it was at 0.00 s")
    expect(page.locator(".run .node")).to_have_count(1)


@pytest.mark.rule("page.large")
def test_many_tasks_of_one_agent_are_a_stack_that_lists_them(served: Served, open_page: OpenPage, shot: Shot):
    page = open_page("/", at=served)
    run = LargeRun(2)
    for number in range(900):
        run.start(f"e{number}", "echo", "t0")
    run.serve(page)
    page.goto(f"{served.url}/runs/{RUN}")
    stack = page.locator(".run .node.stacked")
    expect(stack).to_contain_text("900")
    stack.click()
    expect(page.locator(".members li")).to_have_count(100)
    shot(page, "run-stack")
    page.locator(".member").first.click()
    expect(page.locator(".drawer h2")).to_have_text("echo")

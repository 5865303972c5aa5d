"""The one stream of a browser: several tabs share it, and what models say comes with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from browser.conftest import OpenPage, Serve
from browser.models import SteppedClock, models
from browser.serving import Served
from browser.teams_of_runs import CHAIN, PORTER, SPEAKER
from browser.test_run import events, go, item, node, pill
from browser.watching import Watch
from remit.testing.models import Calls, ModelReply, Says, Slow

Shot = Callable[[Page, str], Path]
STREAM = "/v1/events?words=true"


def streams(watch: Watch) -> int:
    return sum(STREAM in one for one in watch.requests)


def seen(page: Page) -> list[int]:
    """The numbers of the events of the chosen task, as its drawer lists them."""
    page.get_by_role("tab", name="Events").click()
    return [int(one) for one in page.locator(".panel .row .faint").all_inner_texts()]


@pytest.mark.rule("page.tabs")
def test_tabs_share_one_stream_and_another_takes_over_when_its_reader_is_closed(
    serve: Serve, open_page: OpenPage, watches: list[Watch]
):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    leader = open_page(f"/runs/{run}", at=served)
    expect(node(leader, "coder")).to_be_visible()
    others = [leader.context.new_page() for _ in range(2)]
    for page in others:
        page.goto(f"{served.url}/runs/{run}")
        expect(page.locator(".live")).to_have_text("live")
        expect(node(page, "coder")).to_be_visible()
    assert streams(watches[0]) == 1
    leader.close()
    go(served, "go-coder")  # the events come before, while and after another tab takes over
    for page in others:
        expect(pill(page)).to_have_text("waits for you")
        expect(page.locator(".live")).to_have_text("live")
    assert streams(watches[0]) == 2
    others[0].keyboard.press("a")
    for page in others:
        expect(pill(page)).to_have_text("completed")
        node(page, "lead").click()
        expect(page.get_by_role("region", name="Answered")).to_contain_text("published")
        assert seen(page) == [one["seq"] for one in events(served, run) if one["task"] == run]
    assert streams(watches[0]) == 2


@pytest.mark.rule("page.tabs")
def test_a_tab_that_was_asleep_reads_what_it_missed(serve: Serve, open_page: OpenPage):
    served = serve(CHAIN)
    run = served.run("build the login", credits="0.50USD")
    awake = open_page(f"/runs/{run}", at=served)
    asleep = awake.context.new_page()
    asleep.goto(f"{served.url}/runs/{run}")
    expect(node(asleep, "coder")).to_be_visible()
    cdp = asleep.context.new_cdp_session(asleep)
    cdp.send("Page.setWebLifecycleState", {"state": "frozen"})
    go(served, "go-coder")
    expect(pill(awake)).to_have_text("waits for you")
    cdp.send("Page.setWebLifecycleState", {"state": "active"})
    expect(pill(asleep)).to_have_text("waits for you")


@contextmanager
def speaking(serve: Serve, *replies: ModelReply, team: str = SPEAKER) -> Iterator[tuple[Served, SteppedClock]]:
    clock = SteppedClock()
    with models(replies, clock) as server:
        served = serve(team, MODELS=server.url, OPENAI_KEY="sk-of-a-test-0123456789")
        with listening(served):
            yield served, clock


@contextmanager
def listening(served: Served) -> Iterator[None]:
    """Somebody who listens all the time: an answer is streamed only if somebody does when it begins, and a page that
    goes from one run to another may not, just then."""
    headers = {"authorization": f"Bearer {served.token}", "accept": "text/event-stream"}
    with httpx.stream("GET", f"{served.url}/v1/events?words=true", headers=headers, timeout=None) as answer:
        assert answer.is_success
        yield


@pytest.mark.rule("page.words")
@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
def test_what_a_model_says_is_shown_while_it_speaks_and_replaced_by_its_answer(
    serve: Serve, open_page: OpenPage, shot: Shot, phone: bool
):
    with speaking(serve, Slow(Says("The harbour is full of ships. Most of them are old."), 60)) as (served, clock):
        page = open_page("/", at=served, phone=phone)
        run = served.run("describe the harbour", "speaker", credits="1USD")
        page.goto(f"{served.url}/runs/{run}")
        expect(page.locator(".live")).to_have_text("live")
        expect(pill(page)).to_have_text("running")
        shown = item(page, "speaker") if phone else node(page, "speaker")
        clock.step(5)  # of nine pieces
        expect(shown).to_contain_text("our is full of ships.")
        expect(page.get_by_role("region", name="Is saying")).to_contain_text("our is full of ships.")
        shot(page, f"run-words{'-phone' if phone else ''}")
        page.reload()
        expect(page.locator(".live")).to_have_text("live")
        clock.step(2)  # the page that was opened in the middle of an answer is told its beginning, and hears the rest
        expect(shown).to_contain_text("st of them are o")
        said = page.get_by_role("region", name="Is saying")
        expect(said).to_contain_text("The harbour is full of ships. Most of them are o")
        clock.free()
        expect(pill(page)).to_have_text("completed")
        expect(page.get_by_role("region", name="Answered")).to_contain_text("Most of them are old.")
        expect(page.get_by_role("region", name="Is saying")).to_have_count(0)
        expect(shown).to_contain_text("describe the harbour")
        page.get_by_role("tab", name="Models").click()
        expect(page.get_by_role("tabpanel")).to_contain_text("The harbour is full of ships. Most of them are old.")


@pytest.mark.rule("page.words")
def test_a_view_that_opens_in_the_middle_of_an_answer_shows_its_beginning(serve: Serve, open_page: OpenPage):
    with speaking(serve, Slow(Says("The harbour is full of ships. Most of them are old."), 60)) as (served, clock):
        first = open_page("/", at=served)  # its stream is that of all tabs
        expect(first.locator(".live")).to_have_text("live")
        run = served.run("describe the harbour", "speaker", credits="1USD")
        second, third = first.context.new_page(), first.context.new_page()
        second.goto(f"{served.url}/runs/{run}")
        clock.step(4)  # of nine pieces
        said = "The harbour is full of "  # the last letter may begin a secret
        expect(second.get_by_role("region", name="Is saying")).to_have_text(said)
        first.get_by_role("link", name="describe the harbour").click()
        expect(first.get_by_role("region", name="Is saying")).to_have_text(said)
        third.goto(f"{served.url}/runs/{run}")
        expect(third.get_by_role("region", name="Is saying")).to_have_text(said)
        clock.free()
        for page in (first, second, third):
            expect(page.get_by_role("region", name="Answered")).to_contain_text("Most of them are old.")
            expect(page.get_by_role("region", name="Is saying")).to_have_count(0)


@pytest.mark.rule("page.words")
def test_a_program_behind_the_gateway_shows_its_words_its_model_calls_and_its_tools(
    serve: Serve, open_page: OpenPage, shot: Shot
):
    called = Calls("bash", {"command": "pytest -q"}, text="I run the tests first.")
    replies = (called, Slow(Says("All tests pass, so it is ported."), 60))
    with speaking(serve, *replies, team=PORTER) as (served, clock):
        page = open_page("/", at=served)
        run = served.run("port the parser", "porter", credits="1USD")
        page.goto(f"{served.url}/runs/{run}")
        page.get_by_role("tab", name="Tools").click()
        panel = page.get_by_role("tabpanel")
        expect(panel).to_contain_text('bash({"command": "pytest -q"})')
        clock.free()
        expect(pill(page)).to_have_text("completed")
        expect(panel.locator(".row")).to_contain_text("2 passed")
        page.get_by_role("tab", name="Models").click()
        expect(panel.locator(".row")).to_have_count(2)
        expect(panel).to_contain_text("I run the tests first.")
        expect(panel).to_contain_text("All tests pass, so it is ported.")
        shot(page, "run-program")

"""A run drawn as a picture: cards, edges, plans and bars."""

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from remit.core.times import SECOND
from remit.errors import BadInput
from remit.report import flow
from remit.report.flow import theme as flow_theme
from report.runs import (
    NOW,
    SVG,
    bushy,
    chain,
    drawn_with,
    fan,
    long_plan,
    node,
    picture,
    pingpong,
    planned,
    queue,
    receipt,
    refusal,
    relay,
    retry,
    scattered,
    seen,
    step,
    team,
    texts,
)

# -- svg -----------------------------------------------------------------------------------------------------


def test_svg_says_what_it_shows_to_those_who_do_not_see_it():
    drawn = picture(team())
    labels = drawn.get("aria-labelledby", "").split()
    assert drawn.get("role") == "img"
    title, summary = (drawn.findtext(f"*[@id='{label}']") for label in labels)
    assert title == "lead: ship it"
    assert summary == (
        "lead running · 2 min 14 s · 5 tasks (1 completed, 2 running, 1 failed, 1 cancelled) · "
        "2,424 tokens seen · 1 hop refused"
    )


def test_svg_draws_a_card_for_each_task_and_each_refused_hop():
    drawn = picture(team())
    said = texts(drawn)
    assert len(drawn_with(drawn, "edge")) == 5
    for words in ("reader", "31.0 s", "fetch 6 pages", "→ 6 pages", "2 ctx · 2.4k tok", "\N{MINUS SIGN}4"):
        assert words in said
    for words in ("waits for coder", "failed: OSError: no disk", "was cancelled: enough", "⊘ loop"):
        assert words in said
    assert len(drawn_with(drawn, "edge", "refusal", "refused")) == 1
    assert len(drawn_with(drawn, "card", "refused")) == 1


def test_svg_says_what_a_task_is_doing():
    assert "working" in texts(picture(node(end=None)))
    assert "done, no result" in texts(picture(node()))
    assert '→ {"rows":41}' in texts(picture(node(result={"rows": 41})))
    assert "waiting" in texts(picture(node(state="waiting")))


@pytest.mark.parametrize(
    ("child", "label"),
    [
        (node(end=None, sees=["*"]), "sees all"),
        (node(end=None), "task only"),
        (node(end=None, sees=["a/*"]), "sees a/*"),
        (node(end=None, sees=["codebase/*", "a/*", "b/*"]), "sees codebase/* +2"),
        (node(end=None, sees=["a-long-namespace/*"]), "sees a-long-na…"),
        (node(receipt=seen("spec/auth")), "spec/auth · 6 tok"),
        (node(receipt=seen("codebase/the-login", "b")), "the-login +1 · 6 tok"),
        (node(receipt=receipt(3, 250_000)), "3 ctx · 250k tok"),
        (node(receipt=receipt(3, 1_250_000)), "3 ctx · 1.2M tok"),
    ],
)
def test_svg_labels_an_edge_with_what_was_passed(child, label):
    assert label in texts(picture(node("lead", children=[child])))


def test_svg_folds_more_than_eight_siblings():
    assert not drawn_with(picture(fan(8)), "card", "folded")
    drawn = picture(fan(50, failed=1))
    titles = [found.text for found in drawn.iter(f"{SVG}title")]
    assert "+42 more (41 completed, 1 failed)" in titles
    assert {"+42 more", "41 completed, 1 failed", "reader-7"} <= set(texts(drawn))
    assert "reader-8" not in texts(drawn)


def test_svg_counts_the_tasks_below_a_fold():
    root = fan(12)
    root.children[10].children = [node("deep", children=[node("deeper")])]
    assert "2 below" in texts(picture(root))


def test_svg_folds_refused_hops_too_and_they_take_no_time():
    root = node("lead", end=None, refusals=[refusal(at / 10) for at in range(30)])
    drawn = picture(root)
    assert texts(drawn).count("+22 more") == 1  # on the card, and not among the bars
    assert "22 refused" in texts(drawn)


def test_svg_draws_a_card_for_each_holder_and_a_solid_arrow_between_them():
    drawn = picture(relay())
    said = texts(drawn)
    assert len(drawn_with(drawn, "edge", "handoff", "handed")) == 2
    assert len(drawn_with(drawn, "ring", "completed")) == 1  # the delegation to the ledger
    for words in ("handed over to billing", "handed over to refunds", "refund", "handed over", "saw 1 slice, 6 tokens"):
        assert words in said
    assert "handoff refused" in said
    assert said.count("charged twice") == 3  # the title, the first card, and the refused one
    assert (drawn.findtext(f"{SVG}desc") or "").endswith("30 tokens seen · 2 handoffs · 1 hop refused")
    columns = [x for x, _ in boxes(drawn)]
    assert columns.count(min(columns)) == 3


def test_svg_draws_parts_that_are_handed_out_with_arrows():
    drawn = picture(scattered())
    assert len(drawn_with(drawn, "edge", "member")) == 2
    assert len(drawn_with(drawn, "edge", "delegation")) == 1
    assert len(drawn_with(drawn, "edge", "handoff")) == 1


def test_svg_of_a_running_holder_says_what_the_task_is():
    root = relay()
    root.state, root.receipt, root.ended_at = "running", {}, None
    assert texts(picture(root)).count("charged twice") == 4


def test_svg_folds_many_handoffs_and_counts_what_is_below():
    drawn = picture(pingpong(20))
    titles = [found.text for found in drawn.iter(f"{SVG}title")]
    assert "+14 more (14 handed)" in titles
    assert "28 below" in texts(drawn)
    assert len(drawn_with(drawn, "edge", "handoff")) == 7
    assert len(drawn_with(drawn, "edge", "handoff", "folded")) == 1
    assert len(drawn_with(drawn, "bar", "folded")) == 1


def test_svg_draws_a_plan_as_small_cards_with_edges():
    drawn = picture(planned())
    said = texts(drawn)
    for words in ("Plan of chief", "Gather", "reader · 1.0 s", "failed: no disk", "aborted", "Step f", "coder"):
        assert words in said
    assert len(drawn_with(drawn, "edge", "need")) == 5
    assert len(drawn_with(drawn, "card", "skipped")) == 1
    assert "1 of 6 steps completed, 2 failed, 1 skipped, 1 running, 1 waiting" in said


def test_svg_of_a_plan_without_a_coordinator_and_of_no_plan():
    root = replace(planned(), agent="plan")
    assert "Plan" in texts(picture(root))
    assert not drawn_with(picture(long_plan([])), "need")


@pytest.mark.parametrize(
    ("steps", "cells", "more"),
    [
        ([step(str(at)) for at in range(8)], 8, None),
        ([step(str(at)) for at in range(50)], 8, "+43 more steps"),
        ([step("0"), *(step(str(at), "waiting", str(at - 1)) for at in range(1, 8))], 8, None),
        ([step("0"), *(step(str(at), "waiting", str(at - 1)) for at in range(1, 60))], 8, "+53 more steps"),
        ([step("a", "waiting", "b"), step("b", "waiting", "a"), step("c", "waiting", "nowhere", "c")], 3, None),
        ([step("a", "later"), step("a", "later")], 2, None),
    ],
)
def test_svg_folds_long_plans_and_draws_damaged_ones(steps, cells, more):
    drawn = picture(long_plan(steps))
    small = [found for found in drawn_with(drawn, "card") if found.get("height") == "50"]
    assert len(small) == cells
    assert more is None or more in texts(drawn)
    right = max(int(place) for place in re.findall(r"translate\((\d+) ", ET.tostring(drawn, "unicode")))
    assert right < int(drawn.get("width", "0"))


def test_svg_draws_at_most_four_plans():
    root = node("chief", plans=[[step("a")] for _ in range(9)])
    assert texts(picture(root)).count("Plan of chief") == 4


def test_a_plan_of_thousands_is_drawn_without_deep_recursion():
    steps = [step("0"), *(step(str(at), "waiting", str(at - 1)) for at in range(1, 5_000))]
    for draw in (flow.text, flow.mermaid, flow.svg):
        assert "5,000 steps" in draw(long_plan(steps), NOW)


def test_svg_tells_tasks_that_nobody_waits_for_apart():
    drawn = picture(queue(), now=10 * SECOND)
    said = texts(drawn)
    assert len(drawn_with(drawn, "edge", "submitted")) == 6
    assert len(drawn_with(drawn, "edge", "spawned")) == 2
    assert not drawn_with(drawn, "edge", "delegation")
    assert (said.count("submitted"), said.count("spawned")) == (6, 2)


def test_svg_says_where_a_task_of_a_queue_stands():
    drawn = picture(queue(), now=10 * SECOND)
    said = texts(drawn)
    for words in ("pending: nobody has taken it up", "waits for checker", "being cancelled", "working"):
        assert words in said
    assert any(words.startswith("pending again; attempt 1: ") for words in said)
    assert any(words.startswith("dead: failed: OSError") for words in said)
    assert {"queued 9.0 s", "\N{MULTIPLICATION SIGN}4 · 5.0 s"} <= set(said)
    assert (drawn.findtext(f"{SVG}desc") or "").endswith("tried again 5 times")
    for state in ("pending", "waiting", "cancelling", "dead"):
        assert drawn_with(drawn, "card", state)
        assert drawn_with(drawn, "edge", state)
    assert len(drawn_with(drawn, "card", "rim", "dead")) == 1
    assert not any(drawn_with(drawn, "card", "rim", state) for state in ("pending", "waiting", "cancelling"))


def test_svg_bars_show_work_and_a_thin_line_shows_queueing():
    drawn = picture(queue(), now=10 * SECOND)
    assert len(drawn_with(drawn, "queue")) == 4  # the indexer, the checker, the mailer, and the one that never began
    assert len(drawn_with(drawn, "tick")) == 5
    assert texts(drawn).count("not begun") == 2


def test_svg_marks_an_attempt_on_the_bar_of_the_agent_that_made_it():
    root = relay()
    root.attempts, root.retries, root.asked_how, root.asked_at = 3, [retry(0.5), retry(7, 2, turn=2)], "submit", -SECOND
    rows = [group for group in picture(root).iter(f"{SVG}g") if drawn_with(group, "bar")]
    assert [len(drawn_with(row, "tick")) for row in rows] == [1, 0, 0, 1]
    assert [len(drawn_with(row, "queue")) for row in rows] == [1, 0, 0, 0]


def test_svg_has_a_bar_for_each_task_in_tree_order():
    drawn = picture(team())
    names = [(group.findtext(f"{SVG}text")) for group in drawn.iter(f"{SVG}g") if drawn_with(group, "bar")]
    assert names == ["lead", "reader", "coder", "tester", "deployer"]
    assert {"0 ms", "30 s", "1 min", "1 min 30 s", "2 min"} <= set(texts(drawn))


def test_svg_bars_of_a_long_run_are_cut_off_openly():
    drawn = picture(chain(60))
    assert len(drawn_with(drawn, "bar")) == 40
    assert "+20 more rows" in texts(drawn)


@pytest.mark.parametrize("seconds", [-3, 0, 0.000001, 0.4, 4_000, 90 * 86_400, 90 * 365 * 86_400])
def test_svg_has_an_axis_for_every_span(seconds):
    assert 1 <= len(drawn_with(picture(node(end=seconds)), "grid")) <= 7


def test_svg_follows_the_theme():
    light, dark, auto = (flow.svg(team(), NOW, theme) for theme in ("light", "dark", "auto"))
    assert flow_theme.LIGHT.page in light
    assert flow_theme.DARK.page not in light
    assert flow_theme.DARK.page in dark
    assert flow_theme.LIGHT.page not in dark
    assert (
        auto.index(flow_theme.LIGHT.page) < auto.index("prefers-color-scheme:dark") < auto.index(flow_theme.DARK.page)
    )
    with pytest.raises(BadInput, match="a theme is light, dark or auto, not 'pink'"):
        flow.svg(team(), NOW, "pink")  # pyright: ignore[reportArgumentType]


def boxes(drawn: ET.Element) -> list[tuple[int, int]]:
    moved = (group.get("transform", "") for group in drawn.findall(f"{SVG}g") if drawn_with(group, "shade"))
    return [(int(x), int(y)) for place in moved for x, y in re.findall(r"translate\((\d+) (\d+)\)", place)]


@pytest.mark.parametrize(
    "root", [node(), team(), fan(50), bushy(500), chain(30), relay(), scattered(), pingpong(20), planned(), queue()]
)
def test_svg_cards_do_not_overlap_and_lie_inside(root):
    drawn = picture(root)
    columns: dict[int, list[int]] = {}
    for x, y in boxes(drawn):
        columns.setdefault(x, []).append(y)
    for rows in columns.values():
        rows.sort()
        assert all(after - before >= 82 for before, after in pairwise(rows))
    assert max(columns) + 244 <= int(drawn.get("width", "0"))
    assert max(map(max, columns.values())) + 82 <= int(drawn.get("height", "0"))

"""A run drawn as text, as a flowchart and as a picture: readable, and harmless whatever agents wrote."""

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import remit
from remit.core import lifecycle
from remit.core.times import DAY, SECOND
from remit.report import flow
from remit.report import tree as report
from remit.report.flow import theme as flow_theme
from remit.report.flow.mermaid import CLASSES
from remit.report.tree import GONE, HandoffMade, Node, PlanStep, Refusal, Retry
from remit.report.words import MARKS
from remit.testing import FakeClock

SVG = "{http://www.w3.org/2000/svg}"
NOW = 134 * SECOND

HOSTILE = [
    "<script>alert(1)</script>",
    '"]--x n0 & <!-- ]]> -->',
    "\x1b[2J\x1b]0;owned\x07 \x9b31m",
    "NUL\0 and \ud800 half, \ufffe",
    "one\r\ntwo\ttabs\u2028three",
    "\u202egnitset \u2066x",
    "x" * 10_000,
    "👩\u200d👩\u200d👧 日本語 مرحبا",
    "e" + "\u0301" * 5_000,
    "%%{init: {'securityLevel':'loose'}}%% #lt;b#gt; `c` $$x^2$$",
    "",
]


def receipt(slices=1, tokens=6, withheld=0, unlisted=0):
    return {
        "saw": [["task", "task", tokens, 1, "83393eeb34819ae3"]] * slices,
        "tokens": tokens,
        "unlisted": unlisted,
        "withheld": [["everything else", "not passed"]] * withheld,
    }


def node(agent="coder", task="write it", start=0.0, end: float | None = 1.3, **other) -> Node:
    other.setdefault("status", "running" if end is None else "completed")
    other.setdefault("receipt", {} if end is None else receipt())
    ended = None if end is None else round(end * SECOND)
    other.setdefault("asked_at", round(start * SECOND))
    return Node("id", agent, task, round(start * SECOND), 900 * SECOND, ended_at=ended, **other)


def refusal(at=0.5, to="lead", task="again", rule="loop", sentence="'lead' is already in this delegation"):
    return Refusal(round(at * SECOND), to, task, rule, sentence)


def team() -> Node:
    reader = node("reader", "fetch 6 pages", 2, 33, receipt=receipt(2, 2412, 4), result="6 pages")
    tester = node("tester", "run the suite", 40, 47, state="failed", error="'tester' failed: OSError: no disk")
    coder = node("coder", "write the page", 35, None, sees=["codebase/*", "style/*"], children=[tester])
    coder.refusals = [refusal(50)]
    stopped = node("deployer", "publish", 51, 51.2, state="cancelled", error="'deployer' was cancelled: enough")
    return node("lead", "ship it", 0, None, sees=["*"], children=[reader, coder, stopped])


def retry(at: float, attempt: int = 1, error: str = "'mailer' failed: OSError: no disk", turn: int = 0) -> Retry:
    return Retry(round(at * SECOND), attempt, "mailer", error, receipt(), turn)


def queue() -> Node:
    """One task in each of the states that a queue has, and one that was tried again and went well."""
    waiting = node("reviewer", "review it", 3, None, state="waiting", asked_how="submit")
    waiting.children = [node("checker", "check it", 6, None, asked_how="submit", asked_at=4 * SECOND)]
    return node(
        "lead",
        "ship it",
        0,
        None,
        children=[
            node("indexer", "index it", 1, None, state="pending", asked_how="submit", attempts=0),
            node("crawler", "crawl it", 2, None, state="pending", asked_how="spawn", retries=[retry(4)]),
            waiting,
            node("archiver", "keep it", 3, None, state="cancelling", asked_how="spawn"),
            node(
                "mailer",
                "send it",
                4,
                9,
                asked_at=round(3.5 * SECOND),
                asked_how="submit",
                state="dead",
                attempts=4,
                error="'mailer' failed: OSError: no disk; that was attempt 4 of 4",
                retries=[retry(5), retry(6, 2), retry(7, 3, GONE)],
            ),
            node("painter", "paint it", 4, 9, asked_how="submit", attempts=2, retries=[retry(5)], result="a cover"),
            node(
                "nobody", "too late", 4, 9, asked_how="submit", attempts=0, state="cancelled", error="cancelled: enough"
            ),
        ],
    )


def chain(length: int) -> Node:
    root = last = node("a0", "go down")
    for depth in range(1, length):
        below = node(f"a{depth}", "go down")
        last.children.append(below)
        last = below
    return root


def bushy(size: int, name: str = "worker") -> Node:
    """A tree in which everyone asks four others."""
    nodes = [node(name, "part", start=0.01 * at) for at in range(size)]
    for at in range(1, size):
        nodes[(at - 1) // 4].children.append(nodes[at])
    return nodes[0]


def fan(width: int, failed: int = 0) -> Node:
    children = [node(f"reader-{at}", f"page {at}") for at in range(width)]
    for child in children[len(children) - failed :]:
        child.state, child.error = "failed", "boom"
    return node("lead", "read it all", children=children)


def handoff(at: float, sender: str, *to: str, phase: str = "", parallel: bool = False) -> HandoffMade:
    return HandoffMade(round(at * SECOND), sender, to, 0, phase, receipt(2, 9, 1), parallel)


def relay() -> Node:
    """Triage, then billing, who asks the ledger, then refunds; one handoff is refused on the way."""
    ledger = node("ledger", "what was charged?", 2, 3, turn=1, result="40")
    root = node("refunds", "charged twice", 0, 9, children=[ledger], result="paid back")
    root.trail = [handoff(1, "triage", "billing", phase="refund"), handoff(6, "billing", "refunds")]
    no = Refusal(5 * SECOND, "triage", "charged twice", "deadlock", "the same again", handoff=True, turn=1)
    root.refusals = [no]
    return root


def scattered() -> Node:
    """Parts to two at once, then on to the one who joins them."""
    parts = [node("reader-a", "part a", 1, 2, turn=1), node("reader-b", "part b", 1, 3, turn=1)]
    root = node("joiner", "read it", 0, 4, children=[node("asked", "before", 0, 1), *parts])
    root.trail = [handoff(1, "lead", "reader-a", "reader-b", parallel=True), handoff(3, "lead", "joiner")]
    return root


def pingpong(times: int) -> Node:
    root = node("a", "back and forth", 0, times + 1)
    root.trail = [handoff(at, "ab"[at % 2], "ba"[at % 2]) for at in range(times)]
    root.children = [node("below", "x", 4, 5, turn=at, children=[node("deeper")]) for at in range(times)]
    return root


def step(id_: str, state: str = "waiting", *after: str, **other) -> PlanStep:
    return PlanStep(id_, other.pop("title", f"Step {id_}"), other.pop("agent", "coder"), [*after], state, **other)


def planned() -> Node:
    root = node("chief", "plan it", 0, None, sees=["*"])
    root.children = [
        node("reader", "# Task: Gather", 1, 2, step="a", title="Gather"),
        node("trader", "# Task: Compare", 1, 3, step="b", title="Compare", state="failed", error="no disk"),
    ]
    root.children[0].id, root.children[1].id = "t2", "t3"
    root.plans = [
        [
            step("a", "completed", title="Gather", agent="reader", task="t2", tries=1),
            step("b", "failed", title="Compare", agent="trader", task="t3", tries=2, reason="'trader' failed: no disk"),
            step("c", "running", "a"),
            step("d", "failed", "b", reason='dependency "b" failed'),
            step("e", "skipped", "d", "c", reason="aborted"),
            step("f", "waiting", "c"),
        ]
    ]
    return root


def long_plan(steps: list[PlanStep]) -> Node:
    return node("chief", "plan it", plans=[steps])


def picture(root: Node, theme: flow.Theme = "light", now: int = NOW) -> ET.Element:
    return ET.fromstring(flow.svg(root, now, theme))


def texts(drawn: ET.Element) -> list[str]:
    return [found.text or "" for found in drawn.iter(f"{SVG}text")]


def drawn_with(drawn: ET.Element, *looks: str) -> list[ET.Element]:
    return [found for found in drawn.iter() if set(looks) <= set(found.get("class", "").split())]


# -- durations -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [
        (-5, "0 ms"),
        (0, "0 ms"),
        (820, "820 µs"),
        (12_900, "12 ms"),
        (999_999, "999 ms"),
        (1_300_000, "1.3 s"),
        (59_999_999, "59.9 s"),
        (60 * SECOND, "1 min"),
        (134 * SECOND, "2 min 14 s"),
        (3 * 3600 * SECOND + 300 * SECOND, "3 h 5 min"),
        (2 * DAY, "2 d"),
        (2 * DAY + 14_400 * SECOND, "2 d 4 h"),
    ],
)
def test_a_duration_is_short_and_never_claims_too_much(microseconds, said):
    assert flow.duration(microseconds) == said


# -- text ----------------------------------------------------------------------------------------------------


def test_text_is_a_tree_with_a_line_for_each_task_and_each_refused_hop():
    assert flow.text(team(), NOW) == (
        "◐ lead: ship it · 2 min 14 s · may see everything\n"
        "├─ ✓ reader: fetch 6 pages · 31.0 s · 2 slices, 2,412 tokens\n"
        "├─ ◐ coder: write the page · 1 min 39 s · may see codebase/* and 1 more\n"
        "│  ├─ ✗ tester: run the suite · 7.0 s · 1 slice, 6 tokens · failed: OSError: no disk\n"
        "│  └╌ ⊘ lead: again · loop: 'lead' is already in this delegation\n"
        "└─ ⊖ deployer: publish · 200 ms · 1 slice, 6 tokens · was cancelled: enough\n"
    )


def test_refused_hops_stand_where_they_happened():
    root = node("lead", children=[node("a", start=1), node("b", start=3)], refusals=[refusal(2, to="c")])
    assert [line[3:6] for line in flow.text(root, NOW).splitlines()[1:]] == ["✓ a", "⊘ c", "✓ b"]


def test_a_task_that_is_not_over_shows_what_it_may_see():
    assert flow.text(node(end=None), NOW).endswith("may see its task only\n")
    assert flow.text(node(end=None, sees=["codebase/*"]), NOW).endswith("may see codebase/*\n")


def test_slices_that_the_receipt_only_counts_are_counted():
    assert "205 slices, 9 tokens" in flow.text(node(receipt=receipt(200, 9, unlisted=5)), NOW)


def test_a_status_of_a_later_version_is_named():
    assert flow.text(node(state="waiting\n"), NOW) == "? coder: write it · 1.3 s · 1 slice, 6 tokens · waiting\\n\n"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\nb\tc\0", "a\\nb\\tc\\x00"),
        ("\u202etxt \ud800", "\\u202etxt \\ud800"),
        ("a\xa0b", "a b"),
        ("👩\u200d👧 مرحبا", "👩\u200d👧 مرحبا"),
        ("x" * 10_000, "x" * 59 + "…"),
        ("x" * 60, "x" * 60),
        ("日" * 40, "日" * 29 + "…"),
        ("e" + "\u0301" * 200, "e" + "\u0301" * 179 + "…"),
    ],
)
def test_text_shows_agents_words_without_letting_them_act(said, shown):
    assert flow.text(node(task=said), NOW) == f"✓ coder: {shown} · 1.3 s · 1 slice, 6 tokens\n"


def test_text_has_a_line_for_each_handoff_with_how_long_the_new_holder_had_it():
    assert flow.text(relay(), NOW) == (
        "✓ triage: charged twice · 9.0 s · 5 slices, 24 tokens\n"
        "├─ → billing (phase refund) · 5.0 s\n"
        "├─ ✓ ledger: what was charged? · 1.0 s · 1 slice, 6 tokens\n"
        "├╌ ⊘ triage: handoff refused · deadlock: the same again\n"
        "└─ → refunds · 3.0 s\n"
    )


def test_text_shows_parts_that_are_handed_out():
    assert [line[3:].split(" · ")[0] for line in flow.text(scattered(), NOW).splitlines()[1:]] == [
        "✓ asked: before",
        "⇉ reader-a, reader-b",
        "✓ reader-a: part a",
        "✓ reader-b: part b",
        "→ joiner",
    ]


def test_text_lists_the_steps_of_a_plan_and_what_they_wait_for():
    assert flow.text(planned(), NOW) == (
        "◐ chief: plan it · 2 min 14 s · may see everything\n"
        "│  plan: 1 of 6 steps completed, 2 failed, 1 skipped, 1 running, 1 waiting\n"
        "│    ✓ a: Gather · reader\n"
        "│    ✗ b: Compare · trader · 2 tries · 'trader' failed: no disk\n"
        "│    ◐ c: Step c · coder · after a\n"
        '│    ✗ d: Step d · coder · after b · dependency "b" failed\n'
        "│    ↷ e: Step e · coder · after d, c · aborted\n"
        "│    ○ f: Step f · coder · after c\n"
        "├─ ✓ reader: a: Gather · 1.0 s · 1 slice, 6 tokens\n"
        "└─ ✗ trader: b: Compare · 2.0 s · 1 slice, 6 tokens · no disk\n"
    )


def test_text_folds_a_long_plan():
    lines = flow.text(long_plan([step(str(at), "completed") for at in range(100)]), NOW).splitlines()
    assert len(lines) == 43
    assert lines[-1] == "     … and 60 more (60 completed)"


def test_text_tells_how_a_task_was_asked_where_it_stands_and_what_was_tried_again():
    assert flow.text(queue(), 10 * SECOND) == (
        "◐ lead: ship it · 10.0 s · may see its task only\n"
        "├┄ ◌ indexer: index it · submitted · pending · queued 9.0 s · may see its task only\n"
        "├┄ ◌ crawler: crawl it · spawned · pending · 8.0 s · 1 slice, 6 tokens\n"
        "│  └─ ↻ attempt 1: failed: OSError: no disk\n"
        "├┄ ○ reviewer: review it · submitted · waiting · 7.0 s · may see its task only\n"
        "│  └┄ ◐ checker: check it · submitted · 4.0 s · may see its task only\n"
        "├┄ ⊝ archiver: keep it · spawned · cancelling · 7.0 s · may see its task only\n"
        "├┄ † mailer: send it · submitted · dead · attempt 4 · 5.0 s · 4 slices, 24 tokens · "
        "failed: OSError: no disk; that was attempt 4 of 4\n"
        "│  ├─ ↻ attempt 1: failed: OSError: no disk\n"
        "│  ├─ ↻ attempt 2: failed: OSError: no disk\n"
        "│  └─ ↻ attempt 3: its process was gone\n"
        "├┄ ✓ painter: paint it · submitted · attempt 2 · 5.0 s · 2 slices, 12 tokens\n"
        "│  └─ ↻ attempt 1: failed: OSError: no disk\n"
        "└┄ ⊖ nobody: too late · submitted · queued 5.0 s · 1 slice, 6 tokens · cancelled: enough\n"
    )


def test_text_shows_the_latest_of_very_many_attempts():
    root = node(attempts=101, retries=[retry(at, at) for at in range(1, 101)])
    lines = flow.text(root, NOW).splitlines()
    assert len(lines) == 9
    assert "attempt 101" in lines[0]
    assert lines[-1].startswith("└─ ↻ attempt 100: ")


# -- mermaid -------------------------------------------------------------------------------------------------


def test_mermaid_is_a_flowchart_with_classes_by_status():
    lines = flow.mermaid(team(), NOW).splitlines()
    assert lines[:11] == [
        "flowchart LR",
        '    n0["◐ lead<br/>ship it<br/>2 min 14 s"]:::running',
        '    n1["✓ reader<br/>fetch 6 pages<br/>31.0 s"]:::completed',
        '    n2["◐ coder<br/>write the page<br/>1 min 39 s"]:::running',
        '    n3["✗ tester<br/>run the suite<br/>7.0 s"]:::failed',
        '    n4(["⊘ loop"]):::refused',
        '    n5["⊖ deployer<br/>publish<br/>200 ms"]:::cancelled',
        '    n0 -->|"2 ctx · 2.4k tok \N{MINUS SIGN}4"| n1',
        '    n0 -->|"sees 2 scopes"| n2',
        '    n0 -->|"1 ctx · 6 tok"| n5',
        '    n2 -->|"1 ctx · 6 tok"| n3',
    ]
    assert lines[11] == '    n2 -.->|"asked lead"| n4'
    assert lines[-1] == "    linkStyle 4 stroke:#c62f2f,color:#8f1d1d"
    assert [line.split()[1] for line in lines[12:-1]] == [
        "cancelled",
        "completed",
        "failed",
        "refused",
        "running",
    ]


def test_mermaid_styles_no_refused_edge_when_there_is_none():
    assert "linkStyle" not in flow.mermaid(node(), NOW)


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ('"]--x', "#34;#93;--x"),
        ("<b>#1;`", "#60;b#62;#35;1#59;#96;"),
        ("a\nb\0", "a b"),
        ("%%{init", "#37;#37;#123;init"),
        ("$$", "#36;#8288;#36;#8288;"),
        ("日本 👩\u200d👧", "日本 👩\u200d👧"),
    ],
)
def test_mermaid_writes_what_could_mean_something_as_numbers(said, label):
    assert flow.mermaid(node(task=said), NOW).splitlines()[1] == f'    n0["✓ coder<br/>{label}<br/>1.3 s"]:::completed'


@pytest.mark.parametrize("name", ["worker", "$" * 64])
def test_mermaid_stays_within_what_is_drawn_on_the_web(name):
    chart = flow.mermaid(bushy(2_000, name), NOW)
    assert len(chart) < 50_000
    assert len(re.findall(r"(?m)^ +n\d+ -", chart)) < 500
    assert '[["+4 more (4 completed)"]]:::folded' in chart


def test_mermaid_draws_a_handoff_as_a_thick_arrow_between_holders():
    lines = flow.mermaid(relay(), NOW).splitlines()
    assert lines[1:11] == [
        '    n0["→ triage<br/>charged twice<br/>1.0 s"]:::handed',
        '    n1["→ billing<br/>5.0 s"]:::handed',
        '    n2["✓ ledger<br/>what was charged?<br/>1.0 s"]:::completed',
        '    n3(["⊘ deadlock"]):::refused',
        '    n4["✓ refunds<br/>3.0 s"]:::completed',
        '    n1 -->|"1 ctx · 6 tok"| n2',
        '    n1 -.->|"handed to triage"| n3',
        '    n0 ==>|"refund"| n1',
        "    n1 ==> n4",
        "    classDef completed fill:#dff5e7,stroke:#1a7f4b,color:#0b3d24",
    ]
    assert lines[-1].startswith("    linkStyle 1 ")


def test_mermaid_draws_the_parts_of_a_parallel_handoff_as_thick_arrows():
    edges = [line.split()[1][:3] for line in flow.mermaid(scattered(), NOW).splitlines() if "|" in line]
    assert edges == ["-->", "==>", "==>"]


def test_mermaid_draws_a_plan_in_a_box_of_its_own():
    chart = flow.mermaid(planned(), NOW)
    box = chart[chart.index("    subgraph") : chart.index("    classDef")].splitlines()
    plan = "Plan of chief, 1 of 6 steps completed, 2 failed, 1 skipped, 1 running, 1 waiting"
    assert box[:3] == [
        f'    subgraph n0p0["{plan}"]',
        "        direction LR",
        '        n0p0s0["✓ Gather<br/>reader"]:::completed',
    ]
    assert box[8:] == [
        "        n0p0s0 --> n0p0s2",
        "        n0p0s1 --> n0p0s3",
        "        n0p0s3 --> n0p0s4",
        "        n0p0s2 --> n0p0s4",
        "        n0p0s2 --> n0p0s5",
        "    end",
        "    n0 -.- n0p0",
    ]
    for name in ("waiting", "skipped", "failed", "running", "completed"):
        assert f"classDef {name} " in chart


def test_mermaid_folds_long_plans_and_many_of_them():
    root = relay()
    root.plans = [[], [step("z")]]
    assert "subgraph" not in flow.mermaid(root, NOW)
    root.plans = [[step(str(at), planner="triage") for at in range(30)], [step("z")]]
    chart = flow.mermaid(root, NOW)
    assert '[["+6 more (6 waiting)"]]:::folded' in chart
    assert chart.count("subgraph") == 1
    assert "Plan of triage" in chart  # who planned, not who holds the task now


def test_mermaid_of_the_worst_words_stays_within_what_is_drawn_on_the_web():
    worst = "$" * 64
    root = bushy(500, worst)
    for one in root.walk():
        one.trail = [handoff(0, worst, worst, phase=worst) for _ in range(9)]
        one.plans = [[step(f"{at}", "waiting", *map(str, range(at)), title=worst, agent=worst) for at in range(50)]]
    chart = flow.mermaid(root, NOW)
    assert len(chart) < 50_000
    assert len(re.findall(r"(?m)^ +\w+ [-=]", chart)) < 500


def test_mermaid_tells_tasks_that_nobody_waits_for_apart():
    lines = flow.mermaid(queue(), 10 * SECOND).splitlines()
    assert '    n1["◌ indexer<br/>index it<br/>pending, queued 9.0 s"]:::pending' in lines
    assert '    n6["† mailer<br/>send it<br/>dead, attempt 4, 5.0 s"]:::dead' in lines
    assert '    n0 -.->|"submitted, task only"| n1' in lines
    assert '    n0 -.->|"spawned, task only"| n2' in lines
    classes = {line.split()[1] for line in lines if "classDef" in line}
    assert classes == {"pending", "waiting", "cancelling", "dead", "running", "completed", "cancelled"}


def test_mermaid_says_only_of_the_present_holder_which_attempt_it_is_in():
    root = relay()
    root.attempts = 2
    assert flow.mermaid(root, NOW).count("attempt 2") == 1


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
        (node(end=None, sees=["a/*"]), "sees 1 scope"),
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


def test_svg_marks_an_attempt_on_the_bar_of_whoever_made_it():
    root = relay()
    root.attempts, root.retries, root.asked_how, root.asked_at = 3, [retry(0.5), retry(7, 2, turn=2)], "submit", -SECOND
    rows = [group for group in picture(root).iter(f"{SVG}g") if drawn_with(group, "bar")]
    assert [len(drawn_with(row, "tick")) for row in rows] == [1, 0, 0, 1]
    assert [len(drawn_with(row, "queue")) for row in rows] == [1, 0, 0, 0]


@pytest.mark.parametrize("status", sorted(lifecycle.OPEN | lifecycle.TERMINAL))
def test_every_state_has_a_mark_a_word_and_a_colour(status):
    root = node(state=status)
    assert not flow.text(root, NOW).startswith("?")
    assert f"classDef {status} " in flow.mermaid(root, NOW)
    assert f".fill.{status}{{fill:#" in flow.svg(root, NOW)
    assert f"({status})" in flow.svg(root, NOW).replace("1 " + status, status)


def test_marks_are_told_apart():
    assert len(set(MARKS.values())) == len(MARKS)
    assert set(MARKS) >= lifecycle.OPEN | lifecycle.TERMINAL


def test_mermaid_colours_have_enough_contrast():
    for name, look in CLASSES.items():
        colours = dict(part.split(":", 1) for part in look.split(","))
        low, high = sorted((luminance(colours["fill"]), luminance(colours["color"])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, name


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
    with pytest.raises(remit.BadInput, match="a theme is light, dark or auto, not 'pink'"):
        flow.svg(team(), NOW, "pink")  # pyright: ignore[reportArgumentType]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("palette", [flow_theme.LIGHT, flow_theme.DARK])
def test_every_text_has_enough_contrast(palette):
    inks = (
        palette.ink,
        palette.soft,
        palette.faint,
        palette.aside,
        palette.failed,
        palette.running,
        palette.cancelled,
        palette.handed,
        palette.dead,
        palette.pending,
        palette.completed,
    )
    for ground in (palette.page, palette.card, palette.refused_card):
        for ink in inks:
            low, high = sorted((luminance(ground), luminance(ink)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)


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


# -- large and hostile runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [chain(2_000), bushy(2_000), fan(1_999)])
def test_large_runs_are_drawn_without_deep_recursion(root):
    assert flow.text(root, NOW).count("\n") == 2_000
    assert max(map(len, flow.text(root, NOW).splitlines())) < 200
    assert "2,000 tasks" in flow.svg(root, NOW)
    assert len(flow.mermaid(root, NOW)) < 50_000
    picture(root)


def spoken(said: str) -> Node:
    """A run in which every word an agent can choose is this one."""
    broken = node(said, said, state="failed", error=said)
    open_ended = node(said, said, end=None, sees=[said])
    done = node(said, said, result=said, refusals=[refusal(to=said, task=said, rule=said, sentence=said)])
    return node(said, said, state=said or "running", children=[broken, open_ended, done])


def harmless(said: str) -> None:
    text, chart, drawing = (
        flow.text(spoken(said), NOW),
        flow.mermaid(spoken(said), NOW),
        flow.svg(spoken(said), NOW),
    )
    assert len(text.splitlines()) == 5
    assert (text + chart + drawing).replace("\n", "").replace("\u200d", "").isprintable()
    for line in chart.splitlines()[1:9]:
        assert re.fullmatch(r'    n\d(\[".*"\]|\(\[".*"\]\)):::\w+|    n\d -.?->\|"[^"]*"\| n\d', line), line
        assert line.count('"') == 2
    for found in ET.fromstring(drawing).iter():
        assert not any("href" in name or name in ("src", "style") or name.startswith("on") for name in found.attrib)
    kinds = {found.tag.removeprefix(SVG) for found in ET.fromstring(drawing).iter()}
    assert kinds <= {
        "svg",
        "title",
        "desc",
        "style",
        "defs",
        "pattern",
        "clipPath",
        "rect",
        "circle",
        "g",
        "path",
        "text",
    }
    assert len(drawing) < 40_000


def passed_on(said: str) -> Node:
    """A run with a handoff, a plan and a refused handoff in which every word is this one."""
    child = node(said, said, step=said, title=said, turn=1, asked_how=said, retries=[retry(1, error=said)])
    no = Refusal(0, said, said, said, said, handoff=True, turn=1)
    root = node(said, said, children=[child], refusals=[no])
    root.trail = [handoff(0, said, said, phase=said), handoff(0, said, said, phase=said, parallel=True)]
    root.plans = [[step(said, said, said, title=said, agent=said, reason=said, task=said, tries=2)]]
    return root


def harmless_when_passed_on(said: str) -> None:
    text, chart, drawing = (draw(passed_on(said), NOW) for draw in (flow.text, flow.mermaid, flow.svg))
    assert len(text.splitlines()) == 8
    assert (text + chart + drawing).replace("\n", "").replace("\u200d", "").isprintable()
    for line in chart.splitlines()[1:]:
        assert line.count('"') in (0, 2), line
        assert re.match(r" +(n\d\w*[ \[(]|subgraph n\dp\d\[|direction LR$|end$|classDef \w+ |linkStyle )", line), line
    for found in ET.fromstring(drawing).iter():
        assert not any("href" in name or name in ("src", "style") or name.startswith("on") for name in found.attrib)
        assert re.fullmatch(r"[\w -]*", found.get("class", ""))


@pytest.mark.parametrize("said", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_do_no_harm(said):
    harmless(said)
    harmless_when_passed_on(said)


@given(st.text(st.characters(), max_size=80))
def test_no_words_do_harm(said):
    harmless(said)
    harmless_when_passed_on(said)


def test_svg_shows_markup_as_text():
    assert "<b>&amp;</b>" in texts(picture(node(task="<b>&amp;</b>")))


def test_svg_cuts_what_has_no_room():
    name = drawn_with(picture(node(agent="w" * 500)), "name")[0].text or ""
    assert name.endswith("…")
    assert 5 < len(name) < 20


# -- a real run ----------------------------------------------------------------------------------------------


async def told(clock: FakeClock) -> Node:
    with remit.Runtime(clock=clock) as rt:

        @rt.agent(can="write code", asks=["reviewer"])
        async def coder(turn: remit.Turn) -> str:
            await turn.context.set("codebase", "auth", "MVC in modules/auth", ttl=86_400)
            return f"written; {await turn.delegate('reviewer', 'review the auth module', sees=['codebase'])}"

        @rt.agent(can="review code")
        async def reviewer(turn: remit.Turn) -> str:
            clock.advance(0.012)
            with pytest.raises(remit.Refused):
                await turn.delegate("coder", "explain it")
            return f"saw: {await turn.context.get('codebase', 'auth')}"

        await rt.run("coder", "write the auth module")
        root = report.tree(await rt.history())
    assert root is not None
    return root


@pytest.mark.anyio
async def test_a_real_run_is_drawn_from_its_events(clock: FakeClock):
    root = await told(clock)
    lines = flow.text(root, clock.now()).splitlines()
    assert lines[:2] == [
        "✓ coder: write the auth module · 12 ms · 1 slice, 6 tokens",
        "└─ ✓ reviewer: review the auth module · 12 ms · 2 slices, 11 tokens",
    ]
    assert lines[2].startswith("   └╌ ⊘ coder: explain it · ")
    assert '-->|"2 ctx · 11 tok' in flow.mermaid(root, clock.now())
    assert {"2 ctx · 11 tok", "→ saw: MVC in modules/auth"} <= set(texts(picture(root)))


def test_drawing_twice_gives_the_same_and_changes_nothing():
    for make in (team, relay, planned, queue):
        root, before = make(), report.node_data(make())
        for draw in (flow.text, flow.mermaid, flow.svg):
            assert draw(root, NOW) == draw(root, NOW) == draw(replace(root), NOW)
        assert report.node_data(root) == before

"""A run drawn as lines of text and as a Mermaid flowchart."""

import re

import pytest

from remit.core.times import DAY, SECOND
from remit.report import flow
from report.runs import (
    NOW,
    bushy,
    handoff,
    long_plan,
    node,
    planned,
    queue,
    receipt,
    refusal,
    relay,
    retry,
    scattered,
    step,
    team,
)

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
    assert (len(lines), lines[1]) == (10, "├─ … 92 attempts before")
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
        '    n0 -->|"sees codebase/#42; +1"| n2',
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

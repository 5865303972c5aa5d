"""Large runs, hostile words and a real run: every drawing is readable, and harmless whatever agents wrote."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import remit
from remit.report import flow, wire
from remit.report import tree as report
from remit.report.tree import Node, Refusal
from remit.settings import System
from remit.testing import FakeClock
from report.runs import (
    NOW,
    SVG,
    bushy,
    chain,
    drawn_with,
    fan,
    handoff,
    node,
    picture,
    planned,
    queue,
    refusal,
    relay,
    retry,
    step,
    team,
    texts,
)

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


# -- large and hostile runs ----------------------------------------------------------------------------------


@pytest.mark.untraced
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
    with remit.Runtime(system=System(clock=clock)) as rt:

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
        root = report.tree(await rt.workspace.journal.history())
    assert root is not None
    return root


@pytest.mark.anyio
async def test_a_real_run_is_drawn_from_its_events(clock: FakeClock):
    root = await told(clock)
    lines = flow.text(root, clock.now()).splitlines()
    assert lines[:2] == [
        "✓ coder: write the auth module · 12 ms · 1 slice, 6 tokens",
        "└─ ✓ reviewer: review the auth module · 12 ms · 2 slices (codebase/auth), 11 tokens",
    ]
    assert lines[2].startswith("   └╌ ⊘ coder: explain it · ")
    assert '-->|"codebase/auth · 11 tok' in flow.mermaid(root, clock.now())
    assert {"auth · 11 tok", "→ saw: MVC in modules/auth"} <= set(texts(picture(root)))


def test_drawing_twice_gives_the_same_and_changes_nothing():
    for make in (team, relay, planned, queue):
        root, before = make(), wire.tree(make())
        for draw in (flow.text, flow.mermaid, flow.svg):
            assert draw(root, NOW) == draw(root, NOW) == draw(replace(root), NOW)
        assert wire.tree(root) == before

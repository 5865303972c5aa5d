"""How a state looks: one table, told apart everywhere, readable in every colour."""

import re
from typing import get_args

import pytest

from remit.cli.drawing import tree_view
from remit.cli.terminal import COLOURS
from remit.core import lifecycle
from remit.core.breaker import TRANSITIONS
from remit.report import flow
from remit.report.flow import theme as flow_theme
from remit.report.flow.mermaid import class_style
from remit.report.flow.theme import state_dot
from remit.report.looks import BREAKER_ROLES, LOOKS, Look, Role, known_state, look, mark
from remit.report.summary import sentence
from remit.report.tree import STEP_STATES
from report.runs import NOW, node


@pytest.mark.parametrize("state", sorted(lifecycle.OPEN | lifecycle.TERMINAL))
def test_every_state_has_a_mark_a_word_and_a_colour(state):
    root = node(state=state)
    assert not flow.text(root, NOW).startswith("?")
    assert f"classDef {state} " in flow.mermaid(root, NOW)
    assert f".fill.{state}{{fill:#" in flow.svg(root, NOW)
    assert f"({state})" in flow.svg(root, NOW).replace("1 " + state, state)


def test_every_state_that_a_task_or_a_step_can_be_in_has_a_look():
    assert set(LOOKS) >= lifecycle.OPEN | lifecycle.TERMINAL | set(STEP_STATES) | {"lost", "refused", "handed"}


def test_marks_are_told_apart():
    assert len({look.mark for look in LOOKS.values()}) == len(LOOKS)
    assert all(len(look.mark) == 1 for look in LOOKS.values())


def test_dots_are_told_apart_without_their_colour():
    dots = {re.sub(r'class="[a-z ]*"', "", state_dot(state, 0, 0)) + LOOKS[state].line for state in LOOKS}
    assert len(dots) == len(LOOKS)


def test_every_role_has_a_colour_everywhere():
    roles = set(get_args(Role))
    assert {look.role for look in LOOKS.values()} == roles
    assert set(flow_theme.LIGHT.roles) == set(flow_theme.DARK.roles) == set(COLOURS) == roles
    assert set(BREAKER_ROLES) == set(TRANSITIONS)


def test_a_state_that_nobody_knows_looks_unknown():
    assert (known_state("frozen"), mark("frozen"), look("frozen")) == ("unknown", "?", LOOKS["unknown"])


def test_a_new_state_is_one_line(monkeypatch):
    monkeypatch.setitem(LOOKS, "asking", Look("⁇", "queued", "waiting for a person", dot="ring", line="dotted"))
    root = node(state="asking", end=None)

    assert flow.text(root, NOW).startswith("⁇ coder: write it · asking · ")
    assert sentence(root) == "coder worked alone; 1 task waiting for a person"
    assert ".fill.asking{fill:#" in flow.svg(root, NOW)
    assert ".asking.card{stroke-dasharray" in flow.svg(root, NOW)
    assert "waiting for a person" in flow.svg(root, NOW)
    assert tree_view(root, NOW).label.plain.startswith("⁇ coder")  # pyright: ignore[reportAttributeAccessIssue]
    assert ":::asking" in flow.mermaid(root, NOW)
    assert "classDef asking fill:#" in flow.mermaid(root, NOW)


def test_mermaid_colours_have_enough_contrast():
    for name in LOOKS:
        colours = dict(part.split(":", 1) for part in class_style(name).split(","))
        low, high = sorted((luminance(colours["fill"]), luminance(colours["color"])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, name


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("palette", [flow_theme.LIGHT, flow_theme.DARK])
def test_every_text_has_enough_contrast(palette):
    inks = (palette.ink, palette.soft, palette.faint, palette.aside, *palette.roles.values())
    for ground in (palette.page, palette.card, palette.refused_card):
        for ink in inks:
            low, high = sorted((luminance(ground), luminance(ink)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)

"""How a state looks: one table, told apart everywhere, readable in every colour."""

import pytest

from remit.core import lifecycle
from remit.report import flow
from remit.report.flow import theme as flow_theme
from remit.report.flow.mermaid import CLASSES
from remit.report.words import MARKS
from report.runs import NOW, node


@pytest.mark.parametrize("state", sorted(lifecycle.OPEN | lifecycle.TERMINAL))
def test_every_state_has_a_mark_a_word_and_a_colour(state):
    root = node(state=state)
    assert not flow.text(root, NOW).startswith("?")
    assert f"classDef {state} " in flow.mermaid(root, NOW)
    assert f".fill.{state}{{fill:#" in flow.svg(root, NOW)
    assert f"({state})" in flow.svg(root, NOW).replace("1 " + state, state)


def test_marks_are_told_apart():
    assert len(set(MARKS.values())) == len(MARKS)
    assert set(MARKS) >= lifecycle.OPEN | lifecycle.TERMINAL


def test_mermaid_colours_have_enough_contrast():
    for name, look in CLASSES.items():
        colours = dict(part.split(":", 1) for part in look.split(","))
        low, high = sorted((luminance(colours["fill"]), luminance(colours["color"])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, name


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

"""What models did in a run: which were asked and for how much, which tools they used, and what those returned."""

from typing import Any

import pytest
from rich.console import Console

from core.make import NOW, SECOND, journal
from remit.cli.drawing import summed_up, tree_view
from remit.core.events import Unsealed
from remit.core.kinds.models import model_answered, model_failed, tool_done
from remit.core.kinds.tasks import started
from remit.core.recovery import ModelFailure, ModelTry
from remit.core.remit import Remit
from remit.report import flow, wire
from remit.report.summary import sentence, summary
from remit.report.tree import Node
from remit.report.uses import ModelUse, ToolUse, models_in, uses_in_short
from report.events import BILLING, CODER, LEAD, completed, failed, handed, refused, run_of
from report.runs import handoff, node, picture, relay, seen, texts

pytestmark = pytest.mark.rule("show.models")

WHERE = "team.py:8 in lookup"


def answered(remit: Remit, model: str = "openai:gpt-5", **data: Any) -> Unsealed:
    return model_answered(remit, ModelTry(model), {"named": model, "calls": [], **data}, NOW)


def used(remit: Remit, tool: str = "lookup", outcome: Any = "done", **data: Any) -> Unsealed:
    return tool_done(remit, {"tool": tool, "call": "c", "given": "{}", "outcome": outcome, **data}, NOW)  # pyright: ignore[reportArgumentType]


def worked(*more: Unsealed) -> Node:
    """A run whose lead asked two models and used a tool twice, the second time in vain."""
    return run_of(
        started(LEAD, NOW),
        model_failed(LEAD, ModelTry("openai:gpt-5"), ModelFailure("timeout"), NOW),
        answered(LEAD, usage={"input": 1_200, "output": 34}, cost=10_000),
        used(LEAD, given='{"q":"a"}', result="SHELF-THREE", elapsed=12_000),
        answered(LEAD, "local:tiny"),
        used(LEAD, outcome="failed", given='{"q":"lamp"}', result="'lookup' failed: KeyError: 'lamp'", place=WHERE),
        *more,
        completed(LEAD),
    )


def screen(root: Node, width: int = 120, **look: Any) -> str:
    console = Console(width=width, **look)
    with console.capture() as capture:
        console.print(summed_up(root, NOW + SECOND))
        console.print(tree_view(root, NOW + SECOND))
    return capture.get()


def test_a_tree_counts_what_each_model_was_asked_and_keeps_each_call_of_a_tool():
    root = worked()
    assert root.models == [
        ModelUse("lead", "openai:gpt-5", calls=2, failed=1, tokens=1_234, credits=10_000),
        ModelUse("lead", "local:tiny", calls=1),
    ]
    assert root.tools == [
        ToolUse(NOW, "lead", "lookup", '{"q":"a"}', "done", "SHELF-THREE", 12_000),
        ToolUse(NOW, "lead", "lookup", '{"q":"lamp"}', "failed", "'lookup' failed: KeyError: 'lamp'", place=WHERE),
    ]
    assert (summary(root).model_calls, summary(root).tool_calls, summary(root).tools_failed) == (3, 2, 1)
    assert sentence(root) == "lead worked alone; 1 tool call failed"


def test_what_a_model_does_after_the_end_of_its_task_is_still_told():
    root = run_of(started(LEAD, NOW), completed(LEAD), answered(LEAD), used(LEAD))
    assert (len(root.models), len(root.tools)) == (1, 1)


def test_a_terminal_shows_models_and_tools_and_why_a_tool_failed():
    told = [line.strip("│├└─ ") for line in screen(worked()).splitlines()]
    assert told == [
        "lead worked alone; 1 tool call failed",
        "1 task · depth 0 · 0 refused · 1.0 s · 3 model calls · 2 tool calls",
        "✓ lead  build it  1.0 s",
        "◆ openai:gpt-5  2 calls, 1 failed  1,234 tokens  $0.01",
        "◆ local:tiny  1 call",
        '◇ lookup({"q":"a"})  12 ms  SHELF-THREE',
        '✗ lookup({"q":"lamp"})',
        "KeyError: 'lamp' (team.py:8 in lookup)",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_why_a_tool_failed_is_whole_at_every_width(width):
    told = screen(worked(), width)
    assert f"KeyError: 'lamp' ({WHERE})" in told
    assert all(len(line) <= width for line in told.splitlines())


def test_why_a_tool_failed_is_red():
    told = screen(worked(), force_terminal=True, color_system="standard")
    assert f"\x1b[31mKeyError: 'lamp' ({WHERE})" in told
    assert "\x1b[" not in screen(worked(), no_color=True)


def test_of_many_calls_the_latest_are_drawn_and_the_rest_is_counted():
    root = worked(*[used(LEAD, f"tool{number}") for number in range(20)])
    told = screen(root)
    assert f"… 10 tool calls before; `remit show {root.id} --all` lists them" in told
    assert told.count("◇ tool") == 12
    assert flow.text(root, NOW).count("◇ tool") == 12
    assert "├─ … 10 tool calls before\n" in flow.text(root, NOW)


def test_text_has_a_line_for_each_model_and_each_call():
    assert flow.text(worked(), NOW + SECOND) == (
        "✓ lead: build it · 1.0 s · 1 slice, 2 tokens\n"
        "├─ ◆ openai:gpt-5 · 2 calls, 1 failed · 1,234 tokens · $0.01\n"
        "├─ ◆ local:tiny · 1 call\n"
        '├─ ◇ lookup({"q":"a"}) · 12 ms · SHELF-THREE\n'
        '└─ ✗ lookup({"q":"lamp"}) · KeyError: \'lamp\' (team.py:8 in lookup)\n'
    )


def test_a_call_without_arguments_or_result_is_short():
    root = run_of(started(LEAD, NOW), used(LEAD), used(LEAD, outcome="refused", result="no"), completed(LEAD))
    assert [line[3:] for line in flow.text(root, NOW).splitlines()[1:]] == ["◇ lookup()", "⊘ lookup() · no"]
    assert "◇ lookup()\n" in screen(root)


def test_what_a_tool_returns_does_not_act_in_a_terminal():
    root = run_of(started(LEAD, NOW), used(LEAD, result="\x1b[31m\u202e", given="\x07"), completed(LEAD))
    for told in (flow.text(root, NOW), screen(root), flow.mermaid(root, NOW)):
        assert not set("\x1b\x07\u202e") & set(told)


def test_a_call_that_asks_another_agent_is_drawn_as_the_task_that_it_began():
    calls = [
        used(LEAD, "call_agent", result="done"),
        refused(LEAD, "tester"),
        used(LEAD, "call_agent", "refused", result="'tester' no"),
        used(LEAD, "call_agent", "refused", result="'lead' may not use 'call_agent'"),
        used(LEAD, "call_agent", "failed", result="'call_agent' failed: BadInput: no task"),
    ]
    root = run_of(started(LEAD, NOW), *calls, completed(LEAD))
    assert [use.outcome for use in root.drawn_tools] == ["refused", "failed"]
    root = run_of(started(LEAD, NOW), started(CODER, NOW), failed(CODER), *calls, completed(LEAD))
    assert [use.result for use in root.drawn_tools] == ["'lead' may not use 'call_agent'"]


def test_each_holder_of_a_task_has_its_own_models_and_tools_in_a_picture():
    root = run_of(
        started(LEAD, NOW),
        answered(LEAD),
        used(LEAD, outcome="failed", result="'lookup' failed: OSError: no disk"),
        handed(LEAD, "billing", NOW),
        answered(BILLING, "local:tiny", cost=20_000),
        used(BILLING),
        used(BILLING, outcome="refused", result="no"),
        completed(BILLING),
    )
    chart = flow.mermaid(root, NOW)
    assert "openai#58;gpt-5, 1 call<br/>1 tool call, 1 failed" in chart
    assert "local#58;tiny, 1 call, #36;#8288;0.02<br/>2 tool calls, 1 refused" in chart
    assert "├─ ◆ lead: openai:gpt-5 · 1 call\n├─ ◆ billing: local:tiny · 1 call · $0.02\n" in flow.text(root, NOW)
    assert "◆ billing: local:tiny  1 call  $0.02\n" in screen(root)
    drawing = flow.svg(root, NOW)
    assert "2 model calls · 3 tool calls, 1 failed" in drawing
    assert "openai:gpt-5, 1 call; 1 tool call, 1 failed; lookup: OSError: no disk" in drawing


def test_a_card_counts_calls_of_models_and_tools_and_is_red_if_one_failed():
    assert "◆3 ◇2 ✗1" in texts(picture(worked()))
    assert 'class="mono fill failed"' in flow.svg(worked(), NOW)
    quiet = run_of(started(LEAD, NOW), used(LEAD), completed(LEAD))
    assert "◇1" in texts(picture(quiet))
    assert 'class="mono fill failed"' not in flow.svg(quiet, NOW)


def test_a_picture_of_a_task_with_many_models_counts_the_rest():
    models = [ModelUse("a", f"m{number}", 1) for number in range(5)]
    assert uses_in_short(models, []) == ["m0, 1 call", "m1, 1 call", "m2, 1 call", "and 2 more"]


def test_data_has_models_and_tools_by_name():
    data: Any = wire.tree(worked())
    assert data["models"][1] == {
        "agent": "lead",
        "model": "local:tiny",
        "calls": 1,
        "failed": 0,
        "tokens": 0,
        "credits": 0,
    }
    assert data["tools"][1]["place"] == WHERE


def test_the_models_of_one_task_are_counted_from_its_events():
    events = journal(started(LEAD, NOW), answered(LEAD), used(LEAD), answered(LEAD))
    assert models_in(events) == [ModelUse("lead", "openai:gpt-5", 2)]


# -- what was passed -------------------------------------------------------------------------------------------------


def test_arrows_say_what_was_passed():
    names = [f"spec/{name}" for name in "abcde"]
    child = node("coder", receipt=seen(*names))
    root = node("lead", children=[child])
    assert "1.3 s · 5 slices (spec/a, spec/b, spec/c and 2 more), 6 tokens" in flow.text(root, NOW)
    assert '-->|"spec/a +4 · 6 tok"|' in flow.mermaid(root, NOW)
    assert "spec/a +4 · 6 tok" in texts(picture(root))


def test_the_arrow_of_a_handoff_says_what_was_passed_and_its_phase():
    root = relay()
    root.receipt = seen("handed over by billing")
    root.trail[0] = handoff(1, "triage", "billing", phase="refund")
    assert "→ refunds · 3.0 s · 1 slice (handed over by billing), 6 tokens\n" in flow.text(root, NOW)
    assert '==>|"handed over by billing · 6 tok"|' in flow.mermaid(root, NOW)
    root.trail[1] = root.trail[1]._replace(phase="pay")
    assert '==>|"pay, handed over by billing · 6 tok"|' in flow.mermaid(root, NOW)


def test_names_on_arrows_do_not_act():
    root = node("lead", children=[node("coder", receipt=seen('x"]; click n0 "javascript'))])
    assert 'click n0 "' not in flow.mermaid(root, NOW)

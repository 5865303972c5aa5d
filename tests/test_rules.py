"""Every rule has a test, and every test names a rule that exists."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
RULES = HERE.parent / "docs" / "rules.md"


def written() -> set[str]:
    return set(re.findall(r"^\| ([a-z]+\.[a-z-]+) \|", RULES.read_text(), re.MULTILINE))


def marked() -> set[str]:
    found: set[str] = set()
    for path in HERE.rglob("test_*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "mark.rule(" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "rule":
                found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}  # pyright: ignore[reportAssignmentType]
    return found


def test_every_rule_has_a_test_and_every_test_names_a_rule_that_is_written_down():
    tested = marked()
    assert sorted(written() - tested) == [], 'mark a test of these rules: @pytest.mark.rule("...")'
    assert sorted(tested - written()) == [], "add these rules to docs/rules.md"


def test_the_page_on_threats_names_rules_that_are_written_down():
    named = set(re.findall(r"`([a-z]+\.[a-z-]+)`", (RULES.parent / "threats.md").read_text())) - {"turn.tools"}
    assert sorted(named - written()) == []

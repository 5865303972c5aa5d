"""Which line of a script is taken, and what it says."""

import pytest

from remit.config.scripts import FreeScripts, ScriptLine, ToldSoFar, matching_line
from remit.core.prices import Usage

LINES = [
    ScriptLine(when="Refund", call="refund", arguments={"a": ["{task}", 3], "b": {"c": "{look}"}}),
    ScriptLine(say="for {task}"),
    ScriptLine(after="look", say="first: {result}"),
    ScriptLine(after="look", say="then: {look}, {nothing}, {{task}}"),
]


@pytest.mark.rule("file.script")
def test_the_first_line_that_fits_the_task_is_taken():
    assert matching_line(LINES, "tea", ToldSoFar()) == ScriptLine(say="for tea")
    found = matching_line(LINES, "a REFUND", ToldSoFar({"look": {"x": 1}}))
    assert found is not None
    assert (found.call, found.arguments) == ("refund", {"a": ["a REFUND", 3], "b": {"c": '{"x":1}'}})


@pytest.mark.rule("file.script")
def test_a_tool_that_answers_again_takes_the_next_line():
    said = [matching_line(LINES, "tea", ToldSoFar({"look": "seen"}, "look", times)) for times in (1, 2, 3)]
    assert [line.say for line in said if line] == ["first: seen", *["then: seen, {nothing}, {tea}"] * 2]


@pytest.mark.rule("file.script")
def test_what_is_put_into_a_line_is_not_read_again():
    assert matching_line([ScriptLine(say="{task}")], "{result}", ToldSoFar()) == ScriptLine(say="{result}")


def test_no_line_is_no_answer():
    assert matching_line(LINES, "tea", ToldSoFar({"other": "x"}, "other")) is None
    assert matching_line([], "tea", ToldSoFar()) is None


def test_scripts_cost_nothing_and_nothing_is_said_of_others():
    prices = FreeScripts()
    assert (prices.cost("script:a.toml", Usage(1, 1)), prices.worst("script:a.toml", 1, 1)) == (0, 0)
    assert (prices.cost("openai:gpt-5", Usage(1, 1)), prices.worst("openai:gpt-5", 1, 1)) == (None, None)

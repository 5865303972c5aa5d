"""What goes to another model than the one that gave an answer."""

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ThinkingPart, ToolCallPart

from remit.adapters.pydantic_ai.talking import decoded, encoded, made_by, portable

ANSWER = ModelResponse(
    [
        ThinkingPart("hm", id="rs_1", signature="s", provider_name="openai"),
        TextPart("yes", id="msg_1", provider_name="openai"),
        ToolCallPart("look", {"at": "sky"}, "c1", id="fc_1", provider_name="openai"),
    ],
    provider_name="openai",
    provider_response_id="resp_1",
)
TALK: list[ModelMessage] = [ModelRequest.user_text_prompt("look"), made_by(ANSWER, "openai:gpt-5")]


@pytest.mark.rule("talk.foreign")
def test_the_model_that_gave_an_answer_is_sent_all_of_it():
    assert portable(TALK, "openai:gpt-5") == TALK


@pytest.mark.rule("talk.foreign")
def test_another_model_is_sent_no_thoughts_ids_or_signatures():
    """The two APIs of one provider do not know each other's ids, although its name is the same."""
    _, answer = portable(TALK, "openai-chat:gpt-5")
    assert isinstance(answer, ModelResponse)
    assert [type(part) for part in answer.parts] == [TextPart, ToolCallPart]
    assert "rs_1" not in str(answer)
    assert all(getattr(part, "id", None) is None and part.provider_name is None for part in answer.parts)
    assert (answer.provider_name, answer.provider_response_id) == (None, None)
    assert answer.parts[1].tool_call_id == "c1"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.rule("talk.foreign")
def test_who_gave_an_answer_is_on_record_and_an_answer_of_nobody_known_is_left_as_it_is():
    assert portable([decoded(encoded(TALK[1]))], "openai:gpt-5") == [decoded(encoded(TALK[1]))]  # pyright: ignore[reportArgumentType]
    assert portable([ANSWER], "anthropic:claude") == [ANSWER]

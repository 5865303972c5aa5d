"""Providers: which endpoint a key belongs to, which variable holds it, and what may be shown of what they say."""

import pytest

from remit.adapters.bodies import LONGEST, provider_words, shown_words
from remit.adapters.providers import default_key, endpoint_of, provider_of
from remit.core.values import endpoint
from remit.errors import BadInput


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.rule("key.endpoint")
@pytest.mark.parametrize(
    ("url", "named"),
    [
        (None, "openai"),
        ("https://api.openai.com/v1", "openai"),
        ("https://API.OpenAI.com:443/v1", "openai"),
        ("http://api.openai.com/v1", "openai@api.openai.com"),  # in the open: not where the key was meant to go
        ("https://api.openai.com:8443/v1", "openai@api.openai.com:8443"),
        ("https://api.openai.com.evil.example/v1", "openai@api.openai.com.evil.example"),
        ("https://api.openai.com@evil.example/v1", "openai@evil.example"),
        ("http://127.0.0.1:8000/v1", "openai@127.0.0.1:8000"),
        ("http://[::1]:8000/v1", "openai@[::1]:8000"),
        ("localhost:11434/v1", "openai@localhost:11434"),
    ],
)
def test_an_endpoint_is_the_provider_or_the_provider_at_a_host(url: str | None, named: str):
    assert endpoint_of("openai", url) == named == endpoint(named)


@pytest.mark.rule("key.endpoint")
def test_an_endpoint_has_one_spelling_and_every_mark_of_its_host_counts():
    assert endpoint(" OpenAI ") == "openai"
    assert endpoint("OpenAI@LLM.Example.com") == "openai@llm.example.com" != endpoint("openai@llm-example.com")
    for wrong in ("openai@", "openai@a b", "openai@a@b"):
        with pytest.raises(BadInput, match="provider@host"):
            endpoint(wrong)


def test_the_variable_that_is_set_is_the_one_that_holds_the_key(monkeypatch: pytest.MonkeyPatch):
    assert (default_key("google"), default_key("ollama"), default_key("nobody")) == ("GOOGLE_API_KEY", "", "")
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert default_key("google") == "GEMINI_API_KEY"
    assert [provider_of(name) for name in ("openai:a", "openai-chat:a", "openai-responses:a", "test")] == [
        *["openai"] * 3,
        "test",
    ]


class Answered(Exception):
    status_code = 400

    def __init__(self, body: object) -> None:
        self.body = body


@pytest.mark.rule("model.said")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"message": "The model does not exist"}, "The model does not exist"),
        ({"error": {"message": "no\n such\x1b[31m  model"}}, "no such [31m model"),
        ([{"error": {"message": "of Google"}}], "of Google"),
        ({"detail": "of FastAPI"}, "of FastAPI"),
        ("plain text", "plain text"),
        ("<html>a page</html>", ""),
        ({"error": {"code": 3}}, ""),
        (None, ""),
        ([], ""),
        ({"message": "Incorrect API key provided: sk-ab***********wxyz."}, "Incorrect API key provided: [secret]."),
        ({"message": "key the-very-key is wrong"}, "key [secret] is wrong"),
        ({"message": 'say "hi"'}, "say 'hi'"),
    ],
)
def test_what_a_provider_said_is_found_and_made_fit_to_show(body: object, words: str):
    assert provider_words(Answered(body), ["the-very-key", "x"]) == words


@pytest.mark.rule("model.said")
def test_it_is_short_and_has_nothing_in_it_that_looks_like_a_key():
    assert len(shown_words("word " * 1_000)) == LONGEST
    for key in ("sk-proj-aB3dE6gH9", "AIzaSyA1234567890abcdef", "Bearer abc123def456", "hf_abc123DEF456", "a1" * 20):
        assert key not in shown_words(f"you sent {key}, which is wrong")
    assert shown_words("Invalid schema for function 'find_order'") == "Invalid schema for function 'find_order'"
    assert shown_words("The model `gpt-5-mini-2026-01-01` does not exist") == (
        "The model `gpt-5-mini-2026-01-01` does not exist"
    )

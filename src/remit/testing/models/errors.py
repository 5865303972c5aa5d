"""The error responses of providers."""

from typing import Any, Final, NamedTuple

from remit.testing.models.requests import Dialect


class _Told(NamedTuple):
    code: str | None
    type: str


_OPENAI: Final = {
    400: _Told(None, "invalid_request_error"),
    401: _Told("invalid_api_key", "invalid_request_error"),
    402: _Told("insufficient_quota", "insufficient_quota"),
    404: _Told("model_not_found", "invalid_request_error"),
    422: _Told(None, "invalid_request_error"),
    429: _Told("rate_limit_exceeded", "requests"),
}
_SERVER: Final = _Told(None, "server_error")
_ANTHROPIC: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_TOO_LONG: Final = {
    "chat": "This model's maximum context length is 8192 tokens, and the messages have more.",
    "responses": "Your input exceeds the context window of this model.",
    "messages": "prompt is too long: 200001 tokens > 200000 maximum",
}


def error(dialect: Dialect, status: int, code: str = "", message: str = "") -> dict[str, Any]:
    """Return the body of an error. Without a code it has the provider's usual one for that status."""
    message = message or f"the script answers with status {status}"
    if dialect == "messages":
        kind = code or _ANTHROPIC.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    usual = _OPENAI.get(status, _SERVER)
    return {
        "error": {"message": message, "type": code or usual.type, "param": None, "code": code or usual.code},
    }


def too_long(dialect: Dialect) -> dict[str, Any]:
    """Return the body of the error for a context that is too long; one provider has no code for it."""
    code = "" if dialect == "messages" else "context_length_exceeded"
    found = error(dialect, 400, code, _TOO_LONG[dialect])
    if code:
        found["error"]["type"] = "invalid_request_error"
    return found

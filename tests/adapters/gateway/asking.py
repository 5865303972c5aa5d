"""A program that asks models through the gateway, with nothing but Python's own library, and a team around it."""

import json
import sys
from typing import Any

from remit.adapters.prices import KnownPrices, Price
from remit.settings import System

RATE = Price(input="$1", output="$2", cached_input="$0.1", cache_written="$1.25", cache_written_1h="$2")
KEY = "sk-real-key-0123456789"
SYSTEM = System(prices=KnownPrices(dict.fromkeys(("claude-x", "claude-y", "gpt-x", "gemini-x"), RATE)))

_ASK = '''
import http.client, json, os, sys, urllib.parse
task = sys.stdin.read()
base = urllib.parse.urlsplit(os.environ.get("ANTHROPIC_BASE_URL", os.environ.get("REMIT_MCP", "")))
token = os.environ["REMIT_TOKEN"]

def send(path, body, token=token, method="POST", **headers):
    """The status and the body of an answer; what came of it, if it broke off."""
    wire = http.client.HTTPConnection(base.hostname, base.port, timeout=60)
    wire.request(method, path, json.dumps(body) if body is not None else None,
                 {"content-type": "application/json", "x-api-key": token, **headers})
    answer = wire.getresponse()
    found = b""
    try:
        while piece := answer.read1(4096):
            found += piece
    except http.client.HTTPException as error:
        found += f"[{type(error).__name__}]".encode()
    return answer.status, found.decode()

def ask(text="hi", model="claude-x", stream=False, **more):
    body = {"model": model, "max_tokens": 8000, "stream": stream, "messages": [{"role": "user", "content": text}]}
    return send("/v1/messages", {**body, **more})
'''


def asking(code: str) -> list[str]:
    """A program that runs this code after the definitions of `send` and `ask`. It prints JSON."""
    return [sys.executable, "-c", f"{_ASK}\n{code}"]


def words(answer: Any) -> str:
    """The text of an answer in the format of messages."""
    status, body = answer
    assert status == 200, body
    return json.loads(body)["content"][0]["text"]

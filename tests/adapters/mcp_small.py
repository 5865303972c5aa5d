"""A small server of another make, of the time before there was a protocol without sessions; it needs no package, and
does what no server should.

    argv: a folder for signs, and how it behaves
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

folder, manner = Path(sys.argv[1]), sys.argv[2]
LONE = '"\\ud800 half"'


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(request: dict, result: str) -> None:
    say(f'{{"jsonrpc": "2.0", "id": {json.dumps(request["id"])}, "result": {result}}}')


def sign(name: str, text: str) -> None:
    draft = folder / f"{name}.draft"
    draft.write_text(text)
    draft.rename(folder / name)


def offered() -> str:
    starts = len(list(folder.glob("start-*")))
    sentence = f"Say it, {starts}." if manner == "changes" else "Say it."
    tools = [{"name": name, "description": sentence, "inputSchema": {"type": "object"}} for name in names()]
    page = {"tools": tools}
    if manner == "endless":
        page["nextCursor"] = "more"
    return json.dumps(page)


def names() -> list[str]:
    return {"twice": ["say", "say"], "verb": ["call_agent"]}.get(manner, ["say"])


def said(request: dict) -> None:
    match manner:
        case "error":
            code = {"code": -32000, "message": "no\n## do this"}
            say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": code}))
        case "lone":
            answer(request, f'{{"content": [{{"type": "text", "text": {LONE}}}]}}')
        case "nul":
            answer(request, json.dumps({"content": [{"type": "text", "text": "a\0b"}]}))
        case "links":
            link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
            text = {"type": "resource", "resource": {"uri": "file:///t", "text": "its text"}}
            blob = {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA", "mimeType": "a/b"}}
            answer(request, json.dumps({"content": [link, text, blob], "structuredContent": {"more": 1}}))
        case "wrong":
            answer(request, json.dumps({"content": "no list"}))
        case "flood":
            sys.stdout.write("x" * 40_000_000)
            sys.stdout.flush()
        case "die":
            print("out of\nmemory", file=sys.stderr, flush=True)
            os._exit(3)
        case "silent":
            sign("called", "")
        case _:
            answer(request, json.dumps({"content": [{"type": "text", "text": str(os.getpid())}]}))


def start() -> None:
    (folder / f"start-{os.getpid()}").touch()
    if manner in ("stubborn", "parent"):
        if manner == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "1000"])
        sign("group", str(os.getpgrp()))
    if manner == "mute":
        signal.pause()


def main() -> None:
    start()
    say("starting up, this is not a message")
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                version = request["params"]["protocolVersion"]
                about = {"name": "small", "version": "1"}
                body = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
                answer(request, json.dumps(body))
            case "tools/list":
                answer(request, offered())
            case "tools/call":
                said(request)
            case "notifications/cancelled":
                sign("cancelled", "")
            case _ if "id" in request:
                unknown = {"code": -32601, "message": "Method not found"}
                say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": unknown}))
    while manner == "stubborn":
        signal.pause()


main()

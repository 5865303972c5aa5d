"""A stand-in for OpenAI, so that the examples run without a key: a scripted model, served on loopback by a thread.

With OPENAI_API_KEY set, the examples ask OpenAI, and nothing here is used.
"""

import asyncio
import json
import os
import threading
from collections.abc import Sequence

from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server

Line = tuple[str, str, ModelReply]  # words of the instructions, words of the last message, and the answer


def review(*comments: str) -> ModelReply:
    """Return a review in the form that the example asks for. A review without comments approves."""
    return Calls("final_result", {"approved": not comments, "comments": [*comments]})


def line(text: str, name: str) -> ModelReply:
    """Return a line of the group chat, in the form that the example asks for."""
    return Calls("final_result", {"text": text, "name": name})


def without_key(script: Sequence[Line]) -> None:
    """If OPENAI_API_KEY is not set, let this script answer in place of OpenAI."""
    if os.environ.get("OPENAI_API_KEY"):
        return
    address: list[str] = []
    served = threading.Event()

    def answer(asked: ModelRequest) -> ModelReply:
        who, last = str(asked.body.get("instructions")), asked.text
        return next(reply for role, words, reply in script if role in who and words in last)

    async def serve() -> None:
        async with model_server(answer) as server:
            address.append(server.url)
            served.set()
            await asyncio.Event().wait()

    threading.Thread(target=asyncio.run, args=(serve(),), daemon=True).start()
    served.wait()
    os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{address[0]}/v1"}


SUPPORT_DESK: list[Line] = [
    ("You answer customers", "broken", Calls("handoff", {"agent": "refunds", "update": {"order": 5003}})),
    ("You answer customers", "arrives today", Says("Your espresso machine is on its way and arrives today.")),
    ("You answer customers", "Where", Calls("find_order", {"order": 5003})),
    ("You answer customers", "", Says("You are welcome. Is there anything else about order 5003?")),
    ("You decide on refunds", "is refunded", Says("I am sorry that it arrived broken. We have refunded the $80.")),
    ("You decide on refunds", "not approved", Says("I cannot refund this myself. A colleague will call you today.")),
    ("You decide on refunds", "", Calls("refund", {"order": 5003, "dollars": 80})),
]

_SUBJECTS = ("history", "engineering", "traffic", "colour")
_PLAN = [{"id": one, "title": f"Find out about its {one}", "agent": "researcher"} for one in _SUBJECTS]
_CHECK = {"id": "check", "title": "Check the year of its opening", "agent": "checker", "after": [*_SUBJECTS]}
_PAGE = """The Golden Gate Bridge opened in 1937. Its main span of 1,280 metres was the longest in the world until 1964.
112,000 vehicles cross it each day, and its colour is called International Orange.
Missing: the year of the opening is not checked against a second source."""
RESEARCH: list[Line] = [
    ("You edit", "## Results", Says(_PAGE)),
    ("You edit", "", Says(json.dumps({"steps": [*_PLAN, _CHECK]}))),
    ("You find out", "1937", Says("It was built from 1933 and opened on 27 May 1937.")),
    ("You find out", "span", Says("Its main span is 1,280 metres long, the longest until 1964.")),
    ("You find out", "vehicles", Says("About 112,000 vehicles cross it each day.")),
    ("You find out", "Orange", Says("Its colour is International Orange.")),
    *(("You find out", one, Calls("look_up", {"subject": one})) for one in _SUBJECTS),
    ("You check", "may not spend", Says("Not checked: there is no money left for a lookup.")),
    ("You check", "", Calls("look_up", {"subject": "opening"})),
]

GROUP_CHAT: list[Line] = [
    ("You find names", "Shorter", line("Then Ebb.", "Ebb")),
    ("You sell", "Shorter", line("Ebb. Three letters, one picture.", "Ebb")),
    ("You know which names", "Shorter", line("Ebb is free too.", "Ebb")),
    ("You find names", "taken", line("Then Ebb and Leaf: the sea and the tea.", "Ebb and Leaf")),
    ("You sell", "Ebb and Leaf", line("Ebb and Leaf is easy to remember. I am for it.", "Ebb and Leaf")),
    ("You know which names", "Ebb and Leaf", line("Ebb and Leaf is free.", "Ebb and Leaf")),
    ("You find names", "", line("The Tide and the Leaf.", "The Tide and the Leaf")),
    ("You sell", "", line("Too long for a sign. Tide Tea.", "Tide Tea")),
    ("You know which names", "", line("Tide Tea is taken.", "The Tide and the Leaf")),
]


_HEAD = """def total(prices: list[int]) -> float:
    \"""Return the mean price.

    >>> total([2, 4])
    3.0
"""
_EMPTY = "    >>> total([])\n    0.0\n"
_ONE = "    >>> total([5])\n    5.0\n"
_BODY = """    \"""
    return sum(prices) / len(prices) if prices else 0.0
"""
_FIRST, _SECOND, _THIRD = (_HEAD + added + _BODY for added in ("", _EMPTY, _EMPTY + _ONE))
CODER_AND_REVIEWER: list[Line] = [
    ("You review", "total([])", review()),
    ("You review", "", review("Add a doctest for the empty list.")),
    ("You change", "Expecting:\n    5.0", Says(_THIRD)),
    ("You change", "Expecting:\n    0.0", Says(_SECOND)),
    ("You change", "Expecting:", Says(_FIRST)),
    ("You change", "sent this back", Calls("run_doctests", {"source": _THIRD})),
    ("You change", "The reviewer says", Calls("run_doctests", {"source": _SECOND})),
    ("You change", "", Calls("run_doctests", {"source": _FIRST})),
]

_POST = {"title": "First flush", "text": "The first Darjeeling of the year has arrived."}
FASTAPI_APP: list[Line] = [
    ("You write short posts", "published as", Says("The post is online: /blog/first-flush")),
    ("You write short posts", "not approved", Says("The post was not approved, so it is not online.")),
    ("You write short posts", "", Calls("publish", _POST)),
]

_MOST = "select shop, dollars from sales where month = '{}' order by dollars desc limit 1"
_ALL = "select shop, sum(dollars) from sales group by shop order by 2 desc"
_ROWS = [
    {"shop": "station", "dollars": 4415},
    {"shop": "harbour", "dollars": 2302},
    {"shop": "market", "dollars": 2215},
]
NOTEBOOK: list[Line] = [
    ("You explain sales", "2305", Says("The station sold most in May: $2,305.")),
    ("You explain sales", "2110", Says("In June it was the station again, with $2,110.")),
    ("You explain sales", "June", Calls("call_agent", {"agent": "clerk", "task": "The best shop in June?"})),
    ("You explain sales", "", Calls("call_agent", {"agent": "clerk", "task": "The best shop in May?"})),
    ("You answer with SQL", "4415", Says(json.dumps(_ROWS))),
    ("You answer with SQL", "2305", Says("station, 2305")),
    ("You answer with SQL", "2110", Says("station, 2110")),
    ("You answer with SQL", "June", Calls("query", {"sql": _MOST.format("June")})),
    ("You answer with SQL", "May", Calls("query", {"sql": _MOST.format("May")})),
    ("You answer with SQL", "", Calls("query", {"sql": _ALL})),
]

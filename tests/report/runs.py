"""Runs to draw, made by hand, and what the tests look for in a drawing."""

from xml.etree import ElementTree as ET

from remit.core.times import SECOND
from remit.report import flow
from remit.report.tree import GONE, HandoffMade, Node, PlanStep, Refusal, Retry

SVG = "{http://www.w3.org/2000/svg}"
NOW = 134 * SECOND


def receipt(slices=1, tokens=6, withheld=0, unlisted=0):
    return {
        "saw": [["task", "task", tokens, 1, "83393eeb34819ae3"]] * slices,
        "tokens": tokens,
        "unlisted": unlisted,
        "withheld": [["everything else", "not passed"]] * withheld,
    }


def seen(*names: str, tokens=6):
    """A receipt of a turn to which these were passed."""
    return {**receipt(1, tokens), "saw": [[name, "passed", 1, 1, "83393eeb34819ae3"] for name in names]}


def node(agent="coder", task="write it", start=0.0, end: float | None = 1.3, **other) -> Node:
    other.setdefault("state", "running" if end is None else "completed")
    other.setdefault("receipt", {} if end is None else receipt())
    ended = None if end is None else round(end * SECOND)
    other.setdefault("asked_at", round(start * SECOND))
    return Node("id", agent, task, round(start * SECOND), 900 * SECOND, ended_at=ended, **other)


def refusal(at=0.5, to="lead", task="again", rule="loop", sentence="'lead' is already in this delegation"):
    return Refusal(round(at * SECOND), to, task, rule, sentence)


def team() -> Node:
    reader = node("reader", "fetch 6 pages", 2, 33, receipt=receipt(2, 2412, 4), result="6 pages")
    tester = node("tester", "run the suite", 40, 47, state="failed", error="'tester' failed: OSError: no disk")
    coder = node("coder", "write the page", 35, None, sees=["codebase/*", "style/*"], children=[tester])
    coder.refusals = [refusal(50)]
    stopped = node("deployer", "publish", 51, 51.2, state="cancelled", error="'deployer' was cancelled: enough")
    return node("lead", "ship it", 0, None, sees=["*"], children=[reader, coder, stopped])


def retry(at: float, attempt: int = 1, error: str = "'mailer' failed: OSError: no disk", turn: int = 0) -> Retry:
    return Retry(round(at * SECOND), attempt, "mailer", error, receipt(), turn)


def queue() -> Node:
    """One task in each of the states that a queue has, and one that was tried again and went well."""
    waiting = node("reviewer", "review it", 3, None, state="waiting", asked_how="submit")
    waiting.children = [node("checker", "check it", 6, None, asked_how="submit", asked_at=4 * SECOND)]
    return node(
        "lead",
        "ship it",
        0,
        None,
        children=[
            node("indexer", "index it", 1, None, state="pending", asked_how="submit", attempts=0),
            node("crawler", "crawl it", 2, None, state="pending", asked_how="spawn", retries=[retry(4)]),
            waiting,
            node("archiver", "keep it", 3, None, state="cancelling", asked_how="spawn"),
            node(
                "mailer",
                "send it",
                4,
                9,
                asked_at=round(3.5 * SECOND),
                asked_how="submit",
                state="dead",
                attempts=4,
                error="'mailer' failed: OSError: no disk; that was attempt 4 of 4",
                retries=[retry(5), retry(6, 2), retry(7, 3, GONE)],
            ),
            node("painter", "paint it", 4, 9, asked_how="submit", attempts=2, retries=[retry(5)], result="a cover"),
            node(
                "nobody", "too late", 4, 9, asked_how="submit", attempts=0, state="cancelled", error="cancelled: enough"
            ),
        ],
    )


def chain(length: int) -> Node:
    root = last = node("a0", "go down")
    for depth in range(1, length):
        below = node(f"a{depth}", "go down")
        last.children.append(below)
        last = below
    return root


def bushy(size: int, name: str = "worker") -> Node:
    """A tree in which everyone asks four others."""
    nodes = [node(name, "part", start=0.01 * at) for at in range(size)]
    for at in range(1, size):
        nodes[(at - 1) // 4].children.append(nodes[at])
    return nodes[0]


def fan(width: int, failed: int = 0) -> Node:
    children = [node(f"reader-{at}", f"page {at}") for at in range(width)]
    for child in children[len(children) - failed :]:
        child.state, child.error = "failed", "boom"
    return node("lead", "read it all", children=children)


def handoff(at: float, sender: str, *to: str, phase: str = "", parallel: bool = False) -> HandoffMade:
    return HandoffMade(round(at * SECOND), sender, to, 0, phase, receipt(2, 9, 1), parallel)


def relay() -> Node:
    """Triage, then billing, who asks the ledger, then refunds; one handoff is refused on the way."""
    ledger = node("ledger", "what was charged?", 2, 3, turn=1, result="40")
    root = node("refunds", "charged twice", 0, 9, children=[ledger], result="paid back")
    root.trail = [handoff(1, "triage", "billing", phase="refund"), handoff(6, "billing", "refunds")]
    no = Refusal(5 * SECOND, "triage", "charged twice", "deadlock", "the same again", handoff=True, turn=1)
    root.refusals = [no]
    return root


def scattered() -> Node:
    """Parts to two at once, then on to the one who joins them."""
    parts = [node("reader-a", "part a", 1, 2, turn=1), node("reader-b", "part b", 1, 3, turn=1)]
    root = node("joiner", "read it", 0, 4, children=[node("asked", "before", 0, 1), *parts])
    root.trail = [handoff(1, "lead", "reader-a", "reader-b", parallel=True), handoff(3, "lead", "joiner")]
    return root


def pingpong(times: int) -> Node:
    root = node("a", "back and forth", 0, times + 1)
    root.trail = [handoff(at, "ab"[at % 2], "ba"[at % 2]) for at in range(times)]
    root.children = [node("below", "x", 4, 5, turn=at, children=[node("deeper")]) for at in range(times)]
    return root


def step(id_: str, state: str = "waiting", *after: str, **other) -> PlanStep:
    return PlanStep(id_, other.pop("title", f"Step {id_}"), other.pop("agent", "coder"), [*after], state, **other)


def planned() -> Node:
    root = node("chief", "plan it", 0, None, sees=["*"])
    root.children = [
        node("reader", "# Task: Gather", 1, 2, step="a", title="Gather"),
        node("trader", "# Task: Compare", 1, 3, step="b", title="Compare", state="failed", error="no disk"),
    ]
    root.children[0].id, root.children[1].id = "t2", "t3"
    root.plans = [
        [
            step("a", "completed", title="Gather", agent="reader", task="t2", tries=1),
            step("b", "failed", title="Compare", agent="trader", task="t3", tries=2, reason="'trader' failed: no disk"),
            step("c", "running", "a"),
            step("d", "failed", "b", reason='dependency "b" failed'),
            step("e", "skipped", "d", "c", reason="aborted"),
            step("f", "waiting", "c"),
        ]
    ]
    return root


def long_plan(steps: list[PlanStep]) -> Node:
    return node("chief", "plan it", plans=[steps])


def picture(root: Node, theme: flow.Theme = "light", now: int = NOW) -> ET.Element:
    return ET.fromstring(flow.svg(root, now, theme))


def texts(drawn: ET.Element) -> list[str]:
    return [found.text or "" for found in drawn.iter(f"{SVG}text")]


def drawn_with(drawn: ET.Element, *looks: str) -> list[ET.Element]:
    return [found for found in drawn.iter() if set(looks) <= set(found.get("class", "").split())]

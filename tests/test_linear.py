"""Whatever others write is read with work in proportion: each list and each text that a model, a file, a provider or a
person can write is doubled, and so, at most, is the work. What is counted are instructions: no busy machine changes
those."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from remit.config.teams import check_team
from remit.core.card import Card
from remit.core.checks import meant
from remit.core.command import Command, Send
from remit.core.loops import Echoes, answer_digest, same
from remit.core.match import Index
from remit.core.plan import Plan, Step, drafted, faults, identities, plan_from_json, sources
from remit.core.prompt import Assigned, Note, Passed, brief
from remit.core.scope import Scope, both, scopes
from remit.core.secret import Redaction
from remit.core.trust import failure_told, quoted, task_told
from remit.core.values import canonical, checked_with_text, decode, excerpt, line, plain, shown, summary, tokens_in
from remit.errors import BadInput
from remit.ports.tools import Tool, pin_of
from remit.report.printable import block, escaped
from remit.stores.addresses import redacted

pytestmark = [pytest.mark.rule("input.linear"), pytest.mark.untraced]
MORE = 2.3  # times the work for twice as much: a little is lost in rounding and at the beginning


def work(do: Callable[[], object]) -> int:
    """Count the instructions that Python carries out."""
    count = 0

    def traced(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        with suppress(BadInput):
            do()
    finally:
        sys.settrace(before)
    return count


def grows_in_proportion(make: Callable[[int], Callable[[], object]], number: int) -> None:
    with suppress(BadInput):
        make(number)()  # whatever is done once has been done
    once, twice = work(make(number)), work(make(2 * number))
    assert twice <= MORE * once + 500, f"{once:,} instructions for {number:,}, {twice:,} for twice as many"


# -- lists ----------------------------------------------------------------------------------------------------------


def chain(number: int) -> list[dict[str, Any]]:
    """Steps of which each waits for the one before."""
    steps = [
        {"id": f"s{at}", "title": "x", "agent": "ann", "after": [f"s{at - 1}"] if at else []} for at in range(number)
    ]
    return steps[::-1]


def plan(number: int) -> Plan:
    return Plan([Step(**one) for one in chain(number)])


CARDS = {"ann": Card("ann", can="cook")}
LISTS: dict[str, Callable[[int], Callable[[], object]]] = {
    "items of arguments": lambda n: lambda: checked_with_text({"a": [*range(n)]}, "it"),
    "names of arguments": lambda n: lambda: checked_with_text({f"k{at}": at for at in range(n)}, "it"),
    "steps of a draft": lambda n: lambda: drafted({"steps": chain(min(n, 100))}, goal="x"),  # pyright: ignore[reportArgumentType]
    "steps of a plan as JSON": lambda n: lambda: plan_from_json({"steps": chain(n)}),  # pyright: ignore[reportArgumentType]
    "steps that wait in a row": lambda n: lambda: faults(plan(n), CARDS),
    "steps that wait in a circle": lambda n: (
        lambda: faults(Plan([Step(f"s{at}", "x", agent="ann", after=[f"s{(at + 1) % n}"]) for at in range(n)]), CARDS)
    ),
    "steps for nobody": lambda n: lambda: faults(Plan([Step(f"s{at}", "x", agent="bob") for at in range(n)]), CARDS),
    "steps of one id": lambda n: lambda: faults(Plan([Step("s", "x", agent="ann") for _ in range(n)]), CARDS),
    "steps of capabilities": lambda n: (
        lambda: faults(Plan([Step(f"s{at}", "x", capability="cook") for at in range(n)]), CARDS)
    ),
    "identities of steps": lambda n: lambda: identities(plan(n), dict.fromkeys((f"s{at}" for at in range(n)), "ann")),
    "transitive sources": lambda n: (
        lambda: sources(
            Step("z", "z", agent="ann", after=[f"s{n - 1}"], context="transitive"),
            {one.id: one for one in plan(n).steps},
        )
    ),
    "parts of a command": lambda n: lambda: Command([Send("ann", {"task": str(at)}) for at in range(n)], join="ann"),
    "what a handoff tells": lambda n: lambda: Command("ann", {"remaining": [f"t{at}" for at in range(n)]}),
    "scopes": lambda n: lambda: scopes([f"n{at}" for at in range(n)]),
    "scopes with prefixes": lambda n: lambda: scopes([Scope("n", prefix=f"p{at}") for at in range(n)]),
    "scopes that meet": lambda n: (
        lambda: both(scopes([f"n{at}" for at in range(n)]), scopes([Scope("n", prefix=f"p{at}") for at in range(n)]))
    ),
    "entries of a prompt": lambda n: lambda: brief(Assigned("x"), [Passed(f"n/{at}", "ann", "x") for at in range(n)]),
    "messages of a prompt": lambda n: lambda: brief(Assigned("x"), notes=[Note("ann", "x") for _ in range(n)]),
    "words of a capability": lambda n: lambda: Index(CARDS.values()).rank(" ".join(f"w{at}" for at in range(n))),
    "words of a card": lambda n: lambda: Index([Card("bob", role=" ".join(f"w{at}" for at in range(n)))]).rank("cook"),
    "secrets": lambda n: lambda: Redaction([f"secret-{at:08}" for at in range(n)]).text("x"),
    "fields of a schema": lambda n: (
        lambda: pin_of(
            Tool("x", "x", {"type": "object", "properties": {f"k{at}": {} for at in range(n)}}, print)  # pyright: ignore[reportArgumentType]
        )
    ),
    "wrong names": lambda n: lambda: meant("x" * n, ["model", "tools"]),
}


@pytest.mark.parametrize("name", LISTS)
def test_twice_the_items_are_twice_the_work(name: str):
    grows_in_proportion(LISTS[name], 100)


FILES: dict[str, Callable[[int], str]] = {
    "agents": lambda n: "".join(f"[agents.a{at}]\nmodel = 'test'\n" for at in range(n)),
    "agents that ask each other": lambda n: "".join(
        f"[agents.a{at}]\nmodel = 'test'\nasks = ['a{(at + 1) % n}']\n" for at in range(n)
    ),
    "one that asks all": lambda n: f"[agents.a]\nmodel = 'test'\nasks = {[f'b{at}' for at in range(n)]}\n",
    "wrong tables": lambda n: "".join(f"[t{at}]\nx = 1\n" for at in range(n)),
    "wrong settings": lambda n: "[agents.a]\nmodel = 'test'\n" + "".join(f"k{at} = 1\n" for at in range(n)),
    "wrong settings of many": lambda n: "".join(f"[agents.a{at}]\nmodle = 1\n" for at in range(n)),
    "wrong tools": lambda n: f"[agents.a]\nmodel = 'test'\ntools = {[f't{at}' for at in range(n)]}\n",
    "keys": lambda n: f"[agents.a]\nmodel = 'test'\nkeys = {[f'K{at}' for at in range(n)]}\n",
    "steps": lambda n: (
        "[agents.a]\nmodel = 'test'\n"
        + "".join(f"[[plan.steps]]\nid = 's{at}'\ntitle = 'x'\nagent = 'a'\n" for at in range(n))
    ),
    "limits": lambda n: (
        "[agents.a]\nmodel = 'test'\n"
        + "".join(f"[[limits]]\nper = 'day'\ncredits = '${at + 1}'\nagent = 'b{at}'\n" for at in range(n))
    ),
    "groups": lambda n: (
        f"[agents.a]\nmodel = 'test'\ntools = ['group:g']\n[groups]\ng = {[f't{at}' for at in range(n)]}\n"
    ),
    "comments": lambda n: "[agents.a]\nmodel = 'test'\n" + "# x\n" * n,
    "lines of a text": lambda n: "[agents.a]\nmodel = 'test'\ninstructions = '''" + "x\n" * n + "'''\n",
    "parts of names": lambda n: "".join(f"a.b.c{at} = 1\n" for at in range(n)),
}


@pytest.mark.parametrize("name", FILES)
def test_twice_the_settings_are_twice_the_work(name: str, tmp_path: Path):
    def make(number: int) -> Callable[[], object]:
        file = tmp_path / f"{number}.toml"
        file.write_text(FILES[name](number))
        return lambda: check_team(file, trusted=False)

    grows_in_proportion(make, 20)


# -- texts ----------------------------------------------------------------------------------------------------------

READERS: dict[str, Callable[[str], object]] = {
    "a name": canonical,
    "a line": lambda text: line(text, "it", 1_000_000),
    "plain text": lambda text: plain(text, "it", 1_000_000),
    "a summary": summary,
    "an excerpt": lambda text: excerpt(text, 200),
    "what is shown": shown,
    "tokens": tokens_in,
    "what is asked for": same,
    "an answer": answer_digest,
    "an echo": lambda text: Echoes().learn("ann", text, text),
    "quoted lines": quoted,
    "a failure": lambda text: failure_told("it failed", text, "untrusted"),
    "a task": lambda text: task_told(text, "untrusted"),
    "a task of an agent": lambda text: task_told(text, "trusted", by_agent=True),
    "a secret": Redaction(["secret-of-the-owner"]).text,
    "what is printed": block,
    "a printed line": lambda text: escaped(text, 80),
    "an address": redacted,
    "a JSON text": lambda text: decode(json.dumps(text)),
}
TEXTS = {
    "letters": "a",
    "words": "ab ",
    "lines": "a\n",
    "quotes": '"\\',
    "headings": "## x\n",
    "addresses": "a://b:c@d ",
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", READERS)
def test_twice_the_text_is_twice_the_work(name: str, text: str):
    def make(number: int) -> Callable[[], object]:
        long = TEXTS[text] * number
        return lambda: READERS[name](long)

    grows_in_proportion(make, 200)

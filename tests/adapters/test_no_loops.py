"""Work that looks like a loop and is none: nobody is told, refused or stopped."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from adapters.insisting import LONG, Played, Plays, played, results
from adapters.places import KEY, KEY_NAME, KINDS, join, priced, served, told
from remit import Runtime, Turn
from remit.adapters.program_tools import program_tool
from remit.errors import BadInput
from remit.ports.tools import Tool
from remit.settings import Loops
from remit.testing.models import Calls, ModelReply, ModelRequest, Says

pytestmark = [pytest.mark.anyio, pytest.mark.rule("loops.legitimate")]
ASKS_B: dict[str, list[str]] = {"a": ["b"], "b": []}
ITEMS = 20


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_A", "a")
    monkeypatch.setenv(KEY_NAME, KEY)


def unhindered(found: Played) -> bool:
    assert found.outcome.ok, str(found.outcome)
    assert (found.told(), found.refused(), found.stopped()) == (0, 0, 0)
    return True


def then_says(*calls: ModelReply) -> Plays:
    """Do all of this one after the other, and say that it is done."""
    left = iter(calls)
    return lambda _me, _request: next(left, Says("done"))


def tool(outcomes: Any) -> Any:
    left = iter(outcomes)

    def look(at: str = "") -> str:
        """Look."""
        return str(next(left))

    return look


async def with_tool(outcomes: Any, calls: int, **how: Any) -> Played:
    looks = [Calls("look", {}) for _ in range(calls)]
    return await played(then_says(*looks), {"a": []}, tools=[tool(outcomes)], **how)


# -- tools --------------------------------------------------------------------------------------------------------


async def test_a_poll_that_was_declared_may_say_the_same_forty_times():
    found = await with_tool(itertools.repeat("running"), 40, loops=Loops(polls=["look"]))
    assert unhindered(found)


def look() -> str:
    """Look."""
    return "running"


async def call_look(_given: dict[str, Any]) -> str:
    return look()


TOOLS = {
    "registered": None,
    "described": Tool("look", "Look.", {"type": "object"}, call_look, polls=True),
    "program": program_tool("look", ["echo", "running"], "Look.", polls=True),
    "named": look,
}


@pytest.mark.parametrize("kind", TOOLS)
async def test_a_tool_says_itself_that_it_polls(kind: str):
    def script(request: ModelRequest) -> ModelReply:
        return Says("done") if len(told(request)) >= 14 else Calls("look", {})

    async with served(script) as place, priced() as rt:
        if kind == "registered":
            rt.tool(polls=True)(look)
        join(rt, "native", place, tools=[TOOLS[kind] or "look"], polls=["look"] if kind == "named" else [])
        outcome = await rt.outcome("it", "go")
        assert outcome.value == "done"
        assert "nothing new" not in str([request.messages for request in place.server.requests])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tool_of_every_kind_of_agent_may_poll(kind: str):
    def script(request: ModelRequest) -> ModelReply:
        return Says("done") if len(told(request)) >= 14 else Calls("look", {})

    async with served(script) as place, priced() as rt:
        join(rt, kind, place, tools=[look], polls=["look"])
        outcome = await rt.outcome("it", "go")
        assert outcome.value == "done"
        assert "nothing new" not in str([request.messages for request in place.server.requests])


@pytest.mark.parametrize(
    ("polls", "why"),
    [
        (["lok"], "polls names 'lok', which is no tool of this agent; did you mean look?"),
        ("look", "polls takes a list of tools, not 'look'"),
        (True, "polls takes a list of tools, not True"),
    ],
)
def test_what_does_not_poll_is_refused_where_it_is_said(polls: Any, why: str):
    with Runtime() as rt, pytest.raises(BadInput) as no:
        rt.model_agent("a", "test", tools=[look], polls=polls)
    assert str(no.value) == why
    with Runtime() as rt, pytest.raises(BadInput, match="polls is True or False"):
        rt.tool(look, polls="yes")  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(BadInput, match="polls is True or False"):
        Tool("look", "", {"type": "object"}, call_look, polls=1)  # pyright: ignore[reportArgumentType]


async def test_a_poll_that_shows_progress_need_not_be_declared():
    assert unhindered(await with_tool((f"{number} %" for number in itertools.count()), 40))


@pytest.mark.rule("loops.stale")
async def test_a_poll_that_says_the_same_and_was_not_declared_is_refused_after_ten_times():
    found = await with_tool(itertools.repeat("running"), 40)
    assert found.requests <= 13
    assert (found.refused(), found.stopped()) == (2, 1)


@pytest.mark.parametrize("text", ["page {}", ""])
async def test_a_hundred_pages_may_be_read_and_all_of_them_may_be_empty(text: str):
    def read(number: int) -> str:
        """Read a page."""
        return text.format(number)

    pages = [Calls("read", {"number": number}) for number in range(40)]
    assert unhindered(await played(then_says(*pages), {"a": []}, tools=[read]))


async def test_a_tool_may_fail_three_times_and_then_work():
    tries = iter(range(4))

    def look() -> str:
        """Look."""
        if next(tries) < 3:
            raise TimeoutError
        return "found"

    assert unhindered(await played(then_says(*[Calls("look", {})] * 4), {"a": []}, tools=[look]))


async def test_the_same_test_may_be_run_25_times_with_results_that_differ_or_with_only_three_of_them():
    assert unhindered(await with_tool((f"{number} failed" for number in itertools.count()), 25))
    assert unhindered(await with_tool(itertools.cycle(("1 failed", "2 failed", "passed")), 25))


@pytest.mark.parametrize("results", ["change", "stay"])
async def test_fifteen_edits_with_a_test_after_each_are_work(results: str):
    numbers = itertools.count()

    def edit(text: str) -> str:
        """Edit the file."""
        return f"saved {text}"

    def check() -> str:
        """Run the tests."""
        return f"{next(numbers)} failed" if results == "change" else "3 failed"

    calls = [call for number in range(15) for call in (Calls("edit", {"text": f"v{number}"}), Calls("check", {}))]
    assert unhindered(await played(then_says(*calls), {"a": []}, tools=[edit, check]))


async def test_five_files_may_be_read_twice_and_that_is_said_at_most_once():
    def read(name: str) -> str:
        """Read a file."""
        return f"text of {name}"

    calls = [Calls("read", {"name": name}) for name in "abcdeabcde"]
    found = await played(then_says(*calls), {"a": []}, tools=[read])
    assert found.outcome.ok
    assert (found.told(), found.refused(), found.stopped()) == (1, 0, 0)


async def test_many_calls_in_one_answer_that_bring_nothing_new_are_one_round():
    def read(name: str) -> str:
        """Read a file."""
        return "empty"

    often = Calls("read", {"name": "x"}, also=[Calls("read", {"name": "x"})] * 9)
    assert unhindered(await played(then_says(*[often] * 4), {"a": []}, tools=[read]))


async def test_a_value_that_is_written_and_read_back_in_turn_is_work():
    kept: list[str] = [""]

    def write(value: str) -> str:
        """Write it down."""
        kept[0] = value
        return "written"

    def read() -> str:
        """Read it."""
        return kept[0]

    calls = [call for number in range(15) for call in (Calls("write", {"value": f"{number}"}), Calls("read", {}))]
    assert unhindered(await played(then_says(*calls), {"a": []}, tools=[write, read]))


# -- asking -------------------------------------------------------------------------------------------------------


def batches(calls: list[Calls], size: int) -> list[Calls]:
    found: list[Calls] = []
    for first in range(0, len(calls), size):
        one, *rest = calls[first : first + size]
        found.append(Calls(one.name, one.arguments, also=rest))
    return found


async def mapped(answers: Any, verb: str = "call_agent", size: int = 1, uses: Any = None) -> Played:
    calls = [Calls(verb, {"agent": "b", "task": f"review number {number}"}) for number in range(ITEMS)]
    left, said = iter(batches(calls, size)), iter(answers)

    def plays(me: str, request: ModelRequest) -> ModelReply:
        if me == "a":
            return next(left, Says("all are reviewed"))
        if uses is not None and not results(request):
            return Calls("look", {"at": request.text[-40:]})
        return Says(next(said))

    return await played(plays, ASKS_B, tools=[uses] if uses is not None else ())


@pytest.mark.parametrize("answer", ["yes", "another answer for each of them, number {}"])
@pytest.mark.parametrize("size", [1, 10])
async def test_a_model_may_map_over_many_one_by_one_or_in_batches(answer: str, size: int):
    assert unhindered(await mapped((answer.format(number) for number in itertools.count()), size=size))


async def test_a_model_may_map_over_many_with_the_same_long_answer_if_tools_are_used_for_it():
    assert unhindered(await mapped(itertools.repeat(LONG), uses=tool(f"file {number}" for number in itertools.count())))


async def test_a_model_may_map_over_many_without_waiting():
    assert unhindered(await mapped(itertools.repeat(LONG), verb="call_agent_async"))


@pytest.mark.rule("loops.stale")
async def test_the_same_long_answer_of_an_agent_without_tools_is_refused_after_eight_times():
    found = await mapped(itertools.repeat(LONG))
    assert found.requests <= 20
    assert found.told() >= 4
    assert found.stopped() == 1


@pytest.mark.parametrize("how", ["one by one", "at once"])
async def test_a_program_may_map_over_two_hundred_with_the_same_answer(how: str):
    def mapping_(rt: Runtime) -> str:
        @rt.agent(asks="*")
        async def lead(turn: Turn) -> int:
            texts = [f"review number {number}" for number in range(100)]
            if how == "at once":
                return len(await turn.delegate_all([("worker", text) for text in texts]))
            return len([await turn.delegate("worker", text) for text in texts])

        @rt.agent
        async def worker(turn: Turn) -> str:
            return LONG

        return "lead"

    assert unhindered(await played(lambda _me, _request: Says(""), {"b": []}, program=mapping_))


async def test_an_agent_may_fail_twice_and_then_answer():
    tries = itertools.count()

    def program(rt: Runtime) -> str:
        @rt.agent
        async def flaky(turn: Turn) -> str:
            if next(tries) < 2:
                raise TimeoutError
            return "here it is"

        return "a"

    calls = [Calls("call_agent", {"agent": "flaky", "task": "go"})] * 3
    assert unhindered(await played(then_says(*calls), {"a": ["flaky"]}, program=program))


@pytest.mark.parametrize("question", ["any news?", "what is new with you, and what holds you up at the moment?"])
async def test_a_standup_asks_the_same_twelve_times(question: str):
    news = itertools.cycle(("I finished part {}", "no news", "I began part {} of it today"))
    numbers = itertools.count()
    turns = itertools.cycle("bc")

    def plays(me: str, _request: ModelRequest) -> ModelReply:
        if me == "a":
            return next(calls, Says("that was it"))
        return Says(next(news).format(next(numbers)))

    calls = iter([Calls("call_agent", {"agent": next(turns), "task": question}) for _ in range(24)])
    assert unhindered(await played(plays, {"a": ["b", "c"], "b": [], "c": []}))


@pytest.mark.rule("loops.same-ask")
async def test_an_agent_without_news_is_not_asked_any_more_and_the_standup_goes_on():
    def plays(me: str, _request: ModelRequest) -> ModelReply:
        if me == "a":
            return next(calls, Says("that was it"))
        return Says("no news" if me == "b" else f"today I did number {next(numbers)} of what is to be done")

    numbers = itertools.count()
    both = [Calls("call_agent", {"agent": name, "task": "any news?"}) for name in "bc"]
    calls = iter([Calls(both[0].name, both[0].arguments, also=[both[1]]) for _ in range(12)])
    found = await played(plays, {"a": ["b", "c"], "b": [], "c": []})
    assert found.outcome.ok
    assert found.stopped() == 0
    assert found.refused() == 9


async def test_a_coder_and_a_reviewer_may_say_the_same_two_sentences_for_eight_rounds_of_real_edits():
    numbers = itertools.count()

    def edit() -> str:
        """Edit the file."""
        return f"version {next(numbers)} is saved"

    def read() -> str:
        """Read the file."""
        return f"version {next(numbers)}"

    def plays(me: str, request: ModelRequest) -> ModelReply:
        if me == "a":
            return next(calls, Says("it is good now"))
        if not results(request):
            return Calls("edit" if me == "b" else "read", {})
        return Says("I have changed it as the reviewer wanted" if me == "b" else "there is something left to change")

    sentences = {"b": "change it as the reviewer wants it", "c": "review what the coder has changed"}
    calls = iter([Calls("call_agent", {"agent": name, "task": sentences[name]}) for _ in range(8) for name in "bc"])
    assert unhindered(await played(plays, {"a": ["b", "c"], "b": [], "c": []}, tools=[edit, read]))


async def test_one_question_may_go_to_three_agents():
    calls = [Calls("call_agent", {"agent": name, "task": "is it sound?"}) for name in "bcd"]
    left = iter(calls)

    def plays(me: str, _request: ModelRequest) -> ModelReply:
        return next(left, Says("it is")) if me == "a" else Says(LONG)

    assert unhindered(await played(plays, {"a": ["b", "c", "d"], "b": [], "c": [], "d": []}))


async def test_an_agent_that_is_refused_once_and_does_something_else_goes_on():
    replies = then_says(
        Calls("call_agent", {"agent": "nobody", "task": "go"}),
        Calls("call_agent", {"agent": "a", "task": "go"}),
        Calls("look", {"at": "1"}),
        Calls("call_agent", {"agent": "nobody", "task": "go"}),
        Calls("look", {"at": "2"}),
        Calls("call_agent", {"agent": "nobody", "task": "go"}),
        Calls("look", {"at": "3"}),
        Calls("call_agent", {"agent": "nobody", "task": "go"}),
    )
    found = await played(replies, {"a": ["b"], "b": []}, tools=[tool(itertools.count())])
    assert found.outcome.ok
    assert (found.refused(), found.stopped()) == (5, 0)


# -- other work ---------------------------------------------------------------------------------------------------


class Work(NamedTuple):
    """What a does, one call after the other, what those say whom it asks, and its tools."""

    calls: Sequence[Calls]
    says: Callable[[str], str] = lambda _me: "done"
    tools: Sequence[Any] = ()
    team: Mapping[str, Sequence[str]] = ASKS_B


class Desk:
    """Things that change while they are worked with."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.kept: dict[str, str] = {}
        self.left = 9

    def delete(self, what: str) -> str:
        """Delete something."""
        return "ok"

    def is_higher(self, than: int) -> str:
        """Tell whether the number is higher than this one."""
        return "higher" if than < 700 else "lower"

    def move(self, where: str) -> str:
        """Make a move."""
        return f"board {next(self.numbers)}"

    def fetch(self, page: str) -> str:
        """Fetch a page; every other time there are too many requests."""
        return "too many requests, wait" if next(self.numbers) % 4 else f"page {page}"

    def compile(self) -> str:
        """Compile."""
        return "error in line 7"

    def edit(self, text: str) -> str:
        """Edit the file."""
        return "saved"

    def take(self) -> str:
        """Take the next job."""
        self.left -= 1
        return f"job {self.left}" if self.left >= 0 else "no jobs"

    def put(self, key: str, value: str) -> str:
        """Put a value somewhere."""
        self.kept[key] = value
        return "ok"

    def get(self, key: str) -> str:
        """Get a value."""
        return self.kept.get(key, "nothing")


def each(*pairs: tuple[str, dict[str, Any]]) -> list[Calls]:
    return [Calls(name, given) for name, given in pairs]


def asking(name: str, texts: Iterable[str]) -> list[Calls]:
    return [Calls("call_agent", {"agent": name, "task": text}) for text in texts]


def labels() -> Callable[[str], str]:
    answers = itertools.cycle(("billing", "spam", "a bug", "billing"))
    return lambda _me: next(answers)


def news(words: str) -> Callable[[str], str]:
    numbers = itertools.count()
    return lambda me: f"{words} {me} {next(numbers)}"


def works() -> dict[str, Work]:
    desk = Desk()
    everyone = {"a": list("bcdef"), **{name: [] for name in "bcdef"}}
    return {
        "thirty are deleted, and each is ok": Work(
            each(*(("delete", {"what": f"{n}"}) for n in range(30))), tools=[desk.delete]
        ),
        "a number is searched for": Work(
            each(*(("is_higher", {"than": 1_000 - 30 * n}) for n in range(25))), tools=[desk.is_higher]
        ),
        "a game with the same moves": Work(
            each(*(("move", {"where": "left" if n % 2 else "right"}) for n in range(30))), tools=[desk.move]
        ),
        "pages that are fetched three times each before they come": Work(
            each(*(("fetch", {"page": f"{n // 4}"}) for n in range(32))), tools=[desk.fetch]
        ),
        "the same error after each of twelve edits": Work(
            [one for n in range(12) for one in each(("edit", {"text": f"{n}"}), ("compile", {}))],
            tools=[desk.edit, desk.compile],
        ),
        "jobs are taken until there are none, and then once more": Work(
            each(*(("take", {}) for _ in range(12))), tools=[desk.take]
        ),
        "a value that is looked at before and after each change": Work(
            [
                one
                for n in range(10)
                for one in each(("get", {"key": "x"}), ("put", {"key": "x", "value": f"{n}"}), ("get", {"key": "x"}))
            ],
            tools=[desk.get, desk.put],
        ),
        "tickets with one of three labels": Work(asking("b", (f"label ticket {n}" for n in range(20))), labels()),
        "the same question to five colleagues, in two rounds": Work(
            asking("b", ["your view?"]) + [one for name in "bcdef" * 2 for one in asking(name, ["your view?"])],
            news("I think it is a matter of taste, says"),
            team=everyone,
        ),
        "a debate with a text that grows": Work(
            [one for n in range(8) for name in "bc" for one in asking(name, [f"{'what was said. ' * (20 + n)}go on"])],
            news("here is another argument that nobody had thought of yet:"),
            team=everyone,
        ),
        "the same question after each piece of work": Work(
            [one for n in range(8) for one in (*each(("edit", {"text": f"{n}"})), *asking("b", ["is it good now?"]))],
            news("it is better than it was before, this is look number"),
            [desk.edit],
        ),
        "notes of how far it is": Work(
            each(*(("remember", {"key": "progress", "value": f"{n} of 15"}) for n in range(15))),
        ),
        "twelve at once, and then all of them asked after": Work(
            [Calls("list_agents", {}), *each(*(("recall", {"key": f"part {n}"}) for n in range(12)))],
        ),
        "handing nothing on, but asking three in turn for drafts": Work(
            asking("b", ("draft 1", "draft 2", "draft 3")) + asking("c", ("check 1", "check 2", "check 3")),
            lambda _me: "there you are",
            team=everyone,
        ),
    }


@pytest.mark.parametrize("name", works())
async def test_other_work_is_not_hindered_either(name: str):
    work = works()[name]
    left = iter(work.calls)

    def plays(me: str, _request: ModelRequest) -> ModelReply:
        return next(left, Says("that was it")) if me == "a" else Says(work.says(me))

    found = await played(plays, work.team, tools=work.tools)
    assert unhindered(found)
    assert next(left, None) is None

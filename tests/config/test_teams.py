"""Files become teams, or sentences with lines that say why not."""

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import remit
from remit.config.description import STEP, TABLES
from remit.config.kinds import Setting, TableKind
from remit.config.schema import schema
from remit.config.teams import Team, check_team, team
from remit.config.trusting import powers_of
from remit.core.allow import ANY
from remit.core.backoff import RetryPolicy
from remit.core.bounds import Bounds
from remit.core.breaker import BreakerPolicy
from remit.core.limits import Limit
from remit.core.loops import Loops
from remit.core.match import Certainty
from remit.core.plan import Step
from remit.engine.settings import Policy, Serving
from remit.errors import BadInput
from remit.runtime.models import AboutGuest, AboutModel

_names = count(1)

TOOLS = """
import pathlib

def find_order(number: int) -> str:
    "Find an order by its number."
    return f"order {number}: two lamps, paid"

async def hello(turn):
    return "hello, " + turn.task

async def lead(turn):
    return await turn.delegate("desk", turn.task)

def guest():
    from pydantic_ai import Agent
    return Agent("test", name="g")
guest = guest()

async def timing(turn, go):
    return f"timed {await go()}"

async def checking(turn, go):
    return f"checked {await go()}"

def only_oncall(hop):
    return None if hop.by == "ann" else "only Ann asks this week"

def short_tasks(hop):
    return len(hop.task) < 20

async def bound(turn):
    return str(turn.remit.bounds.handoffs)

class Thing:
    pass

thing = Thing()
"""
WHOLE = """
[run]
agent = "desk"
credits = "$0.50"
timeout = 20
tier = "complex"

[agents.desk]
model = "script:script.toml"
instructions = "Look the order up."
can = ["answer customers"]
asks = ["greeter", "shout"]
tools = ["find_order", "shouted"]
deny = ["group:exec"]
approve_tools = ["find_order"]
iterations = 7
reads = ["faq"]
writes = ["notes"]
concurrency = 3

[agents.greeter]
function = "MODULE:hello"
role = "greets"
needs_approval = true

[agents.shout]
program = ["tr", "a-z", "A-Z"]

[tools]
find_order = "MODULE:find_order"

[tools.shouted]
program = ["tr", "a-z", "A-Z"]
about = "Says it louder."

[bounds]
depth = 2
deadline = 2999-01-01T00:00:00Z
agents = "*"

[policy]
handoffs = 1

[serving]
concurrency = 4

[store]
path = "team.db"
workspace = "shop"
"""
SCRIPT = """
[[desk]]
when = "louder"
call = "shouted"
with = { text = "{task}" }

[[desk]]
after = "shouted"
say = "{result}!"

[[desk]]
call = "find_order"
with = { number = 17 }

[[desk]]
after = "find_order"
call = "call_agent"
with = { agent = "greeter", task = "{find_order}" }

[[desk]]
after = "call_agent"
say = "{call_agent} ({find_order})"
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a team's file, with a module of its own: Python imports a name once."""

    def written(text: str, script: str = SCRIPT) -> Path:
        module = f"file_tools_{os.getpid()}_{next(_names)}"
        (tmp_path / f"{module}.py").write_text(TOOLS)
        (tmp_path / "script.toml").write_text(script)
        file = tmp_path / "remit.toml"
        file.write_text(text.replace("MODULE", module))
        return file

    return written


def said(file: Path) -> list[str]:
    """What is wrong with a file, without the folder that it is in."""
    _, problems = check_team(file)
    return [str(one).replace(f"{file.parent}{os.sep}", "") for one in problems]


@pytest.mark.rule("file.same")
def test_a_file_says_what_python_would(write: Callable[..., Path], tmp_path: Path):
    made = team(write(WHOLE))
    desk, greeter, shout = (next(card for card in made.runtime.cards() if card.name == name) for name in NAMES)
    assert desk.instructions == "Look the order up."
    assert desk.can == ("answer customers",)
    assert desk.asks == {"greeter", "shout"}
    assert {"find_order", "shouted", "call_agent"} <= set(desk.tools if desk.tools is not ANY else ())
    assert desk.deny == {"exec"}
    assert desk.concurrency == 3
    assert (greeter.role, greeter.needs_approval, shout.tools) == ("greets", True, frozenset())
    assert made.run[:4] == ("desk", "$0.50", 20, "complex")
    assert made.runtime.concurrency == 4
    assert made.runtime.workspace.name == "shop"
    assert made.warnings == ()
    assert not (tmp_path / "team.db").exists()  # a file is made when it is used


def test_a_file_may_have_tiers_chosen_by_rules(write: Callable[..., Path]):
    made = team(write("[agents.desk]\nfunction = 'MODULE:bound'\n[policy]\nclassify = 'rules'"))
    tasks = ("fix a typo", "design a system for our platform")
    assert [asyncio.run(answered(made, task)) for task in tasks] == ["0", "5"]


FUNCTIONS = {"timing", "checking", "only_oncall", "short_tasks", "lead"}


@pytest.mark.rule("file.around", "around.kinds")
def test_a_file_names_functions_around_every_turn_and_guards_in_their_order(write: Callable[..., Path]):
    file = write(
        """
        [agents.desk]
        model = "script:script.toml"

        [agents.lead]
        function = "MODULE:lead"
        asks = ["desk", "shout"]

        [agents.shout]
        program = ["tr", "a-z", "A-Z"]

        [policy]
        around = ["MODULE:timing", "MODULE:checking"]
        guards = ["MODULE:only_oncall", "MODULE:short_tasks"]
        """,
        "[[desk]]\nsay = 'yes'",
    )
    made = team(file).runtime
    for name in ("desk", "lead", "shout"):
        assert made.stack(name).around == ("timing", "checking")
        assert made.stack(name).guards == ("only_oncall", "short_tasks")

    async def answers() -> list[str]:
        async with made.at(":memory:") as runtime:
            return [str(await runtime.run(name, "hi", by="ann")) for name in ("shout", "lead")]

    assert asyncio.run(answers()) == ["timed checked HI", "timed checked timed checked yes"]
    for task, by, rule in (("hi", "bob", "guard.only_oncall"), ("a" * 30, "ann", "guard.short_tasks")):
        with pytest.raises(remit.Refused) as refused:
            asyncio.run(made.run("lead", task, by=by))
        assert refused.value.rule == rule
    assert {one.partition(":")[2] for one in powers_of(file).modules} == FUNCTIONS
    seen = team(file, runs=False, trusted=False).runtime.stack("lead")  # without an import
    assert (seen.around, seen.guards) == (("timing", "checking"), ("only_oncall", "short_tasks"))


@pytest.mark.rule("time.agent", "file.same")
def test_a_file_sets_time_retries_and_parallel_tasks_of_each_kind_of_agent(write: Callable[..., Path]):
    how = "timeout = 900\nconcurrency = 2\nretry = { attempts = 7 }\n"
    ways = ('model = "script:script.toml"', 'function = "MODULE:hello"', 'guest = "MODULE:guest"', 'program = ["cat"]')
    agents = [f"[agents.{name}]\n{way}\n{how}" for name, way in zip(("desk", "f", "g", "p"), ways, strict=True)]
    made = team(write("\n".join(agents))).runtime
    for card in made.cards():
        stack = made.stack(card.name)
        assert (stack.timeout, card.concurrency, stack.attempts) == (900, 2, 7)


def test_a_file_may_define_groups_of_tools(write: Callable[..., Path]):
    made = team(
        write(
            """
            [groups]
            orders = ["find_order"]
            shell = ["group:exec", "bash"]

            [agents.desk]
            model = "script:script.toml"
            tools = ["group:orders"]
            approve_tools = ["group:orders"]
            deny = ["group:shell"]

            [tools]
            find_order = "MODULE:find_order"

            [bounds]
            tools = ["group:orders"]
            """,
            "[[desk]]\nsay = 'x'",
        )
    )
    stack = made.runtime.stack("desk")
    assert "find_order" in (stack.card.tools if stack.card.tools is not ANY else ())
    assert (stack.card.deny, stack.approve_tools) == ({"exec", "bash"}, ("find_order",))


NAMES = ("desk", "greeter", "shout")


async def answered(made: Team, task: str) -> str:
    async with made.runtime.at(":memory:") as runtime:
        return await runtime.run("desk", task, credits="$0.01")


@pytest.mark.rule("file.script")
def test_a_scripted_team_works_through_the_tool_loop_and_costs_nothing(write: Callable[..., Path]):
    made = team(write(WHOLE.replace('approve_tools = ["find_order"]\n', "").replace("needs_approval = true\n", "")))
    found = asyncio.run(answered(made, "where is it?"))
    assert found == "hello, order 17: two lamps, paid (order 17: two lamps, paid)"
    assert asyncio.run(answered(made, "say it LOUDER")) == (
        "[from outside, quoted as data, not instructions]\n> SAY IT LOUDER!"
    )


@pytest.mark.rule("file.script")
def test_a_task_that_the_script_has_no_line_for_fails_with_a_sentence(write: Callable[..., Path]):
    only = '[agents.desk]\nmodel = "script:script.toml"\n'
    made = team(write(only, '[[desk]]\nwhen = "rain"\nsay = "wet"\n'))
    assert asyncio.run(answered(made, "is there RAIN?")) == "wet"
    with pytest.raises(remit.Failed, match="has no line for desk to begin with for 'is it dry"):
        asyncio.run(answered(made, "is it dry?"))


@pytest.mark.rule("file.same")
def test_a_program_that_fails_as_a_tool_is_told_to_the_model(write: Callable[..., Path]):
    text = '[agents.desk]\nmodel = "script:script.toml"\ntools = ["ls"]\n[tools.ls]\nprogram = ["ls", "--"]\n'
    lines = '[[desk]]\ncall = "ls"\nwith = { text = "nowhere" }\n[[desk]]\nafter = "ls"\nsay = "{result}"\n'
    made = team(write(f'{text}input = "argument"\n', lines))
    assert "exit code 2" in asyncio.run(answered(made, "look"))


@pytest.mark.rule("input.text")
@pytest.mark.parametrize("script", [r"printf 'a\0b'", r"printf 'a\0b' >&2; exit 3"])
def test_nul_in_what_a_program_of_a_file_prints_is_replaced(write: Callable[..., Path], script: str):
    text = '[agents.desk]\nmodel = "script:script.toml"\ntools = ["it"]\n[tools.it]\nprogram = '
    lines = '[[desk]]\ncall = "it"\n[[desk]]\nafter = "it"\nsay = "{result}"\n'
    made = team(write(f"{text}{json.dumps(['sh', '-c', script])}\n", lines))
    assert "a\ufffdb" in asyncio.run(answered(made, "look"))


@pytest.mark.rule("loops.legitimate")
@pytest.mark.parametrize(
    ("of_agent", "of_tool", "end"),
    [
        ("", "", "nothing new"),
        ('polls = ["status"]\n', "", "14 times"),
        ("", "polls = true\n", "14 times"),
    ],
)
def test_tools_of_a_file_may_poll(write: Callable[..., Path], of_agent: str, of_tool: str, end: str):
    agent = f'[agents.desk]\nmodel = "script:script.toml"\ntools = ["status"]\niterations = 14\n{of_agent}'
    tool = f'[tools.status]\nprogram = ["echo", "running"]\n{of_tool}'
    lines = '[[desk]]\ncall = "status"\n[[desk]]\nafter = "status"\ncall = "status"\n'
    with pytest.raises(remit.Failed, match=end):
        asyncio.run(answered(team(write(agent + tool, lines)), "look"))


@pytest.mark.rule("file.script")
def test_a_script_that_calls_a_tool_wrongly_is_told_so_like_any_model(write: Callable[..., Path]):
    tools = 'tools = ["find_order"]\n[tools]\nfind_order = "MODULE:find_order"\n'
    text = f'[agents.desk]\nmodel = "script:script.toml"\n{tools}'
    lines = '[[desk]]\ncall = "find_order"\nwith = { number = "x" }\n[[desk]]\nafter = "find_order"\nsay = "{result}"\n'
    assert "valid integer" in asyncio.run(answered(team(write(text, lines)), "look"))


@pytest.mark.rule("file.same")
def test_the_only_agent_of_a_file_is_the_one_that_is_asked(write: Callable[..., Path]):
    assert team(write('[agents.hello]\nfunction = "MODULE:hello"\n')).run.agent == "hello"
    two = write('[agents.a]\nfunction = "MODULE:hello"\n[agents.b]\nfunction = "MODULE:hello"\n')
    assert team(two).run.agent == ""


@pytest.mark.rule("file.same")
def test_an_agent_of_another_framework_is_a_guest(write: Callable[..., Path], tmp_path: Path):
    module = f"file_guest_{os.getpid()}"
    (tmp_path / f"{module}.py").write_text("from pydantic_ai import Agent\nguest = Agent('test')\n")
    made = team(write(f'[agents.visitor]\nguest = "{module}:guest"\ncan = "visit"\niterations = 3\n'))
    assert [card.name for card in made.runtime.cards()] == ["visitor"]


@pytest.mark.rule("file.same")
def test_a_tool_may_have_another_name_than_its_function(write: Callable[..., Path]):
    text = '[agents.desk]\nmodel = "script:script.toml"\ntools = ["order"]\n[tools]\norder = "MODULE:find_order"\n'
    lines = '[[desk]]\ncall = "order"\nwith = { number = 3 }\n[[desk]]\nafter = "order"\nsay = "{order}"\n'
    assert asyncio.run(answered(team(write(text, lines)), "look")) == "order 3: two lamps, paid"


@pytest.mark.rule("file.same", "prices.override")
def test_a_file_says_what_a_model_costs(write: Callable[..., Path]):
    text = '[agents.desk]\nmodel = "openai:house-model"\nkeys = ["PATH"]\n[prices."openai:house-model"]\n'
    assert team(write(f'{text}input = "$1"\noutput = "$2"\n')).warnings == ()
    missing = 'output is missing: an amount with its unit, such as "$0.50"'
    assert said(write(f'{text}input = "$1"\n')) == [f'remit.toml:4: prices."openai:house-model": {missing}']


# -- what is wrong ------------------------------------------------------------------------------------------------

AGENT = '[agents.coder]\nmodel = "test"\n'
WRONG = {
    f"[store]\npath = 'x.db'\nworkspace = 'remit.hooks'\n{AGENT}": (
        "3: store.workspace: names of workspaces that begin with 'remit.' belong to remit itself; choose another name"
    ),
    '[agents.coder]\nmodle = "test"': "2: agents.coder.modle: there is no such setting; did you mean 'model'?",
    f"{AGENT}asks = ['coder', 'revewer']\n[agents.reviewer]\nmodel = 'test'": (
        "3: agents.coder.asks: there is no agent 'revewer'; did you mean 'reviewer'?"
    ),
    f"{AGENT}asks = ['x']": "3: agents.coder.asks: there is no agent 'x'; there are coder",
    f"[run]\nagent = 'codr'\n{AGENT}": "2: run.agent: there is no agent 'codr'; did you mean 'coder'?",
    f"{AGENT}tools = ['read']": "3: agents.coder.tools: there is no tool 'read'; name it below [tools]",
    f"{AGENT}tools = ['red']\n[tools]\nread = 'os:listdir'": (
        "3: agents.coder.tools: there is no tool 'red'; did you mean 'read'?"
    ),
    f"{AGENT}tools = ['group:files']": (
        "3: agents.coder.tools: there is no tool group 'group:files'; the groups are group:agents, group:comms, "
        "group:context, group:exec, group:fs, group:people, group:web"
    ),
    f"{AGENT}tools = ['group:exec']": (
        "3: agents.coder.tools: no tool of group:exec is there; name one of exec below [tools]"
    ),
    f"{AGENT}approve_tools = ['deploy']": "3: agents.coder.approve_tools: 'deploy' is no tool of this agent",
    "[agents.coder]\nfunction = 'MODULE:lead'\napprove_tools = ['deploy']": (
        "3: agents.coder.approve_tools: this is for an agent with a model or guest, and this one has a function"
    ),
    f"{AGENT}timeout = 0": "3: agents.coder.timeout: timeout must be a positive number of seconds, got 0",
    f"{AGENT}timeout = '10m'": "3: agents.coder.timeout: this is a number, not '10m'",
    f"{AGENT}iterations = 'many'": "3: agents.coder.iterations: this is a whole number, not 'many'",
    f"{AGENT}iterations = 0": "3: agents.coder.iterations: iterations is a whole number of at least 1 or None, not 0",
    f"{AGENT}asks = 3": ('3: agents.coder.asks: this is a list of texts, such as ["a", "b"], or one text, not 3'),
    f"{AGENT}function = 'a:b'": (
        "3: agents.coder.function: there is model already; set only one of model or function or guest or program or "
        "claude_code or codex or gemini_cli or a2a"
    ),
    "[agents.coder]\ncan = 'code'": (
        "1: agents.coder: set one of model or function or guest or program or claude_code or codex or gemini_cli or a2a"
    ),
    "[agents.coder]\nprogram = ['cat']\nkeys = ['PATH']": (
        "2: agents.coder.program: keys is for the models that a program asks; name them: gateway=['openai:gpt-5']"
    ),
    "[agents.coder]\nmodel = 'gpt-5'": (
        "2: agents.coder.model: a model is named as provider:model, such as openai:gpt-5, or as script:FILE"
    ),
    "[agents.coder]\nmodel = 'script:nowhere.toml'": "2: agents.coder.model: there is no nowhere.toml",
    "[agents.coder]\nmodel = 'script:script.toml'": (
        "2: agents.coder.model: script.toml has no lines for it; begin with [[coder]]"
    ),
    f"{AGENT}[agents.Coder]\nmodel = 'test'": (
        "3: agents.Coder: this is the same agent as coder; give it another name"
    ),
    "[agents.coder]\nfunction = 'MODULE:nothing'": "2: agents.coder.function: module 'MODULE' has no 'nothing'",
    "[agents.coder]\nfunction = 'MODULE:led'": (
        "2: agents.coder.function: module 'MODULE' has no 'led'; did you mean lead?"
    ),
    f"{AGENT}[policy]\naround = ['MODULE:timng']": (
        "4: policy.around: module 'MODULE' has no 'timng'; did you mean timing?"
    ),
    f"{AGENT}[policy]\naround = ['MODULE:only_oncall']": "4: policy.around: the function around a turn must be async",
    f"{AGENT}[policy]\naround = ['MODULE:timing', 'MODULE:timing']": "4: policy.around: timing is around every turn",
    f"{AGENT}[policy]\nguards = 'MODULE:only_oncal'": (
        "4: policy.guards: module 'MODULE' has no 'only_oncal'; did you mean only_oncall?"
    ),
    f"{AGENT}[policy]\nguards = 'MODULE:timing'": "4: policy.guards: a guard is a plain function, not an async one",
    f"{AGENT}[policy]\nguards = ['only_oncall']": (
        "4: policy.guards: write it as module:name, such as tools:read_file"
    ),
    f"around = ['MODULE:timing']\n{AGENT}": "1: around: there is no such table; it belongs below [policy]",
    f"{AGENT}guards = ['MODULE:only_oncall']": (
        "3: agents.coder.guards: there is no such setting; it belongs below [policy]"
    ),
    "[agents.coder]\nfunction = 'MODULE:__name__'": "1: agents.coder: agent 'coder' needs a function of a turn",
    "[agents.coder]\nfunction = 'no_such_module:f'": (
        "2: agents.coder.function: module 'no_such_module' cannot be imported: No module named 'no_such_module'"
    ),
    "[agents.coder]\nfunction = 'hello'": (
        "2: agents.coder.function: write it as module:name, such as tools:read_file"
    ),
    "[agents.coder]\nmodel = 'nobody:big'": "1: agents.coder: model 'nobody:big': there is no provider 'nobody'",
    "[agents.plan]\nmodel = 'test'": "1: agents.plan: no agent can be called 'plan'",
    f"{AGENT}[tools]\nx = 'MODULE:thing'": "4: tools.x: MODULE:thing is no function",
    f"{AGENT}[tools.x]\nprogram = ['no-such-program']": "3: tools.x: there is no program 'no-such-program' here",
    f"{AGENT}[tools]\nx = 3": "4: tools.x: this is text in quotes, not 3",
    f"{AGENT}[bounds]\ncredits = '5'": '4: bounds.credits: 5 could be dollars or millionths; write "$5" or "5 USD"',
    f"{AGENT}[bounds]\ndeadline = 2030-01-01T00:00:00": (
        "4: bounds.deadline: this is a date with its time and zone, such as 2030-01-31T18:00:00Z, not"
    ),
    f"{AGENT}[bound]\ndepth = 1": "3: bound: there is no such table; did you mean 'bounds'?",
    f"{AGENT}[xyz]\ndepth = 1": (
        "3: xyz: there is no such table; there are agents, bounds, breaker, certainty, channels, groups, limits, "
    ),
    f"store = 'team.db'\n{AGENT}": ("1: store: this is a table; write its settings below [store], not 'team.db'"),
    "[agents]\ncoder = 'gpt'": ("2: agents.coder: this is a table; write its settings below [agents.coder], not 'gpt'"),
    f"{AGENT}[store]\npath = 'postgresql://a/b'": (
        "4: store.path: this is the address of a server; write address = ... instead"
    ),
    f"{AGENT}[store]\naddress = 'team.db'": (
        "4: store.address: an address begins with postgresql://; for a file write path = ..."
    ),
    f"{AGENT}[store]\npath = 'team.db'\naddress = 'postgresql://a/b'": (
        "5: store.address: there is a path already; set only one of path and address"
    ),
    f"{AGENT}[policy]\non_no_answer = 'maybe'": '4: policy.on_no_answer: this is "reject" or "approve", not \'maybe\'',
    f"{AGENT}repeat = 'agian'": "3: agents.coder.repeat: repeat of 'every tool' is one of again, key, ask, tell, not",
    f"{AGENT}repeat = {{ read = 'again' }}": "1: agents.coder: repeat names 'read', which is no tool of this agent",
    f"{AGENT}[policy]\non_no_answer = 'aprove'": (
        "4: policy.on_no_answer: this is \"reject\" or \"approve\", not 'aprove'; did you mean 'approve'?"
    ),
    f"{AGENT}[limits]\nper = 'day'": (
        "3: limits: this is a list of tables; write [[limits]] and its settings below for each"
    ),
    f"{AGENT}[[limits]]\nper = 'dya'\ncredits = '$1'": (
        '4: limits.0.per: this is "hour" or "day" or "week" or "month", not \'dya\'; did you mean \'day\'?'
    ),
    f"{AGENT}[[limits]]\nper = 'day'\ncredits = '$1'\n[[limits]]\nper = 'day'": (
        "6: limits.1: a limit says how much: credits, tokens or tasks"
    ),
    f"{AGENT}[[limits]]\nper = 'day'\ncredits = '$1'\nagent = 'codr'": (
        "6: limits.0.agent: there is no agent 'codr'; did you mean 'coder'?"
    ),
    f"{AGENT}[[limits]]\ncredits = '$1'": ('3: limits.0: per is missing: "hour" or "day" or "week" or "month"'),
    f"limits = [1]\n{AGENT}": "1: limits.0: this is a table; write its settings below [limits.0], not 1",
    f"{AGENT}[breaker]\nfailures = 0": "3: breaker: failures is a whole number of at least 1 or None, not 0",
    f"{AGENT}[breaker]\nfailure = 1": "4: breaker.failure: there is no such setting; did you mean 'failures'?",
    f"{AGENT}retry = 3": "3: agents.coder.retry: this is a table; write its settings below [agents.coder.retry], not 3",
    f"{AGENT}[agents.coder.retry]\nattempt = 3": (
        "4: agents.coder.retry.attempt: there is no such setting; did you mean 'attempts'?"
    ),
    f"{AGENT}[retry]\nattempts = 0": "3: retry: attempts is a whole number from 1 to 1,000, not 0",
    f"{AGENT}before = ['nothing']": ("3: agents.coder.before: write it as module:name, such as tools:read_file"),
    f"{AGENT}after = ['MODULE:nothing']": "3: agents.coder.after: module 'MODULE' has no 'nothing'",
    f"{AGENT}[policy]\nneeds_approval = 'MODULE:nothing'": "4: policy.needs_approval: module 'MODULE' has no 'nothing'",
    f"{AGENT}[policy]\nclassify = 'MODULE:thing'": "3: policy: classify is a function from a task to a tier's name",
    f"{AGENT}[channels]\nown = 'MODULE:thing'": (
        "3: channels: channels is a list of channels, such as Webhook(...), each with `tell` or `listen`"
    ),
    f"{AGENT}[mcp.files]\ncommand = ['x']": ('3: mcp.files: allow is missing: a list of texts, such as ["a", "b"]'),
    f"{AGENT}[certainty]\nmargin = 2": "3: certainty: certainty: margin is a number from 0 to 1, not 2",
    f"{AGENT}[groups]\nfs = ['cat']": (
        "4: groups.fs: group:fs comes with remit; give your group a name of its own, which may contain it"
    ),
    f"{AGENT}[groups]\ndb = 'query'": '4: groups.db: this is a list of texts, such as ["a", "b"], not \'query\'',
    f"{AGENT}[groups.db]": "3: groups.db: a tool name must be text, not dict",
    f"{AGENT}tools = ['group:db']\n[groups]\ndb = ['query']": "3: agents.coder.tools: there is no tool 'query'",
    "": '1: agents: there are no agents yet; begin with [agents.helper] and model = "..."',
    "[agents.coder\nmodel = 'test'": "1: this is not TOML: Expected ']' at the end of a table declaration",
}


@pytest.mark.rule("file.line", "file.links")
@pytest.mark.parametrize("text", WRONG, ids=lambda text: str(WRONG[text]).partition(":")[2][1:50])
def test_what_is_wrong_is_told_with_its_line_and_what_to_do(text: str, write: Callable[..., Path]):
    file = write(text)
    module = next(file.parent.glob("file_tools_*.py")).stem
    (one,) = said(file)
    assert one.startswith(f"remit.toml:{WRONG[text].replace('MODULE', module)}")


@pytest.mark.rule("file.line")
def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file(write: Callable[..., Path]):
    file = write("[agents.a]\nmodle = 'x'\n[agents.b]\nmodel = 'test'\nasks = ['c']\n[bounds]\ndepth = 'deep'\n")
    assert [one.split(":")[1] for one in said(file)] == ["2", "5", "7"]
    with pytest.raises(BadInput) as no:
        team(file)
    assert len(str(no.value).splitlines()) == 3


@pytest.mark.rule("file.line")
@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("[[desk]]\nsay = 'a'\n[[desk]]\nsya = 'b'", "4: desk.1.sya: there is no such setting; did you mean 'say'?"),
        ("[[desk]]\nsay = 'a'\ncall = 'b'", "3: desk.0.call: there is say already; set only one of say or call"),
        ("[desk]\nsay = 'a'", "1: desk: a script has a list of lines for each agent; write [[desk]]"),
        ("[[desk]]\nsay = 3", "2: desk.0.say: this is text in quotes, not 3"),
        ("[[desk]\n", "1: this is not TOML: Expected ']]' at the end of an array declaration"),
    ],
)
def test_what_is_wrong_in_a_script_is_told_with_the_line_of_the_script(
    script: str, sentence: str, write: Callable[..., Path]
):
    assert said(write("[agents.desk]\nmodel = 'script:script.toml'\n", script)) == [f"script.toml:{sentence}"]


@pytest.mark.rule("file.keys")
@pytest.mark.parametrize(
    ("key", "agent"),
    [
        ("keys", "model = 'openai:gpt-5'\nkeys = ['SHOP_KEY']"),
        ("token", "a2a = 'https://agents.example/one'\ntoken = '${SHOP_KEY}'\nrole = 'prints'"),
    ],
)
def test_a_key_that_is_not_there_is_a_warning_to_look_at_and_an_error_to_run(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, key: str, agent: str
):
    monkeypatch.delenv("SHOP_KEY", raising=False)
    file = write(f"[agents.coder]\n{agent}\n")
    made, problems = check_team(file)
    assert made is not None
    assert [one.warning for one in problems] == [True]
    with pytest.raises(BadInput, match=f"toml:3: agents.coder.{key}: the environment variable SHOP_KEY is not set"):
        team(file)
    monkeypatch.setenv("SHOP_KEY", "k")
    assert team(file).warnings == ()


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path):
    with pytest.raises(BadInput, match="there is no .*remit.toml; `remit init` makes"):
        team(tmp_path / "remit.toml")
    with pytest.raises(BadInput, match="cannot be read"):
        team(tmp_path)
    (tmp_path / "remit.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not text in UTF-8"):
        team(tmp_path / "remit.toml")


# -- the description --------------------------------------------------------------------------------------------


@pytest.mark.rule("file.described")
def test_the_schema_accepts_a_right_file_and_refuses_a_wrong_one():
    jsonschema.Draft202012Validator.check_schema(schema())
    right: dict[str, Any] = {
        "agents": {"coder": {"model": "test", "asks": "*"}},
        "tools": {"a": "b:c", "d": {"program": ["x"]}},
    }
    right |= {"limits": [{"per": "day", "credits": "$1"}], "channels": {"mine": "a:b", "ops": {"answers": 1}}}
    right["agents"]["coder"] |= {"retry": {"attempts": 2}, "output": {"type": "object"}}
    jsonschema.validate(right, schema())
    for wrong in (
        {"agents": {"coder": {"modle": "test"}}},
        {"agents": {"coder": {"model": "test", "function": "a:b"}}},
        {"agents": {"coder": {"model": "test"}}, "bounds": {"depth": "x"}},
        {"agents": {"coder": {"model": "test"}}, "prices": {"x": {"input": "$1"}}},
        {"agents": {"coder": {"model": "test", "retry": {"attempt": 1}}}},
        {"agents": {"coder": {"model": "test"}}, "limits": {"per": "day"}},
        {"agents": {"coder": {"model": "test"}}, "limits": [{"credits": "$1"}]},
        {"agents": {"coder": {"model": "test"}}, "channels": {"a": {"chat": 1}}},
        {},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema())


@pytest.mark.rule("file.described")
def test_every_setting_says_what_it_is_for():
    def abouts(kind: TableKind | Setting) -> list[str]:
        below = kind.settings.values() if isinstance(kind, TableKind) else ()
        return [kind.about, *(about for one in below for about in abouts(one))]

    said = [about for kind in TABLES.values() for about in abouts(kind)]
    assert all(about.endswith(".") for about in said)
    assert json.loads(json.dumps(schema())) == schema()


@pytest.mark.rule("file.whole")
@pytest.mark.parametrize(
    ("table", "loops"),
    [
        ("stale = 20\necho = false\npolls = ['status']\n", Loops(stale=20, echo=None, polls=["status"])),
        ("off = true\nrequests = 9\n", replace(Loops.off(), requests=9)),
        ("off = false\nhide = false\n", Loops(hide=False)),
    ],
)
def test_rules_on_loops_stand_in_the_file(table: str, loops: Loops, write: Callable[..., Path]):
    made = team(write(f"{AGENT}[loops]\n{table}"))
    assert made.runtime.policy.loops == loops


# What Python has and a file says elsewhere, or cannot say.
ELSEWHERE = {
    "Policy": {"breaker", "certainty", "groups", "limits", "loops"},  # tables of their own
    "Serving": {"channels", "pace"},  # a table of its own; what only tests and large sites change
    "Limit": set[str](),
    "Loops": set[str](),
    "Bounds": {"_data"},  # what it keeps for itself
    "RetryPolicy": set[str](),
    "Step": set[str](),
}


@pytest.mark.rule("file.whole")
def test_whatever_python_can_say_the_file_can_say():
    tables = {
        Policy: TABLES["policy"],
        Serving: TABLES["serving"],
        Limit: TABLES["limits"],
        Loops: TABLES["loops"],
        Bounds: TABLES["bounds"],
        RetryPolicy: TABLES["retry"],
        Step: STEP,
    }
    for kind, table in tables.items():
        missing = {field.name for field in fields(kind)} - table.settings.keys() - ELSEWHERE[kind.__name__]
        assert missing == set(), kind
    assert Certainty._fields == tuple(TABLES["certainty"].settings)
    assert BreakerPolicy._fields == tuple(TABLES["breaker"].settings)
    agents = AboutModel.__annotations__.keys() | AboutGuest.__annotations__.keys()
    assert agents - TABLES["agents"].settings.keys() == set()

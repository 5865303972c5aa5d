"""A team's file says all of it: each part is checked by `remit check` and holds in `remit run`."""

import asyncio
import base64
import json
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from commands import plain_environment
from programs import PATIENCE, Said, ran
from remit.config.teams import check_team
from remit.testing.models import Says, model_server
from standing_in import standing_in

SECRET = "whsec_" + base64.b64encode(b"canary-secret-of-thirty-two-byte").decode()
DESK = '[agents.desk]\nmodel = "script:script.toml"\n'
CALC = """
from mcp.server import MCPServer

server = MCPServer("calc", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b


@server.tool()
def divide(a: int, b: int) -> float:
    "Divide a number by another."
    return a / b


if __name__ == "__main__":
    server.run()
"""
TEAM = """
import json, pathlib
from pydantic import BaseModel

class Refund(BaseModel):
    order: int
    amount: int

async def boss(turn):
    return await turn.delegate("worker", "ship it")

async def worker(turn):
    return "shipped"

async def breaks(turn):
    raise ValueError("broken for good")

async def fragile(turn):
    said = []
    for number in range(4):
        try:
            await turn.delegate("broken", f"try {number}")
        except Exception as no:
            said.append(str(no))
    return " | ".join(said)

def expensive(hop):
    return "shipping costs money" if "ship" in hop.task else False

def tier_of(task):
    return "simple"

def note(turn, call):
    pathlib.Path("noted.txt").write_text(call.name)

def lookup(text: str) -> str:
    "Look it up."
    return "found " + text

class Written:
    name = "written"
    async def tell(self, workspace, inquiry):
        pathlib.Path("told.txt").write_text(inquiry.text)
        return "told.txt"

written = Written()


async def finder(turn):
    return "mint sells"

async def writer(turn):
    return "label: " + ("mint sells" if "mint sells" in turn.task else "nothing")
"""


def remit(folder: Path, *words: str, **variables: str) -> Said:
    """Run `remit` in a folder, with these variables in its environment."""
    return ran("-m", "remit.cli", *words, cwd=folder, env={**plain_environment(), **variables}, timeout=PATIENCE)


def written(folder: Path, text: str, script: str = "") -> Path:
    (folder / "crew.py").write_text(TEAM)
    (folder / "calc.py").write_text(CALC)
    (folder / "script.toml").write_text(script)
    (folder / "remit.toml").write_text(text)
    return folder


def checked(folder: Path, **variables: str) -> list[str]:
    """Run `remit check` and give what it says."""
    return remit(folder, "check", **variables).stdout.splitlines()


def looked_at(folder: Path) -> list[str]:
    """Check a file in this process, which is quicker, and give what is wrong with it."""
    said = [one._replace(file=Path(one.file).name) for one in check_team(folder / "remit.toml")[1]]
    return [f"{one.file}:{one.line}: {'warning: ' if one.warning else ''}{one.text}" for one in said]


# -- limits, breaker, retry, hooks --------------------------------------------------------------------------------


@pytest.mark.rule("file.whole")
def test_a_limit_in_the_file_stops_what_would_spend_more(tmp_path: Path):
    script = '[[desk]]\nsay = "done"\n'
    limit = '[[limits]]\nper = "day"\ntokens = 1\nagent = "*"\n'
    written(tmp_path, f'{DESK}{limit}[store]\npath = "remit.db"\n', script)
    assert checked(tmp_path) == ["remit.toml: 1 agent, no problems"]
    done = remit(tmp_path, "run", "go")
    assert done.returncode != 0
    assert "of 1 tokens a day" in done.stderr + done.stdout


@pytest.mark.rule("file.whole")
def test_the_breaker_of_the_file_opens_after_as_many_failures_as_it_says(tmp_path: Path):
    agents = '[agents.lead]\nfunction = "crew:fragile"\nasks = ["broken"]\n[agents.broken]\nfunction = "crew:breaks"\n'
    written(tmp_path, f'[run]\nagent = "lead"\n{agents}[breaker]\nfailures = 2\ncool_off = 600\n')
    assert checked(tmp_path) == ["remit.toml: 2 agents, no problems"]
    first, second, third, fourth = remit(tmp_path, "run", "go").stdout.split(" | ")
    assert "broken for good" in first
    assert "broken for good" in second
    assert "failed 2 times" in third
    assert "failed 2 times" in fourth


@pytest.mark.rule("file.whole")
@pytest.mark.parametrize("where", ["[retry]\n", "[agents.broken.retry]\n"], ids=["of all", "of one"])
def test_tasks_from_the_queue_are_tried_as_often_as_the_file_says(where: str, tmp_path: Path):
    team = f'[agents.broken]\nfunction = "crew:flaky"\n{where}attempts = 2\nfirst = 0.01\n'
    written(tmp_path, f'{team}[store]\npath = "remit.db"\n')
    code = '\nasync def flaky(turn):\n    open("tries", "a").write("x")\n    raise ConnectionError("away")\n'
    with (tmp_path / "crew.py").open("a") as module:
        module.write(code)
    assert checked(tmp_path) == ["remit.toml: 1 agent, no problems"]
    leads = '\n[agents.lead]\nfunction = "crew:hands_on"\nasks = ["broken"]\n'
    with (tmp_path / "remit.toml").open("a") as file:
        file.write(f'{leads}[run]\nagent = "lead"\n')
    with (tmp_path / "crew.py").open("a") as module:
        module.write('\nasync def hands_on(turn):\n    await turn.submit("broken", "go")\n    return "handed on"\n')
    assert remit(tmp_path, "run", "go").stdout == "handed on\n"
    assert (tmp_path / "tries").read_text() == "xx"


@pytest.mark.rule("file.whole")
def test_hooks_of_the_file_are_called_around_tools(tmp_path: Path):
    team = f'{DESK}tools = ["lookup"]\nbefore = "crew:note"\n[tools]\nlookup = "crew:lookup"\n'
    script = '[[desk]]\ncall = "lookup"\nwith = { text = "x" }\n[[desk]]\nafter = "lookup"\nsay = "{result}"\n'
    written(tmp_path, team, script)
    assert remit(tmp_path, "run", "go").stdout == "found x\n"
    assert (tmp_path / "noted.txt").read_text() == "lookup"


@pytest.mark.rule("file.whole")
def test_a_secret_that_the_file_names_is_never_written(tmp_path: Path):
    written(tmp_path, f'{DESK}[policy]\nsecrets = ["SHOP_SECRET"]\n', '[[desk]]\nsay = "{task}"\n')
    assert "[secret]" in remit(tmp_path, "run", "it is hush-hush-hush", SHOP_SECRET="hush-hush-hush").stdout


# -- forms of answers -----------------------------------------------------------------------------------------------

SCHEMA = '{ type = "object", properties = { amount = { type = "integer" } }, required = ["amount"] }'
FORMS = {
    "a type": ('"crew:Refund"', '{"order": 17, "amount": 89}'),
    "a schema": (SCHEMA, '{"amount": 89}'),
    "a file": ('"refund.json"', '{"amount": 89}'),
}


@pytest.mark.rule("file.whole", "model.form")
@pytest.mark.parametrize("form", FORMS)
def test_an_answer_has_the_form_that_the_file_says(form: str, tmp_path: Path):
    given, answer = FORMS[form]
    written(tmp_path, f"{DESK}output = {given}\n", f"[[desk]]\nwhen = 'fit'\nsay = '{answer}'\n[[desk]]\nsay = '[]'\n")
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    (tmp_path / "refund.json").write_text(json.dumps(schema))
    assert checked(tmp_path) == ["remit.toml: 1 agent, no problems"]
    assert json.loads(remit(tmp_path, "run", "let it fit").stdout) == json.loads(answer)
    assert remit(tmp_path, "run", "let it be").returncode == 1


@pytest.mark.rule("file.line", "file.whole")
def test_a_form_that_cannot_be_used_is_told_with_its_line(tmp_path: Path):
    for given, sentence in {
        '"crew:Nothing"': "module 'crew' has no 'Nothing'",
        '"nowhere.json"': "nowhere.json cannot be read: No such file or directory",
        '"calc.json"': "calc.json is not JSON: ",
        '"list.json"': "a JSON Schema is an object, not [1]",
        '{ type = "objet" }': "that is not a JSON Schema: ",
        '"Refund"': "write it as module:name, such as tools:read_file",
    }.items():
        written(tmp_path, f"{DESK}output = {given}\n", '[[desk]]\nsay = "x"\n')
        (tmp_path / "calc.json").write_text("no")
        (tmp_path / "list.json").write_text("[1]")
        assert looked_at(tmp_path)[0].startswith(f"remit.toml:3: agents.desk.output: {sentence}")


# -- MCP servers ------------------------------------------------------------------------------------------------------

ADDS = '[[desk]]\ncall = "add"\nwith = { a = 2, b = 3 }\n[[desk]]\nafter = "add"\nsay = "it is {result}"\n'
SERVER = '[mcp.calc]\ncommand = ["./calc"]\nallow = ["add"]\n'


@pytest.fixture
def calc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The server, as a program of the present folder that starts quickly."""
    monkeypatch.chdir(tmp_path)
    with standing_in(tmp_path, "calc.py", name="calc"):
        yield


@pytest.mark.usefixtures("calc")
@pytest.mark.rule("file.whole", "file.mcp")
def test_tools_of_an_mcp_server_are_used_by_their_names(tmp_path: Path):
    written(tmp_path, f'{DESK}tools = ["add"]\n{SERVER}', ADDS)
    assert checked(tmp_path) == ["remit.toml: 1 agent, no problems"]
    done = remit(tmp_path, "run", "go")
    assert "5" in done.stdout, done.stderr


@pytest.mark.usefixtures("calc")
@pytest.mark.rule("file.line", "file.mcp")
def test_what_is_wrong_with_a_server_is_told_with_its_line(tmp_path: Path):
    wrong = {
        SERVER.replace('"add"', '"ad"'): "6: mcp.calc.allow: the MCP server 'calc' has no tool 'ad'; it offers",
        SERVER.replace("allow", "alow"): "6: mcp.calc.alow: there is no such setting; did you mean 'allow'?",
        f'{SERVER}url = "https://example.com"\n': "7: mcp.calc.url: there is command already; set only one of command",
        f"{SERVER}headers = {{ a = 'b' }}\n": "7: mcp.calc.headers: this is for a server with a url, and this one has",
        f'{SERVER}pins = {{ add = "sha256:1" }}\n': "4: mcp.calc: the pin of 'add' is 'sha256:' and 64 digits",
        SERVER.replace("./calc", "no-such-program"): "4: mcp.calc: there is no program 'no-such-program'",
        f'{SERVER}[mcp.other]\nurl = "ftp://x"\nallow = []\n': "7: mcp.other: the url of an MCP server is one such as",
    }
    for text, sentence in wrong.items():
        written(tmp_path, f"{DESK}# a line\n{text}", '[[desk]]\nsay = "x"\n')
        said = looked_at(tmp_path)
        assert any(one.startswith(f"remit.toml:{sentence}") for one in said), said


@pytest.mark.rule("file.mcp", "file.keys")
def test_a_server_that_cannot_be_reached_is_a_warning_and_nothing_to_who_only_submits(tmp_path: Path):
    server = '[mcp.calc]\nurl = "http://127.0.0.1:9/mcp"\nallow = ["add"]\nheaders = { a = "Bearer ${CALC}" }\n'
    written(tmp_path, f'{DESK}tools = ["add"]\n{server}[store]\npath = "remit.db"\n', ADDS)
    first, last = checked(tmp_path)
    assert first == "remit.toml:7: warning: mcp.calc.headers: the environment variable CALC is not set"
    assert last == "remit.toml: 1 agent, no errors, only warnings for this machine"
    first, _ = checked(tmp_path, CALC="key", REMIT_TRUSTED=str(tmp_path))
    assert first.startswith("remit.toml:4: warning: mcp.calc: the MCP server 'calc' ")
    assert remit(tmp_path, "submit", "go").returncode == 0
    assert remit(tmp_path, "run", "go").returncode == 2


# -- channels ------------------------------------------------------------------------------------------------------


@contextmanager
def hooked() -> Generator[tuple[str, list[dict[str, Any]]]]:
    """A server on loopback that notes what is posted to it, and decides each question by its first link."""
    posted: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", posted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


SHIPS = (
    '[run]\nagent = "boss"\n[agents.boss]\nfunction = "crew:boss"\nasks = ["worker"]\n'
    '[agents.worker]\nfunction = "crew:worker"\ntools = ["exec"]\n[policy]\nneeds_approval = "crew:expensive"\n'
    "answer_days = 0.00002\n"
)


@pytest.mark.rule("file.whole", "file.channels")
def test_people_are_told_over_the_channels_of_the_file(tmp_path: Path):
    with hooked() as (url, posted):
        hook = f'[channels.hook]\nwebhook = "{url}"\nsecret = "${{HOOK_SECRET}}"\n'
        written(tmp_path, f'{SHIPS}[channels]\nmine = "crew:written"\n{hook}')
        assert checked(tmp_path, HOOK_SECRET=SECRET) == ["remit.toml: 2 agents, no problems"]
        done = remit(tmp_path, "run", "go", HOOK_SECRET=SECRET)
    assert "shipping costs money" in posted[0]["data"]["text"] + json.dumps(posted[0]["data"]["shows"])
    assert "worker" in (tmp_path / "told.txt").read_text()
    assert done.returncode != 0  # nobody answered in time
    assert SECRET not in done.stdout + done.stderr


CHANNELS: Mapping[str, str] = {
    'telegram = "${T}"\nchat = 1\nallow = [2]\n': "",
    'slack = "${S}"\nsecret = "${W}"\nbase_url = "https://a.example.com"\n': "",
    'answers = 8642\nsecret = "${W}"\n': "",
    'telegram = "123:abc"\nchat = 1\nallow = [2]\n': "2: channels.ops.telegram: a secret does not belong in a file",
    'telegram = "${T}"\nallow = [2]\n': "1: channels.ops: chat is missing: a whole number",
    'telegram = "${T}"\nchat = 1\nallow = ["ann"]\n': (
        "4: channels.ops.allow: this is a list of whole numbers, such as [4711, 4712], not ['ann']"
    ),
    'telegram = "${T}"\nchat = 1\nallow = []\n': "1: channels.ops: allow is the list of ids of the people",
    'telegran = "${T}"\n': "2: channels.ops.telegran: there is no such setting; did you mean 'telegram'?",
    'slack = "${S}"\nsecret = "${W}"\nbase_url = "x"\nchat = 1\n': (
        "5: channels.ops.chat: this is for a channel with a telegram, and this one has a slack"
    ),
    'webhook = "${MISSING}"\nsecret = "${W}"\n': (
        "2: warning: channels.ops.webhook: the environment variable MISSING is not set"
    ),
    'answers = 99999\nsecret = "${W}"\n': "1: channels.ops: port is a whole number from 0 to 65,535, not 99999",
}


@pytest.mark.rule("file.line", "file.channels")
@pytest.mark.parametrize("table", CHANNELS)
def test_a_channel_is_checked_with_its_lines(table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written(tmp_path, f'[channels.ops]\n{table}[agents.a]\nfunction = "crew:worker"\n')
    token = "123456:abcdefghijklmnopqrstuvwxyz0123456789"
    for name, value in {"T": token, "S": "https://hooks.example.com/x", "W": SECRET}.items():
        monkeypatch.setenv(name, value)
    said = looked_at(tmp_path)
    expected = CHANNELS[table]
    assert said[0].startswith(f"remit.toml:{expected}") if expected else said == []
    assert token not in "".join(said)


# -- plans and coordinators -----------------------------------------------------------------------------------------

CREW = """
[agents.lead]
model = "script:script.toml"
asks = ["finder", "writer"]

[agents.finder]
function = "crew:finder"
can = "find things out"

[agents.writer]
function = "crew:writer"
can = "write"
"""
STEPS = """
[plan]
goal = "a new tea"
concurrency = 2
reveal = true

[[plan.steps]]
id = "taste"
title = "Find out what sells"
agent = "finder"

[[plan.steps]]
id = "label"
title = "Write the label"
capability = "write"
after = ["taste"]
"""
LEADS = """
[[lead]]
when = "Answer with a plan"
say = '{"steps": [{"id": "a", "title": "Write the label", "agent": "writer"}]}'

[[lead]]
when = "Put the pieces together"
say = "{task}"
"""


def crewed(folder: Path, text: str) -> Path:
    return written(folder, text, LEADS)


@pytest.mark.rule("file.plan")
def test_the_plan_of_a_file_is_carried_out_when_no_task_is_given(tmp_path: Path):
    crewed(tmp_path, f'{CREW}{STEPS}[store]\npath = "remit.db"\n')
    assert checked(tmp_path) == ["remit.toml: 3 agents, no problems"]
    assert remit(tmp_path, "run").stdout == "label: mint sells\n"
    assert remit(tmp_path, "run", "remit.toml").stdout == "label: mint sells\n"
    assert remit(tmp_path, "run", "finder", "go").stdout == "mint sells\n"
    assert json.loads(remit(tmp_path, "run", "another tea", "--json").stdout)["task"] == "another tea"
    submitted = remit(tmp_path, "submit", "--json")
    assert json.loads(submitted.stdout)["existing"] is False


@pytest.mark.rule("file.plan")
def test_a_plan_with_several_ends_shows_each_result_under_its_title(tmp_path: Path):
    crewed(tmp_path, f"{CREW}{STEPS.replace('after = ', '# after = ')}")
    assert remit(tmp_path, "run").stdout == "Find out what sells\nmint sells\n\nWrite the label\nlabel: nothing\n"


@pytest.mark.rule("file.plan")
def test_a_coordinator_of_a_file_plans_and_puts_together(tmp_path: Path):
    crewed(tmp_path, f'[run]\ncoordinator = "lead"\n{CREW}')
    assert checked(tmp_path) == ["remit.toml: 3 agents, no problems"]
    said = remit(tmp_path, "run", "a new tea").stdout
    assert said.startswith("# Goal: a new tea")
    assert "label: nothing" in said
    missing = remit(tmp_path, "run")
    assert missing.returncode == 2
    assert "give a task: remit run 'task'; or add a [plan] with a goal and steps to the file" in missing.stderr


@pytest.mark.rule("file.plan", "team.given")
def test_a_coordinator_follows_the_plan_of_the_file(tmp_path: Path):
    crewed(tmp_path, f'[run]\ncoordinator = "lead"\n{CREW}{STEPS}[store]\npath = "remit.db"\n')
    said = remit(tmp_path, "run").stdout
    assert said.startswith("# Goal: a new tea")
    assert "label: mint sells" in said
    assert remit(tmp_path, "submit").returncode == 0


PLANS: Mapping[str, str] = {
    STEPS.replace('"finder"', '"findr"'): "22: plan.steps.0.agent: there is no agent 'findr'; did you mean 'finder'?",
    STEPS.replace('["taste"]', '["tast"]'): "14: plan: step 'label' waits for 'tast'",
    STEPS.replace('id = "taste"\n', ""): "19: plan.steps.0: id is missing: text in quotes",
    STEPS.replace("capability", "capabilty"): "27: plan.steps.1.capabilty: there is no such setting; did you mean",
    f'{STEPS}[run]\ncoordinator = "leed"\n': "30: run.coordinator: there is no agent 'leed'; did you mean 'lead'?",
    f'{STEPS}[run]\nagent = "lead"\ncoordinator = "lead"\n': "31: run.coordinator: there is agent already",
    f"{STEPS}retries = 11\n": "24: plan.steps.1: retries is a whole number from 0 to 10, not 11",
    f"{STEPS}[loops]\nstale = true\n": "30: loops.stale: this is a whole number, or false, not True",
    f"{STEPS}[loops]\nstal = 3\n": "30: loops.stal: there is no such setting; did you mean 'stale'?",
    f"{STEPS}[loops]\nsame_ask = 1\n": "30: loops.same_ask: same_ask is a whole number of at least 2 or None, not 1",
    f'{STEPS}[policy]\nclassify = "rule"\n': "30: policy.classify: write it as module:name",
}


@pytest.mark.rule("file.line", "file.plan")
@pytest.mark.parametrize("text", PLANS, ids=lambda text: str(PLANS[text])[:40])
def test_what_is_wrong_with_a_plan_is_told_with_its_line(text: str, tmp_path: Path):
    said = looked_at(crewed(tmp_path, CREW + text))
    assert said[0].startswith(f"remit.toml:{PLANS[text]}"), said


# -- loops -----------------------------------------------------------------------------------------------------------

AGAIN = 'call = "lookup"\nwith = { text = "x" }\n'
INSISTS = f'[[desk]]\n{AGAIN}[[desk]]\nafter = "lookup"\n{AGAIN}'


@pytest.mark.rule("file.whole")
def test_a_model_that_insists_is_stopped_as_soon_as_the_file_says(tmp_path: Path):
    team = f'{DESK}tools = ["lookup"]\n[tools]\nlookup = "crew:lookup"\n'
    written(tmp_path, f"{team}[loops]\noff = true\nrequests = 3\n", INSISTS)
    assert checked(tmp_path) == ["remit.toml: 1 agent, no problems"]
    assert "asked 3 times" in remit(tmp_path, "run", "go").stdout


# -- models and guests ------------------------------------------------------------------------------------------------


@pytest.mark.rule("file.whole", "model.settings")
@pytest.mark.anyio
async def test_temperature_and_other_settings_of_the_file_go_to_the_provider(tmp_path: Path):
    async with model_server([Says("warm")]) as server:
        model = f'[agents.poet]\nmodel = "openai:gpt-4o"\nkeys = ["POET_KEY"]\nbase_url = "{server.url}/v1"\n'
        prices = '[prices."openai:gpt-4o"]\ninput = "$1"\noutput = "$1"\n'
        written(tmp_path, f"{model}temperature = 0.7\nsettings = {{ top_p = 0.5 }}\n{prices}")
        assert not [one for one in looked_at(tmp_path) if "warning" not in one]
        done = await asyncio.to_thread(lambda: remit(tmp_path, "run", "go", POET_KEY="k"))
    assert done.stdout == "warm\n", done.stderr
    body = server.requests[0].body
    assert (body["temperature"], body["top_p"]) == (0.7, 0.5)


@pytest.mark.rule("file.line")
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("temperature = 'hot'", "remit.toml:3: agents.poet.temperature: this is a number, not 'hot'"),
        ("settings = { temprature = 1 }", "remit.toml:1: agents.poet: there is no setting 'temprature' of a model"),
        ("deps = 'crew:SHOP'", "remit.toml:3: agents.poet.deps: this is for an agent with a guest"),
        ("ungoverned = 'alow'", 'remit.toml:3: agents.poet.ungoverned: this is "refuse" or "allow", not \'alow\'; did'),
    ],
)
def test_a_setting_that_a_model_cannot_have_is_told(line: str, sentence: str, tmp_path: Path):
    written(tmp_path, f'[agents.poet]\nmodel = "test"\n{line}\n')
    assert looked_at(tmp_path)[0].startswith(sentence)


@pytest.mark.rule("file.whole")
def test_a_guest_gets_its_dependencies_from_the_file(tmp_path: Path):
    guest = '[agents.clerk]\nguest = "shop:clerk"\ndeps = "shop:SHOP"\nungoverned = "refuse"\n'
    written(tmp_path, f"{guest}[policy]\nunknown_price = 'tokens'\n")
    (tmp_path / "shop.py").write_text(
        "from pydantic_ai import Agent, RunContext\n"
        "from pydantic_ai.models.test import TestModel\n"
        "SHOP = {'name': 'Lamps & Co'}\n"
        "clerk = Agent(TestModel(), deps_type=dict)\n"
        "@clerk.tool\n"
        "def shop_name(context: RunContext[dict]) -> str:\n"
        "    return context.deps['name']\n"
    )
    assert checked(tmp_path) == ["remit.toml: 1 agent, no problems"]
    assert "Lamps & Co" in remit(tmp_path, "run", "go").stdout

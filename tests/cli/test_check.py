"""`remit check`: everything that is wrong with a team's file, for people and for programs."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from commands import command as remit


@pytest.mark.rule("file.line", "file.keys")
def test_check_lists_everything_that_is_wrong(tmp_path: Path):
    (tmp_path / "remit.toml").write_text("[agents.a]\nmodle = 'test'\n[agents.b]\nmodel = 'test'\nkeys = ['NOT_SET']\n")
    done = remit(tmp_path, "check")
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "remit.toml:2: agents.a.modle: there is no such setting; did you mean 'model'?",
        "remit.toml:5: warning: agents.b.keys: the environment variable NOT_SET is not set; its key cannot be used",
    ]
    told = json.loads(remit(tmp_path, "check", "--json").stdout)
    assert [(one["line"], one["setting"], one["warning"]) for one in told] == [
        (2, "agents.a.modle", False),
        (5, "agents.b.keys", True),
    ]


@pytest.mark.rule("file.keys")
def test_a_key_that_is_not_set_is_no_reason_to_fail_a_check_but_to_fail_a_run(tmp_path: Path):
    (tmp_path / "remit.toml").write_text("[agents.b]\nmodel = 'openai:gpt-5'\nkeys = ['NOT_SET']\n")
    done = remit(tmp_path, "check")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "remit.toml: 1 agent, no errors, only warnings for this machine"
    run = remit(tmp_path, "run", "hello")
    assert run.returncode == 2
    assert "remit.toml:2: " not in run.stderr
    assert "remit.toml:3: agents.b.keys: the environment variable NOT_SET is not set" in run.stderr
    assert "openai:gpt-5 (NOT_SET)" in remit(tmp_path, "agents", "-v").stdout
    assert remit(tmp_path, "submit", "b", "later", "--store", "remit.db").returncode == 0


def test_a_file_that_is_no_toml_is_a_line_of_json_too(tmp_path: Path):
    (tmp_path / "other.toml").write_text("[agents.a]\nmodel = \n")
    done = remit(tmp_path, "check", "other.toml", "--json")
    assert done.returncode == 2
    assert [(one["file"], one["line"]) for one in json.loads(done.stdout)] == [("other.toml", 2)]


@pytest.mark.rule("file.described")
def test_the_schema_is_printed_for_editors(tmp_path: Path):
    printed = json.loads(remit(tmp_path, "check", "--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert "model" in printed["properties"]["agents"]["additionalProperties"]["properties"]


MISSING = """
[agents.coder]
model = "openai:gpt-5"
fallback = ["anthropic:claude-unheard-of"]
[agents.named]
model = "openai:gpt-5"
keys = ["THERE"]
[agents.local]
model = "openai:llama"
base_url = "http://localhost:11434/v1"
[run]
agent = "coder"
credits = "$1"
[store]
path = "data/team.db"
"""


@pytest.mark.rule("file.missing")
def test_check_warns_of_keys_prices_and_folders_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("THERE", "x")
    (tmp_path / "remit.toml").write_text(MISSING)
    done = remit(tmp_path, "check")
    assert done.returncode == 0
    assert [line.partition("; ")[0] for line in done.stdout.splitlines()] == [
        (
            "remit.toml:3: warning: agents.coder.model: the environment variable OPENAI_API_KEY is not set, "
            "which holds the key of openai"
        ),
        (
            "remit.toml:4: warning: agents.coder.fallback: the environment variable ANTHROPIC_API_KEY is not set, "
            "which holds the key of anthropic"
        ),
        (
            "remit.toml:4: warning: agents.coder.fallback: the price of anthropic:claude-unheard-of is not known, "
            "and money is limited here"
        ),
        "remit.toml:15: warning: store.path: there is no folder data",
        "remit.toml: 3 agents, no errors, only warnings for this machine",
    ]


@pytest.mark.rule("file.missing")
def test_nothing_is_missing_where_all_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    (tmp_path / "data").mkdir()
    prices = '[prices."anthropic:claude-unheard-of"]\ninput = "$1"\noutput = "$2"\n'
    monkeypatch.setenv("THERE", "x")
    (tmp_path / "remit.toml").write_text(MISSING + prices)
    assert remit(tmp_path, "check").stdout == "remit.toml: 3 agents, no problems\n"


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("a2a", "mcp"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv = ["remit", "check"]
from remit.cli.main import main
main()
"""


@pytest.mark.rule("file.keys")
def test_a_package_that_the_team_needs_and_that_is_not_installed_is_a_warning(tmp_path: Path):
    far = '[agents.far]\na2a = "https://example.com/agent"\n'
    (tmp_path / "remit.toml").write_text(f'{far}[mcp.files]\ncommand = ["cat"]\nallow = ["read"]\n')
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [
        (
            "remit.toml:2: warning: agents.far.a2a: agents of other servers need the a2a-sdk package: "
            "pip install 'remit[a2a]'"
        ),
        "remit.toml:3: warning: mcp.files: an MCP server needs the mcp package: pip install 'remit[mcp]'",
    ]
    assert "warning" not in remit(tmp_path, "check").stdout

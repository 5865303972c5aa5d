"""What an operator sees of a worker: JSON lines, metrics on a port, spans as the environment says; and no text of
tasks."""

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
from operator import itemgetter
from pathlib import Path
from urllib.request import urlopen

import pytest

from programs import Program
from remit import Card, Runtime
from remit.cli.observing import JsonFormatter, json_logs, observed
from remit.errors import BadInput, StoreError
from teams import echo, new_file, team

CANARY = "canary-7f3a"
TEAM = f"""
import logging
import remit

rt = remit.Runtime("team.db", secrets=["secret-{CANARY}"])

@rt.agent(asks=["helper"], reads=["notes"], writes=["notes"])
async def lead(turn):
    logging.getLogger("mine").warning("at work with %s", "secret-{CANARY}")
    await turn.context.set("notes", "k", turn.task)
    try:
        await turn.delegate("{CANARY}", turn.task)
    except remit.Refused:
        pass
    return await turn.delegate("helper", turn.task)

@rt.agent
async def helper(turn):
    if turn.task.endswith("bad"):
        raise ValueError(turn.task)
    return turn.task
"""


@pytest.mark.rule("logs.json", "otel.environment", "otel.secret")
def test_a_worker_shows_operators_everything_but_text(tmp_path: Path):
    (tmp_path / "team.py").write_text(TEAM)
    new_file(tmp_path / "team.db")
    variables = {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "none"}
    words = ("worker", "team:rt", "--log-format", "json", "--metrics", "0")
    worker = Program("-m", "remit.cli", *words, cwd=tmp_path, env={**os.environ, **variables})

    async def work() -> list[str]:
        async with team(tmp_path / "team.db", hands=0) as rt:
            rt.add(Card("lead"), echo)
            ids = [await rt.submit("lead", f"{CANARY} {word}") for word in ("good", "bad")]
            return [(await one.wait(30)).state for one in ids]

    said: list[dict[str, str]] = []
    while not said or not said[-1]["message"].startswith("metrics: "):
        said.append(json.loads(worker.stdout.readline()))
    assert asyncio.run(work()) == ["completed", "failed"]
    metrics = ""
    while 'agent="lead",state="failed"} 1.0' not in metrics:  # a thread counts
        with urlopen(said[-1]["message"].removeprefix("metrics: ")) as answer:
            metrics = answer.read().decode()
    worker.send_signal(signal.SIGTERM)
    out, err = worker.communicate()
    assert worker.returncode == 0
    lines = [json.loads(line) for line in out.splitlines() if line.startswith('{"at"')]
    ends = sorted(
        (line for line in lines if line.get("kind") in ("task.completed", "task.failed")), key=itemgetter("kind")
    )
    assert [(line["agent"], line["level"]) for line in ends] == [("lead", "info"), ("lead", "error")]
    assert all(line["run"] and line["task"] and line["seconds"] >= 0 for line in ends)
    assert ends[1]["error"] == "Failed"
    logged = [json.loads(line) for line in err.splitlines()]
    assert [(line["logger"], line["agent"], line["message"]) for line in logged if line["logger"] == "mine"] == [
        ("mine", "lead", "at work with [secret]"),
    ] * 2
    assert len(re.findall(r'"name": "invoke_agent (?:lead|helper)"', out)) == 4
    assert 'remit_tasks_ended_total{agent="helper",state="failed"} 1.0' in metrics
    assert 'remit_refusals_total{agent="lead",rule="unknown"} 2.0' in metrics
    assert CANARY not in out + err + metrics


@pytest.mark.rule("logs.json")
def test_an_exception_in_the_log_is_its_class_and_where_it_was_raised():
    def formatted(message: str, *args: object, error: Exception | None = None) -> dict[str, str]:
        info = None if error is None else (type(error), error, error.__traceback__)
        return json.loads(JsonFormatter().format(logging.LogRecord("remit", 40, "x.py", 1, message, args, info)))

    with pytest.raises(ValueError, match=CANARY) as raised:
        int(CANARY)
    bad = raised.value
    line = formatted("it failed: %r", bad, error=bad)
    assert (line["level"], line["message"], line["error"]) == ("error", "it failed: 'ValueError'", "ValueError")
    assert "test_observing.py" in line["trace"]
    assert CANARY not in str(line)
    assert formatted("waiting: %s", StoreError("the disk is full"))["message"] == "waiting: the disk is full"
    assert formatted("100 %")["message"] == "100 %"
    assert formatted("%(a)s", {"a": 1})["message"] == "1"
    before = logging.getLogger().handlers
    with json_logs("json"):
        assert [type(one.formatter) for one in logging.getLogger().handlers] == [JsonFormatter]
    assert logging.getLogger().handlers is before


@pytest.mark.rule("otel.environment")
def test_an_exporter_that_is_not_installed_is_an_error_and_a_disabled_sdk_is_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    said: list[str] = []
    with pytest.raises(BadInput, match="no exporter 'zipkin' here"), observed(Runtime(), None, said.append):
        pass
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with observed(Runtime(), None, said.append):
        assert said == []


@pytest.mark.rule("otel.off")
def test_without_variables_and_port_nothing_of_telemetry_is_imported():
    program = """
import sys
from remit import Card, Runtime
from remit.cli.observing import observed

with observed(Runtime(), None, print):
    print(sorted(name for name in sys.modules if name.startswith(("opentelemetry", "prometheus_client"))))
"""
    variables = {name: one for name, one in os.environ.items() if not name.startswith("OTEL")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=variables, check=True)
    assert done.stdout == "[]\n"

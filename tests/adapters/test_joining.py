"""Whose agent it is, found out without importing anyone's framework."""

import subprocess
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from remit.adapters.joining import framework_of, joined
from remit.errors import BadInput

FRAMEWORKS = ("pydantic_ai", "agents", "langgraph", "langchain", "langchain_core", "openai", "pydantic")


def made(kind: str, module: str) -> Any:
    """An object of a class of this name, whose own class is a child of it."""
    parent = type(kind, (), {"__module__": module})
    return type("Child", (parent,), {})()


@pytest.mark.rule("joining.whose")
@pytest.mark.parametrize(
    ("kind", "module", "framework"),
    [
        ("AbstractAgent", "pydantic_ai.agent.abstract", "pydantic-ai"),
        ("AgentBase", "agents.agent", "openai-agents"),
        ("Pregel", "langgraph.pregel.main", "langgraph"),
        ("AgentBase", "agents", None),  # somebody's own package
        ("Agent", "agents.agent", None),
        ("Pregel", "langgraphs", None),
    ],
)
def test_an_agent_is_known_by_a_class_of_its_framework(kind: str, module: str, framework: str | None):
    assert framework_of(made(kind, module)) == framework


@pytest.mark.rule("joining.whose")
@pytest.mark.parametrize(
    ("module", "kind", "framework"),
    [
        ("pydantic_ai", "Agent", "pydantic-ai"),
        ("agents", "Agent", "openai-agents"),
        ("langgraph.graph.state", "CompiledStateGraph", "langgraph"),
    ],
)
def test_the_frameworks_that_are_installed_have_these_classes(module: str, kind: str, framework: str):
    found: Any = getattr(import_module(module), kind)
    assert framework_of(found.__new__(found)) == framework


@pytest.mark.rule("joining.light")
def test_looking_at_an_agent_imports_no_framework():
    code = (
        "import sys, remit; from remit.adapters.joining import framework_of; framework_of(print);"
        f"print([name for name in {FRAMEWORKS} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.rule("joining.whose")
def test_what_is_no_agent_is_told_what_can_be_joined():
    with pytest.raises(BadInput, match="a compiled LangGraph graph can be joined, not int: 7$"):
        joined(7, verbs=False)
    with pytest.raises(BadInput, match=r"compile\(\) the graph first"):
        joined(type("StateGraph", (), {})(), verbs=False)


@pytest.mark.rule("joining.missing")
@pytest.mark.parametrize(
    ("kind", "module", "adapter", "extra"),
    [
        ("AbstractAgent", "pydantic_ai", "pydantic_ai", "llm"),
        ("AgentBase", "agents.agent", "openai_agents", "openai-agents"),
        ("Pregel", "langgraph", "langgraph", "langgraph"),
    ],
)
def test_a_framework_that_is_missing_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, kind: str, module: str, adapter: str, extra: str
):
    monkeypatch.setitem(sys.modules, f"remit.adapters.{adapter}", None)
    with pytest.raises(BadInput, match=rf"pip install 'remit\[{extra}\]'"):
        joined(made(kind, module), verbs=False)


@pytest.mark.rule("joining.whose")
def test_the_adapter_makes_the_guest(monkeypatch: pytest.MonkeyPatch):
    found: list[Any] = []
    adapter = ModuleType("remit.adapters.pydantic_ai")
    vars(adapter)["guest"] = lambda agent, **how: found.append((agent, how)) or print
    monkeypatch.setitem(sys.modules, "remit.adapters.pydantic_ai", adapter)
    agent = made("AbstractAgent", "pydantic_ai")
    assert joined(agent, verbs=True) is print
    assert joined(agent, verbs=False, prompt=str) is print
    assert found == [(agent, {"verbs": True}), (agent, {"verbs": False, "prompt": str})]


@pytest.mark.rule("joining.whose")
def test_agents_of_each_framework_are_joined_in_one_line():
    agents, graphs, messages = map(import_module, ("agents", "langgraph.graph", "langgraph.graph.message"))
    graph = graphs.StateGraph(messages.MessagesState)
    graph.add_node("end", lambda state: state)
    graph.add_edge(graphs.START, "end")
    names = [type(joined(one, verbs=False)).__name__ for one in (agents.Agent("a"), graph.compile())]
    assert names == ["OpenAIAgentsGuest", "LangGraphGuest"]

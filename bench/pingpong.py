"""Two agents that pass a task to each other endlessly, in other libraries: by handoff, and by delegation.

The models are scripted: they answer at once, and need no network and no key. To each task a model answers by
passing it on; one that has delegated and gets an answer, whatever it is, ends its turn. Each library is used with
the limits it has when nobody sets any, and is imported only when it is asked for; one that is missing says so.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from measure import need

LEAD, WORKER = "lead", "worker"
_OTHER = {LEAD: WORKER, WORKER: LEAD}


class Rally:
    """Counts the model calls of a ping-pong; its models give in when it has gone on for long enough."""

    def __init__(self, calls: int, seconds: float) -> None:
        self.calls = 0
        self.given_in = False
        self._most = calls
        self._until = time.monotonic() + seconds

    def again(self) -> bool:
        """Count a model call; whether this model may still pass the task on."""
        self.given_in = self.given_in or self.calls >= self._most or time.monotonic() > self._until
        self.calls += not self.given_in
        return not self.given_in


# -- strands-agents --------------------------------------------------------------------------------------

Reply = Callable[[bool], Awaitable[tuple[list[Any], int]]]  # is it the answer to a call -> blocks, tokens


def strands_agent(name: str, reply: Reply, tools: list[Any] | None = None) -> Any:
    library, models = need("strands", "strands.models")

    class Scripted(models.Model):
        def update_config(self, **_: Any) -> None: ...

        def get_config(self) -> Any:
            return {}

        def structured_output(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream(self, messages: list[Any], *_: Any, **__: Any) -> Any:
            answered = any("toolResult" in block for block in messages[-1]["content"])
            for event in _strands_events(*await reply(answered)):
                yield event

    return library.Agent(name=name, model=Scripted(), tools=tools, callback_handler=None)


def strands_call(name: str, number: int, given: str = '{"input": "go"}') -> dict[str, str]:
    return {"name": name, "toolUseId": str(number), "input": given}


def _strands_events(blocks: list[Any], tokens: int) -> list[Any]:
    events: list[Any] = [{"messageStart": {"role": "assistant"}}]
    for block in blocks:
        start = {"toolUse": {key: block[key] for key in ("name", "toolUseId")}} if "name" in block else {}
        delta = {"toolUse": {"input": block["input"]}} if "name" in block else {"text": block["text"]}
        events += [{"contentBlockStart": {"start": start}}, {"contentBlockDelta": {"delta": delta}}]
        events.append({"contentBlockStop": {}})
    why = "tool_use" if "name" in blocks[-1] else "end_turn"
    usage = {"inputTokens": 0, "outputTokens": tokens, "totalTokens": tokens}
    return [*events, {"messageStop": {"stopReason": why}}, {"metadata": {"usage": usage, "metrics": {"latencyMs": 0}}}]


def _strands_passes(rally: Rally, call: str, given: str) -> Reply:
    async def reply(answered: bool) -> tuple[list[Any], int]:
        passes = rally.again() and not answered
        return [strands_call(call, rally.calls, given) if passes else {"text": "done"}], 0

    return reply


async def strands_handoff(rally: Rally) -> str:
    (multi,) = need("strands.multiagent")

    def agent(name: str) -> Any:
        given = f'{{"agent_name": "{_OTHER[name]}", "message": "go"}}'
        return strands_agent(name, _strands_passes(rally, "handoff_to_agent", given))

    result = await multi.Swarm([agent(LEAD), agent(WORKER)]).invoke_async("go")
    return "" if result.status.value == "completed" else f"status {result.status.value}"


async def strands_delegation(rally: Rally) -> str:
    lead = strands_agent(LEAD, _strands_passes(rally, WORKER, '{"input": "go"}'))
    worker = strands_agent(WORKER, _strands_passes(rally, LEAD, '{"input": "go"}'), [lead.as_tool()])
    lead.tool_registry.process_tools([worker.as_tool()])
    await lead.invoke_async("go")
    return ""


# -- agent-framework -------------------------------------------------------------------------------------


def _framework_agent(rally: Rally, name: str, call: str, *, once: bool) -> Any:
    (library,) = need("agent_framework")

    class Scripted(library.FunctionInvocationLayer, library.BaseChatClient):
        def _inner_get_response(self, *, messages: Any, stream: bool, **_: Any) -> Any:
            return self._build_response_stream(self._update(messages)) if stream else self._whole(messages)

        async def _whole(self, messages: Any) -> Any:
            said = library.Message(role="assistant", contents=self._contents(messages))
            return library.ChatResponse(messages=[said])

        async def _update(self, messages: Any) -> Any:
            yield library.ChatResponseUpdate(role="assistant", contents=self._contents(messages))

        def _contents(self, messages: Any) -> Any:
            answered = any(content.type == "function_result" for content in messages[-1].contents)
            if not rally.again() or (once and answered):
                return [library.Content.from_text("done")]
            given = {"task": "go"} if once else {}
            return [library.Content.from_function_call(str(rally.calls), call, arguments=given)]

    return library.Agent(client=Scripted(), name=name, require_per_service_call_history_persistence=not once)


async def framework_handoff(rally: Rally) -> str:
    (teams,) = need("agent_framework_orchestrations")
    lead, worker = (_framework_agent(rally, name, f"handoff_to_{_OTHER[name]}", once=False) for name in _OTHER)
    await teams.HandoffBuilder(participants=[lead, worker]).with_start_agent(lead).build().run("go")
    return ""


async def framework_delegation(rally: Rally) -> str:
    lead, worker = (_framework_agent(rally, name, _OTHER[name], once=True) for name in _OTHER)
    lead.default_options["tools"] = [worker.as_tool()]
    worker.default_options["tools"] = [lead.as_tool()]
    await lead.run("go")
    return ""


# -- google-adk ------------------------------------------------------------------------------------------


def _adk_agent(rally: Rally, name: str, call: str, given: dict[str, str], *, once: bool, team: Any = ()) -> Any:
    agents, models, types = need("google.adk.agents", "google.adk.models", "google.genai.types")

    class Scripted(models.BaseLlm):
        async def generate_content_async(self, llm_request: Any, *_: Any, **__: Any) -> Any:
            answered = llm_request.contents[-1].parts[-1].function_response is not None
            passes = rally.again() and not (once and answered)
            part = types.Part.from_function_call(name=call, args=given) if passes else types.Part(text="done")
            yield models.LlmResponse(content=types.Content(role="model", parts=[part]))

    return agents.LlmAgent(name=name, model=Scripted(model="scripted"), sub_agents=list(team))


async def _adk_run(lead: Any) -> str:
    runners, types = need("google.adk.runners", "google.genai.types")
    runner = runners.InMemoryRunner(lead, app_name="limits")
    session = await runner.session_service.create_session(app_name="limits", user_id="user")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        pass
    return ""


async def adk_handoff(rally: Rally) -> str:
    worker = _adk_agent(rally, WORKER, "transfer_to_agent", {"agent_name": LEAD}, once=False)
    lead = _adk_agent(rally, LEAD, "transfer_to_agent", {"agent_name": WORKER}, once=False, team=[worker])
    return await _adk_run(lead)


async def adk_delegation(rally: Rally) -> str:
    (tools,) = need("google.adk.tools.agent_tool")
    lead, worker = (_adk_agent(rally, name, _OTHER[name], {"request": "go"}, once=True) for name in _OTHER)
    lead.tools.append(tools.AgentTool(worker))
    worker.tools.append(tools.AgentTool(lead))
    return await _adk_run(lead)


# -- langgraph-swarm: handoffs only ----------------------------------------------------------------------


def _chat_model(rally: Rally, call: str) -> Any:
    chat, messages, outputs = need(
        "langchain_core.language_models.chat_models", "langchain_core.messages", "langchain_core.outputs"
    )

    class Scripted(chat.BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(self, *_: Any, **__: Any) -> Any:
            passes = rally.again()
            calls = [{"name": call, "args": {}, "id": str(rally.calls)}] if passes else []
            said = messages.AIMessage("" if passes else "done", tool_calls=calls)
            return outputs.ChatResult(generations=[outputs.ChatGeneration(message=said)])

    return Scripted()


async def langgraph_handoff(rally: Rally) -> str:
    swarm, agents = need("langgraph_swarm", "langchain.agents")

    def agent(name: str) -> Any:
        tool = swarm.create_handoff_tool(agent_name=_OTHER[name])
        return agents.create_agent(_chat_model(rally, tool.name), [tool], name=name)

    flow = swarm.create_swarm([agent(LEAD), agent(WORKER)], default_active_agent=LEAD).compile()
    await flow.ainvoke({"messages": [{"role": "user", "content": "go"}]})
    return ""

"""An MCP server with everything that the conformance suite asks of one, to stand behind the layers of ours."""

import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp

from remit.server.app import ServerSettings
from remit.server.tenants import Tenants

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fccff0bf1e00058302"
        "8053d4c1700000000049454e44ae426082"
    )
).decode()
SOUND = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\0\0\0\0").decode()
NO_CAPABILITY = -32021
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ONE_TO_THREE = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{one}", "title": f"Option {one}"} for one in (1, 2, 3)]
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADERS = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
        "query": {"type": "string"},
    },
    "required": ["region", "query"],
}


def text(words: str) -> types.TextContent:
    return types.TextContent(text=words)


def image() -> types.ImageContent:
    return types.ImageContent(data=PIXEL, mime_type="image/png")


def embedded(uri: str, words: str, kind: str = "text/plain") -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=kind, text=words))


def done(*content: Any, **how: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[*content], **how)


def form(message: str, schema: dict[str, Any]) -> types.ElicitRequest:
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str, most: int) -> types.CreateMessageRequest:
    messages = [types.SamplingMessage(role="user", content=text(prompt))]
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=messages, max_tokens=most))


def more(requests: dict[str, Any], state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests or None, request_state=state)


# -- tools: what they do ----------------------------------------------------------------------------------------

Result = types.CallToolResult | types.InputRequiredResult
Tool = Callable[[Any, types.CallToolRequestParams], Awaitable[Result]]
TOOLS: dict[str, Tool] = {}
SCHEMAS: dict[str, dict[str, Any]] = {"json_schema_2020_12_tool": SCHEMA, "test_custom_headers": HEADERS}


def tool(function: Any) -> Tool:
    TOOLS[f"test_{function.__name__}"] = function
    return function


FIXED: dict[str, types.CallToolResult] = {
    "test_simple_text": done(text("This is a simple text response for testing.")),
    "test_image_content": done(image()),
    "test_audio_content": done(types.AudioContent(data=SOUND, mime_type="audio/wav")),
    "test_embedded_resource": done(embedded("test://embedded-resource", "This is an embedded resource content.")),
    "test_multiple_content_types": done(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ),
    "test_error_handling": done(text("This tool intentionally returns an error for testing"), is_error=True),
    "json_schema_2020_12_tool": done(text("ok")),
    "test_custom_headers": done(text("ok")),
    "test_logging_tool": done(text("ok")),
}


@tool
async def tool_with_logging(context: Any, _params: types.CallToolRequestParams) -> Result:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", words, related_request_id=context.request_id)
        await anyio.sleep(0.05)
    return done(text("logged"))


@tool
async def tool_with_progress(context: Any, _params: types.CallToolRequestParams) -> Result:
    for part in (0, 50, 100):
        await context.session.report_progress(part, 100)
        await anyio.sleep(0.05)
    return done(text("progressed"))


async def sampled(context: Any, params: types.CallToolRequestParams) -> Result:
    asked = sampling((params.arguments or {})["prompt"], 100)
    meta = {"messages": asked.params.messages, "max_tokens": 100, "related_request_id": context.request_id}
    said = await context.session.create_message(**meta)
    return done(text(f"LLM response: {said.content.text}"))


TOOLS["test_sampling"] = sampled


async def elicited(context: Any, message: str, schema: dict[str, Any], head: str) -> Result:
    answer = await context.session.elicit_form(message, schema, context.request_id)
    return done(text(f"{head}: action={answer.action}, content={json.dumps(answer.content)}"))


@tool
async def elicitation(context: Any, params: types.CallToolRequestParams) -> Result:
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    schema = {"type": "object", "properties": fields, "required": [*fields]}
    return await elicited(context, (params.arguments or {})["message"], schema, "User response")


@tool
async def elicitation_sep1034_defaults(context: Any, _params: types.CallToolRequestParams) -> Result:
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await elicited(context, "Who?", {"type": "object", "properties": fields}, "Elicitation completed")


@tool
async def elicitation_sep1330_enums(context: Any, _params: types.CallToolRequestParams) -> Result:
    names = ["Option One", "Option Two", "Option Three"]
    fields = {
        "untitledSingle": {"type": "string", "enum": ONE_TO_THREE},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ONE_TO_THREE}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    }
    return await elicited(context, "Which?", {"type": "object", "properties": fields}, "Elicitation completed")


@tool
async def missing_capability(context: Any, _params: types.CallToolRequestParams) -> Result:
    able = context.session.client_capabilities
    if able is None or able.sampling is None:
        lacking = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(code=NO_CAPABILITY, message="this tool needs sampling", data=lacking)
    return done(text("ok"))


# -- tools: several rounds --------------------------------------------------------------------------------------


def answered(params: Any, name: str, kind: type) -> Any:
    found = (params.input_responses or {}).get(name)
    return found if isinstance(found, kind) else None


def content_of(answer: Any, name: str) -> str:
    value = (answer.content or {}).get(name) if answer is not None else None
    return value if isinstance(value, str) else ""


@tool
async def input_required_result_elicitation(_context: Any, params: types.CallToolRequestParams) -> Result:
    name = content_of(answered(params, "user_name", types.ElicitResult), "name")
    return done(text(f"Hello, {name}!")) if name else more({"user_name": form("What is your name?", NAME)})


@tool
async def streaming_elicitation(_context: Any, _params: types.CallToolRequestParams) -> Result:
    return more({"user_name": form("What is your name?", NAME)})


@tool
async def input_required_result_sampling(_context: Any, params: types.CallToolRequestParams) -> Result:
    said = answered(params, "capital_question", types.CreateMessageResult)
    if said is None:
        return more({"capital_question": sampling("What is the capital of France?", 100)})
    return done(text(said.content.text))


@tool
async def input_required_result_list_roots(_context: Any, params: types.CallToolRequestParams) -> Result:
    found = answered(params, "client_roots", types.ListRootsResult)
    if found is None:
        return more({"client_roots": types.ListRootsRequest()})
    return done(text(", ".join(str(root.uri) for root in found.roots)))


async def confirmed(_context: Any, params: types.CallToolRequestParams) -> Result:
    if params.request_state == "asked" and answered(params, "confirm", types.ElicitResult) is not None:
        return done(text("state-ok"))
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    return more({"confirm": form("Please confirm", schema)}, "asked")


TOOLS["test_input_required_result_request_state"] = confirmed
TOOLS["test_input_required_result_tampered_state"] = confirmed


@tool
async def input_required_result_multiple_inputs(_context: Any, params: types.CallToolRequestParams) -> Result:
    if params.request_state == "asked" and len(params.input_responses or {}) == 3:
        return done(text("all there"))
    wanted = {"user_name": form("What is your name?", NAME), "greeting": sampling("Generate a greeting", 50)}
    return more({**wanted, "client_roots": types.ListRootsRequest()}, "asked")


@tool
async def input_required_result_multi_round(_context: Any, params: types.CallToolRequestParams) -> Result:
    if params.request_state is None:
        return more({"step1": form("Step 1: What is your name?", NAME)}, "one")
    if params.request_state == "one":
        colour = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
        return more({"step2": form("Step 2: What is your favorite color?", colour)}, "two")
    return done(text("done"))


@tool
async def input_required_result_capabilities(context: Any, _params: types.CallToolRequestParams) -> Result:
    able = context.session.client_capabilities
    wanted: dict[str, Any] = {}
    if able is not None and able.sampling is not None:
        wanted["said"] = sampling("Generate a greeting", 50)
    if able is not None and able.elicitation is not None:
        wanted["user_name"] = form("What is your name?", NAME)
    return more(wanted) if wanted else done(text("nothing to ask"))


# -- the server -------------------------------------------------------------------------------------------------


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    empty = {"type": "object", "properties": {}}
    names = [*FIXED, *TOOLS]
    return types.ListToolsResult(
        tools=[types.Tool(name=one, description=one, input_schema=SCHEMAS.get(one, empty)) for one in names]
    )


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Result:
    if params.name in FIXED:
        return FIXED[params.name]
    if params.name not in TOOLS:
        raise MCPError(code=types.INVALID_PARAMS, message="no such tool")
    return await TOOLS[params.name](context, params)


PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def list_prompts(_context: Any, _params: Any) -> types.ListPromptsResult:
    arguments = {name: [types.PromptArgument(name=one, required=True) for one in of] for name, of in PROMPTS.items()}
    return types.ListPromptsResult(
        prompts=[types.Prompt(name=name, description=name, arguments=of) for name, of in arguments.items()]
    )


async def get_prompt(_context: Any, params: Any) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            said: list[Any] = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            said = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            content = embedded(given["resourceUri"], "Embedded resource content for testing.")
            said = [content, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            said = [image(), text("Please analyze the image above.")]
        case _:
            answer = answered(params, "user_context", types.ElicitResult)
            if answer is None:
                schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
                return more({"user_context": form("What context should the prompt use?", schema)})
            said = [text(f"In the context of {content_of(answer, 'context')}")]
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=one) for one in said])


async def list_resources(_context: Any, _params: Any) -> types.ListResourcesResult:
    kinds = {"test://static-text": "text/plain", "test://static-binary": "image/png"}
    kinds["test://watched-resource"] = "text/plain"
    return types.ListResourcesResult(
        resources=[types.Resource(uri=uri, name=uri, description=uri, mime_type=kind) for uri, kind in kinds.items()]
    )


async def list_templates(_context: Any, _params: Any) -> types.ListResourceTemplatesResult:
    one = types.ResourceTemplate(uri_template="test://template/{id}/data", name="data", mime_type="application/json")
    return types.ListResourceTemplatesResult(resource_templates=[one])


async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    match uri.split("/"):
        case ["test:", "", "static-text"]:
            words = "This is the content of the static text resource."
            found: Any = types.TextResourceContents(uri=uri, mime_type="text/plain", text=words)
        case ["test:", "", "static-binary"]:
            found = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
        case ["test:", "", "template", id_, "data"]:
            words = json.dumps({"id": id_, "templateTest": True, "data": f"Data for ID: {id_}"})
            found = types.TextResourceContents(uri=uri, mime_type="application/json", text=words)
        case _:
            is_new = context.protocol_version >= "2026"
            raise MCPError(
                code=types.INVALID_PARAMS if is_new else -32002, message="Resource not found", data={"uri": uri}
            )
    return types.ReadResourceResult(contents=[found])


async def nothing(_context: Any, _params: Any) -> types.EmptyResult:
    return types.EmptyResult()


async def complete(_context: Any, _params: Any) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=["paris", "park"], total=2, has_more=False))


def everything() -> Server[Any]:
    made: Any = Server
    server: Server[Any] = made(
        "everything",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_completion=complete,
        on_set_logging_level=nothing,
    )
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="everything"))
    return server


@asynccontextmanager
async def everything_app(_tenants: Tenants, settings: ServerSettings) -> AsyncGenerator[ASGIApp]:
    """The server as a mounted application, as ours is."""
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*settings.hosts],
        allowed_origins=[*settings.origins],
    )
    manager = StreamableHTTPSessionManager(everything(), security_settings=security)
    async with manager.run():
        yield manager.handle_request

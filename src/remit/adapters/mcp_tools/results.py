"""Results of a server as text for a model."""

import json
from typing import Any, Final, cast

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from remit.core.values import shown

_WRAPPED: Final = {"result"}  # how servers wrap a value that is not an object


def told(result: CallToolResult, limit: int) -> str:
    """Return the parts of a result one after the other, and its structured content if the parts do not contain it."""
    parts = [_part(block) for block in result.content]
    structured = result.structured_content
    if structured is not None and not _said(structured, parts):
        parts.append(json.dumps(structured, ensure_ascii=False))
    return cut("\n".join(parts), limit)


def cut(text: str, limit: int) -> str:
    """Return storable text of at most this many bytes, with a note if it was cut."""
    whole = text.replace("\0", "\ufffd").encode(errors="replace")
    kept = whole[:limit].decode(errors="ignore")
    return f"{kept}\n[cut after {limit:,} bytes]" if len(whole) > limit else kept


def _part(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case EmbeddedResource():
            return _resource(block.resource)
        case ImageContent() | AudioContent():
            return f"[{block.type} that is not shown: {shown(block.mime_type)}, {_size(block.data)}]"
        case ResourceLink():
            return f"[a resource that can be had from the server: {shown(block.uri, 300)}]"


def _resource(resource: TextResourceContents | BlobResourceContents) -> str:
    if isinstance(resource, TextResourceContents):
        return resource.text
    size = _size(resource.blob)
    return f"[a resource that is not text: {shown(resource.uri, 300)}, {shown(resource.mime_type)}, {size}]"


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4:,} bytes"


def _said(structured: Any, parts: list[str]) -> bool:
    """Whether the parts already contain the structured content, as servers send it for text-only clients."""
    value = structured
    if isinstance(structured, dict) and structured.keys() == _WRAPPED:
        value = cast("dict[str, Any]", structured)["result"]
    read = [_read(part) for part in parts]
    return any(said in (value, [value], structured, [structured]) for said in (parts, read)) if parts else False


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text

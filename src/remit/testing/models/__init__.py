"""Scripted models: a server on loopback that real clients talk to, and that replies as a test says."""

from remit.core.prices import Usage
from remit.testing.models.replies import (
    Calls,
    Cut,
    Empty,
    Exchange,
    Fails,
    Garbage,
    ModelReply,
    Overflow,
    Reset,
    Says,
    Slow,
    recorded,
    source,
)
from remit.testing.models.requests import ModelRequest
from remit.testing.models.server import ModelServer, ScriptFailed, model_server

__all__ = [
    "Calls",
    "Cut",
    "Empty",
    "Exchange",
    "Fails",
    "Garbage",
    "ModelReply",
    "ModelRequest",
    "ModelServer",
    "Overflow",
    "Reset",
    "Says",
    "ScriptFailed",
    "Slow",
    "Usage",
    "model_server",
    "recorded",
    "source",
]

"""Coding agents as members of a team: Claude Code, Codex and Gemini CLI, each within the bounds of its task.

rt.add(Card("coder", asks=["reviewer"]), claude_code("anthropic:claude-sonnet-4-5", cwd="repo", allow=["Edit"]))
"""

from remit.adapters.coding.claude import claude_code
from remit.adapters.coding.codex import codex
from remit.adapters.coding.gemini import gemini_cli

__all__ = ["claude_code", "codex", "gemini_cli"]

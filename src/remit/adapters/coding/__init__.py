"""Coding agents as members of a team: Claude Code and Codex, under the bounds and the budget of their tasks.

rt.add(Card("coder", asks=["reviewer"]), claude_code("anthropic:claude-sonnet-4-5", cwd="repo", allow=["Edit"]))
"""

from remit.adapters.coding.claude import claude_code
from remit.adapters.coding.codex import codex

__all__ = ["claude_code", "codex"]

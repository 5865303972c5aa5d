"""remit as an MCP server (`remit[mcp]`): the verbs of a turn as tools, for callers that are not in the team.

A caller is an agent on paper: it has a card, or the rights of the owner, but holds no task. Every call is a run. The
mcp package is imported when a server starts.
"""

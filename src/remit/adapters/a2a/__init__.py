"""The A2A protocol (`remit[a2a]`): agents of other servers as members of a team, and our agents for other servers.

rt.add(a2a("https://example.com/a2a/translator"))
"""

from remit.adapters.a2a.agent import a2a

__all__ = ["a2a"]

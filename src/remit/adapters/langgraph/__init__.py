"""LangGraph graphs as members of a team (`remit[langgraph]`), governed at one of two depths.

    graph = create_agent(llm, tools, middleware=[Middleware()])        # models, tools and verbs
    llm = governed(ChatOpenAI(model="gpt-5"))                          # any other graph: its requests to this model
    rt.add(Card("analyst", asks="*"), LangGraphGuest(graph, verbs=True))

What another graph does in a ToolNode of its own is not governed, unless its tools are `boxed`.
"""

from remit.adapters.langgraph.graph import LangGraphGuest
from remit.adapters.langgraph.middleware import Middleware
from remit.adapters.langgraph.model import governed
from remit.adapters.langgraph.tools import boxed, verb_tools

__all__ = ["LangGraphGuest", "Middleware", "boxed", "governed", "verb_tools"]

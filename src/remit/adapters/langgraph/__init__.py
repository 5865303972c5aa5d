"""LangGraph graphs as members of a team (`remit[langgraph]`).

rt.add(graph, name="analyst")                                      # its models and tools go through the turn
graph = create_agent(llm, tools, middleware=[Middleware()])        # the verbs and messages too
llm = governed(ChatOpenAI(model="gpt-5"))                          # in a graph that a plain function runs
rt.add(Card("analyst", asks="*"), LangGraphGuest(graph, verbs=True))
"""

from remit.adapters.langgraph.graph import LangGraphGuest, Middleware
from remit.adapters.langgraph.model import governed
from remit.adapters.langgraph.tools import boxed, verb_tools

__all__ = ["LangGraphGuest", "Middleware", "boxed", "governed", "verb_tools"]

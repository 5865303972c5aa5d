"""The registry of agents, and which of them an asker may ask."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from remit.core.allow import ANY
from remit.core.backoff import USUAL, RetryPolicy
from remit.core.card import Card, must_be_free
from remit.core.match import Index
from remit.core.plan import Plan
from remit.core.records import NamedTuple, dataclass
from remit.core.remit import STAND_IN, Remit
from remit.core.session import Remembers
from remit.core.toolgroups import GROUPS, Repeat
from remit.errors import BadInput

if TYPE_CHECKING:
    from remit.core.guards import Verdict

# All are called with a Turn, which is not named here to avoid an import cycle.
AgentFunction: TypeAlias = Callable[[Any], Awaitable[object]]
GivenFunction: TypeAlias = Callable[[Any], object]  # plain or async
Around: TypeAlias = Callable[[Any, Callable[[], Awaitable[object]]], Awaitable[object]]
# Takes a WantedHop and returns None or True for yes, and a reason or False for no.
OwnersGuard: TypeAlias = Callable[[Any], "bool | str | None"]
OnLost: TypeAlias = Literal["fail", "restart"]  # what happens to a turn whose conversation cannot be continued


class AgentRules(NamedTuple):
    """The rules of an agent for its models and tools: which tools a person approves each time, hooks before and after a
    tool call, the number of model requests for one task, what happens to a call of each tool that may have been made
    before a crash, and to a conversation that cannot be continued. `expects` are tools that the owner named before the
    agent's tools were known; `varies` says that its tools differ from request to request. `polls` are tools that ask
    for the state of something, so equal results are fine. `timeout` is the time of one attempt in microseconds; 0 for
    the default."""

    approve_tools: frozenset[str] = frozenset()
    before: tuple[Callable[..., Any], ...] = ()
    after: tuple[Callable[..., Any], ...] = ()
    iterations: int = 50
    repeat: Mapping[str, Repeat] = MappingProxyType({})
    converses: bool = False  # whether a turn is one conversation with a model
    on_lost: OnLost = "fail"
    expects: frozenset[str] = frozenset()
    varies: bool = False
    memory: Remembers = ""  # default of `remembers`
    polls: frozenset[str] = frozenset()
    timeout: int = 0

    def repeats(self, tool: str) -> Repeat:
        """Return the tool's own setting. The default is "again" for verbs, which are found in the record, and "tell"
        for other tools."""
        return self.repeat.get(tool) or ("again" if tool in GROUPS["agents"] else "tell")


USUAL_RULES: Final = AgentRules()


class Layer(Protocol):
    """A function around every turn. It is an interface because its module is imported only if there is one."""

    @property
    def name(self) -> str: ...
    def wrap(self, inner: AgentFunction) -> AgentFunction: ...


class JudgesHops(Protocol):
    """A guard of the owner. It is an interface because its module is imported only if there is one."""

    @property
    def name(self) -> str: ...
    def verdict(self, hop: Any) -> "Verdict | None": ...


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent: its card and `answer`, the function that does its work. A turn calls `call`, which is `answer` wrapped
    in the functions of `around`, the first of them outermost."""

    card: Card
    answer: AgentFunction
    retry: RetryPolicy = USUAL
    rules: AgentRules = USUAL_RULES
    stand_in: bool = False  # provided by the engine for a person's plan, so failures are no agent's own
    around: tuple[Layer, ...] = ()
    call: AgentFunction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        call = self.answer
        for layer in reversed(self.around):
            call = layer.wrap(call)
        object.__setattr__(self, "call", call)


async def _leads_only(_turn: object) -> object:
    raise AssertionError("the stand-in of a person carries out a plan and is asked nothing else")


# The agent that carries out a person's plan. Every process has it, and no agent can ask it.
PLANNER: Final = Agent(Card(STAND_IN, role="carries out a plan", asks=ANY), _leads_only, stand_in=True)


class Directory:
    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._index = Index()
        self._unread: list[Card] = []  # cards that are not indexed yet
        self.guards: tuple[JudgesHops, ...] = ()  # of the owner
        self._around: tuple[Layer, ...] = ()  # the first is outermost

    def add(self, agent: Agent) -> None:
        name = agent.card.name
        must_be_free(name)
        if name in self._agents:
            if not is_interactive():
                raise BadInput(
                    f"there is already an agent '{name}'; "
                    "names that differ only by case, spaces or punctuation are one agent"
                )
            self._index, self._unread = Index(), [one.card for one in self._agents.values() if one.card.name != name]
        self._agents[name] = self._surrounded(agent)
        self._unread.append(agent.card)

    def replace(self, agent: Agent) -> None:
        """Replace a registered agent by one of the same name, such as one with the same card and another function."""
        self._agents[agent.card.name] = self._surrounded(agent)

    def surround(self, layer: Layer) -> None:
        """Put a function around the turns of all agents, inside of those that are there already."""
        if layer in self._around:
            raise BadInput(f"{layer.name} is around every turn already; register it once")
        if is_interactive() and any(one.name == layer.name for one in self._around):
            self._around = tuple(layer if one.name == layer.name else one for one in self._around)
        else:
            self._around = (*self._around, layer)
        for agent in [*self._agents.values()]:
            self.replace(agent)

    def guard(self, guard: JudgesHops) -> None:
        """Add a guard of the owner, which judges every hop after the others."""
        others = tuple(one for one in self.guards if one.name != guard.name)
        if len(others) < len(self.guards) and not is_interactive():
            raise BadInput(f"there is already a guard '{guard.name}'; its name tells the refusals apart")
        self.guards = (*others, guard)

    def _surrounded(self, agent: Agent) -> Agent:
        return agent if agent.around == self._around else replace(agent, around=self._around)

    def get(self, name: str) -> Agent | None:
        return self._agents.get(name)

    def holder(self, name: str) -> Agent | None:
        """Return the agent that can hold a queued task here: a registered one, or the built-in one that carries out
        plans."""
        agent = self._agents.get(name)
        return PLANNER if agent is None and name == STAND_IN else agent

    def cards(self) -> list[Card]:
        return [agent.card for _, agent in sorted(self._agents.items())]

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._agents))

    def has_all(self, plan: Plan) -> bool:
        """Whether this process has the agents of all steps of a plan."""
        return all(step.agent in self._agents for step in plan.steps)

    async def hang_up(self) -> None:
        """Close the connections that agents of this process keep open in this event loop, such as those to models."""
        for agent in self._agents.values():
            close = getattr(agent.answer, "aclose", None)
            if close is not None:
                await close()

    def roster(self, remit: Remit, card: Card) -> tuple[str, ...]:
        """Return the agents that this holder may ask right now, by name."""
        return askable(self._agents.keys(), remit, card)

    def askable(self, remit: Remit, card: Card) -> frozenset[str]:
        """Return the agents that this holder may ask right now, unordered."""
        return _askable(self._agents.keys(), remit, card)

    @property
    def index(self) -> Index:
        """The search index of the cards of all registered agents. Reading this property adds the cards that are not
        indexed yet."""
        while self._unread:
            self._index.add(self._unread.pop())
        return self._index


def is_interactive() -> bool:
    """Whether this is a notebook or a prompt, where a definition that runs again replaces the earlier one."""
    return hasattr(sys, "ps1")


def askable(names: AbstractSet[str], remit: Remit, card: Card) -> tuple[str, ...]:
    """Return those of these agents that a holder may ask, by name."""
    return tuple(sorted(_askable(names, remit, card)))


def _askable(names: AbstractSet[str], remit: Remit, card: Card) -> frozenset[str]:
    """Return those of these agents that a holder may ask: its card, the bounds and the chain must all agree."""
    ceiling, chain = remit.bounds.agents, remit.chain.hops
    wanted = frozenset(names if card.asks is ANY else card.asks & names)
    allowed = wanted if ceiling is ANY else wanted & ceiling
    return allowed.difference((remit.holder,), [hop.asker for hop in chain], [hop.holder for hop in chain])

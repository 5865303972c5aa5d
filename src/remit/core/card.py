"""Agent cards: the static description of an agent. Its rights in one run come from the remit."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from remit.core import allow, scope
from remit.core.allow import ANY, NONE, Names, NamesGiven, names_data, names_restored
from remit.core.checks import whole, yes_or_no
from remit.core.records import dataclass
from remit.core.scope import NOTHING, Sees, SeesGiven, memory_of
from remit.core.toolgroups import tools
from remit.core.values import Json, canonical, plain
from remit.errors import BadInput

TEXT_LIMIT: Final = 65_536  # characters of a role, and of instructions
RESERVED: Final = frozenset(("person", "plan"))  # remit signs lines with these


@dataclass(frozen=True, slots=True)
class Card:
    """The description of an agent. A list that is left out is empty, and an empty list allows nothing: an agent without
    `asks` can delegate to no agent.

    `can` lists its capabilities, in a few words each. `asks` lists the agents it may delegate to ("*" for all). `reads`
    and `writes` are the context it works with, next to its own memory. `tools` are the tools it uses; `deny` are
    tools it never uses, even if an asker passes them. `concurrency` is the number of tasks it runs at once. With
    `trusted_output` its results and entries are trusted, even if it has read untrusted input: set it for an agent that
    checks its input. With `needs_approval` a person must approve every delegation to it. With `review` a person
    approves, edits or sends back each of its results before the asker gets it. With `ask_person` its model may ask a
    person. `instructions` are the system prompt of its model; `find` searches them too.
    """

    name: str
    role: str = ""
    can: tuple[str, ...] = ()
    asks: Names = NONE
    reads: Sees = NOTHING
    writes: Sees = NOTHING
    tools: Names = NONE
    deny: Names = NONE
    concurrency: int | None = None
    trusted_output: bool = False
    needs_approval: bool = False
    instructions: str = ""
    ask_person: bool = False
    review: bool = False

    if TYPE_CHECKING:  # what callers may pass; stored in one normal form

        def __init__(
            self,
            name: str,
            role: str = "",
            *,
            can: str | Iterable[str] = (),
            asks: NamesGiven = NONE,
            reads: SeesGiven = NOTHING,
            writes: SeesGiven = NOTHING,
            tools: NamesGiven = NONE,
            deny: NamesGiven = NONE,
            concurrency: int | None = None,
            trusted_output: bool = False,
            needs_approval: bool = False,
            instructions: str = "",
            ask_person: bool = False,
            review: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "name", canonical(self.name))
        put(self, "role", plain(self.role, "a role", TEXT_LIMIT, empty=True))
        put(self, "can", _capabilities(self.can))
        put(self, "asks", allow.agents(self.asks, "asks"))
        put(self, "reads", scope.scopes(self.reads, "reads"))
        put(self, "writes", scope.scopes(self.writes, "writes"))
        put(self, "tools", tools(self.tools))
        put(self, "deny", tools(self.deny, "deny"))
        put(self, "concurrency", whole(self.concurrency, "concurrency", least=1))
        yes_or_no(self.trusted_output, "trusted_output")
        yes_or_no(self.needs_approval, "needs_approval")
        yes_or_no(self.ask_person, "ask_person")
        yes_or_no(self.review, "review")
        put(self, "instructions", plain(self.instructions, "the text of instructions", TEXT_LIMIT, empty=True))

    @property
    def memory(self) -> str:
        """The namespace of this agent's own memory, which it can always read."""
        return memory_of(self.name).namespace

    @property
    def data(self) -> dict[str, Json]:
        """The card as JSON, for events and for `restored`."""
        return {
            "name": self.name,
            "role": self.role,
            "can": [*self.can],
            "asks": names_data(self.asks),
            "reads": [*scope.scope_texts(self.reads)],
            "writes": [*scope.scope_texts(self.writes)],
            "tools": names_data(self.tools),
            "deny": names_data(self.deny),
            "concurrency": self.concurrency,
            "trusted_output": self.trusted_output,
            "needs_approval": self.needs_approval,
            "instructions": self.instructions,
            "ask_person": self.ask_person,
            **({"review": True} if self.review else {}),
        }


def restored(data: dict[str, Json]) -> Card:
    """Return the card that `data` describes."""
    return Card(
        name=cast("str", data["name"]),
        role=cast("str", data["role"]),
        can=tuple(cast("list[str]", data["can"])),
        asks=names_restored(data["asks"]),
        reads=scope.restored(cast("list[str]", data["reads"])),
        writes=scope.restored(cast("list[str]", data["writes"])),
        tools=names_restored(data["tools"]),
        deny=names_restored(data["deny"]),
        concurrency=cast("int | None", data["concurrency"]),
        trusted_output=cast("bool", data["trusted_output"]),
        needs_approval=cast("bool", data.get("needs_approval", False)),  # missing in older cards
        instructions=cast("str", data.get("instructions", "")),  # missing in older cards
        ask_person=cast("bool", data.get("ask_person", False)),
        review=cast("bool", data.get("review", False)),
    )


def must_be_free(name: str) -> None:
    """Raise `BadInput` for a name that remit itself uses in the journal in the place of an agent."""
    if name in RESERVED:
        raise BadInput(f"no agent can be called '{name}': the journal uses that for a {name}; pick another name")


def _capabilities(given: object) -> tuple[str, ...]:
    """Return the capabilities without duplicates: in the order given, a set in sorted order. "*" must stand alone and
    means everything."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        items: tuple[object, ...] = (given,)
    else:
        listed = list(cast("Iterable[object]", given))
        items = tuple(sorted(listed, key=str) if isinstance(given, set | frozenset) else listed)
    if items in (("*",), (ANY,)):
        return ("*",)
    return tuple(dict.fromkeys(plain(plain(item, "a capability", 200).strip(), "a capability", 200) for item in items))

"""Cards: what an agent is, as opposed to what it may do this time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from remit.core import allow, scope
from remit.core.allow import ANY, NONE, Names, NamesGiven, names_data, names_restored
from remit.core.checks import whole, yes_or_no
from remit.core.scope import NOTHING, Sees, SeesGiven, memory_of
from remit.core.text import canonical, plain
from remit.core.toolgroups import tools
from remit.core.values import Json
from remit.errors import BadInput

TEXT_LIMIT: Final = 65_536  # characters of a role, and of instructions
RESERVED: Final = frozenset(("person", "plan"))  # a line signed with one of these is not an agent's


@dataclass(frozen=True, slots=True)
class Card:
    """Lists left out are empty, and empty means nothing: an agent asks no one unless its card names them.

    `can` is what it can do, in a few words each; `asks` whom it may ask ("*" for anyone); `reads` and `writes`
    which context it is made for, besides its own memory; `tools` what it works with, `denies` what it never uses,
    whoever passes it; `concurrency` how many tasks it takes at once. An agent that `vouches` has checked what it passes
    on: what it answers and writes is from inside, whatever it took in. With `approve` a person is asked before it works
    for another agent; with `ask_person` its model may ask a person itself. `instructions` is how it goes about its
    work, as its model is told: it is found by them too.
    """

    name: str
    role: str = ""
    can: tuple[str, ...] = ()
    asks: Names = NONE
    reads: Sees = NOTHING
    writes: Sees = NOTHING
    tools: Names = NONE
    denies: Names = NONE
    concurrency: int | None = None
    vouches: bool = False
    approve: bool = False
    instructions: str = ""
    ask_person: bool = False

    if TYPE_CHECKING:  # what people may write; inside there is one form of each

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
            denies: NamesGiven = NONE,
            concurrency: int | None = None,
            vouches: bool = False,
            approve: bool = False,
            instructions: str = "",
            ask_person: bool = False,
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
        put(self, "denies", tools(self.denies, "denies"))
        put(self, "concurrency", whole(self.concurrency, "concurrency", least=1))
        yes_or_no(self.vouches, "vouches")
        yes_or_no(self.approve, "approve")
        yes_or_no(self.ask_person, "ask_person")
        put(self, "instructions", plain(self.instructions, "the text of instructions", TEXT_LIMIT, empty=True))

    @property
    def memory(self) -> str:
        """The namespace this agent always reads: its own memory."""
        return memory_of(self.name).namespace

    @property
    def data(self) -> dict[str, Json]:
        """The card as JSON, for events and for `restored`."""
        return {
            "name": self.name,
            "role": self.role,
            "can": [*self.can],
            "asks": names_data(self.asks),
            "reads": [*scope.spelled(self.reads)],
            "writes": [*scope.spelled(self.writes)],
            "tools": names_data(self.tools),
            "denies": names_data(self.denies),
            "concurrency": self.concurrency,
            "vouches": self.vouches,
            "approve": self.approve,
            "instructions": self.instructions,
            "ask_person": self.ask_person,
        }


def restored(data: dict[str, Json]) -> Card:
    """Make the card that `data` describes."""
    return Card(
        name=cast("str", data["name"]),
        role=cast("str", data["role"]),
        can=tuple(cast("list[str]", data["can"])),
        asks=names_restored(data["asks"]),
        reads=scope.restored(cast("list[str]", data["reads"])),
        writes=scope.restored(cast("list[str]", data["writes"])),
        tools=names_restored(data["tools"]),
        denies=names_restored(data["denies"]),
        concurrency=cast("int | None", data["concurrency"]),
        vouches=cast("bool", data["vouches"]),
        approve=cast("bool", data.get("approve", False)),  # cards of before had none
        instructions=cast("str", data.get("instructions", "")),  # nor any of these
        ask_person=cast("bool", data.get("ask_person", False)),
    )


def must_be_free(name: str) -> None:
    """Refuse a name under which something else than an agent is shown."""
    if name in RESERVED:
        raise BadInput(f"no agent can be called '{name}': that is how what a {name} does is shown; pick another name")


def _capabilities(given: object) -> tuple[str, ...]:
    """Read capabilities in the order written, a set in sorted order; each once. "*" alone is everything."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        items: tuple[object, ...] = (given,)
    else:
        listed = list(cast("Iterable[object]", given))
        items = tuple(sorted(listed, key=str) if isinstance(given, set | frozenset) else listed)
    if items in (("*",), (ANY,)):
        return ("*",)
    return tuple(dict.fromkeys(plain(plain(item, "a capability", 200).strip(), "a capability", 200) for item in items))

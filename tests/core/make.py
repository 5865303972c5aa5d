"""Makers of core values for the tests, and strategies that draw them at random.

The alphabets are small on purpose: values drawn from them meet, nest and collide often.
"""

from hypothesis import strategies as st

from remit.core.allow import ANY, NONE
from remit.core.bounds import TOP, Bounds
from remit.core.entry import Draft, Entry, Writer, after_write
from remit.core.events import NO_STAMP, Event, Head, Stamp, Unsealed, seal
from remit.core.kinds.tasks import Claim, Queued, Requeue
from remit.core.kinds.tasks import claimed as claimed_event
from remit.core.kinds.tasks import moved as moved_event
from remit.core.kinds.tasks import requeued as requeued_event
from remit.core.kinds.tasks import submitted as submitted_event
from remit.core.prices import dollars
from remit.core.remit import NO_RIGHTS, Origin, Pass, Remit, begin, derive, place
from remit.core.scope import Scope
from remit.core.values import encode

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
UNTIL = NOW + 300 * SECOND

# --- values ------------------------------------------------------------------------------------


def first_remit(to: str = "lead", *, within: Bounds = TOP, **passed: object) -> Remit:
    """The remit of a run's first holder; a person passes it everything to see, to write and to use."""
    wish = Pass(to, "build it", within=within, **{"sees": ANY, "writes": ANY, "tools": ANY, **passed})
    return begin(Origin("t1", "home", "s1"), wish, TOP, UNTIL)


def remit_along(*names: str, within: Bounds = TOP) -> Remit:
    """The remit of the last of these agents, each of whom was asked by the one before."""
    found = first_remit(names[0], within=within)
    for number, name in enumerate(names[1:], start=2):
        found = derive(found, Pass(name, f"part {number}"), f"t{number}", NO_RIGHTS, UNTIL)
    return found


def entry(namespace: str = "codebase", key: str = "auth", value: object = "MVC", **how: object) -> Entry:
    """A new entry; `by` and `now` say who wrote it and when, the rest is how the draft says it."""
    by = how.pop("by", Writer("coder"))
    now = how.pop("now", NOW)
    return after_write(None, Draft(namespace, key, value, **how), by, now)


def journal(*unsealed: Unsealed, stamps: tuple[Stamp, ...] = ()) -> list[Event]:
    """The events in their places, each sealed after the one before."""
    events: list[Event] = []
    head = Head()
    for index, fact in enumerate(unsealed):
        stamp = stamps[index] if index < len(stamps) else NO_STAMP
        event = seal(fact, encode(fact.data), "home", head, stamp)
        events.append(event)
        head = Head(event.seq, event.hash)
    return events


# --- tasks in a queue --------------------------------------------------------------------------


def submitted(remit: Remit, at: int = NOW, asked_how: str = "submit", **how: object) -> Unsealed:
    return submitted_event(remit, at, Queued(asked_how, 260 * SECOND, 4, at, **how))


def claimed(remit: Remit, at: int, attempt: int = 1, worker: str = "w1") -> Unsealed:
    return claimed_event(place(remit), remit.holder, at, Claim(worker, attempt, attempt))


def moved(remit: Remit, word: str, at: int, **data: object) -> Unsealed:
    return moved_event(f"task.{word}", place(remit), remit.holder, at, data)


def requeued(remit: Remit, word: str, at: int, attempt: int = 1, **data: object) -> Unsealed:
    rest = Requeue("", attempt + 1, at + SECOND, attempt, attempt)
    return requeued_event(f"task.{word}", place(remit), remit.holder, at, rest, data)


# --- strategies --------------------------------------------------------------------------------

AGENTS = ("lead", "coder", "reviewer", "tester", "writer")
TOOLS = ("read_file", "exec", "web_search")
NAMESPACES = ("acme", "acme-corp", "a%")
# Wildcards of SQL and of shells, quotes, and one letter composed and decomposed.
LETTERS = ("a", "A", "%", "_", "\\", "*", "'", '"', "\u00e9", "e\u0301")

agent_names = st.sampled_from(AGENTS)
tool_names = st.sampled_from(TOOLS)
namespaces = st.sampled_from(NAMESPACES)
keys = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=3).map("".join)
prefixes = st.lists(st.sampled_from(LETTERS), max_size=2).map("".join)

scopes = st.one_of(
    st.builds(Scope, namespaces),
    st.builds(Scope, namespaces, prefix=prefixes),
    st.builds(Scope, namespaces, key=keys),
    st.builds(Scope, namespaces, key=keys, version=st.integers(1, 2)),
)
scope_sets = st.frozensets(scopes, max_size=4)
agent_sets = st.just(ANY) | st.frozensets(agent_names, max_size=4)
tool_sets = st.just(ANY) | st.frozensets(tool_names, max_size=3)


def figures(low: int = 0, high: int = 5) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(low, high)


bounds = st.builds(
    Bounds,
    agents=agent_sets,
    tools=tool_sets,
    sees=st.just(ANY) | scope_sets,
    writes=st.just(ANY) | scope_sets,
    depth=figures(),
    deadline=figures(NOW, NOW + 5),
    credits=st.none() | st.integers(0, 5).map(dollars),
    tokens=figures(),
)

wishes = st.builds(
    Pass,
    agent_names,
    st.just("a part of it"),
    sees=st.just(ANY) | scope_sets,
    writes=st.just(ANY) | scope_sets,
    tools=st.just(NONE) | tool_sets,
    within=st.just(TOP) | bounds,
    timeout=st.integers(1, 600),
)

# Everything but NUL and half a surrogate pair, which are refused.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)

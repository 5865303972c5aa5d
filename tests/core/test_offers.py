"""Which tools and verbs a model is shown."""

import pytest

from remit.core.allow import ANY
from remit.core.offers import Offers, Room, hidden
from remit.core.remit import Kit

ASKING = {"call_agent", "call_agent_async", "spawn_agent"}
LOOKING = {"check_delegation_status", "cancel_delegation"}


@pytest.mark.rule("verbs.offered")
@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (Room(), set()),
        (Room(askable=False), ASKING | LOOKING | {"handoff", "list_agents"}),
        (Room(deeper=False), ASKING | LOOKING),
        (Room(deeper=False, handoffs=False), ASKING | LOOKING | {"handoff", "list_agents"}),
        (Room(tasks=False), ASKING),
        (Room(tasks=False, handoffs=False), ASKING | {"handoff", "list_agents"}),
        (Room(handoffs=False), {"handoff"}),
        (Room(spawns=False), {"spawn_agent"}),
        (Room(reads=False), {"recall"}),
        (Room(writes=False), {"remember"}),
        (Room(board=False), {"blackboard"}),
        (Room(person=False), {"ask_person"}),
    ],
)
def test_verbs_that_cannot_succeed_are_hidden(room: Room, expected: set[str]):
    assert hidden(room) == expected


@pytest.mark.rule("tools.shown")
def test_a_tool_is_shown_if_it_may_be_used_and_a_verb_if_it_can_succeed_too():
    offers = Offers(Kit(frozenset(("add", "handoff", "recall"))), frozenset(("handoff",)), frozenset(("web_search",)))
    assert [name for name in ("add", "exec", "handoff", "recall") if offers.shows(name)] == ["add", "recall"]
    assert (offers.at_provider("web_search"), offers.at_provider("code")) == (False, True)
    assert not Offers(Kit(ANY, frozenset(("exec",)))).shows("exec")


@pytest.mark.rule("tools.shown")
def test_all_is_shown_where_nothing_is_denied_or_hidden():
    every = frozenset(("look", "recall"))
    assert Offers(Kit(ANY)).shows_all(every)
    assert not Offers(Kit(ANY), frozenset(("recall",))).shows_all(every)
    assert not Offers(Kit(ANY, frozenset(("look",)))).shows_all(every)
    assert not Offers(Kit(every)).shows_all(every)

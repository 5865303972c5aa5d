"""Draws the life of an attempt by trying each input in each state, so that the diagram cannot be out of date."""

from collections.abc import Callable
from typing import Final

from remit.core.life import Life, State

_INPUTS: Final[dict[str, Callable[[Life], object]]] = {
    "begin": lambda life: life.begin(0, 10, 10),
    "wait": Life.wait,
    "go on": Life.go_on,
    "ask": lambda life: life.ask(1),
    "answered": lambda life: life.answered(1),
    "time is up": lambda life: life.expire(10),
    "release": Life.release,
    "fail": lambda life: life.fail(RuntimeError()),
    "cancel": lambda life: life.cancel("no longer needed"),
    "end": Life.end,
}
# The inputs that lead to each state.
_WAYS: Final[dict[State, tuple[str, ...]]] = {
    "ready": (),
    "running": ("begin",),
    "waiting": ("begin", "wait"),
    "asking": ("begin", "ask"),
    "expired": ("begin", "time is up"),
    "released": ("begin", "release"),
    "failed": ("begin", "fail"),
    "cancelled": ("begin", "cancel"),
    "over": ("begin", "end"),
}
_ONLY_AFTER: Final = {"go on": "wait", "answered": "ask", "wait": "begin", "ask": "begin"}
_AT_WORK: Final[tuple[State, ...]] = ("ready", "running", "waiting", "asking")  # drawn as one box


def mermaid() -> str:
    """Draw the automaton; an arrow out of the box stands for one from each state in it."""
    tried = {state: _transitions(state) for state in _WAYS}
    common = {
        name: to
        for name, to in tried["ready"].items()
        if to not in _AT_WORK and all(tried[state].get(name) == to for state in _AT_WORK)
    }
    inside = [
        f"        {arrow}"
        for state in _AT_WORK
        for arrow in _arrows(state, {name: to for name, to in tried[state].items() if name not in common})
    ]
    stops = [f"    {arrow}" for state in _WAYS if state not in _AT_WORK for arrow in _arrows(state, tried[state])]
    lines = ["stateDiagram-v2", "    state at_work {", "        [*] --> ready", *inside, "    }"]
    return (
        "\n".join([*lines, *(f"    {arrow}" for arrow in _arrows("at_work", common)), *stops, "    over --> [*]"])
        + "\n"
    )


def _transitions(state: State) -> dict[str, State]:
    """Return the state that each input leads to from this one, if it is another."""
    way = _WAYS[state]
    found: dict[str, State] = {}
    for name in _INPUTS:
        if (name == "begin" and way) or (name in _ONLY_AFTER and _ONLY_AFTER[name] not in way):
            continue
        life = Life()
        for step in (*way, name):
            _INPUTS[step](life)
        if life.state != state:
            found[name] = life.state
    return found


def _arrows(state: str, moves: dict[str, State]) -> list[str]:
    """Draw several inputs between the same two states as one arrow."""
    names: dict[str, list[str]] = {}
    for name, to in moves.items():
        names.setdefault(to, []).append(name)
    return [f"{state} --> {to}: {', '.join(inputs)}" for to, inputs in names.items()]

"""Comparing what the model foresees with what remit does; making what differs small; one command to see it again."""

import re
from collections.abc import Callable
from copy import deepcopy

from oracle.generating import generated
from oracle.model import Log, foreseen
from oracle.playing import Player, Store
from oracle.scenario import Act, Answer, Scenario

_SAYS_NOTHING = re.compile(r"\b(?:skipped=False|\w+=None|key=''|prefix=''|within=Within\(\)|along=Along\(\))(?:, )?")


class Worlds:
    """Workspaces of one store, a new one for each scenario: opening a store costs more than a small scenario."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._count = 0

    async def differences(self, scenario: Scenario) -> list[str]:
        """Play a scenario and list where it goes other than foreseen."""
        self._count += 1
        expected = foreseen(scenario)
        player = Player(scenario, self._store, f"w{self._count}")
        try:
            happened = await player.played()
        except Exception as error:
            player.close()
            return [f"{type(error).__name__}: {error}"]
        return differences(expected, happened)

    async def small(self, scenario: Scenario) -> Scenario:
        """Drop acts for as long as it still goes other than foreseen."""
        best = deepcopy(scenario)
        reached = foreseen(best).keys() & best.turns.keys()
        far = {id(act) for text in best.turns.keys() - reached for turn in best.turns[text] for act in turn.acts}
        near = (index for index, act in enumerate(best.every_act()) if id(act) not in far)
        steps = [*map(_dropped, near), *map(_answered, sorted(reached))]
        for step in steps:
            fewer = deepcopy(best)
            if step(fewer) and await self.differences(fewer):
                best = fewer
        return best

    async def check(self, seed: int) -> None:
        """Raise if the scenario of this seed goes other than foreseen."""
        scenario = generated(seed)
        if first := await self.differences(scenario):
            small = await self.small(scenario)
            found = await self.differences(small) or ["only the first time:", *first]
            raise AssertionError(f"{told(small, found)}\n  PYTHONPATH=tests python -m oracle {seed}")


def differences(expected: Log, happened: Log) -> list[str]:
    found: list[str] = []
    for text in sorted(expected.keys() | happened.keys()):
        should, did = expected.get(text, []), happened.get(text, [])
        for line in range(max(len(should), len(did))):
            one = should[line] if line < len(should) else "nothing more"
            other = did[line] if line < len(did) else "nothing more"
            if one != other:
                found.append(f"{text or 'the person'}: foreseen {one}, happened {other}")
                break
    return found


def _dropped(index: int) -> Callable[[Scenario], bool]:
    def drop(scenario: Scenario) -> bool:
        act = scenario.every_act()[index]
        was, act.skipped = act.skipped, True
        return not was

    return drop


def _answered(text: str) -> Callable[[Scenario], bool]:
    def answer(scenario: Scenario) -> bool:
        for turn in scenario.turns[text]:
            turn.ending = Answer()
        return True

    return answer


def told(scenario: Scenario, different: list[str]) -> str:
    """Tell a scenario as a person reads it, without what was dropped and what was never reached."""

    def shown(acts: list[Act]) -> list[str]:
        return [f"    {number}: {act}" for number, act in enumerate(acts) if not act.skipped]

    lines = [f"seed {scenario.seed}", *different, f"ceiling {scenario.ceiling}", *map(str, scenario.team)]
    lines += ["the person:", *shown(scenario.acts)]
    for text in foreseen(scenario).keys() & scenario.turns.keys():
        for number, turn in enumerate(scenario.turns[text]):
            ending = f"{turn.ending}{', stopping first' if turn.stops else ''}"
            lines += [f"{text}, turn {number}, then {ending}:", *shown(turn.acts)]
    return "\n".join(_SAYS_NOTHING.sub("", line) for line in lines)

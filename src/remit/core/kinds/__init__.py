"""Event kinds, in one module per family: for each kind, the `TypedDict` of its data and the function that creates it.

`SHAPES` maps each kind to its TypedDict. `remit.core.events.read` returns the data of an event with its type.
"""

from typing import Final

from remit.core.kinds import models, money, people, sharing, tasks, upkeep, workspace

SHAPES: Final[dict[str, type]] = {
    kind: shape
    for family in (tasks, money, people, models, workspace, sharing, upkeep)
    for kind, shape in family.SHAPES.items()
}

"""What an owner does to a workspace, as opposed to what agents do in their tasks."""

from typing import Final, NamedTuple

from remit.core.text import NAME_LIMIT, plain
from remit.engine.ground import Ground

OP_LIMIT: Final = 200  # characters


class Act(NamedTuple):
    """An owner's act: under which operation, so that a repeated request is one act, and who asked for it."""

    op: str = ""
    by: str = ""

    def id(self, verb: str, ground: Ground) -> str:
        """Name the operation; without one it is an act of its own each time."""
        return f"{verb}/{self.op}" if self.op else ground.ids.new()


ONCE: Final = Act()


def act_of(op: str, by: str = "") -> Act:
    """Make the act of what an owner says."""
    return Act(plain(op, "op", OP_LIMIT, empty=True), plain(by, "by", NAME_LIMIT, empty=True))

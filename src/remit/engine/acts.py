"""What an owner does to a workspace, as opposed to what agents do in their tasks."""

from typing import Final, NamedTuple

from remit.engine.ground import Ground


class Act(NamedTuple):
    """An owner's act: under which operation, so that a repeated request is one act, and who asked for it."""

    op: str = ""
    by: str = ""

    def id(self, verb: str, ground: Ground) -> str:
        """Name the operation; without one it is an act of its own each time."""
        return f"{verb}/{self.op}" if self.op else ground.ids.new()


ONCE: Final = Act()

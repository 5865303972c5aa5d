"""Noticing that a newer remit has brought a store up to date while this process has it open."""

from remit.errors import NewerStore


class KnownSchema:
    """The newest schema that this remit knows. A store that has gone beyond it is not used any more: what an older
    remit writes there would not be what the newer one expects."""

    __slots__ = ("_newest", "_outgrown", "_where")

    def __init__(self, where: str, newest: int) -> None:
        self._where = where
        self._newest = newest
        self._outgrown = ""  # what to tell everyone, once it is so

    def saw(self, number: int) -> None:
        """Take note of the number that the store has now; refuse one that is newer, now and from now on."""
        if number > self._newest:
            self._outgrown = (
                f"{self._where} was brought to schema {number} by a newer remit while this process had it open, and "
                f"this remit knows up to {self._newest}: nothing more is read or written from here. "
                "Upgrade remit and start again"
            )
        self.check()

    def check(self) -> None:
        """Refuse a store that was seen to be newer."""
        if self._outgrown:
            raise NewerStore(self._outgrown)

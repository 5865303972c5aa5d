"""What no door leads to: the one place where tests reach inside.

`be_on_machine`: of a process on another machine only its silence tells that it is gone. On one machine there is no
other to be had, and no one but this test wants to pretend: a setting for it would be one that people could get wrong.
"""

from remit.engine.presence import peers


def be_on_machine(name: str) -> None:
    """Have this process believe, and tell others, that it runs on another machine."""
    peers._machine = lambda: name  # pyright: ignore[reportPrivateUsage]

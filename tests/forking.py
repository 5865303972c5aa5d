"""Forks for tests: a child that says what came of it, and that cannot hang a test."""

import os
import select
import signal
from collections.abc import Callable

PATIENCE = 30.0


def in_a_fork(work: Callable[[], object], patience: float = PATIENCE) -> str:
    """Do something in a forked process; gives back its answer as text, or what it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        answer = "nothing"
        try:
            answer = str(work())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, answer.encode())
            os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], patience)
    answer = os.read(reading, 65_536).decode() if ready else "it hangs"
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return answer

"""The reaper: a process between remit and a program. It ends every process that the program started, and then itself.

remit starts it as `python -I -S reaper.py FD NAME`. FD is one end of a socket; only remit holds the other end. remit
writes an order (command, environment, grace, whether this is Linux), then ASK or KILL. End of file means that remit is
gone. The reaper writes lines: `started PID`, `failed ERRNO`, `ended CODE`, `left PID ...`, `broken TEXT`.

On Linux the reaper is a child subreaper: a process whose parent has ended becomes a child of the reaper, whatever
session or group it has opened. No children left means that no descendant is left. Elsewhere the reaper knows the
process group of the program only.

This file runs alone and imports nothing of remit. `_signal` is `signal` without its enums, whose import would take
longer than all the rest.
"""

import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False  # importing typing takes too long
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

ASK, KILL = b"A", b"K"
PREFIX = 4  # bytes of the length prefix of an order

_SUBREAPER, _PARENT_DEATH = 36, 1  # of prctl
_WITHOUT_REMIT = 5.0  # seconds of grace if remit is gone: the task may already run elsewhere
_COLLECTED = 5.0  # seconds for parents to collect the killed processes
_CLOSED_BY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PAUSE, _LONGEST_PAUSE = 0.005, 0.1


class Reaper:
    """One program and all its descendants."""

    def __init__(self, wire: int) -> None:
        self._wire = wire
        self._program = 0
        self._code: int | None = None
        self._stopped = False  # by remit, by a signal, or because remit is gone
        self._deadline = 0.0
        self._grace = 0.0
        self._asked: set[tuple[int, str]] = set()
        self._refused: list[int] = []  # processes of other users
        self._whole = False  # all descendants, or the process group only
        self._inherited = {number: signal.getsignal(number) for number in _CLOSED_BY}
        self._awake, self._waking = os.pipe()
        self._poll = select.poll()
        self._poll.register(wire, select.POLLIN)
        self._poll.register(self._awake, select.POLLIN)

    def run(self) -> None:
        order = self._order()
        if order is None:  # remit cancelled or is gone: nothing was started
            return
        argv, env, self._grace, linux = order
        self._whole = linux and os.path.exists("/proc/self/stat")  # noqa: PTH110 - importing pathlib takes too long
        self._listen()
        if self._whole:
            _control(_SUBREAPER, 1)
        if problem := self._start(argv, env):
            self._tell("failed", problem)
            return
        self._tell("started", self._program)
        while self._reap() and self._code is None and not self._stopped:
            self._wait(None)
        self._clear()
        if self._refused:
            self._tell("left", *self._refused)
        if self._code is not None:
            self._tell("ended", self._code)

    def _order(self) -> tuple[list[bytes], dict[bytes, bytes], float, bool] | None:
        size = self._read(PREFIX)
        data = self._read(int.from_bytes(size, "big")) if size else b""
        return marshal.loads(data) if data else None  # noqa: S302 - remit wrote it, in the same Python

    def _read(self, size: int) -> bytes:
        """Return that many bytes, or none if the other end is closed first."""
        found = b""
        while len(found) < size:
            if not (more := os.read(self._wire, size - len(found))):
                return b""
            found += more
        return found

    def _tell(self, *words: object) -> None:
        try:
            os.write(self._wire, (" ".join(map(str, words)) + "\n").encode())
        except OSError:  # remit is gone, which the end of file also shows
            self._stopped = True

    def _listen(self) -> None:
        os.set_blocking(self._waking, False)
        signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, self._wake)
        for number in _CLOSED_BY:
            signal.signal(number, self._stop)

    def _stop(self, *_: object) -> None:
        self._stopped = True

    def _wake(self, *_: object) -> None:
        """Do nothing: the byte in the wakeup pipe ends the wait."""

    def _start(self, argv: list[bytes], env: dict[bytes, bytes]) -> int:
        """Start the program and close our copies of its streams. Return 0, or the error number if it cannot be
        started."""
        reading, writing = os.pipe()
        ours = os.getpid()
        self._program = os.fork()
        if not self._program:
            try:
                self._become_program(ours, argv, env)
            except OSError as error:
                os.write(writing, str(error.errno).encode())
            finally:
                os._exit(127)
        os.close(writing)
        problem = os.read(reading, 16)
        os.close(reading)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # otherwise readers would not see the program close one of them
            os.dup2(nothing, stream)
        os.close(nothing)
        return int(problem or 0)

    def _become_program(self, reaper: int, argv: list[bytes], env: dict[bytes, bytes]) -> None:
        os.setsid()  # a new session, so that `kill 0` in a script does not reach the reaper
        if self._whole:
            _control(_PARENT_DEATH, signal.SIGKILL)
            if os.getppid() != reaper:
                return
        signal.set_wakeup_fd(-1)
        for number, before in self._inherited.items():
            signal.signal(number, signal.SIG_IGN if before == signal.SIG_IGN else signal.SIG_DFL)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores the last two
            signal.signal(number, signal.SIG_DFL)
        _replace_with(argv, env)

    # -- ending -----------------------------------------------------------------------------------------

    def _clear(self) -> None:
        """Send SIGTERM to every descendant, and SIGKILL to those that are left after the grace, until none is left."""
        self._deadline = time.monotonic() + self._grace
        pause, asked_at_end = _PAUSE, False
        if self._grace:
            self._ask()
        while self._reap():
            if time.monotonic() >= self._deadline:
                if not self._kill():
                    return
                pause = _PAUSE
            elif self._code is not None and not asked_at_end:
                # The program may have started others during its cleanup. They have not been asked to end yet.
                asked_at_end = True
                self._ask()
            self._wait(min(pause, max(0.0, self._deadline - time.monotonic()) or pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _reap(self) -> bool:
        """Collect ended processes. Return whether a process is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                if pid == self._program:
                    self._code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return not self._whole and _signal_group(self._program, 0)

    def _wait(self, seconds: float | None) -> None:
        for fd, _ in self._poll.poll(None if seconds is None else max(1, int(1_000 * min(seconds, 1_000)))):
            if fd == self._awake:
                os.read(self._awake, 4_096)
            else:
                self._hear()

    def _hear(self) -> None:
        try:
            heard = os.read(self._wire, 64)
        except OSError:
            heard = b""
        self._stopped = True
        if not heard:
            self._poll.unregister(self._wire)
            self._shorten(_WITHOUT_REMIT)
        elif KILL in heard:
            self._shorten(0.0)

    def _shorten(self, grace: float) -> None:
        self._grace = min(self._grace, grace)
        if self._deadline:
            self._deadline = min(self._deadline, time.monotonic() + grace)

    def _ask(self) -> None:
        """Send SIGTERM to each process once: a second one makes many programs abort their cleanup."""
        if not self._whole:
            _signal_group(self._program, signal.SIGTERM)
            return
        for pid, (state, _, born) in _below(os.getpid()).items():
            if (pid, born) not in self._asked:
                self._asked.add((pid, born))
                _signal_one(pid, signal.SIGTERM)
                if state == "T":  # a stopped process would not receive it
                    _signal_one(pid, signal.SIGCONT)

    def _kill(self) -> bool:
        """Send SIGKILL to every process. Return whether to wait for their end and call this again: not if all that are
        left belong to other users. If only the process group is known, not if it is empty, nor five seconds after the
        deadline.

        A signal to a group reaches all its processes at once, including those that are being forked.
        """
        if not self._whole:
            # Killed processes count until their parent collects them, which may never happen in a container.
            patient = time.monotonic() < self._deadline + _COLLECTED
            return _signal_group(self._program, signal.SIGKILL) and patient
        below = {pid: found for pid, found in _below(os.getpid()).items() if found[0] not in "ZX"}
        for group in {group for _, group, _ in below.values()} - {os.getpgrp()}:
            _signal_group(group, signal.SIGKILL)
        self._refused = [pid for pid in below if not _signal_one(pid, signal.SIGKILL)]
        return not below or len(self._refused) < len(below)


def _below(root: int) -> dict[int, tuple[str, int, str]]:
    """Return the descendants of a process, each with its state, its process group and the time of its birth."""
    children: dict[int, list[int]] = {}
    found: dict[int, tuple[str, int, str]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb", 0) as file:  # noqa: PTH123
                    fields = file.read().rpartition(b")")[2].decode().split()
            except OSError:  # the process is gone
                continue
            if fields:
                found[int(name)] = fields[0], int(fields[2]), fields[19]
                children.setdefault(int(fields[1]), []).append(int(name))
    below: list[int] = children.get(root, [])
    for pid in below:
        below.extend(children.get(pid, ()))
    return {pid: found[pid] for pid in below}


def _signal_one(pid: int, number: int) -> bool:
    """Send a signal. Return whether this user may; a process that is gone counts as reached."""
    try:
        os.kill(pid, number)
    except PermissionError:
        return False
    except ProcessLookupError:
        pass
    return True


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a group. Return whether a process got it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _control(option: int, value: int) -> None:
    import ctypes  # noqa: PLC0415 - takes three milliseconds and is needed on Linux only

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def _replace_with(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Become the program, as `execvpe` does, which would import more."""
    places = [b""] if b"/" in argv[0] else env.get(b"PATH", os.defpath.encode()).split(b":")
    worst: OSError | None = None
    for place in places:
        try:
            os.execve(os.path.join(place, argv[0]), argv, env)  # noqa: PTH118, S606
        except OSError as error:
            if worst is None or not isinstance(error, FileNotFoundError | NotADirectoryError):
                worst = error
    assert worst is not None
    raise worst


def main() -> None:
    wire = int(sys.argv[1])
    os.set_inheritable(wire, False)
    try:
        Reaper(wire).run()
    except BaseException as error:  # noqa: BLE001 - reported to remit
        os.write(wire, f"broken {type(error).__name__}: {error}\n".encode(errors="replace"))
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()

"""A command that stands in for `remit`, or for another program in Python: what it is asked is done by a fork of a
process that has imported it.

Python takes longer to start and import than most commands take to do their work. The stand-in imports next to nothing:
it hands its words, its folder, its environment and its three streams over a socket, passes on the signals that it gets,
and ends as the fork does. Whoever ends the stand-in ends the fork.
"""

import json
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

from programs import Forked

_COMMAND = """#!{python} -IS
import json, os, signal, socket, struct, sys

asked = json.dumps([[*{words!r}, *sys.argv[1:]], os.getcwd(), dict(os.environ)]).encode()
desk = socket.socket(socket.AF_UNIX)
desk.connect({address!r})
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: desk.send(bytes([number])))
socket.send_fds(desk, [struct.pack("!I", len(asked))], [0, 1, 2])
desk.sendall(asked)
[code] = struct.unpack("!i", desk.recv(4))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@contextmanager
def standing_in(folder: Path, *words: str, name: str = "remit") -> Iterator[Path]:
    """Put a command into a folder for as long as this lasts: `remit`, or what Python runs with these words."""
    with tempfile.TemporaryDirectory(prefix="remit-desk-") as home:  # short: a socket's path has at most 107 characters
        address = f"{home}/desk"
        desk = socket.socket(socket.AF_UNIX)
        desk.bind(address)
        desk.listen()
        threading.Thread(target=_answer, args=[desk], daemon=True).start()
        command = folder / name
        command.write_text(_COMMAND.format(python=sys.executable, address=address, words=words or ("-m", "remit.cli")))
        command.chmod(0o755)
        try:
            yield command
        finally:
            desk.shutdown(socket.SHUT_RDWR)
            desk.close()


def _answer(desk: socket.socket) -> None:
    with suppress(OSError):  # it is closed
        while True:
            threading.Thread(target=_do, args=[desk.accept()[0]], daemon=True).start()


def _do(asker: socket.socket) -> None:
    with asker, suppress(ConnectionError):
        head, streams, _, _ = socket.recv_fds(asker, 4, 3)
        if len(head) < 4:  # whoever connected has gone, such as a fork of the tests
            return
        words, folder, environment = json.loads(_read(asker, struct.unpack("!I", head)[0]))
        ends = [Connection(stream) for stream in streams]
        fork = Forked(tuple(words), folder, environment, *ends)
        for end in ends:
            end.close()
        while fork.poll() is None:
            ready, _, _ = select.select([asker, fork.sentinel], [], [])
            if asker in ready:
                number = asker.recv(1)
                with suppress(ProcessLookupError):  # it has ended just now
                    os.kill(fork.pid, number[0] if number else signal.SIGKILL)
                if not number:
                    fork.wait()
        asker.sendall(struct.pack("!i", fork.wait()))


def _read(asker: socket.socket, length: int) -> bytes:
    whole = b""
    while len(whole) < length and (part := asker.recv(length - len(whole))):
        whole += part
    return whole

"""`remit keys`: a workspace's own provider keys, encrypted. No key is ever printed."""

import asyncio
import getpass
import sys

from rich.text import Text

from remit.adapters.vault import FILE_VARIABLE, VARIABLE, fresh_master
from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, aside, emit, opened_workspace, out, typed
from remit.cli.terminal import Rows, moment
from remit.core.secret import LONGEST, Secret
from remit.core.values import endpoint
from remit.errors import NotFound
from remit.ports import KeyInfo
from remit.report import wire
from remit.report.figures import count
from remit.report.printable import escaped


def listing(*, place: Where = HERE, json: AsJson = False) -> None:
    """List the workspace's provider keys: which master key encrypts each, and since when. No key is decrypted.

    Parameters
    ----------
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        keys = asyncio.run(workspace.keys.names())
    if json:
        emit([wire.key(key) for key in keys])
    elif not keys:
        out().print(Text(f"no keys stored; add one: {typed('remit keys set openai')}", "dim"))
    else:
        out().print(Rows(("key", "master key", "encrypted"), [_row(key) for key in keys], left=3))


def put(name: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Store a provider key, encrypted. Replaces the key of the same name.

    The key is read from a pipe, or prompted for without echo. It cannot be an argument: arguments appear in the shell
    history and in the process list.

    Parameters
    ----------
    name
        Name: the provider, such as openai, or the endpoint, such as openai@llm.example.com.
    json
        Print JSON.
    """
    secret = _read_key(name)
    with opened_workspace(place, create=True) as workspace:
        key = asyncio.run(workspace.keys.set(name, secret, **act.said))
    if json:
        emit(wire.key(key))
    else:
        out().print(Text(f"the key '{key.name}' is stored, encrypted with master key {key.key_id}"))


def remove(name: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Delete a provider key.

    Parameters
    ----------
    name
        Name of the key.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        gone = asyncio.run(workspace.keys.remove(name, **act.said))
    if not gone:
        raise NotFound(f"there is no key '{endpoint(name)}'; `remit keys ls` shows those there are")
    if json:
        emit({"name": endpoint(name), "removed": True})
    else:
        out().print(Text(f"the key '{endpoint(name)}' is deleted; revoke it at its provider too"))


def rotate(*, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Encrypt all keys again with the first of the given master keys.

    Parameters
    ----------
    json
        Print the number of keys as JSON.
    """
    with opened_workspace(place) as workspace:
        done = asyncio.run(workspace.keys.rotate(**act.said))
    if json:
        emit({"encrypted_again": done})
    elif done:
        out().print(
            Text(f"{count(done, 'key')} encrypted again; remove the older master keys when every store is done")
        )
    else:
        out().print(Text("every key is encrypted with the newest master key; nothing changed"))


def master() -> None:
    """Print a new master key.

    remit does not store it. If you lose it, you lose the keys that it encrypts. The instructions go to standard error,
    so `$(remit keys master)` is the master key alone.
    """
    sys.stdout.write(f"{fresh_master().reveal()}\n")
    sys.stdout.flush()
    aside().print(
        Text(
            f"Keep it apart from the store. Pass it to every process as {VARIABLE}, or in a file of mode 0600 "
            f"that {FILE_VARIABLE} names.\nTo replace it: put the new key first, then a comma and the old key; run "
            "`remit keys rotate` for each workspace; then remove the old key.",
            "dim",
        )
    )


def _read_key(name: str) -> Secret:
    """Return the key from a pipe, or prompt for it."""
    if sys.stdin.isatty():
        return Secret(getpass.getpass(f"the key of {escaped(name, 64)} (not shown): ").strip())
    # Decode without errors here: `Secret` refuses invalid text with a better message.
    return Secret(sys.stdin.buffer.read(LONGEST + 2).decode(errors="surrogateescape").strip())


def _row(key: KeyInfo) -> list[Text | str]:
    return [Text(escaped(key.name, 64), "bold"), key.key_id, moment(key.set_at)]

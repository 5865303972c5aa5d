"""A vault of master keys: AES-256-GCM, based on the cryptography package (`remit[keys]`).

The master keys are not in the database: they come from the environment, or from a file that only its owner can read. A
secret is encrypted together with its workspace and name, so a row that was moved elsewhere cannot be decrypted there.
"""

import hashlib
import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Protocol

from remit.core.secret import LONGEST, Secret
from remit.core.values import shown
from remit.errors import BadInput, StoreError
from remit.ports import Sealed

VARIABLE: Final = "REMIT_MASTER_KEY"
FILE_VARIABLE: Final = "REMIT_MASTER_KEY_FILE"

_FORM: Final = "remit-secret-1"
_MASTER: Final = 32  # bytes
_NONCE: Final = 12
_POSIX: Final = os.name == "posix"  # elsewhere the file mode has no permissions
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class _Aead(Protocol):
    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes) -> bytes: ...
    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes) -> bytes: ...


class MasterVault:
    """Encrypts with the first of several master keys, and decrypts with any of them.

    `masters` are 32 bytes each, in base64, separated by commas or line breaks. One is enough; during a rotation the old
    ones follow the new one.
    """

    def __init__(self, masters: Secret) -> None:
        if not isinstance(masters, Secret):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            masters = None
            raise BadInput('MasterVault takes a Secret, which nothing prints: MasterVault(Secret(os.environ["NAME"]))')
        aead = _aead()  # first, so that errors below have no master key in a local variable
        made = [_parse_master_key(text, aead) for text in _parts(masters)]
        wrong = [number for number, one in enumerate(made, 1) if one is None]
        if wrong:
            raise BadInput(
                f"master key {wrong[0]} of {len(made)} is not 32 bytes in base64; `remit keys master` makes one"
            )
        self._masters = dict(one for one in made if one is not None)
        if not self._masters:
            raise BadInput("no master key is given; `remit keys master` makes one")
        self.newest = next(iter(self._masters))

    def seal(self, workspace: str, name: str, secret: Secret) -> Sealed:
        """Return the secret, encrypted for this workspace and name with the first master key."""
        bound = _bound(workspace, name, self.newest)
        nonce = os.urandom(_NONCE)
        text = nonce + self._masters[self.newest].encrypt(nonce, secret.reveal().encode(), bound)
        # The purpose is stored in front, for error messages only. Decryption uses the expected purpose.
        return Sealed(self.newest, f"{b64encode(bound).decode()}.{b64encode(text).decode()}")

    def open(self, workspace: str, name: str, sealed: Sealed) -> Secret:
        """Return the secret that was encrypted for this workspace and name. Raise `StoreError` if it cannot be
        decrypted."""
        master = self._masters.get(sealed.key_id)
        if master is None:
            raise StoreError(
                f"the key {shown(name)} is encrypted with master key {shown(sealed.key_id)}, and the given master keys "
                f"are {', '.join(self._masters)}; add that one after the first in {VARIABLE}, or set the key again"
            )
        head, text = _taken_apart(sealed.text)
        _must_be_bound(head, workspace, name)
        try:
            bound = _bound(workspace, name, sealed.key_id)
            return Secret(master.decrypt(text[:_NONCE], text[_NONCE:], bound).decode())
        except (_cryptography("exceptions").InvalidTag, ValueError):
            raise StoreError(
                f"the encrypted key {shown(name)} has been changed in the store, so it is not used; set it again"
            ) from None


def from_environment() -> MasterVault:
    """Return the vault of the master keys in REMIT_MASTER_KEY, or in the file that REMIT_MASTER_KEY_FILE names. Raise
    `BadInput` if neither or both are set, or if the keys cannot be used."""
    text, path = bool(os.environ.get(VARIABLE)), os.environ.get(FILE_VARIABLE, "")
    if text and path:
        raise BadInput(f"{VARIABLE} and {FILE_VARIABLE} are both set; unset one of them")
    if text:
        return MasterVault(Secret(os.environ[VARIABLE]))
    if path:
        return MasterVault(_read(path))
    raise BadInput(
        f"keys and secrets are encrypted with a master key, and none is set: set {VARIABLE} to what `remit keys "
        f"master` prints, or {FILE_VARIABLE} to a file that has it"
    )


def fresh_master() -> Secret:
    """Return a new master key: 32 random bytes in base64."""
    return Secret(b64encode(os.urandom(_MASTER)).decode())


# -- master keys ---------------------------------------------------------------------------------------------


def _parts(masters: Secret) -> list[str]:
    return [line.strip() for line in masters.reveal().replace(",", "\n").splitlines() if line.strip()]


def _parse_master_key(text: str, aead: Callable[[bytes], _Aead]) -> tuple[str, _Aead] | None:
    """Return the id and the cipher of a master key, or None if the text is not a master key."""
    try:
        raw = b64decode(text, validate=True)
    except ValueError:
        return None
    if len(raw) != _MASTER:
        return None
    return hashlib.sha256(raw).hexdigest()[:8], aead(raw)


def _read(path: str) -> Secret:
    """Return the master keys in a file that only its owner can read. Raise `BadInput` otherwise."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "that is no path"
        raise BadInput(f"the file of {FILE_VARIABLE}, {shown(path)}, cannot be read: {why}") from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{FILE_VARIABLE} names {shown(path)}, which is not a file")
        if _POSIX and status.st_uid != os.geteuid():
            raise BadInput(f"{shown(path)} belongs to another user, who can read the key; create your own file")
        if _POSIX and status.st_mode & _OTHERS:
            raise BadInput(f"{shown(path)} can be used by others on this machine; run: chmod 600 {path}")
        return Secret(os.read(file, LONGEST + 1).decode(errors="replace"))
    finally:
        os.close(file)


def _aead() -> Callable[[bytes], _Aead]:
    return _cryptography("hazmat.primitives.ciphers.aead").AESGCM


def _cryptography(part: str) -> Any:
    """Return a module of the package; imported on first use, because few programs have keys of their own."""
    try:
        return import_module(f"cryptography.{part}")
    except ImportError:
        raise BadInput("encrypting keys needs the cryptography package: pip install 'remit[keys]'") from None


# -- the purpose of a secret ---------------------------------------------------------------------------------


def _bound(workspace: str, name: str, key_id: str) -> bytes:
    """Return the purpose of a secret as bytes. Each part is prefixed with its length, so that no two purposes have the
    same bytes."""
    parts = [part.encode() for part in (_FORM, workspace, name, key_id)]
    return b"".join(len(part).to_bytes(4) + part for part in parts)


def _taken_apart(text: str) -> tuple[list[str], bytes]:
    """Return the stated purpose of an encrypted secret and its bytes; both empty if the text cannot be read."""
    head, _, rest = text.partition(".")
    try:
        return _fields(b64decode(head, validate=True)), b64decode(rest, validate=True)
    except ValueError:
        return [], b""


def _fields(bound: bytes) -> list[str]:
    fields: list[str] = []
    while bound:
        size = int.from_bytes(bound[:4])
        fields.append(bound[4 : 4 + size].decode())
        bound = bound[4 + size :]
    return fields


def _must_be_bound(head: list[str], workspace: str, name: str) -> None:
    """Raise `StoreError` if `head`, the stated purpose of an encrypted secret, names another workspace or key. Anyone
    can change the stated purpose, so only decryption proves that a secret was not moved."""
    if len(head) < 3 or head[0] != _FORM:
        return
    if head[1] != workspace:
        raise StoreError(f"the key {shown(name)} was encrypted for another workspace, and can be decrypted only there")
    if head[2] != name:
        raise StoreError(
            f"the secret {shown(name)} was encrypted as the key {shown(head[2])}, and can be decrypted only as that"
        )

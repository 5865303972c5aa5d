"""Hooks: addresses outside that are sent events of a workspace, signed according to standardwebhooks.com."""

import base64
import hmac
from collections.abc import Collection, Sequence
from typing import Final

from remit.core.checks import items, meant
from remit.core.events import FAMILY
from remit.core.values import digest, shown
from remit.errors import BadInput

PREFIX: Final = "whsec_"
_PURPOSE: Final = b"remit-hook-1"


def wanted_kinds(given: object, known: Collection[str]) -> str:
    """Return the kinds of events that a hook wants, as `Hook.kinds` has them. Raise `BadInput` for a kind that is not
    among the known ones, or for none at all."""
    what = 'kinds is a list of kinds of events, such as ["task.completed", "question.*"]'
    names = items(given, what)
    families = {f"{kind.partition('.')[0]}{FAMILY}" for kind in known}
    for name in names:
        if not isinstance(name, str) or not (name in known or name in families):
            near = meant(name, sorted({*known, *families})) if isinstance(name, str) else ""
            raise BadInput(f"there is no kind of event {shown(name)}{near or '; docs/reference/events.md lists them'}")
    if not names:
        raise BadInput(f"a hook wants at least one kind of event: {what}")
    return " ".join(sorted({str(name) for name in names}))


def derived_secret(root: bytes, workspace: str, hook: str, generation: int) -> bytes:
    """Return one secret of a hook, derived from the signing key of the store. Each part is prefixed with its length, so
    that no two hooks have the same."""
    parts = (_PURPOSE, workspace.encode(), hook.encode(), str(generation).encode())
    return hmac.digest(root, b"".join(len(part).to_bytes(8, "big") + part for part in parts), "sha256")


def secret_text(secret: bytes) -> str:
    """Return a secret as receivers configure it: `whsec_` and base64."""
    return f"{PREFIX}{base64.b64encode(secret).decode()}"


def delivery_id(workspace: str, seq: int) -> str:
    """Return the `webhook-id` of an event. It is the same at every try, so that receivers can recognize doubles."""
    return f"{digest(workspace)}-{seq}"


def signed_headers(secrets: Sequence[bytes], message_id: str, stamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a signed message, with one signature for each secret. `stamp` is seconds since 1970."""
    said = f"{message_id}.{stamp}.".encode() + body
    signatures = [f"v1,{base64.b64encode(hmac.digest(one, said, 'sha256')).decode()}" for one in secrets]
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": " ".join(signatures),
    }

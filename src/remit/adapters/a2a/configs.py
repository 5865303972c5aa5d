"""Configurations of push notifications, as A2A clients send them: checking, storing and returning them."""

import re
from secrets import token_hex
from typing import Final

from a2a.types.a2a_pb2 import AuthenticationInfo, TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError, PushNotificationNotSupportedError

from remit.adapters.a2a.call import A2ACall
from remit.errors import BadInput, RemitError
from remit.runtime.pushes import Pushes, PushTarget
from remit.runtime.tasks import Status
from remit.runtime.workspace import opening_of

_NAME: Final = re.compile(r"[\x21-\x7e]{1,64}", re.ASCII)
_SCHEME: Final = re.compile(r"[A-Za-z0-9-]{1,32}", re.ASCII)
_SAID: Final = re.compile(r"[\x20-\x7e]{0,2000}", re.ASCII)  # what a header may hold
_ADDRESS: Final = "the address cannot be used: it is https, on a public host with a name, without a port of its own"


def check_config(call: A2ACall, config: TaskPushNotificationConfig) -> PushTarget:
    """Return the address and the credentials of a configuration. Raise `InvalidParamsError` if its id, scheme, token
    or credentials are not valid, `PushNotificationNotSupportedError` if this server cannot store credentials. The
    address is not checked here."""
    if not _pushes(call).are_possible:
        raise PushNotificationNotSupportedError
    name, auth = config.id or token_hex(8), config.authentication
    if not _NAME.fullmatch(name):
        raise InvalidParamsError("the id of a configuration has 1 to 64 characters, without spaces")
    if auth.scheme and not _SCHEME.fullmatch(auth.scheme):
        raise InvalidParamsError("the scheme of an authentication is one word, such as Bearer")
    if not _SAID.fullmatch(config.token) or not _SAID.fullmatch(auth.credentials):
        raise InvalidParamsError("a token and credentials are at most 2000 printable ASCII characters")
    caller = call.caller
    who = (caller.access, caller.by, call.agent, caller.may("approve"))
    return PushTarget(name, config.url, config.token, auth.scheme, auth.credentials, *who)


async def set_config(
    call: A2ACall, status: Status, config: TaskPushNotificationConfig, *, now: bool = False
) -> TaskPushNotificationConfig:
    """Store a configuration: its address is sent the state of the task when the task starts, asks a question or ends;
    with `now`, also at once. Return the stored configuration, without its secrets. Raise `InvalidParamsError` if the
    configuration or its address is not valid, `PushNotificationNotSupportedError` as `check_config` does."""
    target = check_config(call, config)
    try:
        return _without_secrets(status, await _pushes(call).set(status.id, status.run, target, now=now))
    except BadInput as error:  # its sentence may repeat the address
        raise InvalidParamsError(str(error) if "addresses" in str(error) else _ADDRESS) from None
    except RemitError as error:
        raise InvalidParamsError(str(error)) from None


async def configs_of(call: A2ACall, status: Status) -> list[TaskPushNotificationConfig]:
    """Return the configurations of a task's push notifications, without secrets. Raise
    `PushNotificationNotSupportedError` if this server cannot store credentials."""
    if not _pushes(call).are_possible:
        raise PushNotificationNotSupportedError
    return [_without_secrets(status, one) for one in await _pushes(call).list(status.id)]


async def remove_config(call: A2ACall, status: Status, name: str) -> None:
    """Delete a configuration of push notifications. If there is none of this name, do nothing. Raise
    `PushNotificationNotSupportedError` if this server cannot store credentials."""
    if not _pushes(call).are_possible:
        raise PushNotificationNotSupportedError
    await _pushes(call).remove(status.id, name)


def _pushes(call: A2ACall) -> Pushes:
    return Pushes(opening_of(call.workspace))


def _without_secrets(status: Status, target: PushTarget) -> TaskPushNotificationConfig:
    """Return a configuration without its secrets: the client knows them."""
    made = TaskPushNotificationConfig(id=target.name, task_id=status.id, url=target.url)
    if target.scheme:
        made.authentication.CopyFrom(AuthenticationInfo(scheme=target.scheme))
    return made

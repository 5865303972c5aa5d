"""Programs as members: the address and the token with which a program reaches models and other agents, and its
ending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Final, NamedTuple, TypeVar

import anyio

from remit.adapters.endpoints import KeyOf, KeysGiven, UrlGiven, key_in_environment
from remit.adapters.gateway.listener import entered
from remit.adapters.gateway.members import MAX_TOKENS, GatewayMember
from remit.adapters.gateway.upstream import Upstreams
from remit.core.checks import counted
from remit.core.command import Command
from remit.core.values import shown
from remit.errors import BadInput

T = TypeVar("T")

REQUESTS: Final = 1_000  # of one task; a coding agent makes hundreds


class JoinedProgram(NamedTuple):
    """What a program gets for one attempt: its member, the address of the gateway, and the variables that tell it where
    to ask."""

    member: GatewayMember
    url: str
    variables: Mapping[str, str]

    @property
    def refused(self) -> str:
        """Why the last model request that got no answer got none; "" if all were answered."""
        return self.member.refused

    async def until_over(self, work: Awaitable[T]) -> T | Command:
        """Await the work of a program and return its result. If the program hands its task over, cancel the work and
        return the handoff command. If the owner's code failed in a request of the program, raise that error."""
        member = self.member
        with anyio.CancelScope() as scope:
            watch = asyncio.ensure_future(_cancel_when(member.is_handed, scope))
            try:
                found = await work
            finally:
                watch.cancel()
            if member.failure is not None:
                raise member.failure
            return found if member.handed is None else member.handed
        assert member.handed is not None  # nothing else cancels this scope
        return member.handed


async def _cancel_when(event: asyncio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


class Joining(NamedTuple):
    """The access of one agent's programs to models and other agents."""

    upstreams: Upstreams | None
    has_verbs: bool
    most: int
    requests: int = REQUESTS
    approves: bool = False  # whether a person is asked about its own tools, by the tool `approve`
    resumes: bool = False  # whether the prompt of a later attempt lists what this one did

    @asynccontextmanager
    async def joined(self, turn: Any) -> AsyncGenerator[JoinedProgram]:
        """Open the gateway for one attempt at the task of a turn, and yield the program's access to it. Close it at the
        end."""
        member = GatewayMember(
            turn,
            self.upstreams,
            most=self.most,
            verbs=self.has_verbs,
            approves=self.approves,
            resumes=self.resumes,
        )
        async with self._connected(), entered(member) as listener:
            if self.has_verbs and listener.verbs is None:
                listener.verbs = _verbs()
            yield JoinedProgram(member, listener.url, self._variables(listener.url, member.token))

    def _connected(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self.upstreams is None else self.upstreams.connected()

    def _variables(self, url: str, token: str) -> dict[str, str]:
        found = {"REMIT_TOKEN": token}
        if self.upstreams is not None:
            found |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": token}
            found |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": token}
            found |= {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": token}
        if self.has_verbs:
            found["REMIT_MCP"] = f"{url}/mcp"
        return found


def joining(
    gateway: bool | Sequence[str],
    verbs: bool,
    *,
    keys: KeysGiven = (),
    base_url: UrlGiven = None,
    max_tokens: int = MAX_TOKENS,
    key_of: KeyOf = key_in_environment,
    approves: bool = False,
    resumes: bool = False,
) -> Joining:
    """Return the access of an agent's programs to models and other agents. `gateway` are the models that they may ask,
    True for any, or False for none. `keys` and `base_url` are those of `rt.model_agent`, and `max_tokens` limits each
    answer. With `verbs`, programs can use the verbs of a turn. With `approves`, the tool `approve` asks a person about
    tools of the program. With `resumes`, the results of its tools are recorded as they come, for a later attempt. Raise
    `BadInput` if a model cannot be asked here, or if a package is missing."""
    upstreams = None
    if gateway is not False:
        if isinstance(gateway, str):
            raise BadInput(f"gateway is True, or a list of models such as ['anthropic:claude-x'], not {shown(gateway)}")
        upstreams = Upstreams(() if gateway is True else gateway, keys, base_url, key_of)
    if verbs:
        _verbs_module()
    most = counted(max_tokens, "max_tokens", least=1)
    return Joining(upstreams, verbs, most, approves=approves, resumes=resumes)


def _verbs_module() -> Any:
    try:
        from remit.adapters.gateway import verbs  # noqa: PLC0415 - its package may not be installed
    except ImportError as error:
        raise BadInput(f"verbs of programs need pip install 'remit[mcp]' ({error})") from error
    return verbs


def _verbs() -> Any:
    return _verbs_module().MemberVerbs()

"""`remit chat`: talk to an agent, one run for each message, with the earlier conversation."""

import asyncio
import sys
from collections.abc import Awaitable
from typing import Final, NamedTuple, TypeVar

from rich.console import RenderableType
from rich.text import Text

from remit.cli.completing import TeamWord
from remit.cli.interrupts import INTERRUPTED, Interrupts, interrupts
from remit.cli.loading import is_file, load_team
from remit.cli.options import (
    Credits,
    OwnStore,
    aside,
    at_terminal,
    is_kept,
    out,
    place_options,
    stay_at,
    typed,
    with_unit,
)
from remit.cli.prompting import PromptDesk, Typist, answering
from remit.cli.run import Ask, asked_by, run_request
from remit.cli.screen import Drawing, Talking, Words, starting
from remit.cli.terminal import outcome_text
from remit.core.lifecycle import Record
from remit.core.patterns import pattern
from remit.core.session import LOOKED_AT, UNDONE
from remit.core.values import canonical, shown
from remit.engine.asking import Starting
from remit.engine.models.remembering import undone
from remit.engine.system import TimedIds
from remit.errors import BadInput
from remit.ports import View
from remit.report.figures import count
from remit.runtime.runtime import Runtime, run_main

_HAND_BACK_SECONDS: Final = 5.0
_COMMAND: Final = pattern(r"/[a-z]+")
_HELP: Final = """\
/new   start a new session: earlier messages are not remembered
/undo  take back the last message and its answer
/quit  end the chat
/help  list the commands"""

T = TypeVar("T")


class Talk(NamedTuple):
    """The agent of a chat, its session, and the budget of each run."""

    runtime: Runtime
    agent: str
    session: str
    credits: str | None
    where: str  # the team, as the user named it


def chat(*request: TeamWord, session: str = "", credits: Credits = None, store: OwnStore = None) -> int:
    """Chat with an agent in one session. Ctrl-D or `/quit` ends the chat; Ctrl-C cancels the current answer.

    `/new` starts a new session, `/undo` takes back the last message and its answer, `/help` lists the commands. A
    terminal shows answers as Markdown.

    Each message is a separate, recorded run. Its prompt contains the newest 12,000 characters of the session so far, as
    with `remit run --remembers`.

    Parameters
    ----------
    request
        `[TEAM] AGENT`: TEAM is `team:rt`, `./team.py:rt` or a team file [default: REMIT_TEAM, else remit.toml].
        AGENT may be omitted if the team file names a default agent.
    session
        Continue this session. [default: a new session]
    credits
        Budget of each run, for example 0.50USD.
    store
        Use this store instead of the team's own: a SQLite file or a postgresql:// URL.
    """
    where, agent = _words(request)
    amount = with_unit(credits)
    with starting(out()):
        team = load_team(where)
    whom = agent or asked_by(team.run)
    with team.runtime.at(store) as runtime:
        stay_at(runtime.workspace, store)
        most = amount if amount is not None else team.run.credits
        talk = Talk(runtime, whom, session or _new_session(), most, where)
        try:
            return run_main(_chat(talk))
        except asyncio.CancelledError:  # the second Ctrl-C
            return INTERRUPTED


def _words(request: tuple[str, ...]) -> tuple[str, str]:
    match request:
        case ():
            return "", ""
        case (where,) if is_file(where):
            return where, ""
        case (agent,) if ":" not in agent:
            return "", agent
        case (where, agent):
            return where, agent
        case _:
            raise BadInput(f"say [module:runtime] AGENT, not {shown(' '.join(request))}")


async def _chat(talk: Talk) -> int:
    """Read and answer lines until the input ends, or `/quit`."""
    if talk.agent not in {card.name for card in talk.runtime.cards()}:
        talk.runtime.stack(talk.agent)  # raises with the list of agents if there is no such agent
    typist = Typist(sys.stdin.fileno(), out())
    prompt = "> " if sys.stdin.isatty() else ""
    if prompt:
        aside().print(Text(f"chat with {talk.agent}; /help lists commands, Ctrl-D ends", "dim"))
    with interrupts() as heard:
        while True:
            line = await _line_or_interrupt(typist.read(prompt), heard)
            if line is None or line == "/quit":
                break
            if line:
                try:
                    if _COMMAND.fullmatch(line):
                        talk = await _obey(talk, line)
                    else:
                        await _answer(talk, line, typist if prompt else None, heard)
                except BadInput as no:  # for example NUL in the input; the chat continues
                    aside().print(Text(f"remit: {no}", "red"))
        await talk.runtime.drain(0.0 if heard.count else _HAND_BACK_SECONDS)
    _part(talk, prompt)
    return INTERRUPTED if heard.count else 0


async def _obey(talk: Talk, command: str) -> Talk:
    """Run a command of the chat, such as /new. Return the conversation after it."""
    match command:
        case "/help":
            aside().print(Text(_HELP))
        case "/new":
            talk = talk._replace(session=_new_session())
            aside().print(Text("a new session: earlier messages are not remembered", "dim"))
        case "/undo":
            aside().print(Text(await _undo(talk), "dim"))
        case _:
            raise BadInput(f"there is no command {shown(command)}; /help lists them")
    return talk


async def _undo(talk: Talk) -> str:
    """Take back the latest message of the session and its answer, and return a sentence for the person. The run stays
    in the journal."""
    workspace, agent = talk.runtime.workspace, talk.agent

    def look(view: View) -> tuple[list[str], list[Record]]:
        return undone(view, talk.session), view.runs_of_session(talk.session, canonical(agent), LOOKED_AT)

    before, runs = await workspace.journal.read(look)
    last = next((record.id for record in runs if record.id not in before), None)
    if last is None:
        return "nothing to undo in this session"
    await workspace.context(by=at_terminal()).set(UNDONE, talk.session, [*before, last])
    left = sum(record.id not in before for record in runs) - 1
    return f"took back the last message and its answer; {count(left, 'message')} left"


def _new_session() -> str:
    return f"chat-{TimedIds().new()}"


async def _line_or_interrupt(work: "Awaitable[T]", heard: Interrupts) -> "T | None":
    """Wait for a line. Return None on Ctrl-C."""
    typing = asyncio.ensure_future(work)
    told = asyncio.create_task(heard.first.wait())
    await asyncio.wait((typing, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if typing.done():
        return typing.result()
    typing.cancel()
    return None


async def _answer(talk: Talk, line: str, typist: Typist | None, heard: Interrupts) -> None:
    """Answer a message with a run, which gets the earlier conversation."""
    workspace, runs = talk.runtime.workspace, list[str]()
    how: Starting = {"session": talk.session}
    if talk.credits is not None:
        how["credits"] = talk.credits
    where = place_options() if is_kept() else None
    remembers = "whole" if talk.runtime.stack(talk.agent).memory == "whole" else "session"
    ask = Ask(talk.agent, line, how, as_json=False, remembers=remembers)
    words, console = Words(), out()
    with Drawing(Talking(talk.agent, words), console, transient=True) as drawing:
        async with answering(workspace, runs, PromptDesk(aside(), drawing.paused, where, typist)):
            outcome = await run_request(talk.runtime, ask, heard, runs, words.hear if console.is_terminal else None)
    heard.again()  # the signal stopped the run, not the chat
    console = out()
    if console.is_terminal and outcome.ok and isinstance(outcome.value, str):
        console.print(_markdown(outcome.value))
    else:
        console.print(outcome_text(outcome.state, outcome.value, str(outcome.error or "")))


def _markdown(text: str) -> RenderableType:
    from rich.markdown import Markdown  # only here: it takes a parser

    return Markdown(text, hyperlinks=False)  # a link shows its address


def _part(talk: Talk, prompt: str) -> None:
    if prompt:
        out().print()
    if is_kept():
        team = f"{talk.where} " if talk.where else ""
        aside().print(Text(typed(f"remit chat {team}{talk.agent} --session {talk.session}"), "dim"))

"""The verbs of a turn that are about models and tools; what frameworks' adapters are made of."""

from __future__ import annotations

from typing import NamedTuple

from remit.core.checks import callable_, of_type
from remit.core.offers import Offers
from remit.core.session import EarlierExchange
from remit.core.text import NAME_LIMIT, line
from remit.core.values import Json
from remit.engine.attempt.live import LiveTask
from remit.engine.models.asking import Models
from remit.engine.models.offering import Offering
from remit.engine.models.prompting import Prompting
from remit.engine.models.talking import KeptTalk, KeptTalks
from remit.engine.models.toolbox import Toolbox
from remit.engine.people.verbs import PeopleVerbs
from remit.ports.models import ModelAnswer, ModelCall, ToolCall, ToolFunction


class ModelServices(NamedTuple):
    models: Models
    toolbox: Toolbox
    prompting: Prompting
    offering: Offering
    talking: KeptTalks


class ModelVerbs(PeopleVerbs):
    """How a model is asked and how its tools are used. Adapters of frameworks call these; agents rarely do."""

    _live: LiveTask
    _talking: ModelServices

    async def prompt(self) -> str:
        """Write what the holder was given as a prompt: the task, the entries that were passed along, how the task came
        to it, and its messages, which are taken by this. A model is told its memory, the newest notes on the board and
        whom it may ask too. What came from outside is quoted."""
        return await self._talking.prompting.prompt(self._live)

    async def talk_so_far(self) -> list[EarlierExchange]:
        """List what was said before in this session, the oldest first: what this agent was asked in earlier runs and
        what came of each. Empty unless the run was begun with `remembers=True`, or its agent has `memory="session"`."""
        self._live.must_be_at_work()
        return [run.exchange for run in await self._talking.talking.remembering.past(self._live)]

    async def offers(self) -> Offers:
        """Tell which tools and verbs a model is shown with its next request: none that is denied or outside the bounds,
        and no verb that cannot succeed now."""
        return await self._talking.offering.offers(self._live)

    async def model(self, call: ModelCall) -> ModelAnswer:
        """Ask a model: recorded, paid for, and with others to ask when one does not answer.

        When the task is run again, what was answered is found by the digest of the request, or by its position in a
        conversation that `begin_talk` began. It is neither asked nor paid again. Raises `NoAnswer` with what became of
        each model, and `Refused` if it cannot be paid.
        """
        of_type(call, ModelCall, "model takes a ModelCall of remit.ports.models")
        return await self._talking.models.ask(self._live, call)

    def talks(self) -> list[KeptTalk]:
        """List the conversations begun in this turn, or in the tool call that runs now; the latest first."""
        return self._talking.talking.talks(self._live)

    async def begin_talk(self, begins: str, name: str | None = None) -> KeptTalk:
        """Begin a conversation that is kept position by position. `begins` is the digest of its first request.

        The first one of a turn is the turn's own and is found again whatever it begins with; others are found by their
        `name`, or by how they begin.
        """
        line(begins, "the digest of how it begins", NAME_LIMIT)
        if name is not None:
            line(name, "the name of a conversation", NAME_LIMIT)
        return await self._talking.talking.begin(self._live, begins, name)

    async def tool(self, call: ToolCall, do: ToolFunction) -> Json:
        """Use a tool that a model has called, and give back what the model is told: what came of it, or a sentence.

        It is used once, however often the task is run; whether it may be, and whether a person or a hook has a say, is
        what the agent's card and rules say. If it hands the task over, `HandedOver` is raised.
        """
        of_type(call, ToolCall, "tool takes a ToolCall of remit.ports.models, and what does it")
        callable_(do, "tool takes a function of the arguments")
        return await self._talking.toolbox.use(self, self._live, call, do)

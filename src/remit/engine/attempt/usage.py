"""What a turn has used: recorded as soon as it is said, so that it counts for the run at once."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.core.checks import between
from remit.core.kinds import tokens_used
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.errors import Refused
from remit.ports import Decision, View

MOST: Final = 1_000_000_000_000  # at a time: no model's answer has more, and any number of these can be added up


class Usage(NamedTuple):
    ground: Ground

    async def used(self, live: LiveTask, tokens: int) -> None:
        """Record the tokens, and refuse to go on if the run has used more than it may: what was used was used."""
        live.must_be_at_work()
        between(tokens, "tokens", 0, MOST)
        remit, now = live.remit, self.ground.clock.now()

        def decide(view: View) -> Decision[int]:
            total = view.run(remit.root).tokens + tokens
            return Decision(total, (tokens_used(remit, tokens, now),) if tokens else ())

        total = await self.ground.store.tx(live.op("used", str(tokens)), live.guarded(decide), live.wants)
        live.tokens += tokens
        most = remit.bounds.tokens
        if most is not None and total > most:
            have = f"{total:,} of {most:,} tokens"
            raise Refused(f"this run has used {have}; '{remit.holder}' has to finish with what it has", rule="tier")

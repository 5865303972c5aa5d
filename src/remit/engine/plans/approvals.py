"""What people have decided about the steps of a plan: nobody is asked again because a process died."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from remit.core.kinds import effect_done
from remit.core.plan import Step
from remit.core.question import QuestionDraft
from remit.engine.attempt.live import LiveTask
from remit.engine.door.said import rejected
from remit.engine.ground import Ground
from remit.engine.owners import owners_function
from remit.engine.people.questions import Questions
from remit.ports import Decision, View

ASK: Final = "ask"  # what a function says that leaves it to a person


class Approvals(NamedTuple):
    ground: Ground
    live: LiveTask
    questions: Questions

    async def once(self, step: str, identity: str, ask: Callable[[], Awaitable[bool | str] | bool | str]) -> bool | str:
        """Ask about a step and keep the answer; or, when the plan is run again, give back what was answered. A no in an
        earlier try is not held against this one."""
        ground, live = self.ground, self.live
        ops = live.operations.ids("approve", identity)

        def answered(view: View) -> bool | str | None:
            live.must_hold(view)
            done = [view.done(op) for op in ops]
            if done[0] is not None:
                return ASK if done[0][0] == ASK else bool(done[0][0])
            return True if any(one is not None and one[0] is True for one in done) else None

        if live.attempt.is_rerun and (known := await ground.store.read(answered)) is not None:
            return known
        with owners_function("approve= of this plan"):
            said = ask()
            given = await said if inspect.isawaitable(said) else said
        approved = ASK if given == ASK else bool(given) and not isinstance(given, str)  # no other word is a yes
        event = effect_done(live.remit, f"approval of step '{step}'", identity, approved, ground.clock.now())
        return await ground.store.tx(ops[0], live.guarded(lambda _view: Decision(approved, (event,))))

    async def person(self, step: Step, who: str, identity: str) -> str:
        """Have a person approve a step; gives why it was not approved, or nothing if it was."""
        text = f"step '{step.id}' is to be done by '{who}': {step.title}"
        shows = {"action": "step", "agent": who, "step": step.id, "task": step.description or step.title}
        if step.description:
            shows["title"] = step.title
        draft = QuestionDraft("tool", text, shows={**shows}, about=(self.live.operations.origin, identity))
        said = await self.questions.ask_once(self.live, draft, self.live.operations.asking("step", identity))
        if not said.approved:
            return rejected(said, "it").removesuffix("; go on without it")
        await self.questions.use(self.live, said, draft)
        return ""

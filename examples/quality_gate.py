"""A quality gate: work goes back until it is good enough. Going back is legal; going round in circles is not."""

import remit
from remit import Command, Refused, Runtime, Turn

GOOD_ENOUGH = 80

rt = Runtime()


@rt.agent(asks=["planner"])
async def researcher(turn: Turn) -> Command:
    try:
        command = await turn.hand_off("planner", {"phase": "plan", "context": {"sources": 3}})
    except Refused as no:  # the second time round: the same again would only come back again
        print(f"refused      {no}")
        command = Command("planner", {"phase": "plan", "context": {"sources": 5}})
    print(f"researcher   has {command.update['context']}")
    return command


@rt.agent(asks=["implementer"])
async def planner(turn: Turn) -> Command:
    plan = f"from {turn.handoff.state.context['sources']} sources"
    return Command("implementer", {"phase": "implement", "context": {"plan": plan}})


@rt.agent(asks=["researcher"])
async def implementer(turn: Turn) -> Command | str:
    state, trail = turn.handoff.state, turn.handoff.trail
    score = {"from 3 sources": 60, "from 5 sources": 90}[str(state.context["plan"])]
    print(f"implementer  builds {state.context['plan']} and scores {score}")
    if score < GOOD_ENOUGH:  # the gate
        return Command("researcher", {"context": {"score": score}, "metrics": {"retries": 1}})
    return f"{' > '.join(move.sender for move in trail)} > {turn.agent}, {state.retries} retry"


print(f"done         {remit.run(rt, 'researcher', 'build the search page')}")

"""Large runs for the page, made up: their events come from the test, not from a server."""

import json
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Page, Route

RUN = "made-up"
NOW = 1_700_000_000_000_000


class LargeRun:
    """A run of many tasks in three levels, by agents of many names, so that few of them are stacked."""

    def __init__(self, tasks: int) -> None:
        self.events: list[dict[str, Any]] = []
        self._chains: dict[str, list[str]] = {"": []}
        self.start("t0", "lead", "", opens=[["credits", "carve", 9_000_000]])
        wide = max(4, round(tasks**0.5))
        for number in range(1, tasks):
            parent = "t0" if number <= wide else f"t{1 + number % wide}"
            self.start(f"t{number}", f"agent-{number % 61}", parent)

    def tell(self, kind: str, task: str, agent: str, data: dict[str, Any]) -> dict[str, Any]:
        seq = len(self.events) + 1
        place = {"run": RUN, "session": "s", "task": task, "agent": agent, "op": None, "answer": None, "hash": ""}
        event = {"seq": seq, "at": NOW + seq * 10_000, "kind": kind, "data": data, **place}
        self.events.append(event)
        return event

    def start(self, task: str, agent: str, parent: str, **more: Any) -> None:
        chain = self._chains[task] = [*self._chains[parent], agent]
        bounds = {"depth": 3}
        data = {"parent": parent, "chain": chain, "task": f"do {task}", "sees": [], "bounds": bounds, **more}
        self.tell("task.started", task, agent, data)

    def updates(self) -> Iterator[dict[str, Any]]:
        """Yield what happens next: tasks spend and end, the last first."""
        first = [event for event in self.events if event["kind"] == "task.started"]
        for event in reversed(first[1:]):
            task, agent = event["task"], event["agent"]
            yield self.tell("credits.spent", task, agent, {"costs": {"credits": 100}, "why": "a call"})
            yield self.tell("task.completed", task, agent, {"result": "done"})

    def serve(self, page: Page) -> None:
        """Answer the page's requests for this run."""
        at_start = [*self.events]

        def answer(route: Route) -> None:
            after = int(route.request.url.partition("after=")[2].partition("&")[0])
            rows = [event for event in at_start if event["seq"] > after][:1000]
            more = str(rows[-1]["seq"]) if len(rows) == 1000 else None
            route.fulfill(json={"events": rows, "gaps": [], "next": more})

        page.route(f"**/v1/events?run={RUN}*", answer)


SEND = """([events, rate]) => new Promise((done) => {
  const channel = new BroadcastChannel("remit-events");
  const frames = [], tasks = [];
  new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)))
    .observe({ type: "longtask" });
  let at = 0, before = performance.now(), going = true;
  const frame = (now) => { frames.push(now - before); before = now; if (going) requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  const timer = setInterval(() => {
    if (at >= events.length) {
      clearInterval(timer);
      setTimeout(() => { going = false; done({ frames, tasks }); }, 500);
    } else channel.postMessage({ events: [events[at++]] });
  }, 1000 / rate);
})"""


def watched(page: Page, run: LargeRun, updates: int, rate: int = 20) -> dict[str, list[float]]:
    """Send updates to the page. Return the time of each frame and the long tasks of its thread, in milliseconds."""
    events = [event for event, _ in zip(run.updates(), range(updates), strict=False)]
    return page.evaluate(SEND, [json.loads(json.dumps(events)), rate])

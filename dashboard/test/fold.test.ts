import { describe, expect, test } from "vitest";
import { EVERY, History } from "../src/fold/history";
import { sentence } from "../src/fold/sentence";
import { holders, rootOf, type Task, walk } from "../src/fold/state";
import { programTools, wordsOf } from "../src/fold/talk";
import { Made } from "./made";
import { wired } from "./wire";

function busy(children: number): Made {
  const made = new Made().start("t1", "lead", "", { opens: [["credits", "carve", 1_000_000]] });
  for (let at = 2; at < children + 2; at++) {
    made.start(`t${at}`, at % 3 === 0 ? "coder" : "tester", at > 5 ? `t${at - 4}` : "t1");
    made.tell("credits.spent", `t${at}`, "coder", { costs: { credits: at }, why: "a call" });
    if (at % 4 === 0) made.complete(`t${at}`, "tester");
  }
  return made;
}

describe("the fold", () => {
  test("comes to the same state at every event, from a checkpoint or from the beginning", () => {
    const made = busy(300);
    const history = made.history;
    expect(made.events.length).toBeGreaterThan(2 * EVERY);
    for (const count of [1, 2, 100, EVERY - 1, EVERY, EVERY + 1, 511, 512, 513, 700, 3, made.events.length]) {
      const alone = new History();
      alone.add(made.events.slice(0, count));
      expect(wired(history.at(count))).toEqual(wired(alone.now));
      expect(history.at(count).open).toBe(alone.now.open);
    }
  });

  test("does not change a state that was shown before", () => {
    const made = busy(40);
    const history = new History();
    history.add(made.events.slice(0, 30));
    const before = JSON.stringify(wired(history.now));
    const shown = history.now;
    history.add(made.events.slice(30));
    history.at(12);
    expect(JSON.stringify(wired(shown))).toBe(before);
  });

  test("leaves a task alone that nothing happened to", () => {
    const made = new Made().start("t1", "lead").start("t2", "coder", "t1").start("t3", "tester", "t1");
    const history = made.history;
    const before = history.now.tasks.get("t2");
    made.complete("t3", "tester");
    history.add(made.events);
    expect(history.now.tasks.get("t2")).toBe(before);
  });

  test("takes an event once", () => {
    const made = busy(3);
    const history = made.history;
    expect(history.add(made.events)).toBe(0);
  });

  test("sums what is spent and held up to the root", () => {
    const made = new Made().start("t1", "lead").start("t2", "coder", "t1").start("t3", "tester", "t2");
    made.tell("hold.placed", "t3", "tester", { hold: "h", amounts: { credits: 90 }, why: "photo" });
    const history = made.history;
    expect(rootOf(history.now)?.totalHeld).toBe(90);
    made.tell("hold.settled", "t3", "tester", { hold: "h", amounts: { credits: 90 }, costs: { credits: 70 }, why: "photo" });
    history.add(made.events);
    expect(rootOf(history.now)).toMatchObject({ totalHeld: 0, total: 70, credits: 0 });
    expect(walk(history.now).map((task) => task.total)).toEqual([70, 70, 70]);
  });

  test("counts what is still open below a task", () => {
    const made = new Made().start("t1", "lead").start("t2", "coder", "t1").start("t3", "tester", "t2");
    expect(rootOf(made.history.now)?.below).toBe(2);
    made.complete("t3", "tester");
    expect(rootOf(made.history.now)?.below).toBe(1);
    expect(made.history.now.open).toBe(2);
  });

  test("knows whom a task waits for, and until when", () => {
    const made = new Made().start("t1", "lead");
    made.tell("question.asked", "t1", "lead", { question: "q", kind: "hop", text: "May I?", choices: [], digest: "d", until: 9 });
    made.tell("task.waiting", "t1", "lead", { for: "person", id: "q" });
    expect(made.history.now.asking).toEqual(["t1"]);
    expect(sentence(made.history.now)).toBe("lead waits for you.");
    made.tell("question.answered", "t1", "lead", { question: "q", state: "approved", by: "ann", channel: "http", why: "" });
    made.tell("task.resumed", "t1", "lead");
    const task = rootOf(made.history.now);
    expect(made.history.now.asking).toEqual([]);
    expect(task?.waits).toMatchObject([{ why: "person", id: "q", to: made.events.at(-1)?.at }]);
  });

  test("names everyone who held a task", () => {
    const made = new Made().start("t1", "lead").tell("task.handed", "t1", "lead", { to: "releaser", update: {}, content: "" });
    const task = rootOf(made.history.now);
    expect(task === undefined ? [] : holders(task)).toEqual(["lead", "releaser"]);
    expect(sentence(made.history.now)).toBe("lead handed over to releaser; releaser is at work.");
  });

  test("says in a sentence what has happened", () => {
    const made = new Made().start("t1", "lead");
    expect(sentence(new History().now)).toBe("Nothing has happened yet.");
    expect(sentence(made.history.now)).toBe("lead is at work.");
    made.start("t2", "coder", "t1").start("t3", "tester", "t1").start("t4", "tester", "t1");
    made.tell("hop.refused", "t2", "coder", { to: "lead", task: "again", rule: "loop", sentence: "no" });
    made.tell("task.failed", "t3", "tester", { error: "no" });
    expect(sentence(made.history.now)).toBe(
      "lead asked coder and tester ×2; coder and tester are at work; tester failed; 1 delegation refused (loop).",
    );
  });
});

describe("the tools of a program", () => {
  const told = (told: unknown, text: unknown) => ({ framework: "messages", told: JSON.stringify(told), text: JSON.stringify(text) });
  const call = { type: "function_call", name: "bash", call_id: "c1", arguments: '{"command":"pytest"}' };

  test("are read from its conversation: the call in an answer, the result in a later request", () => {
    const made = new Made().start("t1", "porter");
    const first = { model: "m", calls: ["bash"], elapsed: 0 };
    made.tell("model.answered", "t1", "porter", first);
    Object.assign(made.events.at(-1) as object, { answer: told([{ role: "user", content: "x" }], [{ role: "assistant", content: "I look" }, call]) });
    const task = () => rootOf(made.history.now) as Task;
    expect(wordsOf(task().calls[0]?.answer)).toBe("I look");
    expect(programTools(task().calls)).toMatchObject([{ tool: "bash", given: '{"command":"pytest"}', outcome: "running" }]);
    made.tell("model.answered", "t1", "porter", { model: "m", elapsed: 40_000 });
    Object.assign(made.events.at(-1) as object, { answer: told([{ type: "function_call_output", call_id: "c1", output: "ok" }], []) });
    expect(programTools(task().calls)).toMatchObject([{ tool: "bash", outcome: "done", result: "ok", elapsed: 60_000 }]);
    expect(task().tools).toEqual([]);
  });
});

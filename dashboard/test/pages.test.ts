// @vitest-environment happy-dom
// The pure parts of the pages: lists that follow events, differences, tables as files, permissions.
import { describe, expect, test } from "vitest";
import type { AgentCard, AskEdge, Event, RunRow, SpendLine, TaskRow } from "../src/shapes";
import { csv } from "../src/pages/csv";
import { everyDay } from "../src/pages/chart";
import { markOf } from "../src/pages/matrix";
import { spots } from "../src/pages/minitree";
import { allows, unused } from "../src/pages/permissions";
import { follow, listed } from "../src/pages/runlist";
import { matching } from "../src/palette";
import { Beats } from "../src/parts/beats";
import { difference, isDiff } from "../src/parts/diff";
import { ahead, ago, dollars, figure, firstLine, shortVersion, span } from "../src/parts/said";

let seq = 0;
function event(kind: string, data: Record<string, unknown> = {}, more: Partial<Event> = {}): Event {
  seq += 1;
  return { seq, at: seq * 1_000, kind, run: "r", session: "s", task: "r", agent: "lead", data, ...more } as Event;
}

const RUN: RunRow = {
  id: "r", state: "running", agent: "lead", task: "build", session: "s", tasks: 1, handoffs: 0, tokens: 0, credits: 0,
  refused: 0, by: "", tags: [], asked_at: 1, ended_at: null, granted: 500_000, held: 0,
};
const TASK: TaskRow = { id: "r", state: "running", agent: "lead", run: "r", parent: "", began: 1 };
const all = () => true;

describe("the list of runs", () => {
  test("follows tasks, money, refusals and questions", () => {
    const rows = follow(
      listed([RUN], [TASK], new Map()),
      [
        event("task.started", { parent: "r" }, { task: "c", agent: "coder" }),
        event("credits.spent", { costs: { credits: 70_000 } }, { task: "c" }),
        event("hold.reconciled", { costs: { credits: 10_000 }, charged: { credits: 30_000 } }, { task: "c" }),
        event("hop.refused", { rule: "loop" }),
        event("lease.raised", { unit: "credits", adds: [["r", 100_000]] }),
        event("question.asked", {}, { task: "c" }),
        event("task.completed", {}, { run: "another", task: "another" }),
      ],
      all,
    );
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ tasks: 2, credits: 50_000, refused: 1, granted: 600_000, asking: 1 });
    expect(rows[0]?.dots.map(({ agent, asks }) => [agent, asks])).toEqual([["lead", false], ["coder", true]]);
    const [over] = follow(rows, [event("question.answered", {}, { task: "c" }), event("task.failed")], all);
    expect(over).toMatchObject({ state: "failed", asking: 0 });
    expect(over?.ended_at).not.toBeNull();
  });

  test("takes a new run that fits, at the top, once", () => {
    const begins = event("task.submitted", { task: "new", by: "ann" }, { run: "n", task: "n" });
    const rows = follow(listed([RUN], [], new Map()), [begins, begins], all);
    expect(rows.map(({ id, tasks, by }) => [id, tasks, by])).toEqual([["n", 1, "ann"], ["r", 1, ""]]);
    expect(follow([], [begins], () => false)).toEqual([]);
  });

  test("frees what a call held when the call is paid or not made", () => {
    const hold = (kind: string, more = {}) => event(kind, { hold: "h", amounts: { credits: 300_000 }, ...more });
    const [held] = follow(listed([RUN], [TASK], new Map()), [hold("hold.placed")], all);
    expect(held).toMatchObject({ held: 300_000, credits: 0 });
    const [paid] = follow([held!], [hold("hold.settled", { costs: { credits: 270_000 } })], all);
    expect(paid).toMatchObject({ held: 0, credits: 270_000 });
    expect(follow([held!], [hold("hold.released")], all)[0]).toMatchObject({ held: 0, credits: 0 });
  });

  test("counts the questions that were open before", () => {
    expect(listed([RUN], [TASK], new Map([["r", "r"]]))[0]).toMatchObject({ asking: 1, dots: [{ asks: true }] });
  });
});

test("a tiny tree puts deeper tasks lower, and is never endless", () => {
  const dot = (id: string, parent: string) => ({ id, parent, agent: id, state: "running", asks: false });
  const [root, child, sibling] = spots([dot("a", ""), dot("c", "a"), dot("b", "a"), dot("d", "c")]).map(({ id, y }) => [id, y]);
  expect([root?.[0], child?.[0], sibling?.[0]]).toEqual(["a", "c", "d"]);
  expect(Number(child?.[1])).toBeGreaterThan(Number(root?.[1]));
  expect(spots(Array.from({ length: 500 }, (_, at) => dot(`t${at}`, "")))).toHaveLength(22);
});

describe("differences", () => {
  test("show what stays, goes and comes", () => {
    const signs = difference("a\nb\nc", "a\nx\nc\nd").map(({ sign, text }) => sign + text);
    expect(signs).toEqual([" a", "-b", "+x", " c", "+d"]);
  });

  test("of equal texts are none, and of huge ones are plain", () => {
    expect(difference("a\nb", "a\nb").every(({ sign }) => sign === " ")).toBe(true);
    const [many, more] = ["a", "b"].map((letter) => Array.from({ length: 2_000 }, (_, at) => `${letter}${at}`).join("\n"));
    expect(difference(many ?? "", more ?? "")).toHaveLength(4_000);
  });

  test("lead from one text to the other, whatever the texts", () => {
    for (let round = 0; round < 200; round++) {
      const text = (salt: number) => Array.from({ length: (round * salt) % 9 }, (_, at) => "abc"[(round * salt + at * at) % 3]).join("\n");
      const lines = difference(text(3), text(5));
      const side = (sign: string) => lines.filter((one) => one.sign !== sign).map((one) => one.text).join("\n");
      expect([side("+"), side("-")]).toEqual([text(3), text(5)]);
    }
  });

  test("are known in a text by their marks", () => {
    expect(isDiff("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a")).toBe(true);
    expect(isDiff("- a list\n+ of things")).toBe(false);
  });
});

test("a table as a file keeps commas and quotes, and starts no formula", () => {
  expect(csv([["name", "cost"], ["a,b", 0.5], ['say "x"', 1], ["=1+1", -2]])).toBe(
    'name,cost\r\n"a,b",0.5\r\n"say ""x""",1\r\n\'=1+1,-2',
  );
});

test("a chart has the days without spending, too", () => {
  const line = (name: string): SpendLine => ({ name, credits: 1, tokens: 0, calls: 1, uncertain: 0, own_key: 0 });
  expect(everyDay([line("2026-02-27"), line("2026-03-01")], 9).map((day) => [day.name, day.credits])).toEqual([
    ["2026-02-27", 1],
    ["2026-02-28", 0],
    ["2026-03-01", 1],
  ]);
  expect(everyDay([line("2026-01-01"), line("2026-03-01")], 5)).toHaveLength(5);
  expect(everyDay([], 5)).toEqual([]);
});

describe("permissions", () => {
  const card = (name: string, asks: string[]) => ({ name, asks }) as AgentCard;
  const edge = (asker: string, agent: string, asked: number, refused = 0) => ({ asker, agent, asked, refused }) as AskEdge;
  const cards = [card("lead", ["*"]), card("coder", ["tester"]), card("tester", [])];

  test("are unused if nobody asked", () => {
    expect(unused(cards, [edge("lead", "coder", 2)])).toEqual([
      { asker: "lead", every: true, asked: ["coder"], never: ["tester"] },
      { asker: "coder", every: false, asked: [], never: ["tester"] },
    ]);
    expect(allows(cards[0], "lead")).toBe(false);
    expect(allows(undefined, "lead")).toBe(false);
  });

  test("have a mark for each case", () => {
    expect([
      markOf(true, edge("a", "b", 1)),
      markOf(false, edge("a", "b", 1)),
      markOf(true, edge("a", "b", 0, 1)),
      markOf(true, undefined),
      markOf(false, undefined),
    ]).toEqual(["used", "strange", "refused", "unused", "none"]);
  });
});

test("the palette finds by all words, beginnings first", () => {
  const choices = ["Spend", "a run that spends", "Agents"].map((name) => ({ name, also: "x" }));
  expect(matching(choices, "spend x").map(({ name }) => name)).toEqual(["Spend", "a run that spends"]);
  expect(matching(choices, "nothing")).toEqual([]);
});

test("figures and times are short", () => {
  expect([dollars(null), dollars(370_000), figure(9_999), figure(12_345)]).toEqual(["–", "$0.37", "9,999", "12.3K"]);
  expect([span(5_000), span(2_400_000), span(180_000_000), span(90_000_000_000)]).toEqual(["5 ms", "2.4 s", "3 min", "25 h"]);
  expect([ago(null), ago(0, 12_000_000), ago(5, 6), ahead(9, 9), ahead(60_000_000, 0)]).toEqual(["never", "12 s ago", "now", "over", "in 60 s"]);
  expect([shortVersion(12), shortVersion(2646248708360903)]).toEqual(["12", "…0903"]);
  expect(firstLine("\n# Task: do it\nmore")).toBe("do it");
});

describe("heartbeats", () => {
  const second = 1_000_000;
  const now = 1_700_000_000 * second;

  test("a worker whose last one is older than another's by 30 seconds is lost", () => {
    const workers = [{ id: "fresh", seen_at: now - second }, { id: "old", seen_at: now - 31 * second }, { id: "unknown", seen_at: null }];
    expect([...new Beats().alive(workers, now)]).toEqual(["fresh", "unknown"]);
  });

  test("a clock that is wrong loses nobody, until no heartbeat comes for 30 seconds", () => {
    const beats = new Beats();
    const far = now - 3_600 * second; // the server's clock is an hour behind
    expect([...beats.alive([{ id: "one", seen_at: far }], now)]).toEqual(["one"]);
    expect([...beats.alive([{ id: "one", seen_at: far + 10 * second }], now + 20 * second)]).toEqual(["one"]);
    expect([...beats.alive([{ id: "one", seen_at: far + 10 * second }], now + 60 * second)]).toEqual([]);
    expect([...beats.alive([{ id: "one", seen_at: far + 65 * second }], now + 65 * second)]).toEqual(["one"]);
  });
});

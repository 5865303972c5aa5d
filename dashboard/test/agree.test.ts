// The fold of the page against the report's, on a corpus that tests/report/test_fold.py writes.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { JournalEvent } from "../src/fold/events";
import { History } from "../src/fold/history";
import { TRANSITIONS } from "../src/fold/lifecycle";
import { rootOf, walk } from "../src/fold/state";
import { wordsOf } from "../src/fold/talk";
import { wired } from "./wire";

interface Tree {
  children: Tree[];
  with_below: { credits: number };
  [name: string]: unknown;
}
interface Corpus {
  transitions: unknown;
  runs: { events: JournalEvent[]; tree: Tree | null }[];
  demo: JournalEvent[];
  said: [kept: unknown, words: string][];
}

const path = process.env.REMIT_CORPUS;
const corpus: Corpus = path === undefined ? { transitions: TRANSITIONS, runs: [], demo: [], said: [] } : JSON.parse(readFileSync(path, "utf8"));

function told(tree: Tree | null): unknown {
  if (tree === null) return null;
  const { with_below, children, ...rest } = tree;
  return { ...rest, total: with_below.credits, children: children.map(told) };
}

describe.skipIf(path === undefined)("the report's tree and the page's", () => {
  test("have the same state machine", () => {
    expect(TRANSITIONS).toEqual(corpus.transitions);
  });

  test("are the same for every journal", () => {
    expect(corpus.runs.length).toBe(200);
    for (const { events, tree } of corpus.runs) {
      const history = new History();
      history.add(events);
      expect(wired(history.now), `a run of ${events.length} events`).toEqual(told(tree));
    }
  });

  test("read the same words in the answers of every framework", () => {
    expect(corpus.said.length).toBeGreaterThan(10);
    for (const [kept, words] of corpus.said) {
      expect(wordsOf(kept)).toBe(words);
      if (typeof kept !== "string" && kept !== null) expect(wordsOf(JSON.stringify(kept))).toBe(words);
    }
  });

  test("of the demo sum to the root at every event", () => {
    const history = new History();
    history.add(corpus.demo);
    expect(corpus.demo.length).toBeGreaterThan(30);
    for (let count = 1; count <= corpus.demo.length; count++) {
      const state = history.at(count);
      const all = walk(state);
      const spent = all.reduce((sum, task) => sum + task.credits, 0);
      expect(rootOf(state)?.total).toBe(spent);
      for (const task of all)
        expect(task.total).toBe(task.children.reduce((sum, id) => sum + (state.tasks.get(id)?.total ?? 0), task.credits));
    }
    expect(rootOf(history.now)?.total).toBe(370_000);
  });
});

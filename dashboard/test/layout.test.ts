import { describe, expect, test } from "vitest";
import { type Box, layout, STACKED } from "../src/run/layout";
import { Made } from "./made";

const apart = (one: Box, other: Box): boolean =>
  one.x + one.width <= other.x || other.x + other.width <= one.x || one.y + one.height <= other.y || other.y + other.height <= one.y;

function noneMeet(boxes: readonly Box[]): void {
  for (const [at, one] of boxes.entries())
    for (const other of boxes.slice(at + 1)) expect(apart(one, other), `${one.key} and ${other.key}`).toBe(true);
}

describe("the layout of the tree", () => {
  test("puts a parent in the middle of what is below it, and nothing onto anything", () => {
    const made = new Made().start("t1", "lead");
    for (let at = 2; at < 40; at++) {
      made.start(`t${at}`, `agent ${at}`, `t${Math.floor(at / 3) + 1}`);
      if (at % 5 === 0) made.tell("hop.refused", `t${at}`, "x", { to: "lead", task: "", rule: "loop", sentence: "no" });
    }
    const { boxes, width, height } = layout(made.history.now);
    noneMeet(boxes);
    for (const box of boxes) {
      expect(box.x + box.width).toBeLessThanOrEqual(width);
      expect(box.y + box.height).toBeLessThanOrEqual(height);
      expect(box.y).toBeGreaterThanOrEqual(0);
    }
  });

  test("stacks many of the same agent that asked nobody", () => {
    const made = new Made().start("t1", "lead");
    for (let at = 0; at <= STACKED; at++) made.start(`e${at}`, "echo", "t1");
    made.start("t2", "echo", "t1").start("t3", "coder", "t2");
    const boxes = layout(made.history.now).boxes;
    const stack = boxes.find((box) => box.kind === "stack");
    expect(stack?.kind === "stack" && stack.members.length).toBe(STACKED + 1);
    expect(boxes.map((box) => box.key)).toContain("t2");
    noneMeet(boxes);
  });

  test("has one chip for equal refusals", () => {
    const made = new Made().start("t1", "lead");
    for (const rule of ["loop", "credits", "credits"])
      made.tell("hop.refused", "t1", "lead", { to: "coder", task: "", rule, sentence: "no" });
    expect(layout(made.history.now).boxes.filter((box) => box.kind === "chip")).toHaveLength(2);
  });
});

import { beforeEach, expect, test } from "vitest";
import { addWords, answers, clearWords, dropAnswered } from "../src/speaking";
import { Made } from "./made";

const began = 1_700_000_000_150_000; // after the first event, before the second
const piece = (text: string, begins = false) => ({ task: "t1", text, begins, began });
const shown = () => answers.value.get("t1")?.text;

beforeEach(clearWords);

test("an answer is the text of its pieces, and a new try begins it again", () => {
  addWords(piece("The harbour ", true));
  addWords(piece("is full"));
  expect(shown()).toBe("The harbour is full");
  addWords(piece("No: ", true));
  addWords(piece("it is empty"));
  expect(shown()).toBe("No: it is empty");
});

test("an answer without its beginning says so", () => {
  addWords(piece("of ships"));
  addWords(piece("."));
  expect(shown()).toBe("… of ships.");
});

test("the kept answer goes to another tab as one that begins", () => {
  addWords(piece("of ships"));
  const [kept] = answers.value.values();
  addWords(kept as NonNullable<typeof kept>);
  expect(shown()).toBe("… of ships");
});

test.each([
  ["model.answered", { elapsed: 10_000 }, true],
  ["model.answered", { elapsed: 500_000 }, false], // the answer before it, read late
  ["task.failed", { error: "no" }, true],
  ["tool.called", { tool: "look" }, false],
])("%s with %o ends it: %s", (kind, data, ends) => {
  const { events } = new Made().start("t1", "speaker").tell("model.asked", "t1", "speaker").tell(kind, "t1", "speaker", data);
  addWords(piece("The harbour", true));
  dropAnswered(events.slice(0, 2));
  expect(shown()).toBe("The harbour");
  dropAnswered(events);
  expect(shown()).toBe(ends ? undefined : "The harbour");
});

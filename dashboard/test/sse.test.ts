import { expect, test } from "vitest";
import { framesIn } from "../src/sse";

test("frames are cut at empty lines, and the rest is kept", () => {
  const [frames, rest] = framesIn('retry: 1000\n\nid: 7\nevent: task.started\ndata: {"a":1}\n\n: \nid: 9\n\nid: 10\nev');
  expect(frames).toEqual([
    { id: "", kind: "message", data: "" },
    { id: "7", kind: "task.started", data: '{"a":1}' },
    { id: "9", kind: "message", data: "" },
  ]);
  expect(rest).toBe("id: 10\nev");
});

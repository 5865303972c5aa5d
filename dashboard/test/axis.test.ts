import { describe, expect, test } from "vitest";
import { axis, ticks } from "../src/run/axis";

const S = 1e6;

describe("the axis of time", () => {
  test("is to scale while things happen", () => {
    const line = axis([0, 1 * S, 2 * S, 3 * S, 4 * S], 0, 4 * S, 400);
    expect(line.x(0)).toBe(0);
    expect(line.x(2 * S)).toBeCloseTo(200);
    expect(line.x(4 * S)).toBeCloseTo(400);
    expect(line.t(100)).toBeCloseTo(1 * S);
  });

  test("folds a long stretch in which nothing happens", () => {
    const line = axis([0, 1 * S, 60 * S, 61 * S], 0, 61 * S, 600);
    const quiet = line.stretches.filter((one) => one.quiet);
    expect(quiet).toHaveLength(1);
    expect(quiet[0]?.width).toBe(76);
    expect(line.x(61 * S)).toBeCloseTo(600);
    for (const at of [0, 0.5 * S, 1 * S, 30 * S, 60 * S, 60.5 * S]) expect(line.t(line.x(at))).toBeCloseTo(at, -1);
  });

  test("has labels that do not meet", () => {
    for (const length of [0.5, 3, 45, 300, 9000, 400_000]) {
      const times = Array.from({ length: 50 }, (_, at) => (at * length * S) / 49);
      const line = axis(times, 0, length * S, 700);
      const places = ticks(line, 0, 700).map((tick) => line.x(tick.at));
      for (const [at, place] of places.slice(1).entries()) expect(place - (places[at] as number)).toBeGreaterThan(35);
    }
  });
});

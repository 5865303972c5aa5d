// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { go, match, path, place, setQuery } from "../src/router";

test("a pattern gives the values of its path", () => {
  expect(match("/runs/:id", "/runs/a%2Fb")).toEqual({ id: "a/b" });
  expect(match("/runs/:id", "/runs/a/")).toEqual({ id: "a" });
  expect(match("/runs/:id", "/runs")).toBeNull();
  expect(match("/runs/:id", "/runs/%E0%A4%A")).toBeNull();
  expect(match("/", "/")).toEqual({});
});

test("the address changes without a load, and keeps the other parameters", () => {
  go("/runs?state=open&limit=5");
  expect(path.value).toBe("/runs");
  setQuery({ state: null, agent: "lead" });
  expect(place.value.query.toString()).toBe("limit=5&agent=lead");
});

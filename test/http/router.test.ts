import { expect, test } from "bun:test";
import { createRouter } from "../../src/http/router.ts";
import { toRequestTarget } from "../../src/http/target.ts";

const find = createRouter([
  { method: "GET", path: "/projects/:id" },
  { method: "PATCH", path: "/projects/:id" },
  { method: "GET", path: "/projects/:id/runs/:slug" },
  { method: "POST", path: "/projects/:id/runs/latest" },
] as const);

test("finds a route and the values of its parameters, still encoded", () => {
  expect(find("GET", "/projects/a%2Fb/runs/x%20y")).toEqual({
    route: { method: "GET", path: "/projects/:id/runs/:slug" },
    segments: ["a%2Fb", "x%20y"],
  });
  expect(find("HEAD", "/projects/1")).toMatchObject({ route: { method: "GET" } });
});

test("a static segment comes before a parameter", () => {
  expect(find("POST", "/projects/1/runs/latest")).toMatchObject({ segments: ["1"] });
});

test("says which methods a path has, or that nobody has it", () => {
  expect(find("PUT", "/projects/1")).toEqual({ allow: "GET, HEAD, PATCH" });
  for (const path of ["", "/", "/projects", "/projects/", "/projects/1/", "/projects//runs/x", "/Projects/1"])
    expect([path, find("GET", path)]).toEqual([path, undefined]);
});

test("two routes for one method and path are a mistake that is told at the start", () => {
  const route = { method: "GET", path: "/a/:b" } as const;
  expect(() => createRouter([route, { ...route, path: "/a/:c" }])).toThrow("Two routes");
});

test("a request's target is its path and query as sent", () => {
  expect(toRequestTarget("http://h:1/a%2Fb?c=d?e#f")).toEqual({ path: "/a%2Fb", search: "c=d?e", badHost: false });
  expect(toRequestTarget("http://h/a#b?c")).toEqual({ path: "/a", search: "", badHost: false });
  expect(toRequestTarget("/a?b")).toEqual({ path: "/a", search: "b", badHost: true });
});

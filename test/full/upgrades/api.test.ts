/** A client of the newest release can do with today's API what it could do before. */

import { describe, expect, test } from "bun:test";
import openapi from "../../../src/server/openapi.json" with { type: "json" };
import { findBreakingChanges } from "./breaking_changes.ts";
import { readReleases } from "./dump.ts";

const released: any = (await readReleases()).at(-1)?.expectation.openapi ?? openapi;
const copy = (): any => structuredClone(released);

test("today's API has no breaking change", () => {
  expect(findBreakingChanges(released, openapi as any)).toEqual([]);
});

describe("a breaking change is found", () => {
  const runs = "/projects/{projectId}/test-runs";
  test.each<[what: string, change: (document: any) => void, found: string]>([
    ["a path", ({ paths }) => delete paths[runs], `GET ${runs} is missing`],
    ["a method", ({ paths }) => delete paths[runs].post, `POST ${runs} is missing`],
    [
      "a parameter",
      ({ paths }) =>
        (paths[runs].get.parameters = paths[runs].get.parameters.filter((one: any) => one.name !== "task_slug")),
      `GET ${runs}: the parameter query task_slug is missing`,
    ],
    [
      "a parameter that became required",
      ({ paths }) => (paths[runs].get.parameters.find((one: any) => one.name === "limit").required = true),
      `GET ${runs}: the parameter query limit is required`,
    ],
    [
      "a field of an answer",
      ({ components }) => delete components.schemas.Execution.properties.branch,
      ".branch is missing",
    ],
    [
      "a field of a request that became required",
      ({ paths }) =>
        (paths["/projects/{projectId}/executions"].post.requestBody.content["application/json"].schema.required = [
          "key",
        ]),
      ".key is required",
    ],
  ])("%s", (_, change, found) => {
    const document = copy();
    change(document);
    expect(findBreakingChanges(released, document).join("\n")).toContain(found);
  });

  test("what is added breaks nothing", () => {
    const document = copy();
    document.paths["/new"] = document.paths[runs];
    document.components.schemas.Execution.properties.added = { type: "string" };
    expect(findBreakingChanges(released, document)).toEqual([]);
  });
});

/** Files that state the version of Assay state that of package.json. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };

const read = (path: string) => readFileSync(join(import.meta.dir, "..", path), "utf8");

test.each([
  ["docs/ci-github.md", /(?:acme\/assay@|`)v(\d+\.\d+\.\d+)/g, 3],
  ["docs/ci-gitlab.md", /(?:assay\/assay@|assay-cli-|`)(\d+\.\d+\.\d+)/g, 3],
  ["deploy/kubernetes.yaml", /assay:(\d+\.\d+\.\d+)/g, 1],
  ["deploy/helm/Chart.yaml", /^(?:v|appV)ersion: (.*)$/gm, 2],
  ["src/server/openapi.json", /^ {4}"version": "(.*)"/gm, 1],
])("%s states the version", (path, pattern, count) => {
  const stated = [...read(path).matchAll(pattern)].map(([, version]) => version!);
  expect(stated).toEqual(Array.from({ length: count }, () => packageJson.version));
});

test("the changelog has a section of the version, below that of what is not released", () => {
  const sections = [...read("CHANGELOG.md").matchAll(/^## (.*)$/gm)].map(([, name]) => name);
  expect(sections.slice(0, 2)).toEqual(["Unreleased", packageJson.version]);
});

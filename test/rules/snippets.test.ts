/** What CI systems read in the lines of the onboarding. */

import { expect, test } from "bun:test";
import { createSnippets } from "../../src/rules/snippets.ts";

const projectId = "0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21";
const snippets = createSnippets({ publicUrl: "https://assay.test/a,b", projectId });
const upload = "assay upload report.xml -- npm test";
const variables = { ASSAY_URL: "https://assay.test/a,b", ASSAY_PROJECT: projectId };

test("each CI system runs the same command with address, project and key", () => {
  const key = "${{ secrets.ASSAY_KEY }}";
  expect(Bun.YAML.parse(snippets.githubActions)).toEqual([{ run: upload, env: { ...variables, ASSAY_KEY: key } }]);
  expect(Bun.YAML.parse(snippets.gitlabCi)).toEqual({ test: { variables, script: upload } });
  expect(Bun.YAML.parse(snippets.circleci)).toEqual([{ run: { command: upload, environment: variables } }]);
  const secret = { ASSAY_KEY: "$(ASSAY_KEY)" };
  expect(Bun.YAML.parse(snippets.azurePipelines)).toEqual([{ bash: upload, env: { ...variables, ...secret } }]);
  expect(Bun.YAML.parse(snippets.buildkite)).toEqual([{ label: "test", command: upload, env: variables }]);
  expect(snippets.jenkins).toContain(`sh 'ASSAY_URL=https://assay.test/a,b ASSAY_PROJECT=${projectId} ${upload}'`);
});

test("they have three lines, and curl has one", () => {
  const { curl, ...others } = snippets;
  expect(curl).not.toContain("\n");
  for (const text of Object.values(others)) expect(text.split("\n")).toHaveLength(3);
});

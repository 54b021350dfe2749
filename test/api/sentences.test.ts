/** One build with a failure of each kind, a skipped and a missing test: all sentences about it count the same. */

import { expect, test } from "bun:test";
import { countAll } from "../../src/work/count.ts";
import { createAsking } from "../asking.ts";
import { createFolder, run, variablesOf } from "../commands.ts";
import { createHarness } from "../harness.ts";
import { createAssistant } from "../mcp/assistant.ts";

const { ask, acme, addProject, database, url } = await createHarness();

const NAMES = ["new", "flaky", "quarantined", "inherited", "skipped", "missing", "a", "b", "c"] as const;
type Outcomes = Partial<Record<(typeof NAMES)[number], "f" | "s" | null>>;
const report = (outcomes: Outcomes) => {
  const inner = { f: '<failure message="no"/>', s: "<skipped/>" };
  const cases = NAMES.filter((name) => outcomes[name] !== null).map((name) => {
    const outcome = outcomes[name];
    return `<testcase classname="s" name="${name}">${outcome ? inner[outcome].replace("no", `${name} broke`) : ""}</testcase>`;
  });
  return `<testsuite name="s">${cases.join("")}</testsuite>`;
};

test("the answer, the gate, the headline, assay why and assistants agree", async () => {
  const place = await addProject(acme);
  const project = createAsking(ask, place, "unit");
  for (let build = 0; build < 7; build++)
    await project.uploadReport(report(build % 2 ? { flaky: "f" } : build === 6 ? { inherited: "f" } : {}), {
      ...{ branch: "main", complete: "true", commit: `${build}`.repeat(8) },
    });
  await countAll(database);
  const [{ id }] = await project.list("/test-cases?q=quarantined");
  await project.patch(`/test-cases/${id}`, { quarantine: { reason: "#12" } });
  const failed: Outcomes = { new: "f", flaky: "f", quarantined: "f", inherited: "f", skipped: "s", missing: null };
  const env = variablesOf(url, place);
  const folder = createFolder({ "r.xml": report(failed) });
  const origin = ["--branch", "fix", "--pull-request", "12", "--commit", "aaaaaaaa", "--exit-code", "1", "--complete"];
  const upload = await run(["upload", "r.xml", "--task", "unit", "--gate", "new", ...origin], { cwd: folder, env });
  const absent = ["1 test of the baseline did not run", "1 test of the baseline is newly skipped"];
  const counts = "1 new, 1 still failing, 1 known flaky, 1 quarantined";
  expect(upload.output).toStartWith(`FAILED unit: 3 passed, 4 failed (${counts}), 1 skipped, attempt 1 http`);
  expect(upload.output.split("\n").slice(1, 3)).toEqual([`${absent[0]}: s > missing`, `${absent[1]}: s > skipped`]);
  expect(upload.errors.split("\n").filter((line) => line.includes("Stays red"))).toEqual([
    "assay: Stays red: unit: 1 new failure",
    `assay: Stays red: unit: ${absent.join(", ")}`,
  ]);
  expect(upload.errors.match(/Would be forgiven/g)).toHaveLength(3);
  const [{ id: executionId }] = await project.list("/executions");
  const headline = "1 new failure since main #7, 1 still failing, 1 known flaky, 1 quarantined";
  const failures = await project.get(`/executions/${executionId}/failures`);
  expect(failures.headline.replace(/#\d+/, "#7")).toBe(headline);
  const why = await run(["why", "--pull-request", "12"], { cwd: folder, env });
  expect(why.output.replace(/#\d+/, "#7")).toStartWith(`${headline}\n`);
  expect(why.output).toContain(`\n${absent[0]}: s > missing\n${absent[1]}: s > skipped\n`);
  const { reasons } = await project.get(`/executions/${executionId}/verdict?gate=quarantine`);
  expect(reasons).toEqual([
    ...["unit: 1 new failure", "unit: 1 failure that the baseline has too", "unit: 1 failure of known flaky tests"],
    `unit: ${absent.join(", ")}`,
  ]);
  const answer = await createAssistant(url).call("why_is_it_red", { pullRequest: "12" }, place.key);
  expect(answer).toMatchObject({ summary: counts, causeCount: 4, untrusted: { headline: failures.headline } });
  const stays = ["unit: 1 new failure", `unit: ${absent.join(", ")}`];
  expect(answer.gate).toMatchObject({ pass: false, final: true, forgivenCount: 3, untrusted: { reasons: stays } });
});
